"""The numbers behind the pictures, by hand."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.assess import assess_point
from engine.assessment import Assessment
from engine.errors import InputError
from engine.estimate.reliability import availability_k_of_n, young_interval
from engine.explain import evidence
from engine.explain.curves import bottleneck, common, failure, fraction, own, utilization
from engine.explain.faq import all_answers, answers_for
from engine.explain.reliability import reliability
from engine.explain.stops import stops_of
from engine.wording import duration
from engine.workload.answers import (
    Bottleneck,
    Consistency,
    Downtime,
    FailureMode,
    Kind,
    Symptom,
)
from engine.workload.examples import example
from engine.workload.reliability_terms import ReliabilityTerms
from engine.workload.workload import Workload

TODAY = date(2026, 12, 1)
HALF_DISK = (50, 0, 0, 0, 50, 0)


def answer_to(**fields: object) -> Assessment:
    return assess_point(Workload(**fields), today=TODAY)  # type: ignore[arg-type]


# --- question 1


def test_half_in_io_caps_any_gpu_at_twice() -> None:
    # b = 0.5 and p = 1: 1/((1 − 0.5)·0 + 0.5) = 2.
    w = Workload(kind=Kind.etl, time_shares=HALF_DISK, parallel_fraction=1.0)
    assert bottleneck.gpu_ceiling(w).most == pytest.approx(2.0, rel=1e-9)
    # With s = 10: 1/(0.5·0.1 + 0.5) = 1.818.
    at_ten = bottleneck.gpu_ceiling(w.model_copy(update={"gpu_speedup": 10.0}))
    assert at_ten.likely == pytest.approx(1 / 0.55)
    assert at_ten.io + at_ten.serial + at_ten.parallel == pytest.approx(0.55)


def test_a_full_network_caps_the_training_of_a_language_model() -> None:
    w = Workload(kind=Kind.lora, time_shares=(40, 0, 0, 60, 0, 0), parallel_fraction=1.0)
    ceiling = bottleneck.gpu_ceiling(w)
    assert ceiling.most == pytest.approx(1 / 0.6)
    assert ceiling.title.startswith("On the same network")


def test_a_symptom_says_where_it_points() -> None:
    w = Workload(symptoms=(Symptom.gpu_low_network_full,))
    ((_, resource, share),) = bottleneck.symptom_reading(w)
    assert resource == "network"
    assert share == pytest.approx(0.8)
    assert bottleneck.time_shares(w)[0].resource == Bottleneck.network.value


def test_every_symptom_has_its_words_and_every_bottleneck_its_advice() -> None:
    assert set(bottleneck.SYMPTOMS) == set(Symptom)
    assert set(bottleneck.FIX_FIRST) == set(Bottleneck) - {Bottleneck.unknown}
    assert bottleneck.fix_first(Workload()).startswith("Profile before you buy")
    named = Workload(bottleneck=Bottleneck.network)
    assert bottleneck.fix_first(named) == bottleneck.FIX_FIRST[Bottleneck.network]


def test_the_ridge_of_an_h100_is_295_operations_a_byte() -> None:
    # 989 TFLOP/s dense bf16 over 3,350 GB/s.
    h100 = bottleneck.roofs()[-1]
    assert h100.ridge == pytest.approx(989_000 / 3350)
    assert h100.line([1.0, 1e6]) == [3350, 989_000]


def test_the_roofline_says_on_which_side_the_job_is() -> None:
    assert "memory" in bottleneck.roofline_message(Workload(kind=Kind.etl))[0]
    assert (
        "arithmetic counts" in bottleneck.roofline_message(Workload(kind=Kind.llm_pretraining))[0]
    )


# --- question 2


def test_two_machines_at_99_percent_are_up_9999_in_10000() -> None:
    assert availability_k_of_n(0.99, 1, 2) == pytest.approx(0.9999)
    # 0.01² · 8,760 h = 0.876 h.
    hours = dict(failure.redundancy(1).lines[0].points)
    assert hours[0] == pytest.approx(87.6)
    assert hours[1] == pytest.approx(0.876)


def test_the_spare_that_was_sized_in_is_not_counted_as_needed() -> None:
    answer = answer_to(
        kind=Kind.web, failure_mode=FailureMode.machine_loss, downtime=Downtime.seconds
    )
    assert common.lead_stage(answer).machines == 2
    assert "beside the 1 needed" in failure.failure_picture(answer).x_title


def test_the_best_checkpoint_interval_is_marked_beside_the_articles() -> None:
    # 27 s and 1,584 h between failures: √(2 · 0.0075 h · 1,584 h) = 4.87 h.
    assert young_interval(27 / 3600, 1584) == pytest.approx(4.9, abs=0.05)
    # The table's stall of 0.0083 h on 64 GPUs of 30,000 h: √7.78 = 2.79 h.
    picture = failure.checkpoints(64, 30_000)
    assert picture.marks[0][0] == pytest.approx(2.79, abs=0.01)
    assert [m for m, _ in picture.marks[1:]] == [0.25, 6.0]
    best = max(picture.lines[0].points, key=lambda p: p[1])
    assert best[0] == pytest.approx(2.79, rel=0.1)


def test_a_run_on_spot_counts_its_interruptions_on_every_page() -> None:
    """The same stops and interval on the failure's page, in its remedies and on reliability."""
    workload = Workload(
        kind=Kind.llm_pretraining, model_params_b=70, train_tokens_b=1400,
        failure_mode=FailureMode.long_run_loss,
    )  # fmt: skip
    answer = assess_point(workload, today=TODAY)
    found = reliability(answer, ReliabilityTerms())
    picture = failure.failure_picture(answer)
    assert picture.marks[0][0] == pytest.approx(found.best_interval.likely, rel=1e-6)
    remedies = " ".join(why for _, why in answer.architecture.remedies)
    assert f"every {duration(found.best_interval.likely)}:" in remedies
    assert f"expected every {duration(found.mtbf.likely)}" in remedies


