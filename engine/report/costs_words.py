"""What every export of the costs is made of: ways with tables, headline sums, crossings, prices.

Figures stay in US dollars and unrounded; the files and pages that use them convert and round.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.assessment import Assessment, PriceRef
from engine.cost.break_even import BreakEven
from engine.cost.compare import Mark
from engine.costing.case import hardware_id
from engine.costing.demand import SOURCES
from engine.costing.model import CostReport, Way
from engine.estimate.estimate import Estimate
from engine.report.currency import Currency
from engine.workload.cost_terms import CostTerms, DemandBy

LIVE = 12  # significant digits of a count that is worked back from two sums


@dataclass(frozen=True, slots=True)
class Crossing:
    """A break-even with what it is of, and the articles' marks of the same unit."""

    item: str
    point: BreakEven
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """What a month counts, for the costs of one; None where nothing of it is counted.

    millions_per_month : millions of what `counted` names
    """

    runs_per_month: float | None
    millions_per_month: float | None
    counted: str


def with_tables(report: CostReport) -> list[Way]:
    """Every way that has a table, those of a stated demand last."""
    return [w for w in (*report.ways, *on_stated_demand(report)) if w.flow is not None]


def on_stated_demand(report: CostReport) -> list[Way]:
    """Mixes for a demand that the user stated: other work than the plan's, so they stand apart."""
    view = report.demand
    if view.source == SOURCES[DemandBy.plan]:
        return []
    return [w for w in view.mixes if w is view.best or (w.mix is not None and w.mix.is_mix)]


def headlines(way: Way) -> list[tuple[str, Estimate]]:
    """The sums over a way's table by name; those that count nothing are left out."""
    h = way.headline
    if h is None:
        return []
    found: list[tuple[str, Estimate | None]] = [
        ("Cost a month", h.per_month),
        ("Total", h.total),
        ("Net present value", h.npv),
        ("Cost of a useful hour", h.per_useful_hour),
        ("Cost of a run", h.per_run),
        (f"Cost of a million {h.counted}", h.per_million),
    ]
    return [(name, estimate) for name, estimate in found if estimate is not None]


def months_text(count: int) -> str:
    """A number of months in words."""
    return f"{count} month{'s' if count != 1 else ''}"


def counts(report: CostReport) -> Counts:
    """Runs and units of a month: those by which the report's own costs of one were divided."""
    runs = units = None
    counted = ""
    for way in report.ways:
        h = way.headline
        if h is None or h.total.likely == 0:
            continue
        if runs is None and h.per_run is not None:
            runs = h.per_month.likely / h.per_run.likely
        if units is None and h.per_million is not None:
            units, counted = h.per_month.likely / h.per_million.likely, h.counted
    return Counts(_tidy(runs), _tidy(units), counted)


def _tidy(count: float | None) -> float | None:
    return None if count is None else float(f"{count:.{LIVE}g}")


def verdict(report: CostReport, way: Way, terms: CostTerms) -> str:
    """Whether a way is the one looked at, the cheapest, or why it can't be had."""
    if way.refusals:
        reason = "; ".join(way.refusals)
        return f"{'Not to be had' if way.flow is None else 'Ruled out'}: {reason}"
    said = ["the way looked at"] if way is report.chosen else []
    if report.cheapest is not None and way.id == report.cheapest.id:
        said.append("the cheapest that is allowed")
    if elsewhere(way, terms):
        said.append("in the place that you did not choose for owned machines")
    return _first_upper(", ".join(said)) if said else "Allowed"


def elsewhere(way: Way, terms: CostTerms) -> bool:
    """Whether a purchase stands in the other place than the one chosen; it is shown to compare."""
    return way.id.startswith("buy_") and way.id != f"buy_{terms.site.value}"


def crossings(report: CostReport) -> list[Crossing]:
    """All break-evens of the report."""
    wins = report.wins

    def beside(unit: str) -> tuple[Mark, ...]:
        return tuple(m for m in wins.marks if m.unit == unit)

    found = [
        Crossing(f"{_first_upper(label)} beats on demand above", point, beside("share of hours"))
        for label, point in wins.utilization
    ]
    found += [
        Crossing(f"{label} beats paying by the run from", point, beside("runs/month"))
        for label, point in wins.runs
    ]
    if wins.months is not None:
        found.append(Crossing("Owning beats on demand from month", wins.months, beside("months")))
    if wins.rent is not None:
        found.append(Crossing("Owning beats an hourly rent above", wins.rent, ()))
    return found


def entering(report: CostReport, answer: Assessment) -> list[PriceRef]:
    """The prices that enter the costs, those of a hybrid's other hardware included; each once."""
    stages = (
        [s.price for s in answer.best.stages if s.price is not None]
        if hardware_id(answer.best.id) == report.hardware
        else []
    )
    return list(dict.fromkeys([*report.prices, *stages]))


def prices(report: CostReport, answer: Assessment) -> list[PriceRef]:
    """The prices that enter, then the alternatives that the answer names; each once."""
    return list(dict.fromkeys([*entering(report, answer), *answer.price_alternatives]))


def in_currency(estimate: Estimate, currency: Currency) -> Estimate:
    """An estimate of US dollars in the reader's currency."""
    return Estimate(
        currency.of(estimate.low),
        currency.of(estimate.likely),
        currency.of(estimate.high),
        estimate.unit.replace("USD", currency.code, 1),
    )


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]
