"""Predicted against measured training steps and memory: the accuracy for all to see.

Reads any file with the columns of `measured_training.csv`; a row that states too little is
counted under its reason, a malformed one too.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.calibrate.backtest_memory import MemoryScore, did_not_fit, score_memory
from engine.calibrate.training_rows import Cells, Reading, read_all, stack_inputs
from engine.errors import ImportFileError
from engine.estimate.collectives import Array
from engine.estimate.memory_rows import KINDS
from engine.estimate.training import step_time
from engine.estimate.training_calibration import interval_factors, shipped_calibration

NEEDED = ("gpu", "layers", "hidden", "seq_len", "global_batch_seqs")


@dataclass(frozen=True, slots=True)
class Scored:
    """One predicted row; seconds of a step, or GiB."""

    row: int
    group: str
    moe: bool
    predicted: float
    measured: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """Absolute percentage error as a fraction."""
        return abs(self.predicted / self.measured - 1)


def backtest_training(path: str | Path) -> dict[str, Any]:
    """Figures of the accuracy on a file: `all`, `dense`, `moe` and `memory`.

    Memory also by how it is shared among GPUs (`by_kind`), and of the runs that did not fit how
    many would be said to (`did_not_fit`).

    Raises
    ------
    ImportFileError : when the file can't be read or lacks the columns
    """
    rows = rows_of(Path(path))
    readings = read_all(rows)
    scored = score_steps(rows, readings)
    result: dict[str, Any] = {}
    for name, moe in (("all", (False, True)), ("dense", (False,)), ("moe", (True,))):
        skipped = Counter(r.skipped for r in readings if r.values is None and r.moe in moe)
        result[name] = _figures([s for s in scored if s.moe in moe], skipped)
    memory, skipped_memory = score_memory(rows)
    kinds = {kind: _of([s for s in memory if s.kind == kind]) for kind in KINDS}
    result["memory"] = _figures(memory, skipped_memory) | {
        "by_kind": {kind: told for kind, told in kinds.items() if told["n"]},
        "did_not_fit": did_not_fit(rows),
    }
    return result


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a file.

    Raises
    ------
    ImportFileError : when it is no CSV with the columns needed
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            header = reader.fieldnames or []
            missing = [c for c in NEEDED if c not in header]
            if missing:
                raise ImportFileError(
                    f"has no column {missing[0]}", where=path.name,
                    right="the columns of measured_training.csv",
                )  # fmt: skip
            return [{k: v or "" for k, v in row.items() if k is not None} for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ImportFileError(
            f"is no readable CSV ({error})", where=path.name, right="UTF-8 with commas"
        ) from None
    except OSError as error:
        raise ImportFileError(
            f"can't be opened ({error.strerror})", where=path.name, right="a file that exists"
        ) from None


def score_steps(rows: Sequence[Cells], readings: Sequence[Reading]) -> list[Scored]:
    """Every row that can be predicted, with its 80% interval."""
    kept = [i for i, r in enumerate(readings) if r.values is not None]
    if not kept:
        return []
    calibration = shipped_calibration()
    inputs = stack_inputs([readings[i] for i in kept])
    inputs.offset = np.array([calibration.offsets.get(readings[i].source, 0.0) for i in kept])
    total = step_time(inputs, calibration.parameters).total
    found = []
    for i, seconds in zip(kept, total.tolist(), strict=True):
        r = readings[i]
        low, high = interval_factors(
            moe=r.moe, known=r.source in calibration.known, calibrated=r.calibrated
        )
        group = rows[i].get("group") or "not stated"
        found.append(
            Scored(i, group, r.moe, seconds, r.measured_s, seconds * low, seconds * high)
        )  # fmt: skip
    return found


def _figures(scored: Sequence[Scored | MemoryScore], skipped: Mapping[str, int]) -> dict[str, Any]:
    """n, skipped, median and 90th percentile of the errors, shares, and the same by group."""
    groups: dict[str, list[Scored | MemoryScore]] = {}
    for s in scored:
        groups.setdefault(s.group, []).append(s)
    told = _of(scored)
    by_group = {name: _of(part) for name, part in sorted(groups.items())}
    return {"n": told.pop("n"), "skipped": dict(skipped)} | told | {"by_group": by_group}


def _of(scored: Sequence[Scored | MemoryScore]) -> dict[str, Any]:
    errors = np.array([s.error for s in scored])
    inside = [s.low <= s.measured <= s.high for s in scored]
    return {
        "n": len(scored),
        "median_ape": _quantile(errors, 0.5),
        "p90_ape": _quantile(errors, 0.9),
        "within_20": float(np.mean(errors <= 0.2)) if len(errors) else None,
        "coverage_80": float(np.mean(inside)) if inside else None,
    }


def _quantile(errors: Array, q: float) -> float | None:
    return float(np.quantile(errors, q)) if len(errors) else None
