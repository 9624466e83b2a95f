"""Prefill and decoding apart: predicted steps of the decoding pool against published runs.

`python -m engine.calibrate.serving_apart ROWS.csv` reads the rows of the protocol
`closed_loop_disagg` (`tp` as `P1xTP1DP4/D4xTP8DP1`: prefill and decoding replicas, each with its
tensor and attention-data parallelism). They take no part in the fit. How many answers are under way
is counted by Little's law from what was measured: of N users those that are not waiting for their
first token, spread evenly over the decoding replicas.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.calibrate.serving_classes import (
    cache_of,
    engine_of,
    generation_of,
    kind_of,
    precision_of,
)
from engine.calibrate.serving_rows import Cells, number, read
from engine.estimate.serving import Plan, decode_seconds, efficiencies_of

PROTOCOL = "closed_loop_disagg"
LATENT = ("Kimi", "DeepSeek", "GLM")  # models of a compressed cache
LAYOUT = re.compile(r"P(\d+)xTP(\d+)DP(\d+)/D(\d+)xTP(\d+)DP(\d+)")


@dataclass(frozen=True, slots=True)
class Apart:
    """One run: seconds a token predicted and measured, answers under way in a decoding replica."""

    model: str
    gpu: str
    layout: str
    users: float
    batch: float
    predicted_s: float
    measured_s: float

    @property
    def off(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted_s / self.measured_s - 1.0


def runs(path: Path) -> Iterator[Apart]:
    """Every row with prefill and decoding apart that can be predicted.

    Raises
    ------
    OSError : the file can't be read
    """
    with path.open(encoding="utf-8", newline="") as file:
        for cells in csv.DictReader(file):
            found = _run(cells) if cells["protocol"] == PROTOCOL else None
            if found is not None:
                yield found


def _run(cells: Cells) -> Apart | None:
    layout = LAYOUT.fullmatch(str(cells["tp"]))
    if layout is None:
        return None
    replicas, tensor, data = (int(layout[i]) for i in (4, 5, 6))
    if not replicas or not int(layout[1]):
        return None
    # Model, hardware and precision are read as of any other row.
    r = read({**cells, "protocol": "closed_loop", "tp": "4", "n_gpus": "4"})
    step_s, first_s = number(cells, "itl_ms") / 1e3, number(cells, "ttft_ms") / 1e3
    if r.skipped or r.network is None or r.hardware is None or r.plan is None or not step_s > 0:
        return None
    bits, kv = float(r.plan.weight_bytes) * 8.0, float(r.plan.kv_bytes)
    latent = str(cells["model"]).startswith(LATENT)
    eff = efficiencies_of(
        generation_of(str(cells["gpu"])), engine_of(str(cells["engine"])), precision_of(bits),
        kind_of(latent, number(cells, "n_experts", 0.0)), cache_of(kv),
    )  # fmt: skip
    plan = Plan(float(tensor * data), 1.0, float(data > 1), bits / 8.0, kv)
    writing = (r.answer - 1.0) * step_s
    batch = max(r.users * writing / (writing + first_s) / replicas, 1.0)
    context = r.prompt + r.answer / 2.0
    # Users of a closed loop are always as many: no step is met longer than the others.
    told = float(decode_seconds(r.network, r.hardware, plan, eff, batch, context))
    return Apart(str(cells["model"]), str(cells["gpu"]), layout[0], r.users, batch, told, step_s)


def main(arguments: list[str] | None = None) -> int:
    """Print every run and the errors by model."""
    parser = argparse.ArgumentParser(description="decoding pools against published runs")
    parser.add_argument("rows", type=Path)
    found = list(runs(parser.parse_args(arguments).rows))
    for run in found:
        print(
            f"{run.model} on {run.gpu}, {run.layout}, {run.users:g} users, {run.batch:.0f} answers "
            f"a replica: {run.predicted_s * 1e3:.1f} ms against {run.measured_s * 1e3:.1f}, "
            f"{run.off:+.0%}"
        )
    for model in sorted({run.model for run in found}):
        off = np.abs([run.off for run in found if run.model == model])
        print(
            f"{model}: {len(off)} rows, median {np.median(off):.1%}, "
            f"90th percentile {np.quantile(off, 0.9):.1%}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
