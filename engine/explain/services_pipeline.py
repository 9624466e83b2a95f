"""The pipeline of an assessment placed stage by stage, beside all-CPU and all-GPU.

Stages are those that the terms list, else those that the kind of work has. Every placement is
worked out on every likely pair of CPU server and GPU on offer; the cheapest inside the deadline is
taken. Prices are on demand: a stage's machines are paid while it runs. Where the data must stay in
own rooms, machines are owned: stages on one kind share them, and they are paid all month.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from engine.assessment import Assessment, PriceRef
from engine.catalogue import Catalogue, load_catalogue
from engine.decide.candidates import Unit
from engine.decide.context import Setting, setting
from engine.decide.evaluation import Context, Values
from engine.decide.inputs import standard_normal
from engine.decide.job_hours import accelerator_speed, reference_server_hours
from engine.decide.model_rates import model_of
from engine.decide.numbers import Array, Mask
from engine.decide.owning import Owner
from engine.decide.paying import usd_per_month
from engine.decide.service_sizing import service_parameters
from engine.errors import InputError
from engine.estimate.estimate import Estimate
from engine.estimate.jobs import REFERENCE_VCPU
from engine.estimate.named import Named
from engine.estimate.pipelines import Hardware, Placed, Stage, Terms, place
from engine.explain.jobs_owning import in_own_rooms, paid_as, price_for
from engine.wording import money, number
from engine.workload.answers import Kind
from engine.workload.services_terms import ServicesTerms
from engine.workload.workload import HOURS_PER_MONTH, Workload

CPU_UNITS, GPU_UNITS = 6, 8
DRAWS = 128
Z90 = 1.2815515655446004
SHOWN = 6


@dataclass(frozen=True, slots=True)
class StagePlace:
    """Where one stage runs, on how many units, for how long, and what it costs a month."""

    name: str
    hardware: str
    on_gpu: bool
    units: int
    hours: float
    moved_hours: float
    usd: float
    standing: bool


@dataclass(frozen=True, slots=True)
class HourPrice:
    """An hour on demand of one unit of a way's hardware; `ref` None where it is a quote.

    owned : the hour is a part of what owning a machine costs, whether it is used or not
    """

    name: str
    usd_per_unit_hour: float
    ref: PriceRef | None
    owned: bool = False


@dataclass(frozen=True, slots=True)
class Way:
    """One placement: hours of a run and USD a month; infinite where the deadline can't be kept.

    prices : of the hardware that its stages use
    """

    label: str
    hours: float
    usd: float
    stages: tuple[StagePlace, ...]
    egress_usd: float
    cpu: str
    gpu: str
    prices: tuple[HourPrice, ...]


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """The best placement beside all-CPU and all-GPU, each on the hardware that suits it best.

    probability : that this placement stays the cheapest, on the same hardware
    saves_cpu, saves_gpu : share of their cost; None where they can't keep the deadline
    owned : whether the machines stand in own rooms
    """

    stages: tuple[Stage, ...]
    own: bool
    best: Way | None
    all_cpu: Way
    all_gpu: Way
    others: tuple[Way, ...]
    usd: Estimate | None
    probability: float
    tried: int
    deadline_h: float
    runs: float
    why_not: str = ""
    owned: bool = False

    @property
    def limit_h(self) -> float:
        """What a run may take: the deadline, or its part of the month [h]."""
        return min(self.deadline_h, HOURS_PER_MONTH / max(self.runs, 1e-9))

    @property
    def paid(self) -> str:
        """How the machines are had, in words."""
        if self.owned:
            return (
                "owned, as the data must stay in your own rooms; stages on one kind share the "
                "machines, which are paid whether they work or not"
            )
        return "on demand; machines are paid while their stage runs, and while they start"

    @property
    def saves_cpu(self) -> float | None:
        """Saved against the best all-CPU."""
        return _saved(self.best, self.all_cpu)

    @property
    def saves_gpu(self) -> float | None:
        """Saved against the best all-GPU."""
        return _saved(self.best, self.all_gpu)


def _saved(best: Way | None, other: Way) -> float | None:
    if best is None or not np.isfinite(other.usd) or other.usd <= 0:
        return None
    return 1.0 - best.usd / other.usd


def has_stages(answer: Assessment) -> bool:
    """Whether there is a pipeline to place: stages of its own, or a kind that has several."""
    terms = answer.settings.architecture
    return bool(terms.stage_hours) or answer.workload.kind is Kind.pipeline


def plan(answer: Assessment, catalogue: Catalogue | None = None) -> PipelinePlan:
    """Place the stages; see the module.

    Raises
    ------
    InputError : no stages, or no hardware
    """
    if not has_stages(answer):
        raise InputError("there are no stages", where="stages", right="one stage or more")
    return placed_on(
        setting(answer.workload, catalogue or load_catalogue(), answer.today, answer.settings)
    )


def placed_on(setup: Setting) -> PipelinePlan:
    """The stages of a job on the hardware on offer."""
    ctx, catalogue = setup.context, setup.context.catalogue
    w, told = ctx.workload, ctx.settings.architecture
    x = ctx.inputs.point()
    rows = service_parameters()
    owned = in_own_rooms(w)
    terms = Terms(
        deadline_h=float(x["patience_h"][0]) if not told.stage_hours else _deadline(w),
        runs_per_month=float(x["runs_per_month"][0]),
        wire_share=rows["wire_share"].likely,
        egress_usd=lambda provider, gb: 0.0 if owned else _egress(catalogue, provider, gb),
        region_usd_per_gb=catalogue.running["egress-inter-region"].likely,
    )
    pairs = _pairs(setup)
    found = [(c, g, _placed(c, g, setup, x, told, terms, rows)) for c, g in pairs]
    premium = rows["fewer_machines_premium"].low
    ways = {i: _on_pair(i, found, premium) for i in range(len(found[0][2].on_gpu))}
    stages = _stages(*pairs[0], setup, x, told)
    made = {i: _way(i, c, g, p, stages, owned) for i, (c, g, p) in ways.items()}
    order = sorted(made, key=lambda i: made[i].usd)
    last = len(made) - 1
    feasible = [i for i in order if np.isfinite(made[i].usd)]
    best = feasible[0] if feasible else None
    estimate, probability = None, 0.0
    if best is not None:
        c, g, _ = ways[best]
        estimate, probability = _sure(best, c, g, setup, x, told, terms, rows)
    return PipelinePlan(
        stages=tuple(stages),
        own=bool(told.stage_hours),
        best=None if best is None else made[best],
        all_cpu=made[0],
        all_gpu=made[last],
        others=tuple(made[i] for i in feasible[1 : 1 + SHOWN]),
        usd=estimate,
        probability=probability,
        tried=len(made) * len(pairs),
        deadline_h=terms.deadline_h,
        runs=terms.runs_per_month,
        why_not="" if best is not None else _why_not(stages, terms, owned),
        owned=owned,
    )


def stages_note(ctx: Context, gpus: list[Unit], cpus: list[Unit]) -> str:
    """What the stages cost each where it belongs: those that the person listed, or a pipeline's.

    The recommendation answers for the job as one: this stands beside it, told. Empty without any.
    """
    told = ctx.settings.architecture
    if not told.stage_hours and ctx.workload.kind is not Kind.pipeline:
        return ""
    p = placed_on(Setting(ctx, gpus, cpus))
    n = len(told.stage_hours)
    own = "You listed a stage of your own. " if n == 1 else f"You listed {n} stages of your own. "
    head = own if n else ""
    if p.best is None:
        return head + p.why_not
    on = "; ".join(f"{s.name} on {s.units:,} × {s.hardware}" for s in p.best.stages)
    others = [
        f"all on {kind} it would be {money(way.usd)}"
        for kind, way in (("CPU servers", p.all_cpu), ("GPUs", p.all_gpu))
        if np.isfinite(way.usd) and way.label != p.best.label
    ]
    beside = f" ({', '.join(others)})" if others else ""
    paid = "owned" if p.owned else "on demand"
    if not n:
        return (
            f"With machines of its own for each stage, at the least cost, it would be "
            f"{money(p.best.usd)} a month {paid}{beside}: {on}. The recommendation has one size of "
            "machine for stages of one kind, and weighs time, effort, risk and terms beside the "
            "cost; the page of services and pipelines has the plan by stages."
        )
    return (
        f"{head}Each where it belongs, they cost {money(p.best.usd)} a month {paid}{beside}: "
        f"{on}. The rest of this page answers for the job as one, from its own answers; where you "
        "know the stages, follow their plan on the page of services and pipelines."
    )


def stages_elsewhere(ctx: Context) -> str:
    """That stages are placed on a page of their own, told where a part of them is planned."""
    n = len(ctx.settings.architecture.stage_hours)
    if n:
        what = "the stage" if n == 1 else f"the {n} stages"
        return (
            f"This page is about the job as one, from its own answers. It leaves out {what} that "
            "you listed: they are placed and priced on the page of services and pipelines."
        )
    if ctx.workload.kind is Kind.pipeline:
        return (
            "This page is about the model that serves. The stages before it are placed and priced "
            "on the page of services and pipelines."
        )
    return ""


def _deadline(w: Workload) -> float:
    """For own stages: the deadline that was told; else none but the month's own end."""
    days = w.deadline_days
    return days * 24 if days is not None else HOURS_PER_MONTH


