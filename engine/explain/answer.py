"""The answer in words: the sentence, the reasons for and against, what would change it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from engine.assessment import (
    PLACEMENT_LABELS,
    Assessment,
    Assumption,
    Flip,
    Option,
    PriceRef,
    Question,
    Reason,
    StagePlan,
    Veto,
)
from engine.decide.candidates import cpu_units, gpu_units
from engine.decide.evaluation import Context
from engine.decide.findings import Findings, usd_per_point
from engine.decide.idle import headed, idle_note
from engine.decide.paying import starting_usd_per_month
from engine.decide.priors import likely
from engine.decide.sensitivity import Turn
from engine.decide.sharding import shard_note
from engine.decide.starting import start_note
from engine.decide.storing import storage_note
from engine.estimate.estimate import Estimate
from engine.explain.architecture import architecture
from engine.explain.evidence import Case, verdicts
from engine.explain.services_pipeline import stages_note
from engine.wording import count, duration, money, quantity, rough
from engine.workload.answers import Kind
from engine.workload.workload import LLM_TRAINING, Workload

NUMBER_WORDS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve",
)  # fmt: skip
VERBS = {
    "on_demand": ("Rent", "on demand"),
    "spot": ("Rent", "on spot terms"),
    "dedicated": ("Rent", "by the month"),
    "reserved_1y": ("Reserve", "for one year"),
    "reserved_3y": ("Reserve", "for three years"),
    "buy": ("Buy", ""),
}
INPUT_TITLES = {
    "io_share": "Share of time in disk and network",
    "contention": "Loss per further machine",
    "patience_h": "How long a run may take",
    "rewrite_months": "Effort to move to GPUs",
    "gpu_market_factor": "GPU prices against today's",
    "cpu_market_factor": "CPU prices against today's",
    "gpu_efficiency_factor": "GPU throughput against the estimate",
    "cpu_efficiency_factor": "CPU throughput against the estimate",
    "spot_capacity_share": "Share of the time in which spot capacity can be had",
    "spot_interruptions_per_node_day": "Spot interruptions a node and day",
    "restart_h": "Time of a restart",
    "gpu_start_h": "Time until a rented GPU machine works",
    "cpu_start_h": "Time until a rented server works",
    "mtbf_gpu_hours": "GPU-hours between failures",
    "owning_place_in_range": "Cost of owning: 0.5 at its cheap end, 2 at its dear end",
}


def explain(f: Findings, options: list[Option]) -> Assessment:
    """Put the findings into words."""
    context = f.context
    best = options[0]
    placements = _placement_probability(options)
    busy = sum(s.utilization * s.usd_per_month.likely for s in best.stages)
    utilization = _stated_utilization(context, best, busy)
    case = Case(context, best, utilization, _price_ratio(f))
    reasons = _reasons(f, options)
    return Assessment(
        workload=context.workload,
        today=f.today,
        sentence=headed(context.workload, _sentence(context, best)),
        sureness=_sureness(best, placements, f.uncertainty is not None),
        best=best,
        options=tuple(options),
        ruled_out=tuple(_ruled_out(options)),
        reasons_for=tuple(reasons[:3]),
        reason_against=_against(f, options),
        rules=verdicts(case),
        flips=tuple(_flips(f)),
        next_questions=tuple(_questions(f)),
        assumptions=tuple(_assumptions(context)),
        architecture=architecture(context, best),
        shares=tuple(context.inputs.shares.items()),
        warnings=(
            *_idle(f),
            *f.notes,
            *_storage(f),
            *_shards(f),
            *_starts(f),
            *_stages(f),
            *_warnings(best),
        ),
        draws=0 if f.uncertainty is None else 4096,
        price_alternatives=_alternatives(f),
        placement_probability=placements,
        settings=context.settings,
    )


def _idle(f: Findings) -> tuple[str, ...]:
    """What is shown where nothing runs."""
    note = idle_note(f.context.workload)
    return (note,) if note else ()


def _storage(f: Findings) -> tuple[str, ...]:
    """What of the recommendation's cost is storage, where it is worth a word."""
    fees = f.evaluations[f.best].fees
    note = storage_note(fees, f.context.inputs.point(), f.context) if fees else ""
    return (note,) if note else ()


