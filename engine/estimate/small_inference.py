"""Small models on GPUs and CPU servers: what one unit answers inside a latency target.

Measured rates per GPU and per core are in `data/inference_rates.csv`. A GPU takes what has
gathered as a batch; a CPU server runs workers of some cores, each on one item. Both queue, and the
largest rate at which a share of the answers stays within the target is the unit's capacity.
Formulae work on floats and arrays alike. Knows no prices. Rates per second, times in seconds.

References
----------
[1] MLPerf Inference, closed division, data centre: offline and server rates.
[2] Queues as in `engine.estimate.queueing`: Allen–Cunneen, bulk service.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import ndtri

from engine.catalogue import load_catalogue
from engine.catalogue.models import Accelerator, CpuServer, Provenance, Row
from engine.catalogue.read import parse, rows
from engine.errors import DataError, InputError
from engine.estimate.named import named
from engine.estimate.queueing import check
from engine.estimate.response import late_share, response_percentile, slow_item

Array = NDArray[np.float64]
Real = float | Array
DATA = Path(__file__).resolve().parents[2] / "data"
PARAMETERS = DATA / "jobs_parameters.csv"
LARGEST_BATCH = 1024.0
ROUNDS = 12  # of the fixed point of a batch's time
HALVINGS = 26  # of the interval in which the largest rate is sought: to a ten-millionth

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Family = Literal["vision", "text", "speech", "recommender", "language", "trees", "embedding"]


class Rate(Row):
    """What one GPU, or one server of `cores`, does of a model.

    offline_low, offline_per_s, offline_high : items a second without a latency target
    server_per_s : inside the target `server_target_ms` at 99%, Poisson arrivals [1]
    """

    model: str
    title: str
    family: Family
    item: str
    hardware: Literal["gpu", "cpu"]
    hardware_id: str = ""
    name: str
    cores: Positive | None = None
    offline_low: Positive
    offline_per_s: Positive
    offline_high: Positive
    server_per_s: Positive | None = None
    server_target_ms: Positive | None = None
    submissions: int
    provenance: Provenance


def parameter(name: str) -> float:
    """The likely value of a named parameter of this module's table."""
    return named(PARAMETERS)[name].likely


@cache
def rates(file: Path = DATA / "inference_rates.csv") -> tuple[Rate, ...]:
    """All measured rates, in the order of the table.

    Raises
    ------
    DataError : a row without source, a range out of order, a server without its cores
    """
    found = []
    for line, cells in rows(file):
        row = parse(Rate, cells, file, line, date.today())
        if not row.offline_low <= row.offline_per_s <= row.offline_high:
            raise DataError("is not in order", file=file, line=line, column="offline_per_s",
                            right="low ≤ likely ≤ high")  # fmt: skip
        if row.hardware == "cpu" and row.cores is None:
            raise DataError("is empty", file=file, line=line, column="cores")
        found.append(row)
    return tuple(found)


@cache
def models() -> Mapping[str, Rate]:
    """One row of each measured model by its id: title, family, what an item is."""
    return {row.model: row for row in reversed(rates())}


@dataclass(frozen=True, slots=True)
class Predicted:
    """A rate with its range; `how` says whether it was measured or follows from what was."""

    low: float
    likely: float
    high: float
    how: str
    measured: bool


