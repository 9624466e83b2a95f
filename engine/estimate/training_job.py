"""What is asked of the search for a training plan, and what it answers: typed, no formulas.

Knows no search; `search.py` answers a `Job` with `PlanResult`s or with `NothingFits`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from engine.errors import InputError
from engine.estimate.estimate import Estimate
from engine.estimate.jobs import training_flops
from engine.estimate.parallelism import MAX_GPUS, SOFTWARE, Software
from engine.estimate.plan import Precision, Task, TrainingPlan
from engine.estimate.plan_memory import MemoryNeed
from engine.estimate.shape import ModelShape
from engine.estimate.training_hardware import HardwareChoice, hardware

By = Literal["time", "cost", "deadline"]
TASKS: tuple[Task, ...] = ("pretrain", "finetune", "lora", "qlora")
MAX_TOKENS = 2**22  # of a sequence
OLDEST_SOFTWARE, NEWEST_SOFTWARE = 2020.0, 2030.0


@dataclass(frozen=True, slots=True)
class MeasuredSteps:
    """Steps that the user has timed: "ten steps on one node took 41 s".

    seconds : of all of them together
    batch_seqs : sequences of one step; None for the usual batch of so many GPUs
    plan : how they were split; None for the best plan on so many GPUs
    shape, seq_len : of the model that ran, where it was a smaller one to try with
    """

    choice: HardwareChoice
    gpus: int
    seconds: float
    steps: int = 1
    batch_seqs: int | None = None
    plan: TrainingPlan | None = None
    shape: ModelShape | None = None
    seq_len: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.seconds < float("inf"):
            raise InputError(f"{self.seconds} s", where="seconds", right="a positive time")
        if self.steps < 1:
            raise InputError(f"{self.steps} steps", where="steps", right="1 or more")
        if not 1 <= self.gpus <= MAX_GPUS:
            raise InputError(f"{self.gpus} GPUs", where="gpus", right=f"1 to {MAX_GPUS:,}")
        if self.batch_seqs is not None and self.batch_seqs < 1:
            raise InputError(f"{self.batch_seqs}", where="batch_seqs", right="1 or more sequences")
        if self.seq_len is not None and not 1 <= self.seq_len <= MAX_TOKENS:
            raise InputError(f"{self.seq_len} tokens", where="seq_len", right="1 to 4,194,304")


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be trained, on what it could run, and what limits it: everything but the plan.

    tokens : of the whole run
    batch_seqs : sequences of a step; 0 for a usual one
    gpus : fewest and most that are looked at
    deadline_days, budget_usd : None where there is none
    sure : least chance with which a deadline must be met
    goodput, experiments : the user's own figures; None for the usual ones
    software_year : release of the training code as a decimal year; None for the newest known
    """

    shape: ModelShape
    tokens: float
    choices: tuple[HardwareChoice, ...]
    seq_len: int = 4096
    task: Task = "pretrain"
    precision: Precision = "bf16"
    batch_seqs: int = 0
    gpus: tuple[int, int] = (1, MAX_GPUS)
    deadline_days: float | None = None
    budget_usd: float | None = None
    sure: float = 0.8
    goodput: float | None = None
    experiments: float | None = None
    software: Software = "recipes"
    software_year: float | None = None
    lora_rank: int = 16
    measured: tuple[MeasuredSteps, ...] = ()

    def __post_init__(self) -> None:
        low, high = self.gpus
        year = self.software_year
        checks: tuple[tuple[str, bool, str], ...] = (
            ("tokens", 0 < self.tokens < float("inf"), "such as 2e12"),
            ("choices", bool(self.choices), "at least one kind of hardware"),
            ("seq_len", 1 <= self.seq_len <= MAX_TOKENS, "1 to 4,194,304 tokens"),
            ("task", self.task in TASKS, f"one of {', '.join(TASKS)}"),
            ("batch_seqs", 0 <= self.batch_seqs <= 2**24, "0 or more sequences"),
            ("gpus", 1 <= low <= high <= MAX_GPUS, f"1 to {MAX_GPUS:,}, fewest first"),
            ("deadline_days", _positive(self.deadline_days), "a positive number of days"),
            ("budget_usd", _positive(self.budget_usd), "a positive amount"),
            ("sure", 0 < self.sure < 1, "between 0 and 1"),
            ("goodput", self.goodput is None or 0 < self.goodput <= 1, "above 0, at most 1"),
            ("software", self.software in SOFTWARE, f"one of {', '.join(SOFTWARE)}"),
            ("software_year", year is None or OLDEST_SOFTWARE <= year <= NEWEST_SOFTWARE,
             f"{OLDEST_SOFTWARE:.0f} to {NEWEST_SOFTWARE:.0f}"),
            ("lora_rank", self.lora_rank >= 1, "1 or more"),
        )  # fmt: skip
        for where, fine, right in checks:
            if not fine:
                raise InputError(f"{getattr(self, where)!r:.60} can't be used", where=where,
                                 right=right)  # fmt: skip
        for own in self.measured:
            _check_possible(self, own)


