"""Predicted against measured, for all to see: every row with its source, and what was left out.

Two kinds of figures stand side by side and must not be confused. The points are predicted by the
shipped calibration, which has seen those very rows: they show where it is weak. How well it does on
what it has not seen is told by the left-out figures of the calibration files, for which each source
was predicted by a fit without it. Nothing is fitted here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from engine.calibrate.backtest_memory import score_memory
from engine.calibrate.backtest_serving import half_widths
from engine.calibrate.backtest_training import rows_of, score_steps
from engine.calibrate.serving import COVERAGE_GOAL, FIGURES, GOALS, residuals, shipped_fit
from engine.calibrate.serving_rows import read_rows, table_of
from engine.calibrate.training_rows import read_all
from engine.calibrate.whole_runs import check_runs
from engine.catalogue.read import rows as catalogue_rows
from engine.estimate.calibration_table import (
    Fitted,
    calibration_table,
    serving_calibration,
    training_calibration,
)
from engine.estimate.reliability import Array
from engine.estimate.serving import shipped_calibration

DATA = Path(__file__).resolve().parents[2] / "data"
TRAINING_ROWS = DATA / "measured_training.csv"
SERVING_ROWS = DATA / "measured_serving.csv"
HALF, MOST = "half of the runs within", "eight of ten within"
SEEN = "The calibration has seen these rows, so the points flatter it: the table does not."
FEW = 5  # rows from which a source's figures say something


@dataclass(frozen=True, slots=True)
class Point:
    """One measured row: what was measured, what is predicted, and which source says so."""

    measured: float
    predicted: float
    low: float
    high: float
    what: str
    hardware: str
    group: str
    kind: str
    source: int

    @property
    def error(self) -> float:
        """Absolute error as a share of the measured value."""
        return abs(self.predicted / self.measured - 1)

    @property
    def inside(self) -> bool:
        """Whether the measured value lies in the stated 80% interval."""
        return self.low <= self.measured <= self.high


@dataclass(frozen=True, slots=True)
class Figures:
    """How far off: n rows, median and 90th percentile of the error, share within 20%, coverage."""

    n: int
    median: float
    p90: float
    within_20: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Quantity:
    """One quantity: its rows, its figures over all and by group, and those of rows left out.

    left_out : what it says, the share, the rows it rests on
    meaning : what the quantity decides; seen : what part its rows had in the fit
    """

    id: str
    title: str
    unit: str
    points: tuple[Point, ...]
    sources: tuple[str, ...]
    figures: Figures
    groups: tuple[tuple[str, Figures], ...]
    left_out: tuple[LeftOut, ...]
    meaning: str
    seen: str

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of rows, in order."""
        return tuple(dict.fromkeys(sorted(p.kind for p in self.points)))

    @property
    def weakest(self) -> tuple[tuple[str, Figures], ...]:
        """The groups with the largest median error, those with too few rows left aside."""
        told = [g for g in self.groups if g[1].n >= FEW]
        return tuple(sorted(told, key=lambda g: -g[1].median)[:3])


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A figure of rows that the fit had not seen: of which rows, what it says, the share.

    of : which rows; says : what the share is; low, high : equal where it is one figure
    source : the rows it rests on
    """

    of: str
    says: str
    low: float
    high: float
    source: str

    @property
    def is_range(self) -> bool:
        """Whether it is an interval around the prediction, and not one figure."""
        return self.low != self.high


@dataclass(frozen=True, slots=True)
class Aim:
    """A figure of serving on sources that the fit had not seen, beside its goal; shares.

    n : rows left out; coverage : share of them inside the stated 80% range; meets, covers : whether
    errors and range are as they are to be; source : the rows it rests on
    """

    title: str
    n: int
    goal_median: float
    goal_p90: float
    median: float
    p90: float
    coverage: float
    source: str

    @property
    def meets(self) -> bool:
        """Whether half and nine of ten are within the goal."""
        return self.median <= self.goal_median and self.p90 <= self.goal_p90

    @property
    def covers(self) -> bool:
        """Whether the range holds about what it says, not far less and not far more."""
        return COVERAGE_GOAL[0] <= self.coverage <= COVERAGE_GOAL[1]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """All quantities, training first, serving's figures beside their goals, where it is weak."""

    training: tuple[Quantity, ...]
    serving: tuple[Quantity, ...]
    aims: tuple[Aim, ...]
    weak: tuple[str, ...]


