"""The costs as a workbook with live totals: change a cell, and every sum over it moves.

A sheet for each way holds its table. Sums, present value and the costs of an hour, a run and a
million are formulas over the cells of that table and of the sheet of inputs; the summary points at
them. Beside each formula stands its value, for viewers that don't calculate. Words are never
formulas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.assessment import Assessment
from engine.cost.cash_flow import SECTIONS, CashLine, Row
from engine.costing.model import CostReport, Way
from engine.costing.view import SECTION_TITLES
from engine.estimate.estimate import Estimate
from engine.report import words
from engine.report.charts import WAY_COLOURS
from engine.report.costs_csv import lines as csv_lines
from engine.report.costs_words import (
    counts,
    crossings,
    headlines,
    months_text,
    on_stated_demand,
    prices,
    verdict,
    with_tables,
)
from engine.report.currency import Currency, currency_of
from engine.report.workbook import AMOUNT, PLAIN, WHOLE, Book, Line, Sheet, span
from engine.report.workbook import at as cell_at

SMALL = "#,##0.00####;[Red]-#,##0.00####"  # the cost of a million may be a part of a cent
MONTHS_A_PAGE = 12  # columns of months that can be read on a printed page
HEADER = 4  # row of a way's sheet that holds the months, counted from 0
FIRST = 4  # its first column of a month
LIVE = (
    "Blue cells are inputs: change one, and the sums on all sheets move. Ranges (low, high) come "
    "from the model and stay as they are."
)


def costs_xlsx(report: CostReport, answer: Assessment, link: str = "") -> bytes:
    """The workbook: summary, inputs, a sheet for each way with a table, break-evens, prices, terms.

    report : the costs of one hardware of `answer`
    link : the address that opens the answer; left out when empty
    """
    label = words.one_line(report.hardware_label)
    book = Book(f"ClusterFit: costs of {label}", answer.today)
    file = _File(book, report, answer, currency_of(answer.settings.costs))
    summary = book.sheet("Summary", [42, *[16] * 12])
    inputs = _inputs(file)
    placed = [_way(file, way, inputs) for way in with_tables(report)]
    _summary(file, summary, placed, link)
    _break_evens(file)
    _prices(file, inputs)
    _details(file, "Terms", ("Terms", "Answers"))
    _details(file, "Details", ("Ways", "Demand", "Idle hours", "Move", "Electricity"))
    return book.close()


@dataclass(frozen=True, slots=True)
class _File:
    """What every sheet is made from."""

    book: Book
    report: CostReport
    answer: Assessment
    currency: Currency

    @property
    def converted(self) -> bool:
        """Whether another currency than US dollars is shown too."""
        return self.currency.code != "USD"

    def verdict(self, way: Way) -> str:
        """What is said of a way beside its figures."""
        return verdict(self.report, way, self.answer.settings.costs)


# --- the inputs that formulas read


@dataclass(slots=True)
class _Inputs:
    """Addresses of the inputs; empty where there is no such input."""

    rate: str
    currency: str = ""
    runs: str = ""
    millions: str = ""
    hours: dict[str, str] = field(default_factory=dict)


def _inputs(file: _File) -> _Inputs:
    report, currency = file.report, file.currency
    sheet = file.book.sheet("Inputs", (46, 18, 34, 34))
    sheet.title("Inputs")
    sheet.text(1, 0, LIVE)
    sheet.head(3, ("Input", "Value", "Unit", "From"), figures=("Value",))
    row = 4

    def put(title: str, value: float, unit: str, source: str, style: str = "") -> str:
        nonlocal row
        sheet.text(row, 0, title)
        usual = WHOLE if float(value).is_integer() else PLAIN
        sheet.input(row, 1, value, num_format=style or usual)
        sheet.text(row, 2, unit)
        sheet.text(row, 3, source)
        row += 1
        return sheet.cell(row - 1, 1)

    stated = file.answer.settings.costs.discount_pct is not None
    source = "your term" if stated else "likely cost of capital of the table"
    found = _Inputs(put("Discount rate", report.discount_rate, "a year", source, "0.00%"))
    if file.converted:
        title, unit = f"{currency.code} for one US dollar", f"{currency.code}/USD"
        found.currency = put(title, currency.per_usd, unit, currency.note, "#,##0.######")
    n = counts(report)
    if n.runs_per_month is not None:
        found.runs = put("Runs", n.runs_per_month, "runs a month", "the answers")
    if n.millions_per_month is not None:
        unit = f"million {n.counted} a month"
        title = n.counted.capitalize()
        found.millions = put(title, n.millions_per_month, unit, "the answers")
    first: tuple[float, str] | None = None
    for way in with_tables(report):
        assert way.flow is not None
        hours = float(way.flow.useful_hours) / way.flow.months
        title = f"Useful hours: {way.label}"
        if first is not None and math.isclose(hours, first[0]):
            sheet.text(row, 0, title)
            sheet.formula(row, 1, first[1], hours, num_format=PLAIN)
            sheet.text(row, 2, "h a month")
            sheet.text(row, 3, "as above")
            found.hours[way.id] = sheet.cell(row, 1)
            row += 1
            continue
        found.hours[way.id] = put(title, hours, "h a month", "the plan")
        first = first or (hours, found.hours[way.id])
    return found


# --- a way


@dataclass(slots=True)
class _Placed:
    """A way on its sheet: the cells of its headline sums, in dollars and in the other currency.

    paid : sheet, row and columns of what is paid by the end of each month
    """

    way: Way
    paid: tuple[str, int, int, int]
    usd: dict[str, str] = field(default_factory=dict)
    other: dict[str, str] = field(default_factory=dict)


def _way(file: _File, way: Way, inputs: _Inputs) -> _Placed:
    flow, months = way.flow, file.report.months
    assert flow is not None
    sheet = file.book.sheet(_sheet_name(way), (15, 34, 18, 18, *[15] * (months + 2), 50))
    apart = " For the demand that you stated." if way in on_stated_demand(file.report) else ""
    sheet.title(way.label)
    sheet.text(1, 0, f"{file.report.hardware_label}, {months_text(months)}.{apart}")
    sheet.text(2, 0, "; ".join((file.verdict(way), *way.notes)))
    sheet.text(3, 0, f"US dollars: paid is positive, received negative. {LIVE}")
    sheet.head(HEADER, ("Section", "Item", "Paid at", "In present value"))
    for month in range(months):
        sheet.number(
            HEADER, FIRST + month, month + 1, num_format='"Month "0', bold=True, bottom=1,
            align="right",
        )  # fmt: skip
    ends = ("Total", "Present value")
    sheet.head(HEADER, (*ends, "Source"), FIRST + months, ends)
    sheet.page.fit_to_pages(max(1, math.ceil(months / MONTHS_A_PAGE)), 0)
    sheet.page.set_row(HEADER, 30)
    sheet.page.freeze_panes(HEADER + 1, 2)
    sheet.page.repeat_rows(HEADER)
    sheet.page.repeat_columns(0, 1)

    pairs = list(zip(flow.lines, flow.table(), strict=True))
    row, sums, everything = HEADER + 1, [], []
    for section in SECTIONS:
        rows = [(line, r) for line, r in pairs if r.section == section]
        if not rows:
            continue
        top = row
        values = [_cash_row(file, sheet, row + i, pair, inputs.rate) for i, pair in enumerate(rows)]
        row += len(rows)
        sheet.text(row, 1, f"{SECTION_TITLES[section]}, sum", bold=True, top=1)
        for i, column in enumerate(zip(*values, strict=True)):
            at = FIRST + i
            cells = span((top, at), (row - 1, at))
            sheet.formula(row, at, f"SUM({cells})", sum(column), bold=True, top=1)
        sums.append(row)
        everything += values
        row += 1
    totals = [sum(column) for column in zip(*everything, strict=True)]
    sheet.text(row, 1, "All rows", bold=True, top=6)
    for i, value in enumerate(totals):
        added = "+".join(cell_at(r, FIRST + i) for r in sums)
        sheet.formula(row, FIRST + i, added, value, bold=True, top=6)
    sheet.text(row + 1, 1, "Paid by the end of the month")
    paid = 0.0
    for month in range(months):
        at, paid = FIRST + month, paid + totals[month]
        before = f"{cell_at(row + 1, at - 1)}+" if month else ""
        sheet.formula(row + 1, at, f"{before}{cell_at(row, at)}", paid)
    return _headline(file, sheet, way, inputs, row)


def _sheet_name(way: Way) -> str:
    if way.mix is None:
        return way.label
    base, _, burst = way.acquisition.removeprefix("mix_").partition("+")
    return f"Mix {base} + {burst}".replace("_", " ")


def _cash_row(
    file: _File, sheet: Sheet, at: int, pair: tuple[CashLine, Row], rate: str
) -> list[float]:
    """One row of the table; returns its amounts by month, its total and its present value."""
    line, row = pair
    months = len(row.by_month)
    counted = row.section != "financing"  # discounting is the same charge in another form
    sheet.text(at, 0, SECTION_TITLES[row.section])
    sheet.text(at, 1, row.item)
    sheet.text(at, 2, line.at)
    sheet.text(at, 3, "yes" if counted else "no")
    for month, usd in enumerate(row.by_month):
        sheet.input(at, FIRST + month, usd)
    cells = span((at, FIRST), (at, FIRST + months - 1))
    header = span((HEADER, FIRST), (HEADER, FIRST + months - 1), fixed_rows=True)
    sheet.formula(at, FIRST + months, f"SUM({cells})", row.total)
    present = float(line.present_value(file.report.discount_rate)) if counted else 0.0
    # Paid at the start of month m: m − 1 months from today; at its end: m months.
    late = f'({header}-({cell_at(at, 2)}="start")*1)/12'
    worth = f"SUMPRODUCT({cells}*(1+{rate})^(-({late})))"
    sheet.formula(at, FIRST + months + 1, f'IF({cell_at(at, 3)}="no",0,{worth})', present)
    sheet.text(at, FIRST + months + 2, "; ".join(row.sources))
    return [*row.by_month, row.total, present]


def _headline(file: _File, sheet: Sheet, way: Way, inputs: _Inputs, all_rows: int) -> _Placed:
    """The sums below the table, each a formula over it."""
    months = file.report.months
    top = all_rows + 4
    code = file.currency.code
    titles = ("What it comes to", "US dollars", code if file.converted else "", "Low", "High")
    sheet.head(top, titles, 1, titles[1:])
    total, present = cell_at(all_rows, FIRST + months), cell_at(all_rows, FIRST + months + 1)
    count = f"COUNT({span((HEADER, FIRST), (HEADER, FIRST + months - 1))})"
    placed = _Placed(way, (sheet.name, all_rows + 1, FIRST, FIRST + months - 1))
    for row, (name, e) in enumerate(headlines(way), top + 1):
        cell = {
            "Total": "",
            "Cost a month": "",
            "Net present value": "",
            "Cost of a useful hour": inputs.hours[way.id],
            "Cost of a run": inputs.runs,
        }.get(name, inputs.millions)
        # Nothing is counted where every way costs nothing; then one costs nothing, too.
        one = f'IF({cell}=0,"never",{total}/({cell}*{count}))' if cell else total
        formula = {
            "Total": total,
            "Cost a month": f"{total}/{count}",
            "Net present value": present,
        }.get(name, one)
        style = {"num_format": _money(name)}
        sheet.text(row, 1, name, bold=True)
        sheet.formula(row, 2, formula, e.likely, bold=True, **style)
        placed.usd[name] = sheet.cell(row, 2)
        if file.converted:
            other = f"{cell_at(row, 2)}*{inputs.currency}"
            if cell:
                other = f'IF({cell}=0,"never",{other})'
            style_other = _money(name) if _money(name) == SMALL else file.currency.number_format
            money = {"num_format": style_other}
            sheet.formula(row, 3, other, file.currency.of(e.likely), bold=True, **money)
            placed.other[name] = sheet.cell(row, 3)
        sheet.number(row, 4, e.low, **style)
        sheet.number(row, 5, e.high, **style)
    return placed


def _money(name: str) -> str:
    """Format of a headline sum in US dollars."""
    return SMALL if "million" in name else AMOUNT


# --- the other sheets


def _summary(file: _File, sheet: Sheet, placed: list[_Placed], link: str) -> None:
    report, answer, code = file.report, file.answer, file.currency.code
    sheet.title(f"What it costs: {report.hardware_label}. {report.title}")
    day = f"{months_text(report.months)}. As of {words.day(answer.today)}, prices without tax."
    sheet.text(1, 0, f"{day} {file.currency.note}")
    sheet.text(2, 0, f"{LIVE} Low and high hold in 8 of 10 cases.")
    sheet.text(3, 0, link)
    chosen = next(p for p in placed if p.way is report.chosen)
    figures = ("US dollars", *([code] if file.converted else []), "Low", "High")
    sheet.head(5, (f"The way looked at: {report.chosen.label}", *figures), figures=figures)
    row = 6
    for name, e in headlines(chosen.way):
        style = {"num_format": _money(name), "bold": True}
        sheet.text(row, 0, name)
        sheet.formula(row, 1, chosen.usd[name], e.likely, **style)
        at = 2
        if file.converted:
            sheet.formula(row, 2, chosen.other[name], file.currency.of(e.likely), **style)
            at = 3
        sheet.number(row, at, e.low, num_format=style["num_format"])
        sheet.number(row, at + 1, e.high, num_format=style["num_format"])
        row += 1
    base, by_way = 6, {p.way.id: p for p in placed}
    named = list(dict.fromkeys(n for p in placed for n in p.usd))
    row += 1
    for title, ways in (
        ("All ways, US dollars", list(report.ways)),
        ("For the demand that you stated, US dollars", on_stated_demand(report)),
    ):
        if ways:
            against = (base, chosen) if title.startswith("All") else None
            row = _ways(file, sheet, row, title, ways, by_way, named, against) + 1
    _picture(file, sheet, row, placed)


def _picture(file: _File, sheet: Sheet, row: int, placed: list[_Placed]) -> None:
    """What each way has cost by the end of each month, as a picture over the sheets' own cells."""
    shown = [p for p in placed if p.way.allowed or p.way is file.report.chosen]
    lines = [
        Line(
            (p.paid[0], 0, 0),
            (p.paid[0], HEADER, *p.paid[2:]),
            p.paid,
            WAY_COLOURS[i],
            "buy" in p.way.id,
        )
        for i, p in enumerate(shown[: len(WAY_COLOURS)])
    ]
    sheet.line_chart(row, 0, "Paid by the end of each month, US dollars", lines)


