"""Search for the best way to split a training job over GPUs: every valid plan, vectorised.

A plan is a row of arrays; validity and memory prune, the step model ranks. Knows the step model
and the catalogue's hardware, nothing of prices beyond one rate per GPU hour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from engine.catalogue import Accelerator, Network
from engine.errors import InputError
from engine.estimate.collectives import Array
from engine.estimate.estimate import Estimate
from engine.estimate.shape import ModelShape
from engine.estimate.training import (
    NATIVE,
    PEAK_CLASSES,
    TUNED,
    StepInputs,
    interval_factors,
    shipped_calibration,
    step_time,
)

GIB = 2.0**30
MAX_GPUS = 16_384
USABLE = 0.94  # of the memory that the card reports
UNEVEN = 1.05  # most that the fullest stage may hold of the mean
TASKS = ("pretrain", "sft", "lora")
_PCIE_BYTES_PER_S = {"PCIe3": 12e9, "PCIe4": 25e9, "PCIe5": 50e9}
_USUAL_EFFICIENCY = 0.75  # of a network's nominal rate, in the rows of the calibration
# Generations with calibration rows: pattern of the catalogue's sku, class of the efficiency.
_GENERATIONS = (
    (r"^a100-sxm", "a100"), (r"^(h100-sxm|h200-sxm)", "h100"), (r"^g?b[23]00", "b200"),
    (r"^mi3", "amd"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the step model needs of a GPU and its network: FLOP/s, B/s, GPUs, GiB."""

    peak: float
    peak16: float
    width: float
    peak_class: int
    hbm: float
    fast: float
    domain: float
    nic: float
    memory_gib: float
    calibrated: bool


@dataclass(slots=True)
class Plans:
    """Candidate plans as columns of one length."""

    gpus: Array
    tp: Array
    pp: Array
    vp: Array
    cp: Array
    ep: Array
    dp: Array
    zero: Array  # 1: sharded optimizer; 3: weights sharded too
    micro_batch: Array
    micro_batches: Array
    recompute: Array  # 1: full recomputation

    def __len__(self) -> int:
        return len(self.gpus)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Plans:
        """Some of the plans."""
        return Plans(*(getattr(self, name)[rows] for name in self.__slots__))


def hardware(acc: Accelerator, network: Network | None, precision: str = "bf16") -> Hardware:
    """The step model's view of an accelerator on a network; none means no network at all."""
    peak16 = (acc.bf16_tflops_dense or acc.fp16_tflops_dense or acc.fp32_tflops or 0.0) * 1e12
    if peak16 <= 0:
        raise InputError("no peak rate is known", where=acc.sku, right="an accelerator with one")
    bits, peak = 16, peak16
    if precision in ("fp8", "mxfp8") and acc.fp8_tflops_dense:
        bits, peak = 8, acc.fp8_tflops_dense * 1e12
    generation = next((g for pattern, g in _GENERATIONS if re.search(pattern, acc.sku)), "other")
    name = f"{generation}_{bits}"
    calibrated = name in PEAK_CLASSES
    if not calibrated:
        name = "other_16" if bits == 16 else "other_8"
    nvlink = acc.scaleup_gb_per_s_per_direction
    together = acc.scaleup_domain_gpus or 1
    host = _PCIE_BYTES_PER_S.get((acc.host_link or "").split(" ")[0], 25e9)
    return Hardware(
        peak=peak, peak16=peak16, width=bits / 8, peak_class=PEAK_CLASSES.index(name),
        hbm=acc.memory_bandwidth_gb_per_s * 1e9,
        fast=nvlink * 1e9 if nvlink and together > 1 else host,
        domain=float(max(together, acc.max_per_node)),
        nic=_nic(network), memory_gib=acc.memory_gib_reported or acc.memory_gb * 0.93,
        calibrated=calibrated and generation not in ("amd", "other"),
    )  # fmt: skip


def _nic(network: Network | None) -> float:
    """Rate of one GPU out of its node [B/s], nominal where the network is as good as usual."""
    if network is None or not network.nominal_gb_per_s_per_direction_per_gpu:
        return 1e6
    share = (network.efficiency_of_nominal or _USUAL_EFFICIENCY) / _USUAL_EFFICIENCY
    return network.nominal_gb_per_s_per_direction_per_gpu * 1e9 * min(share, 1.25)


# ---------------------------------------------------------------- from plans to the step model