def gpu_rate(model: str, gpu: Accelerator, leave_out: str = "") -> Predicted | None:
    """Offline items a second of a model on one GPU; None where no GPU was measured with it.

    A GPU that was not measured follows from those that were by dense throughput and memory
    bandwidth, the more alike the more they count.

    leave_out : id of hardware whose rows are not used, for back-tests
    """
    known = [r for r in rates() if r.model == model and r.hardware == "gpu"]
    for row in known:
        if row.hardware_id == gpu.sku != leave_out:
            said = f"measured: {row.provenance.source}"
            return Predicted(row.offline_low, row.offline_per_s, row.offline_high, said, True)
    catalogue = _accelerators()
    others = [r for r in known if r.hardware_id in catalogue and r.hardware_id != leave_out]
    mine = _peak(gpu)
    if not others or mine is None:
        return None
    share = parameter("gpu_compute_exponent")
    logs, weights = [], []
    for row in others:
        other = catalogue[row.hardware_id]
        peak = _peak(other)
        if peak is None:
            continue
        compute = math.log(mine / peak)
        memory = math.log(gpu.memory_bandwidth_gb_per_s / other.memory_bandwidth_gb_per_s)
        logs.append(math.log(row.offline_per_s) + share * compute + (1.0 - share) * memory)
        weights.append(math.exp(-1.5 * (abs(compute) + abs(memory))))
    if not logs:
        return None
    likely = math.exp(float(np.average(logs, weights=weights)))
    spread = named(PARAMETERS)["gpu_unmeasured_spread"].likely
    said = f"not measured: follows from {len(logs)} other GPUs by throughput and bandwidth"
    return Predicted(likely / spread, likely, likely * spread, said, False)


def core_rate(model: str, leave_out: str = "") -> Predicted | None:
    """Offline items a second of a model on one physical core; None where it was not measured.

    Rates a core are alike over generations of Xeons with matrix units, so their median counts.
    Nets that live from these units are a core's with them; see `without_matrix_units`.
    """
    known = [
        r
        for r in rates()
        if r.model == model
        and r.hardware == "cpu"
        and r.hardware_id != (leave_out or None)
        and (r.family not in MATRIX_FAMILIES or has_matrix_units(r.name))
    ]
    each = [(r.offline_low / r.cores, r.offline_per_s / r.cores, r.offline_high / r.cores)
            for r in known if r.cores]  # fmt: skip
    if not each:
        return None
    likely = float(np.median([e[1] for e in each]))
    spread = named(PARAMETERS)["cpu_core_spread"].likely
    # The median server's own range, and that of another generation.
    low = min(max(min(e[0] for e in each), likely / spread**2), likely / spread)
    high = max(min(max(e[2] for e in each), likely * spread**2), likely * spread)
    kinds = "one kind" if len(each) == 1 else f"{len(each)} kinds"
    said = f"measured on {kinds} of server: {known[0].provenance.source}"
    return Predicted(low, likely, high, said, True)


# Nets of 8-bit integers live from matrix units; trees and the embeddings measured did without.
MATRIX_FAMILIES = ("vision", "text", "speech", "recommender", "language")


def has_matrix_units(name: str, server: CpuServer | None = None) -> bool:
    """Whether the cores of a server have matrix units; taken as not where it isn't known.

    name : as it is offered, where the catalogue has no row of the server
    """
    if server is not None:
        return server.bf16_unit == "AMX"
    return next((yes for pattern, yes in _matrix_units() if fnmatch(name, pattern)), False)


@cache
def _matrix_units(file: Path = DATA / "cpu_matrix_units.csv") -> tuple[tuple[str, bool], ...]:
    return tuple((cells["pattern"], cells["matrix_units"] == "yes") for _, cells in rows(file))


def without_matrix_units(rate: Predicted) -> Predicted:
    """A core's rate without matrix units: a share of that with them, in a wide range."""
    share = named(PARAMETERS)["no_matrix_units_share"]
    said = "not measured: a share of the rate of Xeons with matrix units"
    return Predicted(
        rate.low * share.low, rate.likely * share.likely, rate.high * share.high, said, False
    )


# ---- inside a latency target ---------------------------------------------------------------------


def scaled(rate: Predicted, size: float, fastest: Predicted) -> Predicted:
    """The rate of a model that does `size` times the work of the one that was measured.

    Work scales it. Far from the measured size the band is wider, and no unit answers more than the
    fastest that was measured on it: to take a request in and hand it back costs time however small
    the net.

    size : above 0; fastest : the same unit's rate of the lightest model measured
    """
    if size == 1.0:
        return rate
    low, likely, high = (float(each) for each in scaled_range(rate, size, fastest))
    how = f"not measured: by its work from what was; {rate.how}"
    if likely == max(rate.likely, fastest.likely):
        how = f"not measured: as the lightest model that was; {fastest.how}"
    return Predicted(low, likely, high, how, False)


