"""The chart's line of the best mix, against a search through every number of owned machines."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from engine.assess import assess
from engine.cost.cash_flow import HOURS_PER_MONTH
from engine.cost.monthly import monthly_cost
from engine.costing.case import case_of
from engine.costing.report import cost_report
from engine.costing.wins import SHARES
from engine.workload.cost_terms import CostTerms, DemandBy
from engine.workload.examples import EXAMPLES
from engine.workload.settings import Settings

LEVELS, PARTS = (2.0, 5.0, 9.0, 12.0), (0.4, 0.3, 0.2, 0.1)


@pytest.mark.parametrize("at", [12, 14, 16, 40])  # 54, 59, 64 and 100% of the hours used
def test_an_owned_base_of_the_chart_is_costed_as_the_fleet_that_it_is(at: int) -> None:
    """A few machines carry the staff and switches of a few, not a part of those of the peak."""
    terms = CostTerms(demand_by=DemandBy.log, log_levels=LEVELS, log_shares=PARTS)
    answer = assess(
        EXAMPLES["recommender-1tb"].workload,
        settings=Settings(costs=terms),
        today=date(2026, 12, 1),
        draws=64,
    )
    shown = next(c for c in cost_report(answer, draws=64).wins.curves if c.label == "best mix")
    case = case_of(answer, None, "", 64)
    pool = case.lead(case.at_point(case.specs["on_demand"]))
    owner, machines = pool.unit.prices["buy"].owner, 12
    assert owner is not None
    price = pool.unit.prices["on_demand"].likely  # a server is rented and bought whole
    # The levels grow by one factor k and stop at the fleet: E[min(M, k·D)] = share × M, by halving.
    share = float(SHARES[at])
    level, part = np.array(LEVELS), np.array(PARTS)
    low, high = 0.0, 100.0
    for _ in range(100):
        k = (low + high) / 2
        mean = float(np.minimum(level * k, machines) @ part)
        low, high = (k, high) if mean < share * machines else (low, k)
    asked = np.minimum(level * k, machines)
    costs = [price * share * machines]
    for q in range(1, machines + 1):
        own = owner.ownership(q, case.months)
        held = float(np.minimum(asked, q) @ part)
        flow = monthly_cost(own, "buy", q, held / q * HOURS_PER_MONTH, case.months)
        hours = (case.months - own.delivery_months) * HOURS_PER_MONTH
        costs.append(float(np.sum(flow.total)) / hours + price * (share * machines - held))
    # Owning is the cheapest base there, and spot is barred.
    assert shown.usd[at] == pytest.approx(min(costs) / (share * machines), rel=1e-9)
    assert shown.usd[at] <= price
