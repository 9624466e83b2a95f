"""Memory of one GPU during training, item by item [GiB]: of one plan, or of very many at once.

From a model's shape and a plan to the numbers that `memory_terms` counts with. Knows no prices,
no speed and no Streamlit.

References
----------
[1] Rajbhandari et al. 2020, arXiv 1910.02054: 16 bytes a parameter, sharded by ZeRO stage.
[2] Dettmers et al. 2023, arXiv 2305.14314: 4-bit weights with scales quantized again.
[3] DeepSeek-AI 2024, arXiv 2412.19437: latent attention, heads of 128 + 64 and of 128.
[4] Hu et al. 2021, arXiv 2106.09685: low-rank adapters.
[5] Gu and Dao 2023, arXiv 2312.00752: a selective state-space layer expands its width twice.
[6] Dettmers et al. 2022, arXiv 2110.02861: 8-bit moments, embeddings' in 32 bits.
[7] PEFT, `prepare_model_for_kbit_training`: what is not in 4 bits is cast to 32, so that every
    layer passes 32 bits on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Literal

import numpy as np

from engine.errors import InputError
from engine.estimate.estimate import Estimate
from engine.estimate.memory_terms import (
    DEEPSPEED_BUCKET,
    DUALPIPE,
    GIB,
    GPIPE,
    MASTER_BYTES,
    ONE_F_ONE_B,
    Array,
    MemoryBreakdown,
    MemoryInputs,
    calibration,
    fits,
    training_memory,
)
from engine.estimate.plan import TrainingPlan
from engine.estimate.shape import ModelShape

__all__ = [
    "GIB",
    "MASTER_BYTES",
    "SCHEDULES",
    "USABLE",
    "Array",
    "MemoryBreakdown",
    "MemoryInputs",
    "adapter_params",
    "as_items",
    "calibration",
    "fits",
    "four_bit_bytes",
    "frozen_bytes",
    "host_memory_gib",
    "memory_estimate",
    "memory_inputs",
    "memory_of_plans",
    "plan_memory",
    "routed_params",
    "serving_weights_gib",
    "training_memory",
]

MOMENT_BYTES = {"adam": 8.0, "adam8bit": 2.0, "sgd": 4.0, "muon": 4.0}  # of Adam: two in 32 bits
PREPARED_BYTES = 4.0  # of a weight beside those in 4 bits [7]
WEIGHT_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 2.0, "fp4": 2.0, "fp32": 4.0}  # as trained
USABLE = 0.95  # of what the card reports; beyond, an allocation fails sooner or later
# Elements a token leaves in a state-space layer [5], in hidden sizes: the expanded width and its
# gate (2 + 2), after the convolution, the step sizes, the scan's output before and after the gate.
STATE_WIDTH = 12.0
LATENT_HEAD = 160.0  # elements a head of latent attention: query and key 192, value and output 128
Schedule = Literal["1f1b", "gpipe", "dualpipe"]
SCHEDULES: dict[Schedule, float] = {"1f1b": ONE_F_ONE_B, "gpipe": GPIPE, "dualpipe": DUALPIPE}
SOURCES = ("calibration_memory.csv",)


def plan_memory(
    shape: ModelShape, plan: TrainingPlan, schedule: Schedule = "1f1b"
) -> MemoryBreakdown:
    """Peak memory of the fullest GPU of one plan, arrays of one row [GiB]."""
    return memory_of_plans(shape, plan, schedule=np.array([SCHEDULES[schedule]]))


def memory_of_plans(
    shape: ModelShape, usual: TrainingPlan, **columns: Array | float
) -> MemoryBreakdown:
    """Peak memory of the fullest GPU of many plans of one job [GiB], arrays of their length.

    usual : what all plans share (task, precision, optimizer, sequence length, code)
    columns : fields of `MemoryInputs` that differ, one row a plan: tp, pp, vp, cp, ep, zero, d
        (ranks that shard), expert_d, micro_batch, micro_batches, recompute (0, 1, 2), megatron,
        sequence_parallel ...

    Raises
    ------
    InputError : for a column that the memory model doesn't know
    """
    known = {f.name for f in fields(MemoryInputs)}
    unknown = next((name for name in columns if name not in known), None)
    if unknown is not None:
        raise InputError("is no column of a plan's memory", where=unknown,
                         right=", ".join(sorted(known)))  # fmt: skip
    return training_memory(replace(memory_inputs(shape, usual), **columns))


def memory_estimate(memory: MemoryBreakdown, *, megatron: bool, row: int = 0) -> Estimate:
    """One row's total with its 80% interval [GiB].

    Outside Megatron-type code a plan does not tell whether its loss is fused; the low end is that
    of a fused one.
    """
    c = calibration()
    likely = float(np.ravel(memory.total)[row])
    if megatron:
        return Estimate(likely * c.interval_low, likely, likely * c.interval_high, "GiB", SOURCES)
    saved = float(np.ravel(memory.logits)[row]) * (1 - c.logit_bytes_fused / c.logit_bytes_eager)
    low = max(likely - saved, 0.0) * c.interval_low_native
    return Estimate(low, likely, likely * c.interval_high_native, "GiB", SOURCES)


def memory_inputs(shape: ModelShape, plan: TrainingPlan) -> MemoryInputs:
    """What the memory of a GPU depends on, of a shape and a plan; all plain numbers."""
    gated = 3.0 if shape.gated_mlp else 2.0
    fused = gated - 1.0  # gate and up projection are one matrix
    # An encoder has as many layers as its decoder.
    layers = float(shape.layers * (2 if shape.kind == "encoder-decoder" else 1))
    hidden = float(shape.hidden)
    query, keys = _attention_widths(shape)
    adapters = _trains_adapters(plan)
    share = adapter_params(shape, plan.lora_rank) / max(shape.total_params, 1.0)
    sparse = _sparse_share(shape)
    expert = float(shape.expert_ffn or shape.ffn) if shape.is_moe else 0.0
    passed = (shape.experts_per_token + shape.shared_experts) * sparse
    dense = float(shape.ffn if sparse < 1 else shape.expert_ffn * shape.shared_experts)
    plain = plan.precision == "fp32" or not plan.master_weights
    return MemoryInputs(
        params=shape.total_params, expert_params=routed_params(shape), layers=layers,
        hidden=hidden, heads=float(shape.heads), q_width=query, kv_width=keys,
        mlp_width=gated * (_dense_width(shape) * (1 - sparse) + expert * passed)
        + STATE_WIDTH * hidden * _state_share(shape), vocab=float(shape.vocab),
        seq=float(plan.seq_len), micro_batch=float(plan.micro_batch), tp=float(plan.tp),
        pp=float(plan.pp), cp=float(plan.cp), ep=float(plan.ep), d=float(plan.shard_ranks),
        zero=float(plan.zero_stage), micro_batches=float(plan.micro_batches),
        recompute={"none": 0.0, "selective": 1.0, "full": 2.0}[plan.recompute],
        lora=float(adapters), adapter_share=share if adapters else 0.0,
        weight_bytes=frozen_bytes(shape, plan), flash=float(plan.flash_attention),
        megatron=float(plan.stack == "megatron"), vp=float(plan.vp),
        tied=float(shape.tied_embeddings), expert_d=float(_expert_ranks(plan)),
        sequence_parallel=float(plan.sequence_parallel and plan.tp > 1),
        routed_width=2 * hidden * shape.experts_per_token * sparse,
        matrix=fused * hidden * max(dense, expert),
        dense_layers=float(shape.dense_layers if shape.is_moe else 0), matrices=gated,
        trained_bytes=WEIGHT_BYTES[plan.precision], master_bytes=0.0 if plain else MASTER_BYTES,
        moment_bytes=_moment_bytes(shape, plan), gradient_bytes=_gradient_bytes(plan),
        eight_bits=float(plan.precision in ("fp8", "fp4")), offload=float(plan.cpu_offload),
        bucket_elements=DEEPSPEED_BUCKET if plan.stack == "deepspeed" else 0.0,
        stream=2.0 if plan.task == "qlora" else 1.0,
    )  # fmt: skip


def _trains_adapters(plan: TrainingPlan) -> bool:
    return plan.task in ("lora", "qlora")


def _sparse_share(shape: ModelShape) -> float:
    """Share of the layers that route tokens among experts."""
    return max(shape.layers - shape.dense_layers, 0) / shape.layers if shape.is_moe else 0.0


def _state_share(shape: ModelShape) -> float:
    """Share of the layers that carry a state instead of attending."""
    return min(shape.state_layers / shape.layers, 1.0)


def _dense_width(shape: ModelShape) -> float:
    """Width of the MLP of an average layer; where it is not one number, what parameters leave.

    A state-space layer's inner width is no MLP.
    """
    if shape.attention == "none" and shape.state_layers:
        return 0.0
    if shape.ffn or shape.is_moe:
        return float(shape.ffn)
    layer = (shape.total_params - shape.embedding_params) / shape.layers / shape.hidden
    query, keys = _attention_widths(shape)
    return max(layer - 2 * query - 2 * keys, 0.0) / (3.0 if shape.gated_mlp else 2.0)


def _attention_widths(shape: ModelShape) -> tuple[float, float]:
    """Elements a token has of queries, and of keys (as many of values), in an average layer."""
    if shape.state_layers:
        attends = 1 - _state_share(shape)
        return (attends * shape.heads * shape.head_dim, attends * shape.kv_heads * shape.head_dim)
    if shape.attention == "mla":  # keys and values of every head are made before the core [3]
        return shape.heads * LATENT_HEAD, shape.heads * LATENT_HEAD
    return float(shape.heads * shape.head_dim), float(shape.kv_heads * shape.head_dim)


def _moment_bytes(shape: ModelShape, plan: TrainingPlan) -> float:
    """Bytes of the optimizer's moments a parameter; of the weights' width without a copy.

    In 8 bits the embedding keeps its own in 32, as the usual trainers have it for stability [6].
    """
    whole = MOMENT_BYTES[plan.optimizer]
    if plan.optimizer == "adam8bit":
        share = min(shape.vocab * shape.hidden / max(shape.total_params, 1.0), 1.0)
        return whole * (1 - share) + MOMENT_BYTES["adam"] * share
    return whole if plan.master_weights or plan.precision == "fp32" else whole / 2


def _gradient_bytes(plan: TrainingPlan) -> float:
    """Bytes of a gradient as it is added up."""
    own = WEIGHT_BYTES[plan.precision]
    if not plan.master_weights or plan.precision == "fp32":
        return own
    if plan.stack == "deepspeed" and plan.precision == "bf16" and plan.pp > 1:
        return own + 4.0  # its optimizer for bf16 adds up in 32 bits beside them
    return {"megatron": 4.0, "fsdp": 4.0, "deepspeed": own, "other": own}[plan.stack]


def _expert_ranks(plan: TrainingPlan) -> int:
    """Ranks that share the states of one GPU's experts."""
    ranks = plan.expert_shard_ranks
    return max(min(ranks, plan.shard_size * plan.tp // plan.ep), 1) if plan.shard_size else ranks


def routed_params(shape: ModelShape) -> float:
    """Parameters of routed experts: what a token leaves out, over the share that it leaves out."""
    if not shape.is_moe or shape.experts_per_token >= shape.experts:
        return 0.0
    left_out = 1 - shape.experts_per_token / shape.experts
    return min((shape.total_params - shape.active_params) / left_out, shape.total_params)


def adapter_params(shape: ModelShape, rank: int) -> float:
    """Parameters of LoRA adapters on every matrix of every layer but the routed experts [4]."""
    q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    ffn = shape.expert_ffn * max(shape.shared_experts, 1) if shape.is_moe else shape.ffn
    matrices = 3 if shape.gated_mlp else 2
    sides = 2 * (shape.hidden + q) + 2 * (shape.hidden + kv) + matrices * (shape.hidden + ffn)
    return float(rank * shape.layers * sides)


def frozen_bytes(shape: ModelShape, plan: TrainingPlan) -> float:
    """Bytes of a frozen weight, on average: 4 bits leave embeddings and head in 32 [2, 7].

    They leave the routed experts of a mixture in 16, too: the library that loads them keeps those
    of a layer in one tensor, and packs matrices alone (transformers from release 5 on).
    """
    if plan.task != "qlora":
        return WEIGHT_BYTES[plan.precision]
    inside = calibration().quantized_bytes
    routed = routed_params(shape) / max(shape.total_params, 1.0)
    all_packed = four_bit_bytes(shape, PREPARED_BYTES, inside)
    return all_packed + routed * (WEIGHT_BYTES["bf16"] - inside)


def four_bit_bytes(shape: ModelShape, tables: float, inside: float) -> float:
    """Bytes of a weight of a model in 4 bits, on average.

    tables : bytes of a weight of its embeddings and head; inside : of the others, with their scales
    """
    share = min(shape.embedding_params / max(shape.total_params, 1.0), 1.0)
    return inside * (1 - share) + tables * share


def host_memory_gib(shape: ModelShape, plan: TrainingPlan) -> float:
    """Memory of all hosts together that an offloaded optimizer takes [GiB]: 12 bytes with Adam."""
    if not plan.cpu_offload:
        return 0.0
    states = (MASTER_BYTES if plan.master_weights else 0.0) + _moment_bytes(shape, plan)
    copies = plan.dp * plan.cp / plan.shard_ranks if plan.zero_stage else plan.dp * plan.cp
    trained = shape.total_params
    if _trains_adapters(plan):
        trained = adapter_params(shape, plan.lora_rank)
    return trained * states * copies / GIB


def serving_weights_gib(shape: ModelShape, bits: float) -> float:
    """Weights at a precision [GiB]; all experts must be resident, whatever a token passes."""
    return shape.total_params * bits / 8 / GIB


def as_items(memory: MemoryBreakdown, row: int = 0) -> Mapping[str, float]:
    """One row as plain numbers [GiB], with the total."""
    items = {f.name: float(np.ravel(getattr(memory, f.name))[row]) for f in fields(memory)}
    return items | {"total": float(np.ravel(memory.total)[row])}
