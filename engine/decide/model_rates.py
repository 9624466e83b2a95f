"""What one unit of hardware answers of a small model: one reckoning for the decision and its page.

A unit is a GPU or a CPU server. Its rate is the measured one, or follows from what was measured;
what of it is left inside the latency target is its capacity. The target is what the rest of the
answer's path leaves: features, hops. Works on points and draws alike. Knows no prices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np

from engine.decide.candidates import Unit
from engine.decide.evaluation import Context, Values
from engine.decide.numbers import Array
from engine.decide.priors import likely, parameters
from engine.decide.serving_rates import IDLE, quantile
from engine.estimate.jobs import Stage
from engine.estimate.named import named
from engine.estimate.queueing import check
from engine.estimate.small_inference import (
    MATRIX_FAMILIES,
    PARAMETERS,
    Predicted,
    core_rate,
    gpu_rate,
    has_matrix_units,
    models,
    parameter,
    scaled_range,
    without_matrix_units,
)
from engine.estimate.small_inference_tables import cpu_capacities, cpu_floor, gpu_capacities
from engine.wording import rough
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
            f"{rough(size)} times {title}: 2 operations for each of {w.model_params_b:g} "
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


# --- rates


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


@dataclass(slots=True)
class Model:
    """The small model of a job on every kind of hardware, for the rows of some inputs.

    What was worked out once for a unit is kept.
    """

    x: Values
    ctx: Context
    ask: Ask
    _rates: dict[tuple[int, bool], Array] = field(default_factory=dict)
    _floors: dict[int, Array] = field(default_factory=dict)
    _sizes: Array | None = None

    @property
    def sizes(self) -> Array:
        """Work of an item against the measured model's; one value where all are the same."""
        if self._sizes is None:
            size = np.full(1, self.ask.size)
            for name in self.ask.varies:
                moved = self.x.get(name)
                if moved is not None and np.ptp(moved) > 0.0:
                    size = size * moved / self.ctx.inputs.ranges[name].likely
                elif moved is not None:
                    size = size * moved[0] / self.ctx.inputs.ranges[name].likely
            self._sizes = size
        return self._sizes

    def found(self, unit: Unit, one_by_one: bool = True) -> Found | None:
        """Offline rate of the measured model on a unit; None where none was published.

        one_by_one : requests come singly; else a run of items
        """
        return _found(unit, self.ask.model, one_by_one)

    def offline_per_s(self, unit: Unit, found: Found, one_by_one: bool = True) -> Array:
        """Items a second of the GPU, or of one core of the server.

        The efficiency of the hardware says where in its range a rate stands.
        """
        key = id(unit), one_by_one
        rate = self._rates.get(key)
        if rate is None:
            rate = self._rates[key] = self._offline_per_s(unit, found)
        return rate

    def _offline_per_s(self, unit: Unit, found: Found) -> Array:
        name = "gpu_efficiency_factor" if unit.hardware == "gpu" else "cpu_efficiency_factor"
        factor = self.x[name]
        low, mid, high = scaled_range(found.rate, self.sizes, found.fastest)
        if np.ptp(factor) == 0.0 and factor[0] == parameters()[name].likely:
            return np.asarray(mid * np.ones_like(factor))
        z = quantile(factor, name) / Z90
        span = np.where(z < 0.0, np.log(mid / low), np.log(high / mid))
        top = np.maximum(max(found.rate.likely, found.fastest.likely), high)
        return np.asarray(np.minimum(mid * np.exp(span * z), top))

    def items_per_s(self, unit: Unit) -> Array:
        """Items a second of a unit in a run: no target, and no load to stay below."""
        found = self.found(unit, one_by_one=False)
        if found is None:
            return np.ones_like(self.x["parallel_fraction"])  # ruled out, see `unpublished`
        return self.offline_per_s(unit, found, one_by_one=False) * max(found.cores, 1.0)

    def requests_per_s(self, unit: Unit, path: tuple[Stage, ...]) -> Array:
        """Requests a unit answers in a second inside the target, no fuller than is planned.

        A unit that misses the target whatever its load is sized as if it stood idle for most of
        the time, one answer after the other.

        path : the stages on machines of this kind, between which no answer travels
        """
        found = self.found(unit)
        if found is None:
            return np.ones_like(self.x["parallel_fraction"])  # ruled out, see `unpublished`
        terms = self.ctx.settings.jobs
        rate = self.offline_per_s(unit, found)
        floor = lone_s(found, rate, terms)
        most = capacity_per_s(found, rate, self.left_s(unit, path), terms, floor)
        return np.asarray(np.where(most > 0.0, most * parameter("target_load"), IDLE / floor))

    def model_ms(self, unit: Unit) -> Array:
        """The shortest answer of the model, 95 of 100 [ms]; as measured on servers, if it was."""
        none = np.zeros_like(self.x["parallel_fraction"])
        measured = self.ctx.workload.cpu_latency_ms
        if measured and unit.hardware == "cpu":
            return none + measured
        found = self.found(unit)
        if found is None:
            return none
        floor = self._floors.get(id(unit))
        if floor is None:
            rate = self.offline_per_s(unit, found)
            floor = lone_s(found, rate, self.ctx.settings.jobs) * 1000.0
            self._floors[id(unit)] = floor
        return floor

    def left_s(self, unit: Unit, path: tuple[Stage, ...]) -> Array:
        """What the rest of the path leaves of the target to the model [s]; all of the usual
        target where none was told.
        """
        none = np.zeros_like(self.x["parallel_fraction"])
        told = self.ctx.workload.latency_ms
        if told is None:
            return none + parameter("default_latency_ms") / 1000.0
        target = self.x.get("latency_ms", none + told)
        return np.asarray((target - self.rest_ms(unit, path)) / 1000.0)

    def rest_ms(self, unit: Unit, path: tuple[Stage, ...]) -> Array:
        """The path beside the model, 95 of 100 [ms]: features, and hops to others and back."""
        total = np.zeros_like(self.x["parallel_fraction"])
        for stage in self.ctx.stages:
            if stage.mode != "service" or stage.work in SMALL_MODELS:
                continue
            total = total + self.x["cpu_ms_per_item"] * likely("tail_factor")
            beside = stage in path
            if not beside:
                total = total + 2 * likely("remote_hop_ms")
            if beside == (unit.hardware == "gpu"):
                total = total + gpu_floor_ms()
        return total


