"""The training plan beside the recommendation: the same fleet, or in what they differ.

The recommendation weighs cost against time, risk and effort, and may have another fleet than the
plan that is best by one goal. The two are told together, so that no figure stands unexplained.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.assessment import ACQUISITION_LABELS, Assessment, StagePlan
from engine.decide.priors import likely
from engine.planning.training import TrainingReport
from engine.wording import duration, money, percent
from engine.workload.training_terms import HirePlan, TrainingTerms


@dataclass(frozen=True, slots=True)
class Beside:
    """What the recommendation says of this job, and the terms that plan its fleet.

    terms : to change; empty where the plan is of that fleet already, or no plan can be
    """

    sentence: str
    terms: dict[str, Any] = field(default_factory=dict)


def beside(report: TrainingReport, terms: TrainingTerms, answer: Assessment) -> Beside | None:
    """The plan's best against the recommendation; None where that trains on no GPU."""
    stage = next((s for s in answer.best.stages if s.hardware == "gpu"), None)
    plan = report.answer.best
    if stage is None or plan is None:
        return None
    hire = _hire(stage, terms)
    if (plan.plan.gpus, plan.choice.accelerator.sku) != (stage.units, stage.sku):
        why = "this plan is the best by the goal that is chosen above, whatever the fleet"
    elif hire is not terms.hire:
        why = f"this plan is of the same fleet, with prices of GPUs {_hired(terms)}"
    else:
        return Beside(f"This is the recommended fleet.{_waits(stage, answer)}")
    told = (
        f"The recommendation is {answer.best.label}: {duration(answer.best.time.likely)} a run, "
        f"{money(answer.best.usd_per_month.likely)} a month. It weighs cost against time, risk and "
        f"effort; {why}."
    )
    return Beside(
        told,
        {"gpu": stage.sku, "hire": hire, "least_gpus": stage.units, "most_gpus": stage.units},
    )


def _hire(stage: StagePlan, terms: TrainingTerms) -> HirePlan:
    """The terms of the recommendation where a plan can have them, else those of the plan."""
    offered = {h.value: h for h in HirePlan}
    return offered.get(stage.acquisition, terms.hire)


def _hired(terms: TrainingTerms) -> str:
    return ACQUISITION_LABELS[terms.hire.value].lower()


def _waits(stage: StagePlan, answer: Assessment) -> str:
    """What the recommendation's time has in it on spot, and the plan's has not."""
    if stage.acquisition != "spot":
        return ""
    return (
        f" Spot machines can be had about {percent(likely('spot_capacity_share'))} of the time: "
        f"with the waits a run takes {duration(answer.best.time.likely)} on the calendar."
    )
