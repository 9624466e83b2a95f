"""Moving a job from CPUs to GPUs, or back: what it costs, and when it has paid for itself.

Engineering takes longer than planned, both systems run while it lasts, and afterwards each month
saves the difference of the bills and the worth of the time gained. When that is nothing or less,
the answer is "never in cash", and the move may still be right for its speed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from engine.cost.break_even import Range
from engine.cost.cash_flow import CashFlow, CashLine, every_month
from engine.cost.checks import not_negative, positive, whole_months


@dataclass(frozen=True, slots=True)
class Migration:
    """One move. US dollars, months, hours.

    usd_before, usd_after : monthly bill of the old and of the new system
    hours_before, hours_after : of one run
    runs_per_month : runs of the job
    usd_per_hour_saved : what an hour of waiting less is worth; 0 counts cash only
    engineers, planned_months, usd_per_engineer_month : the plan
    overrun : time taken over time planned, likely and as a range
    """

    usd_before: float
    usd_after: float
    hours_before: float
    hours_after: float
    runs_per_month: float
    engineers: float
    planned_months: float
    usd_per_engineer_month: float
    overrun: Range
    usd_per_hour_saved: float = 0.0


@dataclass(frozen=True, slots=True)
class MigrationResult:
    """What the move costs and brings. `payback_month` counts from the start of the work.

    payback_month : None is never; `payback_early`, `payback_late` at the ends of the overrun
    """

    speedup: float
    months_of_work: Range
    engineering_usd: Range
    both_systems_usd: Range
    saved_usd_per_month: float
    cash_saved_usd_per_month: float
    payback_month: int | None
    payback_early: int | None
    payback_late: int | None
    text: str


def assess(move: Migration) -> MigrationResult:
    """Cost, gain and payback of a move, with the range of its overrun."""
    _check(move)
    cash = move.usd_before - move.usd_after
    hours_saved = (move.hours_before - move.hours_after) * move.runs_per_month
    saved = cash + hours_saved * move.usd_per_hour_saved
    work = _scaled(move.overrun, move.planned_months)
    engineering = _scaled(work, move.engineers * move.usd_per_engineer_month)
    both = _scaled(work, move.usd_after)
    paybacks = [
        _payback(months, engineering_usd + both_usd, saved)
        for months, engineering_usd, both_usd in (
            (work.likely, engineering.likely, both.likely),
            (work.low, engineering.low, both.low),
            (work.high, engineering.high, both.high),
        )
    ]
    return MigrationResult(
        speedup=move.hours_before / move.hours_after,
        months_of_work=work,
        engineering_usd=engineering,
        both_systems_usd=both,
        saved_usd_per_month=saved,
        cash_saved_usd_per_month=cash,
        payback_month=paybacks[0],
        payback_early=paybacks[1],
        payback_late=paybacks[2],
        text=_text(cash, saved, paybacks[0]),
    )


def cash_flow(move: Migration, horizon_months: int, overrun: float | None = None) -> CashFlow:
    """The move as a table: both bills and the engineers while it lasts, the new bill alone after.

    overrun : one value of the range; None takes the likely one
    """
    months = whole_months("horizon_months", horizon_months)
    factor = move.overrun.likely if overrun is None else overrun
    during = min(math.ceil(move.planned_months * factor), months)
    # The last month of the work may be a part of a month.
    work = every_month(months, until=during)
    if during:
        work[during - 1] = min(1.0, move.planned_months * factor - (during - 1))
    lines = (
        CashLine("Old system", "running", move.usd_before, every_month(months, until=during)),
        CashLine("New system", "running", move.usd_after, every_month(months)),
        CashLine("Engineers", "capital", move.engineers * move.usd_per_engineer_month, work),
    )
    useful = move.runs_per_month * move.hours_after * months
    return CashFlow("migration", months, lines, useful)


def runs_where_renting_is_the_cheaper(
    usd_owned_per_month: float, usd_per_hour_all_machines: float, hours_per_run: float
) -> tuple[float, float]:
    """US dollars to rent the machines for one run, and the runs a month up to which that wins."""
    per_run = float(positive("usd_per_hour", usd_per_hour_all_machines)) * float(
        positive("hours_per_run", hours_per_run)
    )
    return per_run, float(positive("usd_owned_per_month", usd_owned_per_month)) / per_run


# --- helpers


def _scaled(span: Range, factor: float) -> Range:
    return Range(span.low * factor, span.likely * factor, span.high * factor)


def _payback(months_of_work: float, spent_usd: float, saved_usd: float) -> int | None:
    if saved_usd <= 0:
        return None
    return math.ceil(months_of_work + spent_usd / saved_usd)


def _text(cash: float, saved: float, payback: int | None) -> str:
    if payback is not None:
        kind = "cash" if cash > 0 and np.isclose(cash, saved) else "cash and time"
        return f"It has paid for itself in {kind} in month {payback}."
    bill = f"the bill rises by ${-cash:,.0f} a month" if cash < 0 else "the bill stays the same"
    return f"Never in cash: {bill}. Only the time gained can pay for the move."


def _check(move: Migration) -> None:
    for field in ("usd_before", "usd_after", "hours_before", "hours_after"):
        positive(field, getattr(move, field))
    for field in (
        "runs_per_month",
        "engineers",
        "planned_months",
        "usd_per_engineer_month",
        "usd_per_hour_saved",
    ):
        not_negative(field, getattr(move, field))
    positive("overrun", move.overrun.low, below=10)
    positive("overrun", move.overrun.high, below=10)
