"""The plans of compute jobs and of small models as documents: the figures of their page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from engine.estimate.small_inference import Rate
from engine.estimate.speedups import Speedup
from engine.explain.jobs import JobOption, JobReport
from engine.explain.jobs_model_words import machines_said
from engine.explain.jobs_models import ModelOption, ModelReport
from engine.explain.jobs_owning import elsewhere
from engine.explain.plan_tables import job_rows, model_rows
from engine.report import plan_charts as charts
from engine.report import words
from engine.report.link import query_string
from engine.report.plan import (
    Cell,
    Colour,
    Column,
    Figure,
    Figures,
    Part,
    Plan,
    Price,
    Section,
    Table,
    Tile,
    Words,
    age_cell,
    each_once,
    input_table,
    more,
    price_of,
    price_section,
    sentence,
    span,
)
from engine.report.table import Row
from engine.workload.answers import Kind
from engine.workload.settings import Settings
from engine.workload.workload import Workload

SHOWN = 12  # machines of a table before the rest
MOST_FIGURES = 24  # published figures and rates in a table
SCOPES = {"application": "whole run", "kernel": "that part alone"}
INPUTS = {
    "io_share": "Share of input and output",
    "useful_hours_per_month": "Hours a month on today's machines",
    "contention": "Contention, a further machine",
}
SIDES: dict[str, Colour] = {"gpu": "GPU", "cpu": "CPU"}


def job_document(
    report: JobReport | ModelReport, workload: Workload, settings: Settings, today: date,
    link: str = "",
) -> Plan:  # fmt: skip
    """The page of compute jobs and small models as a document.

    workload, settings, today : those that the report is of
    """
    if isinstance(report, JobReport):
        return _compute(report, workload, settings, today, link)
    return _model(report, workload, settings, today, link)


# --- compute jobs


def _compute(
    report: JobReport, workload: Workload, settings: Settings, today: date, link: str
) -> Plan:
    both = [o for o in (report.gpu, report.cpu) if o is not None]
    first = min(both, key=lambda o: (o.late, o.usd_per_run.likely))
    prices = each_once(
        price_of(
            o.name, _unit(o), o.usd_per_unit_hour, o.price, today, used=o in both, owned=o.owned
        )
        for o in (*both, *report.options[:SHOWN])
    )  # fmt: skip
    return Plan(
        schema="jobs",
        kind="Compute job",
        name=words.one_line(workload.name),
        verdict=sentence(report.headline),
        lead=tuple(text for text in (report.rewrite,) if text),
        colour=SIDES[first.hardware],
        tiles=_job_tiles(report),
        warnings=(*report.about, *report.quotes_left_out, *report.notes),
        sections=(
            Section("GPU and CPU side by side", (_job_sides(report),)),
            *_curve(report),
            Section("All machines for this job", (_job_options(report),)),
            *_ruled_out(report),
            *_published(report),
            *_job_grounds(report, workload, prices, today),
        ),
        prices=prices,
        today=today,
        query=query_string(workload, settings=settings),
        link=link,
        rows=tuple(_linked(job_rows(report), link)),
    )


def _linked(rows: Iterable[Row], link: str) -> Iterable[Row]:
    return [*rows, *([Row("Link", link)] if link else [])]


def _unit(o: JobOption) -> str:
    return "GPU" if o.hardware == "gpu" else "server"


def _job_tiles(report: JobReport) -> tuple[Tile, ...]:
    found = []
    for side, option in (("GPU", report.gpu), ("CPU", report.cpu)):
        found.append(
            Tile(f"A run, {side}", "not possible", "see below")
            if option is None
            else Tile(f"A run, {side}", words.money(option.usd_per_run.likely),
                      span(option.usd_per_run))
        )  # fmt: skip
    low, likely, high = (
        words.number(v, digits=2)
        for v in (report.speedup.low, report.speedup.likely, report.speedup.high)
    )
    found.append(Tile("Speed-up of the parallel part", f"{likely} times", f"{low} to {high}"))
    if report.gpu is not None:
        found.append(Tile("GPU the cheaper", f"{report.gpu_cheaper:.0%}", "of cases drawn"))
    return tuple(found)


def _job_sides(report: JobReport) -> Table:
    titles = ("Machines", "A run takes", "A run costs", "A month", "It waits for", "Price")
    sides = [_job_side(o, report) for o in (report.gpu, report.cpu)]
    return _side_by_side(titles, sides)


def _side_by_side(titles: Sequence[str], sides: Sequence[Sequence[str]]) -> Table:
    columns = (Column("", 0.7), Column("GPU", 1.6), Column("CPU", 1.6))
    return Table(columns, tuple(zip(titles, *sides, strict=True)))


def _job_side(o: JobOption | None, report: JobReport) -> list[str]:
    if o is None:
        why = f"Not possible: {'; '.join(report.no_gpu)}" if report.no_gpu else "none is on offer"
        return [why, *["–"] * 5]
    return [
        units(o),
        hours(o),
        f"{words.money(o.usd_per_run.likely)} ({span(o.usd_per_run)})",
        f"{words.money(o.usd_per_month.likely)} ({span(o.usd_per_month)})",
        o.bound,
        _price_said(o.usd_per_unit_hour, o, _unit(o)),
    ]


def units(o: JobOption) -> str:
    """The machines of an option: 3 × 8 × H100 SXM."""
    each = f"{o.per_machine} × {o.name}" if o.per_machine > 1 else o.name
    return each if o.machines == 1 else f"{o.machines:,} × {each}"


def hours(o: JobOption) -> str:
    """What a run takes there, with its range, and whether that is too late."""
    late = ", later than wanted" if o.late else ""
    return (
        f"{words.duration(o.hours.likely)} ({words.duration(o.hours.low)} to "
        f"{words.duration(o.hours.high)}){late}"
    )


def _price_said(usd: float, o: JobOption | ModelOption, unit: str) -> str:
    said = f"{words.money(usd)} an hour a {unit}"
    if o.owned:
        return f"{said}, owned, used or not"
    if o.price is None:
        return f"{said}, your quote"
    return f"{said}, {o.price.provider}, {words.age(o.price.age_days)}"


def _curve(report: JobReport) -> tuple[Section, ...]:
    curve = report.curve
    if curve is None:
        return ()
    figure = Figure("", curve.message, f"{curve.title}. {curve.message}", charts.speedup(curve))
    return (Section(curve.title, (Figures((figure,), (1.0,)),)),)


def _job_options(report: JobReport) -> Table:
    taken = {id(o) for o in (report.gpu, report.cpu)}
    columns = (
        Column("Machines", 2.5), Column("A run takes", 1.0, "figure"),
        Column("A run costs", 0.9, "figure"), Column("Range", 1.6, "figure"),
        Column("Waits for", 1.5), Column("Price read on", 1.2),
    )  # fmt: skip
    rows = tuple(
        (
            Cell(units(o), "strong" if id(o) in taken else ""),
            words.duration(o.hours.likely) + (", late" if o.late else ""),
            words.money(o.usd_per_run.likely),
            span(o.usd_per_run),
            o.bound,
            _age(o),
        )
        for o in report.options[:SHOWN]
    )
    left = more(len(report.options) - SHOWN, "machines")
    return Table(columns, rows, f"The fewest of each that finish in time, cheapest first. {left}")


def _age(o: JobOption | ModelOption) -> str | Cell:
    ref = o.price
    if o.owned:
        return "owned"
    return "your quote" if ref is None else age_cell(ref.as_of, ref.age_days, ref.freshness)


def _ruled_out(report: JobReport) -> tuple[Section, ...]:
    if not report.ruled_out:
        return ()
    by_reason: dict[str, list[str]] = {}
    for name, why in report.ruled_out:
        by_reason.setdefault(why.reason, []).append(name)
    rows = tuple((", ".join(names), reason) for reason, names in by_reason.items())
    table = Table((Column("Machine", 1.6), Column("Why", 1.4)), rows)
    return (Section("Machines out of the question, and why", (table,), 2),)


def _published(report: JobReport) -> tuple[Section, ...]:
    """The published figures; those that say against what, which count, come first."""
    found = sorted(report.found, key=lambda r: r.per_server is None)
    if not found:
        return ()
    columns = (
        Column("Software", 1.7), Column("Compared", 2.2), Column("Published", 1.4, "figure"),
        Column("Worth", 1.2, "figure"), Column("Source", 0.6, "source"),
    )  # fmt: skip
    rows = tuple(
        (
            Cell(r.application, "", r.case),
            f"{_many(r)} against {r.cpu}",
            Cell(_figure(r), "", f"{SCOPES[r.scope]}, {r.precision}"),
            _worth(r),
            f"{r.provenance.source} ({words.day(r.provenance.as_of)})",
        )
        for r in found[:MOST_FIGURES]
    )
    left = more(len(found) - MOST_FIGURES, "figures")
    caption = f"Worth: brought to one H100 against one server of 48 cores. {left}"
    told = Words((f"The speed-up above is {report.speedup_said}.",))
    return (
        Section("Published speed-ups, and what they are worth", (told, Table(columns, rows,
                caption))),
    )  # fmt: skip


def _many(r: Speedup) -> str:
    return r.gpu if not r.gpus or r.gpus == 1 else f"{r.gpu} (× {r.gpus:g})"


def _figure(r: Speedup) -> str:
    mark = {"up_to": "up to ", "at_least": "at least "}.get(r.bound, "")
    if r.low == r.high:
        return f"{mark}{words.number(r.likely, digits=3)} times"
    low, high = words.number(r.low, digits=2), words.number(r.high, digits=2)
    return f"{mark}{low} to {high} times"


def _worth(r: Speedup) -> str:
    if r.per_server is None:
        return "not told"
    low, likely, high = (words.number(v, digits=2) for v in r.per_server)
    return f"{likely} ({low} to {high})" if low != high else likely


def _job_grounds(
    report: JobReport, workload: Workload, prices: tuple[Price, ...], today: date
) -> tuple[Section, ...]:
    named = [
        ("Speed-up of the parallel part", report.speedup),
        *((_input(name), r) for name, r in report.inputs),
    ]
    inputs = input_table(
        (
            title,
            words.number(r.likely),
            f"{words.number(r.low)} to {words.number(r.high)}"
            if r.low != r.high
            else "known exactly",
            r.unit,
            r.source,
        )
        for title, r in named
    )
    return (
        Section("What it rests on", (Words((elsewhere(workload),)),)),
        *price_section(prices, today),
        Section("Inputs", (inputs,), 2),
    )


def _input(name: str) -> str:
    return INPUTS[name] if name in INPUTS else str(Workload.model_fields[name].title)


# --- small models


def _model(
    report: ModelReport, workload: Workload, settings: Settings, today: date, link: str
) -> Plan:
    both = [o for o in (report.gpu, report.cpu) if o is not None]
    first = min(both, key=lambda o: o.usd_per_month.likely, default=None)
    prices = each_once(
        price_of(
            o.name, "machine", o.usd_per_machine_hour, o.price, today, used=o in both, owned=o.owned
        )
        for o in (*both, *report.options[:SHOWN])
    )  # fmt: skip
    batch = workload.kind is Kind.batch_inference
    return Plan(
        schema="jobs",
        kind="Small model",
        name=words.one_line(workload.name),
        verdict=sentence(report.headline),
        lead=tuple(text for text in (report.reason, "" if batch else _planned(report)) if text),
        colour=SIDES[first.hardware] if first is not None else "CPU",
        tiles=_model_tiles(report),
        warnings=(*report.about, *report.quotes_left_out, *report.notes),
        sections=(
            Section("GPU and CPU side by side", (_model_sides(report),)),
            *_pictures(report),
            *_model_options(report, batch),
            *_too_slow(report),
            *_measured(report.rates),
            *_model_grounds(report, workload, prices, today),
        ),
        prices=prices,
        today=today,
        query=query_string(workload, settings=settings),
        link=link,
        rows=tuple(_linked(model_rows(report), link)),
    )


def _planned(report: ModelReport) -> str:
    peak, target = words.number(report.peak_per_s), words.number(report.target_ms)
    return f"Planned for {peak} a second at the peak, within {target} ms."


def _model_tiles(report: ModelReport) -> tuple[Tile, ...]:
    found = []
    sides = (("GPU", report.gpu), ("CPU", report.cpu))
    for side, option in sides:
        if option is None:
            late = any(r.hardware == side.lower() for r in report.refused)
            found.append(Tile(f"A month, {side}", "too slow" if late else "unknown", "see below"))
            continue
        usd = option.usd_per_month
        found.append(Tile(f"A month, {side}", words.money(usd.likely), span(usd)))
    found += [
        Tile(f"A million, {side}", words.money(option.usd_per_million),
             f"{words.number(option.floor_ms)} ms at best")
        for side, option in sides
        if option is not None
    ]  # fmt: skip
    return tuple(found)


def _model_sides(report: ModelReport) -> Table:
    titles = ("Machines", "A month", "One carries", "Shortest answer", "How", "Price")
    sides = [_model_side(o, report, name) for name, o in (("gpu", report.gpu), ("cpu", report.cpu))]
    return _side_by_side(titles, sides)


def _model_side(o: ModelOption | None, report: ModelReport, hardware: str) -> list[str]:
    if o is None:
        return [_refused_of(report, hardware), *["–"] * 5]
    c = o.capacity_per_s
    cores = f"{o.cores_a_worker:,} core{'' if o.cores_a_worker == 1 else 's'} for each item; "
    return [
        machines_said(o),
        f"{words.money(o.usd_per_month.likely)} ({span(o.usd_per_month)})",
        f"{words.number(c.likely)} a second ({words.number(c.low)} to {words.number(c.high)})",
        f"{words.number(o.floor_ms)} ms",
        o.how if o.hardware == "gpu" else cores + o.how,
        _price_said(o.usd_per_machine_hour, o, "machine"),
    ]


def _refused_of(report: ModelReport, hardware: str) -> str:
    none = [r for r in report.refused if r.hardware == hardware]
    if not none:
        return "No rate of one was published that could be checked."
    best = min(none, key=lambda r: r.floor_ms)
    return (
        f"None answers within {words.number(report.target_ms)} ms. The shortest answer is "
        f"{words.number(best.floor_ms)} ms, on {best.name}."
    )


def _pictures(report: ModelReport) -> tuple[Section, ...]:
    found = []
    if any(curve.points for curve in report.responses):
        said = "; ".join(
            f"{SIDES[c.hardware]} {c.name} up to {words.number(c.capacity_per_s)} a second"
            for c in report.responses
        )
        found.append(
            Figure(
                "How long an answer takes under load",
                f"One machine of each kind that is the cheapest. Target: {report.target_said}.",
                f"Response of one machine against its rate. Inside the target: {said}.",
                charts.response(report.responses, report.target_ms),
            )
        )
    if report.costs is not None:
        c = report.costs
        found.append(Figure(c.title, c.message, f"{c.title}. {c.message}", charts.costs(c)))
    return (Section("How it behaves", (Figures(tuple(found)),)),) if found else ()


def _model_options(report: ModelReport, batch: bool) -> tuple[Section, ...]:
    if not report.options:
        return ()
    taken = {id(o) for o in (report.gpu, report.cpu)}
    columns = (
        Column("Machines", 2.2), Column("A month", 0.9, "figure"), Column("Range", 1.5, "figure"),
        Column("One carries", 1.5, "figure"), Column("A million", 1.05, "figure"),
        Column("Rate", 1.25), Column("Price read on", 1.2),
    )  # fmt: skip
    rows = tuple(
        (
            Cell(machines_said(o), "strong" if id(o) in taken else ""),
            words.money(o.usd_per_month.likely),
            span(o.usd_per_month),
            f"{words.number(o.capacity_per_s.likely)} a second",
            words.money(o.usd_per_million),
            "measured" if o.measured else "follows from others",
            _age(o),
        )
        for o in report.options[:SHOWN]
    )
    left = more(len(report.options) - SHOWN, "machines")
    title = "All machines" if batch else "All machines that answer in time"
    caption = f"Cheapest first. A million: answers of one machine at its planned load. {left}"
    return (Section(title, (Table(columns, rows, caption),)),)


def _too_slow(report: ModelReport) -> tuple[Section, ...]:
    if not report.refused:
        return ()
    rows = tuple((r.name, f"{words.number(r.floor_ms)} ms") for r in report.refused[:SHOWN])
    left = more(len(report.refused) - SHOWN, "machines")
    table = Table((Column("Machine", 3.0), Column("Shortest answer", 1.0, "figure")), rows, left)
    return (Section("Machines too slow, and by what", (table,), 2),)


def _measured(found: Sequence[Rate]) -> tuple[Section, ...]:
    if not found:
        return ()
    columns = (
        Column("Hardware", 2.6), Column("Offline", 1.3, "figure"),
        Column("Inside the target", 2.0, "figure"), Column("A core", 0.8, "figure"),
        Column("Source", 0.6, "source"),
    )  # fmt: skip
    rows = tuple(
        (
            r.name,
            f"{words.number(r.offline_per_s)} a second",
            _inside(r),
            words.number(r.offline_per_s / r.cores) if r.cores else "",
            f"{r.provenance.source} ({words.day(r.provenance.as_of)})",
        )
        for r in found[:MOST_FIGURES]
    )
    left = more(len(found) - MOST_FIGURES, "rates")
    return (Section("The measured rates behind it", (Table(columns, rows, left),)),)


def _inside(r: Rate) -> str:
    if r.server_per_s is None or r.server_target_ms is None:
        return "not taken"
    return f"{words.number(r.server_per_s)} a second, 99% in {words.number(r.server_target_ms)} ms"


def _model_grounds(
    report: ModelReport, workload: Workload, prices: tuple[Price, ...], today: date
) -> tuple[Section, ...]:
    told: tuple[Part, ...] = (
        Words((f"Work of one item: {report.size_said}. {elsewhere(workload)}",)),
    )
    return (Section("What it rests on", told), *price_section(prices, today))
