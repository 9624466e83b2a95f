"""Classes by which the serving model's efficiencies differ: hardware, engine, precision, network.

Plain functions of names and numbers; they know nothing of the model.
"""

from __future__ import annotations

import re
from functools import cache

# Pattern of an engine's name as sources write it, and its class: family, then era.
_ENGINES: tuple[tuple[str, str], ...] = (
    (r"^nim 1\.0", "trtllm-nim"),
    (r"^nim\b", "trtllm-nim2"),
    (r"^trtllm 0\.1[0-9]", "trtllm-2024"),
    (r"^trtllm 0\.[1-9]\.", "trtllm-static"),
    (r"^trtllm 0\.[1-9]\b|gptsession", "trtllm-static"),
    (r"^trtllm", "trtllm-2025"),
    (r"^tensorrt-llm", "trtllm-script"),
    (r"tensorrt|^cuda", "trtllm-mlperf"),
    (r"^vLLM|^vllm 0\.[0-7]\b|^vllm 2024", "vllm-2024"),
    (r"^vllm", "vllm-2025"),
    (r"^sglang", "sglang-2025"),
    (r"^deepspeed-mii", "deepspeed-mii"),
    (r"^deepspeed", "deepspeed-hpu"),
    (r"llama|ollama|gguf", "llamacpp-any"),
)


@cache
def engine_of(name: str) -> str:
    """Class of an engine by its name and version; "other-any" when none is known."""
    for pattern, engine in _ENGINES:
        if re.search(pattern, name, 0 if "vLLM" in pattern else re.IGNORECASE):
            return engine
    return "other-any"


_GENERATIONS: tuple[tuple[str, str], ...] = (
    (r"rtx.?pro.?6000|50[789]0", "blackwell-pcie"),
    (r"g?b[123]00|gb[23]00", "blackwell"),
    (r"rubin|vr200", "rubin"),
    (r"gh200|h[12]00|h800|h20\b", "hopper"),
    (r"l40|\bl4\b|40[5-9]0|\b[456]000.?ada|rtx-?.?[456]000.?ada", "ada"),
    (r"a100|a800|\ba30\b|\ba2\b|\ba10g?\b|a40\b|a6000|30[5-9]0", "ampere"),
    (r"mi300|mi325", "cdna3"), (r"mi35\d", "cdna4"), (r"mi250|mi210", "cdna2"),
    (r"gaudi.?2", "gaudi2"), (r"gaudi.?3", "gaudi3"), (r"\bt4\b|v100", "volta"), (r"tpu", "tpu"),
    (r"trainium|trn", "trainium"), (r"\bm[1-4]\b.*(max|ultra|core)", "apple"),
    (r"max.?1550|pvc", "pvc"),
)  # fmt: skip


@cache
def generation_of(name: str) -> str:
    """Class of hardware of a GPU by its name; "other" when none is known."""
    text = name.lower()
    for pattern, generation in _GENERATIONS:
        if re.search(pattern, text):
            return generation
    return "other"


def precision_of(weight_bits: float) -> str:
    """Class of a weights' precision: "4", "8" or "16"."""
    return "4" if weight_bits <= 4.6 else "8" if weight_bits <= 8.6 else "16"


def cache_of(kv_bytes: float) -> str:
    """Class of a cache's precision: "8" or "16"."""
    return "8" if kv_bytes < 1.5 else "16"


def kind_of(latent_cache: bool, experts: float) -> str:
    """Class of a network: "mla" (compressed cache), "moe" or "dense"."""
    return "mla" if latent_cache else "moe" if experts > 1 else "dense"


# What the loop of an engine runs in, which is most of what a request costs beside its products.
# TensorRT-LLM left its C++ runtime for PyTorch with 1.0.
_HOSTS = {
    "compiled": ("trtllm-static", "trtllm-2024", "trtllm-script", "trtllm-nim", "trtllm-nim2"),
    "python": ("trtllm-2025", "vllm-2024", "vllm-2025", "sglang-2025", "deepspeed-mii"),
}


def host_of(engine: str) -> str:
    """What a server's engine runs in: "compiled" or "python"; "" for all others."""
    return next((host for host, engines in _HOSTS.items() if engine in engines), "")