def _egress(catalogue: Catalogue, provider: str, gb: float) -> float:
    """Price of what leaves a provider; where its own is not known, the median of those known."""
    try:
        return catalogue.egress_usd(provider, gb)
    except InputError:
        known = {p.provider for p in catalogue.running.values() if p.category == "egress"}
        prices = []
        for name in known:
            try:
                prices.append(catalogue.egress_usd(name, gb))
            except InputError:
                continue
        return float(np.median(prices))


def _pairs(setup: Setting) -> list[tuple[Unit, Unit]]:
    """Pairs of the servers and GPUs that give most for a dollar, on the job's terms."""
    w = setup.context.workload

    def price(u: Unit) -> float:
        return u.prices[paid_as(w)].likely

    servers = [u for u in setup.cpus if price_for(u, w) is not None]
    had = [u for u in setup.gpus if price_for(u, w) is not None]
    cpus = sorted(servers, key=lambda u: price(u) / u.vcpu)[:CPU_UNITS]
    single = [u for u in had if u.per_machine == 1] or had
    gpus = sorted(single, key=lambda u: price(u) / accelerator_speed(u, setup.context))[:GPU_UNITS]
    # The cheapest GPU by the hour suits work that leaves it idle.
    cheap = min(single, key=price)
    gpus = [*gpus, *([cheap] if cheap not in gpus else [])]
    return [(c, g) for c in cpus for g in gpus]


