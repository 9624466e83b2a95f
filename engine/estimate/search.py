"""Search for the best way to split a training job over GPUs: every valid plan, vectorised.

Validity and memory prune, the step model ranks; prices are one rate per GPU hour of each choice.
Exhaustive over the space of `parallelism.enumerate_plans` for every fleet size looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from engine.errors import InputError
from engine.estimate.collectives import Array
from engine.estimate.memory import USABLE, MemoryBreakdown, fits
from engine.estimate.parallelism import (
    MAX_GPUS,
    Plans,
    joined,
    of_a_usual_kind,
    plan_row,
    step_inputs,
    with_recompute,
)
from engine.estimate.plan import TrainingPlan
from engine.estimate.plan_memory import joined_memory
from engine.estimate.plan_space import every_plan, kept_plans, memory_of, space_of
from engine.estimate.search_results import (
    NETWORK_PARTS,
    Found,
    result_of,
    software_years,
)
from engine.estimate.training import StepTime, step_time
from engine.estimate.training_calibration import (
    Recalibration,
    far_words,
    interval_half_width,
    recalibrate,
    shipped_calibration,
    too_far,
)
from engine.estimate.training_hardware import CALIBRATED_NIC, Hardware, HardwareChoice, hardware
from engine.estimate.training_job import By, Job, MeasuredSteps, NothingFits, PlanResult

GIB = 2.0**30
MOST_DAYS = 365.0  # a run that takes longer is offered only where there is nothing else
TIGHT = 0.95  # of the usable memory: above, a plan has no room for what is not modelled
FASTER = 0.05  # a gain in days that counts where the dollars are the same
CLOSE = 0.02  # of two plans this near, the simpler one is the better
# Log half width that a slow network adds, for a step that is all traffic: no published rows.
SLOW_NETWORK = 0.5
# Usual tokens of a step, and the most that large fleets use (Llama 3 405B: 16 Mi).
_BATCH_TOKENS = {"pretrain": (2**22, 2**24), "finetune": (2**18, 2**22)}


def best_plans(
    job: Job, by: By = "deadline", count: int = 5
) -> tuple[PlanResult, ...] | NothingFits:
    """The best plans over all hardware and fleet sizes of a job, best first.

    by : `time`: the fastest, within the budget; `cost`: the cheapest, in time; `deadline`: the
        cheapest that is surely enough in time and within the budget, and the fastest within the
        budget where none is. Without a deadline a year is the limit.
    """
    if by not in ("time", "cost", "deadline"):
        raise InputError(f"no such order: {by}", where="by", right="time, cost or deadline")
    found = search(job)
    if isinstance(found, NothingFits):
        return found
    order = ordered(found, by)
    first = int(order[0])
    return tuple(result_of(found, i, first) for i in top_rows(found, order, count))


def plan_result(job: Job, plan: TrainingPlan) -> PlanResult | None:
    """A given plan on the first choice of a job; None when it does not fit there."""
    hws = hardware(job.choices[0], job.precision)
    row = plan_row(job.shape, plan)
    same = replace(job, seq_len=plan.seq_len, batch_seqs=plan.global_batch_seqs)
    memory = memory_of(same, row, hws[0])
    if not fits(memory.total, hws[0].memory_gib)[0]:
        return None
    return result_of(_found(same, [(0, hws, row, memory)], 1), 0)


def plan_seconds(job: Job, plan: TrainingPlan) -> float:
    """Seconds of a step of a given plan on the first choice of a job, whether or not it fits."""
    row = plan_row(job.shape, plan)
    same = replace(job, seq_len=plan.seq_len, batch_seqs=plan.global_batch_seqs)
    return float(timed(same, hardware(job.choices[0], job.precision), row).total[0])


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """The fastest plan on one fleet size; `best`: no other is both faster and cheaper."""

    result: PlanResult
    best: bool


def frontier(job: Job) -> tuple[FrontierPoint, ...] | NothingFits:
    """Days against dollars (GPU hours without prices): every fleet size's fastest plan."""
    found = search(job)
    return found if isinstance(found, NothingFits) else frontier_of(found)


