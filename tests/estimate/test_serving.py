"""The serving model against measured anchors, at its edges, and against its own parts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.calibrate.serving_classes import generation_of, precision_of
from engine.catalogue import load_catalogue
from engine.errors import DataError, InputError
from engine.estimate.serving import (
    CALIBRATION,
    GIB,
    Plan,
    cache_bytes,
    decode_seconds,
    efficiencies_of,
    experts_touched,
    hardware_of,
    memory_bytes,
    network_of,
    prefill_seconds,
    prompt_seconds_each,
    replica_of,
    serving_capacity,
    shipped_calibration,
)
from engine.estimate.shape import ModelShape
from engine.estimate.shape_from_size import shape_from_size

ACCELERATORS = load_catalogue().accelerators
H100 = ACCELERATORS["h100-sxm-80gb"]
LLAMA2_7B = ModelShape(
    "Llama-2-7B", 6.738e9, 6.738e9, 2 * 32_000 * 4096, 32, 4096, 32, 32, 128, 11_008, 32_000
)
LLAMA3_70B = ModelShape(
    "Llama-3-70B", 70.55e9, 70.55e9, 2 * 128_256 * 8192, 80, 8192, 64, 8, 128, 28_672, 128_256
)
MIXTRAL = ModelShape(
    "Mixtral-8x7B", 46.7e9, 12.9e9, 2 * 32_000 * 4096, 32, 4096, 32, 8, 128, 14_336, 32_000,
    experts=8, experts_per_token=2,
)  # fmt: skip


@pytest.mark.parametrize(
    ("batch", "milliseconds"), [(1, 4.1), (16, 4.5), (64, 5.7), (256, 12.3), (896, 33.8)]
)
def test_decoding_of_a_small_model(batch: int, milliseconds: float) -> None:
    """Llama-2-7B FP8, one H100, 128 in and 128 out, static batches: measured times a token."""
    eff = efficiencies_of("hopper", "trtllm-static", "8", "dense", "8")
    plan = Plan(1.0, 1.0, 0.0, 1.0, 1.0)
    net, hw = network_of(LLAMA2_7B), hardware_of(H100, 8)
    found = float(decode_seconds(net, hw, plan, eff, float(batch), 192.0))
    assert found * 1000 == pytest.approx(milliseconds, rel=0.35)


def test_decoding_is_bound_by_memory_and_prefill_by_products() -> None:
    eff = efficiencies_of("hopper", "vllm-2025", "16", "dense", "16")
    plan = Plan(1.0, 1.0, 0.0, 2.0, 2.0)
    net, hw = network_of(LLAMA2_7B), hardware_of(H100, 16)
    reading = 6.6e9 * 2 / 3.35e12
    assert float(decode_seconds(net, hw, plan, eff, 1.0, 100.0)) > reading
    assert float(decode_seconds(net, hw, plan, eff, 1.0, 100.0)) < 3 * reading
    computing = 2 * 6.6e9 * 4096 / 989e12
    assert computing < float(prefill_seconds(net, hw, plan, eff, 1.0, 4096.0)) < 3 * computing


def test_weights_and_cache_by_hand() -> None:
    net, plan = network_of(LLAMA3_70B), Plan(4.0, 1.0, 0.0, 2.0, 2.0)
    # 80 layers, keys and values, 8 heads of 128, 2 bytes: 320 KiB a token.
    assert float(cache_bytes(net, plan, 1.0)) == 80 * 2 * 8 * 128 * 2
    eff = efficiencies_of("hopper", "vllm-2025", "16", "dense", "16")
    empty = float(memory_bytes(net, plan, eff, 0.0, 0.0, 0.0)) / GIB
    assert 70.55e9 * 2 / 4 / GIB < empty < 70.55e9 * 2 / 4 / GIB * 1.25


def test_measured_peak_memory() -> None:
    """Llama-2-13B FP8 on one GPU, 32 prompts of 128 and answers of 2,048: 43.7 GiB measured."""
    shape = ModelShape(
        "Llama-2-13B", 13.02e9, 13.02e9, 2 * 32_000 * 5120, 40, 5120, 40, 40, 128, 13_824, 32_000
    )
    eff = efficiencies_of("hopper", "trtllm-static", "8", "dense", "8")
    plan = Plan(1.0, 1.0, 0.0, 1.0, 1.0)
    found = memory_bytes(network_of(shape), plan, eff, 32.0, 2176.0, 32 * 128.0)
    assert float(found) / GIB == pytest.approx(43.72, rel=0.11)


def test_experts() -> None:
    assert float(experts_touched(1.0, 8.0, 2.0)) == pytest.approx(2 / 8)
    assert float(experts_touched(2.0, 8.0, 2.0)) == pytest.approx(1 - 0.75**2)
    assert float(experts_touched(1e5, 256.0, 8.0)) == pytest.approx(1.0)
    net = network_of(MIXTRAL)
    # total = dense + E, active = dense + E·2/8
    assert float(net.expert) == pytest.approx((46.7e9 - 12.9e9) / 0.75)


def test_compressed_cache_is_not_divided_by_tensor_parallelism() -> None:
    shape = ModelShape(
        "MLA", 671e9, 37e9, 1.8e9, 61, 7168, 128, 128, 128, 18_432, 129_280, attention="mla",
        mla_cache_width=576, experts=256, experts_per_token=8,
    )  # fmt: skip
    eff = efficiencies_of("hopper", "vllm-2025", "8", "mla", "16")
    parts = []
    for tp in (8.0, 16.0):
        plan = Plan(tp, 1.0, 0.0, 1.0, 2.0)
        parts.append(
            float(memory_bytes(network_of(shape), plan, eff, 100.0, 4096.0, 0.0))
            - float(memory_bytes(network_of(shape), plan, eff, 100.0, 0.0, 0.0))
        )
    assert parts[0] == pytest.approx(parts[1])
    assert parts[0] == pytest.approx(100 * 4096 * 61 * 576 * 2 * float(eff.cache_memory))


def test_prompts_follow_one_another_through_pipeline_stages() -> None:
    """GPipe: m prompts pass p stages in (m + p − 1) turns of 1/p: four by four, 7/16 of one GPU."""
    eff = efficiencies_of("hopper", "vllm-2025", "16", "dense", "16")
    net, hw = network_of(LLAMA2_7B), hardware_of(H100, 16)
    fixed = float(eff.prefill_ms) / 1e3

    def work(pp: float, batch: float) -> float:
        plan = Plan(1.0, pp, 0.0, 2.0, 2.0)
        return float(prefill_seconds(net, hw, plan, eff, batch, 1000.0)) - fixed

    assert work(4.0, 1.0) == pytest.approx(work(1.0, 1.0))  # a lone prompt passes all stages
    assert work(4.0, 4.0) == pytest.approx(work(1.0, 4.0) * 7 / 16)
    # One stage of two is busy for half of the work, and prompts of several requests overlap.
    each = [
        float(prompt_seconds_each(net, hw, Plan(1.0, pp, 0.0, 2.0, 2.0), eff, 1.0, 1000.0)) - fixed
        for pp in (1.0, 2.0)
    ]
    assert each[1] == pytest.approx(each[0] / 2)
    assert each[0] == pytest.approx(work(1.0, 1.0))


def test_a_step_has_at_least_one_sequence() -> None:
    """At a light load the steps that are taken read the experts of one token, not of a fiftieth."""
    eff = efficiencies_of("hopper", "vllm-2025", "16", "moe", "16")
    plan, hw = Plan(2.0, 1.0, 0.0, 2.0, 2.0), hardware_of(H100, 16)
    net = network_of(MIXTRAL)
    light, one = (float(decode_seconds(net, hw, plan, eff, b, 500.0)) for b in (0.02, 1.0))
    assert light == pytest.approx(one)
    # Two of eight experts and the dense layers: 12.8e9 parameters of 2 bytes over 2 × 3.35 TB/s.
    assert one > 12.8e9 * 2 / (2 * 3.35e12)
    lone = serving_capacity(MIXTRAL, H100, 2, 500, 100)
    assert float(lone.tpot_floor_s) > 12.8e9 * 2 / (2 * 3.35e12)


def test_compressed_caches_have_wide_heads() -> None:
    """DeepSeek-V3: 128 heads with keys of 128 + 64 and values of 128 elements, not 7168/128."""
    shape = ModelShape(
        "MLA", 671e9, 37e9, 1.8e9, 61, 7168, 128, 128, 56, 18_432, 129_280, attention="mla",
        mla_cache_width=576, experts=256, experts_per_token=8,
    )  # fmt: skip
    assert network_of(shape).score_width == 128 * (192 + 128)


def test_rows_that_do_not_fit_leave_the_others_their_rate() -> None:
    """100 tokens fit beside a 7B model on 80 GB; ten million need 5 TB of cache."""
    found = serving_capacity(LLAMA2_7B, H100, 1, np.array([100.0, 1e7]), 100.0)
    rates = np.asarray(found.requests_per_s)
    assert rates[0] > 0
    assert rates[1] == 0
    assert not found.fits


def test_a_prompt_found_in_the_prefix_cache_still_has_a_token() -> None:
    found = serving_capacity(LLAMA2_7B, H100, 1, 1, 100, prefix_hit=0.99)
    assert math.isfinite(float(found.ttft_s))
    assert float(found.requests_per_s) > 0


def test_four_h100_carry_a_70b_model() -> None:
    """Measured with NIM, 2,000 in and 200 out: 25 users get 850 tokens/s at 20.8 ms a token."""
    found = serving_capacity(
        LLAMA3_70B, H100, 4, 2000, 200, weight_bits=8, kv_bytes=1, tpot_target_s=0.025
    )
    assert found.fits
    assert found.calibrated
    assert 850 / 200 / 2 < float(found.requests_per_s) < 850 / 200 * 2
    assert found.requests.low < float(found.requests_per_s) < found.requests.high


def test_what_does_not_fit_says_so() -> None:
    found = serving_capacity(LLAMA3_70B, H100, 1, 1000, 100)
    assert not found.fits
    assert found.floor == "memory"
    assert found.requests_per_s == 0.0
    assert float(found.memory_gib) > 130


def test_target_below_the_floor_is_named() -> None:
    found = serving_capacity(LLAMA3_70B, H100, 4, 2000, 200, weight_bits=8, tpot_target_s=0.001)
    assert found.requests_per_s == 0.0
    assert found.floor == "tpot"
    assert float(found.tpot_floor_s) > 0.001
    found = serving_capacity(LLAMA3_70B, H100, 4, 2000, 200, weight_bits=8, ttft_target_s=0.01)
    assert (found.requests_per_s, found.floor) == (0.0, "ttft")


def test_hardware_without_rows_has_a_wide_range() -> None:
    shape = shape_from_size(8.0)
    known = serving_capacity(shape, H100, 1, 1000, 200)
    other = serving_capacity(shape, ACCELERATORS["trainium2"], 1, 1000, 200)
    assert not other.calibrated
    assert other.notes
    assert other.requests.high / other.requests.low >= 3.0
    wide = math.log(other.requests.high / other.requests.low)
    assert wide > 2 * math.log(known.requests.high / known.requests.low)


def test_older_gpus_compute_in_fp16() -> None:
    found = serving_capacity(shape_from_size(7.0), ACCELERATORS["t4"], 1, 500, 100, weight_bits=4)
    assert float(found.requests_per_s) > 0


@settings(max_examples=40, deadline=None)
@given(
    target=st.floats(0.02, 0.2), prompt=st.integers(50, 8000), answer=st.integers(2, 1000),
    load=st.floats(0.2, 0.95),
)  # fmt: skip
def test_looser_targets_and_more_gpus_carry_more(
    target: float, prompt: int, answer: int, load: float
) -> None:
    shape = shape_from_size(8.0)

    def rate(tpot: float, gpus: int = 1, share: float = load) -> float:
        found = serving_capacity(
            shape, H100, gpus, prompt, answer, tpot_target_s=tpot, ttft_target_s=5.0, load=share
        )
        if found.requests_per_s:
            assert float(found.tpot_s) <= tpot * 1.03
            assert float(found.ttft_s) <= 5.0 * 1.03
        return float(found.requests_per_s)

    assert rate(target) <= rate(2 * target) * 1.001
    assert rate(target, 1, load / 2) <= rate(target) * 1.001
    # Two GPUs exchange activations, which a model this small hardly gains from at short prompts.
    assert rate(target) <= rate(target, 2) * 1.1


def test_draws_are_vectorised() -> None:
    z = np.array([-1.0, 0.0, 1.0])
    many = serving_capacity(LLAMA2_7B, H100, 1, 500, 200, tpot_target_s=0.03, draws=z)
    rates = np.asarray(many.requests_per_s)
    assert rates.shape == (3,)
    assert rates[0] > rates[1] > rates[2]
    one = serving_capacity(LLAMA2_7B, H100, 1, 500, 200, tpot_target_s=0.03)
    assert rates[1] == pytest.approx(float(one.requests_per_s))


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("input_tokens", {"input_tokens": 0}),
        ("output_tokens", {"output_tokens": math.nan}),
        ("n_gpus", {"n_gpus": 0}),
        ("n_gpus", {"n_gpus": 1.5}),
        ("pp", {"pp": 2000}),
        ("weight_bits", {"weight_bits": -4}),
        ("kv_bytes", {"kv_bytes": 0}),
        ("ttft_target_s", {"ttft_target_s": 0.0}),
        ("tpot_target_s", {"tpot_target_s": -1.0}),
        ("load", {"load": 1.0}),
        ("percentile", {"percentile": 1.2}),
        ("prefix_hit", {"prefix_hit": 1.0}),
        ("draws", {"draws": np.array([np.nan])}),
    ],
)
def test_bad_input_names_the_field(field: str, changed: dict[str, object]) -> None:
    given = {"n_gpus": 1, "input_tokens": 100, "output_tokens": 100} | changed
    with pytest.raises(InputError) as error:
        serving_capacity(LLAMA2_7B, H100, **given)  # type: ignore[arg-type]
    assert error.value.where == field


def test_classes_of_names() -> None:
    names = {"H100-SXM": "hopper", "GB200": "blackwell", "rtx-pro-6000-server": "blackwell-pcie",
             "a10g": "ampere", "L40S": "ada", "mi300x": "cdna3", "gaudi3": "gaudi3",
             "something": "other"}  # fmt: skip
    assert {n: generation_of(n) for n in names} == names
    assert [precision_of(b) for b in (4.25, 8, 16)] == ["4", "8", "16"]


def test_calibration_file_is_checked(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "broken.csv"
    lines = CALIBRATION.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([lines[0], lines[1].replace(lines[1].split(",")[1], "much", 1)]))
    with pytest.raises(DataError, match="line 2"):
        shipped_calibration(path)
    path.write_text("\n".join(lines[:3]))
    with pytest.raises(DataError):
        shipped_calibration(path)


def test_no_rows_of_a_source_of_unstated_licence_are_shipped() -> None:
    """Values that were fitted are; tables of measurements are not."""
    for line in CALIBRATION.read_text(encoding="utf-8").splitlines()[1:]:
        assert not line.startswith("NVIDIA-DLI")


@pytest.mark.parametrize("prompt", [3e4, 1e5, 3e5])
def test_one_token_on_a_long_prompt_is_bound_by_taking_prompts_in(prompt: float) -> None:
    # With one token out a request is its prefill: M/G/1 carries at most 1/S of them, and with
    # no target 0.85 of that; steps of decoding beside it take a little more of the time.
    shape, acc = shape_from_size(8.0), ACCELERATORS["h200-sxm-141gb"]
    found = serving_capacity(shape, acc, 2, prompt, 1.0)
    net, hw, plan, eff = replica_of(shape, acc, 2, 1, False, 16.0, 2.0, "vllm-2025")
    most = 1.0 / float(prefill_seconds(net, hw, plan, eff, 1.0, prompt))
    assert 0.6 * most < float(found.requests_per_s) <= 0.85 * most
    assert np.isfinite(float(found.ttft_s))


def test_a_prompt_that_fits_nowhere_is_told_and_no_crash() -> None:
    found = serving_capacity(shape_from_size(8.0), H100, 1, 4e6, 1.0)
    assert float(found.requests_per_s) == 0.0
    assert (found.fits, found.floor) == (False, "memory")