def _shards(f: Findings) -> tuple[str, ...]:
    """What of the recommendation's cost is for people who run the shards of a database."""
    note = shard_note(f.evaluations[f.best].pools, f.context)
    return (note,) if note else ()


def _starts(f: Findings) -> tuple[str, ...]:
    """What of the cost the starts are where machines are rented for one short run after another."""
    e, x = f.evaluations[f.best], f.context.inputs.point()
    months = f.context.workload.horizon_months
    notes = [
        start_note(
            pool.unit.name, float(starting_usd_per_month(pool, months)[0]),
            float(pool.usd_per_month[0]), float(x["runs_per_month"][0]),
            float(x[f"{pool.unit.hardware}_start_h"][0]),
        )
        for pool in e.pools
    ]  # fmt: skip
    return tuple(n for n in notes if n)


def _stages(f: Findings) -> tuple[str, ...]:
    """The plan of the stages that the person listed, or of a pipeline's."""
    ctx, costs = f.context, f.context.settings.costs
    if not ctx.settings.architecture.stage_hours and ctx.workload.kind is not Kind.pipeline:
        return ()
    gpus = gpu_units(ctx.catalogue, ctx.workload, f.today, costs)
    return (stages_note(ctx, gpus, cpu_units(ctx.catalogue, ctx.workload, f.today, costs)),)


# --- the sentence

# Sources of the vetoes on hardware that can't hold the model.
HOLDS_NOT = frozenset({"memory of the serving model", "memory estimate"})


def in_words(n: int) -> str:
    """Small numbers as words, others as figures."""
    return NUMBER_WORDS[n] if n < len(NUMBER_WORDS) else f"{n:,}"


def _hardware(plan: StagePlan) -> str:
    if plan.hardware == "gpu":
        return f"{in_words(plan.units)} {plan.name}"
    word = "CPU server" if plan.units == 1 else "CPU servers"
    return f"{in_words(plan.units)} {word} with {plan.vcpu:.0f} vCPU ({plan.name})"


def _sentence(context: Context, best: Option) -> str:
    """One sentence in plain words; says so when nothing on offer meets every constraint."""
    gpu_first = sorted(best.stages, key=lambda s: s.hardware != "gpu")
    lead, rest = gpu_first[0], gpu_first[1:]
    verb, terms = VERBS[best.acquisition]
    text = f"{verb} {_hardware(lead)}{' ' + terms if terms else ''}"
    if rest:
        text += "; " + "; ".join(f"run {s.stage.lower()} on {_hardware(s)}" for s in rest)
    if best.scale == "one_machine":
        text = f"One machine is enough: {text[0].lower()}{text[1:]}"
    text += "."
    if best.vetoes:
        reasons = "; ".join(v.reason for v in best.vetoes[:2])
        memory = next((v for v in best.vetoes if v.source in HOLDS_NOT), None)
        if memory is not None:
            # The count of machines that do not hold the model says nothing.
            page = "Training" if context.workload.kind in LLM_TRAINING else "Serving"
            return (
                f"Nothing on offer can do this job: {memory.reason}. The {page} plan names the "
                "smallest thing that would."
            )
        return f"Nothing on offer meets every constraint. The nearest: {text} But {reasons}."
    return text


def _placement_probability(options: list[Option]) -> tuple[tuple[str, float], ...]:
    total: dict[str, float] = {}
    for o in options:
        total[o.placement] = total.get(o.placement, 0.0) + o.probability_best
    return tuple(sorted(total.items(), key=lambda pair: -pair[1]))


def _sureness(best: Option, placements: tuple[tuple[str, float], ...], drawn: bool) -> str:
    """How sure, in words with the number behind them."""
    if not drawn:
        return "Not yet weighed against what is uncertain"
    if best.vetoes:
        return "No option is allowed, so none is best"
    share = dict(placements).get(best.placement, 0.0)
    name = PLACEMENT_LABELS[best.placement]
    words = (
        "Very sure" if share >= 0.9 else "Fairly sure" if share >= 0.75
        else "More likely than not" if share >= 0.5 else "Open"
    )  # fmt: skip
    return f"{words}: {name} comes out best in {share * 100:.0f} of 100 draws"


