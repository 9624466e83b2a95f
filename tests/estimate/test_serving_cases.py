"""The articles' serving cases reproduced or corrected."""

from __future__ import annotations

import pytest

from engine.estimate.serving_points import Load, gpu_replica
from engine.estimate.shape_from_size import shape_from_size
from engine.explain.serving import serving_report
from engine.explain.serving_cases import batching, gpu_ms_of_cpu_ms, serving_cases
from engine.workload.answers import Kind
from engine.workload.serving_terms import ServingTerms
from engine.workload.workload import Workload
from tests.estimate.serving_asks import CATALOGUE, TODAY


def test_eightfold_by_batching_is_five_and_a_half_times_more_work() -> None:
    # 000: 92/65 = 1.415, 8/1.415 = 5.65. One service time waits ρ/(1 − ρ): 1.86 and 11.5.
    acc = CATALOGUE.accelerators["h100-sxm-80gb"]
    found = batching(gpu_replica(shape_from_size(8.0), acc, 1, 1, False, 16, 2), Load(700, 250))
    assert found.busy_gain == pytest.approx(1.415, abs=0.001)
    assert found.batch_gain == pytest.approx(5.65, abs=0.01)
    assert found.waits == pytest.approx((1.857, 11.5), rel=1e-3)
    # Measured on an H100 (7B, 8 bits): 16 at once give 14 times one at a time for 10% more a
    # token, so some six to eight at once give 5.65 times.
    assert 5.65 <= found.batch < 9
    assert found.tpot_s < 1.25 * found.lone_tpot_s


def test_two_hundred_milliseconds_become_eighteen_between_an_h100_and_an_a100() -> None:
    for model in ("dlrm", "dlrm-v2"):
        h100, a100 = (
            gpu_ms_of_cpu_ms(200.0, CATALOGUE.accelerators[sku], model)
            for sku in ("h100-sxm-80gb", "a100-sxm-80gb")
        )
        assert h100 < 18.0 < a100
        # Neither is farther than two and a half times from it.
        assert h100 > 18.0 / 2.5
        assert a100 < 18.0 * 2.5
    # What takes a millisecond on the CPU gains nothing.
    assert gpu_ms_of_cpu_ms(1.0, CATALOGUE.accelerators["h100-sxm-80gb"]) > 1.0


def test_every_case_of_the_articles_says_what_comes_out_and_why() -> None:
    cases = serving_cases(CATALOGUE)
    assert [c.id for c in cases] == ["batching", "queue", "latency", "month", "cold_start"]
    for case in cases:
        assert case.said
        assert case.computed
        assert len(case.why) > 40


def test_a_million_requests_a_day_cost_twenty_times_more_or_less_by_their_tokens() -> None:
    # 000: 14,200 USD a month. The tokens decide: from short answers of 8B to long prompts of 70B.
    rate = 1e6 / 86_400
    usd = []
    for params, load in ((8.0, Load(100, 50)), (70.0, Load(3000, 1000))):
        workload = Workload(
            kind=Kind.online_inference, model_params_b=params, rate_per_s=rate,
            tokens_in=load.input_tokens, tokens_out=load.output_tokens, peak_factor=1,
        )  # fmt: skip
        report = serving_report(workload, ServingTerms(spare=0), CATALOGUE, TODAY)
        assert report.answer.best is not None
        usd.append(report.answer.best.usd_per_month.likely)
    assert usd[0] < 14_200 < usd[1]
    assert usd[1] / usd[0] > 15
