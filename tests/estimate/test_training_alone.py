"""A row predicted alone is what it is among others: memory and step time."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from engine.calibrate.training import ROWS, read_rows
from engine.calibrate.training_rows import read_all, stack_inputs
from engine.estimate.memory import GIB, MemoryInputs, training_memory
from engine.estimate.training import StepTime, step_time
from engine.estimate.training_calibration import shipped_calibration

MEMORY_PARTS = (
    "weights", "gradients", "optimizer", "activations", "logits", "buffers", "fragmentation",
    "context",
)  # fmt: skip


def mixed(n: int = 300) -> dict[str, np.ndarray]:
    """Rows of all kinds: with and without pipelines, experts, leading layers, tied tables."""
    rng = np.random.default_rng(7)

    def any_of(*values: float) -> np.ndarray:
        return rng.choice(np.array(values, dtype=float), n)

    experts = any_of(0, 0.9)
    return {
        "params": any_of(8e9, 70e9, 671e9), "layers": any_of(32, 60, 61, 64, 126),
        "hidden": any_of(4096, 7168), "heads": any_of(32, 64), "q_width": any_of(4096, 8192),
        "kv_width": any_of(1024, 8192), "mlp_width": any_of(16384, 86016),
        "vocab": any_of(32000, 128256), "seq": any_of(2048, 8192), "micro_batch": any_of(1, 4),
        "tp": any_of(1, 8), "pp": any_of(1, 2, 4, 8, 16), "vp": any_of(1, 2, 4),
        "cp": any_of(1, 2), "ep": any_of(1, 8), "d": any_of(1, 8, 64), "zero": any_of(0, 1, 2, 3),
        "micro_batches": any_of(1, 4, 64), "recompute": any_of(0, 1, 2), "lora": any_of(0, 0, 1),
        "adapter_share": any_of(0.01), "weight_bytes": any_of(2, 0.52), "flash": any_of(0, 1),
        "megatron": any_of(0, 1), "tied": any_of(0, 1), "dense_layers": any_of(0, 1, 3),
        "schedule": any_of(0, 0, 1, 2), "matrices": any_of(2, 3), "offload": any_of(0, 1, 2),
        "in_backward": any_of(0, 1), "eight_bits": any_of(0, 1), "kept_share": any_of(1, 0.5),
        "bucket_elements": any_of(0, 5e8), "matrix": any_of(1e7, 2e8),
        "expert_params": experts * 7e9,
    }  # fmt: skip


def test_memory_of_a_row_does_not_depend_on_the_others() -> None:
    columns = mixed()
    together = training_memory(MemoryInputs(**columns))
    for i in range(len(columns["tp"])):
        alone = training_memory(MemoryInputs(**{k: v[i : i + 1] for k, v in columns.items()}))
        for part in MEMORY_PARTS:
            told = float(getattr(alone, part)[0])
            assert told == pytest.approx(float(getattr(together, part)[i]), rel=1e-12), (i, part)


def test_a_deeper_stage_has_all_the_experts_that_the_first_lacks() -> None:
    # 64 layers on 16 stages, the first three without experts: the first stage has one layer with
    # experts, the second four, 4/61 of them. Two bytes of weights and four of gradients for each,
    # and 12 of the optimizer's over 4 ranks: 9 bytes. The last stage has as many experts but one
    # micro-batch; the second holds 15 of a million tokens: 8h + 4q + 4k + 2 x 64 + 4 bytes a layer.
    columns = {
        "params": 610e9, "expert_params": 610e9, "layers": 64.0, "hidden": 64, "heads": 1,
        "q_width": 64, "kv_width": 64, "mlp_width": 64, "vocab": 0, "seq": 1e6, "micro_batch": 1,
        "tp": 1, "pp": 16, "cp": 1, "ep": 8, "d": 4, "expert_d": 4, "zero": 1, "micro_batches": 64,
        "recompute": 0, "lora": 0, "adapter_share": 0, "weight_bytes": 2, "flash": 1,
        "megatron": 1, "dense_layers": 3,
    }  # fmt: skip
    told = training_memory(MemoryInputs(**{k: np.array([float(v)]) for k, v in columns.items()}))
    states = float((told.weights + told.gradients + told.optimizer)[0]) * GIB
    assert states == pytest.approx(610e9 * 4 / 61 / 8 * 9, rel=1e-6)
    held = 15 * 4 * 1e6 * (8 * 64 + 4 * 64 + 4 * 64 + 2 * 64 + 4)
    assert held <= float(told.activations[0]) * GIB < 16 / 15 * held


def test_the_time_of_a_row_does_not_depend_on_the_others() -> None:
    readings = [r for r in read_all(read_rows(ROWS)) if r.values is not None][::5]
    p = shipped_calibration().parameters
    together = step_time(stack_inputs(readings), p)
    for i, reading in enumerate(readings):
        alone = step_time(stack_inputs([reading]), p)
        for f in fields(StepTime):
            told = float(np.ravel(getattr(alone, f.name))[0])
            among = float(np.broadcast_to(getattr(together, f.name), (len(readings),))[i])
            assert told == pytest.approx(among, rel=1e-9, abs=1e-15), (i, f.name)
