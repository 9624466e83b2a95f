"""The plans of services, pipelines and compute jobs as tidy tables: every figure with its unit."""

from __future__ import annotations

import math
from collections.abc import Iterator

from engine.assessment import PriceRef
from engine.catalogue.models import Provenance
from engine.decide.sharding import SOURCES as PEOPLE
from engine.explain.jobs import JobOption, JobReport
from engine.explain.jobs_models import ModelOption, ModelReport
from engine.explain.jobs_owning import OWNED
from engine.explain.services import Fleet, Sizing
from engine.explain.services_pipeline import PipelinePlan
from engine.explain.services_pipeline import Way as Placement
from engine.explain.services_report import ServicesReport
from engine.report.table import Row, csv_of, price_rows, range_row, row_of

HARDWARE = {"gpu": "GPU", "cpu": "CPU"}


def services_csv(report: ServicesReport, link: str = "") -> bytes:
    """The page of services and pipelines as CSV."""
    return csv_of(services_rows(report, link))


def job_csv(report: JobReport | ModelReport, link: str = "") -> bytes:
    """The page of compute jobs and small models as CSV."""
    rows = job_rows(report) if isinstance(report, JobReport) else model_rows(report)
    return csv_of([*rows, *_link(link)])


def services_rows(report: ServicesReport, link: str = "") -> Iterator[Row]:
    """What is asked of machines, the machines, what failures ask for, the stages, the inputs."""
    yield Row("Services", report.sentence)
    for note in (*report.quotes_left_out, *report.notes):
        yield Row("Services", note)
    if report.sizing is not None:
        yield from _sizing(report.sizing)
    for a in report.asked:
        verdict = "asked for" if a.needed else "not asked for"
        yield Row("What failures ask for", f"{a.title}, {verdict}: {a.how_many}. {a.why}.")
    for p in report.patterns:
        yield Row("Architectures", f"{p.title}, {'fits' if p.fits else 'does not fit'}: {p.why}")
    if report.pipeline is not None:
        yield from _pipeline(report.pipeline, report.pipeline_sentence)
    for said in report.sayings:
        told = f"{said.article}, {said.claims}"
        yield Row("What the articles say", f"{said.says} {said.here}", source=told)
    for held in report.properties:
        yield Row("Five properties", f"{held.title}: {held.status}; {held.why}")
    if report.waits:
        yield Row("Five properties", report.waits)
    if report.sizing is not None:
        for name, r in report.sizing.inputs.items():
            yield range_row("Inputs", name, r.low, r.likely, r.high, r.unit, r.source)
    yield from _link(link)


def _sizing(s: Sizing) -> Iterator[Row]:
    yield row_of(s.machines, "Machines", "with copies and spares")
    yield row_of(s.usd, "Machines", "cost a month, storage included")
    if s.fleet.people_usd:
        yield Row("Machines", "people for further shards, of it", None, s.fleet.people_usd, None,
                  "USD/month", PEOPLE[0])  # fmt: skip

    for row in s.rows:
        yield row_of(row.amount, "Asked of machines", row.title)
        yield Row("Asked of machines", f"{row.title}: machines that it alone fills", None, row.full,
                  None, "machines", row.formula)  # fmt: skip
    yield from _fleet("Machines taken", s.fleet)
    for i, fleet in enumerate(s.alternatives, 1):
        yield from _fleet(f"Alternative {i}", fleet)


def _fleet(section: str, f: Fleet) -> Iterator[Row]:
    yield Row(section, f"{f.name}: for the load", None, f.carrying, None, "machines")
    yield Row(section, f"{f.name}: with copies and spares", None, f.machines, None, "machines")
    yield Row(section, f"{f.name}: machines a month", None, f.usd, None, "USD/month", f.terms)
    yield Row(section, f"{f.name}: storage a month", None, f.storage_usd, None, "USD/month")
    if f.people_usd:
        yield Row(section, f"{f.name}: people for further shards", None, f.people_usd, None,
                  "USD/month", PEOPLE[0])  # fmt: skip
    if f.price is not None:
        yield from price_rows(section, f.price, f"{f.name}: ")


def _pipeline(p: PipelinePlan, sentence: str) -> Iterator[Row]:
    yield Row("Stages", sentence)
    if p.usd is not None:
        yield row_of(p.usd, "Stages", "best placement")
    ways = [("best", p.best), ("all on CPUs", p.all_cpu), ("all on GPUs", p.all_gpu)]
    for name, way in ways:
        if way is not None:
            yield from _placement(f"Stages, {name}", way)


def _placement(section: str, way: Placement) -> Iterator[Row]:
    if not math.isfinite(way.usd):
        yield Row(section, f"{way.label}: can't keep the deadline")
        return
    yield Row(section, way.label, None, way.usd, None, "USD/month")
    if math.isfinite(way.hours) and way.hours > 0:
        yield Row(section, f"{way.label}: a run", None, way.hours, None, "h")
    yield Row(section, "moving data out", None, way.egress_usd, None, "USD/month")
    for price in way.prices:
        yield from _hour(section, price.name, price.usd_per_unit_hour, price.ref, price.owned)
    for s in way.stages:
        item = f"{s.name} on {s.hardware}"
        yield Row(section, f"{item}: units", None, s.units, None, "units")
        yield Row(section, f"{item}: cost", None, s.usd, None, "USD/month")
        if math.isfinite(s.hours):
            yield Row(section, f"{item}: time, of a run", None, s.hours, None, "h")


