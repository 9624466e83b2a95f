"""From a candidate and inputs to size, time, cost and vetoes: one definition for points and draws.

Every function takes the inputs as arrays of one length: a single point, a grid for sensitivity or
thousands of draws. Hours are per month unless a name says otherwise; money is USD a month over
the horizon.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.assessment import Acquisition, Veto
from engine.decide import language_models as llm
from engine.decide.candidates import Spec, Unit
from engine.decide.evaluation import Context, Evaluation, Pool, Values
from engine.decide.latency import latency_ms
from engine.decide.model_rates import items_per_s, requests_per_s
from engine.decide.numbers import Array, Mask
from engine.decide.paying import (
    COMMITTED,
    fees_of,
    pool_lines,
    spot_goodput,
    terms_of,
    usd_per_month,
)
from engine.decide.priors import likely
from engine.decide.service_sizing import (
    OF_TIME,
    SYSTEMS,
    Sized,
    by_resource,
    growth,
    held_resources,
    needs,
    on_gpus,
    on_servers,
    sized,
    spare_units,
)
from engine.decide.training_time import training_table
from engine.decide.vetoes import constrain
from engine.estimate import jobs
from engine.estimate.data_systems import Need
from engine.estimate.jobs import REFERENCE_VCPU, Stage
from engine.estimate.services import Resource
from engine.workload.answers import Current, Kind, Precision
from engine.workload.workload import HOURS_PER_MONTH, Workload

MAX_UNITS = 16_384
# What the same inputs gave already: pools, which many candidates share, and a service's demand.
Memo = dict[tuple[object, ...], Any]


def evaluate(spec: Spec, x: Values, ctx: Context, memo: Memo | None = None) -> Evaluation:
    """Size, time, cost and vetoes of one candidate for every row of the inputs.

    memo : pools found so far for these very inputs `x`, kept and added to
    """
    n = len(x["parallel_fraction"])
    memo = {} if memo is None else memo
    pools: list[Pool] = []
    vetoes: list[tuple[Mask, Veto]] = []
    together = ctx.workload.kind is Kind.rl
    placed = tuple(zip(ctx.stages, spec.stage_hardware, strict=True))
    batch_pools = len({h for s, h in placed if s.mode == "batch"})
    for hardware, unit in (("gpu", spec.gpu), ("cpu", spec.cpu)):
        if unit is None:
            continue
        for service, mode in ((False, "batch"), (True, "service")):
            part = tuple(s for s, h in placed if h == hardware and s.mode == mode)
            if not part:
                continue
            split = 1 if together or service else batch_pools
            terms = terms_of(spec, unit)
            owners = 1 if terms != "buy" else sum(u is not None for u in (spec.gpu, spec.cpu))
            key = (id(unit), service, tuple(s.name for s in part), terms, split, owners)
            known = memo.get(key)
            if known is None:
                barred: list[tuple[Mask, Veto]] = []
                had = Had(unit, terms, 1 / owners)
                if service:
                    pool = _service_pool(had, part, x, ctx, memo, barred)
                else:
                    pool = _batch_pool(had, part, x, ctx, split, memo, barred)
                known = memo[key] = pool, barred
            pools.append(known[0])
            vetoes += known[1]
    fees = fees_of(spec, pools, ctx)
    months = ctx.workload.horizon_months
    usd = np.asarray(sum(p.usd_per_month for p in pools) + usd_per_month(fees, months, n))
    # Simulators and learner work at the same time; other stages follow one another.
    each = [p.hours_per_run for p in pools if not p.service] or [np.zeros(n)]
    hours = np.maximum.reduce(each) if together else np.asarray(sum(each))
    latency = latency_ms(spec, x, ctx)
    none = np.zeros(n, dtype=bool)
    result = Evaluation(spec, pools, usd, hours, latency, none, vetoes, fees)
    constrain(result, x, ctx)
    for mask, _ in result.vetoes:
        result.vetoed = result.vetoed | mask
    return result


# --- batch work


@dataclass(frozen=True, slots=True)
class Had:
    """A unit as a candidate has it: on its terms, with its part of a stated staff."""

    unit: Unit
    terms: Acquisition
    staff_part: float


def _batch_pool(
    had: Had,
    part: tuple[Stage, ...],
    x: Values,
    ctx: Context,
    batch_pools: int,
    memo: Memo,
    vetoes: list[tuple[Mask, Veto]],
) -> Pool:
    """A pool that works through runs: sized to meet the patience and the month, no larger."""
    unit, terms = had.unit, had.terms
    runs = x["runs_per_month"]
    committed = terms in COMMITTED
    headroom = 1 + x["monthly_variation"] if committed else 1.0
    share = likely("batch_hours_share") if committed else 1.0
    wanted = np.minimum(
        x["patience_h"] / max(batch_pools, 1),
        HOURS_PER_MONTH * share / np.maximum(runs * headroom, 1e-6),
    )
    units, hours = _fleet(unit, part, x, ctx, wanted, memo, vetoes)
    goodput = _goodput(terms, unit, units, x)
    if terms == "spot":
        units, hours = _fleet(unit, part, x, ctx, wanted * goodput, memo, vetoes)
    hours = hours / goodput
    busy = runs * hours
    calendar = hours / x["spot_capacity_share"] if terms == "spot" else hours
    used = np.minimum(busy, HOURS_PER_MONTH)
    # Runs that do not fit into a month's hours on demand are run side by side.
    copies = np.maximum(1.0, busy / HOURS_PER_MONTH)
    lines = pool_lines(terms, unit, units * copies, used, goodput, x, ctx, had.staff_part)
    usd = usd_per_month(lines, ctx.workload.horizon_months, len(runs))
    utilization = np.minimum(busy / HOURS_PER_MONTH, 1.0) if committed else np.ones_like(busy)
    return Pool(
        unit, part, False, units, busy, calendar, usd, utilization, goodput, lines, units * copies
    )


def _fleet(
    unit: Unit,
    part: tuple[Stage, ...],
    x: Values,
    ctx: Context,
    wanted: Array,
    memo: Memo,
    vetoes: list[tuple[Mask, Veto]],
) -> tuple[Array, Array]:
    """Fewest units that finish a run within the wanted hours, and the hours it then takes."""
    if unit.hardware == "gpu" and any(s.work == "llm_training" for s in part):
        return _llm_training(unit, x, ctx, wanted, vetoes)
    serial, divisible = _batch_hours(unit, part, x, ctx)
    serial, divisible = jobs.with_contention(serial, divisible, x["contention"])
    units = _units_for(serial, divisible, wanted)
    units = np.maximum(units, _memory_units(unit, part, x, ctx))
    if ctx.workload.kind in SYSTEMS:  # what the bytes of a run ask of memory, network and disks
        by = by_resource(unit, _demand(x, ctx, memo), x)
        most = np.maximum.reduce([by[r] for r in by if r not in OF_TIME])
        units = np.maximum(units, np.ceil(most - 1e-9) * unit.per_machine)
    units = np.ceil(units / unit.per_machine) * unit.per_machine
    return units, np.asarray(serial + divisible / units)


def _batch_hours(
    unit: Unit, part: tuple[Stage, ...], x: Values, ctx: Context
) -> tuple[Array, Array]:
    """Serial and divisible hours of a run on one unit, over the stages of the pool."""
    serial = np.zeros_like(x["runs_per_month"])
    divisible = np.zeros_like(serial)
    serving = ctx.settings.serving
    for stage in part:
        if stage.work == "baseline":
            a, b = _baseline_hours(unit, stage, x, ctx)
        elif stage.work == "llm_training":
            a, b = serial * 0, llm.cpu_training_hours(unit, x, ctx.workload)
        elif stage.work == "llm_inference":
            a, b = serial * 0, llm.batch_inference_hours(unit, x, ctx.workload, serving)
        else:
            a, b = serial * 0, x["items_per_run"] / items_per_s(unit, stage, x, ctx) / 3600
        serial, divisible = serial + a, divisible + b
    return serial, divisible


def _baseline_hours(unit: Unit, stage: Stage, x: Values, ctx: Context) -> tuple[Array, Array]:
    """Hours of a run that is known by what it takes on CPU servers (or GPUs) today."""
    p, s, b = (x[stage.key(k)] for k in ("parallel_fraction", "gpu_speedup", "io_share"))
    share = x.get(f"{stage.name}.share", np.ones_like(p))
    if ctx.workload.current is Current.gpu:
        return _from_gpus(unit, share * gpu_hours_today(x), p, s, b, x, ctx)
    hours = reference_server_hours(x, ctx) * share
    if unit.hardware == "cpu":
        serial, divisible = jobs.cpu_parts(hours, p, b, stage.splits)
        return serial, divisible * REFERENCE_VCPU / unit.vcpu / x["cpu_efficiency_factor"]
    speed = s * accelerator_speed(unit, ctx) * x["gpu_efficiency_factor"]
    host = max(unit.vcpu, 1.0) / REFERENCE_VCPU
    return jobs.gpu_parts(hours, p, b, np.maximum(speed, 1e-6), host, stage.splits)


def gpu_hours_today(x: Values) -> Array:
    """GPU-hours of a run on today's GPUs, which are taken for the reference GPU."""
    per_run = x["useful_hours_per_month"] / np.maximum(x["runs_per_month"], 1e-6)
    return np.asarray(per_run * x["current_units"])


