"""The costs as a section of the report: texts in the reader's currency for `data/report.typ`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from engine.assessment import Assessment
from engine.cost.cash_flow import SECTIONS
from engine.costing.model import CostReport, Way
from engine.costing.view import SECTION_TITLES, break_even_rows, ordered, periods
from engine.report import charts as pictures
from engine.report import words
from engine.report.costs_words import elsewhere, entering, headlines, months_text
from engine.report.currency import Currency, currency_of
from engine.workload.cost_terms import CostTerms

MONTHS_PER_YEAR = 12
MOST_WAYS = 9
MOST_ITEMS = 6  # rows of a table that are shown one by one; longer ones by section
MOST_ROWS_WITH_CURVE = 17  # rows of all tables that leave room for a picture on the page
MOST_ROWS = 24  # more are set closer, so that they stay on one page
CURVE_HEIGHT = 80
SHORT = {
    "Cost a month": "A month",
    "Net present value": "Today's value",
    "Cost of a useful hour": "A useful hour",
    "Cost of a run": "A run",
}


def section(report: CostReport, answer: Assessment, cite: Callable[[str], int]) -> dict[str, Any]:
    """Everything that the section shows.

    report : the costs of one hardware of `answer`
    cite : number of a source in the report's list
    """
    terms = answer.settings.costs
    currency = currency_of(terms)
    evens = break_even_rows(report, currency)
    prices = entering(report, answer)
    flow = _flow(report.chosen, currency)
    demand = report.demand
    priced = [way for way in ordered(report.ways) if way.headline is not None]
    shown = [w for i, w in enumerate(priced) if i < MOST_WAYS or w is report.chosen]
    count = len(shown) + len(flow) + len(evens) + len(prices)
    barred = [w for w in shown if w.refusals]
    told = [
        *(f"Ruled out: {text}" for text in _by_reason(barred)),
        *report.quotes_left_out,
        *report.chosen.notes,
        *report.left_out,
        *(demand.problem, demand.statement, demand.stable),
    ]
    return {
        "title": words.one_line(report.title),
        "subtitle": words.one_line(f"{report.subtitle} {currency.note}"),
        "label": words.one_line(report.chosen.label),
        "months": months_text(report.months),
        "rate": words.number(report.discount_rate * 100, "%"),
        "figures": [
            [_short(name), currency.money(e.likely), currency.interval(e)]
            for name, e in headlines(report.chosen)
        ],
        "ways": [_way(report, way, terms) for way in shown],
        "more": len(priced) - len(shown),
        "missing": _by_reason([way for way in report.ways if way.headline is None]),
        "periods": periods(report.months, by_year=True),
        "flow": flow,
        "dense": count > MOST_ROWS,
        "curve": _curve(report, currency) if count <= MOST_ROWS_WITH_CURVE else None,
        "evens": [[_once(words.one_line(text)) for text in row.values()] for row in evens],
        "notes": list(dict.fromkeys(_sentence(text) for text in told if text)),
        "prices": [
            [
                words.one_line(f"{p.provider} {p.sku}"),
                ", ".join(x for x in (words.terms(p.acquisition), p.region) if x),
                currency.price(p.usd_per_unit_hour),
                f"{words.day(p.as_of)}, {words.age(p.age_days)}",
                p.freshness,
                cite(p.source),
            ]
            for p in prices
        ],
    }


def _way(report: CostReport, way: Way, terms: CostTerms) -> list[Any]:
    currency = currency_of(terms)
    h = way.headline
    assert h is not None
    hour = h.per_useful_hour
    return [
        words.one_line(way.label),
        currency.money(h.per_month.likely),
        currency.interval(h.per_month),
        currency.money(h.total.likely),
        currency.money(h.npv.likely),
        currency.money(hour.likely) if hour is not None else "never",
        _place(report, way, terms),
        way is report.chosen,
        way.allowed,
    ]


def _place(report: CostReport, way: Way, terms: CostTerms) -> str:
    if way.refusals:
        return "ruled out"
    said = ["shown below"] if way is report.chosen else []
    said += ["cheapest"] if report.cheapest is not None and way.id == report.cheapest.id else []
    said += ["the other site"] if elsewhere(way, terms) else []
    return ", ".join(said)


def _short(name: str) -> str:
    return SHORT.get(name, name.replace("Cost of a", "A"))


def _once(span: str) -> str:
    """A range with its unit once: 10 to 37 runs a month; never at both ends: never."""
    low, to, high = span.partition(" to ")
    if not to or low == high:
        return low
    unit = low.partition(" ")[2]
    return f"{low.removesuffix(unit).rstrip()}{to}{high}" if high.endswith(unit) else span


def _sentence(text: str) -> str:
    line = words.one_line(text)
    return f"{line[:1].upper()}{line[1:]}{'' if line.endswith('.') else '.'}"


def _by_reason(ways: Sequence[Way]) -> list[str]:
    """Why ways are barred, those of one reason together."""
    found: dict[str, list[str]] = {}
    for way in ways:
        found.setdefault("; ".join(way.refusals), []).append(way.label)
    return [words.one_line(f"{'; '.join(labels)}: {reason}.") for reason, labels in found.items()]


def _flow(way: Way, currency: Currency) -> list[list[str]]:
    """What is paid by year and in all, as rows or by section, and the sum of it."""
    assert way.flow is not None
    table = sorted(way.flow.table(), key=lambda row: SECTIONS.index(row.section))
    years = math.ceil(way.flow.months / MONTHS_PER_YEAR)
    groups = (
        [(words.one_line(row.item), [row]) for row in table]
        if len(table) <= MOST_ITEMS
        else [
            (SECTION_TITLES[name], [row for row in table if row.section == name])
            for name in SECTIONS
        ]
    )
    found = []
    for title, rows in (*groups, ("Total", table)):
        if rows:
            by_year = [
                sum(sum(row.by_month[12 * year : 12 * year + 12]) for row in rows)
                for year in range(years)
            ]
            usd = (*by_year, sum(row.total for row in rows))
            found.append([title, *(currency.exact(each) for each in usd)])
    return found


def _curve(report: CostReport, currency: Currency) -> dict[str, str] | None:
    """Cost of a useful hour against the share of the hours used, for each way."""
    wins = report.wins
    if len(wins.curves) < 2:  # nothing to compare
        return None
    marks = [m.value for m in wins.marks if m.unit == "share of hours"]
    spec = pictures.utilization_chart(
        wins.curves[0].shares,
        {curve.label: curve.usd for curve in wins.curves},
        wins.used_share,
        currency,
        CURVE_HEIGHT,
        marks,
    )
    told = "; ".join(f"{curve.label} {currency.money(curve.end[1])}" for curve in wins.curves)
    return {
        "svg": pictures.to_svg(spec),
        "alt": "Cost of a useful hour against the share of the hours used. "
        f"With all hours used: {told}",
    }
