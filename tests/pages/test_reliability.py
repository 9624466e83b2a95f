"""The reliability page: figures for every kind, terms in the link, errors said."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.assess import assess
from engine.errors import InputError
from engine.estimate.run_reliability import outcome
from engine.explain.reliability import (
    best_watch,
    reliability,
    service_spares,
    spot_break_even,
    spot_words,
    watch_pct,
)
from engine.explain.reliability_curves import interval_curve, size_curve
from engine.explain.run_conditions import checks_of, conditions, known, run_plan
from engine.report.link import decode_settings, encode
from engine.workload.answers import Kind
from engine.workload.examples import EXAMPLES
from engine.workload.reliability_terms import ReliabilityTerms, Spot
from engine.workload.settings import Settings
from engine.workload.terms import parse_terms
from engine.workload.workload import DEFAULT, Workload

PAGE = "pages/reliability.py"
Open = Callable[..., AppTest]
TRAINING = Workload(kind=Kind.llm_pretraining, model_params_b=70, train_tokens_b=1400)

FULL: dict[str, Any] = {
    "devices": 1024,
    "run_days": 54.0,
    "like": "llama-3-405b",
    "failures_per_1000_node_days": 3.8,
    "stall_s": 12.0,
    "restart_min": 7.5,
    "interval_min": 20.0,
    "spares": 3,
    "repair_h": 36.0,
    "one_slower_pct": 2.0,
    "checks": True,
    "check_every_h": 8.0,
    "check_pct": 1.5,
    "sigmas": 4.0,
    "spot": "off",
    "reclaims_per_day": 0.4,
}


def ask(app: Open, workload: Workload = TRAINING, **terms: Any) -> AppTest:
    settings = Settings(reliability=parse_terms(ReliabilityTerms, terms))
    return app(PAGE, **encode(workload, settings))


def words(visit: AppTest) -> str:
    parts = [*visit.subheader, *visit.markdown, *visit.caption, *visit.info]
    return " ".join(part.value.replace("\\", "") for part in parts)


# --- the engine behind it


@pytest.fixture(scope="module")
def answer() -> Any:
    return assess(TRAINING, draws=0)


def test_every_term_travels_in_the_link() -> None:
    terms = parse_terms(ReliabilityTerms, FULL)
    assert set(FULL) == set(ReliabilityTerms.model_fields)
    for name in FULL:
        assert getattr(terms, name) != getattr(ReliabilityTerms(), name), name
    settings = Settings(reliability=terms)
    assert decode_settings(encode(DEFAULT, settings)) == (settings, [])


def test_llama_3_comes_out_of_its_own_terms(answer: Any) -> None:
    # 16,384 GPUs, 419 interruptions in 54 days of the calendar, over 90% effective time: 49 days of
    # it. Silent errors were found within the hour. Published time does not count the slowest.
    terms = ReliabilityTerms(
        devices=16_384, run_days=49, like="llama-3-405b", stall_s=10, restart_min=5, spares=16,
        spot=Spot.off, repair_h=24, checks=True, check_every_h=1, check_pct=0, sigmas=6,
    )  # fmt: skip
    found = reliability(answer, terms)
    assert found.plan.machines == 2048
    assert found.failures.likely == pytest.approx(419, rel=0.06)
    assert found.days.likely == pytest.approx(54, rel=0.04)
    slowest = next(x.share for x in found.losses if x.cause == "slowest machine")
    assert 0.90 < found.useful.likely + slowest < 0.95


def test_the_same_work_on_twice_the_gpus_takes_half_as_long(answer: Any) -> None:
    one = run_plan(answer, ReliabilityTerms(devices=128))
    two = run_plan(answer, ReliabilityTerms(devices=256))
    assert two.useful_hours == pytest.approx(one.useful_hours / 2)
    assert two.usd_per_device_hour == one.usd_per_device_hour


def test_what_the_plan_lost_already_is_not_lost_twice() -> None:
    """The plan's time has failures, checkpoints and the slowest machine in it, as told here."""
    answer = assess(TRAINING.model_copy(update={"deadline_days": 60}), draws=0)
    plan = run_plan(answer, ReliabilityTerms(spot=Spot.off))
    found = reliability(answer, ReliabilityTerms(spot=Spot.off))
    assert answer.best.acquisition != "spot"
    at_work = answer.best.time.likely
    assert plan.useful_hours < at_work
    assert found.days.likely * 24 == pytest.approx(at_work, rel=0.02)


