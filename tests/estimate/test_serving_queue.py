"""The queue of a language model: known limits, and an event simulation over a spread of cases."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import lognorm

from engine.catalogue import load_catalogue
from engine.errors import InputError
from engine.estimate.serving_points import Load, at_rate, curve, gpu_replica, simulate
from engine.estimate.serving_queue import (
    lone_first_token,
    operating_points,
    processor_sharing,
    turns_of,
)
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.simulate_serving import simulate_serving

LOADS = (0.3, 0.5, 0.7, 0.85)


# ---- limits -------------------------------------------------------------------------------------


def test_sharing_obeys_little() -> None:
    rate, answer = 3.0, 200.0
    found = processor_sharing(rate, answer, 0.012, 2e-4, 0.06, prompt=1000)
    assert float(found.batch) == pytest.approx(rate * (answer - 1) * float(found.tpot_s))
    assert found.prefill_load == pytest.approx(0.18)
    assert math.isinf(float(processor_sharing(20.0, answer, 0.012, 2e-4, 0.06).tpot_s))
    assert math.isinf(float(processor_sharing(rate, answer, 0.012, 2e-4, 0.06, max_batch=2).batch))


def test_answers_of_one_token_wait_as_before_one_server() -> None:
    """Prompts of twelve chunks and nobody to answer: M/D/1, mean wait ρ·S/(2·(1 − ρ))."""
    for load in (0.2, 0.5, 0.8):
        found = processor_sharing(load / 0.1, 1.0, 0.01, 0.0, 0.1, prompt=24_576)
        assert float(found.ttft_s) == pytest.approx(0.1 + load * 0.1 / (2 * (1 - load)), rel=0.01)


def waits_of_one_length(wait: float, load: float) -> float:
    """Share of requests of a single server and one length 1 that wait no longer (Erlang 1909)."""
    ahead = [load * (j - wait) for j in range(int(wait) + 1)]
    return (1 - load) * math.fsum(
        a**j / math.factorial(j) * math.exp(-a) for j, a in enumerate(ahead)
    )


@pytest.mark.parametrize("percentile", [0.95, 0.99])
@pytest.mark.parametrize("load", [0.5, 0.7, 0.85])
def test_percentiles_of_prompts_of_one_length_are_erlang_s(load: float, percentile: float) -> None:
    """Prompts of twelve chunks, one second each, and hardly anybody to answer: M/D/1."""
    one, batch = np.ones((1, 1)), np.geomspace(1e-7, 200.0, 4000)[None]
    found = operating_points(
        batch, 1e-3 * np.ones_like(batch), one, one, 24_576 * one, 2 * one, percentile=percentile,
        cv=0.0,
    )  # fmt: skip
    steady = np.isfinite(found.ttft[0])
    told = float(np.interp(load, found.rate[0][steady], found.ttft[0][steady]))
    exact = brentq(lambda x: waits_of_one_length(x, load) - percentile, 0.01, 25.0)
    assert told == pytest.approx(1.0 + exact, rel=0.02)


def test_steps_without_a_limit_take_in_all_that_came() -> None:
    """Prompts of one length, no chunks. A step D is t and the S of each that came during the one
    before: mean t/(1 − ρ), variance λ·S²·D/(1 − ρ²). Who comes waits half of the step of length
    L = D + variance/D, then t, its S and those of the λ·L that came in that step.
    """
    t, s, rate = 0.02, 0.05, 8.0
    rho = rate * s
    usual = t / (1 - rho)
    met = usual + rate * s * s / (1 - rho**2)
    by_hand = t + s + met * (0.5 + rho)
    found = processor_sharing(rate, 1000.0, t, 0.0, s, prompt=500, chunk=1e9)
    assert float(found.ttft_s) == pytest.approx(by_hand, rel=1e-3)


def test_steps_of_a_prompt() -> None:
    assert turns_of(4000.0, 2048.0, 0.0) == 2.0
    assert turns_of(100.0, 2048.0, 0.0) == 1.0
    # Log-normal lengths drawn at random, rounded up to whole chunks.
    for mean, chunk in ((1000, 2048), (2000, 2048), (8000, 512)):
        sigma = math.sqrt(math.log1p(0.64))
        drawn = lognorm.rvs(
            sigma, scale=mean * math.exp(-(sigma**2) / 2), size=400_000, random_state=1
        )
        assert float(turns_of(float(mean), float(chunk), 0.8)) == pytest.approx(
            np.ceil(drawn / chunk).mean(), rel=0.03
        )


def test_a_lone_request_waits_for_its_own_prompt_only() -> None:
    one = np.ones((1, 1))
    told = lone_first_token(0.12 * one, 0.1 * one, 0.95, 0.8)
    sigma = math.sqrt(math.log1p(0.64))
    longest = lognorm.ppf(0.95, sigma, scale=math.exp(-(sigma**2) / 2))
    assert float(told[0, 0]) == pytest.approx(0.02 + 0.1 * longest)
    near = operating_points(
        1e-9 * one, 0.01 * one, 0.12 * one, 0.1 * one, 1000 * one, 100 * one, percentile=0.95,
        cv=0.8,
    )  # fmt: skip
    assert float(near.ttft[0, 0]) == pytest.approx(float(told[0, 0]), rel=1e-6)
    assert float(lone_first_token(0.12 * one, 0.1 * one, None, 0.8)[0, 0]) == 0.12


def test_floats_and_arrays_have_one_definition() -> None:
    rates = np.array([0.5, 2.0, 4.0])
    many = processor_sharing(rates, 200.0, 0.012, 2e-4, 0.06, prompt=1000, cv=0.8)
    for i, rate in enumerate(rates):
        single = processor_sharing(float(rate), 200.0, 0.012, 2e-4, 0.06, prompt=1000, cv=0.8)
        assert isinstance(single.ttft_s, float)
        assert single.ttft_s == pytest.approx(np.asarray(many.ttft_s)[i])
        assert single.tpot_s == pytest.approx(np.asarray(many.tpot_s)[i])
    # The same queue by numbers under way.
    batch = np.concatenate([[0.02], np.geomspace(1, 200, 60)])[None]
    steps = 0.012 + 2e-4 * np.maximum(batch, 1.0)
    one = np.ones((1, 1))
    points = operating_points(
        batch, steps, 0.06 * one, 0.06 * one, 1000 * one, 200 * one, percentile=None, cv=0.8
    )
    for i, rate in enumerate(rates):
        ttft = np.interp(rate, points.rate[0], points.ttft[0])
        tpot = np.interp(rate, points.rate[0], points.tpot[0])
        assert ttft == pytest.approx(np.asarray(many.ttft_s)[i], rel=0.01)
        assert tpot == pytest.approx(np.asarray(many.tpot_s)[i], rel=0.01)


@given(
    prompt=st.floats(1, 50_000), answer=st.floats(1, 5_000), a=st.floats(1e-3, 0.2),
    b=st.floats(0, 1e-2), token=st.floats(1e-7, 1e-3), cv=st.floats(0, 2),
    chunk=st.sampled_from([256.0, 2048.0, 8192.0, 1e9]),
)  # fmt: skip
def test_more_load_is_never_quicker(
    prompt: float, answer: float, a: float, b: float, token: float, cv: float, chunk: float
) -> None:
    batch = np.geomspace(0.02, 500, 45)[None]
    step = a + b * np.maximum(batch, 1.0)
    one = np.ones((1, 1))
    for percentile in (None, 0.95):
        found = operating_points(
            batch, step, prompt * token * one, prompt * token * one, prompt * one, answer * one,
            percentile=percentile, cv=cv, chunk=chunk,
        )  # fmt: skip
        assert not np.isnan(found.ttft).any()
        assert np.all(found.rate > 0)
        assert np.all(found.ttft >= prompt * token * 0.999) or percentile


def test_bad_input_names_the_field() -> None:
    with pytest.raises(InputError) as error:
        processor_sharing(1.0, 0.0, 0.01, 0.0, 0.1)
    assert error.value.where == "answer"


# ---- the closed form against an event simulation ------------------------------------------------


@dataclass(frozen=True)
class Errors:
    """Closed form over simulation, less one: first token (mean, percentiles), time per token."""

    case: str
    load: float
    ttft: float
    p95: float
    tpot: float


# Mean prompt and answer, seconds of a step, per sequence, per prompt token, chunk, spread.
WORKLOADS = (
    (1000, 250, 0.012, 2e-4, 6e-5, 2048, 0.8), (4000, 400, 0.020, 4e-4, 8e-5, 2048, 0.8),
    (300, 800, 0.008, 1.5e-4, 4e-5, 2048, 0.8), (8000, 150, 0.015, 5e-4, 5e-5, 2048, 0.8),
    (200, 200, 0.010, 1e-4, 3e-5, 2048, 0.8), (2000, 1000, 0.018, 3e-4, 1e-4, 2048, 0.8),
    (1000, 250, 0.012, 2e-4, 6e-5, 512, 0.8), (4000, 400, 0.020, 4e-4, 8e-5, 512, 0.8),
    (1000, 250, 0.012, 2e-4, 6e-5, 8192, 1.2), (300, 100, 0.008, 1.5e-4, 4e-5, 8192, 1.2),
    (1000, 250, 0.012, 2e-4, 6e-5, 10**9, 0.8), (4000, 400, 0.020, 4e-4, 8e-5, 10**9, 0.8),
    (1500, 300, 0.012, 2e-4, 6e-5, 2048, 0.0), (500, 100, 0.006, 1e-4, 5e-5, 2048, 0.0),
)  # fmt: skip
# Billions of parameters, GPU, how many of them, prompt, answer.
REPLICAS = (
    (70, "h100-sxm-80gb", 4, 1000, 300), (8, "h100-sxm-80gb", 1, 2000, 200),
    (8, "l40s", 1, 300, 400), (70, "b200-sxm-180gb", 2, 4000, 1000),
    (32, "h200-sxm-141gb", 1, 500, 100), (14, "a100-sxm-80gb", 1, 1000, 200),
    (32, "h100-sxm-80gb", 2, 8000, 150), (3, "l4", 1, 500, 200),
    (70, "mi300x", 2, 500, 500), (8, "b200-sxm-180gb", 1, 6000, 100),
)  # fmt: skip


def _workloads() -> list[Errors]:
    found = []
    batch = np.concatenate([[0.02], np.geomspace(1, 256, 60)])[None]
    one = np.ones((1, 1))
    for number, (prompt, answer, a, b, token, chunk, cv) in enumerate(WORKLOADS):
        s = prompt * token * one
        mean, p95 = (
            operating_points(
                batch, a + b * np.maximum(batch, 1.0), s, s, prompt * one, answer * one,
                percentile=p, cv=cv, chunk=chunk,
            )
            for p in (None, 0.95)
        )  # fmt: skip
        steady = np.isfinite(mean.ttft[0])
        full = float(mean.rate[0][steady].max())
        steps = a + b * np.maximum(np.arange(513.0), 1.0)
        for load in LOADS:
            seen = simulate_serving(
                load * full, steps, token, prompt=prompt, answer=answer, cv=cv, max_batch=512,
                chunk=chunk, requests=20_000, seed=10 * number,
            )  # fmt: skip
            ttft, tail, tpot = (
                float(np.interp(load * full, mean.rate[0][steady], x[0][steady]))
                for x in (mean.ttft, p95.ttft, mean.tpot)
            )
            found.append(
                Errors(f"{prompt} in, {answer} out, chunk {chunk}", load,
                       ttft / seen.ttft_mean_s - 1, tail / seen.ttft_p95_s - 1,
                       tpot / seen.tpot_mean_s - 1)
            )  # fmt: skip
    return found


def _replicas() -> list[Errors]:
    found = []
    for number, (size, sku, gpus, prompt, answer) in enumerate(REPLICAS):
        accelerator = load_catalogue().accelerators[sku]
        replica = gpu_replica(shape_from_size(size), accelerator, gpus, 1, False, 8, 2, "vllm-2025")
        load_of = Load(prompt, answer)
        points = curve(replica, load_of, 0.95)
        for load in LOADS:
            rate = load * float(points.rate[-1])
            told = at_rate(points, rate)
            seen = simulate(replica, load_of, rate, requests=20_000, seed=10 * number + 5)
            found.append(
                Errors(f"{size} B on {gpus} {sku}", load, told.ttft_mean_s / seen.ttft_mean_s - 1,
                       told.ttft_target_s / seen.ttft_p95_s - 1,
                       told.tpot_mean_s / seen.tpot_mean_s - 1)
            )  # fmt: skip
    return found


@pytest.fixture(scope="module")
def errors() -> list[Errors]:
    return [*_workloads(), *_replicas()]


@pytest.mark.parametrize("load", LOADS)
def test_the_closed_form_agrees_with_simulation_at_every_load(
    errors: list[Errors], load: float
) -> None:
    """Over models, hardware, lengths and chunks: median error of the mean first token at most 12%,
    of the time per token 5%.
    """
    here = [e for e in errors if e.load == load]
    assert len(here) == len(WORKLOADS) + len(REPLICAS)
    assert np.median([abs(e.ttft) for e in here]) <= 0.12
    assert np.median([abs(e.tpot) for e in here]) <= 0.05
    assert np.median([abs(e.p95) for e in here]) <= 0.10
    # Neither too short nor too long as a rule: a bias at one load was what was wrong once.
    assert abs(np.median([e.ttft for e in here])) <= 0.05
    assert abs(np.median([e.tpot for e in here])) <= 0.03


def test_few_single_cases_are_beyond(errors: list[Errors]) -> None:
    first = [e for e in errors if abs(e.ttft) > 0.12]
    each = [e for e in errors if abs(e.tpot) > 0.05]
    assert len(first) <= 0.05 * len(errors), first
    assert len(each) <= 0.15 * len(errors), each
