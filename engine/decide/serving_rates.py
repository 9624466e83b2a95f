"""What one unit of hardware serves of a language model, for thousands of rows of inputs at once.

A unit (a GPU of a machine, or a CPU server) is laid out as a replica; its capacity inside the
latency targets comes from the calibrated serving model. A few rows are worked out one by one; many
draws are read between the nodes of a grid over what varies among them, on logarithms. Knows no
prices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RegularGridInterpolator

from engine.catalogue import Accelerator
from engine.decide.candidates import Unit
from engine.decide.numbers import Array, Mask
from engine.decide.priors import parameter
from engine.estimate.serving import (
    DEFAULT_ENGINE,
    Z80,
    Efficiencies,
    Hardware,
    Network,
    Plan,
    capacity_rows,
    lone_request,
    network_of,
    saturated_tokens_per_s,
    slots,
)
from engine.estimate.serving_layouts import PIPELINES
from engine.estimate.serving_points import CpuBox, Replica, cpu_replica, gpu_replica
from engine.estimate.serving_targets import usual_tpot_s, usual_ttft_s
from engine.estimate.shape import ModelShape
from engine.estimate.shape_from_size import shape_from_size
from engine.workload.serving_terms import EngineKind, ServingTerms

ENGINES = {
    EngineKind.vllm: DEFAULT_ENGINE,
    EngineKind.sglang: "sglang-2025",
    EngineKind.trtllm: "trtllm-2025",
}
# Rows that are worked out one by one; more are read from a grid.
FEW = 160
FEWEST_DRAWS = 1024  # fewer rows than these may repeat one another
# Nodes of the grid along each input that varies: size, prompt, answer, target, speed.
NODES = (7, 5, 4, 3, 6)
NARROW = 0.4  # log span of an input for which the two ends are enough
LOGS = slice(0, 4)  # all but the speed, which is a logarithm already
# Share of the time in which a unit that meets no target is kept busy, one request after another:
# so little that it is hardly ever worth its price.
IDLE = 0.3
UNTOLD = -1.0
Part = TypeVar("Part", Hardware, Plan, Efficiencies)
NEVER = 1e-3  # the same of a unit that does not even hold the model
# Most GPUs of one machine, whatever they are rented as.
LARGEST_MACHINE = 8


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """What is served and how fast; None for a target that was not told. Terms of the plan page.

    active_share : active over total parameters of the model
    """

    active_share: float
    ttft_target_s: float | None
    terms: ServingTerms


@lru_cache(maxsize=64)
def ask_of(active_share: float, ttft_target_s: float | None, terms: ServingTerms) -> Ask:
    """The one ask of these values, so that what was worked out for it is found again."""
    return Ask(active_share, ttft_target_s, terms)


@dataclass(frozen=True, slots=True)
class Box:
    """What tells units apart that serve differently: their hardware and how it comes, no price."""

    sku: str
    per_machine: int
    vcpu: float
    memory_gb: float
    bandwidth_gb_per_s: float | None
    tflops: float | None
    accelerator: Accelerator | None = field(compare=False)


@lru_cache(maxsize=4096)
def box_of(unit: Unit) -> Box:
    """The hardware of a unit."""
    acc, server = unit.accelerator, unit.server
    bandwidth: float | None = None
    peak: float | None = None
    if acc is not None:
        bandwidth, peak = acc.memory_bandwidth_gb_per_s, acc.bf16_tflops_dense
    elif server is not None:
        bandwidth, gflops = server.memory_bandwidth_gb_per_s, server.peak_bf16_gflops
        peak = gflops / 1e3 if gflops else None
    return Box(unit.sku, unit.per_machine, unit.vcpu, unit.memory_gb, bandwidth, peak, acc)


@dataclass(frozen=True, slots=True)
class Served:
    """Of one unit, one value a row: requests a second inside the targets, seconds to the first
    token and per further one of a lone request (95 of 100), requests a second of a batch job, GPUs
    of a replica.
    """

    requests_per_s: Array
    first_token_s: Array
    token_s: Array
    batch_requests_per_s: Array
    gpus: Array


def served(
    unit: Unit, ask: Ask, columns: list[Array], likely: tuple[float, float, float]
) -> Served:
    """What a unit serves for every row of the inputs.

    columns : billion parameters, prompt, answer, target in seconds (`UNTOLD` where none was told)
        and speed, the quantile of the unit's efficiency as a standard normal value
    likely : billion parameters, prompt and answer by which the replica is laid out
    """
    box = box_of(unit)
    if len(columns[0]) == 1:
        size, prompt, answer, target, z = (float(c[0]) for c in columns)
        return _one(box, ask, likely, (size, prompt, answer, target, z))
    return _many(box, ask, likely, np.column_stack(columns).tobytes())


# ---- the layout ----------------------------------------------------------------------------------


def laid_out(box: Box, ask: Ask, likely: tuple[float, float, float]) -> tuple[Replica, bool]:
    """The replica that carries most per GPU inside the targets, and whether the model fits it."""
    found = _likely(box, ask, likely)
    return found.replica, found.fits


@dataclass(frozen=True, slots=True, eq=False)
class _LaidOut:
    """The replica of the likely inputs, whether the model fits it, and what it gives there: the
    row and its values, shape (1, 5) each.
    """

    replica: Replica
    fits: bool
    row: Array
    logs: Array


@lru_cache(maxsize=1024)
def _likely(box: Box, ask: Ask, likely: tuple[float, float, float]) -> _LaidOut:
    target = UNTOLD if ask.ttft_target_s is None else ask.ttft_target_s
    row = np.array([[*likely, target, 0.0]])
    tried = _layouts(box, ask, likely)
    good = [r for r in tried if _holds(r, likely[1] + likely[2])]
    fits = bool(good)
    good = [r for r in good if _within(r, tried[0])] or good[:1] or [tried[-1]]
    found = _worked_out(good, ask, row)
    chosen = int(_chosen(good, found)[0]) if len(good) > 1 else 0
    return _LaidOut(good[chosen], fits, row, found.logs[chosen])


@lru_cache(maxsize=1024)
def _layouts(box: Box, ask: Ask, likely: tuple[float, float, float]) -> tuple[Replica, ...]:
    """Layouts on a unit, smallest first; those over several machines stand last.

    GPUs of one machine share the products; pipelines run over whole machines. Single GPUs that
    must share a model are taken for neighbours without a fast link.
    """
    size = likely[0]
    shape = shape_from_size(size, size * ask.active_share if ask.active_share < 1.0 else None)
    terms, acc = ask.terms, box.accelerator
    bits, kv = float(terms.weights.value), float(terms.cache.value) / 8.0
    if acc is None:
        gflops = box.tflops * 1e3 if box.tflops else None
        server = CpuBox(box.vcpu, box.memory_gb, box.bandwidth_gb_per_s, gflops)
        return (cpu_replica(shape, server, bits, kv),)

    def replica(acc: Accelerator, tp: int, pp: int = 1) -> Replica:
        return gpu_replica(shape, acc, tp, pp, False, bits, kv, ENGINES[terms.engine])

    within = _degrees(shape, box.per_machine)
    tried = [replica(acc, n) for n in within]
    if box.per_machine > 1:
        return (*tried, *(replica(acc, within[-1], p) for p in PIPELINES if p <= shape.layers))
    alone = acc.model_copy(update={"scaleup_gb_per_s_per_direction": None})
    return (*tried, *(replica(alone, n) for n in _degrees(shape, LARGEST_MACHINE)[1:]))


def _chosen(tried: Sequence[Replica], found: Values) -> NDArray[np.intp]:
    """Which layout every row takes: of those within a machine that fit the one that carries most
    per GPU inside the targets, the quickest where none meets them; else the smallest that fits
    over several machines, else the last.
    """
    fits = found.fits
    within = np.array([_within(r, tried[0]) for r in tried])[:, None]
    worth = np.where(found.meets, found.logs[:, :, 0], -1e3 - found.logs[:, :, 1])
    worth = np.where(fits & within, worth, -np.inf)
    smallest = np.where(fits.any(axis=0), fits.argmax(axis=0), len(tried) - 1)
    best = np.where(np.isfinite(worth).any(axis=0), worth.argmax(axis=0), smallest)
    return np.asarray(best, dtype=np.intp)


def _within(replica: Replica, smallest: Replica) -> bool:
    """Whether a replica stays within a machine, as the smallest does, with its links."""
    return bool(replica.plan.pp == 1.0 and replica.hw.link == smallest.hw.link)


def _holds(replica: Replica, context: float) -> bool:
    """Whether the model and one request have room."""
    room = slots(replica.net, replica.hw, replica.plan, replica.eff, context, replica.usable)
    return float(room) >= 1.0


def _degrees(shape: ModelShape, most: int) -> list[int]:
    """Powers of two up to the GPUs of a machine that divide the model's heads."""
    powers = [2**i for i in range(int(math.log2(max(most, 1))) + 1)]
    return [n for n in powers if shape.heads % n == 0 or shape.attention == "none"] or [1]


