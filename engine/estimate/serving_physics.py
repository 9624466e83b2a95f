"""Physics of serving a language model: memory, a decoding step, prefill, all-reduces.

One step of decoding reads the weights and every sequence's cache and pays launches and
all-reduces; prefill pays the products of the prompt. Every formula takes floats or NumPy arrays
that broadcast; the efficiencies come from `engine.estimate.serving`. Knows nothing of prices.
Times in seconds, sizes in bytes unless a name ends in `_gib`.

References
----------
[1] R. Pope et al., "Efficiently scaling transformer inference", MLSys 2023.
[2] DeepSeek-AI, "DeepSeek-V2", 2024: the compressed cache (MLA) is the same on every rank.
[3] Patarasuk and Yuan 2009: a ring all-reduce sends 2·(n − 1)/n of the data.
[4] Huang et al., "GPipe", 2019: m micro-batches pass p stages in m + p − 1 turns of 1/p each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.catalogue import Accelerator
from engine.errors import InputError
from engine.estimate.queueing import Real
from engine.estimate.shape import ModelShape

GIB = 1024.0**3
# Most sequences an engine schedules at once unless it is told otherwise (vLLM, TensorRT-LLM).
MAX_SEQUENCES = 1024
# Tokens of a prompt that one step takes in (chunked prefill; vLLM's default for serving).
CHUNK_TOKENS = 2048
# GB/s of one direction of a host link with 16 lanes; a superchip's leaves over its network.
HOST_LINKS = {"PCIe3": 12.5, "PCIe4": 25.0, "PCIe5": 50.0, "PCIe6": 100.0, "C2C": 50.0}
# Width of keys and values of a head with a compressed cache, rotary part included (DeepSeek-V2 [2]
# and all models after it): 128 + 64 and 128 elements.
LATENT_HEAD_WIDTH = 192.0 + 128.0
# Widths of its compressed queries and keys with values, and of a head's key before the rotary part.
LATENT_QUERY, LATENT_KEYS, LATENT_ROTARY = 1536.0, 512.0, 64.0
# Bits of a quantised weight's share of its group's scale: 8 bits for 16 weights (NVFP4) or for 32
# (MXFP4), 20 for 128 (AWQ, GPTQ with its zero).
SCALE_BITS = 0.25
FEW_BITS = 4.0  # weights of no more bits than these come with scales of small groups


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
    `attention` : parameters of attention among `dense`
    `tables`, `head` : of the embedding and the output head, and of the head alone: quantised
        models keep them in 16 bits
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
    attention: Real = 0.0
    tables: Real = 0.0
    head: Real = 0.0


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
    first_wave: Real
    gathered: Real
    front_ms: Real
    step_tokens: Real
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
    score = shape.heads * (LATENT_HEAD_WIDTH if mla else 2.0 * shape.head_dim)
    attention = attention_params(
        growing, shape.hidden, shape.heads, shape.kv_heads, shape.head_dim, mla
    )
    both = shape.vocab * shape.hidden * (1.0 if shape.tied_embeddings else 2.0)
    dense = max(shape.total_params - expert - table, 0.05 * shape.total_params)
    return Network(
        dense=dense,
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
        attention=min(attention, 0.9 * dense),
        tables=min(both, 0.5 * shape.total_params),
        head=min(float(shape.vocab * shape.hidden), 0.5 * dense),
    )


def attention_params(
    layers: float, hidden: float, heads: float, kv_heads: float, head_dim: float, latent: bool
) -> float:
    """Parameters of the attention of all layers: projections in and out, compressed or not [2]."""
    if latent:
        key, value = LATENT_HEAD_WIDTH - 128.0, 128.0
        queries = hidden * LATENT_QUERY + LATENT_QUERY * heads * key
        keys = hidden * (LATENT_KEYS + LATENT_ROTARY)
        keys += LATENT_KEYS * heads * (key - LATENT_ROTARY + value)
        return layers * (queries + keys + heads * value * hidden)
    return layers * hidden * head_dim * 2.0 * (heads + kv_heads)


def stored_bits(weight_bits: float) -> float:
    """Bits that a weight takes with its share of the scales: 4 become 4.25."""
    return weight_bits + SCALE_BITS if weight_bits <= FEW_BITS else weight_bits


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
    """Two exchanges per layer of `tokens` activations in 16 bits: all-reduces [3].

    Attention by data needs none of its own. There the two are a gather before the feed-forward
    layer and a scatter after it, or of routed experts what each token sends to the GPUs of its k:
    of n GPUs (n − 1)·(1 − (1 − 1/n)^k) others, there in the weights' precision, back in 16 bits.
    """
    n = np.asarray(plan.tp)
    far = n > hw.domain
    latency = eff.allreduce_us * 1e-6 * np.where(far, eff.pcie_allreduce, 1.0)
    link = np.where(far, hw.host_link * eff.pcie_share, hw.link * eff.link_share)
    others = (n - 1.0) / n
    routed = others * (1.0 - others**net.top_k) * (np.clip(plan.weight_bytes, 1.0, 2.0) + 2.0) / 4.0
    by_data = np.where(np.asarray(net.experts) > 1, np.minimum(routed, others), others)
    share = np.where(np.asarray(plan.attention_dp) > 0, by_data, 2.0 * others)
    volume = share * tokens * net.hidden * 2.0
    calls = 2.0 * net.layers * np.where(n > 1, 1.0, 0.0)
    return np.asarray(calls * (latency * np.log2(np.maximum(n, 2.0)) ** 0.5 + volume / link))


def weight_bytes(net: Network, plan: Plan) -> Real:
    """Bytes of the weights on one GPU: tables in 16 bits at least, and where each GPU does the
    attention of requests of its own, all of the attention's.
    """
    more = np.maximum(2.0 - plan.weight_bytes, 0.0)
    whole = np.where(np.asarray(plan.attention_dp) > 0, net.attention * (plan.tp - 1.0), 0.0)
    total = net.stored * plan.weight_bytes + net.tables * more + whole * plan.weight_bytes
    return total / (plan.tp * plan.pp)


def _attention_gpus(plan: Plan, sequences: Real) -> Real:
    """GPUs over which the attention of so many sequences is divided."""
    own = np.clip(np.asarray(sequences), 1.0, plan.tp)
    return np.where(np.asarray(plan.attention_dp) > 0, own, plan.tp)


def products(
    net: Network, hw: Hardware, plan: Plan, eff: Efficiencies, tokens: Real, share: Real,
    sequences: Real,
) -> Real:  # fmt: skip
    """Seconds of all products of `tokens` tokens: the longer of reading weights and computing.

    Narrow slices fill a GPU badly: a product of width d on each of n GPUs takes 1 + w·n/d of its
    ideal time; with attention by data nothing is sliced and experts are whole. share : of the
    peak, what wide products reach; sequences : whose tokens they are
    """
    dp = np.asarray(plan.attention_dp) > 0
    reads = net.dense * plan.weight_bytes + net.head * np.maximum(2.0 - plan.weight_bytes, 0.0)
    reads = reads + np.where(dp, net.attention * (plan.tp - 1.0) * plan.weight_bytes, 0.0)
    uneven = net.attention * (plan.tp / _attention_gpus(plan, sequences) - 1.0)
    narrow = 1.0 + eff.narrow * np.where(dp, 1.0, plan.tp) / net.hidden
    read = hw.bandwidth * eff.weight_read * plan.tp
    compute = hw.peak * share * plan.tp / narrow
    dense = longest(reads / read, 2.0 * (net.dense + uneven) * tokens / compute, eff.roof)
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

    With pipeline stages a batch is cut into as many micro-batches; each token passes them all. A
    step is only taken for somebody: where fewer than one sequence is under way on average, the
    steps that are taken have one.
    """
    b = np.maximum(np.asarray(batch) / plan.pp, 1.0)
    product = products(net, hw, plan, eff, b, eff.matmul * eff.matmul_decode, b)
    cached = b * cache_bytes(net, plan, context) / cache_divisor(net, plan)
    cache = cached / (hw.bandwidth * eff.kv_read)
    own = b / np.where(np.asarray(plan.attention_dp) > 0, plan.tp, 1.0)  # of each scheduler
    overhead = eff.step_us + eff.layer_us * net.layers + eff.sequence_us * own
    return product + cache + allreduce_seconds(net, hw, plan, eff, b) + overhead * 1e-6


