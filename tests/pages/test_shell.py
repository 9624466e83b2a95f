"""The frame of every page: state, link, refused values, menu."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.report.link import encode
from engine.workload.answers import Kind
from engine.workload.cost_terms import CostTerms
from engine.workload.examples import EXAMPLES
from engine.workload.settings import Settings
from engine.workload.workload import Workload, parse
from pages.components import fields

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["app.py", *sorted(f"pages/{path.name}" for path in (ROOT / "pages").glob("*.py"))]
BARE = ("pages/recommendation.py", "pages/compare.py")
DETAILS = "pages/details.py"
Open = Callable[..., AppTest]
Said = Callable[[AppTest], Workload]


def widget(visit: AppTest, name: str) -> Any:
    """The widget of a field."""
    key = fields.key_of(name)
    kinds = ("number_input", "text_input", "selectbox", "radio", "checkbox", "slider")
    return next(w for kind in kinds for w in visit.get(kind) if w.key == key)


def errors(visit: AppTest) -> str:
    return " ".join(error.value for error in visit.error)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_for_someone_who_has_answered_nothing(app: Open, page: str) -> None:
    visit = app(page)
    assert len(visit.title) == 1
    assert not visit.warning or page == "pages/recommendation.py"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_from_the_link_of_an_example(app: Open, page: str) -> None:
    visit = app(page, **encode(next(iter(EXAMPLES.values())).workload))
    assert len(visit.title) == 1


@pytest.mark.parametrize("page", [page for page in PAGES if page not in BARE])
def test_the_recommendation_is_in_view_from_the_first_answer_on(app: Open, page: str) -> None:
    assert not any("So far" in text.value for text in app(page).markdown)
    assert any("So far" in text.value for text in app(page, failure_mode="data_loss").markdown)


def test_the_recommendation_in_view_is_in_the_currency_of_display_too(app: Open) -> None:
    terms = Settings(costs=CostTerms(currency="EUR", currency_rate=0.9))
    quote = 16 * 1.64 * 730  # its own quote by the month: 19,155.20, at 0.9 euros 17,239.68
    visit = app("pages/costs.py", **encode(EXAMPLES["13b-47-runs"].workload, terms))
    (bar,) = (text.value for text in visit.markdown if "So far" in text.value)
    assert round(quote, -2) == 19_200
    assert "€17,200 a month" in bar
    assert "19,200 a month" in bar


def test_what_meets_no_constraint_is_not_shown_as_a_recommendation(app: Open) -> None:
    late = parse(
        {"kind": "llm_pretraining", "model_params_b": 405, "train_tokens_b": 15_000,
         "deadline_days": 0.01}
    )  # fmt: skip
    (bar,) = (
        t.value for t in app("pages/costs.py", **encode(late)).markdown if "So far" in t.value
    )
    assert bar.startswith(":small[**So far: nothing meets every constraint; nearest: ")


def test_a_link_restores_the_answers(app: Open) -> None:
    visit = app(DETAILS, kind="online_inference", latency_ms="42.5", name="风控 🚀")
    assert widget(visit, "latency_ms").value == 42.5
    assert widget(visit, "name").value == "风控 🚀"
    assert not visit.warning


def test_a_widget_writes_the_link(app: Open, said: Said) -> None:
    visit = app(DETAILS, kind="online_inference")
    widget(visit, "latency_ms").set_value(9.0).run()
    assert said(visit).latency_ms == 9
    widget(visit, "latency_ms").set_value(None).run()
    assert said(visit).latency_ms is None


def test_answers_survive_a_change_of_page(app: Open) -> None:
    visit = app(DETAILS, kind="online_inference")
    widget(visit, "latency_ms").set_value(9.0).run()
    visit.switch_page("app.py").run()
    visit.switch_page(DETAILS).run()
    assert not visit.exception
    assert widget(visit, "latency_ms").value == 9.0


def test_bad_values_of_a_link_are_named_and_the_rest_is_kept(app: Open, said: Said) -> None:
    visit = app(kind="lora", model_params_b="7", deadline_days="-3", precision="quantum", junk="x")
    notes = " ".join(note.value.replace("\\", "") for note in visit.warning)
    assert "deadline_days" in notes
    assert "precision" in notes
    assert "junk" in notes
    assert widget(visit, "kind").value is Kind.lora
    assert said(visit) == parse({"kind": "lora", "model_params_b": 7})


def test_an_old_link_says_when_it_was_made(app: Open) -> None:
    notes = [note.value for note in app(kind="lora", d="2026-01-31").warning]
    assert len(notes) == 1
    assert "31 Jan 2026" in notes[0]


def test_the_notes_of_a_link_go_with_the_first_change(app: Open) -> None:
    visit = app(DETAILS, kind="lora", deadline_days="-3")
    assert visit.warning
    widget(visit, "horizon_months").set_value(6).run()
    assert not visit.warning


def test_a_refused_value_stays_with_the_reason_beside_it(app: Open, said: Said) -> None:
    visit = app(DETAILS, kind="online_inference", latency_ms="50")
    widget(visit, "latency_ms").set_value(-5.0).run()
    assert "greater than 0" in errors(visit)
    assert widget(visit, "latency_ms").value == -5.0
    assert said(visit).latency_ms == 50
    visit.switch_page("app.py").run()
    visit.switch_page(DETAILS).run()
    assert widget(visit, "latency_ms").value == -5.0, "what was typed is lost"
    widget(visit, "latency_ms").set_value(5.0).run()
    assert not visit.error
    assert said(visit).latency_ms == 5


def test_two_answers_that_only_hold_together_may_come_in_any_order(app: Open, said: Said) -> None:
    visit = app(DETAILS, kind="llm_pretraining", model_params_b="7", active_params_b="3")
    widget(visit, "active_params_b").set_value(37.0).run()
    assert "active is the smaller one" in errors(visit)
    widget(visit, "model_params_b").set_value(671.0).run()
    assert not visit.error
    assert said(visit).active_params_b == 37


def test_a_widget_never_clamps_what_is_typed() -> None:
    source = (ROOT / "pages" / "components" / "fields.py").read_text(encoding="utf-8")
    assert "min_value" not in source
    assert "max_value" not in source


def test_the_menu_counts_and_marks_the_answers(app: Open) -> None:
    visit = app(failure_mode="data_loss", parallel_fraction="0.9")
    assert any("2 of 4 answered" in text.value for text in visit.sidebar.caption)


def test_user_text_is_shown_as_text(app: Open) -> None:
    name = "**bold** [link](http://x.y) $a$ <b>"
    visit = app("pages/recommendation.py", kind="lora", name=name)
    shown = [text.value for text in [*visit.markdown, *visit.caption, *visit.title]]
    assert not any("**bold**" in text or " [link](" in text or "<b>" in text for text in shown)
