"""Everything that one assessment needs, made once: inputs, stages, hardware that can be had."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from engine.catalogue import Catalogue, load_catalogue
from engine.decide.candidates import REFERENCE_GPU, Unit, cpu_units, gpu_units
from engine.decide.evaluation import Context
from engine.decide.inputs import Inputs, Range, published_speedup, resolve
from engine.decide.priors import parameter, prior
from engine.decide.quotes import with_quotes
from engine.decide.service_sizing import with_service_inputs
from engine.errors import InputError
from engine.estimate.jobs import Stage, stages
from engine.workload.answers import Kind
from engine.workload.jobs_terms import JobField
from engine.workload.settings import USUAL, Settings
from engine.workload.workload import Workload


@dataclass(frozen=True, slots=True)
class Setting:
    """The context and the hardware on offer."""

    context: Context
    gpus: list[Unit]
    cpus: list[Unit]
    notes: tuple[str, ...] = ()


def setting(
    workload: Workload,
    catalogue: Catalogue | None,
    today: date,
    settings: Settings = USUAL,
) -> Setting:
    """Resolve the inputs and list the hardware on offer for this workload.

    Raises
    ------
    InputError : when no hardware is on offer where the data may be
    """
    catalogue = catalogue if catalogue is not None else load_catalogue()
    catalogue, notes = with_quotes(catalogue, workload, today)
    inputs = _with_field(resolve(workload), workload, settings)
    parts = stages(workload)
    inputs = with_stage_inputs(inputs, parts)
    inputs = with_service_inputs(inputs, workload, settings.architecture)
    gpus = gpu_units(catalogue, workload, today, settings.costs)
    cpus = cpu_units(catalogue, workload, today, settings.costs)
    if not gpus or not cpus:
        raise InputError(
            "no hardware is on offer there in the catalogue",
            where="location",
            right="another location, or add your own quotes",
        )
    reference = next((u for u in gpus if u.sku == REFERENCE_GPU), gpus[0])
    per_vcpu = [u.on_demand_usd_per_hour() / u.vcpu for u in cpus if u.vcpu >= 16]
    context = Context(
        workload,
        inputs,
        parts,
        catalogue,
        reference,
        float(np.median(per_vcpu or [0.05])),
        settings,
    )
    return Setting(context, gpus, cpus, notes)


def _with_field(inputs: Inputs, workload: Workload, settings: Settings) -> Inputs:
    """The inputs with the published speed-up of the field of work that the terms name."""
    field = settings.jobs.field
    if workload.gpu_speedup is not None or field is JobField.auto:
        return inputs
    told = published_speedup(workload.kind, field)
    return inputs if told is None else Inputs({**inputs.ranges, "gpu_speedup": told}, inputs.shares)


def with_stage_inputs(inputs: Inputs, parts: tuple[Stage, ...]) -> Inputs:
    """Add the inputs of side stages (their own fraction, speed-up, I/O) and the stage shares."""
    ranges = dict(inputs.ranges)
    for stage in parts:
        if stage.main:
            continue
        if stage.name == "simulate":
            p, s = parameter("simulator_parallel_fraction"), parameter("simulator_gpu_speedup")
        else:
            p, s = prior(stage.like, "parallel_fraction"), prior(stage.like, "gpu_speedup")
        ranges[stage.key("parallel_fraction")] = Range(
            p.low, p.likely, p.high, "share", p.source, False, "parameter", fraction=True
        )
        ranges[stage.key("gpu_speedup")] = Range(
            s.low, s.likely, s.high, s.unit, s.source, False, "parameter"
        )
        io = prior(stage.like, "share_disk_io")
        network = prior(stage.like, "share_network")
        b = (io.likely + network.likely) / 100
        ranges[stage.key("io_share")] = Range(
            b * 0.6, b, min(b * 1.4, 0.95), "share", io.source, False, "parameter", fraction=True
        )
    shared = {
        "simulate": ("stage_share_simulate", "learn"),
        "prepare": ("stage_share_prepare", "train"),
    }
    for stage in parts:
        if stage.name in shared:
            name, rest = shared[stage.name]
            r = prior(Kind.rl if stage.name == "simulate" else Kind.pipeline, name)
            ranges[f"{stage.name}.share"] = Range(
                r.low, r.likely, r.high, "share", r.source, False, "parameter", fraction=True
            )
            ranges[f"{rest}.share"] = Range(
                1 - r.high, 1 - r.likely, 1 - r.low, "share", r.source, False, "parameter",
                fraction=True,
            )  # fmt: skip
    return Inputs(ranges, inputs.shares)
