"""The report as rows of texts in the reader's currency, for the page and for a printed table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.cost.break_even import BreakEven, Range
from engine.cost.cash_flow import SECTIONS, CashFlow, Row, Section
from engine.cost.migration import MigrationResult
from engine.cost.worked_cases import CaseRow, WorkedCase
from engine.costing.demand import SOURCES
from engine.costing.model import CostReport, Leaving, Way
from engine.costing.wins import BEST_MIX
from engine.estimate.estimate import Estimate
from engine.report.currency import Currency
from engine.wording import count, number
from engine.workload.cost_terms import DemandBy

SECTION_TITLES: dict[Section, str] = {
    "rent": "Rent",
    "fees": "Fees of the cloud",
    "capital": "Purchase",
    "running": "Running it",
    "financing": "Cost of capital",
    "resale": "Resale",
}
CENT = 0.01  # dollars; below half of one nothing is paid
# Said where a purchase stands in the list that does not count: it is for another place.
OTHER_PLACE = (
    "The other place is not the one that you chose for owned machines: choose it under Owning, and "
    "it ranks."
)
USE_TITLES = {
    "stress_tests": "Stress tests",
    "evaluation": "Evaluation of models",
    "internal_tools": "Internal tools",
    "nothing": "Nothing at all",
}


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of the cash-flow table in the reader's currency; `kind` is "row" or "sum"."""

    section: str
    item: str
    amounts: tuple[float, ...]
    total: float
    kind: str
    sources: tuple[str, ...] = ()


def cash_table(flow: CashFlow, currency: Currency, by_year: bool) -> list[TableRow]:
    """The table with the sum of each section and of all, by month or by year."""
    found: list[TableRow] = []
    rows = flow.table()
    for section in SECTIONS:
        of = [row for row in rows if row.section == section]
        title = SECTION_TITLES[section]
        found += [_row(title, row, currency, by_year) for row in of]
        if len(of) > 1:
            found.append(_sum(title, f"{title}, sum", of, currency, by_year))
    return [*found, _sum("All", "Total", rows, currency, by_year)]


