"""What several questions share: the costliest stage, its hardware, the use, sums in words."""

from __future__ import annotations

from engine.assessment import (
    Assessment,
    StagePlan,
)
from engine.decide.candidates import Unit
from engine.decide.context import Setting
from engine.decide.inputs import resolve
from engine.wording import number
from engine.workload.workload import HOURS_PER_MONTH, Workload

Points = tuple[tuple[float, float], ...]


def times(factor: float) -> str:
    """A factor in words: three digits, or whole from a hundred on."""
    return f"{factor:,.0f}" if factor >= 100 else f"{number(factor)}"


def lead_stage(answer: Assessment) -> StagePlan:
    """The stage of the recommendation that costs most."""
    return max(answer.best.stages, key=lambda s: s.usd_per_month.likely)


def usd(amount: float) -> str:
    """US dollars in words: cents below a hundred."""
    return f"${amount:,.0f}" if amount >= 100 else f"${amount:,.2f}"


def unit_of(place: Setting, stage: StagePlan) -> Unit:
    """The hardware of a stage among what is on offer, in machines of its size."""
    size = stage.units / max(stage.machines, 1)
    units = [u for u in (*place.gpus, *place.cpus) if u.sku == stage.sku]
    return min(units, key=lambda u: abs(u.per_machine - size), default=place.context.reference)


def stated_use(workload: Workload) -> tuple[float, bool]:
    """Useful share of the hours of the month and whether it was answered."""
    r = resolve(workload).ranges["useful_hours_per_month"]
    hours = workload.stated_hours_per_month
    return min((hours if hours is not None else r.likely) / HOURS_PER_MONTH, 1.0), hours is not None
