"""Cold starts: how long a replica takes to answer, and what scaling to zero saves and spoils.

The chain is a sum of stages: machine, image, weights, engine, first requests. Its numbers are rows
of `data/cold_start.csv`. Requests come at random, so the time since the last one is exponential:
with an idle timeout T and a rate λ a request finds nobody with probability e^(−λT).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from engine.errors import InputError
from engine.estimate.estimate import Estimate
from engine.estimate.named import Named, named
from engine.estimate.queueing import check
from engine.estimate.traffic import Traffic

TABLE = Path(__file__).resolve().parents[2] / "data" / "cold_start.csv"
WAYS = {
    "new_machine": "A new machine, nothing cached",
    "warm_machine": "A machine that runs for other work too",
    "modal_snapshot": "Modal, from a snapshot",
    "modal": "Modal",
    "runpod": "RunPod serverless",
    "replicate": "Replicate",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the chain [s], with its source."""

    name: str
    seconds: Estimate
    as_of: str


@dataclass(frozen=True, slots=True)
class ColdStart:
    """The chain of one way to start, and its sum [s]."""

    way: str
    title: str
    stages: tuple[Stage, ...]
    seconds: Estimate


def cold_start(weights_gb: float, params_b: float, way: str) -> ColdStart:
    """The chain for a model.

    weights_gb : of all weights in GB (10⁹ bytes); params_b : billions of parameters stored
    way : one of `WAYS`

    Raises
    ------
    InputError : with the field's name
    """
    size = float(check("weights_gb", weights_gb, above=0.0))
    params = float(check("params_b", params_b, above=0.0))
    if way not in WAYS:
        raise InputError(f"{way!r} is no way to start", where="way", right=", ".join(WAYS))
    if way == "new_machine":
        stages = [_fixed("node"), _fixed("image"), _read(size, "weights_remote")]
        stages += _engine(params)
    elif way == "warm_machine":
        stages = [_read(size, "weights_local"), *_engine(params)]
    else:
        key = {"modal_snapshot": "snapshot", "runpod": "runpod"}.get(way, way)
        held = named(TABLE)["snapshot_gb" if way == "modal_snapshot" else "provider_gb"].likely
        stages = [_fixed(f"{key}_start")]
        if size > held:
            # What the measured start did not have to read is read like from a drive.
            stages.append(_read(size - held, "weights_local"))
        beyond = params - named(TABLE)["provider_params_b"].likely
        if way != "modal_snapshot" and beyond > 0:
            # A memory's snapshot has the engine's graphs; the others make them anew.
            stages += _engine_beyond(beyond)
    total = Estimate(
        math.fsum(s.seconds.low for s in stages),
        math.fsum(s.seconds.likely for s in stages),
        math.fsum(s.seconds.high for s in stages),
        "s",
        tuple(dict.fromkeys(x for s in stages for x in s.seconds.sources)),
    )
    return ColdStart(way, WAYS[way], tuple(stages), total)


def article_range() -> Named:
    """What article 003 says of a cold start [s]; shown beside, never a default."""
    return named(TABLE)["article_start"]


def article_budget_s() -> float:
    """The budget below which article 003 wants a persistent cluster [s]."""
    return named(TABLE)["article_budget_ms"].likely / 1000.0


def serverless_premium() -> Named:
    """Rent by the second over rent by the hour of the same GPU."""
    return named(TABLE)["serverless_premium"]


def _fixed(name: str) -> Stage:
    row = named(TABLE)[name]
    return Stage(
        row.description,
        Estimate(row.low, row.likely, row.high, "s", (row.source,)),
        row.as_of.isoformat(),
    )


def _read(gb: float, rate: str) -> Stage:
    row = named(TABLE)[rate]
    seconds = Estimate(gb / row.high, gb / row.likely, gb / row.low, "s", (row.source,))
    return Stage(f"{row.description}: {gb:,.0f} GB", seconds, row.as_of.isoformat())


def _engine(params_b: float) -> list[Stage]:
    """Engine and first requests: a fixed part and one that grows with the parameters."""
    found = []
    for name in ("graphs", "warmup"):
        fixed, each = named(TABLE)[f"{name}_fixed"], named(TABLE)[f"{name}_per_b"]
        seconds = Estimate(
            fixed.low + each.low * params_b,
            fixed.likely + each.likely * params_b,
            fixed.high + each.high * params_b,
            "s",
            (fixed.source,),
        )
        found.append(Stage(_engine_stage(fixed), seconds, fixed.as_of.isoformat()))
    return found


