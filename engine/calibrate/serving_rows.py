"""Rows of published serving runs read into the inputs of the serving model.

What a source leaves out is taken as its engine's default; a row that states too little is told by
its reason. Figures of hardware outside the catalogue come from data sheets and are stated here.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.calibrate.serving_classes import engine_of, generation_of, precision_of
from engine.catalogue import load_catalogue
from engine.errors import ImportFileError
from engine.estimate.queueing import Array
from engine.estimate.serving import (
    GIB,
    Hardware,
    Network,
    Plan,
    attention_params,
    hardware_of,
)

Cells = Mapping[str, Any]
NEEDED = ("params_b", "layers", "hidden", "gpu", "n_gpus", "protocol", "concurrency_or_batch")
# Nominal lengths are upper ends of a uniform draw in InferenceX: the mean is nine tenths.
RANDOM_LENGTHS = 0.9
ABSURD = 1e9  # no number of a shape is as large
TIED = 0.25  # share of a model's parameters beyond which two tables of its vocabulary are one

# Pattern of a GPU's name in a source, and its entry in the catalogue.
_SKUS: tuple[tuple[str, str], ...] = (
    (r"GB300", "gb300"), (r"GB200", "gb200"), (r"B300", "b300-sxm"), (r"B200", "b200-sxm-180gb"),
    (r"H200.?NVL", "h200-nvl-141gb"), (r"GH200", "gh200-96gb"), (r"H200", "h200-sxm-141gb"),
    (r"H100.?NVL", "h100-nvl-94gb"), (r"H100.?PCIe", "h100-pcie-80gb"), (r"H100", "h100-sxm-80gb"),
    (r"A100.?PCIe.*40", "a100-pcie-40gb"), (r"A100.?PCIe", "a100-pcie-80gb"),
    (r"A100.*40", "a100-sxm-40gb"), (r"A100", "a100-sxm-80gb"),
    (r"MI355", "mi355x"), (r"MI350", "mi350x"), (r"MI325", "mi325x"), (r"MI300", "mi300x"),
    (r"RTX.?PRO.?6000", "rtx-pro-6000-server"), (r"L40S", "l40s"), (r"\bL4\b", "l4"),
    (r"5090", "rtx-5090"), (r"4090", "rtx-4090"), (r"6000 Ada", "rtx-6000-ada"),
    (r"A10G", "a10g"), (r"A10\b", "a10"), (r"\bT4\b", "t4"),
    (r"V100", "v100-sxm2-32gb"), (r"Gaudi.?2", "gaudi2"), (r"Gaudi.?3", "gaudi3"),
)  # fmt: skip
# Not in the catalogue: 16- and 8-bit TFLOPS dense, memory GB/s, link GB/s, GiB, over PCIe.
_OTHERS: tuple[tuple[str, tuple[float, float, float, float, float, int]], ...] = (
    (r"\bL40\b", (181, 362, 864, 32, 45, 1)),
    (r"A40\b", (150, 150, 696, 32, 45, 1)),
    (r"A6000", (155, 155, 768, 32, 48, 1)),
    (r"A30\b", (165, 165, 933, 32, 24, 1)),
    (r"A2\b", (18, 18, 200, 16, 15, 1)),
    (r"5000 Ada", (261, 522, 576, 32, 32, 1)),
    (r"4000 Ada", (107, 214, 360, 32, 20, 1)),
    (r"4080", (97.5, 195, 717, 32, 16, 1)),
    (r"4070 Ti", (80, 160, 504, 32, 12, 1)),
    (r"3090", (71, 71, 936, 32, 24, 1)),
    (r"3080 Ti", (68, 68, 912, 32, 12, 1)),
    (r"3080", (59.5, 59.5, 760, 32, 10, 1)),
    (r"3070", (40.6, 40.6, 448, 32, 8, 1)),
    (r"MI250", (181, 181, 1638, 50, 64, 0)),
    (r"MI210", (181, 181, 1638, 50, 64, 0)),
    (r"H20\b", (148, 296, 4000, 450, 96, 0)),
    (r"Max 1550|PVC", (839, 839, 3277, 53, 128, 0)),
    (r"M2 Ultra", (53, 53, 800, 32, 192, 1)),
    (r"M[123] Max.*64", (28, 28, 400, 32, 64, 1)),
    (r"M1.*8GB", (5, 5, 68, 32, 8, 1)),
    (r"Orin", (85, 85, 204, 32, 64, 1)),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One row ready to be predicted, or the reason why it can't be.

    `bits` : of a weight; `users` : concurrency or batch of the whole deployment; `replicas` :
    independent copies among which they are shared
    """

    skipped: str = ""
    group: str = ""
    family: str = ""
    gpu: str = ""
    generation: str = ""
    engine: str = ""
    precision: str = ""
    protocol: str = ""
    model: str = ""
    lengths: str = ""
    network: Network | None = None
    hardware: Hardware | None = None
    plan: Plan | None = None
    users: float = math.nan
    replicas: float = 1.0
    prompt: float = math.nan
    answer: float = math.nan
    ttft: float = math.nan
    itl: float = math.nan
    tokens_per_s: float = math.nan
    memory_gib: float = math.nan


