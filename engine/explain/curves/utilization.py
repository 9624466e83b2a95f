"""Question 4, utilization: ways to pay by use, demand by month, what to commit to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from engine.assessment import (
    Assessment,
    StagePlan,
)
from engine.cost import break_even
from engine.cost.commitment import Mix, best_mix, monthly
from engine.decide.candidates import Price, Unit
from engine.decide.context import setting
from engine.decide.inputs import resolve
from engine.errors import InputError
from engine.explain.curves.common import Points, lead_stage, unit_of, usd
from engine.wording import count, rough
from engine.workload.workload import HOURS_PER_MONTH

# The articles' marks, drawn beside what is computed (data/rules.csv has their claims).
UTILIZATION_MARKS = ((0.30, "003: CPUs below"), (0.40, "003: rent below"),
                     (0.50, "001: own above"), (0.60, "003: build above"))  # fmt: skip
ARTICLE_VARIATION = 0.30


@dataclass(frozen=True, slots=True)
class WayToPay:
    """Cost of a useful hour of one unit over the share of the hours that are useful [USD]."""

    label: str
    points: Points
    usd_per_hour: float
    pays_idle: bool

    def usd_per_useful_hour(self, use: float) -> float:
        """At one share of useful hours."""
        shares = np.asarray([max(use, 1e-6)])
        return float(break_even.usd_per_useful_hour(self.usd_per_hour, shares, self.pays_idle)[0])


TERMS = {
    "on_demand": "On demand", "spot": "Spot", "dedicated": "By the month",
    "reserved_1y": "Reserved 1 year", "reserved_3y": "Reserved 3 years", "buy": "Bought",
}  # fmt: skip


def ways_to_pay(unit: Unit) -> list[WayToPay]:
    """Every term the unit can be had on: flat where hours are paid, falling as 1/u where not."""
    shares = np.linspace(0.05, 1.0, 39)
    found = []
    for terms, label in TERMS.items():
        price = unit.prices.get(terms)  # type: ignore[call-overload]
        if price is None:
            continue
        hourly, idle_too = _hourly(price), terms not in ("on_demand", "spot")
        cost = break_even.usd_per_useful_hour(hourly, shares, idle_too)
        points = tuple((float(u), float(c)) for u, c in zip(shares, cost, strict=True))
        found.append(WayToPay(label, points, hourly, idle_too))
    return found


def _hourly(price: Price) -> float:
    return price.likely if price.basis == "hour" else price.likely / HOURS_PER_MONTH


def break_evens(ways: Sequence[WayToPay]) -> list[tuple[str, float | None]]:
    """Utilization above which each committed way beats on demand: c/d; None for never."""
    rent = next((w for w in ways if w.label == TERMS["on_demand"]), None)
    if rent is None:
        return []
    return [
        (w.label, break_even.utilization(w.usd_per_hour, rent.usd_per_hour).value)
        for w in ways
        if w.pays_idle
    ]


PAYING = {
    "On demand": "renting on demand",
    "Spot": "spot",
    "By the month": "renting by the month",
    "Reserved 1 year": "reserving for a year",
    "Reserved 3 years": "reserving for three years",
    "Bought": "buying",
}


def cheapest_at(ways: Sequence[WayToPay], use: float) -> tuple[str, str]:
    """Title and sentence: the cheapest way at this use, and how many break-evens lie below it.

    Spot is named apart: it is the cheapest where it can be had and where being stopped is fine.
    """
    firm = [w for w in ways if w.label != TERMS["spot"]] or list(ways)
    best = min(firm, key=lambda w: w.usd_per_useful_hour(use))
    title = f"At {use:.0%} of the hours {PAYING[best.label]} is the cheapest"
    said = [
        f"{label} from {at:.0%} on" if at is not None else f"{label} never"
        for label, at in break_evens(ways)
    ]
    text = f"A useful hour then costs {usd(best.usd_per_useful_hour(use))}."
    if said:
        text += f" Cheaper than on demand: {'; '.join(said)}."
    spot = next((w for w in ways if w.label == TERMS["spot"]), None)
    if spot is not None and spot.usd_per_hour < best.usd_per_useful_hour(use):
        title += ", spot aside"
        text += f" Spot, which may be taken away at any time, costs {usd(spot.usd_per_hour)}."
    return title, text


def unit_of_interest(answer: Assessment, today: date) -> Unit:
    """The hardware of the costliest stage as it is on offer; the reference GPU otherwise."""
    return unit_of(setting(answer.workload, None, today, answer.settings), lead_stage(answer))


def use_on(stage: StagePlan) -> float:
    """Share of the month's hours in which the recommended hardware works for the job."""
    return min(stage.busy_hours_per_month / HOURS_PER_MONTH, 1.0)


