"""Time of one training step, analytic and vectorised: compute, communication, bubble, overheads.

Every input is an array of one length (rows, plans or draws) or a scalar that broadcasts. The
parameters are fitted to published runs; `training_calibration.py` reads them. Seconds, bytes,
FLOP/s; sequences count in tokens.

References
----------
[1] Narayanan et al. 2021, arXiv 2104.04473: pipeline bubble (p − 1)/(m·v), tensor parallelism.
[2] Korthikanti et al. 2022, arXiv 2205.05198: sequence parallelism, selective recomputation.
[3] Rajbhandari et al. 2020, arXiv 1910.02054: ZeRO volumes; FSDP gathers twice, reduces once.
[4] Dao 2023, arXiv 2307.08691: flash attention does 2.5 times its forward work in backward.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.estimate.collectives import (
    Array,
    all_to_all_seconds,
    gather_seconds,
    overlapped,
    slowest_of,
)

Parameters = Mapping[str, float]

# Shares of the dense peak that large products reach: generation and width of the numbers.
PEAK_CLASSES = (
    "a100_16", "h100_16", "h100_8", "b200_16", "b200_8", "b200_4", "b300_16", "b300_8", "b300_4",
    "amd_8", "other_16", "other_8",
)  # fmt: skip
# When a generation could first be bought: software for it matures in the years after.
LAUNCHED = {"a100": 2020.5, "h100": 2022.9, "b200": 2025.0, "b300": 2025.6, "amd": 2023.9}
_LAUNCH = np.array([LAUNCHED.get(c.split("_")[0], 2020.0) for c in PEAK_CLASSES])
# Families of software: recipes that a GPU's vendor tuned; Megatron-type as a team runs it;
# PyTorch FSDP-type; Megatron-type before 2023 (no fused attention); JAX.
STACKS = ("tuned", "plain", "native", "legacy", "jax")
TUNED, PLAIN, NATIVE, LEGACY, JAX = range(5)
NODE = 8.0
REFERENCE_YEAR = 2026.0
MATURE_YEARS = 1.5
# Software of the oldest published steps with experts. How much slower the recipes before it were
# nobody has published: no more is taken off than at it.
OLDEST_MIXTURE_YEAR = 2025.2
# Kernels are launched ahead of the GPU: the slower of the two sets the time, almost sharply.
LAUNCH_NORM = 12.0


@dataclass(slots=True)
class StepInputs:
    """What a step needs to know; one row a step."""

    # The network, per layer where it says so.
    layers: Array
    hidden: Array
    attention_weights: Array  # parameters of the attention projections of a layer
    heads: Array
    core_width: Array  # heads times mean of the query and value widths
    kv_width: Array  # keys: KV heads times their width
    attended: Array  # tokens of context a query attends to before the causal half
    dense_weights: Array  # MLP parameters of a layer that every token passes through
    expert_weights: Array  # parameters of one routed expert
    experts: Array  # 0 for dense
    routed: Array  # experts a token is sent to
    params: Array  # all parameters
    expert_params: Array  # those of routed experts
    vocab: Array
    # The job.
    seq: Array
    micro_batch: Array
    micro_batches: Array
    lora: Array  # 1: frozen weights with adapters
    four_bit: Array  # 1: those weights are kept in 4 bits (QLoRA)
    recompute: Array  # share of the forward products done again in backward
    recompute_core: Array  # share of the attention core done again
    flash: Array  # 1: fused attention
    width: Array  # bytes of an element in the products
    # The plan.
    gpus: Array
    tp: Array
    pp: Array
    vp: Array
    cp: Array
    ep: Array
    etp: Array  # ranks that share one expert's weights: tp or 1
    dp: Array
    full_shard: Array  # 1: gradients reduced each micro-batch, and weights gathered (FSDP)
    gathers: Array  # of the weights a micro-batch: 2, 1 when kept until backward, 0 for ZeRO-2
    shard_ranks: Array  # ranks that share the sharded states
    # The hardware.
    peak: Array
    peak16: Array
    peak_class: NDArray[np.int_]
    hbm: Array
    fast: Array  # bandwidth of the fast domain, one GPU, one direction, nominal
    domain: Array
    nic: Array  # bandwidth of the network, one GPU, one direction, nominal
    # The software.
    stack: NDArray[np.int_]
    year: Array
    offset: Array  # logarithm of the source's own level, 0 when it is not known


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of a step by where they go; `total` is their sum."""

    compute: Array  # matrix products and elementwise work
    recompute: Array
    attention: Array
    head: Array
    launch: Array  # waiting for kernels and collectives to be launched
    tensor_parallel: Array
    context_parallel: Array
    expert_parallel: Array
    pipeline_transfer: Array
    bubble: Array
    data_parallel: Array  # what is not hidden
    optimizer: Array
    stragglers: Array
    total: Array


