"""The frontier of dollars and time, and the plan simulated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import poisson

from engine.errors import InputError
from engine.estimate.serving import loads_of
from engine.estimate.serving_frontier import check_plan, frontier, with_option
from engine.estimate.serving_plan import fleet_usd, plan_serving
from engine.estimate.serving_points import Load, Targets
from engine.estimate.traffic import traffic_of
from tests.estimate.serving_asks import PRECISION, ask, gpu


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


# One GPU of it carries 2.6 requests a second of 1,000 and 50 tokens inside 0.3 s by the formula,
# and the simulation has a little less: at 2.5 it asks for a second one.
TIGHT: dict[str, Any] = {"load": Load(1000.0, 50.0), "targets": Targets(0.3, 0.1)}
CORRECTED_SKU = "rtx-pro-6000-server"


@pytest.mark.parametrize("scaling", ["always_on", "by_hour"])
def test_what_a_simulation_corrects_is_a_plan_of_its_own(scaling: str) -> None:
    request = ask(8.0, 2.5, scaling=scaling, spare=0, **TIGHT)
    answer = plan_serving(request, [gpu(CORRECTED_SKU, usd=2.0), gpu("h100-sxm-80gb", usd=3.9)])
    option = next(o for o in answer.options if o.candidate.machine.sku == CORRECTED_SKU)
    assert option.replicas == 1
    found = check_plan(option, request)
    assert not found.holds
    assert found.ttft_s > 0.3
    more = found.corrected
    assert more is not None
    assert more.replicas == more.machines == found.replicas == 2
    # Two at 2 USD an hour of 730 hours.
    assert more.usd_per_month.likely == found.usd_per_month == pytest.approx(2 * 2.0 * 730)
    assert more.at_peak.rate == pytest.approx(1.25)
    assert more.at_peak.ttft_target_s <= 0.3
    # Corrected it is dearer than the other machine (3.9 × 730 = 2,847), which comes first now.
    told = with_option(answer, more)
    assert answer.best is option
    assert [o.machines for o in told.options] == [1, 2]
    assert told.best is not None
    assert told.best.usd_per_month.likely == pytest.approx(3.9 * 730)


def test_a_correction_costs_by_the_hours_where_hours_are_followed() -> None:
    # Four times the rate at noon: the quiet hours keep one machine in place of two.
    hours = tuple(2.5 if h == 12 else 0.625 for h in range(24))
    traffic = traffic_of(sum(hours) / 24, hours)
    request = ask(8.0, traffic=traffic, scaling="by_hour", spare=0, **TIGHT)
    option = plan_serving(request, [gpu(CORRECTED_SKU, usd=2.0)]).best
    assert option is not None
    found = check_plan(option, request)
    assert found.corrected is not None
    assert found.corrected.replicas == 2
    assert found.usd_per_month == pytest.approx((23 * 1 + 2) * 2.0 * 730 / 24)


@pytest.mark.parametrize(
    ("params_b", "sku", "load", "bits"),
    [(34.0, "l40s", Load(2000.0, 300.0), 8.0), (14.0, "l4", Load(2000.0, 600.0), 8.0),
     (13.0, "a100-sxm-40gb", Load(4000.0, 600.0), 16.0)],
)  # fmt: skip
def test_little_memory_for_answers_is_no_promise_that_a_simulation_breaks(
    params_b: float, sku: str, load: Load, bits: float
) -> None:
    """Replicas with room for nine to fourteen answers: whoever finds none waits for the end of one.

    Filled so that there was room 19 times in 20, they took three times as long as told.
    """
    targets = Targets(3.0, 0.15)
    request = ask(params_b, 2.0, spare=0, load=load, targets=targets,
                  precision=replace(PRECISION, weight_bits=bits))  # fmt: skip
    option = plan_serving(request, [gpu(sku)]).best
    assert option is not None
    assert 5 < option.candidate.capacity.max_batch < 20
    found = check_plan(option, request, requests=20_000)
    assert found.holds
    assert found.ttft_off < 0.2


def test_answers_under_way_leave_room_but_for_two_times_in_a_thousand() -> None:
    for room in (5.0, 10.0, 30.0, 200.0):
        most = float(loads_of(room, 1.0).max())
        # A Poisson number of this mean reaches the room with that probability.
        assert poisson.sf(room - 1.0, most) == pytest.approx(0.002, rel=0.25)