def test_stops_of_a_stage_by_hand() -> None:
    # 96 GPUs: 30,000/96 = 312.5 h; on spot 12 machines x 0.15/24 = 0.075 an hour more: 12.79 h.
    stage = SimpleNamespace(
        hardware="gpu", side_by_side=1.0, units=96, machines=12, acquisition="on_demand", price=None
    )  # fmt: skip
    assert stops_of(cast(Any, stage)).mtbf == pytest.approx(312.5)
    stage.acquisition = "spot"
    spot = stops_of(cast(Any, stage))
    assert spot.mtbf == spot.abrupt == pytest.approx(12.79, abs=0.01)
    # Two minutes of AWS's notice are enough for a stall of half a minute.
    stage.price = SimpleNamespace(provider="AWS")
    warned = stops_of(cast(Any, stage))
    assert (warned.mtbf, warned.abrupt) == (pytest.approx(12.79, abs=0.01), pytest.approx(312.5))


def test_the_articles_case_of_corruption_is_the_fleets_price_times_the_delay() -> None:
    # 10 dollars an hour for three days.
    assert dict(failure.corruption(8, 10.0).lines[0].points)[3.0] == pytest.approx(720)
    # 8 machines · 730 h/6 h · 0.27%.
    assert "2.6 false alarms" in failure.corruption(8, 10.0).message


def test_waiting_in_a_queue_follows_erlang() -> None:
    assert failure.mean_wait(1, 0.5) == pytest.approx(2.0)  # M/M/1: 1/(1 − ρ)
    # M/M/2 at ρ = 0.5: C = 1/3, so 1 + (1/3)/(2 · 0.5) = 4/3.
    assert failure.mean_wait(2, 0.5) == pytest.approx(4 / 3)
    assert failure.mean_wait(16, 0.6) < failure.mean_wait(4, 0.6) < failure.mean_wait(1, 0.6)


def test_idle_hours_are_the_rest_of_the_month() -> None:
    answer = answer_to(
        kind=Kind.lora, failure_mode=FailureMode.wasted_spend, useful_hours_per_month=365
    )
    picture = failure.failure_picture(answer)
    assert picture.marks[0] == (pytest.approx(50), "yours")
    whole = failure.fleet_usd_per_hour(answer) * 730
    assert dict(picture.lines[0].points)[50.0] == pytest.approx(whole / 2)


def test_only_agreeing_copies_lose_nothing() -> None:
    picture = failure.replication(Workload(kind=Kind.database, rate_per_s=10))
    lost = {name: minutes for name, minutes, _ in picture.bars}
    assert list(lost.values()) == sorted(lost.values(), reverse=True)
    assert lost["Copies that agree first (quorum)"] == 0
    assert "8,400" in picture.message  # 10 a second · 14 min · 60 s


@pytest.mark.parametrize("mode", FailureMode)
def test_every_failure_has_its_own_picture_and_remedies(mode: FailureMode) -> None:
    picture = failure.failure_picture(answer_to(kind=Kind.database, failure_mode=mode))
    assert picture.title
    assert picture.message
    assert picture.lines or picture.bars
    assert all(y == y for line in picture.lines for _, y in line.points)
    assert mode in failure.MEANS
    if mode is not FailureMode.unknown:
        assert set(failure.ASKS[mode]) <= set(failure.REMEDIES)