def step_time(r: StepInputs, p: Parameters) -> StepTime:
    """Seconds of one optimizer step."""
    level = _level(r, p)
    tokens = r.micro_batch * r.seq / r.cp
    forward = _products(r, p, tokens) + _elementwise(r, p, tokens)
    passes = np.where(r.lora > 0, 2.0 + p["lora_extra"], 3.0)
    compute = (forward * passes + _accumulation(r, p)) * level
    again = forward * r.recompute * level
    compute = compute + _unpacking(r, p)
    attention = _attention(r, p, tokens) * level
    window = compute + again + attention
    tensor = _tensor_parallel(r, p, tokens, window)
    # The processor launches collectives among the kernels: while it is behind, both have passed.
    floor = _launch_floor(r, p) * (passes + r.recompute) / 3.0 + _tensor_launches(r, p)
    launch = overlapped(window + tensor, floor, LAUNCH_NORM) - (window + tensor)
    context = _context_parallel(r, p, tokens, window)
    expert = _expert_parallel(r, p, tokens, window)
    layer = compute + again + attention + launch + tensor + context + expert

    per_stage = r.layers / r.pp
    head = _head(r, p, tokens) * level * np.where(r.pp > 1, p["head_share"], 1.0)
    transfer = _pipeline_transfer(r, p, tokens, window * per_stage)
    micro = layer * per_stage + head + transfer
    sharded = _full_shard(r, p)
    exposed = overlapped(micro, sharded, p["overlap_norm"]) - micro
    m = r.micro_batches
    bubble = (layer * per_stage + exposed) * (r.pp - 1) / r.vp
    # Gradients of the last micro-batch travel while its backward pass still runs.
    data = exposed * m + _gradient_exchange(r, p, micro)
    iteration = np.where(r.stack == LEGACY, p["iteration_ms_legacy"], p["iteration_ms"])
    optimizer = _optimizer(r, p) + iteration / 1e3
    busy = micro * m + bubble + data + optimizer
    late = busy * p["straggler"] * slowest_of(r.gpus / NODE)
    n = per_stage * m
    return StepTime(
        compute=compute * n,
        recompute=again * n,
        attention=attention * n,
        head=head * m,
        launch=launch * n,
        tensor_parallel=tensor * n,
        context_parallel=context * n,
        expert_parallel=expert * n,
        pipeline_transfer=transfer * m,
        bubble=bubble,
        data_parallel=data,
        optimizer=np.asarray(optimizer + 0.0 * busy),
        stragglers=late,
        total=np.asarray(busy + late),
    )


def _by_stack(p: Parameters, name: str, stack: NDArray[np.int_]) -> Array:
    """A parameter that differs between families of software."""
    return np.asarray(np.array([p[f"{name}_{s}"] for s in STACKS])[stack])


