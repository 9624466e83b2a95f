"""Serving of language models: memory, prefill, decode, and what a replica carries inside a target.

One step of decoding reads the weights and every sequence's cache and pays launches and
all-reduces; prefill pays the products of the prompt. Efficiencies are fitted to published runs
(`engine/calibrate/serving.py` writes `data/calibration_serving.csv`) by GPU generation, engine and
precision. Every formula takes floats or NumPy arrays that broadcast. Knows nothing of prices.
Times in seconds, sizes in bytes unless a name ends in `_gib`, rates per second.

References
----------
[1] R. Pope et al., "Efficiently scaling transformer inference", MLSys 2023.
[2] DeepSeek-AI, "DeepSeek-V2", 2024: the compressed cache (MLA) is the same on every rank.
[3] Patarasuk and Yuan 2009: a ring all-reduce sends 2·(n − 1)/n of the data.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from engine.calibrate.serving_classes import cache_of, generation_of, kind_of, precision_of
from engine.catalogue import Accelerator
from engine.errors import DataError, InputError
from engine.estimate.estimate import Estimate
from engine.estimate.queueing import (
    Array,
    Bound,
    Real,
    at,
    check,
    inside_targets,
    operating_points,
)
from engine.estimate.shape import ModelShape

GIB = 1024.0**3
CALIBRATION = Path(__file__).resolve().parents[2] / "data" / "calibration_serving.csv"
# Half of an 80% interval of a normal variable: 10th to 90th percentile.
Z80 = 1.2815515655446004
# Most sequences an engine schedules at once unless it is told otherwise (vLLM, TensorRT-LLM).
MAX_SEQUENCES = 1024
# Tokens of a prompt that one step takes in (chunked prefill; vLLM's default for serving).
CHUNK_TOKENS = 2048
# Share of the memory that an engine may fill (vLLM: gpu_memory_utilization).
USABLE_MEMORY = 0.9
# Spread of prompt and answer lengths, standard deviation over mean (chat logs: 0.6 to 1.2).
LENGTH_CV = 0.8
# GB/s of one direction of a host link with 16 lanes; a superchip's leaves over its network.
HOST_LINKS = {"PCIe3": 12.5, "PCIe4": 25.0, "PCIe5": 50.0, "PCIe6": 100.0, "C2C": 50.0}
UNCALIBRATED = 3.0  # widening for hardware without rows
FEW_ROWS = 20  # fewer rows than these say little about a generation
SOURCES = ("public serving runs, calibration_serving.csv",)
DEFAULT_ENGINE = "vllm-2025"

Floor = Literal["memory", "batch"] | Bound


# ---- what is run, and on what ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Network:
    """A model as serving sees it: parameters by how they are read, widths by how they are used.

    `dense` : parameters every token passes through, input embedding excluded
    `expert` : parameters of all routed experts together
    `stored` : all parameters
    `score_width` : heads × (key + value width), elements a token pair costs in attention, per layer
    `cache_width` : elements of the cache a token keeps, all layers that grow together
    `cache_shards` : ranks over which that cache can be divided (1: every rank holds it all)
    `windowed` : share of the cache that lies in sliding windows of `window` tokens
    """

    dense: Real
    expert: Real
    stored: Real
    experts: Real
    top_k: Real
    layers: Real
    attention_layers: Real
    hidden: Real
    score_width: Real
    cache_width: Real
    cache_shards: Real
    vocab: Real
    windowed: Real = 0.0
    window: Real = 0.0
    state_bytes: Real = 0.0


@dataclass(frozen=True, slots=True)
class Hardware:
    """One GPU: dense peaks of products in the weights' precision and in 16 bits [FLOP/s], memory
    bandwidth [B/s], memory [bytes]; the fast link and how many GPUs it joins (1: none), and the
    host's link over which all others talk [B/s, one direction].
    """

    peak: Real
    peak16: Real
    bandwidth: Real
    link: Real
    domain: Real
    host_link: Real
    memory: Real


@dataclass(frozen=True, slots=True)
class Plan:
    """How a replica is laid out: tensor × pipeline parallel, experts spread (ep), data-parallel
    attention (1 or 0), bytes of a weight and of a cached element.
    """

    tp: Real
    pp: Real
    attention_dp: Real
    weight_bytes: Real
    kv_bytes: Real


@dataclass(frozen=True, slots=True)
class Efficiencies:
    """Fitted shares of peak and overheads; floats, or arrays with one value a row or draw.

    What each means and its unit is told in `data/calibration_serving.csv`.
    """

    weight_read: Real
    kv_read: Real
    matmul: Real
    matmul_decode: Real
    attention: Real
    narrow: Real
    roof: Real
    expert_read: Real
    expert_matmul: Real
    step_us: Real
    layer_us: Real
    sequence_us: Real
    allreduce_us: Real
    pcie_allreduce: Real
    link_share: Real
    pcie_share: Real
    prefill_ms: Real
    prefill_token_us: Real
    interleave: Real
    contention: Real
    queue: Real
    queue_power: Real
    queue_prompt: Real
    saturated: Real
    weight_memory: Real
    cache_memory: Real
    working: Real
    sampling: Real
    engine_gib: Real
    group_gib: Real
    peer_gib: Real


def network_of(shape: ModelShape) -> Network:
    """The network of a model's shape.

    Routed experts follow from total and active parameters: total = dense + E, active = dense +
    E·k/n, whence E = (total − active)/(1 − k/n).
    """
    experts, k = float(shape.experts), float(shape.experts_per_token)
    share = k / experts if shape.is_moe and experts > k else 1.0
    expert = (shape.total_params - shape.active_params) / (1.0 - share) if share < 1.0 else 0.0
    expert = max(expert, 0.0)
    table = shape.vocab * shape.hidden if not shape.tied_embeddings else 0.0
    mla = shape.attention == "mla"
    growing = float(shape.layers if shape.kv_layers is None else shape.kv_layers)
    if shape.attention == "none":
        width, shards, growing = 0.0, 1.0, 0.0
    elif mla:
        width, shards = growing * shape.mla_cache_width, 1.0
    else:
        width = shape.kv_width_total or 2.0 * growing * shape.kv_heads * shape.head_dim
        shards = float(max(shape.kv_heads, 1))
    score = 2.0 * shape.heads * shape.head_dim
    return Network(
        dense=max(shape.total_params - expert - table, 0.05 * shape.total_params),
        expert=expert,
        stored=shape.total_params,
        experts=max(experts, 1.0),
        top_k=max(k, 1.0),
        layers=float(shape.layers),
        attention_layers=growing,
        hidden=float(shape.hidden),
        score_width=score,
        cache_width=width,
        cache_shards=shards,
        vocab=float(shape.vocab),
        windowed=shape.window_layers / growing if growing and shape.window_tokens else 0.0,
        window=float(shape.window_tokens),
        state_bytes=shape.state_layers * shape.state_bytes_per_layer,
    )


def hardware_of(accelerator: Accelerator, weight_bits: float) -> Hardware:
    """The hardware of a catalogue entry for weights of a precision.

    Weights of fewer bits than the GPU multiplies are unpacked: their products run in 16 bits.
    """
    peak16 = accelerator.bf16_tflops_dense or accelerator.fp16_tflops_dense or 0.0
    if not peak16:
        raise InputError(
            f"{accelerator.sku} states no 16-bit rate", where="accelerator", right="a GPU with one"
        )
    peak = peak16
    if weight_bits <= 4.5 and accelerator.fp4_tflops_dense:
        peak = accelerator.fp4_tflops_dense
    elif 4.5 < weight_bits <= 8.5:
        peak = accelerator.fp8_tflops_dense or accelerator.int8_tops_dense or peak16
    fast = accelerator.scaleup_gb_per_s_per_direction or 0.0
    joined = accelerator.scaleup_domain_gpus or 1
    gib = accelerator.memory_gib_reported or accelerator.memory_gb / 1.0737
    return Hardware(
        peak * 1e12,
        peak16 * 1e12,
        accelerator.memory_bandwidth_gb_per_s * 1e9,
        (fast or 25.0) * 1e9,
        1.0 if "PCIe" in accelerator.scaleup_technology or not fast else float(joined),
        HOST_LINKS.get(accelerator.host_link[:5], 25.0) * 1e9,
        gib * GIB,
    )


def experts_touched(tokens: Real, experts: Real, top_k: Real) -> Real:
    """Expected share of the experts that `tokens` tokens reach: 1 − (1 − k/E)^tokens."""
    return 1.0 - (1.0 - np.minimum(top_k / experts, 1.0)) ** np.minimum(tokens, 1e6)


def longest(first: Real, second: Real, norm: Real) -> Real:
    """Time of two things that overlap almost wholly: a little more than the longer."""
    return np.asarray((np.asarray(first) ** norm + np.asarray(second) ** norm) ** (1.0 / norm))


def cached_tokens(net: Network, context: Real) -> Real:
    """Tokens of cache read per sequence, sliding windows counted by what they hold."""
    inside = np.minimum(context, np.where(np.asarray(net.window) > 0, net.window, np.inf))
    return (1.0 - net.windowed) * context + net.windowed * inside


def cache_bytes(net: Network, plan: Plan, context: Real) -> Real:
    """Cache of one sequence over all GPUs of the replica that hold it once."""
    return net.cache_width * plan.kv_bytes * cached_tokens(net, context) + net.state_bytes


def cache_divisor(net: Network, plan: Plan) -> Real:
    """By how many GPUs the cache of a batch is divided: TP can't divide below one KV head."""
    by_heads = np.minimum(plan.tp, net.cache_shards)
    return np.where(np.asarray(plan.attention_dp) > 0, plan.tp, by_heads)


