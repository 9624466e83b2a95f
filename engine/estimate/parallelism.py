"""The space of ways to split a training step: every valid plan as columns of arrays.

Makes plans and the step model's rows of them. Knows shapes and hardware; memory, search and
prices live elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.estimate.collectives import Array
from engine.estimate.plan import TrainingPlan
from engine.estimate.shape import ModelShape
from engine.estimate.training import JAX, LEGACY, NATIVE, PLAIN, TUNED, StepInputs
from engine.estimate.training_hardware import Hardware

MAX_GPUS = 16_384
MAX_TP, MAX_PP, MAX_CP = 8, 64, 64
LEAST_CONTEXT = 4096  # tokens of a sequence that a context rank keeps at least
MICRO_BATCHES = (1, 2, 4, 8, 16)
# Most that the fullest stage may hold of the mean, which paces the rest: DeepSeek-V2's 60 layers on
# 16 stages are 1.07. Beyond an eighth a plan with fewer stages is the better.
UNEVEN = 1.125
MAX_VP = 8
NONE, SELECTIVE, FULL = 0, 1, 2  # recomputation
# Share of the forward products done again: PyTorch's selective policy keeps every second product;
# Megatron-type code computes the activation function again, hardly more than its traffic.
SELECTIVE_NATIVE, SELECTIVE_MEGATRON = 0.33, 0.1

Software = Literal["recipes", "own", "pytorch", "jax", "legacy"]
SOFTWARE: dict[Software, str] = {
    "recipes": "the vendor's tuned recipes (NeMo, Megatron-Bridge) on Hopper and later, such code "
    "as a team sets it up on others, or PyTorch FSDP",
    "own": "Megatron-type code as a team sets it up, or PyTorch FSDP",
    "pytorch": "PyTorch's own parallelism (FSDP2, torchtitan)",
    "jax": "JAX (MaxText, Levanter)",
    "legacy": "Megatron-type code before fused attention (2020 to 2022)",
}
_STACKS = {"recipes": TUNED, "own": PLAIN, "pytorch": NATIVE, "jax": JAX, "legacy": LEGACY}


@dataclass(slots=True)
class Plans:
    """Candidate plans as columns of one length."""

    gpus: Array
    batch: Array  # sequences of a step
    tp: Array
    pp: Array
    vp: Array
    cp: Array
    ep: Array
    dp: Array
    zero: Array  # 1: sharded optimizer; 2: gradients too; 3: weights too
    shard: Array  # ranks that share one copy of the sharded states
    micro_batch: Array
    micro_batches: Array
    recompute: Array  # NONE, SELECTIVE or FULL
    layers: Array  # of the model, filled up where the stages are uneven

    def __len__(self) -> int:
        return len(self.gpus)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Plans:
        """Some of the plans."""
        return Plans(*(getattr(self, f.name)[rows] for f in fields(Plans)))


def joined(parts: Sequence[Plans]) -> Plans:
    """Plans below one another."""
    return Plans(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Plans)))


def enumerate_plans(
    shape: ModelShape, hw: Hardware, gpus: int, seq_len: int, global_batch: int, task: str
) -> Plans:
    """All valid plans on this many GPUs: sizes multiply to it, and each rank has a micro-batch.

    Stages may be uneven by up to an eighth, at the pace of the fullest. None of them recomputes:
    what does not fit may (`with_recompute`).

    global_batch : sequences of a step; 0 for the least that each plan can work on
    """
    tps = [t for t in _tensor_sizes(gpus, hw) if _splits(shape, t)]
    pps = [p for p in _stages(shape.layers) if gpus % p == 0]
    cps = [c for c in _powers(min(MAX_CP, gpus))
           if c == 1 or (seq_len / c >= LEAST_CONTEXT and seq_len % (2 * c) == 0)]  # fmt: skip
    if task == "qlora" or not of_a_usual_kind(shape):
        # No trainer splits 4-bit weights, or other networks, but by sharding them.
        tps, pps, cps = [1], [1], [1]
    spread = shape.is_moe and task != "qlora"
    eps = [e for e in _expert_sizes(gpus, hw) if shape.experts % e == 0] if spread else [1]
    # Ways to shard: ZeRO-1, ZeRO-2, FSDP over all ranks; FSDP and ZeRO-1 inside each machine.
    ways: tuple[int, ...] = (1, 2, 3, 4, 5) if task in ("pretrain", "finetune") else (1, 3, 4)
    tp, pp, cp, ep, micro, way = _product(tps, pps, cps, eps, MICRO_BATCHES, ways)
    dp = gpus / (tp * pp * cp)
    share = global_batch / np.maximum(dp, 1e-9) / micro if global_batch else pp
    # Where the batch does not divide, some ranks idle in the last micro-batch.
    each = np.ceil(share)
    ranks = dp * cp
    ok = (dp >= 1) & (dp % 1 == 0) & ((share >= 1) | (micro == 1))
    ok &= (ranks > 1) | (way == 1)
    # Between pipeline stages no trainer shards more than the optimizer.
    ok &= (way == 1) | (way == 5) | (pp == 1)
    node = hw.node
    within = np.where(tp < node, np.maximum(node // np.maximum(tp, 1), 1), 1.0)
    ok &= (way < 4) | ((within > 1) & (ranks > within) & (ranks % within == 0) & (ep == 1))
    ok &= ((ranks * tp) % ep == 0) & ((pp == 1) | (each >= pp))
    tp, pp, cp, ep, micro, way, dp, each, within = (
        x[ok] for x in (tp, pp, cp, ep, micro, way, dp, each, within)
    )
    vp = _virtual(shape.layers, pp, each)
    # Interleaving shortens the bubble and holds more activations: with it, and without.
    deep = np.flatnonzero(vp > 1)
    tp, pp, cp, ep, micro, way, dp, each, within, vp = (
        np.concatenate([x, y[deep]])
        for x, y in zip(
            (tp, pp, cp, ep, micro, way, dp, each, within, vp),
            (tp, pp, cp, ep, micro, way, dp, each, within, np.ones_like(vp)), strict=True,
        )
    )  # fmt: skip
    done = micro * each * dp
    zero = np.select([way == 5, way == 4], [1.0, 3.0], way)
    return Plans(
        gpus=np.full(len(tp), float(gpus)),
        batch=np.full(len(tp), float(global_batch)) if global_batch else done,
        tp=tp, pp=pp, vp=vp, cp=cp, ep=ep, dp=dp, zero=zero,
        shard=np.where(way >= 4, within, dp * cp), micro_batch=micro, micro_batches=each,
        recompute=np.full(len(tp), float(NONE)), layers=_filled(shape.layers, pp * vp),
    )  # fmt: skip


def plan_row(shape: ModelShape, plan: TrainingPlan) -> Plans:
    """One plan as a row; where nothing is sharded each rank is a shard of its own."""
    recompute = {"none": NONE, "selective": SELECTIVE, "full": FULL}[plan.recompute]
    stages = plan.pp * plan.vp
    one = (
        plan.gpus, plan.global_batch_seqs or plan.micro_batch * plan.dp, plan.tp, plan.pp, plan.vp,
        plan.cp, plan.ep, plan.dp, max(plan.zero_stage, 1),
        plan.shard_ranks if plan.zero_stage else 1, plan.micro_batch,
        plan.micro_batches, recompute, -(-shape.layers // stages) * stages,
    )  # fmt: skip
    return Plans(*(np.array([float(value)]) for value in one))


def with_recompute(plans: Plans, recompute: int) -> Plans:
    """The same plans with another amount of recomputation."""
    return replace(plans, recompute=np.full(len(plans), float(recompute)))


def of_a_usual_kind(shape: ModelShape) -> bool:
    """Decoders with attention in every layer: what Megatron-type code splits, and what steps were
    published of."""
    return shape.kind == "decoder" and not shape.state_layers and shape.attention != "none"


def _tensor_sizes(gpus: int, hw: Hardware) -> list[int]:
    """Sizes of tensor parallelism: powers of two; of the GPUs of one machine any divisor."""
    most = int(min(hw.domain, MAX_TP, gpus))
    if gpus > hw.node:
        return _powers(most)
    return [t for t in range(1, most + 1) if gpus % t == 0]


def _expert_sizes(gpus: int, hw: Hardware) -> list[int]:
    """Sizes of expert parallelism: powers of two, and what fills whole machines or one's part."""
    return [
        e for e in range(1, gpus + 1)
        if e & (e - 1) == 0
        or (gpus % e == 0 and (hw.node % e == 0 or e % hw.node == 0 or gpus <= hw.node))
    ]  # fmt: skip


