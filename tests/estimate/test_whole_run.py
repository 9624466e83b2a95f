"""From a step to a run: factors worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import InputError
from engine.estimate.estimate import Estimate
from engine.estimate.whole_run import (
    experiments_estimate,
    failure_goodput,
    goodput_estimate,
    run_budget,
    run_goodput,
)

STEP = Estimate(1.8, 2.0, 2.3, "s", ("a test",))


def exact(value: float) -> Estimate:
    return Estimate(value, value, value, "share")


def test_gpu_hours_are_steps_over_goodput_times_experiments() -> None:
    # 1e12 / 4e6 = 250,000 steps of 2 s on 64 GPUs = 8,888.9 GPU h; / 0.9 x 1.2 = 11,851.9.
    told = run_budget(STEP, tokens=1e12, tokens_per_step=4e6, gpus=64, goodput=exact(0.9),
                      experiments=exact(1.2))  # fmt: skip
    assert told.steps == 250_000
    assert told.ideal_gpu_hours == pytest.approx(8888.9, rel=1e-4)
    assert told.gpu_hours.likely == pytest.approx(11851.9, rel=1e-4)
    # The calendar of the run itself: 138.9 h / 0.9. Exact factors leave the step's interval.
    assert told.run_hours.likely == pytest.approx(154.3, rel=1e-3)
    assert told.run_hours.low / told.run_hours.likely == pytest.approx(0.9)
    assert told.run_hours.high / told.run_hours.likely == pytest.approx(1.15)


def test_errors_that_are_independent_add_in_squares() -> None:
    # ln 1.15 = 0.1398 and ln 1.2 = 0.1823: together 0.2297, 1.258 times.
    told = run_budget(STEP, tokens=1e12, tokens_per_step=4e6, gpus=64, goodput=exact(0.9),
                      experiments=Estimate(1.0, 1.0, 1.2, "times"))  # fmt: skip
    assert told.gpu_hours.high / told.gpu_hours.likely == pytest.approx(1.258, rel=1e-3)


def test_goodput_of_a_thousand_gpus_by_hand() -> None:
    # M = 30,000 / 1,024 = 29.3 h; the decision's stall of 0.0083 h (not a second table's 20 s),
    # so a checkpoint each sqrt(2 x 0.0083 x 29.3) = 0.697 h: 1.19% + 1.19%. A third of the way (in
    # logs) from 512 to 4,096 GPUs a restart takes 0.33^(2/3) x 0.083^(1/3) = 0.208 h: 0.71%.
    # Together 3.09%; operations leave 88%.
    assert float(run_goodput(1024.0)) == pytest.approx((1 - 0.0309) * 0.88, rel=1e-3)


def test_what_is_uncertain_adds_in_squares_and_not_at_its_worst_at_once() -> None:
    # 8 GPUs: failures take 0.2%, so the range is that of operations: 0.75 to 0.97 of 0.88.
    few = goodput_estimate(8)
    assert few.low / few.likely == pytest.approx(0.75 / 0.88, rel=0.01)
    assert few.high / few.likely == pytest.approx(0.97 / 0.88, rel=0.01)
    # 16,384: with every parameter at its worst half of the time went to failures alone.
    many = goodput_estimate(16_384)
    worst = 0.75 * float(failure_goodput(16_384.0, "low", "high", "high"))
    assert worst < many.low < many.likely < many.high < 1


def test_failures_leave_what_they_left_of_the_largest_published_run() -> None:
    # Llama 3 405B: over 90% of 54 days on 16,384 H100 were effective, at 50,700 GPU-hours a
    # failure; the usual rate of 30,000 is 1.7 times that and leaves a little less.
    assert 0.85 < float(failure_goodput(16_384.0)) < 0.9
    assert float(failure_goodput(16_384.0 * 30_000 / 50_700)) == pytest.approx(0.9, abs=0.01)


def test_larger_fleets_lose_more() -> None:
    useful = run_goodput(np.array([8.0, 64.0, 512.0, 4096.0, 16384.0]))
    assert (np.diff(useful) < 0).all()
    one = goodput_estimate(16384)
    # Llama 3 405B: its whole run was about 16% slower than its steps (published GPU hours).
    assert one.low < 0.84 < one.high


@pytest.mark.parametrize(
    ("changed", "field"),
    [({"tokens": 0.0}, "tokens"), ({"tokens": float("inf")}, "tokens"),
     ({"tokens_per_step": 0.0}, "tokens_per_step"), ({"gpus": 0}, "gpus"),
     ({"goodput": exact(1.2)}, "goodput")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(changed: dict, field: str) -> None:
    given = {"tokens": 1e12, "tokens_per_step": 4e6, "gpus": 8} | changed
    with pytest.raises(InputError) as refused:
        run_budget(STEP, **given)
    assert refused.value.where == field


def test_experiments_are_the_users_own_or_the_usual_range() -> None:
    assert experiments_estimate(1.5).low == experiments_estimate(1.5).high == 1.5
    usual = experiments_estimate()
    assert usual.low < usual.likely < usual.high
    with pytest.raises(InputError):
        experiments_estimate(0.5)
