"""The step model against published runs, and against what must hold for every plan."""

from __future__ import annotations

import numpy as np
import pytest

from engine.catalogue import load_catalogue
from engine.errors import InputError
from engine.estimate.model_shape import shape_from_config
from engine.estimate.parallelism import (
    enumerate_plans,
    hardware,
    memory_gib,
    quick_training_time,
    step_inputs,
)
from engine.estimate.training import shipped_calibration, step_time

CATALOGUE = load_catalogue()
H100 = CATALOGUE.accelerators["h100-sxm-80gb"]


def llama(layers: int, hidden: int, heads: int, ffn: int):
    """A model of the Llama 3.1 family."""
    return shape_from_config(
        {
            "model_type": "llama", "hidden_size": hidden, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": 8, "intermediate_size": ffn,
            "vocab_size": 128256, "tie_word_embeddings": False,
        }
    )  # fmt: skip


B8 = llama(32, 4096, 32, 14336)
B70 = llama(80, 8192, 64, 28672)
B405 = llama(126, 16384, 128, 53248)


def flops_per_gpu(shape, tokens: float, gpu_hours: float) -> float:
    return 6 * shape.total_params * tokens / gpu_hours / 3600


def test_llama_405b_on_16384_gpus_reaches_what_meta_published() -> None:
    # "The Llama 3 Herd of Models", table 4: 400 TFLOP/s a GPU, 41% of peak, sequences of 8,192.
    estimate, plan = quick_training_time(
        B405, 15.6e12, H100, 16_384, CATALOGUE.networks["roce-400g"], seq_len=8192
    )
    assert plan.fits
    assert plan.tp == 8
    reached = flops_per_gpu(B405, 15.6e12, estimate.likely)
    assert reached == pytest.approx(400e12, rel=0.25)


def test_a_lora_of_7b_on_one_gpu_takes_hours_not_days() -> None:
    estimate, plan = quick_training_time(B8, 1e8, H100, 1, None, task="lora")
    assert plan.fits
    # Forward and backward through frozen weights: 4 FLOPs a parameter and token, at 30 to 70%.
    work = 4 * B8.total_params * 1e8 / 3600 / 989e12
    assert work / 0.7 < estimate.likely < work / 0.3


@pytest.mark.parametrize("shape", [B8, B70, B405])
def test_no_plan_beats_the_hardware(shape) -> None:
    hw = hardware(H100, CATALOGUE.networks["ib-ndr400"])
    plans = enumerate_plans(shape, hw, 512, 4096, 1024)
    inputs = step_inputs(shape, plans, hw, 4096.0, "pretrain", 2026.0)
    told = step_time(inputs, shipped_calibration().parameters)
    done = plans.micro_batch * plans.micro_batches * plans.dp * 4096
    least = 6 * (shape.total_params - shape.embedding_params / 2) * done / 512 / 989e12
    assert (told.total > least).all()
    parts = [np.broadcast_to(getattr(told, k), told.total.shape) for k in (
        "compute", "recompute", "attention", "head", "launch", "tensor_parallel",
        "context_parallel", "expert_parallel", "pipeline_transfer", "bubble", "data_parallel",
        "optimizer", "stragglers",
    )]  # fmt: skip
    assert all((part >= 0).all() for part in parts)
    np.testing.assert_allclose(sum(parts), told.total, rtol=1e-9)
    # Recomputation trades time for memory.
    gib = memory_gib(shape, plans, 4096.0, "pretrain")
    assert (gib > 1.6).all()


def test_a_slower_network_never_helps() -> None:
    hours = [
        quick_training_time(B70, 1e12, H100, 256, CATALOGUE.networks[n])[0].likely
        for n in ("ib-xdr800", "ib-ndr400", "ib-hdr200", "eth-100g", "eth-10g")
    ]
    assert hours == sorted(hours)


def test_more_gpus_are_faster_and_cost_more_gpu_hours() -> None:
    network = CATALOGUE.networks["ib-ndr400"]
    hours = np.array([
        quick_training_time(B8, 1e12, H100, n, network)[0].likely for n in (64, 256, 1024)
    ])  # fmt: skip
    assert (np.diff(hours) >= -0.02 * hours[:-1]).all()
    assert (np.diff(hours / np.array([64, 256, 1024])) < 0).all()


def test_hardware_without_measured_rows_has_a_wide_band() -> None:
    def width(sku: str) -> float:
        told = quick_training_time(B8, 1e12, CATALOGUE.accelerators[sku], 8, None)[0]
        return told.high / told.low

    assert width("l4") > 1.2 * width("h100-sxm-80gb")


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"tokens": 0.0}, "tokens"), ({"tokens": float("nan")}, "tokens"),
        ({"n_gpus": 0}, "n_gpus"), ({"n_gpus": 20_000}, "n_gpus"), ({"task": "bake"}, "task"),
        ({"seq_len": 0}, "seq_len"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(changed: dict[str, object], field: str) -> None:
    given = {"tokens": 1e9, "n_gpus": 8, "task": "sft", "seq_len": 4096} | changed
    tokens, n = given.pop("tokens"), given.pop("n_gpus")
    with pytest.raises(InputError) as refused:
        quick_training_time(B8, tokens, H100, n, None, **given)  # type: ignore[arg-type]
    assert field in str(refused.value)
