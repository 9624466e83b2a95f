"""The costs as one CSV: every row of every way's table, its sums, and all that stands beside them.

US dollars as they are counted, unrounded; in another currency the sums are given once more at the
reader's rate. Cells of words can't be taken for formulas.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

from engine.assessment import Assessment
from engine.cost.break_even import Range
from engine.cost.cash_flow import CashFlow
from engine.costing.model import CostReport, Way
from engine.costing.view import SECTION_TITLES, USE_TITLES
from engine.estimate.estimate import Estimate
from engine.report import words
from engine.report.costs_words import (
    counts,
    crossings,
    headlines,
    in_currency,
    on_stated_demand,
    prices,
    verdict,
    with_tables,
)
from engine.report.currency import Currency, currency_of
from engine.report.table import Row, answer_rows, csv_cell, price_rows, term_rows
from engine.wording import count

DIGITS = 15  # to the cent up to ten trillion dollars
PAID = {"start": "start of the month", "end": "end of the month"}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the file. Amounts by month and their total are in US dollars.

    low, high : bounds that hold in 8 of 10 cases, in `unit` like `likely`
    """

    part: str
    item: str
    way: str = ""
    section: str = ""
    paid: str = ""
    by_month: tuple[float, ...] = ()
    total: float | None = None
    low: float | None = None
    likely: float | None = None
    high: float | None = None
    unit: str = ""
    source: str = ""