def model_of(x: Values, ctx: Context) -> Model:
    """The job's small model under some inputs."""
    return Model(x, ctx, asked(ctx.workload, ctx.settings.jobs))


# --- one unit


def capacity_per_s(
    found: Found, rate: Array, target_s: Array, terms: JobsTerms, floor_s: Array
) -> Array:
    """Largest rate of a unit inside a target of its own; 0 where its shortest answer is later.

    rate : offline, of the GPU or of one core; floor_s : see `lone_s`
    """
    wanted = np.maximum(target_s, 1e-12)
    if found.cores:
        most = cpu_capacities(rate, found.cores, wanted, PERCENTILE, arrival_cv2=terms.burst)
    else:
        most = gpu_capacities(rate, wanted, PERCENTILE, terms.hold_ms / 1000.0)
    return np.asarray(np.where(floor_s <= wanted, most, 0.0))


def lone_s(found: Found, rate: Array, terms: JobsTerms) -> Array:
    """The time that 95 of 100 answers stay within where no other request is there.

    On a server as many cores share the item as help; on a GPU one item pays for launches and
    copies, and leaves most of the GPU idle.
    """
    each = 1.0 / check("rate", rate, above=0.0)
    if found.cores:
        return np.asarray(cpu_floor(found.cores, PERCENTILE) * each)
    fixed = parameter("gpu_fixed_ms") / 1000.0
    alone = parameter("lone_item_times") / parameter("gpu_inside_share")
    return np.asarray((fixed + alone * each) * likely("tail_factor") + terms.hold_ms / 1000.0)


@cache
def gpu_floor_ms() -> float:
    """Shortest answer of a GPU behind a server: launches, copies, wait for a batch; 95th pct."""
    return parameter("gpu_fixed_ms") * likely("tail_factor")


def unpublished(unit: Unit, part: tuple[Stage, ...], ctx: Context) -> str:
    """Why nothing can be said of the model on a unit; empty where a rate was published."""
    work = next((s for s in part if s.work in SMALL_MODELS), None)
    if work is None:
        return ""
    model = asked(ctx.workload, ctx.settings.jobs).model
    if _found(unit, model, work.mode == "service") is not None:
        return ""
    where = "GPU" if unit.hardware == "gpu" else "CPU server"
    return f"no rate of {models()[model].title} on a {where} was published that could be checked"
