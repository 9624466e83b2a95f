"""The event simulation by itself, and the capacity of a replica confirmed by it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.bench_serving_queue import replicas
from engine.catalogue import load_catalogue
from engine.errors import InputError
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.simulate_serving import simulate_replica, simulate_serving

ACCELERATORS = load_catalogue().accelerators
STEPS = 0.010 + 1e-4 * np.arange(65)


def test_a_lone_request_takes_its_prefill_and_its_steps() -> None:
    seen = simulate_serving(
        0.001, STEPS, 1e-4, prompt=1000, answer=101, cv=0.0, max_batch=64, requests=50
    )
    assert seen.ttft_mean_s == pytest.approx(0.1)
    assert seen.tpot_mean_s == pytest.approx(STEPS[1])
    assert not seen.growing


def test_littles_law() -> None:
    rate, answer = 4.0, 150.0
    seen = simulate_serving(rate, STEPS, 2e-5, prompt=500, answer=answer, requests=20_000, seed=2)
    assert seen.batch_mean == pytest.approx(rate * (answer - 1) * seen.tpot_mean_s, rel=0.05)
    assert seen.ttft_p50_s <= seen.ttft_mean_s <= seen.ttft_p95_s <= seen.ttft_p99_s


def test_prefill_alone_is_a_queue_with_one_server() -> None:
    """Answers of one token and prompts of one length: M/D/1, mean wait ρ·S/(2(1 − ρ))."""
    prefill = 0.1
    seen = simulate_serving(
        7.0, STEPS, prefill / 2048, prompt=2048, answer=1, cv=0.0, requests=60_000, seed=4
    )
    assert seen.ttft_mean_s == pytest.approx(prefill + 0.7 * prefill / 0.6, rel=0.06)


def test_overload_is_told() -> None:
    seen = simulate_serving(40.0, STEPS, 1e-4, prompt=1000, answer=100, requests=4_000)
    assert seen.growing
    assert seen.ttft_p99_s > 10


def test_the_same_seed_gives_the_same_result_and_progress_is_told() -> None:
    told: list[float] = []
    runs = [
        simulate_serving(
            2.0, lambda b: 0.01 + 1e-4 * b, 1e-5, prompt=300, answer=60, requests=2_000, seed=9,
            progress=told.append,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert runs[0] == runs[1]
    assert 50 <= len(told) <= 220
    assert all(0 < share <= 1 for share in told)


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("rate", {"rate": 0.0}),
        ("prompt", {"prompt": 0.0}),
        ("answer", {"answer": math.nan}),
        ("cv", {"cv": -1.0}),
        ("requests", {"requests": 5}),
        ("step_s", {"step_s": np.zeros(9)}),
        ("prefill_s_per_token", {"prefill_s_per_token": -1.0}),
        ("max_batch", {"max_batch": 0}),
    ],
)
def test_bad_input_names_the_field(field: str, changed: dict[str, object]) -> None:
    given = {"rate": 1.0, "step_s": STEPS, "prefill_s_per_token": 1e-5} | changed
    lengths = {"prompt": 100.0, "answer": 10.0} | {
        k: given.pop(k) for k in ("prompt", "answer") if k in given
    }
    with pytest.raises(InputError) as error:
        simulate_serving(**given, **lengths)  # type: ignore[arg-type]
    assert error.value.where == field


def test_a_model_that_does_not_fit_is_not_simulated() -> None:
    with pytest.raises(InputError) as error:
        simulate_replica(shape_from_size(70), ACCELERATORS["l4"], 1, 500, 100, rate=1.0)
    assert error.value.where == "n_gpus"


def test_replicas_are_exact_or_one_over() -> None:
    """Closed form against simulation on generated cases; the benchmark runs 200 of them."""
    right, _ = replicas(25, requests=4_000)
    assert right >= 23
