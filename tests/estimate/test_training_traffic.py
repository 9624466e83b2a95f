"""What a GPU sends in a training step, worked out by hand from the sizes of the plan."""

from __future__ import annotations

import numpy as np
import pytest

from engine.estimate.parallelism import enumerate_plans, step_inputs
from engine.estimate.search import best_plans
from engine.estimate.search_results import PARTS
from engine.estimate.training_calibration import shipped_calibration
from engine.estimate.training_hardware import hardware
from engine.estimate.training_job import Job
from engine.estimate.training_traffic import SPLITS, sent_bytes
from engine.explain.training_patterns import patterns, rows
from tests.estimate.training_models import A100, B8, B70, H100, MIXTRAL, on


def sent(shape, gpus=64, batch=1024, seq=4096):
    hw = hardware(on(H100, "ib-ndr400"))[0]
    plans = enumerate_plans(shape, hw, gpus, seq, batch, "pretrain")
    inputs = step_inputs(shape, plans, hw, float(seq), "pretrain", 2026.0)
    told = sent_bytes(inputs, shipped_calibration().parameters)
    return plans, {k: np.broadcast_to(v, plans.gpus.shape) for k, v in told.items()}


def test_what_is_not_split_sends_nothing() -> None:
    plans, told = sent(MIXTRAL)
    assert tuple(told) == SPLITS
    for split, ways in (("tensor", plans.tp), ("pipeline", plans.pp), ("context", plans.cp),
                        ("expert", plans.ep)):  # fmt: skip
        assert (told[split][ways == 1] == 0).all(), split
        assert (told[split][ways > 1] > 0).all(), split


def test_the_sizes_of_a_70b_by_hand() -> None:
    """80 layers of 8,192, batch 1,024 of 4,096 tokens on 64 H100."""
    plans, told = sent(B70)
    (row, *_) = np.flatnonzero(
        (plans.tp == 8) & (plans.pp == 4) & (plans.cp == 1) & (plans.micro_batch == 1)
        & (plans.vp == 1) & (plans.recompute == 0) & (plans.zero == 1)
    )  # fmt: skip
    assert plans.dp[row] == 2
    micro = 1024 / 2
    # Two sums forward and two back of 4,096 × 8,192 × 2 bytes in each of 20 layers; a ring of eight
    # sends 2 × 7/8 of each.
    tensor = 4 * 2 * 7 / 8 * 4096 * 8192 * 2 * 20 * micro
    assert told["tensor"][row] == pytest.approx(tensor)
    # Activations on to the next stage and gradients back: an eighth of them from each tensor rank.
    assert told["pipeline"][row] == pytest.approx(2 * 4096 * 8192 * 2 / 8 * micro)
    # A 32nd of the weights, of which two copies exchange half, at one of the fits' bytes each.
    each = told["data"][row] / (B70.total_params / 32 / 2)
    fits = shipped_calibration().parameters
    codes = ("legacy", "native", "tuned", "plain", "jax")
    assert any(each == pytest.approx(fits[f"grad_bytes_{code}"]) for code in codes)


def test_experts_are_reached_by_the_tokens_that_are_routed_to_them() -> None:
    """Mixtral: two of eight experts, 32 layers of 4,096; four all-to-alls a layer."""
    plans, told = sent(MIXTRAL)
    (row, *_) = np.flatnonzero(
        (plans.tp == 1) & (plans.pp == 1) & (plans.cp == 1) & (plans.ep == 8)
        & (plans.micro_batch == 1) & (plans.recompute == 0)
    )  # fmt: skip
    micro = 1024 / 64
    assert told["expert"][row] == pytest.approx(4 * 4096 * 4096 * 2 * 2 * 7 / 8 * 32 * micro)


def test_sharded_data_parallelism_gathers_twice_and_reduces_once() -> None:
    """FSDP of an 8B: weights in 16 bits forward and backward, gradients back, each micro-batch."""
    plans, told = sent(B8, gpus=8, batch=64)
    (row, *_) = np.flatnonzero(
        (plans.tp == 1) & (plans.pp == 1) & (plans.cp == 1) & (plans.micro_batch == 1)
        & (plans.zero == 3) & (plans.shard == 8)
    )  # fmt: skip
    moved = 2 * 2 + shipped_calibration().parameters["reduce_bytes"]
    assert told["data"][row] == pytest.approx(moved * B8.total_params * 7 / 8 * 8, rel=0.001)


def test_the_four_patterns_of_a_plan_are_named_with_their_links() -> None:
    found = best_plans(Job(B70, 1e12, (on(A100, "ib-hdr200"),), gpus=(256, 256)))
    assert isinstance(found, tuple)
    plan = found[0]
    told = patterns(plan)
    assert told[0].name == "Client and server"
    assert told[0].waits is None
    assert told[-1].name == "Peer to peer"
    names = {p.name for p in told}
    assert names <= {"Client and server", "Replicated", "Sharded", "Sharded and replicated",
                     "Peer to peer"}  # fmt: skip
    # What waits for peers is the sum of the parts of the step that go over a link.
    over = ("tensor_parallel", "context_parallel", "expert_parallel", "pipeline_transfer",
            "data_parallel")  # fmt: skip
    assert told[-1].waits == pytest.approx(sum(plan.parts[PARTS[k]] for k in over))
    assert "InfiniBand" in told[-1].link
    if plan.plan.tp > 1:  # within one machine
        (tensor,) = (p for p in told if "each matrix" in p.here)
        assert tensor.link.startswith("NVLink")
        assert "InfiniBand" not in tensor.link
    assert [r["Pattern"].split(":")[0] for r in rows(plan)] == [p.name for p in told]


def test_one_gpu_is_no_distributed_system() -> None:
    alone = best_plans(Job(B8, 1e8, (on(H100),), task="qlora", gpus=(1, 1)))
    assert isinstance(alone, tuple)
    assert patterns(alone[0]) == ()
