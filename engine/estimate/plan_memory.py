"""Memory of many plans at once, by item: the columns of a search put into the memory model.

Knows no formulas of its own but one: Megatron-type code that computes the activation function
again does not keep its result, which is one of the MLP's matrices less.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from engine.estimate.memory import (
    MemoryBreakdown,
    memory_estimate,
    memory_inputs,
    memory_of_plans,
)
from engine.estimate.parallelism import SELECTIVE, Plans, Software, megatron_type
from engine.estimate.plan import Precision, Task, TrainingPlan
from engine.estimate.shape import ModelShape

ITEMS = tuple(f.name for f in fields(MemoryBreakdown))


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Memory of the fullest GPU of one plan [GiB]: by item, with its 80% interval.

    usable : of what the card reports
    """

    items: dict[str, float]
    low: float
    likely: float
    high: float
    usable: float
    reported: float


def plans_memory(
    shape: ModelShape, plans: Plans, seq_len: int, task: Task, precision: Precision = "bf16",
    software: Software = "recipes", lora_rank: int = 16, recipes: bool = True,
) -> MemoryBreakdown:  # fmt: skip
    """Memory of the fullest GPU of each plan, arrays of the plans' length [GiB].

    Recomputation may be a column of levels: every plan at each, shape (levels, plans).
    """
    usual = TrainingPlan(
        gpus=1, seq_len=seq_len, task=task, precision=precision, lora_rank=lora_rank,
        flash_attention=software != "legacy",
    )  # fmt: skip
    megatron = megatron_type(plans, software, recipes, task)
    lean = (plans.recompute == SELECTIVE) & (megatron > 0)
    kept = 2.0 / 3.0 if shape.gated_mlp else 1.0 / 2.0
    width = memory_inputs(shape, usual).mlp_width
    told = memory_of_plans(
        shape, usual,
        mlp_width=width * np.where(lean, kept, 1.0), micro_batch=plans.micro_batch, tp=plans.tp,
        pp=plans.pp, vp=plans.vp, cp=plans.cp, ep=plans.ep, d=plans.shard, zero=plans.zero,
        micro_batches=plans.micro_batches, recompute=plans.recompute, megatron=megatron,
        expert_d=np.maximum(plans.gpus / (plans.pp * plans.ep), 1.0),
        sequence_parallel=(plans.tp > 1).astype(float),
    )  # fmt: skip
    length = np.broadcast_shapes(plans.gpus.shape, plans.recompute.shape)
    return MemoryBreakdown(
        *(np.broadcast_to(np.asarray(getattr(told, f.name)), length) for f in fields(told))
    )


def need_of(
    memory: MemoryBreakdown, row: int, reported_gib: float, usable: float, megatron: bool
) -> MemoryNeed:
    """The memory of one plan, as plain numbers."""
    items = {name: float(getattr(memory, name)[row]) for name in ITEMS}
    e = memory_estimate(memory, megatron=megatron, row=row)
    return MemoryNeed(items, e.low, e.likely, e.high, reported_gib * usable, reported_gib)


def joined_memory(parts: list[MemoryBreakdown]) -> MemoryBreakdown:
    """Rows below one another."""
    return MemoryBreakdown(
        *(np.concatenate([getattr(m, f.name) for m in parts]) for f in fields(MemoryBreakdown))
    )