def frontier_of(found: Found) -> tuple[FrontierPoint, ...]:
    """The frontier of what a search has found, by choice and fleet size."""
    days, cost = found.days, found.cost
    rows: list[int] = []
    for k in range(len(found.job.choices)):
        mine = np.flatnonzero(found.which == k)
        for n in np.unique(found.plans.gpus[mine]):
            of = mine[found.plans.gpus[mine] == n]
            rows.append(int(of[np.argmin(days[of])]))
    points = []
    for i in rows:
        better = [j for j in rows if j != i and days[j] <= days[i] and cost[j] <= cost[i]]
        beaten = any(days[j] < days[i] or cost[j] < cost[i] for j in better)
        points.append(FrontierPoint(result_of(found, i), not beaten))
    return tuple(points)


def smallest_fit(job: Job) -> PlanResult | NothingFits:
    """The plan on the fewest GPUs that holds the job at all, over all its hardware.

    Up to a machine's GPUs any number counts, beyond it whole machines; the batch is the least
    that the plan can work on, whatever the job says.
    """
    best: PlanResult | None = None
    for k in range(len(job.choices)):
        one = _smallest_on(job, k, best.plan.gpus - 1 if best else MAX_GPUS)
        best = one or best
    if best is not None:
        return best
    return NothingFits(
        f"{job.shape.name} fits on no number of these GPUs up to {MAX_GPUS:,}: take cards with "
        "more memory, shorter sequences or an adapter (LoRA)", 0.0, None,
    )  # fmt: skip


def _smallest_on(job: Job, k: int, most: int) -> PlanResult | None:
    choice = job.choices[k]
    hws = hardware(choice, job.precision)
    node = choice.node
    counts = [*range(1, node), *range(node, MAX_GPUS + 1, node)]
    # Every state of a parameter is somewhere: fewer bytes than these are not possible.
    bytes_each = {"lora": 2.0, "qlora": 0.5}.get(job.task, 12.0)
    least = job.shape.total_params * bytes_each / (hws[0].memory_gib * GIB)
    if not len(_fitting(job, hws, dict.fromkeys(_probe(node, least), 0))[0]):
        return None
    for n in counts:
        if least <= n <= most:
            if n > choice.reach:  # timed as if joined by the slowest network of published steps
                hws = tuple(replace(h, nic=CALIBRATED_NIC) for h in hws)
            plans, memory = _fitting(job, hws, {n: 0})
            if len(plans):
                found = _found(job, [(k, hws, plans, memory)], len(plans))
                work = found.step_s / found.plans.batch
                return result_of(found, int(np.argmin(work)))
    return None


def _probe(node: int, least: float) -> list[int]:
    """A few fleet sizes, large and round: where none holds the job, no other will."""
    powers = [node * 2**k for k in range(15) if node * 2**k <= MAX_GPUS]
    return [n for n in (*range(1, node), *powers) if n >= least] or [powers[-1]]


# --- the search itself


def search(job: Job) -> Found | NothingFits:
    """Every plan that fits, on every choice and fleet size of a job, timed."""
    found, lacks = _searched(job)
    return _nothing(job, lacks) if found is None else found


def plans_found(job: Job) -> Found | None:
    """The same where the smallest fleet that would do is not wanted: None where nothing fits."""
    return _searched(job)[0]


def _searched(job: Job) -> tuple[Found | None, float]:
    """What is found, and the GiB that the leanest plan lacks."""
    parts: list[tuple[int, tuple[Hardware, ...], Plans, MemoryBreakdown]] = []
    looked_at, lacks = 0, np.inf
    for k, choice in enumerate(job.choices):
        hws = hardware(choice, job.precision)
        sizes = {n: job.batch_seqs or usual_batch(job.task, job.seq_len, n)
                 for n in fleet_sizes(job.gpus, choice)}  # fmt: skip
        if not sizes:
            continue
        space = kept_plans(job, hws[0], sizes)
        plans, memory = space.fitting(hws[0].memory_gib)
        looked_at += len(space)
        lacks = min(lacks, space.least_gib - hws[0].memory_gib * USABLE)
        if len(plans):
            parts.append((k, hws, plans, memory))
    return (_found(job, parts, looked_at) if parts else None), lacks


