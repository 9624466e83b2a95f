"""Learned correctors are judged on families that they have not seen."""

from __future__ import annotations

import numpy as np
import pytest

from engine.calibrate.serving_correctors import CORRECTORS, corrected

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(400, 3))
FAMILIES = np.array([f"source {i % 8}" for i in range(400)])
ONES = np.ones(400)


@pytest.mark.parametrize("name", CORRECTORS)
def test_what_all_families_share_is_learned(name: str) -> None:
    error = 0.5 * X[:, 0] + 0.3
    found = corrected(error, X, ONES, FAMILIES, CORRECTORS[name])
    assert np.median(np.abs(found)) < 0.4 * np.median(np.abs(error))


@pytest.mark.parametrize("name", CORRECTORS)
def test_what_is_a_family_s_own_is_not(name: str) -> None:
    """An error that only one family has can't be known from the others."""
    own = np.where(FAMILIES == "source 3", 1.0, 0.0)
    found = corrected(own, X, ONES, FAMILIES, CORRECTORS[name])
    assert found[FAMILIES == "source 3"] == pytest.approx(1.0)


def test_rows_that_are_not_measured_stay_so() -> None:
    error = np.where(np.arange(400) < 10, np.nan, 0.1)
    found = corrected(error, X, ONES, FAMILIES, CORRECTORS["linear"])
    assert np.isnan(found[:10]).all()
    assert np.isfinite(found[10:]).all()
    alone = corrected(error, X, ONES, np.full(400, "one"), CORRECTORS["linear"])
    assert alone[10:] == pytest.approx(0.1)
