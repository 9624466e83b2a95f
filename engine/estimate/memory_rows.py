"""Peak memory of published training runs, predicted from what their row states.

Reads the columns of `data/measured_training.csv`, and the notes of a row where its file or
`data/measured_memory_notes.csv` has them. A row that states too little is answered with its
reason, never with a guess.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from engine.errors import InputError
from engine.estimate.estimate import Estimate
from engine.estimate.memory import (
    GIB,
    MemoryBreakdown,
    MemoryInputs,
    calibration,
    four_bit_bytes,
    memory_inputs,
    training_memory,
)
from engine.estimate.plan import Optimizer, Precision, Recompute, Stack, Task, TrainingPlan
from engine.estimate.row_cells import (
    gated_of,
    number_of,
    recompute_of,
    unknown,
    zero_stage_of,
)
from engine.estimate.shape import ModelShape

NOTES = Path(__file__).resolve().parents[2] / "data" / "measured_memory_notes.csv"
NEEDED = ("layers", "hidden", "heads", "params_b", "gpus", "micro_batch")
MEGATRON = re.compile(r"megatron|\bnemo\b|nemo |simumax|bridge", re.I)
# Frameworks whose figure is their own count of tensors, not the driver's or the allocator's.
COUNTED = re.compile(r"simumax|torchtune|litgpt", re.I)
RESERVED = re.compile(r"torchtitan|fsdp_qlora", re.I)  # the allocator's, without the context
FOUR_BITS, QUANTIZED = 0.5, 0.5625  # bytes of a weight in 4 bits; with scales of 64 in 32 bits
# Code with fused losses: the gradient takes the place of the logits' copy.
FUSED_LOSS = re.compile(r"llm-?foundry|internevo|tinyllama|liger", re.I)
FUSED_KERNELS = re.compile(r"internevo|tinyllama|liger|compile", re.I)
# Trainers of Hugging Face up to 2024: the loss keeps the logits, shifted, a second time.
SHIFTED = re.compile(r"hf trainer|fsdp_qlora|llama-recipes|llama-factory|openrlhf", re.I)
PREPARED = re.compile(r"bitsandbytes", re.I)  # with PEFT's preparation of models in 4 bits
NODE = 8  # GPUs of a server
KINDS = ("Megatron", "FSDP", "DeepSpeed", "one GPU, or copies")
LORA_RANK = 8  # of torchtune's and LitGPT's recipes; other rows tell theirs in their notes


@dataclass(frozen=True, slots=True)
class TooLittle:
    """Why a row can't be predicted."""

    reason: str


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """What a row's source should have measured [GiB], with what the tool would say of fitting.

    estimate : in the measure of the source (tensors, allocator or driver), 80% interval
    total_gib : as the driver would report; what `fits` judges
    megatron : whether the code is of Megatron's type
    kind : Megatron, FSDP, DeepSpeed, or whole models on each GPU (`KINDS`)
    """

    estimate: Estimate
    total_gib: float
    megatron: bool
    memory: MemoryBreakdown
    kind: str


def predict_peak_memory_gib(row: Mapping[str, str]) -> PeakMemory | TooLittle:
    """Peak memory of one GPU as the row's source measures it."""
    row = {**row, "notes": row.get("notes") or _noted().get(row.get("id") or "", "")}
    missing = next((key for key in NEEDED if not _number(row, key)), None)
    if missing:
        return TooLittle(f"states no {missing}")
    if not _tokens_of_sequence(row):
        return TooLittle("states no seq_len")
    if unknown(row.get("activation_recompute") or ""):
        return TooLittle("states no recomputation")
    if _is(row, "litgpt") and "fsdp" in _text(row, "zero_stage"):
        return TooLittle("the figure is of loading the whole model on every GPU")
    try:
        inputs = _inputs(row)
    except InputError as error:
        return TooLittle(str(error))
    memory = training_memory(inputs)
    value = _as_measured(row, memory)
    if _is(row, "litgpt"):
        value *= GIB / 1e9  # printed in gigabytes
    if not math.isfinite(value) or value <= 0:
        return TooLittle("its numbers give no memory")
    c, megatron = calibration(), float(inputs.megatron) > 0
    low, high = (
        (c.interval_low, c.interval_high) if megatron
        else (c.interval_low_native, c.interval_high_native)
    )  # fmt: skip
    told = Estimate(value * low, value, value * high, "GiB", ("calibration_memory.csv",))
    kind = _kind(megatron, _stack(row), float(np.asarray(inputs.zero).ravel()[0]))
    return PeakMemory(told, float(memory.total.ravel()[0]), megatron, memory, kind)


