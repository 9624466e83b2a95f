"""The plan of a service or a pipeline as a document: the figures of its page, from its report."""

from __future__ import annotations

import math
from dataclasses import replace

from engine.assessment import Assessment
from engine.catalogue import load_catalogue
from engine.estimate.services import TITLES as RESOURCE_TITLES
from engine.explain.jobs_owning import OWNED, in_own_rooms
from engine.explain.plan_tables import services_rows
from engine.explain.services import Fleet, Sizing
from engine.explain.services_drawing import Drawing, draw_pipeline
from engine.explain.services_pipeline import PipelinePlan, StagePlace
from engine.explain.services_reasons import losses
from engine.explain.services_report import ServicesReport
from engine.explain.services_svg import svg
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
    price_of,
    price_section,
    sentence,
    span,
)
from engine.report.plan_storage import storage_section

TOO_SLOW = "too slow"
DRAWING = (1.5, 1.0)  # widths of a drawing and of the words beside it


def services_document(report: ServicesReport, answer: Assessment, link: str = "") -> Plan:
    """The page of services and pipelines as a document.

    answer : the assessment that the report is of
    """
    s, p = report.sizing, report.pipeline
    prices = _prices(report, answer)
    sections = [
        *(_machines(report, s) if s is not None else ()),
        *(_pipeline(p, report) if p is not None else ()),
        *_articles(report),
        *_grounds(s, p, prices, answer),
    ]
    lead = [report.one_machine, report.leaving]
    if s is not None and p is not None:
        lead.append(report.pipeline_sentence)
    return Plan(
        schema="services",
        kind="Services and pipelines",
        name=words.one_line(answer.workload.name),
        verdict=sentence(report.sentence),
        lead=tuple(text for text in lead if text),
        colour=_colour(answer, p),
        tiles=_tiles(s) if s is not None else _stage_tiles(p),
        warnings=(*report.quotes_left_out, *report.notes),
        sections=tuple(sections),
        prices=prices,
        today=answer.today,
        query=query_string(answer.workload, settings=answer.settings),
        link=link,
        rows=tuple(services_rows(report, link)),
    )


def drawn(drawing: Drawing, share: float = 1.0, title: str = "") -> Figure:
    """An architecture as a picture of the report."""
    return Figure(title, drawing.message, drawing.alt, svg=svg(drawing), share=share)


def _colour(answer: Assessment, p: PipelinePlan | None) -> Colour:
    if p is not None and p.best is not None:
        kinds = {s.on_gpu for s in p.best.stages}
        return "Hybrid" if len(kinds) == 2 else "GPU" if True in kinds else "CPU"
    if answer.best.placement == "cpu" and answer.best.scale == "one_machine":
        return "One machine"
    found: dict[str, Colour] = {"gpu": "GPU", "cpu": "CPU", "hybrid": "Hybrid"}
    return found[answer.best.placement]


def _tiles(s: Sizing) -> tuple[Tile, ...]:
    m, g = s.machines, s.guarantee
    last = (
        Tile("Copies of the data", str(g.copies), losses(s))
        if g.copies > 1
        else Tile("Spare machines", f"{s.fleet.machines - s.fleet.carrying:,}", "beyond the load")
    )
    return (
        Tile("CPU servers", f"{m.likely:,.0f}", f"{m.low:,.0f} to {m.high:,.0f}"),
        Tile(f"A month, {s.fleet.terms}", words.money(s.usd.likely), span(s.usd)),
        Tile("Runs out first", RESOURCE_TITLES[s.fleet.binds], "at the peak"),
        last,
    )


def _stage_tiles(p: PipelinePlan | None) -> tuple[Tile, ...]:
    if p is None or p.best is None or p.usd is None:
        return ()
    found = [Tile("A month", words.money(p.usd.likely), span(p.usd))]
    if math.isfinite(p.best.hours) and p.best.hours > 0:
        found.append(Tile("A run", words.duration(p.best.hours),
                          f"within {words.duration(p.limit_h)}"))  # fmt: skip
    stays = f"{p.probability:.0%}"
    found.append(Tile("Stays the cheapest", stays, "of the cases drawn, on this hardware"))
    return tuple(found)


