"""The service of an assessment by resource: what it asks for, which machines, what it costs.

The workload's answers, the page's terms and the tables' ranges become inputs; the demand of the
kind of service follows at the likely point and over draws; of the servers on offer those are taken
that hold it at the least cost a month on demand. The recommendation sizes by processors alone;
here memory, network and disks count too, and the scarcest is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from engine.assessment import Assessment, PriceRef
from engine.catalogue import Catalogue, load_catalogue
from engine.decide.candidates import Unit
from engine.decide.context import setting
from engine.decide.evaluate import REFERENCE_VCPU, reference_server_hours, spare_units
from engine.decide.evaluation import Context
from engine.decide.inputs import Range, sample, standard_normal
from engine.decide.priors import parameter
from engine.errors import InputError
from engine.estimate import data_systems, services
from engine.estimate.data_systems import Need
from engine.estimate.estimate import Estimate
from engine.estimate.named import DATA, Named, named
from engine.estimate.services import Machine, Real, Resource
from engine.explain.services_guarantees import Guarantee, copies_asked
from engine.workload.answers import Kind
from engine.workload.services_terms import ServicesTerms
from engine.workload.workload import HOURS_PER_MONTH, Workload

FILE = DATA / "service_parameters.csv"
DRAWS = 1024
System = Callable[[data_systems.Inputs], tuple[Need, ...]]
SYSTEMS: dict[Kind, tuple[str, System, str]] = {
    Kind.web: ("Web services", data_systems.web, "web"),
    Kind.online_inference: ("Requests and features", data_systems.web, "model"),
    Kind.recsys: ("Requests and tables", data_systems.web, "model"),
    Kind.database: ("Database", data_systems.database, "database"),
    Kind.streaming: ("Log of events", data_systems.log, "streaming"),
    Kind.search: ("Search and crawling", data_systems.crawler, "search"),
    Kind.etl: ("Data preparation", data_systems.etl, "streaming"),
}
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
# Demand of a copy; the others contain the copies, or have none.
BY_COPY = frozenset({Kind.database, Kind.search})
ALTERNATIVES = 4
YOURS = "your figure"


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


def service_parameters() -> dict[str, Named]:
    """The rows of service_parameters.csv by id."""
    return dict(named(FILE))


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
    title, system, prefix = SYSTEMS[w.kind]
    guarantee = copies_asked(w, terms)
    ranges = _ranges(place.context, w, terms, prefix, guarantee.copies)
    point = {name: r.likely for name, r in ranges.items()}
    z = standard_normal(len(ranges), DRAWS)
    drawn = {name: sample(r, z[:, i]) for i, (name, r) in enumerate(ranges.items())}
    here = system(_values(point, w, place.context))
    over = system(_values(drawn, w, place.context))
    needs: dict[Resource, Real] = {n.resource: n.amount for n in here}
    able = _able(place.cpus, point, w)
    fleets = sorted(
        (_fleet(u, needs, point, w, place.context, guarantee, catalogue) for u in able),
        key=lambda f: (f.usd + f.storage_usd, f.machines),
    )
    best = _chosen(fleets, point["fewer_machines_premium"], whole=w.kind is Kind.database)
    unit = next(u for u in place.cpus if u.sku == best.unit_id)
    wide: dict[Resource, Real] = {n.resource: n.amount for n in over}
    by_draw = services.machines_by_resource(_held(w, wide), _machine(unit, drawn))
    carrying = np.asarray(services.whole_machines(by_draw))
    total = _with_copies(carrying, w, place.context, guarantee)
    price = unit.prices["on_demand"]
    market = drawn["cpu_market_factor"]
    usd = total * price.likely * _paid_hours(w, drawn) * market + _storage_usd(
        wide, total, drawn, guarantee, w, catalogue
    )
    alone = services.machines_by_resource(_held(w, needs), _machine(unit, point))
    rows = tuple(
        Row(
            n.resource,
            services.TITLES[n.resource],
            _estimate(m.amount, float(n.amount), services.UNITS[n.resource], n.formula),
            n.formula,
            float(alone.get(n.resource, 0.0)),
            n.resource == best.binds,
        )
        for n, m in zip(here, over, strict=True)
    )
    return Sizing(
        title,
        rows,
        best,
        _estimate(total, best.machines, "machines", "machines of the scarcest resource"),
        _estimate(usd, best.usd + best.storage_usd, "USD a month", "on demand"),
        tuple(f for f in fleets if f is not best)[:ALTERNATIVES],
        _one_machine(able, _held(w, needs), _held(w, wide), point, drawn),
        guarantee,
        point,
        ranges,
        *_traffic(w, point, unit, catalogue),
    )


# --- inputs


def _ranges(
    context: Context, w: Workload, terms: ServicesTerms, prefix: str, copies: int
) -> dict[str, Range]:
    """Every input with its range and source: the job's, the terms', the tables'."""
    told = context.inputs.ranges
    names = ("rate_per_s", "peak_factor", "cpu_ms_per_item", "working_set_gb", "patience_h",
             "cpu_efficiency_factor", "cpu_market_factor", "useful_hours_per_month",
             "runs_per_month", "current_units", "parallel_fraction", "io_share")  # fmt: skip
    found = {name: told[name] for name in names if name in told}
    for id, row in service_parameters().items():
        kind, _, rest = id.rpartition(".")
        if kind in ("", prefix):
            found[rest] = _range(row)
    for name, decision in (
        ("load", "cpu_pool_target_utilization"), ("memory_share", "service_memory_share")
    ):  # fmt: skip
        p = parameter(decision)
        found[name] = Range(
            p.low, p.likely, p.high, p.unit, p.source, False, "parameter", fraction=True
        )
    own = {
        "request_kb": terms.item_kb, "answer_kb": terms.answer_kb,
        "retention_days": terms.retention_days, "machine_disk_mb_per_s": terms.disk_mb_per_s,
        "lag_s": terms.lag_s,
        "write_share": None if terms.write_pct is None else terms.write_pct / 100,
    }  # fmt: skip
    for name, value in own.items():
        if value is not None:
            found[name] = _exact(value, found[name].unit)
    if w.data_gb is not None:
        found["data_gb"] = _exact(w.data_gb, "GB", "your answer (data_gb)")
    found["copies"] = _exact(float(copies), "copies", "the worst failure")
    return found