def _kind(megatron: bool, stack: Stack, zero: float) -> str:
    """How memory is shared among GPUs, as the accuracy is told by."""
    if megatron:
        return KINDS[0]
    if stack == "deepspeed":
        return KINDS[2]
    return KINDS[1] if zero >= 1 else KINDS[3]


def _as_measured(row: Mapping[str, str], memory: MemoryBreakdown) -> float:
    """GiB in the measure of the row's source."""
    if COUNTED.search(_source(row)) or "allocated by" in _text(row, "notes"):
        told = memory.allocated
    else:
        told = memory.reserved if RESERVED.search(_source(row)) else memory.total
    return float(told.ravel()[0])


# --- reading a row


@lru_cache(maxsize=1)
def _noted() -> dict[str, str]:
    """What the sources tell of rows whose file has no notes, by id."""
    with NOTES.open(encoding="utf-8", newline="") as file:
        return {line["id"]: line["notes"] for line in csv.DictReader(file)}


def _number(row: Mapping[str, str], key: str) -> float:
    value = number_of(row.get(key) or "", 1024.0 if key == "seq_len" else 1000.0) or 0.0
    return max(value, 0.0)


def _text(row: Mapping[str, str], *keys: str) -> str:
    return " ".join(row.get(key) or "" for key in keys).lower()


def _source(row: Mapping[str, str]) -> str:
    return _text(row, "group", "framework")


def _is(row: Mapping[str, str], framework: str) -> bool:
    return framework in _source(row)


def _tokens_of_sequence(row: Mapping[str, str]) -> int:
    """Tokens of the longest sequence; LitGPT's rows tell it in their notes."""
    told = re.search(r"sequences up to (\d+) tokens", _text(row, "notes"))
    return int(_number(row, "seq_len")) or (int(told.group(1)) if told else 0)


def _inputs(row: Mapping[str, str]) -> MemoryInputs:
    shape, plan = _shape(row), _plan(row)
    inputs = memory_inputs(shape, plan)
    if plan.task in ("lora", "qlora"):
        _adapters(row, inputs, shape, plan)
    if not row.get("sequence_parallel"):
        old = plan.stack == "megatron" and plan.tp > 1 and plan.recompute == "full"
        inputs.sequence_parallel = None if old else 1.0
    if plan.stack == "deepspeed" or _before_sequence_parallelism(row):
        inputs.sequence_parallel = 0.0
    if _is(row, "torchtune"):
        return _torchtune(row, inputs, shape, plan)
    if plan.stack != "megatron":
        told = _text(row, "notes", "activation_recompute", "group", "framework")
        # torchtitan's products in 8 bits are compiled ones.
        compiled = FUSED_KERNELS.search(told) or (_is(row, "torchtitan") and inputs.eight_bits)
        inputs.eager = float(not compiled)
        if _is(row, "torchtitan"):
            # Gradients come on a stream of their own; the allocator gives the memory of freed
            # activations to their own stream alone, while there is enough.
            inputs.gradients_stay = 1.0
        inputs.logit_bytes = _logit_bytes(row, told)
    again = _text(row, "activation_recompute")
    inputs.lean = float("norm" in again and "act" in again and "full" not in again)
    return inputs