def fleet_sizes(asked: tuple[int, int], choice: HardwareChoice) -> list[int]:
    """Fleet sizes that are looked at: whole nodes, at most a quarter apart."""
    low, high = asked
    high = int(min(high, choice.most_gpus or high, choice.reach))
    if low >= high:
        return [low] if low == high else []
    node = choice.node
    nodes = sorted({m * 2**k for m in (1, 5, 6, 7) for k in range(15)} | {3})
    sizes = [2**k for k in range(14) if 2**k < node] + [node * n for n in nodes]
    return [n for n in sizes if low <= n <= high] or [low]


def usual_batch(task: str, seq_len: int, gpus: int) -> int:
    """Sequences of a usual step: 4 Mi tokens to pretrain, 0.25 Mi to fine-tune; fleets use more."""
    usual, most = _BATCH_TOKENS["pretrain" if task == "pretrain" else "finetune"]
    tokens = min(max(usual, gpus * seq_len), most)
    return int(max(2 ** round(np.log2(max(tokens / seq_len, 1))), 1))


def _fitting(
    job: Job, hws: tuple[Hardware, ...], sizes: Mapping[int, int]
) -> tuple[Plans, MemoryBreakdown]:
    """Valid plans that fit, with as little recomputation as they need.

    sizes : sequences of a step by fleet size
    """
    return every_plan(job, hws[0], sizes).fitting(hws[0].memory_gib)


def timed_plans(job: Job, plans: Plans, levels: Sequence[int]) -> Found:
    """Plans of the job's first choice with the least of these levels of recomputation that fits;
    where none of them fits (as a run that was made did), all of them with the least level."""
    hws = hardware(job.choices[0], job.precision)
    kept, memory = space_of(job, plans, hws[0], levels).fitting(hws[0].memory_gib)
    if not len(kept):
        kept = with_recompute(plans, levels[0])
        memory = memory_of(job, kept, hws[0])
    return _found(job, [(0, hws, kept, memory)], len(plans))


def _nothing(job: Job, lacks: float) -> NothingFits:
    smallest = smallest_fit(job)
    low, high = job.gpus
    where = f"{low:,} GPUs" if low == high else f"{low:,} to {high:,} GPUs"
    short = f"the leanest plan lacks {lacks:,.0f} GiB a GPU" if np.isfinite(lacks) else (
        "no way to split it is valid")  # fmt: skip
    if all(c.reach < low for c in job.choices):
        short = "without a network between them machines can't work together"
    reason = f"{job.shape.name} does not fit on {where}: {short}."
    if isinstance(smallest, NothingFits):
        return NothingFits(f"{reason} {smallest.reason}.", max(_finite(lacks), 0.0), None)
    more = f" It fits on {smallest.plan.gpus:,} x {smallest.choice.accelerator.name}."
    return NothingFits(reason + more, max(_finite(lacks), 0.0), smallest)


def _finite(value: float) -> float:
    return value if np.isfinite(value) else 0.0


