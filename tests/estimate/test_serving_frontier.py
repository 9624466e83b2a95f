"""The frontier of dollars and time, and the plan simulated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.errors import InputError
from engine.estimate.serving_frontier import check_plan, frontier
from engine.estimate.serving_plan import fleet_usd, plan_serving
from engine.estimate.traffic import traffic_of
from tests.estimate.serving_asks import ask, gpu


def test_the_frontier_has_no_point_that_another_beats() -> None:
    request = ask(8.0, 50.0)
    answer = plan_serving(request, [gpu("l40s", usd=1.5), gpu("h100-sxm-80gb", usd=4.0)])
    points = frontier(answer.candidates, request)
    assert len(points) > 3
    usd, tpot = [p.usd_per_month for p in points], [p.tpot_s for p in points]
    assert usd == sorted(usd)
    assert tpot == sorted(tpot, reverse=True)
    assert all(p.ttft_s <= 2.0 for p in points)
    assert answer.best is not None
    assert usd[0] <= answer.best.usd_per_month.likely * 1.001


def test_the_fleet_of_an_array_costs_what_the_plan_costs() -> None:
    for scaling in ("always_on", "by_hour"):
        request = ask(traffic=traffic_of(20.0, "office"), scaling=scaling)
        answer = plan_serving(request, [gpu("l40s"), gpu("h100-sxm-80gb", 8)])
        for option in answer.options:
            carried = np.array(float(option.candidate.capacity.requests_per_s))
            usd = fleet_usd(option.candidate, request, carried, np.array([20.0]))
            assert usd[0] == pytest.approx(option.usd_per_month.likely)


def test_the_plan_is_simulated_and_told_to_hold_or_not() -> None:
    request = ask(8.0, 30.0)
    option = plan_serving(request, [gpu("l40s")]).best
    assert option is not None
    shares: list[float] = []
    found = check_plan(option, request, requests=4000, progress=shares.append)
    assert shares
    assert shares == sorted(shares)
    assert found.replicas_planned == option.replicas
    assert option.replicas <= found.replicas <= option.replicas + 1
    assert abs(found.tpot_off) < 0.08
    assert found.enough
    assert found.holds == (found.replicas == found.replicas_planned)
    machines = found.replicas + 1
    assert found.usd_per_month == pytest.approx(machines * 3.0 * 730)
    with pytest.raises(InputError):
        check_plan(replace(option, replicas=0), request)
