"""The cache of keys and values: cases in which other tools are known to have been wrong."""

from __future__ import annotations

from typing import Any

import pytest

from engine.estimate.kv_cache import kv_cache_bytes, kv_cache_bytes_per_token
from engine.estimate.model_shape import shape_from_config
from engine.estimate.shape_from_size import shape_from_size

GIB = 2**30
GEMMA3_27B = {
    "model_type": "gemma3_text", "hidden_size": 5376, "num_hidden_layers": 62,
    "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128,
    "intermediate_size": 21504, "vocab_size": 262208, "sliding_window": 1024,
    "sliding_window_pattern": 6,
}  # fmt: skip
QWEN35_27B = {
    "model_type": "qwen3_5_text", "hidden_size": 5120, "num_hidden_layers": 64,
    "num_attention_heads": 24, "num_key_value_heads": 4, "head_dim": 256,
    "intermediate_size": 17408, "vocab_size": 248320, "full_attention_interval": 4,
    "linear_num_key_heads": 16, "linear_num_value_heads": 48, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "tie_word_embeddings": False,
}  # fmt: skip
MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
       "q_lora_rank": 1536, "moe_intermediate_size": 2048, "n_shared_experts": 1,
       "num_experts_per_tok": 8}  # fmt: skip
DEEPSEEK_V3 = {
    **MLA, "model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
    "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432,
    "n_routed_experts": 256, "first_k_dense_replace": 3, "vocab_size": 129280,
}  # fmt: skip
KIMI = {**DEEPSEEK_V3, "model_type": "kimi_k2", "num_attention_heads": 64,
        "num_key_value_heads": 64, "n_routed_experts": 384, "vocab_size": 163840,
        "first_k_dense_replace": 1}  # fmt: skip
QWEN3_06B = {
    "model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 3072, "vocab_size": 151936, "tie_word_embeddings": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "tokens", "gib"),
    [
        # The values that unsloth's change 4757 gives for 16-bit caches, context by context.
        (GEMMA3_27B, 131_072, 10.41),  # 81.38 when head size and windows are guessed
        (QWEN35_27B, 262_144, 16.00),  # 53.25 when every layer is charged
        (DEEPSEEK_V3, 163_840, 10.72),  # 2.08 when the latent width is missed
        (KIMI, 262_144, 17.16),  # 6.67
        (QWEN3_06B, 40_960, 4.38),  # 2.19 when the head size is hidden size by heads
    ],
    ids=["gemma3-27b", "qwen3.5-27b", "deepseek-v3.1", "kimi-k2.5", "qwen3-0.6b"],
)
def test_the_cache_where_others_were_wrong(config: dict[str, Any], tokens: int, gib: float) -> None:
    shape = shape_from_config(config)
    state = shape.state_layers * shape.state_bytes_per_layer
    assert (kv_cache_bytes(shape, tokens) - state) / GIB == pytest.approx(gib, abs=0.006)


def test_the_state_of_a_hybrid_is_small_and_fixed() -> None:
    # LM Studio bug 1862: a hybrid of 64 layers keeps caches in 16 and states in 48.
    shape = shape_from_config(QWEN35_27B)
    assert (shape.kv_layers, shape.state_layers) == (16, 48)
    fixed = kv_cache_bytes(shape, 0)
    assert 0.05 * GIB < fixed < 0.6 * GIB
    growth = kv_cache_bytes(shape, 2000) - kv_cache_bytes(shape, 1000)
    assert growth == 1000 * kv_cache_bytes_per_token(shape) == 1000 * 16 * 2 * 4 * 256 * 2


def test_grouped_heads_share_a_cache() -> None:
    # vllm change 29736: 4 times too much for Llama 3 8B, by hidden size in place of shared heads.
    config = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
              "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
              "vocab_size": 128256}  # fmt: skip
    assert kv_cache_bytes_per_token(shape_from_config(config)) == 2 * 32 * 8 * 128 * 2


@pytest.mark.parametrize("key", ["head_dim", "num_key_value_heads"])
def test_a_key_that_is_null_is_worked_out(key: str) -> None:
    # llm-d-benchmark 426, sglang 7788: "head_dim": null ended in a traceback.
    config = {"model_type": "mixtral", "hidden_size": 6144, "num_hidden_layers": 56,
              "num_attention_heads": 48, "num_key_value_heads": 8, "intermediate_size": 16384,
              "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2, key: None,
              }  # fmt: skip
    shape = shape_from_config(config)
    assert shape.head_dim == 128
    assert shape.kv_heads == (48 if key == "num_key_value_heads" else 8)
    assert shape.exact


def test_sizes_are_read_from_the_text_part_of_a_model_with_images() -> None:
    # omlx change 1448: the top level held the image tower's sizes.
    config = {"model_type": "some_vl", "hidden_size": 1152, "num_hidden_layers": 27,
              "num_attention_heads": 16, "text_config": QWEN3_06B,
              "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27}}  # fmt: skip
    shape = shape_from_config(config)
    assert (shape.layers, shape.hidden) == (28, 1024)
    assert kv_cache_bytes_per_token(shape) == 114_688
    assert not shape.exact


def test_a_window_limits_all_layers_of_a_family_that_has_it_everywhere() -> None:
    config = {"model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32,
              "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
              "vocab_size": 32000, "sliding_window": 4096}  # fmt: skip
    shape = shape_from_config(config)
    assert kv_cache_bytes(shape, 32_768) == kv_cache_bytes(shape, 4096)
    off = shape_from_config({**config, "sliding_window": None})
    assert kv_cache_bytes(off, 32_768) == 8 * kv_cache_bytes(shape, 4096)


def test_a_window_that_is_switched_off_limits_nothing() -> None:
    config = {"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28,
              "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944,
              "vocab_size": 152064, "sliding_window": 131072, "use_sliding_window": False,
              "max_window_layers": 28}  # fmt: skip
    assert shape_from_config(config).window_layers == 0


def test_networks_without_a_growing_cache_add_nothing() -> None:
    mamba = {"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 24,
             "vocab_size": 50280, "state_size": 16}  # fmt: skip
    bert = {"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12,
            "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30522,
            "max_position_embeddings": 512, "type_vocab_size": 2}  # fmt: skip
    for config in (mamba, bert):
        assert kv_cache_bytes_per_token(shape_from_config(config)) == 0
    assert kv_cache_bytes(shape_from_config(mamba), 10**6) == kv_cache_bytes(
        shape_from_config(mamba), 1
    )


def test_an_eight_bit_cache_is_half_of_a_sixteen_bit_one() -> None:
    shape = shape_from_size(8)
    assert kv_cache_bytes_per_token(shape, 1) * 2 == kv_cache_bytes_per_token(shape, 2)
