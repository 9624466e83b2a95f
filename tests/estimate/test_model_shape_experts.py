"""Active parameters of mixtures: what a token passes, worked out from the layers by hand."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import ImportFileError
from engine.estimate.model_shape import shape_from_config

SWITCH: dict[str, Any] = {
    "model_type": "switch_transformers", "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 4,
    "num_decoder_layers": 4, "num_sparse_encoder_layers": 2, "num_sparse_decoder_layers": 2,
    "num_heads": 4, "num_experts": 4, "vocab_size": 300,
}  # fmt: skip


def test_a_token_passes_one_expert_of_a_switch_transformer() -> None:
    shape = shape_from_config(SWITCH)
    # Two layers of each stack hold four MLPs of 2 x 32 x 48, of which a token passes one.
    assert shape.total_params - shape.active_params == 4 * 3 * 2 * 32 * 48
    assert (shape.experts, shape.experts_per_token, shape.exact) == (4, 1, True)


def test_a_token_passes_two_experts_of_nllb() -> None:
    shape = shape_from_config({
        "model_type": "nllb-moe", "d_model": 32, "encoder_layers": 4, "decoder_layers": 8,
        "encoder_ffn_dim": 48, "decoder_ffn_dim": 64, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "num_experts": 8, "vocab_size": 300,
    })  # fmt: skip
    # Every fourth layer: one of the encoder, two of the decoder; six of eight experts stay idle.
    left = 6 * (2 * 32 * 48 + 48 + 32) + 2 * 6 * (2 * 32 * 64 + 64 + 32)
    assert shape.total_params - shape.active_params == left
    assert (shape.experts_per_token, shape.exact) == (2, True)


def test_more_layers_with_experts_than_layers_are_refused_by_name() -> None:
    with pytest.raises(ImportFileError, match="num_sparse_encoder_layers is 9 of 4 layers"):
        shape_from_config(SWITCH | {"num_sparse_encoder_layers": 9})


def test_a_size_that_is_missing_is_named() -> None:
    with pytest.raises(ImportFileError, match="states no d_ff"):
        shape_from_config({k: v for k, v in SWITCH.items() if k != "d_ff"})
