"""Units of one kind for the service stages that they carry: the peak, whole machines, spares.

What the decision counts and what the plan pages show; works on points and draws alike. Knows no
prices.
"""

from __future__ import annotations

import numpy as np

from engine.decide import language_models as llm
from engine.decide.candidates import Unit
from engine.decide.evaluation import Context, Memo, Values
from engine.decide.idle import hours_served
from engine.decide.job_hours import accelerator_speed, reference_server_hours
from engine.decide.model_rates import Model, model_of
from engine.decide.numbers import Array
from engine.decide.service_sizing import (
    Sized,
    held_resources,
    needs,
    on_gpus,
    on_servers,
    sized,
)
from engine.estimate import jobs
from engine.estimate.data_systems import Need
from engine.estimate.jobs import REFERENCE_VCPU, Stage
from engine.estimate.services import Resource
from engine.workload.workload import Workload


def paid_hours(w: Workload) -> float:
    """Hours a month for which a service's machines are rented on demand: at least one."""
    return max(hours_served(w), 1.0)


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
    memo = {} if memo is None else memo
    if models == part:
        return model_sizing(unit, part, part, x, ctx, room, memo)
    beside = _kept_busy(unit, models, part, x, ctx, memo)
    demand = demand_at_peak(x, ctx, memo)
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
    memo: Memo | None = None,
) -> Sized:
    """Units for the models of a service alone.

    path : the stages on machines of this kind, between which no answer travels
    """
    busy = _kept_busy(unit, models, path, x, ctx, {} if memo is None else memo)
    return sized({"cores": busy}, models, ctx, room, _together(unit, models))


def _kept_busy(
    unit: Unit,
    models: tuple[Stage, ...],
    path: tuple[Stage, ...],
    x: Values,
    ctx: Context,
    memo: Memo,
) -> Array:
    """Units that the models keep as busy as is planned at the peak (a real number)."""
    peak = x["rate_per_s"] * ctx.workload.services * x["peak_factor"]
    busy = np.zeros_like(peak)
    for stage in models:
        if stage.work == "llm_inference":
            each = llm.requests_per_s(unit, x, ctx.workload, ctx.inputs, ctx.settings.serving)
        else:
            each = small_model(x, ctx, memo).requests_per_s(unit, path)
        busy = busy + peak / each
    return np.asarray(busy)


def small_model(x: Values, ctx: Context, memo: Memo) -> Model:
    """The job's small model, worked out once for the inputs."""
    found: Model | None = memo.get(("model",))
    if found is None:
        found = memo["model",] = model_of(x, ctx)
    return found


def _together(unit: Unit, part: tuple[Stage, ...]) -> int:
    """Units that are lost together; the replicas of a language model are laid out one by one."""
    return 1 if any(s.work == "llm_inference" for s in part) else unit.per_machine


def demand(x: Values, ctx: Context) -> tuple[Need, ...]:
    """What a service, or a run over stored data, asks of machines, with the formulae."""
    if "rate_per_s" in x:
        return needs(x, ctx)
    return needs(x, ctx, reference_server_hours(x, ctx) * (1 - x["io_share"]))


def needs_of(x: Values, ctx: Context, memo: Memo) -> tuple[Need, ...]:
    """The same, worked out once for the inputs."""
    found: tuple[Need, ...] | None = memo.get(("needs",))
    if found is None:
        found = memo["needs",] = demand(x, ctx)
    return found


def demand_at_peak(x: Values, ctx: Context, memo: Memo) -> dict[Resource, Array]:
    """What the machines of a service must hold at the peak."""
    found: dict[Resource, Array] | None = memo.get(("demand",))
    if found is None:
        found = memo["demand",] = held_resources(ctx.workload, needs_of(x, ctx, memo))
    return found
