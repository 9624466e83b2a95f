"""The costs as CSV: every row, sums to the cent, and nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from engine.assessment import Assessment
from engine.costing.model import CostReport, Way
from engine.report.costs_csv import costs_csv
from tests.report.costs_sample import EUROS, NAMES, STATED, costs

CENT = 0.005
Lines = list[dict[str, str]]


def read(report: CostReport, answer: Assessment, link: str = "") -> Lines:
    text = costs_csv(report, answer, link).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def of(lines: Lines, part: str, way: str = "") -> Lines:
    return [x for x in lines if x["part"] == part and (not way or x["way"] == way)]


def figure(lines: Lines, part: str, item: str, way: str = "", column: str = "likely") -> float:
    found = [x for x in of(lines, part, way) if x["item"] == item]
    assert len(found) == 1, (part, item, way, found)
    return float(found[0][column])


def priced(report: CostReport) -> list[Way]:
    return [w for w in report.ways if w.flow is not None]


def months(line: dict[str, str]) -> list[float]:
    return [float(v) for k, v in line.items() if k.startswith("month ") and v]


@pytest.mark.parametrize("name", NAMES)
def test_the_rows_of_each_way_add_up_to_its_total_to_the_cent(name: str) -> None:
    report, answer = costs(name)
    lines = read(report, answer)
    for way in priced(report):
        assert way.flow is not None
        assert way.headline is not None
        rows = of(lines, "Cash flow", way.label)
        assert len(rows) == len(way.flow.lines)
        for row in rows:
            assert len(months(row)) == report.months
            assert sum(months(row)) == pytest.approx(float(row["total USD"]), abs=CENT)
        total = sum(float(row["total USD"]) for row in rows)
        assert total == pytest.approx(way.headline.total.likely, abs=CENT)
        assert total == pytest.approx(figure(lines, "Headline", "Total", way.label), abs=CENT)
        month = figure(lines, "Headline", "Cost a month", way.label)
        assert month * report.months == pytest.approx(total, abs=CENT)
        sums = of(lines, "Sums", way.label)[0]
        assert months(sums) == pytest.approx(
            [sum(column) for column in zip(*map(months, rows), strict=True)], abs=CENT
        )


@pytest.mark.parametrize("name", NAMES)
def test_what_is_derived_can_be_worked_out_from_the_file_alone(name: str) -> None:
    report, answer = costs(name)
    lines = read(report, answer)
    rate = figure(lines, "Terms", "Discount rate") / 100
    for way in priced(report):
        value = 0.0
        for row in of(lines, "Cash flow", way.label):
            late = 1 if row["paid"] == "end of the month" else 0
            if row["section"] != "Cost of capital":
                value += sum(
                    usd / (1 + rate) ** ((m + late) / 12) for m, usd in enumerate(months(row))
                )
        npv = figure(lines, "Headline", "Net present value", way.label)
        assert value == pytest.approx(npv, abs=CENT)
        total = figure(lines, "Headline", "Total", way.label)
        hours = figure(lines, "Terms", "Useful hours of the horizon", way.label)
        each = figure(lines, "Headline", "Cost of a useful hour", way.label)
        assert each * hours == pytest.approx(total, abs=CENT)
        assert way.headline is not None
        if way.headline.per_run is not None:
            runs = figure([x for x in lines if not x["source"]], "Terms", "Runs")
            run = figure(lines, "Headline", "Cost of a run", way.label)
            assert run * runs * report.months == pytest.approx(total, abs=CENT)


def test_the_counts_of_a_month_are_those_of_the_answers() -> None:
    # 47 runs in half a year, 33 billion tokens each (the example's own answers).
    report, answer = costs("13b-47-runs")
    lines = read(report, answer)
    runs = answer.workload.runs_per_month
    tokens = answer.workload.train_tokens_b
    assert runs is not None
    assert tokens is not None
    assert figure(of(lines, "Terms"), "Terms", "Runs") == pytest.approx(runs, rel=1e-9)
    assert figure(lines, "Terms", "Tokens") == pytest.approx(tokens * 1000 * runs, rel=1e-9)


def test_a_barred_way_says_why_and_break_evens_and_prices_are_there() -> None:
    report, answer = costs("client-40-to-85")
    lines = read(report, answer, "https://x.example/?v=1")
    verdicts = {x["way"]: x["item"] for x in of(lines, "Ways") if x["section"] == "Verdict"}
    assert set(verdicts) == {w.label for w in report.ways}
    assert verdicts["Capacity blocks"].startswith("Not to be had: no provider")
    even = dict(report.wins.utilization)["reserved for 1 year"]
    item = "Reserved for 1 year beats on demand above"
    for column, value in (("low", even.low), ("likely", even.value), ("high", even.high)):
        assert figure(lines, "Break-evens", item, column=column) == pytest.approx(value)
    marks = {float(x["likely"]) for x in of(lines, "Break-evens") if x["section"].startswith("As")}
    assert marks == {5, 20, 0.4, 0.5, 0.6, 18, 0.3}
    for price in report.prices:
        found = [x for x in of(lines, "Prices") if price.sku in x["item"] and price.region]
        assert any(price.source in x["source"] and price.provider in x["item"] for x in found)
        assert any(float(x["likely"]) == price.age_days for x in found)
    assert lines[-1]["item"] == "https://x.example/?v=1"


def test_another_currency_stands_beside_the_dollars_with_its_rate_and_day() -> None:
    report, answer = costs("trading-models", **EUROS)
    lines = read(report, answer)
    for row in of(lines, "Cash flow"):
        assert float(row["total EUR"]) == pytest.approx(float(row["total USD"]) * 0.925)
    own = of(lines, "Headline", report.way("buy_colocation").label)
    usd, eur = (x for x in own if x["item"] == "Net present value")
    assert (usd["unit"], eur["unit"]) == ("USD", "EUR")
    for column in ("low", "likely", "high"):
        assert float(eur[column]) == pytest.approx(float(usd[column]) * 0.925)
    rate = next(x for x in of(lines, "Terms") if x["unit"] == "EUR per US dollar")
    assert float(rate["likely"]) == 0.925
    assert "1 Dec 2026" in rate["source"]


def test_mixes_for_a_stated_demand_stand_apart() -> None:
    report, answer = costs("16-nodes-own-or-cloud", **STATED)
    lines = read(report, answer)
    best = report.demand.best
    assert best is not None
    assert best.headline is not None
    name = f"{best.label} (for the demand stated)"
    total = sum(float(x["total USD"]) for x in of(lines, "Cash flow", name))
    assert total == pytest.approx(best.headline.total.likely, abs=CENT)
    # 12 of 24 hours on 5 of 7 days: 35.7% of the hours.
    busy = next(x for x in of(lines, "Demand") if x["item"].startswith("6 ×"))
    assert float(busy["likely"]) == pytest.approx(100 * 60 / 168)


def test_what_stands_behind_a_purchase_is_there() -> None:
    report, answer = costs("16-nodes-own-or-cloud")
    lines, way = read(report, answer), report.way("buy_colocation")
    own = way.owning
    assert own is not None
    assert figure(lines, "Ways", "Machines", way.label) == own.machines
    assert figure(lines, "Ways", "Useful life until the sale", way.label) == own.life_months
    failures = figure(lines, "Ways", "Failures of devices", way.label)
    assert failures == pytest.approx(own.failures_per_year.likely)
    texts = {x["item"] for x in of(lines, "Ways", way.label)}
    assert {own.room, own.network, own.rails} <= texts
    for mix in report.demand.mixes:
        alone = figure(lines, "Demand", "The same demand, rented alone", mix.label)
        assert alone == pytest.approx(mix.rented_alone)


def test_it_opens_clean_in_a_spreadsheet() -> None:
    report, answer = costs("fraud-detection")
    workload = answer.workload.model_copy(update={"name": "=1+1"})
    ways = (replace(report.ways[0], notes=("+note", "@SUM(A1)", "a\r\n=b")), *report.ways[1:])
    data = costs_csv(replace(report, ways=ways), replace(answer, workload=workload))
    assert data.startswith(b"\xef\xbb\xbfpart,way,section,item,paid,month 1,")
    assert data.count(b"\r\n") == data.count(b"\n")
    words = ("part", "way", "section", "item", "paid", "unit", "source")
    lines = read(replace(report, ways=ways), replace(answer, workload=workload))
    for line in lines:
        assert not any(line[column].startswith(("=", "+", "-", "@")) for column in words)
        for column in set(line) - set(words):
            assert not line[column] or float(line[column]) == float(line[column])
    assert {"'+note", "'@SUM(A1)", "a =b"} <= {x["item"] for x in lines}
