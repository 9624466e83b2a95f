"""What rented machines cost while they start."""

from __future__ import annotations

import numpy as np
import pytest

from engine.assess import assess
from engine.costing.report import cost_report
from engine.decide.starting import start_note, starting_hours
from engine.workload.answers import Kind
from engine.workload.workload import Workload

# decision_parameters.csv: a GPU machine works 0.067 h after the order, a server 0.017 h.
START_H = {"gpu": 0.067, "cpu": 0.017}


def test_a_machine_starts_before_every_run() -> None:
    # 30 runs · 4 minutes = 2 h.
    assert starting_hours(30, 10.0, 4 / 60) == pytest.approx(2.0)


def test_machines_that_stay_on_cost_no_more_than_the_month() -> None:
    # 8,000 runs of 0.09 h leave 10 h of the month's 730; 8,000 starts of 3 min would be 400 h.
    assert starting_hours(8_000, 720.0, 0.05) == pytest.approx(10.0)
    assert starting_hours(np.array([10.0]), np.array([900.0]), 0.05) == pytest.approx(0.0)


def test_it_is_told_where_it_counts() -> None:
    assert "$60 of the $67.20 a month for L4" in start_note("L4", 60.0, 67.2, 30, 0.067)
    assert start_note("L4", 60.0, 7_200.0, 30, 0.067) == ""
    assert start_note("L4", 0.0, 0.0, 0, 0.067) == ""


def test_short_runs_pay_their_starts_and_say_so() -> None:
    short = Workload(kind=Kind.etl, runs_per_month=30, hours_per_run=0.01)
    long = Workload(kind=Kind.etl, runs_per_month=30, hours_per_run=8)
    assert any("machines start" in w for w in assess(short, draws=0).warnings)
    assert not any("machines start" in w for w in assess(long, draws=0).warnings)


def test_rows_on_demand_are_hours_of_work_and_of_starting() -> None:
    answer = assess(Workload(kind=Kind.simulation, runs_per_month=60, hours_per_run=1), draws=0)
    option = next(o for o in answer.options if o.id.endswith("/on_demand") and len(o.stages) == 1)
    stage = option.stages[0]
    way = cost_report(answer, hardware=option.id.rpartition("/")[0], draws=64).way("on_demand")
    assert way.flow is not None
    rows = {line.item: float(np.asarray(line.total)) / way.flow.months for line in way.flow.lines}
    # 60 starts beside the hours of 60 runs, at the price of an hour of these machines.
    ratio = 60 * START_H[stage.hardware] / stage.busy_hours_per_month
    assert rows["Machines starting"] == pytest.approx(rows["Rent on demand"] * ratio)
    assert option.usd_per_month.likely == pytest.approx(sum(rows.values()))


def test_machines_that_are_committed_to_pay_no_starts() -> None:
    answer = assess(Workload(kind=Kind.simulation, runs_per_month=60, hours_per_run=1), draws=0)
    report = cost_report(answer, draws=64)
    for way in report.ways:
        if way.flow is not None and way.id in ("dedicated", "buy_colocation"):
            assert all(line.item != "Machines starting" for line in way.flow.lines)