def _from_gpus(
    unit: Unit, gpu_hours: Array, p: Array, s: Array, b: Array, x: Values, ctx: Context
) -> tuple[Array, Array]:
    """Hours of a run known in GPU-hours: work that is divided already divides again."""
    none = np.zeros_like(gpu_hours)
    if unit.hardware == "gpu":
        speed = accelerator_speed(unit, ctx) * x["gpu_efficiency_factor"]
        return none, np.asarray(gpu_hours / speed)
    servers_per_gpu = 1 / ((1 - b) * ((1 - p) + p / s) + b)
    size = unit.vcpu / REFERENCE_VCPU * x["cpu_efficiency_factor"]
    return none, np.asarray(gpu_hours * servers_per_gpu / size)


def reference_server_hours(x: Values, ctx: Context) -> Array:
    """Hours that one run takes on a single reference CPU server.

    Worked back from today's hours and servers by Amdahl's law with I/O; their size follows from
    what they cost, where that is given.
    """
    w = ctx.workload
    per_run = x["useful_hours_per_month"] / np.maximum(x["runs_per_month"], 1e-6)
    p, b = x["parallel_fraction"], x["io_share"]
    size = 1.0
    if w.current is Current.cpu and w.current_usd_per_month and w.current_units:
        per_hour = w.current_usd_per_month / w.current_units / HOURS_PER_MONTH
        size = float(np.clip(per_hour / (ctx.cpu_usd_per_vcpu_hour * REFERENCE_VCPU), 0.05, 4))
    return jobs.one_server_hours(per_run, np.maximum(x["current_units"] * size, size), p, b)


