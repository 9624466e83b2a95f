"""Bytes of weights as files state them, attention by data, and prompts found in the cache."""

from __future__ import annotations

import numpy as np
import pytest

from engine.catalogue import load_catalogue
from engine.estimate.model_shape import shape_from_config
from engine.estimate.serving import (
    Plan,
    decode_seconds,
    hardware_of,
    most_sequences,
    network_of,
    prefill_seconds,
    replica_of,
    stored_bits,
    weight_bytes,
)
from engine.estimate.serving_physics import allreduce_seconds
from engine.estimate.serving_points import Load, at_rate, curve, gpu_replica
from engine.estimate.shape import ModelShape

LLAMA_8B = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096,
    "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
}  # fmt: skip
LLAMA_70B = LLAMA_8B | {
    "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
    "num_attention_heads": 64,
}  # fmt: skip
DEEPSEEK = {
    "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 7168,
    "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
    "num_attention_heads": 128, "num_key_value_heads": 128, "n_routed_experts": 256,
    "num_experts_per_tok": 8, "n_shared_experts": 1, "first_k_dense_replace": 3,
    "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "vocab_size": 129280,
}  # fmt: skip


def shape(config: dict[str, object]) -> ModelShape:
    return shape_from_config(config)


@pytest.mark.parametrize(
    ("config", "bits", "gb"),
    [
        # Sizes of the files: two AWQ repositories state 4.68 and 1.05 GB; 8-bit weights with the
        # two tables in 16 bits: 8.03 + 1.05 and 70.55 + 2.10 GB.
        (LLAMA_8B, 4, 5.73), (LLAMA_8B, 8, 9.08), (LLAMA_70B, 8, 72.66), (LLAMA_8B, 16, 16.06),
    ],
)  # fmt: skip
def test_weights_are_as_large_as_their_files(
    config: dict[str, object], bits: float, gb: float
) -> None:
    plan = Plan(1.0, 1.0, 0.0, stored_bits(bits) / 8.0, 2.0)
    found = float(weight_bytes(network_of(shape(config)), plan)) / 1e9
    assert found == pytest.approx(gb, rel=0.02)


def test_attention_by_data_keeps_all_of_it_on_every_gpu() -> None:
    """DeepSeek-V3: queries 7168·1536 + 1536·128·192, keys 7168·576 + 512·128·256, out
    128·128·7168: 187.1 million a layer, 11.4 billion in 61. Seven eighths of that are kept more on
    each of eight GPUs.
    """
    net = network_of(shape(DEEPSEEK))
    layer = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    assert net.attention == pytest.approx(61 * layer)
    split, whole = (float(weight_bytes(net, Plan(8.0, 1.0, dp, 1.0, 1.0))) for dp in (0.0, 1.0))
    assert whole - split == pytest.approx(61 * layer * 7 / 8)
    # Grouped heads: queries and output 4096·4096 each, keys and values 4096·1024 each.
    assert network_of(shape(LLAMA_8B)).attention == 32 * 2 * (4096 * 4096 + 4096 * 1024)


def test_attention_by_data_of_one_prompt_has_one_gpu() -> None:
    acc = load_catalogue().accelerators["h200-sxm-141gb"]

    def first(prompts: float, dp: bool) -> float:
        parts = replica_of(shape(DEEPSEEK), acc, 8, 1, dp, 8.0, 1.0, "sglang-2025")
        return float(prefill_seconds(*parts, prompts, 4000.0))

    # 2 · 11.4e9 · 4000 more on one GPU than on eight, at 1,979 TFLOP/s and well below it.
    more = 2 * 11.4e9 * 4000 * 7 / 8 / 1.979e15
    assert more < first(1.0, True) - first(1.0, False) < 6 * more
    # Eight prompts have a GPU each, and less is sent between them.
    assert first(8.0, True) < first(8.0, False)


def test_attention_by_data_reads_its_weights_on_every_gpu() -> None:
    acc = load_catalogue().accelerators["h200-sxm-141gb"]

    def step(dp: bool) -> float:
        net, hw, plan, eff = replica_of(shape(DEEPSEEK), acc, 8, 1, dp, 8.0, 1.0, "sglang-2025")
        return float(decode_seconds(net, hw, plan, eff, 8.0, 1e-6))

    more = 11.4e9 * 7 / 8 / 4.8e12  # seconds at the full bandwidth of 4.8 TB/s
    assert 0.5 * more < step(True) - step(False) < 2.0 * more


