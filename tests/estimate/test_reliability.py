"""Checkpoints, goodput, spot, alarms and redundancy against published and hand-worked values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.estimate.reliability import (
    alarm_threshold,
    availability_interval,
    availability_k_of_n,
    checkpoint_loss,
    false_alarms,
    fleet_mtbf,
    goodput,
    lost_hours_cost,
    machines_for_availability,
    silent_corruption_cost,
    spot_paid_goodput,
    spot_wall_goodput,
    young_interval,
)

LLAMA_3 = 50_700  # GPU-hours a failure
SECOND, MINUTE = 1 / 3600, 1 / 60


@pytest.mark.parametrize(
    ("gpus", "mtbf", "save", "interval", "loss"),
    [
        (32, 1584, 27 * SECOND, 4.9, 0.0031),
        (64, 792, 7.2 * MINUTE, 13.8, 0.017),
        (1024, 49.5, 27 * SECOND, 52 * MINUTE, 0.017),
        (12_200, 4.2, 27 * SECOND, 15 * MINUTE, 0.06),
    ],
)
def test_best_intervals_of_the_articles_checkpoints(
    gpus: int, mtbf: float, save: float, interval: float, loss: float
) -> None:
    # 32 GPUs: 50,700/32 = 1,584 h; sqrt(2 x 27/3600 x 1,584) = 4.87 h;
    # loss = 0.0075/4.87 + 4.87/3,169 = 0.0031
    fleet = float(fleet_mtbf(LLAMA_3, gpus))
    best = float(young_interval(save, fleet))
    assert fleet == pytest.approx(mtbf, rel=0.02)
    assert best == pytest.approx(interval, rel=0.03)
    assert checkpoint_loss(save, best, fleet) == pytest.approx(loss, rel=0.06)


def test_the_articles_own_settings() -> None:
    # 15 min at 32 GPUs: 27/900 = 3.0%; 6 h at 64 GPUs: 7.2/360 = 2.0% and 3/792 = 0.4%
    assert checkpoint_loss(27 * SECOND, 0.25, LLAMA_3 / 32) == pytest.approx(0.0301, abs=1e-4)
    assert checkpoint_loss(7.2 * MINUTE, 6, LLAMA_3 / 64) == pytest.approx(0.0238, abs=1e-4)


@pytest.mark.parametrize(
    ("gpus", "save_s", "restart_min", "interval_h", "share"),
    [
        (8, 60, 20, 11.2, 0.997),
        (64, 60, 20, 4.0, 0.991),
        (512, 60, 20, 1.4, 0.970),
        (1024, 10, 5, 0.4, 0.983),
        (4096, 10, 5, 0.2, 0.961),
    ],
)
def test_goodput_by_fleet_size(
    gpus: int, save_s: float, restart_min: float, interval_h: float, share: float
) -> None:
    mtbf = float(fleet_mtbf(30_000, gpus))
    best = float(young_interval(save_s * SECOND, mtbf))
    assert best == pytest.approx(interval_h, rel=0.03)
    assert goodput(save_s * SECOND, best, mtbf, restart_min * MINUTE) == pytest.approx(
        share, abs=0.003
    )


def test_llama_3_had_over_90_percent() -> None:
    # 16,384 GPUs at 50,700 GPU-hours: MTBF 3.1 h; fast checkpoints of 10 s, restart in 5 min
    mtbf = LLAMA_3 / 16_384
    best = young_interval(10 * SECOND, mtbf)
    assert goodput(10 * SECOND, best, mtbf, 5 * MINUTE) == pytest.approx(0.931, abs=0.005)


def test_when_failures_are_frequent_the_first_order_form_fails_and_the_renewal_form_does_not() -> (
    None
):
    assert checkpoint_loss(0.1, 0.5, 0.3, 0.3) > 1
    assert 0 < float(goodput(0.1, 0.5, 0.3, 0.3)) < 0.2


@given(st.floats(1e-4, 0.01), st.floats(500, 1e6))
def test_for_rare_failures_goodput_is_one_minus_the_first_order_loss(d: float, m: float) -> None:
    tau = young_interval(d, m)
    assert goodput(d, tau, m, d) == pytest.approx(
        1 - float(checkpoint_loss(d, tau, m, d)), abs=2e-4
    )


@given(st.floats(1e-4, 0.1), st.floats(5, 1e4))
def test_no_other_interval_is_much_better_than_youngs(save: float, mtbf: float) -> None:
    best = float(goodput(save, young_interval(save, mtbf), mtbf))
    others = goodput(save, np.geomspace(save, mtbf, 400), mtbf)
    assert best >= float(np.max(others)) - 0.01


def test_availability_interval_is_longer_than_youngs() -> None:
    # 0.1 + sqrt(2 x (100 + 1) x 0.1 + 0.01) = 0.1 + 4.496 = 4.596
    assert availability_interval(0.1, 100, 1) == pytest.approx(4.596, abs=1e-3)


def test_spot_without_interruptions_only_pays_for_checkpoints() -> None:
    # 1/(1 + 0.1) of the time is useful
    assert spot_paid_goodput(0.0, 1.0, 0.1, 0.2) == pytest.approx(1 / 1.1, rel=1e-6)


def test_spot_with_notice_loses_only_the_restart() -> None:
    # One interruption in 10 h; checkpoints of 1 min fit the notice of 2 min. Checkpoints leave
    # 1/(1 + 1/60) = 0.98361; an hour of them takes e^(0.1 x 0.5) = 1.05127 with restarts that are
    # interrupted too, and 0.1/60 = 0.00167 for last checkpoints: 0.98361/1.05294 = 0.93415.
    with_notice = spot_paid_goodput(0.1, 1.0, MINUTE, 0.5, notice=2 * MINUTE)
    assert with_notice == pytest.approx(0.93415, abs=1e-5)
    assert float(spot_paid_goodput(0.1, 1.0, MINUTE, 0.5)) < float(with_notice)


def test_interrupted_restarts_begin_again_with_notice_or_without() -> None:
    # Nine interruptions an hour against a restart of 20 min: e^3 = 20.09 hours of the clock for one
    # at work, 9/120 = 0.08 of last checkpoints; half a minute in 10 is 1/1.05 of the work.
    told = spot_paid_goodput(9.0, 1 / 6, 0.5 * MINUTE, 1 / 3, notice=2 * MINUTE)
    assert told == pytest.approx(1 / 1.05 / (20.0855 + 0.075), rel=1e-4)
    # 100 a machine and day on 128 machines, back after 12 min: e^107. Nothing gets done.
    assert float(spot_paid_goodput(100 * 128 / 24, 0.1, 0.01, 0.2, notice=0.03)) < 1e-20


@given(st.floats(0, 0.5), st.floats(0, 0.5))
def test_more_interruptions_never_help(a: float, b: float) -> None:
    few, many = sorted((a, b))
    for notice in (0.0, 0.1):
        assert float(spot_paid_goodput(many, 1.0, 0.05, 0.25, notice)) <= float(
            spot_paid_goodput(few, 1.0, 0.05, 0.25, notice)
        )


def test_requeueing_costs_time_and_no_money() -> None:
    # 0.9/(1 + 0.1 x 2) = 0.75
    assert spot_wall_goodput(0.9, 0.1, 2.0) == pytest.approx(0.75)


def test_three_sigma_on_eight_nodes_four_times_a_day_cries_wolf_every_twelve_days() -> None:
    # 8 x 4 x 0.0027 = 0.0864 a day
    assert false_alarms(32, 3) == pytest.approx(0.0864, abs=1e-4)
    assert 1 / float(false_alarms(32, 3)) == pytest.approx(11.6, abs=0.1)
    assert alarm_threshold(32, 0.0864) == pytest.approx(3.0, abs=1e-3)


def test_three_unnoticed_days_on_64_gpus() -> None:
    # 72 h x 64 GPUs = 4,608 GPU-h; at 3.91 = 18,017; at 3.50 = 16,128
    assert silent_corruption_cost(1, 72, 64 * 3.91) == pytest.approx(18_017, abs=1)
    assert silent_corruption_cost(1, 72, 64 * 3.50) == pytest.approx(16_128)


def test_eight_lost_hours() -> None:
    # 8 x 55.04 = 440 for one node, 1,761 for four, 7,045 for sixteen; 8 x 450 = the article's 3,600
    assert lost_hours_cost(1, 55.04, 8) == pytest.approx(440.32)
    assert lost_hours_cost(4, 55.04, 8) == pytest.approx(1761.28)
    assert lost_hours_cost(16, 55.04, 8) == pytest.approx(7045.12)
    assert lost_hours_cost(1, 450, 8) == 3600


def test_redundancy() -> None:
    # two of two: 0.99^2 = 0.9801; two of three: 3 x 0.99^2 x 0.01 + 0.99^3 = 0.999702
    assert availability_k_of_n(0.99, 2, 2) == pytest.approx(0.9801)
    assert availability_k_of_n(0.99, 2, 3) == pytest.approx(0.999702)
    assert machines_for_availability(0.99, 2, 0.999) == 3
    assert machines_for_availability(0.0, 2, 0.999) is None
    with pytest.raises(InputError, match="needed"):
        availability_k_of_n(0.99, 3, 2)


@pytest.mark.parametrize("mtbf", [0, -3])
def test_senseless_failure_rates_are_refused_by_name(mtbf: float) -> None:
    with pytest.raises(InputError, match="mtbf"):
        goodput(0.1, 1.0, mtbf)
