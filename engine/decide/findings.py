"""What the decision found, and candidates as options with their words and numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

import numpy as np

from engine.assessment import (
    ACQUISITION_LABELS,
    Contribution,
    Option,
    StagePlan,
    Veto,
)
from engine.decide import score as scoring
from engine.decide.candidates import COMMIT_MONTHS, Price
from engine.decide.criteria import CRITERIA, TITLES, rewrite_months, values
from engine.decide.evaluation import Context, Evaluation, Pool
from engine.decide.numbers import Array
from engine.decide.sensitivity import Turn
from engine.decide.uncertainty import Uncertainty, Worth
from engine.estimate.estimate import Estimate
from engine.wording import count, duration, money, number, rough
from engine.workload.answers import FAILURE_LABELS, FailureMode
from engine.workload.workload import HOURS_PER_MONTH


@dataclass(slots=True)
class Findings:
    """The point evaluation of every candidate and, with draws, what they showed."""

    context: Context
    today: date
    evaluations: list[Evaluation]
    ranked: Array
    best: int
    notes: tuple[str, ...] = ()
    uncertainty: Uncertainty | None = None
    worths: list[Worth] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    expected: Array | None = None
    point_values: Array | None = None

    def choose_expected(self) -> None:
        """Rank by the expected score over the draws; what is barred at the point stays last.

        The choice of the highest expected value is that of the least expected regret.
        """
        if self.expected is None:
            return
        weight = scoring.weights(self.context.workload)
        barred = np.array([bool(e.vetoed[0]) for e in self.evaluations])
        self.ranked = np.asarray(self.expected @ weight - scoring.VETO_DROP * barred)
        self.best = int(self.ranked.argmax())

    def values(self) -> Array:
        """Values of the criteria, shape (candidates, 6): means of the draws, else the point's."""
        if self.expected is not None:
            return self.expected
        if self.point_values is None:
            x = self.context.inputs.point()
            self.point_values = values(self.evaluations, x, self.context)[:, :, 0]
        return self.point_values


def is_batch(context: Context) -> bool:
    """Whether the result is a run's time and not an answer's latency."""
    return any(s.mode == "batch" for s in context.stages)


def time_of(e: Evaluation) -> Array:
    """Hours of a run, or the latency of an answer in milliseconds when there is no run."""
    return e.hours_per_run if e.hours_per_run.any() else e.latency_ms


def units_of(pool: Pool) -> int:
    """Machines that a pool pays for, those of runs side by side among them: whole ones."""
    per = pool.unit.per_machine
    return int(np.ceil(float(pool.paid_units[0]) / per - 1e-6)) * per


def pool_label(pool: Pool) -> str:
    """The hardware of a pool in words."""
    units = units_of(pool)
    if pool.unit.hardware == "cpu":
        return f"{count(units, 'server')} with {pool.unit.vcpu:.0f} vCPU"
    if pool.unit.per_machine > 1:
        machines = int(np.ceil(units / pool.unit.per_machine))
        return f"{units:,} × {pool.unit.name} ({count(machines, 'machine')})"
    return f"{units:,} × {pool.unit.name}"


def make_option(f: Findings, i: int) -> Option:
    """One candidate as an option."""
    e, context = f.evaluations[i], f.context
    weight = scoring.weights(context.workload)
    value = f.values()[i]
    contributions = tuple(
        Contribution(c, TITLES[c], float(weight[k]), float(value[k]), *_because(f, e, c))
        for k, c in enumerate(CRITERIA)
    )
    point = float(e.usd_per_month[0])
    usd = _estimate(f, i, point, "usd")
    time_point = float(time_of(e)[0])
    batch = is_batch(context)
    time = _estimate(f, i, time_point, "time")
    useful = float(e.useful_hours[0])
    useful_hours = useful if useful > 0 else None
    machines = float(e.machines[0])
    u = f.uncertainty
    label = " + ".join(pool_label(p) for p in e.pools)
    return Option(
        id=e.spec.id,
        placement=e.spec.placement,
        scale="one_machine" if machines <= 1 else "cluster",
        acquisition=e.spec.acquisition,
        label=f"{label}, {ACQUISITION_LABELS[e.spec.acquisition]}",
        stages=tuple(_stage_plans(f, e, usd)),
        usd_per_month=usd,
        usd_per_useful_hour=(
            usd.scaled(1 / useful_hours, "USD/useful hour") if useful_hours else None
        ),
        time=time,
        time_label="Time of a run" if batch else "Answer, 95 of 100 within",
        score=float(sum(c.points for c in contributions)),
        contributions=contributions,
        vetoes=tuple(v for mask, v in e.vetoes if mask[0]),
        probability_best=float(u.probability_best[i]) if u is not None else 0.0,
        regret_usd_per_month=_regret_usd(f, i),
    )