PROTOCOLS = ("static_batch", "closed_loop", "offline_max", "mlperf_offline", "microbench")


def read(cells: Cells) -> Reading:
    """One row of the table; never raises for what a cell holds."""
    try:
        return _read(cells)
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):
        return Reading("a cell is no usable number")


def _read(cells: Cells) -> Reading:
    protocol = _text(cells, "protocol")
    if not protocol:
        return Reading("no protocol")
    if protocol not in PROTOCOLS:
        return Reading(f"protocol {protocol} is outside this model")
    quality = _text(cells, "quality")
    if quality and quality != "ok":
        return Reading(f"quality: {quality[:40]}")
    size = number(cells, "params_b")
    if not size > 0:
        return Reading("no language model: parameters are not stated")
    gpu = _text(cells, "gpu")
    if gpu.upper().startswith("CPU"):
        return Reading("a CPU: see the CPU rates")
    network = network_of_cells(cells)
    if network is None:
        return Reading("the model's shape is not stated")
    n_gpus = number(cells, "n_gpus")
    if not n_gpus >= 1:
        return Reading("the number of GPUs is not stated")
    prompt, answer = number(cells, "input_tokens"), number(cells, "output_tokens")
    if not (prompt >= 0 and answer >= 0 and prompt + answer > 0):
        return Reading("tokens in and out are not stated")
    users = number(cells, "concurrency_or_batch")
    if protocol in ("static_batch", "closed_loop", "microbench") and not users >= 1:
        return Reading("batch or concurrency is not stated")
    engine = _text(cells, "engine")
    kind = "trtllm-mlperf" if protocol.startswith("mlperf") else engine_of(engine)
    bits = _bits(cells, size, gpu, protocol)
    hardware = hardware_of_name(gpu, bits)
    if hardware is None:
        return Reading(f"hardware not known: {gpu[:40] or 'none'}")
    kv = _kv_bytes(cells, kind, bits)
    tp, pp, dp, attention_dp = _layout(cells, n_gpus, network, hardware, bits)
    scenario = _text(cells, "scenario")
    lengths = _lengths(scenario)
    factor = RANDOM_LENGTHS if "80-100%" in scenario else 1.0
    milli = 1e-3
    tokens = number(cells, "output_tokens_per_s")
    e2e = number(cells, "e2e_ms") * milli
    if math.isnan(tokens) and e2e > 0 and users > 0 and answer > 0:
        tokens = users * answer / e2e
    reading = Reading(
        group=_text(cells, "source_group"),
        family=_family(_text(cells, "source_group")),
        gpu=gpu,
        generation=generation_of(gpu),
        engine=kind,
        precision=precision_of(bits),
        protocol=protocol,
        model=_text(cells, "model"),
        lengths=lengths,
        network=network,
        hardware=hardware,
        plan=Plan(tp, pp, attention_dp, bits / 8.0, kv),
        users=users,
        replicas=dp,
        prompt=max(prompt * factor, 1.0),
        answer=answer * factor,
        ttft=_positive(number(cells, "ttft_ms") * milli),
        itl=_positive(number(cells, "itl_ms") * milli),
        tokens_per_s=_positive(tokens),
        memory_gib=_positive(number(cells, "peak_mem_gb") * 1e9 / GIB),
    )
    if _beyond_peak(reading):
        return Reading("states more work than the hardware's peak")
    return reading


