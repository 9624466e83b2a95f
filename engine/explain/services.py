"""The service of an assessment by resource: what it asks for, which machines, what it costs.

The workload's answers, the page's terms and the tables' ranges become inputs; the demand of the
kind of service follows at the likely point and over draws; of the servers on offer those are taken
that hold it at the least cost a month on demand, and the scarcest resource is named. Demand,
machines and copies are those of `engine.decide.service_sizing`, by which the recommendation sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.assessment import Assessment, PriceRef
from engine.catalogue import Catalogue, load_catalogue
from engine.decide.candidates import Unit
from engine.decide.context import setting
from engine.decide.evaluation import Context, Values
from engine.decide.guarantees import Guarantee, copies_asked
from engine.decide.inputs import Range
from engine.decide.service_sizing import (
    BY_COPY,
    HEAD,
    SYSTEMS,
    TOLD,
    by_resource,
    held_resources,
    service_ranges,
    with_copies,
)
from engine.decide.service_units import demand
from engine.errors import InputError
from engine.estimate import services
from engine.estimate.estimate import Estimate
from engine.estimate.services import Real, Resource
from engine.workload.answers import Kind
from engine.workload.workload import HOURS_PER_MONTH, Workload

DRAWS = 1024
TITLES: dict[Kind, str] = {
    Kind.web: "Web services",
    Kind.online_inference: "Requests and features",
    Kind.recsys: "Requests and tables",
    Kind.database: "Database",
    Kind.streaming: "Log of events",
    Kind.search: "Search and crawling",
    Kind.etl: "Data preparation",
}
# The job's own inputs that are shown beside those of the table.
SHOWN = (
    *TOLD, "cpu_efficiency_factor", "cpu_market_factor", "useful_hours_per_month",
    "runs_per_month", "current_units", "parallel_fraction", "io_share",
)  # fmt: skip
# Which of the page's terms can change the answer, in the order in which they are asked.
TERMS: dict[Kind, tuple[str, ...]] = {
    Kind.web: ("item_kb", "answer_kb", "retention_days", "disk_mb_per_s", "parties"),
    Kind.online_inference: ("item_kb", "answer_kb", "retention_days", "disk_mb_per_s", "parties"),
    Kind.recsys: ("item_kb", "answer_kb", "copies", "lag_s", "disk_mb_per_s", "parties"),
    Kind.database: ("answer_kb", "write_pct", "copies", "lag_s", "disk_mb_per_s", "parties"),
    Kind.streaming: ("item_kb", "retention_days", "copies", "disk_mb_per_s", "parties"),
    Kind.search: ("item_kb", "retention_days", "copies", "lag_s", "disk_mb_per_s", "parties"),
    Kind.etl: ("disk_mb_per_s",),
}
ALTERNATIVES = 4


@dataclass(frozen=True, slots=True)
class Row:
    """One resource: demand at the peak with its range, and how many machines it would fill.

    full : machines of the chosen kind that it alone fills, in one copy
    """

    resource: Resource
    title: str
    amount: Estimate
    formula: str
    full: float
    binds: bool


@dataclass(frozen=True, slots=True)
class Fleet:
    """Machines of one kind that hold the demand, with what they cost on demand a month.

    carrying : machines for the load (of one copy); machines : with copies and spares
    """

    name: str
    unit_id: str
    vcpu: float
    memory_gb: float
    carrying: int
    machines: int
    binds: Resource
    usd: float
    storage_usd: float
    price: PriceRef | None


@dataclass(frozen=True, slots=True)
class OneMachine:
    """Whether one machine carries it: at the likely demand, and in nine cases of ten."""

    enough: bool
    surely: bool
    name: str
    largest: str
    share: float
    binds: Resource


@dataclass(frozen=True, slots=True)
class Sizing:
    """The whole sizing of a service."""

    title: str
    rows: tuple[Row, ...]
    fleet: Fleet
    machines: Estimate
    usd: Estimate
    alternatives: tuple[Fleet, ...]
    one: OneMachine
    guarantee: Guarantee
    point: dict[str, float]
    inputs: dict[str, Range]
    answers_gb: float
    answers_usd: float | None


def applies(workload: Workload) -> bool:
    """Whether the kind of work is a service or data system that is sized here."""
    return workload.kind in SYSTEMS


def size(answer: Assessment, catalogue: Catalogue | None = None) -> Sizing:
    """Size the service of an assessment; see the module.

    Raises
    ------
    KeyError : the kind is none of `SYSTEMS`; ask `applies` first
    """
    w, terms = answer.workload, answer.settings.architecture
    catalogue = catalogue or load_catalogue()
    place = setting(w, catalogue, answer.today, answer.settings)
    ctx = place.context
    guarantee = copies_asked(w, terms)
    x, drawn = ctx.inputs.point(), ctx.inputs.draws(DRAWS)
    here, over = demand(x, ctx), demand(drawn, ctx)
    held, wide = held_resources(w, here), held_resources(w, over)
    asked: dict[Resource, Real] = {n.resource: n.amount for n in here}
    asked_by_draw: dict[Resource, Real] = {n.resource: n.amount for n in over}
    able = _able(place.cpus, x, w)
    fleets = sorted(
        (_fleet(u, held, asked, x, ctx, guarantee, catalogue) for u in able),
        key=lambda f: (f.usd + f.storage_usd, f.machines),
    )
    premium = _first(x[f"{HEAD}fewer_machines_premium"])
    best = _chosen(fleets, premium, whole=w.kind is Kind.database)
    unit = next(u for u in place.cpus if u.sku == best.unit_id)
    total = _machines(by_resource(unit, wide, drawn), ctx)[1]
    market = drawn["cpu_market_factor"]
    usd = total * unit.prices["on_demand"].likely * _paid_hours(w, drawn) * market + _storage_usd(
        asked_by_draw, total, drawn, guarantee, w, catalogue
    )
    alone = by_resource(unit, held, x)
    rows = tuple(
        Row(
            n.resource,
            services.TITLES[n.resource],
            _estimate(m.amount, _first(n.amount), services.UNITS[n.resource], n.formula),
            n.formula,
            _first(alone.get(n.resource, 0.0)),
            n.resource == best.binds,
        )
        for n, m in zip(here, over, strict=True)
    )
    told = ctx.inputs.ranges
    ranges = {n: told[n] for n in SHOWN if n in told} | service_ranges(w, terms)
    return Sizing(
        TITLES[w.kind],
        rows,
        best,
        _estimate(total, best.machines, "machines", "machines of the scarcest resource"),
        _estimate(usd, best.usd + best.storage_usd, "USD a month", "on demand"),
        tuple(f for f in fleets if f is not best)[:ALTERNATIVES],
        _one_machine(able, held, wide, x, drawn),
        guarantee,
        {name: r.likely for name, r in ranges.items()},
        ranges,
        *_traffic(w, x, unit, catalogue),
    )


def _first(values: Real) -> float:
    """A point's value, which stands in an array of one."""
    return float(np.ravel(np.asarray(values))[0])


