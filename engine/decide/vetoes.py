"""Hard constraints: each rules a candidate out with its reason and the number behind it.

A veto is never a low score: whatever the score, a vetoed candidate ranks after every allowed one.
"""

from __future__ import annotations

import numpy as np

from engine.assessment import Veto
from engine.decide import language_models as llm
from engine.decide.evaluation import Context, Evaluation, Values
from engine.decide.model_rates import unpublished
from engine.decide.numbers import Array, Mask
from engine.decide.priors import likely
from engine.decide.serving_rates import tpot_target_s
from engine.estimate.compute_jobs import (
    LICENCE,
    REFERENCE_SERVER,
    Constraint,
    double_precision,
    too_little_memory,
)
from engine.estimate.serving_targets import usual_ttft_s
from engine.wording import duration, number, rough
from engine.workload.answers import FailureMode, Kind, Location, Precision, Rewrite
from engine.workload.workload import BATCH_JOBS, HOURS_PER_MONTH

MEMORY_SOURCE = "catalogue, memory as reported"


def constrain(e: Evaluation, x: Values, ctx: Context) -> None:
    """Append every veto of the candidate to its evaluation."""
    for mask, reason, source, field in [
        *_terms(e, x, ctx),
        *_code(e, x, ctx),
        *_model_fits(e, x, ctx),
        *_latency(e, x, ctx),
        *_time(e, x, ctx),
        *_budget(e, x, ctx),
    ]:
        if mask.any():
            e.vetoes.append((mask, Veto(e.spec.id, reason, source, field)))


Found = list[tuple[Mask, str, str, str]]


def _always(x: Values) -> Mask:
    return np.ones(len(x["parallel_fraction"]), dtype=bool)


def _terms(e: Evaluation, x: Values, ctx: Context) -> Found:
    """Terms that the location, the horizon or the kind of work forbid."""
    w, terms = ctx.workload, e.spec.acquisition
    found: Found = []
    if w.location is Location.in_house and terms != "buy":
        reason = "the data must stay in your own rooms, which rules out renting"
        found.append((_always(x), reason, "your answer", "location"))
    short = w.horizon_months < likely("owner_min_horizon_months")
    if terms == "buy" and short and w.location is not Location.in_house:
        reason = (
            f"a horizon of {w.horizon_months} months is too short to own: delivery takes "
            f"{likely('delivery_months'):.0f} months and resale loses most in the first year"
        )
        source = "decision_parameters.csv, owner_min_horizon_months"
        found.append((_always(x), reason, source, "horizon_months"))
    if terms == "buy":
        found += _place(e)
    if terms == "spot":
        found += _spot_service(e, x, ctx)
    if terms == "spot" and w.failure_mode is FailureMode.long_run_loss:
        found += _spot_runs(e, x)
    return found


def _place(e: Evaluation) -> Found:
    """What the room can't power or cool, or what would come too late."""
    found: Found = []
    for pool in e.pools:
        owner = pool.unit.prices["buy"].owner if "buy" in pool.unit.prices else None
        if owner is None:
            continue
        machines = np.ceil(pool.units / owner.units_per_machine - 1e-9)
        mask = owner.refused(machines)
        if mask.any():
            first = int(machines[int(mask.argmax())])
            field = "available_kw" if "available" in owner.refusal(first) else "location"
            source = "cost_parameters.csv, limits of racks; the terms of the costs"
            found.append((mask, owner.refusal(first), source, field))
    return found


def _spot_service(e: Evaluation, x: Values, ctx: Context) -> Found:
    """Spot for what keeps data, and for services so small that they stop with a machine."""
    found: Found = []
    source = "running_costs.csv, spot notices"
    keeps = [
        s.title.lower() for s in ctx.stages if s.holds_data and ctx.workload.kind is not Kind.web
    ]
    if keeps:
        reason = f"{keeps[0]} keeps data, and spot machines are taken back at 30 seconds' notice"
        found.append((_always(x), reason, source, "kind"))
    fears = {
        FailureMode.machine_loss: "a machine that dies",
        FailureMode.late_answers: "late answers",
    }
    named = fears.get(ctx.workload.failure_mode)
    if named is not None and any(p.service for p in e.pools):
        reason = f"{named} is the failure you named, and spot machines vanish at short notice"
        found.append((_always(x), reason, source, "failure_mode"))
    for pool in e.pools:
        if pool.service:
            machines = np.ceil(pool.units / pool.unit.per_machine)
            least = likely("spot_service_machines")
            reason = (
                f"a service on fewer than {least:.0f} spot machines stops when they are taken back"
            )
            found.append((machines < least, reason, source, "rate_per_s"))
    return found


def _spot_runs(e: Evaluation, x: Values) -> Found:
    """Spot for runs whose loss is the worst failure, when each would be interrupted."""
    batch = [p for p in e.pools if not p.service]
    machines = sum(np.ceil(p.units / p.unit.per_machine) for p in batch)
    hours = sum(p.hours_per_run for p in batch)
    expected = x["spot_interruptions_per_node_day"] / 24 * machines * hours
    reason = (
        f"a run would be interrupted about {rough(float(np.asarray(expected)[0]))} times on spot "
        "machines, and losing a long run is the failure you named"
    )
    mask = np.asarray(expected) > likely("spot_interruptions_tolerable")
    return [(mask, reason, "running_costs.csv, spotint-gpu-hazard", "failure_mode")]


