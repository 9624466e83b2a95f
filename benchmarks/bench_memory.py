"""Memory of training: 100,000 plans of one job, by item, in one call.

Prints, beside the time, how far the published peaks are from the prediction.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path

import numpy as np

from engine.calibrate.backtest_memory import score_memory
from engine.estimate.memory import memory_of_plans
from engine.estimate.plan import TrainingPlan
from engine.estimate.shape_from_size import shape_from_size

NAME = "training memory: 100,000 plans by item (limit 500 ms)"
PLANS, LIMIT_MS = 100_000, 500.0
ROWS = Path(__file__).resolve().parents[1] / "data" / "measured_training.csv"


def once() -> float:
    """Milliseconds of one call."""
    draw = np.random.default_rng(1)
    powers = {name: 2.0 ** draw.integers(0, 4, PLANS) for name in ("tp", "pp", "cp", "micro_batch")}
    columns = powers | {
        "zero": draw.choice([1.0, 3.0], PLANS), "d": 2.0 ** draw.integers(0, 8, PLANS),
        "recompute": draw.choice([0.0, 1.0, 2.0], PLANS),
        "megatron": draw.choice([0.0, 1.0], PLANS), "micro_batches": np.full(PLANS, 32.0),
    }  # fmt: skip
    shape, plan = shape_from_size(70), TrainingPlan(gpus=1, seq_len=8192)
    start = time.perf_counter()
    memory_of_plans(shape, plan, **columns)
    return (time.perf_counter() - start) * 1000


def run(repeats: int = 5) -> float:
    """Median milliseconds; prints the errors on the published rows."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        scores, _ = score_memory(list(csv.DictReader(file)))
    for megatron, name in ((True, "Megatron-type"), (False, "other")):
        errors = [s.error for s in scores if s.megatron is megatron]
        print(f"  {name}: {len(errors)} rows, median error {np.median(errors):.1%}, "
              f"90th percentile {np.quantile(errors, 0.9):.1%}")  # fmt: skip
    return float(np.median([once() for _ in range(repeats)]))


if __name__ == "__main__":
    took = run()
    print(f"{NAME}: {took:.1f} ms")
    raise SystemExit(took > LIMIT_MS)
