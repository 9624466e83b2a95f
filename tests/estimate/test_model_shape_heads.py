"""Networks saved without a language model's head, or with another one.

The small ones were counted by the transformers library on the meta device (the file says which
version); the others are published.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.estimate.model_shape import shape_from_config

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "configs"
HEADS = json.loads((FIXTURES / "counts_of_heads.json").read_text(encoding="utf-8"))["cases"]
MISTRAL = {
    "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14_336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 32_000, "tie_word_embeddings": False,
}  # fmt: skip


@pytest.mark.parametrize("case", HEADS, ids=lambda c: str(c["config"]["architectures"][0]))
def test_the_count_is_that_of_the_class_that_was_saved(case: dict[str, Any]) -> None:
    shape = shape_from_config(case["config"])
    assert (round(shape.total_params), shape.exact) == (case["total"], True)


def test_an_embedding_model_has_no_head() -> None:
    # E5-Mistral-7B-instruct publishes 7,110,660,096: Mistral 7B without 32,000 x 4,096.
    shape = shape_from_config({**MISTRAL, "architectures": ["MistralModel"]})
    assert shape.total_params == 7_110_660_096 == 7_241_732_096 - 32_000 * 4096
    assert shape.embedding_params == 32_000 * 4096
    assert shape.exact


def test_a_reward_model_has_one_output_in_the_heads_place() -> None:
    # Llama 3.1 8B, 8,030,261,248, less 128,256 x 4,096 of the head, and 4,096 of a score.
    llama = {
        **MISTRAL, "model_type": "llama", "vocab_size": 128_256,
        "architectures": ["LlamaForSequenceClassification"], "id2label": {"0": "score"},
    }  # fmt: skip
    assert shape_from_config(llama).total_params == 8_030_261_248 - 128_256 * 4096 + 4096


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("mistral", "MistralForCausalLMDraft"),  # a draft model of another build
        ("llama", "MyOwnForCausalLM"),
        ("bart", "BartDecoderWrapper"),  # the decoder alone, without a head
        ("modernbert-decoder", "ModernBertDecoderForRanking"),  # its head has layers of its own
    ],
)
def test_a_class_that_is_not_known_is_not_called_exact(kind: str, named: str) -> None:
    bart = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
            "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128,
            "is_encoder_decoder": True, "vocab_size": 500}  # fmt: skip
    sizes = bart if kind == "bart" else MISTRAL | {"layer_types": ["full_attention"] * 32}
    shape = shape_from_config({**sizes, "model_type": kind, "architectures": [named]})
    assert not shape.exact
    assert named in shape.why_approximate


def test_former_names_of_a_class_are_the_same_class() -> None:
    raw = {"model_type": "t5", "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2,
           "num_heads": 4, "vocab_size": 500}  # fmt: skip
    new = shape_from_config({**raw, "architectures": ["T5ForConditionalGeneration"]})
    assert shape_from_config({**raw, "architectures": ["T5WithLMHeadModel"]}) == new


def test_attention_to_another_network_is_said_not_to_be_counted() -> None:
    gpt2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 64,
            "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 500}  # fmt: skip
    assert shape_from_config(gpt2).exact
    assert not shape_from_config({**gpt2, "add_cross_attention": True}).exact


def test_other_parts_beside_a_known_text_part_are_said_not_to_be_counted() -> None:
    whole = {"model_type": "owners_speech", "encoder_config": {"hidden_dim": 64},
             "text_config": {**MISTRAL, "model_type": "llama"}}  # fmt: skip
    shape = shape_from_config(whole)
    assert shape.total_params == 7_241_732_096
    assert not shape.exact


def test_experts_a_token_passes_are_read_under_the_familys_own_name() -> None:
    # ERNIE 4.5 21B-A3B: 6 of 64 experts of 3 x 2,560 x 1,536 in 27 layers are 1.91 billion.
    ernie = {
        "model_type": "ernie4_5_moe", "architectures": ["Ernie4_5_MoeForCausalLM"],
        "hidden_size": 2560, "num_hidden_layers": 28, "num_attention_heads": 20,
        "num_key_value_heads": 4, "intermediate_size": 12_288, "vocab_size": 103_424,
        "tie_word_embeddings": True, "moe_num_experts": 64, "moe_k": 6,
        "moe_intermediate_size": 1536, "moe_num_shared_experts": 2, "moe_layer_start_index": 1,
        "moe_layer_interval": 1, "use_bias": False,
    }  # fmt: skip
    shape = shape_from_config(ernie)
    assert shape.experts_per_token == 6
    left_out = shape.total_params - shape.active_params
    assert left_out == pytest.approx(58 * 3 * 2560 * 1536 * 27, rel=1e-9)


def test_an_unknown_family_with_latent_attention_keeps_a_small_cache() -> None:
    own = {**MISTRAL, "model_type": "owners_moe", "kv_lora_rank": 512, "qk_nope_head_dim": 128,
           "qk_rope_head_dim": 64, "v_head_dim": 128, "q_lora_rank": 1536}  # fmt: skip
    shape = shape_from_config(own)
    assert (shape.attention, shape.mla_cache_width, shape.exact) == ("mla", 576, False)


def test_experts_that_are_switched_off_are_not_counted() -> None:
    own = {**MISTRAL, "model_type": "owners", "num_experts": 16_384, "is_moe": False}
    assert shape_from_config(own).total_params == 7_241_732_096
