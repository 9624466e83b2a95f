"""The serving page: inputs reach the link, every state is a page, the simulation answers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.catalogue import load_catalogue
from engine.explain.serving import serving_report
from engine.explain.serving_shapes import numbers_of, published_models
from engine.explain.serving_table import serving_csv
from engine.report.link import decode_settings, encode
from engine.report.plan_serving import serving_document
from engine.report.table import COLUMNS
from engine.workload.answers import Kind
from engine.workload.serving_terms import DayShape, Keep, Pay, ServingTerms, Weights
from engine.workload.settings import USUAL, Settings
from engine.workload.workload import Workload

PAGE = "pages/serving_plan.py"
Open = Callable[..., AppTest]
Said = Callable[[AppTest], Workload]
CHAT: dict[str, Any] = {
    "kind": Kind.online_inference, "model_params_b": 8, "rate_per_s": 10, "tokens_in": 700,
    "tokens_out": 250, "latency_ms": 2000,
}  # fmt: skip


def visit(app: Open, terms: ServingTerms | None = None, **answers: Any) -> AppTest:
    """The page as someone with these answers and terms finds it."""
    under = Settings(serving=terms or ServingTerms())
    return app(PAGE, **encode(Workload(**{**CHAT, **answers}), under))


def said_terms(page: AppTest) -> ServingTerms:
    """The page's terms in the address of a visit."""
    found, notes = decode_settings(dict(page.query_params))
    assert notes == []
    return found.serving


def words(page: AppTest) -> str:
    """Everything written on the page."""
    parts = [*page.title, *page.subheader, *page.markdown, *page.caption, *page.info]
    return " ".join(str(part.value).replace("\\", "") for part in parts)


def tables(page: AppTest) -> str:
    """Everything in the page's tables."""
    found: Any = page.get("table")
    return " ".join(t.value.to_string() for t in found)


@pytest.mark.parametrize("kind", [Kind.llm_pretraining, Kind.web, Kind.recsys, Kind.pipeline])
def test_the_page_opens_for_other_kinds_of_work(app: Open, kind: Kind) -> None:
    page = app(PAGE, **encode(Workload(kind=kind)))
    assert page.title[0].value == "Serving plan"
    assert not page.error


def test_an_empty_plan_is_made_of_usual_figures(app: Open) -> None:
    page = app(PAGE)
    assert not page.error
    assert "a month" in page.subheader[0].value
    assert "planning prior" in tables(page)


def test_every_picture_has_words_that_stand_in_for_it(app: Open) -> None:
    charts: Any = visit(app).get("vega_lite_chart")
    assert len(charts) == 4
    for chart in charts:
        assert len(chart.proto.alt) > 40


def test_a_slider_changes_the_workload(app: Open, said: Said) -> None:
    page = visit(app)
    page.select_slider(key="serving_rate").set_value(50.0).run()
    assert said(page).rate_per_s == 50
    page.select_slider(key="serving_first").set_value(500.0).run()
    assert said(page).latency_ms == 500
    page.select_slider(key="serving_each").set_value(30.0).run()
    assert said_terms(page).tpot_ms == 30
    assert not page.exception


def test_terms_reach_the_link_and_come_back(app: Open) -> None:
    terms = ServingTerms(
        model="Llama-3.1-70B", weights=Weights.bits8, day=DayShape.office, keep=Keep.by_hour,
        spare=2, tpot_ms=50,
    )  # fmt: skip
    page = visit(app, terms, model_params_b=70.554)
    assert said_terms(page) == terms
    assert page.selectbox(key="serving_model").value == "Llama-3.1-70B"
    kept: Any = page.get("button_group")
    assert "by the hour" in str([group.options for group in kept])


def test_a_shape_from_a_file_travels_in_the_link(app: Open) -> None:
    shape = published_models()["DeepSeek-V3"]
    terms = ServingTerms(model="mine", shape=numbers_of(shape), weights=Weights.bits8)
    page = visit(app, terms, model_params_b=671, active_params_b=37)
    assert said_terms(page) == terms
    assert "mine, from your file" in words(page).replace("*", "")


