"""One table per candidate and acquisition: what is paid, when, and that the sums are the sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cost.monthly import Acquisition, monthly_cost, units_for
from engine.cost.own import Ownership
from engine.cost.rent import Fees, Rental, SpotTerms
from engine.errors import InputError

SPOT = SpotTerms(interruptions_per_hour=0.15 / 24, save=0.02, restart=0.3, requeue=0.5)
RENTED: tuple[Acquisition, ...] = (
    "on_demand",
    "spot",
    "reserved_1y",
    "reserved_3y",
    "dedicated",
)
NODE = Ownership(
    320_000,
    network_usd=90_000,
    installation_share=0.02,
    spares_share=0.02,
    kw_per_unit=10,
    idle_power_share=0.3,
    usd_per_kwh=0.12,
    pue=1.3,
    housing_usd_per_kw_month=174,
    staff_fte=1,
    usd_per_fte_year=220_000,
    maintenance_share_per_year=0.05,
    resale_share=0.3,
    cost_of_capital=0.11,
    delivery_months=2,
)


def test_on_demand_pays_for_hours_used() -> None:
    # 4 machines x 55.04 x 100 h x 6 months = 132,096
    flow = monthly_cost(Rental(55.04), "on_demand", 4, 100, 6)
    assert flow.total == pytest.approx(132_096)
    assert flow.per_month == pytest.approx(22_016)
    # 600 useful hours of the plan: 132,096/600
    assert flow.cost_per_useful_hour == pytest.approx(220.16)


def test_a_service_pays_around_the_clock() -> None:
    # 2 x 10 x 730 = 14,600 a month
    flow = monthly_cost(Rental(10.0), "on_demand", 2, 100, 3, service=True)
    assert flow.per_month == pytest.approx(14_600)


def test_failures_make_hours_dearer() -> None:
    assert monthly_cost(Rental(10.0), "on_demand", 1, 90, 1, goodput=0.9).total == pytest.approx(
        1_000
    )


def test_a_reservation_is_paid_when_idle_and_to_its_end() -> None:
    # one year from a horizon of six months: 10 x 730 x 12 = 87,600, half of it after the horizon
    flow = monthly_cost(Rental(10.0), "reserved_1y", 1, 50, 6)
    assert flow.total == pytest.approx(87_600)
    assert flow.lines[-1].item == "Commitment left: 6 months"
    assert flow.notes == ("The reservation outlasts the horizon by 6 months.",)


def test_after_its_term_a_reservation_goes_on_on_demand_or_renews() -> None:
    # 12 x 7,300 + 3 x 20 x 50 = 90,600; renewed: two terms, 175,200
    after = Rental(10.0, after_term_usd_per_hour=20.0)
    assert monthly_cost(after, "reserved_1y", 1, 50, 15).total == pytest.approx(90_600)
    assert monthly_cost(Rental(10.0), "reserved_1y", 1, 50, 15).total == pytest.approx(175_200)


def test_dedicated_rent_is_whole_months_and_a_minimum_term() -> None:
    # 10 x 730 x 3 = 21,900 for a job of one month
    assert monthly_cost(Rental(10.0, min_months=3), "dedicated", 1, 50, 1).total == pytest.approx(
        21_900
    )


def test_spot_pays_for_what_interruptions_destroy() -> None:
    flow = monthly_cost(Rental(20.0, spot=SPOT), "spot", 1, 100, 1)
    lost = float(flow.lines[1].total)
    assert flow.lines[1].item == "Lost to interruptions"
    assert 0 < lost < 0.1 * 2_000
    many = monthly_cost(Rental(20.0, spot=SPOT), "spot", 64, 100, 1)
    assert float(many.total) / 64 > float(flow.total), "64 machines are stopped 64 times as often"


def test_replicas_of_a_service_are_taken_one_by_one() -> None:
    one, many = (
        float(monthly_cost(Rental(20.0, spot=SPOT), "spot", n, 730, 1, service=True).total) / n
        for n in (1, 64)
    )
    assert many == pytest.approx(one)


def test_fees_are_rows_of_their_own() -> None:
    fees = Fees(egress=100, storage=50, managed_service=73, support_share=0.03)
    flow = monthly_cost(Rental(10.0), "on_demand", 1, 100, 2, fees=fees)
    # 2 x (1,000 + 100 + 50 + 73 + 30)
    assert flow.total == pytest.approx(2_506)
    assert flow.section_total("fees") == pytest.approx(506)


def test_buying_row_by_row() -> None:
    flow = monthly_cost(NODE, "buy", 16, 292, 36)
    rows = {line.item: float(line.total) for line in flow.lines}
    assert rows["Machines"] == 5_120_000
    assert rows["Network"] == 90_000
    assert rows["Installation"] == pytest.approx(104_200)  # 2% of 5.21M
    # 160 kW x (0.4 + 0.6 x 0.3) x 730 h x 0.12 x 34 months of work
    assert rows["Power"] == pytest.approx(276_395.52)
    assert rows["Cooling and losses"] == pytest.approx(0.3 * rows["Power"])
    assert rows["Colocation"] == pytest.approx(160 * 174 * 34)
    assert rows["Staff"] == pytest.approx(220_000 / 12 * 34)
    assert rows["Maintenance"] == pytest.approx(5_210_000 * 0.05 / 12 * 34)
    assert rows["Resale"] == pytest.approx(-0.3 * 5_120_000)
    assert flow.useful_hours == pytest.approx(292 * 34)


def test_a_month_without_resale_is_nought_and_has_no_minus_before_it() -> None:
    (row,) = (r for r in monthly_cost(NODE, "buy", 16, 292, 36).table() if r.item == "Resale")
    assert {str(usd) for usd in row.by_month[:-1]} == {"0.0"}
    assert row.by_month[-1] == pytest.approx(-0.3 * 5_120_000)


def test_what_is_rented_until_delivery_is_a_row() -> None:
    # 2 months x 4 machines x 55.04 x 300 h
    flow = monthly_cost(NODE, "buy", 4, 300, 36, bridge=Rental(55.04))
    assert flow.section_total("rent") == pytest.approx(132_096)
    assert flow.useful_hours == 300 * 36
    assert flow.notes == ("Rented in the first 2 months, until delivery.",)


@given(st.floats(0, 730), st.integers(3, 60), st.sampled_from((*RENTED, "buy")))
def test_the_sums_of_the_table_are_the_headline_numbers_to_the_cent(
    hours: float, months: int, acquisition: Acquisition
) -> None:
    hardware = NODE if acquisition == "buy" else Rental(55.04, spot=SPOT)
    flow = monthly_cost(hardware, acquisition, 16, hours, months, fees=Fees(support_share=0.1))
    cells = [usd for row in flow.table() for usd in row.by_month]
    total = float(flow.total)
    assert math.fsum(cells) == pytest.approx(total, abs=0.005)
    assert math.fsum(row.total for row in flow.table()) == pytest.approx(total, abs=0.005)
    assert float(flow.cumulative[-1]) == pytest.approx(total, abs=0.005)
    assert float(flow.per_month) * months == pytest.approx(total, abs=0.005)
    if hours >= 0.01:
        assert float(flow.cost_per_useful_hour) * float(flow.useful_hours) == pytest.approx(total)
        assert float(flow.per_run(2)) * 2 * months == pytest.approx(total)


def test_a_point_and_its_draws_go_through_the_same_sums() -> None:
    prices = np.array([40.0, 55.04, 70.0])
    for acquisition in RENTED:
        draws = monthly_cost(Rental(prices, spot=SPOT), acquisition, 4, 300, 18)
        points = [
            float(monthly_cost(Rental(p, spot=SPOT), acquisition, 4, 300, 18).npv(0.1))
            for p in prices.tolist()
        ]
        assert np.allclose(draws.npv(0.1), points)
        assert draws.monthly.shape == (3, 18)
        assert np.allclose(draws.monthly.sum(axis=1), draws.total)


@given(st.floats(1, 100), st.floats(0.5, 1), st.sampled_from(RENTED))
def test_cost_falls_or_stays_when_a_rent_falls(
    price: float, factor: float, acquisition: Acquisition
) -> None:
    def total(usd: float, later: float | None) -> float:
        rental = Rental(usd, spot=SPOT, after_term_usd_per_hour=later)
        return float(monthly_cost(rental, acquisition, 2, 200, 14).total)

    assert total(price * factor, 20.0) <= total(price, 20.0)
    assert total(price, 20.0 * factor) <= total(price, 20.0)


PRICES_OF_OWNING = (
    "usd_per_unit",
    "network_usd",
    "usd_per_kwh",
    "housing_usd_per_kw_month",
    "usd_per_fte_year",
    "maintenance_share_per_year",
    "cost_of_capital",
)


@given(st.sampled_from(PRICES_OF_OWNING), st.floats(0.1, 1))
def test_cost_falls_or_stays_when_a_price_of_owning_falls(field: str, factor: float) -> None:
    from dataclasses import replace

    cheaper = replace(NODE, **{field: getattr(NODE, field) * factor})
    before = float(monthly_cost(NODE, "buy", 4, 300, 24).total)
    assert float(monthly_cost(cheaper, "buy", 4, 300, 24).total) <= before


def test_present_value_counts_the_cost_of_capital_once() -> None:
    flow = monthly_cost(NODE, "buy", 1, 300, 12)
    assert flow.npv(0.0) == pytest.approx(
        float(flow.total) - float(flow.section_total("financing"))
    )
    assert float(flow.npv(0.2)) != float(flow.npv(0.0))


def test_present_value_by_hand() -> None:
    # rent of 1,000 at the end of each of 12 months at 12% a year:
    # monthly factor v = 1.12^(-1/12); 1,000 x v(1 - v^12)/(1 - v) = 11,292.14
    v = 1.12 ** (-1 / 12)
    flow = monthly_cost(Rental(10.0), "on_demand", 1, 100, 12)
    assert flow.npv(0.12) == pytest.approx(1_000 * v * (1 - v**12) / (1 - v))


def test_no_useful_hours_give_never_and_no_traceback() -> None:
    flow = monthly_cost(Rental(10.0), "dedicated", 1, 0, 12)
    assert flow.cost_per_useful_hour == math.inf
    assert flow.per_run(0) == math.inf
    assert flow.per_million(0) == math.inf
    assert "does not exist" in flow.notes[0]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("usd_per_hour", {"hardware": Rental(0.0)}),
        ("usd_per_hour", {"hardware": Rental(-3.0)}),
        ("usd_per_hour", {"hardware": Rental(math.nan)}),
        ("usd_per_hour", {"hardware": Rental(1e15)}),
        ("usd_per_hour", {"hardware": Rental(np.array([10.0, 0.0]))}),
        ("units", {"units": 0}),
        ("units", {"units": -1}),
        ("useful_hours_per_month", {"useful_hours_per_month": -1}),
        ("useful_hours_per_month", {"useful_hours_per_month": 800}),
        ("horizon_months", {"horizon_months": 0}),
        ("horizon_months", {"horizon_months": 61}),
        ("goodput", {"goodput": 0}),
        ("spot", {"acquisition": "spot"}),
        ("acquisition", {"acquisition": "buy"}),
        ("min_months", {"acquisition": "dedicated", "hardware": Rental(1.0, min_months=0)}),
        ("usd_per_unit", {"acquisition": "buy", "hardware": Ownership(0.0)}),
        ("pue", {"acquisition": "buy", "hardware": Ownership(1.0, pue=0.5)}),
        ("delivery_months", {"acquisition": "buy", "hardware": Ownership(1.0, delivery_months=6)}),
        ("acquisition", {"acquisition": "on_demand", "hardware": Ownership(1.0)}),
    ],
)
def test_senseless_numbers_are_refused_by_field(field: str, change: dict[str, object]) -> None:
    arguments: dict[str, object] = {
        "hardware": Rental(10.0),
        "acquisition": "on_demand",
        "units": 1,
        "useful_hours_per_month": 100,
        "horizon_months": 6,
    }
    with pytest.raises(InputError, match=f"^{field}"):
        monthly_cost(**(arguments | change))  # type: ignore[arg-type]


def test_machines_of_a_committed_plan() -> None:
    # 47 runs in 6 months of 93 h: 728.5 h a month fit one node; of 443 h: 3,470/730 = 4.75, so 5
    assert units_for(47 / 6, 93) == 1
    assert units_for(47 / 6, 443) == 5
    # planned for 85% of the hours, 93 h a run need a second node
    assert units_for(47 / 6, 93, planned_use=0.85) == 2
    with pytest.raises(InputError, match="planned_use"):
        units_for(1, 1, planned_use=0)
