"""What open choices are worth: machines that an answer leaves as they are are sized once."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from engine.assess import _Machines, _point
from engine.decide.choices import answers_of, open_choices
from engine.decide.context import setting
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
def test_no_answer_takes_over_machines_that_another_one_asks_for_otherwise(job: str) -> None:
    """Shared among answers or sized from nothing, a candidate's machines and cost are the same."""
    workload = Workload.model_validate(JOBS[job])
    machines, taken_over = _Machines(), 0
    for field in open_choices(workload):
        for answer in answers_of(field):
            place = setting(workload.model_copy(update={field: answer}), None, TODAY)
            known = machines.known(place.context)
            taken_over += bool(known)
            shared, scores = _point(place, known)
            alone, scores_alone = _point(place, {})
            assert [e.spec for e in shared] == [e.spec for e in alone], answer
            for one, other in zip(shared, alone, strict=True):
                assert np.array_equal(one.usd_per_month, other.usd_per_month), answer
                for a, b in zip(one.pools, other.pools, strict=True):
                    assert np.array_equal(a.paid_units, b.paid_units), answer
            assert np.array_equal(scores, scores_alone), answer
    assert taken_over >= 3
