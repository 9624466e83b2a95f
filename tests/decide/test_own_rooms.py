"""Data that must stay in own rooms: no page rents, and all say the recommendation's owned costs."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest

from engine.assess import assess
from engine.catalogue import load_catalogue
from engine.decide.candidates import Unit
from engine.decide.context import setting
from engine.explain.jobs import job_report
from engine.explain.jobs_models import model_report
from engine.explain.jobs_owning import NOTE, OWNED, elsewhere
from engine.explain.plan_tables import job_csv
from engine.explain.services_pipeline import plan
from engine.explain.services_report import services_report
from engine.report.plan_jobs import job_document
from engine.workload.answers import Kind, Location, ModelClass
from engine.workload.services_terms import ServicesTerms
from engine.workload.settings import USUAL, Settings
from engine.workload.workload import HOURS_PER_MONTH, Workload

HERE: dict[str, Any] = {"location": Location.in_house}
SIMULATION = Workload(kind=Kind.simulation, hours_per_run=10, runs_per_month=40, **HERE)
NET = Workload(
    kind=Kind.online_inference, model_class=ModelClass.neural, rate_per_s=2000, latency_ms=100,
    **HERE,
)  # fmt: skip
STAGES = Settings(
    architecture=ServicesTerms(
        stage_names="Load;Train", stage_hours=(40.0, 200.0), stage_speedups=(1.0, 30.0),
        stage_fractions_pct=(100.0, 99.0), stage_gb=(500.0, 0.0),
    )
)  # fmt: skip


def unit_of(w: Workload, sku: str, per_machine: int) -> Unit:
    place = setting(w, load_catalogue(), date.today(), USUAL)
    return next(
        u for u in (*place.gpus, *place.cpus) if (u.sku, u.per_machine) == (sku, per_machine)
    )


def test_a_compute_job_costs_what_owning_its_machines_does() -> None:
    report = job_report(SIMULATION)
    assert NOTE in report.about
    for option in report.options:
        unit = unit_of(SIMULATION, option.sku, option.per_machine)
        owner = unit.prices["buy"].owner
        assert owner is not None
        # Whole machines for the horizon, working 40 runs a month: the cost engine's own sum.
        machines = int(np.ceil(option.units / owner.units_per_machine))
        month = owner.usd_per_month(machines, 40 * option.hours.likely)
        assert option.usd_per_month.likely == pytest.approx(month, rel=1e-6)
        assert option.usd_per_run.likely == pytest.approx(month / 40, rel=1e-6)
        assert option.usd_per_unit_hour == pytest.approx(month / option.units / HOURS_PER_MONTH)
        assert option.owned
        assert option.price is None
        assert option.starting_usd_per_run == 0


def test_job_and_recommendation_say_the_same_sum() -> None:
    options = {(o.name, o.units): o.usd_per_month.likely for o in job_report(SIMULATION).options}
    found = 0
    for option in assess(SIMULATION, draws=0).options:
        (stage,) = option.stages
        same = options.get((stage.name, stage.units)) if option.acquisition == "buy" else None
        if same is not None:
            assert option.usd_per_month.likely == pytest.approx(same, rel=1e-6)
            found += 1
    assert found >= 3


def test_what_is_not_bought_is_ruled_out_with_the_reason() -> None:
    why = dict(job_report(SIMULATION).ruled_out)
    small = [c.reason for n, c in why.items() if "OCI VM.Standard.A2.Flex 8" in n]
    assert small == ["servers as small are not bought, and the data must stay in your own rooms"]


def test_documents_of_jobs_name_no_rent() -> None:
    report = job_report(SIMULATION)
    document = job_document(report, SIMULATION, USUAL, date.today())
    assert {p.terms for p in document.prices} == {"owned"}
    told = elsewhere(SIMULATION)
    assert "On-demand" not in told
    assert OWNED in told
    text = job_csv(report).decode() if isinstance(job_csv(report), bytes) else job_csv(report)
    assert "your quote" not in text
    assert OWNED in text


def test_a_small_model_costs_what_owning_its_machines_does() -> None:
    report = model_report(NET)
    assert NOTE in report.about
    assert report.gpu is not None
    for option in report.options:
        unit = unit_of(NET, option.sku, option.per_machine)
        owner = unit.prices["buy"].owner
        assert owner is not None
        units = (option.machines + option.spare) * option.per_machine
        month = owner.usd_per_month(int(np.ceil(units / owner.units_per_machine)), HOURS_PER_MONTH)
        assert option.usd_per_month.likely == pytest.approx(month, rel=1e-6)
    assert report.costs is not None
    assert report.costs.paid == "owned"


def test_stages_of_a_pipeline_cost_the_machines_that_they_share() -> None:
    w = Workload(kind=Kind.pipeline, runs_per_month=30, **HERE)
    answer = assess(w, settings=STAGES, draws=0)
    p = plan(answer)
    assert p.owned
    assert p.best is not None
    total = 0.0
    for name in {s.hardware for s in p.best.stages}:
        rows = [s for s in p.best.stages if s.hardware == name]
        place = setting(w, load_catalogue(), answer.today, STAGES)
        unit = next(u for u in (*place.cpus, *place.gpus) if u.name == name and u.per_machine == 1)
        owner = unit.prices["buy"].owner
        assert owner is not None
        machines = int(np.ceil(max(s.units for s in rows) / owner.units_per_machine))
        total += owner.usd_per_month(machines, 30 * sum(s.hours for s in rows))
    assert p.best.usd == pytest.approx(total, rel=1e-6)
    assert p.best.egress_usd == 0
    assert "owned" in p.paid
    said = " ".join(services_report(answer).notes)
    assert "on demand" not in said


def test_no_server_of_a_service_is_rented() -> None:
    report = services_report(assess(Workload(kind=Kind.web, rate_per_s=3000, **HERE), draws=0))
    assert report.sizing is not None
    for fleet in (report.sizing.fleet, *report.sizing.alternatives):
        assert fleet.terms == "bought"
        assert fleet.price is None
    assert report.sizing.answers_usd is None