def scaled_range(rate: Predicted, size: Real, fastest: Predicted) -> tuple[Array, Array, Array]:
    """Low, likely and high rate of models of these sizes, see `scaled`; as measured where 1."""
    work = check("size", size, above=0.0)
    reach, wide = parameter("scaled_reach"), parameter("scaled_spread")
    spread = np.where((work >= 1 / reach) & (work <= reach), 1.0, wide)
    top = max(rate.likely, fastest.likely)
    low = np.minimum(rate.low / work / spread, top)
    likely = np.minimum(rate.likely / work, top)
    high = np.maximum(np.minimum(rate.high / work * spread, top), likely)
    low = np.where(likely == top, np.minimum(low, fastest.low / spread), low)
    told = ((low, rate.low), (likely, rate.likely), (high, rate.high))
    found = [np.asarray(np.where(work == 1.0, as_is, each)) for each, as_is in told]
    return found[0], found[1], found[2]


def gpu_response(
    rate: Real, offline_per_s: Real, percentile: float, hold_s: Real = 0.0
) -> tuple[Array, Array]:
    """Response that a share of requests stays within on one GPU that takes batches, and the batch.

    A batch of b takes fixed + b/offline, and is what came during the one before: its time C has
    the mean m and the variance v of a Poisson number of items, and one item alone where none came.
    Whoever comes while it is busy meets a batch by its length (mean m + v/m), waits for its rest,
    uniform over that, and then for the next with all who came during it. Beyond the shortest
    answer this is taken for a gamma variable of its own mean and variance (Wilson–Hilferty).
    Within a tenth of simulated queues from 5% to 85% load at the 95th percentile.
    """
    hold = check("hold_s", hold_s, least=0.0)
    lam, each, fixed = np.broadcast_arrays(
        check("rate", rate, least=0.0),
        1.0 / check("offline_per_s", offline_per_s, above=0.0),
        parameter("gpu_fixed_ms") / 1000.0 + np.asarray(hold),
    )
    steady = lam * (each + fixed / LARGEST_BATCH) < 1.0
    lam = np.where(steady, lam, 0.0)
    mean, variance, alone = _batch_time(lam, each, fixed)
    load, length = lam * each, mean + variance / mean
    busy = mean * lam / (mean * lam + alone)
    spread = (mean * variance + variance**2 / mean) / mean  # of that length
    longer = length * (0.5 + load)
    varied = (
        (spread + length**2) / 3.0 - length**2 / 4.0
        + (load**2 + load) * spread + each * load * length
    )  # fmt: skip
    with np.errstate(divide="ignore", invalid="ignore"):
        late = 1.0 - (1.0 - percentile) / busy  # of those who find it busy
        part = varied / (9.0 * longer**2)
        told = (
            longer * np.maximum(1.0 - part + ndtri(np.clip(late, 1e-9, 1.0)) * part**0.5, 0.0) ** 3
        )
    answer = fixed + each + np.where(late > 0.0, told, 0.0)
    return np.where(steady, answer, np.inf), np.where(steady, (mean - fixed) / each, LARGEST_BATCH)


def _batch_time(lam: Array, each: Array, fixed: Array) -> tuple[Array, Array, Array]:
    """Mean and variance of the time of a batch, and how often none come during it.

    m = (fixed + each·P(none))/(1 − λ·each): its items are those that came during the one before.
    """
    load = lam * each
    mean, variance = fixed + each, np.zeros_like(each)
    alone = np.exp(-lam * mean)
    for _ in range(ROUNDS):
        mean = (fixed + each * alone) / (1.0 - load)
        came = lam * mean
        variance = each**2 * (came * (1.0 - 2.0 * alone) + alone * (1.0 - alone))
        variance = np.maximum(variance / (1.0 - load**2), 1e-24)
        # Of a gamma variable; halfway, or the two would swing.
        alone = 0.5 * (alone + (1.0 + lam * variance / mean) ** (-(mean**2) / variance))
    return mean, variance, alone


