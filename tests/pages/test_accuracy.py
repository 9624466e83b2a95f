"""The accuracy page: pictures with words, sources behind the points, every quantity in turn."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from engine.explain.accuracy import Quantity, accuracy
from pages.components.accuracy_charts import EVERY, choices, specification, ticks

PAGE = "pages/accuracy.py"
Open = Callable[..., AppTest]


def words(visit: AppTest) -> str:
    parts = [*visit.subheader, *visit.markdown, *visit.caption]
    return " ".join(part.value.replace("\\", "") for part in parts)


def test_it_draws_training_and_one_quantity_of_serving(app: Open) -> None:
    visit = app(PAGE)
    charts = visit.get("vega_lite_chart")
    assert len(charts) == 4
    assert all("predicted against measured" in chart.proto.alt for chart in charts)
    assert "The calibration has seen these rows" in words(visit)
    assert "Where the model is weak" in words(visit)


@pytest.mark.parametrize("id", [q.id for q in accuracy().serving])
def test_every_quantity_of_serving_can_be_chosen(app: Open, id: str) -> None:
    visit = app(PAGE)
    visit.button_group(key="accuracy_serving").set_value(id).run()
    assert not visit.exception
    title = next(q.title for q in accuracy().serving if q.id == id)
    assert title in [s.value for s in visit.subheader]


def test_left_out_figures_stand_beside_the_picture(app: Open) -> None:
    table = app(PAGE).table[0].value
    steps = accuracy().training[0]
    assert len(table) == len(steps.left_out)
    assert str(table.iloc[0, 1]).replace("\\", "") == f"{steps.left_out[0].low:.1%}"


def test_serving_stands_beside_its_goals(app: Open) -> None:
    visit = app(PAGE)
    table = next(t.value for t in visit.table if "Goal: half, nine of ten" in t.value.columns)
    aims = accuracy().aims
    assert len(table) == len(aims)
    assert str(table.iloc[0]["Off by"]) == f"{aims[0].median:.1%}, {aims[0].p90:.1%}"
    missed = [a.title.lower() for a in aims if not (a.meets and a.covers)]
    assert all(title in words(visit).lower() for title in missed)


def test_lighting_a_source_keeps_all_rows_in_the_picture(app: Open) -> None:
    visit = app(PAGE)
    group = accuracy().training[0].groups[0][0]
    visit.selectbox(key="lit_steps").set_value(group).run()
    assert not visit.exception
    q = accuracy().training[0]
    spec = specification(q, group, "gray")
    *_, others, chosen = spec["layer"]
    assert len(others["data"]["values"]) + len(chosen["data"]["values"]) == q.figures.n
    assert len(chosen["data"]["values"]) == dict(q.groups)[group].n


@pytest.mark.parametrize("q", [*accuracy().training, *accuracy().serving], ids=lambda q: q.id)
def test_every_point_has_its_source_on_hover(q: Quantity) -> None:
    spec = specification(q, EVERY, "gray")
    chosen = spec["layer"][-1]
    sources = {row["s"]: row["source"] for row in chosen["transform"][0]["from"]["data"]["values"]}
    assert all(sources[row["s"]] for row in chosen["data"]["values"])
    assert "source" in [tip["field"] for tip in chosen["encoding"]["tooltip"]]
    # Charts of more than 2,000 marks become a canvas, which no reader of the page can read.
    assert len(chosen["data"]["values"]) <= 2000
    assert len(json.dumps(spec)) < 600_000
    assert EVERY in choices(q)


def test_ticks_are_round_and_inside() -> None:
    assert ticks(0.08, 90) == [0.1, 1, 10]
    assert ticks(0.2, 90) == [0.3, 1, 3, 10, 30]
    assert ticks(5, 100) == [5, 10, 20, 50, 100]
