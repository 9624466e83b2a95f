"""The page on services and pipelines: every kind has an answer, terms travel, cases come out."""

from __future__ import annotations

import dataclasses
import math
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.assess import assess
from engine.assessment import Assessment
from engine.errors import InputError
from engine.explain import services_svg
from engine.explain.services import TERMS, Sizing, applies, size
from engine.explain.services_batching import batching, sized
from engine.explain.services_cases import split
from engine.explain.services_drawing import draw, draw_pipeline, patterns
from engine.explain.services_pipeline import plan
from engine.explain.services_reasons import failures, losses
from engine.explain.services_report import services_report
from engine.report.link import decode_settings, encode
from engine.wording import money, number
from engine.workload.answers import Consistency, Downtime, FailureMode, Kind, ModelClass
from engine.workload.examples import example
from engine.workload.services_terms import ServicesTerms, Shown
from engine.workload.settings import Settings
from engine.workload.terms import parse_terms
from engine.workload.workload import DEFAULT, Workload

PAGE = "pages/services_plan.py"
Open = Callable[..., AppTest]
STAGES: dict[str, Any] = {
    "stage_names": "Search;Inference",
    "stage_hours": (4.0, 30.0),
    "stage_speedups": (1.0, 20.0),
    "stage_fractions_pct": (100.0, 99.0),
    "stage_gb": (10.0, 0.0),
}
FULL: dict[str, Any] = {
    "item_kb": 1.5,
    "answer_kb": 3.0,
    "write_pct": 12.5,
    "retention_days": 30.0,
    "copies": 3,
    "disk_mb_per_s": 500.0,
    "lag_s": 840.0,
    "parties": True,
    "shown": "log",
    **STAGES,
}


def under(w: Workload, **terms: Any) -> Assessment:
    settings = Settings(architecture=parse_terms(ServicesTerms, terms))
    return dataclasses.replace(assess(w, draws=0), settings=settings)


def sizing(w: Workload, **terms: Any) -> Sizing:
    return size(under(w, **terms))


def words(visit: AppTest) -> str:
    parts = [*visit.subheader, *visit.markdown, *visit.caption, *visit.info, *visit.error]
    return " ".join(part.value.replace("\\", "") for part in parts)


# --- terms


def test_every_term_travels_in_the_link() -> None:
    terms = parse_terms(ServicesTerms, FULL)
    assert set(FULL) == set(ServicesTerms.model_fields)
    for name in FULL:
        assert getattr(terms, name) != getattr(ServicesTerms(), name), name
    settings = Settings(architecture=terms)
    assert decode_settings(encode(DEFAULT, settings)) == (settings, [])