def periods(months: int, by_year: bool) -> list[str]:
    """Headings of the table's columns."""
    if not by_year:
        return [f"Month {m + 1}" for m in range(months)]
    return [f"Year {y + 1}" for y in range(-(-months // 12))]


def ways_table(report: CostReport, currency: Currency) -> list[dict[str, str]]:
    """Each way that has a price with its sums, the cheapest allowed first, barred ways last."""
    return [
        {
            "Way": named(way),
            "A month": _money(way.headline.per_month, currency),
            f"In {count(report.months, 'month')}": currency.money(way.headline.total.likely),
            "Today's value": currency.money(way.headline.npv.likely),
        }
        for way in ordered(report.ways)
        if way.headline is not None
    ]


def mix_rows(report: CostReport, currency: Currency) -> list[dict[str, str]]:
    """The best mix for each base beside the pure forms that meet the same demand.

    Left out are those with a burst that may not be used, also where none of it is needed.
    """

    def usable(way: Way) -> bool:
        return way.allowed and report.way(way.acquisition.rpartition("+")[2]).allowed

    return [
        {
            "Mix": way.label,
            "A month": _money(way.headline.per_month, currency),
            "Committed alone": currency.money(way.committed_alone),
            "Rented alone": currency.money(way.rented_alone),
        }
        for way in ordered(report.demand.mixes)
        if way.headline is not None and usable(way)
    ]


def mixes_barred(report: CostReport) -> list[str]:
    """Why some mixes are left out."""
    return [
        f"{w.label[0].lower()}{w.label[1:]}: {'; '.join(w.refusals)}"
        for w in report.demand.mixes
        if w.refusals
    ]


def move_rows(found: MigrationResult, currency: Currency) -> list[tuple[str, str]]:
    """The figures of a move with the range of its overrun."""

    def money(span: Range) -> str:
        return (
            f"{currency.money(span.likely)} ({currency.money(span.low)} to "
            f"{currency.money(span.high)})"
        )

    def month(at: int | None) -> str:
        return "never" if at is None else f"month {at}"

    work = found.months_of_work
    rows = [
        ("Months of work", f"{number(work.likely)} ({number(work.low)} to {number(work.high)})"),
        ("Engineers", money(found.engineering_usd)),
        ("Both systems at once", money(found.both_systems_usd)),
        ("Saved a month in cash", currency.money(found.cash_saved_usd_per_month)),
        ("Saved a month with the time gained", currency.money(found.saved_usd_per_month)),
        (
            "Paid for itself",
            f"{month(found.payback_month)} ({month(found.payback_early)} to "
            f"{month(found.payback_late)})",
        ),
    ]
    if found.speedup != 1:
        rows.insert(0, ("A run is faster by", f"{number(found.speedup)} times"))
    return rows


# What overran the plans of moves in the articles.
RISKS = (
    "What makes such plans longer: skills that the team does not have yet, people who leave "
    "midway, deployments that fail, copies that turn out to be most of the run. The later end of "
    "the range is the article's factor of three."
)


def leaving_rows(found: Leaving, currency: Currency) -> list[tuple[str, str]]:
    """What leaving takes, each part with what it stands for."""
    data = currency.money(found.data_out_usd) if found.data_out_usd else "nothing"
    if not found.data_gb:
        data = "no stored data told"
    owed = currency.money(found.owed_usd)
    rows = [
        ("Data sent out", data + (f", for {number(found.data_gb)} GB" if found.data_gb else "")),
        (
            "Commitment left",
            f"{owed}, {count(found.owed_months, 'month')} of it"
            if found.owed_months
            else "nothing",
        ),
        ("Machines sold", currency.money(found.resale_usd) if found.resale_usd else "nothing"),
        ("In all", _in_all(found.usd, currency)),
    ]
    return rows


def _in_all(usd: float, currency: Currency) -> str:
    """What leaving comes to: to pay, coming in, or neither."""
    if abs(usd) < CENT / 2:
        return "nothing to pay"
    return f"{currency.money(usd)} to pay" if usd > 0 else f"{currency.money(-usd)} come in"


def to_hundred(shares: Sequence[float]) -> tuple[float, ...]:
    """The shares brought to a sum of 100; none at all stay as they are usual."""
    total = sum(shares)
    return tuple(100 * share / total for share in shares) if total > 0 else ()


def named(way: Way) -> str:
    """The way with what speaks against counting on it."""
    if not way.allowed:
        return f"{way.label} (ruled out)"
    return f"{way.label} (the other place)" if way.elsewhere else way.label


def ordered(ways: Sequence[Way]) -> list[Way]:
    """Allowed ways by their cost, then those with a price that are barred, then the rest."""

    def key(way: Way) -> tuple[int, float]:
        usd = way.headline.per_month.likely if way.headline is not None else 0.0
        return (0 if way.allowed else 1 if way.headline is not None else 2, usd)

    return sorted(ways, key=key)


def per_unit(way: Way, currency: Currency) -> list[tuple[str, str, str]]:
    """The sums over a way's table: label, figure, interval; "never" where nothing is counted."""
    h = way.headline
    if h is None:
        return []
    named: list[tuple[str, Estimate | None]] = [
        ("Cost a month", h.per_month),
        ("Total", h.total),
        ("Today's value of it", h.npv),
        ("A useful hour", h.per_useful_hour),
    ]
    if h.per_run is not None:
        named.append(("A run", h.per_run))
    if h.counted:
        named.append((f"A million {h.counted}", h.per_million))
    return [
        (label, _maybe(e, currency), currency.interval(e) if e is not None else "nothing is done")
        for label, e in named
    ]


def _one(machine: str) -> str:
    """What a useful hour is of: one GPU of a machine that holds several, or the machine."""
    if machine.startswith("1 × "):
        return f"one {machine.removeprefix('1 × ')}"
    return f"one GPU of {machine}" if " × " in machine else f"one {machine}"


def best_told(report: CostReport) -> str:
    """In which sense each mix is the best."""
    demand = report.demand.demand
    together = report.demand.source == SOURCES[DemandBy.plan]
    if together or (demand is not None and demand.all_or_nothing):
        first = "Each is the exact best of machines that work together: none, or all at once."
    else:
        first = (
            "Each is the exact best: no other number of committed machines is cheaper for this "
            "demand."
        )
    return f"{first} The three sums of a row meet the same demand, hour by hour."


def curves_told(report: CostReport) -> list[str]:
    """What the curves of a useful hour are of, the articles' marks in it, and what the mix is."""
    marks = {m.id: f"{m.value:.0%}" for m in report.wins.marks if m.unit == "share of hours"}
    found = [
        f"For {_one(report.demand.machine)}, over {count(report.months, 'month')}. Dots: "
        "break-evens. Dashed lines upright: the articles rent below "
        f"{marks['mark_share_rent']} of the hours, own from {marks['mark_share_on_premises']}, "
        f"build from {marks['mark_share_build']}."
    ]
    if any(c.label == BEST_MIX for c in report.wins.curves):
        found.append(
            "Pale band: the cheapest allowed mix of a committed base and a rented burst. "
            + (
                "The plan's machines all work or all rest, so its mix is always one of its two "
                "parts; state your own demand to see where both pay."
                if report.demand.source == SOURCES[DemandBy.plan]
                else "Your demand is all on or all off, so its mix is always one of its two parts."
                if report.demand.demand is not None and report.demand.demand.all_or_nothing
                else "Its demand has the pattern and machines that you state, grown or shrunk to "
                "each use; the lines are of the plan's machines."
            )
        )
    return found


def paid_told(report: CostReport) -> list[str]:
    """Why the lines of what has been paid cross later than owning begins to pay."""
    at = report.wins.months
    if at is None or at.value is None or at.value > report.months:
        return []
    return [
        f"From month {at.value:.0f} on owning has cost less than on demand if the machines are "
        "sold in that month. The lines keep them to the end and count their sale there, so they "
        "cross later."
    ]


def break_even_rows(report: CostReport, currency: Currency) -> list[dict[str, str]]:
    """All break-evens with their ranges and the articles' mark beside each."""
    wins = report.wins
    marks = {m.id: m for m in wins.marks}
    shares = " / ".join(
        f"{marks[k].value:.0%}"
        for k in ("mark_share_rent", "mark_share_on_premises", "mark_share_build")
    )
    runs = f"{marks['mark_runs_rent'].value:g} / {marks['mark_runs_buy'].value:g}"
    found = [
        _even(f"{label.capitalize()} beats on demand above", point, "{:.0%}".format, shares)
        for label, point in wins.utilization
    ]
    found += [
        _even(f"{label} beats paying by the run from", point, _runs_a_month, runs)
        for label, point in wins.runs
    ]
    if wins.months is not None:
        stable = f"{marks['mark_months_stable'].value:.0f} months"
        month = "{:.0f}".format
        found.append(_even("Owning beats on demand from month", wins.months, month, stable))
    if wins.rent is not None and wins.rent.value is not None:
        point = BreakEven(
            currency.of(wins.rent.value),
            None if wins.rent.low is None else currency.of(wins.rent.low),
            None if wins.rent.high is None else currency.of(wins.rent.high),
            wins.rent.unit,
            wins.rent.text,
        )
        money = f"{currency.sign}{{:,.2f}}".format
        found.append(_even("Owning beats an hourly rent above", point, money, "none"))
    return found


def _runs_a_month(runs: float) -> str:
    """Three digits; two of rare ones, which are known no better."""
    return f"{number(runs, digits=3 if runs >= 1 else 2)} runs a month"


def _even(
    what: str, point: BreakEven, words: Callable[[float], str], article: str
) -> dict[str, str]:
    def text(value: float | None) -> str:
        return "never" if value is None else words(value)

    return {
        "Break-even": what,
        "At": text(point.value),
        "Range": _between(text(point.low), text(point.high)),
        "The articles": article,
    }


def _between(low: str, high: str) -> str:
    """A range without saying the same twice."""
    if low == high:
        return low
    first, _, unit = low.partition(" ")
    return f"{first if unit and high.endswith(unit) else low} to {high}"


def idle_rows(report: CostReport, currency: Currency) -> list[dict[str, str]]:
    """The planned idle hours by what they are used for."""
    bill = float(report.idle.usd_per_month)
    return [
        {
            "Use": USE_TITLES[use],
            "Share of the idle hours": f"{float(usd) / bill:.0%}" if bill else "0%",
            "A month": currency.money(float(usd)),
        }
        for use, usd in report.idle.usd_by_use.items()
    ]


def case_rows(case: WorkedCase) -> list[dict[str, str]]:
    """The figures of a case of the articles: as written, corrected, and what is to be said."""
    return [
        {
            "Figure": row.label,
            "As written": "left out" if row.written is None else _figure(row.written, row.unit),
            "Corrected": "never" if row.corrected is None else _figure(row.corrected, row.unit),
            "Why": row.reason or ("Right." if _same(row) else ""),
        }
        for row in case.rows
    ]


def _same(row: CaseRow) -> bool:
    return (
        row.written is not None
        and row.corrected is not None
        and math.isclose(row.written, row.corrected, rel_tol=0.005)
    )


def _figure(value: float, unit: str) -> str:
    """A figure with its unit: money to the dollar, or to the cent where it is small."""
    if unit.startswith("share"):
        return f"{value:.1%}{unit.removeprefix('share')}".replace("-", "−")
    if unit.startswith("USD"):
        amount = f"{abs(value):,.0f}" if abs(value) >= 1000 else f"{abs(value):,.2f}"
        return f"{'−' if value < 0 else ''}${amount}{unit.removeprefix('USD').replace('/', ' a ')}"
    one = unit.removesuffix("s") if value == 1 else unit
    return f"{number(value)} {one}".removesuffix(" ratio")


def _money(estimate: Estimate, currency: Currency) -> str:
    return f"{currency.money(estimate.likely)} ({currency.interval(estimate)})"


def _maybe(estimate: Estimate | None, currency: Currency) -> str:
    return "never" if estimate is None else currency.money(estimate.likely)


def _row(title: str, row: Row, currency: Currency, by_year: bool) -> TableRow:
    amounts = tuple(currency.of(usd) for usd in _by_period(row.by_month, by_year))
    return TableRow(title, row.item, amounts, currency.of(row.total), "row", row.sources)


def _sum(title: str, item: str, rows: Sequence[Row], currency: Currency, by_year: bool) -> TableRow:
    months = [sum(column) for column in zip(*(row.by_month for row in rows), strict=True)]
    amounts = tuple(currency.of(usd) for usd in _by_period(months, by_year))
    return TableRow(title, item, amounts, currency.of(sum(row.total for row in rows)), "sum")


def _by_period(months: Sequence[float], by_year: bool) -> list[float]:
    if not by_year:
        return list(months)
    return [sum(months[i : i + 12]) for i in range(0, len(months), 12)]
