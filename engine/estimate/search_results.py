"""Rows of a search as answers: estimates with their intervals, and words for why and behind.

Knows what a search has found (`Found`); it searches nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from engine.estimate.collectives import Array
from engine.estimate.estimate import Estimate
from engine.estimate.memory import USABLE, MemoryBreakdown
from engine.estimate.parallelism import (
    FULL,
    SELECTIVE,
    Plans,
    launched_as_pytorch,
    megatron_type,
    network_of,
    of_a_usual_kind,
    stack_of,
    step_inputs,
)
from engine.estimate.plan import Recompute, Stack, TrainingPlan
from engine.estimate.plan_memory import need_of
from engine.estimate.shape import ModelShape
from engine.estimate.training import StepTime
from engine.estimate.training_calibration import shipped_calibration
from engine.estimate.training_hardware import Hardware
from engine.estimate.training_job import Job, PlanResult
from engine.estimate.training_traffic import sent_bytes
from engine.estimate.whole_run import (
    experiments_estimate,
    goodput_estimate,
    run_budget,
    run_goodput,
)

DECILE = 1.2816  # standard deviations from the median to the ends of an 80% interval
PARTS = {
    "compute": "matrix products", "recompute": "recomputing activations",
    "attention": "attention", "head": "the vocabulary head", "launch": "waiting for launches",
    "tensor_parallel": "tensor-parallel traffic", "context_parallel": "context-parallel traffic",
    "expert_parallel": "expert traffic", "pipeline_transfer": "passing activations on",
    "bubble": "the pipeline's idle time", "data_parallel": "exchanging weights and gradients",
    "optimizer": "the optimizer", "stragglers": "waiting for the slowest machine",
}  # fmt: skip
_USEFUL = ("compute", "attention", "head")
NETWORK_PARTS = (
    "tensor_parallel", "context_parallel", "expert_parallel", "pipeline_transfer", "data_parallel",
)  # fmt: skip


@dataclass
class Found:
    """Plans that fit, with their times; rows of one length over all choices of the job.

    which : index of the choice; hardware : of each choice, the main generation first
    scale, half : factor of the user's own steps, and log half width of the step's 80% interval
    looked_at : plans that were valid, whether or not they fit
    """

    job: Job
    which: NDArray[np.int_]
    hardware: tuple[tuple[Hardware, ...], ...]
    plans: Plans
    memory: MemoryBreakdown
    seconds: StepTime
    scale: Array
    half: Array
    looked_at: int

    def __len__(self) -> int:
        return len(self.plans)

    @cached_property
    def step_s(self) -> Array:
        """Seconds of a step, the user's own measurements heeded."""
        return np.asarray(self.seconds.total * self.scale)

    @cached_property
    def useful(self) -> Array:
        """Goodput of each row, likely."""
        if self.job.goodput is not None:
            return np.full(len(self), self.job.goodput)
        return run_goodput(self.plans.gpus)

    @cached_property
    def days(self) -> Array:
        """Days of the final run, likely."""
        steps = self.job.tokens / (self.plans.batch * self.job.seq_len)
        return np.asarray(self.step_s * steps / 86400 / self.useful)

    @cached_property
    def gpu_hours(self) -> Array:
        """GPU hours of everything, likely."""
        tried = experiments_estimate(self.job.experiments).likely
        return np.asarray(self.days * 24 * self.plans.gpus * tried)

    @cached_property
    def usd(self) -> Array:
        """Dollars of everything, likely; infinite where a choice has no price."""
        prices = [c.usd_per_gpu_hour for c in self.job.choices]
        each = np.array([np.inf if p is None else p for p in prices])[self.which]
        return np.asarray(self.gpu_hours * each)

    @cached_property
    def cost(self) -> Array:
        """Dollars where every choice has a price, GPU hours otherwise."""
        priced = all(c.usd_per_gpu_hour is not None for c in self.job.choices)
        return self.usd if priced else self.gpu_hours

    @cached_property
    def chance(self) -> Array:
        """Chance of meeting the deadline; 1 without one."""
        if self.job.deadline_days is None:
            return np.ones(len(self))
        open_ = np.zeros(len(self))
        if self.job.goodput is None:
            open_ = np.log(self.useful / run_goodput(self.plans.gpus, "low"))
        spread = np.sqrt(self.half**2 + open_**2) / DECILE
        return np.asarray(ndtr(np.log(self.job.deadline_days / self.days) / spread))

    @cached_property
    def within_budget(self) -> NDArray[np.bool_]:
        """Rows that cost no more than the budget, as likely as not, or have no price; all without
        a budget."""
        if self.job.budget_usd is None:
            return np.ones(len(self), dtype=bool)
        return np.asarray((self.usd <= self.job.budget_usd) | np.isinf(self.usd))


