"""A demand from a log: machines by the hour, or jobs with their start, end and machines.

Read are tables with comma, semicolon, tab or stroke between the columns: one number per hour
(a column `machines`, or the only one with numbers), or jobs with columns for start and end, as
Slurm's `sacct --parsable2 --format=Start,End,NNodes,State` writes them. Jobs are laid over one
another: the demand at any time is the sum of the machines of the jobs that run.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from engine.cost.commitment import Demand, levels
from engine.errors import ImportFileError
from engine.workload.cost_terms import MOST_LEVELS

LIMIT_BYTES = 5_000_000
MOST_MACHINES = 100_000
STARTS = ("start", "started", "start_time", "starttime", "begin")
ENDS = ("end", "ended", "end_time", "endtime", "finish")
COUNTS = (
    "machines", "nodes", "nnodes", "allocnodes", "reqnodes", "instances", "servers", "replicas",
)  # fmt: skip
UNFINISHED = ("", "unknown", "none", "null", "n/a")


@dataclass(frozen=True, slots=True, eq=False)
class LogDemand:
    """The demand of a log in at most 24 levels, with what was read in words."""

    levels: tuple[float, ...]
    shares: tuple[float, ...]
    said: str
    skipped: int


def read_log(data: bytes | str, name: str = "the log") -> LogDemand:
    """The demand in a log.

    Raises
    ------
    ImportFileError : when it is too large, no text, or has no usable rows; says what is needed
    """
    rows = _rows(_text(data, name), name)
    head = [cell.strip().lower().replace(" ", "_") for cell in rows[0]]
    start, end = _column(head, STARTS), _column(head, ENDS)
    if start is not None and end is not None:
        return _jobs(rows[1:], start, end, _column(head, COUNTS), name)
    return _hours(rows, head, name)


def _text(data: bytes | str, name: str) -> str:
    if isinstance(data, str):
        return data
    if len(data) > LIMIT_BYTES:
        raise ImportFileError(
            "the file is too large", where=name, right=f"at most {LIMIT_BYTES / 1e6:g} MB is read"
        )
    for encoding in (
        ("utf-8-sig", "utf-16") if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig",)
    ):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise ImportFileError("this is no text file", where=name, right="a CSV, or what sacct prints")


def _rows(text: str, name: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        raise ImportFileError("the file is empty", where=name, right="one row per hour or job")
    counts = {mark: lines[0].count(mark) for mark in "|\t;,"}
    mark = max(counts, key=lambda m: counts[m]) if any(counts.values()) else ","
    try:
        return list(csv.reader(io.StringIO("\n".join(lines)), delimiter=mark))
    except csv.Error as error:
        raise ImportFileError(
            f"it is no table: {error}", where=name, right="save it as CSV"
        ) from None


def _column(head: list[str], names: tuple[str, ...]) -> int | None:
    return next((head.index(n) for n in names if n in head), None)


def _hours(rows: list[list[str]], head: list[str], name: str) -> LogDemand:
    """One number per hour."""
    at = _column(head, COUNTS)
    if at is None:
        width = max(len(row) for row in rows)
        numeric = [
            i
            for i in range(width)
            if sum(_number(row, i) is not None for row in rows) >= max(len(rows) - 1, 1)
        ]
        if not numeric:
            raise ImportFileError(
                "no column holds a number in each row",
                where=name,
                right="a column “machines” by the hour, or columns “start” and “end” of jobs",
            )
        at = numeric[-1]
    body = rows if _number(rows[0], at) is not None else rows[1:]
    found = [_number(row, at) for row in body]
    good = np.array([v for v in found if v is not None and 0 <= v <= MOST_MACHINES])
    if good.size == 0:
        raise ImportFileError(
            "no row holds a number of machines", where=name, right=f"0 to {MOST_MACHINES:,}"
        )
    skipped = len(found) - good.size
    demand = levels(tuple(good), (1.0,) * good.size)
    return _packed(demand, f"{good.size:,} hours read", skipped)


def _jobs(rows: list[list[str]], start: int, end: int, count: int | None, name: str) -> LogDemand:
    """Jobs laid over one another, from the first start to the last end."""
    spans: list[tuple[float, float, float]] = []
    skipped = 0
    for row in rows:
        begin, stop = _moment(row, start), _moment(row, end)
        machines = 1.0 if count is None else _number(row, count)
        if (
            begin is None
            or stop is None
            or machines is None
            or stop <= begin
            or not 0 < machines <= MOST_MACHINES
        ):
            skipped += 1
            continue
        spans.append((begin, stop, machines))
    if not spans:
        raise ImportFileError(
            "no job has both a start and an end",
            where=name,
            right="times like 2026-12-01T08:00:00; jobs that still run are left out",
        )
    begins, stops, machines_ = (np.array(part) for part in zip(*spans, strict=True))
    times = np.concatenate([begins, stops])
    change = np.concatenate([machines_, -machines_])
    order = np.argsort(times, kind="stable")
    level = np.maximum(np.cumsum(change[order])[:-1], 0.0)
    lasting = np.diff(times[order])
    held = lasting > 0
    days = (times.max() - times.min()) / 86_400
    demand = levels(tuple(np.round(level[held], 6)), tuple(lasting[held]))
    return _packed(demand, f"{len(spans):,} jobs over {days:,.1f} days read", skipped)


def _packed(demand: Demand, said: str, skipped: int) -> LogDemand:
    """At most so many levels as a link carries; levels between go up to the next one kept."""
    level, share = demand.levels, demand.shares
    if level.size > MOST_LEVELS:
        kept = np.unique(np.quantile(level, np.linspace(0, 1, MOST_LEVELS), method="higher"))
        place = np.searchsorted(kept, level)
        share = np.asarray(np.bincount(place, weights=share, minlength=kept.size), float)
        level = kept
        said += f"; brought up to {kept.size} levels"
    if skipped:
        said += f"; {skipped:,} rows without a usable figure are left out"
    percent = np.round(share * 100, 4)
    keep = percent > 0
    return LogDemand(tuple(level[keep].tolist()), tuple(percent[keep].tolist()), said, skipped)


def _number(row: list[str], at: int) -> float | None:
    try:
        value = float(row[at].strip())
    except (IndexError, ValueError):
        return None
    return value if np.isfinite(value) else None


def _moment(row: list[str], at: int) -> float | None:
    """A time in seconds; times without a zone are taken as they are."""
    text = row[at].strip() if at < len(row) else ""
    if text.lower() in UNFINISHED:
        return None
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo else (moment - datetime(1970, 1, 1)).total_seconds()