@lru_cache(maxsize=1)
def accuracy() -> Accuracy:
    """Every shipped measurement predicted by the shipped calibration; about two seconds, once."""
    training = (_steps(), _memory(), _runs())
    return Accuracy(
        tuple(q for q in training if q.points),
        tuple(q for q in _serving() if q.points),
        _aims(),
        _weak(),
    )


# --- training


def _steps() -> Quantity:
    rows = rows_of(TRAINING_ROWS)
    scored = score_steps(rows, read_all(rows))
    sources = _Sources()
    points = tuple(
        Point(
            s.measured, s.predicted, s.low, s.high, _training_row(rows[s.row]),
            _training_hardware(rows[s.row]), s.group,
            "Mixture of experts" if s.moe else "Dense", sources.of(rows[s.row]),
        )
        for s in scored
    )  # fmt: skip
    c = training_calibration()
    left = (
        _figure(c, "figure.dense_median", "Dense models", HALF),
        _figure(c, "figure.moe_median", "Mixtures of experts", HALF),
        _figure(c, "figure.family_median", "All sources", "median of their medians"),
        _figure(c, "figure.row_p90", "All runs", "nine of ten within"),
        _width(c, "width.dense_known", "Dense, known software", MOST),
        _width(c, "width.dense_unseen", "Dense, new software", MOST),
        _width(c, "width.moe_known", "Mixtures of experts", MOST),
        _width(c, "width.measured", "With your own step", MOST),
    )
    return _quantity(
        "steps", "Time of a training step", "s", points, sources, left,
        "Days and dollars of a training run are this time, times the steps. A run that the app "
        "puts at 30 days takes between 25 and 36 when it is 20% off.",
    )  # fmt: skip


def _memory() -> Quantity:
    rows = rows_of(TRAINING_ROWS)
    scored, _ = score_memory(rows)
    sources = _Sources()
    points = tuple(
        Point(
            s.measured, s.predicted, s.low, s.high, _training_row(rows[s.row]),
            _training_hardware(rows[s.row]), s.group,
            "Megatron-type" if s.megatron else "Other stacks", sources.of(rows[s.row]),
        )
        for s in scored
    )  # fmt: skip
    return _quantity(
        "memory", "Peak memory of a GPU in training", "GiB", points, sources, _memory_left_out(),
        "It decides whether a plan fits. The plan keeps a reserve for what the range leaves open, "
        "so that it never says “fits” of a run that would not.",
    )  # fmt: skip


def _memory_left_out() -> tuple[LeftOut, ...]:
    table = calibration_table(DATA / "calibration_memory.csv")
    low, high = table.get("interval_low"), table.get("interval_high")
    if low is None or high is None:
        return ()
    return (
        LeftOut("All runs", MOST, low.value - 1, high.value - 1, low.source),
    )  # fmt: skip


def _runs() -> Quantity:
    sources = _Sources()
    points = []
    for c in check_runs():
        assumed = f", assumed: {c.assumed}" if c.assumed else ""
        hardware = f"{c.result.plan.gpus:,} × {c.result.choice.accelerator.name}"
        points.append(
            Point(c.published, c.predicted.likely, c.predicted.low, c.predicted.high,
                  c.model + assumed, hardware, c.model.split(" ")[0],
                  "Part of the run assumed" if assumed else "The whole run stated",
                  sources.of({"source": c.source}))
        )  # fmt: skip
    return _quantity(
        "runs", "GPU-hours of a whole training run", "GPU-hours", tuple(points), sources, (),
        "What a run costs in the end: steps, failures, restarts, evaluations and stops. Each run "
        "is predicted as you would ask for it: hardware, software and its age, and what its makers "
        "state of the split; the search chooses the rest.",
        "Hours of whole runs took no part in the fit of the steps. The share of time that goes to "
        "evaluations and stops was judged from runs of this kind, which flatters a little.",
    )  # fmt: skip


