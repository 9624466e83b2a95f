"""Whatever is answered: finite scores, contributions that sum, vetoes that stay below."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.assess import assess, assess_point
from engine.assessment import Assessment
from engine.errors import InputError
from engine.workload.answers import (
    Bottleneck,
    Certainty,
    Consistency,
    Current,
    Downtime,
    FailureMode,
    Kind,
    Location,
    ModelClass,
    Precision,
    Rewrite,
    Symptom,
    Team,
    UtilizationBy,
)
from engine.workload.workload import Workload, parse

TODAY = date(2026, 12, 1)


def size(low: float, high: float) -> st.SearchStrategy[float]:
    """A positive size anywhere between two ends, on a log scale, ends included."""
    logs = st.floats(math.log(low), math.log(high)).map(lambda v: min(max(math.exp(v), low), high))
    return st.one_of(st.sampled_from([low, high]), logs)


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "kind": st.sampled_from(list(Kind)),
    "bottleneck": st.sampled_from(list(Bottleneck)),
    "bottleneck_sure": st.sampled_from(list(Certainty)),
    "symptoms": st.lists(st.sampled_from(list(Symptom)), max_size=4),
    "failure_mode": st.sampled_from(list(FailureMode)),
    "downtime": st.sampled_from(list(Downtime)),
    "parallel_fraction": st.floats(0, 1),
    "parallel_fraction_sure": st.sampled_from(list(Certainty)),
    "timings": st.lists(st.tuples(size(1, 1e4), size(0.01, 1e4)), max_size=4),
    "gpu_speedup": size(1e-6, 1e5),
    "utilization_by": st.sampled_from(list(UtilizationBy)),
    "useful_hours_per_month": st.floats(0, 744),
    "runs_per_month": st.one_of(st.just(0.0), size(1e-6, 1e6)),
    "hours_per_run": st.one_of(st.just(0.0), size(1e-6, 2e4)),
    "hours_per_day": st.floats(0, 24),
    "days_per_week": st.floats(0, 7),
    "monthly_variation": st.floats(0, 3),
    "model_params_b": size(1e-6, 2e4),
    "train_tokens_b": size(1e-6, 1e6),
    "model_class": st.sampled_from(list(ModelClass)),
    "tokens_in": size(1, 1e7),
    "tokens_out": size(1, 1e6),
    "items_per_run": size(1, 1e15),
    "working_set_gb": st.one_of(st.just(0.0), size(1e-6, 1e9)),
    "working_set_shardable": st.booleans(),
    "precision": st.sampled_from(list(Precision)),
    "rate_per_s": st.one_of(st.just(0.0), size(1e-6, 1e9)),
    "peak_factor": size(1, 1000),
    "services": st.integers(1, 10_000),
    "cpu_ms_per_item": st.one_of(st.just(0.0), size(1e-6, 1e7)),
    "latency_ms": size(1e-6, 3.6e6),
    "cpu_latency_ms": size(1e-6, 3.6e6),
    "current": st.sampled_from(list(Current)),
    "current_units": size(1e-6, 1e6),
    "current_usd_per_month": st.one_of(st.just(0.0), size(1e-6, 1e9)),
    "location": st.sampled_from(list(Location)),
    "rewrite": st.sampled_from(list(Rewrite)),
    "consistency": st.sampled_from(list(Consistency)),
    "deadline_days": size(1e-3, 3650),
    "horizon_months": st.integers(1, 60),
    "budget_usd_per_month": size(1, 1e9),
    "team": st.sampled_from(list(Team)),
    "weight_cost": st.integers(0, 100),
    "weight_time": st.integers(0, 100),
    "weight_fit": st.integers(0, 100),
    "weight_resilience": st.integers(0, 100),
    "weight_effort": st.integers(0, 100),
    "weight_flexibility": st.integers(0, 100),
}


@st.composite
def workloads(draw: st.DrawFn) -> Workload | None:
    """A workload with any subset of fields answered, at their limits too; None when refused."""
    names = draw(st.lists(st.sampled_from(sorted(FIELDS)), unique=True, max_size=len(FIELDS)))
    try:
        return parse({name: draw(FIELDS[name]) for name in names})
    except InputError:
        return None


def check(answer: Assessment) -> None:
    """What must hold of every answer."""
    for option in answer.options:
        assert math.isfinite(option.score)
        assert abs(sum(c.points for c in option.contributions) - option.score) < 1e-9
        assert all(0 <= c.value <= 1 for c in option.contributions)
        assert math.isfinite(option.usd_per_month.high)
        assert all(s.units >= 1 for s in option.stages)
    barred = [bool(o.vetoes) for o in answer.options]
    assert barred == sorted(barred), "a vetoed option ranks above an allowed one"
    assert answer.sentence
    total = sum(share for _, share in answer.shares)
    assert abs(total - 1) < 1e-9


@settings(max_examples=120)
@given(workloads())
def test_no_answer_reaches_a_traceback(workload: Workload | None) -> None:
    if workload is not None:
        check(assess_point(workload, today=TODAY))


@settings(max_examples=15)
@given(workloads())
def test_draws_and_flips_hold_for_any_answer(workload: Workload | None) -> None:
    if workload is None:
        return
    answer = assess(workload, today=TODAY, draws=256)
    check(answer)
    assert abs(sum(o.probability_best for o in answer.options) - 1) < 1e-9
    for option in answer.options:
        low, likely, high = (
            option.usd_per_month.low,
            option.usd_per_month.likely,
            option.usd_per_month.high,
        )
        assert low <= likely <= high
        assert option.regret_usd_per_month >= 0


def test_nothing_answered_still_gives_an_answer() -> None:
    answer = assess(Workload(), today=TODAY)
    check(answer)
    assert answer.next_questions
