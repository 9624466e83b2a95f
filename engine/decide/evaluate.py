"""From a candidate and inputs to size, time, cost and vetoes: one definition for points and draws.

Every function takes the inputs as arrays of one length: a single point, a grid for sensitivity or
thousands of draws. Hours are per month unless a name says otherwise; money is USD a month over
the horizon.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from engine.assessment import Acquisition, Veto
from engine.decide import language_models as llm
from engine.decide.candidates import Spec, Unit
from engine.decide.evaluation import Context, Evaluation, Memo, Pool, Values
from engine.decide.job_hours import baseline_hours, moving
from engine.decide.latency import latency_ms
from engine.decide.numbers import Array, Mask
from engine.decide.paying import (
    COMMITTED,
    fees_of,
    licence_lines,
    pool_lines,
    spot_goodput,
    terms_of,
    usd_per_month,
)
from engine.decide.priors import likely
from engine.decide.service_sizing import (
    OF_TIME,
    SYSTEMS,
    by_resource,
    growth,
    spare_units,
)
from engine.decide.service_units import demand_at_peak, paid_hours, sizing_of, small_model
from engine.decide.sharding import shard_lines
from engine.decide.starting import starting_hours
from engine.decide.storing import storage_lines
from engine.decide.training_time import training_table
from engine.decide.vetoes import constrain
from engine.estimate.compute_jobs import Parts, parts_of
from engine.estimate.jobs import Stage
from engine.workload.answers import Kind
from engine.workload.workload import HOURS_PER_MONTH

__all__ = ["Memo", "evaluate", "pool_of", "run_parts"]


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
    fees = (
        *fees_of(spec, pools, ctx),
        *licence_lines(spec, ctx),
        *storage_lines(pools, x, ctx, memo),
        *shard_lines(pools, ctx),
    )
    months = ctx.workload.horizon_months
    usd = np.asarray(sum(p.usd_per_month for p in pools) + usd_per_month(fees, months, n))
    # Simulators and learner work at the same time; other stages follow one another.
    each = [p.hours_per_run for p in pools if not p.service] or [np.zeros(n)]
    hours = np.maximum.reduce(each) if together else np.asarray(sum(each))
    latency = _latency(spec, x, ctx, memo)
    none = np.zeros(n, dtype=bool)
    result = Evaluation(spec, pools, usd, hours, latency, none, vetoes, fees)
    constrain(result, x, ctx)
    for mask, _ in result.vetoes:
        result.vetoed = result.vetoed | mask
    return result


def pool_of(
    unit: Unit,
    part: tuple[Stage, ...],
    terms: Acquisition,
    x: Values,
    ctx: Context,
    memo: Memo | None = None,
) -> Pool:
    """The machines of one kind for some stages on their terms, as candidates have them."""
    had, kept = Had(unit, terms, 1.0), {} if memo is None else memo
    if part[0].mode == "service":
        return _service_pool(had, part, x, ctx, kept, [])
    return _batch_pool(had, part, x, ctx, 1, kept, [])


def _latency(spec: Spec, x: Values, ctx: Context, memo: Memo) -> Array:
    """The answer of a candidate, which does not depend on how its machines are paid."""
    key = ("latency", id(spec.gpu), id(spec.cpu), spec.stage_hardware)
    found: Array | None = memo.get(key)
    if found is None:
        found = memo[key] = latency_ms(spec, x, ctx, partial(small_model, x, ctx, memo))
    return found


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
    limit = x["patience_h"] / max(batch_pools, 1)
    month = HOURS_PER_MONTH * share / np.maximum(runs * headroom, 1e-6)
    wanted = np.minimum(limit, month)
    firm = (limit <= month) & (ctx.workload.deadline_days is not None)
    units, hours = _fleet(unit, part, x, ctx, wanted, firm, memo, vetoes)
    goodput = _goodput(terms, unit, units, x)
    if terms == "spot":
        units, hours = _fleet(unit, part, x, ctx, wanted * goodput, firm, memo, vetoes)
    hours = hours / goodput
    busy = runs * hours
    calendar = hours / x["spot_capacity_share"] if terms == "spot" else hours
    used = np.minimum(busy, HOURS_PER_MONTH)
    # Runs that do not fit into a month's hours on demand are run side by side.
    copies = np.maximum(1.0, busy / HOURS_PER_MONTH)
    paid = units * copies
    if committed:  # by the machine; by the hour a part of one is an hour less
        paid = np.ceil(paid / unit.per_machine - 1e-9) * unit.per_machine
    starting = starting_hours(runs, busy, x[f"{unit.hardware}_start_h"])
    lines = pool_lines(terms, unit, paid, used, goodput, x, ctx, had.staff_part, starting)
    usd = usd_per_month(lines, ctx.workload.horizon_months, len(runs))
    utilization = np.minimum(busy / HOURS_PER_MONTH, 1.0) if committed else np.ones_like(busy)
    starts = np.zeros_like(busy) if committed else starting
    return Pool(
        unit, part, False, units, busy, calendar, usd, utilization, goodput, lines, paid, starts
    )


def _fleet(
    unit: Unit,
    part: tuple[Stage, ...],
    x: Values,
    ctx: Context,
    wanted: Array,
    firm: Mask,
    memo: Memo,
    vetoes: list[tuple[Mask, Veto]],
) -> tuple[Array, Array]:
    """Fewest units that finish a run within the wanted hours, and the hours it then takes.

    firm : whether these are a deadline's, and no wish
    """
    if unit.hardware == "gpu" and any(s.work == "llm_training" for s in part):
        return _llm_training(unit, x, ctx, wanted, vetoes)
    run = run_parts(unit, part, x, ctx, memo)
    units = np.maximum(run.fewest_units(wanted, firm), _memory_units(unit, part, x, ctx))
    if ctx.workload.kind in SYSTEMS:  # what the bytes of a run ask of memory, network and disks
        by = by_resource(unit, demand_at_peak(x, ctx, memo), x)
        most = np.maximum.reduce([by[r] for r in by if r not in OF_TIME])
        units = np.maximum(units, np.ceil(most - 1e-9) * unit.per_machine)
    units = np.ceil(units / unit.per_machine) * unit.per_machine
    return units, run.hours(units)


def run_parts(
    unit: Unit, part: tuple[Stage, ...], x: Values, ctx: Context, memo: Memo | None = None
) -> Parts:
    """What of a run divides by units of one kind, with contention, copies and storage."""
    serial, divisible = _batch_hours(unit, part, x, ctx, {} if memo is None else memo)
    moved = moving(unit, ctx)
    return parts_of(serial, divisible, x["contention"], **moved, per_machine=unit.per_machine)


def _batch_hours(
    unit: Unit, part: tuple[Stage, ...], x: Values, ctx: Context, memo: Memo
) -> tuple[Array, Array]:
    """Serial and divisible hours of a run on one unit, over the stages of the pool."""
    serial = np.zeros_like(x["runs_per_month"])
    divisible = np.zeros_like(serial)
    serving = ctx.settings.serving
    for stage in part:
        if stage.work == "baseline":
            a, b = baseline_hours(unit, stage, x, ctx)
        elif stage.work == "llm_training":
            a, b = serial * 0, llm.cpu_training_hours(unit, x, ctx.workload)
        elif stage.work == "llm_inference":
            a, b = serial * 0, llm.batch_inference_hours(unit, x, ctx.workload, serving)
        else:
            a, b = (
                serial * 0,
                x["items_per_run"] / small_model(x, ctx, memo).items_per_s(unit) / 3600,
            )
        serial, divisible = serial + a, divisible + b
    return serial, divisible


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
    return Pool(
        unit, part, True, units, busy, zero, usd, utilization, all_useful, lines, units, zero
    )


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