def _adapters(
    row: Mapping[str, str], inputs: MemoryInputs, shape: ModelShape, plan: TrainingPlan
) -> None:
    """What the row's code keeps of the frozen model and its adapters."""
    notes, precision = _text(row, "notes"), _text(row, "precision")
    if "-true" in precision:
        inputs.adapter_bytes = 8.0  # weight, gradient and moments in 16 bits
    if "weights in 32 bits" in notes:
        inputs.weight_bytes = 4.0
    if "host's memory" in notes:
        inputs.offload = 2.0
    if plan.task != "qlora" or PREPARED.search(_source(row)):
        return
    plain = "nf4" in precision and "dq" not in precision
    plain = plain and (_is(row, "litgpt") or _is(row, "fsdp_qlora"))
    scaled = QUANTIZED if plain else calibration().quantized_bytes
    inputs.stream, inputs.weight_bytes = 1.0, four_bit_bytes(shape, 2.0, scaled)
    if plan.zero_stage == 3 and SHIFTED.search(_source(row)):
        # bitsandbytes' scales are no parameters: nothing shares them.
        inputs.weight_bytes = four_bit_bytes(shape, 2.0, FOUR_BITS)
        inputs.whole_bytes = four_bit_bytes(shape, 0.0, scaled - FOUR_BITS)


def _logit_bytes(row: Mapping[str, str], told: str) -> float | None:
    """Bytes of a logit at the loss where the row's code tells; else what the memory model takes."""
    c = calibration()
    if FUSED_LOSS.search(told) or "compile of the loss" in told:
        return c.logit_bytes_fused
    if SHIFTED.search(_source(row)):
        return c.logit_bytes_shifted
    # torchtitan compiles layer by layer; until 2025 not the loss.
    whole = _is(row, "torchtitan") and int(_number(row, "tp") or 1) == 1
    return c.logit_bytes_eager if whole else None


def _before_sequence_parallelism(row: Mapping[str, str]) -> bool:
    """Megatron-type code of before 2022-05 (Korthikanti et al.)."""
    return bool(re.search(r"bigscience|bloom|megatron21|mtnlg", _text(row, "group")))


def _torchtune(
    row: Mapping[str, str], inputs: MemoryInputs, shape: ModelShape, plan: TrainingPlan
) -> MemoryInputs:
    """torchtune's README: each row of the first table adds a technique to those before it.

    The second table's recipes are compiled, recompute, compute the loss in pieces, and on one GPU
    update in the backward pass with moments that live in pages of the host; the largest full one
    is offloaded.
    """
    notes, pieces = _text(row, "notes"), calibration().logit_bytes_chunked
    order = ("packed", "+compile", "+chunked", "+activation checkpointing",
             "+optimizer in backward", "+activation offloading", "+8-bit", "technique: lora",
             "technique: qlora")  # fmt: skip
    told = next((k for k, name in enumerate(order) if name in notes), None)
    if told is not None:
        eight = memory_inputs(shape, replace(plan, optimizer="adam8bit"))
        return replace(
            inputs, eager=float(told < 1), logit_bytes=pieces if told >= 2 else None,
            in_backward=float(4 <= told < 7), kept_on_host=float(told >= 5),
            moment_bytes=eight.moment_bytes if told == 6 else inputs.moment_bytes,
            gradients_stay=0.0,
        )  # fmt: skip
    alone = plan.gpus == 1 and plan.task == "finetune"
    offload = "offload used for 70b full" in notes and "70B" in (row.get("model") or "")
    whole = offload and plan.task == "finetune"
    return replace(
        inputs, eager=0.0, logit_bytes=pieces, in_backward=float(alone), gradients_stay=0.0,
        offload=2.0 if whole else float(alone and "in-backward" in notes),
    )  # fmt: skip


def _shape(row: Mapping[str, str]) -> ModelShape:
    layers, hidden, heads = (int(_number(row, k)) for k in ("layers", "hidden", "heads"))
    total = _number(row, "params_b") * 1e9
    latent = "deepseek-v" in _text(row, "model")
    vocab, ffn = int(_number(row, "vocab")), int(_number(row, "ffn")) or 4 * hidden
    gated = gated_of(row.get("gated_mlp") or "") is not False
    experts = int(_number(row, "experts"))
    tied = bool(re.search(r"llama-?3\.2|gemma", _text(row, "model")))
    kv_heads = int(_number(row, "kv_heads")) or heads
    shape = ModelShape(
        name=row.get("model") or "", total_params=total,
        active_params=total, embedding_params=(1.0 if tied else 2.0) * vocab * hidden,
        layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads,
        head_dim=int(_number(row, "head_dim")) or hidden // heads, ffn=ffn, vocab=vocab,
        gated_mlp=gated, attention="mla" if latent else "gqa", tied_embeddings=tied,
        experts=experts, experts_per_token=int(_number(row, "top_k")) if experts else 0,
        shared_experts=1 if latent else 0, expert_ffn=int(_number(row, "moe_ffn")),
    )  # fmt: skip
    return _with_experts(shape) if experts > 1 else shape


