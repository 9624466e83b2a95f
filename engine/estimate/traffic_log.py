"""Requests of an imported log: when they came, whatever form the time stamps have.

Each line holds one request. The first time stamp of a line counts: ISO 8601, the form of web
servers' logs (10/Oct/2026:13:55:36 +0000), or seconds, milliseconds, micro- or nanoseconds since
1970. Lines without one are left out and counted. The profile of the day is the mean over the days
that the log covers, in the log's own hours.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from engine.errors import ImportFileError
from engine.estimate.queueing import Array
from engine.estimate.traffic import HOURS

LARGEST_BYTES = 25_000_000
FEWEST = 20
WHOLE_DAY = 0.98  # days from which on a log covers every hour
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_WEB = re.compile(r"\d{1,2}/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?: [+-]\d{4})?", re.ASCII)
_EPOCH = re.compile(r"(?<![\d.])(\d{10}(?:\.\d+)?|\d{13}|\d{16}|\d{19})(?![\d.])", re.ASCII)
_DIGITS = {10: 1.0, 13: 1e3, 16: 1e6, 19: 1e9}


@dataclass(frozen=True, slots=True)
class TrafficLog:
    """What a log says of the traffic.

    `hourly` are requests a second by hour of the day; `peak_to_mean` the busiest minute (but for
    one in a hundred) over the mean; `arrival_cv2` the squared coefficient of variation of the time
    between requests within their hour, 1 for requests that come at random.
    """

    requests: int
    skipped: int
    days: float
    mean_per_s: float
    hourly: tuple[float, ...]
    peak_to_mean: float
    arrival_cv2: float
    notes: tuple[str, ...]


def read_log(data: bytes | str, name: str = "the log") -> TrafficLog:
    """Read the times of requests from a log.

    Raises
    ------
    ImportFileError : when the file is too large, no text, or holds fewer than 20 times
    """
    if isinstance(data, bytes):
        if len(data) > LARGEST_BYTES:
            raise ImportFileError(
                f"{len(data) / 1e6:,.0f} MB is more than is read here", where=name,
                right=f"at most {LARGEST_BYTES / 1e6:.0f} MB, such as one week of time stamps",
            )  # fmt: skip
        wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # as Windows writes it
        text = data.decode("utf-16" if wide else "utf-8", errors="replace")
    else:
        text = data
    lines = [line for line in text.splitlines() if line.strip()]
    times = [t for t in map(_time, lines) if t is not None]
    if len(times) < FEWEST:
        raise ImportFileError(
            f"{len(times)} of {len(lines)} lines hold a time", where=name,
            right="at least 20 lines, each with a time such as 2026-11-30T14:05:09",
        )  # fmt: skip
    stamps = np.sort(np.array(times))
    span = float(stamps[-1] - stamps[0])
    if span <= 0:
        raise ImportFileError(
            "all requests come in the same second", where=name, right="a longer stretch of time"
        )
    # The last request closes one interval less than there are requests.
    span *= len(stamps) / (len(stamps) - 1)
    days, mean = span / 86_400.0, len(stamps) / span
    hourly = _hourly(stamps, mean, whole=days >= WHOLE_DAY)
    mean = sum(hourly) / HOURS
    notes = []
    skipped = len(lines) - len(times)
    if skipped:
        notes.append(f"{skipped:,} of {len(lines):,} lines hold no time and are left out")
    if days < WHOLE_DAY:
        notes.append(
            f"the log covers {span / 3600:.1f} hours: hours that it leaves out take its mean"
        )
    elif days < 6.5:  # seven days whose last night is quiet are a week
        notes.append(f"the log covers {days:.1f} days: a week would show the weekend")
    return TrafficLog(
        len(stamps), skipped, days, mean, hourly, _peak(stamps, span, mean),
        _cv2(stamps), tuple(notes),
    )  # fmt: skip


def _time(line: str) -> float | None:
    """Seconds since 1970 in the log's own clock, None for a line without a time."""
    if (found := _ISO.search(line)) is not None:
        text = found[0].replace(",", ".").replace(" ", "T", 1)
        whole, dot, rest = text.partition(".")
        if dot:  # at most microseconds, padded: 3.10 and later differ in what they accept
            digits = re.match(r"\d+", rest)
            assert digits is not None
            text = f"{whole}.{digits[0][:6]:0<6}{rest[len(digits[0]) :]}"
        return _seconds(text, "")
    if (found := _WEB.search(line)) is not None:
        zone = " %z" if " " in found[0] else ""
        return _seconds(found[0], "%d/%b/%Y:%H:%M:%S" + zone)
    if (found := _EPOCH.search(line)) is not None:
        number = found[0]
        return float(number) / _DIGITS[len(number.partition(".")[0])]
    return None


def _seconds(text: str, form: str) -> float | None:
    try:
        moment = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
    except ValueError:
        return None
    # The hour that users live by is the one written, whatever the zone.
    naive = moment.replace(tzinfo=None)
    return (naive - datetime(1970, 1, 1)).total_seconds()


def _hourly(stamps: Array, mean: float, *, whole: bool) -> tuple[float, ...]:
    """Requests a second by hour of the day, over the time that the log covers of that hour.

    whole : every hour is covered, and the mean of the day is that of its hours: a log that begins
        in the morning and ends at night has fewer quiet hours than its days have
    """
    hour = (stamps // 3600.0).astype(np.int64)
    counts = np.bincount(hour % HOURS, minlength=HOURS).astype(float)
    first, last = int(hour[0]), int(hour[-1])
    covered = np.zeros(HOURS)
    if last == first:
        covered[first % HOURS] = float(stamps[-1] - stamps[0])
    else:
        np.add.at(covered, np.arange(first + 1, last) % HOURS, 3600.0)
        covered[first % HOURS] += (first + 1) * 3600.0 - float(stamps[0])
        covered[last % HOURS] += float(stamps[-1]) - last * 3600.0
    # A few seconds of an hour say nothing of it.
    known = covered >= 60.0
    rate = np.where(known, counts / np.maximum(covered, 1.0), mean)
    if rate.sum() <= 0:
        rate = np.full(HOURS, mean)
    return tuple((rate if whole else rate * mean / rate.mean()).tolist())


def _peak(stamps: Array, span: float, mean: float) -> float:
    """Busiest minute but for one in a hundred over the mean; wider windows where little comes."""
    # A window of fifty requests on average is a peak and no chance.
    window = min(max(60.0, 50.0 / mean), max(span / 10.0, 1.0))
    number = max(int(span // window), 1)
    which = np.minimum(((stamps - stamps[0]) // window).astype(np.int64), number - 1)
    counts = np.bincount(which, minlength=number)
    return max(float(np.quantile(counts, 0.99)) / (mean * window), 1.0)


def _cv2(stamps: Array) -> float:
    gaps = np.diff(stamps)
    hour = (stamps[1:] // 3600.0).astype(np.int64)
    order, start = np.unique(hour, return_index=True)
    squares = []
    for first, last in zip(start, np.append(start[1:], len(gaps)), strict=True):
        # The first gap of an hour began in one before it, which may have been the night.
        part = gaps[first + 1 : last]
        if len(part) >= FEWEST and part.mean() > 0:
            squares.append((float(part.var() / part.mean() ** 2), len(part)))
    if not squares or not len(order):
        return 1.0
    weight = sum(n for _, n in squares)
    return sum(v * n for v, n in squares) / weight
