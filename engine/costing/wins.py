"""When each way to pay wins: break-evens with their ranges, and the curves on which they lie."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from engine.assessment import ACQUISITION_LABELS, Acquisition
from engine.cost import break_even, compare
from engine.cost.break_even import BreakEven, Range
from engine.cost.cash_flow import HOURS_PER_MONTH
from engine.cost.checks import LONGEST_HORIZON_MONTHS, Array
from engine.cost.commitment import Demand
from engine.cost.compare import WayToPay
from engine.cost.mix import OwnedBase, best_number, best_on
from engine.cost.own import Ownership
from engine.cost.ownership import cheap, dear
from engine.cost.parameters import Pick, likely
from engine.cost.rent import Rental
from engine.costing.case import Case
from engine.costing.demand import of_service, used_for
from engine.costing.model import Curve, Way, Wins
from engine.costing.ways import BURSTS, MIX_BASES, blocks_per_month, spot_terms_of
from engine.decide.candidates import Price
from engine.decide.evaluation import Pool
from engine.workload.cost_terms import DemandBy, Site

OWNING = "owning"
OWNING_IN = {Site.colocation: "owning, colocation", Site.own_room: "owning, own room"}
BEST_MIX = "best mix"
SHARES = np.concatenate([[0.02, 0.035], np.linspace(0.05, 1.0, 39)])


def wins(case: Case, ways: list[Way], demand: Demand | None) -> Wins:
    """Break-evens and curves of the lead hardware, for the fleet that the plan pays for.

    ways : the pure ways, both places of a purchase among them
    demand : what a mix has to meet; None where what was stated can't be used
    """
    spec = case.specs.get("on_demand") or next(iter(case.specs.values()))
    pool = case.lead(case.at_point(spec))
    share = paid_share(case, pool)
    fleet = Fleet(case, pool)
    payable = fleet.payables()
    rent, owned = payable.get("on_demand"), payable.get("buy")
    other = _elsewhere(case, fleet)
    # Beside rented parts of a machine nothing is owned, whatever one of the pools could be.
    buyable = any(w.acquisition == "buy" and w.flow is not None for w in ways)
    drawn = [*payable.values(), *([] if other is None else [other])]
    committed = [w for w in drawn if w.acquisition not in BURSTS]
    utilization = (
        [(w.label, compare.utilization_where(w, rent, 1, case.months)) for w in committed]
        if rent is not None
        else []
    )
    return Wins(
        utilization=tuple(utilization),
        runs=_runs(case, ways, pool),
        months=None if rent is None or not buyable else fleet.months_where(rent, share),
        rent=None
        if owned is None
        else _per_unit(compare.rent_where(owned, 1, share, case.months), fleet.units),
        curves=(
            *_curves(drawn, fleet.units, case.months),
            *_blocks(case, ways, fleet),
            *_best_mix(case, ways, payable, demand, fleet),
        ),
        used_share=share,
        marks=compare.marks(),
        by_runs=_by_runs(case, ways, pool),
        runs_now=float(case.point["runs_per_month"][0]),
    )


def paid_share(case: Case, pool: Pool) -> float:
    """Share of the month's hours that are paid for on demand: of a service, those it runs.

    Of runs, the hours in which their machines start are among them.
    """
    if pool.service:
        return of_service(1.0, case.answer.workload).mean
    paid = pool.busy_hours[0] + pool.starting_hours[0]
    return float(np.clip(paid / HOURS_PER_MONTH, 0.0, 1.0))


class Fleet:
    """The machines that the plan pays for, as one thing that is rented or owned as a whole.

    A GPU is rented alone and bought by the machine, so the two are compared by the fleet.

    units : GPUs or servers of it, where they are not those that the pool pays for
    """

    def __init__(self, case: Case, pool: Pool, units: float | None = None) -> None:
        self.case, self.pool = case, pool
        paid = max(float(np.ceil(pool.paid_units[0] - 1e-9)), 1.0)
        self.units = paid if units is None else units
        price = pool.unit.prices.get("buy")
        self.owner = price.owner if price is not None else None

    @property
    def owned_machines(self) -> int:
        """Machines to buy for the fleet."""
        assert self.owner is not None
        return max(int(np.ceil(self.units / self.owner.units_per_machine - 1e-9)), 1)

    def owned(self, machines: int) -> Ownership:
        """What owning so many machines takes, as the fleet that they are."""
        assert self.owner is not None
        return self.owner.ownership(machines, self.case.months)

    def is_owned(self, terms: Acquisition) -> bool:
        """Whether nothing is rented on these terms: a purchase."""
        return self.pool.unit.prices[terms].owner is not None

    def payables(self) -> dict[str, WayToPay]:
        """The ways on which the fleet can be had, with their ends."""
        found: dict[str, WayToPay] = {}
        for terms in self.case.specs:
            price = self.pool.unit.prices.get(terms)
            if price is None or (price.owner and price.owner.refusal(self.owned_machines)):
                continue
            ends: list[Rental | Ownership]
            if price.owner is None:
                ends = [self.rental(price, usd) for usd in (price.low, price.likely, price.high)]
            else:
                ends = [self.ownership(self.case.months, p) for p in (cheap, likely, dear)]
            label = OWNING if terms == "buy" else ACQUISITION_LABELS[terms]
            found[terms] = WayToPay(label, ends[1], terms, ends[0], ends[2])
        return found

    def rental(self, price: Price, usd_per_unit_hour: float) -> Rental:
        """The rent of the whole fleet."""
        spot = spot_terms_of(self.case.point)
        if not self.pool.service:  # the loss of any machine stops the run
            machines = np.ceil(self.units / self.pool.unit.per_machine)
            rate = spot.interruptions_per_hour * machines
            spot = replace(spot, interruptions_per_hour=rate)
        return Rental(
            usd_per_hour=usd_per_unit_hour * self.units,
            min_months=price.min_months,
            after_term_usd_per_hour=self.pool.unit.prices["on_demand"].likely * self.units,
            spot=replace(spot, together=False),
        )

    def ownership(self, months: int, pick: Pick) -> Ownership:
        """What owning the whole fleet takes over a horizon."""
        assert self.owner is not None
        n = self.owned_machines
        each = self.owner.ownership(n, months, pick)
        return replace(each, usd_per_unit=each.usd_per_unit * n, kw_per_unit=each.kw_per_unit * n)

    def months_where(self, rent: WayToPay, share: float) -> BreakEven | None:
        """Months of use from which owning beats renting on demand."""
        if self.owner is None or not self.owner.plan(self.owned_machines).facility.feasible:
            return None
        return compare.months_where(self.ownership, rent, 1, share, LONGEST_HORIZON_MONTHS)


def _elsewhere(case: Case, fleet: Fleet) -> WayToPay | None:
    """The purchase of the same fleet for the place that was not chosen; None where there is none.

    A fleet that is bought is planned with more room than a rented one: what is compared is one
    fleet in both places, not the plan of each.
    """
    site = next(s for s in Site if s is not case.terms.site)
    found = case.standing_in(site)
    if found is None:
        return None
    ctx, spec = found
    pool = case.lead(case.at_point(spec, ctx))
    way = Fleet(case, pool, fleet.units).payables().get("buy")
    return None if way is None else replace(way, label=OWNING_IN[site])


def _curves(drawn: list[WayToPay], units: float, months: int) -> tuple[Curve, ...]:
    """USD of a useful hour of one GPU or server, by the share of the hours used."""
    usd: dict[str, Array] = compare.curves(drawn, 1, SHARES, months)
    return tuple(
        Curve(label, tuple(SHARES.tolist()), tuple((values / units).tolist()))
        for label, values in usd.items()
    )


def _best_mix(
    case: Case,
    ways: list[Way],
    payable: dict[str, WayToPay],
    demand: Demand | None,
    fleet: Fleet,
) -> tuple[Curve, ...]:
    """The curve of the cheapest mix of those that are allowed, on a demand of the same pattern.

    The plan's own work is all on or all off, so that its mix is the cheaper of the two pure forms.
    Infinity where the hours without any demand keep the use below the share.
    """
    barred = {w.id.removesuffix(f"_{case.terms.site.value}") for w in ways if not w.allowed}
    held = {k: w for k, w in payable.items() if k not in barred}
    bursts = [sum(_hourly(held[k], fleet.units, case.months)) for k in BURSTS if k in held]
    bases = [k for k in MIX_BASES if k in held]
    if demand is None or not bases or not bursts or demand.peak <= 0:
        return ()
    pattern = demand
    if case.terms.demand_by is DemandBy.plan:
        pattern = replace(demand, levels=np.where(demand.levels > 0, demand.peak, 0.0))
    usd = [math.inf] * len(SHARES)
    for key in bases:
        at = (
            _on_owned(case, fleet, pattern, min(bursts))
            if fleet.is_owned(key)
            else _on_rented(_hourly(held[key], fleet.units, case.months), pattern, min(bursts))
        )
        usd = [min(now, each) for now, each in zip(usd, at, strict=True)]
    reached = min(usd) < math.inf
    return (Curve(BEST_MIX, tuple(SHARES.tolist()), tuple(usd)),) if reached else ()


def _on_rented(base: tuple[float, float], pattern: Demand, price: float) -> list[float]:
    """USD of a useful hour of the best mix on a rented base, at each share of the hours.

    base : USD an hour of one GPU or server when idle, and more when used; price : of a burst
    """
    asked = [used_for(pattern, share) for share in SHARES.tolist()]
    return [
        math.inf if a is None else best_on(a, *base, price).usd_per_hour / a.mean for a in asked
    ]


def _on_owned(case: Case, fleet: Fleet, pattern: Demand, price: float) -> list[float]:
    """The same on an owned base, of which each number of machines is costed as its own fleet."""
    assert fleet.owner is not None
    if case.terms.demand_by is DemandBy.plan:
        # The pattern is the fleet of the plan, which need not fill what is bought for it.
        machines, each = fleet.owned_machines, fleet.units / fleet.owned_machines
        whole = replace(pattern, levels=pattern.levels * (machines / pattern.peak))
    else:
        each = fleet.owner.units_per_machine
        levels = pattern.levels * fleet.pool.unit.per_machine / each
        whole = replace(pattern, levels=levels)
        machines = math.ceil(whole.peak - 1e-9)
    base = OwnedBase(fleet.owned, "buy", case.months)
    usd = []
    for share in SHARES.tolist():
        asked = used_for(whole, share)
        if asked is None:
            usd.append(math.inf)
            continue
        hour = partial(base.usd_per_hour, demand=asked, price=price * each)
        best = best_number(hour, asked, machines, by_level=asked.all_or_nothing)
        usd.append(hour(best) / (asked.mean * each))
    return usd


def _hourly(way: WayToPay, units: float, months: int) -> tuple[float, float]:
    """USD an hour of one GPU or server when idle, and what it costs more when it is used."""
    idle, full = (compare.table(way, 1, share, months) for share in (0.0, 1.0))
    hours = units * float(np.mean(full.useful_hours))
    usd = float(np.mean(idle.total)) / hours
    return usd, float(np.mean(full.total)) / hours - usd


def _blocks(case: Case, ways: list[Way], fleet: Fleet) -> tuple[Curve, ...]:
    """The curve of capacity blocks: booked by the day, so that it falls in steps."""
    way = next((w for w in ways if w.id == "capacity_block"), None)
    if way is None or way.price is None or fleet.pool.service:
        return ()
    days = case.terms.block_days
    usd = []
    for share in SHARES.tolist():
        useful = share * HOURS_PER_MONTH * case.months
        booked = sum(blocks_per_month(share * HOURS_PER_MONTH, days, case.months)) * days * 24
        usd.append(way.price.usd_per_unit_hour * booked / useful)
    return (Curve("capacity blocks", tuple(SHARES.tolist()), tuple(usd)),)


def _by_runs(
    case: Case, ways: list[Way], pool: Pool
) -> tuple[tuple[str, tuple[tuple[float, float], ...]], ...]:
    """What a month costs against the runs in it: by the run, or the same whatever their number."""
    hours = float(pool.hours_per_run[0])
    if pool.service or hours <= 0:
        return ()
    most, by_the_run = _most_runs(pool), _runs_by_the_run(case, pool)
    found = []
    for way in ways:
        h = way.headline
        if h is None or h.per_run is None or way.mix or way.id == "capacity_block":
            continue
        if way.id in ("on_demand", "spot"):
            ends = ((0.0, 0.0), (by_the_run, h.per_run.likely * by_the_run))
        else:
            ends = ((0.0, h.per_month.likely), (most, h.per_month.likely))
        found.append((curve_label(way), ends))
    return tuple(found)


def _runs_by_the_run(case: Case, pool: Pool) -> float:
    """Runs of a month up to which each costs the same on demand.

    Beyond them no hour is left between the runs and their starts: the machines stay on, and the
    month costs no more.
    """
    now = float(case.point["runs_per_month"][0])
    if now <= 0:
        return _most_runs(pool)
    side_by_side = float(pool.paid_units[0]) / float(pool.units[0])
    paid = float(pool.busy_hours[0] + pool.starting_hours[0]) / side_by_side
    return now * HOURS_PER_MONTH / paid


def _most_runs(pool: Pool) -> float:
    """Runs that the plan's machines can do in a month, those side by side included."""
    side_by_side = float(pool.paid_units[0]) / float(pool.units[0])
    return side_by_side * HOURS_PER_MONTH / float(pool.hours_per_run[0])


