"""Models put together from whole networks: encoder with decoder, Blt, and parts of unknown kind.

Counts of the small configurations are the transformers library's, on the meta device (the file
says which version); those of the large ones are written out by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ImportFileError
from engine.estimate.model_shape import shape_from_config

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "configs"
CASES: list[dict[str, Any]] = json.loads(
    (FIXTURES / "counts_of_pairs.json").read_text(encoding="utf-8")
)["cases"]
BERT = {"model_type": "bert", "vocab_size": 30_522, "hidden_size": 768, "num_hidden_layers": 12,
        "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 512,
        "type_vocab_size": 2}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["config"]["model_type"])
def test_the_count_is_the_librarys(case: dict[str, Any]) -> None:
    shape = shape_from_config(case["config"])
    assert (round(shape.total_params), shape.exact) == (case["total"], True)
    assert 0 < shape.active_params <= shape.total_params


def test_bert_to_bert_by_hand() -> None:
    # BERT base with its pooler has 109,482,240 parameters. Its decoder has no pooler (590,592
    # less) but a head: a transform of 768 x 768 + 768 with a norm of 1,536, and a bias a word.
    # Each of 12 layers attends to the encoder by 4 x (768 x 768 + 768) + 1,536.
    decoder = 109_482_240 - 590_592 + 590_592 + 1_536 + 30_522 + 12 * 2_363_904
    pair = {"model_type": "encoder-decoder", "encoder": BERT,
            "decoder": {**BERT, "is_decoder": True, "add_cross_attention": True}}  # fmt: skip
    assert shape_from_config(pair).total_params == 109_482_240 + decoder


def test_what_finds_patches_stands_still() -> None:
    config = next(c["config"] for c in CASES if c["config"]["model_type"] == "blt")
    shape = shape_from_config(config)
    # Two layers of width 48: 4 x 48 x 48 + 3 x 48 x 100 + 96 each, two tables of 260, a norm.
    still = 2 * (9_216 + 14_400 + 96) + 2 * 260 * 48 + 48
    assert shape.total_params - shape.active_params == still


def test_a_missing_part_is_named() -> None:
    with pytest.raises(ImportFileError, match="decoder_config"):
        shape_from_config({"model_type": "blt", "encoder_config": {}, "global_config": {}})


def test_a_listener_with_a_writer_is_counted_and_other_parts_are_approximate() -> None:
    pair = {"model_type": "canary", "vocab_size": 16_384,
            "encoder_config": {"model_type": "parakeet_encoder", "hidden_size": 1024,
                               "num_hidden_layers": 32, "intermediate_size": 4096,
                               "conv_kernel_size": 9},
            "decoder_config": {"model_type": "canary_decoder", "vocab_size": 16_384,
                               "hidden_size": 1024, "num_hidden_layers": 8,
                               "num_attention_heads": 8, "intermediate_size": 4096}}  # fmt: skip
    shape = shape_from_config(pair)
    # Counted by transformers 5.24.0 on the meta device.
    assert (shape.total_params, shape.exact) == (962_155_520, True)
    assert (shape.kind, shape.layers, shape.hidden) == ("encoder-decoder", 8, 1024)
    other = {**pair["encoder_config"], "model_type": "seer_encoder"}  # type: ignore[dict-item]
    like = shape_from_config({**pair, "encoder_config": other})
    assert not like.exact
    assert "seer_encoder" in like.why_approximate
    assert 0.9 < like.total_params / 962_155_520 < 1.1


IMAGES = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
          "intermediate_size": 3072, "patch_size": 16, "num_channels": 3}  # fmt: skip


def test_an_unknown_network_of_images_has_no_words_and_is_approximate() -> None:
    shape = shape_from_config({**IMAGES, "model_type": "seer", "image_size": 512})
    # Twelve layers of a ViT of this width have 85.05 million parameters.
    assert (shape.exact, shape.kind, shape.vocab) == (False, "encoder", 0)
    assert shape.total_params == pytest.approx(85.05e6, rel=1e-3)
    assert "seer" in shape.why_approximate


def test_a_known_network_of_images_is_counted_by_both_sides_of_its_picture() -> None:
    # Counted by transformers 5.24.0 on the meta device.
    shape = shape_from_config({**IMAGES, "model_type": "yolos", "image_size": [512, 864]})
    assert (shape.total_params, shape.exact) == (103_170_816, True)
    assert (shape.kind, shape.vocab, shape.kv_layers) == ("encoder", 0, 0)
