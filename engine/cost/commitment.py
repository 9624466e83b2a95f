"""How much to commit when demand varies: the newsvendor's answer on the user's own demand.

An hour of the month needs D machines. q of them are owned or reserved at c dollars an hour, used or
not; the rest is rented at d dollars an hour when needed. The cost c·q + d·E[(D − q)⁺] is convex and
piecewise linear in q, so its minimum lies where P(D > q) falls to c/d or below [1]: exactly, not by
search. The articles' rule that a variation above 30% belongs in the cloud becomes a statement about
this demand.

References
----------
[1] K. Arrow, T. Harris, J. Marschak, "Optimal inventory policy", Econometrica 19(3), 1951.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.cost.cash_flow import HOURS_PER_MONTH
from engine.cost.checks import Array, not_negative, positive, share
from engine.errors import InputError
from engine.wording import number

HOURS_PER_WEEK = 168.0


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """Machines needed, as levels and the share of the hours in which each is needed."""

    levels: Array
    shares: Array
    source: str

    @property
    def mean(self) -> float:
        """Machines needed on average."""
        return float(self.levels @ self.shares)

    @property
    def peak(self) -> float:
        """Most machines needed in any hour."""
        return float(self.levels.max())

    @property
    def all_or_nothing(self) -> bool:
        """Whether the same machines work in every hour in which any does."""
        return bool(np.all(self.levels[self.levels > 0] == self.peak))

    def above(self, base: float) -> float:
        """Machines needed beyond the base, on average: E[(D − q)⁺]."""
        return float(np.maximum(self.levels - base, 0.0) @ self.shares)

    def share_above(self, base: float) -> float:
        """Share of the hours that need more than the base: P(D > q)."""
        return float(self.shares[self.levels > base].sum())


# --- where a demand comes from


def constant(machines: float) -> Demand:
    """The same number of machines around the clock."""
    return _demand([float(not_negative("machines", machines))], [1.0], "constant")


def schedule(machines: float, hours_per_day: float, days_per_week: float) -> Demand:
    """A number of machines during hours of the week, none outside them."""
    not_negative("machines", machines)
    not_negative("hours_per_day", hours_per_day, below=24)
    not_negative("days_per_week", days_per_week, below=7)
    busy = hours_per_day * days_per_week / HOURS_PER_WEEK
    return _demand([0.0, machines], [1 - busy, busy], "schedule")


def monthly(machine_hours: Sequence[float], machines: float | None = None) -> Demand:
    """Machine-hours of each month.

    machines : how many work at once when any does; None spreads each month evenly over its hours
    """
    hours = np.asarray(machine_hours, float)
    if hours.size == 0:
        raise InputError("empty", where="monthly_hours", right="one number per month")
    not_negative("monthly_hours", hours)
    if machines is None:
        return _demand(hours / HOURS_PER_MONTH, np.ones(hours.size), "monthly list")
    positive("machines", machines)
    busy = hours / (machines * HOURS_PER_MONTH)
    if np.any(busy > 1):
        raise InputError(
            f"{float(hours.max()):g} machine-hours do not fit {machines:g} machines",
            where="machines",
            right=f"at least {number(float(hours.max()) / HOURS_PER_MONTH)}",
        )
    return _demand([0.0, machines], [float(1 - busy.mean()), float(busy.mean())], "monthly list")


def hourly(machines: Sequence[float] | Array) -> Demand:
    """A log: machines needed in each hour."""
    levels = np.asarray(machines, float)
    if levels.size == 0:
        raise InputError("empty", where="hourly_log", right="one number per hour")
    not_negative("hourly_log", levels)
    distinct, counts = np.unique(levels, return_counts=True)
    return _demand(distinct, counts, "hourly log")


def levels(
    machines: Sequence[float] | Array, shares: Sequence[float] | Array, source: str = "levels"
) -> Demand:
    """Levels of demand with the weight of the hours in which each is needed; equal levels join."""
    level, weight = np.asarray(machines, float), np.asarray(shares, float)
    if level.size == 0 or level.size != weight.size:
        raise InputError(
            f"{level.size} levels and {weight.size} shares", where="levels", right="one share each"
        )
    not_negative("levels", level)
    not_negative("shares", weight)
    if weight.sum() <= 0:
        raise InputError("no hours", where="shares", right="at least one share above 0")
    distinct, place = np.unique(level, return_inverse=True)
    return _demand(distinct, np.bincount(place, weights=weight), source)


# --- the best mix


@dataclass(frozen=True, slots=True)
class Mix:
    """The best base and what it costs, beside the two pure forms. US dollars per hour of the month.

    base : machines committed; bursts : share of the hours that rent more
    """

    base: int
    usd_per_hour: float
    all_committed: float
    all_burst: float
    bursts: float
    base_utilization: float
    break_even_share: float

    @property
    def usd_per_month(self) -> float:
        """Expected US dollars a month."""
        return self.usd_per_hour * HOURS_PER_MONTH

    @property
    def is_mix(self) -> bool:
        """Whether both a base and a burst are used."""
        return self.base > 0 and self.bursts > 0


def expected_cost(
    demand: Demand, base: float, committed_usd_per_hour: float, burst_usd_per_hour: float
) -> float:
    """US dollars per hour of the month: c·q + d·E[(D − q)⁺]."""
    return committed_usd_per_hour * base + burst_usd_per_hour * demand.above(base)


def best_mix(demand: Demand, committed_usd_per_hour: float, burst_usd_per_hour: float) -> Mix:
    """The number of committed machines at which the expected cost is least.

    committed_usd_per_hour : c, of an owned or reserved machine, paid in every hour
    burst_usd_per_hour : d, on demand, or spot divided by its goodput
    """
    c = float(positive("committed_usd_per_hour", committed_usd_per_hour))
    d = float(positive("burst_usd_per_hour", burst_usd_per_hour))
    quantile = _least_base(demand, c / d)
    # The cost is convex in q, so the best whole number is next to the best number.
    base = min(
        {int(np.floor(quantile)), int(np.ceil(quantile))},
        key=lambda q: (expected_cost(demand, q, c, d), q),
    )
    burst_machines = demand.above(base)
    return Mix(
        base=base,
        usd_per_hour=c * base + d * burst_machines,
        all_committed=c * float(np.ceil(demand.peak)),
        all_burst=d * demand.mean,
        bursts=demand.share_above(base),
        base_utilization=(demand.mean - burst_machines) / base if base else 0.0,
        break_even_share=c / d,
    )


def variation(monthly_machine_hours: Sequence[float]) -> float:
    """Largest change from one month to the next, over the mean: the articles' "variation"."""
    hours = np.asarray(monthly_machine_hours, float)
    not_negative("monthly_hours", hours)
    if hours.size < 2 or hours.mean() == 0:
        return 0.0
    return float(np.abs(np.diff(hours)).max() / hours.mean())


