"""One answer for a training job: the plan, the next ones, the frontier, rules and networks.

`plan_training` is the one entry for a page, the report and the command line. Everything that they
show is in the answer, numbers with their intervals and words ready to print; they compute nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from engine.catalogue import Network
from engine.estimate.estimate import Estimate
from engine.estimate.network_choice import NetworkOutcome, network_outcomes
from engine.estimate.parallelism import SOFTWARE
from engine.estimate.search import (
    FrontierPoint,
    frontier_of,
    ordered,
    plan_seconds,
    search,
    smallest_fit,
    top_rows,
    usual_of,
)
from engine.estimate.search_results import result_of, split_words
from engine.estimate.training import STACKS
from engine.estimate.training_calibration import shipped_calibration
from engine.estimate.training_job import By, Job, NothingFits, PlanResult
from engine.estimate.training_rules import RuleAnswer, rules_beside
from engine.wording import rough

LOW_MFU = 0.2  # below it, something is wrong before hardware is bought: profile first


@dataclass(frozen=True, slots=True)
class MixShare:
    """One generation in a mixed job: its own step, and how long it waits in the mix."""

    name: str
    step_s: float
    idle: float


@dataclass(frozen=True, slots=True)
class MixAnswer:
    """What mixing generations costs: the slowest paces the rest.

    leave_out_above : share of the fleet from which the fastest cards alone are quicker than all
    """

    shares: tuple[MixShare, ...]
    leave_out_above: float
    words: str


@dataclass(frozen=True, slots=True)
class TrainingAnswer:
    """All that is to be said of a job.

    best : the plan; None where nothing fits, and then `nothing` says why and what would
    others : the next plans, each with what keeps it behind
    by_choice : the best plan on each kind of hardware, in the order of the job's choices
    smallest : the fewest GPUs that hold the job, whatever time it takes
    frontier : days against dollars, a point for each fleet size and kind of hardware
    verdict : the answer in two sentences; warnings and assumptions in words
    """

    job: Job
    by: By
    best: PlanResult | None
    others: tuple[PlanResult, ...]
    by_choice: tuple[PlanResult | None, ...]
    smallest: PlanResult | None
    nothing: NothingFits | None
    frontier: tuple[FrontierPoint, ...]
    networks: tuple[NetworkOutcome, ...]
    rules: tuple[RuleAnswer, ...]
    mix: MixAnswer | None
    verdict: str
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]
    sources: tuple[str, ...]


def plan_training(
    job: Job, by: By = "deadline", networks: Iterable[Network] = (), count: int = 5
) -> TrainingAnswer:
    """The best plan for a job, what lies behind it, and what would change it.

    networks : the catalogue's, for the comparison of the chosen cluster on each; none, no
        comparison
    count : plans, the best among them

    Raises
    ------
    InputError : for what can't be searched, such as measured steps on GPUs that do not hold the
        job; where nothing fits, the answer says so
    """
    found = search(job)
    assumptions = _assumptions(job)
    if isinstance(found, NothingFits):
        smallest = found.smallest
        return TrainingAnswer(
            job, by, None, (), tuple(None for _ in job.choices), smallest, found, (), (), (),
            None, found.reason, (), assumptions, shipped_calibration().sources,
        )  # fmt: skip
    order = ordered(found, by)
    first = int(order[0])
    plans = tuple(result_of(found, i, first) for i in top_rows(found, order, count))
    best = plans[0]
    by_choice: list[PlanResult | None] = []
    for k in range(len(job.choices)):
        rows = order[found.which[order] == k]
        by_choice.append(result_of(found, int(rows[0]), first) if len(rows) else None)
    least = smallest_fit(job)
    smallest = None if isinstance(least, NothingFits) else least
    outcomes = network_outcomes(job, best, networks)
    mix = _mix(job, best)
    return TrainingAnswer(
        job, by, best, plans[1:], tuple(by_choice), smallest, None, frontier_of(found), outcomes,
        rules_beside(found, best, smallest, outcomes, mix.words if mix else ""), mix,
        _verdict(job, best), _warnings(job, best), assumptions,
        tuple(dict.fromkeys((*best.step_s.sources, *best.goodput.sources))),
    )  # fmt: skip


def _mix(job: Job, best: PlanResult) -> MixAnswer | None:
    """The chosen plan on each generation of its mix alone."""
    kinds = (best.choice.accelerator, *best.choice.also)
    if len(kinds) == 1:
        return None
    steps = []
    for acc in kinds:
        alone = replace(best.choice, accelerator=acc, also=(), label="")
        steps.append(plan_seconds(replace(job, choices=(alone,)), best.plan))
    slowest = max(steps)
    shares = tuple(
        MixShare(acc.name, s, 1 - s / slowest) for acc, s in zip(kinds, steps, strict=True)
    )
    fast = min(shares, key=lambda m: m.step_s)
    slow = max(shares, key=lambda m: m.step_s)
    above = fast.step_s / slow.step_s
    words = (
        f"{slow.name} paces the job: {fast.name} waits {fast.idle:.0%} of each step. Without the "
        f"slower cards the job is quicker once {fast.name} is more than {above:.0%} of the fleet."
    )
    return MixAnswer(shares, above, words)


# --- words


_SIZES = ((1e9, 1e9, " bn"), (1e6, 1e6, " M"), (1e4, 1e3, ",000"), (0.0, 1.0, ""))


def _amount(e: Estimate, unit: str = "") -> str:
    """A value with its interval in one size, two or three digits."""
    _, size, word = next(row for row in _SIZES if abs(e.likely) >= row[0])
    low, likely, high = (_digits(x / size) for x in (e.low, e.likely, e.high))
    thousands = word if word.startswith(",") else ""
    return f"{likely}{word}{unit} ({low}{thousands} to {high}{word})"


def _duration(days: Estimate) -> str:
    """Days, or hours where they are few."""
    if days.likely < 2:
        return _amount(days.scaled(24, "h"), " hours")
    return _amount(days, " days")


def _digits(value: float) -> str:
    if value >= 9.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.995 else f"{rough(value)}"


def _verdict(job: Job, best: PlanResult) -> str:
    n = best.plan.gpus
    fleet = f"{n:,} x {best.choice.name}" if n > 1 else f"One {best.choice.accelerator.name}"
    cost = f", ${_amount(best.usd)}" if best.usd else ""
    text = (
        f"{fleet}: {_duration(best.days)}, {_amount(best.gpu_hours, ' GPU hours')}{cost}. "
        f"Split: {split_words(best.plan)}."
    )
    if best.chance is not None:
        text += f" {_sure(best.chance)} to be done within {job.deadline_days:g} days."
    return text


def _sure(chance: float) -> str:
    if chance > 0.99:
        return "Over 99% sure"
    return "Under 1% sure" if chance < 0.01 else f"{chance:.0%} sure"


def _warnings(job: Job, best: PlanResult) -> tuple[str, ...]:
    found = []
    if best.chance is not None and best.chance < job.sure:
        found.append(
            f"No plan on this hardware is {job.sure:.0%} sure to be done within "
            f"{job.deadline_days:g} days{' and the budget' if job.budget_usd else ''}; this is "
            "the fastest that can be had."
        )
    if best.within_budget is False:
        found.append(f"No plan costs less than ${job.budget_usd:,.0f} as likely as not.")
    if not best.calibrated:
        found.append(
            "No step on such hardware, network or model was published: the range is wider, and "
            "ten steps of your own narrow it most."
        )
    if best.mfu.likely < LOW_MFU:
        found.append(
            f"Only {best.mfu.likely:.0%} of the peak is used: look for the cause before paying "
            "for more GPUs."
        )
    for own in job.measured:
        if usual := usual_of(job, own):
            found.append(
                f"Your own steps are taken for {usual:,} sequences each, the usual batch: half as "
                "many would mean half the speed. Enter how many they had."
            )
    if best.choice.usd_per_gpu_hour is None:
        found.append("Without a price per GPU hour plans are ranked by GPU hours.")
    return tuple(found)


def _age(job: Job) -> str:
    if job.software_year is not None:
        return f"as of {job.software_year:.1f}"
    newest = dict(zip(STACKS, shipped_calibration().newest_years, strict=True))
    years = {
        "recipes": f"{newest['tuned']:.1f}, FSDP {newest['native']:.1f}",
        "own": f"{newest['plain']:.1f}, FSDP {newest['native']:.1f}",
        "pytorch": f"{newest['native']:.1f}", "jax": f"{newest['jax']:.1f}",
        "legacy": f"{newest['legacy']:.1f}",
    }  # fmt: skip
    return f"no newer than its newest published steps ({years[job.software]})"


def _assumptions(job: Job) -> tuple[str, ...]:
    told = [
        f"Software: {SOFTWARE[job.software]}, {_age(job)}.",
        f"Sequences of {job.seq_len:,} tokens, filled.",
    ]
    if not job.batch_seqs:
        told.append(
            "Batch: 4 Mi tokens a step to pretrain and 0.25 Mi to fine-tune; more on fleets that "
            "need more."
        )
    if job.goodput is None:
        told.append("Goodput: failures, checkpoints, evaluations and stops at published rates.")
    if job.experiments is None:
        told.append("Experiments: 1 to 2 times the GPU hours of the run, likely 1.15.")
    if job.measured:
        told.append("Times on the GPUs that you measured are scaled to your own steps.")
    told.extend(f"Model: {doubt}." for doubt in job.shape.doubts)
    return tuple(told)
