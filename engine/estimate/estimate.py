"""The value type of every estimate: a likely value, an 80% interval, a unit and its sources.

It knows nothing of how the value was come by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with an 80% interval (10th to 90th percentile) and the names of its sources."""

    low: float
    likely: float
    high: float
    unit: str
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all(math.isfinite(x) for x in (self.low, self.likely, self.high)):
            raise ValueError(f"estimate in {self.unit} is not finite: {self}")
        if not self.low <= self.likely <= self.high:
            raise ValueError(f"estimate in {self.unit} is not ordered: {self}")

    def scaled(self, factor: float, unit: str | None = None) -> Estimate:
        """The same estimate times a positive exact factor, in another unit if one is named."""
        return Estimate(
            self.low * factor,
            self.likely * factor,
            self.high * factor,
            unit or self.unit,
            self.sources,
        )
