"""Memory of training against published tables and runs."""

from __future__ import annotations

import numpy as np
import pytest

from engine.estimate.memory import GIB, MemoryInputs, fits, training_memory


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