def _training_row(row: Mapping[str, str]) -> str:
    parts = [row.get("model", ""), f"batch {row['global_batch_seqs']} × {row['seq_len']}",
             row.get("precision", ""), row.get("framework", "")]  # fmt: skip
    return ", ".join(part for part in parts if part)


def _training_hardware(row: Mapping[str, str]) -> str:
    return f"{row.get('gpus') or '?'} × {row.get('gpu', '')}"


# --- serving

# Of the calibration's quantities: id, title, unit, factor of the measured value, protocols.
SERVED = (
    ("itl_closed", "Time for each token, under load", "ms", 1e3,
     "What a reader waits for between two tokens while others are served too."),
    ("ttft_closed", "Time to the first token, under load", "ms", 1e3,
     "What a reader waits for before anything appears: the prompt, and those ahead in the queue. "
     "Queues magnify every error, so this is the hardest to foresee."),
    ("rate_static", "Throughput of full batches", "tokens/s", 1.0,
     "How much one replica does. Machines and dollars of a service follow from it."),
    ("offline", "Throughput offline", "tokens/s", 1.0,
     "How much a machine does when no one waits: the nightly run over a pile of documents."),
)  # fmt: skip


def _serving() -> list[Quantity]:
    read = read_rows(SERVING_ROWS)
    pairs = zip(read, (cells for _, cells in catalogue_rows(SERVING_ROWS)), strict=True)
    kept = [(reading, row) for reading, row in pairs if not reading.skipped]
    table = table_of([reading for reading, _ in kept])
    errors, widths = residuals(table, shipped_fit()), half_widths(table)
    truth: dict[str, Array] = {
        "itl_closed": table.itl, "ttft_closed": table.ttft, "rate_static": table.tokens_per_s,
        "offline": table.tokens_per_s,
    }  # fmt: skip
    calibration = serving_calibration()
    found = []
    for name, title, unit, factor, meaning in SERVED:
        sources = _Sources()
        points = []
        for i in np.flatnonzero(np.isfinite(errors[name])):
            reading, row = kept[i]
            measured = float(truth[name][i]) * factor
            predicted = measured * float(np.exp(errors[name][i]))
            wide = float(np.exp(widths[name][i]))
            points.append(
                Point(measured, predicted, predicted / wide, predicted * wide, _serving_row(row),
                      f"{row.get('n_gpus', '?')} × {row.get('gpu', '')}", reading.group,
                      _engine(row), sources.of(row))
            )  # fmt: skip
        left = (
            _width(calibration, f"width.{name}", "Known engine, GPU", MOST),
            _width(calibration, f"width.new.{name}", "New engine", MOST),
            _unmeasured(calibration, name),
        )
        found.append(_quantity(name, title, unit, tuple(points), sources, left, meaning))
    return found


AIMED = {
    "itl": "Time for each token",
    "ttft_static": "Time to the first token, alone or in a full batch",
    "ttft_closed_loop": "Time to the first token, under load",
    "throughput": "Throughput, generations of GPUs that are fitted",
    "offline_max": "Throughput offline",
    "peak_memory": "Peak memory of a GPU",
}  # titles of the calibration's figures


def _aims() -> tuple[Aim, ...]:
    table = serving_calibration()
    found = []
    for name, _ in FIGURES:
        n, median, p90, inside = (
            table[f"figure.{name}_{part}"] for part in ("n", "median", "p90", "coverage")
        )
        found.append(
            Aim(AIMED[name], round(n.value), *GOALS[name], median.value, p90.value, inside.value,
                median.source)
        )  # fmt: skip
    return tuple(found)


def _serving_row(row: Mapping[str, str]) -> str:
    load = f"{row.get('concurrency_or_batch', '?')} at once"
    lengths = f"{row.get('input_tokens', '?')} in, {row.get('output_tokens', '?')} out"
    return ", ".join((row.get("model", ""), load, lengths, row.get("weight_dtype", "")))