# ---- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Values:
    """By layout: logarithms of the five values of `Served`, shape (layouts, rows, 5), and whether
    the model fits and the targets are met, shape (layouts, rows).
    """

    logs: Array
    fits: Mask
    meets: Mask


@lru_cache(maxsize=4096)
def _one(box: Box, ask: Ask, likely: tuple[float, float, float], row: tuple[float, ...]) -> Served:
    """What one row of inputs makes of a unit."""
    return _told(_laid_out_by_row(box, ask, likely, np.array([row])))


@lru_cache(maxsize=64)
def _many(box: Box, ask: Ask, likely: tuple[float, float, float], rows: bytes) -> Served:
    """The same of many rows: each that differs worked out, or between the nodes of a grid.

    Rows of a sensitivity analysis move one input at a time, so that few differ; all draws do.
    """
    told = np.frombuffer(rows).reshape(-1, 5)
    if len(told) <= FEWEST_DRAWS or (told == told[0]).all():
        unique, back = np.unique(told, axis=0, return_inverse=True)
        if len(unique) <= FEW:
            return _told(_laid_out_by_row(box, ask, likely, unique)[back.reshape(-1)])
    return _told(_between(box, ask, likely, told))


def _told(logs: Array) -> Served:
    rate, first, token, batch, gpus = np.exp(logs).T
    return Served(rate, first, token, batch, np.asarray(2.0 ** np.ceil(np.log2(gpus) - 1e-6)))


