"""A base that is owned or reserved, and a burst that is rented: the best mix as one table.

A committed machine costs c0 an hour when idle and v more when used (its power), a rented one d.
Of q committed machines min(D, q) are used, so the cost of an hour is
c0·q + v·E[min(D, q)] + d·E[(D − q)⁺] = v·E[D] + c0·q + (d − v)·E[(D − q)⁺]:
the newsvendor again, with d − v for d, and exact. What is owned costs less per machine in a larger
fleet, c0 falls with q: each number is costed as the fleet that it is, and the cheapest taken. Until
an owned base is delivered all is rented.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from engine.cost.cash_flow import HOURS_PER_MONTH, CashFlow, CashLine
from engine.cost.checks import whole_months
from engine.cost.commitment import Demand, Mix, best_mix
from engine.cost.monthly import Acquisition, monthly_cost
from engine.cost.own import Ownership, scaled
from engine.cost.rent import Rental
from engine.errors import InputError

OwnedFor = Callable[[int], Ownership]
ONE_BY_ONE = 256  # numbers of owned machines up to which each is tried
NEIGHBOURS = 32  # tried on both sides of the best of a larger fleet


@dataclass(frozen=True, slots=True, eq=False)
class MixedPlan:
    """The best mix and its table, beside those of its two pure forms for the same demand.

    Dollars per hour are those of one machine, in the months in which the base works.

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
    base: Rental | Ownership | OwnedFor,
    base_acquisition: Acquisition,
    burst: Rental,
    burst_acquisition: Acquisition,
    demand: Demand,
    horizon_months: int,
    by_level: bool = False,
) -> MixedPlan:
    """Find how many machines to commit, and lay base and burst out month by month.

    by_level : the machines of a level work together or not at all, so that an owned base is one of
        the levels; a single machine that needs no people of its own is no base of a cluster
    base : a rent; what owning so many machines takes, by their number; or the ownership of the
        demand's peak, of which a smaller base is charged its part
    """
    months = whole_months("horizon_months", horizon_months)
    if burst_acquisition not in ("on_demand", "spot"):
        raise InputError(
            f"{burst_acquisition} does not follow the hour",
            where="burst_acquisition",
            right="on_demand or spot",
        )
    peak = max(int(np.ceil(demand.peak)), 1)
    rented = monthly_cost(burst, burst_acquisition, 1, HOURS_PER_MONTH, months)
    price = _mean_total(rented) / (months * HOURS_PER_MONTH)
    if isinstance(base, Rental):
        idle, running = _rates(base, base_acquisition, peak, months)
        mix = best_on(demand, idle, running, price)
    else:
        base = _by_number(base, peak)
        counted = OwnedBase(base, base_acquisition, months)
        mix, idle, running = _best_owned(counted, demand, price, peak, by_level)

    def table(committed: int) -> CashFlow:
        own = base if isinstance(base, Rental) else base(max(committed, 1))
        lines = _base_lines(own, base_acquisition, committed, demand, months)
        needed = np.full(months, demand.above(committed))
        needed[: _delivery(own) if committed else 0] = demand.mean
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


class OwnedBase:
    """An owned base by its number of machines: each number is costed once, as the fleet that it is.

    People, switches and racks come whole, so that a small base costs more per machine.
    """

    def __init__(self, owned: OwnedFor, acquisition: Acquisition, months: int) -> None:
        self.owned, self.acquisition, self.months = owned, acquisition, months
        self._rates: dict[int, tuple[float, float, int]] = {}

    def rates(self, machines: int) -> tuple[float, float, int]:
        """USD an hour of one machine idle, more when it is used; and the months of delivery."""
        if machines not in self._rates:
            own = self.owned(machines)
            idle, running = _rates(own, self.acquisition, machines, self.months)
            self._rates[machines] = idle, running, _delivery(own)
        return self._rates[machines]

    def usd_per_hour(self, machines: int, demand: Demand, price: float) -> float:
        """USD an hour of base and burst in the months in which the base works.

        price : USD an hour of a rented machine
        """
        if machines == 0:
            return price * demand.mean
        idle, running, _ = self.rates(machines)
        above = demand.above(machines)
        return idle * machines + running * (demand.mean - above) + price * above

    def usd(self, machines: int, demand: Demand, price: float) -> float:
        """The same over the horizon, in hours of a month: until the delivery all is rented."""
        wait = self.rates(machines)[2] if machines else 0
        hour = self.usd_per_hour(machines, demand, price)
        return hour * (self.months - wait) + price * demand.mean * wait


