"""Would a learned corrector of the serving model gain on sources that it has not seen?

Run `python -m engine.calibrate.serving_correctors rows.csv`: the errors on families of sources that
were left out are learned from the other families' and taken off. A corrector is used only where it
gains in the median and at the 90th percentile; none does, so none is shipped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.calibrate.serving import FIGURES, LeftOut, leave_out
from engine.calibrate.serving_fit import fit, weights_of
from engine.calibrate.serving_rows import Table, read_rows, table_of
from engine.estimate.queueing import Array

RIDGE = 10.0  # rows' worth of holding every coefficient at none
NEAREST = 15
# Features and errors of rows to learn from with their weight, features of rows to correct.
Corrector = Callable[[Array, Array, Array, Array], Array]


def features_of(t: Table) -> Array:
    """What a row is asked: users, lengths, layout, network, hardware; standardised logarithms."""
    net, hw, plan = t.network, t.hardware, t.plan
    asked = (
        t.users, t.prompt, t.answer, plan.tp, net.stored, net.experts, plan.weight_bytes,
        net.cache_width, hw.peak, hw.bandwidth,
    )  # fmt: skip
    columns = [np.broadcast_to(np.asarray(x, dtype=float), (len(t),)) for x in asked]
    logs = np.log(np.maximum(np.nan_to_num(np.column_stack(columns), nan=1.0), 1e-3))
    return np.asarray((logs - logs.mean(axis=0)) / np.maximum(logs.std(axis=0), 1e-9))


def linear(x: Array, error: Array, weight: Array, asked: Array) -> Array:
    """Ridge regression on the features."""

    def with_one(rows: Array) -> Array:
        return np.column_stack([np.ones(len(rows)), rows])

    a = with_one(x)
    held = a.T @ (a * weight[:, None]) + RIDGE * np.eye(a.shape[1])
    return np.asarray(with_one(asked) @ np.linalg.solve(held, a.T @ (weight * error)))


def quadratic(x: Array, error: Array, weight: Array, asked: Array) -> Array:
    """The same with all products of two features."""
    i, j = np.triu_indices(x.shape[1])

    def wide(rows: Array) -> Array:
        return np.column_stack([rows, rows[:, i] * rows[:, j]])

    return linear(wide(x), error, weight, wide(asked))


def nearest(x: Array, error: Array, weight: Array, asked: Array) -> Array:
    """The weighted mean error of the rows that are asked most alike."""
    k = min(NEAREST, len(x))
    found = np.empty(len(asked))
    for row, each in enumerate(asked):
        near = np.argpartition(((x - each) ** 2).sum(axis=1), k - 1)[:k]
        found[row] = np.average(error[near], weights=weight[near])
    return found


CORRECTORS: dict[str, Corrector] = {"linear": linear, "quadratic": quadratic, "nearest": nearest}


def corrected(
    error: Array, x: Array, weight: Array, families: NDArray[np.str_], corrector: Corrector
) -> Array:
    """Errors less what the other families' errors say of them; NaN where not measured."""
    told = np.isfinite(error)
    found = np.full(len(error), np.nan)
    for family in sorted(set(families[told].tolist())):
        out, seen = told & (families == family), told & (families != family)
        learned = corrector(x[seen], error[seen], weight[seen], x[out]) if seen.any() else 0.0
        found[out] = error[out] - learned
    return found


def compare(left: LeftOut, t: Table) -> dict[str, dict[str, tuple[float, float]]]:
    """Median and 90th percentile of errors by figure: as they are, and with each corrector."""
    x, weight = features_of(t), weights_of(t)
    result: dict[str, dict[str, tuple[float, float]]] = {}
    for name, parts in FIGURES:
        result[name] = {"none": _figures([left.errors[p] for p in parts])}
        for word, corrector in CORRECTORS.items():
            result[name][word] = _figures(
                [corrected(left.errors[p], x, weight, t.family, corrector) for p in parts]
            )
    return result


def _figures(errors: Sequence[Array]) -> tuple[float, float]:
    every = np.concatenate(errors)
    ape = np.abs(np.expm1(every[np.isfinite(every)]))
    return float(np.median(ape)), float(np.quantile(ape, 0.9))


def main(arguments: Sequence[str]) -> int:
    """Print the errors with and without each corrector, families left out."""
    parser = argparse.ArgumentParser(prog="python -m engine.calibrate.serving_correctors")
    parser.add_argument("file", type=Path)
    t = table_of([r for r in read_rows(parser.parse_args(arguments).file) if not r.skipped])
    for name, told in compare(leave_out(t, t.family, fit(t)), t).items():
        words = ", ".join(f"{k} {median:.1%} {p90:.1%}" for k, (median, p90) in told.items())
        gains = [
            k for k, (median, p90) in told.items()
            if median < told["none"][0] and p90 < told["none"][1]
        ]  # fmt: skip
        print(f"{name:18s} {words}; gains: {', '.join(gains) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
