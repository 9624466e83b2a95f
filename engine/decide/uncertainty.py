"""How sure: the share of draws each candidate wins, regret, and the worth of open questions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.decide.evaluation import Context, Evaluation
from engine.decide.inputs import Inputs
from engine.decide.numbers import Array

BINS = 16


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Results over the draws, one entry a candidate."""

    probability_best: Array
    regret_points: Array
    usd_low: Array
    usd_high: Array
    time_low: Array
    time_high: Array


@dataclass(frozen=True, slots=True)
class Worth:
    """What knowing one input exactly would be worth."""

    name: str
    chance_it_changes: float
    points: float


def interval(draws: Array) -> tuple[float, float]:
    """10th and 90th percentile."""
    low, high = np.quantile(draws, (0.1, 0.9))
    return float(low), float(high)


def summarize(evaluations: list[Evaluation], ranked: Array, times: Array) -> Uncertainty:
    """Shares of draws won, expected regret in score points, and 80% intervals."""
    n = ranked.shape[1]
    won = np.bincount(ranked.argmax(axis=0), minlength=len(evaluations)) / n
    regret = (ranked.max(axis=0)[None, :] - ranked).mean(axis=1)
    usd = np.array([e.usd_per_month for e in evaluations])
    usd_low, usd_high = np.quantile(usd, (0.1, 0.9), axis=1)
    time_low, time_high = np.quantile(times, (0.1, 0.9), axis=1)
    return Uncertainty(won, regret, usd_low, usd_high, time_low, time_high)


def worth_of_knowing(
    name: str, x: Array, ranked: Array, chosen: int, group: list[tuple[str, ...]]
) -> Worth:
    """Expected gain of learning an input before choosing (EVPPI), by binning its draws.

    EVPPI = E over x of max over options E[value | x] − max over options E[value]
    (Strong, Oakley and Brennan 2014); `chance_it_changes` is the share of bins in which another
    kind of option (another entry of `group`) wins on average.
    """
    n = ranked.shape[1]
    order = np.argsort(x, kind="stable")
    size = n // BINS
    means = ranked[:, order[: size * BINS]].reshape(len(ranked), BINS, size).mean(axis=2)
    best = means.argmax(axis=0)
    gain = float(means.max(axis=0).mean() - ranked.mean(axis=1).max())
    changes = float(np.mean([group[b] != group[chosen] for b in best]))
    return Worth(name, changes, max(gain, 0.0))


def open_inputs(inputs: Inputs, ctx: Context) -> list[str]:
    """Inputs that the person could still tell: not answered, and not a named parameter."""
    return [
        name
        for name, r in inputs.ranges.items()
        if not r.answered
        and r.certainty == "unknown"
        and r.low < r.high
        and "." not in name
        and name not in ("contention", "rewrite_months", "patience_h", "current_units")
    ]
