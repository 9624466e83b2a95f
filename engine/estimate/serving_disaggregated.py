"""Prefill and decoding on replicas of their own: neither disturbs the other, the cache travels.

Each pool takes the layout of the machine that needs the fewest machines. A prefill replica is one
whose answers end with their first token; a decoding replica meets no prompts. Both are sized by
the formulae of the replica that does both. Times in seconds, rates per second.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from engine.estimate.named import named
from engine.estimate.serving import cache_bytes, decode_seconds, engines_of, loads_of
from engine.estimate.serving_layouts import Candidate, Layout, candidates
from engine.estimate.serving_plan import (
    HOURS_PER_MONTH,
    PARAMETERS,
    ServingAsk,
    ServingOption,
    with_spare,
)
from engine.estimate.serving_points import at_rate, curve, room
from engine.estimate.serving_queue import RESERVE, per_sequence, step_of_an_answer


@dataclass(frozen=True, slots=True)
class Disaggregated:
    """Replicas for prompts and for decoding, and what they do together at the peak.

    `handover_s` : from one pool to the other, the travel of the cache included; `machines` with
    the spare ones of either pool; `usd_per_month` of so many, kept around the clock
    """

    prefill: Layout
    decode: Layout
    prefill_replicas: int
    decode_replicas: int
    machines: int
    ttft_s: float
    tpot_s: float
    handover_s: float
    usd_per_month: float


@dataclass(frozen=True, slots=True)
class _Pool:
    """Replicas of one kind, their machines with the spare ones, and their latency at the peak."""

    candidate: Candidate
    replicas: int
    machines: int
    seconds: float
    handover_s: float = 0.0


def disaggregated(option: ServingOption, ask: ServingAsk) -> Disaggregated | None:
    """The option's machine with prefill and decoding apart, sized for the peak.

    None where it can't be: no traffic, a CPU server (nothing is gained), answers of one token, or
    targets that a pool does not meet. The first token waits for its prompt, for the handover and
    for one step of decoding.
    """
    peak = ask.traffic.peak * ask.room
    machine = option.candidate.machine
    if peak <= 0 or machine.hardware == "cpu" or ask.load.output_tokens <= 1.0:
        return None
    tried = candidates(ask.shape, machine, ask.precision, ask.load, ask.targets)
    fitting = [c for c in tried if c.capacity.fits]
    decode = _fewest(_decode_pool(c, ask, peak) for c in fitting)
    if decode is None:
        return None
    prefill = _fewest(_prefill_pool(c, ask, peak, decode.seconds) for c in fitting)
    if prefill is None:
        return None
    machines = prefill.machines + decode.machines
    each = machine.per_machine * machine.usd_per_unit_hour.likely
    first = prefill.seconds + prefill.handover_s + decode.seconds
    return Disaggregated(
        prefill.candidate.layout, decode.candidate.layout, prefill.replicas, decode.replicas,
        machines, first, decode.seconds, prefill.handover_s, machines * each * HOURS_PER_MONTH,
    )  # fmt: skip


def handover_seconds(c: Candidate, input_tokens: float) -> float:
    """Seconds from a prompt's end to its first step of decoding: what routing costs, and the cache
    over the network of the prefill replica's GPUs.
    """
    parameters = named(PARAMETERS)
    network = parameters["disaggregated_network_gb_per_s"].likely * 1e9 * c.layout.gpus
    share = parameters["disaggregated_kv_share"].likely
    cache = float(cache_bytes(c.replica.net, c.replica.plan, input_tokens))
    return parameters["disaggregated_handover_s"].likely + cache / (network * share)


def _fewest(pools: Iterator[_Pool | None]) -> _Pool | None:
    """The pool of the fewest machines, of equals the faster."""
    found = (p for p in pools if p is not None)
    return min(found, key=lambda p: (p.machines, p.seconds + p.handover_s), default=None)


def _pool(c: Candidate, ask: ServingAsk, peak: float, carried: float) -> tuple[int, int] | None:
    """Replicas that each carry so many requests a second, and their machines; None for none."""
    if carried <= 0:
        return None
    replicas = max(math.ceil(peak / carried - 1e-9), 1)
    return replicas, int(with_spare(c, np.array(replicas), ask))


def _prefill_pool(c: Candidate, ask: ServingAsk, peak: float, step_s: float) -> _Pool | None:
    """Fewest replicas whose prompts leave time for the handover and a step of decoding."""
    handover = handover_seconds(c, ask.load.input_tokens)
    load = replace(ask.load, output_tokens=1.0)
    points = curve(c.replica, load, ask.targets.percentile)
    if not len(points.rate):
        return None
    # The points are few where answers end at once: look between them.
    most = float(points.rate[-1]) * ask.targets.max_load
    rates = np.linspace(min(float(points.rate[0]), most), most, 400)
    inside = np.ones(len(rates), dtype=bool)
    if ask.targets.ttft_s is not None:
        left = ask.targets.ttft_s * (1.0 - RESERVE) - handover - step_s
        inside = np.interp(rates, points.rate, points.ttft_target) <= left
    if not inside.any():
        return None
    sized = _pool(c, ask, peak, float(rates[inside].max()))
    if sized is None:
        return None
    first = at_rate(points, peak / sized[0]).ttft_target_s
    return _Pool(c, *sized, first, handover)


def _decode_pool(c: Candidate, ask: ServingAsk, peak: float) -> _Pool | None:
    """Fewest replicas inside the target per token: B = λ·(O − 1)·t(B), no prompts between."""
    r, load = c.replica, ask.load
    batch = loads_of(room(r, load), engines_of(r.plan))[None]
    context = load.input_tokens + load.output_tokens / 2.0
    step = np.asarray(decode_seconds(r.net, r.hw, r.plan, r.eff, batch, context))
    tpot = step_of_an_answer(step, per_sequence(step, batch), batch)[0]
    rate = batch[0] / (max(load.output_tokens - 1.0, 0.5) * tpot)
    good = rate <= float(rate.max()) * ask.targets.max_load
    if ask.targets.tpot_s is not None:
        good &= tpot <= ask.targets.tpot_s * (1.0 - RESERVE)
    if not good.any():
        return None
    place = int(np.flatnonzero(good)[np.argmax(rate[good])])
    sized = _pool(c, ask, peak, float(rate[place]))
    if sized is None:
        return None
    here = float(np.interp(peak / sized[0], rate[: place + 1], tpot[: place + 1]))
    return _Pool(c, *sized, here)
