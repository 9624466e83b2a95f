"""Networks of images and sound: in stages, in parts, or of families that are only known whole."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import ImportFileError
from engine.estimate.model_shape import shape_from_config
from engine.explain.serving_shapes import shape_told
from engine.planning.training_view import shape_words

# ResNet-50 as published with 25,557,032 parameters, of which 2,049,000 are the classifier's.
RESNET_50: dict[str, Any] = {
    "model_type": "resnet", "architectures": ["ResNetModel"], "num_channels": 3,
    "embedding_size": 64, "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3],
    "layer_type": "bottleneck", "downsample_in_first_stage": False,
}  # fmt: skip


def test_a_network_in_stages_is_counted_and_its_widest_stage_stands_for_it() -> None:
    shape = shape_from_config(RESNET_50)
    assert (shape.total_params, shape.exact) == (25_557_032 - 2_049_000, True)
    assert (shape.layers, shape.hidden, shape.attention) == (16, 2048, "none")
    assert (shape.vocab, shape.embedding_params, shape.kv_layers) == (0, 0, 0)
    assert "not of one width" in shape.note


def test_a_deeper_network_in_stages() -> None:
    # ResNet-152, published with 60,192,808 parameters; its classifier is the same.
    deep = shape_from_config({**RESNET_50, "depths": [3, 8, 36, 3]})
    assert (deep.total_params, deep.exact) == (60_192_808 - 2_049_000, True)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"layer_type": "basic"}, "layer_type is basic"),
        ({"hidden_sizes": [258, 512, 1024, 2048]}, "hidden_sizes.0 is no multiple of"),
        ({"hidden_sizes": [256, 512, 2048]}, "hidden_sizes has 3 stages"),
        ({"depths": 4}, "depths has no list of stages"),
    ],
)
def test_what_the_formula_does_not_hold_for_is_said(changed: dict[str, Any], why: str) -> None:
    shape = shape_from_config({**RESNET_50, **changed})
    assert not shape.exact
    assert why in shape.why_approximate
    assert "total_size in model.safetensors.index.json" in shape.why_approximate


def test_an_encoder_in_a_part_of_its_own_gives_the_widths() -> None:
    # The library counts 608,799,745 for its usual Parakeet: 24 layers of 1,024 in the encoder.
    part = {"model_type": "parakeet_encoder", "hidden_size": 1024, "num_hidden_layers": 24,
            "num_attention_heads": 8, "intermediate_size": 4096}  # fmt: skip
    whole = {"model_type": "parakeet_ctc", "architectures": ["ParakeetForCTC"], "vocab_size": 1025}
    shape = shape_from_config({**whole, "encoder_config": part})
    assert (shape.total_params, shape.exact) == (608_799_745, True)
    assert (shape.layers, shape.hidden, shape.kv_layers) == (24, 1024, 0)


def test_a_family_that_is_only_known_whole_has_its_usual_size_and_says_so() -> None:
    # SAM with a ViT of base size: 93,735,728 parameters by the library.
    shape = shape_from_config({"model_type": "sam", "vision_config": {"model_type": "sam_vision"}})
    assert (shape.total_params, shape.exact) == (93_735_728, False)
    assert "the usual size" in shape.why_approximate
    assert shape.layers > 1
    assert shape.hidden > 64


def test_a_usual_size_grows_with_the_widths_of_the_file() -> None:
    sizes = {"model_type": "wav2vec2-conformer", "num_attention_heads": 12, "conv_dim": [512]}
    usual = {**sizes, "hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072}
    shape = shape_from_config(usual)
    assert (shape.total_params, shape.exact) == (pytest.approx(179_730_304), False)
    assert "larger or smaller" in shape.why_approximate
    # Layers of 4 h^2 + 2 h f and their biases and norms, twice as many.
    twice = shape_from_config({**usual, "num_hidden_layers": 24})
    assert twice.total_params == pytest.approx(2 * 179_730_304)


@pytest.mark.parametrize(
    ("sizes", "lacks"),
    [
        ({"model_type": "seer", "depths": [2, 2]}, "hidden_size"),
        ({"model_type": "seer", "hidden_size": 64}, "num_hidden_layers"),
        ({"model_type": "seer", "hidden_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 4}, "vocab_size"),
    ],
)  # fmt: skip
def test_a_family_not_known_that_states_too_little_says_what_to_do(
    sizes: dict[str, Any], lacks: str
) -> None:
    with pytest.raises(ImportFileError, match=f"'seer', which is not known here.*{lacks}") as told:
        shape_from_config(sizes)
    assert "give its number of parameters instead" in str(told.value)


def test_a_network_that_holds_for_one_depth_grows_with_the_layers_of_the_file() -> None:
    # Kimi Linear's 27 layers have 49.1e9 parameters, its words 2 x 163,840 x 2,304.
    sizes = {"model_type": "kimi_linear", "architectures": ["KimiLinearForCausalLM"],
             "vocab_size": 163_840, "hidden_size": 2304, "intermediate_size": 9216,
             "num_attention_heads": 32}  # fmt: skip
    words = 2 * 163_840 * 2304
    nine = shape_from_config({**sizes, "num_hidden_layers": 9})
    whole = shape_from_config({**sizes, "num_hidden_layers": 27})
    assert whole.total_params == 49_133_074_464
    assert not nine.exact
    # Roughly a third: what differs from layer to layer is counted by the file, the rest scaled.
    assert nine.total_params == pytest.approx(words + (49_133_074_464 - words) / 3, rel=0.1)
    assert nine.active_params < nine.total_params / 3


def test_what_must_be_known_of_a_model_is_told_with_it_where_it_is_used() -> None:
    exact = shape_from_config(RESNET_50)
    assert exact.doubts == (exact.note,)
    basic = shape_from_config({**RESNET_50, "layer_type": "basic"})
    assert basic.doubts == (f"approximate, {basic.why_approximate}", basic.note)
    assert "counted exactly; its layers are not of one width" in shape_words(exact)
    assert "approximate, layer_type is basic" in shape_words(basic)
    served = shape_told(basic)
    assert "layer_type is basic" in served
    assert "not of one width" in served
    assert "plan it under Compute and small models" in served
    writer = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "vocab_size": 99,
              "num_hidden_layers": 2, "num_attention_heads": 4}  # fmt: skip
    assert shape_told(shape_from_config(writer)) == ""
    cut = shape_from_config({**writer, "_name_or_path": "someone/Llama-70B"})
    assert "the name says 70B" in shape_told(cut)
    assert "the name says 70B" in shape_words(cut)


ALIKE: dict[str, Any] = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                         "intermediate_size": 96, "vocab_size": 32}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({**ALIKE, "model_type": "wav2vec2", "conv_dim": 1,
          "architectures": ["Wav2Vec2ForSequenceClassification"]}, "conv_dim"),
        ({**ALIKE, "model_type": "wav2vec2", "conv_kernel": [[1]],
          "architectures": ["Wav2Vec2ForSequenceClassification"]}, "conv_kernel"),
        ({**ALIKE, "model_type": "vit", "architectures": ["ViTModel"], "num_channels": 3,
          "image_size": [[1]], "patch_size": 16}, "image_size"),
        ({**RESNET_50, "num_channels": [[1], [1]]}, "num_channels"),
    ],
)  # fmt: skip
def test_lists_of_what_is_no_size_are_refused_by_name(config: dict[str, Any], named: str) -> None:
    with pytest.raises(ImportFileError, match=named):
        shape_from_config(config)


def test_layers_without_experts_that_are_no_list_are_read_as_none() -> None:
    sizes = {**ALIKE, "model_type": "qwen3_moe", "num_key_value_heads": 2, "head_dim": 16,
             "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
             "decoder_sparse_step": 1}  # fmt: skip
    odd = shape_from_config({**sizes, "mlp_only_layers": 3})
    assert odd.total_params == shape_from_config({**sizes, "mlp_only_layers": []}).total_params
