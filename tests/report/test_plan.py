"""The documents of the serving, services and jobs plans: the figures of page and CSV, as PDF."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import lru_cache
from pathlib import Path

import pytest
from pypdf import PdfReader

from engine.assess import assess
from engine.errors import InputError
from engine.explain.services_report import services_report
from engine.report import words
from engine.report.pdf import BEST_STANDARD, _compile, report
from engine.report.pdf import pdf as recommendation
from engine.report.plan import Figures, Plan, Table, plan_json, text_of
from engine.report.plan_pdf import TEMPLATE, plan_pdf, shown
from engine.report.plan_text import plan_text
from engine.report.plans import FORMATS, PLANS
from engine.report.table import csv_of
from engine.workload.examples import EXAMPLES
from engine.workload.settings import Settings
from engine.workload.workload import Workload, parse

TODAY = date(2026, 12, 1)
LINK = "http://127.0.0.1:8501/serving_plan?v=1&kind=online_inference&d=2026-12-01"
CHAT = {"kind": "online_inference", "model_class": "llm", "model_params_b": 70, "rate_per_s": 8}
CASES: dict[str, tuple[str, Workload]] = {
    "chat": ("serve", parse({**CHAT, "name": "Support chat"})),
    "too-fast": ("serve", parse({**CHAT, "latency_ms": 1})),
    "fraud": ("services", EXAMPLES["fraud-detection"].workload),
    "database": ("services", EXAMPLES["fintech-replicas"].workload),
    "pipeline": ("services", parse({"kind": "pipeline"})),
    "routes": ("jobs", EXAMPLES["route-optimization"].workload),
    "fortran": ("jobs", EXAMPLES["legacy-fortran"].workload),
    "trading": ("jobs", EXAMPLES["trading-path"].workload),
    "batch": ("jobs", parse({"kind": "batch_inference", "model_class": "neural"})),
}
NAMES = list(CASES)
pdftotext = pytest.mark.skipif(not shutil.which("pdftotext"), reason="pdftotext is not installed")


@lru_cache
def plan(name: str) -> Plan:
    command, workload = CASES[name]
    return PLANS[command](workload, Settings(), TODAY, LINK)


@lru_cache
def pdf(name: str) -> bytes:
    return plan_pdf(plan(name))


def told(data: bytes, *options: str) -> str:
    done = subprocess.run(
        ["pdftotext", *options, "-", "-"], input=data, capture_output=True, check=True
    )
    return done.stdout.decode("utf-8", "replace")  # of emoji it writes halves


@lru_cache
def text(name: str) -> str:
    return " ".join(told(pdf(name)).split())


def closed(said: str) -> str:
    """Without spaces and hyphens: where a line breaks is no matter, and takes the hyphen there."""
    return "".join(said.replace("-", "").split())


def tables(of: Plan) -> Iterator[Table]:
    for section in of.sections:
        yield from (part for part in section.parts if isinstance(part, Table))


# --- the figures


@pdftotext
def test_a_serving_plan_costs_its_machines_times_their_price() -> None:
    """All hours of a month are paid, 730 of them: count × GPUs of one × price × 730."""
    head = re.match(r"(\d+) × (?:(\d+)× )?.*?: (\$[\d,.]+) a month", plan("chat").verdict)
    assert head is not None
    price = next(p for p in plan("chat").prices if p.used)
    usd = int(head[1]) * int(head[2] or 1) * price.usd_per_hour * 730
    assert head[3] == words.money(usd)
    assert head[0] in text("chat")
    assert f"{words.money(price.usd_per_hour)} a GPU" in text("chat")


@pdftotext
def test_a_database_costs_its_machines_times_their_price_and_its_disks() -> None:
    said = plan("database")
    machines = int(next(t.value for t in said.tiles if t.name == "CPU servers"))
    price = next(p for p in said.prices if p.used)
    rows = {row.item: row.likely for row in said.rows if row.section == "Machines taken"}
    stored = rows[f"{price.of}: storage a month"]
    assert stored is not None
    usd = rows[f"{price.of}: machines a month"]
    assert usd is not None
    # At the hour's price on demand, or less on longer terms.
    assert usd <= machines * price.usd_per_hour * 730 * (1 + 1e-9)
    assert usd > machines * price.usd_per_hour * 730 / 3
    assert words.money(usd + stored) == next(
        t.value for t in said.tiles if t.name.startswith("A month")
    )
    assert words.money(usd + stored) in text("database")
    assert f"{words.money(price.usd_per_hour)} a server" in text("database")
    assert f"{machines:,} × {price.of}" in text("database")


def test_a_run_costs_its_units_times_hours_times_price() -> None:
    said = plan("fortran")
    found = {
        row.item: row for row in said.rows if row.section == "CPU, taken" and row.likely is not None
    }
    name = next(item for item in found if item.endswith("cost of a run")).rpartition(":")[0]
    hours = next(r.likely for item, r in found.items() if item.startswith(f"{name}: time of a run"))
    each = found[f"{name}: an hour of one"].likely
    assert hours is not None
    assert each is not None
    usd = int(name.split(" × ")[0]) * hours * each
    assert words.money(usd) == next(t.value for t in said.tiles if t.name == "A run, CPU")


# Rows of the table whose figure the document shows, by the end of their item, and how it is shown.
SHOWN: dict[str, dict[str, tuple[str, ...]]] = {
    "serve": {"Plan chosen": ("Cost", "A million tokens in", "A million tokens out")},
    "services": {
        "Machines": ("cost a month, storage included",),
        "Machines taken": (": machines a month", ": storage a month"),
        "Stages, best": (": cost",),
    },
    "jobs": {
        "GPU, taken": (": cost of a run", ": cost a month", ": cost", ": a million answers"),
        "CPU, taken": (": cost of a run", ": cost a month", ": cost", ": a million answers"),
    },
}


@pdftotext
@pytest.mark.parametrize("name", NAMES)
def test_pdf_and_csv_have_the_same_figures(name: str) -> None:
    data = csv_of(plan(name).rows).decode("utf-8-sig")
    checked = 0
    for row in csv.DictReader(io.StringIO(data)):
        ends = SHOWN[CASES[name][0]].get(row["section"], ())
        if row["item"].endswith(ends) and ends and row["likely"]:
            assert words.money(float(row["likely"])) in text(name), row
            if row["low"] and row["section"] != "Stages, best":
                low, high = (words.money(float(row[c])) for c in ("low", "high"))
                assert f"{low} to {high}" in text(name), row
            checked += 1
    assert checked > 0 or name == "too-fast"


@pdftotext
@pytest.mark.parametrize("name", NAMES)
def test_each_price_has_provider_day_age_and_source(name: str) -> None:
    said, shut = plan(name), closed(text(name))
    assert said.prices or name == "too-fast"
    for price in said.prices:
        assert price.as_of is not None
        assert closed(price.provider) in shut
        assert closed(words.day(price.as_of)) in shut
        assert closed(words.age(price.age_days)) in shut
        assert closed(words.one_line(price.source)) in shut
        assert price.region == "any" or closed(price.region) in shut
        assert (TODAY - price.as_of).days == price.age_days


@pytest.mark.parametrize("name", NAMES)
def test_every_source_of_a_table_is_in_the_list_once(name: str) -> None:
    said = plan(name)
    for table in tables(said):
        at = [i for i, column in enumerate(table.columns) if column.kind == "source"]
        for row in table.rows:
            assert len(row) == len(table.columns)
            assert all(text_of(row[i]) in (*said.sources, "") for i in at)
    assert len(said.sources) == len(set(said.sources))


def test_the_architecture_is_drawn_with_its_words_and_reasons() -> None:
    said = plan("database")
    section = next(s for s in said.sections if s.title.startswith("Architecture"))
    (drawn,) = [part for part in section.parts if isinstance(part, Figures)]
    assert drawn.figures[0].svg.startswith("<svg")
    assert "Leader" in drawn.figures[0].alt
    assert len(drawn.beside) == 4  # replicas, queue, shards, consensus


@pdftotext
def test_the_drawing_is_in_the_pdf_as_text() -> None:
    assert "takes the writes" in text("database")
    assert "Data preparation" in text("pipeline")


# --- what can't be


@pdftotext
def test_a_target_below_the_floor_is_told_with_what_falls_short() -> None:
    said = plan("too-fast")
    assert not said.tiles
    assert closed(said.verdict) in closed(text("too-fast"))
    assert "at best" in text("too-fast")


@pytest.mark.parametrize(
    ("command", "kind", "where"), [("services", "lora", "kind"), ("jobs", "lora", "kind")]
)
def test_work_of_another_kind_is_refused_with_what_would_be_right(
    command: str, kind: str, where: str
) -> None:
    with pytest.raises(InputError) as caught:
        PLANS[command](parse({"kind": kind}), Settings(), TODAY, "")
    assert caught.value.where == where
    assert caught.value.right


def test_serving_beside_another_kind_of_job_is_told_as_such() -> None:
    said = PLANS["serve"](parse({"kind": "etl", "model_params_b": 8}), Settings(), TODAY, "")
    assert said.warnings[0].startswith("Your job is of another kind")


# --- the file


@pytest.mark.parametrize("name", NAMES)
def test_the_document_passes_the_check_of_accessibility(name: str) -> None:
    assert _compile(shown(plan(name)), BEST_STANDARD, TEMPLATE).startswith(b"%PDF-1.7")


def test_the_same_plan_gives_the_same_bytes() -> None:
    command, workload = CASES["trading"]
    again = PLANS[command](workload, Settings(), TODAY, LINK)
    for form in FORMATS:
        assert FORMATS[form](again) == FORMATS[form](plan("trading"))


def test_the_document_has_title_language_day_and_link() -> None:
    reader = PdfReader(io.BytesIO(pdf("chat")))
    assert reader.metadata is not None
    assert reader.metadata.title == "ClusterFit: Support chat"
    assert str(reader.metadata.creation_date).startswith("2026-12-01")
    notes = [
        note.get_object()["/A"]["/URI"]
        for page in reader.pages
        for note in page.get("/Annots", [])
        if "/A" in note.get_object() and "/URI" in note.get_object()["/A"]
    ]
    assert set(notes) == {LINK}


@pdftotext
@pytest.mark.parametrize("name", NAMES)
def test_nothing_runs_over_the_edge_of_a_page(name: str) -> None:
    boxes = told(pdf(name), "-bbox")
    found = re.findall(r'xMin="([\d.]+)" yMin="[\d.]+" xMax="([\d.]+)"', boxes)
    assert len(found) > 100
    assert min(float(left) for left, _ in found) >= 50  # margins are 18 mm, 51 points
    assert max(float(right) for _, right in found) <= 595.3 - 50


HOSTILE = [
    "#panic() *x* $y$ @a <b> `c` \\ = [d]",
    "../../etc/passwd",
    "=HYPERLINK(1)",
    "خدمة الاحتيال",
    "风控模型",
    "🚀 Größe ½",
    "x" * 80,
]


@pdftotext
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("case", ["trading", "pipeline"])
def test_any_name_is_shown_as_it_is(case: str, name: str) -> None:
    data = plan_pdf(replace(plan(case), name=name))
    title = PdfReader(io.BytesIO(data)).metadata.title  # type: ignore[union-attr]
    assert title == f"ClusterFit: {name}"
    boxes = re.findall(r'xMax="([\d.]+)"', told(data, "-bbox"))
    assert max(float(right) for right in boxes) <= 595.3 - 50
    if name.isascii():
        assert closed(name) in closed(told(data))


@pdftotext
def test_hostile_text_in_every_place_is_shown_as_it_is() -> None:
    """The same document with markup in each of its texts: nothing is read as markup."""
    bad = '#read("/etc/hosts") *b* _i_ $m$ <l> @r'
    said = replace(
        plan("trading"),
        verdict=bad,
        lead=(bad,),
        warnings=(bad,),
        tiles=tuple(replace(t, name=bad, value="#x", under=bad) for t in plan("trading").tiles),
        sections=tuple(replace(s, title=bad) for s in plan("trading").sections),
    )
    assert closed(told(plan_pdf(said))).count(closed(bad)) >= 3 + len(said.sections)


def test_stages_of_the_longest_names_fit_their_boxes() -> None:
    names = "W" * 40 + ";" + "m" * 40
    terms = parse_settings(names)
    said = PLANS["services"](parse({"kind": "etl"}), terms, TODAY, "")
    boxes = re.findall(r'xMax="([\d.]+)"', told(plan_pdf(said), "-bbox"))
    assert max(float(right) for right in boxes) <= 595.3 - 50


def parse_settings(names: str) -> Settings:
    usual = Settings()
    stages = usual.architecture.model_copy(
        update={
            "stage_names": names, "stage_hours": (2.0, 3.0), "stage_speedups": (1.0, 20.0),
            "stage_fractions_pct": (95.0, 99.0), "stage_gb": (10.0, 0.0),
        }
    )  # fmt: skip
    return usual.model_copy(update={"architecture": stages})


# --- text and values


@pytest.mark.parametrize("name", NAMES)
def test_the_text_has_verdict_figures_and_sources(name: str) -> None:
    said = plan_text(plan(name))
    shut = closed(said)
    assert closed(plan(name).verdict) in shut
    for tile in plan(name).tiles:
        assert tile.value in said
    for table in tables(plan(name)):
        for row in table.rows:
            assert closed(words.one_line(text_of(row[0])).rstrip(".")) in closed(said)
    assert f"Link: {LINK}" in said
    assert max(len(line) for line in said.splitlines()) <= 130


@pytest.mark.parametrize("name", NAMES)
def test_the_values_are_those_of_the_table(name: str) -> None:
    found = json.loads(json.dumps(plan_json(plan(name))))
    assert found["verdict"] == plan(name).verdict
    assert found["address"] == LINK
    assert len(found["figures"]) == len(plan(name).rows)
    for given, row in zip(found["figures"], plan(name).rows, strict=True):
        assert (given["item"], given["likely"]) == (row.item, row.likely)
    assert len(found["prices"]) == len(plan(name).prices)


def test_the_template_holds_no_figure(root: Path) -> None:
    """All figures come in as words: the template computes nothing but sizes."""
    source = (root / "data" / "plan.typ").read_text(encoding="utf-8")
    assert "calc." not in source


# --- the drawing in the recommendation's report


@pdftotext
def test_the_report_of_a_service_has_its_architecture_drawn() -> None:
    answer = assess(EXAMPLES["fintech-replicas"].workload, today=TODAY)
    drawing = report(answer, "", {})["architecture"]["drawing"]
    sizing = services_report(answer).sizing
    assert sizing is not None
    assert f"{sizing.fleet.machines:,} × {sizing.fleet.name}" in drawing["caption"]
    assert "Leader" in drawing["alt"]
    said = told(recommendation(answer))
    assert "takes the writes" in said
    assert drawing["title"] in said


def test_the_report_of_a_training_has_none() -> None:
    answer = assess(EXAMPLES["lora-7b"].workload, today=TODAY, draws=64)
    assert report(answer, "", {})["architecture"]["drawing"] is None


def test_a_quote_of_ones_own_is_told_as_such() -> None:
    job = {"kind": "rendering", "quotes": ["h100-sxm-80gb:on_demand:0.5"]}
    said = PLANS["jobs"](parse(job), Settings(), TODAY, "")
    mine = [price for price in said.prices if price.source == "your quote"]
    assert {price.usd_per_hour for price in mine} == {0.5}
    assert mine[0].used
    assert mine[0].age_days == 0
    assert plan_pdf(said).startswith(b"%PDF")


@pytest.mark.parametrize(
    ("command", "job"),
    [
        ("jobs", {"kind": "rendering"}),
        ("jobs", {"kind": "online_inference", "model_class": "neural"}),
        ("services", {"kind": "web"}),
        ("services", {"kind": "pipeline"}),
        ("serve", CHAT),
    ],
)
def test_a_quote_that_does_not_rank_is_told_in_every_file(
    command: str, job: dict[str, object]
) -> None:
    plain = PLANS[command](parse(job), Settings(), TODAY, "")
    said = PLANS[command](
        parse({**job, "quotes": ["h100-sxm:on_demand:1.2"]}), Settings(), TODAY, ""
    )
    told = "Your quote for h100-sxm, on demand at $1.20 an hour, is left out of the ranking"
    assert told in " ".join(plan_text(said).split())
    assert told in csv_of(said.rows).decode("utf-8-sig")
    assert len([w for w in said.warnings if told in w]) == 1
    assert not [w for w in plain.warnings if "left out of the ranking" in w]


@pdftotext
def test_the_prices_of_storage_stand_with_their_median() -> None:
    """Nine offers of block storage: 0.045, 0.053, 0.0637, 0.08, 0.08, 0.096, 0.1, 0.118, 0.1971."""
    section = next(s for s in plan("database").sections if s.title == "Prices of storage")
    (table,) = [part for part in section.parts if isinstance(part, Table)]
    assert len(table.rows) == 9
    assert "taken at $0.08, the median" in table.caption
    assert [text_of(row[2]) for row in table.rows][:2] == ["$0.045", "$0.053"]
    assert "EBS gp3 AWS" in text("database")


def test_where_the_plan_is_not_the_cheapest_hosting_names_what_it_means() -> None:
    """One title must not tell another cost of hosting than the verdict without saying of what."""
    for rate in (0.05, 8.0):
        job = parse({**CHAT, "model_params_b": 8, "rate_per_s": rate})
        said = PLANS["serve"](job, Settings(), TODAY, "")
        title = next(s.title for s in said.sections if s.title.startswith("Hosting costs"))
        cost = said.tiles[0].value
        assert title.startswith(f"Hosting costs {cost} a month;") or " × " in title
