"""The costs for a shell and for programs: plain text in the reader's currency, and plain values."""

from __future__ import annotations

from typing import Any

from engine.assessment import Assessment
from engine.cost.cash_flow import SECTIONS, CashFlow
from engine.costing.model import CostReport, Way
from engine.costing.view import SECTION_TITLES, break_even_rows, ordered
from engine.report import words
from engine.report.costs_words import counts, headlines, prices, verdict, with_tables
from engine.report.currency import Currency, currency_of
from engine.report.link import query_string
from engine.report.table import block, plain, wrapped
from engine.workload.cost_terms import CostTerms

JSON_VERSION = 1


def costs_text(report: CostReport, answer: Assessment, link: str = "") -> str:
    """The ways side by side, the table of the one looked at, break-evens and prices."""
    currency = currency_of(answer.settings.costs)
    chosen = report.chosen
    lines = wrapped(f"{report.title}. {report.subtitle}", "", "")
    lines += ["", "Ways to pay", *_ways(report, answer.settings.costs)]
    lines += ["", chosen.label, *_table(chosen, currency)]
    lines += block("Mind", [*report.quotes_left_out, *chosen.notes, *report.left_out])
    lines += block("When each way wins", [_crossing(x) for x in break_even_rows(report, currency)])
    demand = report.demand
    told = [demand.problem, demand.statement, demand.room, demand.stable]
    lines += block("Your demand", [text for text in told if text])
    lines += block(
        "Prices",
        [
            f"{p.provider} {p.sku}, {words.terms(p.acquisition)}, {p.region or 'any region'}: "
            f"{currency.price(p.usd_per_unit_hour)} an hour, read {words.day(p.as_of)} "
            f"({words.age(p.age_days)}) [{p.source}]"
            for p in prices(report, answer)
        ],
    )
    end = f"As of {words.day(answer.today)}. Ranges hold in 8 of 10 cases. Prices without tax."
    lines += ["", *wrapped(f"{end} {currency.note}".strip(), "", "")]
    return "\n".join([*lines, *([f"Link: {link}"] if link else [])]) + "\n"


def costs_json(report: CostReport, answer: Assessment, link: str = "") -> dict[str, Any]:
    """The report as plain values in US dollars; `version` changes when a name changes meaning."""
    currency = currency_of(answer.settings.costs)
    n = counts(report)
    found = {
        "schema": "clusterfit/costs",
        "version": JSON_VERSION,
        "today": answer.today.isoformat(),
        "link": query_string(answer.workload, settings=answer.settings),
        "hardware": report.hardware,
        "hardware_label": report.hardware_label,
        "choices": [{"id": id, "label": label} for id, label in report.choices],
        "months": report.months,
        "discount_rate": report.discount_rate,
        "runs_per_month": n.runs_per_month,
        "millions_per_month": n.millions_per_month,
        "currency": plain(currency),
        "chosen": report.chosen.id,
        "cheapest": report.cheapest.id if report.cheapest is not None else None,
        "ways": [_way(way) for way in report.ways],
        "wins": plain(report.wins),
        "demand": _demand(report),
        "idle": {"share": report.idle_share, **plain(report.idle)},
        "move": plain(report.move) if report.move is not None else None,
        "move_note": report.move_note,
        "electricity": plain(report.carbon),
        "left_out": list(report.left_out),
        "quotes_left_out": list(report.quotes_left_out),
        "prices": plain(prices(report, answer)),
        "settings": plain(answer.settings),
    }
    return {**found, "address": link} if link else found


# --- text


def _ways(report: CostReport, terms: CostTerms) -> list[str]:
    currency = currency_of(terms)
    priced = [w for w in ordered(report.ways) if w.headline is not None]
    if not priced:
        return ["  none has a price"]
    table = [["", "a month", "range", "total", "today's value"]]
    for way in priced:
        assert way.headline is not None
        h = way.headline
        table.append(
            [
                way.label,
                currency.money(h.per_month.likely),
                currency.interval(h.per_month),
                currency.money(h.total.likely),
                currency.money(h.npv.likely),
            ]
        )
    lines = [f"  {row}" for row in _columns(table)]
    said = [(w.label, verdict(report, w, terms)) for w in ordered(report.ways)]
    told = [f"{label}: {text[:1].lower()}{text[1:]}" for label, text in said if text != "Allowed"]
    return [*lines, *(line for text in told for line in wrapped(text, "  - ", "    "))]


def _table(way: Way, currency: Currency) -> list[str]:
    """The rows of a way by their totals, then its sums."""
    if way.flow is None:
        return ["  no price"]
    rows = [
        [f"{SECTION_TITLES[row.section]}: {row.item}", currency.exact(row.total)]
        for row in sorted(way.flow.table(), key=lambda row: SECTIONS.index(row.section))
    ]
    rows.append(["Total of all months", currency.exact(float(way.flow.total))])
    sums = [
        [name, currency.money(e.likely), currency.interval(e)]
        for name, e in headlines(way)
        if name != "Total"
    ]
    return [f"  {line}" for line in (*_columns(rows), *_columns(sums))]


def _columns(rows: list[list[str]]) -> list[str]:
    """Rows with the first column at the left and figures at the right, as wide as they must be."""
    widths = [max(len(words.one_line(row[i])) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            f"{words.one_line(text):{'<' if i == 0 else '>'}{width}}"
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _crossing(row: dict[str, str]) -> str:
    what, at, span, article = row.values()
    return f"{what}: {at} ({span}); the articles: {article}"


# --- JSON


def _way(way: Way) -> dict[str, Any]:
    return {
        "id": way.id,
        "label": way.label,
        "acquisition": way.acquisition,
        "allowed": way.allowed,
        "refusals": list(way.refusals),
        "notes": list(way.notes),
        "headline": plain(way.headline) if way.headline is not None else None,
        "table": _rows(way.flow) if way.flow is not None else None,
        "useful_hours": float(way.flow.useful_hours) if way.flow is not None else None,
        "price": plain(way.price) if way.price is not None else None,
        "deadline": plain(way.deadline) if way.deadline is not None else None,
        "owning": plain(way.owning) if way.owning is not None else None,
        "mix": plain(way.mix) if way.mix is not None else None,
        "mix_each": way.mix_each,
    }


def _rows(flow: CashFlow) -> list[dict[str, Any]]:
    return [
        {
            "section": row.section,
            "item": row.item,
            "paid": line.at,
            "usd_by_month": row.by_month,
            "usd_total": row.total,
            "sources": list(row.sources),
        }
        for line, row in zip(flow.lines, flow.table(), strict=True)
    ]


def _demand(report: CostReport) -> dict[str, Any]:
    view = report.demand
    known = {way.id for way in report.ways}
    return {
        "source": view.source,
        "machine": view.machine,
        "levels": plain(view.demand.levels),
        "shares": plain(view.demand.shares),
        "month_to_month": view.month_to_month,
        "best": view.best.id if view.best is not None else None,
        "committed": view.committed,
        "statement": view.statement,
        "stable": view.stable,
        "room": view.room,
        "problem": view.problem,
        "mixes": [_way(w) for w in with_tables(report) if w.id not in known],
    }
