"""Language models as the decision needs them: tables and rates by accelerator, vectorised.

Training time comes from arithmetic and a share of the peak, scaled by the ratio of the inputs to
the likely ones: work is proportional to tokens and, to first order, to active parameters. What a
unit serves inside the latency targets comes from the calibrated serving model, on the terms of the
serving plan (bits of the weights, engine, time per token); without any, the usual ones.
"""

from __future__ import annotations

import numpy as np

from engine.decide.candidates import Unit
from engine.decide.inputs import Inputs
from engine.decide.numbers import Array
from engine.decide.priors import likely, prior
from engine.decide.serving_rates import (
    UNTOLD,
    Ask,
    Served,
    ask_of,
    box_of,
    laid_out,
    quantile,
    served,
)
from engine.estimate import jobs
from engine.workload.answers import Kind
from engine.workload.serving_terms import ServingTerms
from engine.workload.settings import USUAL
from engine.workload.workload import Workload

Values = dict[str, Array]


def active_share(workload: Workload) -> float:
    """Active over total parameters of the model; 1 for dense models."""
    if workload.active_params_b and workload.model_params_b:
        return workload.active_params_b / workload.model_params_b
    return 1.0


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


def batch_inference_hours(
    unit: Unit, x: Values, workload: Workload, terms: ServingTerms = USUAL.serving
) -> Array:
    """Hours of a batch of items on one unit at full throughput."""
    found = _served(unit, x, workload, terms)
    return np.asarray(x["items_per_run"] / found.batch_requests_per_s / 3600)


def requests_per_s(
    unit: Unit, x: Values, workload: Workload, inputs: Inputs,
    terms: ServingTerms = USUAL.serving,
) -> Array:  # fmt: skip
    """Requests one unit answers in a second inside the latency targets, no fuller than is safe.

    Of a replica of several GPUs the part of each. A unit that misses the targets whatever its load
    is sized as if it stood idle for most of the time.
    """
    return _served(unit, x, workload, terms).requests_per_s


def latency_ms(
    unit: Unit, x: Values, workload: Workload, inputs: Inputs,
    terms: ServingTerms = USUAL.serving,
) -> Array:  # fmt: skip
    """Time to the first token of a lone request [ms], 95 of 100: the floor of the unit."""
    return np.asarray(_served(unit, x, workload, terms).first_token_s * 1000)


def lone_s(
    unit: Unit, x: Values, workload: Workload, terms: ServingTerms = USUAL.serving
) -> tuple[Array, Array]:
    """Seconds to the first token and per further one where no other request is there."""
    found = _served(unit, x, workload, terms)
    return found.first_token_s, found.token_s


def inference_min_gpus(
    unit: Unit, workload: Workload, x: Values, terms: ServingTerms = USUAL.serving
) -> Array:
    """GPUs of one replica: the fewest that serve the model."""
    return _served(unit, x, workload, terms).gpus


def does_not_fit(unit: Unit, workload: Workload, terms: ServingTerms = USUAL.serving) -> str:
    """Why a unit can't hold the model, alone or over eight machines; empty where it can."""
    ask, likely_values = _asked(workload, terms)
    replica, fits = laid_out(box_of(unit), ask, likely_values)
    if fits:
        return ""
    size = likely_values[0]
    gpus = f"{replica.gpus} of {unit.name}" if replica.gpus > 1 else unit.name
    bits = ask.terms.weights.value
    return (
        f"a model of {size:g} billion parameters needs {size * float(bits) / 8:,.0f} GB for its "
        f"weights at {bits} bits; {gpus} have no room for it and one answer"
    )


def _asked(workload: Workload, terms: ServingTerms) -> tuple[Ask, tuple[float, float, float]]:
    """What is asked of serving, and the likely size, prompt and answer."""
    told = workload.latency_ms
    target = None if told is None else told / 1000
    size, prompt, answer = (
        float(value) if (value := getattr(workload, name)) else prior(workload.kind, name).likely
        for name in ("model_params_b", "tokens_in", "tokens_out")
    )
    return ask_of(active_share(workload), target, terms), (size, prompt, answer)


def _served(unit: Unit, x: Values, workload: Workload, terms: ServingTerms) -> Served:
    """What a unit serves for every row of the inputs."""
    ask, likely_values = _asked(workload, terms)
    untold = UNTOLD if ask.ttft_target_s is None else ask.ttft_target_s
    size = x["model_params_b"]
    target = x["latency_ms"] / 1000 if "latency_ms" in x else np.full_like(size, untold)
    name = "gpu_efficiency_factor" if unit.hardware == "gpu" else "cpu_efficiency_factor"
    speed = quantile(x[name], name)
    return served(unit, ask, [size, x["tokens_in"], x["tokens_out"], target, speed], likely_values)
