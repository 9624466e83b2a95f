"""How long one answer takes on a candidate's path, and the floor below which no GPU answers."""

from __future__ import annotations

from functools import cache

import numpy as np

from engine.decide import language_models as llm
from engine.decide.candidates import Spec
from engine.decide.evaluation import Context, Values
from engine.decide.numbers import Array
from engine.decide.priors import likely, prior
from engine.estimate import jobs
from engine.workload.answers import Kind


@cache
def gpu_floor_ms() -> float:
    """Shortest answer of a GPU behind a server: launches, copies, wait for a batch; 95th pct."""
    us = (
        likely("gpu_launch_us") * likely("gpu_launches_per_request")
        + 2 * likely("gpu_copy_us")
        + likely("gpu_batch_wait_us")
    )
    return us / 1000 * likely("tail_factor")


def latency_ms(spec: Spec, x: Values, ctx: Context) -> Array:
    """95th percentile of one answer on the candidate's path [ms]; 0 for batch jobs."""
    n = len(x["parallel_fraction"])
    total = np.zeros(n)
    services = [
        (s, h) for s, h in zip(ctx.stages, spec.stage_hardware, strict=True) if s.mode == "service"
    ]
    if not services:
        return total
    tail = likely("tail_factor")
    for stage, hardware in services:
        unit = spec.gpu if hardware == "gpu" else spec.cpu
        assert unit is not None
        if hardware == "gpu":
            total = total + gpu_floor_ms()
        if stage.work == "core_ms":
            total = total + x["cpu_ms_per_item"] * tail
        elif stage.work == "llm_inference":
            serving = ctx.settings.serving
            total = total + llm.latency_ms(unit, x, ctx.workload, ctx.inputs, serving)
        elif stage.work == "trees":
            total = total + likely("tree_us_per_row") / 1000 * tail
        else:
            params = x["model_params_b"] if "model_params_b" in x else network_params(x)
            flops = jobs.encoder_flops(params, x.get("tokens_in", np.full(n, 128.0)))
            if hardware == "cpu":
                measured = ctx.workload.cpu_latency_ms
                cores = min(unit.vcpu / 2, 16.0)
                rate = cores * likely("neural_cpu_gflops_per_core") * 1e9
                total = total + (measured if measured else flops / rate * 1000 * tail)
            else:
                acc = unit.accelerator
                assert acc is not None
                rate = (acc.bf16_tflops_dense or 1.0) * 1e12 * likely("neural_gpu_efficiency") / 4
                total = total + flops / rate * 1000 * tail
    if len({h for _, h in services}) == 2:
        total = total + 2 * likely("remote_hop_ms")
    return np.asarray(total)


def network_params(x: Values) -> Array:
    """Parameters of the dense net of a recommender or a stage whose model was not described."""
    p = prior(Kind.online_inference, "neural_params_b")
    return np.full_like(x["parallel_fraction"], p.likely)
