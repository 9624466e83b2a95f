"""Memory of training against published tables and runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.errors import InputError
from engine.estimate.memory import (
    GIB,
    MemoryBreakdown,
    MemoryInputs,
    as_items,
    fits,
    host_memory_gib,
    memory_estimate,
    memory_of_plans,
    plan_memory,
    training_memory,
)
from engine.estimate.plan import Recompute, TrainingPlan
from engine.estimate.shape import ModelShape
from tests.estimate.training_models import MIXTRAL

LLAMA_8B = ModelShape(
    name="8B", total_params=8.030e9, active_params=8.030e9, embedding_params=2 * 128_256 * 4096.0,
    layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14_336, vocab=128_256,
)  # fmt: skip


def one(array: object) -> float:
    return float(np.ravel(np.asarray(array))[0])


def inputs(**changed: float) -> MemoryInputs:
    """A 7.5B model with next to no activations, on 64 GPUs."""
    values: dict[str, float] = {
        "params": 7.5e9, "expert_params": 0, "layers": 32, "hidden": 4096, "heads": 32,
        "q_width": 4096, "kv_width": 4096, "mlp_width": 16384, "vocab": 0, "seq": 1,
        "micro_batch": 1, "tp": 1, "pp": 1, "cp": 1, "ep": 1, "d": 64, "zero": 0,
        "micro_batches": 1, "recompute": 0, "lora": 0, "adapter_share": 0.01, "weight_bytes": 2,
        "flash": 1, "megatron": 0,
    }  # fmt: skip
    return MemoryInputs(**{k: np.array([v], float) for k, v in (values | changed).items()})


@pytest.mark.parametrize(("zero", "gb"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_states_are_those_of_the_zero_paper(zero: int, gb: float) -> None:
    # Rajbhandari et al. 2020, figure 1: 7.5 billion parameters, Adam, 64 ranks.
    m = training_memory(inputs(zero=zero))
    states = float((m.weights + m.gradients + m.optimizer)[0]) * GIB / 1e9
    assert states == pytest.approx(gb, abs=0.06)


def test_megatrons_distributed_optimizer_keeps_6_and_12_over_d() -> None:
    # Megatron-LM README, "Distributed Optimizer", bf16 with fp32 gradients.
    m = training_memory(inputs(zero=1, d=16, megatron=1))
    states = float((m.weights + m.gradients + m.optimizer)[0]) * GIB
    assert states / 7.5e9 == pytest.approx(6 + 12 / 16)


def test_experts_are_shared_by_fewer_ranks_than_the_rest() -> None:
    # 8 GPUs, experts split over all of them: nobody else has a copy to shard their states with.
    m = training_memory(inputs(expert_params=5.5e9, ep=8, d=8, zero=1, megatron=1))
    states = float((m.weights + m.gradients + m.optimizer)[0]) * GIB
    assert states == pytest.approx(2e9 * (6 + 12 / 8) + 5.5e9 / 8 * 18)


# Llama 3 70B cut to 12 layers on eight B200, bf16, ZeRO-1, sequences of 4,096: peak memory that
# SimuMax publishes as measured with Megatron-LM 0.14.
@pytest.mark.parametrize(
    ("tp", "pp", "gib"), [(1, 2, 66.55), (2, 1, 60.68), (4, 1, 39.07), (8, 1, 28.29)]
)
def test_measured_peaks(tp: int, pp: int, gib: float) -> None:
    ffn, hidden, kv = 28672, 8192, 1024
    layer = hidden * (2 * hidden + 2 * kv) + 3 * hidden * ffn
    m = training_memory(
        inputs(
            params=12 * layer + 2 * 128256 * hidden, layers=12, hidden=hidden, heads=64,
            q_width=8192, kv_width=kv, mlp_width=3 * ffn, vocab=128256, seq=4096, tp=tp, pp=pp,
            d=8 / tp / pp, zero=1, micro_batches=4 * tp * pp, megatron=1,
        )
    )  # fmt: skip
    assert float(m.total[0]) == pytest.approx(gib, rel=0.12)


def test_a_plan_that_needs_all_of_the_card_does_not_fit() -> None:
    assert fits(np.array([70.0, 79.0]), 79.6).tolist() == [True, False]


def test_the_items_add_up_to_the_total_and_measures_nest() -> None:
    m = plan_memory(LLAMA_8B, TrainingPlan(gpus=8, tp=2, pp=2, zero_stage=1))
    items = as_items(m)
    assert sum(v for k, v in items.items() if k != "total") == pytest.approx(items["total"])
    assert one(m.allocated) <= one(m.reserved) <= one(m.total)
    assert one(m.overhead) == pytest.approx(items["fragmentation"] + items["context"])


def test_many_plans_at_once_are_each_plan_alone() -> None:
    kinds: list[tuple[int, int, int, int, int, int, Recompute]] = [
        (1, 1, 1, 1, 3, 2, "full"), (8, 1, 1, 1, 1, 1, "none"), (2, 4, 2, 1, 1, 1, "selective"),
        (4, 8, 1, 2, 0, 1, "full"), (1, 1, 1, 4, 3, 4, "selective"),
    ]  # fmt: skip
    plans = [
        TrainingPlan(gpus=64, tp=tp, pp=pp, vp=vp, cp=cp, zero_stage=zero, micro_batch=mb,
                     global_batch_seqs=512, seq_len=8192, recompute=kept,
                     stack="megatron" if zero < 3 else "fsdp")
        for tp, pp, vp, cp, zero, mb, kept in kinds
    ]  # fmt: skip
    number = {"none": 0.0, "selective": 1.0, "full": 2.0}

    def column(get: str) -> np.ndarray:
        return np.array([float(getattr(p, get)) for p in plans])

    together = memory_of_plans(
        LLAMA_8B, TrainingPlan(gpus=1, seq_len=8192), tp=column("tp"), pp=column("pp"),
        vp=column("vp"), cp=column("cp"), zero=column("zero_stage"), d=column("shard_ranks"),
        expert_d=column("expert_shard_ranks"), micro_batch=column("micro_batch"),
        micro_batches=column("micro_batches"),
        recompute=np.array([number[p.recompute] for p in plans]),
        megatron=np.array([float(p.stack == "megatron") for p in plans]),
        sequence_parallel=np.array([float(p.tp > 1) for p in plans]),
    )  # fmt: skip
    for i, plan in enumerate(plans):
        assert as_items(together, i) == pytest.approx(as_items(plan_memory(LLAMA_8B, plan))), plan


def test_a_column_that_is_none_of_a_plans_is_refused() -> None:
    with pytest.raises(InputError, match="tensor_parallel"):
        memory_of_plans(LLAMA_8B, TrainingPlan(gpus=1), tensor_parallel=np.array([2.0]))


def activations(**changed: float) -> float:
    """Bytes of kept activations of a GPT of two matrices on Megatron-type code.

    One layer of a thousand tokens, hidden size 1,024, eight heads; what is computed with and what
    passes through is left out by taking the difference of two depths.
    """
    base = {
        "params": 0, "hidden": 1024, "heads": 8, "q_width": 1024, "kv_width": 1024,
        "mlp_width": 8192, "matrices": 2, "seq": 1000, "megatron": 1, "d": 1,
        "sequence_parallel": 0,
    }  # fmt: skip
    deep = training_memory(inputs(**(base | {"layers": 64} | changed)))
    flat = training_memory(inputs(**(base | {"layers": 32} | changed)))
    return (one(deep.activations) - one(flat.activations)) * GIB / 32


# Korthikanti et al. 2022, table 2: s·b·h·(10 + 24/t), with sequence parallelism 34/t; here without
# the masks of the two dropouts outside the core (2 of 34 bytes), and with fused attention, which
# keeps 4 bytes a head and token.
def test_activations_are_those_of_korthikanti() -> None:
    sbh = 1000 * 1024
    sums = 4 * 8 * 1000
    assert activations() == pytest.approx(sbh * 32 + sums)
    assert activations(tp=4) == pytest.approx(sbh * (8 + 24 / 4) + sums / 4)
    assert activations(tp=4, sequence_parallel=1) == pytest.approx((sbh * 32 + sums) / 4)
    assert activations(tp=4, sequence_parallel=1, cp=2) == pytest.approx((sbh * 32 + sums) / 8)
    # Without fused attention 5·a·s bytes more a token; selective recomputation takes them away.
    assert activations(flash=0) == pytest.approx(sbh * 32 + 5 * 8 * 1000 * 1000)
    assert activations(flash=0, recompute=1) == pytest.approx(sbh * 32)
    assert activations(recompute=2) == pytest.approx(2 * sbh)
    assert activations(recompute=2, tp=4, sequence_parallel=1) == pytest.approx(2 * sbh / 4)


def test_a_pipeline_holds_as_many_micro_batches_as_its_schedule() -> None:
    # First stage of eight, 1F1B: 8 micro-batches of an eighth of the layers. Interleaved in four:
    # 1 + 7/32 as much [Narayanan et al. 2021]. All 32 before the first backward pass: GPipe.
    one_layer = activations()
    held = {"pp": 8, "micro_batches": 32}
    assert activations(**held) == pytest.approx(one_layer)
    assert activations(**held, vp=4) == pytest.approx(one_layer * (1 + 7 / 32))
    assert activations(**held, schedule=1) == pytest.approx(one_layer * 32 / 8)
    assert activations(pp=8, micro_batches=2) == pytest.approx(one_layer * 2 / 8)


def test_lora_keeps_sixteen_bytes_of_an_adapter_and_two_of_a_weight() -> None:
    m = training_memory(inputs(lora=1, adapter_share=0.01, d=1))
    assert one(m.weights) * GIB == pytest.approx(7.5e9 * 2)
    assert one(m.gradients + m.optimizer) * GIB == pytest.approx(0.075e9 * 16)


def test_qlora_keeps_half_a_byte_and_its_tables_in_thirty_two_bits() -> None:
    # 4.127 bits a weight [Dettmers et al. 2023]; embedding and head of 1.051 billion in 32 bits, as
    # PEFT's preparation leaves them.
    m = plan_memory(LLAMA_8B, TrainingPlan(gpus=1, task="qlora", seq_len=512, stack="other"))
    tables = 2 * 128_256 * 4096
    expected = (8.030e9 - tables) * 0.516 + tables * 4
    assert one(m.weights) * GIB == pytest.approx(expected, rel=1e-3)


def test_qlora_leaves_the_experts_of_a_mixture_in_sixteen_bits() -> None:
    # Mixtral: 32 layers of 8 experts of 3 x 4,096 x 14,336 are 45.10 of its 46.70 billion; tables
    # of 2 x 32,000 x 4,096 in 32 bits; the other 1.34 billion at 4.127 bits: 92 GB, not 26.
    m = plan_memory(MIXTRAL, TrainingPlan(gpus=1, task="qlora", seq_len=512, stack="other"))
    experts, tables = 32 * 8 * 3 * 4096 * 14_336, 2 * 32_000 * 4096
    rest = 46.703e9 - experts - tables
    expected = experts * 2 + rest * 0.516 + tables * 4
    assert one(m.weights) * GIB == pytest.approx(expected, rel=1e-3)


def states_bytes(plan: TrainingPlan) -> float:
    m = plan_memory(LLAMA_8B, plan)
    return one(m.weights + m.gradients + m.optimizer) * GIB


def test_layers_of_qlora_pass_thirty_two_bits_on() -> None:
    # 32 layers keep 4,096 inputs of 1,000 tokens for the backward pass: 262 MB in 16 bits.
    usual = {"lora": 1, "weight_bytes": 0.516, "recompute": 2, "seq": 1000, "adapter_share": 0}
    narrow, wide = training_memory(inputs(**usual)), training_memory(inputs(**usual, stream=2))
    kept = 32 * 4096 * 1000 * 2
    assert one(narrow.activations) * GIB > kept
    assert one(wide.activations) == pytest.approx(2 * one(narrow.activations))


def test_adapters_are_shared_where_weights_are() -> None:
    # 1% of 7.5 billion parameters with 16 bytes each, on one GPU and shared by 4.
    for zero, ranks in ((0, 1), (3, 4)):
        m = training_memory(inputs(lora=1, zero=zero, d=4))
        assert one(m.gradients + m.optimizer) * GIB == pytest.approx(75e6 * 16 / ranks)


def test_scales_of_four_bit_weights_are_nobodys_share_and_stay_on_the_gpu() -> None:
    # bitsandbytes: 4 bytes for 64 weights are 0.47 GB of 7.5 billion, whatever is offloaded.
    usual = {"lora": 1, "weight_bytes": 0.5, "whole_bytes": 4 / 64, "zero": 3, "d": 2}
    scales = 7.5e9 / 16
    m = training_memory(inputs(**usual))
    assert one(m.weights) * GIB == pytest.approx(7.5e9 * 0.5 / 2 + scales)
    away = training_memory(inputs(**usual, offload=2))
    assert one(away.weights) * GIB == pytest.approx(scales)


def test_a_pipeline_over_fsdp_keeps_its_stage_gathered() -> None:
    # torchtitan does not share weights again between micro-batches: a stage of 7.5/8 billion has
    # 2 bytes of gathered weights and 4 of whole gradients beside an eighth of 4 + 8.
    m = training_memory(inputs(zero=3, pp=8, d=8, micro_batches=8))
    stage = 7.5e9 / 8
    assert one(m.gradients) * GIB == pytest.approx(4 * stage)
    assert one(m.weights + m.optimizer) * GIB == pytest.approx(12 * stage / 8)
    # Gathered weights, and a layer's gradients before and after their reduction: 2 + 4 bytes.
    assert one(m.buffers) * GIB == pytest.approx(2 * stage + 6 * 7.5e9 / 32, rel=0.01)
    alone = training_memory(inputs(zero=3, pp=1, d=64))
    assert one(alone.gradients) * GIB == pytest.approx(4 * 7.5e9 / 64)


def test_bf16_alone_keeps_eight_bytes_and_fp32_sixteen() -> None:
    # Weight, gradient and two moments of 2 bytes each; or of 4.
    sixteen = TrainingPlan(gpus=1, stack="other", master_weights=False, seq_len=128)
    assert states_bytes(sixteen) == pytest.approx(8.030e9 * 8)
    full = TrainingPlan(gpus=1, stack="other", precision="fp32", seq_len=128)
    assert states_bytes(full) == pytest.approx(8.030e9 * 16)


def test_eight_bit_moments_leave_the_embeddings_in_thirty_two() -> None:
    # Weight 2, its copy 4, gradient 2, moments 1 + 1; of the embedding 4 + 4.
    plan = TrainingPlan(gpus=1, stack="other", optimizer="adam8bit", seq_len=128)
    assert states_bytes(plan) == pytest.approx(8.030e9 * 10 + 128_256 * 4096 * 6)


def test_offload_moves_the_optimizer_to_the_host() -> None:
    here = TrainingPlan(gpus=8, zero_stage=1)
    away = TrainingPlan(gpus=8, zero_stage=1, cpu_offload=True)
    assert one(plan_memory(LLAMA_8B, away).optimizer) == 0
    assert one(plan_memory(LLAMA_8B, here).total) > one(plan_memory(LLAMA_8B, away).total)
    # Master copy and two moments, 12 bytes, once over all hosts.
    assert host_memory_gib(LLAMA_8B, away) == pytest.approx(8.030e9 * 12 / GIB)
    assert host_memory_gib(LLAMA_8B, here) == 0


def test_hybrid_sharding_shards_within_a_server_only() -> None:
    whole = plan_memory(LLAMA_8B, TrainingPlan(gpus=64, zero_stage=3, stack="fsdp"))
    hybrid = plan_memory(LLAMA_8B, TrainingPlan(gpus=64, zero_stage=3, shard_size=8, stack="fsdp"))
    assert one(hybrid.optimizer) == pytest.approx(8 * one(whole.optimizer))


@pytest.mark.parametrize("name", ["tp", "pp", "cp"])
def test_memory_never_grows_with_more_sharing(name: str) -> None:
    totals = []
    for n in (1, 2, 4, 8):
        sizes = {"tp": 1, "pp": 1, "cp": 1} | {name: n}
        plan = TrainingPlan(
            gpus=32, tp=sizes["tp"], pp=sizes["pp"], cp=sizes["cp"], zero_stage=1, seq_len=32_768,
            global_batch_seqs=64,
        )  # fmt: skip
        totals.append(one(plan_memory(LLAMA_8B, plan).total))
    if name != "pp":  # a deeper pipeline holds as many activations in all
        assert totals == sorted(totals, reverse=True)
    assert totals[-1] < totals[0]


def test_the_estimate_has_an_interval_around_the_total() -> None:
    memory: MemoryBreakdown = plan_memory(LLAMA_8B, TrainingPlan(gpus=8, zero_stage=1))
    told = memory_estimate(memory, megatron=True)
    assert told.likely == pytest.approx(one(memory.total))
    assert told.low < told.likely < told.high
    wider = memory_estimate(memory, megatron=False)
    assert wider.high - wider.low > told.high - told.low


def kept_a_token(shape: ModelShape) -> float:
    """Bytes of activations a token and layer, of Megatron-type code: by two lengths."""
    short, long = (
        one(plan_memory(shape, TrainingPlan(gpus=1, seq_len=n)).activations) for n in (1000, 3000)
    )
    return (long - short) * GIB / 2000 / shape.layers


def test_a_state_space_layer_keeps_its_expanded_width() -> None:
    # Two norms' inputs 8h; in and gate 4h elements, convolution 2h, steps 2h, scan 2h and 2h.
    mamba = ModelShape(
        name="mamba", total_params=7.27e9, active_params=7.27e9, embedding_params=5.3e8,
        layers=64, hidden=4096, heads=1, kv_heads=1, head_dim=1, ffn=8192, vocab=65_024,
        attention="none", state_layers=64,
    )  # fmt: skip
    assert kept_a_token(mamba) == pytest.approx(4096 * (8 + 2 * 12), rel=0.03)


def test_a_width_that_differs_by_layer_is_what_the_parameters_leave() -> None:
    # Llama 3 8B without its MLP's width: the parameters of a layer less its attention.
    unstated = replace(LLAMA_8B, ffn=0)
    assert kept_a_token(unstated) == pytest.approx(kept_a_token(LLAMA_8B), rel=0.01)


def test_an_encoder_counts_as_much_as_its_decoder() -> None:
    both = replace(LLAMA_8B, kind="encoder-decoder")
    assert kept_a_token(both) == pytest.approx(2 * kept_a_token(LLAMA_8B), rel=0.05)
