"""The five properties of a distributed system, by what the recommendation is."""

from __future__ import annotations

import pytest

from engine.assess import assess
from engine.explain.plan_tables import services_csv
from engine.explain.services_properties import TITLES, properties, waits_for_all
from engine.explain.services_report import services_report
from engine.workload.answers import Downtime, FailureMode, Kind
from engine.workload.examples import example
from engine.workload.workload import Workload


def status(name: str) -> dict[str, str]:
    return {p.title: p.status for p in properties(assess(example(name).workload, draws=0))}


def test_one_machine_needs_none_of_them() -> None:
    # Article 000: a single machine is no distributed system, whatever 003 says of GPU clusters.
    answer = assess(example("internal-dashboard").workload, draws=0)
    assert answer.best.scale == "one_machine"
    assert set(status("internal-dashboard").values()) == {"not needed"}
    assert waits_for_all(answer) == ""


def test_training_in_step_gives_up_independent_failure_by_design() -> None:
    answer = assess(example("70b-pretraining").workload, draws=0)
    assert answer.best.scale == "cluster"
    found = {p.title: p for p in properties(answer)}
    assert tuple(found) == TITLES
    assert found["Independent failure"].status == "not by design"
    assert "checkpoints" in found["Independent failure"].why
    assert {p.status for t, p in found.items() if t != "Independent failure"} == {"held"}
    assert waits_for_all(answer).startswith("Synchronous: every step waits for all machines")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"failure_mode": FailureMode.wasted_spend, "downtime": Downtime.day}, "missing"),
        ({"failure_mode": FailureMode.machine_loss, "downtime": Downtime.minutes}, "held"),
    ],
)
def test_a_service_without_spares_misses_independent_failure(
    answers: dict[str, object], expected: str
) -> None:
    w = Workload(kind=Kind.web, rate_per_s=20_000).model_copy(update=answers)
    answer = assess(w, draws=0)
    assert answer.best.scale == "cluster"
    found = {p.title: p.status for p in properties(answer)}
    assert found["Independent failure"] == expected
    assert waits_for_all(answer).startswith("Asynchronous")


def test_copies_that_agree_wait_for_a_majority() -> None:
    w = Workload(kind=Kind.database, rate_per_s=500, failure_mode=FailureMode.data_loss)
    said = waits_for_all(assess(w, draws=0))
    assert "a majority of the copies has a write" in said


def test_the_table_has_the_audit() -> None:
    report = services_report(assess(example("event-logging").workload, draws=0))
    text = services_csv(report)
    told = text.decode() if isinstance(text, bytes) else text
    for p in report.properties:
        assert f"{p.title}: {p.status}" in told
