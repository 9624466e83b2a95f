"""The demand that a commitment must meet: from the plan itself, or as the user states it."""

from __future__ import annotations

import numpy as np

from engine.cost import commitment
from engine.cost.cash_flow import HOURS_PER_MONTH
from engine.cost.checks import Array
from engine.cost.commitment import Demand
from engine.decide.idle import hours_served
from engine.errors import InputError
from engine.workload.cost_terms import CostTerms, DemandBy
from engine.workload.workload import Workload

SOURCES = {
    DemandBy.plan: "the plan",
    DemandBy.constant: "your constant number",
    DemandBy.schedule: "your schedule",
    DemandBy.monthly: "your list of months",
    DemandBy.log: "your log",
}


def stated(terms: CostTerms) -> Demand | None:
    """The demand that the user stated; None where it follows from the plan.

    Raises
    ------
    InputError : when what the choice needs is missing
    """
    if terms.demand_by is DemandBy.constant:
        return commitment.constant(
            _needed("demand_machines", terms.demand_machines, "how many machines work")
        )
    if terms.demand_by is DemandBy.schedule:
        return commitment.schedule(
            _needed("demand_machines", terms.demand_machines, "how many machines work"),
            _needed("hours_per_day", terms.hours_per_day, "hours of a day"),
            _needed("days_per_week", terms.days_per_week, "days of a week"),
        )
    if terms.demand_by is DemandBy.monthly:
        if not terms.monthly_hours:
            raise InputError(
                "the list is empty", where="monthly_hours", right="machine-hours of each month"
            )
        return commitment.monthly(terms.monthly_hours, terms.demand_machines)
    if terms.demand_by is DemandBy.log:
        if not terms.log_levels:
            raise InputError("no log is imported", where="log_levels", right="a CSV with one")
        return commitment.levels(terms.log_levels, terms.log_shares)
    return None


def of_runs(machines: float, busy_share: float, variation: float) -> Demand:
    """Machines that all work while runs do, in months that swing around the mean.

    machines : need not be whole: a mean of runs side by side
    variation : from one month to the next over the mean; months come in pairs, one above by half
        of it and one below
    """
    shares, levels = [], []
    for swing in (1 - variation / 2, 1 + variation / 2):
        busy = busy_share * max(swing, 0.0)
        # What does not fit into a month's hours runs side by side on more machines; these are
        # whole ones, so that they work a little less, and the machine-hours stay.
        level = np.ceil(machines * max(1.0, busy) - 1e-9)
        part = machines * busy / level
        levels += [0.0, level]
        shares += [0.5 * (1 - part), 0.5 * part]
    return commitment.levels(tuple(levels), tuple(shares))


def of_service(machines: float, workload: Workload) -> Demand:
    """Machines of a service as it is planned: those for the peak, in all hours that it runs.

    A load that machines follow by the hour is the user's to state, by a schedule, list or log.
    """
    share = hours_served(workload) / HOURS_PER_MONTH
    if share == 1.0:
        return commitment.constant(machines)
    return commitment.levels((0.0, machines), (1 - share, share))


def used_for(demand: Demand, share: float) -> Demand | None:
    """The demand grown or shrunk until its whole machines work in a share of the hours on average.

    Every hour grows by the same factor k, and none needs more than the M machines of the peak: k
    solves E[min(M, k·D)] = share × M. The left side is piecewise linear in k with its corners where
    a level reaches M, so the solution is exact. A demand that is all on or all off has no such
    factor: its busy hours become more or fewer.

    share : above 0, up to 1

    Returns
    -------
    None when hours without any demand keep the mean below that share
    """
    peak = float(np.ceil(demand.peak))
    busy = demand.levels > 0
    if peak <= 0:
        return None
    if demand.all_or_nothing:
        return commitment.levels((0.0, peak), (1 - share, share), demand.source)
    order = np.argsort(-demand.levels[busy])
    level, weight = demand.levels[busy][order], demand.shares[busy][order]
    clipped = np.cumsum(weight)
    below = level @ weight - np.cumsum(level * weight)
    corners = np.concatenate([[0.0], peak / level])
    means = np.concatenate([[0.0], clipped + below / level])
    if share > means[-1] + 1e-12:
        return None
    factor = float(np.interp(share, means, corners))
    return commitment.levels(np.minimum(demand.levels * factor, peak), demand.shares, demand.source)


def duration_curve(demand: Demand) -> tuple[Array, Array]:
    """Machines needed against the share of the month's hours, the busiest first, as steps.

    Returns
    -------
    share of the hours (ascending, from 0 to 1) and machines, both of shape (2 × levels,)
    """
    order = np.argsort(-demand.levels)
    ends = np.cumsum(demand.shares[order])
    starts = np.concatenate([[0.0], ends[:-1]])
    return (
        np.ravel(np.column_stack([starts, ends])),
        np.repeat(demand.levels[order], 2),
    )


def month_to_month(terms: CostTerms, variation: float) -> float:
    """Largest change between months over the mean: of the list where one is given.

    variation : as answered, which stands for the plan, and for a log, whose levels tell no months
    """
    if terms.demand_by is DemandBy.monthly and terms.monthly_hours:
        return commitment.variation(terms.monthly_hours)
    return variation if terms.demand_by in (DemandBy.plan, DemandBy.log) else 0.0


def machine_hours(demand: Demand) -> float:
    """Machine-hours of a month."""
    return demand.mean * HOURS_PER_MONTH


def _needed(field: str, value: float | None, what: str) -> float:
    if value is None:
        raise InputError("missing", where=field, right=what)
    return value