def _level(r: StepInputs, p: Parameters) -> Array:
    """How much slower than the reference this software is: its family, its age, its source."""
    age = np.clip(REFERENCE_YEAR - r.year, -0.6, 6.0)
    moe = r.experts > 1
    slope = _by_stack(p, "age", r.stack)
    # In the vendor's recipes dispatch to many small experts has become much faster, to a few large
    # ones hardly. Code that others wrote for experts did not grow with it: DeepSeek's of 2024 was
    # faster on an H800 than the recipes of late 2025 on an H100.
    spread = np.where(moe & (r.stack == TUNED), np.log2(np.maximum(r.routed, 1.0)) / 3.0, 0.0)
    mixture = p["age_moe"] * spread * np.minimum(age, REFERENCE_YEAR - OLDEST_MIXTURE_YEAR)
    level = np.log(_by_stack(p, "level", r.stack)) + np.where(moe, np.log(p["level_moe"]), 0.0)
    young = np.clip(MATURE_YEARS - (r.year - _LAUNCH[r.peak_class]), 0.0, MATURE_YEARS)
    eight = np.where((r.width < 2) & (r.stack == NATIVE), np.log(p["native_fp8"]), 0.0)
    return np.asarray(np.exp(level + slope * age + mixture + p["young"] * young + eight + r.offset))


def _efficiency(p: Parameters) -> Array:
    """Share of the peak of large products by class; Blackwell Ultra runs at higher clocks."""
    shares = []
    for name in PEAK_CLASSES:
        # Its 16-bit products are measured as fast as Blackwell's own.
        ultra = name in ("b300_8", "b300_4")
        share = p[f"eff_{name.replace('b300', 'b200')}"]
        shares.append(share * p["ultra"] if ultra else share)
    return np.array(shares)


def _products(r: StepInputs, p: Parameters, tokens: Array) -> Array:
    """Seconds of a layer's matrix products for one micro-batch, one forward pass.

    Time on the tensor cores plus time on memory; small products reach less of the peak.
    """
    rate = _efficiency(p)[r.peak_class] * r.peak
    always = (r.attention_weights + r.dense_weights) / r.tp
    # Widest to narrowest side of the products on one GPU.
    side = np.sqrt(always / 3.0)
    # The faster the tensor cores against the memory, the larger a product must be to feed them.
    hungry = (r.peak / r.hbm / 150.0) ** p["hunger"]
    small = 1.0 + hungry * (p["half_rows"] / tokens + p["half_side"] / side)
    seconds = 2.0 * tokens * always / rate * small
    moved = always + tokens * (4.0 * r.hidden + 2.0 * always / r.hidden)
    # Routed experts: rows that one expert sees, and all local experts' weights are read.
    # Ranks that share an expert see one another's tokens, each with its part of the weights.
    sent = tokens * r.routed * r.etp / r.tp
    local = np.maximum(r.experts, 1.0) / r.ep
    rows = np.maximum(sent / local, 1.0)
    part = r.expert_weights / r.etp
    few = 1.0 + hungry * (
        p["half_rows_expert"] / rows + p["half_side"] / np.sqrt(np.maximum(part / 3.0, 1.0))
    )
    seconds = seconds + 2.0 * sent * part / rate * few
    moved = moved + np.where(
        r.experts > 1,
        local * part + sent * (4.0 * r.hidden + 2.0 * part / r.hidden),
        0.0,
    )
    return np.asarray(seconds + p["product_bytes"] * moved * r.width / r.hbm)


def _elementwise(r: StepInputs, p: Parameters, tokens: Array) -> Array:
    """Seconds of norms, residuals, activations, casts and routing; memory-bound, 16 bits."""
    # Without sequence parallelism every rank of a tensor group does all of it; it came with
    # selective recomputation [2].
    spread = np.where((r.stack == LEGACY) & (r.recompute > 0), 1.0, r.tp)
    norms = p["norm_bytes"] * tokens * r.hidden / spread
    wide = p["activation_bytes"] * tokens * (r.dense_weights / r.hidden) / r.tp
    routed = p["route_bytes"] * tokens * r.routed * r.hidden / r.tp
    casts = np.where(r.width < 2, p["cast_bytes"] * tokens * r.hidden / r.tp, 0.0)
    return np.asarray((norms + wide + routed + casts) / r.hbm)


def _accumulation(r: StepInputs, p: Parameters) -> Array:
    """Seconds of adding a micro-batch's gradients of a layer to the fp32 sum: read and write."""
    held = (r.attention_weights + r.dense_weights) / r.tp + r.expert_weights * r.experts / (
        r.ep * r.etp
    )
    keeps = (r.lora == 0) & (r.full_shard == 0)
    return np.asarray(np.where(keeps, p["accumulate_bytes"] * held / r.hbm, 0.0))


