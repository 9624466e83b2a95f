"""The page on compute jobs and small models: every kind opens, terms travel, figures agree."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.decide.candidates import Spec
from engine.decide.context import setting
from engine.decide.evaluate import evaluate
from engine.decide.priors import prior
from engine.errors import InputError
from engine.explain.jobs import figures_for, is_compute, job_report
from engine.explain.jobs_models import is_small_model, model_report
from engine.report.link import decode_settings, encode
from engine.report.plan_jobs import job_document
from engine.wording import money, number
from engine.workload.answers import Current, Kind, ModelClass, Precision, Rewrite
from engine.workload.jobs_terms import FIELD_LABELS, JobField, JobsTerms
from engine.workload.settings import USUAL, Settings
from engine.workload.terms import parse_terms
from engine.workload.workload import DEFAULT, Workload, parse

PAGE = "pages/jobs_plan.py"
Open = Callable[..., AppTest]
SIMULATION = Workload(kind=Kind.simulation, hours_per_run=10, runs_per_month=40)
NET = Workload(
    kind=Kind.online_inference, model_class=ModelClass.neural, rate_per_s=100, latency_ms=100
)

FULL: dict[str, Any] = {
    "field": "cfd",
    "copied_gb": 40.0,
    "read_gb": 900.0,
    "feed_gb_per_s": 3.0,
    "licence_covers_gpus": False,
    "gpu_fee_usd_per_month": 500.0,
    "like": "resnet-50",
    "size": 2.5,
    "hold_ms": 3.0,
    "burst": 4.0,
}


def under(**terms: Any) -> Settings:
    return Settings(jobs=parse_terms(JobsTerms, terms))


def ask(app: Open, workload: Workload, **terms: Any) -> AppTest:
    return app(PAGE, **encode(workload, under(**terms)))


def words(visit: AppTest) -> str:
    parts = [*visit.subheader, *visit.markdown, *visit.caption, *visit.info, *visit.error]
    return " ".join(part.value.replace("\\", "") for part in parts)


def net(**answers: Any) -> Workload:
    return NET.model_copy(update=answers)


# --- the engine behind it


def test_every_term_travels_in_the_link() -> None:
    terms = parse_terms(JobsTerms, FULL)
    assert set(FULL) == set(JobsTerms.model_fields)
    for name in FULL:
        assert getattr(terms, name) != getattr(JobsTerms(), name), name
    settings = Settings(jobs=terms)
    assert decode_settings(encode(DEFAULT, settings)) == (settings, [])


def test_every_field_has_a_name_and_figures() -> None:
    assert set(FIELD_LABELS) == set(JobField)
    for field in JobField:
        assert figures_for(SIMULATION, JobsTerms(field=field)), field


def test_the_verdict_agrees_with_the_picture() -> None:
    # At the likely speed-up the curve costs what the headline says, on the side that it says.
    for workload in (SIMULATION, Workload(kind=Kind.etl), Workload(kind=Kind.rl)):
        report = job_report(workload)
        assert report.gpu is not None
        assert report.curve is not None
        likely = report.curve.likely
        near = min(report.curve.gpu, key=lambda point: abs(point[0] - likely))
        assert near[1] == pytest.approx(report.gpu.usd_per_run.likely, rel=0.05)
        assert report.curve.cpu_usd == report.cpu.usd_per_run.likely
        cheaper = report.gpu.usd_per_run.likely < report.cpu.usd_per_run.likely
        assert (
            report.headline.startswith("GPUs" if cheaper else "CPU") or "Close" in report.headline
        )
        if report.curve.break_even is not None:
            assert (report.curve.likely >= report.curve.break_even) == cheaper


def test_a_run_costs_its_hours_units_and_price() -> None:
    report = job_report(SIMULATION, under(gpu_fee_usd_per_month=400.0))
    assert report.gpu is not None
    for option in report.options:
        # A server starts in 0.017 h before each run, a machine with GPUs in 0.067 h.
        start_h = 0.067 if option.hardware == "gpu" else 0.017
        paid_h = option.hours.likely + start_h
        hardware = paid_h * option.units * option.usd_per_unit_hour
        fee = 400.0 / 40.0 if option.hardware == "gpu" else 0.0
        assert option.usd_per_run.likely == pytest.approx(hardware + fee)
        assert option.usd_per_month.likely == pytest.approx(40 * (hardware + fee))
        assert option.units == option.machines * option.per_machine


def test_a_rewrite_is_paid_back_against_the_bill_that_was_told() -> None:
    told = SIMULATION.model_copy(
        update={
            "current": Current.cpu,
            "current_usd_per_month": 90_000.0,
            "rewrite": Rewrite.possible,
            "gpu_speedup": 30.0,
        }
    )
    report = job_report(told)
    assert report.gpu is not None
    saved = 90_000.0 - report.gpu.usd_per_month.likely
    # kinds.csv: 8 engineer-months; decision_parameters.csv: 18,333 a month.
    assert f"{money(saved)} saved a month against the $90,000 a month paid today" in report.rewrite
    assert f"paid back {number(8 * 18_333 / saved)} months" in report.rewrite


@pytest.mark.parametrize(
    "change",
    [
        {"working_set_gb": 500.0, "working_set_shardable": False},
        {"precision": Precision.fp64},
        {"rewrite": Rewrite.impossible},
    ],
    ids=lambda change: next(iter(change)),
)
def test_page_and_decision_bar_the_same_hardware(change: dict[str, Any]) -> None:
    w = SIMULATION.model_copy(update=change)
    shown = {name for name, _ in job_report(w).ruled_out}
    offered = setting(w, None, date.today(), USUAL)
    x = offered.context.inputs.point()
    for unit in (*offered.gpus, *offered.cpus):
        gpu = unit.hardware == "gpu"
        spec = Spec(
            "gpu" if gpu else "cpu", (unit.hardware,), unit if gpu else None,
            None if gpu else unit, "on_demand",
        )  # fmt: skip
        if "on_demand" not in unit.prices:
            continue
        fields = {v.field for mask, v in evaluate(spec, x, offered.context, {}).vetoes if mask[0]}
        assert bool(fields & {"working_set_gb", "precision", "rewrite"}) == (unit.name in shown)


def test_what_no_server_holds_is_refused_with_the_largest() -> None:
    w = SIMULATION.model_copy(update={"working_set_gb": 9e6, "working_set_shardable": False})
    with pytest.raises(InputError, match="can't be split, and the largest server on offer"):
        job_report(w)


def test_why_no_gpu_holds_it_is_told_of_the_largest_gpu() -> None:
    # 3,000 GB that can't be split: no GPU holds them; the largest on offer has far less.
    w = parse({"kind": "simulation", "working_set_gb": 3000, "working_set_shardable": False})
    report = job_report(w)
    largest = max(setting(w, None, date.today(), USUAL).gpus, key=lambda u: u.memory_gb)
    (why,) = report.no_gpu
    assert f"{largest.name} has {largest.memory_gb:,.0f} GB" in why
    assert why in report.headline
    assert why in str(job_document(report, w, USUAL, date.today()).sections)


def test_own_speedup_is_taken_as_told() -> None:
    report = job_report(SIMULATION.model_copy(update={"gpu_speedup": 5.0}))
    assert report.speedup.likely == 5.0
    assert report.speedup.low < 5.0 < report.speedup.high
    assert report.speedup_said == "as you measured it"


def test_slow_storage_decides_for_both_alike() -> None:
    # 100 TB at 1 GB/s a machine: 27.8 h over the machines, whatever computes.
    report = job_report(SIMULATION, under(read_gb=100_000.0, feed_gb_per_s=1.0))
    for option in (report.gpu, report.cpu):
        assert option is not None
        assert option.hours.likely * option.machines >= 100_000 / 3600 * 0.999


def test_what_rules_gpus_out_is_said() -> None:
    closed = job_report(SIMULATION, under(licence_covers_gpus=False))
    assert closed.gpu is None
    assert "licence" in closed.headline
    stuck = job_report(SIMULATION.model_copy(update={"rewrite": Rewrite.impossible}))
    assert stuck.gpu is None
    double = job_report(SIMULATION.model_copy(update={"precision": Precision.fp64}))
    assert any("double precision" in why.reason for _, why in double.ruled_out)
    assert double.gpu is not None
    assert double.gpu.name not in {name for name, _ in double.ruled_out}


def test_the_cheapest_machines_stand_first() -> None:
    report = model_report(NET)
    assert report.gpu is not None
    assert report.cpu is not None
    assert report.peak_per_s == pytest.approx(
        report.mean_per_s * 3.0
    )  # the planning value of the peak
    costs = [option.usd_per_month.likely for option in report.options]
    assert costs == sorted(costs)
    for option in report.options:
        # The machines without the spare ones carry the peak, and one fewer would not.
        need = report.peak_per_s / option.capacity_per_s.likely
        assert option.machines >= need * 0.999
        assert option.floor_ms < report.target_ms


def test_half_the_work_is_twice_the_capacity() -> None:
    whole, half = model_report(net(latency_ms=1000)), model_report(net(latency_ms=1000),
                                                                   under(size=0.5))  # fmt: skip
    both = {o.sku + str(o.per_machine): o for o in whole.options}
    for option in half.options:
        other = both[option.sku + str(option.per_machine)]
        if option.hardware == "gpu":
            ratio = option.capacity_per_s.likely / other.capacity_per_s.likely
            assert ratio == pytest.approx(2.0, rel=0.1)


def test_a_target_below_every_floor_names_the_floor() -> None:
    report = model_report(net(latency_ms=0.3))
    assert report.gpu is None
    assert report.cpu is None
    best = min(r.floor_ms for r in report.refused)
    assert best > 0.3
    assert f"{best:.2g} ms" in report.headline


def test_no_requests_cost_nothing() -> None:
    report = model_report(net(rate_per_s=0))
    assert "nothing needs to run" in report.headline
    assert {o.usd_per_month.likely for o in report.options} == {0.0}
    assert {o.machines for o in report.options} == {0}


def test_a_run_of_items_pays_for_its_hours() -> None:
    job = Workload(
        kind=Kind.batch_inference, model_class=ModelClass.neural, items_per_run=1e9,
        runs_per_month=2,
    )  # fmt: skip
    report = model_report(job)
    assert report.gpu is not None
    # 2e9 items a month at the cost of a million, and what machines side by side lose to one
    # another: 0.05% for each further one (kinds.csv, contention of batch inference).
    more = 1 + 0.0005 * (report.gpu.machines * report.gpu.per_machine - 1)
    # Before each of two runs the machines start in 0.067 h (decision_parameters.csv).
    starts = 2 * 0.067 * report.gpu.machines * report.gpu.usd_per_machine_hour
    assert report.gpu.usd_per_month.likely == pytest.approx(
        2000 * report.gpu.usd_per_million * more + starts
    )
    assert report.costs is None
    assert report.responses == ()


@pytest.mark.parametrize(
    "answers",
    [
        {"useful_hours_per_month": 0},
        {"utilization_by": "runs", "runs_per_month": 0},
        {"utilization_by": "runs", "runs_per_month": 0, "hours_per_run": 10},
        {"utilization_by": "schedule", "hours_per_day": 0, "days_per_week": 5},
    ],
)
def test_no_use_is_told_and_one_run_a_month_shown(answers: dict[str, Any]) -> None:
    report = job_report(
        parse({"kind": "simulation", **answers}), under(gpu_fee_usd_per_month=900.0)
    )
    assert report.headline.startswith("Nothing runs, so nothing needs renting or buying. ")
    note = "Nothing runs, so nothing needs renting or buying; shown is one run a month."
    assert report.about[0] == note
    for option in report.options:
        assert option.usd_per_month.likely == pytest.approx(option.usd_per_run.likely)
    assert report.rewrite == ""
    assert not [n for n in report.notes if "start" in n]
    # A run is ten hours of one server as told, with the licence of the month on GPUs; else the
    # usual one: its hours of a month (kinds.csv) by its runs.
    told = answers.get("hours_per_run")
    ranges = dict(report.inputs)
    assert ranges["runs_per_month"].likely == 1
    usual = prior(Kind.simulation, "useful_hours_per_month").likely
    each = usual / prior(Kind.simulation, "runs_per_month").likely
    assert ranges["useful_hours_per_month"].likely == pytest.approx(told or each)
    if told:
        same = {"hours_per_run": told, "runs_per_month": 1, "utilization_by": "runs"}
        other = job_report(parse({"kind": "simulation", **same}), under(gpu_fee_usd_per_month=900))
        assert report.gpu is not None
        assert other.gpu is not None
        assert report.gpu.usd_per_run.likely == pytest.approx(other.gpu.usd_per_run.likely)
        assert report.cpu.hours.likely == pytest.approx(other.cpu.hours.likely)


def test_a_deadline_that_todays_servers_keep_is_kept() -> None:
    # Half of 90% of the time does not divide: 16.8 h on one server are 10 h on the four of today,
    # 7.6 h of them serial. More than 7.6 · 17/16 h can be kept with more servers.
    today = {"kind": "simulation", "parallel_fraction": 0.5, "current": "cpu", "current_units": 4,
             "utilization_by": "runs", "hours_per_run": 10, "runs_per_month": 20}  # fmt: skip
    firm = job_report(parse({**today, "deadline_days": 10.1 / 24}))
    assert not firm.cpu.late
    assert firm.cpu.hours.likely <= 10.1
    wish = job_report(parse(today))
    assert wish.cpu.late
    assert wish.cpu.usd_per_run.likely < firm.cpu.usd_per_run.likely
    assert "GPUs, where a run may take 10 h at most" in wish.headline
    assert any("give a deadline where it must be quicker" in n for n in wish.notes)
    never = job_report(parse({**today, "deadline_days": 7 / 24}))
    assert never.cpu.late
    assert any("no number of them finishes in time" in n for n in never.notes)


def test_starts_of_machines_are_told_once_for_those_that_win() -> None:
    # 700 runs of 6 minutes on one server: about as long as machines take to start.
    job = parse({"kind": "simulation", "hours_per_run": 0.1, "runs_per_month": 700,
                 "utilization_by": "runs"})  # fmt: skip
    report = job_report(job)
    (note,) = [n for n in report.notes if "start" in n]
    assert report.gpu is not None
    first = min((report.gpu, report.cpu), key=lambda o: o.usd_per_run.likely)
    assert first.name in note
    assert note.count("700") == 1


def test_unknown_model_and_other_work_are_refused() -> None:
    with pytest.raises(InputError, match="no-such"):
        model_report(NET, under(like="no-such"))
    with pytest.raises(InputError):
        model_report(SIMULATION)
    with pytest.raises(InputError):
        job_report(NET)


# --- the page


@pytest.mark.parametrize("kind", list(Kind))
def test_it_opens_for_every_kind(app: Open, kind: Kind) -> None:
    workload = Workload(kind=kind)
    visit = ask(app, workload)
    assert not visit.exception
    assert not visit.error
    own = is_compute(workload) or is_small_model(workload)
    assert ("page of its own" in words(visit)) != own


def test_the_headline_stands_on_the_page(app: Open) -> None:
    visit = ask(app, SIMULATION, field="cfd")
    assert not visit.exception
    report = job_report(SIMULATION, under(field="cfd"))
    assert report.headline in words(visit)
    assert "fluid dynamics" in words(visit)
    tiles = {metric.label: metric.value for metric in visit.metric}
    assert set(tiles) == {"A run, GPU", "A run, CPU", "Speed-up", "GPU the cheaper"}


def test_a_licence_without_gpus_is_said(app: Open) -> None:
    visit = ask(app, SIMULATION, licence_covers_gpus=False)
    assert not visit.exception
    assert "no GPU can run this, the software's licence does not cover GPUs" in words(visit)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"rate_per_s": 0}, "nothing needs to run"),
        ({"latency_ms": 0.3}, "Nothing answers within 0.3 ms"),
        ({"model_class": ModelClass.trees}, "no rate of a GPU was published"),
        ({"rate_per_s": 1e7}, "a month"),
    ],
)
def test_plain_answers_at_the_edges(app: Open, answers: dict[str, Any], said: str) -> None:
    visit = ask(app, net(**answers))
    assert not visit.exception
    assert said in words(visit)


def test_an_unknown_model_is_said_and_can_be_changed(app: Open) -> None:
    visit = ask(app, NET, like="no-such")
    assert not visit.exception
    assert visit.error
    assert "no-such" in words(visit)
    assert USUAL.jobs.like == ""


def test_what_the_page_is_about_stands_before_what_to_mind(app: Open) -> None:
    visit = ask(app, SIMULATION.model_copy(update={"location": "in_house", "runs_per_month": 0.0}))
    told = " ".join(info.value for info in visit.info)
    assert "Nothing runs, so nothing needs renting or buying" in told
    assert "The data must stay in your own rooms, so nothing is rented" in told
