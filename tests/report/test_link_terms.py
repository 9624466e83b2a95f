"""The terms of the plan pages in the link and in files: whole round trips, bad input told."""

from __future__ import annotations

from datetime import date
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ClusterFitError, InputError
from engine.report.link import (
    decode,
    decode_query,
    decode_query_settings,
    decode_settings,
    encode,
    query_string,
    share_link,
)
from engine.report.link_terms import PAGES, encode_terms
from engine.workload.cost_terms import CostTerms, DemandBy, Site
from engine.workload.files import plan_from_text, to_toml
from engine.workload.settings import USUAL, Settings
from engine.workload.terms import parse_terms
from engine.workload.workload import DEFAULT, parse
from tests.report.sample import FULL

FULL_COSTS: dict[str, Any] = {
    "hardware": "gpu/h100-sxm-80gbx8",
    "way": "reserved_1y",
    "currency": "EUR",
    "currency_rate": 0.86,
    "currency_date": date(2026, 11, 28),
    "discount_pct": 8,
    "stored_gb": 500,
    "egress_gb": 120.5,
    "managed": True,
    "support": True,
    "machine_sku": "h100-sxm-80gb",
    "machine_usd": 312_000,
    "site": "own_room",
    "cooling": "liquid",
    "usd_per_kwh": 0.21,
    "pue": 1.3,
    "available_kw": 80,
    "delivery_months": 4,
    "staff_fte": 1.5,
    "idle_pct": 30,
    "idle_uses": (10, 20, 30, 40),
    "demand_by": "monthly",
    "demand_machines": 12,
    "hours_per_day": 10,
    "days_per_week": 5,
    "monthly_hours": (100, 200.5, 0),
    "log_levels": (1, 4),
    "log_shares": (25, 75),
    "block_days": 28,
    "move_engineers": 3,
    "move_months": 5,
    "engineer_usd_per_month": 15_000,
    "usd_per_hour_saved": 40,
}
TERMS = parse_terms(CostTerms, FULL_COSTS)


def test_every_term_can_be_changed_and_comes_back() -> None:
    assert set(FULL_COSTS) == set(CostTerms.model_fields)
    for name in CostTerms.model_fields:
        assert getattr(TERMS, name) != getattr(CostTerms(), name), name
    settings = Settings(costs=TERMS)
    assert decode_settings(encode(DEFAULT, settings)) == (settings, [])
    query = query_string(parse(FULL), date(2026, 12, 1), settings)
    assert decode_query_settings(query) == (settings, [])
    assert decode_query(query) == (parse(FULL), [])


def test_short_names_are_told_apart() -> None:
    for model in PAGES.values():
        shorts = [model.short(name) for name in model.model_fields]
        assert all(shorts)
        assert len(set(shorts)) == len(shorts)
        # A short name is never the full name of another term.
        assert not {s for s in shorts if s in model.model_fields and model.short(s) != s}


def test_the_link_says_only_what_differs() -> None:
    assert encode(DEFAULT) == {}
    settings = Settings(costs=CostTerms(discount_pct=8, site=Site.own_room))
    assert encode(DEFAULT, settings) == {"v": "1", "costs": "npv:8,site:own_room"}
    address = share_link(DEFAULT, "https://h.example/costs", date(2026, 12, 1), settings)
    assert address == "https://h.example/costs?v=1&costs=npv:8,site:own_room&d=2026-12-01"


@pytest.mark.parametrize(
    ("text", "left", "said"),
    [
        ("npv:many", {}, "a number is needed"),
        ("npv:-1", {}, "“-1” is left out"),
        ("npv:8,npv:9", {"discount_pct": 8}, "“npv:9” is left out"),
        ("colour:red,kwh:0.2", {"usd_per_kwh": 0.2}, "“colour:red” is left out"),
        ("site:cellar", {}, "it must be one of colocation, own_room"),
        ("rated:yesterday", {}, "a date is needed"),
        ("uses:10/20", {}, "four shares are needed"),
        ("uses:10/20/30/30", {}, "not to 100%"),
        ("levels:1/2,shares:50", {}, "each level"),
        ("cur:USD,rate:2", {}, "a US dollar is one US dollar"),
        ("kwh:1e-9", {}, "too small"),
        ("kwh:" + "9" * 3000, {}, "characters long"),
        ("<script>", {}, "there is no such term"),
    ],
)
def test_what_cannot_be_used_is_left_out_and_said(
    text: str, left: dict[str, Any], said: str
) -> None:
    settings, notes = decode_settings({"costs": text})
    assert settings.costs == CostTerms(**left)
    assert any(said in str(note) for note in notes), notes


@given(st.text(max_size=300))
def test_no_text_breaks_the_reading(text: str) -> None:
    settings, notes = decode_settings({"costs": text})
    assert notes or settings.costs == CostTerms() or encode_terms(settings)
    assert decode({"costs": text})[0] == DEFAULT


@given(st.data())
def test_random_terms_come_back_whole(data: st.DataObject) -> None:
    values = {}
    for name, usual in FULL_COSTS.items():
        if data.draw(st.booleans(), label=name):
            values[name] = data.draw(st.floats(0.001, 4.9)) if isinstance(usual, float) else usual
    try:
        settings = Settings(costs=parse_terms(CostTerms, values))
    except ClusterFitError:
        return
    query = query_string(DEFAULT, settings=settings)
    assert decode_settings(parse_qs(query)) == (settings, [])
    assert plan_from_text(to_toml(DEFAULT, settings)) == (DEFAULT, settings)


def test_files_hold_the_terms_in_a_table() -> None:
    settings = Settings(costs=TERMS)
    for everything in (False, True):
        text = to_toml(parse(FULL), settings, everything=everything)
        assert plan_from_text(text) == (parse(FULL), settings)
    assert "[costs]" not in to_toml(parse(FULL), USUAL)
    told = plan_from_text('{"kind": "lora", "costs": {"site": "own_room"}}')[1]
    assert told.costs.site is Site.own_room


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        ("[costs]\nsitee = 'own_room'", "line 2, sitee", "there is no such term"),
        ("[costs]\npue = 0.5", "line 2, pue", "greater than or equal to 1"),
        ("[costs]\npue = true", "line 2, pue", "true or false"),
        ("costs = 5", "costs", "its terms are missing"),
        ("[costs]\nlog_levels = [1]", "log_levels", "each level of the log"),
    ],
)
def test_a_wrong_term_of_a_file_is_named_with_its_line(text: str, where: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        plan_from_text(text, "job.toml")
    assert where in caught.value.where
    assert said in str(caught.value)


def test_a_month_of_the_list_must_fit_the_machines() -> None:
    with pytest.raises(InputError, match="at least 2 machines"):
        # 1,460 machine-hours are two machines around the clock.
        parse_terms(
            CostTerms,
            {"demand_by": DemandBy.monthly, "demand_machines": 1, "monthly_hours": (1460.0,)},
        )