def _found(
    job: Job, parts: Sequence[tuple[int, tuple[Hardware, ...], Plans, MemoryBreakdown]], valid: int
) -> Found:
    seconds, scales, halves, which = [], [], [], []
    by_choice: dict[int, tuple[Hardware, ...]] = {k: hws for k, hws, _, _ in parts}
    merged: list[tuple[Plans, MemoryBreakdown]] = []
    for k, hws in by_choice.items():
        plans = joined([p for j, _, p, _ in parts if j == k])
        memory = joined_memory([m for j, _, _, m in parts if j == k])
        time = timed(job, hws, plans)
        own = own_steps(job, job.choices[k])
        seconds.append(time)
        scales.append(np.full(len(plans), own.scale if own else 1.0))
        halves.append(_half_widths(job, hws[0], plans, time, own))
        which.append(np.full(len(plans), k))
        merged.append((plans, memory))
    return Found(
        job, np.concatenate(which),
        tuple(by_choice.get(k, ()) for k in range(len(job.choices))),
        joined([p for p, _ in merged]), joined_memory([m for _, m in merged]),
        StepTime(*(np.concatenate([getattr(t, f.name) for t in seconds])
                   for f in fields(StepTime))),
        np.concatenate(scales), np.concatenate(halves), valid,
    )  # fmt: skip


def timed(job: Job, hws: Iterable[Hardware], plans: Plans) -> StepTime:
    """Step times on the generations of a choice: the slowest of them paces the rest."""
    calibration = shipped_calibration()
    slowest: StepTime | None = None
    for hw in hws:
        year = software_years(job, plans, hw)
        inputs = step_inputs(job.shape, plans, hw, float(job.seq_len), job.task, year, job.software)
        told = step_time(inputs, calibration.parameters)
        told = StepTime(*(np.broadcast_to(getattr(told, f.name), plans.gpus.shape)
                          for f in fields(StepTime)))  # fmt: skip
        if slowest is None:
            slowest = told
            continue
        behind = told.total > slowest.total
        slowest = StepTime(*(np.where(behind, getattr(told, f.name), getattr(slowest, f.name))
                             for f in fields(StepTime)))  # fmt: skip
    if slowest is None:
        raise InputError("no hardware", where="choices", right="at least one accelerator")
    return slowest


def _half_widths(
    job: Job, hw: Hardware, plans: Plans, time: StepTime, own: Recalibration | None
) -> Array:
    """Log half width of each row's 80% interval; slow networks and unknown hardware widen it."""
    known = hw.calibrated and of_a_usual_kind(job.shape)
    half = interval_half_width(moe=job.shape.is_moe, known=False, calibrated=known)
    if own is not None:
        half = own.half_width
    traffic = sum(getattr(time, k) for k in NETWORK_PARTS) / time.total
    slow = (plans.gpus > hw.node) & (not hw.calibrated_network)
    return np.asarray(np.hypot(half, np.where(slow, SLOW_NETWORK * traffic, 0.0)))


def own_steps(job: Job, choice: HardwareChoice) -> Recalibration | None:
    """What the user's own steps say of times on a choice; None without steps on such GPUs.

    Raises
    ------
    InputError : steps on GPUs that do not hold the job, without the plan that they ran with
    """
    predicted, measured = [], []
    for m in job.measured:
        if m.choice.accelerator.sku != choice.accelerator.sku:
            continue
        ran = replace(job, shape=m.shape or job.shape, seq_len=m.seq_len or job.seq_len)
        hws = hardware(m.choice, job.precision)
        if m.plan is not None:
            row = plan_row(ran.shape, m.plan)
        else:
            usual = usual_of(job, m)
            row, _ = _fitting(ran, hws, {m.gpus: m.batch_seqs or job.batch_seqs or usual})
            if not len(row):
                raise InputError(
                    f"{ran.shape.name} does not fit on {m.gpus} GPUs by this model",
                    where="measured", right="the plan, or the smaller model, that the steps ran",
                )  # fmt: skip
        total = np.asarray(timed(ran, hws, row).total)
        predicted.append(float(total.min()))
        measured.append(m.seconds / m.steps)
        if usual_of(job, m):
            _check_batch(usual_of(job, m), measured[-1], predicted[-1])
    return recalibrate(predicted, measured) if predicted else None


def usual_of(job: Job, own: MeasuredSteps) -> int:
    """The batch that measured steps are taken to have had where nobody said; else 0."""
    if own.plan is not None or own.batch_seqs or job.batch_seqs:
        return 0
    return usual_batch(job.task, own.seq_len or job.seq_len, own.gpus)