def network_of(shape: ModelShape, seq_len: float) -> dict[str, float]:
    """The model's columns of `StepInputs`: parameters and widths of an average layer."""
    h, layers = float(shape.hidden), float(shape.layers)
    matrices = 3.0 if shape.gated_mlp else 2.0
    q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    attention, core, kv_width = h * (2.0 * q + 2.0 * kv), float(q), float(kv)
    if shape.attention == "mla" and shape.mla_cache_width:
        rank, rope, query_rank = shape.mla_cache_width - 64, 64, 1536
        query = 128 + rope
        attention = h * (query_rank + rank + rope) + shape.heads * (
            query * query_rank + 256 * rank + 128 * h
        )
        core, kv_width = shape.heads * (query + 128) / 2.0, float(shape.heads * query)
    dense = matrices * h * shape.ffn
    expert = expert_params = routed = 0.0
    if shape.is_moe:
        share = max(layers - shape.dense_layers, 0.0) / layers
        expert = matrices * h * (shape.expert_ffn or shape.ffn)
        dense = dense * (1 - share) + share * shape.shared_experts * expert
        expert_params = min(shape.experts * expert * layers * share, shape.total_params)
        routed, expert = float(shape.experts_per_token), expert * share
    attended = seq_len
    if shape.window_layers and shape.window_tokens:
        far = 1.0 - shape.window_layers / layers
        attended = seq_len * far + (1 - far) * min(2.0 * shape.window_tokens, seq_len)
    return {
        "layers": layers, "hidden": h, "attention_weights": attention,
        "heads": float(shape.heads), "core_width": core, "kv_width": kv_width,
        "attended": attended, "dense_weights": dense, "expert_weights": expert,
        "experts": float(shape.experts if shape.is_moe else 0), "routed": routed,
        "params": shape.total_params, "expert_params": expert_params,
        "vocab": float(shape.vocab), "seq": seq_len,
    }  # fmt: skip


def step_inputs(
    shape: ModelShape, plans: Plans, hw: Hardware, seq_len: float, task: str, year: float
) -> StepInputs:
    """Rows of the step model for plans of one job; scalars broadcast over the plans."""
    n = len(plans)
    full = plans.zero >= 3
    one = network_of(shape, seq_len) | {
        "lora": float(task == "lora"), "flash": 1.0, "width": hw.width, "peak": hw.peak,
        "peak16": hw.peak16, "hbm": hw.hbm, "fast": hw.fast, "domain": hw.domain, "nic": hw.nic,
        "year": year, "offset": 0.0, "gathers": 2.0,
    }  # fmt: skip
    return StepInputs(
        **{k: np.asarray(v) for k, v in one.items()},
        micro_batch=plans.micro_batch, micro_batches=plans.micro_batches,
        recompute=plans.recompute, recompute_core=plans.recompute, gpus=plans.gpus, tp=plans.tp,
        pp=plans.pp, vp=plans.vp, cp=plans.cp, ep=plans.ep, dp=plans.dp,
        full_shard=full.astype(float), shard_ranks=plans.dp * plans.cp,
        peak_class=np.full(n, hw.peak_class), stack=np.where(full, NATIVE, TUNED),
    )  # fmt: skip


# ---------------------------------------------------------------- the space of plans


def _divisors(n: int, limit: int) -> list[int]:
    return [d for d in range(1, min(n, limit) + 1) if n % d == 0]


def _powers(limit: float) -> list[int]:
    return [2**k for k in range(15) if 2**k <= limit]


def enumerate_plans(
    shape: ModelShape, hw: Hardware, gpus: int, seq_len: int, global_batch: int
) -> Plans:
    """All valid plans on this many GPUs: sizes multiply to it, and layers and batch divide."""
    tps = [t for t in _powers(min(hw.domain, 8, gpus)) if shape.heads % t == 0]
    pps = [p for p in _divisors(shape.layers, 64) if gpus % p == 0]
    cps = [c for c in _powers(min(64, gpus)) if c == 1 or seq_len / c >= 2048]
    eps = [e for e in _powers(gpus) if shape.experts % e == 0] if shape.is_moe else [1]
    axes = np.array(list(product(tps, pps, cps, eps, (1, 2, 4, 8), (0, 1), (1, 3))), dtype=float)
    tp, pp, cp, ep, micro, again, zero = axes.T
    dp = gpus / (tp * pp * cp)
    each = global_batch / np.maximum(dp, 1e-9) / micro
    ok = (dp >= 1) & (dp % 1 == 0) & (each >= 1) & (each % 1 == 0)
    ok &= (zero == 1) | (pp == 1)
    ok &= (ep == 1) | ((dp * cp * tp) % ep == 0)
    ok &= (pp == 1) | (each >= pp)
    rows = axes[ok]
    tp, pp, cp, ep, micro, again, zero = rows.T
    dp, each = dp[ok], each[ok]
    return Plans(
        gpus=np.full(len(rows), float(gpus)), tp=tp, pp=pp, vp=_virtual(shape.layers, pp, each),
        cp=cp, ep=ep, dp=dp, zero=zero, micro_batch=micro, micro_batches=each, recompute=again,
    )  # fmt: skip


