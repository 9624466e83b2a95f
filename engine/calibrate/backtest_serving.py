"""Predicted against measured serving: the accuracy for all to see.

Reads any file with the columns of `measured_serving.csv`; a row that states too little is
counted under its reason, a malformed one too. Predictions come from the shipped calibration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.calibrate.serving import FIGURES, QUANTITIES, residuals, shipped_fit
from engine.calibrate.serving_rows import Reading, Table, read_rows, table_of
from engine.estimate.queueing import Array
from engine.estimate.serving import shipped_calibration


def backtest_serving(path: str | Path) -> dict[str, Any]:
    """Figures of the accuracy on a file, by quantity: `itl`, `ttft_static`, `ttft_closed_loop`,
    `throughput`, `offline_max`, `peak_memory`.

    Each holds n, skipped rows by reason, median_ape and p90_ape (fractions), coverage_80 (share
    inside the 80% interval), and the same by source group.

    Raises
    ------
    ImportFileError : when the file can't be read or lacks the columns
    """
    readings = read_rows(Path(path))
    kept = [r for r in readings if not r.skipped]
    skipped = Counter(r.skipped for r in readings if r.skipped)
    if not kept:
        return {name: _figures(np.empty(0), np.empty(0), []) | {"skipped": dict(skipped)}
                for name, _ in FIGURES}  # fmt: skip
    t = table_of(kept)
    errors = residuals(t, shipped_fit())
    widths = half_widths(t)
    groups = [r.group or "not stated" for r in kept]
    result = {}
    for name, parts in FIGURES:
        error, width = np.full(len(t), np.nan), np.full(len(t), np.nan)
        for part in parts:
            told = np.isfinite(errors[part])
            error[told], width[told] = errors[part][told], widths[part][told]
        missing = Counter(skipped)
        missing.update(_why(r, name) for r, e in zip(kept, error, strict=True) if np.isnan(e))
        figures = _figures(error, width, groups)
        result[name] = {"n": figures.pop("n"), "skipped": dict(missing)} | figures
    return result


def half_widths(t: Table) -> dict[str, Array]:
    """Log half width of the 80% interval of every row, by quantity."""
    calibration = shipped_calibration()
    classes = list(zip(t.generation.tolist(), t.engine.tolist(), strict=True))
    return {
        name: np.array([calibration.half_width(name, g, e) for g, e in classes])
        for name in QUANTITIES
    }


def _why(reading: Reading, figure: str) -> str:
    """Why a row that can be predicted does not count for a figure."""
    closed = reading.protocol == "closed_loop"
    offline = "off" in reading.protocol
    protocols = {
        "ttft_static": not closed,
        "ttft_closed_loop": closed,
        "throughput": not offline,
        "offline_max": offline,
        "peak_memory": not offline,
    }
    if not protocols.get(figure, True):
        return f"protocol {reading.protocol} measures another figure"
    return "does not state this figure"


def _figures(error: Array, width: Array, groups: Sequence[str]) -> dict[str, Any]:
    names = np.array(groups, dtype=str)
    told = np.isfinite(error)
    by_group = {
        str(name): _of(error[told & (names == name)], width[told & (names == name)])
        for name in np.unique(names[told])
    }
    return _of(error[told], width[told]) | {"by_group": by_group}


def _of(error: Array, width: Array) -> dict[str, Any]:
    ape = np.abs(np.expm1(error))
    inside: NDArray[np.bool_] = np.abs(error) <= width
    return {
        "n": len(error),
        "median_ape": float(np.median(ape)) if len(ape) else None,
        "p90_ape": float(np.quantile(ape, 0.9)) if len(ape) else None,
        "coverage_80": float(np.mean(inside)) if len(inside) else None,
    }
