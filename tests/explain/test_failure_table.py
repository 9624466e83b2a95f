"""Every way to fail, its remedy and its cost, worked out by hand for an example."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from engine.assess import assess_point
from engine.explain import failure_table
from engine.explain.failure_table import remedied
from engine.workload.answers import Kind
from engine.workload.workload import Workload

TODAY = date(2026, 12, 1)
FAILS = ["A machine dies", "A long run dies", "Results are silently wrong", "A machine is slow",
         "The network splits", "Data is lost"]  # fmt: skip


@pytest.mark.parametrize("kind", Kind)
def test_every_way_to_fail_has_a_remedy_for_every_kind(kind: Kind) -> None:
    rows = remedied(assess_point(Workload(kind=kind), today=TODAY))
    assert [r.fails for r in rows] == [f for f in FAILS if f in {r.fails for r in rows}]
    assert len(rows) >= 5
    assert all(r.remedy and r.costs and r.without for r in rows)


def test_the_costs_of_a_fleet_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    # 8 machines of 8 GPUs at $2: $16 a machine-hour, $11,680 a month, $128 an hour for all.
    stage = SimpleNamespace(
        hardware="gpu", machines=8, units=64, side_by_side=1.0, acquisition="on_demand",
        price=SimpleNamespace(usd_per_unit_hour=2.0, provider="X"),
        usd_per_month=SimpleNamespace(likely=1.0),
    )  # fmt: skip
    answer: Any = SimpleNamespace(
        workload=Workload(kind=Kind.llm_pretraining), best=SimpleNamespace(stages=(stage,))
    )
    monkeypatch.setattr(failure_table, "lead_stage", lambda _: stage)
    rows = {r.fails: r for r in remedied(answer)}
    assert "$11,700 a month" in rows["A machine dies"].costs
    # 64 GPUs of 30,000 h: a failure every 469 h; √(2 · 0.0083 · 469) = 2.8 h; eight hours: $1,024.
    run = rows["A long run dies"]
    assert "every 2.8 h" in run.remedy
    # 0.0083/2.79 + 2.79/938 + 0.33/469 = 0.30% + 0.30% + 0.07%.
    assert "0.7% of the time" in run.costs
    assert "$128 for each hour" in run.without
    assert "$1,020 for eight" in run.without
    wrong = rows["Results are silently wrong"]
    assert "2% of the time; an error then costs $768" in wrong.costs  # 6 · 128
    assert "$9,220 an error" in wrong.without  # 72 · 128 = 9,216
    slow = rows["A machine is slow"]
    assert "12.5%" in slow.costs
    # 1 − 1/1.1 = 9.1% of $128: $11.64 an hour.
    assert "loses 9.1%, $11.64 an hour" in slow.without
