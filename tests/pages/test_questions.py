"""The four question pages: answers reach the link, bad ones are said, nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.report.link import encode
from engine.workload.answers import Bottleneck, FailureMode, Kind, Symptom, UtilizationBy
from engine.workload.workload import Workload
from pages.components.layers import spread

PAGES = ["bottleneck", "failure_mode", "parallel_fraction", "utilization"]
Open = Callable[..., AppTest]
Said = Callable[[AppTest], Workload]


def ask(app: Open, name: str, **answers: Any) -> AppTest:
    """The page of a question as someone with these answers finds it."""
    return app(f"pages/{name}.py", **encode(Workload(**answers)))


def way(visit: AppTest, key: str, chosen: str) -> AppTest:
    """Choose how to tell it."""
    visit.session_state[key] = chosen
    visit.run()
    assert not visit.exception
    return visit


def words(visit: AppTest) -> str:
    """Everything written on the page."""
    parts = [*visit.subheader, *visit.markdown, *visit.caption]
    return " ".join(part.value.replace("\\", "") for part in parts)


# --- all four


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("kind", Kind)
def test_a_page_opens_for_every_kind_of_work(app: Open, name: str, kind: Kind) -> None:
    visit = ask(app, name, kind=kind)
    assert visit.title[0].value.endswith("?")
    assert not visit.error


@pytest.mark.parametrize("name", PAGES)
def test_what_is_not_known_shows_the_usual_value(app: Open, name: str) -> None:
    if name != "failure_mode":
        assert "Not answered yet" in words(app(f"pages/{name}.py"))


@pytest.mark.parametrize("name", PAGES)
def test_every_picture_has_words_that_stand_in_for_it(app: Open, name: str) -> None:
    charts = ask(app, name, kind=Kind.database, data_gb=80).get("vega_lite_chart")
    assert len(charts) == 2
    assert all(len(chart.proto.alt) > 20 for chart in charts)


@pytest.mark.parametrize("name", PAGES)
def test_the_articles_rules_and_answers_stand_at_the_question(app: Open, name: str) -> None:
    visit = ask(app, name, kind=Kind.etl)
    assert "The articles' rules, checked on this job" in words(visit)
    assert "The articles' questions, answered for your plan" in [e.label for e in visit.expander]
    assert "Your plan:" in words(visit)


# --- question 1


def test_naming_a_bottleneck_reaches_the_link(app: Open, said: Said) -> None:
    visit = app("pages/bottleneck.py")
    visit.radio(key="w_bottleneck").set_value(Bottleneck.disk_io).run()
    assert not visit.exception
    assert said(visit).bottleneck is Bottleneck.disk_io
    visit.radio(key="w_bottleneck").set_value(Bottleneck.unknown).run()
    assert not said(visit).answered["bottleneck"]


def test_the_picture_moves_with_the_shares(app: Open) -> None:
    shares = {"kind": Kind.etl, "parallel_fraction": 1.0}
    half = ask(app, "bottleneck", time_shares=(50, 0, 0, 0, 50, 0), **shares)
    assert "more than 2 times as fast" in words(half)
    tenth = ask(app, "bottleneck", time_shares=(90, 0, 0, 0, 10, 0), **shares)
    assert "more than 10 times as fast" in words(tenth)


def test_shares_over_one_hundred_are_said_and_kept(app: Open) -> None:
    visit = way(app("pages/bottleneck.py"), "bottleneck_way", "Measured")
    visit.number_input(key="w_share_compute").set_value(80.0).run()
    visit.number_input(key="w_share_network").set_value(70.0).run()
    assert not visit.exception
    assert any("150" in e.value for e in visit.error)
    assert visit.number_input(key="w_share_network").value == 70.0
    visit.number_input(key="w_share_network").set_value(20.0).run()
    assert not visit.error


def test_ticking_a_symptom_reaches_the_link_and_says_where_it_points(app: Open, said: Said) -> None:
    visit = way(app("pages/bottleneck.py"), "bottleneck_way", "Symptoms")
    visit.checkbox(key="w_symptom_disk_wait").set_value(True).run()
    assert not visit.exception
    assert said(visit).symptoms == (Symptom.disk_wait,)
    assert "disk and storage" in words(visit)


# --- question 2


@pytest.mark.parametrize("mode", [m for m in FailureMode if m is not FailureMode.unknown])
def test_naming_a_failure_changes_the_picture(app: Open, said: Said, mode: FailureMode) -> None:
    visit = ask(app, "failure_mode", kind=Kind.web)
    before = visit.subheader[0].value
    visit.radio(key="w_failure_mode").set_value(mode).run()
    assert not visit.exception
    assert said(visit).failure_mode is mode
    # The loss of a machine is also what stands there before an answer.
    assert (visit.subheader[0].value != before) == (mode is not FailureMode.machine_loss)


def test_a_small_database_is_told_not_to_shard(app: Open) -> None:
    visit = ask(app, "failure_mode", kind=Kind.database, data_gb=80)
    assert "Below 100 GB nothing needs sharding" in words(visit)


def test_a_training_is_not_asked_what_readers_see(app: Open) -> None:
    visit = ask(app, "failure_mode", kind=Kind.llm_pretraining)
    assert not visit.selectbox


# --- question 3


def test_slider_and_number_are_one_answer(app: Open, said: Said) -> None:
    visit = app("pages/parallel_fraction.py")
    visit.slider(key="w_fraction_slider").set_value(0.9).run()
    assert said(visit).parallel_fraction == 0.9
    assert visit.number_input(key="w_parallel_fraction").value == 0.9
    visit.number_input(key="w_parallel_fraction").set_value(0.937).run()
    assert visit.slider(key="w_fraction_slider").value == 0.937
    visit.number_input(key="w_parallel_fraction").set_value(None).run()
    assert not visit.exception
    assert said(visit).parallel_fraction is None


def test_a_fraction_beyond_one_is_said_and_kept(app: Open) -> None:
    visit = app("pages/parallel_fraction.py")
    visit.number_input(key="w_parallel_fraction").set_value(1.7).run()
    assert not visit.exception
    assert visit.error
    assert visit.number_input(key="w_parallel_fraction").value == 1.7


def test_the_usual_fraction_can_be_taken_or_left_open(app: Open, said: Said) -> None:
    visit = ask(app, "parallel_fraction", kind=Kind.etl)
    way(visit, "fraction_way", "Usual for this work")
    take, leave = visit.button[0], visit.button[1]
    take.click().run()
    assert said(visit).parallel_fraction == 0.85
    leave.click().run()
    assert said(visit).parallel_fraction is None


def test_timings_are_typed_row_by_row(app: Open, said: Said) -> None:
    visit = way(app("pages/parallel_fraction.py"), "fraction_way", "From timings")
    for i, (machines, hours) in enumerate([(8.0, 14.0), (32.0, 19.0)]):
        visit.number_input(key=f"w_machines_{i}").set_value(machines).run()
        visit.number_input(key=f"w_hours_{i}").set_value(hours).run()
    assert not visit.exception
    assert said(visit).timings == ((8, 14), (32, 19))
    assert "Fastest on about 12 machines" in words(visit)
    assert "slower than 8" in words(visit)
    # Half a row waits, and takes nothing away.
    visit.number_input(key="w_machines_2").set_value(4.0).run()
    assert visit.number_input(key="w_machines_2").value == 4.0
    assert len(said(visit).timings) == 2
    # A refused row stays as it was typed.
    visit.number_input(key="w_hours_2").set_value(-1.0).run()
    assert visit.error
    assert visit.number_input(key="w_hours_2").value == -1.0
    visit.number_input(key="w_hours_2").set_value(25.0).run()
    assert not visit.error
    assert len(said(visit).timings) == 3


def test_a_link_with_timings_fills_the_rows(app: Open) -> None:
    visit = ask(app, "parallel_fraction", timings=((1, 20), (8, 4), (32, 6)))
    assert [visit.number_input(key=f"w_machines_{i}").value for i in range(3)] == [1, 8, 32]
    assert "Universal Scalability Law" in words(visit)


def test_a_price_ratio_can_be_tried_and_the_articles_case_comes_out(app: Open) -> None:
    visit = ask(app, "parallel_fraction", kind=Kind.other, gpu_speedup=50)
    visit.number_input(key="fraction_ratio").set_value(3.2).run()
    assert "cheaper above 70% parallel work" in words(visit)
    visit.number_input(key="fraction_ratio").set_value(-1.0).run()
    assert not visit.exception
    assert visit.error


def test_a_link_restores_the_answer_on_its_page(app: Open) -> None:
    visit = app("pages/parallel_fraction.py", v="1", p="0.93")
    assert visit.number_input(key="w_parallel_fraction").value == 0.93


# --- question 4


def test_hours_reach_the_link_and_move_the_picture(app: Open, said: Said) -> None:
    visit = ask(app, "utilization", kind=Kind.llm_finetuning)
    visit.number_input(key="w_useful_hours_per_month").set_value(73.0).run()
    assert said(visit).useful_hours_per_month == 73
    assert "At 10% of the hours renting on demand is the cheapest" in words(visit)
    visit.number_input(key="w_useful_hours_per_month").set_value(730.0).run()
    assert "At 100% of the hours renting on demand" not in words(visit)


def test_hours_beyond_a_month_are_said_and_kept(app: Open) -> None:
    visit = app("pages/utilization.py")
    visit.number_input(key="w_useful_hours_per_month").set_value(900.0).run()
    assert not visit.exception
    assert visit.error
    assert visit.number_input(key="w_useful_hours_per_month").value == 900.0


def test_runs_beyond_a_month_are_said(app: Open) -> None:
    visit = ask(app, "utilization", utilization_by=UtilizationBy.runs, runs_per_month=50)
    visit.number_input(key="w_hours_per_run").set_value(40.0).run()
    assert not visit.exception
    assert any("2,000 h a month" in e.value for e in visit.error)


def test_a_schedule_is_hours_of_the_month(app: Open) -> None:
    # 12 h on 3.5 days of 168 h are a quarter.
    visit = ask(app, "utilization", kind=Kind.etl, utilization_by=UtilizationBy.schedule,
                hours_per_day=12, days_per_week=3.5)  # fmt: skip
    assert "At 25% of the hours" in words(visit)


# --- drawing


def test_labels_are_spread_inside_the_picture() -> None:
    placed = spread([0.5, 0.51, 0.98, 0.99], 0.06)
    assert sorted(placed) == placed
    assert min(b - a for a, b in pairwise(placed)) >= 0.06 - 1e-9
    assert max(placed) <= 1
