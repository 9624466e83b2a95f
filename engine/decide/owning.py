"""Owning a fleet of any size: its rows by the month, for one machine count or thousands of draws.

What one machine costs its owner falls with the fleet (staff, switches), so the rows of the cash
flow are kept by fleet size. At a point they are those of the exact number of machines; over many
draws the rows per machine are interpolated between sizes, in the logarithm of the size.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from engine.catalogue import Accelerator, Catalogue, Parameter
from engine.cost.cash_flow import HOURS_PER_MONTH, CashFlow, CashLine
from engine.cost.monthly import monthly_cost
from engine.cost.network import most_machines
from engine.cost.own import Ownership, scaled
from engine.cost.ownership import Machine, OwnPlan, Site, machine_for, plan
from engine.cost.parameters import Pick, Span, cost_parameters, drawn, likely
from engine.cost.rent import Rental
from engine.decide.numbers import Array, Mask
from engine.errors import InputError
from engine.workload.answers import Location
from engine.workload.cost_terms import Cooling, CostTerms
from engine.workload.cost_terms import Site as Place

# Sizes between which many draws are interpolated.
FLEETS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048)
LARGEST = 4096  # a fleet that is larger, or beyond its switches, is several: as dear per machine
EXACT_SIZES = 8  # so many different sizes at most are worked out one by one
CARDS_PER_SERVER = 4
# A single price of owning, for ratios and charts, is that of a machine used this share of hours.
PLANNED_USE = 0.6
SMALLEST_OWNED_VCPU = 64
SERVER = "server"  # stands for a CPU server in a quote for one machine
SPREAD_DRAWS, SPREAD_FLEET = 512, 4
CLUSTER = 64  # a fleet that has every row
GB_PER_TB = 1000.0
STORAGE = "sto-nvme"
LARGE_SERVER, LARGE_MEMORY_GB = "srv-cpu-4tb", 2000.0


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The rows of one fleet, and their totals over the horizon: at no use, and per used hour."""

    lines: tuple[CashLine, ...]
    idle: Array
    per_hour: Array
    months: Array  # sum of each row's schedule
    idle_total: float
    per_hour_total: float


def _rows(lines: tuple[CashLine, ...], idle: Array, per_hour: Array) -> _Rows:
    months = np.array([float(line.schedule.sum()) for line in lines])
    return _Rows(lines, idle, per_hour, months, float(idle.sum()), float(per_hour.sum()))


