"""When one way to pay becomes cheaper than another: utilization, runs, months and price.

Each break-even has a closed form and a range from the ranges of what enters it. `by_root` finds the
same point on any two cost functions, so that the closed forms can be checked and curves without one
can be answered. "Never" is an answer: it is a `BreakEven` without a value, and a reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from engine.cost.checks import Array, not_negative, positive
from engine.errors import InputError


@dataclass(frozen=True, slots=True)
class Range:
    """A likely value with its low and its high; an exact value has all three alike."""

    low: float
    likely: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.likely <= self.high:
            raise InputError(f"{self} is not ordered", where="range", right="low ≤ likely ≤ high")


Number = float | Range


@dataclass(frozen=True, slots=True)
class BreakEven:
    """A break-even point with its range. None stands for never, at that end of the range or at all.

    low, high : the point at the most and the least favourable ends of the inputs, low ≤ high
    """

    value: float | None
    low: float | None
    high: float | None
    unit: str
    text: str

    @property
    def never(self) -> bool:
        """Whether there is no such point at the likely values."""
        return self.value is None


# --- the closed forms


def utilization(committed_usd_per_hour: Number, on_demand_usd_per_hour: Number) -> BreakEven:
    """Share of the hours above which a price paid always beats one paid when used: u* = c/d.

    A share above 1 can't be reached: then the commitment never pays.
    """

    def point(c: float, d: float) -> float | None:
        return _up_to(c / d, 1.0)

    return _over_the_range(
        point,
        ("committed_usd_per_hour", committed_usd_per_hour),
        ("on_demand_usd_per_hour", on_demand_usd_per_hour),
        unit="share of hours",
        text="Above this share of useful hours the commitment is the cheaper.",
        never="The commitment costs as much as renting around the clock, or more.",
    )


def runs_per_month(
    committed_usd_per_month: Number, usd_per_run: Number, capacity_runs: float = math.inf
) -> BreakEven:
    """Runs a month above which a monthly price beats paying by the run.

    capacity_runs : runs that fit into the month; a break-even beyond them is never reached
    """

    def point(monthly: float, run: float) -> float | None:
        return _up_to(monthly / run, capacity_runs)

    return _over_the_range(
        point,
        ("committed_usd_per_month", committed_usd_per_month),
        ("usd_per_run", usd_per_run),
        unit="runs/month",
        text="From this many runs a month on the commitment is the cheaper.",
        never="The machines are full before the commitment pays.",
    )


def months_to_pay_back(
    upfront_usd: Number, saved_usd_per_month: Number, yearly_rate: float = 0.0
) -> BreakEven:
    """Months of use until a purchase has paid for itself by what it saves each month.

    With a discount rate this is the number of payments of an annuity: −ln(1 − P·i/S)/ln(1 + i).
    """
    monthly_rate = math.expm1(math.log1p(float(not_negative("discount_rate", yearly_rate))) / 12)

    def point(upfront: float, saved: float) -> float | None:
        if saved <= 0 or upfront * monthly_rate >= saved:
            return None
        if monthly_rate == 0:
            return upfront / saved
        return -math.log1p(-upfront * monthly_rate / saved) / math.log1p(monthly_rate)

    return _over_the_range(
        point,
        ("upfront_usd", upfront_usd),
        ("saved_usd_per_month", saved_usd_per_month),
        unit="months",
        text="After so many months of use the purchase has paid for itself.",
        never="The purchase saves nothing each month that could pay for it.",
        may_be_negative="saved_usd_per_month",
    )


def rent_price(owned_usd_per_hour: Number, used_share: Number) -> BreakEven:
    """Rent per hour above which owning is the cheaper, at a share of the hours used: c/u.

    Without any use there is no such rent.
    """

    def point(owned: float, used: float) -> float | None:
        return owned / used if used > 0 else None

    return _over_the_range(
        point,
        ("owned_usd_per_hour", owned_usd_per_hour),
        ("utilization", used_share),
        unit="USD/hour",
        text="Above this rent owning is the cheaper.",
        never="Nothing is used, so no rent makes owning the cheaper.",
        may_be_negative="utilization",
    )


# --- by search


def by_root(
    cost_a: Callable[[float], float], cost_b: Callable[[float], float], low: float, high: float
) -> float | None:
    """First point between `low` and `high` at which the two costs cross; None if they never do."""
    grid = np.linspace(low, high, 129)
    gaps = [cost_a(float(x)) - cost_b(float(x)) for x in grid]
    for left, right, gap_left, gap_right in zip(grid, grid[1:], gaps, gaps[1:], strict=False):
        if gap_left == 0:
            return float(left)
        if gap_left * gap_right < 0:
            return float(brentq(lambda x: cost_a(x) - cost_b(x), left, right, xtol=1e-12))
    return float(grid[-1]) if gaps[-1] == 0 else None


def usd_per_useful_hour(usd_per_hour: float, shares_of_hours: Array, pays_idle: bool) -> Array:
    """Cost of a useful hour against utilization, for the chart; infinity where nothing is used.

    pays_idle : whether hours without work are paid too
    """
    price = float(positive("usd_per_hour", usd_per_hour))
    if not pays_idle:
        return np.where(shares_of_hours > 0, price, np.inf)
    with np.errstate(divide="ignore"):
        return np.where(shares_of_hours > 0, price / shares_of_hours, np.inf)


# --- helpers


def _up_to(value: float, most: float) -> float | None:
    return value if value <= most else None


def _ends(number: Number) -> tuple[float, float, float]:
    if isinstance(number, Range):
        return number.low, number.likely, number.high
    return number, number, number


def _over_the_range(
    point: Callable[[float, float], float | None],
    first: tuple[str, Number],
    second: tuple[str, Number],
    *,
    unit: str,
    text: str,
    never: str,
    may_be_negative: str = "",
) -> BreakEven:
    """Every point here rises with its first input and falls with its second."""
    for field, number in (first, second):
        for end in _ends(number):
            if field != may_be_negative:
                positive(field, end)
            elif not math.isfinite(end):
                raise InputError(f"{end} can't be used", where=field, right="a number")
    (a_low, a, a_high), (b_low, b, b_high) = _ends(first[1]), _ends(second[1])
    value = point(a, b)
    return BreakEven(
        value, point(a_low, b_high), point(a_high, b_low), unit, never if value is None else text
    )
