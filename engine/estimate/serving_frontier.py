"""Dollars against latency, and the plan simulated.

The frontier takes every candidate at every load it can be run at: a replica that is run less full
answers faster and costs more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.errors import InputError
from engine.estimate.estimate import Estimate
from engine.estimate.serving_layouts import Candidate
from engine.estimate.serving_plan import (
    HOURS_PER_MONTH,
    ServingAnswer,
    ServingAsk,
    ServingOption,
    by_cost,
    fleet_usd,
    plan_message,
    plan_notes,
    size,
)
from engine.estimate.serving_points import At, at_rate, curve, simulate
from engine.estimate.simulate_serving import Simulated

# Share of more replicas that the simulation may ask for.
MOST_MORE_REPLICAS = 0.25
# A point of the frontier is faster than the one before by a twentieth at least, and none costs
# more than so many times the cheapest.
FASTER, DEAREST = 0.95, 12.0


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """One way to run a candidate: seconds per token, seconds to the first, dollars a month."""

    candidate: Candidate
    tpot_s: float
    ttft_s: float
    usd_per_month: float
    machines: int


def frontier(candidates: Sequence[Candidate], ask: ServingAsk) -> tuple[FrontierPoint, ...]:
    """The cheapest way to each time per token inside the target to the first token.

    Points in the order of falling cost and growing time; each is cheaper than all faster ones.
    """
    if ask.traffic.mean <= 0:
        return ()
    rows: list[tuple[float, float, float, float, int]] = []
    for number, c in enumerate(candidates):
        points = curve(c.replica, ask.load, ask.targets.percentile)
        if not len(points.rate):
            continue
        # A rate of less than a thousandth of the largest is a replica for one reader.
        most = float(points.rate[-1]) * ask.targets.max_load
        inside = (points.rate <= most) & (points.rate > most / 1000.0)
        if ask.targets.ttft_s is not None:
            inside &= points.ttft_target <= ask.targets.ttft_s
        if not inside.any():
            continue
        # The fullest that the targets allow lies between two points of the curve.
        fullest = min(float(c.capacity.requests_per_s), most)
        rate = np.append(points.rate[inside], [fullest] if fullest > 0 else [])
        tpot = np.interp(rate, points.rate, points.tpot_mean)
        ttft = np.interp(rate, points.rate, points.ttft_target)
        usd = fleet_usd(c, ask, rate, np.full(len(rate), ask.traffic.mean))
        rows += [
            (float(u), float(t), float(f), float(r), number)
            for u, t, f, r in zip(usd, tpot, ttft, rate, strict=True)
        ]
    rows.sort()
    best: list[FrontierPoint] = []
    for dollars, tpot, ttft, _, number in rows:
        if best and (tpot >= best[-1].tpot_s * FASTER or dollars > best[0].usd_per_month * DEAREST):
            continue
        c = candidates[number]
        each = c.machine.per_machine * c.machine.usd_per_unit_hour.likely
        best.append(FrontierPoint(c, tpot, ttft, dollars, round(dollars / each / HOURS_PER_MONTH)))
    return tuple(best)


# ---- simulation ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Check:
    """The plan simulated at its peak, beside the closed form, and what follows for the replicas.

    `replicas` : enough in the simulation (the plan's own where it holds), `enough` whether they
    are; `holds` : the plan's own number meets the targets in the simulation; `usd_per_month` of
    so many, by the scaling asked for; `corrected` : the plan with so many, None where it holds or
    none are enough
    """

    simulated: Simulated
    planned: At
    replicas_planned: int
    replicas: int
    enough: bool
    holds: bool
    usd_per_month: float
    ttft_s: float
    ttft_off: float
    tpot_off: float
    corrected: ServingOption | None = None


def check_plan(
    option: ServingOption, ask: ServingAsk, *, requests: int = 6000, seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Check:  # fmt: skip
    """Simulate one replica of the plan at the peak; add replicas until the targets hold.

    Raises
    ------
    InputError : where nothing comes, or a quarter more replicas do not help
    """
    planned = option.replicas
    if planned < 1:
        raise InputError("nothing comes, so there is nothing to simulate", where="rate",
                         right="a rate above 0")  # fmt: skip
    percentile = ask.targets.percentile
    seen: Simulated | None = None
    first: Simulated | None = None
    count = planned
    most = planned + max(math.ceil(planned * MOST_MORE_REPLICAS), 2)
    enough = False
    while count <= most:
        try:
            seen = simulate(
                option.candidate.replica, ask.load, ask.traffic.peak / count, requests=requests,
                seed=seed, progress=progress,
            )  # fmt: skip
        except InputError:
            seen = None
        if first is None:
            first = seen
        if seen is not None and _inside(seen, ask):
            enough = True
            break
        count += max(planned // 50, 1)
    if seen is None or first is None:
        raise InputError(
            "the queue of the simulated replica grows without end", where="rate",
            right="more replicas",
        )  # fmt: skip
    at = at_rate(curve(option.candidate.replica, ask.load, percentile), ask.traffic.peak / planned)
    ttft = _percentile(first, percentile)
    count = min(count, most)
    holds = enough and count == planned
    more = _with_replicas(option, ask, count)
    return Check(
        first, at, planned, count, enough, holds, more.usd_per_month.likely, ttft,
        ttft / at.ttft_target_s - 1.0, first.tpot_mean_s / at.tpot_mean_s - 1.0,
        _as_simulated(more, seen, percentile) if enough and not holds else None,
    )  # fmt: skip


def _with_replicas(option: ServingOption, ask: ServingAsk, count: int) -> ServingOption:
    """The same machines with so many replicas at the peak, each carrying as much less."""
    c = option.candidate
    carried = ask.traffic.peak * ask.room / count
    less = carried / float(c.capacity.requests_per_s)
    known = c.capacity.requests
    requests = Estimate(
        known.low * less, known.likely * less, known.high * less, known.unit, known.sources
    )
    capacity = replace(c.capacity, requests_per_s=carried, requests=requests)
    return size(replace(c, capacity=capacity), ask)


def _as_simulated(option: ServingOption, seen: Simulated, percentile: float) -> ServingOption:
    """The option with what the simulation saw in place of the closed form's latencies."""
    at = replace(
        option.at_peak, batch=seen.batch_mean, ttft_mean_s=seen.ttft_mean_s,
        ttft_target_s=_percentile(seen, percentile), ttft_p99_s=seen.ttft_p99_s,
        tpot_mean_s=seen.tpot_mean_s,
    )  # fmt: skip
    return replace(option, at_peak=at)


def with_option(answer: ServingAnswer, option: ServingOption) -> ServingAnswer:
    """The answer with another plan for the same machine and layout, ordered and told anew."""
    options = sorted((option if o.id == option.id else o for o in answer.options), key=by_cost)
    best = options[0]
    return replace(
        answer, options=tuple(options), message=plan_message(best, answer.ask),
        notes=plan_notes(best, answer.ask),
    )  # fmt: skip


def _percentile(seen: Simulated, percentile: float) -> float:
    """The simulation tells the 95th and the 99th; any other is taken from the nearer one."""
    return seen.ttft_p99_s if percentile > 0.97 else seen.ttft_p95_s


def _inside(seen: Simulated, ask: ServingAsk) -> bool:
    targets = ask.targets
    if seen.growing:
        return False
    if targets.tpot_s is not None and seen.tpot_mean_s > targets.tpot_s:
        return False
    return targets.ttft_s is None or _percentile(seen, targets.percentile) <= targets.ttft_s