def test_the_largest_published_run_comes_out(answer: Any) -> None:
    # Llama 3 405B: 419 stops, over 90% of 54 days effective. That counts neither the wait for the
    # slowest machine nor corruption that nobody saw, both told here.
    terms = ReliabilityTerms(devices=16_384, run_days=54, like="llama-3-405b", spot=Spot.off)
    found = reliability(answer, terms)
    # 16,384 x 54 x 24 / 50,677 hours, on a calendar longer by what is lost.
    assert found.mtbf.likely == pytest.approx(3.09, rel=0.01)
    assert found.stops.likely * 54 / found.days.likely == pytest.approx(419, rel=0.02)
    lost = {x.cause: x.share for x in found.losses}
    counted = lost["slowest machine"] + lost["silent corruption"]
    assert found.useful.likely / (1 - counted) == pytest.approx(0.9, abs=0.01)


def test_as_many_spares_stand_by_as_pay_unless_told(answer: Any) -> None:
    big = {"devices": 8192, "run_days": 30.0, "spot": "off"}
    usual = reliability(answer, parse_terms(ReliabilityTerms, big))
    none = reliability(answer, parse_terms(ReliabilityTerms, big | {"spares": 0}))
    assert usual.paid_usd.likely < none.paid_usd.likely
    told = next(c for c in usual.choices if c.title == "No hot spare")
    assert told.paid_usd == pytest.approx(none.paid_usd.likely)


def test_losses_and_useful_time_make_the_whole(answer: Any) -> None:
    for terms in (ReliabilityTerms(), parse_terms(ReliabilityTerms, FULL)):
        found = reliability(answer, terms)
        assert found.useful.likely + sum(x.share for x in found.losses) == pytest.approx(1)
        assert sum(x.usd for x in found.losses) == pytest.approx(found.lost_usd.likely)


def test_ways_to_guard_are_compared_with_the_run_as_set(answer: Any) -> None:
    found = reliability(answer, ReliabilityTerms(interval_min=600, spot=Spot.off, devices=1024))
    now, *others = found.choices
    assert now.now
    assert now.saves_usd == 0
    for choice in others:
        assert choice.saves_usd == pytest.approx(now.paid_usd - choice.paid_usd)
    best = next(c for c in others if c.title.startswith("Checkpoints every"))
    assert best.saves_usd > 0


def test_your_own_failure_rate_counts_before_all_others(answer: Any) -> None:
    # 10 failures per 1,000 machine-days of 8 GPUs: 19,200 GPU-hours each, on 128 GPUs 150 h.
    terms = ReliabilityTerms(failures_per_1000_node_days=10, like="meta-rsc-2", spot=Spot.off)
    found = reliability(answer, terms)
    assert found.mtbf.likely == pytest.approx(19_200 / found.plan.devices)
    assert found.mtbf.low == pytest.approx(found.mtbf.high)


def test_the_pictures_meet_the_figures(answer: Any) -> None:
    terms = ReliabilityTerms(spot=Spot.off)
    found = reliability(answer, terms)
    sizes, saving = size_curve(answer, terms), interval_curve(answer, terms)
    assert sizes.own == (found.plan.devices, pytest.approx(found.useful.likely * 100))
    assert max(y for _, y in saving.points) == pytest.approx(found.useful.likely * 100, abs=0.05)
    assert all(low <= y <= high for (_, y), (_, low, high) in
               zip(sizes.points, sizes.band, strict=True))  # fmt: skip
    best = next(v for v, text in saving.marks if text == "best")
    assert best == pytest.approx(found.best_interval.likely * 60)


