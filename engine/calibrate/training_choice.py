"""Of the splits that a source published side by side: is the one predicted fastest its best?

A sweep is a set of published steps that differ in how they were split; the work of a step is
counted in tokens times parameters, so that batches and models of one table can stand side by side.
The loss is by how much the split predicted to be the fastest was slower than the best.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from engine.calibrate.training import Sample, family_of, fit, sample_of
from engine.calibrate.training_rows import Cells, Reading, number, read_all, stack_inputs
from engine.estimate.collectives import Array
from engine.estimate.training import step_time
from engine.estimate.training_calibration import shipped_calibration

SPLIT = ("tp", "pp", "vp", "dp", "cp", "ep", "zero_stage", "micro_batch")
OFFLOAD = re.compile(r"\s*\+\s*offload\w*", re.IGNORECASE)
_JOB = (
    "group", "model", "params_b", "layers", "hidden", "seq_len", "gpu", "gpus", "precision",
    "framework", "interconnect", "task",
)  # fmt: skip
# What splits must share to be compared: from the closest to the widest reading of "the same".
READINGS: Mapping[str, tuple[str, ...]] = {
    "same job, GPUs and global batch": (*_JOB, "global_batch_seqs"),
    "same job and GPUs": _JOB,
    "same model, GPU and count": ("model", "gpu", "gpus"),
    "same published table": ("group",),
}
FEWEST = 3  # splits of a sweep
CLOSE = 0.05  # loss of a good choice


def choice_losses(
    rows: Sequence[Cells], predicted_s: Mapping[int, float], measured_s: Mapping[int, float],
    same: Sequence[str],
) -> dict[str, list[float]]:  # fmt: skip
    """Losses of the choice, as fractions, by the source's group.

    predicted_s, measured_s : seconds of a step by the row's place among `rows`
    same : columns that the splits of a sweep share
    """
    sweeps: dict[tuple[str, ...], list[tuple[tuple[str, ...], float, float]]] = defaultdict(list)
    groups: dict[tuple[str, ...], str] = {}
    for i, predicted in predicted_s.items():
        cells = rows[i]
        work = _work(cells)
        if work <= 0:
            continue
        key = tuple(cells.get(column, "") for column in same)
        groups.setdefault(key, cells.get("group", ""))
        sweeps[key].append((_split(cells), predicted / work, measured_s[i] / work))
    found: dict[str, list[float]] = defaultdict(list)
    for key, members in sweeps.items():
        if len({split for split, _, _ in members}) >= FEWEST:
            told, took = (np.array([m[k] for m in members]) for k in (1, 2))
            found[groups[key]].append(float(took[told.argmin()] / took.min() - 1))
    return dict(found)


def _split(cells: Cells) -> tuple[str, ...]:
    """How a row is split; where its activations wait is no part of that."""
    again = OFFLOAD.sub("", cells.get("activation_recompute", ""))
    return (*(cells.get(column, "") for column in SPLIT), again.strip())


def _work(cells: Cells) -> float:
    """Parameters (in billions) times tokens of a step, for each GPU; 0 where not stated."""
    size = number(cells, "active_params_b") or number(cells, "params_b") or 0.0
    batch, seq = number(cells, "global_batch_seqs") or 0.0, number(cells, "seq_len") or 0.0
    gpus = number(cells, "gpus") or 0.0
    return size * batch * seq / gpus if gpus > 0 else 0.0


def shares(losses: Mapping[str, Sequence[float]]) -> tuple[float, int]:
    """Share of the sweeps in which the choice was good, and their number."""
    every = np.array([loss for part in losses.values() for loss in part])
    return float(np.mean(every <= CLOSE)) if len(every) else float("nan"), len(every)


def predictions(
    rows: Sequence[Cells], training: Sequence[Cells] | None = None
) -> tuple[dict[int, float], dict[int, float]]:
    """Predicted and measured seconds by the row's place.

    training : rows to fit to, for each family of sources without its own, as if it had never been
        published; None for the calibration that ships
    """
    readings = read_all(rows)
    kept = [i for i, r in enumerate(readings) if r.values is not None]
    measured = {i: readings[i].measured_s for i in kept}
    if training is None:
        shipped = shipped_calibration()
        told = _seconds([readings[i] for i in kept], shipped.parameters, shipped.offsets)
        return dict(zip(kept, told.tolist(), strict=True)), measured
    sample = sample_of(training)
    families: dict[str, list[int]] = defaultdict(list)
    for i in kept:
        families[family_of(rows[i].get("group", ""), readings[i].moe)].append(i)
    predicted: dict[int, float] = {}
    full = fit(sample)
    for family, places in families.items():
        rest: Sample = sample.take(np.flatnonzero(sample.families != family))
        fitted = fit(rest, full, 6)
        told = _seconds([readings[i] for i in places], fitted.parameters, fitted.levels)
        predicted |= dict(zip(places, told.tolist(), strict=True))
    return predicted, measured


def _seconds(
    readings: Sequence[Reading], parameters: Mapping[str, float], levels: Mapping[str, float]
) -> Array:
    inputs = stack_inputs(readings)
    inputs.offset = np.array([levels.get(r.source, 0.0) for r in readings])
    return step_time(inputs, parameters).total
