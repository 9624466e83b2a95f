"""The articles' money cases: as written, corrected, and why they differ.

The inputs are rows of data/cost_parameters.csv with the claim they come from; the corrections go
through the same functions as any other plan. A row without a written figure is one that the article
leaves out; a row without a correction is as written and right.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from engine.cost.worked_cases.case import CaseRow, WorkedCase
from engine.cost.worked_cases.losses import checkpoints, corruption, idle, lost_hours
from engine.cost.worked_cases.moving import logistics
from engine.cost.worked_cases.offers import (
    dedicated_prices,
    hourly_slip,
    option_a,
    price_trend,
    rents,
)
from engine.cost.worked_cases.owning import (
    client_20,
    cluster_16,
    dgx_b200,
    own_or_rent,
    purchase_prices,
    resale,
    running_cost,
)
from engine.cost.worked_cases.runs import break_even_runs, runs_47

__all__ = ["CASES", "CaseRow", "WorkedCase", "worked_cases"]

CASES: tuple[Callable[[], WorkedCase], ...] = (
    runs_47,
    break_even_runs,
    dedicated_prices,
    rents,
    option_a,
    dgx_b200,
    resale,
    running_cost,
    idle,
    corruption,
    hourly_slip,
    lost_hours,
    cluster_16,
    client_20,
    logistics,
    checkpoints,
    purchase_prices,
    own_or_rent,
    price_trend,
)


@cache
def worked_cases() -> tuple[WorkedCase, ...]:
    """All cases, in the order of the articles."""
    return tuple(case() for case in CASES)
