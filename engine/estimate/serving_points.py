"""One replica over its whole range of load: rate, latencies and memory, on a GPU or a CPU server.

A replica is the network, the hardware, the layout and the efficiencies that the formulae of
`engine.estimate.serving` read. For GPUs they come from the calibrated model, for CPU servers from
`data/cpu_serving.csv`. The points are those between which `serving_capacity` finds its rate.
Times in seconds, rates per second.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from engine.calibrate.serving_classes import generation_of
from engine.catalogue import Accelerator
from engine.errors import InputError
from engine.estimate.estimate import Estimate
from engine.estimate.jobs import REFERENCE_VCPU
from engine.estimate.named import named
from engine.estimate.queueing import Array
from engine.estimate.serving import (
    CHUNK_TOKENS,
    DEFAULT_ENGINE,
    GIB,
    LOADS,
    MAX_SEQUENCES,
    USABLE_MEMORY,
    Efficiencies,
    Floor,
    Hardware,
    Network,
    Plan,
    ServingCapacity,
    cache_bytes,
    cache_divisor,
    capacity_rows,
    decode_seconds,
    efficiencies_of,
    engines_of,
    loads_of,
    memory_bytes,
    most_sequences,
    network_of,
    prefill_seconds,
    prompt_seconds_shared,
    replica_of,
    serving_capacity,
    shipped_calibration,
    slots,
    stored_bits,
    weight_bytes,
)
from engine.estimate.serving_queue import operating_points
from engine.estimate.shape import ModelShape
from engine.estimate.simulate_serving import Simulated, simulate_serving

CPU_TABLE = Path(__file__).resolve().parents[2] / "data" / "cpu_serving.csv"
Z99 = 2.3263478740408408  # 99th percentile of a normal variable
CPU_SOURCE = "data/cpu_serving.csv: llama.cpp and MLPerf runs on CPUs"


@dataclass(frozen=True, slots=True)
class CpuBox:
    """A CPU server as serving sees it: vCPU, memory [GB], bandwidth [GB/s], 16-bit peak [GFLOP/s].

    None for what the catalogue does not list: then the share of a 96-vCPU server is taken.
    """

    vcpu: float
    memory_gb: float
    bandwidth_gb_per_s: float | None = None
    peak_bf16_gflops: float | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """Lengths of requests and what of a prompt is found in the prefix cache."""

    input_tokens: float
    output_tokens: float
    prefix_hit: float = 0.0
    length_cv: float = 0.8

    @property
    def own_tokens(self) -> float:
        """Tokens of a prompt that are worked through."""
        return max(self.input_tokens * (1.0 - self.prefix_hit), 1.0)

    @property
    def cached_tokens(self) -> float:
        """Tokens of a prompt that are found in the prefix cache."""
        return max(self.input_tokens - self.own_tokens, 0.0)


@dataclass(frozen=True, slots=True)
class Replica:
    """What the formulae read of one replica, the usable share of its memory, and its band.

    `width` : log half width of the 80% range of its times; `calibrated` : whether runs of this
    hardware were fitted
    """

    net: Network
    hw: Hardware
    plan: Plan
    eff: Efficiencies
    usable: float
    width: float
    calibrated: bool

    @property
    def gpus(self) -> int:
        """Accelerators (or servers) of the replica."""
        return int(self.plan.tp) * int(self.plan.pp)


@dataclass(frozen=True, slots=True)
class Targets:
    """Largest seconds to the first token, at a percentile, and per further token, in the mean."""

    ttft_s: float | None
    tpot_s: float | None
    percentile: float = 0.95
    max_load: float = 0.85


@dataclass(frozen=True, slots=True)
class Curve:
    """A replica by load: rate, answers under way, latencies, all arrays of the same length.

    `ttft_target` is at the percentile of the targets; `ttft_p99`, `tpot_p99` at the 99th.
    Points without a steady state are left out.
    """

    rate: Array
    batch: Array
    ttft_mean: Array
    ttft_target: Array
    ttft_p99: Array
    tpot_mean: Array
    tpot_p99: Array
    prefill_share: Array


@dataclass(frozen=True, slots=True)
class At:
    """A replica at one rate; infinite latencies beyond what it carries."""

    rate: float
    batch: float
    ttft_mean_s: float
    ttft_target_s: float
    ttft_p99_s: float
    tpot_mean_s: float
    tpot_p99_s: float
    prefill_share: float


def gpu_replica(
    shape: ModelShape, accelerator: Accelerator, tp: int, pp: int, attention_dp: bool,
    weight_bits: float, kv_bytes: float, engine: str = DEFAULT_ENGINE,
) -> Replica:  # fmt: skip
    """A replica on GPUs, as the calibrated model knows it."""
    net, hw, plan, eff = replica_of(
        shape, accelerator, tp, pp, attention_dp, weight_bits, kv_bytes, engine
    )
    cal, generation = shipped_calibration(), generation_of(accelerator.sku)
    return Replica(
        net, hw, plan, eff, USABLE_MEMORY,
        cal.half_width("itl_closed", generation, engine), cal.is_calibrated(generation),
    )  # fmt: skip


def cpu_replica(shape: ModelShape, box: CpuBox, weight_bits: float, kv_bytes: float) -> Replica:
    """A replica on one CPU server: the same formulae with the shares of `data/cpu_serving.csv`.

    Weights are unpacked to 16 bits before they are multiplied. No calibration: a wide band.

    Raises
    ------
    InputError : when the server states no size
    """
    if not (box.vcpu > 0 and box.memory_gb > 0):
        raise InputError("it states no size", where="server", right="vCPU and memory above 0")
    table = {name: row.likely for name, row in named(CPU_TABLE).items()}
    share = box.vcpu / REFERENCE_VCPU
    bandwidth = box.bandwidth_gb_per_s or table["reference_bandwidth_gb_per_s"] * share
    peak = box.peak_bf16_gflops or table["reference_bf16_gflops"] * share
    bits = shape.quantized_bits or weight_bits
    hw = Hardware(peak * 1e9, peak * 1e9, bandwidth * 1e9, 1e9, 1.0, 1e9, box.memory_gb * 1e9)
    # What GPUs and CPUs share by nature (memory of weights and caches, experts) is kept.
    usual = efficiencies_of("hopper", DEFAULT_ENGINE, "16", "dense", "16")
    eff = replace(
        usual,
        weight_read=table["bandwidth_share"], kv_read=table["bandwidth_share"],
        matmul=table["compute_share"], matmul_decode=table["decode_compute_share"],
        attention=table["attention_share"], narrow=0.0,
        step_us=table["step_ms"] * 1e3, layer_us=0.0, sequence_us=table["sequence_ms"] * 1e3,
        allreduce_us=0.0, prefill_ms=table["prefill_ms"], prefill_token_us=0.0,
        engine_gib=table["engine_gb"] * 1e9 / GIB, group_gib=0.0, peer_gib=0.0,
    )  # fmt: skip
    plan = Plan(1.0, 1.0, 0.0, stored_bits(bits) / 8.0, kv_bytes)
    return Replica(
        network_of(shape), hw, plan, eff, USABLE_MEMORY, math.log(table["band"]) / 2.0, False
    )


def room(replica: Replica, load: Load) -> float:
    """Answers that a replica has memory for at once; below 1 the model or one request won't fit."""
    context = load.input_tokens + load.output_tokens
    fit = float(slots(replica.net, replica.hw, replica.plan, replica.eff, context, replica.usable))
    return min(fit, float(most_sequences(replica.plan)))


