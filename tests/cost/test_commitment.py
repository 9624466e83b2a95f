"""The best base for a demand that varies: exact, and never dearer than either pure form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cost.commitment import (
    best_mix,
    constant,
    expected_cost,
    hourly,
    monthly,
    schedule,
    statement,
    variation,
)
from engine.errors import InputError

logs = st.lists(st.floats(0, 40), min_size=1, max_size=60)
usd = st.floats(0.05, 50)


@given(logs, usd, usd)
def test_a_mix_is_never_dearer_than_its_best_pure_form(
    log: list[float], c: float, d: float
) -> None:
    mix = best_mix(hourly(log), c, d)
    assert mix.usd_per_hour <= min(mix.all_committed, mix.all_burst) * (1 + 1e-12) + 1e-12


@given(logs, usd, usd)
def test_no_other_base_is_cheaper(log: list[float], c: float, d: float) -> None:
    demand = hourly(log)
    mix = best_mix(demand, c, d)
    every = [expected_cost(demand, q, c, d) for q in range(42)]
    assert mix.usd_per_hour == pytest.approx(min(every), rel=1e-9, abs=1e-9)


@given(logs, usd, usd, st.floats(0.1, 1))
def test_cost_falls_or_stays_when_either_price_falls(
    log: list[float], c: float, d: float, factor: float
) -> None:
    now = best_mix(hourly(log), c, d).usd_per_hour
    assert best_mix(hourly(log), c * factor, d).usd_per_hour <= now * (1 + 1e-12) + 1e-12
    assert best_mix(hourly(log), c, d * factor).usd_per_hour <= now * (1 + 1e-12) + 1e-12


def test_newsvendor_by_hand() -> None:
    # 4 machines in 60% of the hours, 10 in 40%; c = 2, d = 4, so commit while needed in over 50%:
    # base 4: 2 x 4 + 4 x 0.4 x 6 = 17.6; all committed 20, all on demand 4 x 6.4 = 25.6
    mix = best_mix(hourly([4, 4, 4, 10, 10]), 2.0, 4.0)
    assert (mix.base, mix.bursts) == (4, pytest.approx(0.4))
    assert mix.usd_per_hour == pytest.approx(17.6)
    assert (mix.all_committed, mix.all_burst) == (pytest.approx(20), pytest.approx(25.6))
    assert mix.usd_per_month == pytest.approx(17.6 * 730)
    assert mix.base_utilization == pytest.approx(1.0)
    assert mix.is_mix


def test_a_constant_demand_is_committed_or_rented_whole() -> None:
    assert best_mix(constant(8), 2.0, 4.0).base == 8
    assert best_mix(constant(8), 5.0, 4.0).base == 0


def test_office_hours_are_rented_when_the_commitment_costs_over_their_share() -> None:
    # 10 h x 5 days of 168 h = 29.8% of the hours
    office = schedule(6, 10, 5)
    assert office.mean == pytest.approx(6 * 50 / 168)
    assert best_mix(office, 1.0, 4.0).base == 6  # 25% < 29.8%
    assert best_mix(office, 1.0, 3.0).base == 0  # 33% > 29.8%


def test_monthly_lists() -> None:
    # 730, 1,460 and 2,190 machine-hours are 1, 2 and 3 machines
    spread = monthly([730, 1_460, 2_190])
    assert spread.mean == pytest.approx(2)
    assert best_mix(spread, 1.0, 2.0).base == 2  # the third is needed in a third of the hours
    packed = monthly([730, 1_460], machines=4)
    assert packed.share_above(0) == pytest.approx((0.25 + 0.5) / 2)


def test_the_thirty_percent_rule_becomes_a_sentence() -> None:
    hours = [730.0 * x for x in (4, 4, 4, 10, 10)]
    assert variation(hours) == pytest.approx(6 / 6.4)
    demand = monthly(hours)
    text = statement(demand, best_mix(demand, 2.0, 4.0), variation(hours), rule=0.3)
    assert "from 4 to 10 machines" in text
    assert "30% rule says the cloud" in text
    assert "commit to 4 and rent more in 40% of the hours" in text


def test_a_base_that_is_dearer_in_every_hour_is_said_so() -> None:
    # 4 an hour committed against 2 by the hour: 200% of the hours, which no month has.
    text = statement(constant(3), best_mix(constant(3), 4.0, 2.0), 0.0, rule=0.3)
    assert text.startswith("Demand is 3 machines in each hour and varies by 0%")
    assert "Even a machine that is needed in every hour costs less by the hour" in text
    assert text.endswith("so commit to none.")


def test_senseless_demands_are_refused_by_field() -> None:
    with pytest.raises(InputError, match="hourly_log"):
        hourly([])
    with pytest.raises(InputError, match="hourly_log"):
        hourly([-1.0])
    with pytest.raises(InputError, match="hours_per_day"):
        schedule(1, 25, 5)
    with pytest.raises(InputError, match="machines"):
        monthly([10_000.0], machines=4)
    with pytest.raises(InputError, match="burst_usd_per_hour"):
        best_mix(constant(1), 1.0, 0.0)


def test_a_year_of_hours_is_quick() -> None:
    log = np.random.default_rng(1).poisson(20, 8760).astype(float)
    assert best_mix(hourly(log), 2.0, 4.0).base == pytest.approx(20, abs=1)
