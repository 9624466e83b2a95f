"""Queue and batches before the model of a service: how many wait, how large, inside the target.

The GPUs are those of the recommendation; each takes its part of the peak. A batch is held until
the GPU would no longer be busier than planned, or until the target leaves no more time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.assessment import Assessment
from engine.decide.context import setting
from engine.decide.model_rates import model_of
from engine.decide.priors import likely
from engine.estimate.queueing import bulk_service
from engine.estimate.services import under_way
from engine.estimate.small_inference import gpu_response, parameter
from engine.explain.services import Sizing
from engine.workload.answers import Kind, ModelClass

STEPS = 128


@dataclass(frozen=True, slots=True)
class Batching:
    """Before one pool of GPUs at the peak.

    queue : requests waiting before all GPUs on the mean; batch : of one GPU; load : share busy
    answer_ms : 95 of 100 answers, with features and hops; inside : within the target
    """

    gpus: int
    rate_per_gpu: float
    fixed_ms: float
    per_item_ms: float
    delay_ms: float
    batch: float
    load: float
    wait_ms: float
    queue: float
    answer_ms: float
    target_ms: float | None
    inside: bool


def batching(s: Sizing, answer: Assessment) -> Batching | None:
    """The queue and batches of the recommended GPUs; None where no net answers on a GPU, or where
    the peak is more than they do.

    Language models batch continuously: their page works that out.
    """
    w = answer.workload
    gpu = next((p for p in answer.best.stages if p.hardware == "gpu"), None)
    if w.kind is not Kind.online_inference or gpu is None or w.model_class is ModelClass.llm:
        return None
    peak = s.point["rate_per_s"] * s.point["peak_factor"]
    if peak <= 0:
        return None
    place = setting(w, None, answer.today, answer.settings)
    unit = next((u for u in place.gpus if u.sku == gpu.sku), None)
    if unit is None or unit.accelerator is None:
        return None
    x = place.context.inputs.point()
    model = model_of(x, place.context)
    rates = model.found(unit)
    if rates is None:
        return None
    inside = parameter("gpu_inside_share")
    per_item_s = 1.0 / float(model.offline_per_s(unit, rates)[0]) / inside
    tail = likely("tail_factor")
    fixed_s = parameter("gpu_fixed_ms") / 1000
    outside_ms = s.point["cpu_ms_per_item"] * tail + 2 * likely("remote_hop_ms")
    found = sized(
        gpu.units, peak, fixed_s, per_item_s, s.point["largest_batch"], outside_ms, tail,
        w.latency_ms, s.inputs["batch_delay_ms"].high, parameter("target_load"),
    )  # fmt: skip
    return found if np.isfinite(found.wait_ms) else None


def sized(
    gpus: int,
    peak: float,
    fixed_s: float,
    per_item_s: float,
    largest: float,
    outside_ms: float,
    tail: float,
    target_ms: float | None,
    longest_ms: float,
    planned_load: float,
) -> Batching:
    """The shortest hold with which the GPUs are no busier than planned, inside the target."""
    lam = peak / gpus
    holds = np.linspace(0.0, longest_ms / 1000, STEPS)
    found = bulk_service(lam, fixed_s, per_item_s, largest, delay_s=holds)
    # Batches that are not full vary with what came during the one before.
    inside, _ = gpu_response(lam, 1.0 / per_item_s, 0.95, holds)
    full = np.asarray(found.response_s) * tail
    answers = outside_ms + np.where(np.asarray(found.batch) < largest, inside, full) * 1000
    load = np.broadcast_to(np.asarray(found.load), holds.shape)
    good = np.isfinite(answers) & (answers <= (target_ms if target_ms else np.inf))
    calm = good & (load <= planned_load)
    i = int(np.argmax(calm)) if calm.any() else (int(np.flatnonzero(good)[-1]) if good.any() else 0)

    def at(values: object) -> float:
        return float(np.broadcast_to(np.asarray(values, dtype=float), holds.shape)[i])

    wait = at(found.wait_s)
    return Batching(
        gpus, lam, fixed_s * 1000, per_item_s * 1000, float(holds[i]) * 1000, at(found.batch),
        at(load), wait * 1000, float(under_way(peak, wait)), float(answers[i]), target_ms,
        bool(good[i]),
    )  # fmt: skip