def _ways(
    file: _File,
    sheet: Sheet,
    row: int,
    title: str,
    ways: Sequence[Way],
    by_way: dict[str, _Placed],
    named: Sequence[str],
    against: tuple[int, _Placed] | None,
) -> int:
    """A table of ways whose figures point at their sheets; returns the row below it."""
    month = "Cost a month"
    heads = [title, month, "Low", "High", *(n for n in named if n != month)]
    code = file.currency.code
    heads += [f"{month}, {code}"] if file.converted else []
    heads += ["More than the way looked at, a month"] if against else []
    sheet.head(row, [*heads, "Verdict"], figures=heads[1:])
    sheet.page.set_row(row, 30)
    for way in ways:
        row += 1
        sheet.text(row, 0, way.label, text_wrap=True)
        end = len(heads)
        sheet.text(row, end, file.verdict(way))
        one, figures = by_way.get(way.id), dict(headlines(way))
        if one is None or month not in figures:
            continue
        e: Estimate = figures[month]
        sheet.formula(row, 1, one.usd[month], e.likely)
        sheet.number(row, 2, e.low, num_format=AMOUNT)
        sheet.number(row, 3, e.high, num_format=AMOUNT)
        for at, name in enumerate((n for n in named if n != month), 4):
            if name in one.usd:
                value = figures[name].likely
                sheet.formula(row, at, one.usd[name], value, num_format=_money(name))
        if file.converted:
            sheet.formula(row, len(named) + 3, one.other[month], file.currency.of(e.likely))
        if against is not None:
            base, chosen = against
            assert chosen.way.headline is not None
            more = e.likely - chosen.way.headline.per_month.likely
            sheet.formula(row, end - 1, f"{cell_at(row, 1)}-$B${base + 1}", more)
    return row + 1


