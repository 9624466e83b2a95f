"""The two curves of a run: useful time over the size of the cluster and over the interval of saves.

Each carries the range that holds in 8 of 10 cases, the run of the page, and what others published.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from engine.assessment import Assessment
from engine.estimate.failure_rates import fleets
from engine.estimate.run_reliability import best_spares, outcome
from engine.estimate.whole_run import restart_hours
from engine.explain.reliability import Reliability, reliability
from engine.explain.reliability_words import share_said, two_digits
from engine.explain.run_conditions import conditions, draws, known, run_plan
from engine.wording import count, duration
from engine.workload.reliability_terms import ReliabilityTerms

Points = tuple[tuple[float, float], ...]
Bands = tuple[tuple[float, float, float], ...]

SIZES = (1, 131_072)  # of the clusters in the picture, in devices
LEAST_SHARE = 90.0  # percent, the share that the message names
HOPELESS = 0.01  # useful share below which no interval is worth a picture's advice
LONGEST_TRIED = 24.0  # hours between checkpoints in the picture, at least


@dataclass(frozen=True, slots=True)
class SizeCurve:
    """Useful share of the time against the size of the cluster, with the range and the fleets.

    band : size, low and high share in percent; points : the likely one
    best : the same otherwise guarded, dashed: without interruptions where the plan is on spot,
        without spares where as many stand by as pay, else with those that pay
    own : the run of the page; published : size, share in percent, name, bound, source
    """

    points: Points
    band: Bands
    best: Points
    own: tuple[float, float]
    published: tuple[tuple[float, float, str, str, str], ...]
    title: str
    message: str


@dataclass(frozen=True, slots=True)
class IntervalCurve:
    """Useful share of the time against the interval of checkpoints, in minutes and percent."""

    points: Points
    band: Bands
    marks: tuple[tuple[float, str], ...]
    title: str
    message: str


@dataclass(frozen=True, slots=True)
class Shown:
    """The whole page of a run: figures and both curves."""

    figures: Reliability
    sizes: SizeCurve
    intervals: IntervalCurve


def shown(answer: Assessment, terms: ReliabilityTerms) -> Shown:
    """Figures and curves of a run.

    Raises
    ------
    InputError : the terms name a fleet that is not known
    """
    return Shown(
        reliability(answer, terms), size_curve(answer, terms), interval_curve(answer, terms)
    )


def size_curve(answer: Assessment, terms: ReliabilityTerms) -> SizeCurve:
    """Goodput against the size of the cluster, this run marked and published runs beside it."""
    plan = run_plan(answer, terms)
    found = known(plan, terms)
    z = draws(found)
    machines = np.unique(np.round(np.geomspace(*SIZES, 35) / plan.per_machine).clip(1))
    own_run, own_draws = conditions(plan, terms, found), conditions(plan, terms, found, z)
    points, band, best = [], [], []
    free = terms.spares is None
    for n in machines:
        devices = float(n * plan.per_machine)
        likely = replace(own_run, devices=devices, spares=0)
        drawn = replace(own_draws, devices=devices)
        if plan.in_step and plan.unit == "GPU" and terms.restart_min is None:
            # A larger fleet restarts faster, a smaller one slower, all draws by as much.
            times = float(restart_hours(devices) / restart_hours(float(plan.devices)))
            likely = replace(likely, restart=own_run.restart * times)
            drawn = replace(drawn, restart=own_draws.restart * times)
        pays = best_spares(likely)
        spares = pays if free else _scaled(own_run.spares, n, plan.machines)
        likely, drawn = replace(likely, spares=spares), replace(drawn, spares=spares)
        low, high = np.quantile(np.asarray(outcome(drawn).useful), [0.1, 0.9]) * 100
        at = float(outcome(likely).useful) * 100
        points.append((devices, at))
        band.append((devices, min(float(low), at), max(float(high), at)))
        if plan.spot:
            guarded = replace(likely, reclaims=0.0, requeue=0.0, had=1.0)
        else:
            guarded = replace(likely, spares=0 if free else pays)
        best.append((devices, float(outcome(guarded).useful) * 100))
    own = float(outcome(own_run).useful) * 100
    title = f"{count(plan.devices, plan.unit)}: {share_said(own / 100)} of the paid time is useful"
    reach = _reach(points, plan.unit)
    cause, dashed = (
        ("the rate of spot interruptions, which nobody publishes by the hour",
         "is without spot interruptions")
        if plan.spot else
        ("the rate of failures, which differs sixfold between published fleets",
         "has no spare machine" if free else "has as many spare machines as pay for themselves")
    )  # fmt: skip
    return SizeCurve(
        tuple(points), tuple(band), tuple(best), (float(plan.devices), own), _published(), title,
        f"{reach}The band holds in 8 of 10 cases: most of it is {cause}. The dashed line {dashed}.",
    )  # fmt: skip


def interval_curve(answer: Assessment, terms: ReliabilityTerms) -> IntervalCurve:
    """Goodput against the interval of checkpoints, with the best one and the articles'."""
    plan = run_plan(answer, terms)
    found = known(plan, terms)
    likely, drawn = conditions(plan, terms, found), conditions(plan, terms, found, draws(found))
    best = float(outcome(likely).best_interval)
    # Wide enough for both articles' marks and for what the user has set; an interval beyond the
    # run is one save at its end.
    wide = max(best * 6, LONGEST_TRIED, (terms.interval_min or 0) / 60 * 1.5)
    at = np.geomspace(min(best / 20, 0.1), wide, 60)
    share = np.asarray(outcome(replace(likely, interval=at)).useful) * 100
    spread = [np.asarray(outcome(replace(drawn, interval=float(t))).useful) * 100 for t in at]
    ends = np.quantile(np.array(spread), [0.1, 0.9], axis=1)
    marks = [(best * 60, "best"), (15.0, "003: 15 min"), (360.0, "000: 6 h")]
    if terms.interval_min is not None:
        marks.append((terms.interval_min, "yours"))
    kept = {h: float(outcome(replace(likely, interval=h)).useful) for h in (best, 0.25, 6.0)}
    title = f"Save every {duration(best)}"
    if plan.in_step and best >= plan.useful_hours * (1 - 1e-9):
        title = "A run this short needs no save before its end"
    message = (
        f"That keeps {share_said(kept[best], 2)} of the time; every 15 minutes "
        f"{share_said(kept[0.25], 2)}, every 6 hours {share_said(kept[6.0], 2)}. The curve is flat "
        "near its top: half or double the best interval costs little, ten times too long costs "
        "much."
    )
    if kept[best] < HOPELESS:
        title = "No interval of checkpoints helps"
        message = (
            f"Even the best, every {duration(best)}, keeps {share_said(kept[best], 2)} of the time."
        )
    return IntervalCurve(
        tuple((float(t) * 60, float(s)) for t, s in zip(at, share, strict=True)),
        tuple(
            (float(t) * 60, float(a), float(b)) for t, a, b in zip(at, *ends, strict=True)
        ),
        tuple(marks),
        title,
        message,
    )  # fmt: skip


def _reach(points: list[tuple[float, float]], unit: str) -> str:
    """The size from which less than 90% is useful, read between two points of the curve."""
    if points[0][1] < LEAST_SHARE:
        return f"It is below {LEAST_SHARE:g}% at every size. "
    for (small, above), (large, below) in pairwise(points):
        if below < LEAST_SHARE:
            part = (above - LEAST_SHARE) / (above - below)
            at = two_digits(small * (large / small) ** part)
            return f"It falls below {LEAST_SHARE:g}% from about {at:,} {unit}s on. "
    return ""


def _scaled(spares: int, machines: float, own: int) -> int:
    """Spare machines of a cluster of another size: the same share of it."""
    return round(spares * machines / own)


def _published() -> tuple[tuple[float, float, str, str, str], ...]:
    return tuple(
        (f.devices, f.useful_share * 100, f.name, f.useful_bound, f.provenance.source)
        for f in fleets().values()
        if f.devices and f.useful_share
    )
