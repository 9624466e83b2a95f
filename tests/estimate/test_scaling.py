"""Scaling laws against hand-worked values and published points."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.estimate.scaling import (
    amdahl_speedup,
    crossover,
    crossover_fraction,
    fit_usl,
    gpu_time_relative,
    gustafson_speedup,
    pace_of_slowest,
    parallel_fraction_from_timings,
    straggler_slowdown,
    usl_coherency,
    usl_peak_n,
    usl_throughput,
)


def test_amdahl_and_gustafson_by_hand() -> None:
    # 1/(0.3 + 0.7/50) = 1/0.314 = 3.185, the articles' 70% at a speed-up of 50
    assert amdahl_speedup(0.7, 50) == pytest.approx(3.185, abs=1e-3)
    # 0.3 + 0.7 x 50 = 35.3
    assert gustafson_speedup(0.7, 50) == pytest.approx(35.3)


def test_floats_give_floats_and_arrays_give_arrays() -> None:
    assert isinstance(crossover_fraction(3.0, 20.0), float)
    assert isinstance(straggler_slowdown(8, 0.01), float)
    p = np.linspace(0, 1, 5)
    assert np.shape(amdahl_speedup(p, 8)) == (5,)
    assert np.shape(crossover_fraction(np.array([2.0, 8.0]), 20.0)) == (2,)


@pytest.mark.parametrize(
    ("r", "s", "p"),
    [
        (8, 150, 0.8809),  # (7/8)/(149/150)
        (8, 20, 0.9211),  # 0.875/0.95
        (8, 5, math.inf),  # dearer than it is fast
        (3.2, 50, 0.7015),  # 0.6875/0.98: the articles' 70%
        (1, 20, 0.0),
        (0.5, 20, 0.0),
        (2, 1, math.inf),
        (2, 0.5, math.inf),
        (5, 5, math.inf),
        (0.4, 0.5, 0.0),
    ],
)
def test_crossover_fraction_with_its_edges(r: float, s: float, p: float) -> None:
    assert crossover_fraction(r, s) == pytest.approx(p, abs=1e-4)


def test_crossover_in_words() -> None:
    assert crossover(8, 5).verdict == "never"
    assert crossover(2, 1).verdict == "never"
    assert crossover(0.9, 4).verdict == "always"
    assert crossover(3.2, 50).verdict == "above"
    slow_and_cheap = crossover(0.5, 0.4)  # (2 - 1)/(2.5 - 1) = 0.667
    assert slow_and_cheap.verdict == "below"
    assert slow_and_cheap.fraction == pytest.approx(2 / 3)


@given(st.floats(1.01, 50), st.floats(1.01, 200))
def test_at_the_crossover_both_cost_the_same(r: float, s: float) -> None:
    p = float(crossover_fraction(r, s))
    if math.isfinite(p):
        assert r * float(gpu_time_relative(p, s)) == pytest.approx(1, rel=1e-9)
    else:
        assert r * float(gpu_time_relative(1.0, s)) >= 1 - 1e-12


def test_io_share_is_never_accelerated() -> None:
    # (1 - 0.4) x (0 + 1/50) + 0.4 = 0.412
    assert gpu_time_relative(1.0, 50, io_share=0.4) == pytest.approx(0.412)


@given(st.floats(0.01, 0.999), st.integers(1, 16), st.integers(17, 512))
def test_two_timings_give_back_the_fraction_that_made_them(p: float, n1: int, n2: int) -> None:
    t1, t2 = 1 / float(amdahl_speedup(p, n1)), 1 / float(amdahl_speedup(p, n2))
    found = parallel_fraction_from_timings(t1, n1, t2, n2)
    assert found.fraction == pytest.approx(p, abs=1e-9)
    assert parallel_fraction_from_timings(t2, n2, t1, n1).fraction == found.fraction


def test_timings_that_no_fraction_explains_are_named() -> None:
    # 14 h on 8 GPUs, 19 h on 32: slower with more
    retrograde = parallel_fraction_from_timings(14, 8, 19, 32)
    assert (retrograde.diagnosis, retrograde.fraction) == ("retrograde", None)
    superlinear = parallel_fraction_from_timings(10, 1, 1, 8)
    assert (superlinear.diagnosis, superlinear.fraction) == ("superlinear", None)
    assert parallel_fraction_from_timings(10, 1, 10, 8).fraction == 0.0
    assert parallel_fraction_from_timings(8, 1, 1, 8).fraction == 1.0


def test_coherency_explains_the_175b_slowdown() -> None:
    # in units of 8 GPUs: n = 4, speed-up 14/19 = 0.737; 4/0.737 = 5.43 = 1 + 3a + 12b;
    # b = 4.43/12 = 0.369 without contention, (4.43 - 1.5)/12 = 0.244 with a = 0.5
    assert usl_coherency(14 / 19, 4) == pytest.approx(0.369, abs=5e-4)
    assert usl_coherency(14 / 19, 4, sigma=0.5) == pytest.approx(0.244, abs=5e-4)
    assert usl_throughput(4, 1, 0.0, usl_coherency(14 / 19, 4)) == pytest.approx(14 / 19)


def test_peak_of_the_usl() -> None:
    # sqrt((1 - 0.1)/0.001) = 30
    assert usl_peak_n(0.1, 0.001) == pytest.approx(30)
    assert usl_peak_n(0.1, 0.0) == math.inf
    assert usl_peak_n(1.5, 0.1) == 1.0


@given(st.floats(0.5, 5000), st.floats(0.0, 0.3), st.floats(0.0, 0.05))
def test_fit_gives_back_the_law_that_made_the_points(lam: float, s: float, k: float) -> None:
    ns = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    fit = fit_usl(ns, [float(usl_throughput(n, lam, s, k)) for n in ns])
    assert fit.worst_error < 1e-3
    assert fit.lam == pytest.approx(lam, rel=5e-3)


def test_fit_survives_noise_and_refuses_two_points() -> None:
    rng = np.random.default_rng(1)
    ns = np.array([1, 2, 4, 8, 16, 32, 64], float)
    x = np.asarray(usl_throughput(ns, 100, 0.05, 0.0005)) * rng.lognormal(0, 0.03, 7)
    fit = fit_usl(ns.tolist(), x.tolist())
    assert 25 < fit.peak_n < 75
    with pytest.raises(InputError, match="ns"):
        fit_usl([1, 2], [10, 18])


def test_a_small_spread_costs_little() -> None:
    # 128 nodes, 0.3%: expected maximum 2.6 sigma, so 0.78%: not the 72% of the article
    assert straggler_slowdown(128, 0.003) == pytest.approx(1.0078, abs=1e-4)
    assert straggler_slowdown(1, 0.1) == pytest.approx(1.0)


@pytest.mark.parametrize(("n", "maximum"), [(2, 0.5642), (10, 1.5388), (100, 2.5076)])
def test_expected_maximum_agrees_with_the_tables(n: int, maximum: float) -> None:
    # David and Nagaraja, Order Statistics: expected maxima of standard normal samples
    assert float(straggler_slowdown(n, 1.0)) - 1 == pytest.approx(maximum, rel=0.05)


def test_mixed_generations_run_at_the_pace_of_the_slowest() -> None:
    # B200 at 1, A100 at 1.3: the B200 wait 0.3/1.3 = 23% of the step
    step, idle = pace_of_slowest([1.0, 1.3])
    assert step == 1.3
    assert 2 * idle == pytest.approx(0.3 / 1.3)


@pytest.mark.parametrize("n", [0, -1, math.nan])
def test_senseless_counts_are_refused_by_name(n: float) -> None:
    with pytest.raises(InputError, match="machines"):
        amdahl_speedup(0.5, n)