# --- services


def _machines(report: ServicesReport, s: Sizing) -> tuple[Section, ...]:
    asked = Table(
        (Column("Resource", 3.2), Column("At the peak", 1.2, "figure"),
         Column("8 of 10 cases", 1.6, "figure"), Column("Fills", 1.3, "figure")),
        tuple(
            (
                Cell(f"{r.title}: runs out first" if r.binds else r.title,
                     "strong" if r.binds else "", r.formula),
                words.number(r.amount.likely, r.amount.unit),
                f"{words.number(r.amount.low)} to {words.number(r.amount.high)}",
                fills(r.full),
            )
            for r in s.rows
        ),
        f"Fills: how many {s.fleet.name} it alone would fill.",
    )  # fmt: skip
    taken = Table(
        (Column("Machine", 2.6), Column("For the load", 0.9, "figure"),
         Column("Runs out first", 1.2), Column("Machines", 1.0, "figure"),
         Column("Storage", 0.9, "figure"),
         *([Column("People", 0.9, "figure")] if s.people else []),
         Column("Paid", 1.2), Column("Price read on", 1.2)),
        tuple(_fleet(f, f is s.fleet, s.people) for f in (s.fleet, *s.alternatives)),
        f"USD a month. {s.chosen}",
    )  # fmt: skip
    reasons = tuple((f"{a.title}: {a.how_many}", f"{a.why}.") for a in report.asked)
    architecture: list[Section] = []
    if report.drawing is not None:
        title = f"Architecture: {report.drawing.title}"
        figures = Figures((drawn(report.drawing),), DRAWING, reasons)
        architecture.append(Section(title, (figures,)))
    fits = sorted(report.patterns, key=lambda x: not x.fits)
    if len(fits) > 1:
        table = Table(
            (Column("Architecture", 1.5), Column("Fits", 0.5), Column("Why", 4.0)),
            tuple(
                (Cell(x.title, "strong" if x.fits else ""), "yes" if x.fits else "no", x.why)
                for x in fits
            ),
        )
        architecture.append(Section("Which architecture fits, and why not the others", (table,)))
    return (
        *architecture[:1],
        Section("What it asks of machines", (asked,)),
        Section("The machines taken, and the next cheapest", (taken,)),
        *architecture[1:],
    )


def fills(machines: float) -> str:
    """How many machines a resource alone would fill, in words."""
    if machines == 0:
        return "no machine"
    if machines >= 0.1:
        return f"{words.number(machines, digits=2)} machines"
    return "almost nothing" if machines < 0.001 else f"{machines:.1%} of one"


def _fleet(f: Fleet, taken: bool, people: bool) -> tuple[str | Cell, ...]:
    ref = f.price
    return (
        Cell(f"{f.machines:,} × {f.name}", "strong" if taken else ""),
        f"{f.carrying:,}",
        RESOURCE_TITLES[f.binds],
        words.money(f.usd),
        words.money(f.storage_usd),
        *([words.money(f.people_usd)] if people else []),
        f.terms,
        f.no_price if ref is None else age_cell(ref.as_of, ref.age_days, ref.freshness),
    )


# --- pipelines


def _pipeline(p: PipelinePlan, report: ServicesReport) -> tuple[Section, ...]:
    if p.best is None or p.usd is None:
        return (Section("The stages", (Words((p.why_not,)),)),)
    stages = Table(
        (Column("Stage", 1.8), Column("Runs on", 2.0), Column("Takes", 2.2),
         Column("A month", 0.9, "figure")),
        tuple(
            (s.name, f"{s.units:,} × {s.hardware}", _takes(s), words.money(s.usd))
            for s in p.best.stages
        ),
    )  # fmt: skip
    ways = [("This one", p.best), ("All CPU", p.all_cpu), ("All GPU", p.all_gpu)]
    told = {w.label for _, w in ways}
    ways += [("Next best", other) for other in p.others if other.label not in told][:3]
    placements = Table(
        (Column("Placement", 1.0), Column("Stages", 3.0), Column("A run", 1.0, "figure"),
         Column("A month", 1.0, "figure")),
        tuple(
            (
                Cell(name, "strong" if name == "This one" else ""),
                w.label,
                words.duration(w.hours) if math.isfinite(w.usd) else TOO_SLOW,
                words.money(w.usd) if math.isfinite(w.usd) else "–",
            )
            for name, w in ways
        ),
    )  # fmt: skip
    drawing = draw_pipeline(p)
    picture: tuple[Part, ...] = ()
    if drawing is not None:
        picture = (Figures((drawn(drawing),), DRAWING, (("How sure", _how_sure(p)),)),)
    return (
        Section("The stages, each where it belongs", (stages, *picture)),
        Section("Beside all-CPU and all-GPU", (placements,), 2),
    )