def _break_evens(file: _File) -> None:
    sheet = file.book.sheet("Break-evens", (62, 14, 14, 14, 20, 60))
    sheet.title("When each way wins")
    figures = ("At", "Low", "High")
    sheet.text(1, 0, "Worked out by the model over the whole ranges; they stay as they are here.")
    sheet.head(3, ("Break-even", *figures, "Unit", "In words"), figures=figures)
    row = 4
    for crossing in crossings(file.report):
        p = crossing.point
        style = {"num_format": "0.0%" if p.unit == "share of hours" else "#,##0.00"}
        sheet.text(row, 0, crossing.item)
        for at, value in ((1, p.value), (2, p.low), (3, p.high)):
            if value is None:
                sheet.text(row, at, "never", align="right")
            else:
                sheet.number(row, at, value, **style)
        sheet.text(row, 4, p.unit)
        sheet.text(row, 5, p.text)
        row += 1
    sheet.head(row + 1, ("As the articles write", "At", "", "", "Unit", "Source"), figures=figures)
    for at, mark in enumerate(file.report.wins.marks, row + 2):
        sheet.text(at, 0, mark.says)
        sheet.number(at, 1, mark.value)
        sheet.text(at, 4, mark.unit)
        sheet.text(at, 5, mark.source)


def _prices(file: _File, inputs: _Inputs) -> None:
    sheet = file.book.sheet("Prices", (16, 44, *[15] * 7, 70))
    sheet.title("Prices")
    sheet.text(1, 0, f"For one GPU or server and hour. Ages count from {file.answer.today}.")
    sheet.text(2, 0, " ".join(file.report.quotes_left_out))
    other = f"{file.currency.code} an hour" if file.converted else ""
    usd = "US dollars an hour"
    heads = ("Provider", "Offer", "Terms", "Region", usd, other, "Read on", "Days old")
    sheet.head(3, (*heads, "Confidence", "Source"), figures=(usd, other, "Days old"))
    for row, p in enumerate(prices(file.report, file.answer), 4):
        sheet.text(row, 0, p.provider)
        sheet.text(row, 1, p.sku)
        sheet.text(row, 2, words.terms(p.acquisition))
        sheet.text(row, 3, p.region or "any")
        sheet.number(row, 4, p.usd_per_unit_hour, num_format=SMALL)
        if file.converted:
            value = file.currency.of(p.usd_per_unit_hour)
            sheet.formula(row, 5, f"{cell_at(row, 4)}*{inputs.currency}", value, num_format=SMALL)
        sheet.day(row, 6, p.as_of)
        warned = {"font_color": "#8f3406", "bold": True} if p.freshness == "warn" else {}
        sheet.number(row, 7, p.age_days, **warned)
        sheet.text(row, 8, p.confidence)
        sheet.text(row, 9, p.source)


def _details(file: _File, name: str, parts: Sequence[str]) -> None:
    """What the CSV holds of some parts, as a sheet."""
    sheet = file.book.sheet(name, (16, 20, 16, 70, 14, 14, 14, 20, 50))
    figures = ("Low", "Likely", "High")
    sheet.head(0, ("Part", "Way", "Section", "Item", *figures, "Unit", "Source"), figures=figures)
    sheet.page.freeze_panes(1, 0)
    row = 1
    for line in csv_lines(file.report, file.answer):
        if line.part not in parts:
            continue
        for at, text in enumerate((line.part, line.way, line.section)):
            sheet.text(row, at, text, text_wrap=True)
        sheet.text(row, 3, line.item, text_wrap=True)
        for at, value in enumerate((line.low, line.likely, line.high), 4):
            sheet.number(row, at, value)
        sheet.text(row, 7, line.unit)
        sheet.text(row, 8, line.source, text_wrap=True)
        row += 1