def accelerator_speed(unit: Unit, ctx: Context) -> float:
    """Speed of an accelerator against the reference on this job's mix of limits."""
    acc, ref = unit.accelerator, ctx.reference.accelerator
    assert acc is not None
    assert ref is not None
    compute, bandwidth = ctx.inputs.shares["compute"], ctx.inputs.shares["memory_bandwidth"]
    w = ctx.workload
    if w.kind in (Kind.simulation, Kind.rendering, Kind.other):
        if w.precision is Precision.fp64:
            peak, base = acc.fp64_tflops or 0.2, ref.fp64_tflops or 34.0
        elif w.precision is Precision.low:
            peak, base = acc.bf16_tflops_dense or 1.0, ref.bf16_tflops_dense or 989.0
        else:
            peak, base = acc.fp32_tflops or 1.0, ref.fp32_tflops or 67.0
    else:
        peak, base = acc.bf16_tflops_dense or 1.0, ref.bf16_tflops_dense or 989.0
    return jobs.relative_speed(
        compute / max(compute + bandwidth, 1e-9),
        peak / base,
        acc.memory_bandwidth_gb_per_s / ref.memory_bandwidth_gb_per_s,
    )


def _units_for(serial: Array, divisible: Array, wanted: Array) -> Array:
    """Fewest units with which a run takes no longer than wanted: T = A + B/n.

    Where the serial part takes most of it, as many as bring the rest down to the serial part:
    beyond that more machines cost more than they save.
    """
    target = np.maximum(wanted, 2 * serial)
    n = divisible / np.maximum(target - serial, 1e-9)
    return np.asarray(np.clip(np.ceil(n - 1e-9), 1, MAX_UNITS))


def _memory_units(unit: Unit, part: tuple[Stage, ...], x: Values, ctx: Context) -> Array:
    """Units needed to hold the model of a batch stage."""
    if unit.hardware == "gpu" and any(s.work == "llm_inference" for s in part):
        return llm.inference_min_gpus(unit, ctx.workload, x, ctx.settings.serving)
    return np.ones_like(x["runs_per_month"])


