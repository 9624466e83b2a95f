"""The one answer for a page: everything in it, in words that hold."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from engine.errors import InputError
from engine.estimate.search import search
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.training_job import Job, MeasuredSteps, NothingFits
from engine.estimate.training_plan import plan_training
from engine.estimate.training_rules import training_rules
from tests.estimate.training_models import A100, B8, B70, CATALOGUE, H100, on

NETWORKS = CATALOGUE.networks.values()
JOB = Job(B70, 2e12, (on(H100, "roce-400g", 2.5), on(A100, "ib-hdr200", 1.4)),
          deadline_days=42, budget_usd=4e6)  # fmt: skip


@pytest.fixture(scope="module")
def answer():
    return plan_training(JOB, networks=NETWORKS)


def test_the_answer_is_whole(answer) -> None:
    assert answer.best is not None
    assert answer.nothing is None
    assert len(answer.others) == 4
    assert len(answer.by_choice) == 2
    assert answer.smallest is not None
    assert answer.smallest.plan.gpus < answer.best.plan.gpus
    assert answer.frontier
    assert answer.networks
    assert answer.warnings == ()
    assert answer.sources


def test_the_verdict_says_what_the_numbers_say(answer) -> None:
    best = answer.best
    assert f"{best.plan.gpus:,} x H100" in answer.verdict
    assert f"{best.days.likely:.0f} days" in answer.verdict
    sure = "Over 99%" if best.chance > 0.99 else f"{best.chance:.0%}"
    assert f"{sure} sure to be done within 42 days" in answer.verdict


def test_the_articles_rules_stand_beside_what_was_computed(answer) -> None:
    told = {r.rule.id: r for r in answer.rules}
    # 70.6 billion parameters: above 70, pre-training.
    assert set(told) == {
        "split_pipeline", "gpus_pretrain", "gpus_large", "never_mix", "never_mix_pcie",
        "network_first",
    }  # fmt: skip
    assert told["gpus_pretrain"].agrees is (64 <= answer.best.plan.gpus <= 128)
    assert told["gpus_large"].agrees is (answer.best.plan.gpus >= 128)
    assert told["never_mix"].agrees is None
    assert "longer" in told["never_mix_pcie"].computed
    assert all(r.computed and r.rule.misleads for r in told.values())


def test_a_model_of_70_billion_is_not_above_70_billion() -> None:
    # Article 001 takes a pipeline for its own 70B: by its rule tensor parallelism is enough.
    job = Job(shape_from_size(70), 1e12, (on(H100, "ib-ndr400", 2.0),), gpus=(256, 256))
    told = {r.rule.id for r in plan_training(job, "time").rules if r.rule.id.startswith("split_")}
    assert told == {"split_tensor"}


def test_a_70b_trains_well_on_sharding_alone_on_a_fast_network() -> None:
    # Against the rule of article 001: sharded data parallelism costs a few per cent where every GPU
    # has a few sequences, and more as the batch a GPU shrinks.
    behind = []
    for gpus in (128, 256, 1024):
        # Code of one age: published steps of PyTorch's are two years older than the recipes'.
        job = Job(B70, 2e12, (on(H100, "roce-400g"),), gpus=(gpus, gpus), software_year=2026.0)
        found = search(job)
        assert not isinstance(found, NothingFits)
        alone = (found.plans.tp == 1) & (found.plans.pp == 1)
        behind.append(found.days[alone].min() / found.days.min() - 1)
    assert behind[0] <= 0.05
    assert behind[1] <= 0.05
    assert behind[1] < behind[2] <= 0.15


def test_every_rule_names_its_claim() -> None:
    for rule in training_rules().values():
        claim = CATALOGUE.claims[rule.claim]
        assert claim.article == rule.article


def test_a_deadline_that_is_missed_is_said() -> None:
    told = plan_training(replace(JOB, deadline_days=2, gpus=(8, 64)))
    assert told.best is not None
    assert any("No plan on this hardware is 80% sure" in w for w in told.warnings)
    assert "Under 1% sure" in told.verdict


def test_nothing_fits_is_an_answer_with_the_smallest_that_would() -> None:
    told = plan_training(Job(B70, 1e9, (on(H100),), task="finetune", gpus=(1, 8)))
    assert told.best is None
    assert told.nothing is not None
    assert told.smallest is not None
    assert told.verdict == told.nothing.reason
    assert told.by_choice == (None,)


def test_a_mixed_job_says_who_waits() -> None:
    mixed = on("b200-sxm-180gb", "roce-400g", 5.0, also=(CATALOGUE.accelerators[A100],))
    told = plan_training(Job(B8, 1e11, (mixed,), gpus=(64, 64)), "time")
    assert told.mix is not None
    new, old = told.mix.shares
    assert old.idle == 0
    assert new.idle == pytest.approx(1 - new.step_s / old.step_s)
    assert told.mix.leave_out_above == pytest.approx(new.step_s / old.step_s)
    rule = next(r for r in told.rules if r.rule.id == "never_mix")
    assert rule.agrees
    assert "waits" in rule.computed


def test_hardware_without_published_steps_is_said() -> None:
    told = plan_training(Job(B8, 1e9, (on("l40s", "eth-25g"),), task="lora"), "cost")
    assert any("No step on such hardware" in w for w in told.warnings)


def test_without_a_price_hours_rank() -> None:
    job = Job(B8, 1e11, (on(H100, "roce-400g", None),), gpus=(8, 64), budget_usd=1e4)
    told = plan_training(job, "cost")
    assert told.best is not None
    assert told.best.usd is None
    assert told.best.within_budget is None
    assert any("GPU hours" in w for w in told.warnings)


def test_short_runs_are_told_in_hours() -> None:
    told = plan_training(Job(B8, 1e8, (on(H100),), task="lora", gpus=(1, 1)), "cost")
    assert told.best is not None
    assert f"{24 * told.best.days.likely:.1f} hours" in told.verdict


# --- the user's own steps


def own_steps(seconds: float, **changed) -> Job:
    """Ten steps of 64 sequences of an 8B model on eight H100, in a job on 64 of them."""
    own = MeasuredSteps(on(H100), 8, seconds, 10, 64)
    choice = on(H100, "ib-ndr400")
    return Job(B8, 1e12, (choice,), gpus=(64, 64), measured=(own,), **changed)


@pytest.mark.parametrize("times", [0.8, 1.0, 1.5, 3.0])
def test_own_steps_carry_over_to_the_job(times: float) -> None:
    alone = Job(B8, 1e12, (on(H100),), gpus=(8, 8), batch_seqs=64)
    expected = plan_training(alone, "time").best
    assert expected is not None
    usual = plan_training(replace(own_steps(100.0), measured=()), "time").best
    told = plan_training(own_steps(10 * times * expected.step_s.likely), "time").best
    assert usual is not None
    assert told is not None
    moved = told.step_s.likely / usual.step_s.likely
    # At least four fifths of the way, never beyond.
    assert min(times, times**0.8) * 0.999 <= moved <= max(times, times**0.8) * 1.001
    assert told.step_s.low / usual.step_s.likely < times < told.step_s.high / usual.step_s.likely


def test_own_steps_faster_than_the_hardware_are_refused() -> None:
    # 6 x 6.98e9 weights outside the tables x 64 x 4,096 tokens on eight times 989 TFLOP/s: 1.39 s.
    with pytest.raises(InputError, match="at their peak") as told:
        own_steps(10 * 1.3)
    assert told.value.where == "measured_s"
    own_steps(10 * 1.5)
    # Without gradients of the weights two thirds of it.
    own_steps(10 * 1.0, task="lora")


def test_ten_steps_in_41_s_of_a_batch_that_nobody_told() -> None:
    # A step of the usual batch is 1,024 sequences of 4,096 tokens: 6 x 7e9 x 4.2e6 FLOP on eight
    # H100 at half of 989 TFLOP/s take 45 s. 4.1 s are a batch of some 1,024 x 4.1 / 45 = 93.
    job = Job(B8, 1e12, (on(H100),), gpus=(8, 8))
    told = replace(job, measured=(MeasuredSteps(on(H100), 8, 41.0, 10),))
    with pytest.raises(InputError) as refused:
        plan_training(told, "time")
    assert refused.value.where == "measured_batch"
    assert "1,024 sequences" in refused.value.wrong
    (count,) = re.findall(r"about (\d+) would take as long", refused.value.right)
    about = int(count)
    assert 80 <= about <= 105
    # Told, they count; what is told of the job is the batch of the steps too.
    for more in (
        replace(told, measured=(MeasuredSteps(on(H100), 8, 41.0, 10, about),)),
        replace(told, batch_seqs=about),
    ):
        best = plan_training(more, "time")
        assert not any("Enter how many" in w for w in best.warnings)
    # Near the usual batch they are taken for it, and that is said.
    near = plan_training(replace(job, measured=(MeasuredSteps(on(H100), 8, 500.0, 10),)), "time")
    assert any("1,024 sequences each" in w for w in near.warnings)


def test_own_steps_of_something_else_are_refused() -> None:
    # Milliseconds that were entered as seconds.
    with pytest.raises(InputError, match="times as long as"):
        plan_training(own_steps(10 * 3_000))
