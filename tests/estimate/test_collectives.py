"""Collectives against volumes worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from engine.estimate import collectives as c


@pytest.mark.parametrize(("ranks", "volume"), [(1, 0.0), (2, 8.0), (8, 14.0)])
def test_a_ring_all_reduce_moves_two_n_minus_one_over_n(ranks: int, volume: float) -> None:
    # 2·(n − 1)/n of 8 bytes (Patarasuk and Yuan 2009).
    assert float(c.all_reduce_volume(8.0, ranks)) == pytest.approx(volume)


def test_a_gather_within_a_server_takes_the_fast_links() -> None:
    # 7/8 of 8 GB at 400 GB/s.
    seconds = c.gather_seconds(8e9, 8, 1, fast=400e9, domain=8, nic=50e9)
    assert float(seconds) == pytest.approx(0.0175)


def test_a_gather_over_two_servers_shares_their_eight_ports() -> None:
    # 15/16 of 8 GB through eight ports of 50 GB/s; the links inside need 17.5 ms only.
    seconds = c.gather_seconds(8e9, 16, 1, fast=400e9, domain=8, nic=50e9)
    assert float(seconds) == pytest.approx(0.01875)


def test_a_group_with_one_rank_a_server_has_one_port() -> None:
    # Eight apart: no neighbour inside the server; 1/2 of 8 GB through one port.
    seconds = c.gather_seconds(8e9, 2, 8, fast=400e9, domain=8, nic=50e9)
    assert float(seconds) == pytest.approx(0.08)


def test_tokens_for_several_experts_of_a_server_cross_once() -> None:
    # Two servers, eight experts each, every token to all of them: (2 − 1)·(1 − 2⁻ᵏ) crossings.
    seconds = c.all_to_all_seconds(1e9, 2, 16, 1, fast=1e15, domain=8, nic=50e9)
    assert float(seconds) == pytest.approx(0.75 * 1e9 / 50e9)


@pytest.mark.parametrize(
    ("count", "expected"), [(1, 0.0), (2, 0.5642), (10, 1.5388), (100, 2.5076)]
)
def test_the_slowest_of_many(count: int, expected: float) -> None:
    # Expected maxima of normal draws (Harter 1961); Blom's formula is within 5% of them.
    assert float(c.slowest_of(count)) == pytest.approx(expected, rel=0.05, abs=1e-9)


def test_overlap_lies_between_the_longer_and_the_sum() -> None:
    a, b = np.array([3.0, 3.0]), np.array([4.0, 0.0])
    assert c.overlapped(a, b, 2.0).tolist() == pytest.approx([5.0, 3.0])
    assert c.overlapped(a, b, 1.0).tolist() == pytest.approx([7.0, 3.0])
    assert c.overlapped(a, b, 60.0).tolist() == pytest.approx([4.0, 3.0], rel=1e-3)
