"""What one unit of hardware answers of a small model: one reckoning for the decision and its page.

A unit is a GPU or a CPU server. Its rate is the measured one, or follows from what was measured;
what of it is left inside the latency target is its capacity. The target is what the rest of the
answer's path leaves: features, hops. Works on points and draws alike. Knows no prices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from engine.decide.candidates import Unit
from engine.decide.evaluation import Context, Values
from engine.decide.numbers import Array
from engine.decide.priors import likely
from engine.decide.serving_rates import IDLE, quantile
from engine.estimate.jobs import Stage
from engine.estimate.named import named
from engine.estimate.queueing import check
from engine.estimate.small_inference import (
    MATRIX_FAMILIES,
    PARAMETERS,
    Predicted,
    core_rate,
    cpu_floor_s,
    gpu_rate,
    has_matrix_units,
    models,
    parameter,
    scaled_range,
    without_matrix_units,
)
from engine.estimate.small_inference_tables import cpu_capacities, gpu_capacities
from engine.workload.answers import Kind, ModelClass
from engine.workload.jobs_terms import JobsTerms
from engine.workload.workload import Workload

PERCENTILE = 0.95  # the workload's latency is that of 95 of 100
Z90 = 1.2815515655446004
SMALL_MODELS = frozenset({"neural", "recommender", "trees"})
USUAL_MODEL = {
    ModelClass.neural: "bert-large",
    ModelClass.recommender: "dlrm-v2",
    ModelClass.trees: "trees",
    ModelClass.llm: "bert-large",
}


@dataclass(frozen=True, slots=True)
class Ask:
    """The model that answers.

    model : the measured one that it is most like; size : work of an item, that model's being 1
    varies : inputs that move the size as they move from their likely value
    """

    model: str
    size: float
    varies: tuple[str, ...]
    said: str


@dataclass(frozen=True, slots=True)
class Found:
    """Rates of a unit: of a GPU, or of one of the `cores` of a server.

    fastest : of the lightest model measured on such a unit
    """

    rate: Predicted
    fastest: Predicted
    cores: float


# --- the model


def asked(w: Workload, terms: JobsTerms) -> Ask:
    """The model most like that of the job, and its size; as terms or answers say, else the usual.

    A model that was never measured counts as the usual one.
    """
    usual = _usual_model(w)
    model = terms.like if terms.like in models() else usual
    title = models()[model].title
    if terms.size is not None:
        return Ask(model, terms.size, (), f"{terms.size:g} times {title}, as you set it")
    told = model == "bert-large" and w.model_params_b is not None
    sized_by = ("model_params_b", "tokens_in") if w.kind is not Kind.recsys else ()
    if told:
        # Two operations a parameter and token; about 177 tokens an item in MLPerf.
        gflop = parameter("encoder_gflop")
        tokens = w.tokens_in or gflop / (2 * named(PARAMETERS)["encoder_params_b"].likely)
        size = 2.0 * float(w.model_params_b or 0.0) * tokens / gflop
        said = (
            f"{size:.2g} times {title}: 2 operations for each of {w.model_params_b:g} "
            f"billion parameters and {tokens:,.0f} tokens, against {gflop:g} GFLOP"
        )
        return Ask(model, size, sized_by, said)
    said = f"as large as {title}: set the size if yours is another"
    open_size = model == "bert-large" and terms.like != model
    return Ask(model, 1.0, sized_by if open_size else (), said)


def _usual_model(w: Workload) -> str:
    if w.kind is Kind.recsys:
        return "dlrm-v2"
    if w.kind is Kind.pipeline:
        return "bert-large"
    alone = w.kind is not Kind.batch_inference or w.model_class is not ModelClass.trees
    return USUAL_MODEL[w.model_class] if alone else "trees-batch"


def _sizes(ask: Ask, x: Values, ctx: Context) -> Array:
    """Size of the model for every row of the inputs."""
    size = np.full_like(x["parallel_fraction"], ask.size)
    for name in ask.varies:
        if name in x:
            size = size * x[name] / ctx.inputs.ranges[name].likely
    return size


# --- rates


def found_rate(unit: Unit, ask: Ask, one_by_one: bool = True) -> Found | None:
    """Offline rate of the measured model on a unit; None where none was published.

    one_by_one : requests come singly; else a run of items
    """
    return _found(unit, ask.model, one_by_one)


@lru_cache(maxsize=4096)
def _found(unit: Unit, model: str, one_by_one: bool) -> Found | None:
    gpu = unit.accelerator
    if gpu is not None:
        rate = gpu_rate(model, gpu)
        return None if rate is None else Found(rate, gpu_rate("dlrm", gpu) or rate, 0.0)
    rate = core_rate(model)
    if rate is None:
        return None
    if models()[model].family in MATRIX_FAMILIES and not has_matrix_units(unit.sku, unit.server):
        rate = without_matrix_units(rate)
    lightest = core_rate("trees" if one_by_one else "trees-batch")
    return Found(rate, lightest or rate, _cores(unit))


def _cores(unit: Unit) -> float:
    """Physical cores of a server: two hardware threads each where the catalogue does not say."""
    if unit.server is not None and unit.server.physical_cores:
        return float(unit.server.physical_cores)
    return max(unit.vcpu / 2.0, 1.0)


def offline_per_s(unit: Unit, found: Found, ask: Ask, x: Values, ctx: Context) -> Array:
    """Items a second of the GPU, or of one core of the server, for every row of the inputs.

    The efficiency of the hardware says where in its range a rate stands.
    """
    sizes = _sizes(ask, x, ctx)
    name = "gpu_efficiency_factor" if unit.hardware == "gpu" else "cpu_efficiency_factor"
    z = quantile(x[name], name) / Z90
    one = sizes if np.ptp(sizes) > 0.0 else sizes[:1]
    low, mid, high = scaled_range(found.rate, one, found.fastest)
    if np.ptp(z) == 0.0 and z[0] == 0.0:
        return np.asarray(mid * np.ones_like(sizes))
    span = np.where(z < 0.0, np.log(mid / low), np.log(high / mid))
    top = np.maximum(max(found.rate.likely, found.fastest.likely), high)
    return np.asarray(np.minimum(mid * np.exp(span * z), top))


def items_per_s(unit: Unit, stage: Stage, x: Values, ctx: Context) -> Array:
    """Items a second of a unit that works through a run: no target, and no load to stay below."""
    ask = asked(ctx.workload, ctx.settings.jobs)
    found = found_rate(unit, ask, one_by_one=False)
    if found is None:
        return np.ones_like(x["parallel_fraction"])  # ruled out, see `unpublished`
    return np.asarray(offline_per_s(unit, found, ask, x, ctx) * max(found.cores, 1.0))


# --- inside the target


def requests_per_s(unit: Unit, part: tuple[Stage, ...], x: Values, ctx: Context) -> Array:
    """Requests a unit answers in a second inside the target, no fuller than is planned.

    A unit that misses the target whatever its load is sized as if it stood idle for most of the
    time, one answer after the other.
    """
    ask = asked(ctx.workload, ctx.settings.jobs)
    found = found_rate(unit, ask)
    if found is None:
        return np.ones_like(x["parallel_fraction"])  # ruled out, see `unpublished`
    rate = offline_per_s(unit, found, ask, x, ctx)
    most = capacity_per_s(found, rate, left_s(unit, part, x, ctx), ctx.settings.jobs)
    least = IDLE / lone_s(found, rate, ctx.settings.jobs)
    return np.asarray(np.where(most > 0.0, most * parameter("target_load"), least))


def capacity_per_s(found: Found, rate: Array, target_s: Array, terms: JobsTerms) -> Array:
    """Largest rate of a unit inside a target of its own; 0 where its shortest answer is later.

    rate : offline, of the GPU or of one core
    """
    wanted = np.maximum(target_s, 1e-12)
    if found.cores:
        most = cpu_capacities(rate, found.cores, wanted, PERCENTILE, arrival_cv2=terms.burst)
    else:
        most = gpu_capacities(rate, wanted, PERCENTILE, terms.hold_ms / 1000.0)
    return np.asarray(np.where(lone_s(found, rate, terms) <= wanted, most, 0.0))


def lone_s(found: Found, rate: Array, terms: JobsTerms) -> Array:
    """The time that 95 of 100 answers stay within where no other request is there.

    On a server as many cores share the item as help; on a GPU one item pays for launches and
    copies, and leaves most of the GPU idle.
    """
    each = 1.0 / check("rate", rate, above=0.0)
    if found.cores:
        return np.asarray(cpu_floor_s(1.0, found.cores, PERCENTILE)[0] * each)
    fixed = parameter("gpu_fixed_ms") / 1000.0
    alone = parameter("lone_item_times") / parameter("gpu_inside_share")
    return np.asarray((fixed + alone * each) * likely("tail_factor") + terms.hold_ms / 1000.0)


def model_ms(unit: Unit, x: Values, ctx: Context) -> Array:
    """The shortest answer of the model on a unit, 95 of 100 [ms]; as measured where it was told."""
    measured = ctx.workload.cpu_latency_ms
    if measured and unit.hardware == "cpu":
        return np.full_like(x["parallel_fraction"], measured)
    ask = asked(ctx.workload, ctx.settings.jobs)
    found = found_rate(unit, ask)
    if found is None:
        return np.zeros_like(x["parallel_fraction"])
    return lone_s(found, offline_per_s(unit, found, ask, x, ctx), ctx.settings.jobs) * 1000.0


def left_s(unit: Unit, part: tuple[Stage, ...], x: Values, ctx: Context) -> Array:
    """What the rest of the path leaves of the target to the model [s]; all of the usual target
    where none was told.
    """
    told = ctx.workload.latency_ms
    if told is None:
        usual = parameter("default_latency_ms") / 1000.0
        return np.full_like(x["parallel_fraction"], usual)
    target = x["latency_ms"] if "latency_ms" in x else np.full_like(x["parallel_fraction"], told)
    return np.asarray((target - rest_ms(unit, part, x, ctx)) / 1000.0)


def rest_ms(unit: Unit, part: tuple[Stage, ...], x: Values, ctx: Context) -> Array:
    """The path beside the model, 95 of 100 [ms]: features, and hops to other machines and back.

    part : the stages on the unit's machines
    """
    total = np.zeros_like(x["parallel_fraction"])
    for stage in ctx.stages:
        if stage.mode != "service" or stage.work in SMALL_MODELS:
            continue
        total = total + x["cpu_ms_per_item"] * likely("tail_factor")
        beside = stage in part
        if not beside:
            total = total + 2 * likely("remote_hop_ms")
        if beside == (unit.hardware == "gpu"):
            total = total + gpu_floor_ms()
    return np.asarray(total)


@cache
def gpu_floor_ms() -> float:
    """Shortest answer of a GPU behind a server: launches, copies, wait for a batch; 95th pct."""
    return parameter("gpu_fixed_ms") * likely("tail_factor")


def unpublished(unit: Unit, part: tuple[Stage, ...], ctx: Context) -> str:
    """Why nothing can be said of the model on a unit; empty where a rate was published."""
    work = next((s for s in part if s.work in SMALL_MODELS), None)
    if work is None:
        return ""
    ask = asked(ctx.workload, ctx.settings.jobs)
    if found_rate(unit, ask, one_by_one=work.mode == "service") is not None:
        return ""
    where = "GPU" if unit.hardware == "gpu" else "CPU server"
    return (
        f"no rate of {models()[ask.model].title} on a {where} was published that could be checked"
    )
