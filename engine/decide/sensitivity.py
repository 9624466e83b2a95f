"""What would change it: for each numeric answer the nearest value at which another kind wins.

The answer is scanned over its whole range on a grid (all answers in one vectorised evaluation),
each nearest change of winner is then bracketed and refined by zooming until the bracket is
narrower than a thousandth of its value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.decide.inputs import Inputs
from engine.decide.numbers import Array
from engine.workload.answers import Kind
from engine.workload.workload import LLM_TRAINING, SERVICES, Workload

GRID = 41
ROUNDS = 3
Values = dict[str, Array]


@dataclass(frozen=True, slots=True)
class Lever:
    """A numeric answer, the input it moves, and the range over which it is scanned."""

    field: str
    input: str
    now: float
    low: float
    high: float
    factor: float = 1.0
    linear: bool = False

    def grid(self, low: float, high: float, n: int = GRID) -> Array:
        """Values of the answer between two ends."""
        if self.linear:
            return np.linspace(low, high, n)
        return np.geomspace(low, high, n)


# Field, input, multiplier from the field's unit to the input's, scanned down and up by this.
_SIZES = (
    ("gpu_speedup", "gpu_speedup", 1.0, 50.0),
    ("useful_hours_per_month", "useful_hours_per_month", 1.0, 0.0),
    ("runs_per_month", "runs_per_month", 1.0, 100.0),
    ("train_tokens_b", "train_tokens_b", 1.0, 1000.0),
    ("items_per_run", "items_per_run", 1.0, 1000.0),
    ("tokens_out", "tokens_out", 1.0, 50.0),
    ("rate_per_s", "rate_per_s", 1.0, 1000.0),
    ("peak_factor", "peak_factor", 1.0, 20.0),
    ("cpu_ms_per_item", "cpu_ms_per_item", 1.0, 100.0),
    ("latency_ms", "latency_ms", 1.0, 200.0),
    ("working_set_gb", "working_set_gb", 1.0, 100.0),
    ("deadline_days", "patience_h", 24.0, 100.0),
)


def levers(workload: Workload, inputs: Inputs) -> list[Lever]:
    """Every numeric answer that can change the outcome for this kind of work."""
    kind, r = workload.kind, inputs.ranges
    found = [
        Lever(
            "parallel_fraction",
            "parallel_fraction",
            r["parallel_fraction"].likely,
            0.02,
            0.9995,
            linear=True,
        ),
        Lever(
            "monthly_variation",
            "monthly_variation",
            r["monthly_variation"].likely,
            0.0,
            2.0,
            linear=True,
        ),
        Lever("gpu_market_factor", "gpu_market_factor", 1.0, 0.1, 10.0),
    ]
    for name, key, factor, reach in _SIZES:
        if key not in r and key != "latency_ms":
            continue
        if key == "latency_ms" and workload.latency_ms is None:
            continue
        if key == "patience_h" and workload.deadline_days is None:
            continue
        if name in ("gpu_speedup", "useful_hours_per_month") and kind in LLM_TRAINING | SERVICES | {
            Kind.batch_inference
        }:
            continue
        now = (workload.latency_ms or 0.0) if key == "latency_ms" else r[key].likely / factor
        if now <= 0:
            continue
        if reach == 0.0:
            found.append(Lever(name, key, now, 1.0, 730.0, factor))
            continue
        low = 1.0 if name == "peak_factor" else now / reach
        found.append(Lever(name, key, now, low, max(now * reach, low * 1.01), factor))
    return found


@dataclass(frozen=True, slots=True)
class Turn:
    """Where the winner changes: the answer's value and the winner beyond it; None if nowhere."""

    lever: Lever
    at: float | None
    winner: int | None


def nearest_turns(
    levers: list[Lever],
    point: Values,
    rank: Callable[[Values], NDArray[np.intp]],
    same: Callable[[int], bool],
) -> list[Turn]:
    """For each lever the nearest value on either side at which the kind of winner changes.

    rank : winners for rows of inputs; same : whether a winner is of the recommended kind
    """
    brackets: dict[int, tuple[float, float, int]] = {}
    spans = {i: (lever.low, lever.high) for i, lever in enumerate(levers)}
    for round_ in range(ROUNDS):
        grids = {i: levers[i].grid(*span) for i, span in spans.items()}
        if not grids:
            break
        winners = rank(_rows(levers, grids, point))
        start = 0
        for i, grid in grids.items():
            row = winners[start : start + len(grid)]
            start += len(grid)
            found = _nearest(grid, row, levers[i], same, first=round_ == 0)
            if found is not None:
                brackets[i] = found
        spans = {i: (a, b) for i, (a, b, _) in brackets.items() if b > a}
    turns = []
    for i, lever in enumerate(levers):
        if i in brackets:
            a, b, winner = brackets[i]
            turns.append(Turn(lever, max(a, b, key=lambda at: abs(at - lever.now)), winner))
        else:
            turns.append(Turn(lever, None, None))
    return turns


def _nearest(
    grid: Array, row: NDArray[np.intp], lever: Lever, same: Callable[[int], bool], first: bool
) -> tuple[float, float, int] | None:
    """The bracket of the change nearest to the present value."""
    kept = np.array([same(int(w)) for w in row])
    best: tuple[float, float, float, int] | None = None
    for j in range(len(grid) - 1):
        if kept[j] == kept[j + 1]:
            continue
        outside = j + 1 if kept[j] else j
        away = _distance(lever, float(grid[outside]))
        if first and not _inside_is_towards_now(grid, j, kept, lever):
            continue
        if best is None or away < best[0]:
            best = (away, float(grid[j]), float(grid[j + 1]), int(row[outside]))
    return None if best is None else best[1:]


def _inside_is_towards_now(grid: Array, j: int, kept: NDArray[np.bool_], lever: Lever) -> bool:
    inner = grid[j] if kept[j] else grid[j + 1]
    outer = grid[j + 1] if kept[j] else grid[j]
    return bool((outer - inner) * (inner - lever.now) >= 0 or grid[j] <= lever.now <= grid[j + 1])


def _distance(lever: Lever, value: float) -> float:
    if lever.linear:
        return abs(value - lever.now)
    return abs(float(np.log(value / lever.now)))


def _rows(levers: list[Lever], grids: dict[int, Array], point: Values) -> Values:
    """All grids below one another, each moving its own input only."""
    total = sum(len(g) for g in grids.values())
    rows = {name: np.full(total, float(value[0])) for name, value in point.items()}
    start = 0
    for i, grid in grids.items():
        lever = levers[i]
        if lever.input not in rows:
            rows[lever.input] = np.full(total, lever.now * lever.factor)
        rows[lever.input][start : start + len(grid)] = grid * lever.factor
        start += len(grid)
    return rows
