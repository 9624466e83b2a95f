"""The roofline: the rate that hardware reaches at an arithmetic intensity, and what limits it.

Pure formulae on floats or NumPy arrays alike; knows nothing of particular hardware.

References
----------
[1] S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model",
    Comm. ACM 52(4), 2009.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from engine.errors import InputError

Real = float | npt.NDArray[np.float64]


def attainable_flops(intensity: Real, peak: Real, bandwidth: Real) -> Real:
    """Rate that can be reached: min(peak, intensity × bandwidth) [1].

    intensity : FLOP per byte moved
    peak : FLOP per second
    bandwidth : bytes per second
    """
    if isinstance(intensity, float) and isinstance(peak, float) and isinstance(bandwidth, float):
        return min(peak, intensity * bandwidth)
    return np.asarray(np.minimum(peak, np.multiply(intensity, bandwidth)), float)


def ridge_point(peak: Real, bandwidth: Real) -> Real:
    """Intensity (FLOP per byte) from which on the hardware is limited by its arithmetic."""
    if np.any(np.asarray(bandwidth) <= 0):
        raise InputError("no memory bandwidth", where="bandwidth", right="more than 0")
    return peak / bandwidth


def time_shares(seconds: Mapping[str, float]) -> dict[str, float]:
    """Share of each resource in the whole time, in the order given; they sum to one.

    seconds : time that each resource is the one waited for, by its name
    """
    total = 0.0
    for name, value in seconds.items():
        if not np.isfinite(value) or value < 0:
            raise InputError(f"{value} can't be used", where=name, right="0 or more")
        total += value
    if total <= 0:
        raise InputError("no time is given", where="seconds", right="at least one above 0")
    return {name: value / total for name, value in seconds.items()}


def bottleneck(seconds: Mapping[str, float]) -> tuple[str, float]:
    """The resource with the largest share of the time, and that share; the first of equals."""
    shares = time_shares(seconds)
    name = max(shares, key=lambda resource: shares[resource])
    return name, shares[name]