def _beyond_peak(r: Reading) -> bool:
    """Whether a closed loop claims more products than its GPUs can do: a mistaken concurrency."""
    if r.protocol != "closed_loop" or r.network is None or r.hardware is None or r.plan is None:
        return False
    net = r.network
    active = net.dense + net.expert * net.top_k / net.experts
    seconds = r.ttft + r.answer * r.itl
    flops = r.users * (r.prompt + r.answer) * 2.0 * active / seconds
    return bool(flops > r.hardware.peak * r.plan.tp * r.plan.pp * r.replicas)


def network_of_cells(cells: Cells) -> Network | None:
    """The network of a row; None when its shape is not stated."""
    names = ("params_b", "layers", "hidden", "heads", "kv_heads", "head_dim")
    total, layers, hidden, heads, kv_heads, head_dim = (number(cells, n) for n in names)
    if not all(0 < x < ABSURD for x in (total, layers, hidden, heads, kv_heads, head_dim)):
        return None
    active = number(cells, "active_params_b")
    active = active if 0 < active <= total else total
    experts = max(number(cells, "n_experts", 0.0), 0.0)
    k = max(number(cells, "experts_per_token", 0.0), 0.0)
    share = k / experts if experts > k > 0 else 1.0
    expert = (total - active) / (1.0 - share) if share < 1.0 else 0.0
    model = _text(cells, "model")
    vocab = _vocab(model)
    table = vocab * hidden / 1e9
    mla = kv_heads == 1 and head_dim >= 500
    attention_layers, windowed, window = layers, 0.0, 0.0
    if re.search(r"Qwen3\.5|Qwen3-Next", model, re.IGNORECASE):
        attention_layers = layers / 4.0  # three of four layers are linear attention
    if re.search(r"gpt-oss", model, re.IGNORECASE):
        windowed, window = 0.5, 128.0
    if re.search(r"Llama-4", model, re.IGNORECASE):
        windowed, window = 0.75, 8192.0
    width = attention_layers * (head_dim if mla else 2.0 * kv_heads * head_dim)
    score = heads * (192.0 + 128.0) if mla else 2.0 * heads * head_dim
    dense = max(total - expert - table, 0.02 * total)
    attention = attention_params(attention_layers, hidden, heads, kv_heads, head_dim, mla) / 1e9
    tied = 2.0 * table > TIED * total  # small models share embedding and head
    # llama.cpp's files quantise them too, and their bits are the mean of a whole file.
    kept = 0.0 if engine_of(_text(cells, "engine")) == "llamacpp-any" else 1.0
    return Network(
        dense=dense * 1e9,
        expert=expert * 1e9,
        stored=total * 1e9,
        experts=max(experts, 1.0),
        top_k=max(k, 1.0),
        layers=layers,
        attention_layers=attention_layers,
        hidden=hidden,
        score_width=score,
        cache_width=width,
        cache_shards=1.0 if mla else kv_heads,
        vocab=vocab,
        windowed=windowed,
        window=window,
        attention=min(attention, 0.9 * dense) * 1e9,
        tables=kept * min(table * (1.0 if tied else 2.0), 0.5 * total) * 1e9,
        head=kept * min(table, 0.5 * dense) * 1e9,
    )