# --- machines


def _machines(by: Mapping[Resource, Real], ctx: Context) -> tuple[np.ndarray, np.ndarray]:
    """Whole machines for the load, and with copies and spares; runs over stored data have none."""
    carrying = np.asarray(services.whole_machines(by), dtype=float)
    return carrying, (
        carrying if ctx.workload.kind is Kind.etl else with_copies(carrying, ctx.stages, ctx)
    )


def _fleet(
    unit: Unit,
    held: Mapping[Resource, np.ndarray],
    asked: Mapping[Resource, Real],
    x: Values,
    ctx: Context,
    guarantee: Guarantee,
    catalogue: Catalogue,
) -> Fleet:
    w = ctx.workload
    by = by_resource(unit, held, x)
    carrying, total = _machines(by, ctx)
    price = unit.prices["on_demand"]
    storage = _storage_usd(asked, total, x, guarantee, w, catalogue)
    return Fleet(
        unit.name,
        unit.sku,
        unit.vcpu,
        unit.memory_gb,
        int(_first(carrying)),
        int(_first(total)),
        services.binding({r: _first(n) for r, n in by.items()}),
        _first(total * price.likely * _paid_hours(w, x)),
        _first(storage),
        price.ref,
    )


def _able(units: list[Unit], x: Values, w: Workload) -> list[Unit]:
    """The servers that may be taken: all, or those that hold a set that can't be split.

    Raises
    ------
    InputError : no server holds it
    """
    if w.working_set_shardable:
        return units
    gb, share = _first(x["working_set_gb"]), _first(x[f"{HEAD}memory_share"])
    able = [u for u in units if gb <= u.memory_gb * share]
    if not able:
        most = max(u.memory_gb for u in units)
        raise InputError(
            f"a working set of {gb:,.0f} GB that can't be split fits into no server on offer; the "
            f"largest has {most:,.0f} GB, of which {share:.0%} are planned with",
            where="working_set_gb",
            right="a working set that can be split over machines, or a smaller one",
        )
    return able


