"""A small model on GPUs and CPU servers in figures and sentences: what a page shows of it.

Rates, capacities and machines are those of `engine.decide.model_rates` and of the decision's
sizing; so are the job, the prices and the hardware on offer. Everything is counted in the smallest
unit that can be rented: a GPU alone or a machine of them, a whole server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from engine.assessment import PriceRef
from engine.catalogue import Catalogue
from engine.decide.candidates import Price, Spec, Unit
from engine.decide.context import Setting, setting
from engine.decide.evaluate import evaluate
from engine.decide.evaluation import Context, Values
from engine.decide.idle import headed
from engine.decide.inputs import Range
from engine.decide.model_rates import (
    PERCENTILE,
    SMALL_MODELS,
    asked,
    capacity_per_s,
    lone_s,
    model_of,
)
from engine.decide.priors import parameter as decided
from engine.decide.quotes import left_out
from engine.decide.service_sizing import growth
from engine.decide.service_units import model_sizing, paid_hours
from engine.errors import InputError
from engine.estimate.estimate import Estimate
from engine.estimate.jobs import Stage
from engine.estimate.small_inference import (
    Predicted,
    Rate,
    check_models,
    cpu_capacity,
    cpu_response,
    gpu_response,
    models,
    parameter,
    rates,
    scaled,
    units_for,
)
from engine.explain.jobs_about import about
from engine.explain.jobs_model_words import crossing_words, headline, notes_on, reason
from engine.explain.jobs_owning import (
    OWNED,
    in_own_rooms,
    owned_usd,
    paid_as,
    price_for,
    usd_per_unit_hour,
)
from engine.explain.jobs_owning import refused as refused_there
from engine.wording import rough
from engine.workload.answers import Kind, ModelClass
from engine.workload.jobs_terms import JobsTerms
from engine.workload.settings import USUAL, Settings
from engine.workload.workload import HOURS_PER_MONTH, Workload

Array = NDArray[np.float64]
EFFICIENCIES = ("gpu_efficiency_factor", "cpu_efficiency_factor")


@dataclass(frozen=True, slots=True)
class ModelOption:
    """Machines of one kind for the peak.

    capacity_per_s : of one machine inside the target
    floor_ms : shortest answer over the whole path; rest_ms : of the path beside the model
    owned : in own rooms; an hour then costs what a month of owning does by its hours
    """

    hardware: str
    sku: str
    name: str
    per_machine: int
    machines: int
    spare: int
    capacity_per_s: Estimate
    floor_ms: float
    usd_per_month: Estimate
    usd_per_million: float
    usd_per_machine_hour: float
    price: PriceRef | None
    how: str
    measured: bool
    rate: Predicted
    cores: float
    cores_a_worker: int
    rest_ms: float
    owned: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """A machine that answers nothing inside the target, and the shortest answer that it gives."""

    name: str
    hardware: str
    floor_ms: float


@dataclass(frozen=True, slots=True)
class ResponseCurve:
    """Response of one machine against its rate: (requests/s, ms), where the target and plan are."""

    hardware: str
    name: str
    points: tuple[tuple[float, float], ...]
    capacity_per_s: float


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Cheapest cost a month by the peak rate, on CPUs and on GPUs, and where they cross.

    paid : how the machines are had, in words
    """

    cpu: tuple[tuple[float, float], ...]
    gpu: tuple[tuple[float, float], ...]
    peak_per_s: float
    crossing_per_s: float | None
    title: str
    message: str
    paid: str


@dataclass(frozen=True, slots=True)
class ModelReport:
    """All that is told of a small model.

    quotes_left_out : the user's quotes that don't rank, each with its reason
    """

    headline: str
    model: Rate
    size: float
    size_said: str
    peak_per_s: float
    mean_per_s: float
    hours_per_month: float
    target_ms: float
    target_said: str
    gpu: ModelOption | None
    cpu: ModelOption | None
    options: tuple[ModelOption, ...]
    refused: tuple[Refused, ...]
    responses: tuple[ResponseCurve, ...]
    costs: CostCurve | None
    rates: tuple[Rate, ...]
    reason: str
    about: tuple[str, ...]
    notes: tuple[str, ...]
    quotes_left_out: tuple[str, ...] = ()


