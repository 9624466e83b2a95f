"""What a service asks of machines, by resource: the one sizing of the decision and of its page.

Demand follows from the workload's answers, the page's terms and the ranges of
service_parameters.csv; of each kind of server the scarcest resource says how many carry the peak,
and the worst failure says how many copies and spares stand beside them. Works on points and draws
alike: the inputs of the tables stand among the decision's own under the name `service.…`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from engine.decide.candidates import Unit
from engine.decide.evaluation import Context, Values
from engine.decide.guarantees import copies_asked
from engine.decide.inputs import Inputs, Range
from engine.decide.numbers import Array
from engine.decide.priors import parameter
from engine.estimate import data_systems, services
from engine.estimate.data_systems import Need
from engine.estimate.jobs import REFERENCE_VCPU, Stage
from engine.estimate.named import DATA, Named, named
from engine.estimate.services import Machine, Real, Resource
from engine.workload.answers import Downtime, FailureMode, Kind
from engine.workload.services_terms import ServicesTerms
from engine.workload.settings import USUAL
from engine.workload.workload import HOURS_PER_MONTH, Workload

FILE = DATA / "service_parameters.csv"
HEAD = "service."
System = Callable[[data_systems.Inputs], tuple[Need, ...]]
# The system of each kind of work, and the rows of the table that are its own.
SYSTEMS: dict[Kind, tuple[System, str]] = {
    Kind.web: (data_systems.web, "web"),
    Kind.online_inference: (data_systems.web, "model"),
    Kind.recsys: (data_systems.web, "model"),
    Kind.database: (data_systems.database, "database"),
    Kind.streaming: (data_systems.log, "streaming"),
    Kind.search: (data_systems.crawler, "search"),
    Kind.etl: (data_systems.etl, "streaming"),
}
# Demand of a copy, each with machines of its own; the others contain the copies, or have none.
BY_COPY = frozenset({Kind.database, Kind.search})
# Of a run over stored data these follow from the time that it takes, or lie elsewhere.
OF_TIME = frozenset({"cores", "disk_space"})
YOURS = "your figure"
# The workload's own inputs that a system reads beside the table's.
TOLD = ("rate_per_s", "peak_factor", "cpu_ms_per_item", "working_set_gb", "patience_h")


@dataclass(frozen=True, slots=True)
class Sized:
    """Machines of one kind for a service.

    by_resource : how many each resource alone fills (real numbers)
    carrying : whole machines for the load, of one copy where copies stand apart
    machines : with copies and spares
    """

    by_resource: dict[Resource, Array]
    carrying: Array
    machines: Array


def service_parameters() -> dict[str, Named]:
    """The rows of service_parameters.csv by id."""
    return dict(named(FILE))


def with_service_inputs(inputs: Inputs, w: Workload, terms: ServicesTerms) -> Inputs:
    """The inputs with those of the service, where the work is one; see `service_ranges`."""
    if w.kind not in SYSTEMS:
        return inputs
    own = {HEAD + name: r for name, r in service_ranges(w, terms).items()}
    return Inputs({**inputs.ranges, **own}, inputs.shares)


def service_ranges(w: Workload, terms: ServicesTerms) -> dict[str, Range]:
    """Every input of the sizing that the workload does not have, by its name in the table."""
    found = dict(_table(SYSTEMS[w.kind][1]))
    own = {
        "request_kb": terms.item_kb, "answer_kb": terms.answer_kb,
        "retention_days": terms.retention_days, "machine_disk_mb_per_s": terms.disk_mb_per_s,
        "lag_s": terms.lag_s,
        "write_share": None if terms.write_pct is None else terms.write_pct / 100,
    }  # fmt: skip
    for name, value in own.items():
        if value is not None:
            found[name] = exact(value, found[name].unit)
    if w.data_gb is not None:
        found["data_gb"] = exact(w.data_gb, "GB", "your answer (data_gb)")
    copies = float(copies_asked(w, terms).copies)
    found["copies"] = exact(copies, "copies", "the worst failure")
    return found


@cache
def _table(prefix: str) -> Mapping[str, Range]:
    """The table's rows of a system, and the two of the decision that size machines."""
    found = {}
    for id, row in service_parameters().items():
        kind, _, rest = id.rpartition(".")
        if kind in ("", prefix):
            found[rest] = Range(
                row.low, row.likely, row.high, row.unit, row.source, False, "parameter",
                fraction=row.unit == "share",
            )  # fmt: skip
    for name, decision in (
        ("load", "cpu_pool_target_utilization"), ("memory_share", "service_memory_share")
    ):  # fmt: skip
        p = parameter(decision)
        found[name] = Range(
            p.low, p.likely, p.high, p.unit, p.source, False, "parameter", fraction=True
        )
    return found


def exact(value: float, unit: str, source: str = YOURS) -> Range:
    """A range of one value, as told."""
    return Range(value, value, value, unit, source, True, "exact")


def service_values(x: Mapping[str, Array]) -> dict[str, Array]:
    """The service's own inputs by their names in the table."""
    return {name[len(HEAD) :]: v for name, v in x.items() if name.startswith(HEAD)}


def needs(x: Values, ctx: Context, server_hours: Array | None = None) -> tuple[Need, ...]:
    """Demand for each resource at the peak, with its formula; see `data_systems`.

    server_hours : of a run over stored data, on one reference server, I/O not counted [h]
    """
    w = ctx.workload
    v: dict[str, Real] = {**service_values(x), **{name: x[name] for name in TOLD if name in x}}
    if "rate_per_s" in x:
        v["mean"] = x["rate_per_s"] * w.services
        v["peak"] = x["rate_per_s"] * w.services * x["peak_factor"]
    v["services"] = float(w.services)
    if server_hours is not None:
        v["server_hours"], v["server_vcpu"] = server_hours, REFERENCE_VCPU
        v["window_h"] = window_h(x)
    return SYSTEMS[w.kind][0](v)