def gpu_capacity(
    offline_per_s: Real, target_s: Real, percentile: float, hold_s: Real = 0.0
) -> Real:
    """Largest rate at which a share of answers of one GPU stays within the target; 0 below its
    floor, which is the time of a batch of one."""
    inside = parameter("gpu_inside_share")
    off = check("offline_per_s", offline_per_s, above=0.0) * inside
    goal, off, hold = np.broadcast_arrays(check("target_s", target_s, above=0.0), off,
                                          check("hold_s", hold_s, least=0.0))  # fmt: skip

    def good(lam: Array) -> Array:
        return np.asarray(gpu_response(lam, off, percentile, hold)[0] <= goal)

    return _largest(good, off)


def gpu_floor_s(offline_per_s: Real, hold_s: Real = 0.0) -> Real:
    """Shortest answer of a GPU: one item alone in its batch."""
    fixed = parameter("gpu_fixed_ms") / 1000.0
    return fixed + 1.0 / np.asarray(offline_per_s) + hold_s


def worker_service_s(per_core_per_s: Real, cores_a_worker: Real) -> Real:
    """Time of one item on a worker of some cores: they share it with contention [2]."""
    k = check("cores_a_worker", cores_a_worker, least=1.0)
    each = check("per_core_per_s", per_core_per_s, above=0.0)
    inside = parameter("cpu_inside_share")
    slower = 1.0 + parameter("worker_contention") * (k - 1.0)
    return np.asarray(slower / (k * each * inside))


def cpu_response(
    rate: Real, per_core_per_s: Real, cores: float, cores_a_worker: Real, percentile: float, *,
    arrival_cv2: Real = 1.0,
) -> Real:  # fmt: skip
    """Response that a share of requests stays within on a server of workers; see `response`."""
    size = check("cores_a_worker", cores_a_worker, least=1.0)
    service = worker_service_s(per_core_per_s, size)
    workers = np.maximum(np.floor(cores / size), 1.0)
    return response_percentile(
        rate, service, workers, percentile, arrival_cv2=arrival_cv2,
        service_cv2=parameter("service_cv2"),
    )  # fmt: skip


def cpu_capacity(
    per_core_per_s: Real, cores: float, target_s: Real, percentile: float, *,
    arrival_cv2: float = 1.0,
) -> tuple[Real, Array]:  # fmt: skip
    """Largest rate of a server inside the target, and the cores a worker with which it is reached.

    Few cores a worker waste least; many answer one item sooner. The best of 1, 2, 4, … is taken.
    """
    each, goal = np.broadcast_arrays(
        check("per_core_per_s", per_core_per_s, above=0.0), check("target_s", target_s, above=0.0)
    )
    sizes = np.array(worker_sizes(cores), dtype=float).reshape((-1,) + (1,) * each.ndim)
    most = np.maximum(np.floor(cores / sizes), 1.0) / np.asarray(worker_service_s(each, sizes))

    service = worker_service_s(each, sizes)
    workers = np.maximum(np.floor(cores / sizes), 1.0)

    def good(lam: Array) -> Array:
        late = late_share(
            goal, lam, service, workers, arrival_cv2=arrival_cv2,
            service_cv2=parameter("service_cv2"),
        )  # fmt: skip
        return np.asarray(late <= 1.0 - percentile)

    found = np.asarray(_largest(good, most))
    best = found.argmax(axis=0)
    chosen = np.take_along_axis(found, np.expand_dims(best, 0), axis=0)[0]
    return _like(chosen), np.asarray(sizes.reshape(-1)[best])


def worker_sizes(cores: float) -> tuple[int, ...]:
    """Cores that may share an item: powers of two up to what the server has."""
    most = min(int(parameter("most_cores_a_worker")), max(int(cores), 1))
    return tuple(2**i for i in range(int(math.log2(most)) + 1))


def cpu_floor_s(per_core_per_s: float, cores: float, percentile: float) -> tuple[float, int]:
    """Shortest answer of a server, and the cores that share the item for it."""
    times = {
        k: float(
            slow_item(
                worker_service_s(per_core_per_s, float(k)), parameter("service_cv2"), percentile
            )
        )
        for k in worker_sizes(cores)
    }
    k = min(times, key=lambda size: times[size])
    return times[k], k