@lru_cache(maxsize=4096)
def curve(replica: Replica, load: Load, percentile: float, slow: float = 1.0) -> Curve:
    """The replica over its whole range of load.

    slow : factor on all times, for the ends of the band
    """
    batch, step, alone, shared = _seconds(replica, load, slow)
    answer = np.full((1, 1), load.output_tokens)
    own = np.full((1, 1), load.own_tokens)

    def points(p: float | None) -> tuple[Array, Array, Array]:
        found = operating_points(
            batch, step, alone, shared, own, answer, percentile=p, cv=load.length_cv
        )
        return found.rate[0], found.ttft[0], found.tpot[0]

    rate, mean, tpot = points(None)
    target, last = points(percentile)[1], points(0.99)[1]
    prefill = np.broadcast_to(shared[0], rate.shape)
    slowest = tpot + _unlucky(batch[0], tpot, rate, prefill, load)
    steady = np.isfinite(mean) & np.isfinite(tpot)
    # Beyond the largest rate more load only queues.
    rising = np.concatenate([[True], np.diff(np.maximum.accumulate(rate)) > 0])
    keep = steady & rising
    share = prefill * rate
    # A lone prompt is charged what a batch of prompts would share: no load is slower than more.
    firsts = (np.minimum.accumulate(x[keep][::-1])[::-1] for x in (mean, target, last))
    rest = (x[keep] for x in (tpot, slowest, share))
    return Curve(rate[keep], batch[0][keep], *firsts, *rest)