def _laid_out_by_row(box: Box, ask: Ask, likely: tuple[float, float, float], rows: Array) -> Array:
    """Values of rows: all on the likely layout, or each on its own where the size is open."""
    if np.ptp(np.log(rows[:, 0] / likely[0]), axis=0) < NARROW:
        known = _likely(box, ask, likely)
        if np.array_equal(rows, known.row):
            return known.logs
        return np.asarray(_worked_out([known.replica], ask, rows).logs[0])
    tried = _layouts(box, ask, likely)
    found = _worked_out(tried, ask, rows)
    return np.asarray(found.logs[_chosen(tried, found), np.arange(len(rows))])


def _between(box: Box, ask: Ask, likely: tuple[float, float, float], told: Array) -> Array:
    """Values between the nodes of a grid over the inputs that vary."""
    scaled = told.copy()
    scaled[:, LOGS] = np.log(np.abs(told[:, LOGS]))
    low, high = scaled.min(axis=0), scaled.max(axis=0)
    varies = np.flatnonzero(high > low)
    narrow = high - low < NARROW
    axes = [np.linspace(low[i], high[i], 2 if narrow[i] else NODES[i]) for i in varies]
    nodes = np.tile(scaled[0], (math.prod(len(a) for a in axes), 1))
    for i, column in zip(varies, np.meshgrid(*axes, indexing="ij"), strict=True):
        nodes[:, i] = column.ravel()
    nodes[:, LOGS] = np.exp(nodes[:, LOGS]) * np.sign(told[0, LOGS])
    values = _laid_out_by_row(box, ask, likely, nodes).reshape(*(len(a) for a in axes), 5)
    grid = RegularGridInterpolator(axes, values, bounds_error=False, fill_value=None)
    return np.asarray(grid(scaled[:, varies]))


