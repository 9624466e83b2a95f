"""Shapes made from a size alone: like the published models, and the parts add up to the size."""

from __future__ import annotations

import pytest

from engine.estimate.shape import ModelShape
from engine.estimate.shape_from_size import shape_from_size


def counted(shape: ModelShape) -> tuple[float, float]:
    """Parameters by hand: attention and MLP or experts of every layer, and the tables."""
    attention = shape.hidden * shape.head_dim * (2 * shape.heads + 2 * shape.kv_heads)
    always = shape.layers * attention + shape.embedding_params
    if not shape.is_moe:
        total = always + shape.layers * 3 * shape.hidden * shape.ffn
        return total, total
    one = shape.layers * 3 * shape.hidden * shape.expert_ffn
    beside = shape.shared_experts * one + always
    return beside + shape.experts * one, beside + shape.experts_per_token * one


@pytest.mark.parametrize("size", [0.05, 0.135, 0.5, 1.5, 3, 7, 8, 13, 34, 70, 175, 405, 1000])
def test_the_parts_of_a_dense_model_add_up_to_its_size(size: float) -> None:
    assert counted(shape_from_size(size))[0] == pytest.approx(size * 1e9, rel=0.01)


@pytest.mark.parametrize(
    ("size", "active"),
    [(16, 2.8), (30, 3), (47, 13), (120, 5), (141, 39), (235, 22), (671, 37), (1000, 32)],
)
def test_the_parts_of_a_mixture_add_up_to_both_of_its_sizes(size: float, active: float) -> None:
    total, passed = counted(shape_from_size(size, active))
    assert total == pytest.approx(size * 1e9, rel=0.05)
    assert passed == pytest.approx(active * 1e9, rel=0.05)


# Published configurations: layers, hidden size, experts, experts a token passes.
@pytest.mark.parametrize(
    ("size", "active", "layers", "hidden", "experts", "top"),
    [
        (46.7, 12.9, 32, 4096, 8, 2),  # Mixtral-8x7B
        (30.5, 3.35, 48, 2048, 128, 8),  # Qwen3-30B-A3B
        (235.1, 22.2, 94, 4096, 128, 8),  # Qwen3-235B-A22B
        (671.0, 37.6, 61, 7168, 256, 8),  # DeepSeek-V3
    ],
)
def test_a_mixture_is_like_the_published_one_of_its_size(
    size: float, active: float, layers: int, hidden: int, experts: int, top: int
) -> None:
    shape = shape_from_size(size, active)
    assert (shape.layers, shape.hidden) == (layers, hidden)
    assert shape.experts == pytest.approx(experts, rel=0.1)
    assert shape.experts_per_token == top
    assert "size alone" in shape.why_approximate


def test_heads_are_a_multiple_of_the_groups_that_share_keys() -> None:
    for size in (0.03, 0.2, 0.36, 0.9, 2, 5, 11, 27, 60, 130, 300, 700):
        shape = shape_from_size(size)
        assert shape.heads % shape.kv_heads == 0, size
        assert shape.heads * shape.head_dim == shape.hidden, size