def _estimate(f: Findings, i: int, point: float, what: str) -> Estimate:
    """The point with its 80% interval; without draws the interval is the point."""
    u = f.uncertainty
    unit = "USD/month" if what == "usd" else ("h" if is_batch(f.context) else "ms")
    if u is None:
        return Estimate(point, point, point, unit)
    low = float((u.usd_low if what == "usd" else u.time_low)[i])
    high = float((u.usd_high if what == "usd" else u.time_high)[i])
    return Estimate(min(low, point), point, max(high, point), unit)


def _regret_usd(f: Findings, i: int) -> float:
    """Expected regret in dollars a month: a point of score is worth c_min/w_cost at the margin.

    The cost value is c_min/c, whose slope at the cheapest is −1/c_min.
    """
    if f.uncertainty is None:
        return 0.0
    return float(f.uncertainty.regret_points[i]) * usd_per_point(f)


def usd_per_point(f: Findings) -> float:
    """What a point of score is worth in dollars a month."""
    weight = max(float(scoring.weights(f.context.workload)[0]), 0.05)
    return float(f.evaluations[f.best].usd_per_month[0]) / weight


def _stage_plans(f: Findings, e: Evaluation, usd: Estimate) -> list[StagePlan]:
    """Which stage runs where, with its share of the pool's cost."""
    plans = []
    total = sum(float(p.usd_per_month[0]) for p in e.pools)
    for pool in e.pools:
        unit = pool.unit
        share = float(pool.usd_per_month[0]) / max(total, 1e-9)
        price = unit.prices.get(e.spec.acquisition)
        acquisition = e.spec.acquisition
        if price is None:
            price, acquisition = unit.prices["on_demand"], "on_demand"
        units = units_of(pool)
        machines = int(np.ceil(units / unit.per_machine))
        titles = " and ".join([pool.stages[0].title, *(s.title.lower() for s in pool.stages[1:])])
        plans.append(
            StagePlan(
                stage=titles,
                hardware=unit.hardware,
                sku=unit.sku,
                name=unit.name,
                units=units,
                machines=machines,
                network=_network(pool, machines),
                acquisition=acquisition,
                price=price.ref,
                usd_per_month=usd.scaled(share),
                busy_hours_per_month=float(pool.busy_hours[0] * pool.units[0]) / units,
                utilization=float(min(max(pool.utilization[0], 0.0), 1.0)),
                vcpu=unit.vcpu,
                note=_paying(acquisition, price, pool),
                side_by_side=max(float(pool.paid_units[0] / pool.units[0]), 1.0),
            )
        )
    return plans


def _paying(acquisition: str, price: Price, pool: Pool) -> str:
    """How the pool is paid, in words."""
    if price.owner is not None:
        each = float(pool.usd_per_month[0]) / units_of(pool)
        return (
            f"owned: about {money(each)} a month each, all costs of the owner and resale included"
        )
    rate = price.likely
    if COMMIT_MONTHS.get(acquisition, 0):  # type: ignore[call-overload]
        return f"{money(rate)} an hour each, paid for all {HOURS_PER_MONTH:.0f} hours"
    return f"{money(rate)} an hour each, paid for the hours used"


