"""Two ways to pay against each other, on their whole tables: at which utilization they cross.

The cost of a table is a straight line in the hours used (power, hours paid), so two tables give the
crossing in closed form. The rent that makes them equal follows the same way. Both do the same work:
for the months until a purchase is delivered both rent, so these are left out of the comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.cost.break_even import BreakEven
from engine.cost.cash_flow import HOURS_PER_MONTH, CashFlow
from engine.cost.checks import Array, whole_months
from engine.cost.monthly import Acquisition, monthly_cost
from engine.cost.own import Ownership
from engine.cost.ownership import cheap, dear
from engine.cost.parameters import Pick, cost_parameters, likely, value
from engine.cost.rent import NO_FEES, Fees, Rental
from engine.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class WayToPay:
    """A rent or an ownership under one acquisition; low and high terms where they are known."""

    label: str
    hardware: Rental | Ownership
    acquisition: Acquisition
    low: Rental | Ownership | None = None
    high: Rental | Ownership | None = None
    fees: Fees = NO_FEES


def table(way: WayToPay, units: int, share_of_hours: float | Array, months: int) -> CashFlow:
    """The cash-flow table at a utilization, or one of draws at many."""
    return _table(way, way.hardware, units, share_of_hours, months)


def utilization_where(committed: WayToPay, used: WayToPay, units: int, months: int) -> BreakEven:
    """Share of the hours above which the first way is the cheaper, with its range.

    The least favourable end sets the high cost of the first against the low one of the second.
    """

    def point(first: Rental | Ownership, second: Rental | Ownership) -> float | None:
        def gap(share: float) -> float:
            bought = _table(committed, first, units, share, months)
            rented = _table(used, second, units, share, _working(first, months))
            return float(np.mean(bought.total)) - float(np.mean(rented.total))

        idle, full = gap(0.0), gap(1.0)
        if full > 0:
            return None
        return idle / (idle - full) if idle > 0 else 0.0

    likely = point(committed.hardware, used.hardware)
    return BreakEven(
        likely,
        point(committed.low or committed.hardware, used.high or used.hardware),
        point(committed.high or committed.hardware, used.low or used.hardware),
        "share of hours",
        f"{committed.label} never beats {used.label}."
        if likely is None
        else f"Above {likely:.0%} of the hours {committed.label} beats {used.label}.",
    )


def rent_where(owned: WayToPay, units: int, share_of_hours: float, months: int) -> BreakEven:
    """Rent per machine-hour above which owning is the cheaper at a utilization, with its range."""

    def point(hardware: Rental | Ownership) -> float | None:
        flow = _table(owned, hardware, units, share_of_hours, months)
        hours = units * share_of_hours * HOURS_PER_MONTH * _working(hardware, months)
        return float(np.mean(flow.total)) / hours if hours > 0 else None

    likely = point(owned.hardware)
    return BreakEven(
        likely,
        point(owned.low or owned.hardware),
        point(owned.high or owned.hardware),
        "USD/hour",
        "Nothing is used, so no rent makes owning the cheaper."
        if likely is None
        else f"Above ${likely:,.2f} an hour owning is the cheaper.",
    )


def months_where(
    own_for: Callable[[int, Pick], Ownership],
    rent: WayToPay,
    units: int,
    share_of_hours: float,
    longest_months: int,
) -> BreakEven:
    """First month after which owning, sold then, has cost no more than renting the same hours.

    own_for : what owning takes for a horizon, with a choice of each row's cheap, likely or dear end
    """

    def point(pick: Pick, hardware: Rental | Ownership) -> float | None:
        for months in range(1, whole_months("horizon_months", longest_months) + 1):
            own = own_for(months, pick)
            if own.delivery_months >= months:
                continue
            bought = _table(replace(rent, acquisition="buy"), own, units, share_of_hours, months)
            rented = _table(rent, hardware, units, share_of_hours, _working(own, months))
            if float(np.mean(bought.total)) <= float(np.mean(rented.total)):
                return float(months)
        return None

    likely_month = point(likely, rent.hardware)
    return BreakEven(
        likely_month,
        point(cheap, rent.high or rent.hardware),
        point(dear, rent.low or rent.hardware),
        "months",
        f"Within {longest_months} months owning never beats {rent.label}."
        if likely_month is None
        else f"From month {likely_month:.0f} on owning beats {rent.label}.",
    )


def curves(
    ways: Sequence[WayToPay], units: int, shares_of_hours: Array, months: int
) -> dict[str, Array]:
    """Cost of a useful machine-hour against utilization by label; infinity at no use."""
    return {
        way.label: np.asarray(table(way, units, shares_of_hours, months).cost_per_useful_hour)
        / units
        for way in ways
    }


@dataclass(frozen=True, slots=True)
class Mark:
    """A rule of the articles, to be drawn beside what is computed."""

    id: str
    value: float
    unit: str
    says: str
    source: str


def marks() -> tuple[Mark, ...]:
    """The articles' break-evens: 5 and 20 runs, 40, 50 and 60%, 18 months, 30% variation."""
    return tuple(
        Mark(row.id, row.likely, row.unit, row.description, row.source)
        for row in cost_parameters().values()
        if row.id.startswith("mark_")
    )


def overhead_beside_the_article(flow: CashFlow) -> tuple[float, float]:
    """Running cost of a year in use over the machines' price: itemised, and the article's 30%.

    Months before the delivery, in which nothing runs, are no part of the year.
    """
    machines = sum(float(np.mean(x.total)) for x in flow.lines if x.item == "Machines")
    if machines <= 0:
        raise InputError("no machines are bought", where="acquisition", right="buy")
    rows = (x for x in flow.lines if x.section == "running" and np.any(x.schedule))
    yearly = sum(float(np.mean(x.total)) / np.count_nonzero(x.schedule) * 12 for x in rows)
    return yearly / machines, value("article_overhead_per_year")


def _working(hardware: Rental | Ownership, months: int) -> int:
    return months - hardware.delivery_months if isinstance(hardware, Ownership) else months


def _table(
    way: WayToPay,
    hardware: Rental | Ownership,
    units: int,
    share_of_hours: float | Array,
    months: int,
) -> CashFlow:
    hours = share_of_hours * HOURS_PER_MONTH
    return monthly_cost(
        hardware, way.acquisition, units, hours, months, fees=way.fees, label=way.label
    )