def is_small_model(workload: Workload) -> bool:
    """Whether the job answers requests (or works through items) with a model that is no LLM."""
    asks = workload.kind in (Kind.online_inference, Kind.batch_inference)
    return workload.kind in (Kind.recsys, Kind.pipeline) or (
        asks and workload.model_class is not ModelClass.llm
    )


def model_report(
    workload: Workload, settings: Settings = USUAL, catalogue: Catalogue | None = None,
    today: date | None = None,
) -> ModelReport:  # fmt: skip
    """The cheapest machines that answer inside the target, GPU and CPU side by side.

    Raises
    ------
    InputError : another kind of work, an unknown model, or no hardware on offer there
    """
    if not is_small_model(workload):
        raise InputError(
            "this job runs no small model", where="kind",
            right="online or batch inference with a net, a recommender or trees",
        )  # fmt: skip
    day, terms = today or date.today(), settings.jobs
    offered = setting(workload, catalogue, day, settings)
    ranges = offered.context.inputs.ranges
    id = check_models(terms.like or asked(workload, terms).model)
    ask = asked(workload, terms)
    mean, peak, service = _demand(workload, ranges)
    target, target_said = _target(workload, service, offered.context)
    options, refused = [], []
    for unit in (*offered.cpus, *offered.gpus):
        found = _option(unit, peak, offered.context)
        if isinstance(found, ModelOption):
            options.append(found)
        elif found is not None:
            refused.append(found)
    options.sort(key=lambda o: (o.usd_per_month.likely, o.usd_per_machine_hour))
    gpu = next((o for o in options if o.hardware == "gpu"), None)
    cpu = next((o for o in options if o.hardware == "cpu"), None)
    owned = in_own_rooms(workload)
    hours = paid_hours(workload) if service and not owned else HOURS_PER_MONTH
    named_refused = tuple({r.name: r for r in refused}.values())
    costs = _costs(options, peak, hours, offered) if service else None
    verdict = headline(gpu, cpu, peak, target, named_refused, service)
    return ModelReport(
        headline=headed(workload, verdict) if peak > 0 else verdict,
        model=models()[id], size=ask.size, size_said=ask.said, peak_per_s=peak, mean_per_s=mean,
        hours_per_month=hours,
        target_ms=target * 1000.0, target_said=target_said, gpu=gpu, cpu=cpu,
        options=tuple(options), refused=named_refused,
        responses=tuple(_response(o, terms, target) for o in (gpu, cpu) if o is not None)
        if service else (),
        costs=costs,
        rates=tuple(r for r in rates() if r.model == id),
        reason="" if owned and not service else reason(gpu, cpu, peak, service),
        about=about(offered.context),
        notes=notes_on(workload, gpu, cpu, id, hours),
        quotes_left_out=left_out(offered.context.catalogue, workload.quotes),
    )  # fmt: skip


# --- the question


def _demand(workload: Workload, found: Mapping[str, Range]) -> tuple[float, float, bool]:
    """Mean and peak rate, and whether it is a service: else items of a run over its patience."""
    if workload.kind is Kind.batch_inference:
        each = found["items_per_run"].likely / max(found["patience_h"].likely, 1e-6) / 3600.0
        return each, each, False
    mean = found["rate_per_s"].likely
    return mean, mean * found["peak_factor"].likely, True


def _target(workload: Workload, service: bool, ctx: Context) -> tuple[float, str]:
    if not service:
        return 0.0, "a run has no latency target"
    if workload.latency_ms is None:
        usual = parameter("default_latency_ms")
        return usual / 1000.0, "taken, as none was given; for 95 of 100 requests"
    told = "your answer, for 95 of 100 requests"
    tail = float(ctx.inputs.ranges["cpu_ms_per_item"].likely * decided("tail_factor").likely)
    if any(s.work == "core_ms" for s in ctx.stages):
        hops = 2 * decided("remote_hop_ms").likely
        told += (
            f"; requests and features take {rough(tail)} ms of it, the way to a GPU and back "
            f"{hops:g}"
        )
    return workload.latency_ms / 1000.0, told


