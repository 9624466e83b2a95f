"""Scaling laws: how speed, and so cost, moves with the number of machines.

Pure formulae on floats or NumPy arrays alike; knows nothing of hardware or of prices by name.
Speed-ups and fractions are plain ratios, times may be in any one unit.

References
----------
[1] G. M. Amdahl, "Validity of the single processor approach", AFIPS 1967.
[2] J. L. Gustafson, "Reevaluating Amdahl's law", Comm. ACM 31(5), 1988.
[3] N. J. Gunther, "Guerrilla Capacity Planning", Springer 2007: the Universal Scalability Law.
[4] G. Blom, "Statistical Estimates and Transformed Beta-Variables", Wiley 1958.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares, nnls
from scipy.special import ndtri

from engine.errors import InputError
from engine.wording import number

Array = npt.NDArray[np.float64]
Real = float | Array


# --- Amdahl and Gustafson


def amdahl_speedup(p: Real, n: Real) -> Real:
    """Speed-up of a fixed amount of work on `n` machines [1].

    p : parallelizable fraction of the single-machine time, 0 to 1
    n : machines, or the speed-up of the parallel part, at least 1
    """
    _share("parallel_fraction", p)
    _positive("machines", n)
    return 1 / ((1 - p) + p / n)


def gustafson_speedup(p: Real, n: Real) -> Real:
    """Speed-up of work that grows with the machines, so that the parallel part fills them [2]."""
    _share("parallel_fraction", p)
    _positive("machines", n)
    return (1 - p) + p * n


def gpu_time_relative(p: Real, s: Real, io_share: Real = 0.0) -> Real:
    """Time on the GPU node when the CPU node needs 1: (1 − b)·((1 − p) + p/s) + b.

    p : parallelizable fraction of the time that isn't input and output
    s : speed-up of the parallel part on the GPU node
    io_share : b, share of the CPU time bound by input and output, which no GPU shortens
    """
    _share("parallel_fraction", p)
    _positive("speedup", s)
    _share("io_share", io_share)
    b = io_share
    return (1 - b) * ((1 - p) + p / s) + b


# --- where the GPU becomes the cheaper one


@dataclass(frozen=True, slots=True)
class Crossover:
    """From which parallelizable fraction on the GPU is the cheaper per unit of work.

    `fraction` is None when no fraction divides the two, and `verdict` says why.
    """

    fraction: float | None
    verdict: Literal["above", "below", "always", "never"]
    text: str


def crossover_fraction(price_ratio: Real, speedup: Real) -> Real:
    """Smallest p from which on the GPU is the cheaper: (1 − 1/r)/(1 − 1/s).

    It solves r·((1 − p) + p/s) = 1. The answer is 0 when the GPU is the cheaper at every p,
    and infinity when there is no p from which on it is: r ≥ s, or a speed-up of 1 or less.

    price_ratio : r, price per hour of the GPU node over that of the CPU node
    speedup : s, speed-up of the parallel part
    """
    _positive("price_ratio", price_ratio)
    _positive("speedup", speedup)
    r, s = np.asarray(price_ratio, float), np.asarray(speedup, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (1 - 1 / r) / (1 - 1 / s)
    # At p = 1 the GPU costs r/s, at p = 0 it costs r: cheaper at both means cheaper at all p.
    answer = np.where(s <= r, np.inf, np.where(r <= 1, 0.0, between))
    return _like(answer, price_ratio, speedup)


def crossover(price_ratio: float, speedup: float) -> Crossover:
    """The crossover in words, with every edge case answered plainly."""
    r, s = price_ratio, speedup
    p = float(crossover_fraction(r, s))
    if p == 0.0:
        why = f"the GPU costs {number(r)} times the CPU an hour and is never the slower"
        return Crossover(None, "always", f"The GPU is the cheaper at every fraction: {why}.")
    if np.isfinite(p):
        return Crossover(p, "above", f"The GPU is the cheaper above {p:.0%} parallelizable work.")
    if r < 1:  # cheap but slow: only the serial part gains
        p = (1 / r - 1) / (1 / s - 1)
        return Crossover(
            p, "below", f"The slow but cheap GPU is the cheaper below {p:.0%} parallelizable work."
        )
    why = (
        "it does not speed the work up"
        if s <= 1
        else f"it costs {number(r)} times as much and is at most {number(s)} times as fast"
    )
    return Crossover(None, "never", f"The GPU is never the cheaper: {why}.")


# --- the parallelizable fraction from two timings


@dataclass(frozen=True, slots=True)
class FractionFromTimings:
    """What two timings say of the parallelizable fraction.

    `fraction` is inside [0, 1] or None; `computed` is Amdahl's bare solution, even if outside.
    """

    fraction: float | None
    computed: float
    diagnosis: Literal["amdahl", "no_gain", "superlinear", "retrograde"]
    text: str


def parallel_fraction_from_timings(
    t1: float, n1: float, t2: float, n2: float, tolerance: float = 0.02
) -> FractionFromTimings:
    """Solve t₁/t₂ = ((1 − p) + p/n₁)/((1 − p) + p/n₂) for p, and say what the answer means.

    t1, t2 : times of the same work on n1 and n2 machines, in one unit
    tolerance : relative measurement error within which a point still counts as on the law
    """
    for name, value in (("t1", t1), ("n1", n1), ("t2", t2), ("n2", n2)):
        _positive(name, value)
    if n1 == n2:
        raise InputError(
            "both timings are from the same number of machines",
            where="n2",
            right="two different counts",
        )
    if n1 > n2:
        t1, n1, t2, n2 = t2, n2, t1, n1
    ratio = t1 / t2  # > 1 when more machines are faster
    denominator = (1 - 1 / n1) - ratio * (1 - 1 / n2)
    p = (1 - ratio) / denominator if denominator else float("inf")
    if ratio > n2 / n1 * (1 + tolerance):
        text = (
            f"{n2:g} machines are {number(ratio)} times as fast as {n1:g}, more than their number: "
            "the data fits the caches only when divided, or a timing is wrong."
        )
        return FractionFromTimings(None, p, "superlinear", text)
    if ratio < 1 - tolerance:
        text = (
            f"{n2:g} machines are slower than {n1:g}. No parallelizable fraction explains that; "
            "communication does. Fit the Universal Scalability Law with three or more points."
        )
        return FractionFromTimings(None, p, "retrograde", text)
    if ratio <= 1:
        return FractionFromTimings(0.0, p, "no_gain", "More machines do not make it faster.")
    fraction = min(p, 1.0) if ratio < n2 / n1 else 1.0
    return FractionFromTimings(fraction, p, "amdahl", f"{fraction:.1%} of the work is parallel.")


# --- the Universal Scalability Law


def usl_throughput(n: Real, lam: Real, sigma: Real, kappa: Real) -> Real:
    """Throughput of `n` machines: λn/(1 + σ(n − 1) + κn(n − 1)) [3].

    lam : λ, throughput of one machine
    sigma : σ, contention (waiting for what is shared)
    kappa : κ, coherency (each talks to each); only this makes more machines slower than fewer
    """
    _positive("machines", n)
    return lam * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def usl_peak_n(sigma: Real, kappa: Real) -> Real:
    """Machines at which throughput is largest: √((1 − σ)/κ); infinity without coherency."""
    with np.errstate(divide="ignore", invalid="ignore"):
        peak = np.sqrt(np.maximum(1 - np.asarray(sigma, float), 0.0) / np.asarray(kappa, float))
    peak = np.where(np.asarray(kappa) == 0, np.inf, np.maximum(peak, 1.0))
    return _like(peak, sigma, kappa)


def usl_coherency(speedup: Real, n: Real, sigma: Real = 0.0) -> Real:
    """The κ that explains a speed-up on `n` machines at a given contention.

    From 1 + σ(n − 1) + κn(n − 1) = n/speed-up.
    """
    _positive("speedup", speedup)
    _positive("machines", n)
    return (n / speedup - 1 - sigma * (n - 1)) / (n * (n - 1))


@dataclass(frozen=True, slots=True)
class UslFit:
    """The law fitted to measured points; `worst_error` is the largest relative miss."""

    lam: float
    sigma: float
    kappa: float
    peak_n: float
    worst_error: float


def fit_usl(ns: Sequence[float], throughputs: Sequence[float]) -> UslFit:
    """Fit λ, σ, κ ≥ 0 to three or more points by least squares of the relative error.

    In n/X the law is linear: 1/λ + (σ/λ)(n − 1) + (κ/λ)n(n − 1). That gives the starting point.
    """
    n, x = np.asarray(ns, float), np.asarray(throughputs, float)
    if n.shape != x.shape or n.ndim != 1:
        raise InputError(
            "counts and throughputs differ in number", where="throughputs", right="one per count"
        )
    if len(set(n.tolist())) < 3:
        raise InputError("too few points", where="ns", right="three different machine counts")
    _positive("ns", n)
    _positive("throughputs", x)

    columns = np.stack([np.ones_like(n), n - 1, n * (n - 1)], axis=1)
    weights = x / n  # so that each point's relative error counts alike
    (a, b, c), _ = nnls(columns * weights[:, None], np.ones_like(n))
    a = max(float(a), 1e-12)
    start = np.array([1 / a, b / a, c / a])

    def miss(theta: Array) -> Array:
        fitted = usl_throughput(n, theta[0], theta[1], theta[2])
        return np.asarray(np.log(fitted / x), float)

    fit = least_squares(
        miss, np.maximum(start, 1e-12), bounds=(0, np.inf), x_scale=np.maximum(start, 1e-3)
    )
    lam, sigma, kappa = (float(v) for v in fit.x)
    return UslFit(
        lam, sigma, kappa, float(usl_peak_n(sigma, kappa)), float(np.abs(np.expm1(fit.fun)).max())
    )


# --- stragglers


def straggler_slowdown(n: Real, spread: Real) -> Real:
    """Mean time of a synchronous step over that of a typical machine: 1 + spread·E[max of n].

    The step ends with its slowest machine. For normal step times E[max] is about
    Φ⁻¹((n − 3/8)/(n + 1/4)), 5% high at n = 2 and within 1% from 10 on [4]; its asymptote
    √(2 ln n) is 20% higher at n = 128.

    spread : standard deviation of the machines' step time over its mean
    """
    _positive("machines", n)
    _at_least("spread", spread, 0.0)
    expected_maximum = ndtri((np.asarray(n, float) - 0.375) / (np.asarray(n, float) + 0.25))
    return _like(1 + np.asarray(spread) * expected_maximum, n, spread)


def pace_of_slowest(step_times: Sequence[float]) -> tuple[float, float]:
    """Time of a synchronous step and the share of all machine time spent waiting.

    step_times : time of the same step on each machine alone, in one unit
    """
    times = np.asarray(step_times, float)
    _positive("step_times", times)
    slowest = float(times.max())
    return slowest, 1 - float(times.mean()) / slowest


# --- helpers


def _like(answer: npt.ArrayLike, *inputs: Real) -> Real:
    """A float when all inputs are floats, an array otherwise."""
    array = np.asarray(answer, float)
    return array if any(isinstance(x, np.ndarray) for x in inputs) else float(array)


def _at_least(name: str, value: Real, floor: float) -> None:
    array = np.asarray(value, float)
    if not (np.all(np.isfinite(array)) and np.all(array >= floor)):
        raise InputError(f"{value} can't be used", where=name, right=f"{floor:g} or more")


def _positive(name: str, value: Real) -> None:
    array = np.asarray(value, float)
    if not (np.all(np.isfinite(array)) and np.all(array > 0)):
        raise InputError(f"{value} can't be used", where=name, right="more than 0")


def _share(name: str, value: Real) -> None:
    array = np.asarray(value, float)
    if not (np.all(array >= 0) and np.all(array <= 1)):
        raise InputError(f"{value} can't be used", where=name, right="between 0 and 1")
