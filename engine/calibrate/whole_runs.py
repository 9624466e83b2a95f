"""Predicted against published GPU hours of whole runs.

Each row of `data/published_runs.csv` is predicted as a user would: hardware, GPUs, software and
its age, and what is known of the split; the search chooses the rest. A run that states its split
is timed as it was run, whether or not the memory model would let it. Experiments count nothing:
published hours are those of the final run. Hours of a `run` hold its stops; hours of `steps` are a
time a step that its makers multiplied out, and are compared with a prediction without stops.

A row's confidence is high where hours, tokens, hardware, its count and the shape are published,
medium where one of these had to be taken, and `assumed` says what; none is fitted.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from engine.catalogue import load_catalogue
from engine.errors import DataError
from engine.estimate.estimate import Estimate
from engine.estimate.parallelism import FULL, NONE, SELECTIVE, Software, enumerate_plans
from engine.estimate.plan import Precision
from engine.estimate.search import timed_plans
from engine.estimate.search_results import Found, result_of
from engine.estimate.shape import ModelShape
from engine.estimate.training_hardware import HardwareChoice, hardware
from engine.estimate.training_job import Job, PlanResult

RUNS = Path(__file__).resolve().parents[2] / "data" / "published_runs.csv"
_RECOMPUTE = {"none": (NONE,), "selective": (SELECTIVE,), "full": (FULL,)}
_STATED = {"tp": "tp", "pp": "pp", "ep": "ep", "zero_stage": "zero", "micro_batch": "micro_batch"}
_STEPS, _RUN = "steps", "run"
_NO_STOPS = Estimate(1.0, 1.0, 1.0, "share", ("published_runs.csv",))
_LATENT_CACHE = 576  # elements a token and layer of DeepSeek's attention: 512 and 64


@dataclass(frozen=True, slots=True)
class RunCheck:
    """One published run beside its prediction [GPU hours]."""

    model: str
    predicted: Estimate
    published: float
    goodput: Estimate
    result: PlanResult
    assumed: str
    source: str

    @property
    def error(self) -> float:
        """Predicted over published, less one."""
        return self.predicted.likely / self.published - 1


def check_runs(path: Path = RUNS) -> tuple[RunCheck, ...]:
    """Every published run, predicted.

    Raises
    ------
    DataError : a number that is none, hardware that is not in the catalogue, a split that no
        plan has
    """
    found = []
    with path.open(encoding="utf-8", newline="") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            try:
                found.append(_check(row))
            except (KeyError, ValueError, TypeError) as error:
                raise DataError(
                    f"can't be predicted ({error})", file=path, line=line, column="model",
                    right="numbers, and ids of the catalogue",
                ) from error  # fmt: skip
    return tuple(found)


def figures(checks: Sequence[RunCheck]) -> dict[str, float]:
    """n, median error, share within 20% and share inside the 80% interval."""
    errors = np.abs([c.error for c in checks])
    inside = [c.predicted.low <= c.published <= c.predicted.high for c in checks]
    return {
        "n": float(len(checks)), "median_ape": float(np.median(errors)),
        "within_20": float(np.mean(errors <= 0.2)), "coverage_80": float(np.mean(inside)),
    }  # fmt: skip


def _check(row: Mapping[str, str]) -> RunCheck:
    catalogue = load_catalogue()
    choice = HardwareChoice(
        catalogue.accelerators[row["gpu"]], catalogue.networks[row["network"]],
        **_machine(row),
    )  # fmt: skip
    gpus = int(row["gpus"])
    job = Job(
        _shape(row), float(row["tokens_b"]) * 1e9, (choice,), seq_len=int(row["seq_len"]),
        batch_seqs=int(row["batch_seqs"]), gpus=(gpus, gpus), experiments=1.0,
        precision=cast(Precision, row["precision"]), software=cast(Software, row["software"]),
        software_year=float(row["software_year"]),
    )  # fmt: skip
    found = _as_it_was_run(job, row)
    result = result_of(found, int(np.argmin(found.days)))
    if row["hours_of"] not in (_STEPS, _RUN):
        raise ValueError(f"hours of {row['hours_of']!r}")
    goodput = result.goodput if row["hours_of"] == _RUN else _NO_STOPS
    return RunCheck(
        row["model"], result.gpu_hours if row["hours_of"] == _RUN else _of_steps(result),
        float(row["gpu_hours"]), goodput, result, row["assumed"], row["source"],
    )  # fmt: skip


def _machine(row: Mapping[str, str]) -> dict[str, Any]:
    """What sets the row's machines apart from the catalogue's: GPUs of one that are joined, and
    GB/s a direction between them."""
    told: dict[str, Any] = {}
    if row["gpus_per_node"]:
        told["gpus_per_node"] = told["domain_gpus"] = int(row["gpus_per_node"])
    if row["fast_gb_per_s"]:
        told["fast_gb_per_s"] = float(row["fast_gb_per_s"])
    return told


def _of_steps(result: PlanResult) -> Estimate:
    """GPU hours of the steps alone, as sure as the time of one."""
    step = result.step_s
    return step.scaled(result.ideal_gpu_hours / step.likely, "GPU hours")


def _as_it_was_run(job: Job, row: Mapping[str, str]) -> Found:
    """Plans with the split that the row states, and with the least recomputation that fits unless
    it states that too."""
    hws = hardware(job.choices[0], job.precision)
    plans = enumerate_plans(job.shape, hws[0], job.gpus[0], job.seq_len, job.batch_seqs, job.task)
    stated = np.ones(len(plans), dtype=bool)
    for column, name in _STATED.items():
        if row[column]:
            stated &= getattr(plans, name) == float(row[column])
    if not stated.any():
        raise ValueError("no plan has the split that it states")
    levels = _RECOMPUTE.get(row["recompute"], (NONE, SELECTIVE, FULL))
    return timed_plans(job, plans.take(stated), levels)


def _shape(row: Mapping[str, str]) -> ModelShape:
    def whole(name: str) -> int:
        return int(row[name] or 0)

    total = float(row["params_b"]) * 1e9
    active = float(row["active_params_b"] or row["params_b"]) * 1e9
    latent: dict[str, Any] = {}
    head_dim = whole("hidden") // whole("heads")
    if row["model"].startswith("DeepSeek-V"):
        latent = {"attention": "mla", "mla_cache_width": _LATENT_CACHE}
        head_dim = 192
    return ModelShape(
        name=row["model"], total_params=total, active_params=active,
        embedding_params=(2.0 - whole("tied")) * whole("vocab") * whole("hidden"),
        tied_embeddings=bool(whole("tied")), layers=whole("layers"),
        hidden=whole("hidden"), heads=whole("heads"), kv_heads=whole("kv_heads"),
        head_dim=head_dim, ffn=whole("ffn"), vocab=whole("vocab"),
        gated_mlp=row["gated_mlp"] == "1", experts=whole("experts"),
        experts_per_token=whole("top_k"), expert_ffn=whole("moe_ffn"),
        shared_experts=whole("shared_experts"), dense_layers=whole("dense_layers"), **latent,
    )  # fmt: skip


def main() -> int:
    """Print every run beside its prediction, and the figures."""
    checks = check_runs()
    for c in checks:
        print(
            f"{c.model:22s} {c.predicted.likely:12,.0f} {c.published:12,.0f} {c.error:+7.1%}  "
            f"goodput {c.goodput.likely:.2f}  MFU {c.result.mfu.likely:.2f}"
        )
    for name, value in figures(checks).items():
        print(f"{name:12s} {value:.3g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
