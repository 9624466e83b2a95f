"""Response of a queue whose answers vary in length: the wait and the item's own time together.

The item's time is a gamma of its mean and squared variation cs²; waits are Allen–Cunneen's: none
with probability 1 − C (Erlang C), else exponential with the mean (ca² + cs²)/2 / (c·µ − λ). The two
are independent, so that

    P(W + S > t) = (1 − C)·P(S > t) + C·P(E + S > t),

which is less than the slow wait and the slow item added up. Knows no hardware.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, gammainccinv

from engine.estimate.queueing import erlang_c

Array = NDArray[np.float64]
Real = float | Array
NODES = 12  # of the integral over the wait; twice as many move it by less than 1e-4
HALVINGS = 48


def slow_item(service_s: Real, service_cv2: float, percentile: float) -> Array:
    """Time that a share of items stays within [s]: a gamma's quantile, 1.94 means at 95%, cs² ¼."""
    if service_cv2 <= 0.0:
        return np.asarray(service_s, dtype=float) * 1.0
    k = 1.0 / service_cv2
    return np.asarray(np.asarray(service_s) * (gammainccinv(k, 1.0 - percentile) / k))


def late_share(
    t: Real, rate: Real, service_s: Real, servers: Real, *, arrival_cv2: Real = 1.0,
    service_cv2: float = 1.0,
) -> Array:  # fmt: skip
    """Share of requests whose wait and item together take longer than `t`; 1 where it overflows.

    rate : a second; servers : that work on one item each
    """
    t, lam, s, c, ca2 = np.broadcast_arrays(
        *(np.asarray(v, dtype=float) for v in (t, rate, service_s, servers, arrival_cv2))
    )
    spare = c / s - lam
    waits = np.asarray(erlang_c(c, np.minimum(lam * s, c * (1 - 1e-12))))
    longer = np.maximum((ca2 + service_cv2) / 2.0, 1e-9)
    decay = np.maximum(spare, 1e-12) / longer
    within = -np.expm1(-decay * t)  # probability that a wait ends before t
    # Only waits that end less than the longest item before t leave an item late.
    longest = slow_item(s, service_cv2, 1.0 - 1e-5)
    first = -np.expm1(-decay * np.maximum(t - longest, 0.0))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    share = np.zeros_like(t)
    for x, w in zip((nodes + 1.0) / 2.0, weights / 2.0, strict=True):
        ended = np.minimum(first + (within - first) * x, 1.0 - 1e-15)
        waited = -np.log1p(-ended) / decay
        share = share + w * _item_tail(np.maximum(t - waited, 0.0) / s, service_cv2)
    waiting = (1.0 - within) + (within - first) * share
    total = (1.0 - waits) * _item_tail(t / s, service_cv2) + waits * waiting
    return np.asarray(np.where(spare > 0.0, total, 1.0))


def response_percentile(
    rate: Real, service_s: Real, servers: Real, percentile: float, *, arrival_cv2: Real = 1.0,
    service_cv2: float = 1.0,
) -> Array:  # fmt: skip
    """Response that a share of requests stays within [s]; infinite where the queue overflows."""
    lam, s, c = np.broadcast_arrays(
        *(np.asarray(v, dtype=float) for v in (rate, service_s, servers))
    )
    spare = np.maximum(c / s - lam, 1e-12)
    late = 1.0 - percentile
    low = np.zeros_like(s)
    # Half of the lateness each: the two together are late less often than that.
    wait = np.log(2.0 / late) / spare * (np.asarray(arrival_cv2) + service_cv2) / 2.0
    high = wait + slow_item(s, service_cv2, 1.0 - late / 2.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        kept = (
            late_share(middle, lam, s, c, arrival_cv2=arrival_cv2, service_cv2=service_cv2) <= late
        )
        low, high = np.where(kept, low, middle), np.where(kept, middle, high)
    return np.asarray(np.where(c / s > lam, high, np.inf))


def _item_tail(times: Array, cv2: float) -> Array:
    """Share of items that take longer than so many means."""
    if cv2 <= 0.0:
        return np.asarray(times < 1.0, dtype=float)
    k = 1.0 / cv2
    if k != round(k) or k > 16:
        return np.asarray(gammaincc(k, k * times))
    # Erlang's distribution: e^-x · Σ x^i / i!, a tenth of the incomplete gamma's time.
    x = k * times
    term, total = np.ones_like(x), np.ones_like(x)
    for i in range(1, round(k)):
        term = term * x / i
        total = total + term
    return np.asarray(np.exp(-x) * total)
