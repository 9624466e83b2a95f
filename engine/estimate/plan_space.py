"""Every valid plan of a job on fleets of like machines, and what each needs of memory.

All that is the same for every card in such machines: the card's own memory says which plans fit,
its speed how long they take. A whole assessment asks for some twenty cards, so the space is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache

import numpy as np

from engine.estimate.collectives import Array
from engine.estimate.memory import MemoryBreakdown, fits
from engine.estimate.parallelism import (
    FULL,
    MAX_TP,
    NONE,
    SELECTIVE,
    Plans,
    Software,
    enumerate_plans,
    joined,
    launched_as_pytorch,
)
from engine.estimate.plan_memory import plans_memory
from engine.estimate.shape import ModelShape
from engine.estimate.training_hardware import Hardware
from engine.estimate.training_job import Job

LEVELS = (NONE, SELECTIVE, FULL)


@dataclass(frozen=True, slots=True)
class PlanSpace:
    """Valid plans, and the memory of each at each level of recomputation.

    memory, total : GiB of the fullest GPU, shape (levels, plans)
    whole_first : weights are sharded only on fleets where no whole copy fits a card, as 4-bit ones
        are: a copy of each GPU's own needs no gathering at every layer, and no process group
    """

    plans: Plans
    levels: tuple[int, ...]
    memory: MemoryBreakdown
    total: Array
    whole_first: bool = False

    def __len__(self) -> int:
        return len(self.plans)

    @property
    def least_gib(self) -> float:
        """What the leanest plan needs; infinite where none is valid."""
        return float(self.total.min(initial=np.inf))

    def fitting(self, reported_gib: float) -> tuple[Plans, MemoryBreakdown]:
        """Plans that fit a card, with the least recomputation that lets them; least first."""
        fit = fits(self.total, reported_gib)
        first = np.where(fit.any(axis=0), fit.argmax(axis=0), len(self.levels))
        if self.whole_first:
            whole = fit.any(axis=0) & (self.plans.zero < 3)
            enough = np.isin(self.plans.gpus, self.plans.gpus[whole])
            first = np.where(enough & (self.plans.zero >= 3), len(self.levels), first)
        rows = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(self.levels))]
        level = first[rows]
        recompute = np.array(self.levels, dtype=float)[level]
        parts = (getattr(self.memory, f.name)[level, rows] for f in fields(self.memory))
        return replace(self.plans.take(rows), recompute=recompute), MemoryBreakdown(*parts)


def space_of(job: Job, plans: Plans, hw: Hardware, levels: Sequence[int] = LEVELS) -> PlanSpace:
    """Given plans of a job with what they need at some levels of recomputation."""
    by_level = replace(plans, recompute=np.array(levels, dtype=float)[:, None])
    memory = memory_of(job, by_level, hw)
    total = np.asarray(memory.total)
    return PlanSpace(plans, tuple(levels), memory, total, job.task == "qlora")


def memory_of(job: Job, plans: Plans, hw: Hardware) -> MemoryBreakdown:
    """Memory of plans of a job [GiB], in the code in which each would be launched."""

    def of(some: Plans, software: Software) -> MemoryBreakdown:
        return plans_memory(
            job.shape, some, job.seq_len, job.task, job.precision, software, job.lora_rank,
            hw.recipes,
        )  # fmt: skip

    told = of(plans, job.software)
    alone = np.flatnonzero(launched_as_pytorch(plans, job.software, job.precision))
    if not len(alone):
        return told
    # Levels of recomputation, if there are several, stand above the plans as rows of their own.
    levels = plans.recompute if plans.recompute.ndim > 1 else plans.recompute[alone]
    each = (plans.tp if f.name == "recompute" else getattr(plans, f.name) for f in fields(Plans))
    native = of(replace(Plans(*(a[alone] for a in each)), recompute=levels), "pytorch")
    shape = np.shape(told.total)
    parts = []
    for f in fields(told):
        part = np.array(np.broadcast_to(getattr(told, f.name), shape))
        part[..., alone] = getattr(native, f.name)
        parts.append(part)
    return MemoryBreakdown(*parts)


def every_plan(job: Job, hw: Hardware, sizes: Mapping[int, int]) -> PlanSpace:
    """All valid plans of a job on fleets of these sizes, with the sequences of a step of each."""
    each = (
        enumerate_plans(job.shape, hw, gpus, job.seq_len, batch, job.task)
        for gpus, batch in sizes.items()
    )
    return space_of(job, joined(list(each)), hw)


def kept_plans(job: Job, hw: Hardware, sizes: Mapping[int, int]) -> PlanSpace:
    """The same, found again for other cards in like machines."""
    return _kept(
        _Like(
            job.shape, job.task, job.precision, job.seq_len, job.software, job.lora_rank,
            tuple(sizes.items()), hw.node, min(hw.domain, MAX_TP), hw.recipes, job, hw,
        )
    )  # fmt: skip


def forget_plans() -> None:
    """Drop the kept spaces, so that the next search makes its own: for measuring its time."""
    _kept.cache_clear()


@dataclass(frozen=True, slots=True)
class _Like:
    """What a space depends on: of a job, and of the machines."""

    shape: ModelShape
    task: str
    precision: str
    seq_len: int
    software: str
    lora_rank: int
    sizes: tuple[tuple[int, int], ...]
    node: int
    domain: float
    recipes: bool
    job: Job = field(compare=False)
    hw: Hardware = field(compare=False)


# An assessment asks for a dozen: three rounds of fleets, machines of 1, 4 and 8 GPUs, two codes.
@lru_cache(maxsize=16)
def _kept(like: _Like) -> PlanSpace:
    return every_plan(like.job, like.hw, dict(like.sizes))