def costs_csv(report: CostReport, answer: Assessment, link: str = "") -> bytes:
    """The costs for a spreadsheet: UTF-8 with its mark, lines ended by CR LF.

    report : the costs of one hardware of `answer`
    link : the address that opens the answer; left out when empty
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    currency = currency_of(answer.settings.costs)
    writer.writerow(columns(report.months, currency))
    for line in lines(report, answer, link):
        months = [*line.by_month, *[None] * (report.months - len(line.by_month))]
        other = [] if currency.code == "USD" else [_in(currency, line.total)]
        values = [line.part, line.way, line.section, line.item, line.paid, *months, line.total]
        values += [*other, line.low, line.likely, line.high, line.unit, line.source]
        writer.writerow([csv_cell(value, DIGITS) for value in values])
    return text.getvalue().encode("utf-8-sig")


def columns(months: int, currency: Currency) -> list[str]:
    """The header: words, the months, the total, bounds, unit and source."""
    other = [] if currency.code == "USD" else [f"total {currency.code}"]
    by_month = [f"month {m}" for m in range(1, months + 1)]
    head = ["part", "way", "section", "item", "paid", *by_month, "total USD", *other]
    return [*head, "low", "likely", "high", "unit", "source"]


def lines(report: CostReport, answer: Assessment, link: str = "") -> list[Line]:
    """All lines in the order of the file."""
    currency = currency_of(answer.settings.costs)
    tables = with_tables(report)
    apart = {way.id for way in on_stated_demand(report)}
    found = [
        Line("Costs", words.one_line(report.hardware_label), section="Hardware"),
        Line("Costs", answer.today.isoformat(), section="As of"),
        *(Line("Costs", text, section="Left out") for text in report.quotes_left_out),
        *(line for way in tables for line in _table(way, way.id in apart)),
        *(line for way in tables for line in _headline(way, way.id in apart, currency)),
        *(line for way in report.ways for line in _about(report, way, answer)),
        *_crossings(report),
        *_demand(report),
        *_beside(report, currency),
        *(_plain("Prices", row) for p in prices(report, answer) for row in price_rows("", p)),
        *_terms(report, answer, currency),
        *(_hours(way, way.id in apart) for way in tables),
    ]
    return [*found, Line("Link", link)] if link else found


# --- parts


def _name(way: Way, apart: bool) -> str:
    return f"{way.label} (for the demand stated)" if apart else way.label


def _table(way: Way, apart: bool) -> Iterator[Line]:
    flow, name = way.flow, _name(way, apart)
    assert flow is not None
    for cash, row in zip(flow.lines, flow.table(), strict=True):
        yield Line(
            "Cash flow",
            row.item,
            name,
            SECTION_TITLES[row.section],
            PAID[cash.at],
            tuple(row.by_month),
            row.total,
            unit=cash.unit,
            source="; ".join(row.sources),
        )
    sums = tuple(float(usd) for usd in flow.monthly)
    yield Line("Sums", "All rows", name, "All", by_month=sums, total=_total(flow), unit="USD")


def _total(flow: CashFlow) -> float:
    return sum(row.total for row in flow.table())


def _headline(way: Way, apart: bool, currency: Currency) -> Iterator[Line]:
    for item, estimate in headlines(way):
        yield _estimate("Headline", item, estimate, _name(way, apart))
        if currency.code != "USD":
            other = in_currency(estimate, currency)
            yield _estimate("Headline", item, other, _name(way, apart), source=currency.note)


def _about(report: CostReport, way: Way, answer: Assessment) -> Iterator[Line]:
    yield Line("Ways", verdict(report, way, answer.settings.costs), way.label, "Verdict")
    for note in (*way.notes, *((way.deadline.text,) if way.deadline else ())):
        yield Line("Ways", note, way.label, "Note")
    own = way.owning
    if own is None:
        return
    machines = [
        ("Machines", float(own.machines), "machines"),
        ("Power of the machines", own.kw, "kW"),
        ("Racks", float(own.racks), "racks"),
        ("Switches", float(own.switches), "switches"),
        ("Until delivery", float(own.delivery_months), "months"),
        ("Useful life until the sale", float(own.life_months), "months"),
        ("Staff", own.staff_fte, "FTE"),
        ("Purchase", own.capital_usd, "USD"),
        ("Running cost over the machines' price, itemised", own.overhead_share * 100, "% a year"),
        ("The same in the articles", own.article_overhead_share * 100, "% a year"),
    ]
    for item, number, unit in machines:
        yield Line("Ways", item, way.label, "Owning", likely=number, unit=unit)
    item = f"Resale at an age of {count(own.resale_months, 'month')}, share of the price"
    yield _estimate("Ways", item, own.resale, way.label, "Owning")
    yield _estimate("Ways", "Failures of devices", own.failures_per_year, way.label, "Owning")
    for text in (own.room, own.network, own.rails):
        yield Line("Ways", text, way.label, "Owning")


def _crossings(report: CostReport) -> Iterator[Line]:
    for crossing in crossings(report):
        p = crossing.point
        dear = "" if p.never or p.high is not None else "never at the dear end of the range"
        yield Line(
            "Break-evens",
            f"{crossing.item}: never. {p.text}" if p.never else crossing.item,
            section="Computed",
            low=p.low,
            likely=p.value,
            high=p.high,
            unit=p.unit,
            source=dear,
        )
    for mark in report.wins.marks:
        yield Line(
            "Break-evens", mark.says, section="As the articles write",
            likely=mark.value, unit=mark.unit, source=mark.source,
        )  # fmt: skip


def _demand(report: CostReport) -> Iterator[Line]:
    view = report.demand
    for text in (view.problem, view.statement, view.room, view.stable):
        if text:
            yield Line("Demand", text, source=f"from {view.source}")
    for level, share in zip(view.demand.levels, view.demand.shares, strict=True):
        item = f"{words.number(float(level))} × {view.machine} are needed"
        yield Line("Demand", item, likely=float(share) * 100, unit="% of hours")
    for way in view.mixes:
        if way.headline is not None:
            yield _estimate("Demand", "Best mix, cost a month", way.headline.per_month, way.label)
            for item, usd in (
                ("The same demand, committed alone", way.committed_alone),
                ("The same demand, rented alone", way.rented_alone),
            ):
                yield Line("Demand", item, way.label, likely=usd, unit="USD/month")


def _beside(report: CostReport, currency: Currency) -> Iterator[Line]:
    idle = report.idle
    yield Line(
        "Idle hours", "Planned to be idle", likely=report.idle_share * 100, unit="% of hours"
    )
    yield Line("Idle hours", "Hours", likely=idle.hours_per_month, unit="h/month")
    for use, usd in idle.usd_by_use.items():
        yield Line("Idle hours", USE_TITLES[use], likely=float(usd), unit="USD/month")
    move = report.move
    if move is None:
        yield Line("Move", report.move_note)
    else:
        yield Line("Move", move.text)
        yield Line("Move", "Speed-up", likely=move.speedup, unit="times")
        yield _range("Move", "Months of work", move.months_of_work, "months")
        yield _range("Move", "Engineers", move.engineering_usd, "USD")
        yield _range("Move", "Both systems while it lasts", move.both_systems_usd, "USD")
        yield Line("Move", "Saved", likely=move.saved_usd_per_month, unit="USD/month")
        months = (move.payback_early, move.payback_month, move.payback_late)
        low, likely, high = (None if m is None else float(m) for m in months)
        yield Line("Move", "Paid back in month", low=low, likely=likely, high=high, unit="months")
    power = report.carbon
    item = f"Electricity, {power.region}"
    yield Line("Electricity", item, likely=power.kwh_per_month, unit="kWh/month")
    yield _estimate("Electricity", "Emissions", power.kg_co2e_per_month, source=power.source)


def _terms(report: CostReport, answer: Assessment, currency: Currency) -> Iterator[Line]:
    yield Line("Terms", "Horizon", likely=float(report.months), unit="months")
    rate = report.discount_rate * 100
    stated = answer.settings.costs.discount_pct is not None
    source = "your term" if stated else "likely cost of capital of the table"
    yield Line("Terms", "Discount rate", likely=rate, unit="% a year", source=source)
    n = counts(report)
    if n.runs_per_month is not None:
        yield Line("Terms", "Runs", likely=n.runs_per_month, unit="runs/month")
    if n.millions_per_month is not None:
        unit = f"million {n.counted}/month"
        yield Line("Terms", n.counted.capitalize(), likely=n.millions_per_month, unit=unit)
    if currency.code != "USD":
        unit = f"{currency.code} per US dollar"
        yield Line("Terms", "Rate", likely=currency.per_usd, unit=unit, source=currency.note)
    for row in (*term_rows(answer.settings), *answer_rows(answer.workload)):
        yield _plain("Terms" if row.section.startswith("Terms") else row.section, row)


def _hours(way: Way, apart: bool) -> Line:
    assert way.flow is not None
    hours = float(way.flow.useful_hours)
    return Line("Terms", "Useful hours of the horizon", _name(way, apart), likely=hours, unit="h")


# --- helpers


def _estimate(
    part: str, item: str, e: Estimate, way: str = "", section: str = "", source: str = ""
) -> Line:
    given = source or "; ".join(e.sources)
    return Line(
        part, item, way, section, low=e.low, likely=e.likely, high=e.high, unit=e.unit,
        source=given,
    )  # fmt: skip


def _range(part: str, item: str, span: Range, unit: str) -> Line:
    return Line(part, item, low=span.low, likely=span.likely, high=span.high, unit=unit)


def _plain(part: str, row: Row) -> Line:
    return Line(
        part, row.item, section=row.section, low=row.low, likely=row.likely, high=row.high,
        unit=row.unit, source=row.source,
    )  # fmt: skip


def _in(currency: Currency, usd: float | None) -> float | None:
    return None if usd is None else currency.of(usd)
