"""The workbook of the costs: its formulas give the report's figures, and move when a cell does."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from functools import lru_cache
from typing import Any

import openpyxl
import pytest
from openpyxl.utils import get_column_letter

from engine.costing.model import Way
from engine.estimate.estimate import Estimate
from engine.report.costs_xlsx import costs_xlsx
from tests.report.costs_sample import EUROS, NAMES, STATED, costs
from tests.report.formulas import Workbook, is_number

CENT = 0.005
CASES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in NAMES),
    ("trading-models", {**EUROS, "discount_pct": 0}),
    ("16-nodes-own-or-cloud", STATED),
]
IDS = [f"{name}{'-' + next(iter(terms)) if terms else ''}" for name, terms in CASES]


@lru_cache
def data(name: str, **terms: Any) -> bytes:
    return costs_xlsx(*costs(name, **terms), "https://x.example/?v=1")


def book(name: str, **terms: Any) -> Workbook:
    return Workbook(data(name, **terms))


def sheet_of(found: Workbook, way: Way) -> str:
    return next(s for s in found.sheets() if found.cells.get((s, "A1")) == way.label)


def headline(found: Workbook, sheet: str) -> dict[str, float]:
    """The figures below a way's table, worked out from its cells."""
    top = found.find(sheet, "B", "What it comes to")
    row, figures = top + 1, {}
    while (sheet, f"B{row}") in found.cells:
        figures[str(found.cells[sheet, f"B{row}"])] = found.value(sheet, f"C{row}")
        row += 1
    return figures


def expected(way: Way) -> dict[str, float]:
    """The report's own figures under the names of the workbook."""
    h = way.headline
    assert h is not None
    named: dict[str, Estimate | None] = {
        "Cost a month": h.per_month,
        "Total": h.total,
        "Net present value": h.npv,
        "Cost of a useful hour": h.per_useful_hour,
        "Cost of a run": h.per_run,
        f"Cost of a million {h.counted}": h.per_million,
    }
    return {name: e.likely for name, e in named.items() if e is not None}


@pytest.mark.parametrize(("name", "terms"), CASES, ids=IDS)
def test_the_formulas_of_each_way_give_the_reports_figures_to_the_cent(
    name: str, terms: dict[str, Any]
) -> None:
    report, _ = costs(name, **terms)
    found = book(name, **terms)
    for way in report.ways:
        if way.flow is None:
            assert way.label not in {found.cells.get((s, "A1")) for s in found.sheets()}
            continue
        figures = headline(found, sheet_of(found, way))
        assert figures == pytest.approx(expected(way), abs=CENT, rel=1e-12)
        assert figures["Net present value"] == pytest.approx(
            float(way.flow.npv(report.discount_rate)), abs=CENT
        )


@pytest.mark.parametrize(("name", "terms"), CASES, ids=IDS)
def test_the_summary_gives_them_too(name: str, terms: dict[str, Any]) -> None:
    report, _ = costs(name, **terms)
    found = book(name, **terms)
    for item, usd in expected(report.chosen).items():
        row = found.find("Summary", "A", item)
        assert found.value("Summary", f"B{row}") == pytest.approx(usd, abs=CENT)
        if terms.get("currency"):
            assert found.value("Summary", f"C{row}") == pytest.approx(usd * 0.925, abs=CENT)
    for way in report.ways:
        row = found.find("Summary", "A", way.label)
        if way.headline is None:
            assert ("Summary", f"B{row}") not in found.cells
        else:
            month = found.value("Summary", f"B{row}")
            assert month == pytest.approx(way.headline.per_month.likely, abs=CENT)
            assert found.value("Summary", f"E{row}") == pytest.approx(
                way.headline.total.likely, abs=CENT
            )


