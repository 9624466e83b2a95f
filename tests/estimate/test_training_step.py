"""The step model: what must hold for every plan, and what each part does by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.calibrate.training import ROWS, read_rows, sample_of
from engine.errors import DataError, InputError
from engine.estimate.parallelism import enumerate_plans, step_inputs
from engine.estimate.training import OLDEST_MIXTURE_YEAR, StepTime, step_time
from engine.estimate.training_calibration import (
    interval_half_width,
    recalibrate,
    shipped_calibration,
)
from engine.estimate.training_hardware import hardware
from tests.estimate.training_models import A100, B8, B70, B405, H100, MIXTRAL, on

PARTS = [name for name in StepTime.__slots__ if name != "total"]


def times(shape, choice, gpus=64, batch=1024, task="pretrain", seq=4096, year=2026.0):
    """All plans of a job on some GPUs, with their step times."""
    hw = hardware(choice)[0]
    plans = enumerate_plans(shape, hw, gpus, seq, batch, task)
    inputs = step_inputs(shape, plans, hw, float(seq), task, year)
    return plans, step_time(inputs, shipped_calibration().parameters), inputs


@pytest.mark.parametrize("shape", [B8, B70, B405, MIXTRAL])
def test_no_plan_beats_the_hardware(shape) -> None:
    _, told, _ = times(shape, on(H100, "ib-ndr400"), 512)
    # Six FLOP a parameter and token at 989 TFLOP/s: the least that any GPU can take.
    least = 6 * (shape.active_params - shape.embedding_params / 2) * 1024 * 4096 / 512 / 989e12
    assert (told.total > least).all()


@pytest.mark.parametrize("shape", [B70, MIXTRAL])
def test_the_parts_are_not_negative_and_add_up(shape) -> None:
    plans, told, _ = times(shape, on(H100, "ib-ndr400"))
    parts = [np.broadcast_to(getattr(told, name), told.total.shape) for name in PARTS]
    assert all((part >= 0).all() for part in parts)
    np.testing.assert_allclose(sum(parts), told.total, rtol=1e-9)
    assert (told.bubble[plans.pp == 1] == 0).all()
    assert (told.tensor_parallel[plans.tp == 1] == 0).all()


def test_one_gpu_has_nothing_to_exchange() -> None:
    _, told, _ = times(B8, on(H100), gpus=1, batch=16)
    assert (told.data_parallel == 0).all()
    assert (told.stragglers == 0).all()


def test_a_pipelines_bubble_is_its_share_of_the_micro_batches() -> None:
    # (p - 1)/(m v) of the layers' time [Narayanan 2021]; nothing else is in the bubble here.
    plans, told, _ = times(B70, on(H100, "ib-ndr400"), 64)
    rows = (plans.pp > 1) & (plans.zero == 1)
    names = ("compute", "recompute", "attention", "launch", "tensor_parallel", "context_parallel")
    parts = [np.broadcast_to(getattr(told, k), told.total.shape) for k in names]
    layers = np.sum(parts, axis=0)[rows]
    share = ((plans.pp - 1) / (plans.micro_batches * plans.vp))[rows]
    np.testing.assert_allclose(told.bubble[rows] / layers, share, rtol=1e-9)


def test_a_slower_network_never_helps_a_plan() -> None:
    before = None
    for network in ("ib-xdr800", "ib-ndr400", "ib-hdr200", "eth-100g", "eth-10g"):
        _, told, _ = times(B70, on(H100, network), 256)
        if before is not None:
            assert (told.total >= before - 1e-12).all()
        before = told.total


def test_weights_sharded_inside_a_machine_cross_the_network_once_a_step() -> None:
    # On 10 GbE full sharding gathers the weights for each micro-batch, hybrid sharding not once.
    plans, told, _ = times(B8, on(H100, "eth-10g"), 64, batch=1024)
    fsdp = (plans.zero == 3) & (plans.tp == 1) & (plans.micro_batch == 1)
    everywhere = told.data_parallel[fsdp & (plans.shard == 64)]
    inside = told.data_parallel[fsdp & (plans.shard == 8)]
    # 16 micro-batches: three crossings each against two of an all-reduce a step, or so.
    assert everywhere / inside > 8


def test_four_bits_take_longer_than_sixteen() -> None:
    _, lora, _ = times(B8, on(A100), 1, 16, "lora")
    _, qlora, _ = times(B8, on(A100), 1, 16, "qlora")
    assert (qlora.total > lora.total).all()
    # LitGPT, Llama 2 7B on an A100: 8 to 13 ms a micro-batch and billion parameters more.
    plans, _, _ = times(B8, on(A100), 1, 16, "qlora")
    more = (qlora.total - lora.total) / plans.micro_batches / 8.03
    assert (more > 0.004).all()
    assert (more < 0.02).all()


def test_a_gpu_that_is_two_percent_slower_costs_at_most_two_percent() -> None:
    _, whole, _ = times(B70, on(H100, "ib-ndr400"))
    _, slow, _ = times(B70, on(H100, "ib-ndr400", slowest_gpu=0.02))
    ratio = slow.total / whole.total
    assert (ratio >= 1).all()
    assert np.median(ratio) > 1.01  # but for what waits for launches and links
    assert (ratio <= 1.02 + 1e-9).all()


def test_older_software_is_slower() -> None:
    _, new, _ = times(B70, on(A100, "ib-hdr200"), year=2026.0)
    _, old, _ = times(B70, on(A100, "ib-hdr200"), year=2022.0)
    assert (old.total > new.total).all()


def of_year(shape, year: float, software="recipes"):
    """Compute seconds of one plan of H100 by the year of the software."""
    hw = hardware(on(H100, "ib-ndr400"))[0]
    plans = enumerate_plans(shape, hw, 64, 4096, 1024, "pretrain")
    plans = plans.take(plans.zero == 1)
    inputs = step_inputs(shape, plans, hw, 4096.0, "pretrain", year, software)
    return step_time(inputs, shipped_calibration().parameters).compute


def test_the_age_of_experts_is_that_of_vendors_recipes() -> None:
    # H100 came out more than 18 months before 2024.5: nothing but age differs between two years.
    p = shipped_calibration().parameters
    recipes = of_year(MIXTRAL, 2025.5) / of_year(MIXTRAL, 2026.0)
    # Two experts a token are a third of eight, in doublings: log2(2)/3.
    told = np.exp(0.5 * (p["age_tuned"] + p["age_moe"] / 3))
    np.testing.assert_allclose(recipes, told, rtol=1e-9)
    own = of_year(MIXTRAL, 2025.5, "own") / of_year(MIXTRAL, 2026.0, "own")
    np.testing.assert_allclose(own, np.exp(0.5 * p["age_plain"]), rtol=1e-9)
    # Before the oldest published steps with experts, dense software's age is all that is added.
    before = of_year(MIXTRAL, 2024.5) / of_year(MIXTRAL, OLDEST_MIXTURE_YEAR)
    dense = of_year(B8, 2024.5) / of_year(B8, OLDEST_MIXTURE_YEAR)
    np.testing.assert_allclose(before, dense[0], rtol=1e-9)


def test_the_oldest_steps_with_experts_are_those_of_the_rows() -> None:
    sample = sample_of(read_rows(ROWS))
    assert sample.inputs.year[sample.moe].min() == pytest.approx(OLDEST_MIXTURE_YEAR)


def test_scalars_and_arrays_agree() -> None:
    _, told, inputs = times(B70, on(H100, "ib-ndr400"))
    row = 17
    one = replace(inputs, **{
        name: np.asarray(np.broadcast_to(getattr(inputs, name), told.total.shape)[row : row + 1])
        for name in inputs.__slots__
    })  # fmt: skip
    alone = step_time(one, shipped_calibration().parameters)
    assert float(alone.total[0]) == pytest.approx(float(told.total[row]))


# --- the user's own steps


def test_one_measured_step_moves_the_model_by_four_fifths_of_its_error() -> None:
    # 0.2^2 / (0.2^2 + 0.1^2) = 0.8 of ln(4.1 / 5).
    told = recalibrate(5.0, 4.1)
    assert told.scale == pytest.approx((4.1 / 5) ** 0.8)
    # Four steps: 0.04 / (0.04 + 0.0025) = 0.941, and a narrower interval.
    four = recalibrate(np.full(4, 5.0), np.full(4, 4.1))
    assert four.scale == pytest.approx((4.1 / 5) ** (0.04 / 0.0425))
    assert four.half_width < told.half_width
    assert told.half_width < interval_half_width(moe=False, known=False, calibrated=True)


def test_a_stack_that_is_far_off_is_believed() -> None:
    # Three times longer: half of ln 3 is 0.5493, so 0.5493^2 / (0.5493^2 + 0.1^2) = 0.96792 counts.
    for measured, scale in ((15.0, 3.0), (5.0 / 3, 1 / 3)):
        told = recalibrate(5.0, measured)
        assert told.scale == pytest.approx(scale**0.96792, rel=1e-4)
        # What was measured lies in the interval around the new estimate.
        assert abs(np.log(told.scale / scale)) < told.half_width
    # The farther off, the farther the estimate goes; nothing jumps.
    steps = [recalibrate(1.0, m).scale for m in np.geomspace(0.21, 9, 50)]
    assert (np.diff(steps) > 0).all()


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (50.1, "10 times as long as the 5 s"),
        (5 / 5.1, "1/5 of the 5 s"),
        (5e6, "1,000,000 times as long as the 5 s"),
        (5e-6, "1/1,000,000 of the 5 s"),
    ],
)
def test_a_step_that_can_not_be_of_this_job_is_refused(measured: float, words: str) -> None:
    with pytest.raises(InputError, match=f"a step took {words} expected of it") as told:
        recalibrate(5.0, measured)
    assert told.value.where == "measured_s"
    assert "seconds of all the steps" in told.value.right


@pytest.mark.parametrize(
    ("predicted", "measured"), [(5.0, 0.0), (5.0, float("nan")), ([1.0, 2.0], [1.0]), ([], [])]
)
def test_times_that_are_none_are_refused(predicted, measured) -> None:
    with pytest.raises(InputError):
        recalibrate(predicted, measured)


def test_hardware_without_rows_has_twice_the_interval() -> None:
    known = interval_half_width(moe=False, known=False, calibrated=True)
    other = interval_half_width(moe=False, known=False, calibrated=False)
    assert other == pytest.approx(2 * max(known, 0.1))


def test_a_calibration_that_is_no_number_is_refused(tmp_path) -> None:
    file = tmp_path / "calibration.csv"
    file.write_text("id,value,confidence\nparameter.young,fast,low\n")
    with pytest.raises(DataError) as refused:
        shipped_calibration(file)
    assert refused.value.line == 2


def test_while_the_processor_is_behind_transfers_cost_nothing_more() -> None:
    # A small model split eight ways: launches set the time, and faster links change nothing.
    _, told, inputs = times(B8, on(A100, "ib-hdr200"), 8, 8, seq=512)
    known = dict(shipped_calibration().parameters)
    split = np.broadcast_to(inputs.tp, told.total.shape) == 8
    for name in ("tuned", "plain", "native"):
        known[f"launch_ms_{name}"] = 50.0
    slow = step_time(inputs, known)
    faster = step_time(replace(inputs, fast=inputs.fast * 4), known)
    before, after = (
        np.broadcast_to(t.compute + t.attention + t.recompute + t.launch + t.tensor_parallel,
                        told.total.shape)[split]
        for t in (slow, faster)
    )  # fmt: skip
    np.testing.assert_allclose(before, after, rtol=1e-6)
    # Twice the launches take twice the time: 3 passes of 50 or of 100 ms a layer.
    for name in ("tuned", "plain", "native"):
        known[f"launch_ms_{name}"] = 100.0
    twice = step_time(inputs, known)
    ratio = (twice.launch + twice.compute) / (slow.launch + slow.compute)
    np.testing.assert_allclose(np.broadcast_to(ratio, told.total.shape)[split], 2.0, rtol=0.02)


def test_more_ranks_take_longer_to_launch_together() -> None:
    # Six or four all-reduces a layer, each waits for the last rank: log2 of the ranks.
    _, told, inputs = times(B8, on(A100, "ib-hdr200"), 8, 8, seq=512)
    known = dict(shipped_calibration().parameters)
    free = known | {"tp_launch_us": 0.0, "tp_latency_us": 0.0}
    for known_too in (known, free):
        for name in ("tuned", "plain", "native"):
            known_too[f"launch_ms_{name}"] = 50.0
    more = step_time(inputs, known).total - step_time(inputs, free).total
    tp = np.broadcast_to(inputs.tp, told.total.shape)
    assert np.abs(more[tp == 1]).max() < 1e-12
    # Without a pipeline: calls x the fitted launch x log2(tp), each layer and micro-batch.
    calls = 4 + 2 * np.minimum(np.broadcast_to(inputs.recompute, tp.shape), 1)
    each = calls * known["tp_launch_us"] * 1e-6 * np.log2(tp)
    expected = each * B8.layers * np.broadcast_to(inputs.micro_batches, tp.shape)
    rows = (tp > 1) & (np.broadcast_to(inputs.pp, tp.shape) == 1)
    rows &= np.broadcast_to(inputs.full_shard, tp.shape) == 0
    np.testing.assert_allclose(more[rows], expected[rows], rtol=1e-3)
