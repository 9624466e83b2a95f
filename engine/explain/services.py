"""The service of an assessment by resource: what it asks for, which machines, what it costs.

The workload's answers, the page's terms and the tables' ranges become inputs; the demand of the
kind of service follows at the likely point and over draws. Machines, copies, storage and cost are
the decision's own: the servers of the recommendation stand first, on its terms, and beside them
what the same work would take and cost on others. The scarcest resource is named.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.assessment import (
    ACQUISITION_LABELS,
    Acquisition,
    Assessment,
    Option,
    PriceRef,
    StagePlan,
)
from engine.catalogue import Catalogue, load_catalogue
from engine.decide.candidates import Unit
from engine.decide.context import setting
from engine.decide.evaluate import pool_of
from engine.decide.evaluation import Context, Memo, Pool, Values
from engine.decide.guarantees import Guarantee, copies_asked
from engine.decide.inputs import Range
from engine.decide.numbers import Array
from engine.decide.paying import COMMITTED
from engine.decide.service_sizing import (
    HEAD,
    SYSTEMS,
    TOLD,
    by_resource,
    growth,
    service_ranges,
)
from engine.decide.service_units import demand_at_peak, needs_of, sizing_of
from engine.decide.sharding import people_usd, shards_of
from engine.decide.storing import keeps_data, storage_usd
from engine.errors import InputError
from engine.estimate import services
from engine.estimate.data_systems import Need
from engine.estimate.estimate import Estimate
from engine.estimate.jobs import Stage
from engine.estimate.services import Real, Resource
from engine.explain.jobs_owning import in_own_rooms, paid_as, price_for
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
    """Machines of one kind that hold the demand, with what they cost a month.

    carrying : machines for the load (of one copy); machines : with copies and spares, and with
    those of runs side by side; of_run : of them on one run, or all of a service
    no_price : what the cost rests on where it is no price of the catalogue
    terms : how they are paid, in words; usd : the machines alone, over the horizon by the month
    people_usd : for those who run the shards of a database beyond the first
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
    terms: str
    of_run: int = 0
    no_price: str = "your quote"
    people_usd: float = 0.0

    @property
    def total_usd(self) -> float:
        """Machines, storage and people for further shards, a month."""
        return self.usd + self.storage_usd + self.people_usd


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
    """The whole sizing of a service.

    recommended : whether the recommendation has these servers; else they are those that the work
        would take beside or in place of its GPUs
    chosen : how they were found, in words
    """

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
    recommended: bool
    chosen: str

    @property
    def people(self) -> bool:
        """Whether any of these fleets takes people for further shards."""
        return any(f.people_usd for f in (self.fleet, *self.alternatives))


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
    option, servers = _servers(answer, ctx)
    part = _carried(servers, ctx)
    paid: Acquisition = servers.acquisition if servers is not None else paid_as(w)  # type: ignore[assignment]
    likely = _Work(part, paid, ctx.inputs.point(), ctx)
    drawn = _Work(part, paid, ctx.inputs.draws(DRAWS), ctx)
    able = _able([u for u in place.cpus if price_for(u, w) is not None], likely.x, w)
    fleets = sorted((likely.fleet(u) for u in able), key=lambda f: (f.total_usd, f.machines))
    if w.kind is Kind.database:  # a copy is not split over machines while one machine holds it
        fleets = [f for f in fleets if f.carrying == 1] or fleets
    sku = servers.sku if servers is not None else ""
    best = next((f for f in fleets if f.unit_id == sku), fleets[0])
    unit = next(u for u in able if u.sku == best.unit_id)
    pool = drawn.pool(unit)
    total = np.ceil(pool.paid_units / unit.per_machine - 1e-6)
    usd = pool.usd_per_month + drawn.storage(pool) + people_usd(shards_of(pool, ctx))
    alone = likely.by_resource(unit)
    rows = tuple(
        Row(
            n.resource,
            services.TITLES[n.resource],
            _estimate(m.amount, _first(n.amount), services.UNITS[n.resource], n.formula),
            _formula(n, w, part),
            _first(alone.get(n.resource, 0.0)),
            n.resource == best.binds,
        )
        for n, m in zip(likely.needs, drawn.needs, strict=True)
    )
    told = ctx.inputs.ranges
    ranges = {n: told[n] for n in SHOWN if n in told} | service_ranges(w, terms)
    recommended = option is not None and option is answer.options[0]
    return Sizing(
        TITLES[w.kind],
        rows,
        best,
        _estimate(total, best.machines, "machines", "machines of the scarcest resource"),
        _estimate(usd, best.total_usd, "USD a month", best.terms),
        tuple(f for f in fleets if f is not best)[:ALTERNATIVES],
        _one_machine(able, likely, drawn),
        guarantee,
        {name: r.likely for name, r in ranges.items()},
        ranges,
        *_traffic(w, likely.x, unit, catalogue),
        recommended,
        _chosen(recommended, best),
    )


# --- the recommendation's servers


def _servers(answer: Assessment, ctx: Context) -> tuple[Option | None, StagePlan | None]:
    """The best option that has servers for the service itself, and those servers."""
    first = ctx.stages[0].title.lower()
    for option in answer.options:
        for plan in option.stages:
            if plan.hardware == "cpu" and first in plan.stage.lower():
                return option, plan
    return None, None


def _carried(servers: StagePlan | None, ctx: Context) -> tuple[Stage, ...]:
    """The stages that these servers carry together; the service's own where there are none."""
    said = servers.stage.lower() if servers is not None else ""
    mode = ctx.stages[0].mode
    carried = (s for s in ctx.stages if s.mode == mode and s.title.lower() in said)
    return tuple(carried) or ctx.stages[:1]


