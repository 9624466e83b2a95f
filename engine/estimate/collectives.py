"""Seconds of collective operations on a real topology: a fast domain and NICs that leave it.

Sizes in bytes, bandwidth in bytes/s for one direction and one GPU, latency in seconds. Knows
nothing of models or plans. All arguments are floats or arrays that broadcast.

References
----------
[1] Patarasuk and Yuan 2009: a ring all-reduce moves 2·(n − 1)/n of the data through each rank,
    reduce-scatter and all-gather half of that each.
[2] nccl-tests, doc/PERFORMANCE.md: "bus bandwidth" is that volume over the time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Array = NDArray[np.float64]
Real = float | Array


def ring_share(ranks: Real) -> Array:
    """Share (n − 1)/n of the data that a rank sends in an all-gather or reduce-scatter [1]."""
    n = np.asarray(ranks, dtype=float)
    return np.asarray((n - 1.0) / n)


def all_reduce_volume(size: Real, ranks: Real) -> Array:
    """Bytes that each rank sends in a ring all-reduce of `size` bytes: 2·(n − 1)/n·size [1]."""
    return np.asarray(2.0 * ring_share(ranks) * np.asarray(size, dtype=float))


def ranks_in_domain(ranks: Real, stride: Real, domain: Real) -> Array:
    """Ranks of one group inside a fast domain when neighbours of the group are `stride` apart."""
    room = np.maximum(np.asarray(domain, dtype=float) / stride, 1.0)
    return np.asarray(np.minimum(ranks, room))


def gather_seconds(
    size: Real,
    ranks: Real,
    stride: Real,
    *,
    fast: Real,
    domain: Real,
    nic: Real,
) -> Array:
    """Seconds of an all-gather (or reduce-scatter) that leaves `size` bytes on every rank.

    Every GPU of a node talks at once, so its groups share the NICs: with g ranks of a group in
    the domain each NIC carries 1/g of the data. The slower of the two levels sets the time. An
    all-reduce takes twice as long.

    fast, nic : bandwidth of one GPU inside the domain and out of it [B/s]
    """
    n = np.asarray(ranks, dtype=float)
    held = np.asarray(size, dtype=float)
    near = ranks_in_domain(n, stride, domain)
    inside = held * ring_share(near) / fast
    outside = np.where(n > near, held * ring_share(n) / (near * nic), 0.0)
    return np.asarray(np.maximum(inside, outside))


def all_to_all_seconds(
    size: Real,
    copies: Real,
    ranks: Real,
    stride: Real,
    *,
    fast: Real,
    domain: Real,
    nic: Real,
) -> Array:
    """Seconds of sending `size` bytes to `copies` random ranks, as experts are reached.

    A piece crosses to another domain once, however many of its ranks want it, and is handed out
    there: of D domains it reaches (D − 1)·(1 − (1 − 1/D)^copies) others.
    """
    n = np.asarray(ranks, dtype=float)
    near = ranks_in_domain(n, stride, domain)
    domains = n / near
    others = (domains - 1.0) * (1.0 - (1.0 - 1.0 / domains) ** copies)
    handed = size * copies * (near - 1.0) / near / fast
    return np.asarray(np.maximum(handed, size * others / nic))


def slowest_of(count: Real) -> Array:
    """Expected maximum of `count` standard normal draws (Blom 1958); 0 for one.

    A synchronous step waits for the slowest machine.
    """
    n = np.maximum(np.asarray(count, dtype=float), 1.0)
    return np.asarray(ndtri((n - 0.375) / (n + 0.25)))


def overlapped(first: Real, second: Real, norm: float) -> Array:
    """Seconds of two activities that overlap in part: between their maximum and their sum."""
    a = np.maximum(np.asarray(first, dtype=float), 0.0)
    b = np.maximum(np.asarray(second, dtype=float), 0.0)
    top = np.maximum(np.maximum(a, b), 1e-15)
    return np.asarray(top * ((a / top) ** norm + (b / top) ** norm) ** (1.0 / norm))
