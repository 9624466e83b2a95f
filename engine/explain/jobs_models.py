"""A small model on GPUs and CPU servers in figures and sentences: what a page shows of it.

Rates and queues are those of `engine.estimate.small_inference`; the job, the prices and the
hardware on offer are the decision's. Everything is counted in the smallest unit that can be
rented: a GPU alone or a machine of them, a whole server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from engine.assessment import PriceRef
from engine.catalogue import Accelerator, Catalogue
from engine.decide.candidates import Unit
from engine.decide.context import Setting, setting
from engine.decide.inputs import Range
from engine.decide.service_sizing import spare_units
from engine.errors import InputError
from engine.estimate.estimate import Estimate
from engine.estimate.named import named
from engine.estimate.small_inference import (
    MATRIX_FAMILIES,
    PARAMETERS,
    Predicted,
    Rate,
    check_models,
    core_rate,
    cpu_capacity,
    cpu_floor_s,
    cpu_response,
    gpu_capacity,
    gpu_floor_s,
    gpu_rate,
    gpu_response,
    has_matrix_units,
    models,
    parameter,
    rates,
    scaled,
    units_for,
    without_matrix_units,
)
from engine.explain.jobs_model_words import crossing_words, headline, notes_on, reason
from engine.workload.answers import Kind, ModelClass
from engine.workload.jobs_terms import JobsTerms
from engine.workload.settings import USUAL, Settings
from engine.workload.workload import HOURS_PER_MONTH, Workload

Array = NDArray[np.float64]
PERCENTILE = 0.95  # the workload's latency is that of 95 of 100
USUAL_MODEL = {
    ModelClass.neural: "bert-large",
    ModelClass.recommender: "dlrm-v2",
    ModelClass.trees: "trees",
    ModelClass.llm: "bert-large",
}


@dataclass(frozen=True, slots=True)
class ModelOption:
    """Machines of one kind for the peak.

    capacity_per_s : of one machine inside the target; floor_ms : its shortest answer
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
    """Cheapest cost a month by the peak rate, on CPUs and on GPUs, and where they cross."""

    cpu: tuple[tuple[float, float], ...]
    gpu: tuple[tuple[float, float], ...]
    peak_per_s: float
    crossing_per_s: float | None
    title: str
    message: str


@dataclass(frozen=True, slots=True)
class ModelReport:
    """All that is told of a small model."""

    headline: str
    model: Rate
    size: float
    size_said: str
    peak_per_s: float
    mean_per_s: float
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
    notes: tuple[str, ...]


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
    id = check_models(terms.like or _usual_model(workload))
    size, size_said = _size(workload, terms, id)
    mean, peak, service = _demand(workload, ranges)
    target, target_said = _target(workload, service)
    options, refused = [], []
    for unit in (*offered.cpus, *offered.gpus):
        found = _option(unit, id, size, peak, target if service else None, terms, workload,
                        offered)  # fmt: skip
        if isinstance(found, ModelOption):
            options.append(found)
        elif found is not None:
            refused.append(found)
    options.sort(key=lambda o: (o.usd_per_month.likely, o.usd_per_machine_hour))
    gpu = next((o for o in options if o.hardware == "gpu"), None)
    cpu = next((o for o in options if o.hardware == "cpu"), None)
    named_refused = tuple({r.name: r for r in refused}.values())
    costs = _costs(options, peak) if service else None
    return ModelReport(
        headline=headline(gpu, cpu, peak, target, named_refused, service),
        model=models()[id], size=size, size_said=size_said, peak_per_s=peak, mean_per_s=mean,
        target_ms=target * 1000.0, target_said=target_said, gpu=gpu, cpu=cpu,
        options=tuple(options), refused=named_refused,
        responses=tuple(_response(o, size, terms, target) for o in (gpu, cpu) if o is not None)
        if service else (),
        costs=costs,
        rates=tuple(r for r in rates() if r.model == id),
        reason=reason(gpu, cpu, peak, service),
        notes=notes_on(workload, gpu, cpu, id),
    )  # fmt: skip


