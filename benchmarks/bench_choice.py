"""Of the splits that a source published for the same job on the same GPUs: is our first its best?

A sweep is one model on so many GPUs with the same code and sequence length, of which three or more
splits were measured. The split that is predicted to be the fastest per sequence is looked up among
the measured ones; the loss is by how much it was slower there than the best.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from engine.calibrate.backtest_training import rows_of, score_steps
from engine.calibrate.training_rows import read_all

NAME = "choice of the split among published ones (goal: within 5% of the best in 80% of sweeps)"
ROWS = Path(__file__).resolve().parents[1] / "data" / "measured_training.csv"
SPLIT = (
    "tp", "pp", "vp", "dp", "cp", "ep", "zero_stage", "micro_batch", "activation_recompute",
)  # fmt: skip
SAME = (
    "group", "model", "params_b", "layers", "hidden", "seq_len", "gpu", "gpus", "precision",
    "framework", "interconnect", "task",
)  # fmt: skip
FEWEST, CLOSE = 3, 0.05


def losses(batch_fixed: bool) -> dict[str, list[float]]:
    """By group of sources: how much slower our choice was than the best, for each sweep.

    batch_fixed : whether splits are compared at the same global batch only
    """
    rows = rows_of(ROWS)
    same = (*SAME, "global_batch_seqs") if batch_fixed else SAME
    sweeps: dict[tuple[str, ...], list[tuple[tuple[str, ...], float, float]]] = defaultdict(list)
    for scored in score_steps(rows, read_all(rows)):
        cells = rows[scored.row]
        sequences = float(cells.get("global_batch_seqs") or 0) or 1.0
        sweeps[tuple(cells.get(c, "") for c in same)].append(
            (
                tuple(cells.get(c, "") for c in SPLIT),
                scored.predicted / sequences,
                scored.measured / sequences,
            )
        )
    found: dict[str, list[float]] = defaultdict(list)
    for key, members in sweeps.items():
        if len({split for split, _, _ in members}) >= FEWEST:
            predicted, measured = (np.array([m[i] for m in members]) for i in (1, 2))
            found[key[0]].append(float(measured[predicted.argmin()] / measured.min() - 1))
    return found


def run() -> None:
    """Print the share of sweeps in which the choice is close to the best."""
    for fixed, said in ((False, "same job and GPUs"), (True, "and the same global batch")):
        by_group = losses(fixed)
        every = [loss for part in by_group.values() for loss in part]
        print(f"  {said}: {np.mean(np.array(every) <= CLOSE):.0%} of {len(every)} sweeps")
        for group, part in sorted(by_group.items()):
            share = np.mean(np.array(part) <= CLOSE)
            print(f"    {group:<24} {share:.0%} of {len(part)}, worst {max(part):.1%} slower")
