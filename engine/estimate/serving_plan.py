"""The serving plan: from a request rate and latency targets to replicas, machines and dollars.

`plan_serving` works out every machine that is offered with every layout, sizes a fleet for the
peak of the day with room for failures, and orders what meets the targets by its monthly cost. What
can't be planned (nothing comes, a target below the physical floor, a model that fits nowhere, more
replicas than anybody has) is an answer too, with the floor or the smallest fit named.
Prices come with the machines; nothing is read from a table of prices here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from engine.errors import InputError
from engine.estimate.estimate import Estimate
from engine.estimate.named import named
from engine.estimate.queueing import Array, check, plan_replicas
from engine.estimate.serving_layouts import Candidate, Machine, Precision, candidates
from engine.estimate.serving_points import (
    At,
    Load,
    MemoryItem,
    Targets,
    at_rate,
    curve,
    memory_items,
)
from engine.estimate.shape import ModelShape
from engine.estimate.traffic import Traffic
from engine.wording import number

PARAMETERS = Path(__file__).resolve().parents[2] / "data" / "serving_parameters.csv"
HOURS_PER_MONTH = 730.0
DAYS_PER_MONTH = HOURS_PER_MONTH / 24.0
WORST = 10.0  # largest factor by which a doubtful capacity widens the cost
Scaling = Literal["always_on", "by_hour"]
State = Literal["plan", "no_traffic", "below_floor", "fits_nowhere", "too_many", "no_machines"]


@dataclass(frozen=True, slots=True)
class ServingAsk:
    """What must be served, how fast, on what terms.

    spare : machines that may fail at the peak (of replicas that span machines, that many replicas)
    spare_share : of the machines that carry the load, where that is more
    room : capacity over the traffic, for months that are busier than the mean
    """

    shape: ModelShape
    load: Load
    traffic: Traffic
    targets: Targets
    precision: Precision
    spare: int = 1
    scaling: Scaling = "always_on"
    spare_share: float = 0.0
    room: float = 1.0


@dataclass(frozen=True, slots=True)
class Hour:
    """One hour of the day: requests a second, replicas and machines kept, dollars of that hour."""

    hour: int
    rate: float
    replicas: int
    machines: int
    usd: float


@dataclass(frozen=True, slots=True)
class ServingOption:
    """One way to serve: the machine, its layout, the fleet, what users see and what it costs.

    `replicas` are needed at the peak, `machines` rented for it with the spare ones; `at_peak` is
    one replica at its share of the peak. `usd_per_month` follows the scaling asked for, its range
    joins capacity and price; `usd_always_on` and `usd_by_hour` are the likely value of either.
    `utilization`: mean rate over what the rented machines carry inside the targets.
    """

    candidate: Candidate
    replicas: int
    machines: int
    at_peak: At
    memory: tuple[MemoryItem, ...]
    memory_limit_gib: float
    usd_per_month: Estimate
    usd_always_on: float
    usd_by_hour: float
    usd_per_million_in: float
    usd_per_million_out: float
    utilization: float
    hours: tuple[Hour, ...]

    @property
    def id(self) -> str:
        """A stable name: machine and layout."""
        n = self.candidate.layout
        tail = f"-dp{n.tp}" if n.attention_dp else f"-tp{n.tp}"
        return self.candidate.machine.id + tail + (f"-pp{n.pp}" if n.pp > 1 else "")

    @property
    def gpus(self) -> int:
        """GPUs rented in all; 0 on CPU servers."""
        machine = self.candidate.machine
        return self.machines * machine.per_machine if machine.hardware == "gpu" else 0

    @property
    def replicas_free(self) -> int:
        """Replicas for which the machines that carry the peak have room beyond those needed."""
        each = self.candidate.replicas_per_machine
        return -self.replicas % each


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a machine can't serve: the reason, and the best that it could do."""

    machine: Machine
    floor: str
    ttft_floor_s: float
    tpot_floor_s: float
    needs_gib: float
    has_gib: float


@dataclass(frozen=True, slots=True)
class SmallestFit:
    """The smallest thing that would hold the model: so many of a machine, at so many bits."""

    machine: Machine
    machines: int
    weight_bits: float
    needs_gib: float


