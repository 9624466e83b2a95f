"""Machines in own rooms: what owning them costs a job, where its data must not leave.

The machines, their rows of owning and what rules them out are the decision's; nothing is rented.
"""

from __future__ import annotations

import numpy as np

from engine.assessment import Acquisition
from engine.decide.candidates import Price, Unit
from engine.decide.evaluation import Context, Values
from engine.decide.numbers import Array
from engine.decide.paying import pool_lines, usd_per_month
from engine.estimate.compute_jobs import Constraint
from engine.workload.answers import Location
from engine.workload.workload import HOURS_PER_MONTH, Workload

NOTE = (
    "The data must stay in your own rooms, so nothing is rented: these are the costs of owning "
    "whole machines for the horizon, with purchase, place, power and staff, whether they work or "
    "not."
)
RENTED = "On-demand prices of the hardware alone."
OWNED = "Costs of owning, as the data must stay in your own rooms."
ELSEWHERE = (
    "The recommendation takes the same rates, hours and machines, and counts features beside a "
    "model, staff, discounts, terms and risks as well: it may come out elsewhere."
)
NEVER_SMALL = "servers as small are not bought, and the data must stay in your own rooms"
NO_PRICE = "no purchase price is known, and the data must stay in your own rooms"


def in_own_rooms(workload: Workload) -> bool:
    """Whether nothing may be rented."""
    return workload.location is Location.in_house


def paid_as(workload: Workload) -> Acquisition:
    """The terms on which the machines of the plan pages are had."""
    return "buy" if in_own_rooms(workload) else "on_demand"


def elsewhere(workload: Workload) -> str:
    """What stands under the figures of compute jobs and small models, wherever they are shown."""
    return f"{OWNED if in_own_rooms(workload) else RENTED} {ELSEWHERE}"


def price_for(unit: Unit, workload: Workload) -> Price | None:
    """The price of a unit on those terms; None where it can't be had so."""
    price = unit.prices.get(paid_as(workload))
    if price is None or (price.owner is None and price.basis != "hour"):
        return None
    return price


def refused(unit: Unit, units: Array | float, workload: Workload) -> Constraint | None:
    """Why so many units can't stand in own rooms: no price, no power; None where they can."""
    if not in_own_rooms(workload):
        return None
    price = unit.prices.get("buy")
    if price is None or price.owner is None:
        return Constraint(NO_PRICE if unit.hardware == "gpu" else NEVER_SMALL, "location")
    machines = int(np.ceil(float(np.max(units)) / price.owner.units_per_machine - 1e-9))
    why = price.owner.refusal(machines)
    return Constraint(why, "available_kw" if "available" in why else "location") if why else None


def owned_usd(
    unit: Unit, units: Array | float, used_hours: Array, x: Values, ctx: Context
) -> Array:
    """US dollars a month of owning, over the horizon, for each row of the inputs.

    units : GPUs or servers, rounded up to whole machines; used_hours : a month, of each
    """
    rows = len(x["parallel_fraction"])
    many = np.broadcast_to(np.asarray(units, dtype=float), (rows,))
    used = np.minimum(np.broadcast_to(used_hours, (rows,)), HOURS_PER_MONTH)
    lines = pool_lines("buy", unit, many, used, np.ones(rows), x, ctx)
    return usd_per_month(lines, ctx.workload.horizon_months, rows)


def usd_per_unit_hour(price: Price, usd_a_month: float, units: float) -> float:
    """Of one unit, used or not: what an hour of renting is to it."""
    return usd_a_month / (units * HOURS_PER_MONTH) if price.owner is not None else price.likely