@pytest.mark.parametrize(
    "fault",
    [
        {**STAGES, "stage_gb": (1.0,)},
        {**STAGES, "stage_speedups": (1.0, 0.0)},
        {**STAGES, "stage_fractions_pct": (100.0, 120.0)},
        {**STAGES, "stage_hours": (4.0, -1.0)},
        {**STAGES, "stage_hours": (4.0, 1e9)},
        {"copies": 0},
        {"item_kb": -1.0},
        {"write_pct": 101.0},
    ],
)
def test_absurd_terms_are_refused_with_a_reason(fault: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        parse_terms(ServicesTerms, fault)
    assert str(refused.value)


# --- sizing


def test_the_dashboard_needs_one_machine() -> None:
    found = sizing(example("internal-dashboard").workload)
    assert found.fleet.machines == 1
    assert found.one.enough
    # 500 requests/s · 2 · 8 core-ms / 0.6 = 13.3 vCPUs
    cores = next(r for r in found.rows if r.resource == "cores")
    assert cores.amount.likely == pytest.approx(13.333, rel=1e-4)
    assert cores.amount.low < cores.amount.likely < cores.amount.high


def test_failures_of_machines_read_without_false_digits() -> None:
    # 40,000 h between failures of a machine are 4.57 years; of five, 1.095 a year.
    assert failures(1) == "one failure in 4.6 years"
    assert failures(5) == "1.1 failures a year"


def test_the_logging_pipeline_is_about_the_articles_24_nodes() -> None:
    found = sizing(example("event-logging").workload)
    cores = next(r for r in found.rows if r.resource == "cores")
    assert cores.amount.likely == pytest.approx(333.3, rel=1e-3)  # 400,000 · 0.5 ms / 0.6
    # 21 nodes of 16 vCPU; on other sizes as many vCPUs
    assert found.fleet.machines * found.fleet.vcpu >= 333
    disk = next(r for r in found.rows if r.resource == "disk_space")
    assert disk.amount.likely == pytest.approx(100_000 * 3 / 0.7)


def test_a_database_is_not_sharded_while_one_machine_holds_it() -> None:
    found = sizing(example("fintech-replicas").workload)
    assert found.fleet.carrying == 1
    assert found.fleet.machines == 3
    assert found.guarantee.quorum == 2


def test_a_table_that_can_not_be_split_stays_whole_or_is_refused() -> None:
    table = Workload(kind=Kind.database, working_set_gb=1000, working_set_shardable=False)
    assert sizing(table).fleet.carrying == 1
    with pytest.raises(InputError, match="split"):
        sizing(table.model_copy(update={"working_set_gb": 1e6}))


@pytest.mark.parametrize(
    ("failure", "downtime", "consistency", "copies", "voters"),
    [
        (FailureMode.data_loss, Downtime.hours, Consistency.strong, 3, 3),
        (FailureMode.data_loss, Downtime.hours, Consistency.eventual, 2, 2),
        (FailureMode.machine_loss, Downtime.seconds, Consistency.strong, 2, 3),
        (FailureMode.machine_loss, Downtime.day, Consistency.strong, 1, 1),
        (FailureMode.wasted_spend, Downtime.hours, Consistency.eventual, 1, 1),
    ],
)
def test_copies_and_votes_follow_the_answers(
    failure: FailureMode, downtime: Downtime, consistency: Consistency, copies: int, voters: int
) -> None:
    w = Workload(
        kind=Kind.database, failure_mode=failure, downtime=downtime, consistency=consistency
    )
    found = sizing(w).guarantee
    assert (found.copies, found.voters) == (copies, voters)


@pytest.mark.parametrize(
    ("kind", "consistency", "lost", "said"),
    [
        # Three copies of which two have a write when it is accepted: one may be lost.
        (Kind.database, Consistency.strong, 1, "1 may be lost, no write with it"),
        (Kind.streaming, Consistency.eventual, 1, "1 may be lost, no write with it"),
        # A second copy that follows 5 s behind: the last writes die with the first.
        (Kind.database, Consistency.eventual, 0, "5 s of writes may be lost"),
    ],
)
def test_what_may_be_lost_is_what_no_copy_has(
    kind: Kind, consistency: Consistency, lost: int, said: str
) -> None:
    w = Workload(kind=kind, failure_mode=FailureMode.data_loss, consistency=consistency)
    found = size(under(w, lag_s=5))
    assert found.guarantee.survives == lost
    assert losses(found) == said


def test_more_load_never_takes_fewer_processors() -> None:
    def vcpus(rate: float) -> float:
        found = sizing(Workload(kind=Kind.web, rate_per_s=rate, cpu_ms_per_item=5))
        return found.fleet.machines * found.fleet.vcpu

    rates = (0.0, 10.0, 1e3, 1e5, 1e7)
    fleets = [vcpus(rate) for rate in rates]
    assert fleets == sorted(fleets)


def test_no_requests_and_far_too_many_get_plain_words() -> None:
    none = services_report(under(Workload(kind=Kind.web, rate_per_s=0)))
    assert "No requests" in " ".join(none.notes)
    many = services_report(under(Workload(kind=Kind.web, rate_per_s=1e9)))
    assert "more than most companies" in " ".join(many.notes)


def test_every_kind_asks_only_for_terms_that_change_its_answer() -> None:
    values = {"item_kb": 977.0, "answer_kb": 9_770.0, "write_pct": 91.0, "retention_days": 3000.0,
              "copies": 5, "lag_s": 7_777.0, "disk_mb_per_s": 1.0, "parties": True}  # fmt: skip
    for kind, names in TERMS.items():
        loss = FailureMode.data_loss
        w = Workload(kind=kind, failure_mode=loss, consistency=Consistency.eventual)
        before = services_report(under(w))
        for name in names:
            after = services_report(under(w, **{name: values[name]}))
            shown = (after.sizing and after.sizing.rows, after.asked, after.drawing, after.sizing
                     and after.sizing.fleet)  # fmt: skip
            was = (before.sizing and before.sizing.rows, before.asked, before.drawing,
                   before.sizing and before.sizing.fleet)  # fmt: skip
            assert shown != was, (kind, name)


# --- queue and batches


def test_batches_hold_littles_law_and_the_target() -> None:
    # 3 GPUs, 3,000/s, 1 ms a batch and 0.3 ms an item: without holding b = 1,000 · 0.001 /
    # (1 − 1,000 · 0.0003) = 1.43, load 1,000/1.43 · 1.43 ms = 1; holding 1 ms doubles b, and the
    # load is 1,000/2.86 · 1.857 ms = 65%.
    found = sized(3, 3000, 0.001, 0.0003, 64, 20, 1.6, 50, 20, 0.66)
    assert found.rate_per_gpu == pytest.approx(1000)
    assert found.delay_ms == pytest.approx(1.0, abs=0.2)
    assert found.batch == pytest.approx(2.86, rel=0.1)
    assert found.queue == pytest.approx(3000 * found.wait_ms / 1000)
    assert found.inside
    assert found.answer_ms <= 50
    late = sized(3, 3000, 0.001, 0.0003, 64, 60, 1.6, 50, 20, 0.66)
    assert not late.inside


# --- drawings


@pytest.mark.parametrize("shown", list(Shown))
@pytest.mark.parametrize("name", ["fintech-replicas", "50-microservices", "fraud-detection"])
def test_every_architecture_is_drawn_for_every_job(name: str, shown: Shown) -> None:
    answer = under(example(name).workload, shown=shown.value)
    s = size(answer)
    drawing = draw(s, answer, batching(s, answer))
    boxes = [b.id for layer in drawing.layers for b in layer]
    assert len(set(boxes)) == len(boxes)
    assert {a.start for a in drawing.arrows} | {a.end for a in drawing.arrows} <= set(boxes)
    for dark in (False, True):
        picture = ET.fromstring(services_svg.svg(drawing, dark=dark))
        text = " ".join(picture.itertext())
        assert all(word in text for b in (b for x in drawing.layers for b in x)
                   for word in b.title.split())  # fmt: skip
    assert drawing.title in drawing.alt


def test_the_machines_stand_on_the_boxes() -> None:
    answer = under(example("fraud-detection").workload)
    s = size(answer)
    drawing = draw(s, answer, batching(s, answer))
    for stage in answer.best.stages:
        assert f"{stage.machines if stage.hardware == 'cpu' else stage.units}" in drawing.alt


def test_each_job_has_a_fitting_architecture() -> None:
    for kind in Kind:
        answer = under(Workload(kind=kind))
        if applies(answer.workload):
            s = size(answer)
            assert any(p.fits for p in patterns(s, answer)), kind


def test_the_colours_are_those_of_the_theme() -> None:
    config = Path(__file__).resolve().parents[2] / ".streamlit" / "config.toml"
    theme = tomllib.loads(config.read_text(encoding="utf-8"))["theme"]
    for palette, name in ((services_svg.LIGHT, "light"), (services_svg.DARK, "dark")):
        assert [palette.gpu, palette.cpu] == theme[name]["chartCategoricalColors"][:2]
        assert palette.text == theme[name]["textColor"]
        assert palette.ground == theme[name]["backgroundColor"]


def test_runs_over_stored_data_have_one_drawing_whatever_a_link_asks() -> None:
    for shown in Shown:
        answer = under(Workload(kind=Kind.etl), shown=shown.value)
        s = size(answer)
        assert draw(s, answer, None).pattern is Shown.workers
        assert [p.shown for p in patterns(s, answer)] == [Shown.workers]


# --- pipelines


def test_a_mixed_pipeline_is_split_and_saves_against_both() -> None:
    w = Workload(kind=Kind.pipeline, runs_per_month=30)
    found = plan(under(w, **STAGES))
    assert found.best is not None
    assert [s.on_gpu for s in found.best.stages] == [False, True]
    assert found.saves_cpu is not None
    assert found.saves_gpu is not None
    assert min(found.saves_cpu, found.saves_gpu) > 0
    assert found.best.usd <= min(o.usd for o in found.others)
    drawing = draw_pipeline(found)
    assert drawing is not None
    assert "10 GB" in drawing.alt


@pytest.mark.parametrize("terms", [{}, STAGES])
def test_the_recommendations_total_stands_beside_that_of_the_stages(terms: dict[str, Any]) -> None:
    answer = under(Workload(kind=Kind.pipeline), **terms)
    report = services_report(answer)
    assert report.pipeline is not None
    assert report.pipeline.best is not None
    (told,) = report.notes
    assert answer.best.label in told
    assert f"{money(answer.best.usd_per_month.likely)} a month" in told
    assert f"{money(report.pipeline.best.usd)} a month" in told
    # The same sums as its first sentence, and the savings are their ratios.
    best, gpu = report.pipeline.best.usd, report.pipeline.all_gpu.usd
    assert money(best) in report.sentence
    if best < gpu:
        assert f"{1 - best / gpu:.0%} less than all-GPU ({money(gpu)})" in report.sentence


def test_a_target_that_nothing_keeps_is_said_first() -> None:
    w = Workload(
        kind=Kind.online_inference, model_class=ModelClass.trees, rate_per_s=500, latency_ms=0.3
    )
    report = services_report(under(w))
    assert report.notes[0].startswith("Nothing on offer meets every constraint")
    assert "0.3 ms are asked" in report.notes[0]


def test_no_events_are_not_worth_a_word_on_disks() -> None:
    none = services_report(under(Workload(kind=Kind.streaming, rate_per_s=0)))
    assert not any("e+" in said.here or "Disks bind" in said.here for said in none.sayings)
    # 3 copies of 400,000 events a second at the peak on n disks of 125 MB/s.
    some = services_report(under(example("event-logging").workload))
    assert some.sizing is not None
    kb = some.sizing.fleet.machines * 125e3 / (400_000 * 3)
    assert any(f"full at {number(kb)} kB an event" in said.here for said in some.sayings)


def test_shards_name_what_one_machine_lacks_and_the_fewest_that_would_do() -> None:
    report = services_report(
        under(Workload(kind=Kind.database, rate_per_s=10_000, data_gb=1000, working_set_gb=64))
    )
    assert report.sizing is not None
    s = report.sizing
    (shards,) = [a for a in report.asked if a.title == "Shards"]
    assert shards.needed
    assert s.fleet.name in shards.why
    # The fewest that would do are taken already: two.
    assert s.fleet.carrying == math.ceil(s.one.share) == 2
    assert shards.how_many == "2"
    assert "would do" not in shards.why


def test_a_serial_part_that_is_too_long_is_said() -> None:
    w = Workload(kind=Kind.etl, runs_per_month=30, deadline_days=0.1)
    terms = {**STAGES, "stage_fractions_pct": (10.0, 10.0)}
    report = services_report(under(w, **terms))
    assert report.pipeline is not None
    assert report.pipeline.best is None
    assert "No number of machines helps" in report.pipeline_sentence


def test_the_articles_sixty_percent_is_beside_what_the_options_cost() -> None:
    answer = assess(example("fraud-detection").workload)
    found = split(answer)
    assert found is not None
    whole, hybrid = found.whole.usd_per_month.likely, found.hybrid.usd_per_month.likely
    assert found.saving == pytest.approx(1 - hybrid / whole)
    # By f(1 − q) = 60%: what it would take, whatever prices are today.
    assert found.needed * (1 - found.price_ratio) == pytest.approx(0.6)
    said = " ".join(s.here for s in services_report(answer).sayings)
    assert f"{found.saving:.0%} saved" in said


# --- the page


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_has_a_page(app: Open, kind: Kind) -> None:
    visit = app(PAGE, **encode(Workload(kind=kind)))
    assert not visit.exception
    assert visit.title[0].value == "Services and pipelines"


def test_the_page_shows_resources_reasons_and_articles(app: Open) -> None:
    visit = app(PAGE, **encode(example("fintech-replicas").workload))
    text = words(visit)
    assert "3 copies" in text
    assert "2 of 3 must agree" in text
    assert "336,000 writes" in text
    assert "Shards: none" in text


def test_the_page_places_own_stages(app: Open) -> None:
    settings = Settings(architecture=parse_terms(ServicesTerms, STAGES))
    visit = app(PAGE, **encode(Workload(kind=Kind.pipeline, runs_per_month=30), settings))
    assert "Inference on GPUs" in words(visit)
    assert "60%" in words(visit)
