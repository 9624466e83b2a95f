"""What must hold of every cost, whatever the numbers: checked on random plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cost import break_even, compare
from engine.cost.cash_flow import HOURS_PER_MONTH
from engine.cost.commitment import Demand, best_mix, levels
from engine.cost.compare import WayToPay
from engine.cost.mix import mixed_cost
from engine.cost.monthly import Acquisition, monthly_cost
from engine.cost.own import Ownership
from engine.cost.rent import Fees, Rental, SpotTerms

prices = st.floats(0.01, 500)
hours = st.one_of(st.just(0.0), st.floats(0.01, 730))
machines = st.integers(1, 64)
months = st.integers(1, 60)
RENTS: list[Acquisition] = ["on_demand", "spot", "reserved_1y", "reserved_3y", "dedicated"]
SPOT = SpotTerms(0.01, 0.005, 0.25, 0.5)
# Every price of owning: what a lower one of them must never make dearer.
OWN_PRICES = (
    "usd_per_unit", "network_usd", "storage_usd", "racks_usd", "cooling_usd", "other_capital_usd",
    "usd_per_kwh", "housing_usd_per_kw_month", "racks_usd_per_month", "usd_per_fte_year",
    "software_usd_per_year",
)  # fmt: skip


@st.composite
def ownerships(draw: st.DrawFn) -> Ownership:
    amounts: dict[str, Any] = {name: draw(st.floats(1, 1e6)) for name in OWN_PRICES}
    shares: dict[str, Any] = {
        name: draw(st.floats(0, 0.3))
        for name in ("installation_share", "spares_share", "maintenance_share_per_year")
    }
    amounts["usd_per_kwh"] = draw(st.floats(0.01, 1))
    return Ownership(
        **amounts,
        **shares,
        kw_per_unit=draw(st.floats(0.1, 20)),
        idle_power_share=draw(st.floats(0, 1)),
        pue=draw(st.floats(1, 2)),
        staff_fte=draw(st.floats(0, 5)),
        resale_share=draw(st.floats(0, 0.9)),
        cost_of_capital=draw(st.floats(0, 0.3)),
    )


@given(
    st.sampled_from(RENTS), prices, st.floats(0.1, 1), machines, hours, months,
    st.floats(0, 1e4), st.floats(0, 0.2),
)  # fmt: skip
def test_a_lower_rent_or_fee_never_costs_more(
    terms: Acquisition, usd: float, part: float, n: int, used: float, horizon: int,
    egress: float, support: float,
) -> None:  # fmt: skip
    def total(price: float, fees: Fees) -> float:
        rental = Rental(price, 2, after_term_usd_per_hour=price * 1.2, spot=SPOT)
        return float(monthly_cost(rental, terms, n, used, horizon, fees=fees).total)

    usual = Fees(egress=egress, support_share=support)
    dear = total(usd, usual)
    assert total(usd * part, usual) <= dear * (1 + 1e-12)
    assert total(usd, replace(usual, egress=egress * part)) <= dear * (1 + 1e-12)
    assert total(usd, replace(usual, support_share=support * part)) <= dear * (1 + 1e-12)


@given(ownerships(), st.sampled_from(OWN_PRICES), st.floats(0.05, 1), machines, hours, months)
def test_a_lower_price_of_owning_never_costs_more(
    own: Ownership, name: str, part: float, n: int, used: float, horizon: int
) -> None:
    dear = float(monthly_cost(own, "buy", n, used, horizon).total)
    less = replace(own, **{name: getattr(own, name) * part})
    cheap = float(monthly_cost(less, "buy", n, used, horizon).total)
    # A machine that costs less also fetches less: what is lost of its price is at least a tenth
    # here (it is sold at 90% at most), so the sum still falls.
    assert cheap <= dear + 1e-6 * abs(dear)


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    n = draw(st.integers(1, 8))
    level = draw(st.lists(st.floats(0, 60), min_size=n, max_size=n))
    share = draw(st.lists(st.floats(0.01, 1), min_size=n, max_size=n))
    return levels(level, share)


@given(demands(), prices, prices)
def test_a_mix_is_never_dearer_than_its_pure_forms_nor_than_any_other_base(
    demand: Demand, committed: float, burst: float
) -> None:
    mix = best_mix(demand, committed, burst)
    slack = 1e-9 * (1 + mix.usd_per_hour)
    assert mix.usd_per_hour <= min(mix.all_committed, mix.all_burst) + slack
    # By brute force over every whole number of machines.
    for q in range(int(np.ceil(demand.peak)) + 2):
        above = float(np.maximum(demand.levels - q, 0) @ demand.shares)
        assert mix.usd_per_hour <= committed * q + burst * above + slack


@given(demands(), ownerships(), prices, st.integers(1, 60))
def test_a_mix_of_tables_is_never_dearer_than_renting_all_or_owning_all(
    demand: Demand, own: Ownership, rent: float, horizon: int
) -> None:
    if demand.peak < 0.5:
        return
    burst = Rental(rent)
    mixed = mixed_cost(own, "buy", burst, "on_demand", demand, horizon)
    peak = int(np.ceil(demand.peak))
    used = demand.mean * HOURS_PER_MONTH
    owned = float(monthly_cost(own, "buy", peak, used / peak, horizon).total)
    rented = rent * used * horizon
    assert float(mixed.flow.total) <= min(owned, rented) * (1 + 1e-9) + 1e-6


@given(ownerships(), prices, machines, st.integers(2, 60))
def test_the_utilization_at_which_two_tables_cross_is_the_root_of_their_difference(
    own: Ownership, rent: float, n: int, horizon: int
) -> None:
    bought, rented = WayToPay("owning", own, "buy"), WayToPay("renting", Rental(rent), "on_demand")
    closed = compare.utilization_where(bought, rented, n, horizon).value

    def total(way: WayToPay, share: float) -> float:
        return float(compare.table(way, n, share, horizon).total)

    root = break_even.by_root(lambda u: total(bought, u), lambda u: total(rented, u), 0.0, 1.0)
    if closed is None:
        assert root is None
    elif root is not None:
        assert closed == pytest.approx(root, abs=1e-6)
    else:  # the tables touch at the very end of the range
        assert total(bought, closed) == pytest.approx(total(rented, closed), rel=1e-6)


@given(prices, prices)
def test_a_reservation_crosses_on_demand_at_the_ratio_of_the_prices(c: float, d: float) -> None:
    closed = break_even.utilization(c, d).value
    ways = (
        WayToPay("reserved", Rental(c), "reserved_1y"),
        WayToPay("on demand", Rental(d), "on_demand"),
    )
    found = compare.utilization_where(*ways, 1, 12).value
    assert (closed is None) == (c > d)
    if closed is not None:
        assert closed == pytest.approx(c / d)
        assert found == pytest.approx(c / d)


@given(ownerships(), st.floats(0.05, 1), machines, st.integers(2, 60))
def test_the_rent_at_which_owning_wins_makes_both_tables_equal(
    own: Ownership, share: float, n: int, horizon: int
) -> None:
    way = WayToPay("owning", own, "buy")
    rent = compare.rent_where(way, n, share, horizon).value
    assert rent is not None
    bought = float(compare.table(way, n, share, horizon).total)
    if rent <= 0:  # resale alone pays for it all
        return
    rented = float(
        monthly_cost(Rental(rent), "on_demand", n, share * HOURS_PER_MONTH, horizon).total
    )
    assert rented == pytest.approx(bought, rel=1e-9)


@given(ownerships(), prices, machines, hours, months, st.sampled_from(RENTS))
def test_headline_numbers_are_sums_over_the_table(
    own: Ownership, rent: float, n: int, used: float, horizon: int, terms: Acquisition
) -> None:
    rental = Rental(rent, after_term_usd_per_hour=rent, spot=SPOT)
    for flow in (
        monthly_cost(own, "buy", n, used, horizon),
        monthly_cost(rental, terms, n, used, horizon),
    ):
        rows = flow.table()
        cells = sum(sum(row.by_month) for row in rows)
        assert float(flow.total) == pytest.approx(cells, rel=1e-12, abs=0.005)
        assert sum(row.total for row in rows) == pytest.approx(cells, rel=1e-12, abs=0.005)
        assert float(flow.per_month) * horizon == pytest.approx(cells, rel=1e-12, abs=0.005)
        by_month = flow.monthly.sum()
        assert by_month == pytest.approx(cells, rel=1e-12, abs=0.005)
        if used:
            hour = float(flow.cost_per_useful_hour)
            assert hour * used * horizon == pytest.approx(cells, rel=1e-9, abs=0.005)
        else:
            assert float(flow.cost_per_useful_hour) == np.inf