def demand_by_month(machine_hours: float, variation: float) -> list[float]:
    """Twelve months of demand as machines' worth of work, around a mean.

    A seasonal wave whose standard deviation over the mean is the variation (cut off at zero).

    machine_hours : hours of the mean month, over all machines
    """
    wave = np.sqrt(2) * variation * np.sin(2 * np.pi * (np.arange(12) - 2) / 12)
    mean = machine_hours / HOURS_PER_MONTH
    return [max(float(mean * (1 + w)), 0.0) for w in wave]


@dataclass(frozen=True, slots=True)
class Commitment:
    """Demand by month, the whole machines worth committing to, and what it means."""

    months: tuple[float, ...]
    mix: Mix
    title: str
    message: str


COMMITTED = {
    "By the month": "A {} by the month",
    "Reserved 1 year": "A {} reserved for a year",
    "Reserved 3 years": "A {} reserved for three years",
    "Bought": "A bought {}",
}


def _how_many(mean: float, noun: str) -> str:
    return f"less than a tenth of one {noun}" if mean < 0.1 else f"{rough(mean)} {noun}s"


def commitment(answer: Assessment, ways: Sequence[WayToPay], stage: StagePlan) -> Commitment | None:
    """How many of the stage's units to commit to: the newsvendor's answer (engine.cost.commitment).

    The committed price is the cheapest way that is paid for all hours; None without one, or where
    the demand is beyond anything that could be rented.
    """
    rent = next((w for w in ways if w.label == TERMS["on_demand"]), None)
    committed = [w for w in ways if w.pays_idle]
    if rent is None or not committed:
        return None
    v = resolve(answer.workload).ranges["monthly_variation"].likely
    months = demand_by_month(stage.busy_hours_per_month * stage.units, v)
    cheapest = min(committed, key=lambda w: w.usd_per_hour)
    try:
        demand = monthly([m * HOURS_PER_MONTH for m in months])
    except InputError:  # a demand beyond all machines of the world
        return None
    mix = best_mix(demand, cheapest.usd_per_hour, rent.usd_per_hour)
    noun = "GPU" if stage.hardware == "gpu" else "server"
    mean = sum(months) / len(months)
    if mix.base == 0:
        title = "Commit to none: pay for the hours that are used"
    elif mix.bursts == 0:
        title = f"Commit to {count(mix.base, noun)}: demand stays below"
    else:
        title = f"Commit to {count(mix.base, noun)}, rent the rest when it comes"
    rule = "take the cloud" if v > ARTICLE_VARIATION else "commitment is fine"
    burst, full = (usd(x * HOURS_PER_MONTH) for x in (mix.all_burst, mix.all_committed))
    money = (
        f"Renting what is used costs {burst} a month, committing {full}."
        if mix.base == 0
        else f"That costs {usd(mix.usd_per_month)} a month, against {burst} with everything on "
        f"demand and {full} with everything committed."
    )
    message = (
        f"The work would keep {_how_many(mean, noun)} busy around the clock; months vary by "
        f"{v:.0%}. {COMMITTED[cheapest.label].format(noun)} pays when it is needed in more than "
        f"{min(mix.break_even_share, 1):.0%} of all hours, the ratio of the two prices. "
        f"{money} The article's 30% rule says: {rule}."
    )
    return Commitment(tuple(months), mix, title, message)
