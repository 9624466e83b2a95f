"""What it takes to leave the hardware half-way: data sent out, commitments left, the sale.

A plan that can't be left is dearer than it looks; the rows are those of the way's own table.
"""

from __future__ import annotations

import numpy as np

from engine.cost.cloud import fees_for
from engine.cost.rent import TERM_MONTHS
from engine.costing.case import Case
from engine.costing.model import Leaving, Way
from engine.decide.candidates import Unit


def leaving(case: Case, way: Way, unit: Unit) -> Leaving | None:
    """Leaving a way at half of the horizon; None where the way has no price.

    unit : the lead hardware, whose resale by age counts for a purchase
    """
    if way.flow is None:
        return None
    month = max(case.months // 2, 1)
    gb = float(case.terms.stored_gb or case.answer.workload.data_gb or 0.0)
    data = 0.0
    if way.price is not None and gb:
        fees = fees_for(way.price.provider, case.context.catalogue.running, egress_gb=gb).fees
        data = float(np.asarray(fees.egress))
    term = TERM_MONTHS.get(way.acquisition, 0)
    owed = (-month) % term if term else 0
    monthly = sum(
        float(np.asarray(line.monthly)[month - 1])
        for line in way.flow.lines
        if line.item.startswith("Reservation")
    )
    return Leaving(month, gb, data, owed, owed * monthly, _resale(case, way, unit, month))


def _resale(case: Case, way: Way, unit: Unit, month: int) -> float:
    """What the machines bring at that age: the table's row of the end, at the share of then."""
    price = unit.prices.get("buy")
    assert way.flow is not None
    if way.owning is None or price is None or price.owner is None:
        return 0.0
    machines = way.owning.machines
    at_end, then = (
        float(np.asarray(price.owner.ownership(machines, months).resale_share))
        for months in (case.months, month)
    )
    rows = (line for line in way.flow.lines if line.item.startswith("Resale"))
    total = -sum(float(np.asarray(line.total)) for line in rows)
    return total * then / at_end if at_end > 0 else 0.0