def prefill_seconds(
    net: Network, hw: Hardware, plan: Plan, eff: Efficiencies, batch: Real, prompt: Real,
    cached: Real = 0.0,
) -> Real:  # fmt: skip
    """Seconds to take in `batch` prompts of `prompt` tokens together, up to the first token.

    Prompts follow one another through pipeline stages [4]; a lone prompt passes all of them.
    cached : tokens before these that are found in the prefix cache: attended to, not worked through
    """
    m = np.maximum(np.asarray(batch), 1.0)
    filled = (m + plan.pp - 1.0) / (m * plan.pp)
    work = _prompts_seconds(net, hw, plan, eff, batch, prompt, cached)
    return np.asarray(work * filled + eff.prefill_ms * 1e-3)


def prompt_seconds_each(
    net: Network, hw: Hardware, plan: Plan, eff: Efficiencies, together: Real, prompt: Real,
    cached: Real = 0.0,
) -> Real:  # fmt: skip
    """Seconds for which one of `together` prompts keeps the busiest stage of a replica at work."""
    work = _prompts_seconds(net, hw, plan, eff, together, prompt, cached, True) / plan.pp
    return (work + eff.prefill_ms * 1e-3) / together


def prompt_seconds_shared(
    net: Network, hw: Hardware, plan: Plan, eff: Efficiencies, prompt: Real, cached: Real = 0.0
) -> Real:
    """Seconds for which a prompt of a stream keeps the busiest stage of a replica at work.

    Short prompts are taken in together and share what a step costs once. What a lone prompt takes
    beyond this (its front end, launches) passes beside the work on others.
    """
    together = np.maximum(2.0 * CHUNK_TOKENS / np.asarray(prompt), 1.0)
    return prompt_seconds_each(net, hw, plan, eff, together, prompt, cached)