def allreduce_seconds(
    net: Network, hw: Hardware, plan: Plan, eff: Efficiencies, tokens: Real
) -> Real:
    """Two all-reduces per layer of `tokens` activations in 16 bits [3]."""
    n = np.asarray(plan.tp)
    far = n > hw.domain
    latency = eff.allreduce_us * 1e-6 * np.where(far, eff.pcie_allreduce, 1.0)
    link = np.where(far, hw.host_link * eff.pcie_share, hw.link * eff.link_share)
    volume = 2.0 * (n - 1.0) / n * tokens * net.hidden * 2.0
    calls = 2.0 * net.layers * np.where(n > 1, 1.0, 0.0)
    return np.asarray(calls * (latency * np.log2(np.maximum(n, 2.0)) ** 0.5 + volume / link))


def products(
    net: Network, hw: Hardware, plan: Plan, eff: Efficiencies, tokens: Real, share: Real
) -> Real:
    """Seconds of all products of `tokens` tokens: the longer of reading weights and computing.

    Narrow slices fill a GPU badly: a product of width d on each of n GPUs takes 1 + w·n/d of its
    ideal time. share : of the peak, what wide products reach
    """
    narrow = 1.0 + eff.narrow * plan.tp / net.hidden
    read = hw.bandwidth * eff.weight_read * plan.tp
    compute = hw.peak * share * plan.tp / narrow
    dense = longest(
        net.dense * plan.weight_bytes / read, 2.0 * net.dense * tokens / compute, eff.roof
    )
    touched = net.expert * experts_touched(tokens, net.experts, net.top_k)
    routed = longest(
        touched * plan.weight_bytes / (read * eff.expert_read),
        2.0 * net.expert * net.top_k / net.experts * tokens / (compute * eff.expert_matmul),
        eff.roof,
    )
    return dense + routed