def units_for(peak_per_s: Real, capacity_per_s: Real) -> Array:
    """Whole units for the peak, at the planned load; infinite where one carries nothing."""
    load = parameter("target_load")
    peak = check("peak_per_s", peak_per_s, least=0.0)
    capacity = check("capacity_per_s", capacity_per_s, least=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.ceil(peak / (capacity * load) - 1e-9)
    return np.where(peak > 0.0, np.where(capacity > 0.0, np.maximum(wanted, 1.0), np.inf), 0.0)


# ---- back-test on the MLPerf pairs ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pair:
    """One model on one CPU server and one GPU: GPU over CPU rate, predicted and measured."""

    model: str
    cpu: str
    gpu: str
    inside_target: bool
    predicted: float
    measured: float

    def right(self, price_ratio: float = 1.0) -> bool:
        """Whether the prediction names the side that is the better at a price ratio."""
        return (self.predicted >= price_ratio) == (self.measured >= price_ratio)


def mlperf_pairs() -> tuple[Pair, ...]:
    """Every pair of a measured CPU server and a measured GPU, predicted from other hardware only.

    A server without matrix units is told so, as the servers on offer are.
    Inside the server scenario's target at 99% where both were measured so, offline otherwise.
    """
    catalogue = _accelerators()
    found = []
    cpus = [r for r in rates() if r.hardware == "cpu" and r.hardware_id]
    gpus = [r for r in rates() if r.hardware == "gpu" and r.hardware_id in catalogue]
    for cpu in cpus:
        for gpu in (g for g in gpus if g.model == cpu.model):
            core = core_rate(cpu.model, leave_out=cpu.hardware_id)
            device = gpu_rate(gpu.model, catalogue[gpu.hardware_id], leave_out=gpu.hardware_id)
            if core is None or device is None or cpu.cores is None:
                continue
            if cpu.family in MATRIX_FAMILIES and not has_matrix_units(cpu.name):
                core = without_matrix_units(core)
            served = gpu.server_per_s is not None and cpu.server_per_s is not None
            if served and gpu.server_target_ms and gpu.server_per_s and cpu.server_per_s:
                goal = gpu.server_target_ms / 1000.0
                told_gpu = gpu_capacity(device.likely, goal, 0.99)
                told_cpu, _ = cpu_capacity(core.likely, cpu.cores, goal, 0.99)
                measured = gpu.server_per_s / cpu.server_per_s
            else:
                told_gpu, told_cpu = device.likely, core.likely * cpu.cores
                measured = gpu.offline_per_s / cpu.offline_per_s
            ratio = float(told_gpu) / float(told_cpu) if float(told_cpu) > 0 else math.inf
            found.append(Pair(cpu.model, cpu.name, gpu.name, served, ratio, measured))
    return tuple(found)


def check_models(name: str) -> str:
    """The id of a measured model.

    Raises
    ------
    InputError : no such model
    """
    if name not in models():
        raise InputError(f"“{name[:40]}” was not measured", where="like",
                         right="one of " + ", ".join(models()))  # fmt: skip
    return name


# ---- parts ---------------------------------------------------------------------------------------


@cache
def _accelerators() -> Mapping[str, Accelerator]:
    return load_catalogue().accelerators


def _peak(gpu: Accelerator) -> float | None:
    """Dense 16-bit throughput; from 8-bit integers where only that is known."""
    half = gpu.bf16_tflops_dense or gpu.fp16_tflops_dense
    return half or (gpu.int8_tops_dense / 2.0 if gpu.int8_tops_dense else None)


def _largest(good: Callable[[Array], Array], top: Array) -> Real:
    """Largest rate between 0 and `top` for which `good` holds; good must fail once and for all."""
    low, high = np.zeros_like(np.asarray(top)), np.asarray(top, dtype=float)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        fine = good(middle)
        low, high = np.where(fine, middle, low), np.where(fine, high, middle)
    # Nothing fits where even the smallest rate tried did not.
    return _like(np.where(low < top * 1e-9, 0.0, low))


def _like(x: Array) -> Real:
    return float(x) if np.ndim(x) == 0 else x