def _engine(row: Mapping[str, str]) -> str:
    name = row.get("engine", "").split(" ")[0].lower()
    for begin, word in (("vllm", "vLLM"), ("trt", "TensorRT-LLM"), ("tensorrt", "TensorRT-LLM"),
                        ("sglang", "SGLang"), ("deepspeed", "DeepSpeed"),
                        ("mlperf", "MLPerf entry")):  # fmt: skip
        if name.startswith(begin):
            return word
    return "Other"


# --- figures


class _Sources:
    """Sources by number, so that a picture carries each text once."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def of(self, row: Mapping[str, str]) -> int:
        """The number of a row's source."""
        said = row.get("source") or row.get("source_group", "")
        text = f"{said} · {row.get('url', '')}" if row.get("url") else said
        return self.texts.setdefault(text, len(self.texts))


def _quantity(
    id: str, title: str, unit: str, points: tuple[Point, ...], sources: _Sources,
    left: tuple[LeftOut, ...], meaning: str, seen: str = SEEN,
) -> Quantity:  # fmt: skip
    groups: dict[str, list[Point]] = {}
    for p in points:
        groups.setdefault(p.group, []).append(p)
    by_group = tuple((name, _figures(part)) for name, part in sorted(groups.items()))
    return Quantity(
        id, title, unit, points, tuple(sources.texts), _figures(points), by_group, left, meaning,
        seen,
    )  # fmt: skip


def _figures(points: Sequence[Point]) -> Figures:
    if not points:
        return Figures(0, 0.0, 0.0, 0.0, 0.0)
    errors = np.array([p.error for p in points])
    return Figures(
        len(points), float(np.median(errors)), float(np.quantile(errors, 0.9)),
        float(np.mean(errors <= 0.2)), float(np.mean([p.inside for p in points])),
    )  # fmt: skip


def _figure(table: Mapping[str, Fitted], id: str, of: str, says: str) -> LeftOut:
    row = table[id]
    return LeftOut(of, says, row.value, row.value, row.source)


def _width(table: Mapping[str, Fitted], id: str, of: str, says: str) -> LeftOut:
    """A log half width as shares below and above the prediction."""
    row = table[id]
    return LeftOut(of, says, float(np.expm1(-row.value)), float(np.expm1(row.value)), row.source)


def _unmeasured(table: Mapping[str, Fitted], name: str) -> LeftOut:
    """The range that hardware without measurements is given, at least threefold."""
    wide = shipped_calibration().half_width(name, "other")
    told = "GPU without measurements", "the range that is stated"
    return LeftOut(*told, math.expm1(-wide), math.expm1(wide), table[f"width.{name}"].source)


# --- where it is weak

THIN_ROWS = 50  # rows of a generation or engine below which it counts as thinly measured


def _weak() -> tuple[str, ...]:
    """What the measurements do not cover, so that a figure there is a guess with a wide range."""
    training, serving = training_calibration(), serving_calibration()
    wider = training["width.uncalibrated_factor"].value
    thin = [
        f"{row.description.rpartition(': ')[2]} ({row.value:.0f} rows)"
        for id, row in serving.items()
        if id.startswith("rows.gpu.") and row.value < THIN_ROWS
    ]
    return (
        f"Training on hardware without measurements (consumer GPUs, most of AMD): the "
        f"range is made {wider:g} times as wide, and the answer says so.",
        "Training over Ethernet below 100 Gb/s: no published row states a step time; the network "
        "figures there follow from the physics alone.",
        "Adapters on one GPU (QLoRA), context parallelism above 8, reinforcement learning after "
        "training: few rows or none.",
        "Software moves the result by tens of percent within a year. Rows of 2021 and of 2026 lie "
        "in one picture; the age of the software is an input.",
        f"Serving on {', '.join(thin)}: hardly measured, so the range is that of a new GPU.",
        "The time to the first token of a loaded service depends on who arrives when: it is off "
        "more than anything else here.",
        "One measurement of your own is worth more than all of these: a measured step narrows the "
        f"range of the same stack to {training['width.measured'].value:.0%}.",
    )
