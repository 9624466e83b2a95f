"""Break-evens: the closed form and the search agree, each has a range, and never is an answer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cost.break_even import (
    Range,
    by_root,
    months_to_pay_back,
    rent_price,
    runs_per_month,
    usd_per_useful_hour,
    utilization,
)
from engine.cost.monthly import monthly_cost
from engine.cost.rent import Rental
from engine.errors import InputError

usd = st.floats(0.1, 100)


@settings(max_examples=25)
@given(usd, usd)
def test_utilization_by_search_equals_the_closed_form(committed: float, on_demand: float) -> None:
    closed = utilization(committed, on_demand).value

    def always(u: float) -> float:
        return float(monthly_cost(Rental(committed), "dedicated", 1, u * 730, 1).total)

    def used(u: float) -> float:
        return float(monthly_cost(Rental(on_demand), "on_demand", 1, u * 730, 1).total)

    found = by_root(always, used, 0.0, 1.0)
    if closed is None:
        assert found is None
    elif closed < 1 - 1e-9:
        assert found == pytest.approx(closed, rel=1e-9)


@given(st.floats(1_000, 1e7), st.floats(10, 1e6), st.floats(0, 0.3))
def test_months_by_search_equal_the_closed_form(upfront: float, saved: float, rate: float) -> None:
    closed = months_to_pay_back(upfront, saved, rate).value
    i = math.expm1(math.log1p(rate) / 12)

    def worth(n: float) -> float:
        return saved * n if i == 0 else saved * -math.expm1(-n * math.log1p(i)) / i

    found = by_root(worth, lambda n: upfront, 0.0, 1_000.0)
    if closed is not None and closed < 999:
        assert found == pytest.approx(closed, rel=1e-6)
    else:
        assert found is None or found > 990


@given(usd, st.floats(0.01, 1))
def test_price_by_search_equals_the_closed_form(owned: float, used: float) -> None:
    closed = rent_price(owned, used).value
    assert closed is not None
    found = by_root(lambda d: d * used, lambda d: owned, 0.0, 10_001.0)
    assert found == pytest.approx(closed, rel=1e-9)


@given(st.floats(100, 1e6), st.floats(10, 1e5))
def test_runs_by_search_equal_the_closed_form(monthly: float, run: float) -> None:
    closed = runs_per_month(monthly, run).value
    assert closed is not None
    found = by_root(lambda n: n * run, lambda n: monthly, 0.0, 2 * closed)
    assert found == pytest.approx(closed, rel=1e-9)


def test_each_has_its_range() -> None:
    # 2.38/3.99 = 0.596; the range of rents from SF Compute's 2.11 to AWS 6.88:
    # 2.38/6.88 = 0.346, and 2.38/2.11 > 1 is never
    found = utilization(2.38, Range(2.11, 3.99, 6.88))
    assert found.value == pytest.approx(0.596, abs=1e-3)
    assert found.low == pytest.approx(0.346, abs=1e-3)
    assert found.high is None
    assert not found.never


def test_never_is_an_answer_and_no_traceback() -> None:
    assert utilization(5.0, 4.0).never
    assert months_to_pay_back(285_000, -100).never
    assert months_to_pay_back(285_000, 0).never
    assert months_to_pay_back(1_000_000, 100, 0.12).never
    assert rent_price(2.0, 0.0).never
    assert runs_per_month(10_000, 100, capacity_runs=50).never


@pytest.mark.parametrize("price", [0.0, -1.0, math.nan, math.inf])
def test_a_price_of_zero_is_refused_and_never_the_cheapest(price: float) -> None:
    with pytest.raises(InputError, match="on_demand_usd_per_hour"):
        utilization(1.0, price)
    with pytest.raises(InputError, match="committed_usd_per_hour"):
        utilization(price, 1.0)


def test_cost_of_a_useful_hour_against_utilization() -> None:
    u = np.array([0.0, 0.25, 1.0])
    assert usd_per_useful_hour(2.0, u, pays_idle=True).tolist() == [math.inf, 8.0, 2.0]
    assert usd_per_useful_hour(2.0, u, pays_idle=False).tolist() == [math.inf, 2.0, 2.0]
