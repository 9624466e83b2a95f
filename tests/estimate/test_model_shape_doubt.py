"""What is not counted exactly says so, why, and how its user can tell the true size."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import ImportFileError
from engine.estimate.model_shape import shape_from_config

SMALL: dict[str, Any] = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "vocab_size": 300,
}  # fmt: skip


def test_an_unknown_architecture_names_where_the_true_size_stands() -> None:
    shape = shape_from_config({**SMALL, "model_type": "made_up"})
    assert not shape.exact
    assert "made_up" in shape.why_approximate
    assert "total_size in model.safetensors.index.json" in shape.why_approximate
    assert len(shape.why_approximate) < 400  # as a link carries it


def test_an_index_of_weights_tells_the_size_that_it_states() -> None:
    index = {"metadata": {"total_size": 16_060_522_496}, "weight_map": {"a": "b"}}
    with pytest.raises(ImportFileError, match=r"16,060,522,496 bytes, which is 8B parameters"):
        shape_from_config(index)


@pytest.mark.parametrize("stated", [None, "16 GB", True, -1, 10**30])
def test_an_index_without_a_sound_size_is_refused_for_what_it_is(stated: Any) -> None:
    with pytest.raises(ImportFileError, match=r"^is the index|: is the index"):
        shape_from_config({"metadata": {"total_size": stated}, "weight_map": {}})


def test_a_stated_width_of_heads_is_counted_or_said() -> None:
    # Counted by transformers 5.24.0 on the meta device: 236,032 with heads of 32.
    olmoe = {**SMALL, "model_type": "olmoe", "num_key_value_heads": 2, "num_experts": 4,
             "num_experts_per_tok": 2, "head_dim": 32}  # fmt: skip
    shape = shape_from_config(olmoe)
    assert (shape.total_params, shape.exact) == (236_032, True)
    text = {**SMALL, "model_type": "qwen2", "num_key_value_heads": 2}
    whole = {"model_type": "internvl", "vision_config": {"model_type": "internvl_vision"}}
    assert shape_from_config({**whole, "text_config": {**text, "head_dim": 16}}).exact
    other = shape_from_config({**whole, "text_config": {**text, "head_dim": 32}})
    assert not other.exact
    assert "head_dim of 32" in other.why_approximate


@pytest.mark.parametrize(
    ("changed", "total"), [({"head_dim": 32}, 125_380), ({"num_attention_heads": 6}, 96_444)]
)
def test_a_width_of_heads_is_rounded_down_as_the_library_does(
    changed: dict[str, int], total: int
) -> None:
    # Counted by transformers 5.24.0 on the meta device; 64 // 6 = 10 elements a head.
    shape = shape_from_config({**SMALL, "model_type": "doge", "num_key_value_heads": 2, **changed})
    assert (shape.total_params, shape.exact) == (total, True)