def decode_seconds(
    net: Network, hw: Hardware, plan: Plan, eff: Efficiencies, batch: Real, context: Real
) -> Real:
    """Seconds of one decoding step of `batch` sequences of `context` tokens each [1].

    With pipeline stages a batch is cut into as many micro-batches; each token passes them all.
    """
    b = np.maximum(np.asarray(batch) / plan.pp, np.minimum(batch, 1.0))
    product = products(net, hw, plan, eff, b, eff.matmul * eff.matmul_decode)
    cached = b * cache_bytes(net, plan, context) / cache_divisor(net, plan)
    cache = cached / (hw.bandwidth * eff.kv_read)
    overhead = eff.step_us + eff.layer_us * net.layers + eff.sequence_us * b
    return product + cache + allreduce_seconds(net, hw, plan, eff, b) + overhead * 1e-6


def prefill_seconds(
    net: Network, hw: Hardware, plan: Plan, eff: Efficiencies, batch: Real, prompt: Real
) -> Real:
    """Seconds to take in `batch` prompts of `prompt` tokens together, up to the first token."""
    tokens = np.asarray(batch) * prompt
    product = products(net, hw, plan, eff, tokens, eff.matmul)
    pairs = tokens * cached_tokens(net, np.asarray(prompt) / 2.0)
    scores = 2.0 * net.score_width * net.attention_layers * pairs
    attention = scores / (hw.peak16 * eff.attention * plan.tp)
    overhead = (
        eff.prefill_ms * 1e-3 + (eff.layer_us * net.layers + eff.prefill_token_us * tokens) * 1e-6
    )
    return product + attention + allreduce_seconds(net, hw, plan, eff, tokens) + overhead


