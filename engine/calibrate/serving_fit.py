"""Least squares of the serving model's efficiencies on published runs.

Sources weigh by up to thirty rows each; efficiencies are held near a prior and effects of a
generation, engine or precision near none, so that what is left out is predicted by physics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.optimize import least_squares
from scipy.sparse import linalg

from engine.calibrate.serving_knobs import MEMORY, SPECS, Design, design_of
from engine.calibrate.serving_protocols import log_errors, peak_memory_gib
from engine.calibrate.serving_rows import Table
from engine.estimate.queueing import Array
from engine.estimate.serving import Efficiencies

# Of one residual, in logs: what the physics leaves open. Measurements repeated elsewhere differ by
# 4 to 6%; a closed loop's first token depends on how its users happen to start.
SCALES = {
    "ttft_static": 0.10, "ttft_closed": 0.25, "itl_static": 0.08, "itl_closed": 0.14,
    "rate": 0.10, "memory": 0.05,
}  # fmt: skip
GROUP_ROWS = 30  # rows that a source may weigh
TAIL = 2.0  # residuals beyond this many scales count less and less (Cauchy)


@dataclass(frozen=True, slots=True)
class Fit:
    """Logarithms of the parameters, their standard errors and names."""

    x: Array
    errors: Array
    names: tuple[str, ...]
    memory: Mapping[str, float]

    def efficiencies(self, t: Table) -> Efficiencies:
        """Efficiencies of the rows of a table; effects the fit has not seen are none."""
        return design_of(t, self.names).efficiencies(self.x, self.memory)


def weights_of(t: Table) -> Array:
    """Weight of a row: the square root of its group's size shared among its rows."""
    count = Counter(t.group)
    weight = np.array([min(count[g], GROUP_ROWS) / count[g] for g in t.group])
    # A laptop's llama.cpp says little about a server's engine.
    return np.where(t.engine == "llamacpp-any", 0.4 * weight, weight)


def fit(t: Table, start: Fit | None = None, evaluations: int = 100) -> Fit:
    """Parameters that agree best with the rows."""
    design, memory = design_of(t), fit_memory(t)
    weight = np.sqrt(weights_of(t))
    part = np.array([np.ones(len(t)), np.ones(len(t)), np.where(np.isnan(t.itl), 1.0, 0.0)])
    scale = _scales(t)
    held = sparse.diags_array(1.0 / design.freedom**2)
    factor = weight * part

    def terms(x: Array) -> tuple[Array, Array]:
        """Robust residuals of the rows, and how much each still counts."""
        e = np.nan_to_num(log_errors(t, design.efficiencies(x, memory)), nan=0.0) / scale
        robust = np.sign(e) * TAIL * np.sqrt(np.log1p((e / TAIL) ** 2))
        return factor * robust, factor / np.sqrt(1.0 + (e / TAIL) ** 2)

    def cost(rows: Array, x: Array) -> float:
        return float(np.sum(rows**2) + np.sum(((x - design.mean) / design.freedom) ** 2))

    x = design.mean.copy()
    if start is not None:
        known = dict(zip(start.names, start.x, strict=True))
        x = np.array([known.get(n, m) for n, m in zip(design.names, design.mean, strict=True)])
    rows, counts = terms(x)
    damping, curvature = 1e-3, held
    for _ in range(evaluations):
        slopes = _slopes(t, design, memory, x, counts)
        curvature = slopes.T @ slopes + held
        pull = slopes.T @ _weighted(rows, counts, factor) + (x - design.mean) / design.freedom**2
        before = cost(rows, x)
        for _ in range(6):
            lifted = curvature + damping * sparse.diags_array(curvature.diagonal())
            step = np.clip(linalg.spsolve(lifted.tocsc(), -pull), -0.7, 0.7)
            new_rows, new_counts = terms(x + step)
            after = cost(new_rows, x + step)
            if after < before:
                damping = max(damping / 5.0, 1e-6)
                break
            damping *= 8.0
        else:
            break
        x, rows, counts = x + step, new_rows, new_counts
        if before - after < 2e-5 * before:
            break
    errors = np.sqrt(np.diag(np.linalg.inv(curvature.toarray())))
    return Fit(x, errors, design.names, memory)


def _scales(t: Table) -> Array:
    """Scale of each row's three residuals."""
    closed = t.protocol == "closed_loop"
    return np.array(
        [
            np.where(closed, SCALES["ttft_closed"], SCALES["ttft_static"]),
            np.where(closed, SCALES["itl_closed"], SCALES["itl_static"]),
            np.full(len(t), SCALES["rate"]),
        ]
    )


def _weighted(rows: Array, counts: Array, factor: Array) -> Array:
    """Residuals as iteratively reweighted least squares takes them: sqrt weight times error."""
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.abs(rows) / np.where(factor > 0, factor, 1.0)
    error = np.sign(rows) * TAIL * np.sqrt(np.expm1((size / TAIL) ** 2))
    return np.asarray((counts * error).ravel())


def _slopes(
    t: Table, design: Design, memory: Mapping[str, float], x: Array, counts: Array
) -> sparse.csr_array:
    """Derivatives of the weighted errors by the parameters.

    A row's error depends on a parameter only through the row's efficiencies: one derivative an
    efficiency, spread over the parameters that make it up.
    """
    step = 1e-4
    eff = design.efficiencies(x, memory)
    base = log_errors(t, eff)
    rows, columns, values = [], [], []
    number = np.arange(base.size).reshape(base.shape)
    for knob, places in design.places.items():
        moved = replace(eff, **{knob: getattr(eff, knob) * np.exp(step)})
        slope = np.nan_to_num((log_errors(t, moved) - base) / step) * counts / _scales(t)
        filled = slope != 0.0
        for ids in places:
            ids3 = np.broadcast_to(ids, slope.shape)
            keep = filled & (ids3 < len(x))
            rows.append(number[keep])
            columns.append(ids3[keep])
            values.append(slope[keep])
    place = (np.concatenate(rows), np.concatenate(columns))
    return sparse.csr_array((np.concatenate(values), place), shape=(base.size, len(x)))


def fit_memory(t: Table) -> dict[str, float]:
    """The efficiencies of memory that agree best with rows that state a peak."""
    prior = np.array([SPECS[k].prior for k in MEMORY])
    freedom = np.array([SPECS[k].freedom for k in MEMORY])
    told = t.take(np.flatnonzero(~np.isnan(t.memory_gib)))
    if not len(told):
        return dict(zip(MEMORY, prior.tolist(), strict=True))
    weight = np.sqrt(weights_of(told))

    def terms(x: Array) -> Array:
        error = np.log(peak_memory_gib(told, dict(zip(MEMORY, np.exp(x), strict=True))))
        error = (error - np.log(told.memory_gib)) / SCALES["memory"]
        robust = np.sign(error) * TAIL * np.sqrt(np.log1p((error / TAIL) ** 2))
        return np.concatenate([weight * robust, (x - np.log(prior)) / freedom])

    found = least_squares(terms, np.log(prior))
    return dict(zip(MEMORY, np.exp(found.x).tolist(), strict=True))