def window_h(x: Values) -> Array:
    """Hours in which a run must be done: those that are wanted, or until the next one starts."""
    each = HOURS_PER_MONTH / np.maximum(x["runs_per_month"], 1e-6)
    return np.asarray(np.minimum(x["patience_h"], each))


def held_resources(w: Workload, found: tuple[Need, ...]) -> dict[Resource, Array]:
    """What the machines must hold: a crawler's pages lie in object storage."""
    away = w.kind is Kind.search
    return {
        n.resource: np.asarray(n.amount, dtype=float)
        for n in found
        if not (away and n.resource == "disk_space")
    }


def machine(unit: Unit, x: Values) -> Machine:
    """What one machine gives; its processors at the speed that is reached. GPUs: their host."""
    gpu = unit.hardware == "gpu"
    network = x[f"{HEAD}gpu_host_gbit_per_s" if gpu else f"{HEAD}server_gbit_per_s"]
    return Machine(
        unit.vcpu * unit.per_machine * x["cpu_efficiency_factor"],
        unit.memory_gb * unit.per_machine,
        unit.network_gbit_per_s or network,
        x[f"{HEAD}machine_disk_mb_per_s"],
        x[f"{HEAD}machine_disk_ops"],
        x[f"{HEAD}machine_disk_tb"] * 1000.0,
    )


def by_resource(unit: Unit, held: Mapping[Resource, Array], x: Values) -> dict[Resource, Array]:
    """How many machines of this kind each resource alone fills (real numbers)."""
    found = services.machines_by_resource(held, machine(unit, x))
    return {r: np.asarray(n, dtype=float) for r, n in found.items()}


def on_servers(
    unit: Unit, held: Mapping[Resource, Array], beside: Array, x: Values
) -> dict[Resource, Array]:
    """Servers of one kind that each resource fills.

    held : demand by resource, see `held_resources`
    beside : servers that other stages on them keep busy
    """
    by = by_resource(unit, held, x)
    return {**by, "cores": by["cores"] + beside}


def on_gpus(
    unit: Unit,
    part: tuple[Stage, ...],
    held: Mapping[Resource, Array],
    load: Array,
    x: Values,
    ctx: Context,
) -> dict[Resource, Array]:
    """The same for GPUs, each with its part of a host: its memory holds the working set.

    load : GPUs that the stages keep busy, by their arithmetic or the host's
    """
    machines = by_resource(unit, held, x)
    by = {r: n * unit.per_machine for r, n in machines.items() if r not in ("cores", "memory")}
    if any(s.holds_data for s in part) and ctx.workload.working_set_shardable:
        by["memory"] = x["working_set_gb"] / (unit.memory_gb * x[f"{HEAD}memory_share"])
    return {**by, "cores": load}


def sized(
    by: dict[Resource, Array], part: tuple[Stage, ...], ctx: Context,
    growth: Array | float = 1.0, per_machine: int = 1,
) -> Sized:  # fmt: skip
    """Whole units for the resource that is scarcest, with copies and spares.

    growth : room for months that are busier than the mean, where machines are committed
    per_machine : units that are lost and rented together
    """
    most = np.maximum.reduce([by["cores"] * growth, *(by[r] for r in by if r != "cores")])
    machines = np.maximum(np.ceil(most / per_machine - 1e-9), 1.0)
    return Sized(by, machines * per_machine, with_copies(machines, part, ctx) * per_machine)


def with_copies(carrying: Array, part: tuple[Stage, ...], ctx: Context) -> Array:
    """Machines with copies and spares, of data at least one for each copy."""
    w, terms = ctx.workload, ctx.settings.architecture
    holds = any(s.holds_data for s in part)
    least = float(copies_asked(w, terms).copies) if holds else 1.0
    return np.asarray(np.maximum(carrying + spare_units(w, part, carrying, terms), least))


def growth(monthly_variation: Array | float) -> Array:
    """Room for months that are busier than the mean, where machines are committed.

    A peak already covers the day.
    """
    return np.asarray(1 + 0.5 * monthly_variation)


def spare_rule(w: Workload) -> tuple[int, float]:
    """Fewest spare machines, and their share of those that carry the load, by the worst failure."""
    urgent = w.downtime in (Downtime.seconds, Downtime.minutes)
    fears = w.failure_mode in (FailureMode.machine_loss, FailureMode.late_answers)
    tolerant = w.downtime in (Downtime.hours, Downtime.day)
    return (1, 0.1) if urgent or (fears and not tolerant) else (0, 0.0)


def spare_units(
    w: Workload, part: tuple[Stage, ...], need: Array, terms: ServicesTerms = USUAL.architecture
) -> Array:
    """Machines beyond the load that the worst failure and the tolerated absence ask for.

    Each copy of a database or a search index has machines of its own.
    """
    if w.kind in BY_COPY and (not part or any(s.holds_data for s in part)):
        return np.asarray(need * (copies_asked(w, terms).copies - 1.0))
    least, share = spare_rule(w)
    if least:
        return np.asarray(np.maximum(float(least), np.ceil(share * need)))
    keeps = w.kind is Kind.recsys and any(s.holds_data for s in part)
    if keeps and w.failure_mode is FailureMode.data_loss:
        return np.ones_like(need)
    return np.zeros_like(need)
