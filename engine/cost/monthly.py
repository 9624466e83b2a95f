"""The front of the cost engine: one candidate, one acquisition, one cash-flow table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from engine.cost import own as owning
from engine.cost import rent as renting
from engine.cost.cash_flow import HOURS_PER_MONTH, CashFlow, CashLine, every_month
from engine.cost.checks import Real, hours_per_month, share, whole_months
from engine.cost.checks import units as checked_units
from engine.cost.own import Ownership
from engine.cost.rent import NO_FEES, TERM_MONTHS, Fees, Rental
from engine.errors import InputError

Acquisition = Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "dedicated", "buy"]


def monthly_cost(
    hardware: Rental | Ownership,
    acquisition: Acquisition,
    units: Real,
    useful_hours_per_month: Real,
    horizon_months: int,
    *,
    service: bool = False,
    goodput: Real = 1.0,
    fees: Fees = NO_FEES,
    bridge: Rental | None = None,
    label: str = "",
) -> CashFlow:
    """The cash-flow table of `units` machines over the horizon.

    hardware : what renting or owning one machine costs; numbers are floats or arrays of draws
    units : machines, each of which works `useful_hours_per_month`
    service : the machines run around the clock, so on demand and spot pay every hour
    goodput : useful over paid hours from failures and checkpoints; spot's own losses come on top
    bridge : on-demand rent until what is bought is delivered; without it those months do no work
    """
    months = whole_months("horizon_months", horizon_months)
    units = checked_units("units", units)
    useful = hours_per_month("useful_hours_per_month", useful_hours_per_month)
    if np.any(np.asarray(goodput) <= 0) or np.any(np.asarray(goodput) > 1):
        raise InputError(f"{goodput} can't be used", where="goodput", right="above 0, at most 1")
    running = HOURS_PER_MONTH if service else useful / goodput

    working_months = months
    if isinstance(hardware, Ownership):
        if acquisition != "buy":
            raise InputError(f"{acquisition} needs a rent", where="acquisition", right="buy")
        lines: tuple[CashLine, ...] = owning.buy(hardware, units, running, months)
        if bridge is None:
            working_months = owning.useful_months(hardware, months)
        else:
            lines += _bridge(bridge, units, running, months, hardware.delivery_months)
    else:
        if service and hardware.spot is not None:
            # A replica that is taken leaves the others at work.
            hardware = replace(hardware, spot=replace(hardware.spot, together=False))
        lines = _rent(hardware, acquisition, units, running, months)
        lines += renting.fee_lines(fees, lines, months)
    return CashFlow(
        label=label or acquisition,
        months=months,
        lines=lines,
        useful_hours=useful * working_months,
        notes=_notes(hardware, acquisition, useful, months, bridge),
    )


def capacity_blocks_cost(
    usd_per_hour: Real,
    units: Real,
    days_per_block: int,
    blocks_per_month: Sequence[int],
    useful_share: Real = 1.0,
    fees: Fees = NO_FEES,
) -> CashFlow:
    """The table of machines booked in blocks of days, paid in advance, used or not.

    blocks_per_month : blocks that start in each month; its length is the horizon
    useful_share : share of the booked hours that does useful work
    """
    months = whole_months("horizon_months", len(blocks_per_month))
    lines = renting.capacity_blocks(
        usd_per_hour, checked_units("units", units), days_per_block, blocks_per_month
    )
    hours = 24 * days_per_block * sum(blocks_per_month)
    return CashFlow(
        "capacity blocks",
        months,
        lines + renting.fee_lines(fees, lines, months),
        hours * share("useful_share", useful_share),
    )


def units_for(runs_per_month: float, hours_per_run: float, planned_use: float = 1.0) -> int:
    """Machines of a committed plan: runs × hours over the hours that a machine can give.

    planned_use : share of the hours that may be planned for work, the rest being slack
    """
    need = hours_per_month_of(runs_per_month, hours_per_run)
    if not 0 < planned_use <= 1:
        raise InputError(f"{planned_use:g}", where="planned_use", right="above 0, at most 1")
    return max(1, math.ceil(round(need / (HOURS_PER_MONTH * planned_use), 9)))


def hours_per_month_of(runs_per_month: float, hours_per_run: float) -> float:
    """Machine-hours that the runs of a month take."""
    for field, value in (("runs_per_month", runs_per_month), ("hours_per_run", hours_per_run)):
        if not math.isfinite(value) or value < 0:
            raise InputError(f"{value} can't be used", where=field, right="0 or more")
    return runs_per_month * hours_per_run


def _rent(
    rental: Rental, acquisition: Acquisition, units: Real, running: Real, months: int
) -> tuple[CashLine, ...]:
    match acquisition:
        case "on_demand":
            return renting.on_demand(rental, units, running, months)
        case "spot":
            return renting.spot(rental, units, running, months)
        case "dedicated":
            return renting.dedicated(rental, units, months)
        case "reserved_1y" | "reserved_3y":
            return renting.reserved(rental, units, months, TERM_MONTHS[acquisition], running)
        case _:
            raise InputError(
                f"{acquisition} needs a purchase price", where="acquisition", right="a way to rent"
            )


def _bridge(
    rental: Rental, units: Real, running: Real, months: int, delivery_months: int
) -> tuple[CashLine, ...]:
    lines = renting.on_demand(rental, units, running, months, "Rent until delivery")
    until = every_month(months, until=delivery_months)
    return tuple(replace(line, schedule=until) for line in lines) if delivery_months else ()


def _notes(
    hardware: Rental | Ownership,
    acquisition: Acquisition,
    useful: Real,
    months: int,
    bridge: Rental | None,
) -> tuple[str, ...]:
    notes = []
    term = TERM_MONTHS.get(acquisition, 0)
    if term > months:
        notes.append(f"The reservation outlasts the horizon by {term - months} months.")
    if isinstance(hardware, Ownership) and hardware.delivery_months:
        waits = "Rented" if bridge is not None else "No useful hour"
        notes.append(f"{waits} in the first {hardware.delivery_months} months, until delivery.")
    if not np.any(useful):
        notes.append("No useful hours: a cost per useful hour does not exist.")
    return tuple(notes)