def _check_batch(usual: int, measured_s: float, predicted_s: float) -> None:
    """Refuse steps that can't have had the usual batch, with the one that would take as long."""
    off = float(np.log(measured_s / predicted_s))
    if too_far(off):
        raise InputError(
            f"a step of {measured_s:.3g} s is {far_words(off)} the {predicted_s:.3g} s that one of "
            f"{usual:,} sequences takes, the usual batch where none is told",
            where="measured_batch",
            right="how many sequences each of your steps had: about "
            f"{max(round(usual * measured_s / predicted_s), 1):,} would take as long",
        )


# --- which is the best


def ordered(found: Found, by: By) -> NDArray[np.intp]:
    """Rows from the best to the worst for an objective.

    Differences below `CLOSE` are nothing against the model's errors: there the simpler split is
    the better, then what no other as simple beats in days and dollars, then fewer GPUs.
    """
    days, cost, gpus = found.days, found.cost, found.plans.gpus
    over = ~found.within_budget
    limit = found.job.deadline_days
    late = found.chance < found.job.sure if limit is not None else days > MOST_DAYS
    if by == "time":
        bad, key = over, np.where(over, cost, days)
    elif by == "cost":
        over = np.zeros_like(late)
        bad, key = late, np.where(late, days, cost)
    else:
        # Where nothing is in time and paid for: the fastest that is paid for; where none is, the
        # cheapest, in time if there is one.
        bad, key = late | over, np.where(late & ~over, days, cost)
        over = np.where(over, 1.0 + late, 0.0)
    first = np.lexsort((key, over, bad))[0]
    same = (bad == bad[first]) & (over == over[first]) & (key <= key[first] * (1 + CLOSE))
    rank, simple = np.where(same, 0.0, key), np.where(same, _pieces(found), 0.0)
    beaten = np.zeros_like(same)
    rows = np.flatnonzero(same)
    beaten[rows] = beaten_by_others(days[rows], cost[rows], simple[rows])
    return np.lexsort((key, gpus, beaten, simple, rank, over, bad))


def beaten_by_others(days: Array, cost: Array, simple: Array) -> NDArray[np.bool_]:
    """Whether another row, as simple, is faster by more than `FASTER` and no dearer."""
    found = np.zeros(len(days), dtype=bool)
    for level in np.unique(simple):
        rows = np.flatnonzero(simple == level)
        by_days = rows[np.argsort(days[rows], kind="stable")]
        least = np.minimum.accumulate(cost[by_days])
        before = np.searchsorted(days[by_days], days[rows] / (1 + FASTER))
        found[rows] = (before > 0) & (least[np.maximum(before - 1, 0)] <= cost[rows])
    return found


def _pieces(found: Found) -> Array:
    """How many ways of splitting a plan combines: what has to be set up and kept working.

    A plan that fills the memory to the brim counts as one more.
    """
    p = found.plans
    usable = np.array([h[0].memory_gib * USABLE if h else np.inf for h in found.hardware])
    tight = np.asarray(found.memory.total) > TIGHT * usable[found.which]
    one = (p.tp > 1) + 1.0 * (p.cp > 1) + (p.ep > 1) + (p.zero == 2) + (p.shard < p.dp * p.cp)
    return np.asarray(2.0 * (p.pp > 1) + one + tight)


def top_rows(found: Found, order: NDArray[np.intp], count: int) -> list[int]:
    """The best row of each way to split; micro-batch and recomputation are left to it."""
    p = found.plans
    keys = np.stack([found.which, p.gpus, p.tp, p.pp, p.cp, p.ep, p.zero, p.shard], axis=1)
    seen: set[tuple[float, ...]] = set()
    kept: list[int] = []
    for i in order:
        split = tuple(keys[i].tolist())
        if split not in seen:
            seen.add(split)
            kept.append(int(i))
        if len(kept) == count:
            break
    return kept