def _network(pool: Pool, machines: int) -> str:
    """What connects the machines, in words; the plan pages size it."""
    acc = pool.unit.accelerator
    if acc is None:
        return "Ethernet" if machines > 1 else "none needed"
    inside = acc.scaleup_technology or "PCIe"
    if machines > 1 and not pool.service:
        return f"{inside} inside, 400 Gb/s a GPU between machines"
    return inside if pool.unit.per_machine > 1 else "none needed"


def _because(f: Findings, e: Evaluation, criterion: str) -> tuple[str, str]:
    """Why the value is what it is, and its source."""
    context, w = f.context, f.context.workload
    if criterion == "cost":
        price = next((p.unit.prices.get(e.spec.acquisition) for p in e.pools), None)
        source = (
            price.ref.source
            if price is not None and price.ref is not None
            else "cash flow of owning"
        )
        allowed = [v for v in f.evaluations if not v.vetoed[0]] or f.evaluations
        cheapest = min(float(v.usd_per_month[0]) for v in allowed)
        own = float(e.usd_per_month[0])
        if own <= cheapest * 1.001:
            return f"{money(own)} a month, the cheapest that is allowed", source
        return f"{money(own)} a month; the cheapest allowed is {money(cheapest)}", source
    if criterion == "time":
        if is_batch(context):
            need = context.inputs.ranges["patience_h"].likely
            took = duration(float(e.hours_per_run[0]))
            whose = "asked" if w.deadline_days else "usual for this work"
            return f"a run takes {took}; {duration(need)} is {whose}", "time estimate"
        if w.latency_ms is None:
            return "no latency target was given", "your answer"
        return (
            f"answers within {number(float(e.latency_ms[0]), 'ms', 2)}; "
            f"{number(w.latency_ms, 'ms')} asked",
            "latency estimate",
        )
    if criterion == "fit":
        shares = context.inputs.shares
        top = max(shares, key=lambda k: shares[k])
        name = top.replace("_", " ").replace("io", "I/O")
        return (
            f"{shares[top]:.0%} of the time is {name}; compared by what a dollar buys of it",
            "catalogue",
        )
    if criterion == "resilience":
        mode = w.failure_mode
        named = "no failure named" if mode is FailureMode.unknown else FAILURE_LABELS[mode].lower()
        return f"{named}: {_how_it_fails(e, context)}", "decision_parameters.csv, resilience"
    if criterion == "effort":
        return _effort_words(f, e), "decision_parameters.csv, penalties"
    months = COMMIT_MONTHS.get(e.spec.acquisition, 0)
    if e.spec.acquisition == "buy":
        return "capital is bound; resale frees part of it", "capital.csv, resale by age"
    if months == 0:
        return "nothing binds beyond the hour", "terms of the offer"
    return f"bound for {months} months; the horizon is {w.horizon_months}", "terms of the offer"


def _how_it_fails(e: Evaluation, context: Context) -> str:
    machines = float(e.machines[0])
    if e.spec.acquisition == "spot":
        return "spot machines are taken back at short notice"
    if is_batch(context):
        return f"a run is restarted from its checkpoint on {count(machines, 'machine')}"
    if machines <= 1:
        return "one machine; its loss stops the service until it is back"
    return f"{count(machines, 'machine')} share the load, the others carry on"


def _effort_words(f: Findings, e: Evaluation) -> str:
    x = f.context.inputs.point()
    words = []
    months = float(rewrite_months(e, x, f.context)[0])
    if months >= 0.5:
        words.append(f"about {rough(months)} engineer-months to move to GPUs")
    if e.spec.placement == "hybrid":
        words.append("two kinds of machines to run")
    if float(e.machines[0]) > 1:
        words.append("a distributed system")
    if e.spec.acquisition == "buy":
        words.append("delivery, room, power and staff")
    if e.spec.acquisition == "spot":
        words.append("requeue and checkpoints for spot")
    return ", ".join(words) if words else "nothing to rewrite, one kind of machine"


__all__ = ["Findings", "Veto", "make_option", "time_of"]
