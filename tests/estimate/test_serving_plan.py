"""The serving plan: fleets, dollars, and what can not be planned."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import InputError
from engine.estimate.serving_layouts import candidates, layouts
from engine.estimate.serving_plan import plan_serving, size
from engine.estimate.serving_points import Load, Targets, gpu_replica, memory_items
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.traffic import Traffic
from engine.explain.serving_shapes import published_models
from tests.estimate.serving_asks import CATALOGUE, CHAT, PRECISION, USUAL, ask, cpu, gpu

# --- the plan


def test_machines_carry_the_peak_and_what_may_fail() -> None:
    answer = plan_serving(ask(rate=30.0), [gpu("h100-sxm-80gb", usd=4.0)])
    best = answer.best
    assert best is not None
    carried = float(best.candidate.capacity.requests_per_s)
    assert best.replicas == math.ceil(30.0 / carried)
    assert best.machines == best.replicas + 1
    # 730 hours of each machine at 4 USD.
    assert best.usd_always_on == pytest.approx(best.machines * 4.0 * 730)
    assert best.usd_per_month.likely == pytest.approx(best.usd_always_on)
    assert best.utilization == pytest.approx(30.0 / (best.machines * carried))
    assert best.at_peak.rate == pytest.approx(30.0 / best.replicas)


def test_replicas_share_whole_machines_and_fail_with_them() -> None:
    answer = plan_serving(ask(rate=30.0, spare=2), [gpu("h100-sxm-80gb", 8)])
    for c in answer.candidates:
        option = size(c, answer.ask)
        per_machine = 8 // c.layout.gpus
        assert option.machines == math.ceil(option.replicas / per_machine) + 2
        assert option.gpus == option.machines * 8


def test_cost_per_token_adds_up_to_the_month() -> None:
    best = plan_serving(ask(rate=30.0), [gpu("h100-sxm-80gb")]).best
    assert best is not None
    million = 30.0 * 730 * 3600 / 1e6
    total = million * (1000 * best.usd_per_million_in + 300 * best.usd_per_million_out)
    assert total == pytest.approx(best.usd_per_month.likely)
    assert best.usd_per_month.low < best.usd_per_month.likely < best.usd_per_month.high


def test_following_the_hours_saves_what_the_day_leaves_idle() -> None:
    day = Traffic(tuple([2.0] * 12 + [40.0] * 12))
    always = plan_serving(ask(traffic=day), [gpu("l40s", usd=1.0)]).best
    hourly = plan_serving(ask(traffic=day, scaling="by_hour"), [gpu("l40s", usd=1.0)]).best
    assert always is not None
    assert hourly is not None
    low, high = always.hours[0], always.hours[12]
    assert low.machines < high.machines
    # Twelve hours of each kind a day, 730/24 days.
    days = 730 / 24
    assert hourly.usd_per_month.likely == pytest.approx(
        12 * days * 1.0 * (low.machines + high.machines)
    )
    assert always.usd_per_month.likely == pytest.approx(730 * high.machines)


@settings(max_examples=25, deadline=None)
@given(
    st.floats(0.01, 5000), st.floats(10, 8000), st.floats(1, 2000), st.sampled_from([1, 8, 70])
)  # fmt: skip
def test_more_requests_never_cost_less(
    rate: float, tokens_in: float, tokens_out: float, params: float
) -> None:
    machines = [gpu("l40s"), gpu("h100-sxm-80gb", 8), cpu()]
    costs = []
    for factor in (1.0, 1.5):
        answer = plan_serving(
            ask(params, rate * factor, load=Load(tokens_in, tokens_out)), machines
        )
        if answer.best is None:
            assert answer.message
            return
        costs.append(answer.best.usd_per_month.likely)
    assert costs[0] <= costs[1]


def test_the_targets_hold_at_the_peak() -> None:
    machines = [gpu("l40s"), gpu("h100-sxm-80gb", 8), gpu("b200-sxm-180gb"), cpu(192, 768)]
    for params in (1.0, 8.0, 70.0, 405.0):
        for option in plan_serving(ask(params, 25.0), machines).options:
            assert option.at_peak.ttft_target_s <= 2.0
            assert option.at_peak.tpot_mean_s <= 0.1
            used = math.fsum(i.gib for i in option.memory)
            assert used <= option.memory_limit_gib


def test_a_cpu_is_compared_inside_the_same_targets() -> None:
    answer = plan_serving(ask(1.0, 0.05), [gpu("h100-sxm-80gb"), cpu(32, 128, usd=1.0)])
    assert answer.cheapest("cpu") is answer.best
    many = plan_serving(ask(8.0, 50.0), [gpu("h100-sxm-80gb"), cpu(192, 768, usd=9.0)])
    assert many.cheapest("gpu") is many.best


def test_layouts_divide_the_heads_and_pipelines_need_a_fast_link() -> None:
    shape = shape_from_size(70.0)  # 64 heads
    assert [n.gpus for n in layouts(shape, gpu("h100-sxm-80gb", 8))] == [1, 2, 4, 8, 16, 32, 64]
    assert [n.gpus for n in layouts(shape, gpu("l40s", 8))] == [1, 2, 4, 8]
    assert [n.gpus for n in layouts(replace(shape, heads=12), gpu("l40s", 8))] == [1, 2, 4]
    assert [n.gpus for n in layouts(shape, cpu())] == [1]
    latent = published_models()["DeepSeek-V3"]
    told = {n.told(True) for n in layouts(latent, gpu("h200-sxm-141gb", 8))}
    assert {"TP 8, EP 8", "TP 8, EP 8, attention DP", "TP 8, EP 8, PP 2"} <= told


def test_a_pipeline_is_tried_only_where_one_machine_is_too_small() -> None:
    large, small = (
        candidates(shape_from_size(p), gpu("h100-sxm-80gb", 8), PRECISION, CHAT, USUAL)
        for p in (405.0, 70.0)
    )
    assert {c.layout.pp for c in large} == {1, 2}
    assert {c.layout.pp for c in small} == {1}


@pytest.mark.parametrize(
    ("sku", "more", "fewer"),
    # Hopper multiplies 8 bits, Blackwell 4 too. On Hopper 4 bits are unpacked to 16: no gain.
    [("h100-sxm-80gb", 16.0, 8.0), ("b200-sxm-180gb", 16.0, 8.0), ("b200-sxm-180gb", 8.0, 4.0)],
)
def test_fewer_bits_take_less_memory_and_money(sku: str, more: float, fewer: float) -> None:
    usd, memory = [], []
    for bits in (more, fewer):
        best = plan_serving(
            ask(70.0, 100.0, precision=replace(PRECISION, weight_bits=bits)), [gpu(sku, 8)]
        ).best
        assert best is not None
        usd.append(best.usd_per_month.likely)
        replica = gpu_replica(
            shape_from_size(70.0), CATALOGUE.accelerators[sku], 8, 1, False, bits, 2.0
        )
        memory.append(sum(x.gib for x in memory_items(replica, CHAT, 1.0)))
    assert usd[0] > usd[1]
    assert memory[0] > memory[1]


# --- what can't be planned


def test_nothing_comes_and_nothing_runs() -> None:
    answer = plan_serving(ask(rate=0.0), [gpu("h100-sxm-80gb")])
    assert answer.state == "no_traffic"
    assert "nothing needs to run" in answer.message
    assert answer.best is not None
    assert (answer.best.machines, answer.best.usd_per_month.likely) == (0, 0.0)


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (Targets(0.001, None), "the first token takes"),
        (Targets(None, 0.0001), "a further token takes"),
    ],
)
def test_a_target_below_the_floor_names_the_floor(targets: Targets, words: str) -> None:
    answer = plan_serving(ask(70.0, targets=targets), [gpu("h100-sxm-80gb", 8)])
    assert answer.state == "below_floor"
    assert words in answer.message
    assert "H100" in answer.message
    floor = answer.refused[0]
    assert floor.ttft_floor_s > 0.001
    assert floor.tpot_floor_s > 0.0001
    # 70e9 × 2 bytes over eight GPUs of 3.35 TB/s are read in 5.2 ms: no token is faster.
    assert floor.tpot_floor_s > 140e9 / (8 * 3.35e12)


def test_a_model_that_fits_nowhere_names_the_smallest_thing() -> None:
    answer = plan_serving(ask(32.0), [gpu("l4"), gpu("l4", 8)])
    assert answer.state == "plan"  # 64 GB on eight L4 of 24 GB
    answer = plan_serving(ask(405.0), [gpu("l40s", 8), gpu("l4", 8)])
    assert answer.state == "fits_nowhere"
    fit = answer.smallest
    assert fit is not None
    # 405 × 2 = 810 GB at 16 bits: more than the 768 GB of two machines of 8 × 48 GB. Of three, 24
    # GPUs of 45 GiB with a tenth kept free have 972 GiB: 754 GiB of weights, an eighth more for
    # engines, and room for requests.
    assert (fit.machines, fit.machine.sku, fit.weight_bits) == (3, "l40s", 16.0)
    assert "3 × 8× L40S" in answer.message


def test_ten_thousand_replicas_are_told_and_millions_refused() -> None:
    many = plan_serving(ask(70.0, 1e5), [gpu("h100-sxm-80gb", 8)])
    assert many.best is not None
    assert many.best.replicas > 10_000
    assert any("more than any single provider" in n for n in many.notes)
    answer = plan_serving(ask(70.0, 1e9), [gpu("h100-sxm-80gb", 8)])
    assert answer.state == "too_many"
    assert "Nobody rents that many" in answer.message


def test_prompts_that_queue_without_end_are_told_and_no_crash() -> None:
    # 100,000 tokens in and one out: on an A10 a prompt takes longer than the target alone.
    answer = plan_serving(ask(13.0, 0.001, load=Load(1e5, 1.0)), [gpu("a10"), gpu("a10", 8)])
    assert answer.state == "below_floor"
    assert "the first token takes" in answer.message


def test_no_machine_at_all_is_an_answer() -> None:
    assert plan_serving(ask(), []).state == "no_machines"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"load": Load(0.0, 10.0)}, "input_tokens"),
        ({"load": Load(10.0, math.nan)}, "output_tokens"),
        ({"load": Load(10.0, 10.0, 1.0)}, "prefix_hit"), ({"spare": -1}, "spare"),
        ({"targets": Targets(-1.0, None)}, "ttft_target_s"),
        ({"targets": Targets(None, None, 1.0)}, "percentile"),
        ({"precision": replace(PRECISION, weight_bits=0.0)}, "weight_bits"),
    ],
)  # fmt: skip
def test_bad_input_names_its_field(change: dict[str, object], where: str) -> None:
    with pytest.raises(InputError) as told:
        plan_serving(ask(**change), [gpu("l40s")])  # type: ignore[arg-type]
    assert told.value.where == where


def test_room_for_more_replicas_on_machines_that_are_paid_is_counted() -> None:
    # Replicas of one GPU on machines of eight: 5 leave 3, 8 leave none, 9 take a second machine.
    option = plan_serving(ask(8.0, 60.0), [gpu("h100-sxm-80gb", 8)]).best
    assert option is not None
    assert option.candidate.layout.gpus == 1
    free = [replace(option, replicas=n).replicas_free for n in (0, 5, 8, 9)]
    assert free == [0, 3, 0, 7]
    # One GPU a machine has no room, nor has a replica of two machines.
    alone = plan_serving(ask(8.0, 60.0), [gpu("h100-sxm-80gb")]).best
    assert alone is not None
    assert alone.replicas_free == 0
