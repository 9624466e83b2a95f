"""What rented machines cost while they start."""

from __future__ import annotations

import pytest

from engine.assess import assess
from engine.decide.starting import start_note, start_usd_per_month
from engine.workload.answers import Kind
from engine.workload.workload import Workload


def test_starts_cost_five_minutes_of_every_machine() -> None:
    # 8 machines · 3 USD · 30 runs · 5/60 h = 60 USD.
    assert start_usd_per_month(8, 3.0, 30, 0.01) == pytest.approx(60.0)


def test_machines_that_stay_on_cost_no_more_than_the_month() -> None:
    # 8,000 runs of 0.09 h leave 10 h of the month's 730: 2 · 1 USD · 10 h, not 8,000 starts.
    assert start_usd_per_month(2, 1.0, 8_000, 0.09) == pytest.approx(20.0)


def test_it_is_told_where_it_counts_alone() -> None:
    assert "$60" in start_note("L4", 8, 3.0, 30, 0.01, 7.2)
    assert start_note("L4", 8, 3.0, 30, 10.0, 7_200.0) == ""


def test_the_recommendation_for_short_runs_tells_its_starts() -> None:
    short = Workload(kind=Kind.etl, runs_per_month=30, hours_per_run=0.01)
    long = Workload(kind=Kind.etl, runs_per_month=30, hours_per_run=8)
    assert any("while they start" in w for w in assess(short, draws=0).warnings)
    assert not any("while they start" in w for w in assess(long, draws=0).warnings)