@dataclass(frozen=True, slots=True)
class ServingAnswer:
    """The plan. `options` has the best layout of each machine by cost; `best` is its first.

    `candidates` are all that meet the targets, for the frontier; `refused` the machines that don't.
    """

    ask: ServingAsk
    state: State
    message: str
    options: tuple[ServingOption, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    refused: tuple[Refusal, ...] = ()
    smallest: SmallestFit | None = None
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> ServingOption | None:
        """The cheapest option, None where there is no plan."""
        return self.options[0] if self.options else None

    def cheapest(self, hardware: str) -> ServingOption | None:
        """The cheapest option on GPUs or on CPU servers."""
        return next((o for o in self.options if o.candidate.machine.hardware == hardware), None)


def plan_serving(ask: ServingAsk, machines: Sequence[Machine]) -> ServingAnswer:
    """The plan for an ask on the machines that are offered.

    Raises
    ------
    InputError : with the field's name, when a number of the ask can't be used
    """
    _check(ask)
    if not machines:
        return ServingAnswer(
            ask, "no_machines",
            "No machine is offered on these terms where this must run: take other terms of rent, "
            "or add a quote of your own.",
        )  # fmt: skip
    found: list[Candidate] = []
    refused: list[Refusal] = []
    for machine in machines:
        tried = candidates(ask.shape, machine, ask.precision, ask.load, ask.targets)
        good = [c for c in tried if float(c.capacity.requests_per_s) > 0]
        found += good
        if not good and tried:
            refused.append(_refusal(machine, tried, ask))
    if not found:
        return _none(ask, machines, tuple(refused))
    options: list[ServingOption] = []
    too_many = 0.0
    for c in _cheapest_layouts(found, ask):
        try:
            options.append(size(c, ask))
        except InputError:  # more replicas than plan_replicas counts
            too_many = max(too_many, ask.traffic.peak / float(c.capacity.requests_per_s))
    ordered = tuple(sorted(options, key=by_cost))
    if not ordered:
        return ServingAnswer(
            ask, "too_many",
            f"{number(ask.traffic.peak)} requests a second would take some {number(too_many)} "
            "replicas. "
            "Nobody rents that many: split the traffic, shorten answers or take a smaller model.",
            (), tuple(found), tuple(refused),
        )  # fmt: skip
    state: State = "plan" if ask.traffic.mean > 0 else "no_traffic"
    return ServingAnswer(
        ask, state, plan_message(ordered[0], ask), ordered, tuple(found), tuple(refused),
        notes=plan_notes(ordered[0], ask),
    )  # fmt: skip


def size(candidate: Candidate, ask: ServingAsk) -> ServingOption:
    """The fleet of one candidate for the traffic.

    Raises
    ------
    InputError : when more than a million replicas would be needed
    """
    carried = candidate.capacity.requests
    likely = fleet(candidate, ask, carried.likely)
    replicas = max(h.replicas for h in likely)
    machines = max(h.machines for h in likely)
    price = candidate.machine.usd_per_unit_hour
    each = candidate.machine.per_machine * price.likely
    always, by_hour = machines * each * HOURS_PER_MONTH, _daily(likely) * DAYS_PER_MONTH
    usd = by_hour if ask.scaling == "by_hour" else always
    dear, cheap = (_monthly(candidate, ask, x) for x in (carried.low, carried.high))
    usd_range = _joined(usd, (cheap, dear), price)
    share = ask.traffic.peak / replicas if replicas else 0.0
    points = curve(candidate.replica, ask.load, ask.targets.percentile)
    seen = at_rate(points, share)
    full = at_rate(points, min(float(candidate.capacity.requests_per_s), float(points.rate[-1])))
    cost_in, cost_out = _per_million(usd, full.prefill_share, ask)
    able = machines / candidate.machines_per_replica * candidate.replicas_per_machine
    able *= float(candidate.capacity.requests_per_s)
    limit = float(candidate.replica.hw.memory) / 1024.0**3 * candidate.replica.usable
    return ServingOption(
        candidate, replicas, machines, seen,
        memory_items(candidate.replica, ask.load, seen.batch if share else 0.0), limit,
        usd_range, always, by_hour, cost_in, cost_out,
        ask.traffic.mean / able if able else 0.0, likely,
    )  # fmt: skip


def fleet(candidate: Candidate, ask: ServingAsk, requests_per_s: float) -> tuple[Hour, ...]:
    """The fleet hour by hour when one replica carries so many requests a second.

    The spare machines run whenever anything does.
    """
    machine, rates = candidate.machine, ask.traffic.hourly
    # One call judges the numbers and counts what the busiest hour takes.
    plan_replicas(ask.traffic.peak * ask.room, requests_per_s, spare=0)
    needed, kept = _kept(candidate, ask, np.array(requests_per_s), np.array(rates))
    each = machine.per_machine * machine.usd_per_unit_hour.likely
    return tuple(
        Hour(h, rate, int(r), int(m), float(m) * each)
        for h, (rate, r, m) in enumerate(zip(rates, needed, kept, strict=True))
    )


def _kept(
    candidate: Candidate, ask: ServingAsk, requests_per_s: Array, rates: Array
) -> tuple[Array, Array]:
    """Replicas needed and machines kept at rates of an hour, bursts and spare ones included."""
    replicas = np.ceil(rates * ask.traffic.burst * ask.room / requests_per_s - 1e-9)
    replicas = np.where(rates > 0.0, np.maximum(replicas, 1.0), replicas)
    return replicas, with_spare(candidate, replicas, ask)


def with_spare(candidate: Candidate, replicas: Array, ask: ServingAsk) -> Array:
    """Machines for so many replicas, the spare ones with them; none for none.

    Replicas that share a machine fail with it, so whole machines are kept spare; of a replica that
    spans machines, as many as it takes.
    """
    carrying = np.ceil(np.asarray(replicas, dtype=float) / candidate.replicas_per_machine)
    spare = np.maximum(ask.spare, np.ceil(ask.spare_share * carrying - 1e-9))
    return np.where(carrying > 0, carrying + spare, 0.0) * candidate.machines_per_replica


def fleet_usd(candidate: Candidate, ask: ServingAsk, carried: Array, rates: Array) -> Array:
    """Monthly dollars where one replica carries `carried` and the day's mean rate is `rates`.

    Arrays that broadcast; the shape of the day, the spare machines and the scaling are the ask's.
    """
    machine = candidate.machine
    each = machine.per_machine * machine.usd_per_unit_hour.likely
    mean = ask.traffic.mean
    shape = np.array([r / mean if mean > 0 else 1.0 for r in ask.traffic.hourly])
    if ask.scaling == "always_on":
        shape = shape.max(keepdims=True)
    at_hour = np.asarray(rates)[..., None] * shape
    _, machines = _kept(candidate, ask, np.asarray(carried)[..., None], at_hour)
    hours = HOURS_PER_MONTH if ask.scaling == "always_on" else DAYS_PER_MONTH
    return np.asarray(machines.sum(axis=-1) * each * hours)


def _daily(hours: Sequence[Hour]) -> float:
    return math.fsum(h.usd for h in hours)


def _monthly(candidate: Candidate, ask: ServingAsk, requests_per_s: float) -> float:
    """Dollars a month at another capacity, by the scaling asked for; infinite at none."""
    if requests_per_s <= 0:
        return math.inf
    return float(
        fleet_usd(candidate, ask, np.array(requests_per_s), np.array([ask.traffic.mean]))[0]
    )


def _joined(usd: float, by_capacity: tuple[float, float], price: Estimate) -> Estimate:
    """Cost with the ranges of capacity and price joined: independent, so squares of logs add."""
    if usd <= 0:
        return Estimate(0.0, 0.0, 0.0, "USD/month", price.sources)
    cheap, dear = by_capacity
    # A capacity that may be next to nothing says "at least tenfold" and no more.
    dear = min(dear, usd * WORST)
    down = math.hypot(math.log(usd / max(cheap, 1e-9)), math.log(price.likely / price.low))
    up = math.hypot(
        math.log(max(dear, usd) / usd),
        math.log(price.high / price.likely),
    )
    return Estimate(usd * math.exp(-down), usd, usd * math.exp(up), "USD/month", price.sources)


def _per_million(usd: float, prefill_share: float, ask: ServingAsk) -> tuple[float, float]:
    """Dollars per million prompt and answer tokens; cost divided by the time each takes at load."""
    requests = ask.traffic.mean * 3600.0 * HOURS_PER_MONTH
    if requests <= 0:
        return 0.0, 0.0
    tokens_in = requests * ask.load.input_tokens / 1e6
    tokens_out = requests * ask.load.output_tokens / 1e6
    return usd * prefill_share / tokens_in, usd * (1.0 - prefill_share) / tokens_out


def by_cost(option: ServingOption) -> tuple[float, float, int]:
    """Cheapest first; where nothing comes, what one machine costs; then the smaller replica."""
    c = option.candidate
    each = c.machine.per_machine * c.machine.usd_per_unit_hour.likely * c.machines_per_replica
    return option.usd_per_month.likely, each, c.layout.gpus


def _check(ask: ServingAsk) -> None:
    load, targets = ask.load, ask.targets
    check("input_tokens", load.input_tokens, least=1.0)
    check("output_tokens", load.output_tokens, least=1.0)
    check("prefix_hit", load.prefix_hit, least=0.0, below=1.0)
    check("length_cv", load.length_cv, least=0.0)
    for name, value in (("ttft_target_s", targets.ttft_s), ("tpot_target_s", targets.tpot_s)):
        if value is not None:
            check(name, value, above=0.0)
    check("max_load", targets.max_load, above=0.0, below=1.0)
    check("percentile", targets.percentile, above=0.0, below=1.0)
    check("weight_bits", ask.precision.weight_bits, above=0.0)
    check("kv_bytes", ask.precision.kv_bytes, above=0.0)
    check("spare", ask.spare, least=0.0, whole=True)
    check("spare_share", ask.spare_share, least=0.0)
    check("room", ask.room, least=1.0)
    check("rate", ask.traffic.mean, least=0.0)


def _cheapest_layouts(found: Sequence[Candidate], ask: ServingAsk) -> list[Candidate]:
    """Of each machine the layout that costs least for the traffic; the smaller of equals."""
    best: dict[str, tuple[float, float, int, Candidate]] = {}
    rate = np.array([ask.traffic.mean])
    for c in found:
        carried = np.array(float(c.capacity.requests_per_s))
        usd = float(fleet_usd(c, ask, carried, rate)[0])
        each = c.machine.usd_per_unit_hour.likely * c.machines_per_replica
        key = (usd, each, c.layout.gpus, c)
        if c.machine.id not in best or key[:3] < best[c.machine.id][:3]:
            best[c.machine.id] = key
    return [row[3] for row in best.values()]


def _refusal(machine: Machine, tried: Sequence[Candidate], ask: ServingAsk) -> Refusal:
    """The layout that came nearest: one that fits before one that doesn't, then the faster."""
    best = min(
        tried,
        key=lambda c: (not c.capacity.fits, float(c.capacity.ttft_floor_s), -c.layout.gpus),
    )
    if not best.capacity.fits:
        best = max(tried, key=lambda c: c.layout.gpus)
    needs = math.fsum(i.gib for i in memory_items(best.replica, ask.load, 1.0))
    has = float(best.replica.hw.memory) / 1024.0**3 * best.replica.usable
    each = min((c for c in tried if c.capacity.fits), default=best,
               key=lambda c: float(c.capacity.tpot_floor_s))  # fmt: skip
    return Refusal(
        machine, best.capacity.floor, float(best.capacity.ttft_floor_s),
        float(each.capacity.tpot_floor_s), needs, has,
    )  # fmt: skip


def _none(
    ask: ServingAsk, machines: Sequence[Machine], refused: tuple[Refusal, ...]
) -> ServingAnswer:
    """No machine serves: a target below the floor, or a model that fits nowhere."""
    fitting = [r for r in refused if r.floor != "memory"]
    if fitting:
        return ServingAnswer(ask, "below_floor", _floor_message(ask, fitting), refused=refused)
    smallest = _smallest(ask, machines)
    name = ask.shape.name or "This model"
    text = (
        f"{name} needs {ask.shape.total_params * ask.precision.weight_bits / 8e9:,.0f} GB for its "
        f"weights at {ask.precision.weight_bits:g} bits: no machine on offer holds it, alone "
        "or in a pipeline of up to eight."
    )
    if smallest is not None:
        text += (
            f" The smallest thing that would: {smallest.machines:,} × {smallest.machine.label} "
            f"at {smallest.weight_bits:g} bits."
        )
    return ServingAnswer(ask, "fits_nowhere", text, refused=refused, smallest=smallest)


def _floor_message(ask: ServingAsk, fitting: Sequence[Refusal]) -> str:
    """Which target lies below what the fastest machine does for a lone request."""
    parts = []
    targets = ask.targets
    first = min(fitting, key=lambda r: r.ttft_floor_s)
    each = min(fitting, key=lambda r: r.tpot_floor_s)
    if targets.ttft_s is not None and first.ttft_floor_s > targets.ttft_s * 0.96:
        parts.append(
            f"the first token takes {_told(first.ttft_floor_s)} at best "
            f"({first.machine.label}, nobody else served, for {targets.percentile * 100:g} of 100 "
            f"prompts), and {_told(targets.ttft_s)} are asked"
        )
    if targets.tpot_s is not None and each.tpot_floor_s > targets.tpot_s * 0.96:
        parts.append(
            f"a further token takes {_told(each.tpot_floor_s)} at best "
            f"({each.machine.label}), and {_told(targets.tpot_s)} are asked"
        )
    if not parts:
        parts.append(
            "no single machine meets both targets: the one that is quick to the first token is "
            "too slow per token, or the other way round"
        )
    return (
        "No hardware on offer meets these targets: " + "; ".join(parts) + ". Ask for more time, "
        "a smaller model, fewer bits a weight or shorter prompts."
    )


def _told(seconds: float) -> str:
    """A latency in the unit that reads best."""
    return f"{number(seconds)} s" if seconds >= 10 else f"{number(seconds * 1e3)} ms"


def _smallest(ask: ServingAsk, machines: Sequence[Machine]) -> SmallestFit | None:
    """The fewest GPUs of one kind whose memory together holds weights and one request."""
    best: SmallestFit | None = None
    for bits in dict.fromkeys((ask.precision.weight_bits, 8.0, 4.0)):
        for machine in machines:
            if bits > ask.precision.weight_bits:
                continue
            precision = replace(ask.precision, weight_bits=bits)
            tried = candidates(ask.shape, machine, precision, ask.load, Targets(None, None))
            largest = max(tried, key=lambda c: c.layout.gpus)
            has = float(largest.replica.hw.memory) / 1024.0**3 * largest.replica.usable
            parts = memory_items(largest.replica, ask.load, 1.0)
            fixed = parts[2].gib + parts[3].gib
            if fixed >= has:
                continue
            whole = (parts[0].gib + parts[1].gib) * largest.layout.gpus
            gpus = math.ceil(whole / (has - fixed))
            count = math.ceil(gpus / machine.per_machine)
            here = SmallestFit(machine, count, bits, whole + gpus * fixed)
            if best is None or _fewer(here) < _fewer(best):
                best = here
    return best


def _fewer(fit: SmallestFit) -> tuple[bool, float, int, float]:
    """GPUs before servers; the precision asked for before fewer bits; then the fewest devices."""
    machine = fit.machine
    usd = fit.machines * machine.per_machine * machine.usd_per_unit_hour.likely
    devices = fit.machines * machine.per_machine
    return machine.hardware == "cpu", -fit.weight_bits, devices, usd


def plan_message(best: ServingOption, ask: ServingAsk) -> str:
    """The plan in a sentence or two."""
    c = best.candidate
    if ask.traffic.mean <= 0:
        return (
            "Nothing comes, so nothing needs to run. One replica would be "
            f"{c.machine.label} ({c.layout.told(ask.shape.is_moe)}) and carry "
            f"{number(float(c.capacity.requests_per_s))} requests a second."
        )
    return (
        f"{best.machines:,} × {c.machine.label} carry {number(ask.traffic.peak)} requests a second "
        f"at the peak: {best.replicas:,} replicas needed, spare machines: "
        f"{best.machines - c.machines(best.replicas):,}."
    )


def plan_notes(best: ServingOption, ask: ServingAsk) -> tuple[str, ...]:
    """What must be known beside the plan."""
    notes = list(best.candidate.capacity.notes)
    mark = named(PARAMETERS)["many_replicas"].likely
    if best.replicas >= mark:
        notes.append(
            f"{best.replicas:,} replicas are more than any single provider is known to have free: "
            "spread them over regions and providers, or shorten prompts and answers first"
        )
    if not ask.shape.exact and ask.shape.why_approximate:
        notes.append(f"the model's shape is {ask.shape.why_approximate}")
    return tuple(notes)


def best_layout(answer: ServingAnswer, option_id: str, machine: str = "") -> ServingOption | None:
    """The option of an answer with an id; else of a machine, by its id; else the best."""
    named_so = (o for o in answer.options if o.id == option_id)
    on_it = (o for o in answer.options if o.candidate.machine.id == machine)
    return next(named_so, None) or next(on_it, answer.best)
