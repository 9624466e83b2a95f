"""Failures of a run against an independent simulation, published runs and hand-worked values.

The simulation steps through events with a random generator of its own and shares no formula with
the engine: it draws failures, runs segments, restarts and repairs, and adds up the clock.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from engine.decide.priors import parameter
from engine.errors import DataError, InputError
from engine.estimate.failure_rates import fleet, fleets, reliability_parameters
from engine.estimate.reliability import goodput, young_interval
from engine.estimate.run_reliability import (
    LOSSES,
    Checks,
    RunConditions,
    best_check_interval,
    best_spares,
    bill,
    daly_interval,
    exact_interval,
    failures_expected,
    outcome,
    restart_hours_per_failure,
    slowest_machine,
    through,
    without_a_machine,
    work_with_checks,
    work_without_checks,
)

LLAMA_3 = 16_384 * 54 * 24 / 419  # GPU-hours for each of 419 unexpected interruptions: 50,677
SECOND, MINUTE = 1 / 3600, 1 / 60
PLAIN = RunConditions(devices=1024, device_mtbf=30_000.0, save=0.02, restart=0.25, per_machine=8)


def simulated(
    work: float, mtbf: float, save: float, restart: float, interval: float, seed: int, *,
    swap_share: float = 0.0, repair: float = 0.0, spares: int = 0,
) -> dict[str, float]:  # fmt: skip
    """One long run, event by event; hours by what they went to, and the count of failures."""
    rng = np.random.default_rng(seed)
    spent = dict.fromkeys(("clock", "useful", "saving", "restarting", "waiting", "failures"), 0.0)
    back: list[float] = []  # moments at which machines in repair are back, on the clock

    def fails_within(hours: float) -> float | None:
        """Hours until the failure within a stretch of activity, None when it gets through."""
        at = rng.exponential(mtbf)
        return at if at < hours else None

    def broken() -> None:
        spent["failures"] += 1
        if rng.random() >= swap_share:
            return
        now = spent["clock"]
        back[:] = [t for t in back if t > now]
        back.append(now + rng.exponential(repair))
        while len([t for t in back if t > spent["clock"]]) > spares:
            wait = min(t for t in back if t > spent["clock"]) - spent["clock"]
            spent["clock"] += wait
            spent["waiting"] += wait

    while spent["useful"] < work:
        at = fails_within(interval + save)
        if at is None:
            spent["clock"] += interval + save
            spent["useful"] += interval
            spent["saving"] += save
            continue
        spent["clock"] += at
        broken()
        while (again := fails_within(restart)) is not None:
            spent["clock"] += again
            spent["restarting"] += again
            broken()
        spent["clock"] += restart
        spent["restarting"] += restart
    return spent


# --- intervals


@pytest.mark.parametrize(("save", "mtbf"), [(0.01, 1000.0), (0.1, 3.0), (1.0, 1.0), (30.0, 2.0)])
def test_the_exact_interval_is_where_a_search_finds_the_most_goodput(
    save: float, mtbf: float
) -> None:
    found = minimize_scalar(
        lambda t: (math.exp((math.exp(t) + save) / mtbf) - 1) / math.exp(t),
        bounds=(math.log(mtbf) - 12, math.log(mtbf) + 1), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    assert exact_interval(save, mtbf) == pytest.approx(math.exp(found.x), rel=1e-4)


def test_the_exact_interval_solves_its_equation_over_eleven_decades() -> None:
    # d/dτ (e^((τ+δ)/M) − 1)/τ = 0 means (1 − x)·e^x = e^(−δ/M) with x = τ/M; written with expm1 so
    # that it can be checked where both sides are 1 − tiny.
    ratio = np.geomspace(1e-10, 10, 111)
    x = np.asarray(exact_interval(ratio, np.ones_like(ratio)))
    left = np.log1p(-x) + x
    assert np.allclose(left, -ratio, rtol=2e-4, atol=0)


def test_young_and_daly_are_its_limits_for_rare_failures() -> None:
    exact = float(exact_interval(1e-4, 1.0))
    assert exact == pytest.approx(float(young_interval(1e-4, 1.0)), rel=0.01)
    # Young's √(2·10⁻⁴) is 0.014142; two thirds of δ less is 0.014075.
    assert exact == pytest.approx(0.014142 - 2e-4 / 3, rel=1e-3)
    # Daly 2006: √0.2·(1 + √0.05/3 + 0.05/9) − 0.1 = 0.44721·1.08009 − 0.1 = 0.38303
    assert daly_interval(0.1, 1.0) == pytest.approx(0.38303, abs=2e-5)
    assert daly_interval(3.0, 1.0) == 1.0
    assert exact_interval(0.1, 1.0) == pytest.approx(float(daly_interval(0.1, 1.0)), rel=0.01)


@given(st.floats(1e-6, 1.0), st.floats(0.1, 1e5))
def test_no_other_interval_beats_the_exact_one(save: float, mtbf: float) -> None:
    best = float(exact_interval(save, mtbf))
    most = float(goodput(save, best, mtbf))
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert float(goodput(save, best * factor, mtbf)) <= most * (1 + 1e-9)


# --- the simulation


@pytest.mark.parametrize(
    ("mtbf", "save", "restart", "interval"),
    [(30.0, 0.02, 0.3, 1.0), (3.0, 0.01, 0.1, 0.25), (2.0, 0.1, 1.0, 0.5)],
)
def test_an_event_simulation_finds_the_same_shares(
    mtbf: float, save: float, restart: float, interval: float
) -> None:
    run = replace(PLAIN, devices=1.0, per_machine=1.0, device_mtbf=mtbf, save=save,
                  restart=restart, interval=interval)  # fmt: skip
    told = outcome(run)
    seen = simulated(30_000.0, mtbf, save, restart, interval, seed=1)
    useful = seen["useful"]
    # 30,000 useful hours hold 1,000 failures and more: their mean is known to about 3%, the share
    # of the time that is useful to some tenths of a percent.
    assert told.paid_hours == pytest.approx(seen["clock"] / useful, rel=0.02)
    assert told.failures == pytest.approx(seen["failures"] / useful, rel=0.08)
    assert told.extra["checkpoints"] == pytest.approx(seen["saving"] / useful, rel=0.01)
    assert told.extra["restarts"] == pytest.approx(seen["restarting"] / useful, rel=0.08)
    again = seen["clock"] - seen["useful"] - seen["saving"] - seen["restarting"]
    assert told.extra["work done again"] == pytest.approx(again / useful, rel=0.08)


@pytest.mark.parametrize(("spares", "repair"), [(0, 5.0), (1, 30.0), (3, 60.0)])
def test_an_event_simulation_waits_for_machines_as_long(spares: int, repair: float) -> None:
    run = replace(PLAIN, devices=1.0, per_machine=1.0, device_mtbf=20.0, save=0.01, restart=0.1,
                  interval=2.0, swap_share=0.5, repair=repair, spares=spares)  # fmt: skip
    told = outcome(run)
    # Six runs of 400,000 hours with 10,000 breaks each: their mean is known to about 1.5%.
    waits = []
    for seed in range(6):
        seen = simulated(400_000.0, 20.0, 0.01, 0.1, 2.0, seed=seed, swap_share=0.5,
                         repair=repair, spares=spares)  # fmt: skip
        waits.append(seen["waiting"] / seen["useful"])
    assert told.extra["waiting for a machine"] == pytest.approx(np.mean(waits), rel=0.04)


def test_a_simulation_of_silent_errors_and_checks_agrees() -> None:
    rng = np.random.default_rng(3)
    rate, every, check, restart = 0.02, 6.0, 0.12, 0.3
    clock = stands = 0.0
    while stands < 60_000:
        clock += every + check
        if rng.exponential(1 / rate) < every:  # an error lies in the window: it is done again
            clock += restart
        else:
            stands += every
    told = work_with_checks(rate, Checks(every=6.0, share=0.02), restart, 1.0)
    assert told == pytest.approx(clock / stands, rel=0.01)

    clock = stands = 0.0
    while stands < 60_000:
        until = rng.exponential(1 / rate)
        stands += until
        clock += until + 72.0 + restart
    assert work_without_checks(rate, 72.0, restart) == pytest.approx(clock / stands, rel=0.05)


def test_a_simulation_of_spot_machines_agrees() -> None:
    # 0.15 interruptions a machine and day on 16 machines: one every 10 hours, without notice.
    run = replace(PLAIN, devices=128.0, device_mtbf=1e12, save=0.01, restart=0.25, interval=0.4,
                  reclaims=0.15 / 24, requeue=0.5)  # fmt: skip
    told = outcome(run)
    seen = simulated(30_000.0, 10.0, 0.01, 0.25, 0.4, seed=4)
    assert told.paid_hours == pytest.approx(seen["clock"] / seen["useful"], rel=0.01)
    assert told.reclaims == pytest.approx(seen["failures"] / seen["useful"], rel=0.06)
    assert told.failures == pytest.approx(0, abs=1e-6)
    waits = seen["failures"] * 0.5
    assert told.calendar_hours == pytest.approx((seen["clock"] + waits) / seen["useful"], rel=0.01)


def test_notice_saves_the_work_and_still_costs_the_restart() -> None:
    abrupt = outcome(replace(PLAIN, reclaims=0.01))
    warned = outcome(replace(PLAIN, reclaims=0.01, notice=1.0))
    assert warned.paid_hours < abrupt.paid_hours
    assert warned.extra["reclaimed with notice"] > 0
    assert abrupt.extra["reclaimed with notice"] == 0
    # 128 x 0.01 = 1.28 interruptions and 1,024/30,000 = 0.03413 failures an hour, any of which cuts
    # a restart of 0.25 h: r = (e^(1.31413 x 0.25) − 1)/1.31413 = 0.38893/1.31413 = 0.29596 h. For
    # each hour at work 0.03413 r = 0.01010 h after failures and 1.28 (r + 0.02) = 0.40443 h.
    at_work = warned.active_hours / (1 + 0.01010 + 0.40443)
    assert warned.extra["reclaimed with notice"] == pytest.approx(at_work * 0.40443, rel=1e-4)
    assert warned.extra["restarts"] == pytest.approx(at_work * 0.01010, rel=1e-3)


@pytest.mark.parametrize(("mtbf", "rate"), [(50.0, 0.1), (50.0, 3.0), (20.0, 0.5)])
def test_a_simulation_of_interruptions_with_notice_agrees(mtbf: float, rate: float) -> None:
    """Failures without and interruptions with notice at once: any of them cuts a restart."""
    save, restart = 0.0083, 0.33
    run = replace(PLAIN, devices=1.0, per_machine=1.0, device_mtbf=mtbf, save=save,
                  restart=restart, interval=0.8, reclaims=rate, notice=1.0)  # fmt: skip
    told = outcome(run)
    rng = np.random.default_rng(8)
    both, clock, kept, since = rate + 1 / mtbf, 0.0, 0.0, 0.0
    taken = 0
    while kept < 20_000:
        at = rng.exponential(1 / both)
        if at >= 0.8 - since + save:  # the next checkpoint is written
            clock, kept, since = clock + 0.8 - since + save, kept + 0.8 - since, 0.0
            continue
        clock += at
        if rng.random() < rate / both:  # warned: what is done since the last checkpoint is kept
            taken, clock, kept = taken + 1, clock + save, kept + min(at, 0.8 - since)
            since += min(at, 0.8 - since)
        else:  # the work since the last checkpoint or interruption is gone
            pass
        while (cut := rng.exponential(1 / both)) < restart:
            clock, taken = clock + cut, taken + (rng.random() < rate / both)
        clock += restart
    assert told.paid_hours == pytest.approx(clock / kept, rel=0.02)
    assert told.reclaims == pytest.approx(taken / kept, rel=0.04)


def test_a_save_that_stalls_nothing_is_written_as_soon_as_the_soonest() -> None:
    # 1,024 devices: a failure every 29.30 h. Half of 0.1 h is lost at each: 0.05/29.3 = 0.171%, and
    # 0.25/29.3 = 0.853% of restarts: e^-0.00853 x (1 − 0.00171) = 0.98982.
    told = outcome(replace(PLAIN, save=0.0, soonest=0.1))
    assert told.interval == pytest.approx(0.1)
    assert told.extra["checkpoints"] == 0
    assert told.useful == pytest.approx(0.98982, abs=2e-5)
    # A stall that asks for a longer interval has it: √(2 x 0.02 x 29.3) = 1.08 h less 0.013.
    assert outcome(replace(PLAIN, soonest=0.1)).interval == pytest.approx(1.07, abs=0.01)
    with pytest.raises(InputError, match="interval"):
        outcome(replace(PLAIN, save=0.0))


def test_no_interval_is_longer_than_the_run() -> None:
    # An hour's run that saves every ten hours saves at its end, like one that saves every hour.
    set_long = outcome(replace(PLAIN, interval=10.0, longest=1.0))
    assert set_long.interval == 1.0
    assert set_long.paid_hours == outcome(replace(PLAIN, interval=1.0)).paid_hours


def test_a_save_that_takes_longer_than_failures_stay_away_leaves_little() -> None:
    # δ = 2 h against M = 1.5 h: x e^x... the optimum solves (1 − x) e^x = e^(−4/3) = 0.26360;
    # x = 0.9: 0.1 x 2.4596 = 0.24596; 0.89: 0.26786; 0.892: 0.26353, so τ = 1.338 h.
    # τ/(M (e^((τ + δ)/M) − 1)) = 0.892/(e^2.2253 − 1) = 0.892/8.2564 = 0.1080; no restart.
    run = replace(PLAIN, devices=1.0, per_machine=1.0, device_mtbf=1.5, save=2.0, restart=0.0)
    told = outcome(run)
    assert told.interval == pytest.approx(1.338, abs=0.002)
    assert told.useful == pytest.approx(0.1080, abs=0.0003)


# --- published runs


def test_llama_3_had_419_interruptions_in_54_days() -> None:
    assert failures_expected(16_384, 54 * 24, LLAMA_3) == pytest.approx(419, rel=1e-9)
    assert pytest.approx(50_700, rel=0.01) == LLAMA_3


@pytest.mark.parametrize(("save_s", "restart_min"), [(5, 2), (10, 5), (10, 10)])
def test_llama_3_was_useful_for_over_90_percent(save_s: float, restart_min: float) -> None:
    # MTBF 3.09 h; a stall of 10 s gives √(2·10/3600·3.09) = 0.131 h = 7.9 min between checkpoints,
    # 2.1% for saving, 2.1% of work done again, 5 min of 3.09 h = 2.7%: 93.1%.
    run = RunConditions(devices=16_384, device_mtbf=LLAMA_3, save=save_s * SECOND,
                        restart=restart_min * MINUTE, per_machine=8)  # fmt: skip
    assert outcome(run).useful > 0.90
    if (save_s, restart_min) == (10, 5):
        assert outcome(run).useful == pytest.approx(0.931, abs=0.003)


def test_rsc_1_projections_follow_from_its_rate() -> None:
    # 6.50 per 1,000 node-days: 24/(2,048 x 0.0065) = 1.80 h and 24/(16,384 x 0.0065) = 0.225 h
    device = 24 * 8 / 0.0065
    assert outcome(replace(PLAIN, devices=16_384, device_mtbf=device)).mtbf == pytest.approx(
        1.8, abs=0.01
    )
    assert outcome(replace(PLAIN, devices=131_072, device_mtbf=device)).mtbf == pytest.approx(
        0.23, abs=0.01
    )


# --- stragglers, spares, checks by hand


def test_the_slowest_of_128_machines() -> None:
    # The mean largest of 128 standard normals is 2.59 (tables of order statistics): spread 0.3%
    # makes the step 0.78% longer. The article's 0.3% slower machine costs 0.3%, not 72%.
    assert slowest_machine(128, 0.003) == pytest.approx(1.0078, abs=1e-4)
    assert slowest_machine(128, 0.0, 0.003) == pytest.approx(1.003)
    assert slowest_machine(128, 0.003, 0.02) == pytest.approx(1.02)
    # A rank that takes twice as long halves the pace: article 003's 0.1 s against 0.2 s.
    assert slowest_machine(32, 0.0, 1.0) == pytest.approx(2.0)
    assert slowest_machine(1, 0.01) == pytest.approx(1.0)


def test_order_statistics_agree_with_draws() -> None:
    rng = np.random.default_rng(5)
    for machines in (4, 64, 512):
        largest = (1 + 0.01 * rng.standard_normal((4000, machines))).max(axis=1).mean()
        assert slowest_machine(machines, 0.01) - 1 == pytest.approx(largest - 1, rel=0.03)


def test_spares_follow_erlang() -> None:
    # No spare: up 1/λ, away Q, so a/(1 + a). One spare and a = 1: (1/2)/(1 + 1 + 1/2) = 0.2.
    assert without_a_machine(0.5, 0) == pytest.approx(1 / 3)
    assert without_a_machine(1.0, 1) == pytest.approx(0.2)
    assert without_a_machine(0.0, 0) == 0


def test_the_best_number_of_spares_pays_for_itself() -> None:
    run = replace(PLAIN, swap_share=0.5, repair=30.0)
    best = best_spares(run)
    cost = {s: float(outcome(replace(run, spares=s)).paid_hours) for s in range(8)}
    assert best == min(cost, key=lambda s: cost[s])
    # 128 machines break 1,024/30,000 x 0.5 = 0.017 times an hour and stay away 30 h: half a machine
    # is away on average, without a spare a third of the time is lost; a spare costs 1/128.
    assert 1 <= best <= 4
    assert best_spares(replace(PLAIN, devices=8.0)) == 0


def test_the_articles_validation_every_six_hours() -> None:
    # 7.2 min every 6 h is 2%; 8 machines at three sigma alarm 8 x 0.0027 = 0.0216 times a check.
    plain = float(work_with_checks(0.0, Checks(every=6.0, share=0.02), 0.0, 8.0))
    assert plain == pytest.approx(1.02)
    alarmed = float(work_with_checks(0.0, Checks(6.0, 0.02, 3.0, 0.5), 0.0, 8.0))
    assert alarmed - plain == pytest.approx(8 * 0.0027 * 0.5 / 6, rel=0.01)
    # Llama 3's rate, 0.054 per 1,000 node-days, on 2,048 nodes: one in 9 days. Seen after 3 days it
    # costs 72/217 = 33%; seen at the next check 6/217 = 2.8% and the checks' 2%.
    rate = 6 / (54 * 24)
    assert work_without_checks(rate, 72.0, 0.0) == pytest.approx(1 + 72 / 216, rel=1e-3)
    assert work_with_checks(rate, Checks(6.0, 0.02), 0.0, 8.0) == pytest.approx(
        1.02 * math.exp(6 / 216), rel=1e-3
    )


def test_the_best_interval_of_checks() -> None:
    # √(0.12/0.001) = 10.95 h for rare errors
    assert best_check_interval(0.12, 0.001) == pytest.approx(10.95, rel=0.01)
    at = {i: (i + 0.12) / i * math.exp(0.05 * i) for i in np.linspace(0.5, 5, 451)}
    assert best_check_interval(0.12, 0.05) == pytest.approx(min(at, key=lambda i: at[i]), abs=0.02)


# --- the whole


FULL = replace(
    PLAIN, swap_share=0.5, repair=20.0, spares=2, spread=0.005, one_slower=0.02, silent=2e-6,
    unseen=72.0, checks=Checks(6.0, 0.02, 3.0, 0.25), reclaims=0.002, notice=0.03, requeue=0.5,
)  # fmt: skip


def test_the_parts_sum_to_the_whole() -> None:
    for run in (PLAIN, FULL, replace(FULL, checks=None, notice=0.0)):
        told = outcome(run)
        assert set(told.extra) == set(LOSSES)
        assert 1 + sum(float(v) for v in told.extra.values()) == pytest.approx(
            float(told.paid_hours), rel=1e-9
        )
        assert float(told.useful) + sum(float(told.lost(n)) for n in LOSSES) == pytest.approx(1.0)
        assert all(float(v) >= 0 for v in told.extra.values())


def test_arrays_give_what_floats_give() -> None:
    sizes = np.array([8.0, 128.0, 4096.0])
    together = outcome(replace(FULL, devices=sizes))
    for i, size in enumerate(sizes):
        alone = outcome(replace(FULL, devices=float(size)))
        assert isinstance(alone.paid_hours, float)
        assert np.asarray(together.paid_hours)[i] == pytest.approx(alone.paid_hours)
        for name in LOSSES:
            assert np.asarray(together.extra[name])[i] == pytest.approx(alone.extra[name])


def test_a_bigger_cluster_is_never_more_useful() -> None:
    sizes = np.geomspace(1, 200_000, 60)
    useful = np.asarray(outcome(replace(FULL, devices=sizes, spares=0)).useful)
    assert np.all(np.diff(useful) <= 1e-12)


def test_a_run_that_never_ends_stays_a_number() -> None:
    told = outcome(replace(PLAIN, devices=1e7, save=5.0, restart=10.0))
    assert math.isfinite(float(told.paid_hours))
    assert float(told.useful) < 1e-6


def test_the_bill_by_hand() -> None:
    # 64 devices, 100 useful hours, no loss but checkpoints of 1% and no failures: 6,464 paid.
    run = RunConditions(devices=64.0, device_mtbf=1e15, save=0.01, restart=0.0, interval=1.0)
    told = bill(outcome(run), 64.0, 100.0, 2.0)
    assert told.paid_device_hours == pytest.approx(6464.0)
    assert told.lost_device_hours == pytest.approx(64.0)
    assert told.lost_usd == pytest.approx(128.0)
    assert told.days == pytest.approx(101 / 24)
    assert told.failures == pytest.approx(0, abs=1e-6)


def test_draws_go_through_the_three_percentiles() -> None:
    z = np.random.default_rng(6).standard_normal(200_000)
    drawn = through(0.08, 0.33, 1.0, z)
    assert np.quantile(drawn, [0.1, 0.5, 0.9]) == pytest.approx([0.08, 0.33, 1.0], rel=0.02)
    assert through(2.0, 2.0, 2.0, z) == pytest.approx(2.0)


@pytest.mark.parametrize(
    "wrong",
    [{"devices": 0.0}, {"save": -0.1}, {"save": 0.0}, {"restart": -1.0}, {"swap_share": 1.5},
     {"spares": -1}, {"reclaims": -0.1}, {"one_slower": -0.1}, {"interval": 0.0}, {"silent": -1.0},
     {"checks": Checks(0.0, 0.02)}, {"device_mtbf": float("nan")}],
)  # fmt: skip
def test_a_condition_without_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        outcome(replace(PLAIN, **wrong))


def test_restarts_that_fail_begin_again() -> None:
    # R = M = 2 h: 2(e − 1) = 3.437 h
    assert restart_hours_per_failure(2.0, 2.0) == pytest.approx(3.437, abs=1e-3)
    assert restart_hours_per_failure(0.1, 1e9) == pytest.approx(0.1)


# --- the tables


@pytest.mark.parametrize(
    ("id", "rate"),
    [
        ("llama-3-405b", 419 / (2048 * 54) * 1000),  # 3.79
        ("opt-175b", 105 / (124 * 60) * 1000),  # 14.1
        ("bloom", 1.5 / (48 * 7) * 1000),  # 4.46
        ("imbue-70b", 0.03 / 7 * 1000),  # 3% of the machines a week: 4.29
        ("meta-rsc-1", 6.50),
        ("meta-rsc-2", 2.34),
        ("meta-rsc-1-1024", 24 / 7.9 / 128 * 1000),  # 23.7
        ("stepfun-trace", 481 / (400 * 348) * 1000),  # 3.46
    ],
)
def test_published_fleets_come_to_one_unit(id: str, rate: float) -> None:
    assert fleet(id).rate == pytest.approx(rate, rel=0.003)
    assert fleet(id).device_mtbf_h == pytest.approx(192_000 / rate, rel=0.003)


def test_the_range_that_the_app_takes_spans_the_published_fleets() -> None:
    # 10th to 90th percentile: at least eight of ten published fleets lie within, none of the single
    # jobs counted twice.
    span = parameter("mtbf_gpu_hours")
    seen = [f.device_mtbf_h for f in fleets().values() if f.device_mtbf_h and not f.job_mtbf_h]
    inside = [h for h in seen if span.low * 0.99 <= h <= span.high * 1.01]
    assert len(inside) / len(seen) >= 0.8
    assert min(seen) < span.likely < max(seen)


def test_a_fleet_without_a_rate_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(InputError, match="llama-3-405b"):
        fleet("alibaba-c4")


def test_a_row_that_says_nothing_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    head = "id,name,hardware,devices_per_node,counts,source,as_of,confidence\n"
    file.write_text(head + "x,X,H100,8,failures,somewhere,2026-01-01,high\n")
    with pytest.raises(DataError, match="neither"):
        fleets(file)


def test_every_range_of_what_a_failure_costs_has_its_source() -> None:
    for row in reliability_parameters().values():
        assert row.provenance.source
        assert row.low <= row.likely <= row.high
