"""Requests over the day: a mean rate, a shape of 24 hours, what comes of both.

A shape is 24 rates over their mean. A peak factor that is told and the shape must agree, so the
shape is sharpened or flattened until its busiest hour is that much above the mean; what 24 hours
can't show is a burst within an hour. Rates per second. Knows nothing of hardware or prices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from engine.catalogue.read import rows
from engine.errors import DataError, InputError
from engine.estimate.queueing import Array, check

SHAPES = Path(__file__).resolve().parents[2] / "data" / "traffic_shapes.csv"
HOURS = 24
# A shape sharpened beyond this power is one hour and nothing else.
SHARPEST = 200.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests a second in each hour of the day, and a burst above the busiest hour.

    `burst` multiplies each hour's rate: the busiest minutes over their hour.
    """

    hourly: tuple[float, ...]
    burst: float = 1.0

    @property
    def mean(self) -> float:
        """Mean rate of the day."""
        return math.fsum(self.hourly) / len(self.hourly)

    @property
    def peak(self) -> float:
        """Rate of the busiest minutes of the busiest hour."""
        return max(self.hourly) * self.burst

    @property
    def peak_to_mean(self) -> float:
        """Peak over mean, 1 where nothing comes."""
        return self.peak / self.mean if self.mean > 0 else 1.0

    @property
    def busiest_hour(self) -> int:
        """Hour of the day, 0 to 23."""
        return max(range(len(self.hourly)), key=lambda h: self.hourly[h])

    @property
    def requests_per_day(self) -> float:
        """Requests of a day."""
        return self.mean * 86_400.0

    def utilization(self, by_hour: bool = False) -> float:
        """Share of what is kept running for the peak that is used on average.

        by_hour : capacity follows the hours, and only bursts are kept for
        """
        if self.mean <= 0:
            return 0.0
        return 1.0 / self.burst if by_hour else 1.0 / self.peak_to_mean

    def scaled(self, factor: float) -> Traffic:
        """The same shape at another rate."""
        return Traffic(tuple(r * factor for r in self.hourly), self.burst)


@cache
def shapes() -> dict[str, tuple[str, tuple[float, ...]]]:
    """Title and 24 rates over their mean of each shipped shape, by its name.

    Raises
    ------
    DataError : with file, line and column
    """
    found = {}
    for line, row in rows(SHAPES):
        values = []
        for h in range(HOURS):
            try:
                values.append(float(row[f"h{h:02d}"]))
            except ValueError:
                raise DataError(
                    f"{row[f'h{h:02d}']!r} is no number", file=SHAPES, line=line,
                    column=f"h{h:02d}",
                ) from None  # fmt: skip
        mean = math.fsum(values) / HOURS
        if min(values) < 0 or abs(mean - 1.0) > 0.01:
            raise DataError(
                f"the mean is {mean:.3f}", file=SHAPES, line=line, column="h00", right="a mean of 1"
            )
        found[row["shape"]] = (row["title"], tuple(v / mean for v in values))
    return found


def traffic_of(
    mean: float, shape: str | Sequence[float] = "even", *, peak_factor: float | None = None
) -> Traffic:
    """Traffic of a mean rate with a shape; a peak factor that is told is met.

    shape : a name of `data/traffic_shapes.csv`, sharpened to the peak factor; or 24 numbers of any
        unit, which stay as they are: a peak above theirs lies within the hours
    peak_factor : the busiest minutes over the mean; None takes the shape as it is

    Raises
    ------
    InputError : with the field's name
    """
    check("rate", mean, least=0.0)
    if isinstance(shape, str):
        if shape not in shapes():
            raise InputError(
                f"there is no shape {shape[:40]!r}", where="shape", right=", ".join(shapes())
            )
        profile = np.array(shapes()[shape][1])
    else:
        profile = _own(shape)
    burst = 1.0
    if peak_factor is not None:
        check("peak_factor", peak_factor, least=1.0)
        if isinstance(shape, str):
            profile = sharpened(profile, peak_factor)
        burst = max(peak_factor / float(profile.max()), 1.0)
    return Traffic(tuple((profile * mean).tolist()), burst)


def sharpened(profile: Array, peak_factor: float) -> Array:
    """The profile to the power at which its highest hour is `peak_factor` of its mean.

    Powers keep the order of the hours and never turn a rate negative. A flat profile stays flat,
    and none gets higher than 24 over the number of its highest hours.
    """
    top = float(profile.max())
    if top <= 0 or peak_factor <= 1.0:
        return np.ones_like(profile)
    relative = np.where(profile > 0, profile / top, 0.0)
    reachable = len(profile) / float(np.sum(relative > 1.0 - 1e-9))
    if reachable <= 1.0 + 1e-9:
        return np.ones_like(profile)

    def factor(power: float) -> float:
        return float(len(relative) / np.sum(relative**power))

    wanted = min(peak_factor, factor(SHARPEST))
    power = brentq(lambda p: factor(p) - wanted, 1e-6, SHARPEST) if wanted > factor(1e-6) else 1e-6
    sharp = relative**power
    return np.asarray(sharp / sharp.mean())


def _own(shape: Sequence[float]) -> Array:
    if len(shape) != HOURS:
        raise InputError(
            f"{len(shape)} hours are no day", where="hourly", right="24 rates, midnight first"
        )
    profile = check("hourly", np.asarray(shape, dtype=float), least=0.0)
    if profile.sum() <= 0:
        raise InputError(
            "nothing comes in any hour", where="hourly", right="a rate above 0 in one hour"
        )
    return np.asarray(profile / profile.mean())