# --- reasons


def _rivals(options: list[Option]) -> list[Option]:
    """The best allowed option of each other placement, else of other terms."""
    best = options[0]
    rivals = []
    for placement in ("gpu", "cpu", "hybrid"):
        if placement == best.placement:
            continue
        of_it = [o for o in options if o.placement == placement and not o.vetoes]
        if of_it:
            rivals.append(of_it[0])
    if not rivals:
        rivals = [o for o in options[1:] if not o.vetoes and o.acquisition != best.acquisition][:1]
    return rivals


def _reasons(f: Findings, options: list[Option]) -> list[Reason]:
    """Arguments for the recommendation, strongest first; one a subject."""
    best = options[0]
    found: dict[str, Reason] = {}

    def add(subject: str, reason: Reason) -> None:
        if subject not in found or found[subject].points < reason.points:
            found[subject] = reason

    for placement in ("gpu", "cpu", "hybrid"):
        of_it = [o for o in options if o.placement == placement]
        if placement == best.placement or not of_it or any(not o.vetoes for o in of_it):
            continue
        veto = _common_veto(of_it)
        name = {"gpu": "GPUs are", "cpu": "CPU servers are", "hybrid": "A mix is"}[placement]
        weight = 0.6 if placement != "hybrid" else 0.12
        add(f"veto {placement}", Reason(f"{name} ruled out: {veto.reason}", veto.source, weight))
    for rival in _rivals(options):
        for mine, theirs in zip(best.contributions, rival.contributions, strict=True):
            gain = mine.points - theirs.points
            if gain > 0.005:
                add(mine.criterion, _compared(best, rival, mine.criterion, gain))
    _against_today(f, best, add)
    _acquisition_reason(best, options, add)
    _physics_reasons(f, best, add)
    return sorted(found.values(), key=lambda r: -r.points)


def _common_veto(barred: list[Option]) -> Veto:
    """The veto that all of them share, else the first of the cheapest."""
    cheapest = min(barred, key=lambda o: o.usd_per_month.likely)
    for veto in cheapest.vetoes:
        if all(any(v.field == veto.field for v in o.vetoes) for o in barred):
            return veto
    return cheapest.vetoes[0]


def _compared(best: Option, rival: Option, criterion: str, gain: float) -> Reason:
    """A criterion on which the recommendation is ahead of a rival, with both numbers."""
    mine = next(c for c in best.contributions if c.criterion == criterion)
    theirs = next(c for c in rival.contributions if c.criterion == criterion)
    other = PLACEMENT_LABELS[rival.placement]
    if rival.placement == best.placement:
        other = rival.label
    if criterion == "cost":
        a, b = best.usd_per_month.likely, rival.usd_per_month.likely
        far = "far " if b > 2.5 * a else ""
        text = f"It is {far}cheaper: {money(a)} a month against {money(b)} for {other}"
        if b <= a:
            text = _over_the_range("cost", best.usd_per_month, rival.usd_per_month, other)
        return Reason(text, mine.source, gain, counted=True)
    if criterion == "time":
        a, b = best.time.likely, rival.time.likely
        if b <= a:
            text = _over_the_range("time", best.time, rival.time, other)
        elif best.time.unit == "h":
            faster = b / max(a, 1e-9)
            text = f"A run takes {duration(a)}, {rough(faster)} times as fast as {other} "
            text += f"({duration(b)})"
        else:
            text = f"Answers take {rough(a)} ms against {rough(b)} ms for {other}"
        return Reason(text, mine.source, gain, counted=True)
    text = f"{mine.title}: {mine.because}; {other}: {theirs.because}"
    return Reason(text, mine.source, gain, counted=True)