def _unpacking(r: StepInputs, p: Parameters) -> Array:
    """Seconds of turning a layer's 4-bit weights into 16 bits, once a pass over them."""
    held = (r.attention_weights + r.dense_weights) / r.tp + r.expert_weights * r.experts / (
        r.ep * r.etp
    )
    moved = p["unpack_bytes"] * held * (2.0 + r.recompute)
    return np.asarray(np.where(r.four_bit > 0, moved / r.hbm, 0.0))


def _attention(r: StepInputs, p: Parameters, tokens: Array) -> Array:
    """Seconds of a layer's attention core for one micro-batch, forward and backward, 16 bits.

    Causal half for fused kernels. Before them both halves were computed, and the matrix of
    scores went through memory.
    """
    share = np.array([p[f"core_{c.split('_')[0]}"] for c in PEAK_CLASSES])[r.peak_class]
    # PyTorch's own kernels used Ampere's instructions until 2025 or so.
    before = (r.stack == NATIVE) & (r.year < 2025.5) & (r.peak_class > 0) & (r.peak_class < 9)
    share = share * np.where(before, p["core_before"], 1.0)
    pairs = tokens * r.attended / r.tp
    flops = 4.0 * pairs * r.core_width
    fused = 0.5 * flops * (3.5 + r.recompute_core) / (share * r.peak16)
    plain = flops * (3.0 + r.recompute_core) / (p["core_plain"] * r.peak16)
    scores = p["score_bytes"] * pairs * r.heads * (3.0 + r.recompute_core) / r.hbm
    return np.asarray(np.where(r.flash > 0, fused, plain + scores))


def _head(r: StepInputs, p: Parameters, tokens: Array) -> Array:
    """Seconds of the language-model head for one micro-batch, all passes, in 16 bits."""
    # Code before 2023 is slow at a vocabulary that is not split over a tensor group (vTrain).
    whole = (r.stack == LEGACY) & (r.tp == 1)
    rate = np.where(whole, p["head_eff_whole_legacy"], p["head_eff"]) * r.peak16
    logits = p["logit_bytes"] * tokens * r.vocab / r.tp / r.hbm
    return np.asarray(6.0 * tokens * r.hidden * r.vocab / r.tp / rate + logits)


def _launch_floor(r: StepInputs, p: Parameters) -> Array:
    """Least seconds that a layer's kernels take to launch, forward and backward."""
    moe = np.where(r.experts > 1, p["launch_moe_ms"], 0.0)
    return np.asarray(3e-3 * (_by_stack(p, "launch_ms", r.stack) + moe))


def _fast(r: StepInputs, p: Parameters) -> Array:
    return np.asarray(r.fast * p["fast_share"])


def _nic(r: StepInputs, p: Parameters) -> Array:
    return np.asarray(r.nic * p["nic_share"])


def _not_hidden(seconds: Array, share: Array | float, window: Array) -> Array:
    """Seconds of traffic that computing does not hide: a share of it, or what is longer than it."""
    return np.asarray(np.maximum(share * seconds, seconds - window))


def _tensor_parallel(r: StepInputs, p: Parameters, tokens: Array, window: Array) -> Array:
    """Exposed seconds of a layer's all-reduces: two forward, two backward [1, 2].

    A reduce-scatter and an all-gather in sequence parallelism move the same.
    """
    calls = tensor_calls(r)
    seconds = 2.0 * gather_seconds(
        tensor_size(r, tokens), r.tp, 1.0, fast=_fast(r, p), domain=r.domain, nic=_nic(r, p)
    )
    latency = p["tp_latency_us"] * 1e-6
    exposed = _by_stack(p, "tp_exposed", r.stack)
    exposed = np.where(r.tp > r.domain, 1.0, exposed)
    late = _not_hidden(calls * seconds, exposed, window) + calls * latency
    return np.asarray(np.where(r.tp > 1, late, 0.0))


