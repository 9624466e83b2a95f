"""Leaving half-way: data out, the rest of a reservation, what a sale brings, worked out by hand."""

from __future__ import annotations

from datetime import date

import pytest

from engine.assess import assess
from engine.costing import view
from engine.costing.model import CostReport
from engine.costing.report import cost_report
from engine.report.currency import currency_of
from engine.workload.cost_terms import CostTerms
from engine.workload.examples import EXAMPLES
from engine.workload.settings import Settings

TODAY = date(2026, 12, 1)


def report(way: str, **terms: object) -> CostReport:
    settings = Settings(costs=CostTerms.model_validate({"way": way, **terms}))
    workload = EXAMPLES["16-nodes-own-or-cloud"].workload
    return cost_report(assess(workload, settings=settings, today=TODAY, draws=64))


def test_the_rest_of_a_reservation_is_owed() -> None:
    """36 months: half is month 18, of years of 12 the second, with 6 months of it to run."""
    found = report("reserved_1y")
    left = found.leaving
    assert left is not None
    assert found.chosen.flow is not None
    assert (left.month, left.owed_months) == (18, 6)
    row = next(x for x in found.chosen.flow.lines if x.item.startswith("Reservation"))
    assert left.owed_usd == pytest.approx(6 * float(row.monthly[17]))
    assert left.resale_usd == 0
    assert left.usd == pytest.approx(left.owed_usd + left.data_out_usd)


def test_on_demand_owes_nothing_and_data_cost_what_the_provider_charges() -> None:
    """Without data told nothing is carried out; 10,000 GB cost the middle of what others charge,
    or the provider's own price, and never less than nothing."""
    found = report("on_demand").leaving
    assert found is not None
    assert (found.owed_months, found.owed_usd, found.data_gb) == (0, 0, 0)
    assert dict(view.leaving_rows(found, currency_of(CostTerms())))["In all"] == "nothing to pay"
    told = report("on_demand", stored_gb=10_000).leaving
    assert told is not None
    assert told.data_gb == 10_000
    assert 0 <= told.data_out_usd <= 10_000 * 0.12


def test_machines_sold_at_half_time_bring_more_than_at_the_end() -> None:
    found = report("buy_colocation")
    left = found.leaving
    assert left is not None
    assert found.chosen.flow is not None
    at_end = -sum(float(x.total) for x in found.chosen.flow.lines if x.item.startswith("Resale"))
    assert left.resale_usd > at_end > 0
    rows = dict(view.leaving_rows(left, currency_of(CostTerms())))
    assert rows["Commitment left"] == "nothing"
    assert rows["In all"].endswith("come in")
