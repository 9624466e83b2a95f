"""Capacities of small models inside a latency target, for thousands of rows at once.

The same as `small_inference.gpu_capacity` and `cpu_capacity`, read between the nodes of a table.
Both depend on the ratio of the target to the shortest answer; a CPU server's on nothing else, a
GPU's on how much of that is its fixed time, too. Within half a percent of the functions in 99 of
100 cases; a little above the shortest answer, in bursts or with batches held open, within a tenth
of what the unit does.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from engine.estimate.queueing import check
from engine.estimate.small_inference import (
    cpu_capacity,
    cpu_floor_s,
    gpu_capacity,
    gpu_floor_s,
    parameter,
)

Array = NDArray[np.float64]
Real = float | Array
# Target over the shortest answer: close together near 1, where the capacity rises from nothing.
TARGETS = 1.0 + np.geomspace(1e-3, 1e4, 168) - 1e-3
# A server's has a corner where more cores begin to share an item.
CPU_TARGETS = 1.0 + np.geomspace(1e-3, 1e4, 420) - 1e-3
# Fixed time of a batch over the time of one item in it.
FIXED = np.geomspace(1e-4, 1e4, 113)


def gpu_capacities(
    offline_per_s: Real, target_s: Real, percentile: float, hold_s: float = 0.0
) -> Array:
    """Largest rates of one GPU inside the targets; 0 below its floor."""
    off = check("offline_per_s", offline_per_s, above=0.0)
    inside = off * parameter("gpu_inside_share")
    fixed = parameter("gpu_fixed_ms") / 1000.0
    ratio = np.asarray(target_s) / np.asarray(gpu_floor_s(inside, hold_s))
    table = _gpu_table(percentile, hold_s)
    row, down = _place(np.log(fixed * inside), np.log(FIXED))
    column, across = _place(_stretched(ratio), _stretched(TARGETS))
    near = table[row, column] * (1 - across) + table[row, column + 1] * across
    far = table[row + 1, column] * (1 - across) + table[row + 1, column + 1] * across
    share = near * (1 - down) + far * down
    return np.asarray(np.where(ratio > 1.0, share, 0.0) * inside)


def cpu_capacities(
    per_core_per_s: Real, cores: float, target_s: Real, percentile: float, *,
    arrival_cv2: float = 1.0,
) -> Array:  # fmt: skip
    """Largest rates of a server inside the targets; 0 below its floor."""
    each = check("per_core_per_s", per_core_per_s, above=0.0)
    floor = cpu_floor(cores, percentile)
    ratio = np.asarray(target_s) * each / floor
    table = _cpu_table(cores, percentile, arrival_cv2)
    column, across = _place(_stretched(ratio), _stretched(CPU_TARGETS))
    used = table[column] * (1 - across) + table[column + 1] * across
    return np.asarray(np.where(ratio > 1.0, used, 0.0) * each)


def _stretched(ratio: Array) -> Array:
    """A coordinate in which the nodes of `TARGETS` lie evenly."""
    return np.asarray(np.log(np.maximum(ratio - 1.0, 0.0) + 1e-3))


def _place(at: Array, nodes: Array) -> tuple[NDArray[np.intp], Array]:
    """The node below each value of evenly spaced nodes, and the way to the next; ends hold."""
    step = (nodes[-1] - nodes[0]) / (len(nodes) - 1)
    found = np.clip((at - nodes[0]) / step, 0.0, len(nodes) - 1)
    index = np.minimum(found.astype(np.intp), len(nodes) - 2)
    return index, np.asarray(found - index)


@lru_cache(maxsize=16)
def _gpu_table(percentile: float, hold_s: float) -> Array:
    """Share of the rate inside a target that is left by it, shape (fixed, targets)."""
    fixed, inside = parameter("gpu_fixed_ms") / 1000.0, parameter("gpu_inside_share")
    off = (FIXED / fixed)[:, None]
    floor = np.asarray(gpu_floor_s(off, hold_s))
    found = np.asarray(gpu_capacity(off / inside, floor * TARGETS[None, :], percentile, hold_s))
    found[:, 0] = 0.0
    return found / off


@lru_cache(maxsize=64)
def cpu_floor(cores: float, percentile: float) -> float:
    """Shortest answer of a server whose cores do one item a second each [s]."""
    return cpu_floor_s(1.0, cores, percentile)[0]


@lru_cache(maxsize=64)
def _cpu_table(cores: float, percentile: float, arrival_cv2: float) -> Array:
    """Cores' worth of items that a server answers by targets over its shortest answer."""
    floor = cpu_floor(cores, percentile)
    found, _ = cpu_capacity(1.0, cores, floor * CPU_TARGETS, percentile, arrival_cv2=arrival_cv2)
    told = np.array(found)
    told[0] = 0.0
    return told