def _range(row: Named) -> Range:
    return Range(row.low, row.likely, row.high, row.unit, row.source, False, "parameter",
                 fraction=row.unit == "share")  # fmt: skip


def _exact(value: float, unit: str, source: str = YOURS) -> Range:
    return Range(value, value, value, unit, source, True, "exact")


def _values(x: Mapping[str, Real], w: Workload, context: Context) -> dict[str, Real]:
    """The inputs of a system: rate and peak of all services together; hours of a run for ETL."""
    found = dict(x)
    if "rate_per_s" in x:
        found["mean"] = np.asarray(x["rate_per_s"]) * w.services
        found["peak"] = np.asarray(found["mean"]) * x["peak_factor"]
    found["services"] = float(w.services)
    if w.kind is Kind.etl:
        arrays = {name: np.atleast_1d(np.asarray(value, dtype=float)) for name, value in x.items()}
        hours = reference_server_hours(arrays, context) * (1 - arrays["io_share"])
        found["server_hours"] = hours if np.ndim(x["io_share"]) else float(hours[0])
        found["server_vcpu"] = REFERENCE_VCPU
        found["window_h"] = x["patience_h"]
    return found


# --- machines


def _machine(unit: Unit, x: Mapping[str, Real]) -> Machine:
    """What one server gives; its processors at the speed that is reached."""
    network = unit.network_gbit_per_s or x["server_gbit_per_s"]
    disk = np.asarray(x["machine_disk_tb"]) * 1000.0
    return Machine(
        unit.vcpu * np.asarray(x["cpu_efficiency_factor"]),
        unit.memory_gb,
        network,
        x["machine_disk_mb_per_s"],
        x["machine_disk_ops"],
        disk,
    )


def _fleet(
    unit: Unit,
    needs: Mapping[Resource, Real],
    point: Mapping[str, float],
    w: Workload,
    context: Context,
    guarantee: Guarantee,
    catalogue: Catalogue,
) -> Fleet:
    by = services.machines_by_resource(_held(w, needs), _machine(unit, point))
    carrying = np.asarray(services.whole_machines(by))
    total = _with_copies(carrying, w, context, guarantee)
    price = unit.prices["on_demand"]
    storage = _storage_usd(needs, total, point, guarantee, w, catalogue)
    return Fleet(
        unit.name,
        unit.sku,
        unit.vcpu,
        unit.memory_gb,
        int(carrying),
        int(total),
        services.binding(by),
        float(total * price.likely * _paid_hours(w, point)),
        float(storage),
        price.ref,
    )


