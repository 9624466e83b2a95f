"""The reliability of a run in figures and sentences: what a page, a report and a table show of it.

The formulae are those of `engine.estimate.run_reliability`; the conditions come from
`engine.explain.run_conditions`. What stands here is which figures are told, over which range, and
what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from engine.assessment import Assessment
from engine.cost.parameters import value
from engine.decide.priors import parameter
from engine.estimate.estimate import Estimate
from engine.estimate.failure_rates import Fleet, fleets, reliability_parameters
from engine.estimate.reliability import (
    Real,
    alarm_threshold,
    availability_k_of_n,
    false_alarms,
)
from engine.estimate.run_reliability import (
    LOSSES,
    Checks,
    RunBill,
    RunConditions,
    RunOutcome,
    best_check_interval,
    best_spares,
    bill,
    outcome,
)
from engine.explain.run_conditions import (
    HOURS_PER_DAY,
    Known,
    RunPlan,
    checks_of,
    conditions,
    draws,
    known,
    run_plan,
)
from engine.wording import count, duration, rough, spent
from engine.workload.reliability_terms import ReliabilityTerms
from engine.workload.workload import HOURS_PER_MONTH

GPUS_PER_MACHINE = 8  # of the published fleets


@dataclass(frozen=True, slots=True)
class Loss:
    """What part of the paid time goes to one cause, and what that costs in this run."""

    cause: str
    share: float
    usd: float


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to guard the run, against the run as it is set."""

    title: str
    useful: float
    days: float
    paid_usd: float
    saves_usd: float
    note: str
    now: bool = False


@dataclass(frozen=True, slots=True)
class Saying:
    """What an article says, and what is computed for this run."""

    article: str
    claims: str
    says: str
    here: str


@dataclass(frozen=True, slots=True)
class Reliability:
    """All that is told of the reliability of a run. Shares of paid time, hours, US dollars."""

    plan: RunPlan
    sentence: str
    useful: Estimate
    mtbf: Estimate
    interval: float
    best_interval: Estimate
    failures: Estimate
    reclaims: Estimate
    stops: Estimate
    days: Estimate
    lost_hours: Estimate
    lost_usd: Estimate
    paid_usd: Estimate
    losses: tuple[Loss, ...]
    choices: tuple[Choice, ...]
    sayings: tuple[Saying, ...]
    known: tuple[Known, ...]
    notes: tuple[str, ...]


def reliability(answer: Assessment, terms: ReliabilityTerms) -> Reliability:
    """What failures do to the run of a recommendation, with ranges and sources.

    Raises
    ------
    InputError : the terms name a fleet that is not known
    """
    plan = run_plan(answer, terms)
    found = known(plan, terms)
    likely = conditions(plan, terms, found)
    point = outcome(likely)
    drawn = outcome(conditions(plan, terms, found, draws(found)))
    told, spread = _bill(plan, point), _bill(plan, drawn)
    losses = tuple(
        Loss(name, float(point.lost(name)), float(point.lost(name)) * float(told.paid_usd))
        for name in LOSSES
        if float(point.lost(name)) > 0
    )
    sources = tuple(dict.fromkeys(k.source for k in found.values()))
    many = 1.0 if plan.in_step else float(plan.machines)

    def range_of(low_likely: Real, over: Real, unit: str) -> Estimate:
        return _estimate(float(low_likely), over, unit, sources)

    fleet_mtbf = np.asarray(drawn.mtbf) / many
    result = Reliability(
        plan=plan,
        sentence="",
        useful=range_of(point.useful, drawn.useful, "share"),
        mtbf=range_of(float(point.mtbf) / many, fleet_mtbf, "h"),
        interval=float(point.interval),
        best_interval=range_of(point.best_interval, drawn.best_interval, "h"),
        failures=range_of(told.failures, spread.failures, "stops"),
        reclaims=range_of(told.reclaims, spread.reclaims, "stops"),
        stops=range_of(told.failures + told.reclaims, spread.failures + spread.reclaims, "stops"),
        days=range_of(told.days, spread.days, "days"),
        lost_hours=range_of(told.lost_device_hours, spread.lost_device_hours, f"{plan.unit}-hours"),
        lost_usd=range_of(told.lost_usd, spread.lost_usd, "USD"),
        paid_usd=range_of(told.paid_usd, spread.paid_usd, "USD"),
        losses=losses,
        choices=_choices(plan, terms, found, likely),
        sayings=_sayings(plan, likely, point),
        known=tuple(found.values()),
        notes=_notes(plan, point),
    )
    return replace(result, sentence=_sentence(result))


def published_fleets() -> tuple[Fleet, ...]:
    """Published fleets with a rate, those that fail least first."""
    return tuple(sorted((f for f in fleets().values() if f.rate), key=lambda f: f.rate or 0.0))


def rates(mtbf: Known) -> tuple[float, float, float]:
    """Failures per 1,000 machine-days (low, likely, high) of device-hours between failures."""
    hours = GPUS_PER_MACHINE * HOURS_PER_DAY * 1000
    return hours / mtbf.high, hours / mtbf.likely, hours / mtbf.low


