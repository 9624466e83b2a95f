"""Fit the serving model to published runs, and say how far it is off on sources left out.

Run `python -m engine.calibrate.serving rows.csv`: every source group is left out once, the
residuals give the intervals, and all rows the values of `data/calibration_serving.csv`. With
`--dry-run` nothing is written; `--by model` or `--by gpu` leaves out these instead of groups.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.calibrate.serving_fit import Fit, fit, weights_of
from engine.calibrate.serving_knobs import FITTED, MEMORY, SPECS, design_of
from engine.calibrate.serving_protocols import peak_memory_gib, predict
from engine.calibrate.serving_rows import Table, read_rows, table_of
from engine.estimate.queueing import Array
from engine.estimate.serving import (
    CALIBRATION,
    GIB,
    Z80,
    efficiencies_of,
    shipped_calibration,
)

# Quantity of the backtest, by the protocol that measures it.
QUANTITIES = (
    "itl_static", "itl_closed", "ttft_static", "ttft_closed", "rate_static", "rate_closed",
    "offline", "memory",
)  # fmt: skip
# Figure of the backtest, and the quantities it is made up of.
FIGURES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("itl", ("itl_static", "itl_closed")),
    ("ttft_static", ("ttft_static",)),
    ("ttft_closed_loop", ("ttft_closed",)),
    ("throughput", ("rate_static", "rate_closed")),
    ("offline_max", ("offline",)),
    ("peak_memory", ("memory",)),
)
# Median and 90th percentile that each figure is to stay within on sources left out, set before the
# fit beside what the best public peers reach, 2 December 2026; and what an 80% interval is to hold.
GOALS = {
    "itl": (0.11, 0.35), "ttft_static": (0.15, 0.45), "ttft_closed_loop": (0.30, 0.70),
    "throughput": (0.09, 0.40), "offline_max": (0.18, 0.50), "peak_memory": (0.05, 0.11),
}  # fmt: skip
COVERAGE_GOAL = (0.75, 0.88)
SMALL = 0.02  # effects below 2% are not written
SHARE = 0.8  # of the rows that an interval is to hold
# Families of sources below which none of k ranks holds a share of 80% of further ones: the rank
# asked for, 0.8·(k + 1), is beyond k (conformal prediction over groups).
FEW_FAMILIES = math.ceil(SHARE / (1.0 - SHARE) - 1e-9)
HEADER = (
    "id", "value", "low", "high", "unit", "description", "source_groups", "as_of", "confidence",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Log of predicted over measured of rows whose family the fit had not seen, by quantity (NaN:
    not measured), whether it had seen their hardware and engine, or their hardware at least, and
    the fit without each family.
    """

    errors: dict[str, Array]
    known: NDArray[np.bool_]
    fitted: NDArray[np.bool_]
    fits: dict[str, Fit]


def residuals(t: Table, fitted: Fit) -> dict[str, Array]:
    """Log of predicted over measured by quantity; NaN where it is not measured."""
    with np.errstate(all="ignore"):
        p = predict(t, fitted.efficiencies(t))
        ttft, itl = np.log(p.ttft / t.ttft), np.log(p.itl / t.itl)
        rate = np.log(p.tokens_per_s / t.tokens_per_s)
        memory = np.log(peak_memory_gib(t, fitted.memory) / t.memory_gib)
    closed = t.protocol == "closed_loop"
    offline = np.char.find(t.protocol.astype(str), "off") >= 0
    parts = (
        (itl, ~closed), (itl, closed), (ttft, ~closed), (ttft, closed),
        (rate, ~closed & ~offline), (rate, closed), (rate, offline), (memory, ~offline),
    )  # fmt: skip
    return {
        name: np.where(rows & np.isfinite(error), error, np.nan)
        for name, (error, rows) in zip(QUANTITIES, parts, strict=True)
    }


def leave_out(t: Table, families: NDArray[np.str_], start: Fit) -> LeftOut:
    """Every family predicted by a fit without it."""
    errors = {name: np.full(len(t), np.nan) for name in QUANTITIES}
    known, fitted = np.zeros(len(t), dtype=bool), np.zeros(len(t), dtype=bool)
    fits = {}
    for family in sorted(set(families.tolist())):
        out = np.flatnonzero(families == family)
        seen, unseen = t.take(np.flatnonzero(families != family)), t.take(out)
        fits[family] = fit(seen, start=start, evaluations=30)
        for name, part in residuals(unseen, fits[family]).items():
            errors[name][out] = part
        fitted[out] = np.isin(unseen.generation, seen.generation)
        known[out] = fitted[out] & np.isin(unseen.engine, seen.engine)
    return LeftOut(errors, known, fitted, fits)