def test_small_jobs_are_told_not_to_distribute() -> None:
    small = answer_to(kind=Kind.database, data_gb=80, rate_per_s=200)
    flags = {f.rule: f.holds for f in failure.distribution_flags(small)}
    assert flags["Below 100 GB nothing needs sharding"]
    assert flags["One server answers 500 requests/s"]
    large = answer_to(kind=Kind.database, data_gb=50_000, rate_per_s=20_000)
    assert not any(f.holds for f in failure.distribution_flags(large)[1:])


# --- question 3


def test_the_articles_seventy_percent() -> None:
    # (1 − 1/3.2)/(1 − 1/50) = 0.6875/0.98 = 0.7015.
    picture = fraction.crossover_picture(Workload(kind=Kind.other, gpu_speedup=50), 3.2)
    assert picture.at == pytest.approx(0.7015, abs=1e-4)
    assert picture.at == pytest.approx(fraction.ARTICLE_FRACTION, abs=0.005)
    assert max(c for p, c in picture.points if p > 0.72) < 1
    assert min(c for p, c in picture.points if p < 0.68) > 1


@pytest.mark.parametrize("name", ["fraud-detection", "recommender-1tb", "route-optimization"])
def test_page_and_recommendation_tell_the_same_price_ratio(name: str) -> None:
    # The speed-up refers to the reference GPU, whichever is recommended; so must the price.
    workload = example(name).workload
    answer = assess_point(workload, today=TODAY)
    ratio = fraction.price_ratio(workload, TODAY)
    assert "H100" in ratio.gpu
    told = [r.why for r in answer.rules if "reference GPU" in r.why or "times the price" in r.why]
    assert told
    assert all(f"{ratio.ratio:.1f} times" in why for why in told)


def test_io_moves_the_crossover() -> None:
    # r = 2, s = 10, b = 0.25: p = (0.5/0.9)/0.75 = 0.741.
    w = Workload(kind=Kind.etl, gpu_speedup=10, time_shares=(75, 0, 0, 0, 25, 0))
    picture = fraction.crossover_picture(w, 2.0)
    assert picture.at == pytest.approx(0.5556, abs=1e-4)
    assert picture.at_with_io == pytest.approx(0.7407, abs=1e-4)


@pytest.mark.parametrize(
    ("ratio", "speedup", "words"),
    [(0.5, 10, "at any fraction"), (20, 10, "never"), (0.5, 0.2, "below")],
)
def test_a_crossover_without_a_fraction_is_said(ratio: float, speedup: float, words: str) -> None:
    w = Workload(gpu_speedup=speedup)
    assert words in fraction.crossover_picture(w, ratio).title


def test_a_ratio_of_nothing_is_refused() -> None:
    with pytest.raises(InputError):
        fraction.crossover_picture(Workload(), 0.0)


def test_the_limit_of_amdahl() -> None:
    assert fraction.speedup_limit(0.9) == pytest.approx(10)
    assert fraction.speedup_limit(1.0) is None
    assert fraction.speedup_curve(0.9)[1] == (2, pytest.approx(1 / 0.55))


def test_the_articles_retrograde_timings_are_explained_by_communication() -> None:
    # 14 h on 8 and 19 h on 32: (4 − 0.737)/(0.737 · 992 − 4 · 56) = 0.00643; peak at √(1/κ) = 12.
    reading = fraction.read_timings(Workload(timings=((8, 14), (32, 19))))
    assert reading is not None
    assert reading.amdahl.diagnosis == "retrograde"
    assert fraction.coherency_from_two(14, 8, 19, 32) == pytest.approx(0.00643, abs=1e-5)
    assert "about 12 machines" in reading.message
    law = dict(reading.points)
    assert law[8] / law[32] == pytest.approx(19 / 14)
    assert fraction.speedup_title(0.0, reading, True).startswith("Fastest on about 12")


def test_timings_that_nothing_explains_are_doubted() -> None:
    reading = fraction.read_timings(Workload(timings=((2, 0.01), (10_000, 10_000))))
    assert reading is not None
    assert not reading.fitted
    assert "look at the timings again" in reading.message


