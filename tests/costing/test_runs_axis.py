"""The chart of runs reaches as far as the plan's own figures, and says what it leaves out."""

from __future__ import annotations

import pytest

from engine.cost.break_even import BreakEven
from engine.cost.compare import marks
from engine.costing.model import Wins
from engine.costing.runs_axis import runs_axis


def wins(now: float, evens: tuple[float | None, ...], most: float, fixed: float = 1000.0) -> Wins:
    """By the run at 100 each up to `most`, beside a fixed rent."""
    found = tuple((f"way {i}", BreakEven(e, e, e, "runs", "")) for i, e in enumerate(evens))
    lines = (
        ("on demand", ((0.0, 0.0), (most, 100.0 * most))),
        ("by the month", ((0.0, fixed), (most, fixed))),
    )
    return Wins((), found, None, None, (), 0.5, marks(), lines, now)


def test_below_a_run_a_month_the_axis_follows_the_plan() -> None:
    # the dearer of 0.33 and 0.2, with 15% of room: 0.3795; 5 is more than four times 0.33
    axis = runs_axis(wins(0.33, (0.13, 0.2), 0.34))
    assert axis.right == pytest.approx(0.3795)
    assert axis.marks == ()
    assert axis.told.startswith("The articles rent below 5 runs a month and buy above 20; 5 and 20")


def test_the_articles_marks_stand_where_they_are_near() -> None:
    # four times 8 reach 5 and 20, and the machines do 40: 20 with room is 23
    axis = runs_axis(wins(8, (7.5, None), 40))
    assert axis.right == pytest.approx(23)
    assert [m.value for m in axis.marks] == [5, 20]
    assert axis.told == "Dashed: the articles rent below 5 runs a month and buy above 20."


def test_a_mark_beyond_the_hours_of_a_month_is_told_not_drawn() -> None:
    # the machines do 11 runs: 5 is drawn, 20 told; the axis ends at 9 with room, 10.35
    axis = runs_axis(wins(4, (9.0,), 11))
    assert axis.right == pytest.approx(10.35)
    assert [m.value for m in axis.marks] == [5]
    assert "; 20 lies beyond this chart" in axis.told


def test_without_runs_or_break_evens_the_articles_first_mark_is_the_measure() -> None:
    axis = runs_axis(wins(0, (None,), 100))
    assert axis.right == pytest.approx(23)


def test_the_top_shows_the_fixed_rent_and_no_more_of_the_rise_than_twice_that() -> None:
    # right is 23 (as above): 2,300 by the run, cut at twice 1,000, with room 2,300
    assert runs_axis(wins(8, (7.5,), 40)).top == pytest.approx(2_300)
    # right is 1.15: 115 by the run, under the fixed rent of 1,000
    assert runs_axis(wins(1, (None,), 100)).top == pytest.approx(1_150)
    # nothing is fixed: the rise itself, 115, with room
    assert runs_axis(wins(1, (None,), 100, fixed=0)).top == pytest.approx(132.25)
