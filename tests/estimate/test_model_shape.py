"""Shapes from configurations: counts as the transformers library gives them, faults in words."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ImportFileError, InputError
from engine.estimate.kv_cache import kv_cache_bytes, kv_cache_bytes_per_token
from engine.estimate.model_shape import shape_from_config, shape_from_text, shape_json
from engine.estimate.shape_from_size import shape_from_size

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "configs"
CASES: list[dict[str, Any]] = json.loads((FIXTURES / "counts.json").read_text(encoding="utf-8"))
LLAMA_8B = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "vocab_size": 128256, "tie_word_embeddings": False,
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[c["name"] for c in CASES])
def test_the_count_is_the_librarys(case: dict[str, Any]) -> None:
    shape = shape_from_config(case["config"])
    assert round(shape.total_params) == case["total"]
    assert round(shape.active_params) == case["active"]
    assert shape.exact
    if case["kv"] is not None:
        assert kv_cache_bytes_per_token(shape) == case["kv"]


def test_llama_8b_by_hand() -> None:
    # Embedding and head 2·128,256·4,096; a layer: attention, MLP and two norms.
    layer = 2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096
    total = 2 * 128256 * 4096 + 32 * layer + 4096
    assert round(shape_from_config(LLAMA_8B).total_params) == total == 8_030_261_248


def test_quantization_changes_the_bits_and_not_the_count() -> None:
    quantized = {**LLAMA_8B, "quantization_config": {"load_in_4bit": True}, "torch_dtype": "auto"}
    shape = shape_from_config(quantized)
    assert round(shape.total_params) == 8_030_261_248
    assert shape.quantized_bits == 4


def test_an_explicit_head_size_counts_in_the_cache() -> None:
    # Qwen3-0.6B: 28 layers, 8 key-value heads of 128, 16 bits: 2·28·8·128·2 = 114,688.
    config = {
        "model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
        "intermediate_size": 3072, "vocab_size": 151936, "tie_word_embeddings": True,
    }  # fmt: skip
    assert kv_cache_bytes_per_token(shape_from_config(config)) == 114_688


def test_windowed_layers_stop_growing() -> None:
    config = {
        "model_type": "gemma3_text", "hidden_size": 1152, "num_hidden_layers": 26,
        "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
        "intermediate_size": 6912, "vocab_size": 262144, "sliding_window": 512,
        "sliding_window_pattern": 6,
    }  # fmt: skip
    shape = shape_from_config(config)
    # Four of 26 layers are full: 2·256·2 B = 1,024 B a layer and token.
    assert kv_cache_bytes(shape, 10_000) == 1024 * (4 * 10_000 + 22 * 512)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "is empty"),
        (b"{}", "empty object"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", "Git LFS"),
        (b"../../blobs/0123abcd", "link stored as text"),
        (b'{"hidden_size": 3,}', "comma"),
        (b"{\n// no\n}", "comments"),
        (b'{"bos_token_id": 1, "eos_token_id": 2}', "generation_config"),
        (b'{"peft_type": "LORA", "base_model_name_or_path": "x/y"}', "adapter"),
        (b"\xff\xfe\x00", "no text"),
        (b"[1, 2, 3]", "list of 3"),
        (b"3", "no configuration"),
        (json.dumps({**LLAMA_8B, "num_attention_heads": 0}).encode(), "num_attention_heads is 0"),
        (json.dumps({**LLAMA_8B, "num_key_value_heads": 5}).encode(), "can't share 5"),
        (json.dumps({**LLAMA_8B, "vocab_size": "many"}).encode(), "vocab_size"),
        (
            json.dumps({k: v for k, v in LLAMA_8B.items() if k != "vocab_size"}).encode(),
            "no vocab_size",
        ),
    ],
)
def test_a_wrong_file_gets_the_message_its_maker_needs(text: bytes, words: str) -> None:
    with pytest.raises(ImportFileError, match=words):
        shape_from_text(text, "config.json")


def test_a_byte_order_mark_and_nan_do_no_harm() -> None:
    text = "\ufeff" + json.dumps({**LLAMA_8B, "initializer_range": float("nan")})
    assert round(shape_from_text(text.encode()).total_params) == 8_030_261_248


def test_an_unknown_architecture_says_approximate() -> None:
    shape = shape_from_config({**LLAMA_8B, "model_type": "never_heard_of"})
    assert not shape.exact
    assert "never_heard_of" in shape.why_approximate


def test_meta_params_are_read_with_their_own_names() -> None:
    native = {"dim": 8192, "n_layers": 80, "n_heads": 64, "n_kv_heads": 8, "multiple_of": 4096,
              "ffn_dim_multiplier": 1.3, "vocab_size": -1}  # fmt: skip
    assert round(shape_from_config(native).total_params) == 68_976_648_192


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
            st.sampled_from(["model_type", "hidden_size", "num_hidden_layers", "vocab_size",
                             "num_attention_heads", "head_dim", "text_config", "n_layers", "dim",
                             "num_key_value_heads", "kv_lora_rank", "num_experts", "n_heads"]),
            inner, max_size=9,
        ),
        max_leaves=25,
    )
)  # fmt: skip
def test_no_json_reaches_a_traceback(data: Any) -> None:
    with suppress(ImportFileError):
        shape_from_config(data)


@given(st.binary(max_size=200))
def test_no_bytes_reach_a_traceback(data: bytes) -> None:
    with suppress(ImportFileError):
        shape_from_text(data)


def test_a_size_alone_gives_a_usual_shape_of_that_size() -> None:
    shape = shape_from_size(70)
    assert shape.total_params == 70e9
    assert 70 <= shape.layers <= 90
    assert 7000 <= shape.hidden <= 9500
    assert not shape.exact
    assert shape_from_size(235, 22).is_moe


@pytest.mark.parametrize(
    ("size", "layers", "hidden", "heads"),
    [(8, 32, 4096, 32), (70, 80, 8192, 64), (405, 126, 16384, 128)],
)
def test_a_size_alone_gives_widths_that_a_server_can_share(
    size: float, layers: int, hidden: int, heads: int
) -> None:
    # The published Llama 3.1 models of about these sizes.
    shape = shape_from_size(size)
    assert (shape.layers, shape.hidden, shape.heads) == (layers, hidden, heads)
    assert shape.kv_heads == 8


@pytest.mark.parametrize(("size", "active"), [(0, None), (-3, None), (7, 70), (float("nan"), None)])
def test_a_size_that_makes_no_sense_is_refused(size: float, active: float | None) -> None:
    with pytest.raises(InputError):
        shape_from_size(size, active)


def test_the_printed_shape_has_what_a_script_needs() -> None:
    printed = shape_json(shape_from_config(LLAMA_8B))
    assert printed["total_params"] == 8_030_261_248
    assert printed["exact"] is True
    assert printed["shape"]["layers"] == 32
