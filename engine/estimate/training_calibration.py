"""What the step model was fitted to: its parameters, the widths of its intervals, a user's steps.

Reads `data/calibration_training.csv`, which `engine/calibrate/training.py` writes. Knows neither
plans nor prices.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from engine.errors import DataError, InputError
from engine.estimate.collectives import Array
from engine.estimate.training import REFERENCE_YEAR, STACKS

CALIBRATION = Path(__file__).resolve().parents[2] / "data" / "calibration_training.csv"


@dataclass(frozen=True, slots=True)
class Calibration:
    """Fitted parameters, levels of known sources, widths of the intervals, with their source."""

    parameters: Mapping[str, float]
    offsets: Mapping[str, float]  # logs
    known: frozenset[str]  # sources whose level rests on a few rows at least
    widths: Mapping[str, float]
    figures: Mapping[str, float]
    newest_years: tuple[float, ...]  # of the software in the rows, by `STACKS`
    sources: tuple[str, ...]


@cache
def shipped_calibration(path: Path = CALIBRATION) -> Calibration:
    """The calibration file, checked.

    Raises
    ------
    DataError : when a value is no number
    """
    found: dict[str, dict[str, float]] = {"parameter": {}, "offset": {}, "width": {}, "figure": {}}
    known: set[str] = set()
    with path.open(encoding="utf-8", newline="") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            try:
                value = float(row["value"])
            except (TypeError, ValueError):
                raise DataError(
                    "is no number", file=path, line=line, column="value", right="a number"
                ) from None
            kind, _, name = row["id"].partition(".")
            found.setdefault(kind, {})[name] = value
            if kind == "offset" and row["confidence"] != "low":
                known.add(name)
    return Calibration(
        found["parameter"], found["offset"], frozenset(known), found["width"], found["figure"],
        tuple(found["figure"].get(f"newest_year_{s}", REFERENCE_YEAR) for s in STACKS),
        ("published training runs, fitted in data/calibration_training.csv",),
    )  # fmt: skip


def interval_half_width(*, moe: bool, known: bool, calibrated: bool) -> float:
    """Log half width of the 80% interval of a step time, from rows left out of the fit.

    known : whether the software's own level was measured; calibrated : whether the hardware has
    rows in the calibration
    """
    widths = shipped_calibration().widths
    half = widths[f"{'moe' if moe else 'dense'}_{'known' if known else 'unseen'}"]
    return half if calibrated else max(half, 0.1) * widths["uncalibrated_factor"]


def interval_factors(*, moe: bool, known: bool, calibrated: bool) -> tuple[float, float]:
    """Factors on the step time that bound its 80% interval."""
    half = interval_half_width(moe=moe, known=known, calibrated=calibrated)
    return float(np.exp(-half)), float(np.exp(half))


# --- the user's own measurement

WITHIN_STACK = 0.1  # log spread of the errors among runs of one stack, GPU and precision
BETWEEN_STACKS = 0.2  # of the levels of different stacks
# Farther off than the slowest published code (7 times, the first ZeRO-3), and faster than GPUs of
# which half of the peak is expected can be twice over: a slip of the units, or other GPUs, or a
# broken link.
FARTHEST_SLOWER, FARTHEST_FASTER = 10.0, 5.0


@dataclass(frozen=True, slots=True)
class Recalibration:
    """What a user's own steps say of the model: a factor on its times, and what is still open."""

    scale: float
    half_width: float  # log, of the 80% interval
    points: int


def trust(log_ratio: ArrayLike, points: int = 1) -> Array:
    """Share of a measured log ratio that is the stack's own: what is left is chance of the runs.

    A single step moves the model by four fifths of its error. One more than two spreads off shows
    that this stack is none of the usual: the spread is then half of what is seen.
    """
    between = np.maximum(np.abs(np.asarray(log_ratio, dtype=float)) / 2, BETWEEN_STACKS) ** 2
    return np.asarray(between / (between + WITHIN_STACK**2 / points))


def too_far(off: float) -> bool:
    """Whether a log ratio of measured to predicted times says that something else was timed."""
    return not -np.log(FARTHEST_FASTER) <= off <= np.log(FARTHEST_SLOWER)


def far_words(off: float) -> str:
    """A log ratio as "11 times as long as" or "1/11 of", for what follows."""
    times = float(np.exp(abs(off)))
    return f"{times:,.0f} times as long as" if off > 0 else f"1/{times:,.0f} of"


def recalibrate(predicted_s: ArrayLike, measured_s: ArrayLike) -> Recalibration:
    """The factor on the model's step times that measured steps of the same stack call for.

    The mean log ratio, drawn towards none by how much runs of one stack differ among themselves
    against how much stacks differ (`trust`).

    Raises
    ------
    InputError : when the times are not positive, not as many of one as of the other, or so far from
        the prediction that something else was timed
    """
    predicted = np.atleast_1d(np.asarray(predicted_s, dtype=float))
    measured = np.atleast_1d(np.asarray(measured_s, dtype=float))
    if predicted.shape != measured.shape or not len(measured):
        raise InputError(
            f"{len(measured)} times for {len(predicted)} plans", where="measured_s",
            right="one for each",
        )  # fmt: skip
    if not (
        np.isfinite(measured) & (measured > 0) & np.isfinite(predicted) & (predicted > 0)
    ).all():
        raise InputError("a time is not positive", where="measured_s", right="seconds of a step")
    n = len(measured)
    off = float(np.mean(np.log(measured / predicted)))
    if too_far(off):
        typical = float(np.exp(np.mean(np.log(predicted))))
        found = "; so slow a step is a fault to find before planning with it" if off > 0 else ""
        raise InputError(
            f"a step took {far_words(off)} the {typical:.3g} s expected of it",
            where="measured_s",
            right="seconds of all the steps together, their number, the GPUs that ran them and "
            f"the batch of one{found}",
        )  # fmt: skip
    scale = float(np.exp(trust(off, n) * off))
    # The next run errs by its own spread and by what the mean of n leaves open.
    width = shipped_calibration().widths["measured"] * np.sqrt((1 + 1 / n) / 2)
    return Recalibration(scale, float(width), n)
