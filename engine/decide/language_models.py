"""Language models as the decision needs them: tables and rates by accelerator, vectorised.

Training time comes from the calibrated step model, serving capacity from the calibrated serving
model; both are evaluated at the likely values (and cached), and scaled by the ratio of the inputs
to those: work is proportional to tokens and, to first order, to active parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.catalogue import Catalogue
from engine.decide.candidates import Unit
from engine.decide.inputs import Inputs
from engine.decide.numbers import Array
from engine.decide.priors import likely
from engine.estimate import jobs
from engine.workload.answers import Kind
from engine.workload.workload import Workload

GIB = 1.073741824
# Fleets that are tried: every machine up to eight, then in steps of at most a third.
FLEETS = (
    *range(8, 65, 8), 80, 96, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1024, 1280, 1536, 2048,
    2560, 3072, 4096, 5120, 6144, 8192, 10240, 12288, 16384,
)  # fmt: skip
Values = dict[str, Array]


@dataclass(frozen=True, slots=True)
class TrainingTable:
    """Fleets of one accelerator that can train the model: GPUs and hours of a run."""

    gpus: Array
    hours: Array
    notes: tuple[str, ...]


def active_share(workload: Workload) -> float:
    """Active over total parameters of the model; 1 for dense models."""
    if workload.active_params_b and workload.model_params_b:
        return workload.active_params_b / workload.model_params_b
    return 1.0


def training_table(
    unit: Unit, workload: Workload, inputs: Inputs, catalogue: Catalogue
) -> TrainingTable | None:
    """Hours of a run on every sensible fleet of this accelerator, smallest first."""
    params = inputs.ranges["model_params_b"].likely
    tokens = inputs.ranges["train_tokens_b"].likely
    acc = unit.accelerator
    assert acc is not None
    room = unit.memory_gb * 0.9 - 2.0
    bytes_per_param = {Kind.lora: 2.4}.get(workload.kind, 16.0)
    smallest = max(1, int(np.ceil(params * bytes_per_param / room)))
    step = unit.per_machine
    smallest = int(np.ceil(smallest / step) * step)
    if smallest > 16_384 or (step == 1 and smallest > 1):
        return None
    gpus = np.array([n for n in FLEETS if n >= smallest and n % step == 0] if step > 1 else [1.0])
    trained = 0.0 if workload.kind is Kind.lora else 1.0
    flops = jobs.training_flops(
        np.array(params * active_share(workload)), np.array(tokens), trained
    )
    peak = (acc.bf16_tflops_dense or 1.0) * 1e12
    efficiency = likely("llm_mfu") * np.minimum(1, (gpus / 8) ** -0.03)
    hours = flops / (peak * efficiency * gpus) / 3600
    return TrainingTable(gpus, hours, ())


def training_scale(x: Values, inputs: Inputs) -> Array:
    """Work of a run against the run of the table."""
    tokens = x["train_tokens_b"] / inputs.ranges["train_tokens_b"].likely
    params = x["model_params_b"] / inputs.ranges["model_params_b"].likely
    return np.asarray(tokens * params)


def cpu_training_hours(unit: Unit, x: Values, workload: Workload) -> Array:
    """Hours of a training run on one CPU server, by its peak in bf16."""
    trained = 0.0 if workload.kind is Kind.lora else 1.0
    flops = jobs.training_flops(
        x["model_params_b"] * active_share(workload), x["train_tokens_b"], trained
    )
    rate = cpu_bf16_flops(unit) * likely("cpu_bf16_efficiency") * x["cpu_efficiency_factor"]
    return np.asarray(flops / rate / 3600)


def cpu_bf16_flops(unit: Unit) -> float:
    """Peak bf16 rate of a server [FLOP/s]: as listed, else as a Sapphire Rapids vCPU gives."""
    if unit.server is not None and unit.server.peak_bf16_gflops:
        return float(unit.server.peak_bf16_gflops) * 1e9
    return unit.vcpu / 96 * 157_286e9


def batch_inference_hours(unit: Unit, x: Values, workload: Workload) -> Array:
    """Hours of a batch of items on one unit at full throughput."""
    rate = tokens_per_s(unit, x, workload)
    work = x["items_per_run"] * (x["tokens_out"] + x["tokens_in"] / likely("prefill_speed_ratio"))
    return np.asarray(work / rate / 3600)


def tokens_per_s(unit: Unit, x: Values, workload: Workload) -> Array:
    """Output tokens per second of one unit in large batches."""
    active = x["model_params_b"] * active_share(workload)
    if unit.hardware == "cpu":
        bandwidth = 307.2 * unit.vcpu / 96
        if unit.server is not None and unit.server.memory_bandwidth_gb_per_s:
            bandwidth = unit.server.memory_bandwidth_gb_per_s
        gain = likely("cpu_batch_gain")
        rate = bandwidth * likely("cpu_memory_bw_efficiency") / active * gain
        return np.asarray(rate * x["cpu_efficiency_factor"])
    acc = unit.accelerator
    assert acc is not None
    rate = (acc.bf16_tflops_dense or 1.0) * 1e12 * likely("decode_mfu") / (2e9 * active)
    return np.asarray(rate * x["gpu_efficiency_factor"])


def requests_per_s(unit: Unit, x: Values, workload: Workload, inputs: Inputs) -> Array:
    """Requests one unit answers in a second inside the latency target."""
    rate = tokens_per_s(unit, x, workload)
    work = x["tokens_out"] + x["tokens_in"] / likely("prefill_speed_ratio")
    return np.asarray(rate * likely("gpu_pool_target_utilization") / work)


def latency_ms(unit: Unit, x: Values, workload: Workload, inputs: Inputs) -> Array:
    """Time to the first token of one request [ms]."""
    active = x["model_params_b"] * active_share(workload)
    flops = jobs.encoder_flops(active, x["tokens_in"])
    if unit.hardware == "cpu":
        rate = cpu_bf16_flops(unit) * likely("cpu_bf16_efficiency")
    else:
        acc = unit.accelerator
        assert acc is not None
        rate = (acc.bf16_tflops_dense or 1.0) * 1e12 * likely("neural_gpu_efficiency")
    return np.asarray(flops / rate * 1000 * likely("tail_factor"))


def inference_min_gpus(unit: Unit, workload: Workload, x: Values) -> float:
    """Fewest GPUs that hold the weights in 16 bits with a fifth more for the cache."""
    weights_gb = float(x["model_params_b"].flat[0]) * 2 * 1.2
    need = int(np.ceil(weights_gb / (unit.memory_gb * 0.9)))
    return float(2 ** int(np.ceil(np.log2(max(need, 1)))))
