"""The numbers behind the pictures, by hand."""

from __future__ import annotations

from datetime import date

import pytest

from engine.assess import assess_point
from engine.explain import curves
from engine.explain.faq import all_answers, answers_for
from engine.workload.answers import Bottleneck, FailureMode, Kind, Symptom
from engine.workload.examples import example
from engine.workload.workload import Workload

TODAY = date(2026, 12, 1)


def test_half_in_io_caps_any_gpu_at_twice() -> None:
    # b = 0.5 and p = 1: 1/((1 − 0.5)·0 + 0.5) = 2.
    w = Workload(kind=Kind.etl, time_shares=(50, 0, 0, 0, 50, 0), parallel_fraction=1.0)
    assert curves.most_a_gpu_can_do(w) == pytest.approx(2.0, rel=0.01)


def test_the_articles_seventy_percent() -> None:
    # (1 − 1/3.2)/(1 − 1/50) = 0.6875/0.98 = 0.7015.
    w = Workload(kind=Kind.other, gpu_speedup=50)
    picture = curves.crossover_picture(w, 3.2)
    assert picture.at == pytest.approx(0.7015, abs=1e-4)
    below = [c for p, c in picture.points if p < 0.68]
    above = [c for p, c in picture.points if p > 0.72]
    assert min(below) > 1 > max(above)


def test_two_machines_at_99_percent_are_away_less_than_an_hour_a_year() -> None:
    # 0.01² · 8,760 h = 0.876 h.
    w = Workload(kind=Kind.web, failure_mode=FailureMode.machine_loss)
    hours = dict(curves.failure_picture(w, 2, 1.0).points)
    assert hours[1] == pytest.approx(87.6)
    assert hours[2] == pytest.approx(0.876)


def test_the_best_checkpoint_interval_is_marked_beside_the_articles() -> None:
    # Young: √(2 · 0.0083 h · 30,000 h / 64) = √7.78 = 2.79 h.
    w = Workload(kind=Kind.llm_pretraining, failure_mode=FailureMode.long_run_loss)
    picture = curves.failure_picture(w, 64, 200.0)
    assert picture.marks[0][0] == pytest.approx(2.79, abs=0.01)
    assert [m for m, _ in picture.marks[1:]] == [0.25, 6.0]


def test_every_failure_has_its_own_picture_and_remedies() -> None:
    titles = set()
    for mode in FailureMode:
        picture = curves.failure_picture(Workload(failure_mode=mode), 8, 30.0)
        assert picture.points
        assert picture.message
        titles.add(picture.title)
        if mode is not FailureMode.unknown:
            assert set(curves.ASKS[mode]) <= set(curves.REMEDIES)
    assert len(titles) == 6


def test_a_symptom_says_where_it_points() -> None:
    w = Workload(symptoms=(Symptom.gpu_low_network_full,))
    ((_, resource, share),) = curves.symptom_reading(w)
    assert resource == "network"
    assert share == pytest.approx(0.8)
    assert curves.time_shares(w)[0].resource == Bottleneck.network.value


def test_the_articles_retrograde_timings_are_called_so() -> None:
    # 14 h on 8 and 19 h on 32: slower with more; no fraction explains that.
    reading = curves.read_timings(Workload(timings=((8, 14), (32, 19))))
    assert reading is not None
    assert reading.amdahl is not None
    assert reading.amdahl.diagnosis == "retrograde"
    assert "slower" in reading.message


def test_three_timings_are_fitted() -> None:
    # Points of the law itself with σ = 0.05, κ = 0: X(n) = n/(1 + 0.05(n − 1)).
    points = tuple((n, (1 + 0.05 * (n - 1)) / n) for n in (1.0, 4.0, 16.0))
    reading = curves.read_timings(Workload(timings=points))
    assert reading is not None
    assert reading.usl is not None
    assert reading.usl.sigma == pytest.approx(0.05, abs=0.005)
    assert reading.usl_curve(64)


def test_break_evens_are_the_ratio_of_the_rates() -> None:
    ways = [
        curves.WayToPay("On demand", ((1.0, 4.0),), 4.0, False),
        curves.WayToPay("Reserved 1 year", ((1.0, 3.0),), 3.0, True),
        curves.WayToPay("Bought", ((1.0, 5.0),), 5.0, True),
    ]
    assert curves.break_evens(ways) == [("Reserved 1 year", 0.75), ("Bought", None)]


def test_the_cost_of_a_useful_hour_falls_as_one_over_the_use() -> None:
    answer = assess_point(example("13b-47-runs").workload, today=TODAY)
    unit = curves.unit_of_interest(answer.workload, TODAY, answer.best.stages[0].sku)
    assert unit is not None
    for way in curves.ways_to_pay(unit):
        costs = dict(way.points)
        half = min(costs, key=lambda u: abs(u - 0.5))
        factor = 1 / half if way.pays_idle else 1.0
        assert costs[half] == pytest.approx(way.usd_per_hour * factor)


def test_demand_has_the_variation_that_was_answered() -> None:
    months, variation = curves.demand_by_month(Workload(monthly_variation=0.3))
    mean = sum(months) / 12
    spread = (sum((m - mean) ** 2 for m in months) / 12) ** 0.5
    assert variation == 0.3
    assert mean == pytest.approx(100)
    assert spread / mean == pytest.approx(0.3, abs=1e-6)


def test_commitment_is_the_quantile_of_the_price_ratio() -> None:
    # Ratio 0.75: committed up to the level exceeded in three of four months.
    assert curves.committed_level([10, 20, 30, 40, 50], 0.75) == 20


def test_all_twenty_four_answers_of_the_articles_have_their_place() -> None:
    assert len(all_answers()) == 24
    places = ("bottleneck", "failure_mode", "parallel_fraction", "utilization")
    assert sum(len(answers_for(p)) for p in places) == 24
