"""Published training rows as inputs of the step model; what a row does not state is assumed.

Knows the columns of `measured_training.csv`. Each assumption is named, so that a page can show it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from engine.calibrate.training_hardware import Gpu, gpu_of, nic_of
from engine.estimate.row_cells import (
    flag_of,
    gated_of,
    number_of,
    recompute_of,
    zero_stage_of,
)
from engine.estimate.training import (
    JAX,
    LEGACY,
    NATIVE,
    NODE,
    PEAK_CLASSES,
    PLAIN,
    TUNED,
    StepInputs,
)

Cells = Mapping[str, str]
CALIBRATED = ("a100", "h100", "b200", "b300")
SMALL_MODEL_B = 20.0
WIDE_EXPERTS = 16  # experts of a layer, up to which tensor parallelism splits them
PACKED = 0.5  # length of a packed sample against its sequence, when fine-tuning


@dataclass(frozen=True, slots=True)
class Reading:
    """A row ready for the model, or the reason why it states too little."""

    values: dict[str, float] | None
    measured_s: float
    skipped: str = ""
    moe: bool = False
    generation: str = ""
    megatron: bool = False
    source: str = ""  # key of the software source whose level was fitted
    assumed: tuple[str, ...] = ()

    @property
    def calibrated(self) -> bool:
        """Whether the hardware has rows in the calibration."""
        return self.generation in CALIBRATED


class _Unstated(Exception):
    """The row states too little to be predicted; the text says what is missing."""


def number(cells: Cells, column: str) -> float | None:
    """A cell as a finite number; None when it is empty or is none."""
    return number_of(cells.get(column) or "", 1024.0 if column == "seq_len" else 1000.0)


def read(cells: Cells) -> Reading:
    """One published row as inputs, with its measured step time [s]; never raises."""
    try:
        return _read(cells)
    except _Unstated as reason:
        return Reading(None, 0.0, str(reason), moe=_is_moe(cells))
    except (ValueError, ZeroDivisionError, OverflowError, TypeError, AttributeError):
        return Reading(None, 0.0, "malformed row", moe=False)


def read_all(rows: Sequence[Cells]) -> list[Reading]:
    """All rows in their order."""
    return [read(cells) for cells in rows]


def stack_inputs(readings: Sequence[Reading]) -> StepInputs:
    """Readings that have values, below one another."""
    columns: dict[str, np.ndarray] = {}
    for f in fields(StepInputs):
        cells = [(r.values or {})[f.name] for r in readings]
        whole = f.name in ("peak_class", "stack")
        columns[f.name] = np.array(cells, dtype=int if whole else float)
    return StepInputs(**columns)


def _is_moe(cells: Cells) -> bool:
    return _text(cells, "arch") == "moe" or (number(cells, "experts") or 0) > 1


def _text(cells: Cells, column: str) -> str:
    return str(cells.get(column) or "").strip().lower()


def _read(cells: Cells) -> Reading:
    _must_be_scorable(cells)
    gpu = gpu_of(cells.get("gpu") or "")
    if gpu is None:
        raise _Unstated("hardware not known")
    assumed: list[str] = []
    stack = stack_of(cells)
    values = _network(cells)
    values |= _plan(cells, values, assumed)
    values |= _job(cells, values, stack, assumed)
    values |= _hardware(cells, gpu, assumed)
    values |= {"stack": stack, "year": year_of(cells), "offset": 0.0}
    measured = _measured_s(cells, values)
    bad = [k for k, v in values.items() if not math.isfinite(v)]
    if bad:
        raise _Unstated(f"no usable {bad[0]}")
    return Reading(
        values, measured, "", _is_moe(cells), gpu.generation,
        stack in (TUNED, PLAIN, LEGACY), source_of(cells), tuple(assumed),
    )  # fmt: skip


def _must_be_scorable(cells: Cells) -> None:
    told = _text(cells, "superseded")
    if told.startswith("yes") or flag_of(told):
        raise _Unstated("superseded by a later release of the same table")
    if _text(cells, "confidence") == "c":
        raise _Unstated("confidence C: not to be scored")
    if _text(cells, "arch") in ("hybrid", "multimodal", "ssm", "encoder-decoder"):
        raise _Unstated(f"{_text(cells, 'arch')} model: which layers attend is not stated")
    if "whole-run" in _text(cells, "tps_basis"):
        raise _Unstated("whole-run average, not a step")
    # States of the optimizer on the host are updated there; activations alone only travel.
    if "offload" in _text(cells, "zero_stage"):
        raise _Unstated("an optimizer on the host is not modelled")


def _needed(cells: Cells, column: str) -> float:
    value = number(cells, column)
    if value is None or value <= 0:
        raise _Unstated(f"states no {column}")
    return value


def _measured_s(cells: Cells, v: Mapping[str, float]) -> float:
    """Seconds of a step as published, else from the throughput."""
    step = number(cells, "step_time_s")
    if step is not None and step > 0:
        return step
    rate = number(cells, "tokens_per_s_per_gpu")
    if rate is None or rate <= 0:
        raise _Unstated("states no step time or throughput")
    return v["micro_batch"] * v["micro_batches"] * v["dp"] * v["seq"] / (rate * v["gpus"])


# ---------------------------------------------------------------- the network

# Multi-head latent attention: query rank, KV rank, rotary width, value width (model cards).
_MLA = (
    (r"deepseek.?v?2.?lite|moonlight", (0, 512, 64, 128)),
    (r"deepseek|kimi", (1536, 512, 64, 128)),
)
# Sliding windows: share of layers and tokens (model cards).
_WINDOWS = ((r"gpt.?oss", (0.5, 128)), (r"gemma.?3", (5 / 6, 1024)), (r"gemma.?2", (0.5, 4096)))


def _network(cells: Cells) -> dict[str, float]:
    layers, hidden, heads, seq = (
        _needed(cells, k) for k in ("layers", "hidden", "heads", "seq_len")
    )
    name = _text(cells, "model")
    head_dim = number(cells, "head_dim") or hidden / heads
    kv = min(number(cells, "kv_heads") or heads, heads)
    ffn = number(cells, "ffn") or 4 * hidden
    vocab = number(cells, "vocab") or 50_000.0
    attention, core = hidden * head_dim * (2 * heads + 2 * kv), heads * head_dim
    kv_width = kv * head_dim
    total = (number(cells, "params_b") or 0.0) * 1e9
    gated = gated_of(cells.get("gated_mlp") or "")
    if gated is None and not _is_moe(cells) and total:
        # Not told: what the parameters leave for the MLP is nearer to three matrices or to two.
        left = total - layers * attention - 2 * vocab * hidden
        gated = left > 2.5 * layers * hidden * ffn
    matrices = 3.0 if gated else 2.0
    for pattern, (q_rank, kv_rank, rope, value) in _MLA:
        if re.search(pattern, name):
            query = head_dim + rope
            down = hidden * (q_rank + kv_rank + rope)
            up = heads * (query * (q_rank or hidden) + (head_dim + value) * kv_rank)
            attention, core = down + up + heads * value * hidden, heads * (query + value) / 2
            kv_width = heads * query
            break
    moe = _is_moe(cells)
    experts = (number(cells, "experts") or 8.0) if moe else 0.0
    routed = (number(cells, "top_k") or 1.0) if moe else 0.0
    expert = matrices * hidden * (number(cells, "moe_ffn") or ffn) if moe else 0.0
    if moe and "gpt-oss" in name:
        expert = 3 * hidden * (number(cells, "moe_ffn") or ffn)
    total = total or layers * (attention + matrices * hidden * ffn) + 2 * vocab * hidden
    dense = matrices * hidden * ffn
    active = (number(cells, "active_params_b") or 0.0) * 1e9
    if moe:
        # What the active count leaves beside attention, the head and the routed experts belongs
        # to shared experts and leading dense layers, spread evenly.
        rest = (active - vocab * hidden) / layers - attention if active else routed * expert
        dense = max(rest - routed * expert, 0.0)
        if rest > 0 and routed * expert > rest:
            expert = rest / routed  # experts in some layers only
    common = layers * (attention + dense) + 2 * vocab * hidden
    attended = seq
    if _text(cells, "task") in ("sft", "lora") and "mlperf" not in _text(cells, "framework"):
        attended = seq * PACKED  # samples packed into a sequence don't attend to one another
    for pattern, (share, window) in _WINDOWS:
        if re.search(pattern, name):
            attended = seq * (1 - share) + share * min(2.0 * window, seq)
    return {
        "layers": layers, "hidden": hidden, "attention_weights": attention, "heads": heads,
        "core_width": core, "kv_width": kv_width, "attended": attended, "dense_weights": dense,
        "expert_weights": expert, "experts": experts, "routed": routed, "params": total,
        "expert_params": max(total - common, 0.0) if moe else 0.0, "vocab": vocab, "seq": seq,
    }  # fmt: skip


# ---------------------------------------------------------------- the plan


def _plan(cells: Cells, net: Mapping[str, float], assumed: list[str]) -> dict[str, float]:
    gpus = _needed(cells, "gpus")
    zero = _text(cells, "zero_stage")
    stage = zero_stage_of(zero)
    sharded = stage == 3 or "grad_op" in zero
    tp, pp = number(cells, "tp"), number(cells, "pp")
    if (tp is None or pp is None) and not sharded and gpus > 1:
        raise _Unstated("states no parallel plan")
    tp, pp = max(tp or 1.0, 1.0), max(pp or 1.0, 1.0)
    # With a pipeline weights are kept between micro-batches and only states are sharded.
    sharded = sharded and pp == 1
    cp, ep = max(number(cells, "cp") or 1.0, 1.0), max(number(cells, "ep") or 1.0, 1.0)
    dp = number(cells, "dp") or gpus / (tp * pp * cp)
    dp = max(min(dp, gpus / (tp * pp * cp)), 1.0)
    micro = number(cells, "micro_batch")
    batch = number(cells, "global_batch_seqs")
    if batch is None or batch <= 0:
        if micro is None:
            raise _Unstated("states no batch")
        batch = micro * dp
        assumed.append("one micro-batch a step")
    each = max(batch / dp, 1e-9)
    if micro is None or micro <= 0:
        micro = min(_usual_micro_batch(cells, net, tp * pp), max(each, 1.0))
        assumed.append(f"micro-batch of {micro:g}")
    micro = min(micro, each)
    in_node = "node" in zero or "hsdp" in zero
    plain = stage == 0 or not zero
    ranks = 1.0 if plain and not sharded else (min(dp, NODE) if in_node else dp * cp)
    vp = number(cells, "vp")
    if vp is None or vp < 1:
        vp = _interleaving(net["layers"], pp, cells)
        if pp > 1:
            assumed.append(f"{vp:g} virtual stages")
    # Few and wide experts are split like all else, as far as the GPUs of a stage allow.
    wide = 1 < net["experts"] <= WIDE_EXPERTS and ep * tp <= gpus / pp
    return {
        "gpus": gpus, "tp": tp, "pp": pp, "vp": vp if pp > 1 else 1.0, "cp": cp, "ep": ep,
        "etp": tp if wide else 1.0,
        "dp": dp, "micro_batch": micro, "micro_batches": max(each / micro, 1.0),
        "full_shard": float(sharded), "gathers": 1.0 if "grad_op" in zero else 2.0,
        "shard_ranks": ranks,
    }  # fmt: skip


def _usual_micro_batch(cells: Cells, net: Mapping[str, float], split: float) -> float:
    """Micro-batch where none is stated: the smaller the model the larger, up to 8 sequences."""
    if net["experts"] > 1 or "lora" in _text(cells, "task"):
        return 1.0
    again = _recompute(cells, stack_of(cells), [])[0]
    width = 65536.0 if again else 32768.0
    return float(2 ** int(min(max(np.log2(width * 1024 / net["seq"] / net["hidden"]), 0), 3)))


def _interleaving(layers: float, pp: float, cells: Cells) -> float:
    """Virtual stages where they are not stated: about four on clusters, none before 2023."""
    if pp <= 1 or stack_of(cells) == LEGACY or (number(cells, "gpus") or 0) <= NODE:
        return 1.0
    fits = [v for v in (4, 5, 3, 6, 2) if layers % (pp * v) == 0]
    return float(fits[0]) if fits else 1.0


# ---------------------------------------------------------------- the job


def _job(
    cells: Cells, net: Mapping[str, float], stack: int, assumed: list[str]
) -> dict[str, float]:
    lora = "lora" in _text(cells, "task")
    four_bit = "qlora" in _text(cells, "task") or "nf4" in _text(cells, "precision")
    flash = stack != LEGACY
    again, core = _recompute(cells, stack, assumed)
    return {
        "lora": float(lora), "four_bit": float(four_bit), "recompute": again,
        "recompute_core": core, "flash": float(flash),
    }  # fmt: skip


def _recompute(cells: Cells, stack: int, assumed: list[str]) -> tuple[float, float]:
    """Shares of the forward products and of the attention core that are done twice."""
    text = _text(cells, "activation_recompute")
    if "offload" in text:
        assumed.append("activations travel to the host behind the computation")
    told = recompute_of(text)
    if told == "full":
        return 1.0, 1.0
    if told == "none":
        return 0.0, 0.0
    if told == "selective":
        if "op-level" in text or stack == NATIVE:
            return 0.33, 0.0
        return 0.0, 1.0 if stack == LEGACY else 0.0
    if told == "some":
        return 0.1, 0.0
    if stack == LEGACY:
        assumed.append("full recomputation")
        return 1.0, 1.0
    assumed.append("no recomputation")
    return 0.0, 0.0


# ---------------------------------------------------------------- hardware and software


def _hardware(cells: Cells, gpu: Gpu, assumed: list[str]) -> dict[str, float]:
    width, peak, klass = _precision(cells, gpu, assumed)
    nic, stated = nic_of(cells.get("interconnect") or "", gpu)
    if not stated:
        assumed.append(f"{nic / 1e9:.0f} GB/s of network a GPU")
    return {
        "width": width, "peak": peak, "peak16": gpu.peak16, "peak_class": klass, "hbm": gpu.hbm,
        "fast": gpu.fast, "domain": gpu.domain, "nic": nic,
    }  # fmt: skip


def _precision(cells: Cells, gpu: Gpu, assumed: list[str]) -> tuple[float, float, int]:
    """Bytes an element of the products, peak [FLOP/s] and class of the efficiency."""
    text = _text(cells, "precision") or "bf16"
    bits = 16
    if "fp8 or fp4" in text or "fp4 or fp8" in text:
        bits = 8
        assumed.append("8-bit products")
    elif re.search(r"fp4|float4|e2m1", text):
        bits = 4
    elif re.search(r"fp8|float8|int8|e[45]m[32]|8-?bit", text):
        bits = 8
    elif re.search(r"^(fp|tf|float)32", text):
        # As PyTorch's and JAX's own products of 32 bits: half the rate of 16.
        name = f"{gpu.generation}_16"
        klass = PEAK_CLASSES.index(name if name in PEAK_CLASSES else "other_16")
        return 4.0, gpu.peak16 / 2, klass
    if bits == 4 and gpu.peak4 <= gpu.peak8:
        bits = 8
    if bits == 8 and gpu.peak8 <= gpu.peak16:
        bits = 16
    # Four-bit training reaches the same on chips whose nominal four-bit peaks differ.
    peak = {16: gpu.peak16, 8: gpu.peak8, 4: 2 * gpu.peak8}[bits]
    name = f"{gpu.generation}_{bits}"
    if name not in PEAK_CLASSES:
        name = "other_8" if bits < 16 else "other_16"
    return bits / 8, peak, PEAK_CLASSES.index(name)


_STACK_WORDS: tuple[tuple[str, int], ...] = (
    (r"automodel", NATIVE),
    (r"maxtext|\bjax|paxml|\btpu|levanter|t5x|praxis", JAX),
    (r"gpt-neox|megatron-deepspeed|metaseq|ptd-p|deepspeed zero", LEGACY),
    (r"megascale paper baseline|megatron-lm 0\.|primus|simumax|internevo", PLAIN),
    (r"megatron|megascale|mcore|nemo|mlperf|dualpipe", TUNED),
)


def stack_of(cells: Cells) -> int:
    """Family of the software stack, from the framework's name; the group's where there is none."""
    text = _text(cells, "framework") or _text(cells, "group")
    stack = next((s for pattern, s in _STACK_WORDS if re.search(pattern, text)), NATIVE)
    if "megatron" in text and year_of(cells) < 2023:
        return LEGACY  # Megatron-type stacks had no fused attention before
    return stack


_SOURCES: tuple[tuple[str, str], ...] = (
    ("vtrain", "vtrain"),
    ("llm-foundry|composer", "llm-foundry"),
    ("dgx cloud", "dgx-cloud"),
    ("megatron-bridge", "megatron-bridge"),
    ("mlperf", "mlperf"),
    ("megatron-lm 0\\.14", "simumax"),
    ("internevo|internlm", "internevo"),
    ("fms-fsdp", "fms-fsdp"),
    ("paxml", "paxml"),
    ("maxtext", "maxtext"),
    ("torchtune", "torchtune"),
    ("litgpt|lit-gpt", "litgpt"),
    ("megascale paper baseline", "megascale-baseline"),
    ("megascale", "megascale"),
    ("deepspeed zero", "zero3-2021"),
    ("megatron-deepspeed", "megatron-deepspeed"),
    ("megatron-lm 202[0-2]|ptd-p", "megatron-2021"),
    ("megatron-core|mcore", "megatron-core"),
)


def source_of(cells: Cells) -> str:
    """Key of the software source; mixture-of-experts runs of a source have their own."""
    text = _text(cells, "framework")
    if re.search("bigscience|bloom", _text(cells, "group") + _text(cells, "url")):
        return "bigscience"
    if "mlperf" in text and (number(cells, "params_b") or 0.0) < SMALL_MODEL_B:
        return "mlperf-small"  # steps of a fraction of a second
    for pattern, name in _SOURCES:
        if re.search(pattern, text):
            kind = "-moe" if _is_moe(cells) else ("-lora" if "lora" in _text(cells, "task") else "")
            return name + kind
    # NVIDIA's own runs before fused attention are one line of releases.
    return "megatron-2021" if "megatron-lm" in text and stack_of(cells) == LEGACY else ""


_ROUNDS = {
    "v2.1": 2022.9, "v3.0": 2023.4, "v3.1": 2023.8, "v4.0": 2024.4, "v4.1": 2024.8,
    "v5.0": 2025.4, "v5.1": 2025.8, "v6.0": 2026.4,
}  # fmt: skip
_YEARS = (
    (r"dgx cloud", 2025.2), (r"llm-foundry|composer", 2023.8), (r"megatron-lm 0\.14", 2025.8),
    (r"internevo", 2024.0), (r"fms-fsdp", 2024.3), (r"megascale", 2023.8),
    (r"megatron-core r0\.8", 2024.6), (r"megatron-core", 2025.8), (r"torchtitan", 2024.8),
    (r"automodel", 2025.8), (r"megatron-deepspeed|ptd-p|neox|metaseq|zero-3", 2021.5),
    (r"dualpipe", 2024.9),
)  # fmt: skip


def year_of(cells: Cells) -> float:
    """Year of the software: a release, a round or a date in its name; else the usual one."""
    text = _text(cells, "framework")
    release = re.search(r"\b(2[3-9])\.(0[1-9]|1[0-2])\b", text)
    if release:
        return 2000 + int(release.group(1)) + (int(release.group(2)) - 0.5) / 12
    for name, when in _ROUNDS.items():
        if name in text:
            return when
    found = re.search(r"\b(20(?:1\d|2[0-9]))\b", text)
    if found:
        return float(found.group(1)) + 0.5
    for pattern, usual in _YEARS:
        if re.search(pattern, text):
            return usual
    short = re.search(r"[a-z](2[0-6])\b", _text(cells, "group"))
    if short:
        return 2000.5 + float(short.group(1))
    return 2023.0 if "a100" in _text(cells, "gpu") else 2024.5