def curve_label(way: Way) -> str:
    """The name of a pure way on every picture."""
    if way.acquisition != "buy":
        return way.label[0].lower() + way.label[1:]
    return OWNING_IN[Site(way.id.removeprefix("buy_"))] if way.elsewhere else OWNING


def _runs(case: Case, ways: list[Way], pool: Pool) -> tuple[tuple[str, BreakEven], ...]:
    """Runs a month from which each committed way beats paying by the run."""
    usual = next((w for w in ways if w.id == "on_demand"), None)
    hours = float(pool.hours_per_run[0])
    if pool.service or hours <= 0 or usual is None or usual.headline is None:
        return ()
    each = usual.headline.per_run
    if each is None or each.likely <= 0:
        return ()
    by_run = Range(each.low, each.likely, each.high)
    most = _runs_by_the_run(case, pool)
    found = []
    for way in ways:
        if way.id in ("on_demand", "spot", "capacity_block") or way.mix or way.headline is None:
            continue
        month = way.headline.per_month
        if month.low <= 0:
            continue
        paid = Range(month.low, month.likely, month.high)
        found.append((way.label, break_even.runs_per_month(paid, by_run, most)))
    return tuple(found)


def _per_unit(point: BreakEven, units: float) -> BreakEven:
    """A rent of the fleet as that of one GPU or server."""

    def part(value: float | None) -> float | None:
        return None if value is None else value / units

    value = part(point.value)
    text = (
        point.text if value is None else f"Above ${value:,.2f} an hour each owning is the cheaper."
    )
    return BreakEven(value, part(point.low), part(point.high), point.unit, text)