def _virtual(layers: int, pp: Array, each: Array) -> Array:
    """The deepest interleaving up to 8 that divides the layers and the micro-batches."""
    best = np.ones_like(pp)
    for v in (2, 3, 4, 5, 6, 7, 8):
        fits = (pp > 1) & (layers % (pp * v) == 0) & (each % pp == 0)
        best = np.where(fits, float(v), best)
    return np.asarray(best)


# ---------------------------------------------------------------- memory, closed form


def memory_gib(shape: ModelShape, plans: Plans, seq_len: float, task: str) -> Array:
    """Peak memory of the fullest GPU [GiB], in closed form, for many plans at once.

    `engine.estimate.memory` itemises one plan.
    """
    return memory_of_network(network_of(shape, seq_len), plans, task)


def memory_of_network(net: Mapping[str, float], p: Plans, task: str) -> Array:
    """States, activations, logits and buffers [GiB].

    States as in Rajbhandari 2020, activations as in Korthikanti 2022 with flash attention and
    sequence parallelism.
    """
    full = p.zero >= 3
    hidden, layers = net["hidden"], net["layers"]
    shared = (net["params"] - net["expert_params"]) / (p.tp * p.pp)
    experts = net["expert_params"] / (p.pp * np.maximum(p.ep, 1))
    ranks = p.dp * p.cp
    copies = np.maximum(p.gpus / (p.pp * np.maximum(p.ep, 1)), 1)
    if task == "lora":
        states = 2.2 * (shared / np.where(full, ranks, 1) + experts / np.where(full, copies, 1))
    else:
        kept, spread = np.where(full, 0.0, 6.0), np.where(full, 16.0, 12.0)
        states = shared * (kept + spread / ranks) + experts * (kept + spread / copies)
    # Two layers are gathered at a time when the weights are sharded: bf16 with gradients.
    layer = (net["attention_weights"] + net["dense_weights"]) / p.tp
    states = states + np.where(full, 2 * 2 * 2 * layer, 0.0)
    tokens = p.micro_batch * net["seq"] / p.cp / p.tp
    mlp = (net["dense_weights"] + net["routed"] * net["expert_weights"]) / hidden
    each = tokens * (8 * hidden + 4 * net["core_width"] + 2.2 * mlp + 4 * net["routed"] * hidden)
    # Interleaving keeps more micro-batches in flight than the p of a plain pipeline.
    held = np.where(p.vp > 1, 1 + (p.pp - 1) / (p.pp * p.vp), 1.0) * layers
    held = np.minimum(held, layers / p.pp * p.micro_batches)
    activations = np.where(p.recompute > 0, 2 * tokens * hidden * held + each, each * held)
    # Logits in fp32 with their gradients, on the last stage, which holds few activations.
    logits = np.where(p.pp > 1, 0.0, 8.0 * tokens * net["vocab"])
    return np.asarray((states + activations + logits) * 1.04 / GIB + 1.6)


# ---------------------------------------------------------------- a quick answer for decisions


def usual_global_batch(shape: ModelShape, seq_len: int, gpus: int, task: str) -> int:
    """Sequences of a usual batch: 4 Mi tokens to pretrain, 0.25 Mi to fine-tune.

    Large fleets train with more, up to 16 Mi tokens (Llama 3 405B on 16,384 GPUs).
    """
    usual, most = (2**22, 2**24) if task == "pretrain" else (2**18, 2**22)
    tokens = min(max(usual, gpus * seq_len), most)
    return int(max(2 ** round(np.log2(max(tokens / seq_len, 1))), 1))


def _shortlist(shape: ModelShape, hw: Hardware, gpus: int, seq_len: int, batch: int) -> Plans:
    """A few dozen plans in use: FSDP, or tensor and pipeline sizes with a sharded optimizer."""
    tps = [t for t in (1, 2, 4, 8) if t <= min(hw.domain, gpus) and shape.heads % t == 0]
    pps = [p for p in (1, 2, 4, 8, 16) if p <= min(shape.layers, gpus)]
    most = float(2 ** int(np.log2(min(shape.experts, 64)))) if shape.is_moe else 1.0
    rows = []
    for tp, pp, zero in product(tps, pps, (1.0, 3.0)):
        if tp * pp > gpus or (zero == 3.0 and (pp > 1 or tp > 1)):
            continue
        dp = gpus / (tp * pp)
        for micro, again in product((1.0, 2.0), (0.0, 1.0)):
            each = batch / dp / micro
            if each < 1 and tp * pp < min(64, max(tps) * pps[-1], gpus):
                continue
            each = max(each, 1.0)
            vp = _usual_interleaving(shape.layers, pp, each)
            rows.append((gpus, tp, pp, vp, 1.0, min(most, dp * tp), dp, zero, micro, each, again))
    return Plans(*np.array(rows, dtype=float).T)