def _engine_stage(fixed: Named) -> str:
    """What happens, without the words that tell the fixed part from the growing one."""
    return fixed.description.split(",")[0]


def _engine_beyond(params_b: float) -> list[Stage]:
    """What engine and first requests take for parameters beyond those of a measured start."""
    found = []
    for name in ("graphs", "warmup"):
        each = named(TABLE)[f"{name}_per_b"]
        seconds = Estimate(
            each.low * params_b, each.likely * params_b, each.high * params_b, "s", (each.source,)
        )
        told = _engine_stage(named(TABLE)[f"{name}_fixed"])
        found.append(Stage(f"{told}, beyond the model measured", seconds, each.as_of.isoformat()))
    return found


@dataclass(frozen=True, slots=True)
class ScaleToZero:
    """What becomes of the traffic when idle replicas are switched off.

    `cold_share` of requests find nothing running or a start under way; `on_share` of the time is
    paid for one replica at least, starts included; `starts_per_day`; the latency [s] at the
    percentile asked for; `percentile_is_cold`: whether a start is part of it.
    """

    cold_share: float
    on_share: float
    starts_per_day: float
    latency_s: float
    percentile_is_cold: bool


def scale_to_zero(
    traffic: Traffic, start_s: float, *, idle_timeout_s: float, warm_s: float, percentile: float
) -> ScaleToZero:
    """Scaling one replica to zero by an idle timeout, hour by hour of the day.

    With λ of an hour: a request is the first after a pause longer than T with probability e^(−λT);
    λ·c more come while it starts for c seconds and wait for the same start. Paid is the time since
    the last request up to T, a share 1 − e^(−λT), and the starts.

    start_s : of a cold start; warm_s : latency of a warm answer; percentile : 0.95 is 95 of 100

    Raises
    ------
    InputError : with the field's name
    """
    c = float(check("start_s", start_s, least=0.0))
    idle = float(check("idle_timeout_s", idle_timeout_s, least=0.0))
    warm = float(check("warm_s", warm_s, least=0.0))
    check("percentile", percentile, above=0.0, below=1.0)
    cold = on = starts = 0.0
    for rate in traffic.hourly:
        begun = _begun(rate, c, idle)
        cold += min(begun * (1.0 + rate * c), rate)
        on += on_share(rate, c, idle)
        starts += begun * 3600.0
    total = math.fsum(traffic.hourly)
    share = cold / total if total > 0 else 1.0
    hit = share > 1.0 - percentile
    return ScaleToZero(share, on / len(traffic.hourly), starts, warm + (c if hit else 0.0), hit)


def on_share(rate: float, start_s: float, idle_timeout_s: float) -> float:
    """Share of the time for which a replica that scales to zero is paid, its starts included."""
    begun = _begun(rate, start_s, idle_timeout_s)
    used = 1.0 - math.exp(-rate * idle_timeout_s)
    return min(used * (1.0 - begun * start_s) + begun * start_s, 1.0)


def _begun(rate: float, start_s: float, idle_timeout_s: float) -> float:
    """Cold starts a second; none begins while one is under way."""
    first = rate * math.exp(-rate * idle_timeout_s)
    return first / (1.0 + first * start_s)


def warm_replicas(traffic: Traffic, start_s: float, capacity_per_s: float) -> int:
    """Replicas to keep warm beyond need, so that a rise during a cold start is carried.

    The steepest rise from one hour to the next happens over an hour, so during a start of c
    seconds the rate grows by that times c/3600, and at least by a share of the peak (bursts that
    an hourly profile does not show).

    Raises
    ------
    InputError : with the field's name
    """
    c = float(check("start_s", start_s, least=0.0))
    each = float(check("capacity_per_s", capacity_per_s, above=0.0))
    if traffic.mean <= 0:
        return 0
    hours, least = traffic.hourly, named(TABLE)["rise_during_start"].likely
    rise = max(hours[(h + 1) % len(hours)] - hours[h] for h in range(len(hours)))
    more = max(rise * traffic.burst * min(c / 3600.0, 1.0), least * traffic.peak)
    return max(math.ceil(more / each - 1e-9), 1)