def _llm_training(
    unit: Unit, x: Values, ctx: Context, wanted: Array, vetoes: list[tuple[Mask, Veto]]
) -> tuple[Array, Array]:
    """GPUs and hours of a training run: the smallest fleet of the table that is quick enough."""
    table = training_table(unit, ctx)
    n = len(wanted)
    if table is None:
        veto = Veto(
            unit.name,
            f"the model and its training state do not fit on any number of {unit.name} tried",
            "memory estimate",
            "model_params_b",
        )
        vetoes.append((np.ones(n, dtype=bool), veto))
        return np.full(n, float(unit.per_machine)), np.full(n, 1e6)
    scale = llm.training_scale(x, ctx.inputs) / x["gpu_efficiency_factor"]
    hours = table.hours[:, None] * scale[None, :]
    ok = hours <= wanted[None, :]
    first = np.where(ok.any(axis=0), ok.argmax(axis=0), len(table.gpus) - 1)
    return table.gpus[first].astype(float), hours[first, np.arange(n)]


# --- services


def _service_pool(
    had: Had,
    part: tuple[Stage, ...],
    x: Values,
    ctx: Context,
    memo: Memo,
    vetoes: list[tuple[Mask, Veto]],
) -> Pool:
    """Machines around the clock: whole units for the peak, with what the worst failure asks."""
    w, unit, terms = ctx.workload, had.unit, had.terms
    committed = terms in COMMITTED
    room = growth(x["monthly_variation"]) if committed else 1.0
    load, need, units = _service_units(unit, part, x, ctx, room, memo, vetoes)
    if any(s.work == "llm_inference" for s in part) and unit.hardware == "gpu":
        units = _whole_replicas(unit, need, x, ctx)
    if unit.per_machine > 1:
        units = np.ceil(units / unit.per_machine) * unit.per_machine
    hours = HOURS_PER_MONTH if committed else paid_hours(w)
    goodput = _goodput(terms, unit, np.full_like(load, float(unit.per_machine)), x)
    paid = np.full_like(load, hours) / goodput
    lines = pool_lines(terms, unit, units, paid, goodput, x, ctx, had.staff_part)
    usd = usd_per_month(lines, w.horizon_months, len(load))
    mean_load = load / np.maximum(x["peak_factor"], 1)
    utilization = np.clip(mean_load / units, 0, 1)
    busy = utilization * hours
    zero, all_useful = np.zeros_like(load), np.ones_like(load)
    return Pool(unit, part, True, units, busy, zero, usd, utilization, all_useful, lines, units)


def paid_hours(w: Workload) -> float:
    """Hours a month for which a service's machines are rented on demand: those told, else all."""
    stated = w.stated_hours_per_month
    if stated is None or w.kind is Kind.pipeline:
        return HOURS_PER_MONTH
    return float(np.clip(stated, 1.0, HOURS_PER_MONTH))


def _whole_replicas(unit: Unit, need: Array, x: Values, ctx: Context) -> Array:
    """GPUs of the replicas that carry the load, with whole machines of them spare.

    A part of a replica answers nothing, and replicas that share a machine fail with it.
    """
    told = ctx.settings.serving.spare
    replica = llm.inference_min_gpus(unit, ctx.workload, x, ctx.settings.serving)
    replicas = np.ceil(np.maximum(need, replica) / replica - 1e-9)
    block = np.ceil(replica / unit.per_machine) * unit.per_machine
    blocks = np.ceil(replicas / np.maximum(np.floor(unit.per_machine / replica), 1.0))
    spare = spare_units(ctx.workload, (), blocks) if told is None else float(told)
    return np.asarray((blocks + spare) * block)


def _service_units(
    unit: Unit,
    part: tuple[Stage, ...],
    x: Values,
    ctx: Context,
    room: Array | float,
    memo: Memo,
    vetoes: list[tuple[Mask, Veto]],
) -> tuple[Array, Array, Array]:
    """Units that the peak keeps busy (a real number), whole ones for the load, and all of them."""
    found = sizing_of(unit, part, x, ctx, room, memo)
    if any(s.holds_data for s in part) and not ctx.workload.working_set_shardable:
        _whole_set(unit, x, vetoes)
    return found.by_resource["cores"], found.carrying, found.machines