def test_spot_pays_below_its_break_even_price(answer: Any) -> None:
    terms = ReliabilityTerms()
    share = spot_break_even(run_plan(answer, terms), terms)
    assert 0 < share < 1
    on = reliability(answer, ReliabilityTerms(spot=Spot.on))
    off = reliability(answer, ReliabilityTerms(spot=Spot.off))
    paid = [r.paid_usd.likely / r.plan.usd_per_device_hour for r in (on, off)]
    assert paid[0] * share == pytest.approx(paid[1], rel=1e-6)


def test_machines_that_are_not_on_spot_cost_the_ordinary_price(answer: Any) -> None:
    """A plan on spot turned off pays what the same hardware costs on demand, not the spot price."""
    on = run_plan(answer, ReliabilityTerms())
    off = run_plan(answer, ReliabilityTerms(spot=Spot.off))
    stage = answer.best.stages[0]
    asked = min(
        s.price.usd_per_unit_hour for o in answer.options for s in o.stages
        if s.sku == stage.sku and s.acquisition == "on_demand"
    )  # fmt: skip
    assert on.usd_per_device_hour == stage.price.usd_per_unit_hour < asked
    assert off.usd_per_device_hour == asked
    choice = next(c for c in reliability(answer, ReliabilityTerms()).choices
                  if c.title.startswith("On demand"))  # fmt: skip
    off_run = reliability(answer, ReliabilityTerms(spot=Spot.off))
    assert choice.paid_usd == pytest.approx(off_run.paid_usd.likely, rel=1e-6)


def test_dollars_at_another_price_than_asked_for_are_said(answer: Any) -> None:
    """Hardware that is not on offer on the other terms keeps the plan's price, with a note."""
    on = replace(answer, options=(answer.best,))
    off = reliability(on, ReliabilityTerms(spot=Spot.off))
    assert off.plan.usd_per_device_hour == run_plan(on, ReliabilityTerms()).usd_per_device_hour
    assert any("at the spot price" in note for note in off.notes)
    assert not reliability(answer, ReliabilityTerms(spot=Spot.off)).notes


def test_spot_words_compare_the_prices_at_hand(answer: Any) -> None:
    plan = run_plan(answer, ReliabilityTerms())
    cheap = replace(plan, spot_usd=4.0, ordinary_usd=8.0)
    dear = replace(plan, spot_usd=7.9, ordinary_usd=8.0)
    terms = ReliabilityTerms()
    assert spot_words(cheap, terms).endswith("50%: cheaper.")
    assert spot_words(dear, terms).endswith("99%: not cheaper.")
    swamped = ReliabilityTerms(reclaims_per_day=100, devices=1024)
    assert "at any price" in spot_words(run_plan(answer, swamped), swamped)


@pytest.mark.parametrize(
    "terms",
    [{"devices": 1024, "spot": "on", "reclaims_per_day": 100},
     {"devices": 16_384, "spot": "off", "stall_s": 86_400}],
)  # fmt: skip
def test_a_run_that_gets_nothing_done_is_said_in_words(
    app: Open, answer: Any, terms: dict[str, Any]
) -> None:
    """128 machines taken 100 times a day each; a stall of 24 h against a failure every 1.8 h."""
    found = reliability(answer, parse_terms(ReliabilityTerms, terms))
    assert not found.ends
    assert "practically nothing gets done" in found.sentence
    assert "over 100 years" in found.sentence
    visit = ask(app, **terms)
    assert not visit.exception
    shown = words(visit) + str([m.value for m in visit.metric]) + visit.table[0].value.to_string()
    assert "e+" not in shown
    assert "0.0%" not in shown.replace("100.0%", "")
    assert "without end" in shown


