"""Reading a configuration: names differ between families, nulls mean defaults, faults are named."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeGuard

from engine.errors import ImportFileError

ALIASES: dict[str, tuple[str, ...]] = {
    "hidden": ("hidden_size", "d_model", "n_embd", "n_embed", "dim", "model_dim", "hidden_dim"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers",
               "encoder_layers", "decoder_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads",
              "encoder_attention_heads", "decoder_attention_heads"),
    "kv_heads": ("num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num"),
    "ffn": ("intermediate_size", "ffn_dim", "n_inner", "inner_dim", "ffn_hidden_size", "d_ff"),
    "vocab": ("vocab_size", "padded_vocab_size"),
    "positions": ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
    "top_k": ("num_experts_per_tok", "num_experts_per_token", "moe_top_k", "top_k_experts",
              "moe_topk", "num_selected_experts", "moe_k"),
    "expert_ffn": ("moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size"),
}  # fmt: skip


MOST = 1_000_000_000  # of any size in a file: beyond it, it is none
MOST_STAGES = 32  # a longer list is one of layers, not of stages
MOST_OF_STAGE = 999_999  # of a stage's width, or of the layers of all stages


def is_size(value: Any, most: int = MOST) -> TypeGuard[int]:
    """Whether a value is a whole number from one to `most`, and no flag."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= most


def are_sizes(value: Any) -> TypeGuard[list[int] | tuple[int, ...]]:
    """Whether a value lists sizes of stages, at least one."""
    return isinstance(value, list | tuple) and bool(value) and all(
        is_size(x, MOST_OF_STAGE) for x in value)  # fmt: skip


class Config:
    """A configuration by the names of this module; `name` is the file's, for messages."""

    def __init__(self, raw: Mapping[str, Any], name: str = "", *, nested: bool = False) -> None:
        self.raw = raw
        self.nested = nested  # part of a larger file, which may leave out what is usual
        self.name = name or "config.json"

    @property
    def model_type(self) -> str:
        """The family as the file names it."""
        kind = self.raw.get("model_type")
        return kind.strip().lower() if isinstance(kind, str) else ""

    def has(self, key: str) -> bool:
        """Whether a key is stated and not null."""
        return self.raw.get(key) is not None

    def stated(self, name: str) -> tuple[str, Any] | None:
        """The first alias that is stated, with its value."""
        for key in ALIASES.get(name, (name,)):
            if self.raw.get(key) is not None:
                return key, self.raw[key]
        return None

    def whole(self, name: str, default: int | None = None, least: int = 1) -> int:
        """A whole number; refused with the key's name when it is none.

        Raises
        ------
        ImportFileError : missing without a default, no number, or below the least
        """
        found = self.stated(name)
        if found is None:
            if default is not None:
                return default
            raise ImportFileError(
                f"states no {ALIASES.get(name, (name,))[0]}", where=self.name,
                right="the complete config.json; a missing size is never guessed",
            )  # fmt: skip
        key, value = found
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not (math.isfinite(value) and float(value).is_integer())
        ):
            raise ImportFileError(
                f"{key} is {str(value)[:40]!r}", where=self.name, right="a whole number"
            )
        if not least <= value <= MOST:
            raise ImportFileError(
                f"{key} is {value:g}", where=self.name, right=f"a whole number from {least} on"
            )
        return int(value)

    def flag(self, which: bool | str, default: bool = False) -> bool:
        """A fixed property, or one that the file states under this key."""
        if isinstance(which, bool):
            return which
        value = self.raw.get(which)
        return default if value is None else bool(value)

    def tied(self, default: bool) -> bool:
        """Whether the head is the embedding."""
        value = self.raw.get("tie_word_embeddings")
        return default if value is None else bool(value)

    def quantized_bits(self) -> float | None:
        """Bits a weight as shipped, None for 16 and more."""
        for key in ("quantization_config", "quantization", "compression_config"):
            block = self.raw.get(key)
            if isinstance(block, Mapping):
                return _bits(block)
        return None


def _bits(block: Mapping[str, Any]) -> float | None:
    if block.get("load_in_8bit") is True:
        return 8.0
    if block.get("load_in_4bit") is True:
        return 4.0
    stated = _stated_bits(block, 0)
    if stated is not None:
        return stated
    text = str(block).lower()
    for word, bits in (("fp4", 4.0), ("nf4", 4.0), ("fp8", 8.0), ("float8", 8.0), ("int8", 8.0),
                       ("int4", 4.0), ("w4a", 4.0), ("w8a", 8.0), ("float-quantized", 8.0),
                       ("pack-quantized", 4.0)):  # fmt: skip
        if word in text:
            return bits
    return None


def _stated_bits(block: Mapping[str, Any], depth: int) -> float | None:
    """Bits of the weights as a number, in the block itself or in its groups."""
    for key in ("bits", "num_bits", "w_bit", "weight_bits", "nbits", "wbits"):
        value = block.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 16:
            return float(value)
    for key, inner in block.items():
        # Activations and caches have bits of their own, which say nothing of the weights.
        other = any(word in str(key) for word in ("activation", "cache", "kv", "skip"))
        if isinstance(inner, Mapping) and not other and depth < 6:
            found = _stated_bits(inner, depth + 1)
            if found is not None:
                return found
    return None
