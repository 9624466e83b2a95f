"""Queues: how long requests wait before several servers, or before one that takes batches.

Every formula takes floats or NumPy arrays that broadcast, and returns floats for floats. A queue
with more work than its servers do has no steady state: its waits are infinite, which is a result
and not an error. Knows nothing of hardware or prices. Rates per second, times in seconds.
A language model's queue is in `serving_queue`.

References
----------
[1] A. K. Erlang 1917; L. Kleinrock, "Queueing systems", vol. 1, 1975, ch. 3: M/M/c.
[2] A. O. Allen, "Probability, statistics, and queueing theory", 1990: Allen–Cunneen, G/G/c.
[3] J. D. C. Little 1961: answers under way = rate times time in the system.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, gammaln, pdtrik

from engine.errors import InputError

Array = NDArray[np.float64]
Real = float | Array
# Most servers that `servers_for` looks for: more is no longer one pool.
MAX_SERVERS = 1_000_000


def check(
    name: str, value: Real, *, least: float = -math.inf, above: float = -math.inf,
    below: float = math.inf, whole: bool = False,
) -> Array:  # fmt: skip
    """The value as an array, if it is finite and within bounds.

    Raises
    ------
    InputError : with the field's name
    """
    if isinstance(value, (float, int)) and least <= value < below and value > above:
        x = np.asarray(float(value))  # most calls, at a tenth of the time
        if math.isfinite(value) and (not whole or value == math.floor(value)):
            return x
    try:
        x = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(
            f"{value!r} is no number", where=name, right="a number or an array of numbers"
        ) from None
    good = x.size > 0 and bool(np.all(np.isfinite(x)))
    if not good or np.any(x < least) or np.any(x <= above) or np.any(x >= below):
        bounds = [f"at least {least:g}"] if least > -math.inf else []
        bounds += [f"more than {above:g}"] if above > -math.inf else []
        bounds += [f"below {below:g}"] if below < math.inf else []
        right = " and ".join(bounds) or "a finite number"
        raise InputError(f"{value} can't be used", where=name, right=right)
    if whole and np.any(x != np.floor(x)):
        raise InputError(f"{value} can't be used", where=name, right="a whole number")
    return x


def told(x: Array) -> Real:
    """A float for an array without dimensions."""
    return float(x) if np.ndim(x) == 0 else x


# ---- servers that each take one request at a time ------------------------------------------------


def erlang_c(servers: Real, offered: Real) -> Real:
    """Share of requests that must wait before c servers [1]; 1 where the load is c or more.

    offered : rate times service time, in servers

    The sum of the Poisson terms up to c is the regularised gamma function Q(c + 1, a), so large
    pools cost no more than small ones and nothing overflows.

    Raises
    ------
    InputError : when a number is negative, not finite, or c is not whole
    """
    c, a = np.broadcast_arrays(
        check("servers", servers, least=1.0, whole=True), check("offered", offered, least=0.0)
    )
    stable = (a < c) & (a > 0.0)
    safe = np.where(stable, a, 0.5 * c)
    blocked = np.exp(c * np.log(safe) - safe - gammaln(c + 1.0)) / gammaincc(c + 1.0, safe)
    waits = blocked / (1.0 - safe / c * (1.0 - blocked))
    return told(np.where(stable, waits, np.where(a > 0.0, 1.0, 0.0)))


def mean_wait(
    rate: Real, service_s: Real, servers: Real, *, arrival_cv2: Real = 1.0, service_cv2: Real = 1.0
) -> Real:
    """Mean wait before c servers, seconds, by Allen–Cunneen [2]; exact for M/M/c and M/G/1.

    rate : requests per second; service_s : of one request on one server; arrival_cv2,
    service_cv2 : squared coefficients of variation, 1 of a Poisson stream or an exponential time

    Raises
    ------
    InputError : with the field's name
    """
    lam, c = check("rate", rate, least=0.0), check("servers", servers, least=1.0, whole=True)
    s = check("service_s", service_s, above=0.0)
    ca2 = check("arrival_cv2", arrival_cv2, least=0.0)
    cs2 = check("service_cv2", service_cv2, least=0.0)
    spare = c / s - lam
    waits = np.asarray(erlang_c(c, lam * s))
    with np.errstate(divide="ignore", invalid="ignore"):
        wait = np.where(spare > 0.0, waits / spare * (ca2 + cs2) / 2.0, np.inf)
    return told(wait)


def wait_percentile(
    rate: Real, service_s: Real, servers: Real, percentile: Real = 0.95, *,
    arrival_cv2: Real = 1.0, service_cv2: Real = 1.0,
) -> Real:  # fmt: skip
    """Wait that a share `percentile` of requests stays within, seconds.

    P(W > t) = C·exp(−(c·µ − λ)·t) in M/M/c [1]; other variabilities stretch t by
    (ca² + cs²)/2, so that the mean is Allen–Cunneen's.

    Raises
    ------
    InputError : with the field's name
    """
    lam, c = check("rate", rate, least=0.0), check("servers", servers, least=1.0, whole=True)
    s = check("service_s", service_s, above=0.0)
    p = check("percentile", percentile, above=0.0, below=1.0)
    ca2 = check("arrival_cv2", arrival_cv2, least=0.0)
    cs2 = check("service_cv2", service_cv2, least=0.0)
    spare = c / s - lam
    waits = np.asarray(erlang_c(c, lam * s))
    with np.errstate(divide="ignore", invalid="ignore"):
        longer = np.log(np.maximum(waits / (1.0 - p), 1.0)) / spare * (ca2 + cs2) / 2.0
        wait = np.where(spare > 0.0, longer, np.inf)
    return told(wait)


def servers_for(
    rate: float, service_s: float, *, wait_target_s: float, percentile: float | None = 0.95,
    arrival_cv2: float = 1.0, service_cv2: float = 1.0, max_load: float = 1.0,
) -> int:  # fmt: skip
    """Fewest servers whose wait stays within a target, at a percentile (None: in the mean).

    max_load : share of time that a server may be busy at most

    Raises
    ------
    InputError : with the field's name, or when more than a million servers would be needed
    """
    check("wait_target_s", wait_target_s, least=0.0)
    check("max_load", max_load, above=0.0, below=1.0 + 1e-12)
    lam = float(check("rate", rate, least=0.0))
    offered = lam * float(check("service_s", service_s, above=0.0))

    def good(c: int) -> bool:
        if offered > c * max_load or offered >= c:
            return False
        kinds = {"arrival_cv2": arrival_cv2, "service_cv2": service_cv2}
        if percentile is None:
            return float(mean_wait(lam, service_s, c, **kinds)) <= wait_target_s
        return float(wait_percentile(lam, service_s, c, percentile, **kinds)) <= wait_target_s

    low = max(math.ceil(offered / max_load) - 1, 0)
    if low >= MAX_SERVERS:
        raise InputError(
            f"{rate:g} requests/s of {service_s:g} s keep {offered:g} servers busy",
            where="rate", right=f"at most {MAX_SERVERS:,}",
        )  # fmt: skip
    step, high = 1, low + 1
    # A target of zero is never met exactly in the mean: at some point the wait is below a ns.
    while not good(high):
        low, step = high, step * 2
        high += step
        if high > 4 * MAX_SERVERS:
            raise InputError(
                f"{wait_target_s:g} s is not reached", where="wait_target_s", right="a longer wait"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


# ---- a server that takes batches -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Batching:
    """Of a batching server: mean requests a batch, share of time busy, mean wait and response."""

    batch: Real
    load: Real
    wait_s: Real
    response_s: Real


def bulk_service(
    rate: Real, fixed_s: Real, per_item_s: Real, max_batch: Real, *, delay_s: Real = 0.0
) -> Batching:
    """One server that takes what has gathered, up to `max_batch`, in fixed + per_item·b seconds.

    Under load a batch gathers during the service of the one before: b = λ·(s(b) + delay) [3],
    whence b = λ·(fixed + delay)/(1 − λ·per_item), at least 1 and at most the largest. Full
    batches queue like G/G/1 with arrivals of b requests each, regular to 1/b.

    delay_s : time that the first of a batch is held for others to join

    Raises
    ------
    InputError : with the field's name
    """
    lam = check("rate", rate, least=0.0)
    fixed = check("fixed_s", fixed_s, least=0.0)
    each = check("per_item_s", per_item_s, least=0.0)
    most = check("max_batch", max_batch, least=1.0)
    hold = check("delay_s", delay_s, least=0.0)
    if np.any(fixed + each <= 0.0):
        raise InputError("0 can't be used", where="fixed_s", right="a service time above zero")
    free = 1.0 - lam * each
    with np.errstate(divide="ignore", invalid="ignore"):
        gathered = np.where(free > 0.0, lam * (fixed + hold) / np.maximum(free, 1e-12), np.inf)
    batch = np.clip(gathered, 1.0, most)
    service = fixed + each * batch
    load = lam / batch * service
    with np.errstate(divide="ignore", invalid="ignore"):
        # Whoever comes while the server is busy waits for the rest of that service and joins the
        # next batch; more than one batch waits only when batches are full.
        rest = np.minimum(load, 1.0) * service / 2.0
        full = lam * (fixed + each * most) / most
        behind = np.where(full < 1.0, full**2 / (2.0 * most) / (1.0 - full) * service, np.inf)
    held = hold * np.where(batch < most, (batch + 1.0) / (2.0 * batch), 0.0)
    wait = np.where(lam > 0.0, rest + behind + held, hold)
    return Batching(told(batch), told(load), told(wait), told(wait + service))


# ---- replicas -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Replicas:
    """Replicas at the peak, those that are spare, all together, and the load of one at the peak."""

    needed: int
    spare: int
    total: int
    load: float


def plan_replicas(
    rate: float, requests_per_s: float, *, peak_to_mean: float = 1.0, interval_s: float = 0.0,
    spare: int = 1,
) -> Replicas:  # fmt: skip
    """Fewest replicas for a mean rate, each of which carries `requests_per_s` inside its targets.

    peak_to_mean : rate of the busiest hour over the mean; interval_s : seconds over which the
    rate is also taken at the 95th percentile of a Poisson count (0: not), which matters at low
    rates; spare : replicas that may fail or restart at the peak

    Raises
    ------
    InputError : with the field's name; when no rate is inside the targets; when more than a
        million replicas would be needed
    """
    mean = float(check("rate", rate, least=0.0))
    check("peak_to_mean", peak_to_mean, least=1.0)
    check("interval_s", interval_s, least=0.0)
    check("requests_per_s", requests_per_s, least=0.0)
    if spare < 0 or spare != int(spare):
        raise InputError(f"{spare} can't be used", where="spare", right="0 or more, whole")
    if requests_per_s <= 0.0:
        raise InputError(
            "one replica carries no request inside its targets", where="requests_per_s",
            right="a looser target, more memory or a smaller model",
        )  # fmt: skip
    peak = mean * peak_to_mean
    if interval_s > 0.0:
        peak = max(peak, math.ceil(float(pdtrik(0.95, peak * interval_s))) / interval_s)
    if peak / requests_per_s > MAX_SERVERS:
        raise InputError(
            f"{peak:g} requests/s need more than {MAX_SERVERS:,} replicas", where="rate",
            right=f"at most {MAX_SERVERS * requests_per_s:g}",
        )  # fmt: skip
    needed = max(math.ceil(peak / requests_per_s - 1e-9), 1 if mean > 0 else 0)
    total = needed + int(spare) if needed else 0
    return Replicas(needed, total - needed, total, peak / requests_per_s / max(needed, 1))
