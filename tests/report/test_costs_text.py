"""The costs for a shell and for programs: the figures of the page, and all of them."""

from __future__ import annotations

import json

import pytest

from engine.report.costs_text import costs_json, costs_text
from engine.report.currency import currency_of
from tests.report.costs_sample import EUROS, NAMES, STATED, costs


@pytest.mark.parametrize("name", NAMES)
def test_the_text_shows_each_way_that_has_a_price(name: str) -> None:
    report, answer = costs(name)
    text = costs_text(report, answer)
    currency = currency_of(answer.settings.costs)
    assert max(map(len, text.splitlines())) <= 110
    for way in report.ways:
        assert way.label in text
        if way.headline is not None:
            assert currency.money(way.headline.per_month.likely) in text
            assert currency.money(way.headline.npv.likely) in text
    assert report.chosen.headline is not None
    assert currency.exact(report.chosen.headline.total.likely) in text


def test_the_text_is_in_the_readers_currency_with_its_rate() -> None:
    text = costs_text(*costs("trading-models", **EUROS), "https://x.example/")
    head = text.partition("Your demand")[0]
    assert "$" not in head
    assert "€" in head
    assert "0.925 for one US dollar, your rate of 1 Dec 2026" in " ".join(text.split())
    assert text.endswith("Link: https://x.example/\n")


@pytest.mark.parametrize("name", NAMES)
def test_the_json_is_plain_and_adds_up(name: str) -> None:
    report, answer = costs(name)
    told = json.loads(json.dumps(costs_json(report, answer), allow_nan=False))
    assert (told["schema"], told["version"]) == ("clusterfit/costs", 1)
    assert [way["id"] for way in told["ways"]] == [way.id for way in report.ways]
    for way in told["ways"]:
        if way["table"] is None:
            assert way["refusals"]
            continue
        for row in way["table"]:
            assert sum(row["usd_by_month"]) == pytest.approx(row["usd_total"], abs=0.005)
        total = sum(row["usd_total"] for row in way["table"])
        assert total == pytest.approx(way["headline"]["total"]["likely"], abs=0.005)


def test_mixes_for_a_stated_demand_are_in_the_json() -> None:
    report, answer = costs("16-nodes-own-or-cloud", **STATED)
    told = costs_json(report, answer)
    assert report.demand.best is not None
    assert told["demand"]["best"] == report.demand.best.id
    assert report.demand.best.id in [way["id"] for way in told["demand"]["mixes"]]