def test_what_is_most_lost_names_its_cure(answer: Any) -> None:
    spot = ReliabilityTerms(devices=256, spot=Spot.on, reclaims_per_day=10)
    assert "nobody takes back" in reliability(answer, spot).notes[0]
    stall = ReliabilityTerms(devices=16_384, spot=Spot.off, stall_s=7200)
    assert "quicker" in reliability(answer, stall).notes[0]


def test_an_interval_beyond_the_run_is_one_save_at_its_end(answer: Any) -> None:
    # One hour with one save of 30 s on 64 GPUs, whether every hour or every ten were set.
    base = {"devices": 64, "run_days": 1 / 24, "spot": "off"}
    ten = reliability(answer, parse_terms(ReliabilityTerms, base | {"interval_min": 600}))
    one = reliability(answer, parse_terms(ReliabilityTerms, base | {"interval_min": 60}))
    assert ten.interval == pytest.approx(1.0)
    assert ten.lost_usd.likely == pytest.approx(one.lost_usd.likely)
    curve = interval_curve(answer, parse_terms(ReliabilityTerms, base))
    best = max(share for _, share in curve.points)
    assert curve.points[-1][1] == pytest.approx(best)


def test_a_stall_of_nothing_is_taken(answer: Any) -> None:
    terms = ReliabilityTerms(devices=1024, spot=Spot.off, stall_s=0)
    found = reliability(answer, terms)
    assert found.interval == pytest.approx(0.0167)
    assert "checkpoints" not in {x.cause for x in found.losses}


def test_a_check_takes_as_long_however_often_it_comes(answer: Any) -> None:
    # 2% of 6 h is 7.2 min: 12% of one hour, 1% of twelve.
    assert watch_pct(ReliabilityTerms()) == pytest.approx(2.0)
    assert watch_pct(ReliabilityTerms(check_every_h=1)) == pytest.approx(12.0)
    assert watch_pct(ReliabilityTerms(check_every_h=12)) == pytest.approx(1.0)
    assert watch_pct(ReliabilityTerms(check_every_h=12, check_pct=5)) == pytest.approx(5.0)


def test_the_watch_that_loses_least_counts_its_false_alarms(answer: Any) -> None:
    # 2,048 machines, 0.007 errors per 1,000 machine-days: 5.97e-4 an hour. A check of 0.12 h alone:
    # √(0.12/5.97e-4) = 14.2 h. At 3 deviations 2,048 x 0.0027 = 5.5 false alarms of 0.25 h a check
    # cost 1.38 h more than the check. One alarm in the 105,500 tests a month is 4.43 deviations.
    terms = ReliabilityTerms(devices=16_384, run_days=49, spot=Spot.off)
    plan = run_plan(answer, terms)
    run = conditions(plan, terms, known(plan, terms))
    found = best_watch(run, checks_of(terms, 0.25))
    assert found is not None
    assert found.every == pytest.approx(14.4, abs=0.3)
    assert found.sigmas == pytest.approx(4.43, abs=0.02)
    others = [replace(run, checks=replace(found, every=e, share=0.12 / e)) for e in (7, 12, 18, 30)]
    least = float(outcome(replace(run, checks=found)).paid_hours)
    assert least < min(float(outcome(o).paid_hours) for o in others)
    # It saves here: 4.3% thrown away without against 0.9% of checks and 0.9% done again.
    assert least < float(outcome(run).paid_hours)


def test_the_article_s_validation_is_told_alike_in_table_and_words(answer: Any) -> None:
    found = reliability(answer, ReliabilityTerms(devices=16_384, run_days=49, spot=Spot.off))
    row = next(c for c in found.choices if c.title == "Validation every 6 h, 3 deviations")
    said = next(s for s in found.sayings if s.claims == "C068, C070").here
    assert f"{row.useful:.1%}" in said