def checkpoint_size(plan: RunPlan) -> tuple[float, float] | None:
    """Bytes of one checkpoint of the model, and bytes a second to write it in a minute."""
    if plan.params_b is None:
        return None
    size = plan.params_b * 1e9 * reliability_parameters()["checkpoint_bytes_per_parameter"].likely
    return size, size / 60


@dataclass(frozen=True, slots=True)
class Spare:
    """What spare machines do for a service: share of the time in which enough are up."""

    spares: int
    up: float
    hours_away_a_year: float
    usd_per_month: float


def service_spares(plan: RunPlan, found: dict[str, Known], most: int = 4) -> tuple[Spare, ...]:
    """Availability of a service by spare machines (k of n), each machine up as long as it is.

    A machine fails at the rate of its devices, and is away for the repair or the restart,
    whichever the failure asks for.
    """
    mtbf = found["device_mtbf"].likely / plan.per_machine
    away = found["swap_share"].likely * found["repair"].likely + found["restart"].likely
    up = mtbf / (mtbf + away)
    rows = []
    for extra in range(most + 1):
        share = float(availability_k_of_n(up, plan.machines, plan.machines + extra))
        usd = extra * plan.per_machine * plan.usd_per_device_hour * HOURS_PER_MONTH
        rows.append(Spare(extra, share, (1 - share) * 8760, usd))
    return tuple(rows)


# --- parts


def _bill(plan: RunPlan, result: RunOutcome) -> RunBill:
    """The bill of the whole fleet: machines out of step each lose their own time."""
    told = bill(result, float(plan.devices), plan.useful_hours, plan.usd_per_device_hour)
    if plan.in_step:
        return told
    many = float(plan.machines)
    return replace(told, failures=told.failures * many, reclaims=told.reclaims * many)


def _estimate(at: float, over: Real, unit: str, sources: tuple[str, ...]) -> Estimate:
    low, high = np.quantile(np.atleast_1d(np.asarray(over, float)), [0.1, 0.9])
    return Estimate(min(float(low), at), at, max(float(high), at), unit, sources)


def two_digits(n: float) -> int:
    """Two significant digits."""
    digits = 1 - int(np.floor(np.log10(n)))
    return int(round(n, min(digits, 0)))


def _sentence(r: Reliability) -> str:
    plan = r.plan
    machines = count(plan.machines, "machine")
    if plan.service:
        return (
            f"{machines} of {plan.name}: expect a failure every {duration(r.mtbf.likely)}, "
            f"{duration(r.mtbf.low)} to {duration(r.mtbf.high)}."
        )
    stops = r.stops.likely
    often = f"about {stops:,.1f} stops" if stops < 9.5 else f"about {stops:,.0f} stops"
    if stops < 0.05:
        often = "hardly a stop"
    return (
        f"{count(plan.devices, plan.unit)} for {duration(plan.useful_hours)} of work: {often}, "
        f"{r.useful.likely:.1%} of the paid time useful ({r.useful.low:.1%} to "
        f"{r.useful.high:.1%}), {spent(r.lost_usd.likely)} of "
        f"{spent(r.paid_usd.likely)} lost."
    )


def _notes(plan: RunPlan, point: RunOutcome) -> tuple[str, ...]:
    notes = []
    if not plan.in_step and not plan.service:
        notes.append(
            "Machines of this job do not work in step: a failure costs the lost task of one "
            "machine, not the whole run. Spares and slow machines matter little, so they are not "
            "counted."
        )
    if plan.in_step and float(point.useful) < 0.5:
        notes.append(
            "More than half of the paid time is lost: make restarts faster and keep spares before "
            "adding machines."
        )
    return tuple(notes)


