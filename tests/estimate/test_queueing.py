"""Queues against results known in closed form, against simulation, and at their edges."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.estimate.queueing import (
    bulk_service,
    erlang_c,
    mean_wait,
    plan_replicas,
    servers_for,
    wait_percentile,
)


def test_erlang_c_known_values() -> None:
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)
    assert erlang_c(1, 0.7) == pytest.approx(0.7)  # one server: the share of time it is busy
    assert erlang_c(3, 2.0) == pytest.approx(4 / 9)
    assert erlang_c(5, 0.0) == 0.0
    assert erlang_c(4, 4.0) == 1.0


def test_erlang_c_by_its_sum() -> None:
    for c, a in ((7, 5.5), (40, 33.0), (120, 100.0)):
        terms = [a**k / math.factorial(k) for k in range(c)]
        last = a**c / math.factorial(c) * c / (c - a)
        assert erlang_c(c, a) == pytest.approx(last / (sum(terms) + last), rel=1e-9)


def test_large_pools_do_not_overflow() -> None:
    assert 0.0 < float(erlang_c(100_000, 99_900.0)) < 1.0


def test_one_server() -> None:
    assert mean_wait(0.8, 1.0, 1) == pytest.approx(0.8 / 0.2)  # M/M/1: ρ/(µ − λ)
    assert mean_wait(0.8, 1.0, 1, service_cv2=0.0) == pytest.approx(2.0)  # M/D/1: half of it
    assert wait_percentile(0.8, 1.0, 1, 0.95) == pytest.approx(math.log(0.8 / 0.05) / 0.2)
    assert wait_percentile(0.01, 1.0, 1, 0.95) == 0.0  # most wait not at all


def test_overload_waits_for_ever() -> None:
    assert math.isinf(float(mean_wait(2.0, 1.0, 2)))
    assert math.isinf(float(wait_percentile(3.0, 1.0, 2)))
    found = np.asarray(mean_wait(np.array([0.5, 2.5]), 1.0, 2))
    assert math.isfinite(found[0])
    assert math.isinf(found[1])


@given(
    c=st.integers(1, 200), load=st.floats(0.05, 0.97), s=st.floats(1e-3, 10.0),
    cv2=st.floats(0.0, 4.0),
)  # fmt: skip
def test_more_servers_wait_less(c: int, load: float, s: float, cv2: float) -> None:
    rate = load * c / s
    few = float(mean_wait(rate, s, c, service_cv2=cv2))
    more = float(mean_wait(rate, s, c + 1, service_cv2=cv2))
    assert 0.0 <= more <= few
    assert 0.0 <= float(erlang_c(c, load * c)) <= load + 1e-9 or c == 1


@given(rate=st.floats(0.01, 5_000.0), s=st.floats(1e-3, 5.0), target=st.floats(1e-4, 10.0))
def test_servers_for_is_the_fewest(rate: float, s: float, target: float) -> None:
    c = servers_for(rate, s, wait_target_s=target)
    assert float(wait_percentile(rate, s, c, 0.95)) <= target
    if c > 1:
        assert float(wait_percentile(rate, s, c - 1, 0.95)) > target


def test_servers_for_keeps_to_a_load() -> None:
    assert servers_for(100.0, 0.1, wait_target_s=60.0, max_load=0.5) == 20


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("rate", lambda: mean_wait(-1.0, 1.0, 1)),
        ("rate", lambda: mean_wait(math.nan, 1.0, 1)),
        ("service_s", lambda: mean_wait(1.0, 0.0, 1)),
        ("servers", lambda: erlang_c(1.5, 1.0)),
        ("servers", lambda: erlang_c(0, 1.0)),
        ("offered", lambda: erlang_c(2, math.inf)),
        ("percentile", lambda: wait_percentile(1.0, 1.0, 2, 1.0)),
        ("wait_target_s", lambda: servers_for(1.0, 1.0, wait_target_s=-1.0)),
        ("rate", lambda: servers_for(1e9, 1.0, wait_target_s=1.0)),
        ("max_batch", lambda: bulk_service(1.0, 0.1, 0.1, 0)),
        ("fixed_s", lambda: bulk_service(1.0, 0.0, 0.0, 8)),
        ("rate", lambda: mean_wait("many", 1.0, 1)),  # type: ignore[arg-type]
        ("requests_per_s", lambda: plan_replicas(1.0, 0.0)),
        ("spare", lambda: plan_replicas(1.0, 1.0, spare=-1)),
        ("rate", lambda: plan_replicas(1e12, 1.0)),
    ],
)
def test_bad_input_names_the_field(field: str, call: object) -> None:
    with pytest.raises(InputError) as error:
        call()  # type: ignore[operator]
    assert error.value.where == field


def _bulk_by_simulation(rate: float, fixed: float, each: float, most: int, n: int) -> float:
    """Mean wait of a server that takes all who wait, up to `most`."""
    arrivals = np.cumsum(np.random.default_rng(3).exponential(1 / rate, n))
    free, i, waited = 0.0, 0, 0.0
    while i < n:
        start = max(free, arrivals[i])
        j = i
        while j < n and j - i < most and arrivals[j] <= start:
            waited += start - arrivals[j]
            j += 1
        free = start + fixed + each * (j - i)
        i = j
    return waited / n


@pytest.mark.parametrize("rate", [20.0, 100.0, 400.0, 900.0])
def test_batching_server_against_simulation(rate: float) -> None:
    measured = _bulk_by_simulation(rate, 0.010, 0.0005, 64, 60_000)
    found = bulk_service(rate, 0.010, 0.0005, 64)
    assert float(found.wait_s) == pytest.approx(measured, rel=0.35, abs=0.002)


def test_batching_limits() -> None:
    alone = bulk_service(0.001, 0.01, 0.001, 32)
    assert alone.batch == 1.0
    assert float(alone.wait_s) < 1e-6
    assert math.isinf(float(bulk_service(2_000.0, 0.01, 0.001, 32).wait_s))
    # One by one 90/s are served; in batches of 8, 444/s: 400/s gather 6.7 at a time.
    found = bulk_service(400.0, 0.01, 0.001, 8)
    assert found.batch == pytest.approx(400 * 0.01 / (1 - 0.4))
    assert found.load == pytest.approx(1.0)
    assert math.isinf(float(bulk_service(450.0, 0.01, 0.001, 8).wait_s))


def test_replicas() -> None:
    plan = plan_replicas(10.0, 3.0, peak_to_mean=1.5)
    assert (plan.needed, plan.spare, plan.total) == (5, 1, 6)
    assert plan.load == pytest.approx(1.0)
    assert plan_replicas(0.0, 3.0).total == 0
    # 0.1 requests/s over a minute: 6 on average, 10 in the 95th percentile of Poisson.
    assert plan_replicas(0.1, 1.0, interval_s=60.0).load == pytest.approx(10 / 60)
    assert plan_replicas(9.0, 3.0, spare=0).total == 3


def test_pool_of_servers_against_simulation() -> None:
    """M/M/4 at a load of 0.8 by simulation: an independent check of mean and percentile."""
    random = np.random.default_rng(5)
    n, c, rate = 200_000, 4, 3.2
    arrivals, service = np.cumsum(random.exponential(1 / rate, n)), random.exponential(1.0, n)
    free = [0.0] * c
    waits = np.empty(n)
    for i in range(n):
        start = max(heapq.heappop(free), arrivals[i])
        waits[i] = start - arrivals[i]
        heapq.heappush(free, start + service[i])
    assert float(mean_wait(rate, 1.0, c)) == pytest.approx(waits.mean(), rel=0.06)
    assert float(wait_percentile(rate, 1.0, c, 0.95)) == pytest.approx(
        np.quantile(waits, 0.95), rel=0.06
    )
