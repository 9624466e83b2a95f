"""The costs page: the engine's figures, terms that travel, bad input kept and told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.assess import assess
from engine.costing import view
from engine.costing.report import cost_report
from engine.report.currency import Currency, currency_of
from engine.report.link import decode_settings, encode
from engine.workload.cost_terms import CostTerms, DemandBy, Site
from engine.workload.examples import EXAMPLES
from engine.workload.settings import Settings
from pages.components import labels

PAGE = "pages/costs.py"
OWN = EXAMPLES["16-nodes-own-or-cloud"].workload
Open = Callable[..., AppTest]


def terms_of(visit: AppTest) -> CostTerms:
    settings, notes = decode_settings(dict(visit.query_params))
    assert notes == []
    return settings.costs


def opened(app: Open, **terms: Any) -> AppTest:
    settings = Settings(costs=CostTerms.model_validate(terms))
    return app(PAGE, **encode(OWN, settings))


def figures(visit: AppTest) -> dict[str, str]:
    return {m.label: m.value.replace("\\", "") for m in visit.metric}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_opens_with_the_figures_of_the_engine(app: Open, name: str) -> None:
    workload = EXAMPLES[name].workload
    visit = app(PAGE, **encode(workload))
    assert not visit.error
    report = cost_report(assess(workload))
    assert visit.title[0].value.replace("\\", "") == report.title
    shown = figures(visit)
    for label, figure, _ in view.per_unit(report.chosen, Currency()):
        assert shown[label] == figure
    recommended = assess(workload).best.usd_per_month
    assert shown["Cost a month"] == Currency().likely(recommended)


def test_money_is_shown_in_the_currency_asked_for(app: Open) -> None:
    visit = opened(app, currency="EUR", currency_rate=0.5)
    dollars = figures(opened(app))
    euros = figures(visit)
    report = cost_report(assess(OWN))
    total = report.chosen.headline
    assert total is not None
    assert dollars["Total"] == Currency().money(total.total.likely)
    assert euros["Total"] == Currency("EUR", 0.5).money(total.total.likely)
    assert euros["Total"].startswith("€")
    notes = [c.value for c in visit.caption]
    assert any("0.5 for one US dollar" in labels_off(n) for n in notes)


def labels_off(text: str) -> str:
    return text.replace("\\", "")


def test_a_term_is_taken_travels_and_changes_the_figure(app: Open) -> None:
    visit = opened(app, way="buy_colocation")
    before = figures(visit)["Cost a month"]
    box = next(n for n in visit.number_input if n.key == "t_costs_usd_per_kwh")
    box.set_value(0.9).run()
    assert not visit.exception
    assert terms_of(visit).usd_per_kwh == 0.9
    assert figures(visit)["Cost a month"] != before


def test_a_refused_term_stays_with_its_reason(app: Open) -> None:
    visit = opened(app)
    box = next(n for n in visit.number_input if n.key == "t_costs_pue")
    box.set_value(0.5).run()
    assert not visit.exception
    assert any("greater than or equal to 1" in e.value for e in visit.error)
    assert next(n for n in visit.number_input if n.key == "t_costs_pue").value == 0.5
    assert terms_of(visit).pue is None
    next(n for n in visit.number_input if n.key == "t_costs_pue").set_value(1.2).run()
    assert not visit.error
    assert terms_of(visit).pue == 1.2


def test_rate_and_currency_may_come_in_any_order(app: Open) -> None:
    visit = opened(app)
    next(n for n in visit.number_input if n.key == "t_costs_currency_rate").set_value(0.9).run()
    assert any("one US dollar" in labels_off(e.value) for e in visit.error)
    next(t for t in visit.text_input if t.key == "t_costs_currency").set_value("eur").run()
    assert not visit.error
    assert (terms_of(visit).currency, terms_of(visit).currency_rate) == ("EUR", 0.9)


def test_hardware_and_way_are_chosen_and_travel(app: Open) -> None:
    visit = opened(app)
    hardware = next(s for s in visit.selectbox if s.key == "cost_hardware")
    report = cost_report(assess(OWN))
    other = next(id for id, _ in report.choices if id != report.hardware)
    hardware.set_value(other).run()
    assert terms_of(visit).hardware == other
    assert not visit.exception
    way = next(s for s in visit.selectbox if s.key == "cost_way")
    way.set_value("on_demand").run()
    assert terms_of(visit).way == "on_demand"
    # A link to hardware that is no candidate any more shows the recommended one.
    gone = opened(app, hardware="gpu/abacusx8")
    assert next(s for s in gone.selectbox if s.key == "cost_hardware").value == report.hardware


def test_a_list_of_months_is_read_or_said_to_be_none(app: Open) -> None:
    visit = opened(app, demand_by=DemandBy.monthly)
    assert any("the list is empty" in labels_off(i.value) for i in visit.info)
    box = next(t for t in visit.text_input if t.key == "cost_months")
    box.set_value("1000, lots").run()
    assert any("numbers are needed" in labels_off(e.value) for e in visit.error)
    assert next(t for t in visit.text_input if t.key == "cost_months").value == "1000, lots"
    next(t for t in visit.text_input if t.key == "cost_months").set_value("1000, 1600; 900").run()
    assert not visit.error
    assert terms_of(visit).monthly_hours == (1000, 1600, 900)


def test_the_uses_of_idle_hours_are_a_line_that_can_be_changed(app: Open) -> None:
    visit = opened(app)
    next(n for n in visit.number_input if n.key == "cost_use_nothing").set_value(0.0).run()
    uses = terms_of(visit).idle_uses
    # 35, 25 and 20 of 80 are left: scaled to 100.
    assert uses == pytest.approx((43.75, 31.25, 25.0, 0.0))
    next(n for n in visit.number_input if n.key == "t_costs_idle_pct").set_value(30.0).run()
    assert terms_of(visit).idle_pct == 30


def test_a_quote_for_a_machine_is_for_that_machine(app: Open) -> None:
    visit = opened(app, way="buy_colocation", site=Site.colocation)
    before = figures(visit)["Total"]
    next(n for n in visit.number_input if n.key == "cost_quote").set_value(200_000.0).run()
    assert terms_of(visit).machine_usd == 200_000
    assert terms_of(visit).machine_sku == cost_report(assess(OWN)).machine_sku
    assert figures(visit)["Total"] != before


def test_the_articles_cases_stand_as_written_and_corrected(app: Open) -> None:
    visit = opened(app)
    case = next(s for s in visit.selectbox if s.key == "cost_case")
    case.set_value("cluster_16").run()
    assert not visit.exception
    table = next(t.value for t in visit.table if "As written" in t.value)
    rows = {str(r["Figure"]): (r["As written"], r["Corrected"]) for _, r in table.iterrows()}
    cells = {k: tuple(str(v).replace("\\", "") for v in pair) for k, pair in rows.items()}
    # 16 x 320,000 + 2 x 45,000
    assert cells["Capital, as itemised"] == ("$6,200,000", "$5,210,000")
    assert cells["Not listed, over the itemised sum"] == ("left out", "19.0%")
    assert cells["Switches, rails only"] == ("2 switches", "2 switches")


def test_what_stands_behind_a_purchase_is_that_of_the_place_chosen(app: Open) -> None:
    visit = opened(app, site=Site.own_room)
    told = next(t.value for t in visit.table if "What" in t.value and "Comes to" in t.value)
    assert "for a room of your own" in str(told.iloc[0, 0])


def test_charts_and_tables_have_a_text_that_stands_in_for_them(app: Open) -> None:
    visit = opened(app)
    charts = visit.get("vega_lite_chart")
    assert len(charts) == 5
    assert all(chart.proto.alt for chart in charts)
    assert [b.proto.label for b in visit.get("download_button")] == ["PDF", "CSV", "XLSX"]
    assert labels.plain("$1") != "$1"


def test_the_currency_reads_without_doubt() -> None:
    euro = Currency("EUR", 0.86)
    assert euro.money(1_000_000) == "€860,000"
    assert euro.exact(-10) == "−€8.60"
    assert Currency("JPY", 155.0).exact(2) == "¥310"
    assert Currency("CHF", 0.8).money(100) == "CHF 80"
    # An hour of a small server is a part of a dollar: cents would hide a tenth of it.
    assert [Currency().price(usd) for usd in (1.90379, 14.2, 0.0425)] == [
        "$1.9038", "$14.20", "$0.0425",
    ]  # fmt: skip
    assert Currency("JPY", 155.0).price(0.002) == "¥0.31"
    assert Currency().note == ""
    assert "without a day" in euro.note
    assert currency_of(CostTerms()) == Currency()


def test_the_articles_options_stand_side_by_side_on_the_work_asked_for(app: Open) -> None:
    visit = opened(app)
    next(s for s in visit.selectbox if s.key == "cost_case").set_value("option_a").run()
    assert not visit.exception
    shown = " ".join(labels_off(m.value) for m in visit.markdown)
    for chip in ("fits", "misses the deadline", "can't be ordered"):
        assert chip in shown
    tables = [t.value.to_string() for t in visit.table]
    assert any("2.58 million" in labels_off(t) and "756,000" in labels_off(t) for t in tables)
    next(n for n in visit.number_input if n.key == "options_params").set_value(405.0).run()
    assert not visit.exception
    assert "does not fit" in " ".join(labels_off(m.value) for m in visit.markdown)
