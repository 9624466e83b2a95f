"""The space of plans: every one is valid, and none that is used in earnest is missing."""

from __future__ import annotations

import numpy as np
import pytest

from engine.estimate.parallelism import enumerate_plans, network_of, plan_row
from engine.estimate.plan import TrainingPlan
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.training_hardware import hardware
from tests.estimate.training_models import B8, B70, B405, H100, MIXTRAL, llama, on

HW = hardware(on(H100, "ib-ndr400"))[0]


@pytest.mark.parametrize("shape", [B8, B70, B405, MIXTRAL])
@pytest.mark.parametrize("gpus", [1, 8, 24, 512])
def test_sizes_multiply_and_every_rank_has_work(shape, gpus: int) -> None:
    p = enumerate_plans(shape, HW, gpus, 8192, 512, "pretrain")
    assert len(p)
    assert (p.tp * p.pp * p.cp * p.dp == gpus).all()
    assert (shape.heads % p.tp == 0).all()
    assert ((p.dp * p.cp * p.tp) % p.ep == 0).all()
    assert (p.micro_batch * p.micro_batches * p.dp >= 512).all()
    assert ((p.dp * p.cp) % p.shard == 0).all()
    assert (p.layers >= shape.layers).all()
    assert (p.layers <= 1.125 * shape.layers).all()
    # A pipeline that interleaves needs a micro-batch for each stage.
    assert ((p.pp == 1) | (p.micro_batches >= p.pp)).all()
    assert ((p.pp == 1) | (p.zero == 1)).all()
    if not shape.is_moe:
        assert (p.ep == 1).all()


def holds(p, **sizes: float) -> bool:
    return bool(np.all([getattr(p, k) == v for k, v in sizes.items()], axis=0).any())


def test_an_uneven_split_is_paced_by_its_fullest_stage() -> None:
    # DeepSeek-V2 (arXiv 2405.04434, 3.1.3): 60 layers on 16 stages, 4 on the fullest: as slow as
    # 64 layers. Two or four chunks a rank are no more uneven, eight would be 128 layers.
    sixty = llama(60, 5120, 64, 13_824)
    p = enumerate_plans(sixty, HW, 512, 4096, 1024, "pretrain")
    deep = p.take(p.pp == 16)
    assert len(deep)
    assert set(deep.layers.tolist()) == {64.0}
    assert deep.vp.max() == 4
    even = p.take((p.pp == 4) & (p.vp == 1))
    assert set(even.layers.tolist()) <= {60.0}
    # 80 layers on 4 stages: chunks in sevens fill 84 layers, 5% more work; in fives 80. With 256
    # micro-batches the bubble is 3/(256 x 5) against 3/(256 x 7): nothing beside it.
    many = enumerate_plans(B70, HW, 64, 4096, 1024, "pretrain")
    long = many.take((many.pp == 4) & (many.micro_batches == 256))
    assert set(long.vp.tolist()) == {1.0, 5.0}
    # 33 layers on 32 stages take as long as 64: no plan.
    assert not (enumerate_plans(llama(33, 4096, 32, 11_008), HW, 32, 4096, 512, "pretrain").pp
                == 32).any()  # fmt: skip


def test_plans_that_were_run_are_among_them() -> None:
    # Llama 3 405B: TP 8, PP 16, DP 128 (arXiv 2407.21783, table 4), 2,048 sequences of 8,192.
    p = enumerate_plans(B405, HW, 16_384, 8192, 2048, "pretrain")
    assert holds(p, tp=8, pp=16, cp=1, dp=128, micro_batch=1)
    # Article 001: TP 8, PP 4, DP 32; article 003: 32 GPUs, ZeRO-3 alone.
    assert holds(enumerate_plans(B70, HW, 1024, 4096, 512, "pretrain"), tp=8, pp=4, dp=32)
    p = enumerate_plans(B70, HW, 32, 4096, 1024, "finetune")
    assert holds(p, tp=1, pp=1, dp=32, zero=3, shard=32)
    assert holds(p, tp=1, pp=1, dp=32, zero=3, shard=8)  # sharded inside each machine


def test_a_layer_has_the_weights_of_its_model() -> None:
    # Llama 3 8B: q and o 4096 x 4096, k and v 4096 x 1024, three matrices of 4096 x 14336.
    net = network_of(B8, 4096)
    assert net["attention_weights"] == 2 * 4096 * 4096 + 2 * 4096 * 1024
    # The norms, 2 x 4096 a layer, count with the MLP.
    assert net["dense_weights"] == pytest.approx(3 * 4096 * 14336, rel=1e-4)
    # Mixtral: eight experts of that size, two a token.
    net = network_of(MIXTRAL, 4096)
    assert net["expert_weights"] == 3 * 4096 * 14336
    assert net["expert_params"] == 32 * 8 * 3 * 4096 * 14336
    assert (net["experts"], net["routed"]) == (8, 2)
    assert net["dense_weights"] < 1e-3 * net["expert_weights"]  # the router and the norms


def test_what_no_trainer_splits_is_not_proposed() -> None:
    # Six groups of keys can be split in two, not in four; 4-bit weights not at all.
    odd = llama(24, 3072, 24, 8192, 6)
    p = enumerate_plans(odd, HW, 64, 8192, 512, "pretrain")
    assert set(p.tp) == {1, 2}
    # An MLP of 28,393 was made up from a size; what is built will divide.
    p = enumerate_plans(shape_from_size(70), HW, 64, 8192, 512, "pretrain")
    assert 8 in p.tp
    p = enumerate_plans(B70, HW, 8, 4096, 64, "qlora")
    assert (p.tp * p.pp * p.cp == 1).all()
    assert set(enumerate_plans(MIXTRAL, HW, 8, 4096, 64, "qlora").ep) == {1}
    # Context ranks take two pieces of a sequence each.
    p = enumerate_plans(B8, HW, 64, 2 * 12_289, 64, "pretrain")
    assert set(p.cp) == {1}


def test_one_plan_is_one_row() -> None:
    plan = TrainingPlan(gpus=1024, tp=8, pp=4, zero_stage=1, micro_batch=2,
                        global_batch_seqs=512, recompute="full")  # fmt: skip
    p = plan_row(B70, plan)
    assert (p.dp[0], p.micro_batches[0], p.recompute[0]) == (32, 8, 2)