def _on_pair(
    i: int, found: Sequence[tuple[Unit, Unit, Placed]], premium: float
) -> tuple[Unit, Unit, Placed]:
    """The pair for a placement: the fewest units among those that cost hardly more."""
    least = min(p.usd[i, 0] for _, _, p in found)
    near = [x for x in found if x[2].usd[i, 0] <= least * (1 + premium)]
    return min(near, key=lambda x: (x[2].units[i, 0].sum(), x[2].usd[i, 0]))


def _hardware(unit: Unit, rows: dict[str, Named], ctx: Context) -> Hardware:
    price = unit.prices[paid_as(ctx.workload)]
    network = (
        unit.network_gbit_per_s
        or rows["gpu_host_gbit_per_s" if unit.hardware == "gpu" else "server_gbit_per_s"].likely
    )
    servers = unit.vcpu / REFERENCE_VCPU
    owner = price.owner
    if owner is not None:
        each = owner.units_per_machine
        hour = price.likely / HOURS_PER_MONTH
        bill = partial(_bill, owner, ctx.workload.horizon_months)
        return Hardware(unit.name, "own rooms", hour, servers, network, each, owned=bill)
    provider = price.ref.provider if price.ref is not None else "your quote"
    region = price.ref.region if price.ref is not None else ""
    return Hardware(
        unit.name, provider, price.likely, servers, network, unit.per_machine,
        "" if region == "any" else region,
        start_h=ctx.inputs.ranges[f"{unit.hardware}_start_h"].likely,
    )  # fmt: skip


