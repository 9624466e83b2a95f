"""How long one answer takes on a candidate's path."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.decide import language_models as llm
from engine.decide.candidates import Spec
from engine.decide.evaluation import Context, Values
from engine.decide.model_rates import SMALL_MODELS, Model, gpu_floor_ms
from engine.decide.numbers import Array
from engine.decide.priors import likely

__all__ = ["gpu_floor_ms", "latency_ms"]


def latency_ms(spec: Spec, x: Values, ctx: Context, model: Callable[[], Model]) -> Array:
    """95th percentile of one answer on the candidate's path [ms]; 0 for batch jobs.

    model : gives the job's small model, where it has one
    """
    total = np.zeros(len(x["parallel_fraction"]))
    services = [
        (s, h) for s, h in zip(ctx.stages, spec.stage_hardware, strict=True) if s.mode == "service"
    ]
    for stage, hardware in services:
        unit = spec.gpu if hardware == "gpu" else spec.cpu
        assert unit is not None
        if stage.work in SMALL_MODELS:
            beside = tuple(s for s, h in services if h == hardware)
            return model().rest_ms(unit, beside) + model().model_ms(unit)
        if hardware == "gpu":
            total = total + gpu_floor_ms()
        if stage.work == "core_ms":
            total = total + x["cpu_ms_per_item"] * likely("tail_factor")
        else:
            serving = ctx.settings.serving
            total = total + llm.latency_ms(unit, x, ctx.workload, ctx.inputs, serving)
    if len({h for _, h in services}) == 2:
        total = total + 2 * likely("remote_hop_ms")
    return np.asarray(total)