def _unlucky(batch: Array, tpot: Array, rate: Array, prefill: Array, load: Load) -> Array:
    """What the 99th percentile of answers pays per token beyond the mean [s].

    Two causes, whose squares add. The number under way varies like a Poisson's and hardly changes
    while one answer is written. And an answer of n tokens meets λ·n·t prefills of S seconds, as
    chance has it: a variance per token of λ·t·E[S²]/n, the larger the shorter the answer, and
    larger still where prefills queue. n two standard deviations below the median and the power
    0.8 were found by simulation: within 8% from a light load to 0.95 of capacity, six replicas.
    """
    crowd = np.minimum(batch + Z99 * np.sqrt(batch), batch[-1])
    crowded = np.maximum(np.interp(crowd, batch, tpot) - tpot, 0.0)
    sigma = math.sqrt(math.log1p(load.length_cv**2))
    short = max(load.output_tokens * math.exp(-(sigma**2) / 2.0 - 2.0 * sigma), 2.0)
    squares = rate * tpot * prefill**2 * (1.0 + load.length_cv**2) / short
    queued = np.maximum(1.0 - rate * prefill, 0.02) ** 0.8
    return np.asarray(np.hypot(crowded, Z99 * np.sqrt(np.maximum(squares, 0.0)) / queued))


def _seconds(replica: Replica, load: Load, slow: float) -> tuple[Array, Array, Array, Array]:
    """Loads; seconds of a step, a lone prompt and a shared one, as in `serving_capacity`."""
    net, hw, plan, eff = replica.net, replica.hw, replica.plan, replica.eff
    context = load.input_tokens + load.output_tokens / 2.0
    own, cached = load.own_tokens, load.cached_tokens
    alone = slow * np.asarray(prefill_seconds(net, hw, plan, eff, 1.0, own, cached)).reshape(1, 1)
    lightest = slow * np.asarray(decode_seconds(net, hw, plan, eff, LOADS[0], context))
    half = max(load.output_tokens - 1.0, 0.5) * lightest / alone
    batch = loads_of(room(replica, load), engines_of(plan), half)
    step = slow * np.asarray(decode_seconds(net, hw, plan, eff, batch, context))
    shared = slow * np.asarray(prompt_seconds_shared(net, hw, plan, eff, own, cached))
    shared = shared.reshape(1, 1)
    return batch, step, alone, shared


def at_rate(found: Curve, rate: float) -> At:
    """The replica at a rate; at a rate of 0 that of a lone request."""
    if not len(found.rate) or rate > float(found.rate[-1]) * (1 + 1e-9):
        never = math.inf
        return At(rate, never, never, never, never, never, never, 1.0)

    def value(column: Array) -> float:
        return float(np.interp(rate, found.rate, column))

    return At(
        rate, value(found.batch) if rate > 0 else 0.0, value(found.ttft_mean),
        value(found.ttft_target), value(found.ttft_p99), value(found.tpot_mean),
        value(found.tpot_p99), value(found.prefill_share) if rate > 0 else 0.0,
    )  # fmt: skip


@lru_cache(maxsize=8192)
def gpu_capacity(
    shape: ModelShape, accelerator: Accelerator, tp: int, pp: int, attention_dp: bool,
    weight_bits: float, kv_bytes: float, engine: str, load: Load, targets: Targets,
) -> ServingCapacity:  # fmt: skip
    """`serving_capacity` of a layout, kept: sliders of rate and price ask for it again."""
    return serving_capacity(
        shape, accelerator, tp, load.input_tokens, load.output_tokens,
        weight_bits=weight_bits, kv_bytes=kv_bytes, ttft_target_s=targets.ttft_s,
        tpot_target_s=targets.tpot_s, load=targets.max_load, percentile=targets.percentile,
        pp=pp, attention_dp=attention_dp, engine=engine, prefix_hit=load.prefix_hit,
        length_cv=load.length_cv,
    )  # fmt: skip