class Owner:
    """What owning machines of one kind takes, for fleets of any size.

    machine : what is bought, by its rows in the capital table
    months : horizon, at the end of which it is sold
    rent_usd_per_hour : of one machine on demand, paid until delivery
    """

    def __init__(
        self,
        catalogue: Catalogue,
        machine: Machine,
        months: int,
        location: Location,
        rent_usd_per_hour: float,
        terms: CostTerms,
        sku: str,
    ) -> None:
        self.machine, self.months = machine, months
        self.capital: Mapping[str, Parameter] = catalogue.capital
        self.rent = rent_usd_per_hour
        self.terms = terms
        self.quote = terms.machine_usd if terms.machine_sku == sku else None
        self.site = _site(location, terms)
        self.units_per_machine = max(machine.gpus, 1)
        radix = int(cost_parameters()["switch_radix"].likely)
        self.largest = min(LARGEST, most_machines(machine.fabric_ports, radix))
        self._plan = lru_cache(maxsize=512)(self._make_plan)
        self._rows = lru_cache(maxsize=512)(self._make_rows)

    def plan(self, machines: int) -> OwnPlan:
        """What so many machines take at the likely values: prices, wiring, racks, feasibility.

        More than the largest cluster are planned as the largest.
        """
        return self._plan(min(machines, self.largest))

    def ownership(self, machines: int, months: int, pick: Pick = likely) -> Ownership:
        """What owning takes over another horizon, at the likely value or an end of each row.

        More than the largest cluster are several of them.
        """
        size = min(machines, self.largest)
        if months != self.months:
            terms = self._for(months)._make_plan(size, pick).terms
        else:
            terms = (self._plan(size) if pick is likely else self._make_plan(size, pick)).terms
        return terms if machines <= size else scaled(terms, machines / size)

    def refusal(self, machines: int) -> str:
        """Why so many machines can't be owned there, in words; empty when they can."""
        owned = self.plan(machines)
        if not owned.facility.feasible:
            return owned.facility.reason
        if owned.terms.delivery_months >= self.months:
            return (
                f"they would be delivered in month {owned.terms.delivery_months}, and the horizon "
                f"ends after {self.months}"
            )
        return ""

    def refused(self, machines: Array) -> Mask:
        """Where so many machines can't be owned."""
        sizes, back = np.unique(machines, return_inverse=True)
        if len(sizes) > EXACT_SIZES:
            # Power is the only limit that depends on the number, and it only grows with it.
            worst = [bool(self.refusal(int(n))) for n in (sizes[0], sizes[-1])]
            if worst[0] == worst[1]:
                return np.full(len(machines), worst[0])
        return np.array([bool(self.refusal(int(n))) for n in sizes])[back]

    def lines(self, machines: Array, used_hours: Array, staff_part: float = 1.0) -> list[CashLine]:
        """The rows of owning fleets of these sizes; amounts in US dollars, shaped as the sizes.

        used_hours : hours a month in which each machine works
        staff_part : part of a stated staff that falls on these machines
        """
        used = np.minimum(used_hours, HOURS_PER_MONTH)
        sizes, back = np.unique(np.maximum(machines, 1.0), return_inverse=True)
        if len(sizes) <= EXACT_SIZES:
            rows = [self._rows(int(n)) for n in sizes]
            idle = np.array([r.idle for r in rows])
            slope = np.array([r.per_hour for r in rows])
        else:
            idle, slope = self._interpolated(sizes)
        totals = idle[back] + slope[back] * used[:, None]
        # Delivery takes a cluster longer than one machine: where both occur, the rows of the
        # middle size stand for all, and each total is kept.
        middle = (
            self._rows(int(np.median(machines))) if len(sizes) > 1 else self._rows(int(sizes[0]))
        )
        months = middle.months
        staff = staff_part if self.terms.staff_fte is not None else 1.0
        return [
            replace(
                line,
                amount=totals[:, k] / months[k] * (staff if line.item == "Staff" else 1.0),
            )
            for k, line in enumerate(middle.lines)
            if months[k] > 0 and totals[:, k].any()
        ]

    def _interpolated(self, sizes: Array) -> tuple[Array, Array]:
        """Totals of fleets between the sizes that are worked out: per machine, by the logarithm."""
        most = max(int(sizes[-1]), 1)
        known = [*(n for n in FLEETS if n < most), most]
        rows = [self._rows(n) for n in known]
        x, at = np.log(sizes), np.log(np.array(known, dtype=float))

        def column(of: Array) -> Array:
            each = of / np.array(known, dtype=float)[:, None]
            return np.stack([np.interp(x, at, c) for c in each.T], axis=1) * sizes[:, None]

        return column(np.array([r.idle for r in rows])), column(
            np.array([r.per_hour for r in rows])
        )

    def usd_per_month(self, machines: float, used_hours: float) -> float:
        """US dollars a month of one fleet, averaged over the horizon."""
        rows = self._rows(int(machines))
        used = min(used_hours, HOURS_PER_MONTH)
        return (rows.idle_total + rows.per_hour_total * used) / self.months

    @cached_property
    def spread(self) -> tuple[float, float]:
        """10th and 90th percentile of what owning costs over its likely value, from its rows."""

        def uniform(span: Span) -> Array:
            # The same numbers for a row wherever it enters; different rows move apart.
            return np.random.default_rng(zlib.crc32(span.id.encode())).random(SPREAD_DRAWS)

        hours = HOURS_PER_MONTH * PLANNED_USE
        totals = np.asarray(self._flow(SPREAD_FLEET, hours, drawn(uniform)).total, float)
        low, high = np.quantile(totals, [0.1, 0.9]) / float(self._flow(SPREAD_FLEET, hours).total)
        return min(float(low), 1.0), max(float(high), 1.0)

    # --- made once for each size

    def _for(self, months: int) -> Owner:
        other = copy(self)
        other.months = months
        return other

    def _make_plan(self, machines: int, pick: Pick = likely) -> OwnPlan:
        owned = self._placed(machines, self.site, pick)
        if not owned.facility.feasible and self.terms.cooling is Cooling.automatic:
            liquid = replace(self.site, colocation="colo-hd", pue="pue-liquid", cooling="liquid")
            cooled = self._placed(machines, liquid, pick)
            # Where neither is possible the reason for air is the one that helps.
            owned = cooled if cooled.facility.feasible else owned
        return replace(owned, terms=replace(owned.terms, **self._stated(pick)))

    def _placed(self, machines: int, site: Site, pick: Pick) -> OwnPlan:
        return plan(
            self.machine,
            machines,
            self.months,
            self.capital,
            site=site,
            pick=pick,
            quote_usd=self.quote,
        )

    def _stated(self, pick: Pick) -> dict[str, Any]:
        """What the user said of the place and the people, in place of the table's rows."""
        found: dict[str, Any] = {
            name: getattr(self.terms, name)
            for name in ("usd_per_kwh", "pue", "staff_fte")
            if getattr(self.terms, name) is not None
        }
        if self.terms.discount_pct is not None:
            found["cost_of_capital"] = self.terms.discount_pct / 100.0
        if self.terms.stored_gb:
            found["storage_usd"] = self.terms.stored_gb / GB_PER_TB * pick(self.capital[STORAGE])
        return found

    def _flow(self, machines: int, used_hours: float, pick: Pick = likely) -> CashFlow:
        owned = self._plan(machines) if pick is likely else self._make_plan(machines, pick)
        own = owned.terms
        if own.delivery_months >= self.months:
            # Never delivered in time, which `refusal` says: the rows are those of no waiting.
            own = replace(own, delivery_months=0)
        waits = own.delivery_months > 0 and self.rent > 0
        bridge = Rental(usd_per_hour=self.rent) if waits else None
        return monthly_cost(own, "buy", float(machines), used_hours, self.months, bridge=bridge)

    def _make_rows(self, machines: int) -> _Rows:
        if machines > self.largest:
            rows, times = self._rows(self.largest), machines / self.largest
            return _rows(rows.lines, rows.idle * times, rows.per_hour * times)
        flows = self._flow(machines, 0.0), self._flow(machines, HOURS_PER_MONTH)
        totals = [{x.item: float(x.total) for x in flow.lines} for flow in flows]
        # A row that only use brings (power) has a schedule in the second flow alone.
        lines = {x.item: x for flow in flows for x in flow.lines}
        known = [lines.get(item, line) for item, line in self._every_row.items()]
        idle, full = (np.array([t.get(line.item, 0.0) for line in known]) for t in totals)
        return _rows(tuple(known), idle, (full - idle) / HOURS_PER_MONTH)

    @cached_property
    def _every_row(self) -> dict[str, CashLine]:
        """Every row that any fleet has, in the order of a cluster's."""
        found: dict[str, CashLine] = {}
        for n in (CLUSTER, 1):
            for line in self._flow(n, HOURS_PER_MONTH).lines:
                found.setdefault(line.item, line)
        return found