def tensor_calls(r: StepInputs) -> Array:
    """All-reduces of a layer and micro-batch; recomputation repeats those of the forward pass."""
    return np.asarray(4.0 + 2.0 * np.minimum(r.recompute, 1.0))


def tensor_size(r: StepInputs, tokens: Array) -> Array:
    """Bytes that one of them sums: activations of a micro-batch."""
    # Vendors' recipes gather in the width of the products and reduce in 16 bits.
    element = np.where(r.stack == TUNED, 1.0 + np.minimum(np.maximum(r.width, 1.0) / 2.0, 1.0), 2.0)
    return np.asarray(tokens * r.hidden * element)


def _tensor_launches(r: StepInputs, p: Parameters) -> Array:
    """Seconds that processors take for a layer's all-reduces: each rank waits for the last."""
    one = p["tp_launch_us"] * 1e-6 * np.log2(np.maximum(r.tp, 1.0))
    return np.asarray(tensor_calls(r) * one)


def _context_parallel(r: StepInputs, p: Parameters, tokens: Array, window: Array) -> Array:
    """Exposed seconds of passing a layer's keys and values round the ring, there and back."""
    wire = np.where(r.cp * r.tp <= r.domain, _fast(r, p), _nic(r, p))
    late = _not_hidden(context_size(r, tokens) / wire, p["cp_exposed"], window)
    return np.asarray(np.where(r.cp > 1, late, 0.0))


def context_size(r: StepInputs, tokens: Array) -> Array:
    """Bytes that a rank passes on for a layer: K and V all round, and with gradients back."""
    return np.asarray(3.0 * tokens * 2.0 * r.kv_width * 2.0 / r.tp * (r.cp - 1.0))


def _expert_parallel(r: StepInputs, p: Parameters, tokens: Array, window: Array) -> Array:
    """Exposed seconds of a layer's all-to-alls: dispatch and combine, forward and backward."""
    size, link = passed_size(r, tokens), {"fast": _fast(r, p), "nic": _nic(r, p)}
    one = all_to_all_seconds(size, r.routed, r.ep, 1.0, domain=r.domain, **link)
    late = _not_hidden(expert_calls(r) * one, p["ep_exposed"], window)
    return np.asarray(np.where((r.experts > 1) & (r.ep > 1), late, 0.0))


def expert_calls(r: StepInputs) -> Array:
    """All-to-alls of a layer and micro-batch: dispatch and combine, forward, backward and again."""
    return np.asarray(4.0 + 2.0 * r.recompute)


def passed_size(r: StepInputs, tokens: Array) -> Array:
    """Bytes of a micro-batch's activations on one rank, as they go to experts or on to a stage."""
    return np.asarray(tokens * r.hidden * 2.0 / r.tp)


def _pipeline_transfer(r: StepInputs, p: Parameters, tokens: Array, window: Array) -> Array:
    """Exposed seconds of passing a micro-batch on: every virtual stage, forward and backward."""
    wire = np.where(r.pp * r.tp * r.cp <= r.domain, _fast(r, p), _nic(r, p))
    exposed = np.where(r.stack == LEGACY, 1.0, p["pp_exposed"])
    late = _not_hidden(2.0 * r.vp * passed_size(r, tokens) / wire, exposed, window)
    return np.asarray(np.where(r.pp > 1, late, 0.0))


def groups_held(r: StepInputs) -> tuple[Array, Array]:
    """Parameters that a GPU holds of what all share, and of its routed experts."""
    shared = (r.params - r.expert_params) / (r.tp * r.pp)
    experts = r.expert_params / (r.pp * np.maximum(r.ep * r.etp, 1.0))
    return np.asarray(shared), np.asarray(experts)


def _exchange(r: StepInputs, p: Parameters, bytes_per_parameter: Array) -> Array:
    """Seconds of one all-gather of all parameters that a GPU works with."""
    shared, experts = groups_held(r)
    link = {"fast": _fast(r, p), "domain": r.domain, "nic": _nic(r, p)}
    ranks, copies = exchange_ranks(r)
    one = gather_seconds(shared * bytes_per_parameter, ranks, r.tp, **link)
    nodes = ranks * r.tp / r.domain
    late = p["ring_us"] * 1e-6 * np.maximum(nodes - 1.0, 0.0) * r.layers / r.pp
    stride = np.maximum(r.ep * r.etp, 1.0)
    two = gather_seconds(experts * bytes_per_parameter, copies, stride, **link)
    return np.asarray(one + late + np.where(r.experts > 1, two, 0.0))