def _bill(owner: Owner, months: int, units: Array, used_hours: Array, both: Mask) -> Array:
    """US dollars a month of owning so many units; infinite where the room can't take them.

    both : where a stated staff looks after machines of another kind, too
    """
    machines = np.ceil(units / owner.units_per_machine - 1e-9)
    alone, shared = (
        usd_per_month(tuple(owner.lines(machines, used_hours, part)), months, len(units))
        for part in (1.0, 0.5)
    )
    usd = np.where(both, shared, alone)
    return np.asarray(np.where(owner.refused(np.maximum(machines, 1.0)), np.inf, usd))


def _stages(cpu: Unit, gpu: Unit, setup: Setting, x: Values, told: ServicesTerms) -> list[Stage]:
    """The stages as they are on this pair: a faster GPU speeds up more."""
    ctx = setup.context
    relative = accelerator_speed(gpu, ctx)
    sigma = float(x["contention"][0])
    if told.stage_hours:
        listed = zip(
            told.names, told.stage_hours, told.stage_speedups, told.stage_fractions_pct,
            told.stage_gb, strict=True,
        )  # fmt: skip
        return [
            Stage(
                name,
                hours,
                pct / 100,
                s if s <= 1 else max(s * relative, 1.0),
                gb,
                contention=sigma,
            )
            for name, hours, s, pct, gb in listed
        ]
    whole = float(reference_server_hours(x, ctx)[0])
    found = []
    told_gb = ctx.workload.data_gb
    gb = told_gb if told_gb is not None else float(x["working_set_gb"][0])
    for part in ctx.stages:
        if part.mode == "service":
            found.append(Stage(part.title, 0.0, 1.0, 1.0, standing=_standing(cpu, gpu, ctx, x)))
            continue
        share = float(x[f"{part.name}.share"][0]) if f"{part.name}.share" in x else 1.0
        found.append(
            Stage(
                part.title,
                whole * share,
                float(x[part.key("parallel_fraction")][0]),
                float(x[part.key("gpu_speedup")][0]) * relative,
                gb,
                io_share=float(x[part.key("io_share")][0]),
                splits=part.splits,
                contention=sigma,
            )
        )
    return found


def _standing(cpu: Unit, gpu: Unit, ctx: Context, x: Values) -> tuple[float, float]:
    """Servers and GPUs that the serving stage's peak keeps busy at the planned load."""
    peak = float((x["rate_per_s"] * x["peak_factor"])[0])
    part = tuple(s for s in ctx.stages if s.mode == "service")
    model = model_of(x, ctx)
    on_cpu, on_gpu = (float(model.requests_per_s(unit, part)[0]) for unit in (cpu, gpu))
    return max(peak / on_cpu, 1e-6), max(peak / on_gpu, 1e-6)


def _placed(
    cpu: Unit, gpu: Unit, setup: Setting, x: Values, told: ServicesTerms, terms: Terms,
    rows: dict[str, Named],
) -> Placed:  # fmt: skip
    return place(
        _stages(cpu, gpu, setup, x, told),
        _hardware(cpu, rows, setup.context),
        _hardware(gpu, rows, setup.context),
        terms,
    )


