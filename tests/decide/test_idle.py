"""No runs and no hours: every answer says that nothing runs, and shows one run a month."""

from __future__ import annotations

from typing import Any

import pytest

from engine.assess import assess
from engine.decide.idle import headed, idle_note, nothing_to_do
from engine.explain.services_pipeline import plan
from engine.explain.services_report import services_report
from engine.workload.answers import Kind
from engine.workload.services_terms import ServicesTerms
from engine.workload.settings import USUAL, Settings
from engine.workload.workload import SERVICES, Workload, parse

NOTE = "Nothing runs, so nothing needs renting or buying; shown is one run a month."
BATCH = sorted(set(Kind) - SERVICES - {Kind.llm_pretraining, Kind.pipeline})


def job(**answers: Any) -> Workload:
    return parse({"kind": "simulation", **answers})


@pytest.mark.parametrize(
    ("answers", "idle"),
    [
        ({}, False),
        ({"useful_hours_per_month": 0}, True),
        ({"runs_per_month": 0}, True),
        ({"runs_per_month": 0, "hours_per_run": 10}, True),
        ({"utilization_by": "runs", "runs_per_month": 5, "hours_per_run": 0}, True),
        ({"utilization_by": "schedule", "hours_per_day": 0, "days_per_week": 5}, True),
        ({"runs_per_month": 0, "useful_hours_per_month": 100}, False),
        ({"kind": "llm_pretraining", "runs_per_month": 0, "useful_hours_per_month": 100}, True),
        ({"useful_hours_per_month": 0.01}, False),
        ({"kind": "web", "runs_per_month": 0}, False),
        ({"kind": "web", "useful_hours_per_month": 0}, True),
    ],
)
def test_what_counts_as_nothing_to_do(answers: dict[str, Any], idle: bool) -> None:
    w = job(**answers)
    assert nothing_to_do(w) == idle
    assert bool(idle_note(w)) == idle
    assert (headed(w, "Rent it.") != "Rent it.") == idle


@pytest.mark.parametrize("kind", BATCH)
@pytest.mark.parametrize("field", ["runs_per_month", "useful_hours_per_month"])
def test_every_kind_of_run_opens_with_the_words(kind: Kind, field: str) -> None:
    answer = assess(Workload(kind=kind).model_copy(update={field: 0.0}), draws=0)
    head = "Nothing runs, so nothing needs renting or buying. For one run a month: "
    assert answer.sentence.startswith(head)
    assert answer.warnings[0] == NOTE
    assert {a.field: a.estimate.likely for a in answer.assumptions}["runs_per_month"] == 1


def test_no_runs_cost_what_one_run_a_month_does() -> None:
    # Ten hours of one server, none a month: the answer of one such run, no "180 ms" and no
    # "41,000 times as fast".
    told = {"utilization_by": "runs", "hours_per_run": 10}
    none, one = (assess(job(**told, runs_per_month=n), draws=0) for n in (0, 1))
    costs = {o.id: o.usd_per_month.likely for o in one.options}
    for option in none.options:
        assert option.usd_per_month.likely == pytest.approx(costs[option.id])
    assert none.best.time.likely == one.best.time.likely
    # Today it takes 10 h: so much faster can no server be.
    assert none.best.time.likely > 10 / 50
    # By hand on demand: the hours of the run, those of the start, the units and their price.
    for option in none.options:
        (stage,) = option.stages
        if option.acquisition == "on_demand" and stage.price is not None and not option.vetoes:
            start = 0.067 if stage.hardware == "gpu" else 0.017
            hour = option.usd_per_month.likely / (option.time.likely + start) / stage.units
            assert hour == pytest.approx(stage.price.usd_per_unit_hour, rel=1e-6)


def test_a_service_of_no_hours_is_shown_around_the_clock() -> None:
    none = assess(job(kind="web", useful_hours_per_month=0), draws=0)
    usual = assess(job(kind="web"), draws=0)
    assert none.best.usd_per_month.likely == usual.best.usd_per_month.likely
    assert "around the clock" in none.warnings[0]


def test_own_stages_of_no_runs_are_priced_as_one_run() -> None:
    # Not as the 8 runs that a pipeline usually has.
    terms = ServicesTerms(
        stage_names="Load;Train", stage_hours=(40.0, 200.0), stage_speedups=(1.0, 30.0),
        stage_fractions_pct=(100.0, 99.0), stage_gb=(500.0, 0.0),
    )  # fmt: skip
    settings = Settings(architecture=terms)
    none, one = (
        assess(job(kind="pipeline", runs_per_month=n), settings=settings, draws=0) for n in (0, 1)
    )
    assert plan(none).runs == 1
    a, b = plan(none).best, plan(one).best
    assert a is not None
    assert b is not None
    assert a.usd == pytest.approx(b.usd)
    told = "No runs, so no stage needs machines but what serves; shown is one run a month."
    assert services_report(none).notes[0] == told
    assert none.warnings[0] == told


def test_those_who_run_are_told_nothing() -> None:
    answer = assess(job(runs_per_month=3), settings=USUAL, draws=0)
    assert not any("Nothing runs" in w for w in (*answer.warnings, answer.sentence))
