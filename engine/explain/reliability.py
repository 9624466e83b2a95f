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
from engine.explain.reliability_words import (
    NEVER_DAYS,
    share_said,
    stops_said,
    two_digits,
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
from engine.wording import count, duration, money, number, rough, spent
from engine.workload.reliability_terms import ReliabilityTerms
from engine.workload.workload import HOURS_PER_MONTH

GPUS_PER_MACHINE = 8  # of the published fleets
REMEDY = {
    "slowest machine": "take the slow machine out",
    "silent corruption": "check as often as loses least, and raise the threshold of its alarms",
    "checkpoints": "write checkpoints in the background, or less often",
    "work done again": "save more often, and make a checkpoint quicker",
    "restarts": "make restarts faster",
    "reclaimed with notice": "take machines that nobody takes back",
    "waiting for a machine": "keep spare machines",
    "spare machines": "keep fewer spare machines",
}


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
    """All that is told of the reliability of a run. Shares of paid time, hours, US dollars.

    mtbf : hours at work or restarting between two stops, interruptions with notice among them
    comparable : useful share as published runs count it: all time in which steps are made, those
        that wait for the slowest machine and those that an unseen corruption spoils among them
    """

    plan: RunPlan
    sentence: str
    useful: Estimate
    comparable: Estimate
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

    @property
    def ends(self) -> bool:
        """Whether the run is done within a century."""
        return self.days.likely < NEVER_DAYS


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

    def range_of(at: Real, over: Real, unit: str) -> Estimate:
        return _estimate(float(at), over, unit, sources)

    result = Reliability(
        plan=plan,
        sentence="",
        useful=range_of(point.useful, drawn.useful, "share"),
        comparable=range_of(_comparable(likely, point), _comparable(likely, drawn), "share"),
        mtbf=range_of(_between_stops(point, many), _between_stops(drawn, many), "h"),
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
        sayings=_sayings(plan, likely, point, found["alarm"].likely),
        known=tuple(found.values()),
        notes=_notes(plan, point, losses),
    )
    return replace(result, sentence=_sentence(result, likely))


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


def watch_pct(terms: ReliabilityTerms) -> float:
    """Percent of the time that validation takes, as set or as the article's."""
    return 100 * float(np.max(checks_of(terms, 0.0).share))


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


def _between_stops(result: RunOutcome, machines: float) -> Real:
    stops = np.asarray(result.failures, float) + result.reclaims
    return np.asarray(result.active_hours, float) / stops / machines


def _comparable(run: RunConditions, result: RunOutcome) -> Real:
    spoilt = 0.0 if run.checks is not None else result.lost("silent corruption")
    return np.asarray(result.useful, float) + result.lost("slowest machine") + spoilt


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


def _sentence(r: Reliability, run: RunConditions) -> str:
    plan = r.plan
    machines = count(plan.machines, "machine")
    if plan.service:
        return (
            f"{machines} of {plan.name}: expect a failure every {duration(r.mtbf.likely)}, "
            f"{duration(r.mtbf.low)} to {duration(r.mtbf.high)}."
        )
    work = f"{count(plan.devices, plan.unit)} for {duration(plan.useful_hours)} of work"
    if not r.ends:
        restart, saved = float(np.max(run.restart)), r.interval + float(np.max(run.save))
        every = duration(r.mtbf.likely)
        return (
            f"{work}: practically nothing gets done. The run stops every {every}, a restart takes "
            f"{duration(restart)} and work is safe only after {duration(saved)}: it would take "
            "over 100 years."
        )
    stops = r.stops.likely
    often = f"about {stops_said(stops)} stops" if stops >= 0.05 else "hardly a stop"
    return (
        f"{work}: {often}, {share_said(r.useful.likely)} of the paid time useful "
        f"({share_said(r.useful.low)} to {share_said(r.useful.high)}), "
        f"{spent(r.lost_usd.likely)} of {spent(r.paid_usd.likely)} lost."
    )


def _notes(plan: RunPlan, point: RunOutcome, losses: tuple[Loss, ...]) -> tuple[str, ...]:
    notes = []
    if not plan.in_step and not plan.service:
        notes.append(
            "Machines of this job do not work in step: a failure costs the lost task of one "
            "machine, not the whole run. Spares and slow machines matter little, so they are not "
            "counted."
        )
    if plan.spot and plan.spot_usd is None:
        notes.append("No spot price of this hardware is known: dollars are at the plan's price.")
    if plan.acquisition == "spot" and not plan.spot and plan.ordinary_usd is None:
        notes.append("No ordinary price of this hardware is known: dollars are at the spot price.")
    if not plan.service and losses and float(point.useful) < 0.5:
        worst = max(losses, key=lambda loss: loss.share).cause
        by_spot = plan.spot and float(point.reclaims) > float(point.failures)
        stopped = worst in ("restarts", "work done again", "reclaimed with notice")
        cure = REMEDY["reclaimed with notice" if by_spot and stopped else worst]
        notes.append(f"More than half of the paid time is lost, most of it to {worst}: {cure}.")
    return tuple(notes)


def _choices(
    plan: RunPlan, terms: ReliabilityTerms, found: dict[str, Known], run: RunConditions
) -> tuple[Choice, ...]:
    """Ways to guard the run beside the one that is set, each with what it changes."""
    now = _bill(plan, outcome(run))
    useful_now = float(outcome(run).useful)
    rows = [Choice("As set", useful_now, float(now.days), float(now.paid_usd), 0.0, "", now=True)]

    def add(title: str, changed: RunConditions, note: str, at: RunPlan = plan) -> None:
        result = outcome(changed)
        told = _bill(at, result)
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
    watch = checks_of(terms, found["alarm"].likely)
    if run.checks is None:
        add(f"Validation every {duration(float(np.max(watch.every)))}, {terms.sigmas:g} deviations",
            replace(run, checks=watch), "000's check of gradients, 7.2 min a time"
            if terms.check_pct is None else "as set")  # fmt: skip
    else:
        add("No validation", replace(run, checks=None),
            f"errors show after {found['unseen'].likely:g} days")  # fmt: skip
    least = best_watch(run, watch)
    if plan.in_step and least is not None and float(np.max(least.every)) < plan.useful_hours:
        sigmas = float(np.max(least.sigmas))
        add(f"Validation every {duration(float(np.max(least.every)))}, {number(sigmas, digits=2)} "
            "deviations", replace(run, checks=least), "as often as loses least"
            + (", about one false alarm a month" if sigmas > terms.sigmas else ""))  # fmt: skip
    faster = parameter("checkpoint_stall_h").low
    if float(np.max(run.save)) > faster:
        add("Checkpoints in the background", replace(run, save=faster, interval=None),
            f"a stall of {duration(faster)}: copy to the host, write while it goes on")  # fmt: skip
    if plan.spot:
        paid = plan.ordinary_usd
        at = plan if paid is None else replace(plan, usd_per_device_hour=paid)
        add("Without spot interruptions" if paid is None else
            f"On demand, at {money(paid)} a {plan.unit}-hour",
            replace(run, reclaims=0.0, requeue=0.0, had=1.0),
            "at the same price" if paid is None else "nobody takes the machines back",
            at)  # fmt: skip
    return tuple(rows)


def best_watch(run: RunConditions, watch: Checks) -> Checks | None:
    """The watch that loses least: its interval, and no more than about one false alarm a month.

    A check takes as long as that of `watch`, and false alarms add to it. None where checks or
    errors take no time.
    """
    one = float(np.max(watch.every)) * float(np.max(watch.share))
    machines = float(np.max(run.machines))
    errors = float(np.max(run.silent)) * machines
    if not (one > 0 and errors > 0):
        return None
    every = float(best_check_interval(one, errors))
    tests = machines * HOURS_PER_MONTH / every
    sigmas = max(float(np.max(watch.sigmas)), float(alarm_threshold(tests, min(1.0, tests))))
    pause = float(false_alarms(machines, sigmas)) * float(np.max(watch.pause))
    every = float(best_check_interval(one + pause, errors))
    return Checks(every, one / every, sigmas, watch.pause)


def spot_break_even(plan: RunPlan, terms: ReliabilityTerms) -> float:
    """Share of the ordinary price below which spot machines make this run cheaper."""
    on = replace(plan, spot=True)
    off = replace(plan, spot=False)
    paid = [
        float(outcome(conditions(p, terms, known(p, terms))).paid_hours) for p in (off, on)
    ]  # fmt: skip
    return paid[0] / paid[1]


def spot_words(plan: RunPlan, terms: ReliabilityTerms) -> str:
    """The price below which spot machines make the run cheaper, and whether theirs is."""
    share = spot_break_even(plan, terms)
    if share < 0.01:
        return (
            "Spot machines don't make this run cheaper at any price: interruptions come faster "
            "than it gets on."
        )
    said = (
        f"Spot machines make this run cheaper where they cost less than {share:.0%} of the "
        "ordinary price, interruptions and restarts counted."
    )
    if plan.spot_usd is None or plan.ordinary_usd is None:
        return said
    part = plan.spot_usd / plan.ordinary_usd
    verdict = "cheaper" if part < share else "not cheaper"
    return (
        f"{said} Here they cost {money(plan.spot_usd)} against {money(plan.ordinary_usd)} a "
        f"{plan.unit}-hour, {part:.0%}: {verdict}."
    )


def _sayings(
    plan: RunPlan, run: RunConditions, point: RunOutcome, pause: float
) -> tuple[Saying, ...]:
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
               f"Every 15 minutes leaves {share_said(share(0.25))} useful, every {duration(best)} "
               f"{share_said(share(best))}. 15 minutes with that stall is right for about "
               f"{two_digits(fits):,} GPUs."),
        Saying("003", "C294", "A failure eight hours after the last checkpoint cost $3,600",
               f"Here eight hours of the fleet cost {spent(8 * fleet)}; at the best interval a "
               f"failure costs {spent((best / 2 + float(np.max(run.restart))) * fleet)}."),
    ]  # fmt: skip
    if plan.in_step:
        found += [
            Saying("000", "C068, C070", "Validation every six hours costs 2% of the time",
                   _validation(run, pause)),
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


def _validation(run: RunConditions, pause: float) -> str:
    every, cost = value("checkpoint_000_hours"), value("checkpoint_000_share")

    def useful(checks: Checks | None) -> float:
        return float(outcome(replace(run, checks=checks)).useful)

    without, checked = useful(None), useful(Checks(every, cost))
    paused = useful(Checks(every, cost, 3.0, pause))
    verdict = "it pays" if checked > without else "it is insurance, dearer than what it saves"
    alarms = ""
    if paused < checked - 0.0005:
        alarms = f" Pauses for false alarms at 3 deviations bring it down to {share_said(paused)}."
    return (
        f"Without it {share_said(without)} is useful, with it {share_said(checked)}: "
        f"{verdict}, at the rate of silent errors that nobody looks for.{alarms}"
    )