def test_published_runs_lie_in_the_stated_range(answer: Any) -> None:
    """Counts of interruptions from the usual range, with no fleet named, so nothing is circular.

    Llama 3: 419 in 54 days on 16,384 GPUs. Imbue: 15.3 a week on 4,088. Crusoe: 205 in 122 days on
    1,600. BLOOM: 1 to 2 GPU failures a week on 384. StepFun: 481 in 348 days on 3,200. OPT-175B:
    105 in 60 days on 992, the worst of all, is where the range ends.
    """
    for gpus, days, counted in ((16_384, 54, 419), (4088, 7, 15.3), (1600, 122, 205),
                                (384, 7, 1.5), (3200, 348, 481), (992, 60, 105)):  # fmt: skip
        terms = ReliabilityTerms(devices=gpus, run_days=days, spot=Spot.off)
        found = reliability(answer, terms)
        a_day = [found.stops.low, found.stops.high]
        low, high = (n * days / found.days.likely for n in a_day)
        assert low <= counted <= high * 1.05, (gpus, low, high)


def test_llama_3_s_effective_time_is_in_the_range_of_what_it_counts(answer: Any) -> None:
    # MTBF 3.093 h, a stall of 0.0083 h, back after 0.083 h: √(2 x 0.0083 x 3.093) = 0.2266 less
    # 0.0055 is 0.221 h. 3.093 (e^(0.2293/3.093) − 1)/0.221 = 1.0774 with saves and work done again,
    # x e^(0.083/3.093) = 1.1067 with restarts, x 1.0015 with three spares: 1/1.1083 = 0.902.
    terms = ReliabilityTerms(devices=16_384, run_days=49, like="llama-3-405b", spot=Spot.off)
    same = reliability(answer, terms).comparable
    assert same.likely == pytest.approx(0.902, abs=0.001)
    assert same.likely > 0.90
    assert same.low < same.likely < same.high < 0.95


def test_the_size_below_which_90_percent_is_useful_is_read_between_points(answer: Any) -> None:
    terms = ReliabilityTerms(spot=Spot.off)
    found = re.search(r"below 90% from about ([\d,]+) GPUs", size_curve(answer, terms).message)
    assert found is not None
    at = int(found[1].replace(",", ""))
    # A cluster of that size has about 90%: the digits shown are two.
    plan = reliability(answer, ReliabilityTerms(devices=at, spot=Spot.off))
    assert plan.useful.likely == pytest.approx(0.90, abs=0.004)


def test_machines_out_of_step_lose_their_own_task_only() -> None:
    answer = assess(Workload(kind=Kind.rendering), draws=0)
    few = reliability(answer, ReliabilityTerms(devices=8, spot=Spot.off))
    many = reliability(answer, ReliabilityTerms(devices=800, spot=Spot.off))
    assert many.useful.likely == pytest.approx(few.useful.likely)
    # The same work in all: as many failures on a hundred times as many for a hundredth as long.
    assert many.failures.likely == pytest.approx(few.failures.likely, rel=1e-3)
    assert "not work in step" in many.notes[0]


def test_a_run_shorter_than_the_best_interval_saves_at_its_end() -> None:
    answer = assess(Workload(kind=Kind.lora), draws=0)
    short = ReliabilityTerms(run_days=0.02, spot=Spot.off)
    found = reliability(answer, short)
    assert found.interval == pytest.approx(0.02 * 24)
    # One stall for the whole run: 30 s of 1,728 s.
    saving = next(x.share for x in found.losses if x.cause == "checkpoints")
    assert saving == pytest.approx(30 / (1728 + 30), rel=0.05)
    assert "no save" in interval_curve(answer, short).title


def test_stops_are_failures_and_interruptions(answer: Any) -> None:
    found = reliability(answer, ReliabilityTerms(spot=Spot.on))
    assert found.stops.likely == pytest.approx(found.failures.likely + found.reclaims.likely)
    assert found.stops.low <= found.stops.likely <= found.stops.high


