"""Which candidates deserve a full evaluation: the few best of each placement, on every term.

All hardware is sized and priced at the point; for each assignment of stages the cheapest allowed
units are kept (and the fastest), and each is then offered on every acquisition it can be had on.
"""

from __future__ import annotations

from engine.decide.candidates import (
    ACQUISITIONS,
    Spec,
    Unit,
    placements,
)
from engine.decide.evaluate import evaluate
from engine.decide.evaluation import Context, Evaluation
from engine.decide.inputs import Array
from engine.workload.workload import HOURS_PER_MONTH

KEEP_GPUS = 5
KEEP_CPUS = 2
Values = dict[str, Array]


def shortlist(ctx: Context, today_gpu: list[Unit], today_cpu: list[Unit], x: Values) -> list[Spec]:
    """Candidates worth evaluating in full, at most a few dozen."""
    specs: list[Spec] = []
    hybrids: list[tuple[float, Spec]] = []
    for placement, assignment in placements(ctx.stages):
        if placement == "cpu":
            kept = _best(ctx, x, [Spec("cpu", assignment, None, u, "on_demand") for u in today_cpu])
            alone = [s for s in kept if evaluate(s, x, ctx).machines[0] == 1]
            kept = list(dict.fromkeys([*kept[:KEEP_CPUS], *alone[:1]]))
            cpus = [s.cpu for s in kept if s.cpu is not None]
            specs += [s for u in cpus for s in _terms("cpu", assignment, None, u)]
        elif placement == "gpu":
            kept = _best(ctx, x, [Spec("gpu", assignment, u, None, "on_demand") for u in today_gpu])
            gpus = [s.gpu for s in kept[:KEEP_GPUS] if s.gpu is not None]
            specs += [s for u in gpus for s in _terms("gpu", assignment, u, None)]
        else:
            # The GPU is sized with any server, then the server with the best GPU.
            anyone = today_cpu[len(today_cpu) // 2]
            kept = _best(
                ctx, x, [Spec("hybrid", assignment, u, anyone, "on_demand") for u in today_gpu]
            )
            gpus = [s.gpu for s in kept[:2] if s.gpu is not None]
            if not gpus:
                continue
            pairs = _best(
                ctx, x, [Spec("hybrid", assignment, gpus[0], c, "on_demand") for c in today_cpu]
            )
            for gpu in gpus:
                for pair in pairs[:1]:
                    spec = Spec("hybrid", assignment, gpu, pair.cpu, "on_demand")
                    cost = float(evaluate(spec, x, ctx).usd_per_month[0])
                    hybrids.append((cost, spec))
    for _, spec in sorted(hybrids, key=lambda pair: pair[0])[:3]:
        specs += _terms("hybrid", spec.stage_hardware, spec.gpu, spec.cpu)
    return specs


def _best(ctx: Context, x: Values, specs: list[Spec]) -> list[Spec]:
    """Specs by cost at the point, allowed ones first; the constraint of the terms set aside."""
    rated: list[tuple[bool, bool, float, Spec]] = []
    for spec in specs:
        if _terms_missing(spec):
            continue
        e = evaluate(spec, x, ctx)
        rated.append((_hardware_barred(e), _too_slow(e, x), _cheapest_terms(e), spec))
    rated.sort(key=lambda r: r[:3])
    return [r[3] for r in rated]


def _cheapest_terms(e: Evaluation) -> float:
    """Cost on the best of the terms: the machines on demand, or all month at a committed rate."""
    base = float(e.usd_per_month[0])
    lead = max(e.pools, key=lambda p: float(p.usd_per_month[0]))
    units = float(lead.units[0])
    rest = base - float(lead.usd_per_month[0])
    costs = [base]
    for terms, price in lead.unit.prices.items():
        if terms not in ("on_demand", "spot"):
            month = price.likely if price.basis == "month" else price.likely * HOURS_PER_MONTH
            costs.append(rest + units * month)
    return min(costs)


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


def _terms(
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