def _over_the_range(what: str, mine: Estimate, theirs: Estimate, other: str) -> str:
    """Why the mean of all cases is ahead where the likely value is not: how far both reach."""
    one = money if mine.unit.startswith("USD") else partial(quantity, unit=mine.unit)
    shown = [
        f"{quantity(x.likely, x.unit)} ({one(x.low)} to {one(x.high)})" for x in (mine, theirs)
    ]
    return f"Over all cases its {what} counts better: {shown[0]} against {shown[1]} for {other}"


def _against_today(f: Findings, best: Option, add) -> None:  # type: ignore[no-untyped-def]
    """What changes against what runs today, where that was told."""
    w = f.context.workload
    if best.time.unit != "h" or not w.hours_per_run or w.hours_per_run < 1.2 * best.time.likely:
        return
    faster = w.hours_per_run / best.time.likely
    text = f"A run takes {duration(best.time.likely)}, {rough(faster)} times as fast as today"
    if w.current_usd_per_month:
        text += (
            f", for {money(best.usd_per_month.likely)} a month against "
            f"{money(w.current_usd_per_month)} today"
        )
    add("today", Reason(text, "your answers", 0.28))


def _acquisition_reason(best: Option, options: list[Option], add) -> None:  # type: ignore[no-untyped-def]
    """Why these terms: the same hardware on the next best terms."""
    rivals = [
        o
        for o in options[1:]
        if o.placement == best.placement
        and o.acquisition != best.acquisition
        and o.stages[0].sku == best.stages[0].sku
    ]
    if not rivals:
        return
    barred = [o for o in rivals if o.vetoes]
    if len(barred) == len(rivals):
        veto = barred[0].vetoes[0]
        add("terms", Reason(f"Only these terms are allowed: {veto.reason}", veto.source, 0.5))
        return
    rival = min((o for o in rivals if not o.vetoes), key=lambda o: -o.score)
    a, b = best.usd_per_month.likely, rival.usd_per_month.likely
    use = best.stages[0].utilization if best.acquisition not in ("on_demand", "spot") else None
    text = (
        f"These terms cost {money(a)} a month against {money(b)} {rival.label.rsplit(', ', 1)[-1]}"
    )
    if use is not None:
        text += f" at {use:.0%} use"
    else:
        hours = best.stages[0].busy_hours_per_month
        text += f"; {hours:,.0f} useful hours a month are paid and no idle ones"
    if b > a:
        add("terms", Reason(text, best.contributions[0].source, min(0.25, 0.1 + 0.1 * (b / a - 1))))
    else:
        add(
            "terms",
            Reason(text + "; they bind less or fail less", best.contributions[0].source, 0.06),
        )


def _physics_reasons(f: Findings, best: Option, add) -> None:  # type: ignore[no-untyped-def]
    """What the bottleneck, the size and the network say."""
    context = f.context
    r = context.inputs.ranges
    p, b = r["parallel_fraction"].likely, r["io_share"].likely
    shares = context.inputs.shares
    top = max(shares, key=lambda k: shares[k])
    if (
        best.placement == "cpu"
        and context.workload.kind not in LLM_TRAINING
        and not any(s.gpu_native and s.work != "core_ms" for s in context.stages)
    ):
        ceiling = 1 / ((1 - b) * (1 - p) + b)
        io = top in ("disk_io", "network")
        name = "I/O" if io else top.replace("_", " ")
        text = (
            f"The bottleneck is {name} ({shares[top]:.0%} of the time): with {b:.0%} in I/O and "
            f"{p:.0%} of the rest parallel no GPU can make it more than {ceiling:.1f} times as fast"
        )
        add("bottleneck", Reason(text, "Amdahl's law with I/O share", 0.3 if io else 0.15))
    if best.placement == "hybrid":
        gpu = [s.stage for s in best.stages if s.hardware == "gpu"]
        cpu = [s.stage for s in best.stages if s.hardware == "cpu"]
        text = f"“{cpu[0]}” is work for CPUs; only “{gpu[0].lower()}” gains from a GPU"
        add("stages", Reason(text, "stage estimates", 0.3))
    if best.scale == "one_machine":
        what = (
            "fits one GPU"
            if best.stages[0].units == 1 and best.stages[0].hardware == "gpu"
            else "fits one machine"
        )
        text = f"The whole job {what}; a cluster would only add ways to fail"
        add("scale", Reason(text, "size estimate", 0.3))
    elif context.workload.kind in LLM_TRAINING and best.placement == "gpu":
        units = best.stages[0].units
        text = (
            f"{count(units, 'GPU')} have to exchange gradients at every step: "
            "the network between machines is the next bottleneck"
        )
        add(
            "network",
            Reason(text, "training estimate", 0.3 if best.stages[0].machines > 1 else 0.1),
        )
    if context.workload.kind is Kind.database and best.scale == "cluster":
        add("copies", Reason(
            "Keeping the data is a matter of copies and consistency, not of arithmetic",
            "architecture", 0.25,
        ))  # fmt: skip