@pytest.mark.parametrize(("name", "terms"), CASES, ids=IDS)
def test_each_formula_stands_with_its_value_for_viewers_that_dont_calculate(
    name: str, terms: dict[str, Any]
) -> None:
    found = book(name, **terms)
    assert len(found.formulas) > 20
    for sheet, cell in found.formulas:
        stored, computed = found.stored[sheet, cell], found.value(sheet, cell)
        assert is_number(stored), (sheet, cell)
        assert computed == pytest.approx(stored, abs=CENT, rel=1e-9), (sheet, cell)


def test_a_change_of_one_cell_moves_every_sum_over_it() -> None:
    report, _ = costs("trading-models")
    found, before = book("trading-models"), report.way("buy_colocation")
    sheet = sheet_of(found, before)
    row = found.find(sheet, "B", "Power")
    assert before.headline is not None
    was = expected(before)
    # $1,200 more for power in month 12, paid at its end: a year from today.
    cell = f"P{row}"  # months begin in column E
    assert found.value(sheet, "P5") == 12
    found.set(sheet, cell, found.value(sheet, cell) + 1200.0)
    now = headline(found, sheet)
    assert now["Total"] - was["Total"] == pytest.approx(1200, abs=1e-6)
    assert now["Cost a month"] - was["Cost a month"] == pytest.approx(1200 / 36, abs=1e-6)
    added = 1200 / (1 + report.discount_rate)
    assert now["Net present value"] - was["Net present value"] == pytest.approx(added, abs=1e-6)
    summary = found.find("Summary", "A", "Total")
    assert found.value("Summary", f"B{summary}") == pytest.approx(now["Total"])
    other = report.way("on_demand")
    assert headline(found, sheet_of(found, other)) == pytest.approx(expected(other), abs=CENT)


def test_cost_of_capital_moves_the_total_and_not_the_present_value() -> None:
    report, _ = costs("trading-models")
    found, way = book("trading-models"), report.way("buy_colocation")
    sheet = sheet_of(found, way)
    row = found.find(sheet, "A", "Cost of capital")
    was = headline(found, sheet)
    found.set(sheet, f"E{row}", found.value(sheet, f"E{row}") + 500.0)
    now = headline(found, sheet)
    assert now["Total"] - was["Total"] == pytest.approx(500, abs=1e-6)
    assert now["Net present value"] == was["Net present value"]


def test_the_inputs_move_what_they_are_inputs_of() -> None:
    report, _ = costs("13b-47-runs")
    found, way = book("13b-47-runs"), report.chosen
    sheet, was = sheet_of(found, way), expected(report.chosen)

    def put(item: str, value: float) -> None:
        found.set("Inputs", f"B{found.find('Inputs', 'A', item)}", value)

    # Without discounting the present value is the total without the cost of capital.
    put("Discount rate", 0.0)
    assert way.flow is not None
    free = float(way.flow.total) - float(way.flow.section_total("financing"))
    assert headline(found, sheet)["Net present value"] == pytest.approx(free, abs=CENT)
    runs = found.value("Inputs", f"B{found.find('Inputs', 'A', 'Runs')}")
    put("Runs", 2 * runs)
    now = headline(found, sheet)
    assert now["Cost of a run"] == pytest.approx(was["Cost of a run"] / 2)
    assert now["Cost a month"] == pytest.approx(was["Cost a month"])
    put("Runs", 0.0)
    assert headline(found, sheet)["Cost of a run"] == "never"


def test_the_useful_hours_of_one_way_stand_for_all_that_have_as_many() -> None:
    report, _ = costs("client-40-to-85")
    found = book("client-40-to-85")
    first = next(w for w in report.ways if w.flow is not None)
    row = found.find("Inputs", "A", f"Useful hours: {first.label}")
    found.set("Inputs", f"B{row}", found.value("Inputs", f"B{row}") * 4)
    for way in report.ways:
        if way.flow is not None:
            assert first.flow is not None
            assert way.flow.useful_hours == pytest.approx(first.flow.useful_hours)
            now = headline(found, sheet_of(found, way))["Cost of a useful hour"]
            assert now == pytest.approx(expected(way)["Cost of a useful hour"] / 4)