def half_width(errors: Array, weight: Array, share: float = SHARE) -> float:
    """Bound that a share of the absolute errors lies within, rows by their weight."""
    told = np.isfinite(errors) & (weight > 0)
    size = np.abs(errors[told])
    order = np.argsort(size)
    reached = np.cumsum(weight[told][order]) / np.sum(weight[told])
    return float(size[order][np.searchsorted(reached, share - 1e-12)])


def half_widths(
    errors: Array, known: NDArray[np.bool_], families: NDArray[np.str_], weight: Array
) -> tuple[float, float | None]:
    """Half width of the 80% interval where the fit knew the engine and generation, and where not.

    A quantile of rows that were left out, families by their weight. Fewer than four families say
    nothing of a fifth: then all rows of the quantity count, known or not. What is new is never
    given a narrower interval than what is known; None where no row was new.
    """
    told = np.isfinite(errors)
    few = len(set(families[told & known].tolist())) < FEW_FAMILIES
    width = half_width(errors, weight * (np.ones_like(known) if few else known))
    if not np.any(told & ~known):
        return width, None
    return width, max(half_width(errors, weight * ~known), width)


def all_half_widths(left: LeftOut, t: Table, weight: Array) -> dict[str, tuple[float, float]]:
    """Half widths by quantity, known and new.

    Where no row of a quantity was new, the known one is widened as it is for the others (median).
    """
    found = {
        name: half_widths(error, left.known, t.family, weight)
        for name, error in left.errors.items()
        if np.any(np.isfinite(error))
    }
    wider = [new / width for width, new in found.values() if new is not None]
    factor = float(np.median(wider)) if wider else 1.0
    return {k: (w, new if new is not None else w * factor) for k, (w, new) in found.items()}


def left_out_figures(left: LeftOut, t: Table, weight: Array) -> list[tuple[str, float, str]]:
    """Id, value and meaning of the figures of the accuracy on groups that were left out: rows,
    median and 90th percentile of the absolute errors, and the share of rows inside the interval.
    """
    found = []
    widths = all_half_widths(left, t, weight)
    for name, parts in FIGURES:
        told = [_told(left, name, p) for p in parts]
        errors = np.concatenate([left.errors[p][r] for p, r in zip(parts, told, strict=True)])
        wide = [
            np.where(left.known[rows], *widths[p])
            for p, rows in zip(parts, told, strict=True)
            if p in widths
        ]
        if not len(errors):
            continue
        ape = np.abs(np.expm1(errors))
        inside = np.mean(np.abs(errors) <= np.concatenate(wide))
        found += [
            (f"{name}_n", float(len(errors)), f"rows of {name}"),
            (f"{name}_median", float(np.median(ape)), f"median error of {name}"),
            (f"{name}_p90", float(np.quantile(ape, 0.9)), f"90th percentile of errors of {name}"),
            (f"{name}_coverage", float(inside), f"share of {name} inside the 80% interval"),
        ]
    fits = _said_to_fit(left, t)
    if len(fits):
        what = "share of runs that state a peak, all of which ran, that are said to fit"
        found.append(("peak_memory_fits", float(np.mean(fits)), what))
    return found


def _said_to_fit(left: LeftOut, t: Table) -> NDArray[np.bool_]:
    """Of rows that state their peak memory: whether what is predicted fits the GPU."""
    error = left.errors["memory"]
    told = np.isfinite(error)
    holds = np.broadcast_to(np.asarray(t.hardware.memory), error.shape) / GIB
    return np.asarray((np.exp(error) * t.memory_gib)[told] <= holds[told])


def shipped_fit() -> Fit:
    """The fit that `data/calibration_serving.csv` holds."""
    values = shipped_calibration().values
    names = (*FITTED, *(n for n in values if "." in n and n.split(".")[0] in FITTED))
    x = np.log(np.array([values[n] for n in names]))
    return Fit(x, np.zeros(len(x)), names, {k: values[k] for k in MEMORY})


def _jackknife(full: Fit, fits: Sequence[Fit]) -> dict[str, float]:
    """Standard error of the logarithm of every parameter, from fits without one family each."""
    found = {}
    for name, own, error in zip(full.names, full.x, full.errors, strict=True):
        moved = [dict(zip(f.names, f.x, strict=True)).get(name, 0.0) - own for f in fits]
        jack = float(np.sqrt(np.sum(np.square(moved)) * (len(fits) - 1) / len(fits)))
        # A family alone in its class takes the effect with it: that says nothing of its size.
        found[name] = max(error, min(jack, abs(own) + error))
    for name, value in full.memory.items():
        moved = [np.log(f.memory[name] / value) for f in fits]
        found[name] = float(np.sqrt(np.sum(np.square(moved)) * (len(fits) - 1) / len(fits)))
    return found