def _prompts_seconds(
    net: Network, hw: Hardware, plan: Plan, eff: Efficiencies, batch: Real, prompt: Real,
    cached: Real, stream: bool = False,
) -> Real:  # fmt: skip
    """Seconds of prompts through all layers, one stage after the other.

    stream : whether others follow, so that every GPU has a prompt to attend to
    """
    tokens = np.asarray(batch) * prompt
    sequences = np.maximum(batch, plan.tp) if stream else batch
    product = products(net, hw, plan, eff, tokens, eff.matmul, sequences)
    pairs = tokens * cached_tokens(net, cached + np.asarray(prompt) / 2.0)
    scores = 2.0 * net.score_width * net.attention_layers * pairs
    attention = scores / (hw.peak16 * eff.attention * _attention_gpus(plan, sequences))
    overhead = (eff.layer_us * net.layers + eff.prefill_token_us * tokens) * 1e-6
    return product + attention + allreduce_seconds(net, hw, plan, eff, tokens) + overhead


def memory_bytes(
    net: Network, plan: Plan, eff: Efficiencies, batch: Real, context: Real, step_tokens: Real
) -> Real:
    """Peak memory of the fullest GPU: weights, cache, activations of a step, engine.

    step_tokens : tokens that one step computes at most (prefill)
    """
    weights = weight_bytes(net, plan) * eff.weight_memory
    cached = batch * cache_bytes(net, plan, context) / (cache_divisor(net, plan) * plan.pp)
    # Hidden states are whole on every GPU, the MLP's wide intermediates are split: about 1 to 2.
    working = eff.working * step_tokens * net.hidden * 2.0 * (1.0 + 2.0 / plan.tp)
    logits = eff.sampling * batch * net.vocab * 4.0 / plan.tp
    shared = np.where(np.asarray(plan.tp) > 1, eff.group_gib + eff.peer_gib * (plan.tp - 1.0), 0.0)
    engine = (eff.engine_gib + shared) * GIB
    return weights + cached * eff.cache_memory + working + logits + engine


def engines_of(plan: Plan) -> Real:
    """Schedulers of a replica: one a pipeline stage and, with attention by data, one a GPU."""
    return plan.pp * np.where(np.asarray(plan.attention_dp) > 0, plan.tp, 1.0)


def most_sequences(plan: Plan) -> Real:
    """Sequences that a replica schedules at most."""
    return np.asarray(MAX_SEQUENCES * engines_of(plan))


def slots(
    net: Network, hw: Hardware, plan: Plan, eff: Efficiencies, context: Real, usable: float
) -> Real:
    """Sequences whose cache of `context` tokens fits beside the weights; below 1: none fits."""
    fixed = memory_bytes(net, plan, eff, 0.0, 0.0, CHUNK_TOKENS)
    each = cache_bytes(net, plan, context) / (cache_divisor(net, plan) * plan.pp)
    each = each * eff.cache_memory + eff.sampling * net.vocab * 4.0 / plan.tp
    return np.maximum(hw.memory * usable - fixed, 0.0) / np.maximum(each, 1.0)
