"""Small models: rates, queues inside a target, MLPerf pairs predicted from other hardware."""

from __future__ import annotations

import math
from datetime import date

import numpy as np
import pytest

from engine.catalogue import load_catalogue
from engine.errors import InputError
from engine.estimate.small_inference import (
    Predicted,
    check_models,
    core_rate,
    cpu_capacity,
    cpu_floor_s,
    cpu_response,
    gpu_capacity,
    gpu_floor_s,
    gpu_rate,
    gpu_response,
    mlperf_pairs,
    models,
    parameter,
    rates,
    scaled,
    scaled_range,
    units_for,
    worker_service_s,
    worker_sizes,
)
from engine.estimate.small_inference_tables import cpu_capacities, gpu_capacities
from engine.explain.jobs_models import model_report
from engine.workload.examples import EXAMPLES


def test_rates_have_sources_and_cores() -> None:
    assert len(rates()) > 60
    assert all(r.cores for r in rates() if r.hardware == "cpu")
    assert {"resnet50", "bert-large", "dlrm-v2", "trees"} <= set(models())


def test_mlperf_verdict_is_right_for_nine_of_ten_pairs() -> None:
    # Each side of a pair is predicted without any row of its own hardware. Always saying "the GPU
    # answers more" would be right for four of five.
    pairs = mlperf_pairs()
    right = float(np.mean([p.right() for p in pairs]))
    always = float(np.mean([p.measured >= 1.0 for p in pairs]))
    assert len(pairs) > 100
    assert right >= 0.90
    assert right > always + 0.1
    off = np.abs(np.log([p.predicted / p.measured for p in pairs]))
    assert float(np.exp(np.median(off))) < 1.35


@pytest.mark.parametrize("price_ratio", [0.5, 2.0, 4.0, 8.0, 16.0])
def test_the_verdict_is_right_at_other_ratios_of_prices_too(price_ratio: float) -> None:
    assert np.mean([p.right(price_ratio) for p in mlperf_pairs()]) >= 0.90


def test_a_server_without_matrix_units_is_predicted_as_one() -> None:
    # BERT-large a core with matrix units: 3,024/256 = 11.81, 1,376/112 = 12.29, 1,639.4/128 =
    # 12.81, so 12.29 in the middle. Ice Lake does a quarter of it: 64 cores 0.25 × 64 × 12.29 =
    # 196.6 a second (the one submission did 47).
    core = core_rate("bert-large")
    assert core is not None
    assert core.likely == pytest.approx(12.286, rel=1e-3)
    ice = [p for p in mlperf_pairs() if p.cpu == "2x Xeon Gold 6338" and not p.inside_target]
    assert [p.gpu for p in ice] == ["A10"]
    a10 = gpu_rate("bert-large", load_catalogue().accelerators["a10"], leave_out="a10")
    assert a10 is not None
    assert ice[0].predicted == pytest.approx(a10.likely / 196.6, rel=1e-3)


def test_a_measured_gpu_takes_its_own_rate() -> None:
    gpus = load_catalogue().accelerators
    found = gpu_rate("resnet50", gpus["l4"])
    assert found is not None
    assert found.measured
    assert found.likely == pytest.approx(13_068, rel=0.01)  # MLPerf v3.0 and v4.1, one L4


def test_an_unmeasured_gpu_follows_from_others_with_a_wider_range() -> None:
    gpus = load_catalogue().accelerators
    # Left out, an L40S must still come out within a half of what was measured, 43,651 a second.
    found = gpu_rate("resnet50", gpus["l40s"], leave_out="l40s")
    assert found is not None
    assert not found.measured
    assert found.low < found.likely < found.high
    assert 0.5 < found.likely / 43_651 < 1.5
    assert gpu_rate("trees", gpus["l4"]) is None


def test_rates_a_core_are_alike_over_generations() -> None:
    # ResNet-50: 20,553/112 = 184, 25,204/128 = 197, 45,617/256 = 178 a second and core.
    found = core_rate("resnet50")
    assert found is not None
    assert found.likely == pytest.approx(183.5, rel=0.01)