def sizing_of(
    unit: Unit,
    part: tuple[Stage, ...],
    x: Values,
    ctx: Context,
    room: Array | float = 1.0,
    memo: Memo | None = None,
) -> Sized:
    """Units of one kind for the service stages that they carry, by resource; see `sized`."""
    models = tuple(s for s in part if s.work != "core_ms")
    if models == part:
        return model_sizing(unit, part, part, x, ctx, room)
    beside = _kept_busy(unit, models, part, x, ctx)
    demand = _demand(x, ctx, {} if memo is None else memo)
    if unit.hardware == "cpu":
        return sized(on_servers(unit, demand, beside, x), part, ctx, room)
    stage = next(s for s in part if s.work == "core_ms")
    servers = demand["cores"] / REFERENCE_VCPU / x["cpu_efficiency_factor"]
    p, s, b = (x[stage.key(k)] for k in ("parallel_fraction", "gpu_speedup", "io_share"))
    speed = np.maximum(s * accelerator_speed(unit, ctx) * x["gpu_efficiency_factor"], 1e-6)
    host = max(unit.vcpu, 1.0) / REFERENCE_VCPU
    load = beside + servers * jobs.host_bound_load(p, b, speed, host)
    together = _together(unit, part)
    return sized(on_gpus(unit, part, demand, load, x, ctx), part, ctx, room, together)


def model_sizing(
    unit: Unit,
    models: tuple[Stage, ...],
    path: tuple[Stage, ...],
    x: Values,
    ctx: Context,
    room: Array | float = 1.0,
) -> Sized:
    """Units for the models of a service alone.

    path : the stages on machines of this kind, between which no answer travels
    """
    busy = _kept_busy(unit, models, path, x, ctx)
    return sized({"cores": busy}, models, ctx, room, _together(unit, models))


def _kept_busy(
    unit: Unit, models: tuple[Stage, ...], path: tuple[Stage, ...], x: Values, ctx: Context
) -> Array:
    """Units that the models keep as busy as is planned at the peak (a real number)."""
    peak = x["rate_per_s"] * ctx.workload.services * x["peak_factor"]
    busy = np.zeros_like(peak)
    for stage in models:
        busy = busy + peak / _requests_per_s(unit, path, stage, x, ctx)
    return np.asarray(busy)


def _together(unit: Unit, part: tuple[Stage, ...]) -> int:
    """Units that are lost together; the replicas of a language model are laid out one by one."""
    return 1 if any(s.work == "llm_inference" for s in part) else unit.per_machine


def demand(x: Values, ctx: Context) -> tuple[Need, ...]:
    """What a service, or a run over stored data, asks of machines, with the formulae."""
    if "rate_per_s" in x:
        return needs(x, ctx)
    return needs(x, ctx, reference_server_hours(x, ctx) * (1 - x["io_share"]))


def _demand(x: Values, ctx: Context, memo: Memo) -> dict[Resource, Array]:
    """What the service asks for at the peak, worked out once for the inputs."""
    found: dict[Resource, Array] | None = memo.get(("demand",))
    if found is None:
        found = memo["demand",] = held_resources(ctx.workload, demand(x, ctx))
    return found


def _requests_per_s(
    unit: Unit, part: tuple[Stage, ...], stage: Stage, x: Values, ctx: Context
) -> Array:
    """Requests one unit answers in a second inside the target, no fuller than is planned."""
    if stage.work == "llm_inference":
        return llm.requests_per_s(unit, x, ctx.workload, ctx.inputs, ctx.settings.serving)
    return requests_per_s(unit, part, x, ctx)


def _whole_set(unit: Unit, x: Values, vetoes: list[tuple[Mask, Veto]]) -> None:
    """A veto where a working set that can't be split does not fit."""
    data = x["working_set_gb"]
    what = "GPU" if unit.hardware == "gpu" else "server"
    veto = Veto(
        unit.name,
        f"the working set of {float(data.flat[0]):,.0f} GB is read at random and can't be "
        f"split; one {what} has {unit.memory_gb:,.0f} GB",
        "catalogue, memory as reported",
        "working_set_gb",
    )
    vetoes.append((data > unit.memory_gb * likely("service_memory_share"), veto))


def _goodput(terms: Acquisition, unit: Unit, units: Array, x: Values) -> Array:
    """Useful over paid work on spot machines; 1 elsewhere (failures are in the efficiency).

    A job stops when any of its machines is taken back.
    """
    ones = np.ones_like(x["parallel_fraction"])
    if terms != "spot":
        return ones
    machines = np.ceil(units / unit.per_machine)
    value = spot_goodput(x["spot_interruptions_per_node_day"], machines, x["restart_h"])
    return np.asarray(value * ones)
