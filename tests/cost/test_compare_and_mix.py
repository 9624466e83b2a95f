"""Whole tables against each other: crossings, curves, and a base with a burst."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cost.break_even import by_root
from engine.cost.commitment import constant, hourly, levels
from engine.cost.compare import (
    WayToPay,
    curves,
    marks,
    months_where,
    overhead_beside_the_article,
    rent_where,
    table,
    utilization_where,
)
from engine.cost.mix import mixed_cost
from engine.cost.monthly import monthly_cost
from engine.cost.own import Ownership
from engine.cost.parameters import Pick
from engine.cost.rent import Rental, SpotTerms
from engine.errors import InputError

OWN = Ownership(
    310_000,
    network_usd=40_000,
    kw_per_unit=8,
    idle_power_share=0.3,
    usd_per_kwh=0.12,
    pue=1.35,
    housing_usd_per_kw_month=174,
    staff_fte=0.5,
    usd_per_fte_year=220_000,
    maintenance_share_per_year=0.05,
    resale_share=0.3,
    cost_of_capital=0.11,
    delivery_months=2,
)
BUY = WayToPay(
    "owning",
    OWN,
    "buy",
    low=replace(OWN, usd_per_unit=220_000.0),
    high=replace(OWN, usd_per_unit=360_000.0),
)
ON_DEMAND = WayToPay("on demand", Rental(55.04), "on_demand", Rental(32.0), Rental(80.0))


@settings(max_examples=25)
@given(st.floats(5, 100), st.floats(50_000, 500_000), st.integers(6, 60))
def test_crossing_by_search_equals_the_closed_form(rent: float, price: float, months: int) -> None:
    own = replace(BUY, hardware=replace(OWN, usd_per_unit=price))
    cloud = replace(ON_DEMAND, hardware=Rental(rent))
    closed = utilization_where(own, cloud, 2, months).value
    found = by_root(
        lambda u: float(table(own, 2, u, months).total),
        lambda u: float(table(cloud, 2, u, months - 2).total),  # both rent until delivery
        0.0,
        1.0,
    )
    assert found == (None if closed is None else pytest.approx(closed, rel=1e-9))


def test_the_crossing_has_its_range_and_its_sentence() -> None:
    found = utilization_where(BUY, ON_DEMAND, 4, 36)
    assert found.value is not None
    assert found.low is not None
    assert found.low < found.value
    assert found.high is None or found.high > found.value
    assert "owning beats on demand" in found.text
    never = utilization_where(BUY, replace(ON_DEMAND, hardware=Rental(1.0)), 4, 36)
    assert never.never
    assert never.text == "owning never beats on demand."


@given(st.floats(0.05, 1))
def test_at_the_crossing_rent_both_cost_the_same(share: float) -> None:
    rent = rent_where(BUY, 4, share, 36).value
    assert rent is not None
    at_rent = monthly_cost(Rental(rent), "on_demand", 4, share * 730, 34)
    assert at_rent.total == pytest.approx(float(table(BUY, 4, share, 36).total))


def test_without_use_no_rent_makes_owning_cheaper() -> None:
    assert rent_where(BUY, 4, 0.0, 36).never


def test_month_from_which_owning_wins_with_a_resale_that_falls() -> None:
    # 10,000 that lose 5% of the price a month cost 500 a month to own, whenever sold:
    # rent of 1,000 a month loses at once, rent of 400 never; with 3 months of delivery it does once
    # 500 n ≤ 1,000 (n − 3), in month 6
    def own(months: int, pick: Pick, delivery: int = 0) -> Ownership:
        return Ownership(10_000, resale_share=1 - 0.05 * months, delivery_months=delivery)

    dear = WayToPay("rent", Rental(1_000 / 730), "dedicated")
    cheap = WayToPay("rent", Rental(400 / 730), "dedicated")
    assert months_where(own, dear, 1, 1.0, 20).value == 1
    assert months_where(own, cheap, 1, 1.0, 20).never
    assert months_where(lambda m, p: own(m, p, 3), dear, 1, 1.0, 20).value == 6


def test_curves_for_the_chart() -> None:
    u = np.array([0.0, 0.5, 1.0])
    lines = curves([BUY, ON_DEMAND], 4, u, 36)
    assert lines["on demand"].tolist() == [math.inf, pytest.approx(55.04), pytest.approx(55.04)]
    assert lines["owning"][0] == math.inf
    assert lines["owning"][1] > lines["owning"][2]


def test_the_articles_marks_stand_beside() -> None:
    found = {mark.id: mark.value for mark in marks()}
    assert found == {
        "mark_runs_rent": 5,
        "mark_runs_buy": 20,
        "mark_share_rent": 0.4,
        "mark_share_on_premises": 0.5,
        "mark_share_build": 0.6,
        "mark_months_stable": 18,
        "mark_variation": 0.3,
    }
    itemised, article = overhead_beside_the_article(table(BUY, 4, 0.8, 36))
    assert article == 0.3
    # Four machines of 310,000 at load in 80% of the hours, idle at 30% else: 8 x 0.86 = 6.88 kW
    # each, 27.52 kW x 730 h x 0.12 = 2,410.752; x PUE 1.35 = 3,254.5152; colocation 32 x 174 =
    # 5,568; half a person 220,000/24 = 9,166.6667; upkeep 1,280,000 x 0.05/12 = 5,333.3333.
    # 23,322.5152 a month x 12/1,240,000 = 22.57%: of a year in use, whatever the delivery takes.
    assert itemised == pytest.approx(23_322.5152 * 12 / 1_240_000, rel=1e-6)
    shorter, _ = overhead_beside_the_article(table(BUY, 4, 0.8, 6))
    assert shorter == pytest.approx(itemised)
    with pytest.raises(InputError, match="acquisition"):
        overhead_beside_the_article(table(ON_DEMAND, 4, 0.8, 36))


# --- a base with a burst

logs = st.lists(st.integers(0, 12), min_size=1, max_size=40).filter(lambda log: max(log) > 0)


@given(logs, st.floats(5, 120), st.booleans())
def test_a_mixed_table_is_never_dearer_than_its_best_pure_form(
    log: list[int], rent: float, owned: bool
) -> None:
    demand = hourly([float(x) for x in log])
    base: Rental | Ownership = OWN if owned else Rental(30.0)
    way: Any = "buy" if owned else "reserved_3y"
    burst = Rental(rent)
    mixed = mixed_cost(base, way, burst, "on_demand", demand, 36)
    total = float(mixed.flow.total)

    peak = max(log)
    hours = demand.mean / peak * 730
    committed = float(monthly_cost(base, way, peak, hours, 36).total)
    if owned:  # until delivery all is rented
        committed += rent * demand.mean * 730 * OWN.delivery_months
    rented = rent * demand.mean * 730 * 36
    assert total <= min(committed, rented) * (1 + 1e-9)


@given(logs, st.floats(5, 120))
def test_no_other_number_of_owned_machines_is_cheaper(log: list[int], rent: float) -> None:
    demand = hourly([float(x) for x in log])
    mixed = mixed_cost(OWN, "buy", Rental(rent), "on_demand", demand, 36)
    c0, v = mixed.committed_idle_usd_per_hour, 0.0
    v = mixed.committed_used_usd_per_hour - c0
    costs = [
        c0 * q + v * (demand.mean - demand.above(q)) + rent * demand.above(q)
        for q in range(max(log) + 1)
    ]
    assert mixed.mix.usd_per_hour == pytest.approx(min(costs), rel=1e-9)


def test_the_table_of_a_mix_is_what_the_mix_says() -> None:
    # reserved at 30, on demand at 60, so commit what is needed in over half of the hours:
    # 4 machines; 36 months x 730 h x (4 x 30 + 60 x 0.4 x 6) = 26,280 x 264
    demand = hourly([4, 4, 4, 10, 10])
    mixed = mixed_cost(Rental(30.0), "reserved_3y", Rental(60.0), "on_demand", demand, 36)
    assert mixed.mix.base == 4
    assert mixed.flow.total == pytest.approx(26_280 * 264)
    assert mixed.flow.total == pytest.approx(mixed.mix.usd_per_month * 36)


def test_spot_can_be_the_burst_and_dedicated_months_can_not() -> None:
    spot = Rental(20.0, spot=SpotTerms(0.01, 0.02, 0.3, 0.5))
    mixed = mixed_cost(Rental(30.0), "reserved_3y", spot, "spot", constant(4), 36)
    assert mixed.burst_usd_per_hour > 20
    with pytest.raises(InputError, match="burst_acquisition"):
        mixed_cost(Rental(30.0), "reserved_3y", spot, "dedicated", constant(4), 36)


# --- machines that are owned in whole fleets


def in_whole_fleets(machines: int) -> Ownership:
    """A person for up to ten machines, a switch for up to four: they come whole."""
    return Ownership(
        36_000,
        network_usd=7_200.0 * math.ceil(machines / 4),
        staff_fte=float(math.ceil(machines / 10)),
        usd_per_fte_year=120_000,
    )


def test_a_small_owned_base_pays_its_person_and_its_switch_whole() -> None:
    # Over 36 months, no resale: a machine is 36,000/36 = 1,000 a month, a switch 200, a person
    # 10,000. Rented, a machine is 10 x 730 = 7,300. Two are needed always, ten in 10% of the hours:
    # 0: 2.8 x 7,300 = 20,440; 1: 11,200 + 1.8 x 7,300 = 24,340;
    # 2: 2,000 + 200 + 10,000 + 0.8 x 7,300 = 18,040; 3: 13,200 + 0.7 x 7,300 = 18,310;
    # 4: 14,200 + 4,380 = 18,580; 10: 10,000 + 600 + 10,000 = 20,600.
    demand = hourly([2.0] * 9 + [10.0])
    mixed = mixed_cost(in_whole_fleets, "buy", Rental(10.0), "on_demand", demand, 36)
    assert mixed.mix.base == 2
    assert float(mixed.flow.per_month) == pytest.approx(18_040)
    assert mixed.mix.usd_per_month == pytest.approx(18_040)
    assert float(mixed.all_committed.per_month) == pytest.approx(20_600)
    assert float(mixed.all_burst.per_month) == pytest.approx(20_440)
    # 12,200 for two machines over 2 x 7,300.
    assert mixed.mix.break_even_share == pytest.approx(12_200 / 14_600)


def test_a_fleet_too_small_for_its_person_is_rented() -> None:
    # One machine in half of the hours: 3,650 rented, 11,200 owned. Of ten, one is
    # (10,000 + 600 + 10,000)/10 = 2,060, which a part of the whole would have taken for enough.
    demand = hourly([1.0, 0.0] * 50 + [10.0])
    mixed = mixed_cost(in_whole_fleets, "buy", Rental(10.0), "on_demand", demand, 36)
    assert mixed.mix.base == 0
    assert float(mixed.flow.per_month) == pytest.approx(60 / 101 * 7_300)


@given(logs, st.floats(1, 60))
def test_no_number_of_owned_fleets_is_cheaper(log: list[int], rent: float) -> None:
    demand = hourly([float(x) for x in log])
    mixed = mixed_cost(in_whole_fleets, "buy", Rental(rent), "on_demand", demand, 36)
    for q in range(max(log) + 1):
        # By hand: machines, switches and people a month, and the rest by the hour.
        own = q * 1_000 + math.ceil(q / 4) * 200 + math.ceil(q / 10) * 10_000
        above = sum(max(x - q, 0) for x in log) / len(log)
        assert float(mixed.flow.per_month) <= (own + rent * 730 * above) * (1 + 1e-9)


def test_a_large_fleet_is_searched_where_its_cost_can_turn() -> None:
    # 800 machines always, 2,000 in 10% of the hours; owned a machine is about 1,000 + 50 + 1,000 a
    # month and rented 7,300: the first 800 pay, and no more of them (0.1 x 7,300 = 730).
    demand = hourly([800.0] * 9 + [2_000.0])
    mixed = mixed_cost(in_whole_fleets, "buy", Rental(10.0), "on_demand", demand, 36)
    assert mixed.mix.base == 800
    assert float(mixed.flow.per_month) == pytest.approx(800_000 + 40_000 + 800_000 + 120 * 7_300)


def test_machines_that_work_together_are_committed_together() -> None:
    """One machine needs no people, a cluster a whole engineer: none of that makes one a base.

    Ten machines in half of the hours. By the single machine the first would pay (100 a month for
    it against 3,650 rented); all ten cost 1,000 and 20,000 for people against 36,500.
    """
    demand = levels((0.0, 10.0), (0.5, 0.5))

    def cluster(machines: int) -> Ownership:
        people = 0.0 if machines == 1 else 20_000.0 * 12 / 1e6
        return Ownership(
            usd_per_unit=100.0 * 36, resale_share=0.0, staff_fte=people, usd_per_fte_year=1e6
        )

    apart = mixed_cost(cluster, "buy", Rental(10.0), "on_demand", demand, 36)
    together = mixed_cost(cluster, "buy", Rental(10.0), "on_demand", demand, 36, by_level=True)
    # Apart: 100 + 9 x 3,650 = 32,950; all: 21,000.
    assert apart.mix.base == together.mix.base == 10
    dear = Rental(4.0)  # 1,460 a machine: one owned 100 + 13,140 = 13,240, all 21,000, none 14,600
    apart = mixed_cost(cluster, "buy", dear, "on_demand", demand, 36)
    together = mixed_cost(cluster, "buy", dear, "on_demand", demand, 36, by_level=True)
    assert apart.mix.base == 1
    assert float(np.sum(apart.flow.total)) / 36 == pytest.approx(13_240)
    assert together.mix.base == 0
    assert float(np.sum(together.flow.total)) / 36 == pytest.approx(14_600)
