"""Language models served: what a unit carries inside the latency target, and what follows of it."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest

from engine.assess import assess
from engine.catalogue import load_catalogue
from engine.decide import language_models as llm
from engine.decide.candidates import Unit
from engine.decide.context import Setting, setting
from engine.decide.serving_rates import Ask, Box, _laid_out_by_row, box_of, quantile
from engine.estimate.serving import saturated_tokens_per_s, serving_capacity
from engine.estimate.serving_points import CpuBox, cpu_replica, gpu_replica
from engine.estimate.shape_from_size import shape_from_size
from engine.workload.serving_terms import ServingTerms, Weights
from engine.workload.workload import Workload, parse

TODAY = date(2026, 12, 1)
CHAT = {
    "kind": "online_inference", "model_params_b": 8, "rate_per_s": 5, "tokens_in": 1000,
    "tokens_out": 200, "latency_ms": 1000, "peak_factor": 3,
}  # fmt: skip


def asked(**changed: Any) -> tuple[Workload, Setting]:
    workload = parse(CHAT | changed)
    return workload, setting(workload, None, TODAY)


def unit(place: Setting, sku: str, per_machine: int) -> Unit:
    return next(u for u in place.gpus if u.sku == sku and u.per_machine == per_machine)


def rate(sku: str = "h100-sxm-80gb", per_machine: int = 1, **changed: Any) -> float:
    workload, place = asked(**changed)
    x = place.context.inputs.point()
    found = llm.requests_per_s(unit(place, sku, per_machine), x, workload, place.context.inputs)
    return float(found[0])


def test_a_gpu_carries_less_than_its_peak_and_a_fair_part_of_it() -> None:
    """8B in 16 bits: 2 × 8e9 FLOP a token, 1,200 tokens a request: 51 a second at 989 TFLOP/s."""
    most = 989e12 / (2 * 8e9 * 1200)
    assert most / 12 < rate() < most / 2


def test_the_rate_is_that_of_the_serving_model() -> None:
    """The decision and the plan read the same model, with a tenth of a second per further token."""
    place = asked()[1]
    h100 = unit(place, "h100-sxm-80gb", 1)
    assert h100.accelerator is not None
    found = serving_capacity(
        shape_from_size(8.0), h100.accelerator, 1, 1000, 200, ttft_target_s=1.0, tpot_target_s=0.1
    )
    assert rate() == pytest.approx(float(found.requests_per_s), rel=1e-6)


def test_looser_targets_shorter_texts_and_faster_gpus_carry_more() -> None:
    assert rate(latency_ms=400) <= rate(latency_ms=1000) <= rate(latency_ms=4000)
    assert rate(tokens_out=400) < rate() < rate(tokens_in=500)
    assert rate("l40s") < rate() < rate("b200-sxm-180gb", 8)


def test_a_model_too_large_for_one_gpu_takes_several() -> None:
    """70e9 weights of 2 bytes are 130 GiB: more than 80 GB and more than two hold beside a cache
    and the engine; four hold them.
    """
    workload, place = asked(model_params_b=70)
    x = place.context.inputs.point()
    gpus = llm.inference_min_gpus(unit(place, "h100-sxm-80gb", 8), workload, x)
    assert 2 <= gpus[0] <= 8
    assert llm.does_not_fit(unit(place, "h100-sxm-80gb", 8), workload) == ""
    assert rate(model_params_b=70, per_machine=8) < rate(per_machine=8) / 5


def test_what_fits_nowhere_says_what_it_needs() -> None:
    """20,000 billion weights of 16 bits are 40,000 GB."""
    workload, place = asked(model_params_b=20_000)
    told = llm.does_not_fit(unit(place, "h100-sxm-80gb", 8), workload)
    assert "40,000 GB" in told
    assert "16 bits" in told


def test_slower_hardware_carries_less() -> None:
    workload, place = asked()
    x = {k: np.repeat(v, 3) for k, v in place.context.inputs.point().items()}
    x["gpu_efficiency_factor"] = np.array([0.75, 1.0, 1.3])
    h100 = unit(place, "h100-sxm-80gb", 1)
    found = llm.requests_per_s(h100, x, workload, place.context.inputs)
    assert found[0] < found[1] < found[2]
    late = llm.latency_ms(h100, x, workload, place.context.inputs)
    assert late[0] > late[1] > late[2]
    # The ends of the factor's range are the 10th and 90th percentile: 1.28 standard deviations.
    z = quantile(x["gpu_efficiency_factor"], "gpu_efficiency_factor")
    assert z == pytest.approx([-1.2816, 0.0, 1.2816], abs=1e-3)


def test_the_terms_of_the_serving_plan_count() -> None:
    """Half the bytes a weight to read, and products of 8 bits at twice the rate."""
    workload, place = asked()
    x, h100 = place.context.inputs.point(), unit(place, "h100-sxm-80gb", 1)
    terms = ServingTerms(weights=Weights.bits8)
    eight = llm.requests_per_s(h100, x, workload, place.context.inputs, terms)
    assert 1.1 * rate() < float(eight[0]) < 2.5 * rate()


def test_draws_agree_with_rows_worked_out_one_by_one() -> None:
    workload, place = asked()
    x = place.context.inputs.draws(4096)
    h100 = unit(place, "h100-sxm-80gb", 1)
    found = llm.requests_per_s(h100, x, workload, place.context.inputs)
    some = np.arange(0, 4096, 64)
    name = "gpu_efficiency_factor"
    columns = (
        x["model_params_b"], x["tokens_in"], x["tokens_out"], np.full(4096, 1.0),
        quantile(x[name], name),
    )  # fmt: skip
    box: Box = box_of(h100)
    ask: Ask
    ask, likely = llm._asked(workload, ServingTerms())
    exact = np.exp(_laid_out_by_row(box, ask, likely, np.column_stack(columns)[some])[:, 0])
    error = np.abs(found[some] / exact - 1)
    assert np.median(error) < 0.03
    assert np.quantile(error, 0.9) < 0.06


def test_a_batch_of_prompts_takes_longer_than_its_arithmetic() -> None:
    """7B, a million items of 660 tokens: 9.2e18 FLOP, 2.6 hours at 989 TFLOP/s."""
    workload = parse(
        {"kind": "batch_inference", "model_params_b": 7, "items_per_run": 1e6, "tokens_in": 600,
         "tokens_out": 60}
    )  # fmt: skip
    place = setting(workload, None, TODAY)
    x = place.context.inputs.point()
    hours = float(llm.batch_inference_hours(unit(place, "h100-sxm-80gb", 1), x, workload)[0])
    ideal = 1e6 * 660 * 2 * 7e9 / 989e12 / 3600
    assert 1.2 * ideal < hours < 6 * ideal


def test_cpus_carry_a_small_part_of_what_a_gpu_does() -> None:
    """MLPerf, Llama-3.1-8B inside the Server limits: a node of two 6980P does 9% of an H100."""
    workload, place = asked(latency_ms=2000)
    x = place.context.inputs.point()
    inputs = place.context.inputs
    gpu = float(llm.requests_per_s(unit(place, "h100-sxm-80gb", 1), x, workload, inputs)[0])
    cpus = [float(llm.requests_per_s(u, x, workload, inputs)[0]) for u in place.cpus]
    assert 0 < max(cpus) < 0.25 * gpu


@pytest.mark.parametrize("rate_per_s", [0, 1e-6, 1e9])
def test_no_rate_breaks_the_answer(rate_per_s: float) -> None:
    workload = parse(CHAT | {"rate_per_s": rate_per_s})
    answer = assess(workload, today=TODAY, draws=64)
    for option in answer.options:
        assert np.isfinite(option.usd_per_month.likely)
    if rate_per_s < 1:
        assert answer.best.scale == "one_machine", answer.sentence


def test_a_target_below_the_floor_names_the_floor() -> None:
    """1,000 tokens of an 8B model are 16 TFLOP: no GPU on offer answers within 2 ms."""
    answer = assess(parse(CHAT | {"latency_ms": 2}), today=TODAY, draws=64)
    assert all(option.vetoes for option in answer.options)
    assert any("2 ms are asked" in v.reason for v in answer.best.vetoes), answer.best.vetoes
    assert all(np.isfinite(option.usd_per_month.likely) for option in answer.options)


@pytest.mark.parametrize(
    ("changed", "placement"),
    [
        ({"model_params_b": 0.5, "tokens_in": 200, "tokens_out": 20, "rate_per_s": 0.5}, "cpu"),
        ({"model_params_b": 8, "tokens_in": 2000, "tokens_out": 100, "rate_per_s": 0.01}, "gpu"),
    ],
    ids=["half a billion, few requests", "8B, prompts of 2,000 tokens"],
)
def test_cpus_serve_small_models_for_few_users_and_no_long_prompts(
    changed: dict[str, float], placement: str
) -> None:
    """What users and makers report: a small net at a low rate idles on a GPU; a prompt of 2,000
    tokens of an 8B model takes a 16-core CPU 8 to 27 s, so the first token rules CPUs out.
    """
    answer = assess(parse(CHAT | {"latency_ms": 2000} | changed), today=TODAY, draws=64)
    assert answer.best.placement == placement, answer.sentence
    assert answer.best.scale == "one_machine", answer.sentence


# MLPerf Inference, data centre, closed division, offline tokens a second, per node or GPU (v4.1
# GPT-J-6B, 1,024 tokens in and 69 out; v5.1 Llama-3.1-8B, 778 in and 73 out, inside Server limits).
PAIRS = [
    ("GPT-J-6B", 6.05, 1024, 69, "6980p", 498, "h100-sxm-80gb", 2492),
    ("GPT-J-6B", 6.05, 1024, 69, "6980p", 498, "l40s", 874),
    ("GPT-J-6B", 6.05, 1024, 69, "8592", 255, "h100-sxm-80gb", 2492),
    ("GPT-J-6B", 6.05, 1024, 69, "8592", 255, "l40s", 874),
    ("Llama-3.1-8B", 8.03, 778, 73, "6980p", 451, "h100-sxm-80gb", 5777),
    ("Llama-3.1-8B", 8.03, 778, 73, "6980p", 451, "l40s", 1642),
]
# Two sockets: vCPU, memory [GB], bandwidth [GB/s], 16-bit peak [GFLOP/s]; the 8592+ has 64 cores
# at 1.9 GHz with AMX, 1,024 FLOP a cycle.
NODES = {
    "6980p": CpuBox(512, 1536, 1228.8, 524_288.0),
    "8592": CpuBox(256, 1024, 716.8, 2 * 64 * 1.9 * 1024),
}
USD_PER_HOUR = {"6980p": 20.0, "8592": 10.0, "h100-sxm-80gb": 3.0, "l40s": 1.5}


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: f"{p[0]} {p[4]} {p[6]}")
def test_cpu_or_gpu_is_decided_as_measured(pair: tuple[Any, ...]) -> None:
    """The cheaper side per token is the measured one, and the ratio of rates within a factor 2."""
    _, size, prompt, answer, cpu, cpu_rate, gpu, gpu_rate = pair
    shape = shape_from_size(size)
    bits = 4 if size > 7 else 8
    node = cpu_replica(shape, NODES[cpu], bits, 2)
    card = gpu_replica(
        shape, load_catalogue().accelerators[gpu], 1, 1, False, 8, 1, "trtllm-mlperf"
    )
    found = [
        float(saturated_tokens_per_s(r.net, r.hw, r.plan, r.eff, prompt, answer, r.usable))
        for r in (node, card)
    ]
    measured, predicted = cpu_rate / gpu_rate, found[0] / found[1]
    assert 0.5 < predicted / measured < 2.0
    price = USD_PER_HOUR[cpu] / USD_PER_HOUR[gpu]
    assert (predicted > price) == (measured > price)
