"""Prefill and decoding apart: each pool simulated, the handover by hand and as measured."""

from __future__ import annotations

import numpy as np
import pytest

from engine.calibrate.serving_classes import engine_of, generation_of
from engine.calibrate.serving_rows import read
from engine.estimate.named import named
from engine.estimate.serving import Plan, decode_seconds, efficiencies_of, prefill_seconds
from engine.estimate.serving_disaggregated import disaggregated, handover_seconds
from engine.estimate.serving_layouts import candidates
from engine.estimate.serving_plan import PARAMETERS, ServingOption, plan_serving, with_spare
from engine.estimate.serving_points import Load, room
from engine.estimate.simulate_serving import simulate_serving
from tests.estimate.serving_asks import ask, gpu

LONG = Load(4000.0, 500.0)


def planned(params_b: float = 70.0, rate: float = 50.0, load: Load = LONG) -> ServingOption:
    option = plan_serving(ask(params_b, rate, load=load), [gpu("h100-sxm-80gb", 8)]).best
    assert option is not None
    return option


def test_both_pools_keep_their_target_in_the_simulation() -> None:
    request = ask(70.0, 50.0, load=LONG)
    found = disaggregated(planned(), request)
    assert found is not None
    tried = candidates(request.shape, gpu("h100-sxm-80gb", 8), request.precision, LONG,
                       request.targets)  # fmt: skip
    pool = {c.layout: c for c in tried}
    r = pool[found.decode].replica
    parts = r.net, r.hw, r.plan, r.eff
    most = int(room(r, LONG))
    steps = np.asarray(decode_seconds(*parts, np.arange(most + 1.0), 4250.0))
    each = simulate_serving(50.0 / found.decode_replicas, steps, 0.0, prompt=1, answer=500,
                            max_batch=most, requests=8_000)  # fmt: skip
    assert each.tpot_mean_s == pytest.approx(found.tpot_s, rel=0.05)
    assert each.tpot_mean_s <= 0.1
    r = pool[found.prefill].replica
    alone = float(prefill_seconds(r.net, r.hw, r.plan, r.eff, 1.0, 4000.0))
    first = simulate_serving(50.0 / found.prefill_replicas, steps, alone / 4000.0, prompt=4000,
                             answer=1, cv=0.8, requests=20_000)  # fmt: skip
    whole = first.ttft_p95_s + found.handover_s + found.tpot_s
    assert whole == pytest.approx(found.ttft_s, rel=0.15)
    assert whole <= 2.0


def test_the_machines_are_those_of_the_two_pools_with_their_spare_ones() -> None:
    request = ask(70.0, 50.0, load=LONG)
    found = disaggregated(planned(), request)
    assert found is not None
    per_machine = [8 // found.prefill.gpus, 8 // found.decode.gpus]
    counts = [found.prefill_replicas, found.decode_replicas]
    assert found.machines == sum(
        -(-n // each) + 1 for n, each in zip(counts, per_machine, strict=True)
    )
    assert found.usd_per_month == pytest.approx(found.machines * 8 * 3.0 * 730)


def test_a_cache_travels_over_the_network_after_a_handover() -> None:
    # 80 layers of 8 heads of 128, keys and values in 2 bytes: 327,680 bytes a token; 4,000 tokens
    # are 1.31 GB. Eight NICs of 50 GB/s at 70% carry it in 4.7 ms, one in 37 ms; 0.11 s before.
    request = ask(70.0, 50.0, load=LONG)
    tried = candidates(request.shape, gpu("h100-sxm-80gb", 8), request.precision, LONG,
                       request.targets)  # fmt: skip
    for c in tried:
        by_hand = 0.11 + 4000 * 327_680 / (50e9 * 0.7 * c.layout.gpus)
        assert handover_seconds(c, 4000.0) == pytest.approx(by_hand, rel=1e-6)


# Kimi-K2.5 on GB200, prefill and decoding apart (InferenceX runs in NVIDIA's aiconfigurator,
# silicon_sample.csv, April 2026): engine, prompt, GPUs of prefill (whether attention by data), of a
# decoder, users a decoder, ms to the first token and per token.
MEASURED = (
    ("trtllm 1.1.0-dev.2", 1024, 4, True, 8, 1, 195.51, 5.317),
    ("trtllm 1.1.0-dev.2", 8192, 4, True, 8, 1, 324.69, 5.47),
    ("trtllm 1.1.0-dev.2", 1024, 4, True, 4, 1, 175.95, 5.77),
    ("trtllm 1.1.0-dev.2", 8192, 4, True, 4, 1, 331.08, 5.92),
    ("vllm 0.18.0", 1024, 4, False, 4, 1, 247.27, 6.89),
    ("vllm 0.18.0", 8192, 4, False, 4, 1, 473.04, 7.12),
)  # fmt: skip


@pytest.mark.parametrize("row", MEASURED)
def test_measured_runs_with_prefill_and_decoding_apart(
    row: tuple[str, int, int, bool, int, int, float, float],
) -> None:
    engine, prompt, prefill_gpus, by_data, decode_gpus, users, ttft_ms, itl_ms = row
    reading = read({
        "model": "Kimi-K2.5", "params_b": "1026", "active_params_b": "32.5", "layers": "61",
        "hidden": "7168", "heads": "64", "kv_heads": "1", "head_dim": "576", "ffn": "2048",
        "n_experts": "384", "experts_per_token": "8", "weight_dtype": "fp4", "kv_dtype": "fp8",
        "engine": engine, "gpu": "GB200", "n_gpus": "4", "tp": "4", "pp": "1",
        "input_tokens": str(prompt), "output_tokens": "1024", "protocol": "closed_loop",
        "concurrency_or_batch": str(users), "ttft_ms": str(ttft_ms), "itl_ms": str(itl_ms),
        "source_group": "InferenceX/Kimi-K2.5", "scenario": "InferenceX", "quality": "ok",
    })  # fmt: skip
    net, hw, plan = reading.network, reading.hardware, reading.plan
    assert net is not None
    assert hw is not None
    assert plan is not None
    eff = efficiencies_of(generation_of("GB200"), engine_of(engine), "4", "mla", "8")
    one = Plan(float(prefill_gpus), 1.0, float(by_data), plan.weight_bytes, plan.kv_bytes)
    other = Plan(float(decode_gpus), 1.0, 0.0, plan.weight_bytes, plan.kv_bytes)
    alone = float(prefill_seconds(net, hw, one, eff, 1.0, reading.prompt))
    step = float(decode_seconds(net, hw, other, eff, users, reading.prompt + 512.0))
    handover = named(PARAMETERS)["disaggregated_handover_s"]
    assert step * 1e3 == pytest.approx(itl_ms, rel=0.3)
    told = [(alone + step + h) * 1e3 for h in (handover.low, handover.likely, handover.high)]
    assert told[0] * 0.95 <= ttft_ms <= told[2] * 1.05
    assert told[1] == pytest.approx(ttft_ms, rel=0.3)


def test_what_can_not_be_taken_apart() -> None:
    option = planned()
    assert disaggregated(option, ask(70.0, 0.0, load=LONG)) is None
    assert disaggregated(option, ask(70.0, 50.0, load=Load(4000.0, 1.0))) is None
    # The spare machines of two pools cost more than those of one.
    few = ask(8.0, 0.5)
    small = plan_serving(few, [gpu("h100-sxm-80gb")]).best
    assert small is not None
    apart = disaggregated(small, few)
    assert apart is not None
    assert apart.machines == 4
    assert int(with_spare(small.candidate, np.array(1), few)) == 2
