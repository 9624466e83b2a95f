"""What a candidate costs is the sum of its cash flow: to the cent, for every example and option."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from engine.assess import assess, assess_point
from engine.catalogue import load_catalogue
from engine.cost.monthly import monthly_cost
from engine.cost.ownership import machine_for, plan
from engine.cost.rent import Rental
from engine.decide.context import setting
from engine.decide.evaluate import evaluate
from engine.decide.owning import Owner, gpu_owner
from engine.decide.paying import flow_of, pool_lines, usd_per_month
from engine.decide.shortlist import shortlist
from engine.workload.answers import Location
from engine.workload.cost_terms import CostTerms, Site
from engine.workload.examples import EXAMPLES
from engine.workload.settings import Settings
from engine.workload.workload import Workload, parse

TODAY = date(2026, 12, 1)
EVERYTHING = Settings(
    costs=CostTerms(
        stored_gb=20_000, egress_gb=5_000, managed=True, support=True, site=Site.own_room,
        usd_per_kwh=0.2, staff_fte=2.0, pue=1.4,
    )
)  # fmt: skip


@pytest.mark.parametrize("name", list(EXAMPLES))
@pytest.mark.parametrize("settings", [Settings(), EVERYTHING], ids=["usual", "everything"])
def test_every_option_costs_what_its_table_sums_to(name: str, settings: Settings) -> None:
    workload = EXAMPLES[name].workload
    place = setting(workload, None, TODAY, settings)
    x = place.context.inputs.point()
    for spec in shortlist(place.context, place.gpus, place.cpus, x, {}):
        found = evaluate(spec, x, place.context)
        flow = flow_of(found, place.context)
        assert flow.per_month == pytest.approx(float(found.usd_per_month[0]), abs=0.005)
        cells = sum(sum(row.by_month) for row in flow.table())
        assert cells / flow.months == pytest.approx(float(found.usd_per_month[0]), abs=0.005)


def owner(terms: CostTerms = CostTerms(), months: int = 36) -> Owner:  # noqa: B008 - frozen
    found = gpu_owner(load_catalogue(), "h100-sxm-80gb", months, Location.anywhere, 3.0, terms)
    assert found is not None
    return found


@pytest.mark.parametrize(("machines", "hours"), [(1, 0.0), (1, 500.0), (7, 300.0), (40, 730.0)])
def test_owning_a_fleet_is_the_cash_flow_of_that_very_fleet(machines: int, hours: float) -> None:
    # The same through the cost engine by hand: eight H100 a machine, rented at $24 until delivery.
    catalogue = load_catalogue()
    own = plan(machine_for("h100-sxm-80gb"), machines, 36, catalogue.capital)
    if not own.facility.feasible:
        pytest.fail("an air-cooled H100 server is within a rack's limit")
    want = monthly_cost(own.terms, "buy", machines, hours, 36, bridge=Rental(24.0))
    lines = owner().lines(np.array([float(machines)]), np.array([hours]))
    assert {x.item for x in lines} == {x.item for x in want.lines if x.amount}
    for line in lines:
        twin = next(x for x in want.lines if x.item == line.item)
        assert float(np.asarray(line.total)[0]) == pytest.approx(float(twin.total), rel=1e-9)
        assert np.array_equal(line.schedule, twin.schedule)
    assert owner().usd_per_month(machines, hours) == pytest.approx(float(want.per_month))


def test_many_sizes_are_close_to_each_size_alone() -> None:
    sizes = np.arange(1.0, 200.0)
    hours = np.full_like(sizes, 400.0)
    totals = [np.asarray(line.total) for line in owner().lines(sizes, hours)]
    many = np.sum(np.array(totals), axis=0) / 36
    alone = np.array([owner().usd_per_month(n, 400.0) for n in sizes])
    # Between the sizes worked out a step of a switch or of the staff may be missed.
    assert np.max(np.abs(many / alone - 1)) < 0.06
    known = np.isin(sizes, [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128])
    assert np.allclose(many[known], alone[known], rtol=1e-9)


def test_what_the_user_states_of_the_place_enters() -> None:
    usual, own_room = owner(), owner(CostTerms(site=Site.own_room))
    items = {x.item for x in own_room.lines(np.array([4.0]), np.array([730.0]))}
    assert "Machine room" in items
    assert "Colocation" not in items
    # Power of the same fleet at three times the price of power is three times as dear.
    row = load_catalogue().capital["pow-us-com"].likely
    dear = owner(CostTerms(usd_per_kwh=3 * row))

    def power(of: Owner) -> float:
        rows = of.lines(np.array([4.0]), np.array([730.0]))
        return float(np.asarray(next(x for x in rows if x.item == "Power").total)[0])

    assert power(dear) == pytest.approx(3 * power(usual))
    # A quote for one machine replaces the price of the very machine it is for.
    quoted = owner(CostTerms(machine_sku="h100-sxm-80gb", machine_usd=200_000))
    other = owner(CostTerms(machine_sku="b200-sxm-180gb", machine_usd=200_000))
    machines = {x.item: x for x in quoted.lines(np.array([4.0]), np.array([1.0]))}["Machines"]
    assert float(np.asarray(machines.total)[0]) == pytest.approx(800_000)
    assert other.usd_per_month(4, 400) == pytest.approx(usual.usd_per_month(4, 400))


def test_what_the_room_cannot_carry_is_refused_with_the_reason() -> None:
    # A machine of eight H100 draws 8 kW: six of them take 48 kW, seven 56.
    assert load_catalogue().capital["node-power-h100"].likely == 8
    small = owner(CostTerms(available_kw=50))
    assert "50 kW are available" in small.refusal(8)
    assert small.refusal(6) == ""
    assert list(small.refused(np.array([4.0, 8.0, 4.0]))) == [False, True, False]
    late = owner(CostTerms(delivery_months=6), months=6)
    assert "delivered in month 6" in late.refusal(1)
    many = small.refused(np.arange(1.0, 30.0))
    assert list(many) == [n > 6 for n in range(1, 30)]


def test_the_range_of_owning_is_wide_and_around_its_likely_value() -> None:
    low, high = owner().spread
    # Most rows reach further up than down (staff, maintenance, spares), so the range does too.
    assert 0.5 < low < 1
    assert 1.15 < high < 2


def reserved(months: int) -> float:
    """USD a month of one L40S reserved for a year, used for a tenth of the hours."""
    workload = parse({"kind": "other", "horizon_months": months, "useful_hours_per_month": 73})
    place = setting(workload, None, TODAY)
    unit = next(u for u in place.gpus if "reserved_1y" in u.prices)
    x = place.context.inputs.point()
    one = np.ones(1)
    lines = pool_lines("reserved_1y", unit, one, 73 * one, one, x, place.context)
    rent, usual = unit.prices["reserved_1y"].likely, unit.prices["on_demand"].likely
    at = float(usd_per_month(lines, months, 1)[0])
    if months == 6:  # the whole year is owed: twice the rent of six months
        assert at == pytest.approx(2 * 730 * rent)
    elif months == 24:
        assert at == pytest.approx(730 * rent)
    else:  # 18 months: a year of all hours, then six months of the used ones on demand
        assert at == pytest.approx((12 * 730 * rent + 6 * 73 * usual) / 18)
    return at


@pytest.mark.parametrize("months", [6, 18, 24])
def test_a_year_reserved_is_paid_to_its_end_and_then_by_the_hour(months: int) -> None:
    assert reserved(months) > 0


def test_a_useful_hour_on_spot_leaves_out_what_interruptions_cost() -> None:
    workload = Workload(kind=EXAMPLES["13b-47-runs"].workload.kind)
    answer = assess_point(workload, today=TODAY)
    for option in answer.options:
        if option.usd_per_useful_hour is None:
            continue
        hours = option.usd_per_month.likely / option.usd_per_useful_hour.likely
        busy = sum(s.busy_hours_per_month for s in option.stages)
        assert hours < busy if option.acquisition == "spot" else hours == pytest.approx(busy)


def test_the_discount_rate_is_what_tied_up_capital_costs() -> None:
    """11% is the usual rate (capital.csv, wacc): told, it changes nothing; interest is linear.

    One purchase, so the rate's step of 3 points (8 to 11%) is a quarter of that of 12 (8 to 20%).
    """
    workload = EXAMPLES["16-nodes-own-or-cloud"].workload

    def bought(rate: float | None) -> float:
        settings = Settings(costs=CostTerms(discount_pct=rate))
        answer = assess(workload, settings=settings, today=date(2026, 12, 1), draws=0)
        first = next(o for o in answer.options if o.acquisition == "buy")
        return first.usd_per_month.likely

    at_8, at_11, at_20 = bought(8.0), bought(11.0), bought(20.0)
    assert at_11 == pytest.approx(bought(None))
    assert at_8 < at_11 < at_20
    assert (at_11 - at_8) / (at_20 - at_8) == pytest.approx(3 / 12, rel=0.01)