def _chosen(recommended: bool, best: Fleet) -> str:
    if recommended:
        return (
            f"The first are the recommendation's, {best.terms}: it weighs time, failures, effort "
            "and terms beside the cost. Below is what the same work takes on others, the cheapest "
            "first."
        )
    return (
        "The recommendation has GPU machines do this as well. These are the servers that would do "
        f"it in place of them, {best.terms}, and below them the next cheapest."
    )


def _formula(need: Need, w: Workload, part: tuple[Stage, ...]) -> str:
    """The formula of a row, with what fills the machines beside the demand."""
    if need.resource != "cores":
        return need.formula
    if w.kind is Kind.etl:
        return f"{need.formula}; more machines where a part of the run does not divide"
    beside = [s.title.lower() for s in part if s.work != "core_ms"]
    return f"{need.formula}; beside it the {' and '.join(beside)}" if beside else need.formula


@dataclass(slots=True)
class _Work:
    """The service on servers, for the rows of some inputs: what the decision makes of it."""

    part: tuple[Stage, ...]
    terms: Acquisition
    x: Values
    ctx: Context
    memo: Memo = field(default_factory=dict)

    @property
    def needs(self) -> tuple[Need, ...]:
        """Demand for each resource at the peak."""
        return needs_of(self.x, self.ctx, self.memo)

    def paid(self, unit: Unit) -> Acquisition:
        """On demand where the terms are not offered."""
        return self.terms if self.terms in unit.prices else "on_demand"

    def pool(self, unit: Unit) -> Pool:
        """The decision's machines, their hours and cost."""
        return pool_of(unit, self.part, self.paid(unit), self.x, self.ctx, self.memo)

    def by_resource(self, unit: Unit) -> dict[Resource, Array]:
        """How many machines each resource alone fills, in one copy."""
        if self.part[0].mode == "service":
            return sizing_of(unit, self.part, self.x, self.ctx, 1.0, self.memo).by_resource
        by = by_resource(unit, demand_at_peak(self.x, self.ctx, self.memo), self.x)
        return {**by, "cores": self.pool(unit).units}

    def storage(self, pool: Pool) -> Array:
        """Storage a month; none where it was told apart."""
        if not keeps_data(self.ctx):
            return np.zeros_like(pool.units)
        return storage_usd(self.needs, pool, self.x, self.ctx)

    def fleet(self, unit: Unit) -> Fleet:
        """The machines at the likely inputs."""
        pool, terms = self.pool(unit), self.paid(unit)
        by = {r: _first(n) for r, n in self.by_resource(unit).items()}
        machines = int(np.ceil(_first(pool.paid_units) - 1e-6))
        carrying: Real = float(machines)
        if pool.service:
            room = growth(self.x["monthly_variation"]) if terms in COMMITTED else 1.0
            carrying = sizing_of(unit, self.part, self.x, self.ctx, room, self.memo).carrying
        return Fleet(
            unit.name, unit.sku, unit.vcpu, unit.memory_gb, int(_first(carrying)),
            machines, services.binding(by), _first(pool.usd_per_month),
            _first(self.storage(pool)), unit.prices[terms].ref, ACQUISITION_LABELS[terms],
            int(_first(pool.units)), "owned" if terms == "buy" else "your quote",
            _first(people_usd(shards_of(pool, self.ctx))),
        )  # fmt: skip


def _first(values: Real) -> float:
    """A point's value, which stands in an array of one."""
    return float(np.ravel(np.asarray(values))[0])


# --- machines


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
    if in_own_rooms(w) or w.kind not in (Kind.web, Kind.online_inference, Kind.recsys):
        return 0.0, None  # read by machines beside them
    kb = _first(x[f"{HEAD}answer_kb"])
    gb = _first(x["rate_per_s"]) * w.services * kb / 1e6 * HOURS_PER_MONTH * 3600
    ref = unit.prices["on_demand"].ref
    try:
        return gb, catalogue.egress_usd(ref.provider, gb) if ref is not None else None
    except InputError:
        return gb, None


def _one_machine(units: list[Unit], likely: _Work, drawn: _Work) -> OneMachine:
    """The cheapest single machine that carries it; else the largest, and what it lacks."""
    filled = {u.sku: {r: _first(n) for r, n in likely.by_resource(u).items()} for u in units}
    fullest = {sku: max(by.values()) for sku, by in filled.items()}
    by_price = sorted(units, key=lambda u: u.prices["on_demand"].likely)
    holding = next((u for u in by_price if fullest[u.sku] <= 1.0), None)
    largest = min(units, key=lambda u: (round(fullest[u.sku], 6), -u.vcpu))
    unit = holding or largest
    widest = services.whole_machines(drawn.by_resource(largest))
    surely = float(np.mean(np.asarray(widest) <= 1)) >= 0.9
    return OneMachine(
        holding is not None,
        holding is not None and surely,
        unit.name,
        largest.name,
        fullest[unit.sku],
        services.binding(filled[unit.sku]),
    )


def _estimate(values: Real, likely: float, unit: str, source: str) -> Estimate:
    """The likely value with the 10th and 90th percentile of the draws around it."""
    # A quantile that some draw has: half a machine is none.
    drawn = np.atleast_1d(np.asarray(values, dtype=float))
    low, high = np.quantile(drawn, [0.1, 0.9], method="nearest")
    return Estimate(min(float(low), likely), likely, max(float(high), likely), unit, (source,))