def _code(e: Evaluation, x: Values, ctx: Context) -> Found:
    """Code that can't move, and arithmetic or memory that the hardware does not have."""
    w, spec = ctx.workload, e.spec
    found: Found = []
    blocked = [
        s.title
        for s, h in zip(ctx.stages, spec.stage_hardware, strict=True)
        if h == "gpu" and not s.gpu_native
    ]
    if w.rewrite is Rewrite.impossible and blocked:
        reason = f"{blocked[0].lower()} can't be rewritten for GPUs"
        found.append((_always(x), reason, "your answer", "rewrite"))
    acc = spec.gpu.accelerator if spec.gpu is not None else None
    server = ctx.catalogue.cpu_servers[REFERENCE_SERVER]
    barred: list[tuple[Constraint | None, str]] = []
    if w.kind in BATCH_JOBS:
        if "gpu" in spec.stage_hardware and not ctx.settings.jobs.licence_covers_gpus:
            barred.append((LICENCE, "your answer"))
        unsplit = None if w.working_set_shardable else w.working_set_gb
        barred += [
            (too_little_memory(p.unit.name, p.unit.memory_gb, unsplit), MEMORY_SOURCE)
            for p in e.pools
        ]
    if w.precision is Precision.fp64 and acc is not None:
        barred.append((double_precision(acc, server), "accelerators.csv, cpu_servers.csv"))
    found += [(_always(x), c.reason, source, c.field) for c, source in barred if c is not None]
    return found


def _model_fits(e: Evaluation, x: Values, ctx: Context) -> Found:
    """Machines that can't hold the language model, or of which no rate of the model is known."""
    found: Found = []
    for pool in e.pools:
        if any(s.work == "llm_inference" for s in pool.stages):
            reason = llm.does_not_fit(pool.unit, ctx.workload, ctx.settings.serving)
            if reason:
                found.append((_always(x), reason, "memory of the serving model", "model_params_b"))
        unknown = unpublished(pool.unit, pool.stages, ctx)
        if unknown:
            found.append((_always(x), unknown, "inference_rates.csv", "model_class"))
    return found


def _latency(e: Evaluation, x: Values, ctx: Context) -> Found:
    """Answers that come later than the target."""
    found = _slow_tokens(e, x, ctx)
    target_ms = ctx.workload.latency_ms
    if target_ms is None or not e.latency_ms.any():
        return found
    target: Array = x.get("latency_ms", np.full(len(e.latency_ms), target_ms))
    path = {"gpu": "GPU", "cpu": "CPU", "hybrid": "mixed"}[e.spec.placement]
    reason = (
        f"answers take about {number(float(e.latency_ms[0]))} ms on the {path} path; "
        f"{number(target_ms)} ms are asked"
    )
    source = "latency estimate: launches, copies, batch wait, compute, hops"
    return [*found, (e.latency_ms > target, reason, source, "latency_ms")]


def _slow_tokens(e: Evaluation, x: Values, ctx: Context) -> Found:
    """Language models on hardware that is too slow even for one request alone.

    The time per further token against what was told, else the usual; the time to the first token
    against the usual where no target was told.
    """
    w, terms = ctx.workload, ctx.settings.serving
    source = "calibration_serving.csv, serving_parameters.csv"
    found: Found = []
    for pool in e.pools:
        if not any(s.work == "llm_inference" and s.mode == "service" for s in pool.stages):
            continue
        if llm.does_not_fit(pool.unit, w, terms):
            continue
        first_s, token_s = llm.lone_s(pool.unit, x, w, terms)
        each_s = tpot_target_s(terms)
        asked = "are usual" if terms.tpot_ms is None else "are asked"
        reason = (
            f"a further token takes {number(float(token_s[0]) * 1e3)} ms at best; "
            f"{number(each_s * 1e3)} ms {asked}"
        )
        found.append((token_s > each_s, reason, source, "tpot_ms"))
        if w.latency_ms is None:
            usual_s = usual_ttft_s(x["tokens_in"])
            reason = (
                f"the first token takes {duration(float(first_s[0]) / 3600)} at best; "
                f"{duration(float(usual_s[0]) / 3600)} are usual for such prompts"
            )
            found.append((first_s > usual_s, reason, source, "latency_ms"))
    return found


def _time(e: Evaluation, x: Values, ctx: Context) -> Found:
    """Runs that take longer than the deadline or, without one, than the horizon."""
    w = ctx.workload
    if not any(s.mode == "batch" for s in ctx.stages):
        return []
    if w.deadline_days is not None:
        limit, goal = x["patience_h"], f"the deadline of {duration(w.deadline_days * 24)}"
    else:
        limit = np.full(len(e.hours_per_run), w.horizon_months * HOURS_PER_MONTH)
        goal = f"the horizon of {w.horizon_months} months"
    took = duration(float(e.hours_per_run[0]))
    units = float(e.units[0])
    reason = f"a run takes about {took} on {units:,.0f} of them, beyond {goal}"
    field = "deadline_days" if w.deadline_days is not None else "horizon_months"
    return [(e.hours_per_run > limit * 1.0001, reason, "time estimate", field)]


def _budget(e: Evaluation, x: Values, ctx: Context) -> Found:
    """Candidates dearer than the budget."""
    budget = ctx.workload.budget_usd_per_month
    if budget is None:
        return []
    reason = (
        f"it costs ${float(e.usd_per_month[0]):,.0f} a month, above the budget of ${budget:,.0f}"
    )
    return [(e.usd_per_month > budget, reason, "your answer", "budget_usd_per_month")]