def _held(w: Workload, needs: Mapping[Resource, Real]) -> dict[Resource, Real]:
    """What the machines must hold: a crawler's pages lie in object storage."""
    away = w.kind is Kind.search
    return {r: need for r, need in needs.items() if not (away and r == "disk_space")}


def _able(units: list[Unit], point: Mapping[str, float], w: Workload) -> list[Unit]:
    """The servers that may be taken: all, or those that hold a set that can't be split.

    Raises
    ------
    InputError : no server holds it
    """
    if w.working_set_shardable:
        return units
    gb, share = point["working_set_gb"], point["memory_share"]
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
    w: Workload, point: Mapping[str, float], unit: Unit, catalogue: Catalogue
) -> tuple[float, float | None]:
    """GB of answers a month, and their price where they leave the provider, if it is known."""
    if w.kind not in (Kind.web, Kind.online_inference, Kind.recsys):
        return 0.0, None  # read by machines beside them
    kb = point["answer_kb"]
    gb = point["rate_per_s"] * w.services * kb / 1e6 * HOURS_PER_MONTH * 3600
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


def _paid_hours(w: Workload, x: Mapping[str, Real]) -> Real:
    """Hours a month that are paid: a service's all, those of the runs' windows for ETL."""
    if w.kind is not Kind.etl:
        return HOURS_PER_MONTH
    hours = np.asarray(x["runs_per_month"]) * np.asarray(x["patience_h"])
    return np.asarray(np.minimum(hours, HOURS_PER_MONTH))


def _with_copies(carrying: Real, w: Workload, context: Context, g: Guarantee) -> np.ndarray:
    """Machines with copies and spares: each copy of a database has machines of its own."""
    n = np.asarray(carrying, dtype=float)
    if w.kind in BY_COPY:
        return np.asarray(n * g.copies)
    if w.kind is Kind.etl:
        return n
    spare = spare_units(w, context.stages, np.atleast_1d(n)).reshape(n.shape)
    return np.asarray(np.maximum(n + spare, g.copies if w.kind is Kind.streaming else 1))


def _storage_usd(
    needs: Mapping[Resource, Real],
    machines: Real,
    x: Mapping[str, Real],
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
        np.asarray(needs.get("disk_rate", 0.0)) * copies - x["included_disk_mb_per_s"] * m, 0
    )
    ops = np.maximum(
        np.asarray(needs.get("disk_ops", 0.0)) * copies - x["included_disk_ops"] * m, 0
    )
    return np.asarray(space + rate * x["usd_per_mb_per_s"] + ops * x["usd_per_disk_op"])


def storage_usd_per_gb(catalogue: Catalogue, category: str) -> float:
    """Median price of a category of storage over the providers [USD a GB and month]."""
    found = [p.likely for p in catalogue.running.values() if p.category == category]
    return float(np.median(found))


def _one_machine(
    units: list[Unit],
    needs: Mapping[Resource, Real],
    over: Mapping[Resource, Real],
    point: Mapping[str, float],
    drawn: Mapping[str, Real],
) -> OneMachine:
    """The cheapest single machine that carries it; else the largest, and what it lacks."""

    def filled(unit: Unit) -> float:
        by = services.machines_by_resource(needs, _machine(unit, point))
        return max(float(v) for v in by.values())

    by_price = sorted(units, key=lambda u: u.prices["on_demand"].likely)
    holding = next((u for u in by_price if filled(u) <= 1.0), None)
    largest = min(units, key=lambda u: (round(filled(u), 6), -u.vcpu))
    unit = holding or largest
    by = services.machines_by_resource(needs, _machine(unit, point))
    widest = services.machines_by_resource(over, _machine(largest, drawn))
    surely = float(np.mean(np.asarray(services.whole_machines(widest)) <= 1)) >= 0.9
    return OneMachine(
        holding is not None,
        holding is not None and surely,
        unit.name,
        largest.name,
        max(float(v) for v in by.values()),
        services.binding(by),
    )


def _estimate(values: Real, likely: float, unit: str, source: str) -> Estimate:
    """The likely value with the 10th and 90th percentile of the draws around it."""
    # A quantile that some draw has: half a machine is none.
    drawn = np.atleast_1d(np.asarray(values, dtype=float))
    low, high = np.quantile(drawn, [0.1, 0.9], method="nearest")
    return Estimate(min(float(low), likely), likely, max(float(high), likely), unit, (source,))