def parts_of(found: Found, i: int) -> dict[str, float]:
    """Seconds of one row's step by where they go."""
    n, scale = len(found), float(found.scale[i])
    return {k: float(np.broadcast_to(getattr(found.seconds, k), n)[i]) * scale for k in PARTS}


def _sent(found: Found, i: int) -> dict[str, float]:
    """Bytes that a GPU sends in one row's step, by split."""
    job, one = found.job, found.plans.take(np.array([i]))
    hw = found.hardware[int(found.which[i])][0]
    year = software_years(job, one, hw)
    inputs = step_inputs(job.shape, one, hw, float(job.seq_len), job.task, year, job.software)
    told = sent_bytes(inputs, shipped_calibration().parameters)
    return {k: float(np.asarray(v).flat[0]) for k, v in told.items()}


def model_flops_per_token(shape: ModelShape, seq_len: float, trains_all: bool) -> float:
    """FLOP a token that the model asks for: 6 a parameter (4 with frozen weights) and attention.

    The input embedding is a look-up and counts nothing; attention counts its causal half.
    """
    lookup = 0.0 if shape.tied_embeddings else float(shape.vocab) * shape.hidden
    products = max(shape.active_params - lookup, 0.0)
    net = network_of(shape, seq_len)
    attention = 6.0 * net["attended"] * net["core_width"] * net["layers"]
    return (6.0 if trains_all else 4.0) * products + attention


def software_years(job: Job, plans: Plans, hw: Hardware) -> Array:
    """Release of each plan's code: as the job says, or the newest whose steps were published."""
    if job.software_year is not None:
        return np.full(len(plans), job.software_year)
    stack = stack_of(plans, job.software, hw.recipes, job.task)
    return np.array(shipped_calibration().newest_years)[stack]


def training_plan(found: Found, i: int) -> TrainingPlan:
    """One row as a plan that other modules read."""
    p, job = found.plans, found.job
    hw = found.hardware[int(found.which[i])][0]
    recompute: Recompute = {SELECTIVE: "selective", FULL: "full"}.get(int(p.recompute[i]), "none")  # type: ignore[assignment]
    megatron = megatron_type(p, job.software, hw.recipes, job.task)[i] > 0
    alone = launched_as_pytorch(p, job.software, job.precision)[i]
    fsdp = p.zero[i] >= 3 or alone or not megatron
    stack: Stack = "fsdp" if fsdp else "megatron"
    whole, shard = int(p.dp[i] * p.cp[i]), int(p.shard[i])
    unsharded = shard == 1 < whole
    return TrainingPlan(
        gpus=int(p.gpus[i]), tp=int(p.tp[i]), pp=int(p.pp[i]), vp=int(p.vp[i]), cp=int(p.cp[i]),
        ep=int(p.ep[i]), zero_stage=0 if unsharded else int(p.zero[i]),
        micro_batch=int(p.micro_batch[i]),
        shard_size=shard if shard < whole and not unsharded else None,
        flash_attention=job.software != "legacy",
        global_batch_seqs=int(p.batch[i]), seq_len=job.seq_len, precision=job.precision,
        recompute=recompute, task=job.task, lora_rank=job.lora_rank, stack=stack,
        stack_year=float(software_years(job, p, hw)[i]),
    )  # fmt: skip


def result_of(found: Found, i: int, first: int | None = None) -> PlanResult:
    """One row as an answer; `first` is the row that it is compared with."""
    job, p = found.job, found.plans
    choice = job.choices[int(found.which[i])]
    hw = found.hardware[int(found.which[i])][0]
    seconds, half = float(found.step_s[i]), float(found.half[i])
    gpus, batch = int(p.gpus[i]), float(p.batch[i])
    step = _spread(seconds, half, "s", _sources(found, i))
    useful = goodput_estimate(gpus)
    if job.goodput is not None:
        useful = Estimate(job.goodput, job.goodput, job.goodput, "share", ("yours",))
    budget = run_budget(
        step, tokens=job.tokens, tokens_per_step=batch * job.seq_len, gpus=gpus, goodput=useful,
        experiments=experiments_estimate(job.experiments),
    )  # fmt: skip
    price = choice.usd_per_gpu_hour
    usd = None if price is None else budget.gpu_hours.scaled(price, "USD")
    trains_all = job.task in ("pretrain", "finetune")
    flops = model_flops_per_token(job.shape, job.seq_len, trains_all) * batch * job.seq_len
    parts = parts_of(found, i)
    total = sum(parts.values())
    plan = training_plan(found, i)
    chance = float(found.chance[i]) if job.deadline_days is not None else None
    answer = PlanResult(
        choice=choice, plan=plan,
        memory=need_of(found.memory, i, hw.memory_gib, USABLE, plan.stack == "megatron"),
        step_s=step, mfu=_spread(flops / seconds / gpus / hw.nominal, half, "share", step.sources),
        tokens_per_s=_spread(batch * job.seq_len / seconds, half, "tokens/s", step.sources),
        steps=budget.steps, goodput=useful, experiments=budget.experiments,
        ideal_gpu_hours=budget.ideal_gpu_hours, days=budget.run_hours.scaled(1 / 24, "days"),
        gpu_hours=budget.gpu_hours, usd=usd, chance=chance,
        within_budget=None if job.budget_usd is None or usd is None
        else bool(found.within_budget[i]),
        calibrated=hw.calibrated and of_a_usual_kind(job.shape)
        and (gpus <= hw.node or hw.calibrated_network),
        parts=dict(sorted(((PARTS[k], v / total) for k, v in parts.items()),
                          key=lambda kv: -kv[1])),
        utilization=sum(parts[k] for k in _USEFUL) / total,
        sent=_sent(found, i),
    )  # fmt: skip
    if first is None or i == first:
        return replace(answer, why=_why(found, i, answer))
    return replace(answer, behind=_behind(found, i, first))


