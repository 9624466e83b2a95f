"""A plan as the trainers of the kit can run it, and in words what is not as the plan has it.

The estimates may describe what no trainer does (gradients split over ranks between pipeline
stages). Where the nearest thing that runs also fits the memory it is taken, and it is said; where
not, the kit refuses.
"""

from __future__ import annotations

from dataclasses import replace

from engine.errors import InputError
from engine.estimate.memory import plan_memory
from engine.estimate.plan import TrainingPlan
from engine.report.launch.ask import LaunchAsk
from engine.report.launch.tables import Gpu

# The first and the last stage may hold the embedding and the loss alone, as Llama 3 405B's do.
ENDS = 2


def runnable(plan: TrainingPlan, ask: LaunchAsk, gpu: Gpu) -> tuple[TrainingPlan, tuple[str, ...]]:
    """The plan that is written into the files, and what differs from the one asked for.

    Raises
    ------
    InputError : when the nearest plan that runs does not fit the GPU
    """
    notes: list[str] = []
    if plan.precision in ("fp8", "fp4") and not gpu.fp8_recipe:
        notes.append(
            f"{gpu.sku} has no arithmetic for {plan.precision}: the run computes in bf16, which "
            "is also what the forecast counts with."
        )
        plan = replace(plan, precision="bf16")
    if plan.precision == "bf16" and gpu.nvidia and not gpu.bf16:
        notes.append(
            f"{gpu.sku} does not multiply in bf16 as newer cards do: PyTorch makes it up from 32 "
            "bits, several times slower than the forecast, which counts with 16. Time ten steps "
            "before paying for a run, or take a card of Ampere or later."
        )
    if plan.pp == 1 and plan.vp > 1:
        plan = replace(plan, vp=1)  # there is nothing to interleave
    most = max((ask.shape.layers + ENDS) // plan.pp, 1)
    if plan.vp > most:
        notes.append(
            f"{ask.shape.layers} layers make no more than {most} chunks on each of {plan.pp} "
            f"pipeline ranks, not {plan.vp}: stages wait a little longer than forecast."
        )
        plan = replace(plan, vp=most)
    if plan.task == "qlora" and plan.zero_stage in (1, 2):
        plan = replace(plan, zero_stage=0)  # the adapters' few states are whole on each GPU
    if plan.zero_stage == 2 and plan.pp > 1:
        plan = _without_split_gradients(plan, ask)
        notes.append(
            "Between pipeline stages gradients can't be split over the data-parallel ranks: only "
            "the optimizer's states are (stage 1), which needs a little more memory and fits."
        )
    return plan, tuple(notes)


def _without_split_gradients(plan: TrainingPlan, ask: LaunchAsk) -> TrainingPlan:
    whole = replace(plan, zero_stage=1)
    need = float(plan_memory(ask.shape, whole).total[0])
    if need > ask.forecast.usable_gib:
        raise InputError(
            "gradients can't be split over ranks between pipeline stages, and whole they need "
            f"{need:.0f} of {ask.forecast.usable_gib:.0f} GiB", where="zero_stage",
            right="a plan with full recomputation or more stages",
        )  # fmt: skip
    return whole
