"""What open choices are worth: machines that an answer leaves as they are are sized once."""

from __future__ import annotations

from datetime import date

import pytest

from engine.assess import assess
from engine.workload.workload import Workload

TODAY = date(2026, 12, 1)
JOBS: dict[str, dict[str, object]] = {
    "chat": {"kind": "online_inference", "model_class": "llm", "model_params_b": 70.0,
             "rate_per_s": 5.0, "latency_ms": 2000.0},
    "database": {"kind": "database", "rate_per_s": 20_000.0, "working_set_gb": 900.0},
    "events": {"kind": "streaming", "rate_per_s": 200_000.0},
    "recommender": {"kind": "recsys", "rate_per_s": 3_000.0, "working_set_gb": 1_500.0},
    "training": {"kind": "llm_finetuning", "model_params_b": 8.0},
}  # fmt: skip


@pytest.mark.parametrize("job", JOBS)
def test_an_open_choice_is_worth_what_each_answer_gives_worked_out_from_nothing(
    job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No answer takes over machines that another one asks for otherwise."""
    workload = Workload.model_validate(JOBS[job])
    shared = assess(workload, today=TODAY, draws=64)
    assert "failure_mode" in {q.field for q in shared.next_questions}
    monkeypatch.setattr("engine.assess._Machines.known", lambda self, context: {})
    assert assess(workload, today=TODAY, draws=64).next_questions == shared.next_questions