def test_a_prompt_attends_to_what_is_found_in_the_cache() -> None:
    """5,000 tokens after 95,000 cached: each attends to 97,500 on average, not to 2,500."""
    acc = load_catalogue().accelerators["h100-sxm-80gb"]
    net, hw, plan, eff = replica_of(shape(LLAMA_70B), acc, 8, 1, False, 8.0, 2.0, "vllm-2025")
    alone = float(prefill_seconds(net, hw, plan, eff, 1.0, 5000.0))
    after = float(prefill_seconds(net, hw, plan, eff, 1.0, 5000.0, 95_000.0))
    scores = 2 * (64 * 256) * 80 * 5000 * 95_000  # operations that the cached part adds
    assert after - alone == pytest.approx(scores / (8 * hw.peak16 * eff.attention), rel=1e-6)


def test_a_prefix_cache_saves_less_than_its_share_of_long_prompts() -> None:
    acc = load_catalogue().accelerators["h100-sxm-80gb"]
    replica = gpu_replica(shape(LLAMA_70B), acc, 8, 1, False, 8.0, 2.0, "vllm-2025")

    def first(load: Load) -> float:
        return at_rate(curve(replica, load, 0.95), 0.0).ttft_mean_s

    found, short = first(Load(100_000, 200, 0.95)), first(Load(5_000, 200))
    assert short * 1.5 < found < first(Load(100_000, 200))


def test_sixteen_bits_are_as_they_were() -> None:
    assert [stored_bits(b) for b in (16.0, 8.0, 4.85, 4.0)] == [16.0, 8.0, 4.85, 4.25]
    acc = load_catalogue().accelerators["b200-sxm-180gb"]
    four = hardware_of(acc, 4.0)
    assert np.isclose(float(four.peak), 1e12 * float(acc.fp4_tflops_dense or 0.0))


def test_attention_by_data_sends_to_the_experts_only() -> None:
    """A token's eight experts lie on 7 · (1 − (7/8)^8) = 4.59 of seven other GPUs: an eighth of the
    tokens is sent to that many, in 8 bits there and in 16 back. All-reduces send 2 · 7/8 of all.
    """
    acc = load_catalogue().accelerators["h200-sxm-141gb"]

    def sent(dp: bool, n: int, tokens: float = 4096.0) -> float:
        net, hw, plan, eff = replica_of(shape(DEEPSEEK), acc, n, 1, dp, 8.0, 1.0, "sglang-2025")
        latency = float(allreduce_seconds(net, hw, plan, eff, 0.0))
        bytes_per_s = 450e9 * float(eff.link_share)
        return (float(allreduce_seconds(net, hw, plan, eff, tokens)) - latency) * bytes_per_s

    whole = 61 * 2 * 4096 * 7168 * 2.0
    assert sent(False, 8) == pytest.approx(2 * 7 / 8 * whole)
    assert sent(True, 8) == pytest.approx(4.594 / 8 * 0.75 * whole, rel=1e-3)
    # Two GPUs: nearly every token has an expert on the other one; no more than a gather sends.
    assert sent(True, 2) == pytest.approx(0.5 * (1 - 0.5**8) * 0.75 * whole, rel=1e-6)


def test_attention_by_data_schedules_on_every_gpu() -> None:
    plans = (Plan(8.0, 1.0, 0.0, 1.0, 1.0), Plan(8.0, 1.0, 1.0, 1.0, 1.0), Plan(8, 2, 0.0, 1, 1))
    assert [float(most_sequences(p)) for p in plans] == [1024, 8192, 2048]


def test_decoding_on_many_gpus_is_of_the_order_of_what_was_published() -> None:
    """SGLang, May 2025 (lmsys.org/blog/2025-05-05-large-scale-ep): DeepSeek-V3 decoding on nine
    nodes of eight H100 gave 22,282 tokens/s a node with 256 answers a GPU and 2,000 tokens in. Its
    exchanges hide behind two half batches, ours do not: up to half is lost.
    """
    acc = load_catalogue().accelerators["h100-sxm-80gb"]

    parts = replica_of(shape(DEEPSEEK), acc, 72, 1, True, 8.0, 2.0, "sglang-2025")
    step = float(decode_seconds(*parts, 256.0 * 72, 2050.0))
    assert 0.4 * 22_282 < 256 * 72 / step / 9 < 1.2 * 22_282