# --- the question


def _usual_model(workload: Workload) -> str:
    if workload.kind is Kind.recsys:
        return "dlrm-v2"
    return "bert-large" if workload.kind is Kind.pipeline else USUAL_MODEL[workload.model_class]


def _size(workload: Workload, terms: JobsTerms, id: str) -> tuple[float, str]:
    """Work of one item against the measured model's, and where that comes from."""
    title = models()[id].title
    if terms.size is not None:
        return terms.size, f"{terms.size:g} times {title}, as you set it"
    if id == "bert-large" and workload.model_params_b is not None:
        # Two operations a parameter and token; about 177 tokens an item in MLPerf.
        usual = parameter("encoder_gflop")
        tokens = workload.tokens_in or usual / (2 * models_params_b())
        size = 2.0 * workload.model_params_b * tokens / usual
        return size, (
            f"{size:.2g} times {title}: 2 operations for each of {workload.model_params_b:g} "
            f"billion parameters and {tokens:,.0f} tokens, against {usual:g} GFLOP"
        )
    return 1.0, f"as large as {title}: set the size if yours is another"


def models_params_b() -> float:
    """Parameters of BERT-large in billions, from which its tokens an item follow."""
    return named(PARAMETERS)["encoder_params_b"].likely


def _demand(workload: Workload, found: Mapping[str, Range]) -> tuple[float, float, bool]:
    """Mean and peak rate, and whether it is a service: else items of a run over its patience."""
    if workload.kind is Kind.batch_inference:
        each = found["items_per_run"].likely / max(found["patience_h"].likely, 1e-6) / 3600.0
        return each, each, False
    mean = found["rate_per_s"].likely
    return mean, mean * found["peak_factor"].likely, True


def _target(workload: Workload, service: bool) -> tuple[float, str]:
    if not service:
        return 0.0, "a run has no latency target"
    if workload.latency_ms is not None:
        return workload.latency_ms / 1000.0, "your answer, for 95 of 100 requests"
    usual = parameter("default_latency_ms")
    return usual / 1000.0, "taken, as none was given; for 95 of 100 requests"


# --- machines


