"""Which candidates deserve a full evaluation: the few best of each placement, on every term.

All hardware is sized and priced at the point; for each assignment of stages the cheapest allowed
units are kept (and the fastest), and each is then offered on every acquisition it can be had on.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from engine.assessment import Acquisition
from engine.decide.candidates import (
    ACQUISITIONS,
    Spec,
    Unit,
    placements,
)
from engine.decide.evaluate import evaluate
from engine.decide.evaluation import Context, Evaluation, Memo, Pool
from engine.decide.numbers import Array
from engine.decide.priors import likely
from engine.decide.service_sizing import growth
from engine.decide.service_units import sizing_of
from engine.workload.answers import FailureMode, Kind
from engine.workload.workload import HOURS_PER_MONTH

KEEP_GPUS = 5
KEEP_CPUS = 2
SERVERS_TRIED = 3  # beside a second GPU
Values = dict[str, Array]


def shortlist(
    ctx: Context, today_gpu: list[Unit], today_cpu: list[Unit], x: Values, memo: Memo
) -> list[Spec]:
    """Candidates worth evaluating in full, at most a few dozen.

    memo : pools found for the inputs `x`, added to
    """
    assignments = placements(ctx.stages)
    today_cpu = _whole(ctx, today_cpu, x, memo)
    all_cpu = next(a for name, a in assignments if name == "cpu")
    all_gpu = next(a for name, a in assignments if name == "gpu")
    cpus = _best(ctx, x, memo, [Spec("cpu", all_cpu, None, u, "on_demand") for u in today_cpu])
    gpus = _best(ctx, x, memo, [Spec("gpu", all_gpu, u, None, "on_demand") for u in today_gpu])
    specs = [s for u in _cpus_kept(ctx, cpus) for s in on_all_terms("cpu", all_cpu, None, u)]
    kept = [e.spec.gpu for e in gpus[:KEEP_GPUS] if e.spec.gpu is not None]
    specs += [s for u in kept for s in on_all_terms("gpu", all_gpu, u, None)]
    hybrids = [a for name, a in assignments if name == "hybrid"]
    return specs + _hybrids(ctx, x, memo, hybrids, today_gpu, _one_of_each_size(today_cpu, ctx))


def _whole(ctx: Context, servers: list[Unit], x: Values, memo: Memo) -> list[Unit]:
    """Servers that hold a copy of a database each, where there are any: it is not split before.

    Busier months count, so that a copy stays on one machine on terms that commit, too.
    """
    if ctx.workload.kind is not Kind.database:
        return servers
    room = growth(x["monthly_variation"])
    alone = [u for u in servers if sizing_of(u, ctx.stages, x, ctx, room, memo).carrying[0] == 1]
    return alone or servers


def _cpus_kept(ctx: Context, cpus: list[Evaluation]) -> list[Unit]:
    """The cheapest servers; one machine that holds a service ends the search for clusters.

    Whatever several machines cost, where the loss of one is tolerable they only add ways to fail.
    """
    alone = [e for e in cpus if e.machines[0] == 1]
    enough = alone and all(s.mode == "service" for s in ctx.stages)
    if not alone and ctx.workload.kind is Kind.database:
        cpus = _fewest_shards(ctx, cpus)
    kept = alone[:KEEP_CPUS] if enough else cpus[:KEEP_CPUS] + alone[:1]
    return list(dict.fromkeys(e.spec.cpu for e in kept if e.spec.cpu is not None))


def _fewest_shards(ctx: Context, cpus: list[Evaluation]) -> list[Evaluation]:
    """Servers for a database that no machine holds, without those that cost more in more shards.

    What costs more and is cut into more parts only adds ways to fail; people are in the cost.
    """
    cost = [_cheapest_terms(e, ctx) for e in cpus]
    return [
        e
        for i, e in enumerate(cpus)
        if not any(o.machines[0] <= e.machines[0] and cost[k] < cost[i] for k, o in enumerate(cpus))
    ]


def _hybrids(
    ctx: Context,
    x: Values,
    memo: Memo,
    assignments: list[tuple[Literal["gpu", "cpu"], ...]],
    gpus: list[Unit],
    servers: list[Unit],
) -> list[Spec]:
    """The cheapest pairs of every mixed assignment: the GPU first, then the server beside it."""
    found: list[tuple[bool, float, Spec]] = []
    middle = servers[len(servers) // 2]
    for assignment in assignments:
        firsts = _best(
            ctx, x, memo, [Spec("hybrid", assignment, u, middle, "on_demand") for u in gpus]
        )
        beside = servers
        for first in firsts[:2]:
            pairs = [Spec("hybrid", assignment, first.spec.gpu, c, "on_demand") for c in beside]
            best = _best(ctx, x, memo, pairs)
            # A server's cost does not depend on the GPU: the best few beside one serve the next.
            beside = [e.spec.cpu for e in best[:SERVERS_TRIED] if e.spec.cpu is not None]
            if best:
                e = best[0]
                found.append((_hardware_barred(e), float(e.usd_per_month[0]), e.spec))
    found.sort(key=lambda f: f[:2])
    return [
        s for _, _, h in found[:3] for s in on_all_terms("hybrid", h.stage_hardware, h.gpu, h.cpu)
    ]


def _one_of_each_size(cpus: list[Unit], ctx: Context) -> list[Unit]:
    """The cheapest server of each number of vCPUs, and those that hold the working set at once."""
    best: dict[float, Unit] = {}
    for unit in sorted(cpus, key=lambda u: u.on_demand_usd_per_hour(), reverse=True):
        best[unit.vcpu] = unit
    chosen = list(best.values())
    if not ctx.workload.working_set_shardable:
        need = ctx.inputs.ranges["working_set_gb"].likely
        chosen += [u for u in cpus if u.memory_gb >= need and u not in chosen]
    return sorted(chosen, key=lambda u: u.vcpu)


def _best(ctx: Context, x: Values, memo: Memo, specs: list[Spec]) -> list[Evaluation]:
    """Specs by cost at the point, allowed ones first; the constraint of the terms set aside."""
    rated: list[tuple[bool, bool, float, Evaluation]] = []
    for spec in specs:
        if _terms_missing(spec):
            continue
        e = evaluate(spec, x, ctx, memo)
        # Of two fleets at nearly the same cost the one with fewer machines is the better.
        handled = 1 + likely("doubling_cost_share") * float(np.log2(max(e.units[0], 1.0)))
        rated.append((_hardware_barred(e), _too_slow(e, x), _cheapest_terms(e, ctx) * handled, e))
    rated.sort(key=lambda r: r[:3])
    return [r[3] for r in rated]


def _cheapest_terms(e: Evaluation, ctx: Context) -> float:
    """Cost on the best of the terms on which it is offered, see `on_all_terms`."""
    base = float(e.usd_per_month[0])
    fees = base - sum(float(p.usd_per_month[0]) for p in e.pools)
    costs = [base]
    spot_will_do = ctx.workload.failure_mode is not FailureMode.long_run_loss and all(
        s.mode == "batch" for s in ctx.stages
    )
    for spec in on_all_terms(e.spec.placement, e.spec.stage_hardware, e.spec.gpu, e.spec.cpu):
        if spec.acquisition == "spot" and not spot_will_do:
            continue
        costs.append(fees + sum(_pool_usd(p, spec.acquisition) for p in e.pools))
    return min(costs)


def _pool_usd(pool: Pool, terms: Acquisition) -> float:
    """The machines of a pool that is had on demand on other terms: all month at a committed rate.

    They stay on demand where those are not offered.
    """
    usd, units = float(pool.usd_per_month[0]), float(pool.units[0])
    price = pool.unit.prices.get(terms)
    if price is None or terms == "on_demand":
        return usd
    if terms == "spot":
        return usd * price.likely / max(pool.unit.on_demand_usd_per_hour(), 1e-9)
    if price.owner is not None:
        used = min(float(pool.busy_hours[0]), HOURS_PER_MONTH)
        machines = float(np.ceil(units / price.owner.units_per_machine))
        return float(price.owner.usd_per_month(machines, used))
    return units * price.likely * HOURS_PER_MONTH


def _too_slow(e: Evaluation, x: Values) -> bool:
    """Whether a run takes clearly longer than the patience: the form can't be sized to the need."""
    return bool(e.hours_per_run[0] > 1.5 * x["patience_h"][0])


def _hardware_barred(e: Evaluation) -> bool:
    """Whether a veto concerns the hardware itself and not how it is acquired."""
    return any(
        bool(mask[0])
        for mask, veto in e.vetoes
        if veto.field not in ("location", "budget_usd_per_month")
    )


def _terms_missing(spec: Spec) -> bool:
    return any(
        u is not None and spec.acquisition not in u.prices and "buy" not in u.prices
        for u in (spec.gpu, spec.cpu)
    )


def on_all_terms(
    placement: str, assignment: tuple[str, ...], gpu: Unit | None, cpu: Unit | None
) -> list[Spec]:
    """The hardware on every acquisition on which its dearest part can be had.

    In a hybrid the GPUs are on the named terms; servers without that term are on demand.
    """
    lead = gpu if gpu is not None else cpu
    assert lead is not None
    found = []
    for acquisition in ACQUISITIONS:
        if acquisition not in lead.prices:
            continue
        if acquisition == "buy" and any(u and "buy" not in u.prices for u in (gpu, cpu)):
            continue
        found.append(Spec(placement, assignment, gpu, cpu, acquisition))  # type: ignore[arg-type]
    return found
