"""Hours of a job that is known by what it takes today: on CPU servers, or on GPUs.

Amdahl's law with I/O, the speed of accelerators against the reference by the job's mix of limits.
Works on points and draws alike. Knows no prices but to tell the size of today's servers.
"""

from __future__ import annotations

import numpy as np

from engine.decide.candidates import Unit
from engine.decide.evaluation import Context, Values
from engine.decide.numbers import Array
from engine.estimate import jobs
from engine.estimate.jobs import REFERENCE_VCPU, Stage
from engine.estimate.named import named
from engine.estimate.small_inference import PARAMETERS
from engine.workload.answers import Current, Kind, Precision
from engine.workload.workload import BATCH_JOBS, HOURS_PER_MONTH

# What a host link is called in the catalogue, and the parameter of its measured rate.
LINKS = {"PCIe5": "pcie5_gb_per_s", "PCIe6": "pcie5_gb_per_s", "C2C": "coherent_gb_per_s"}


def moving(unit: Unit, ctx: Context) -> dict[str, float]:
    """What the terms say of copies and reading, for `compute_jobs.parts_of`; nothing untold."""
    terms = ctx.settings.jobs
    if ctx.workload.kind not in BATCH_JOBS:
        return {}
    rates, gpu = named(PARAMETERS), unit.accelerator
    told = {
        "read_gb": terms.read_gb or 0.0,
        "feed_gb_per_s": terms.feed_gb_per_s or rates["storage_gb_per_s"].likely,
    }
    if gpu is None:
        return told
    link = next((name for mark, name in LINKS.items() if mark in gpu.host_link), "pcie4_gb_per_s")
    copied = terms.copied_gb or 0.0
    return {**told, "copied_gb": copied, "host_link_gb_per_s": rates[link].likely}


def baseline_hours(unit: Unit, stage: Stage, x: Values, ctx: Context) -> tuple[Array, Array]:
    """Hours of a run that is known by what it takes on CPU servers (or GPUs) today."""
    p, s, b = (x[stage.key(k)] for k in ("parallel_fraction", "gpu_speedup", "io_share"))
    share = x.get(f"{stage.name}.share", np.ones_like(p))
    if ctx.workload.current is Current.gpu:
        return _from_gpus(unit, share * gpu_hours_today(x), p, s, b, x, ctx)
    hours = reference_server_hours(x, ctx) * share
    if unit.hardware == "cpu":
        serial, divisible = jobs.cpu_parts(hours, p, b, stage.splits)
        return serial, divisible * REFERENCE_VCPU / unit.vcpu / x["cpu_efficiency_factor"]
    speed = s * accelerator_speed(unit, ctx) * x["gpu_efficiency_factor"]
    host = max(unit.vcpu, 1.0) / REFERENCE_VCPU
    return jobs.gpu_parts(hours, p, b, np.maximum(speed, 1e-6), host, stage.splits)


def gpu_hours_today(x: Values) -> Array:
    """GPU-hours of a run on today's GPUs, which are taken for the reference GPU."""
    per_run = x["useful_hours_per_month"] / np.maximum(x["runs_per_month"], 1e-6)
    return np.asarray(per_run * x["current_units"])


def _from_gpus(
    unit: Unit, gpu_hours: Array, p: Array, s: Array, b: Array, x: Values, ctx: Context
) -> tuple[Array, Array]:
    """Hours of a run known in GPU-hours: work that is divided already divides again."""
    none = np.zeros_like(gpu_hours)
    if unit.hardware == "gpu":
        speed = accelerator_speed(unit, ctx) * x["gpu_efficiency_factor"]
        return none, np.asarray(gpu_hours / speed)
    servers_per_gpu = 1 / ((1 - b) * ((1 - p) + p / s) + b)
    size = unit.vcpu / REFERENCE_VCPU * x["cpu_efficiency_factor"]
    return none, np.asarray(gpu_hours * servers_per_gpu / size)


def reference_server_hours(x: Values, ctx: Context) -> Array:
    """Hours that one run takes on a single reference CPU server.

    Worked back from today's hours and servers by Amdahl's law with I/O; their size follows from
    what they cost, where that is given.
    """
    w = ctx.workload
    per_run = x["useful_hours_per_month"] / np.maximum(x["runs_per_month"], 1e-6)
    p, b = x["parallel_fraction"], x["io_share"]
    size = 1.0
    if w.current is Current.cpu and w.current_usd_per_month and w.current_units:
        per_hour = w.current_usd_per_month / w.current_units / HOURS_PER_MONTH
        size = float(np.clip(per_hour / (ctx.cpu_usd_per_vcpu_hour * REFERENCE_VCPU), 0.05, 4))
    return jobs.one_server_hours(per_run, np.maximum(x["current_units"] * size, size), p, b)


def accelerator_speed(unit: Unit, ctx: Context) -> float:
    """Speed of an accelerator against the reference on this job's mix of limits."""
    acc, ref = unit.accelerator, ctx.reference.accelerator
    assert acc is not None
    assert ref is not None
    compute, bandwidth = ctx.inputs.shares["compute"], ctx.inputs.shares["memory_bandwidth"]
    w = ctx.workload
    if w.kind in (Kind.simulation, Kind.rendering, Kind.other):
        if w.precision is Precision.fp64:
            peak, base = acc.fp64_tflops or 0.2, ref.fp64_tflops or 34.0
        elif w.precision is Precision.low:
            peak, base = acc.bf16_tflops_dense or 1.0, ref.bf16_tflops_dense or 989.0
        else:
            peak, base = acc.fp32_tflops or 1.0, ref.fp32_tflops or 67.0
    else:
        peak, base = acc.bf16_tflops_dense or 1.0, ref.bf16_tflops_dense or 989.0
    return jobs.relative_speed(
        compute / max(compute + bandwidth, 1e-9),
        peak / base,
        acc.memory_bandwidth_gb_per_s / ref.memory_bandwidth_gb_per_s,
    )