def _spread(value: float, half: float, unit: str, sources: tuple[str, ...]) -> Estimate:
    factor = float(np.exp(half))
    return Estimate(value / factor, value, value * factor, unit, sources)


def _sources(found: Found, i: int) -> tuple[str, ...]:
    hw = found.hardware[int(found.which[i])][0]
    sources = shipped_calibration().sources
    if not hw.calibrated:
        sources = (*sources, f"no published step on {hw.name}: the interval is wider")
    if not of_a_usual_kind(found.job.shape):
        sources = (*sources, "no published step of such a network: the interval is wider")
    if found.plans.gpus[i] > hw.node and not hw.calibrated_network:
        sources = (*sources, "no published step on so slow a network: the interval is wider")
    if found.scale[i] != 1.0:
        sources = (*sources, "scaled to your own measured steps")
    return sources


# --- words


def split_words(plan: TrainingPlan) -> str:
    """How a plan splits the job, in words."""
    sizes = {"tensor": plan.tp, "pipeline": plan.pp, "context": plan.cp, "expert": plan.ep}
    told = [f"{name} {size}" for name, size in sizes.items() if size > 1]
    data = f"data {plan.dp}" if plan.dp > 1 else ""
    sharded = {
        0: "", 1: f"optimizer sharded over {plan.shard_size} GPUs" if plan.shard_size
        else "sharded optimizer (ZeRO-1)", 2: "sharded gradients (ZeRO-2)",
        3: f"weights sharded over {plan.shard_size} GPUs (HSDP)" if plan.shard_size
        else "fully sharded weights (FSDP)",
    }[plan.zero_stage]  # fmt: skip
    if plan.dp * plan.cp == 1:
        sharded = ""
    return ", ".join(filter(None, (*told, data, sharded))) or "one GPU"


def _why(found: Found, i: int, a: PlanResult) -> str:
    """What speaks for the first plan: memory, what it costs beside computing, the competition."""
    losses = {k: v for k, v in a.parts.items() if k not in {PARTS[u] for u in _USEFUL}}
    largest = [f"{k} {v:.0%}" for k, v in list(losses.items())[:2] if v >= 0.01]
    lost = (
        f" Beside computing, most of the step goes to {' and '.join(largest)}." if largest else ""
    )
    again = {
        "none": "keeps all activations",
        "selective": "computes part of the activations again",
        "full": "computes all activations again, as nothing else leaves room for them",
    }[a.plan.recompute]
    sizes = len(np.unique(found.plans.gpus))
    return (
        f"The fullest GPU needs {a.memory.likely:.0f} of {a.memory.usable:.0f} usable GiB and "
        f"{again}.{lost} Best of {len(found):,} plans that fit, on {sizes} fleet "
        f"size{'s' if sizes > 1 else ''}; {found.looked_at:,} were valid."
    )


def _behind(found: Found, i: int, first: int) -> str:
    """What the first plan does better: its time, its cost, and the part that differs most."""
    p = found.plans
    one, best = parts_of(found, i), parts_of(found, first)
    per = [float(p.gpus[k] / p.batch[k]) for k in (i, first)]
    more: Mapping[str, float] = {k: one[k] * per[0] - best[k] * per[1] for k in one}
    part = max(more, key=lambda k: more[k])
    slower = float(found.days[i] / found.days[first] - 1)
    speed = f"{abs(slower):.1%} {'slower' if slower >= 0 else 'faster'}"
    if p.gpus[i] == p.gpus[first] and found.which[i] == found.which[first]:
        return f"{speed}: most of it {PARTS[part]}"
    dearer = float(found.cost[i] / found.cost[first] - 1)
    price = f"{abs(dearer):.1%} {'dearer' if dearer >= 0 else 'cheaper'}"
    if found.which[i] != found.which[first]:
        return f"{speed}, {price}: other hardware"
    return f"{speed}, {price}: per GPU, most of the difference is {PARTS[part]}"