def test_spare_machines_of_a_service_by_hand() -> None:
    answer = assess(Workload(kind=Kind.web), draws=0)
    terms = ReliabilityTerms(devices=2, repair_h=10, restart_min=0)
    plan = run_plan(answer, terms)
    found = known(plan, terms)
    none, one, *_ = service_spares(plan, found)
    # Up: 40,000 h against half of the failures away for 10 h: 1 − 5/40,005 = 0.999875.
    up = 40_000 / 40_005
    assert none.up == pytest.approx(up**2)
    assert one.up == pytest.approx(up**3 + 3 * up**2 * (1 - up))


def test_an_unknown_fleet_is_said_with_those_that_are_known(answer: Any) -> None:
    with pytest.raises(InputError, match="llama-3-405b"):
        reliability(answer, ReliabilityTerms(like="nobody"))


# --- the page


@pytest.mark.parametrize("kind", Kind)
def test_the_page_opens_for_every_kind(app: Open, kind: Kind) -> None:
    visit = ask(app, Workload(kind=kind))
    assert visit.title[0].value == "Reliability"
    assert not visit.error


def test_pictures_have_words_that_stand_in_for_them(app: Open) -> None:
    charts = ask(app).get("vega_lite_chart")
    assert len(charts) == 4
    assert all(len(chart.proto.alt) > 40 for chart in charts)


def test_a_term_reaches_the_link_and_changes_the_figures(app: Open) -> None:
    visit = ask(app, spot="off")
    before = visit.metric[2].value
    visit.number_input(key="t_reliability_devices").set_value(4096).run()
    assert not visit.exception
    settings, notes = decode_settings(dict(visit.query_params))
    assert (settings.reliability.devices, notes) == (4096, [])
    assert visit.metric[2].value != before
    assert "4,096 GPUs" in words(visit)


def test_what_cannot_be_used_stays_with_the_reason(app: Open) -> None:
    visit = ask(app)
    visit.number_input(key="t_reliability_interval_min").set_value(-5.0).run()
    assert any("Minutes between checkpoints" in e.value for e in visit.error)
    assert visit.number_input(key="t_reliability_interval_min").value == -5.0


def test_validation_opens_its_own_terms(app: Open) -> None:
    visit = ask(app, checks=True)
    assert visit.number_input(key="t_reliability_sigmas").value == 3.0
    assert "No validation" in str(visit.table[0].value)


def test_a_link_with_an_unknown_fleet_says_so_and_can_be_mended(app: Open) -> None:
    visit = ask(app, like="nobody")
    assert "nobody" in visit.error[0].value
    visit.selectbox(key="t_reliability_like").set_value("bloom").run()
    assert not visit.exception
    assert not visit.error


def test_the_articles_stand_beside_what_is_computed(app: Open) -> None:
    said = words(ask(app))
    for claim in ("C295", "C070", "C069", "C164", "C199", "C313"):
        assert claim in said


def test_hours_on_spot_are_hours_of_work_and_the_calendar_is_the_recommendation_s() -> None:
    """8 B200 work 13.5 hours at 5 billion tokens, on demand as on spot.

    On spot the recommendation's calendar has the times without machines in it (machines are had
    three quarters of the time: 13.5/0.75 = 18 h); this page's work has not, and its calendar has.
    """
    answer = assess(EXAMPLES["client-40-to-85"].workload, today=date(2026, 12, 1), draws=64)
    assert answer.best.acquisition == "spot"
    stage = answer.best.stages[0]
    same = next(
        o for o in answer.options
        if o.acquisition == "on_demand" and (o.stages[0].sku, o.units) == (stage.sku, stage.units)
    )  # fmt: skip
    plan = run_plan(answer, ReliabilityTerms())
    assert plan.useful_hours == pytest.approx(same.time.likely, rel=0.005)
    found = reliability(answer, ReliabilityTerms())
    assert found.days.likely * 24 == pytest.approx(answer.best.time.likely, rel=0.03)