def job_rows(report: JobReport) -> Iterator[Row]:
    """The two sides of a compute job, all options, published speed-ups, inputs."""
    yield Row("Compute job", report.headline)
    told = (*report.quotes_left_out, *report.notes)
    for note in (*told, *([report.rewrite] if report.rewrite else [])):
        yield Row("Compute job", note)
    r = report.speedup
    yield range_row("Compute job", "speed-up of the parallel part", r.low, r.likely, r.high,
                    "times", report.speedup_said)  # fmt: skip
    for hardware, side in (("GPU", report.gpu), ("CPU", report.cpu)):
        if side is not None:
            yield from _job_option(f"{hardware}, taken", side)
    for option in report.options:
        yield from _job_option(f"{HARDWARE[option.hardware]}, options", option)
    for name, why in report.ruled_out:
        yield Row("Ruled out", f"{name}: {why.reason}")
    for f in report.found:
        yield Row("Published speed-ups", f"{f.application}, {f.case}: {f.gpu} against {f.cpu}",
                  f.low, f.likely, f.high, "times", _provenance(f.provenance))  # fmt: skip
    for name, each in report.inputs:
        yield range_row("Inputs", name, each.low, each.likely, each.high, each.unit, each.source)


def _job_option(section: str, o: JobOption) -> Iterator[Row]:
    name = f"{o.units} × {o.name}"
    yield row_of(o.hours, section, f"{name}: time of a run{', late' if o.late else ''}")
    yield row_of(o.usd_per_run, section, f"{name}: cost of a run")
    yield row_of(o.usd_per_month, section, f"{name}: cost a month")
    yield from _hour(section, name, o.usd_per_unit_hour, o.price, o.owned)


def model_rows(report: ModelReport) -> Iterator[Row]:
    """The two sides of a small model, all options, what is too slow, measured rates."""
    yield Row("Small model", report.headline)
    told = (*report.quotes_left_out, *report.notes)
    for note in (*([report.reason] if report.reason else []), *told):
        yield Row("Small model", note)
    yield Row("Small model", "peak rate", None, report.peak_per_s, None, "1/s")
    yield Row("Small model", "mean rate", None, report.mean_per_s, None, "1/s")
    if math.isfinite(report.target_ms):
        yield Row("Small model", "target", None, report.target_ms, None, "ms", report.target_said)
    for hardware, side in (("GPU", report.gpu), ("CPU", report.cpu)):
        if side is not None:
            yield from _model_option(f"{hardware}, taken", side)
    for option in report.options:
        yield from _model_option(f"{HARDWARE[option.hardware]}, options", option)
    for each in report.refused:
        yield Row("Too slow", f"{each.name}: shortest answer", None, each.floor_ms, None, "ms")
    for r in report.rates:
        yield Row(
            "Measured rates", f"{r.title} on {r.name}, no target", r.offline_low, r.offline_per_s,
            r.offline_high, f"{r.item}/s", _provenance(r.provenance),
        )  # fmt: skip
        if r.server_per_s is not None:
            yield Row(
                "Measured rates", f"{r.title} on {r.name}, 99% inside {r.server_target_ms:g} ms",
                None, r.server_per_s, None, f"{r.item}/s", _provenance(r.provenance),
            )  # fmt: skip


def _model_option(section: str, o: ModelOption) -> Iterator[Row]:
    yield Row(section, f"{o.name}: machines", None, o.machines, None, "machines")
    yield Row(section, f"{o.name}: of these spare", None, o.spare, None, "machines")
    yield row_of(o.capacity_per_s, section, f"{o.name}: one machine inside the target")
    yield row_of(o.usd_per_month, section, f"{o.name}: cost")
    yield Row(section, f"{o.name}: a million answers", None, o.usd_per_million, None, "USD")
    yield Row(section, f"{o.name}: shortest answer", None, o.floor_ms, None, "ms", o.how)
    yield from _hour(section, o.name, o.usd_per_machine_hour, o.price, o.owned)


def _hour(
    section: str, name: str, usd: float, ref: PriceRef | None, owned: bool = False
) -> Iterator[Row]:
    """An hour of one of them, and the price that it rests on where it is no quote of one's own."""
    source = OWNED if owned else "your quote" if ref is None else ref.source
    yield Row(section, f"{name}: an hour of one", None, usd, None, "USD/hour", source)
    if ref is not None:
        yield from price_rows(section, ref, f"{name}: ")


def _provenance(p: Provenance) -> str:
    return f"{p.source}, {p.as_of.isoformat()}, confidence {p.confidence}"


def _link(link: str) -> Iterator[Row]:
    if link:
        yield Row("Link", link)
