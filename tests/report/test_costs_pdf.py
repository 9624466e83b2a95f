"""The costs in the report: one page, the figures of the page, in the reader's currency."""

from __future__ import annotations

import io
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

from engine.cost.cash_flow import SECTIONS
from engine.report.currency import currency_of
from engine.report.pdf import BEST_STANDARD, _compile, pdf, report
from tests.report.costs_sample import EUROS, NAMES, STATED, costs

CASES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in NAMES),
    ("trading-models", EUROS),
    ("16-nodes-own-or-cloud", STATED),
    ("16-nodes-own-or-cloud", {"way": "buy_colocation"}),
]
IDS = [f"{name}{'-' + next(iter(terms)) if terms else ''}" for name, terms in CASES]


@lru_cache
def pages(name: str, **terms: Any) -> list[str]:
    found, answer = costs(name, **terms)
    reader = PdfReader(io.BytesIO(pdf(answer, costs=found)))
    return [" ".join(page.extract_text().split()) for page in reader.pages]


def section(name: str, **terms: Any) -> str:
    """The page of the section."""
    return next(text for text in pages(name, **terms) if "What it costs: " in text)


@pytest.mark.parametrize(("name", "terms"), CASES, ids=IDS)
def test_it_holds_the_figures_of_the_page_on_one_page(name: str, terms: dict[str, Any]) -> None:
    found, answer = costs(name, **terms)
    currency = currency_of(answer.settings.costs)
    text = section(name, **terms)
    for way in found.ways:
        assert way.label in text
        h = way.headline
        if h is None:
            assert way.refusals[0] in text
            continue
        for estimate in (h.per_month, h.total, h.npv):
            assert currency.money(estimate.likely) in text
        assert currency.interval(h.per_month) in text
        if way.refusals:
            assert "ruled out" in text
    h = found.chosen.headline
    assert h is not None
    for each in (h.per_useful_hour, h.per_run, h.per_million):
        assert each is None or currency.money(each.likely) in text
    stages = [s.price for s in answer.best.stages if s.price is not None]
    for price in (*found.prices, *stages):  # of a hybrid, those of both kinds of hardware
        assert f"{price.provider} {price.sku}" in text
        assert f"{price.age_days} days old" in text
        assert currency.price(price.usd_per_unit_hour) in text
    assert "where the price is over 120 days old" in text  # the last line of the section


@pytest.mark.parametrize(("name", "terms"), CASES, ids=IDS)
def test_the_cash_flow_of_the_way_looked_at_adds_up_to_the_cent(
    name: str, terms: dict[str, Any]
) -> None:
    found, answer = costs(name, **terms)
    currency = currency_of(answer.settings.costs)
    flow = found.chosen.flow
    assert flow is not None
    data = report(answer, "", {}, found)["costs"]
    table = {row[0]: row[1:] for row in data["flow"]}
    assert table["Total"][-1] == currency.exact(float(flow.total))
    for year in range(-(-found.months // 12)):
        paid = sum(float(usd) for usd in flow.monthly[12 * year : 12 * year + 12])
        assert table["Total"][year] == currency.exact(paid)
    text = section(name, **terms)
    if len(flow.lines) <= 6:  # row by row
        assert len(data["flow"]) == len(flow.lines) + 1
        for row in flow.table():
            assert table[row.item][-1] == currency.exact(row.total)
            assert row.item in text
        return
    sections = [s for s in SECTIONS if any(line.section == s for line in flow.lines)]
    assert len(table) == len(sections) + 1
    for usd in (float(flow.section_total(s)) for s in sections):
        assert currency.exact(usd) in text


def test_break_evens_stand_beside_the_articles_marks() -> None:
    text = section("client-40-to-85")
    # $4.25 an hour reserved over $8.60 on demand: 49.4%.
    assert "Reserved for 1 year beats on demand above 49%" in text
    even = dict(costs("client-40-to-85")[0].wins.utilization)["reserved for 1 year"]
    assert even.low is not None
    assert even.high is not None
    assert f"49% {even.low:.0%} to {even.high:.0%} 40% / 50% / 60%" in text
    assert "5 / 20" in text
    assert "18 months" in text


def test_the_cost_of_a_useful_hour_is_a_picture_where_there_is_room() -> None:
    for name, drawn in (("trading-models", True), ("client-40-to-85", False)):
        found, answer = costs(name, **(EUROS if drawn else {}))
        curve = report(answer, "", {}, found)["costs"]["curve"]
        assert (curve is not None) == drawn
        if drawn:
            assert "<image" not in curve["svg"]
            owning = next(c for c in found.wins.curves if c.label == "owning")
            told = currency_of(answer.settings.costs).money(owning.usd[-1])
            assert f"owning {told}" in curve["alt"]


def test_another_currency_has_its_rate_and_no_dollars() -> None:
    text = section("trading-models", **EUROS)
    assert "Shown in EUR at 0.925 for one US dollar, your rate of 1 Dec 2026" in text
    assert "$" not in text


def test_a_report_without_costs_is_as_it_was() -> None:
    _, answer = costs("lora-7b")
    reader = PdfReader(io.BytesIO(pdf(answer)))
    text = " ".join(page.extract_text() for page in reader.pages)
    assert "All ways to pay" not in text
    assert "What it costs" in text


@pytest.mark.parametrize("name", ["trading-models", "fraud-detection"])
def test_it_passes_the_check_of_accessibility_with_costs(name: str) -> None:
    found, answer = costs(name)
    made = _compile(report(answer, "https://x.example/?v=1", {}, found), BEST_STANDARD)
    assert made.startswith(b"%PDF-1.7")


def test_other_readers_find_the_same_text(tmp_path: Path) -> None:
    if not shutil.which("pdftotext"):
        pytest.skip("pdftotext is not installed")
    found, answer = costs("trading-models")
    path = tmp_path / "report.pdf"
    path.write_bytes(pdf(answer, costs=found))
    done = subprocess.run(
        ["pdftotext", "-layout", str(path), "-"], capture_output=True, text=True, check=True
    )
    assert found.chosen.headline is not None
    currency = currency_of(answer.settings.costs)
    assert currency.exact(found.chosen.headline.total.likely) in done.stdout
    assert currency.money(found.chosen.headline.npv.likely) in done.stdout
