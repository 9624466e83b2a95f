"""A base that is owned or reserved, and a burst that is rented: the best mix as one table.

A committed machine costs c0 an hour when idle and v more when used (its power), a rented one d.
Of q committed machines min(D, q) are used, so the cost of an hour is
c0·q + v·E[min(D, q)] + d·E[(D − q)⁺] = v·E[D] + c0·q + (d − v)·E[(D − q)⁺]:
the newsvendor again, with d − v for d, and exact. Until an owned base is delivered all is rented.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from engine.cost.cash_flow import HOURS_PER_MONTH, CashFlow, CashLine
from engine.cost.checks import whole_months
from engine.cost.commitment import Demand, Mix, best_mix
from engine.cost.monthly import Acquisition, monthly_cost
from engine.cost.own import Ownership
from engine.cost.rent import Rental
from engine.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class MixedPlan:
    """The best mix and its table, beside those of its two pure forms for the same demand.

    Dollars per hour are those of one machine.

    committed_idle_usd_per_hour, committed_used_usd_per_hour : c0, and c0 + v
    """

    mix: Mix
    flow: CashFlow
    all_committed: CashFlow
    all_burst: CashFlow
    committed_idle_usd_per_hour: float
    committed_used_usd_per_hour: float
    burst_usd_per_hour: float


def mixed_cost(
    base: Rental | Ownership,
    base_acquisition: Acquisition,
    burst: Rental,
    burst_acquisition: Acquisition,
    demand: Demand,
    horizon_months: int,
) -> MixedPlan:
    """Find how many machines to commit, and lay base and burst out month by month.

    base : for an owned cluster, its network and people are those of the demand's peak; a smaller
        base is charged its part of them
    """
    months = whole_months("horizon_months", horizon_months)
    if burst_acquisition not in ("on_demand", "spot"):
        raise InputError(
            f"{burst_acquisition} does not follow the hour",
            where="burst_acquisition",
            right="on_demand or spot",
        )
    peak = max(int(np.ceil(demand.peak)), 1)
    delivery = base.delivery_months if isinstance(base, Ownership) else 0
    machine_hours = peak * (months - delivery) * HOURS_PER_MONTH
    idle = _mean_total(monthly_cost(base, base_acquisition, peak, 0.0, months)) / machine_hours
    full = _mean_total(monthly_cost(base, base_acquisition, peak, HOURS_PER_MONTH, months))
    running = full / machine_hours - idle
    rented = monthly_cost(burst, burst_acquisition, 1, HOURS_PER_MONTH, months)
    price = _mean_total(rented) / (months * HOURS_PER_MONTH)
    mix = best_on(demand, idle, running, price)

    def table(committed: int) -> CashFlow:
        lines = _base_lines(base, base_acquisition, committed, demand, peak, months)
        needed = np.full(months, demand.above(committed))
        needed[: delivery if committed else 0] = demand.mean
        if np.any(needed):
            lines += tuple(replace(x, schedule=x.schedule * needed) for x in rented.lines)
        return CashFlow(
            label=f"{committed} committed, the rest {burst_acquisition.replace('_', ' ')}",
            months=months,
            lines=lines,
            useful_hours=demand.mean * HOURS_PER_MONTH * months,
        )

    return MixedPlan(mix, table(mix.base), table(peak), table(0), idle, idle + running, price)


def best_on(demand: Demand, idle: float, running: float, price: float) -> Mix:
    """The best number of machines to commit; US dollars an hour of one machine.

    idle, running : c0 and v of a committed machine; price : d of a rented one
    """
    if price <= running:  # a committed machine costs more to run than a rented one costs in all
        mix = best_mix(demand, price, price)
        return replace(mix, break_even_share=np.inf)
    mix = best_mix(demand, idle, price - running)
    constant = running * demand.mean
    return replace(
        mix,
        usd_per_hour=mix.usd_per_hour + constant,
        all_committed=mix.all_committed + constant,
        all_burst=mix.all_burst + constant,
    )


def _base_lines(
    base: Rental | Ownership,
    acquisition: Acquisition,
    committed: int,
    demand: Demand,
    peak: int,
    months: int,
) -> tuple[CashLine, ...]:
    if committed == 0:
        return ()
    hours = (demand.mean - demand.above(committed)) / committed * HOURS_PER_MONTH
    own = _part(base, committed / peak) if isinstance(base, Ownership) else base
    return monthly_cost(own, acquisition, committed, hours, months).lines


def _part(whole: Ownership, part: float) -> Ownership:
    """What falls on a part of a cluster's machines."""
    return replace(
        whole,
        network_usd=whole.network_usd * part,
        storage_usd=whole.storage_usd * part,
        racks_usd=whole.racks_usd * part,
        cooling_usd=whole.cooling_usd * part,
        other_capital_usd=whole.other_capital_usd * part,
        racks_usd_per_month=whole.racks_usd_per_month * part,
        staff_fte=whole.staff_fte * part,
        software_usd_per_year=whole.software_usd_per_year * part,
    )


def _mean_total(flow: CashFlow) -> float:
    return float(np.mean(flow.total))
