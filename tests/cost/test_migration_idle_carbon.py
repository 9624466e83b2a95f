"""Migration, the idle budget and carbon, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.cost.break_even import Range
from engine.cost.carbon import carbon, factor_for
from engine.cost.idle_budget import default_uses, idle_budget
from engine.cost.migration import Migration, assess, cash_flow
from engine.errors import InputError

LOGISTICS = Migration(
    usd_before=38_000,
    usd_after=42_000,
    hours_before=0.75,
    hours_after=3.5 / 60,
    runs_per_month=2_000,
    engineers=2,
    planned_months=2,
    usd_per_engineer_month=15_000,
    overrun=Range(1, 2, 3),
)


def test_a_bill_that_rises_never_pays_back_in_cash() -> None:
    found = assess(LOGISTICS)
    assert found.payback_month is None
    assert found.text.startswith("Never in cash: the bill rises by $4,000")
    # two planned months, times three at worst: the six months of the article
    assert found.months_of_work == Range(2, 4, 6)
    assert found.engineering_usd == Range(60_000, 120_000, 180_000)
    assert found.both_systems_usd.likely == 4 * 42_000


def test_the_worth_of_time_can_pay_for_it() -> None:
    # 2,000 runs x (0.75 - 0.05833) h = 1,383.3 h a month; at $40: 55,333 - 4,000 = 51,333 saved;
    # 4 months of work + (120,000 + 168,000)/51,333 = 9.6, so in month 10;
    # early 2 + 144,000/51,333 = 4.8, late 6 + 432,000/51,333 = 14.4
    found = assess(replace(LOGISTICS, usd_per_hour_saved=40))
    assert found.saved_usd_per_month == pytest.approx(51_333, abs=1)
    assert (found.payback_early, found.payback_month, found.payback_late) == (5, 10, 15)
    assert "cash and time in month 10" in found.text


def test_a_smaller_bill_pays_back_in_cash() -> None:
    # 2 months + (60,000 + 2 x 8,000)/30,000 = 4.5
    found = assess(replace(LOGISTICS, usd_after=8_000, overrun=Range(1, 1, 1)))
    assert found.payback_month == 5
    assert "in cash in month 5" in found.text


def test_both_bills_run_while_it_lasts() -> None:
    # 12 months: new 12 x 42,000, old 4 x 38,000, engineers 4 x 30,000
    flow = cash_flow(LOGISTICS, 12)
    assert flow.total == pytest.approx(504_000 + 152_000 + 120_000)
    # half a month of overrun is half a month of engineers: 2.5 x 30,000
    part = cash_flow(LOGISTICS, 12, overrun=1.25)
    engineers = next(line for line in part.lines if line.item == "Engineers")
    assert engineers.total == pytest.approx(75_000)


@pytest.mark.parametrize("field", ["usd_before", "usd_after", "hours_before", "hours_after"])
def test_senseless_migrations_are_refused_by_field(field: str) -> None:
    change: dict[str, Any] = {field: 0}
    with pytest.raises(InputError, match=field):
        assess(replace(LOGISTICS, **change))


def test_idle_is_a_share_of_the_plans_own_bill() -> None:
    # 8 x 9,600 = 76,800 x 15% = 11,520; 35/25/20/20 of it; 109.5 h a month
    budget = idle_budget(76_800)  # the table's 15%
    assert budget.usd_per_month == pytest.approx(11_520)
    assert budget.hours_per_month == pytest.approx(109.5)
    assert dict(budget.usd_by_use) == pytest.approx(
        {"stress_tests": 4_032, "evaluation": 2_880, "internal_tools": 2_304, "nothing": 2_304}
    )


def test_an_idle_split_must_be_whole() -> None:
    assert sum(default_uses().values()) == pytest.approx(1)
    with pytest.raises(InputError, match="idle_uses"):
        idle_budget(1_000, 0.15, {"nothing": 0.5})
    with pytest.raises(InputError, match="idle_share"):
        idle_budget(1_000, 1.5)


def test_energy_and_emissions_by_region() -> None:
    # 10 kW x 730 h x PUE 1.3 = 9,490 kWh; Virginia's grid 0.418: 3,967 kg
    month = carbon(1, 10, 730, 1.3, "us-east-1")
    assert month.kwh_per_month == pytest.approx(9_490)
    assert month.kg_co2e_per_month.likely == pytest.approx(3_966.8, abs=0.1)
    assert "Electricity Maps" in month.source
    france = carbon(1, 10, 730, 1.3, "fr").kg_co2e_per_month
    assert france.high < month.kg_co2e_per_month.low / 5


def test_an_idle_machine_draws_power_too() -> None:
    # (10 x 365 + 3 x 365) x 1 = 4,745
    assert carbon(
        1, 10, 365, 1.0, "us", idle_kw_per_unit=3, powered_hours_per_month=730
    ).kwh_per_month == pytest.approx(4_745)


@pytest.mark.parametrize(
    ("region", "name"),
    [
        ("us-west-2", "BPA"),
        ("europe-west4", "Netherlands"),
        ("eastus", "PJM"),
        ("EU", "European Union"),
        ("somewhere", "World"),
    ],
)
def test_a_cloud_region_finds_its_grid(region: str, name: str) -> None:
    assert factor_for(region).description.startswith(name)


def test_senseless_energy_is_refused_by_field() -> None:
    with pytest.raises(InputError, match="pue"):
        carbon(1, 10, 730, 0.9, "us")
    with pytest.raises(InputError, match="kw_per_unit"):
        carbon(1, -1, 730, 1.2, "us")