def exchange_ranks(r: StepInputs) -> tuple[Array, Array]:
    """Ranks among which a GPU exchanges what all share, and what its routed experts are."""
    ranks = r.dp * r.cp
    # Weights sharded inside a node (HSDP) are gathered there.
    ranks = np.where(r.full_shard > 0, np.minimum(ranks, np.maximum(r.shard_ranks, 1.0)), ranks)
    copies = np.maximum(r.gpus / (r.pp * np.maximum(r.ep * r.etp, 1.0)), 1.0)
    return np.asarray(ranks), np.asarray(copies)


def _full_shard(r: StepInputs, p: Parameters) -> Array:
    """Seconds of the gathers and the reduction of one micro-batch when weights are sharded [3]."""
    seconds = _exchange(r, p, sharded_bytes(r, p))
    first = (r.stack == LEGACY) & (r.gathers >= 2.0)
    seconds = seconds * np.where(first, p["legacy_gather"], 1.0)
    return np.asarray(np.where(r.full_shard > 0, seconds, 0.0))


def sharded_bytes(r: StepInputs, p: Parameters) -> Array:
    """Bytes of a parameter that a micro-batch moves where states are sharded: FSDP, ZeRO-2."""
    # Frozen weights are gathered twice, in 16 bits or 4, and have no gradients.
    frozen = 2.0 * np.where(r.four_bit > 0, 0.5, 2.0)
    return np.asarray(np.where(r.lora > 0, frozen, 2.0 * r.gathers + p["reduce_bytes"]))


def gradient_bytes(r: StepInputs, p: Parameters) -> Array:
    """Bytes of a parameter that a step moves once: gradients reduced, weights gathered."""
    trained = np.where(r.lora > 0, 0.01, 1.0)
    return np.asarray(trained * _by_stack(p, "grad_bytes", r.stack))


def _gradient_exchange(r: StepInputs, p: Parameters, micro: Array) -> Array:
    """Exposed seconds of reducing the gradients and gathering the weights once a step."""
    seconds = _exchange(r, p, gradient_bytes(r, p))
    window = np.where(r.stack == LEGACY, 0.0, p["grad_window"] * micro)
    hidden = overlapped(window, seconds, 3.0) - window
    # Code that hands out each layer from the one rank that owns it pays for every rank (InternEvo).
    owners = np.where((r.stack == PLAIN) & (r.shard_ranks > NODE), r.shard_ranks, 0.0)
    hidden = hidden + p["owner_us"] * 1e-6 * owners * r.layers / r.pp
    return np.asarray(np.where(r.full_shard > 0, _between_copies(r, p, window), hidden))


def _between_copies(r: StepInputs, p: Parameters, window: Array) -> Array:
    """Exposed seconds of summing gradients over copies of weights that are sharded in nodes."""
    copies = np.maximum(r.dp * r.cp / np.maximum(r.shard_ranks, 1.0), 1.0)
    shared, _ = groups_held(r)
    size = np.where(r.lora > 0, 0.01, 1.0) * shared / np.maximum(r.shard_ranks, 1.0)
    # All-reduce in 32 bits: each GPU has its own shard, and its own port.
    seconds = 2.0 * gather_seconds(
        4.0 * size, copies, r.domain, fast=_fast(r, p), domain=r.domain, nic=_nic(r, p)
    )
    return np.asarray(overlapped(window, seconds, 3.0) - window)


def _optimizer(r: StepInputs, p: Parameters) -> Array:
    """Seconds of the update of the parameters that this GPU owns; memory-bound."""
    shared, experts = groups_held(r)
    owned = (shared + experts) / np.maximum(r.shard_ranks, 1.0)
    return np.asarray(np.where(r.lora > 0, 0.0, p["optimizer_bytes"] * owned / r.hbm))
