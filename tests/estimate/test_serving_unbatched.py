"""What batches are worth: the same service with one answer at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.estimate.serving_plan import ServingAsk, ServingOption, plan_serving
from engine.estimate.serving_points import Targets
from engine.estimate.serving_unbatched import unbatched, usd_per_thousand_requests
from tests.estimate.serving_asks import ask, gpu


def planned(request: ServingAsk, sku: str = "h100-sxm-80gb") -> ServingOption:
    """The best plan on one kind of GPU at 3 USD an hour."""
    best = plan_serving(request, [gpu(sku)]).best
    assert best is not None
    return best


def test_without_batches_a_busy_service_takes_as_many_as_are_busy() -> None:
    request = ask(8.0, 30.0)
    found = unbatched(planned(request), request)
    assert found is not None
    # 300 tokens of 16 GB of weights at 3.35 TB/s take 1.43 s at best and 2.2 s at 65% of it.
    assert 1.43 < found.answer_s < 2.2
    # 30 a second keep 30 × 2.03 = 60.9 busy; at 85% that is 71.6, so 72, and one spare machine.
    assert found.answer_s == pytest.approx(2.03, abs=0.05)
    assert found.replicas == 72
    assert found.machines == 73
    assert found.usd_per_month == pytest.approx(73 * 3 * 730)
    # The plan has three and a spare one.
    assert found.times == pytest.approx(73 / 4)


def test_few_requests_wait_in_a_queue_by_erlang() -> None:
    # On an L4 a request takes 18.7 s alone: at 0.05 a second a = 0.937. Erlang's B of 1, 2, 3, 4
    # is 0.484, 0.185, 0.0545, 0.0126, so C(3) = 0.0774 and C(4) = 0.0165. With three more than 5%
    # wait, those 5% longer than the 1.3 s that are left; with four fewer do.
    request = ask(8.0, 0.05)
    found = unbatched(planned(request, "l4"), request)
    assert found is not None
    assert found.answer_s == pytest.approx(18.7, abs=0.3)
    assert found.replicas == 4


def test_what_can_not_be_sized_says_so() -> None:
    request = ask(8.0, 30.0)
    option = planned(request)
    late = replace(request, targets=Targets(0.05, 0.1))  # below the prompt's own time
    assert unbatched(option, late) is None
    loose = replace(request, targets=Targets(None, 0.1))
    found = unbatched(option, loose)
    assert found is not None
    assert found.replicas == 72


def test_a_thousand_requests_cost_the_month_by_its_requests() -> None:
    # Four machines at 3 USD an hour for 30 × 3,600 requests: 12/108,000 × 1,000 = 0.111.
    request = ask(8.0, 30.0)
    option = planned(request)
    assert option.machines == 4
    assert usd_per_thousand_requests(option, request) == pytest.approx(12 / 108)
    assert usd_per_thousand_requests(option, ask(8.0, 0.0)) == 0.0
