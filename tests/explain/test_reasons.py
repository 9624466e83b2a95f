"""Reasons for a recommendation say of two numbers only what they show."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from engine.assess import assess
from engine.estimate.estimate import Estimate
from engine.explain.answer import _compared
from engine.workload.examples import EXAMPLES


def test_what_costs_more_as_likely_is_not_called_cheaper() -> None:
    """The mean of all cases can be ahead where the likely one is not: then both ranges are told."""
    answer = assess(EXAMPLES["route-optimization"].workload, today=date(2026, 12, 1), draws=0)
    best = replace(answer.best, usd_per_month=Estimate(500, 7850, 78_400, "USD/month"))
    rival = next(o for o in answer.options if o.placement == "cpu")
    rival = replace(rival, usd_per_month=Estimate(1270, 7440, 3.49e8, "USD/month"))
    told = _compared(best, rival, "cost", 0.07).text
    assert told == (
        "Over all cases its cost counts better: $7,850 a month ($500 to $78,400) against $7,440 a "
        "month ($1,270 to $349 million) for CPU"
    )
    dearer = replace(rival, usd_per_month=Estimate(9000, 20_000, 40_000, "USD/month"))
    assert _compared(best, dearer, "cost", 0.07).text.startswith("It is far cheaper: $7,850")


def test_what_takes_longer_as_likely_is_not_called_faster() -> None:
    answer = assess(EXAMPLES["route-optimization"].workload, today=date(2026, 12, 1), draws=0)
    best = replace(answer.best, time=Estimate(1, 3, 4, "h"))
    rival = next(o for o in answer.options if o.placement == "cpu")
    rival = replace(rival, time=Estimate(1, 2, 100, "h"))
    told = _compared(best, rival, "time", 0.1).text
    assert told == (
        "Over all cases its time counts better: 3 h (1 h to 4 h) against 2 h (1 h to 4.2 days) "
        "for CPU"
    )