def test_a_lone_item_takes_launch_and_service() -> None:
    # 0.64 ms of launches and 1 ms of work.
    assert float(gpu_floor_s(1000.0)) == pytest.approx(0.00164)
    response, batch = gpu_response(1e-6, 1000.0, 0.95)
    assert float(batch) == pytest.approx(1.0)
    assert float(response) == pytest.approx(0.00164, rel=0.01)


def test_batches_grow_with_the_rate_until_nothing_is_steady() -> None:
    # b = λ·(fixed + each·none)/(1 − λ·each): at 900 a second 0.9·0.64/0.1 = 5.76 and what the
    # batches add that follow a pause; a simulated queue has 6.40.
    response, batch = gpu_response(np.array([900.0, 1000.0]), 1000.0, 0.95)
    assert 5.76 < float(batch[0]) == pytest.approx(6.40, rel=0.02)
    assert np.isfinite(response[0])
    assert math.isinf(response[1])


def _simulated(rate: float, offline: float, seed: int) -> tuple[float, float]:
    """95th percentile of the response of 200,000 items at random, and the mean batch."""
    arrived = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, 200_000))
    response, at, first, batches = np.empty(len(arrived)), 0.0, 0, 0
    while first < len(arrived):
        at = max(at, float(arrived[first]))
        behind = int(np.searchsorted(arrived, at, side="right"))
        at += parameter("gpu_fixed_ms") / 1000 + (behind - first) / offline
        response[first:behind] = at - arrived[first:behind]
        first, batches = behind, batches + 1
    return float(np.quantile(response[20_000:], 0.95)), len(arrived) / batches


@pytest.mark.parametrize("offline", [50.0, 200.0, 1000.0, 10_000.0, 100_000.0])
@pytest.mark.parametrize("load", [0.05, 0.2, 0.5, 0.75, 0.85])
def test_the_response_is_that_of_a_simulated_queue(offline: float, load: float) -> None:
    """Heavy nets, whose batches differ much in length, and light ones."""
    response, batch = gpu_response(load * offline, offline, 0.95)
    told, mean = _simulated(load * offline, offline, 11)
    assert float(response) == pytest.approx(told, rel=0.13)
    assert float(batch) == pytest.approx(mean, rel=0.1)


def test_a_higher_rate_never_answers_sooner() -> None:
    for offline in (20.0, 1000.0, 100_000.0):
        response, _ = gpu_response(np.linspace(0.0, 0.97, 2000) * offline, offline, 0.95)
        assert np.all(np.diff(response[np.isfinite(response)]) >= 0)


def test_capacity_is_the_rate_at_the_target() -> None:
    goal = 0.02
    most = float(gpu_capacity(5000.0, goal, 0.95))
    off = 5000.0 * parameter("gpu_inside_share")
    assert float(gpu_response(most * 0.999, off, 0.95)[0]) <= goal
    assert float(gpu_response(most * 1.001, off, 0.95)[0]) > goal
    assert 0.7 * off < most < off


def test_a_looser_target_carries_more_and_none_below_the_floor() -> None:
    goals = np.array([0.0005, 0.002, 0.02, 0.2])
    most = np.asarray(gpu_capacity(5000.0, goals, 0.95))
    assert most[0] == 0.0
    assert np.all(np.diff(most) > 0)
    held, _ = cpu_capacity(10.0, 16.0, np.array([0.001, 0.2, 0.5, 5.0]), 0.95)
    assert np.asarray(held)[0] == 0.0
    assert np.all(np.diff(np.asarray(held)) > 0)


@pytest.mark.parametrize("cores", [2.0, 16.0, 96.0])
def test_the_tables_of_servers_tell_what_the_functions_tell(cores: float) -> None:
    """Over seven decades of rates, and targets from half a millisecond to ten seconds."""
    rates_, goals = np.meshgrid(np.geomspace(0.01, 1e5, 40), np.geomspace(5e-4, 10.0, 25))
    told = cpu_capacities(rates_, cores, goals, 0.95)
    exact = np.asarray(cpu_capacity(rates_, cores, goals, 0.95)[0])
    assert np.array_equal(told > 0.0, exact > 0.0)
    some = exact > 0.0
    assert np.max(np.abs(told[some] / exact[some] - 1.0)) < 0.01