def gpu_owner(
    catalogue: Catalogue,
    sku: str,
    months: int,
    location: Location,
    usd_per_gpu_hour: float,
    terms: CostTerms,
) -> Owner | None:
    """Owning machines with this accelerator; None where no purchase price is known.

    usd_per_gpu_hour : on-demand rent of one GPU, paid until the machines are delivered
    """
    accelerator = catalogue.accelerators[sku]
    watts = accelerator.tdp_w or 350.0
    try:
        machine = machine_for(sku, CARDS_PER_SERVER, watts)
    except InputError:
        if terms.machine_sku != sku or not terms.machine_usd:
            return None
        # No price in the table: the quote alone makes it a machine that can be bought.
        gpus = gpus_per_machine(accelerator)
        kw = machine_for(None).kw
        assert isinstance(kw, float)
        machine = Machine((), kw + gpus * watts / 1000, "res-h100", gpus)
    rent = usd_per_gpu_hour * max(machine.gpus, 1)
    return Owner(catalogue, machine, months, location, rent, terms, sku)


def gpus_per_machine(accelerator: Accelerator) -> int:
    """GPUs in a machine that is bought, where the purchase table has none of its kind."""
    return max(accelerator.max_per_node, 1)


def server_owner(
    catalogue: Catalogue,
    vcpu: float,
    memory_gb: float,
    months: int,
    location: Location,
    usd_per_hour: float,
    terms: CostTerms,
) -> Owner | None:
    """Owning CPU servers; small ones are not bought. Price by size within a two-socket server."""
    if vcpu < SMALLEST_OWNED_VCPU:
        return None
    machine = machine_for(None)
    if memory_gb > LARGE_MEMORY_GB:
        machine = Machine(((LARGE_SERVER, 1),), machine.kw, machine.resale, 0, fabric_ports=1)
    return Owner(catalogue, machine, months, location, usd_per_hour, terms, SERVER)


def _site(location: Location, terms: CostTerms) -> Site:
    """Rows of the place by where the data may be and what the user said."""
    europe = location is Location.eu
    liquid = terms.cooling is Cooling.liquid
    return Site(
        power="pow-eu" if europe else "pow-us-com",
        pue="pue-liquid" if liquid else "pue-air-modern",
        colocation="colo-hd" if liquid else "colo-eu" if europe else "colo-us",
        own_room=terms.site is Place.own_room,
        cooling="liquid" if liquid else "air",
        available_kw=terms.available_kw,
        delivery_months=terms.delivery_months,
    )
