"""The additive score: weights times values, vetoes apart.

The contributions of a candidate sum to its score exactly; a vetoed candidate keeps its score for
display but is ranked after every allowed one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.decide.evaluation import Evaluation
from engine.decide.numbers import Array
from engine.workload.workload import Workload

# Larger than any difference of scores, which lie in [0, 1].
VETO_DROP = 2.0


def weights(workload: Workload) -> Array:
    """The six weights, summing to one."""
    raw = np.array(workload.weights, dtype=float)
    return np.asarray(raw / raw.sum())


def scores(value: Array, weight: Array) -> Array:
    """Scores, shape (candidates, draws); weights of shape (6,) or (draws, 6)."""
    if weight.ndim == 1:
        return np.asarray(np.einsum("ckn,k->cn", value, weight))
    return np.asarray(np.einsum("ckn,nk->cn", value, weight))


def ranking_scores(score: Array, evaluations: list[Evaluation]) -> Array:
    """Scores with vetoed candidates moved below all allowed ones."""
    barred = np.array([e.vetoed for e in evaluations])
    return np.asarray(score - VETO_DROP * barred)


def winners(ranked: Array) -> NDArray[np.intp]:
    """Index of the best candidate in each draw."""
    return np.asarray(ranked.argmax(axis=0))
