"""From a step to a run: goodput, what is tried beside it, and the GPU hours of all of it.

GPU hours of a run are its steps' time over goodput, times the experiments factor; each of the
three is an estimate of its own and is shown. Knows no plans and no prices.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from engine.errors import DataError, InputError
from engine.estimate.collectives import Array, Real
from engine.estimate.estimate import Estimate
from engine.estimate.reliability import fleet_mtbf, goodput, young_interval

DATA = Path(__file__).resolve().parents[2] / "data"
# The failure rate has its owner among the costs' numbers, the stall of a checkpoint among the
# decision's; here they are read, not kept.
_TABLES = {
    "training_parameters.csv": "", "cost_parameters.csv": "device_mtbf_gpu_hours",
    "decision_parameters.csv": "checkpoint_stall_h",
}  # fmt: skip
SOURCES = tuple(_TABLES)
ENDS = ("low", "likely", "high")


@cache
def run_parameters() -> Mapping[str, tuple[float, float, float]]:
    """Low, likely and high value of each parameter of a run, by id.

    Raises
    ------
    DataError : a value is no number
    """
    found: dict[str, tuple[float, float, float]] = {}
    for name, only in _TABLES.items():
        with (DATA / name).open(encoding="utf-8", newline="") as file:
            for line, row in enumerate(csv.DictReader(file), start=2):
                if only and row["id"] != only:
                    continue
                try:
                    low, likely, high = (float(row[end]) for end in ENDS)
                except (TypeError, ValueError):
                    raise DataError(
                        "is no number", file=name, line=line, column="likely", right="a number"
                    ) from None
                found[row["id"]] = (low, likely, high)
    return found


def restart_hours(gpus: Real, end: str = "likely") -> Array:
    """Hours from a failure to useful work: small fleets are restarted by hand, large ones by
    themselves, and between them the hours fall as a power of the fleet.

    end : `low`, `likely` or `high` hours
    """
    p, which = run_parameters(), ENDS.index(end)
    small, large = p["manual_restart_gpus"][1], p["automatic_restart_gpus"][1]
    n = np.maximum(np.asarray(gpus, dtype=float), 1.0)
    share = np.clip(np.log(n / small) / np.log(large / small), 0.0, 1.0)
    hours = p["restart_h_by_hand"][which] ** (1 - share) * p["restart_h_automatic"][which] ** share
    return np.asarray(hours)


def failure_goodput(
    gpus: Real, mtbf: str = "likely", save: str = "likely", restart: str = "likely"
) -> Array:
    """Share of the time of a synchronous job that failures, restarts and checkpoints leave.

    Checkpoints at Young's interval.

    mtbf, save, restart : the end of each parameter's range
    """
    p = run_parameters()
    each = fleet_mtbf(p["device_mtbf_gpu_hours"][ENDS.index(mtbf)], np.asarray(gpus, dtype=float))
    stall = p["checkpoint_stall_h"][ENDS.index(save)]
    hours = restart_hours(gpus, restart)
    return np.asarray(goodput(stall, young_interval(stall, each), each, hours))


def run_goodput(gpus: Real, end: str = "likely") -> Array:
    """Useful share of the calendar of a synchronous job on `gpus` GPUs.

    What failures and checkpoints leave, times what operations leave.

    end : `low`, `likely` or `high` goodput. The parameters err independently: what each moves
        alone adds in squares of logarithms; all at their worst at once is no 80% interval
    """
    operations = run_parameters()["operations_share"]
    kept = failure_goodput(gpus)
    useful = np.asarray(kept * operations[ENDS.index("likely")])
    if end == "likely":
        return useful
    costs = {"low": "high", "high": "low"}[end]
    alone = (
        failure_goodput(gpus, mtbf=end), failure_goodput(gpus, save=costs),
        failure_goodput(gpus, restart=costs),
    )  # fmt: skip
    moved = sum(np.log(one / kept) ** 2 for one in alone)
    moved = moved + np.log(operations[ENDS.index(end)] / operations[ENDS.index("likely")]) ** 2
    return np.asarray(useful * np.exp(np.sqrt(moved) * (1 if end == "high" else -1)))


def goodput_estimate(gpus: int) -> Estimate:
    """Goodput with its 80% interval."""
    low, likely, high = (float(run_goodput(float(gpus), end)) for end in ENDS)
    return Estimate(low, likely, high, "share", SOURCES)


def experiments_estimate(factor: float | None = None) -> Estimate:
    """GPU hours of everything over those of the run: the user's own figure, or the usual range.

    Raises
    ------
    InputError : for a factor below 1
    """
    if factor is None:
        low, likely, high = run_parameters()["experiments_factor"]
        return Estimate(low, likely, high, "times", ("training_parameters.csv",))
    if not 1 <= factor < float("inf"):
        raise InputError(f"{factor} times", where="experiments", right="1 or more")
    return Estimate(factor, factor, factor, "times", ("yours",))


@dataclass(frozen=True, slots=True)
class RunBudget:
    """GPU hours of a run, and every factor between a step and them.

    ideal_gpu_hours : every step as fast as predicted, nothing lost, nothing tried
    gpu_hours : all of it; run_hours : calendar of the final run alone
    """

    steps: float
    step_s: Estimate
    gpus: int
    goodput: Estimate
    experiments: Estimate
    ideal_gpu_hours: float
    gpu_hours: Estimate
    run_hours: Estimate


def run_budget(
    step: Estimate, *, tokens: float, tokens_per_step: float, gpus: int,
    goodput: Estimate | None = None, experiments: Estimate | None = None,
) -> RunBudget:  # fmt: skip
    """GPU hours of a run: step time over goodput, times what is tried beside the run itself.

    step : seconds of a step
    goodput : useful share of the time; None for the usual one of this many GPUs
    experiments : None for the usual range

    Raises
    ------
    InputError : when a number makes no sense
    """
    checks = {
        "tokens": 0 < tokens < float("inf"), "tokens_per_step": tokens_per_step > 0,
        "gpus": gpus >= 1,
    }  # fmt: skip
    for name, good in checks.items():
        if not good:
            raise InputError("can't be used", where=name, right="a positive number")
    useful = goodput or goodput_estimate(gpus)
    if not 0 < useful.low <= useful.high <= 1:
        raise InputError(
            f"goodput of {useful.likely}", where="goodput", right="above 0 and at most 1"
        )
    tried = experiments or experiments_estimate()
    steps = tokens / tokens_per_step
    ideal = steps * step.likely / 3600
    run = _product(ideal / useful.likely, "h", _inverse(useful), step)
    everything = _product(
        ideal * gpus / useful.likely * tried.likely, "GPU h", _inverse(useful), step, tried
    )
    return RunBudget(steps, step, gpus, useful, tried, ideal * gpus, everything, run)


def _inverse(of: Estimate) -> Estimate:
    return Estimate(1 / of.high, 1 / of.likely, 1 / of.low, of.unit, of.sources)


def _product(value: float, unit: str, *factors: Estimate) -> Estimate:
    """A product whose factors err independently: their log widths add in squares, side by side."""
    down = np.sqrt(sum(np.log(f.likely / f.low) ** 2 for f in factors))
    up = np.sqrt(sum(np.log(f.high / f.likely) ** 2 for f in factors))
    sources = tuple(dict.fromkeys(s for f in factors for s in f.sources))
    return Estimate(float(value * np.exp(-down)), value, float(value * np.exp(up)), unit, sources)