def _vocab(model: str) -> float:
    for pattern, vocab in (
        (r"Llama-3|Llama-4|Midnight|DeepSeek", 128_256), (r"Qwen", 151_936), (r"gpt-oss", 201_088),
        (r"Kimi|GLM", 163_840), (r"Falcon", 65_024), (r"GPT-J", 50_400), (r"MiniMax", 200_064),
        (r"BLOOM|Gemma", 250_880), (r"Llama|Mi[sx]tral|Deci", 32_000),
    ):  # fmt: skip
        if re.search(pattern, model, re.IGNORECASE):
            return float(vocab)
    return 128_000.0


@cache
def hardware_of_name(name: str, bits: float) -> Hardware | None:
    """Hardware of a GPU as the sources write it, for weights of a precision."""
    for pattern, (p16, p8, bandwidth, link, gib, pcie) in _OTHERS:
        if re.search(pattern, name, re.IGNORECASE):
            peak = p8 if bits <= 8.6 and bits > 4.6 else p16
            domain = 1.0 if pcie else 8.0
            return Hardware(
                peak * 1e12, p16 * 1e12, bandwidth * 1e9, link * 1e9, domain, 25e9, gib * GIB
            )
    for pattern, sku in _SKUS:
        if re.search(pattern, name, re.IGNORECASE):
            acc = load_catalogue().accelerators.get(sku)
            if acc is None:
                return None
            found = hardware_of(acc, bits)
            # Superchips that were measured together shared an NVLink switch.
            return replace(found, domain=32.0) if sku == "gh200-96gb" else found
    return None


def _bits(cells: Cells, size: float, gpu: str, protocol: str) -> float:
    text = _text(cells, "weight_dtype").lower()
    stated = re.search(r"([\d.]+)\s*gib", text)
    if stated:
        return min(float(stated.group(1)) * 1.0737 * 8.0 / size, 16.0)
    bpw = re.search(r"([\d.]+)\s*bpw", text)
    if bpw:
        return float(bpw.group(1))
    if protocol.startswith("mlperf") and not text:
        # Submissions run the fewest bits that the GPU multiplies.
        kind = generation_of(gpu)
        return {"blackwell": 4.25, "ampere": 8.0, "volta": 8.0}.get(kind, 8.0)
    for pattern, bits in (
        (r"fp8|int8|w8", 8.0), (r"q4_k", 4.85), (r"fp4|mxfp4|nvfp4", 4.25), (r"int4|q4|awq", 4.25),
        (r"q8", 8.5), (r"q6", 6.6), (r"q5", 5.7), (r"q3", 3.9), (r"q2", 3.0),
        (r"fp32|f32", 32.0),
    ):  # fmt: skip
        if re.search(pattern, text):
            return bits
    return 16.0


def _kv_bytes(cells: Cells, engine: str, bits: float) -> float:
    text = _text(cells, "kv_dtype").lower()
    if re.search(r"8", text):
        return 1.0
    if text:
        return 2.0
    return 1.0 if engine.startswith("trtllm") and bits <= 8.6 else 2.0


def _layout(
    cells: Cells, n_gpus: float, net: Network, hw: Hardware, bits: float
) -> tuple[float, float, float, float]:
    """TP, PP, replicas, and whether attention is data-parallel."""
    tp, pp = number(cells, "tp"), number(cells, "pp", 1.0)
    pp = pp if pp >= 1 else 1.0
    if not tp >= 1:
        need = float(net.stored) * bits / 8.0 * 1.25 / float(hw.memory)
        tp = float(2 ** math.ceil(math.log2(max(need, 1.0))))
        tp = min(tp, n_gpus)
        return tp, 1.0, max(n_gpus / tp, 1.0), 0.0
    text = _text(cells, "dp")
    if text == "attn-dp":
        return max(tp, n_gpus / pp), pp, 1.0, 1.0
    dp = number(cells, "dp", 1.0)
    if dp > 1 and net.experts > 1:
        # Data-parallel attention over experts that are spread: one replica on all GPUs.
        return tp * dp, pp, 1.0, 1.0
    return tp, pp, max(dp, 1.0), 0.0