def statement(demand: Demand, mix: Mix, month_to_month: float, rule: float) -> str:
    """The articles' rule on variation, turned into a sentence about this demand.

    month_to_month : variation of this demand; rule : the articles' limit
    """
    share("variation_rule", rule)
    says = "the cloud" if month_to_month > rule else "committed machines"
    trough, peak = float(demand.levels[demand.shares > 0].min()), demand.peak
    if mix.base == 0:
        idle = ": every machine would idle too long" if mix.break_even_share < 1 else ""
        found = f"commit to none{idle}"
    elif mix.bursts == 0:
        found = f"commit to {mix.base}: the demand never exceeds them"
    else:
        found = f"commit to {mix.base} and rent more in {mix.bursts:.0%} of the hours"
    if number(trough) == number(peak):
        span = f"is {number(peak)} machines in each hour"
    else:
        span = f"runs from {number(trough)} to {number(peak)} machines"
    if mix.break_even_share >= 1:
        so = (
            "Even a machine that is needed in every hour costs less by the hour than committed, so "
        )
    else:
        so = (
            "A machine is worth committing to when it is needed in more than "
            f"{mix.break_even_share:.0%} of the hours, so "
        )
    return (
        f"Demand {span} and varies by {month_to_month:.0%} from month to month; the {rule:.0%} "
        f"rule says {says}. {so}{found}."
    )


# --- helpers


def _demand(levels: npt.ArrayLike, weights: npt.ArrayLike, source: str) -> Demand:
    level, weight = np.asarray(levels, float), np.asarray(weights, float)
    order = np.argsort(level)
    return Demand(level[order], weight[order] / weight.sum(), source)


def _least_base(demand: Demand, ratio: float) -> float:
    """Smallest q with P(D > q) ≤ ratio; a base of 0 counts as a level."""
    if ratio >= 1 or demand.share_above(0.0) <= ratio:
        return 0.0
    above = 1 - np.cumsum(demand.shares)
    return float(demand.levels[int(np.argmax(above <= ratio + 1e-12))])