def test_a_published_model_takes_its_size_to_the_other_pages(app: Open, said: Said) -> None:
    page = visit(app)
    page.selectbox(key="serving_model").set_value("Mixtral-8x7B").run()
    assert said(page).model_params_b == pytest.approx(46.703)
    assert said(page).active_params_b == pytest.approx(12.880)
    assert said_terms(page).model == "Mixtral-8x7B"


def test_another_plan_can_be_chosen(app: Open) -> None:
    page = visit(app)
    box = page.selectbox(key="serving_option")
    assert len(box.options) > 5
    other = "h100-sxm-80gbx1-tp1"
    box.set_value(other).run()
    assert said_terms(page).option == other
    assert "H100 SXM" in page.subheader[0].value


def test_the_hours_of_a_day_are_typed_in(app: Open) -> None:
    page = visit(app, ServingTerms(day=DayShape.own))
    hours = " ".join(["1"] * 12 + ["5"] * 12)
    page.text_input(key="serving_hours").set_value(hours).run()
    assert said_terms(page).hourly == (1.0,) * 12 + (5.0,) * 12
    page.text_input(key="serving_hours").set_value("1 2 three").run()
    assert "no list of numbers" in page.error[0].value
    page.text_input(key="serving_hours").set_value("1 2 3").run()
    assert "24" in page.error[0].value


def test_a_model_is_read_from_its_file(app: Open, said: Said) -> None:
    config = {
        "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 64,
        "hidden_size": 5120, "intermediate_size": 25600, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
    }  # fmt: skip
    page = visit(app)
    uploader: Any = page.file_uploader(key="serving_config")
    uploader.set_value(("config.json", json.dumps(config).encode(), "application/json")).run()
    # Qwen3-32B: 32.8 billion parameters by its card.
    assert said(page).model_params_b == pytest.approx(32.8, rel=0.01)
    assert said_terms(page).shape[2:6] == (64, 5120, 64, 8)
    uploader = page.file_uploader(key="serving_config")
    uploader.set_value(("config.json", b"{}", "application/json")).run()
    assert page.error


def test_a_log_tells_rate_peak_and_day(app: Open, said: Said) -> None:
    start = datetime(2026, 11, 23)
    times = [start + timedelta(hours=h, seconds=30 * i) for h in range(168) for i in range(120)
             if h % 24 >= 12 or i % 4 == 0]  # fmt: skip
    text = "\n".join(t.isoformat() for t in times)
    page = visit(app)
    uploader: Any = page.file_uploader(key="serving_log")
    uploader.set_value(("requests.log", text.encode(), "text/plain")).run()
    # A request every two minutes in the morning, every 30 s after noon: one in 48 s.
    assert said(page).rate_per_s == pytest.approx(1 / 48, rel=0.01)
    assert said(page).peak_factor == pytest.approx(1.6, rel=0.1)
    terms = said_terms(page)
    assert terms.day is DayShape.own
    assert terms.hourly[20] / terms.hourly[3] == pytest.approx(4, rel=0.02)
    assert "12,600 requests over 7 days" in words(page)


def test_the_simulation_says_whether_the_plan_holds(app: Open) -> None:
    page = visit(app)
    button = next(b for b in page.button if "Simulate" in b.label)
    button.click().run()
    assert not page.exception
    told = [*page.success, *page.warning]
    assert len(told) == 1
    assert "requests at the peak" in told[0].value
    # Another rate is another plan: what was simulated no longer stands there.
    page.select_slider(key="serving_rate").set_value(20.0).run()
    assert not [*page.success, *page.warning]


