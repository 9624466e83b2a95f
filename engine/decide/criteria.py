"""The six criteria: each a value in [0, 1] with one owner, so that nothing counts twice.

cost         cost of the work against the cheapest that is allowed: half at twice its cost;
             bills of a few hundred dollars count as equal
time         time to result against the need, or latency against the target
fit          how much of the scarce resource a dollar buys, against the best candidate
resilience   what the worst failure does to it
effort       rewrite, second system, distribution, experience
flexibility  lock-in against the horizon and the variation of the demand
"""

from __future__ import annotations

import numpy as np

from engine.decide.candidates import Unit
from engine.decide.evaluation import Context, Evaluation
from engine.decide.numbers import Array
from engine.decide.priors import likely
from engine.workload.answers import Current, Downtime, FailureMode, Rewrite, Team
from engine.workload.workload import LLM_TRAINING

CRITERIA = ("cost", "time", "fit", "resilience", "effort", "flexibility")
TITLES = {
    "cost": "Cost of the work",
    "time": "Time to result",
    "fit": "Fit to the bottleneck",
    "resilience": "Resilience",
    "effort": "Effort and risk",
    "flexibility": "Flexibility",
}
Values = dict[str, Array]


def values(evaluations: list[Evaluation], x: Values, ctx: Context) -> Array:
    """Values of every candidate and criterion, shape (candidates, 6, draws)."""
    n = len(x["parallel_fraction"])
    cheapest = _cheapest(evaluations)
    small = likely("negligible_usd_per_month")
    shares = ctx.inputs.shares
    fits = [{r: _per_dollar(e, r, ctx) for r in shares} for e in evaluations]
    best_fit = {
        r: np.maximum(np.max([np.broadcast_to(f[r], n) for f in fits], axis=0), 1e-12)
        for r in shares
    }
    out = np.empty((len(evaluations), len(CRITERIA), n))
    for i, e in enumerate(evaluations):
        out[i, 0] = (cheapest + small) / (e.usd_per_month + small)
        out[i, 1] = time_value(e, x, ctx)
        out[i, 2] = sum(share * fits[i][r] / best_fit[r] for r, share in shares.items())
        out[i, 3] = resilience_value(e, x, ctx)
        out[i, 4] = effort_value(e, x, ctx)
        out[i, 5] = flexibility_value(e, x, ctx)
    return np.clip(np.nan_to_num(out, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)


def _cheapest(evaluations: list[Evaluation]) -> Array:
    """The lowest cost among allowed candidates, by draw; among all where none is allowed."""
    costs = np.array([e.usd_per_month for e in evaluations])
    barred = np.array([e.vetoed for e in evaluations])
    allowed = np.where(barred, np.inf, costs)
    lowest = allowed.min(axis=0)
    return np.asarray(np.where(np.isfinite(lowest), lowest, costs.min(axis=0)))


def time_value(e: Evaluation, x: Values, ctx: Context) -> Array:
    """1/(1 + (t/need)²): ½ when it takes exactly what is needed; speed beyond the need adds little.

    The need is the deadline or the patience usual for the work, for services the latency target.
    """
    n = len(x["parallel_fraction"])
    if any(s.mode == "batch" for s in ctx.stages):
        need = x["patience_h"]
        return np.asarray(1 / (1 + (e.hours_per_run / need) ** 2))
    if ctx.workload.latency_ms is None:
        return np.full(n, 0.75)
    target = x.get("latency_ms", np.full(n, ctx.workload.latency_ms))
    return np.asarray(1 / (1 + (e.latency_ms / target) ** 2))


def _per_dollar(e: Evaluation, resource: str, ctx: Context) -> Array:
    """Amount of a resource that a dollar an hour rents, over the pools of the candidate, by draw.

    Disk, front-end network and coordination are those of the host: they follow its vCPUs.
    A synchronous training job uses the GPU fabric as its network.
    """
    if len(e.pools) == 1:  # the same whatever their number
        unit = e.pools[0].unit
        return np.asarray(_amount(unit, resource, ctx) / max(unit.reference_usd_per_hour, 1e-9))
    total = sum(_amount(p.unit, resource, ctx) * p.units for p in e.pools)
    usd = sum(p.unit.reference_usd_per_hour * p.units for p in e.pools)
    return np.asarray(total / np.maximum(usd, 1e-9))


def _amount(unit: Unit, resource: str, ctx: Context) -> float:
    acc, server = unit.accelerator, unit.server
    if resource == "compute":
        if acc is not None:
            # What the job can use of it: the parallel part only.
            p = ctx.inputs.ranges["parallel_fraction"].likely
            return (acc.bf16_tflops_dense or 0.0) * p
        peak = server.peak_bf16_gflops if server is not None else None
        return (peak or unit.vcpu / 96 * 157_286) / 1000
    if resource == "memory_bandwidth":
        if acc is not None:
            return float(acc.memory_bandwidth_gb_per_s)
        bandwidth = server.memory_bandwidth_gb_per_s if server is not None else None
        return bandwidth or 307.2 * unit.vcpu / 96
    if resource == "memory_capacity":
        return max(unit.memory_gb, unit.host_memory_gb)
    if resource == "network" and ctx.workload.kind in LLM_TRAINING and acc is not None:
        return (acc.scaleup_gb_per_s_per_direction or 1.0) * 8
    return unit.vcpu


def resilience_value(e: Evaluation, x: Values, ctx: Context) -> Array:
    """What the worst failure does to the candidate; a table of judged scale marks."""
    w = ctx.workload
    n = len(x["parallel_fraction"])
    spot = e.spec.acquisition == "spot"
    service = any(s.mode == "service" for s in ctx.stages)
    base = np.full(n, likely("resilience_unknown"))
    loss = likely("resilience_spot_loss") if spot else 0.0
    mode = w.failure_mode
    if mode in (FailureMode.machine_loss, FailureMode.data_loss):
        tolerant = w.downtime in (Downtime.hours, Downtime.day)
        alone = likely("resilience_single_tolerable" if tolerant else "resilience_single")
        several = np.maximum(e.machines, 0) > len(e.pools)
        safe = likely("resilience_replicated")
        base = np.where(several, safe, alone) if service else np.full(n, likely("resilience_rerun"))
    elif mode is FailureMode.long_run_loss:
        fleet = np.maximum(e.units, 1)
        mtbf = x["mtbf_gpu_hours"] / fleet
        lost = np.sqrt(2 * likely("checkpoint_stall_h") / mtbf) + x["restart_h"] / mtbf
        lost = lost + np.maximum(1 - e.goodput, 0)
        base = np.exp(-lost / likely("goodput_loss_scale"))
        loss = loss * 0.7
    elif mode is FailureMode.silent_corruption:
        base = 0.85 - 0.08 * np.log10(np.maximum(e.units, 1))
        loss = loss * 0.3
    elif mode is FailureMode.late_answers:
        base = 0.4 + 0.6 * time_value(e, x, ctx)
    elif mode is FailureMode.wasted_spend:
        base = 0.1 + 0.9 * e.utilization if not service else 0.3 + 0.7 * e.utilization
        loss = loss * 0.2
    if not service and mode is not FailureMode.long_run_loss:
        loss = loss * 0.5
    systems = len({p.unit.hardware for p in e.pools}) - 1
    return np.asarray(np.clip(base - loss - systems * likely("resilience_two_systems"), 0, 1))


def effort_value(e: Evaluation, x: Values, ctx: Context) -> Array:
    """1 less what the change, a second system, distribution and inexperience cost."""
    w, spec = ctx.workload, e.spec
    penalty = np.zeros(len(x["parallel_fraction"]))
    uses_gpu = spec.gpu is not None
    if spec.placement == "hybrid":
        penalty = penalty + likely("second_system_penalty")
    penalty = penalty + np.where(e.machines > 1, likely("cluster_penalty"), 0.0)
    penalty = penalty + likely("doubling_penalty") * np.log2(np.maximum(e.units, 1))
    if uses_gpu and w.current is not Current.gpu:
        known = {Team.gpu_cluster: 0.0, Team.own_hardware: 0.5, Team.unknown: 0.5, Team.cloud: 0.7}
        several = np.where(e.machines > 1, 1.0, 0.4)
        penalty = penalty + likely("gpu_inexperience_penalty") * known.get(w.team, 1.0) * several
    if spec.acquisition == "buy":
        known = {Team.own_hardware: 0.0, Team.gpu_cluster: 0.6}
        penalty = penalty + likely("own_inexperience_penalty") * known.get(w.team, 1.0)
    if spec.acquisition == "spot":
        gang = np.where(e.machines > 1, likely("spot_gang_penalty"), 0.0)
        batch = any(s.mode == "batch" for s in ctx.stages)
        penalty = penalty + likely("spot_effort_penalty") + (gang if batch else gang * 0.5)
    if spec.acquisition == "on_demand" and uses_gpu:
        # Connected machines for one job are rarely free at the moment they are wanted.
        together = any(p.unit.hardware == "gpu" and not p.service for p in e.pools)
        wait = np.where(e.machines > 1, likely("on_demand_fleet_penalty"), 0.0)
        penalty = penalty + (wait if together else 0.0)
    months = rewrite_months(e, x, ctx)
    penalty = penalty + months / (months + likely("rewrite_half_months"))
    if w.current is Current.gpu and spec.cpu is not None:
        penalty = penalty + likely("port_back_penalty")
    return np.asarray(np.clip(1 - penalty, 0, 1))


def rewrite_months(e: Evaluation, x: Values, ctx: Context) -> Array:
    """Engineer-months to move the stages that the candidate puts on GPUs."""
    w = ctx.workload
    blocked = [
        s
        for s, h in zip(ctx.stages, e.spec.stage_hardware, strict=True)
        if h == "gpu" and not s.gpu_native
    ]
    if not blocked or w.rewrite is Rewrite.ready or w.current is Current.gpu:
        return np.zeros_like(x["rewrite_months"])
    unsure = 0.6 if w.rewrite is Rewrite.unknown else 1.0
    return np.asarray(x["rewrite_months"] * unsure)


def flexibility_value(e: Evaluation, x: Values, ctx: Context) -> Array:
    """1 when nothing binds; less with the lock-in and the more the demand varies."""
    months = {
        "on_demand": 0.0, "spot": 0.0, "dedicated": 1.0, "reserved_1y": 12.0, "reserved_3y": 36.0,
        "buy": likely("buy_lock_months"),
    }[e.spec.acquisition]  # fmt: skip
    lock = months / (months + likely("lock_half_months"))
    variation = np.minimum(x["monthly_variation"], 1.0)
    return np.asarray(1 - lock * (0.4 + 0.6 * variation))