def _lengths(scenario: str) -> str:
    """How the lengths of requests differ in a benchmark; "" where it does not say.

    GenAI-Perf sends prompts and answers of one length unless it is told otherwise.
    """
    for words, lengths in (
        (r"random", "random"), (r"in-house", "sweep"), (r"fixed|GenAI-Perf", "fixed"),
    ):  # fmt: skip
        if re.search(words, scenario, re.IGNORECASE):
            return lengths
    return ""


def _family(group: str) -> str:
    """What is left out together: the same runs are filed by two sources."""
    return re.sub(r"^(InferenceX|NVIDIA-AIC)/", "sweep/", group)


def number(cells: Cells, name: str, missing: float = math.nan) -> float:
    """A cell as a number; `missing` when it is empty or none."""
    value = cells.get(name)
    if value is None or value == "":
        return missing
    try:
        x = float(value)
    except (TypeError, ValueError):
        return missing
    return x if math.isfinite(x) else missing


def _text(cells: Cells, name: str) -> str:
    value = cells.get(name)
    return "" if value is None or value != value else str(value).strip()


def _positive(x: float) -> float:
    return x if x > 0 else math.nan


@dataclass(frozen=True, slots=True)
class Table:
    """Readings as columns."""

    network: Network
    hardware: Hardware
    plan: Plan
    users: Array
    prompt: Array
    answer: Array
    replicas: Array
    lengths: NDArray[np.str_]
    protocol: NDArray[np.str_]
    generation: NDArray[np.str_]
    engine: NDArray[np.str_]
    precision: NDArray[np.str_]
    group: NDArray[np.str_]
    family: NDArray[np.str_]
    gpu: NDArray[np.str_]
    model: NDArray[np.str_]
    ttft: Array
    itl: Array
    tokens_per_s: Array
    memory_gib: Array

    def __len__(self) -> int:
        return len(self.users)

    def take(self, rows: NDArray[Any]) -> Table:
        """Some of the rows."""
        parts = []
        for name in Table.__slots__:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                parts.append(value[rows])
            else:
                kind = type(value)
                parts.append(kind(**{f: getattr(value, f)[rows] for f in kind.__slots__}))
        return Table(*parts)


def table_of(readings: Sequence[Reading]) -> Table:
    """Columns of readings that were not skipped."""

    def stack(part: str, kind: Any) -> Any:
        values = [getattr(r, part) for r in readings]
        return kind(**{f: np.array([float(getattr(v, f)) for v in values]) for f in kind.__slots__})

    parts: list[Any] = [
        stack("network", Network), stack("hardware", Hardware), stack("plan", Plan)
    ]  # fmt: skip
    for name in Table.__slots__[3:]:
        values = [getattr(r, name) for r in readings]
        parts.append(np.array(values))
    return Table(*parts)


def read_rows(path: Path) -> list[Reading]:
    """Every row of a file, skipped ones among them.

    Raises
    ------
    ImportFileError : when the file can't be read or lacks the columns needed
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            header = reader.fieldnames or []
            missing = [c for c in NEEDED if c not in header]
            if missing:
                raise ImportFileError(
                    f"has no column {missing[0]}", where=path.name,
                    right="the columns of measured_serving.csv",
                )  # fmt: skip
            return [read(row) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ImportFileError(
            f"is no readable CSV ({error})", where=path.name, right="UTF-8 with commas"
        ) from None
    except OSError as error:
        raise ImportFileError(
            f"can't be opened ({error.strerror})", where=path.name, right="a file that exists"
        ) from None