def test_what_the_simulation_corrects_changes_the_page(app: Open) -> None:
    # See tests/estimate/test_serving_frontier.py: one by the formula, two by the simulation.
    terms = ServingTerms(pay=Pay.on_demand, option="rtx-pro-6000-serverx1-tp1", spare=0)
    page = visit(app, terms, rate_per_s=2.5, tokens_in=1000, tokens_out=50, latency_ms=300,
                 peak_factor=1)  # fmt: skip
    before = page.subheader[0].value
    assert before.startswith("1 × RTX PRO 6000")
    # Two simulations of the same plan say the same.
    for _ in range(2):
        next(b for b in page.button if "Simulate" in b.label).click().run()
        assert not page.exception
        after = page.subheader[0].value
        assert after.startswith("2 × RTX PRO 6000")
        assert usd_of(after) == pytest.approx(2 * usd_of(before), rel=0.01)
        told = " ".join(w.value for w in page.warning)
        assert "Corrected by a simulation: the formula has 1 ×" in told
        assert "2 replicas in place of 1" in told
    page.select_slider(key="serving_rate").set_value(2.0).run()
    assert page.subheader[0].value.startswith("1 × RTX PRO 6000")


def usd_of(headline: str) -> float:
    """The dollars a month of a headline."""
    return float(headline.replace("\\", "").split("$")[1].split(" ")[0].replace(",", ""))


@pytest.mark.parametrize(
    ("answers", "terms", "text"),
    [
        ({"rate_per_s": 0}, {}, "nothing needs to run"),
        ({"latency_ms": 1}, {}, "the first token takes"),
        ({}, {"tpot_ms": 0.01}, "a further token takes"),
        ({"model_params_b": 20_000}, {}, "The smallest thing that would"),
        ({"model_params_b": 70, "rate_per_s": 1e5}, {}, "more than any single provider"),
        ({"rate_per_s": 1e9}, {}, "Nobody rents that many"),
        ({"tokens_in": 3e6, "latency_ms": None}, {}, "First token within"),
    ],
    ids=["no rate", "first", "each", "nowhere", "many", "too many", "long"],
)
def test_what_cannot_be_planned_is_a_plain_answer(
    app: Open, answers: dict[str, Any], terms: dict[str, Any], text: str
) -> None:
    page = visit(app, ServingTerms(**terms), **answers)
    assert not page.exception
    assert text in words(page)
    assert "What this plan rests on" in str([e.label for e in page.expander])


def test_prices_show_their_age(app: Open) -> None:
    told = tables(visit(app))
    assert "days old" in told
    assert "ask for a new quote" in told  # some API prices are more than a year old


def test_the_csv_holds_every_figure_and_no_formula() -> None:
    workload = Workload(**{**CHAT, "rate_per_s": 25})
    report = serving_report(workload, ServingTerms(), load_catalogue(), date(2026, 12, 2))
    table = list(csv.reader(io.StringIO(serving_csv(report, "a link").decode("utf-8-sig"))))
    assert tuple(table[0]) == COLUMNS
    assert table[-1][:2] == ["Link", "a link"]
    rows = {(r[0], r[1]): r for r in table[1:]}
    best = report.answer.best
    assert best is not None
    told = float(rows["Plan chosen", "Cost"][3])
    assert told == pytest.approx(best.usd_per_month.likely)
    hours = [float(r[3]) for r in table if r[0] == "Hour of the day" and r[1].endswith("rate")]
    assert sum(hours) / 24 == pytest.approx(25)
    assert not [cell for row in table for cell in row if cell[:1] in "=@+" if cell]


@pytest.mark.parametrize("prompt", [1.0, 3e6])
@pytest.mark.parametrize("answer", [1.0, 1e5])
@pytest.mark.parametrize("rate", [1e-6, 1e4])
def test_the_ends_of_every_range_give_a_page_and_a_document(
    prompt: float, answer: float, rate: float
) -> None:
    told = {**CHAT, "tokens_in": prompt, "tokens_out": answer, "rate_per_s": rate}
    w = Workload.model_validate({**told, "latency_ms": None})
    report = serving_report(w, ServingTerms(), load_catalogue(), date.today())
    assert serving_document(report, w, USUAL).sections
    if report.chosen is not None:
        assert report.chosen.machines >= 1
        assert report.chosen.usd_per_month.likely > 0