def _against(f: Findings, options: list[Option]) -> Reason | None:
    """The criterion on which the recommendation is furthest behind any allowed option."""
    best = options[0]
    worst: tuple[float, Reason] | None = None
    for rival in options[1:]:
        if rival.vetoes:
            continue
        for mine, theirs in zip(best.contributions, rival.contributions, strict=True):
            loss = theirs.points - mine.points
            if loss > 0.005 and (worst is None or loss > worst[0]):
                text = f"{mine.title}: {mine.because}. {rival.label}: {theirs.because}"
                worst = (loss, Reason(text, mine.source, -loss, counted=True))
    if worst is None:
        lowest = min(best.contributions, key=lambda c: c.points - c.weight)
        return Reason(
            f"{lowest.title}: {lowest.because}", lowest.source, lowest.points - lowest.weight
        )
    return worst[1]


# --- vetoes, flips, questions, assumptions


def _ruled_out(options: list[Option]) -> list[Veto]:
    """Each veto once, named for what it rules out: a placement whole, terms, or one assignment."""
    seen: dict[tuple[str, str], Veto] = {}
    for o in sorted(options, key=lambda o: o.usd_per_month.likely):
        for v in o.vetoes:
            what = _barred_thing(o, v, options)
            seen.setdefault((what, v.field), replace(v, rules_out=what))
    return list(seen.values())


def _barred_thing(o: Option, v: Veto, options: list[Option]) -> str:
    """What a veto rules out, in as few words as are true."""
    if v.field == "location":
        return "Renting"
    if "own:" in v.reason:
        return "Buying"
    if "spot" in v.reason:
        return "Spot"
    if v.field == "budget_usd_per_month":
        return o.label
    of_it = [p for p in options if p.placement == o.placement]
    if all(p.vetoes for p in of_it):
        return PLACEMENT_LABELS[o.placement]
    if o.placement != "hybrid":
        return o.label
    on_gpu = [s.stage.lower() for s in o.stages if s.hardware == "gpu"]
    return f"A mix with {' and '.join(on_gpu)} on GPUs"


def _flips(f: Findings) -> list[Flip]:
    flips = []
    for turn in f.turns:
        flips.append(_flip(f, turn))
    return sorted(flips, key=lambda flip: _distance(flip))


def _distance(flip: Flip) -> float:
    if flip.at is None:
        return float("inf")
    if flip.now <= 0 or flip.at <= 0:
        return abs(flip.at - flip.now)
    return abs(float(np.log(flip.at / flip.now)))


def _flip(f: Findings, turn: Turn) -> Flip:
    lever = turn.lever
    title, unit = title_of(lever.field), _unit_of(lever.field)
    if turn.at is None or turn.winner is None:
        return Flip(lever.field, title, unit, lever.now, None, "nothing in its whole range")
    e = f.evaluations[turn.winner]
    verb, terms = VERBS[e.spec.acquisition]
    lead = e.spec.gpu or e.spec.cpu
    assert lead is not None
    name = {"gpu": "GPUs", "cpu": "CPU servers", "hybrid": "a mix of GPUs and CPU servers"}[
        e.spec.placement
    ]
    becomes = f"{verb.lower()} {name}{' ' + terms if terms else ''} ({lead.name})"
    return Flip(lever.field, title, unit, lever.now, turn.at, becomes, e.spec.placement)


