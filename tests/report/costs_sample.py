"""What the tests of the exported costs share: the costs of examples of every kind."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from engine.assess import assess
from engine.assessment import Assessment
from engine.costing.model import CostReport
from engine.costing.report import cost_report
from engine.workload.cost_terms import CostTerms
from engine.workload.examples import EXAMPLES
from engine.workload.settings import Settings
from tests.report.sample import TODAY

# A hybrid; a purchase with a mix; a reservation that outlasts the horizon, with a mix; one that
# fills it; one with months on demand behind it; rent by the month; owning beside the cloud; a
# service of which nothing but requests is counted; a month that is the whole horizon.
NAMES = (
    "fraud-detection",
    "trading-models",
    "disk-bound-pipeline",
    "recommender-1tb",
    "client-40-to-85",
    "13b-47-runs",
    "16-nodes-own-or-cloud",
    "internal-dashboard",
    "lora-7b",
)
EUROS: dict[str, Any] = {"currency": "EUR", "currency_rate": 0.925, "currency_date": TODAY}
STATED: dict[str, Any] = {
    "demand_by": "schedule",
    "demand_machines": 6,
    "hours_per_day": 12,
    "days_per_week": 5,
}


@lru_cache
def costs(name: str, **terms: Any) -> tuple[CostReport, Assessment]:
    """The costs of an example on some terms, and its answer."""
    settings = Settings(costs=CostTerms(**terms))
    answer = assess(EXAMPLES[name].workload, today=TODAY, settings=settings)
    return cost_report(answer), answer