def _splits(shape: ModelShape, tp: int) -> bool:
    """Whether tensor parallelism divides heads, groups of keys and the MLP, as trainers ask.

    Widths that were made up from a size can be made to divide.
    """
    keys = max(shape.kv_heads, 1)
    widths = (shape.heads, shape.ffn, shape.expert_ffn) if shape.exact else (shape.heads,)
    return all(w % tp == 0 for w in widths) and (keys % tp == 0 or tp % keys == 0)


def _powers(limit: float) -> list[int]:
    return [2**k for k in range(15) if 2**k <= limit]


def _product(*axes: Sequence[float]) -> tuple[Array, ...]:
    """Every combination of the axes, a column for each."""
    grid = np.meshgrid(*(np.asarray(a, dtype=float) for a in axes), indexing="ij")
    return tuple(column.ravel() for column in grid)


def _filled(layers: float, stages: Array) -> Array:
    """Layers when the largest stage sets the pace."""
    return np.asarray(np.ceil(layers / stages) * stages)


def _stages(layers: int) -> list[int]:
    """Numbers of pipeline stages that split the layers (nearly) evenly."""
    return [p for p in range(1, min(layers, MAX_PP) + 1) if -(-layers // p) * p <= layers * UNEVEN]


def _virtual(layers: int, pp: Array, each: Array) -> Array:
    """The interleaving up to 8 that paces a pipeline the least: its fullest stage times the bubble.

    Finer chunks shorten the bubble, (p − 1)/(m·v) of the work, and may leave the stages less even.
    It needs a micro-batch for every stage at a time.
    """
    best = np.ones_like(pp)
    pace = _filled(layers, pp) * (1 + (pp - 1) / np.maximum(each, 1))
    for v in range(2, MAX_VP + 1):
        told = _filled(layers, pp * v) * (1 + (pp - 1) / (np.maximum(each, 1) * v))
        even = _filled(layers, pp * v) <= np.maximum(layers * UNEVEN, _filled(layers, pp))
        better = (pp > 1) & (each >= pp) & even & (told < pace)
        best, pace = np.where(better, float(v), best), np.where(better, told, pace)
    return np.asarray(best)


# --- from plans to the step model


def network_of(shape: ModelShape, seq_len: float) -> dict[str, float]:
    """The model's columns of `StepInputs`: parameters and widths of an average layer.

    What a token passes beside attention and routed experts is an MLP to the step model: the MLP,
    shared experts, state-space layers, a tower for images.
    """
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
    # Hybrids have attention in some layers alone.
    attends = min((layers if shape.kv_layers is None else shape.kv_layers) / layers, 1.0)
    attention, core, kv_width = attention * attends, core * attends, kv_width * attends
    expert = expert_params = routed = 0.0
    if shape.is_moe:
        share = max(layers - shape.dense_layers, 0.0) / layers
        expert = matrices * h * (shape.expert_ffn or shape.ffn)
        expert_params = min(shape.experts * expert * layers * share, shape.total_params)
        routed, expert = float(shape.experts_per_token), expert * share
    each = (shape.active_params - shape.embedding_params) / layers
    dense = max(each - attention - routed * expert, 0.0)
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


def stack_of(
    plans: Plans, software: Software, recipes: bool = True, task: str = "pretrain"
) -> NDArray[np.int_]:
    """Family of software of each plan: weights are sharded by PyTorch (or JAX) alone.

    recipes : whether vendors' recipes are for the hardware; elsewhere a team runs such code itself,
        and PyTorch alone where nothing splits the model
    task : 4-bit weights (qlora) are PyTorch's too, no Megatron-type code keeps them
    """
    sharded = {"jax": JAX, "legacy": LEGACY}.get(software, NATIVE)
    if task == "qlora":
        return np.where(plans.zero >= 3, sharded, JAX if software == "jax" else NATIVE)
    if software != "recipes" or recipes:
        return np.where(plans.zero >= 3, sharded, _STACKS[software])
    alone = plans.tp * plans.pp * plans.cp * plans.ep == 1
    return np.where((plans.zero >= 3) | alone, NATIVE, PLAIN)


def megatron_type(
    plans: Plans, software: Software, recipes: bool = True, task: str = "pretrain"
) -> Array:
    """1 where the code is of the Megatron type: its selective recomputation is another."""
    stack = stack_of(plans, software, recipes, task)
    return np.asarray(np.isin(stack, (TUNED, PLAIN, LEGACY))).astype(float)


def launched_as_pytorch(plans: Plans, software: Software, precision: str) -> NDArray[np.bool_]:
    """Whether a plan that is timed as Megatron-type code starts in PyTorch's all the same.

    Where nothing splits the model, the launch kit takes PyTorch, but for 8-bit products, which
    are the vendor's recipes' alone.
    """
    alone = plans.tp * plans.pp * plans.cp * plans.ep == 1
    return np.asarray(alone & (software in ("recipes", "own") and precision not in ("fp8", "fp4")))


def step_inputs(
    shape: ModelShape, plans: Plans, hw: Hardware, seq_len: float, task: str,
    year: float | Array, software: Software = "recipes",
) -> StepInputs:  # fmt: skip
    """Rows of the step model for plans of one job; scalars broadcast over the plans."""
    n = len(plans)
    reduced = plans.zero >= 2
    megatron = megatron_type(plans, software, hw.recipes, task) > 0
    selective = np.where(megatron, SELECTIVE_MEGATRON, SELECTIVE_NATIVE)
    again = np.select([plans.recompute == FULL, plans.recompute == SELECTIVE], [1.0, selective], 0)
    one = network_of(shape, seq_len) | {
        "lora": float(task in ("lora", "qlora")), "four_bit": float(task == "qlora"),
        "etp": 1.0,
        "flash": float(software != "legacy"), "width": hw.width,
        "peak": hw.peak, "peak16": hw.peak16,
        "hbm": hw.hbm, "fast": hw.fast, "domain": hw.domain, "nic": hw.nic,
        "offset": float(np.log1p(hw.slower)),
    }  # fmt: skip
    one.pop("layers")
    return StepInputs(
        **{k: np.asarray(v) for k, v in one.items()},
        layers=plans.layers, micro_batch=plans.micro_batch, micro_batches=plans.micro_batches,
        recompute=again, recompute_core=(plans.recompute == FULL).astype(float),
        gpus=plans.gpus, tp=plans.tp, pp=plans.pp, vp=plans.vp, cp=plans.cp, ep=plans.ep,
        dp=plans.dp, full_shard=reduced.astype(float), shard_ranks=plans.shard,
        # ZeRO-2 gathers its weights once a step.
        gathers=np.where(plans.zero >= 3, 2.0, 1.0 / plans.micro_batches),
        year=np.broadcast_to(np.asarray(year, dtype=float), plans.gpus.shape),
        peak_class=np.full(n, hw.peak_class), stack=stack_of(plans, software, hw.recipes, task),
    )  # fmt: skip