def test_the_rate_of_the_currency_is_live() -> None:
    report, _ = costs("trading-models", **EUROS)
    found = book("trading-models", **EUROS)
    found.set("Inputs", f"B{found.find('Inputs', 'A', 'EUR for one US dollar')}", 2.0)
    row = found.find("Summary", "A", "Total")
    assert found.value("Summary", f"C{row}") == pytest.approx(2 * expected(report.chosen)["Total"])


def test_break_evens_prices_and_terms_have_their_sheets() -> None:
    report, _ = costs("client-40-to-85")
    found = book("client-40-to-85")
    assert found.sheets()[:2] == ["Summary", "Inputs"]
    assert found.sheets()[-4:] == ["Break-evens", "Prices", "Terms", "Details"]
    even = dict(report.wins.utilization)["reserved for 1 year"]
    row = found.find("Break-evens", "A", "Reserved for 1 year beats on demand above")
    for column, value in (("B", even.value), ("C", even.low), ("D", even.high)):
        assert found.value("Break-evens", f"{column}{row}") == pytest.approx(value)
    row = found.find("Break-evens", "A", "Owning beats on demand from month")
    assert report.wins.months is not None
    ends = (report.wins.months.low, report.wins.months.high)
    assert [found.value("Break-evens", f"{c}{row}") for c in "CD"] == [
        "never" if end is None else end for end in ends
    ]
    marks = {found.value("Break-evens", f"B{row + i}") for i in range(4, 11)}
    assert marks == {5, 20, 0.4, 0.5, 0.6, 18, 0.3}
    price = report.prices[0]
    row = found.find("Prices", "B", price.sku)
    shown = [found.value("Prices", f"{c}{row}") for c in "ACDEHJ"]
    assert shown == [
        price.provider,
        "on demand",
        price.region,
        price.usd_per_unit_hour,
        price.age_days,
        price.source,
    ]
    assert found.value("Prices", f"G{row}").date() == price.as_of


def test_the_picture_follows_the_cells_of_each_allowed_way() -> None:
    report, _ = costs("client-40-to-85")
    found = book("client-40-to-85")
    with zipfile.ZipFile(io.BytesIO(data("client-40-to-85"))) as parts:
        drawn = parts.read("xl/charts/chart1.xml").decode()
    for way in report.ways:
        if not way.allowed:
            continue
        sheet = sheet_of(found, way)
        row = found.find(sheet, "B", "Paid by the end of the month")
        last = get_column_letter(4 + report.months)
        assert f"'{sheet}'!$E${row}:${last}${row}" in drawn.replace("&apos;", "'") or (
            f"{sheet}!$E${row}:${last}${row}" in drawn
        )
        assert way.headline is not None
        paid = found.value(sheet, f"{last}{row}")
        assert paid == pytest.approx(way.headline.total.likely, abs=CENT)


def test_words_are_never_formulas() -> None:
    report, answer = costs("fraud-detection")
    workload = answer.workload.model_copy(update={"name": "=1+1"})
    first = replace(report.ways[0], label="=cmd|' /C calc'!A0", notes=("+1", "@SUM(A1)"))
    ways = (first, *report.ways[1:])
    changed = replace(report, ways=ways, chosen=first, hardware_label="-2+3")
    file = openpyxl.load_workbook(
        io.BytesIO(costs_xlsx(changed, replace(answer, workload=workload)))
    )
    texts = [c for s in file for row in s.iter_rows() for c in row if c.data_type == "s"]
    marked = {c.value for c in texts if c.quotePrefix}
    assert {"=cmd|' /C calc'!A0", "@SUM(A1)", "-2+3, 24 months."} <= marked
    formulas = [str(c.value) for s in file for r in s.iter_rows() for c in r if c.data_type == "f"]
    assert not any("calc'!A0" in f or f.startswith("=-2") for f in formulas)


def test_the_same_costs_give_the_same_bytes() -> None:
    report, answer = costs("fraud-detection")
    assert costs_xlsx(report, answer) == costs_xlsx(report, answer)
