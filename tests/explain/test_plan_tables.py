"""The tables of the services and compute pages hold the pages' figures, each with its unit."""

from __future__ import annotations

import csv
import io
from datetime import date

import pytest

from engine.assess import assess
from engine.explain.jobs import is_compute, job_report
from engine.explain.jobs_models import is_small_model, model_report
from engine.explain.plan_tables import job_csv, services_csv
from engine.explain.services_report import services_report
from engine.report.table import COLUMNS
from engine.workload.answers import Kind
from engine.workload.examples import EXAMPLES
from engine.workload.settings import Settings

TODAY = date(2026, 12, 1)
LINK = "https://example.org/services_plan?v=1"


def table(data: bytes) -> list[dict[str, str]]:
    text = data.decode("utf-8-sig")
    assert text.endswith("\r\n")
    found = list(csv.DictReader(io.StringIO(text)))
    assert tuple(found[0]) == COLUMNS
    for row in found:
        numbers = [row[c] for c in ("low", "likely", "high") if row[c]]
        assert numbers == sorted(numbers, key=float), row
        assert not numbers or row["unit"], row
        assert "inf" not in numbers, row
        assert "nan" not in numbers, row
    return found


def cell(rows: list[dict[str, str]], section: str, item: str) -> float:
    return float(next(r["likely"] for r in rows if (r["section"], r["item"]) == (section, item)))


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_every_example_has_its_table(name: str) -> None:
    w = EXAMPLES[name].workload
    report = services_report(assess(w, today=TODAY, draws=64))
    rows = table(services_csv(report, LINK))
    assert rows[-1]["item"] == LINK
    if report.sizing is not None:
        s = report.sizing
        assert cell(rows, "Machines", "with copies and spares") == s.machines.likely
        taken = cell(rows, "Machines taken", f"{s.fleet.name}: machines a month")
        stored = cell(rows, "Machines taken", f"{s.fleet.name}: storage a month")
        total = cell(rows, "Machines", "cost a month, storage included")
        assert taken + stored == pytest.approx(total)  # the sum stands beside its parts
        assert len([r for r in rows if r["section"] == "Inputs"]) == len(s.inputs)
    if report.pipeline is not None and report.pipeline.best is not None:
        best = report.pipeline.best
        parts = [
            float(r["likely"])
            for r in rows
            if r["section"] == "Stages, best" and r["item"].endswith((": cost", "data out"))
        ]
        assert sum(parts) == pytest.approx(best.usd, rel=1e-6)


@pytest.mark.parametrize("name", [n for n, e in EXAMPLES.items() if is_compute(e.workload)])
def test_a_compute_job_has_both_sides(name: str) -> None:
    report = job_report(EXAMPLES[name].workload, Settings(), today=TODAY)
    rows = table(job_csv(report, LINK))
    cpu = f"{report.cpu.units} × {report.cpu.name}: cost of a run"
    assert cell(rows, "CPU, taken", cpu) == pytest.approx(report.cpu.usd_per_run.likely)
    published = [r for r in rows if r["section"] == "Published speed-ups"]
    assert len(published) == len(report.found)
    assert all("20" in r["source"] for r in published)  # each with the day of its source


@pytest.mark.parametrize("name", [n for n, e in EXAMPLES.items() if is_small_model(e.workload)])
def test_a_small_model_has_both_sides(name: str) -> None:
    report = model_report(EXAMPLES[name].workload, Settings(), today=TODAY)
    rows = table(job_csv(report, LINK))
    for label, side in (("GPU", report.gpu), ("CPU", report.cpu)):
        if side is not None:
            machines = cell(rows, f"{label}, taken", f"{side.name}: machines")
            assert machines == side.machines


def test_the_prices_of_a_pipelines_hardware_stand_with_region_day_and_source() -> None:
    w = EXAMPLES["lora-7b"].workload.model_copy(update={"kind": Kind.pipeline})
    report = services_report(assess(w, today=TODAY, draws=64))
    assert report.pipeline is not None
    assert report.pipeline.best is not None
    rows = table(services_csv(report, LINK))
    for price in report.pipeline.best.prices:
        hour = cell(rows, "Stages, best", f"{price.name}: an hour of one")
        assert hour == pytest.approx(price.usd_per_unit_hour)
        assert price.ref is not None
        told = [
            r
            for r in rows
            if r["section"] == "Stages, best"
            and f"{price.ref.provider} {price.ref.sku}," in r["item"]
        ]
        assert any(price.ref.region in r["item"] for r in told)
        assert any(price.ref.as_of.isoformat() in r["item"] for r in told)
        assert all(price.ref.source in r["source"] for r in told)
    used = {s.hardware for s in report.pipeline.best.stages}
    assert {p.name for p in report.pipeline.best.prices} == used