def _with_experts(shape: ModelShape) -> ModelShape:
    """As many layers with experts as the parameters allow; the leading ones have none."""
    each = (3 if shape.gated_mlp else 2) * shape.hidden * (shape.expert_ffn or shape.ffn)
    most = (shape.total_params - shape.embedding_params) / (shape.experts * each)
    sparse = max(min(math.floor(most), shape.layers), 0)
    if not sparse:
        raise InputError("are fewer than one layer of its experts", where="params_b",
                         right="all parameters")  # fmt: skip
    routed = sparse * shape.experts * each
    share = 1 - shape.experts_per_token / shape.experts
    return replace(shape, active_params=shape.total_params - routed * share,
                   dense_layers=shape.layers - sparse)  # fmt: skip


def _plan(row: Mapping[str, str]) -> TrainingPlan:
    sizes = {k: int(_number(row, k)) or 1 for k in ("tp", "pp", "vp", "cp", "ep")}
    used = sizes["tp"] * sizes["pp"] * sizes["cp"]
    gpus = int(_number(row, "gpus"))
    stack = _stack(row)
    ranks = gpus // used * sizes["cp"] if gpus >= used else 1
    within = bool(re.search(r"hsdp|(with)?in node", _text(row, "zero_stage")))
    return TrainingPlan(
        gpus=max(gpus - gpus % used, used), tp=sizes["tp"], pp=sizes["pp"], vp=sizes["vp"],
        cp=sizes["cp"], ep=sizes["ep"], zero_stage=_zero(row, stack),
        shard_size=NODE if within and ranks % NODE == 0 else None,
        micro_batch=int(_number(row, "micro_batch")),
        global_batch_seqs=int(_number(row, "global_batch_seqs")),
        seq_len=_tokens_of_sequence(row), precision=_precision(row), recompute=_recompute(row),
        task=_task(row), optimizer=_optimizer(row), stack=stack, lora_rank=_rank(row),
        flash_attention=not _before_sequence_parallelism(row),
        # These keep all of it in 16 bits.
        master_weights=not (_is(row, "torchtune") or "-true" in _text(row, "precision")),
    )  # fmt: skip


def _rank(row: Mapping[str, str]) -> int:
    told = re.search(r"rank (\d+)", _text(row, "notes"))
    return int(told.group(1)) if told else LORA_RANK


def _stack(row: Mapping[str, str]) -> Stack:
    framework = _text(row, "framework")
    if "deepspeed" in framework:
        return "deepspeed"
    if MEGATRON.search(_source(row)) and "fsdp" not in framework:
        return "megatron"
    return "fsdp" if "fsdp" in framework + _text(row, "zero_stage") else "other"


def _zero(row: Mapping[str, str], stack: Stack) -> int:
    told = zero_stage_of(row.get("zero_stage") or "")
    if told is not None:
        return told
    return 1 if stack in ("megatron", "deepspeed") else 0


def _recompute(row: Mapping[str, str]) -> Recompute:
    told = recompute_of(row.get("activation_recompute") or "")
    return "full" if told == "full" else "selective" if told == "selective" else "none"


def _precision(row: Mapping[str, str]) -> Precision:
    told = _text(row, "precision")
    if re.search(r"float8|e[45]m[32]", told):
        return "fp8"
    kinds: tuple[Precision, ...] = ("fp8", "fp4", "fp32", "fp16")
    return next((kind for kind in kinds if kind in told), "bf16")


def _task(row: Mapping[str, str]) -> Task:
    told = _text(row, "task")
    return "qlora" if "qlora" in told else "lora" if "lora" in told else "finetune"


def _optimizer(row: Mapping[str, str]) -> Optimizer:
    return "adam8bit" if re.search(r"8-?bit adam", _text(row, "notes")) else "adam"