def _worked_out(tried: Sequence[Replica], ask: Ask, rows: Array) -> Values:
    """Values of rows on each of some layouts, by the GPU of a replica."""
    k, n = len(tried), len(rows)
    size, prompt, answer, target, z = (np.tile(rows[:, i : i + 1], (k, 1)) for i in range(5))
    prompt, answer = np.maximum(prompt, 1.0), np.maximum(answer, 1.0)
    net = _networks(size[:, 0], ask.active_share)
    slow = np.exp(-z * tried[0].width / Z80)
    hw = _columns(Hardware, [r.hw for r in tried], n)
    plan = _columns(Plan, [r.plan for r in tried], n)
    eff, terms = _columns(Efficiencies, [r.eff for r in tried], n), ask.terms
    same: dict[str, float] = {
        "percentile": float(terms.percentile.value) / 100.0,
        "prefix_hit": terms.prefix_hit_pct / 100.0,
        "length_cv": terms.length_cv,
    }
    first, each = lone_request(net, hw, plan, eff, prompt, answer, slow, **same)
    ttft = np.where(target < 0.0, usual_ttft_s(prompt), target)
    tpot = np.full_like(each, tpot_target_s(terms))
    found = capacity_rows(
        net, hw, plan, eff, prompt, answer, slow, ttft_target_s=ttft, tpot_target_s=tpot,
        load=terms.max_load_pct / 100.0, floors=(first, each), **same,
    )  # fmt: skip
    gpus = np.repeat([float(r.gpus) for r in tried], n)
    fits = found.room >= 1.0
    idle = np.where(fits, IDLE, NEVER) / (first + answer * each)[:, 0]
    tokens = saturated_tokens_per_s(net, hw, plan, eff, prompt, answer, tried[0].usable)
    batch = np.where(fits[:, None], 1.0, NEVER) * tokens / (answer * slow)
    rate = np.maximum(found.rate, idle)
    lone = [np.broadcast_to(x, (k * n, 1))[:, 0] for x in (first, each)]
    logs = np.log(np.column_stack([rate / gpus, *lone, batch[:, 0] / gpus, gpus]))
    return Values(logs.reshape(k, n, 5), fits.reshape(k, n), (found.rate > 0.0).reshape(k, n))


def _columns(kind: type[Part], parts: Sequence[Part], n: int) -> Part:
    """Parts of several layouts as one whose fields are columns of n rows each."""
    if all(p is parts[0] for p in parts):
        return parts[0]
    names = kind.__slots__
    return kind(**{f: np.repeat([float(getattr(p, f)) for p in parts], n)[:, None] for f in names})


def tpot_target_s(terms: ServingTerms) -> float:
    """Longest time per further token [s]: as told, else the usual one."""
    return usual_tpot_s() if terms.tpot_ms is None else terms.tpot_ms / 1e3


def _networks(sizes: Array, active_share: float) -> Network:
    """Networks of the rows' sizes: floats where all are the same, else columns."""
    different, which = np.unique(sizes, return_inverse=True)
    found = [_network(float(s), active_share) for s in different]
    if len(found) == 1:
        return found[0]
    columns = {n: np.array([float(getattr(f, n)) for f in found]) for n in Network.__slots__}
    return Network(**{n: c[which][:, None] for n, c in columns.items()})


@lru_cache(maxsize=1024)
def _network(size: float, active_share: float) -> Network:
    active = size * active_share if active_share < 1.0 else None
    return network_of(shape_from_size(size, active))


def quantile(factor: Array, name: str) -> Array:
    """The standard normal value of draws of an efficiency factor with a named range."""
    return _quantile(float(factor[0]), name) if len(factor) == 1 else _quantiles(factor, name)


@lru_cache(maxsize=64)
def _quantile(factor: float, name: str) -> Array:
    """The same of one, which every unit asks for."""
    return _quantiles(np.array([factor]), name)


def _quantiles(factor: Array, name: str) -> Array:
    p = parameter(name)
    span = np.where(factor >= p.likely, math.log(p.high / p.likely), math.log(p.likely / p.low))
    return np.asarray(Z80 * np.log(factor / p.likely) / np.maximum(span, 1e-12))