def _way(i: int, cpu: Unit, gpu: Unit, p: Placed, stages: Sequence[Stage], owned: bool) -> Way:
    names = ["GPU" if g else "CPU" for g in p.on_gpu[i]]
    rows = tuple(
        StagePlace(
            s.name,
            gpu.name if p.on_gpu[i, j] else cpu.name,
            bool(p.on_gpu[i, j]),
            int(p.units[i, 0, j]),
            float(p.stage_hours[i, 0, j]),
            float(p.moved_hours[i, 0, j]),
            float(p.stage_usd[i, 0, j]),
            s.standing is not None,
        )
        for j, s in enumerate(stages)
    )
    used = [unit for unit, name in ((cpu, "CPU"), (gpu, "GPU")) if name in names]
    prices = tuple(
        HourPrice(u.name, _owned_hour(u.name, rows), None, owned=True)
        if owned
        else HourPrice(u.name, u.prices["on_demand"].likely, u.prices["on_demand"].ref)
        for u in used
    )
    return Way(
        " → ".join(names), float(p.hours[i, 0]), float(p.usd[i, 0]), rows, float(p.egress[i]),
        cpu.name, gpu.name, prices,
    )  # fmt: skip


def _owned_hour(name: str, rows: Sequence[StagePlace]) -> float:
    """US dollars of an hour of one unit that is owned, used or not."""
    here = [s for s in rows if s.hardware == name]
    shared = max((s.units for s in here if not s.standing), default=0)
    units = shared + sum(s.units for s in here if s.standing)
    return sum(s.usd for s in here) / (max(units, 1) * HOURS_PER_MONTH)


def _sure(
    best: int, cpu: Unit, gpu: Unit, setup: Setting, x: Values, told: ServicesTerms,
    terms: Terms, rows: dict[str, Named],
) -> tuple[Estimate, float]:  # fmt: skip
    """Range of the cost, and how often the placement stays the cheapest on its hardware."""
    stages = _stages(cpu, gpu, setup, x, told)
    z = standard_normal(2 * len(stages), DRAWS)
    k = len(stages)
    hours = rows["stage_hours_spread"].likely ** (z[:, :k] / Z90)
    speed = rows["stage_speedup_spread"].likely ** (z[:, k:] / Z90)
    pair = _hardware(cpu, rows, setup.context), _hardware(gpu, rows, setup.context)
    drawn = place(stages, *pair, terms, hours_factor=hours, speedup_factor=speed)
    point = place(stages, *pair, terms)
    usd = drawn.usd[best]
    usd = usd[np.isfinite(usd)]
    likely_usd = float(point.usd[best, 0])
    low, high = np.quantile(usd, [0.1, 0.9]) if len(usd) else (likely_usd, likely_usd)
    some = np.isfinite(drawn.usd).any(axis=0)
    wins = float(np.mean((drawn.usd.argmin(axis=0) == best)[some])) if some.any() else 0.0
    return Estimate(
        min(float(low), likely_usd), likely_usd, max(float(high), likely_usd), "USD a month",
        ("hours and speed-ups of the stages may be off",
         "costs of owning" if in_own_rooms(setup.context.workload) else "on-demand prices"),
    ), wins  # fmt: skip


def _why_not(stages: Sequence[Stage], terms: Terms, owned: bool) -> str:
    """The stage whose serial part leaves no room, in words."""
    limit = min(terms.deadline_h, HOURS_PER_MONTH / max(terms.runs_per_month, 1e-9))
    serial = [
        (0.0 if s.splits else (1 - s.io_share) * (1 - s.fraction) * s.hours, s.name) for s in stages
    ]
    most, name = max(serial)
    total = sum(h for h, _ in serial)
    if total > limit:
        return (
            f"The parts that do not divide take {number(total)} h, more than the {number(limit)} h "
            f"that a run has; most of them in “{name}” ({number(most)} h). No number of machines "
            "helps."
        )
    room = " that your own rooms can take" if owned else ""
    return (
        f"No number of machines up to 4,096 a stage{room} finishes a run within {number(limit)} h."
    )