def memory_bytes(
    net: Network, plan: Plan, eff: Efficiencies, batch: Real, context: Real, step_tokens: Real
) -> Real:
    """Peak memory of the fullest GPU: weights, cache, activations of a step, engine.

    step_tokens : tokens that one step computes at most (prefill)
    """
    weights = net.stored * plan.weight_bytes * eff.weight_memory / (plan.tp * plan.pp)
    cached = batch * cache_bytes(net, plan, context) / (cache_divisor(net, plan) * plan.pp)
    # Hidden states are whole on every GPU, the MLP's wide intermediates are split: about 1 to 2.
    working = eff.working * step_tokens * net.hidden * 2.0 * (1.0 + 2.0 / plan.tp)
    logits = eff.sampling * batch * net.vocab * 4.0 / plan.tp
    shared = np.where(np.asarray(plan.tp) > 1, eff.group_gib + eff.peer_gib * (plan.tp - 1.0), 0.0)
    engine = (eff.engine_gib + shared) * GIB
    return weights + cached * eff.cache_memory + working + logits + engine


def slots(
    net: Network, hw: Hardware, plan: Plan, eff: Efficiencies, context: Real, usable: float
) -> Real:
    """Sequences whose cache of `context` tokens fits beside the weights; below 1: none fits."""
    fixed = memory_bytes(net, plan, eff, 0.0, 0.0, CHUNK_TOKENS)
    each = cache_bytes(net, plan, context) / (cache_divisor(net, plan) * plan.pp)
    each = each * eff.cache_memory + eff.sampling * net.vocab * 4.0 / plan.tp
    return np.maximum(hw.memory * usable - fixed, 0.0) / np.maximum(each, 1.0)


