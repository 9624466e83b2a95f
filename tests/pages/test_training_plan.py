"""The training page: asked, answered, refused, and taken away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlit.testing.v1 import AppTest

from engine.report.link import decode_settings, encode
from engine.workload.settings import Settings
from engine.workload.training_terms import Goal, TrainingTerms
from engine.workload.workload import Workload, parse

PAGE = "pages/training_plan.py"
JOB = parse(
    {"kind": "llm_pretraining", "model_params_b": 8, "train_tokens_b": 100, "deadline_days": 20}
)
USUAL = {"gpu": "h100-sxm-80gb", "most_gpus": 256}
Open = Callable[..., AppTest]


def opened(app: Open, workload: Workload = JOB, **terms: Any) -> AppTest:
    settings = Settings(training=TrainingTerms.model_validate({**USUAL, **terms}))
    return app(PAGE, **encode(workload, settings))


def terms_of(visit: AppTest) -> TrainingTerms:
    settings, notes = decode_settings(dict(visit.query_params))
    assert notes == []
    return settings.training


def test_a_plan_is_shown_with_its_figures_and_its_kit(app: Open) -> None:
    visit = opened(app)
    assert not visit.error
    assert "H100" in visit.title[0].value
    labels = [m.label for m in visit.metric]
    assert labels[:2] == ["Days", "Cost"]
    assert "In time" in labels
    assert [b.proto.label for b in visit.get("download_button")] == ["Drawing (SVG)", "Launch kit"]
    charts = visit.get("vega_lite_chart")
    assert len(charts) == 3
    assert all(chart.proto.alt for chart in charts)


def test_other_work_gets_a_sentence_and_no_traceback(app: Open) -> None:
    visit = app(PAGE, kind="etl")
    assert any("language model" in e.value for e in visit.info)
    assert not visit.exception


def test_a_term_is_taken_and_travels(app: Open) -> None:
    visit = opened(app)
    next(s for s in visit.selectbox if s.key == "t_training_goal").set_value(Goal.time).run()
    assert terms_of(visit).goal == "time"
    next(n for n in visit.number_input if n.key == "t_training_seq_len").set_value(8192).run()
    assert terms_of(visit).seq_len == 8192
    assert not visit.exception


def test_a_refused_term_stays_with_its_reason(app: Open) -> None:
    visit = opened(app)
    next(n for n in visit.number_input if n.key == "t_training_least_gpus").set_value(512).run()
    assert any("more than the 256" in e.value for e in visit.error)
    assert terms_of(visit).least_gpus == 1
    next(n for n in visit.number_input if n.key == "t_training_most_gpus").set_value(1024).run()
    assert (terms_of(visit).least_gpus, terms_of(visit).most_gpus) == (512, 1024)


def test_what_fits_nowhere_is_said_with_what_would(app: Open) -> None:
    visit = opened(app, parse({**JOB.model_dump(), "model_params_b": 500}), most_gpus=8)
    assert visit.title[0].value == "No plan fits"
    assert any("smallest that fits" in m.value for m in visit.markdown)


def test_a_folder_that_no_file_can_carry_is_refused_with_what_is_right(app: Open) -> None:
    visit = opened(app, dataset="$(rm -rf /)")
    assert [b.proto.label for b in visit.get("download_button")] == ["Drawing (SVG)"]
    assert any("full path" in i.value for i in visit.info)
