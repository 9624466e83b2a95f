"""Wait and item together against closed forms and a simulated queue."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from scipy.stats import expon, gamma

from engine.estimate.response import late_share, response_percentile, slow_item
from engine.estimate.small_inference import cpu_capacity, cpu_response, worker_service_s

CV2 = 0.25


def test_a_slow_item_is_the_quantile_of_its_gamma() -> None:
    # cs² of a quarter is a gamma of shape 4: 95 of 100 stay within 1.938 means (chi-squared of 8
    # degrees of freedom: 15.507 / 8), and not within the mean and a standard deviation, 1.5.
    assert float(slow_item(2.0, CV2, 0.95)) == pytest.approx(2 * 15.507 / 8, rel=1e-4)
    assert float(slow_item(1.0, 1.0, 0.95)) == pytest.approx(math.log(20))
    assert float(slow_item(3.0, 0.0, 0.95)) == 3.0
    assert float(slow_item(1.0, 0.3, 0.9)) == pytest.approx(gamma.ppf(0.9, 1 / 0.3) * 0.3)


def test_one_server_of_exponential_items_answers_as_published() -> None:
    # M/M/1: the response is exponential with rate µ − λ.
    for load in (0.0, 0.3, 0.7, 0.95):
        found = float(response_percentile(load, 1.0, 1.0, 0.95, service_cv2=1.0))
        assert found == pytest.approx(expon.ppf(0.95) / (1 - load), rel=2e-3)


def test_without_requests_only_the_item_takes_time() -> None:
    found = response_percentile(0.0, 1.0, 8.0, 0.95, service_cv2=CV2)
    assert float(found) == pytest.approx(float(slow_item(1.0, CV2, 0.95)))
    assert math.isinf(float(response_percentile(8.0, 1.0, 8.0, 0.95, service_cv2=CV2)))
    assert float(late_share(100.0, 9.0, 1.0, 8.0, service_cv2=CV2)) == 1.0


def simulated(load: float, servers: int, n: int = 120_000) -> float:
    """95th percentile of the response: Poisson arrivals, gamma items of mean 1."""
    rng = np.random.default_rng(11)
    items = rng.gamma(1 / CV2, CV2, n)
    at = np.cumsum(rng.exponential(1 / (load * servers), n))
    free = [0.0] * servers
    took = np.empty(n)
    for i in range(n):
        start = max(heapq.heappop(free), at[i])
        heapq.heappush(free, start + items[i])
        took[i] = start + items[i] - at[i]
    return float(np.quantile(took[n // 10 :], 0.95))


@pytest.mark.parametrize("servers", [1, 4, 12, 48])
@pytest.mark.parametrize("load", [0.3, 0.6, 0.75, 0.85])
def test_the_response_is_that_of_a_simulated_queue(servers: int, load: float) -> None:
    # Mean and a standard deviation beside the slow wait gave 0.77 to 1.13 of it.
    found = float(response_percentile(load * servers, 1.0, float(servers), 0.95, service_cv2=CV2))
    assert found == pytest.approx(simulated(load, servers), rel=0.08)


def test_a_capacity_keeps_its_target_in_the_response() -> None:
    for target in (0.06, 0.2, 1.0):
        most, worker = cpu_capacity(20.0, 32.0, target, 0.95)
        told = float(cpu_response(most, 20.0, 32.0, float(worker), 0.95))
        assert told <= target * 1.001
        over = float(cpu_response(float(most) * 1.01, 20.0, 32.0, float(worker), 0.95))
        assert over > target


def test_a_server_s_item_counts_the_cores_that_share_it() -> None:
    alone = float(cpu_response(0.0, 10.0, 16.0, 4.0, 0.95))
    assert alone == pytest.approx(1.938 * float(worker_service_s(10.0, 4.0)), rel=1e-3)
