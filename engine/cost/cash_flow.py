"""The monthly cash-flow table: every cost is a row, every headline number a sum over the rows.

A row is an amount times a schedule over the months. The amount is a float, or an array of draws
when uncertain; the schedule is exact. So the totals of thousands of draws cost one multiplication a
row, and a point and its draws go through the same lines of code. Money in US dollars: paid is
positive, received is negative. This module knows nothing of hardware, offers or acquisitions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from engine.cost.checks import Array, Real, not_negative

Section = Literal["rent", "fees", "capital", "running", "financing", "resale"]
SECTIONS: tuple[Section, ...] = ("rent", "fees", "capital", "running", "financing", "resale")

HOURS_PER_MONTH = 730.0
HOURS_PER_YEAR = 8760.0
NEVER = float("inf")  # a cost per hour, run or unit of which there is none


@dataclass(frozen=True, slots=True, eq=False)
class CashLine:
    """One row: `amount` dollars times `schedule` in each month, paid at its start or end."""

    item: str
    section: Section
    amount: Real
    schedule: Array
    at: Literal["start", "end"] = "end"
    sources: tuple[str, ...] = ()
    unit: str = "USD"

    @property
    def monthly(self) -> Array:
        """US dollars by month: shape (months,), or (draws, months) for an uncertain amount."""
        return np.asarray(np.multiply.outer(self.amount, self.schedule), float)

    @property
    def total(self) -> Real:
        """US dollars over the horizon."""
        return self.amount * float(self.schedule.sum())

    def present_value(self, yearly_rate: float) -> Real:
        """US dollars of today at a discount rate per year."""
        return self.amount * float(self.schedule @ _discounts(yearly_rate, self))


class Row(NamedTuple):
    """One row for a page or a sheet, in US dollars."""

    section: Section
    item: str
    by_month: list[float]
    total: float
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CashFlow:
    """The table of one candidate under one acquisition, and its headline numbers.

    useful_hours : hours of useful work over the horizon, of the whole plan
    notes : what a reader has to know of this table, in words
    """

    label: str
    months: int
    lines: tuple[CashLine, ...]
    useful_hours: Real
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> Real:
        """US dollars over the horizon: the sum of all rows and months."""
        return sum_of(line.total for line in self.lines)

    @property
    def per_month(self) -> Real:
        """US dollars a month, averaged over the horizon."""
        return self.total / self.months

    def npv(self, yearly_rate: float) -> Real:
        """Cost in US dollars of today.

        The rows of cost of capital are left out: discounting is the same charge in another form,
        and both together would count it twice.
        """
        not_negative("discount_rate", yearly_rate, below=1.0)
        return sum_of(
            line.present_value(yearly_rate) for line in self.lines if line.section != "financing"
        )

    def section_total(self, section: Section) -> Real:
        """US dollars over the horizon of one section of the table."""
        return sum_of(line.total for line in self.lines if line.section == section)

    @property
    def cost_per_useful_hour(self) -> Real:
        """US dollars per hour of useful work; infinity, that is never, when there is none."""
        return _per(self.total, self.useful_hours)

    def per_run(self, runs_per_month: Real) -> Real:
        """US dollars per run."""
        return _per(
            self.total, np.asarray(not_negative("runs_per_month", runs_per_month)) * self.months
        )

    def per_million(self, units_per_month: Real) -> Real:
        """US dollars per million requests, tokens or whatever else is counted each month."""
        count = np.asarray(not_negative("units_per_month", units_per_month, below=1e18))
        return _per(self.total, count * self.months / 1e6)

    @property
    def monthly(self) -> Array:
        """Sum of all rows by month: shape (months,) or (draws, months)."""
        total: Array = np.zeros(self.months)
        for line in self.lines:
            total = total + line.monthly
        return total

    @property
    def cumulative(self) -> Array:
        """US dollars paid until the end of each month."""
        return np.asarray(np.cumsum(self.monthly, axis=-1), float)

    def table(self) -> list[Row]:
        """Rows for a page or a sheet. Draws are shown by their mean, again a sum over the rows."""
        rows = []
        for line in self.lines:
            mean = float(np.mean(line.amount))
            # Nothing is 0, and not the −0 of what comes in.
            by_month = [mean * float(share) + 0.0 for share in line.schedule]
            rows.append(Row(line.section, line.item, by_month, math.fsum(by_month), line.sources))
        return rows


# --- schedules


def every_month(months: int, first: int = 0, until: int | None = None) -> Array:
    """1 in each month from `first` (counted from 0) up to `until`, 0 elsewhere."""
    schedule = np.zeros(months)
    schedule[max(first, 0) : months if until is None else until] = 1.0
    return schedule


def once(months: int, month: int = 0) -> Array:
    """1 in one month, counted from 0."""
    schedule = np.zeros(months)
    schedule[month] = 1.0
    return schedule


# --- helpers


def _discounts(yearly_rate: float, line: CashLine) -> Array:
    months = np.arange(line.schedule.size) + (1 if line.at == "end" else 0)
    return np.asarray((1 + yearly_rate) ** (-months / 12), float)


def sum_of(values: Iterable[Real]) -> Real:
    """Sum of floats and arrays of draws."""
    total: Real = 0.0
    for value in values:
        total = total + value
    return total


def _per(total: Real, count: Real) -> Real:
    array = np.asarray(count, float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        each = np.where(array > 0, np.asarray(total, float) / array, NEVER)
    return float(each) if each.ndim == 0 else each