def _sources(t: Table, rows: NDArray[np.bool_]) -> str:
    """The largest groups among the rows, and how many more."""
    names, counts = np.unique(t.group[rows], return_counts=True)
    order = np.argsort(-counts)
    told = [str(n) for n in names[order][:3]]
    return "; ".join(told + ([f"{len(names) - 3} more"] if len(names) > 3 else []))


def write(path: Path, t: Table, full: Fit, left: LeftOut, today: str) -> None:
    """The calibration file: values, effects, rows by class, half widths of the intervals."""
    table: list[Sequence[object]] = [HEADER]
    errors = _jackknife(full, list(left.fits.values()))
    places = design_of(t, full.names).places

    def add(name: str, value: float, spread: float, unit: str, what: str, source: str,
            confidence: str) -> None:  # fmt: skip
        low, high = value * np.exp(-Z80 * spread), value * np.exp(Z80 * spread)
        cells = (f"{x:.6g}" for x in (value, low, high))
        table.append((name, *cells, unit, what, source, today, confidence))

    for i, name in enumerate(full.names):
        knob, _, effect = name.partition(".")
        if effect and abs(full.x[i]) < SMALL:
            continue
        rows = np.any(places[knob] == i, axis=0)
        spec = SPECS[knob]
        what = f"{spec.meaning}: {effect}" if effect else spec.meaning
        unit = "times" if effect else spec.unit
        groups = len(np.unique(t.group[rows]))
        sure = "high" if groups >= 8 else "medium" if groups >= 2 else "low"
        add(name, float(np.exp(full.x[i])), errors[name], unit, what, _sources(t, rows), sure)
    told = ~np.isnan(t.memory_gib)
    for name, value in full.memory.items():
        spec = SPECS[name]
        add(name, value, errors[name], spec.unit, spec.meaning, _sources(t, told), "medium")
    for kind, column in (("gpu", t.generation), ("engine", t.engine)):
        for value in sorted(set(column.tolist())):
            rows = column == value
            what = f"rows that were fitted: {value}"
            add(f"rows.{kind}.{value}", int(rows.sum()), 0, "rows", what, _sources(t, rows), "high")
    weight = weights_of(t)
    every = _sources(t, np.ones(len(t), dtype=bool))
    for name, (known, new) in all_half_widths(left, t, weight).items():
        what = f"half width of the 80% interval, groups left out: {name}"
        add(f"width.{name}", known, 0.15, "log", what, every, "medium")
        what = f"the same where the engine or the generation is new: {name}"
        add(f"width.new.{name}", new, 0.3, "log", what, every, "low")
    for id, value, what in left_out_figures(left, t, weight):
        unit = "rows" if id.endswith("_n") else "fraction"
        rested = _sources(t, _told_by(left, id))
        add(f"figure.{id}", value, 0, unit, f"groups left out: {what}", rested, "medium")
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(table)
    shipped_calibration.cache_clear()
    efficiencies_of.cache_clear()


def _told_by(left: LeftOut, id: str) -> NDArray[np.bool_]:
    """Rows that a figure rests on."""
    name = id.rpartition("_")[0]
    return np.asarray(np.any([_told(left, name, p) for p in dict(FIGURES)[name]], axis=0))


def _told(left: LeftOut, name: str, part: str) -> NDArray[np.bool_]:
    """Rows of a quantity that count for a figure: of throughput, of hardware that is fitted."""
    told = np.isfinite(left.errors[part])
    return told & left.fitted if name == "throughput" else told


def main(arguments: Sequence[str]) -> int:
    """Calibrate on a file of rows, print what was left out, and write the calibration."""
    parser = argparse.ArgumentParser(prog="python -m engine.calibrate.serving")
    parser.add_argument("file", type=Path)
    parser.add_argument("--by", choices=("family", "model", "gpu"), default="family")
    parser.add_argument("--dry-run", action="store_true")
    given = parser.parse_args(arguments)
    t = table_of([r for r in read_rows(given.file) if not r.skipped])
    full = fit(t)
    left = leave_out(t, getattr(t, given.by), full)
    print(f"left out by {given.by}: rows, median and 90th percentile of errors, of each class")
    for name, parts in FIGURES:
        errors = np.concatenate([left.errors[p] for p in parts])
        families = np.tile(getattr(t, given.by), len(parts))
        _tell(name, errors)
        for value in sorted(set(families[np.isfinite(errors)].tolist())):
            _tell(f"  {value}", errors[families == value])
    if not given.dry_run and given.by == "family":
        write(CALIBRATION, t, full, left, date.today().isoformat())
    return 0


def _tell(name: str, errors: Array) -> None:
    ape = np.abs(np.expm1(errors[np.isfinite(errors)]))
    if len(ape):
        told = f"{np.median(ape):7.1%} {np.quantile(ape, 0.9):7.1%}"
        print(f"{name:40s} {len(ape):5d} {told}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