def _usual_interleaving(layers: int, pp: int, each: float) -> float:
    """The deepest interleaving in use: up to 8, stages of nearly as many layers.

    Llama 3 405B ran its 126 layers as 16 x 8 stages; it needs a micro-batch for every stage.
    """
    if pp == 1 or each < pp:
        return 1.0
    uneven = {v: np.ceil(layers / (pp * v)) * pp * v / layers for v in (8, 6, 5, 4, 3, 2)}
    return float(next((v for v, excess in uneven.items() if excess <= UNEVEN), 1))


@dataclass(frozen=True, slots=True)
class QuickPlan:
    """The plan behind a quick answer."""

    tp: int
    pp: int
    dp: int
    ep: int
    zero: int
    micro_batch: int
    recompute: bool
    memory_gib: float
    fits: bool
    step_s: float
    global_batch: int
    step_interval_s: tuple[float, float]
    calibrated: bool
    draws: Array | None = None


def quick_training_time(
    shape: ModelShape,
    tokens: float,
    accelerator: Accelerator,
    n_gpus: int,
    network: Network | None,
    *,
    seq_len: int = 4096,
    task: str = "pretrain",
    draws: Array | None = None,
) -> tuple[Estimate, QuickPlan]:
    """GPU-hours of a run on the best of a few dozen usual plans, without restarts or failures.

    tokens : of the whole run
    draws : standard normal draws; the plan then carries the GPU-hours of each

    Raises
    ------
    InputError : for a task, a count or a token number that makes no sense
    """
    _check(tokens, n_gpus, seq_len, task)
    hw = hardware(accelerator, network)
    batch = usual_global_batch(shape, seq_len, n_gpus, task)
    plans = _shortlist(shape, hw, int(n_gpus), seq_len, batch)
    calibration = shipped_calibration()
    inputs = step_inputs(shape, plans, hw, float(seq_len), task, calibration.newest_year)
    done = plans.micro_batch * plans.micro_batches * plans.dp  # sequences of the step
    seconds = step_time(inputs, calibration.parameters).total
    gib = memory_gib(shape, plans, float(seq_len), task)
    fits = gib <= hw.memory_gib * USABLE
    rate = np.where(fits | ~fits.any(), seconds / done, np.inf)
    rate = rate if fits.any() else gib
    i = int(np.argmin(rate))
    hours = tokens / seq_len / done[i] * seconds[i] * n_gpus / 3600
    low, high = interval_factors(moe=shape.is_moe, known=False, calibrated=hw.calibrated)
    spread = (np.log(high) - np.log(low)) / 2.563
    samples = None if draws is None else np.asarray(hours * np.exp(spread * np.asarray(draws)))
    plan = QuickPlan(
        tp=int(plans.tp[i]), pp=int(plans.pp[i]), dp=int(plans.dp[i]), ep=int(plans.ep[i]),
        zero=int(plans.zero[i]), micro_batch=int(plans.micro_batch[i]),
        recompute=bool(plans.recompute[i]), memory_gib=float(gib[i]), fits=bool(fits[i]),
        step_s=float(seconds[i]), global_batch=round(float(done[i])),
        step_interval_s=(float(seconds[i] * low), float(seconds[i] * high)),
        calibrated=hw.calibrated, draws=samples,
    )  # fmt: skip
    estimate = Estimate(hours * low, hours, hours * high, "GPU h", calibration.sources)
    return estimate, plan


def _check(tokens: float, gpus: float, seq_len: float, task: str) -> None:
    if task not in TASKS:
        raise InputError(f"no such task: {task}", where="task", right=f"one of {', '.join(TASKS)}")
    if not (np.isfinite(tokens) and tokens > 0):
        raise InputError("tokens must be positive", where="tokens", right="such as 2e12")
    if not 1 <= gpus <= MAX_GPUS:
        raise InputError(f"{gpus} GPUs", where="n_gpus", right=f"1 to {MAX_GPUS:,}")
    if not 1 <= seq_len <= 2**22:
        raise InputError(f"sequences of {seq_len} tokens", where="seq_len", right="1 to 4,194,304")