# --- machines


def _three(ctx: Context) -> Values:
    """The likely inputs on hardware that is slow, as likely, and quick for its kind."""
    x = {name: np.repeat(value, 3) for name, value in ctx.inputs.point().items()}
    for name in EFFICIENCIES:
        p = decided(name)
        x[name] = np.array([p.low, p.likely, p.high])
    return x


def _option(unit: Unit, peak: float, ctx: Context) -> ModelOption | Refused | None:
    """Machines of this unit for the peak; refused where none answers inside the target."""
    price = price_for(unit, ctx.workload)
    w, terms = ctx.workload, ctx.settings.jobs
    stage = next(s for s in ctx.stages if s.work in SMALL_MODELS)
    service = stage.mode == "service"
    x = _three(ctx)
    model = model_of(x, ctx)
    found = model.found(unit, one_by_one=service)
    if price is None or found is None:
        return None
    rate = model.offline_per_s(unit, found, one_by_one=service)
    # Servers carry the rest of the path, too; GPUs stand beside them.
    path = (
        (stage,) if unit.hardware == "gpu" else tuple(s for s in ctx.stages if s.mode == stage.mode)
    )
    rest = float(model.rest_ms(unit, path)[1])
    floor = float(model.model_ms(unit)[1]) + rest
    worker = 1
    if service:
        left = model.left_s(unit, path)
        capacity = capacity_per_s(found, rate, left, terms, lone_s(found, rate, terms))
        told = w.latency_ms
        if capacity[1] <= 0.0 or (told is not None and floor > told):
            return Refused(unit.name, unit.hardware, floor)
        if found.cores:
            worker = int(cpu_capacity(float(rate[1]), found.cores, float(left[1]), PERCENTILE,
                                      arrival_cv2=terms.burst)[1])  # fmt: skip
    else:
        capacity = rate * max(found.cores, 1.0)
    # A faster unit carries no less; where the target binds the three agree to the tolerance.
    capacity = np.maximum.accumulate(capacity) * unit.per_machine
    each, owned = unit.per_machine, price.owner is not None
    need, spare, month = _machines(unit, stage, path, x, ctx, peak, price)
    if refused_there(unit, (need + spare) * each, w) is not None:
        return None
    busy = float(capacity[1]) * (parameter("target_load") if service else 1.0)
    ends = (price.low / price.likely, 1.0, price.high / price.likely)
    usd = [float(month[i]) * end for i, end in zip((2, 1, 0), ends, strict=True)]
    shown = scaled(found.rate, model.ask.size, found.fastest)
    source = OWNED if owned else price.ref.source if price.ref is not None else "catalogue"
    many = max(float(need[1] + spare[1]), 1.0)
    alone = (
        float(owned_usd(unit, many * each, np.full(3, HOURS_PER_MONTH), x, ctx)[1])
        if owned
        else 0.0
    )
    per_hour = usd_per_unit_hour(price, usd[1] or alone, many * each) * each
    return ModelOption(
        unit.hardware, unit.sku, unit.name, unit.per_machine, int(need[1]), int(spare[1]),
        Estimate(float(capacity[0]), float(capacity[1]), float(capacity[2]), "1/s", (shown.how,)),
        floor,
        Estimate(min(usd[0], usd[1]), usd[1], max(usd[1], usd[2]), "USD/month", (source,)),
        per_hour / (busy * 3600.0) * 1e6, per_hour, price.ref, shown.how, shown.measured,
        shown, found.cores, worker, rest, owned,
    )  # fmt: skip