def _traffic(
    w: Workload, x: Values, unit: Unit, catalogue: Catalogue
) -> tuple[float, float | None]:
    """GB of answers a month, and their price where they leave the provider, if it is known."""
    if w.kind not in (Kind.web, Kind.online_inference, Kind.recsys):
        return 0.0, None  # read by machines beside them
    kb = _first(x[f"{HEAD}answer_kb"])
    gb = _first(x["rate_per_s"]) * w.services * kb / 1e6 * HOURS_PER_MONTH * 3600
    ref = unit.prices["on_demand"].ref
    try:
        return gb, catalogue.egress_usd(ref.provider, gb) if ref is not None else None
    except InputError:
        return gb, None


def _chosen(fleets: list[Fleet], premium: float, *, whole: bool) -> Fleet:
    """The fewest machines among the fleets that cost little more than the cheapest.

    whole : a database is not split over machines while one machine holds a copy
    """
    if whole:
        fleets = [f for f in fleets if f.carrying == 1] or fleets
    cheapest = fleets[0]
    most = cheapest.usd * (1 + premium) + cheapest.storage_usd
    near = [f for f in fleets if f.usd + f.storage_usd <= most * (1 + 1e-9)]
    return min(near, key=lambda f: (f.machines, f.usd + f.storage_usd))


def _paid_hours(w: Workload, x: Values) -> Real:
    """Hours a month that are paid: a service's all, those of the runs' windows for ETL."""
    if w.kind is not Kind.etl:
        return HOURS_PER_MONTH
    hours = x["runs_per_month"] * x["patience_h"]
    return np.asarray(np.minimum(hours, HOURS_PER_MONTH))


def _storage_usd(
    needs: Mapping[Resource, Real],
    machines: Real,
    x: Values,
    g: Guarantee,
    w: Workload,
    catalogue: Catalogue,
) -> np.ndarray:
    """Storage a month: space, and rate and operations beyond what comes with a volume.

    What a crawler gathers lies in object storage, everything else on block storage.
    """
    usd_per_gb = storage_usd_per_gb(
        catalogue, "object_storage" if w.kind is Kind.search else "block_storage"
    )
    copies = g.copies if w.kind in BY_COPY else 1
    m = np.asarray(machines, dtype=float)
    space = np.asarray(needs["disk_space"]) * copies * usd_per_gb
    rate = np.maximum(
        np.asarray(needs.get("disk_rate", 0.0)) * copies - x[f"{HEAD}included_disk_mb_per_s"] * m, 0
    )
    ops = np.maximum(
        np.asarray(needs.get("disk_ops", 0.0)) * copies - x[f"{HEAD}included_disk_ops"] * m, 0
    )
    return np.asarray(
        space + rate * x[f"{HEAD}usd_per_mb_per_s"] + ops * x[f"{HEAD}usd_per_disk_op"]
    )


def storage_usd_per_gb(catalogue: Catalogue, category: str) -> float:
    """Median price of a category of storage over the providers [USD a GB and month]."""
    found = [p.likely for p in catalogue.running.values() if p.category == category]
    return float(np.median(found))


def _one_machine(
    units: list[Unit],
    held: Mapping[Resource, np.ndarray],
    wide: Mapping[Resource, np.ndarray],
    x: Values,
    drawn: Values,
) -> OneMachine:
    """The cheapest single machine that carries it; else the largest, and what it lacks."""

    def filled(unit: Unit) -> dict[Resource, float]:
        return {r: _first(n) for r, n in by_resource(unit, held, x).items()}

    def fullest(unit: Unit) -> float:
        return max(filled(unit).values())

    by_price = sorted(units, key=lambda u: u.prices["on_demand"].likely)
    holding = next((u for u in by_price if fullest(u) <= 1.0), None)
    largest = min(units, key=lambda u: (round(fullest(u), 6), -u.vcpu))
    unit = holding or largest
    by = filled(unit)
    widest = by_resource(largest, wide, drawn)
    surely = float(np.mean(np.asarray(services.whole_machines(widest)) <= 1)) >= 0.9
    return OneMachine(
        holding is not None,
        holding is not None and surely,
        unit.name,
        largest.name,
        max(by.values()),
        services.binding(by),
    )


def _estimate(values: Real, likely: float, unit: str, source: str) -> Estimate:
    """The likely value with the 10th and 90th percentile of the draws around it."""
    # A quantile that some draw has: half a machine is none.
    drawn = np.atleast_1d(np.asarray(values, dtype=float))
    low, high = np.quantile(drawn, [0.1, 0.9], method="nearest")
    return Estimate(min(float(low), likely), likely, max(float(high), likely), unit, (source,))