def test_two_timings_on_amdahls_law_give_the_fraction() -> None:
    # p = 0.9: T(1) = 1, T(10) = 0.19.
    reading = fraction.read_timings(Workload(timings=((1, 1), (10, 0.19))))
    assert reading is not None
    assert reading.amdahl.fraction == pytest.approx(0.9)
    assert dict(reading.points)[10] == pytest.approx(1 / 0.19)
    assert not reading.fitted


def test_three_timings_are_fitted() -> None:
    # Points of the law itself with σ = 0.05, κ = 0: X(n) = n/(1 + 0.05(n − 1)).
    points = tuple((n, (1 + 0.05 * (n - 1)) / n) for n in (1.0, 4.0, 16.0))
    reading = fraction.read_timings(Workload(timings=points))
    assert reading is not None
    assert reading.usl is not None
    assert reading.usl.sigma == pytest.approx(0.05, abs=0.005)
    assert reading.fitted


def test_one_size_says_nothing() -> None:
    assert fraction.read_timings(Workload(timings=((8, 14), (8, 15)))) is None


# --- question 4


def test_break_evens_are_the_ratio_of_the_rates() -> None:
    ways = [
        utilization.WayToPay("On demand", ((1.0, 4.0),), 4.0, False),
        utilization.WayToPay("Reserved 1 year", ((1.0, 3.0),), 3.0, True),
        utilization.WayToPay("Bought", ((1.0, 5.0),), 5.0, True),
    ]
    assert utilization.break_evens(ways) == [("Reserved 1 year", 0.75), ("Bought", None)]
    assert (
        utilization.cheapest_at(ways, 0.5)[0]
        == "At 50% of the hours renting on demand is the cheapest"
    )
    assert "reserving for a year" in utilization.cheapest_at(ways, 0.8)[0]


def test_the_cost_of_a_useful_hour_falls_as_one_over_the_use() -> None:
    answer = assess_point(example("13b-47-runs").workload, today=TODAY)
    for way in utilization.ways_to_pay(utilization.unit_of_interest(answer, TODAY)):
        factor = 2 if way.pays_idle else 1
        assert way.usd_per_useful_hour(0.5) == pytest.approx(way.usd_per_hour * factor)
        costs = dict(way.points)
        half = min(costs, key=lambda u: abs(u - 0.5))
        assert costs[half] == pytest.approx(way.usd_per_useful_hour(half))


def test_demand_has_the_variation_that_was_answered() -> None:
    # 7,300 machine-hours a month keep ten machines busy.
    months = utilization.demand_by_month(7300, 0.3)
    mean = sum(months) / 12
    spread = (sum((m - mean) ** 2 for m in months) / 12) ** 0.5
    assert mean == pytest.approx(10)
    assert spread / mean == pytest.approx(0.3, abs=1e-6)


def test_commitment_is_the_newsvendors_answer() -> None:
    answer = answer_to(kind=Kind.llm_finetuning, current="gpu", current_units=64,
                       useful_hours_per_month=500, monthly_variation=0.4)  # fmt: skip
    ways = [
        utilization.WayToPay("On demand", (), 4.0, False),
        utilization.WayToPay("Reserved 1 year", (), 2.0, True),
    ]
    plan = utilization.commitment(answer, ways, common.lead_stage(answer))
    assert plan is not None
    above = sum(m > plan.mix.base for m in plan.months) / 12
    assert above == pytest.approx(0.5, abs=0.1)  # P(D > q) = c/d
    assert plan.mix.usd_per_hour <= min(plan.mix.all_burst, plan.mix.all_committed)
    assert utilization.commitment(answer, ways[:1], common.lead_stage(answer)) is None


# --- the articles


def test_every_rule_at_a_question_exists_and_is_told_once() -> None:
    known = set(evidence.rules())
    answer = answer_to(kind=Kind.database, consistency=Consistency.strong)
    for question, ids in own.RULES_AT.items():
        assert set(ids) <= known
        applying, others = own.rules_at(question, answer)
        assert len(applying) + len(others) == len(ids)


@pytest.mark.parametrize("question", own.RULES_AT)
@pytest.mark.parametrize("name", ["fraud-detection", "13b-47-runs", "internal-dashboard"])
def test_the_articles_questions_are_answered_for_the_plan(question: str, name: str) -> None:
    told = own.own_answers(question, assess_point(example(name).workload, today=TODAY))
    assert set(told) <= {entry.id for entry in answers_for(question)}
    assert len(told) >= 3
    assert all(text.endswith(".") and not text.endswith("..") for text in told.values())


def test_all_twenty_four_answers_of_the_articles_have_their_place() -> None:
    assert len(all_answers()) == 24
    assert sum(len(answers_for(question)) for question in own.RULES_AT) == 24