def _check_possible(job: Job, own: MeasuredSteps) -> None:
    """Refuse steps faster than the GPUs' products can be: something else was timed.

    See `jobs.training_flops`; embeddings take none.
    """
    shape = own.shape or job.shape
    batch = own.batch_seqs or job.batch_seqs
    if own.plan is not None:
        batch = own.plan.global_batch_seqs or own.plan.micro_batch * own.plan.dp
    if not batch or shape.kind != "decoder":
        return
    weights = max(shape.active_params - shape.embedding_params, 0.0)
    tokens = float(batch * (own.seq_len or job.seq_len))
    work = training_flops(
        np.asarray(weights / 1e9), np.asarray(tokens / 1e9),
        0.0 if job.task in ("lora", "qlora") else 1.0,
    )  # fmt: skip
    peak = max(h.nominal for h in hardware(own.choice, job.precision))
    least = float(work) / (own.gpus * peak)
    step = own.seconds / own.steps
    if step < least:
        raise InputError(
            f"{step:.3g} s a step of {batch:,} sequences is less than the {least:.3g} s that "
            f"{own.gpus:,} GPUs at their peak take",
            where="measured_s",
            right="seconds of all the steps together, their number, the GPUs and the batch of one",
        )


def calibrated_by(job: Job, *measured: MeasuredSteps) -> Job:
    """The same job in the light of steps that the user has timed, on the hardware they ran on."""
    return replace(job, measured=(*job.measured, *measured))


def _positive(value: float | None) -> bool:
    return value is None or 0 < value < float("inf")


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A plan with what it needs and how long it takes; every estimate has its 80% interval.

    step_s, mfu, tokens_per_s : of a step (MFU against the dense peak of the products' precision)
    days : calendar of the final run; gpu_hours, usd : of all, experiments among it
    ideal_gpu_hours : steps as fast as predicted, nothing lost, nothing tried
    chance : of meeting the deadline; None without one
    parts : share of the step by where it goes, largest first
    utilization : share of the step in which the GPUs compute what the model asks for
    sent : bytes that a GPU sends in a step, by `training_traffic.SPLITS`
    why : in words, for the first plan; behind : what keeps this plan behind the first
    """

    choice: HardwareChoice
    plan: TrainingPlan
    memory: MemoryNeed
    step_s: Estimate
    mfu: Estimate
    tokens_per_s: Estimate
    steps: float
    goodput: Estimate
    experiments: Estimate
    ideal_gpu_hours: float
    days: Estimate
    gpu_hours: Estimate
    usd: Estimate | None
    chance: float | None
    within_budget: bool | None
    calibrated: bool
    parts: Mapping[str, float]
    utilization: float
    sent: Mapping[str, float] = field(default_factory=dict)
    why: str = ""
    behind: str = ""

    @property
    def meets(self) -> bool:
        """Whether neither the deadline nor the budget is missed, as likely as not."""
        return (self.chance is None or self.chance >= 0.5) and self.within_budget is not False


@dataclass(frozen=True, slots=True)
class NothingFits:
    """Why no plan fits what was asked, and the smallest that would.

    lacks_gib : of the plan that needs the least, above what can be used; 0 where no plan is valid
    smallest : the smallest plan that fits on any of the job's hardware; None where none does
    """

    reason: str
    lacks_gib: float
    smallest: PlanResult | None