def test_the_tables_of_gpus_tell_what_the_functions_tell() -> None:
    rates_, goals = np.meshgrid(np.geomspace(0.01, 1e6, 50), np.geomspace(5e-4, 10.0, 40))
    told = gpu_capacities(rates_, goals, 0.95)
    exact = np.asarray(gpu_capacity(rates_, goals, 0.95))
    assert np.array_equal(told > 0.0, exact > 0.0)
    some = exact > 0.0
    off = np.abs(told[some] / exact[some] - 1.0)
    assert np.quantile(off, 0.98) < 0.005
    # Just above the floor a little of what the GPU does decides over little.
    assert np.max(np.abs(told - exact) / rates_) < 0.01


def test_rates_of_many_sizes_are_those_of_each() -> None:
    measured = Predicted(80.0, 100.0, 120.0, "measured: somewhere", True)
    light = Predicted(4000.0, 5000.0, 6000.0, "measured: trees", True)
    sizes = np.array([0.01, 0.5, 1.0, 2.0, 100.0])
    found = scaled_range(measured, sizes, light)
    for i, size in enumerate(sizes):
        each = scaled(measured, float(size), light)
        assert [float(f[i]) for f in found] == pytest.approx([each.low, each.likely, each.high])


def test_workers_share_an_item_only_when_one_core_is_too_slow() -> None:
    # One core takes 100 ms an item. With a second at hand one core a worker wastes least; within
    # 40 ms an item must be shared by several.
    _, loose = cpu_capacity(10.0, 16.0, 2.0, 0.95)
    _, tight = cpu_capacity(10.0, 16.0, 0.04, 0.95)
    assert float(loose) == 1
    assert float(tight) >= 4
    assert worker_sizes(16.0) == (1, 2, 4, 8, 16)
    assert worker_sizes(3.0) == (1, 2)


def test_a_worker_of_four_cores_by_hand() -> None:
    # 10 a second and core, 88% left inside a target, 3% a further core: 1.09/(4·8.8) = 31 ms.
    assert float(worker_service_s(10.0, 4.0)) == pytest.approx(
        (1 + 3 * parameter("worker_contention")) / (4 * 10 * parameter("cpu_inside_share"))
    )


def test_no_load_answers_in_the_time_of_one_item() -> None:
    floor, cores = cpu_floor_s(10.0, 16.0, 0.95)
    assert cores == 16
    assert float(cpu_response(0.0, 10.0, 16.0, 16, 0.95)) == pytest.approx(floor)


def test_units_are_whole_and_none_for_no_requests() -> None:
    # 100 a second at 75% of 50 each: 2.67 → 3.
    found = units_for(np.array([0.0, 100.0, 100.0]), np.array([50.0, 50.0, 0.0]))
    assert found[0] == 0
    assert found[1] == 3
    assert math.isinf(found[2])


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(InputError, match="not measured"):
        check_models("resnet-9000")


def test_far_from_what_was_measured_the_band_widens_and_no_rate_passes_the_lightest_model() -> None:
    measured = Predicted(80.0, 100.0, 120.0, "measured: somewhere", True)
    light = Predicted(4000.0, 5000.0, 6000.0, "measured: trees", True)

    def rate(size: float) -> tuple[float, float, float, bool]:
        found = scaled(measured, size, light)
        return found.low, found.likely, found.high, found.measured

    assert scaled(measured, 1.0, light) is measured
    assert rate(2.0) == (40.0, 50.0, 60.0, False)  # half the rate for twice the work
    # A hundred times the work: a hundredth of the rate, a third to three times of that.
    assert rate(100.0) == pytest.approx((0.8 / 3, 1.0, 3.6, False))
    # A hundredth of the work would give 10,000 a second; the lightest model gives 5,000.
    assert rate(0.01) == pytest.approx((4000 / 3, 5000.0, 5000.0, False))


def test_a_tiny_net_answers_no_faster_on_a_core_than_trees() -> None:
    trees = core_rate("trees")
    assert trees is not None
    report = model_report(EXAMPLES["trading-path"].workload, today=date(2026, 12, 1))
    assert report.cpu is not None
    assert not report.cpu.measured
    assert report.cpu.rate.likely == pytest.approx(trees.likely)