def title_of(name: str) -> str:
    """Title of a field or of an input that is no field."""
    if name in Workload.model_fields:
        return Workload.model_fields[name].title or name
    if "." in name:
        stage, key = name.split(".", 1)
        return f"{title_of(key)} ({stage})"
    return INPUT_TITLES.get(name, name.replace("_", " ").capitalize())


def _unit_of(name: str) -> str:
    if name in Workload.model_fields:
        extra = Workload.model_fields[name].json_schema_extra
        return str(extra["unit"]) if isinstance(extra, dict) else ""
    return "times"


def _questions(f: Findings) -> list[Question]:
    """Open answers by what knowing them is worth."""
    found = [
        Question(w.name, title_of(w.name), w.chance_it_changes, w.points * usd_per_point(f))
        for w in f.worths
    ]
    return sorted(found, key=lambda q: (-q.worth_usd_per_month, -q.chance_it_changes))


def _assumptions(context: Context) -> list[Assumption]:
    found = []
    for name, r in context.inputs.ranges.items():
        estimate = Estimate(r.low, r.likely, r.high, r.unit, (r.source,))
        found.append(Assumption(name, title_of(name), estimate, r.answered, r.certainty, r.source))
    return sorted(found, key=lambda a: (not a.answered, a.certainty == "parameter"))


def _warnings(best: Option) -> list[str]:
    """Old prices that the recommendation rests on."""
    found = []
    ages = {s.price.age_days for s in best.stages if s.price is not None}
    for stage in best.stages:
        price = stage.price
        if price is not None and price.freshness == "warn":
            found.append(
                f"The price of {stage.name} ({price.provider}) is {price.age_days} days old "
                f"({price.as_of.isoformat()}): ask for a quote before you rely on it."
            )
        elif price is not None and price.freshness == "grey":
            found.append(
                f"The price of {stage.name} ({price.provider}) is {price.age_days} days old "
                f"({price.as_of.isoformat()})."
            )
    if len(ages) > 1 and max(ages) - min(ages) > 60:
        found.append("The sum adds prices of different ages.")
    if best.acquisition == "buy":
        found.append("Purchase prices rest on analyst ranges: ask for a quote before you order.")
    return list(dict.fromkeys(found))


def _alternatives(f: Findings) -> tuple[PriceRef, ...]:
    """Other offers of the recommended hardware on the recommended terms."""
    e = f.evaluations[f.best]
    found: list[PriceRef] = []
    for unit in (e.spec.gpu, e.spec.cpu):
        if unit is None:
            continue
        price = unit.prices.get(e.spec.acquisition) or unit.prices.get("on_demand")
        if price is not None:
            found += price.alternatives
            if len(price.alternatives) < 3 and "on_demand" in unit.prices:
                known = {(r.provider, r.sku, r.acquisition) for r in found}
                found += [
                    r
                    for r in unit.prices["on_demand"].alternatives
                    if (r.provider, r.sku, r.acquisition) not in known
                ]
    return tuple(found)


def _stated_utilization(context: Context, best: Option, busy_usd: float) -> float:
    """Utilization of a dedicated machine: hours stated over the month, else as computed."""
    hours = context.workload.stated_hours_per_month
    if hours is not None:
        return min(hours / 730.0, 1.0)
    total = max(best.usd_per_month.likely, 1e-9)
    if best.acquisition in ("on_demand", "spot"):
        return min(max(s.busy_hours_per_month for s in best.stages) / 730.0, 1.0)
    return min(busy_usd / total, 1.0)


def _price_ratio(f: Findings) -> float:
    """Price of the GPU to which the speed-up refers over that of a 96-vCPU server.

    The recommended GPU's own price beside the reference's speed would make any slow GPU a bargain.
    """
    server = f.context.cpu_usd_per_vcpu_hour * likely("reference_cpu_vcpu")
    return f.context.reference.on_demand_usd_per_hour() / server