def _choices(
    plan: RunPlan, terms: ReliabilityTerms, found: dict[str, Known], run: RunConditions
) -> tuple[Choice, ...]:
    """Ways to guard the run beside the one that is set, each with what it changes."""
    now = _bill(plan, outcome(run))
    useful_now = float(outcome(run).useful)
    rows = [Choice("As set", useful_now, float(now.days), float(now.paid_usd), 0.0, "", now=True)]

    def add(title: str, changed: RunConditions, note: str) -> None:
        result = outcome(changed)
        told = _bill(plan, result)
        paid = float(told.paid_usd)
        rows.append(
            Choice(title, float(result.useful), float(told.days), paid,
                   float(now.paid_usd) - paid, note)
        )  # fmt: skip

    if terms.interval_min is not None:
        best = float(outcome(run).best_interval)
        add(f"Checkpoints every {duration(best)}", replace(run, interval=None),
            "the interval that loses least")  # fmt: skip
    if plan.in_step:
        pays = best_spares(run)
        if terms.spares is None and pays:
            add("No hot spare", replace(run, spares=0),
                "the run waits for another machine")  # fmt: skip
        elif pays != run.spares:
            add(count(pays, "hot spare") if pays else "No hot spare", replace(run, spares=pays),
                "as many as pay for themselves")  # fmt: skip
    if run.checks is None:
        watch = checks_of(terms, found["alarm"].likely)
        add(f"Validation every {duration(float(np.max(watch.every)))}, 3 deviations",
            replace(run, checks=watch), "000's check of gradients, 2% of the time")  # fmt: skip
    else:
        add("No validation", replace(run, checks=None),
            f"errors show after {found['unseen'].likely:g} days")  # fmt: skip
    errors = float(np.max(run.silent)) * plan.machines
    watched = run.checks or checks_of(terms, found["alarm"].likely)
    one = float(np.max(watched.every * watched.share))
    if plan.in_step and errors > 0 and one > 0:
        every = float(best_check_interval(one, errors))
        if every < plan.useful_hours:
            add(f"Validation every {duration(every)}",
                replace(run, checks=Checks(every, one / every, terms.sigmas,
                                           found["alarm"].likely)),
                "the interval of checks that loses least")  # fmt: skip
    faster = parameter("checkpoint_stall_h").low
    if float(np.max(run.save)) > faster:
        add("Checkpoints in the background", replace(run, save=faster, interval=None),
            f"a stall of {duration(faster)}: copy to the host, write while it goes on")  # fmt: skip
    if plan.spot:
        add("Without spot interruptions", replace(run, reclaims=0.0, requeue=0.0, had=1.0),
            "at the same price; see below for the price that is right")  # fmt: skip
    return tuple(rows)


def spot_break_even(plan: RunPlan, terms: ReliabilityTerms) -> float:
    """Share of the ordinary price below which spot machines make this run cheaper."""
    on = replace(plan, spot=True)
    off = replace(plan, spot=False)
    paid = [
        float(outcome(conditions(p, terms, known(p, terms))).paid_hours) for p in (off, on)
    ]  # fmt: skip
    return paid[0] / paid[1]


def _sayings(plan: RunPlan, run: RunConditions, point: RunOutcome) -> tuple[Saying, ...]:
    """The articles' claims on failures beside what is computed for this run."""
    fleet = plan.usd_per_hour
    best = float(point.best_interval)

    def share(hours: float) -> float:
        return float(outcome(replace(run, interval=hours)).useful)

    # The fleet for which the article's interval and stall are the best: M = τ²/2δ.
    every_h = value("checkpoint_003_minutes") / 60
    fits = value("llama3_mtbf_gpu_hours") * 2 * value("checkpoint_003_share") / every_h
    found = [
        Saying("003", "C295, C296", "A checkpoint every 15 minutes, for 3% of the time",
               f"Every 15 minutes leaves {share(0.25):.1%} useful, every {duration(best)} "
               f"{share(best):.1%}. 15 minutes with that stall is right for about "
               f"{two_digits(fits):,} GPUs."),
        Saying("003", "C294", "A failure eight hours after the last checkpoint cost $3,600",
               f"Here eight hours of the fleet cost {spent(8 * fleet)}; at the best interval a "
               f"failure costs {spent((best / 2 + float(np.max(run.restart))) * fleet)}."),
    ]  # fmt: skip
    if plan.in_step:
        found += [
            Saying("000", "C068, C070", "Validation every six hours costs 2% of the time",
                   _validation(run)),
            Saying("001", "C162, C164", "A machine 0.3% slower took throughput down by 72%",
                   "A step waits for its slowest machine, so 0.3% slower is 0.3% slower. 72% less "
                   "needs a machine 3.6 times slower, or time-outs: look for a throttled or "
                   "failing one. Set aside."),
            Saying("001", "C199", "After a failure restart from the last checkpoint",
                   f"Right: {duration(best / 2)} of work and {duration(float(np.max(run.restart)))}"
                   " of restart a time."),
        ]  # fmt: skip
    if plan.in_step and plan.machines > 1:
        every = value("checkpoint_000_hours")
        tests = plan.machines * HOURS_PER_MONTH / every
        alarms = float(false_alarms(tests, 3.0))
        right = float(alarm_threshold(tests, min(1.0, tests)))
        found.append(
            Saying("000", "C069", "Pause when a machine differs by more than 3 deviations",
                   f"With {count(plan.machines, 'machine')} that is {rough(alarms)} false alarms a "
                   f"month, for one statistic each; {right:.1f} deviations give one a month.")
        )  # fmt: skip
    return tuple(found)


def _validation(run: RunConditions) -> str:
    every, cost = value("checkpoint_000_hours"), value("checkpoint_000_share")
    without = float(outcome(replace(run, checks=None)).useful)
    checked = float(outcome(replace(run, checks=Checks(every, cost))).useful)
    verdict = "it pays" if checked > without else "it is insurance, dearer than what it saves"
    return (
        f"Without it {without:.1%} is useful, with it {checked:.1%}: {verdict}, at the rate of "
        "silent errors that nobody looks for."
    )
