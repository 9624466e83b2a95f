"""The first screen, the details and the recommendation."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
from streamlit.testing.v1 import AppTest

from engine.catalogue.models import OfferKind
from engine.report.link import encode, share_link
from engine.workload.answers import Kind
from engine.workload.examples import EXAMPLES
from engine.workload.workload import DEFAULT, Workload, applies, field_group, parse
from pages.components import catalogue, fields, shell

RECOMMENDATION = "pages/recommendation.py"
Open = Callable[..., AppTest]
Said = Callable[[AppTest], Workload]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_opens_with_its_recommendation(app: Open, said: Said, name: str) -> None:
    workload = EXAMPLES[name].workload
    visit = app(RECOMMENDATION, **encode(workload))
    assert not visit.error
    answer = shell.assessment(workload)
    assert visit.title[0].value.replace("\\", "") == answer.sentence
    # The link that the page offers is the one that was opened.
    assert said(visit) == workload


def test_the_first_screen_lists_every_example_with_its_own_link(app: Open) -> None:
    links = [link.proto for link in app().get("page_link")]
    opened = [link for link in links if link.label == "See the answer"]
    assert len(opened) == len(EXAMPLES)
    assert len({link.query_string for link in opened}) == len(EXAMPLES)


@pytest.mark.parametrize("kind", Kind)
def test_the_details_ask_only_what_can_change_the_answer(app: Open, kind: Kind) -> None:
    visit = app("pages/details.py", **({} if kind is DEFAULT.kind else {"kind": kind.value}))
    boxes = ("number_input", "text_input", "selectbox", "radio", "checkbox", "slider")
    asked = {str(w.key).removeprefix("w_") for box in boxes for w in visit.get(box)}
    wanted = {
        name
        for name in type(DEFAULT).model_fields
        if applies(name, kind) and field_group(name) != "answer" and name != "quotes"
    }
    assert asked == wanted


def test_every_field_has_its_words() -> None:
    for name in type(DEFAULT).model_fields:
        assert fields.title_of(name)
        choices = fields.choices_of(name)
        assert choices is None or all(fields.choice_label(choice) for choice in choices)


def test_the_recommendation_can_be_taken_away(app: Open) -> None:
    visit = app(RECOMMENDATION, kind="lora", model_params_b="7")
    assert [button.proto.label for button in visit.get("download_button")] == ["PDF", "CSV", "XLSX"]
    assert any("kind=lora" in code.value for code in visit.code)


def test_charts_and_tables_have_a_text_that_stands_in_for_them(app: Open) -> None:
    visit = app(RECOMMENDATION, kind="lora", model_params_b="7")
    charts = visit.get("vega_lite_chart")
    assert charts
    assert all(chart.proto.alt for chart in charts)


def test_the_weights_move_the_score(app: Open, said: Said) -> None:
    visit = app(RECOMMENDATION, kind="etl")
    slider = next(s for s in visit.slider if s.key == fields.key_of("weight_time"))
    slider.set_value(90).run()
    assert not visit.exception
    assert said(visit).weight_time == 90
    back = next(b for b in visit.button if "usual weights" in b.label)
    back.click().run()
    assert said(visit).weights == DEFAULT.weights


def test_an_open_question_leads_to_the_page_that_asks_it() -> None:
    asked = {name: shell.page_of(name) for name in type(DEFAULT).model_fields}
    for name, path in asked.items():
        in_question = path not in (shell.DETAILS[0], shell.PRICES[0])
        assert in_question == (field_group(name) == "answer"), name


def test_another_plan_stands_beside_this_one(app: Open) -> None:
    visit = app("pages/compare.py", kind="lora", model_params_b="7")
    other = parse({"kind": "etl", "name": "Nightly"})
    visit.text_input(key="other_link").set_value(share_link(other, "http://h/recommendation")).run()
    assert not visit.exception
    assert "Nightly" in [heading.value for heading in visit.subheader]
    assert len(visit.metric) >= 6


def test_a_pasted_text_that_is_no_link_is_named(app: Open) -> None:
    visit = app("pages/compare.py", kind="lora")
    visit.text_input(key="other_link").set_value("http://h/x?kind=quantum&%00=\x01").run()
    assert not visit.exception
    assert "kind" in visit.warning[0].value


def test_every_kind_of_price_has_its_words() -> None:
    assert set(catalogue.KINDS) == set(get_args(OfferKind))


def test_prices_name_their_provider_date_and_source(app: Open) -> None:
    visit = app("pages/prices.py")
    prices = [text.value for text in visit.markdown if "an hour**" in text.value]
    assert prices
    assert all("days old" in price or "day old" in price or "today" in price for price in prices)
    sources = [text.value for text in visit.main.caption if "confidence" in text.value]
    assert len(sources) == len(prices)


def test_a_quote_of_ones_own_is_added_and_removed(app: Open, said: Said) -> None:
    visit = app("pages/prices.py", kind="lora")
    visit.number_input(key="quote_usd").set_value(1.25).run()
    next(button for button in visit.button if "Add" in button.label).click().run()
    assert not visit.exception
    assert not visit.error
    (quote,) = said(visit).quotes
    assert quote.endswith(":on_demand:1.25")
    next(button for button in visit.button if "Remove" in button.label).click().run()
    assert said(visit).quotes == ()


def test_a_price_of_an_article_is_shown_and_never_ranked() -> None:
    for sku in catalogue.hardware():
        ranked, quoted = catalogue.offers(sku, catalogue.ALL)
        assert not any(offer.kind in ("seed", "superseded", "from", "analyst") for offer in ranked)
        assert not any(offer.rankable for offer in quoted)


def test_claims_are_found_by_word_article_and_verdict(app: Open) -> None:
    visit = app("pages/evidence.py")
    everything = visit.subheader[0].value
    visit.text_input[0].set_value("utilization").run()
    assert not visit.exception
    found = visit.subheader[0].value
    assert found != everything
    assert int(found.split()[0]) > 0
    visit.text_input[0].set_value("no such word anywhere").run()
    assert visit.subheader[0].value == "0 claims"