def best_number(
    cost: Callable[[int], float], demand: Demand, peak: int, by_level: bool = False
) -> int:
    """The number of machines, from none to the peak, at which the cost is least."""
    costs = {q: cost(q) for q in _numbers(demand, peak, by_level)}
    best = min(costs, key=lambda q: (costs[q], q))
    if peak > ONE_BY_ONE and not by_level:
        near = range(max(best - NEIGHBOURS, 0), min(best + NEIGHBOURS, peak) + 1)
        costs |= {q: cost(q) for q in near if q not in costs}
        best = min(costs, key=lambda q: (costs[q], q))
    return best


def _best_owned(
    base: OwnedBase, demand: Demand, price: float, peak: int, by_level: bool
) -> tuple[Mix, float, float]:
    """The best number of owned machines, and what one of them costs idle and more when used."""
    best = best_number(lambda q: base.usd(q, demand, price), demand, peak, by_level)
    # With no base, the number of machines counts that would pay first.
    shown = best or min(
        (q for q in _numbers(demand, peak, by_level) if q),
        key=lambda q: _pays_from(*base.rates(q)[:2], price),
    )
    idle, running, _ = base.rates(shown)
    above = demand.above(best)
    mix = Mix(
        base=best,
        usd_per_hour=base.usd_per_hour(best, demand, price),
        all_committed=base.usd_per_hour(peak, demand, price),
        all_burst=price * demand.mean,
        bursts=demand.share_above(best),
        base_utilization=(demand.mean - above) / best if best else 0.0,
        break_even_share=_pays_from(idle, running, price),
    )
    return mix, idle, running


def _numbers(demand: Demand, peak: int, by_level: bool) -> list[int]:
    """Numbers of owned machines to try: all, or of a large fleet those where the cost can turn.

    Of machines that work together, the levels alone.

    The cost of a base is straight between the levels of demand but for the steps of racks, switches
    and people, which weigh little in a large fleet.
    """
    if by_level:
        return sorted({0, *(math.ceil(level - 1e-9) for level in demand.levels.tolist()), peak})
    if peak <= ONE_BY_ONE:
        return list(range(peak + 1))
    ends = {f(level) for level in demand.levels.tolist() for f in (math.floor, math.ceil)}
    spread = range(0, peak, max(peak // ONE_BY_ONE, 1))
    return sorted({*(int(q) for q in ends), *spread, peak})


def _by_number(base: Ownership | OwnedFor, peak: int) -> OwnedFor:
    """What owning so many machines takes; of a stated whole, the part that falls on them."""
    if not isinstance(base, Ownership):
        return base
    whole = base
    return lambda q: scaled(whole, q / peak)


def _pays_from(idle: float, running: float, price: float) -> float:
    """Share of the hours from which a committed machine is cheaper than a rented one."""
    return idle / (price - running) if price > running else math.inf


def _rates(
    base: Rental | Ownership, acquisition: Acquisition, units: int, months: int
) -> tuple[float, float]:
    """USD per machine and hour of the months that it works: idle, and more when used."""
    hours = units * (months - _delivery(base)) * HOURS_PER_MONTH
    ends = monthly_cost(base, acquisition, units, np.array([0.0, HOURS_PER_MONTH]), months)
    idle, full = np.broadcast_to(ends.total, 2) / hours
    return float(idle), float(full - idle)


def _delivery(base: Rental | Ownership) -> int:
    return base.delivery_months if isinstance(base, Ownership) else 0


def _base_lines(
    base: Rental | Ownership,
    acquisition: Acquisition,
    committed: int,
    demand: Demand,
    months: int,
) -> tuple[CashLine, ...]:
    if committed == 0:
        return ()
    hours = (demand.mean - demand.above(committed)) / committed * HOURS_PER_MONTH
    return monthly_cost(base, acquisition, committed, hours, months).lines


def _mean_total(flow: CashFlow) -> float:
    return float(np.mean(flow.total))