def _option(
    unit: Unit, id: str, size: float, peak: float, target: float | None, terms: JobsTerms,
    workload: Workload, offered: Setting,
) -> ModelOption | Refused | None:  # fmt: skip
    """Machines of this unit for the peak; refused where none answers inside the target."""
    price = unit.prices.get("on_demand")
    if price is None or price.basis != "hour":
        return None
    gpu = unit.accelerator
    rate = gpu_rate(id, gpu) if gpu is not None else core_rate(id)
    if rate is None:
        return None
    if (
        gpu is None
        and models()[id].family in MATRIX_FAMILIES
        and not has_matrix_units(unit.sku, unit.server)
    ):
        rate = without_matrix_units(rate)
    rate = scaled(rate, size, _lightest(gpu, target is not None) or rate)
    three = np.array([rate.low, rate.likely, rate.high])
    hold = terms.hold_ms / 1000.0
    cores, worker, capacity = 0.0, 1, three
    if gpu is not None:
        floor = float(gpu_floor_s(float(three[1]), hold))
        if target is not None:
            capacity = np.asarray(gpu_capacity(three, target, PERCENTILE, hold))
    else:
        cores = _cores(unit)
        floor, _ = cpu_floor_s(float(three[1]), cores, PERCENTILE)
        capacity = three * cores
        if target is not None:
            told, with_cores = cpu_capacity(three, cores, target, PERCENTILE,
                                            arrival_cv2=terms.burst)  # fmt: skip
            capacity, worker = np.asarray(told), int(with_cores[1])
    # A faster unit carries no less; where the target binds the three agree to the tolerance.
    capacity = np.maximum.accumulate(capacity) * unit.per_machine
    if float(capacity[1]) <= 0.0:
        return Refused(unit.name, unit.hardware, floor * 1000.0)
    need = units_for(peak, capacity)
    part = tuple(s for s in offered.context.stages if s.mode == "service") or (
        offered.context.stages[-1],
    )
    spare = spare_units(workload, part, np.maximum(need, 1.0)) if target is not None else need * 0
    spare = np.where(need > 0, spare, 0.0)
    per_hour = price.likely * unit.per_machine
    if target is None:
        # A run: machines are paid for while they work.
        hours = _hours_of_items(offered.context.inputs.ranges, capacity)
        busy = float(capacity[1])
    else:
        hours = (need + spare) * HOURS_PER_MONTH
        busy = parameter("target_load") * float(capacity[1])
    usd = [
        float(hours[i]) * p * unit.per_machine
        for i, p in ((2, price.low), (1, price.likely), (0, price.high))
    ]
    if not np.isfinite(usd[2]):  # the pessimistic rate carries nothing inside the target
        usd[2] = max(usd[1] * 3.0, usd[1])
    source = price.ref.source if price.ref is not None else "catalogue"
    return ModelOption(
        unit.hardware, unit.sku, unit.name, unit.per_machine, int(need[1]), int(spare[1]),
        Estimate(float(capacity[0]), float(capacity[1]), float(capacity[2]), "1/s", (rate.how,)),
        floor * 1000.0,
        Estimate(min(usd[0], usd[1]), usd[1], max(usd[1], usd[2]), "USD/month", (source,)),
        per_hour / (busy * 3600.0) * 1e6, per_hour, price.ref, rate.how, rate.measured,
        Predicted(float(three[0]), float(three[1]), float(three[2]), rate.how, rate.measured),
        cores, worker,
    )  # fmt: skip


def _lightest(gpu: Accelerator | None, one_by_one: bool) -> Predicted | None:
    """The rate of the lightest model measured on such a unit; on cores, trees."""
    if gpu is not None:
        return gpu_rate("dlrm", gpu)
    return core_rate("trees" if one_by_one else "trees-batch")


def _hours_of_items(found: Mapping[str, Range], capacity: Array) -> Array:
    """Machine hours a month of the runs: items over what one machine works off."""
    items = found["items_per_run"].likely * found["runs_per_month"].likely
    return np.asarray(items / np.maximum(capacity, 1e-12) / 3600.0)


def _cores(unit: Unit) -> float:
    """Physical cores of a server: two hardware threads each where the catalogue does not say."""
    if unit.server is not None and unit.server.physical_cores:
        return float(unit.server.physical_cores)
    return max(unit.vcpu / 2.0, 1.0)


# --- pictures


def _response(option: ModelOption, size: float, terms: JobsTerms, target: float) -> ResponseCurve:
    """Response at rates up to a little beyond the capacity of one machine."""
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
    keep = np.isfinite(y) & (y < 4 * target)
    points = tuple((float(a), float(b) * 1000.0) for a, b in zip(at[keep], y[keep], strict=True))
    return ResponseCurve(option.hardware, option.name, points, most)


def _costs(options: list[ModelOption], peak: float) -> CostCurve | None:
    """Cheapest cost a month over rates around the peak, on each kind of hardware."""
    kinds = {o.hardware for o in options}
    if kinds != {"gpu", "cpu"}:
        return None
    middle = peak if peak > 0 else 1.0
    carried = [o.capacity_per_s.likely for o in options]
    at = np.geomspace(min(middle / 30, min(carried) / 2), max(middle * 3, max(carried) * 3), 400)

    def cheapest(hardware: str) -> Array:
        rows = [
            units_for(at, o.capacity_per_s.likely) * o.usd_per_machine_hour * HOURS_PER_MONTH
            for o in options
            if o.hardware == hardware
        ]
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
    )  # fmt: skip