def _how_sure(p: PipelinePlan) -> str:
    assert p.best is not None
    assert p.usd is not None
    leaves = (
        f"Data that leaves a provider costs {words.money(p.best.egress_usd)} a month of it. "
        if p.best.egress_usd
        else ""
    )
    return (
        f"{span(p.usd)} a month in 8 of 10 cases; the placement stays the cheapest on this "
        f"hardware in {p.probability:.0%} of them. {leaves}{words.number(p.runs)} runs a month, "
        f"each within {words.duration(p.limit_h)}. All {p.tried:,} placements on the likely "
        f"hardware were compared, {p.paid}."
    )


def _takes(s: StagePlace) -> str:
    if s.standing:
        return "all month"
    after = f", after {words.duration(s.moved_hours)} of hand-over" if s.moved_hours else ""
    return f"{words.duration(s.hours)}{after}"


# --- what it rests on


def _articles(report: ServicesReport) -> tuple[Section, ...]:
    if not report.sayings:
        return ()
    told = tuple((f"{a.says} ({a.article}, {a.claims})", a.here) for a in report.sayings)
    return (Section("What the articles say, and what holds here", (Words((), told),)),)


def _grounds(
    s: Sizing | None, p: PipelinePlan | None, prices: tuple[Price, ...], answer: Assessment
) -> tuple[Section, ...]:
    if s is None and p is None:
        return ()
    rented = (
        "Costs are of the hardware and its storage alone; staff and risks count in the "
        "recommendation."
    )
    found = [
        Section("What it rests on", (Words((
            OWNED if in_own_rooms(answer.workload) else rented,
        ),),)),
        *price_section(prices, answer.today),
    ]  # fmt: skip
    if s is not None and s.fleet.storage_usd > 0:
        found.append(storage_section(answer.workload.kind, load_catalogue(), answer.today))
    if s is not None:
        table = input_table(
            (
                name.replace("_", " "),
                words.number(r.likely),
                f"{words.number(r.low)} to {words.number(r.high)}"
                if r.low != r.high
                else "known exactly",
                r.unit,
                r.source,
            )
            for name, r in s.inputs.items()
        )
        found.append(Section("Every input", (table,), 2))
    return tuple(found)


def _prices(report: ServicesReport, answer: Assessment) -> tuple[Price, ...]:
    """Of the machines taken and of the pipeline's, then of the next cheapest."""
    found: list[Price] = []
    s, p = report.sizing, report.pipeline
    if p is not None and p.best is not None:
        found += [
            price_of(h.name, "unit", h.usd_per_unit_hour, h.ref, answer.today, owned=h.owned)
            for h in p.best.prices
        ]
    if s is not None:
        for f in (s.fleet, *s.alternatives):
            if f.price is not None:
                found.append(_fleet_price(f, answer, used=f is s.fleet))
    if p is not None:
        for way in (p.all_cpu, p.all_gpu):
            found += [
                price_of(h.name, "unit", h.usd_per_unit_hour, h.ref, answer.today, used=False,
                         owned=h.owned)
                for h in way.prices
            ]  # fmt: skip
    return each_once(found)


def _fleet_price(f: Fleet, answer: Assessment, *, used: bool) -> Price:
    """The offer that a fleet's cost rests on, with its own terms where they follow from it."""
    assert f.price is not None
    hour = f.price.usd_per_unit_hour
    found = price_of(f.name, "server", hour, f.price, answer.today, used=used)
    if found.terms == f.terms:
        return found
    return replace(found, terms=f"{found.terms}, from which {f.terms} is worked out")