@lru_cache(maxsize=2048)
def cpu_capacity(replica: Replica, load: Load, targets: Targets) -> ServingCapacity:
    """What a CPU server carries inside the targets, told like a GPU's."""
    most = room(replica, load)
    fits = most >= 1.0
    slow = np.exp(np.array([[0.0], [replica.width], [-replica.width]]))
    rows = capacity_rows(
        replica.net, replica.hw, replica.plan, replica.eff, np.full((1, 1), load.input_tokens),
        np.full((1, 1), load.output_tokens), slow, ttft_target_s=targets.ttft_s,
        tpot_target_s=targets.tpot_s, load=targets.max_load, percentile=targets.percentile,
        prefix_hit=load.prefix_hit, length_cv=load.length_cv,
    )  # fmt: skip
    rates = np.broadcast_to(rows.rate, (3,)).tolist()
    batch_at = float(np.ravel(rows.batch)[0])
    floor: Floor = rows.bound if fits else "memory"
    if fits and rows.bound == "load" and most < MAX_SEQUENCES:
        floor = "batch"
    lone = at_rate(curve(replica, load, targets.percentile), 0.0)
    wide = math.exp(replica.width)
    ordered = sorted(rates)
    context = load.input_tokens + load.output_tokens
    memory = memory_bytes(
        replica.net, replica.plan, replica.eff, batch_at, context, CHUNK_TOKENS
    )  # fmt: skip
    seen = (float(np.ravel(x)[0]) for x in (rows.ttft, rows.tpot))
    first, per = (x if math.isfinite(x) else 0.0 for x in seen)
    return ServingCapacity(
        rates[0], batch_at, first, per, float(memory) / GIB, fits, floor, lone.ttft_target_s,
        lone.tpot_mean_s, most, False,
        Estimate(ordered[0], rates[0], ordered[-1], "requests/s", (CPU_SOURCE,)),
        Estimate(first / wide, first, first * wide, "s", (CPU_SOURCE,)),
        Estimate(per / wide, per, per * wide, "s", (CPU_SOURCE,)),
        ("a CPU's capacity is not calibrated: the range is threefold",),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """A part of the memory of the fullest GPU (or server) [GiB]."""

    name: str
    gib: float


def memory_items(replica: Replica, load: Load, batch: float) -> tuple[MemoryItem, ...]:
    """Memory of the fullest GPU by what it is for; the sum is `serving.memory_bytes`."""
    net, plan, eff = replica.net, replica.plan, replica.eff
    context = load.input_tokens + load.output_tokens
    whole = float(memory_bytes(net, plan, eff, batch, context, CHUNK_TOKENS))
    weights = float(weight_bytes(net, plan) * eff.weight_memory)
    one = float(cache_bytes(net, plan, context) / (cache_divisor(net, plan) * plan.pp))
    cache = batch * one * float(eff.cache_memory)
    nothing = float(memory_bytes(net, plan, eff, 0.0, 0.0, 0.0)) - weights
    return (
        MemoryItem("Weights", weights / GIB),
        MemoryItem(f"Cache of {batch:.0f} answers" if batch >= 1 else "Cache", cache / GIB),
        MemoryItem("Work of a step", (whole - weights - cache - nothing) / GIB),
        MemoryItem("Engine", nothing / GIB),
    )


def simulate(
    replica: Replica, load: Load, rate: float, *, requests: int = 6000, seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Simulated:  # fmt: skip
    """Event simulation of this replica at a rate, prefix cache included.

    Raises
    ------
    InputError : where nothing fits, or the queue grows without end
    """
    most = int(room(replica, load))
    if most < 1:
        raise InputError("the model and one request do not fit", where="machine")
    net, hw, plan, eff = replica.net, replica.hw, replica.plan, replica.eff
    context = load.input_tokens + load.output_tokens / 2.0
    steps = np.asarray(decode_seconds(net, hw, plan, eff, np.arange(most + 1.0), context))
    own, cached = load.own_tokens, load.cached_tokens
    shared = float(prompt_seconds_shared(net, hw, plan, eff, own, cached))
    alone = float(prefill_seconds(net, hw, plan, eff, 1.0, own, cached))
    seen = simulate_serving(
        rate, steps, shared / own, prompt=own, answer=load.output_tokens, cv=load.length_cv,
        max_batch=most, requests=requests, seed=seed, progress=progress,
    )  # fmt: skip
    more = max(alone - shared, 0.0)
    return replace(
        seen, ttft_mean_s=seen.ttft_mean_s + more, ttft_p50_s=seen.ttft_p50_s + more,
        ttft_p95_s=seen.ttft_p95_s + more, ttft_p99_s=seen.ttft_p99_s + more,
    )  # fmt: skip