KNOBS = tuple(Efficiencies.__slots__)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Fitted values by id."""

    values: Mapping[str, float]

    def half_width(self, quantity: str, generation: str, engine: str = DEFAULT_ENGINE) -> float:
        """Log half width of the 80% interval; three times as wide for hardware without rows."""
        width = self.values[f"width.{quantity}"]
        if not self.is_calibrated(generation):
            return max(UNCALIBRATED * width, math.log(UNCALIBRATED) / 2.0)
        known = self.values.get(f"rows.engine.{engine}", 0.0) > 0
        return width if known else self.values[f"width.new.{quantity}"]

    def is_calibrated(self, generation: str) -> bool:
        """Whether enough rows of this generation were fitted."""
        return self.values.get(f"rows.gpu.{generation}", 0.0) >= FEW_ROWS


@cache
def efficiencies_of(
    generation: str, engine: str, precision: str, kind: str, cached: str
) -> Efficiencies:
    """Shipped efficiencies of a class: base values times the factors of each effect.

    generation, precision, kind, cached : as `serving_classes` names them; engine : family-era
    """
    effects = (
        f"kind.{kind}", f"cache.{engine}.{cached}", f"pair.{generation}.{engine}",
        f"gpu.{generation}", f"engine.{engine}", f"bits.{precision}",
    )  # fmt: skip
    values = shipped_calibration().values
    found = {}
    for knob in KNOBS:
        factors = (values.get(f"{knob}.{e}", 1.0) for e in effects)
        found[knob] = math.prod(factors, start=values[knob])
    return Efficiencies(**found)


@cache
def shipped_calibration(path: Path = CALIBRATION) -> Calibration:
    """The calibration file, checked.

    Raises
    ------
    DataError : when a value is no number
    """
    values: dict[str, float] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            try:
                values[row["id"]] = float(row["value"])
            except (TypeError, ValueError):
                raise DataError(
                    f"{row.get('value')!r} is no number", file=path, line=line, column="value"
                ) from None
    missing = [k for k in KNOBS if k not in values]
    if missing:
        raise DataError(f"no {missing[0]}", file=path, line=2, column="id", right="one row a knob")
    return Calibration(values)


def replica_of(
    shape: ModelShape, accelerator: Accelerator, n_gpus: int, pp: int, attention_dp: bool,
    weight_bits: float, kv_bytes: float, engine: str,
) -> tuple[Network, Hardware, Plan, Efficiencies]:  # fmt: skip
    """Inputs of the formulae for a replica; weights that come quantised keep their bits."""
    bits = shape.quantized_bits or weight_bits
    kind = kind_of(shape.attention == "mla", float(shape.experts))
    generation = generation_of(accelerator.sku)
    eff = efficiencies_of(generation, engine, precision_of(bits), kind, cache_of(kv_bytes))
    plan = Plan(float(n_gpus), float(pp), float(attention_dp), bits / 8.0, kv_bytes)
    return network_of(shape), hardware_of(accelerator, bits), plan, eff


@dataclass(frozen=True, slots=True)
class ServingCapacity:
    """What one replica carries; arrays where draws or token counts were arrays.

    `requests_per_s` is the largest rate inside the targets, 0 where none is; `batch` the mean
    number of answers under way then; `ttft_s` and `tpot_s` at the percentile asked for;
    `memory_gib` of the fullest GPU at that load. `floor` names what keeps the rate from being
    larger: "memory" (the model or one request does not fit), "ttft" or "tpot" (the target, or
    with a rate of 0 a target below `ttft_floor_s` or `tpot_floor_s`, those of a lone request),
    "batch" (memory for no more answers at once), "load" (no replica is run fuller).
    """

    requests_per_s: Real
    batch: Real
    ttft_s: Real
    tpot_s: Real
    memory_gib: Real
    fits: bool
    floor: Floor
    ttft_floor_s: Real
    tpot_floor_s: Real
    max_batch: float
    calibrated: bool
    requests: Estimate
    ttft: Estimate
    tpot: Estimate
    notes: tuple[str, ...] = ()


_LOADS = np.concatenate([[0.02, 0.1, 0.3, 0.6], np.geomspace(1.0, MAX_SEQUENCES, 41)])


def serving_capacity(
    shape: ModelShape, accelerator: Accelerator, n_gpus: int, input_tokens: Real,
    output_tokens: Real, *, weight_bits: float = 16.0, kv_bytes: float = 2.0,
    ttft_target_s: float | None = None, tpot_target_s: float | None = None, load: float = 0.85,
    percentile: float = 0.95, draws: Array | None = None, pp: int = 1,
    attention_dp: bool = False, engine: str = DEFAULT_ENGINE, prefix_hit: float = 0.0,
    length_cv: float = LENGTH_CV,
) -> ServingCapacity:  # fmt: skip
    """Largest rate of requests that one replica answers inside the targets, open loop.

    n_gpus : of a tensor-parallel group; pp : such groups in a pipeline; weight_bits : of a
        weight; kv_bytes : of a cached element
    ttft_target_s, tpot_target_s : seconds to the first token and per further token, the former at
        `percentile`; None: no target
    load : largest share of the rate at which the replica saturates
    draws : standard normal draws of the model's own error; a time is multiplied by e^(σ·draw).
        None: the likely value, with intervals
    prefix_hit : share of prompt tokens found in the prefix cache

    Raises
    ------
    InputError : with the field's name, when a number can't be used
    """
    for name, tokens in (("input_tokens", input_tokens), ("output_tokens", output_tokens)):
        check(name, tokens, least=1.0)
    for name, target in (("ttft_target_s", ttft_target_s), ("tpot_target_s", tpot_target_s)):
        if target is not None:
            check(name, target, above=0.0)
    for name, count in (("n_gpus", n_gpus), ("pp", pp)):
        check(name, count, least=1.0, below=1025.0, whole=True)
    check("weight_bits", weight_bits, above=0.0)
    check("kv_bytes", kv_bytes, above=0.0)
    check("load", load, above=0.0, below=1.0)
    check("prefix_hit", prefix_hit, least=0.0, below=1.0)
    check("percentile", percentile, above=0.0, below=1.0)
    check("length_cv", length_cv, least=0.0)

    cal, generation = shipped_calibration(), generation_of(accelerator.sku)
    net, hw, plan, eff = replica_of(
        shape, accelerator, n_gpus, pp, attention_dp, weight_bits, kv_bytes, engine
    )
    width = cal.half_width("itl_closed", generation, engine)
    z = np.array([0.0, Z80, -Z80]) if draws is None else np.atleast_1d(check("draws", draws))

    # One row of the grid a draw, one column a load; without draws likely, slow and fast.
    prompt = np.atleast_1d(np.asarray(input_tokens, dtype=float))[:, None]
    answer = np.atleast_1d(np.asarray(output_tokens, dtype=float))[:, None]
    slow = np.exp(z * width / Z80)[:, None]
    if draws is None and prompt.size * answer.size > 1:
        slow = np.ones((1, 1))
    room = np.minimum(slots(net, hw, plan, eff, prompt + answer, USABLE_MEMORY), MAX_SEQUENCES * pp)
    most = float(np.min(room))
    fits = most >= 1.0
    # As many on average as leave room 19 times in 20: numbers under way vary like Poisson's.
    held = room + 1.35 - 1.64 * np.sqrt(np.maximum(room, 0.0) + 0.67)
    batch = np.minimum(_LOADS * pp, np.maximum(held, 0.02))
    step = slow * decode_seconds(net, hw, plan, eff, batch, prompt + answer / 2.0)
    own = prompt * (1.0 - prefix_hit)
    alone = slow * prefill_seconds(net, hw, plan, eff, 1.0, own)
    # Short prompts are taken in together: what a request pays once, they share.
    together = np.clip(2.0 * CHUNK_TOKENS / own, 1.0, np.maximum(batch, 1.0))
    shared = slow * prefill_seconds(net, hw, plan, eff, together, own) / together
    point = operating_points(
        batch, step, alone, shared, own, answer, percentile=percentile, cv=length_cv
    )
    idle = np.full_like(batch[:, :1], 1e-9)
    lone = operating_points(
        idle, step[:, :1], alone, alone, own, answer, percentile=percentile, cv=length_cv
    )
    rate, place, least = inside_targets(point, ttft_target_s, tpot_target_s, load)
    ttft, tpot, batch_at = (at(x, place) for x in (point.ttft, point.tpot, batch))
    rate = rate if fits else np.zeros_like(rate)
    memory = memory_bytes(net, plan, eff, batch_at, (prompt + answer)[:, 0], CHUNK_TOKENS) / GIB
    floor: Floor = "memory"
    if fits:
        full = least == "load" and most < MAX_SEQUENCES * pp
        floor = "batch" if full else least
    calibrated = cal.is_calibrated(generation)
    note = f"no published run of {accelerator.name} was fitted: the range is at least threefold"

    single = draws is None and prompt.size * answer.size == 1

    def told(x: Real) -> Real:
        return float(np.broadcast_to(x, rate.shape)[0]) if single else np.asarray(x)

    def spread(x: Array, unit: str) -> Estimate:
        low, likely, high = np.quantile(x, [0.1, 0.5, 0.9]) if not single else np.sort(x)
        return Estimate(float(low), float(likely), float(high), unit, SOURCES)

    # Latencies are told at one rate: that of the likely hardware.
    at_once = (np.exp(z * width / Z80) if single else 1.0) * np.ones_like(rate)
    first, each = (x[0] * at_once if single else x for x in (ttft, tpot))
    floors = [np.broadcast_to(x[:, 0], rate.shape) for x in (lone.ttft, lone.tpot)]
    return ServingCapacity(
        told(rate), told(batch_at), told(ttft), told(tpot), told(memory), fits, floor,
        told(floors[0]), told(floors[1]), most, calibrated,
        spread(rate, "requests/s"), spread(first, "s"), spread(each, "s"),
        () if calibrated else (note,),
    )  # fmt: skip