def _machines(
    unit: Unit, stage: Stage, path: tuple[Stage, ...], x: Values, ctx: Context, peak: float,
    price: Price,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Machines for the load, spare ones, and US dollars a month for them, as decided."""
    each, owned = unit.per_machine, price.owner is not None
    if stage.mode == "batch":
        on_gpu = unit.hardware == "gpu"
        spec = Spec(unit.hardware, (unit.hardware,), unit if on_gpu else None,
                    None if on_gpu else unit, paid_as(ctx.workload))  # fmt: skip
        pool = evaluate(spec, x, ctx).pools[0]
        some = float(peak > 0.0)
        hours = pool.busy_hours + pool.starting_hours
        usd = pool.usd_per_month if owned else hours * pool.units * price.likely
        return pool.units / each * some, pool.units * 0.0, usd * some
    if peak <= 0.0:
        none = np.zeros(3)
        return none, none, none
    room = growth(x["monthly_variation"]) if owned else 1.0
    found = model_sizing(unit, (stage,), path, x, ctx, room)
    usd = (
        owned_usd(unit, found.machines, np.full(3, HOURS_PER_MONTH), x, ctx)
        if owned
        else found.machines * paid_hours(ctx.workload) * price.likely
    )
    return found.carrying / each, (found.machines - found.carrying) / each, usd


# --- pictures


def _response(option: ModelOption, terms: JobsTerms, target: float) -> ResponseCurve:
    """Response over the whole path at rates up to a little beyond the capacity of one machine."""
    most = option.capacity_per_s.likely
    # Close to the capacity the answer lengthens steeply: more points there, and itself.
    near = np.geomspace(1e-4, 0.2, 40)
    at = most * np.concatenate(
        [np.geomspace(0.01, 0.79, 40), 1 - near[::-1], np.array([1.0]), 1 + near[:-4]]
    )
    if option.hardware == "gpu":
        inside = option.rate.likely * parameter("gpu_inside_share")
        y, _ = gpu_response(at / option.per_machine, inside, PERCENTILE, terms.hold_ms / 1000.0)
    else:
        y = np.asarray(cpu_response(at, option.rate.likely, option.cores, option.cores_a_worker,
                                    PERCENTILE, arrival_cv2=terms.burst))  # fmt: skip
    y = y + option.rest_ms / 1000.0
    keep = np.isfinite(y) & (y < 4 * target)
    points = tuple((float(a), float(b) * 1000.0) for a, b in zip(at[keep], y[keep], strict=True))
    return ResponseCurve(option.hardware, option.name, points, most)


def _costs(
    options: list[ModelOption], peak: float, hours: float, offered: Setting
) -> CostCurve | None:
    """Cheapest cost a month over rates around the peak, on each kind of hardware."""
    kinds = {o.hardware for o in options}
    if kinds != {"gpu", "cpu"}:
        return None
    middle = peak if peak > 0 else 1.0
    carried = [o.capacity_per_s.likely for o in options]
    at = np.geomspace(min(middle / 30, min(carried) / 2), max(middle * 3, max(carried) * 3), 400)

    def cost(o: ModelOption) -> Array:
        many = units_for(at, o.capacity_per_s.likely)
        if not o.owned:
            return np.asarray(many * o.usd_per_machine_hour * hours)
        # A machine costs its owner less in a larger fleet.
        units = (*offered.gpus, *offered.cpus)
        unit = next(u for u in units if (u.sku, u.per_machine) == (o.sku, o.per_machine))
        x = {k: np.repeat(v, len(at)) for k, v in offered.context.inputs.point().items()}
        return owned_usd(unit, many * o.per_machine, np.full(len(at), hours), x, offered.context)

    def cheapest(hardware: str) -> Array:
        rows = [cost(o) for o in options if o.hardware == hardware]
        return np.asarray(np.min(rows, axis=0))

    cpu, gpu = cheapest("cpu"), cheapest("gpu")
    cheaper = gpu < cpu
    # From which rate on the GPU stays the cheaper.
    after = np.flatnonzero(~cheaper)
    crossing = None
    if cheaper.any() and not cheaper.all() and after[-1] + 1 < len(at):
        crossing = float(at[after[-1] + 1])
    title, message = crossing_words(crossing, bool(cheaper.all()), bool(cheaper.any()), peak)
    return CostCurve(
        tuple((float(x), float(y)) for x, y in zip(at, cpu, strict=True)),
        tuple((float(x), float(y)) for x, y in zip(at, gpu, strict=True)),
        peak, crossing, title, message,
        "owned" if any(o.owned for o in options) else "on demand",
    )  # fmt: skip
