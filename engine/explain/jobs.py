"""A compute job on CPU servers and GPUs in figures and sentences: what a page shows of it.

The inputs, prices, hardware on offer, units and hours are the decision's. What stands here is
which range of published speed-ups is taken, which machines are compared, and what follows in words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date

import numpy as np
from numpy.typing import NDArray

from engine.assessment import PriceRef
from engine.catalogue import Catalogue, CpuServer
from engine.decide.candidates import Price, Unit
from engine.decide.context import Setting, setting
from engine.decide.evaluate import pool_of, run_parts
from engine.decide.evaluation import Context, Memo, Pool
from engine.decide.idle import headed, nothing_to_do
from engine.decide.inputs import Inputs, Range, sample, standard_normal
from engine.decide.job_hours import accelerator_speed
from engine.decide.priors import parameter
from engine.decide.quotes import left_out
from engine.decide.starting import start_note, starting_hours
from engine.errors import InputError
from engine.estimate.compute_jobs import (
    REFERENCE_SERVER,
    Constraint,
    Parts,
    break_even_speedup,
    gpu_constraints,
    payback_months,
    too_little_memory,
)
from engine.estimate.estimate import Estimate
from engine.estimate.jobs import REFERENCE_VCPU
from engine.estimate.speedups import (
    FIELDS_OF_KIND,
    Pooled,
    Speedup,
    of_groups,
    pooled,
    pooled_for,
    speedups,
)
from engine.explain.jobs_about import about
from engine.explain.jobs_owning import (
    OWNED,
    owned_usd,
    paid_as,
    price_for,
    refused,
    usd_per_unit_hour,
)
from engine.wording import count, duration, money, number, rough
from engine.workload.answers import Current, Precision, Rewrite
from engine.workload.jobs_terms import FIELD_LABELS, JobField, JobsTerms
from engine.workload.settings import USUAL, Settings
from engine.workload.workload import BATCH_JOBS, Workload

Array = NDArray[np.float64]
DRAWS = 256


@dataclass(frozen=True, slots=True)
class JobOption:
    """Some units of one kind of hardware for the job.

    hours, usd_per_run : with the range that holds in 8 of 10 cases; bound : what the run waits for
    late : whether it takes longer than wanted
    starting_usd_per_run : what of the cost of a run is paid while the machines start
    owned : in own rooms; an hour then costs what a month of owning does by its hours
    """

    hardware: str
    sku: str
    name: str
    units: int
    machines: int
    per_machine: int
    hours: Estimate
    usd_per_run: Estimate
    usd_per_month: Estimate
    price: PriceRef | None
    usd_per_unit_hour: float
    bound: str
    late: bool
    draws_usd: Array
    starting_usd_per_run: float
    owned: bool


@dataclass(frozen=True, slots=True)
class SpeedupCurve:
    """Cost of a run on GPUs against the speed-up of the parallel part; the CPU's is level.

    gpu : (speed-up on this card, USD a run); break_even : where it crosses, None where nowhere
    """

    gpu: tuple[tuple[float, float], ...]
    cpu_usd: float
    break_even: float | None
    low: float
    likely: float
    high: float
    title: str
    message: str


@dataclass(frozen=True, slots=True)
class JobReport:
    """All that is told of a compute job. `speedup` is one reference GPU against one server.

    no_gpu : why none can run it, where none can
    quotes_left_out : the user's quotes that don't rank, each with its reason
    """

    headline: str
    speedup: Range
    speedup_said: str
    found: tuple[Speedup, ...]
    pooled: Pooled | None
    gpu: JobOption | None
    cpu: JobOption
    options: tuple[JobOption, ...]
    ruled_out: tuple[tuple[str, Constraint], ...]
    no_gpu: tuple[str, ...]
    gpu_cheaper: float
    curve: SpeedupCurve | None
    rewrite: str
    about: tuple[str, ...]
    notes: tuple[str, ...]
    wanted_hours: float
    inputs: tuple[tuple[str, Range], ...]
    quotes_left_out: tuple[str, ...] = ()


def is_compute(workload: Workload) -> bool:
    """Whether the job is known by what it takes on CPU servers (or GPUs) today."""
    return workload.kind in BATCH_JOBS


def figures_for(workload: Workload, terms: JobsTerms) -> tuple[Speedup, ...]:
    """The published figures of the job's field, all of them where the kind stands for no field."""
    if terms.field is not JobField.auto:
        return of_groups([terms.field.value])
    fields = FIELDS_OF_KIND.get(workload.kind, ())
    return of_groups([f.value for f in fields]) if fields else of_groups(
        {r.group for r in speedups().values()}
    )  # fmt: skip


def speedup_range(workload: Workload, terms: JobsTerms, usual: Range) -> tuple[Range, str]:
    """The range of the speed-up, and in words where it comes from: answer, table, or prior."""
    if workload.gpu_speedup is not None:
        return usual, "as you measured it"
    named_field = terms.field is not JobField.auto
    told = pooled_for(workload.kind, terms.field)
    where = FIELD_LABELS[terms.field].lower() if named_field else "this kind of work"
    if told is None:
        return usual, f"a planning value: too few published figures of {where} say against what"
    said = (
        f"from {told.n} of {told.of} published figures on {where}, each brought to one H100 "
        "against one server of 48 cores"
    )
    source = "data/speedups.csv"
    return Range(told.low, told.likely, told.high, usual.unit, source, False, "table"), said


def job_report(
    workload: Workload, settings: Settings = USUAL, catalogue: Catalogue | None = None,
    today: date | None = None,
) -> JobReport:  # fmt: skip
    """The job on the cheapest CPU servers and GPUs that finish in time.

    Raises
    ------
    InputError : the work is of another kind, no hardware is on offer there, or none holds what
        must be at hand
    """
    if not is_compute(workload):
        raise InputError("this is no compute job", where="kind",
                         right="a simulation, rendering, data preparation or the like")  # fmt: skip
    day, terms = today or date.today(), settings.jobs
    idle = nothing_to_do(workload)
    offered = setting(workload, catalogue, day, settings)
    ctx = offered.context
    speedup, said = speedup_range(workload, terms, ctx.inputs.ranges["gpu_speedup"])
    inputs = Inputs({**ctx.inputs.ranges, "gpu_speedup": speedup}, ctx.inputs.shares)
    priced = replace(offered, context=replace(ctx, inputs=inputs))
    point, drawn = inputs.point(), inputs.draws(DRAWS)
    wanted = float(point["patience_h"][0])
    server = ctx.catalogue.cpu_servers[REFERENCE_SERVER]
    options, ruled_out = _options(offered, workload, terms, point, drawn, server, wanted)
    no_gpu = _no_gpu(offered, ruled_out) if _best(options, "gpu") is None else ()
    gpu, cpu = _best(options, "gpu"), _best(options, "cpu")
    if cpu is None:
        raise _no_server(offered, workload, ruled_out)
    sure = float(np.mean(gpu.draws_usd < cpu.draws_usd)) if gpu is not None else 0.0
    verdict = _headline(gpu, cpu, sure, no_gpu, _wish(workload, wanted))
    # What takes so many hours on GPUs today takes them whatever the speed-up over CPUs is.
    known = workload.current is Current.gpu
    curve = _curve(gpu, cpu, priced, point) if gpu is not None and not known else None
    shown = ("parallel_fraction", "io_share", "current_units", "useful_hours_per_month",
             "runs_per_month", "contention")  # fmt: skip
    pool = pooled(figures_for(workload, terms))
    return JobReport(
        headline=headed(workload, verdict),
        speedup=speedup,
        speedup_said=said,
        found=figures_for(workload, terms),
        pooled=pool,
        gpu=gpu,
        cpu=cpu,
        options=options,
        ruled_out=ruled_out,
        no_gpu=no_gpu,
        gpu_cheaper=sure,
        curve=curve,
        rewrite="" if idle else _rewrite(workload, gpu, cpu, inputs),
        about=about(offered.context),
        notes=_notes(workload, gpu, cpu, float(point["runs_per_month"][0]), offered),
        wanted_hours=wanted,
        inputs=tuple((name, inputs.ranges[name]) for name in shown),
        quotes_left_out=left_out(ctx.catalogue, workload.quotes),
    )


# --- machines


def _options(
    offered: Setting, workload: Workload, terms: JobsTerms, point: dict[str, Array],
    drawn: dict[str, Array], server: CpuServer, wanted: float,
) -> tuple[tuple[JobOption, ...], tuple[tuple[str, Constraint], ...]]:  # fmt: skip
    """Every kind of hardware with its fewest units in time, cheapest first, and what is out."""
    found: list[JobOption] = []
    out: dict[str, Constraint] = {}
    for unit in (*offered.cpus, *offered.gpus):
        barred = _barred(unit, workload, terms, server)
        if barred:
            out.setdefault(unit.name, barred[0])
            continue
        price = price_for(unit, workload)
        option = (
            None if price is None else _option(unit, price, offered.context, point, drawn, wanted)
        )
        no_place = refused(unit, 1.0 if option is None else option.units, workload)
        if no_place is not None:
            out.setdefault(unit.name, no_place)
        elif option is not None:
            found.append(option)
    # Where nothing finishes in time, what is nearly as fast as the fastest is compared by its cost.
    near = 1.25 * min((o.hours.likely for o in found), default=0.0)

    def order(o: JobOption) -> tuple[bool, bool, float]:
        return o.late, o.late and o.hours.likely > near, o.usd_per_run.likely

    return tuple(sorted(found, key=order)), tuple(out.items())


def _barred(
    unit: Unit, workload: Workload, terms: JobsTerms, server: CpuServer
) -> tuple[Constraint, ...]:
    """Why the job can't run on a unit: code, licence and arithmetic of GPUs, memory of both."""
    found: tuple[Constraint, ...] = ()
    if unit.accelerator is not None:
        found = gpu_constraints(
            unit.accelerator, server,
            needs_fp64=workload.precision is Precision.fp64,
            licence_covers_gpus=terms.licence_covers_gpus,
            can_be_rewritten=workload.rewrite is not Rewrite.impossible,
        )  # fmt: skip
    unsplit = None if workload.working_set_shardable else workload.working_set_gb
    small = too_little_memory(unit.name, unit.memory_gb, unsplit)
    return found if small is None else (*found, small)


def _no_gpu(offered: Setting, out: tuple[tuple[str, Constraint], ...]) -> tuple[str, ...]:
    """Why no GPU can run the job: each kind of reason once, of the card with the most memory."""
    memory = {u.name: u.memory_gb for u in offered.gpus}
    told = sorted((x for x in out if x[0] in memory), key=lambda x: -memory[x[0]])
    found: dict[str, str] = {}
    for _, why in told:
        found.setdefault(why.field, why.reason)
    return tuple(found.values())


def _no_server(
    offered: Setting, workload: Workload, out: tuple[tuple[str, Constraint], ...]
) -> InputError:
    """No CPU server on offer holds what must be at hand, or none can stand in own rooms."""
    largest = max(offered.cpus, key=lambda u: u.memory_gb)
    why = dict(out).get(largest.name)
    if why is not None and why.field in ("available_kw", "location"):
        return InputError(
            f"no server can be owned for it: {why.reason}", where=why.field,
            right="more power in the room, or data that may leave it",
        )  # fmt: skip
    return InputError(
        f"the {workload.working_set_gb or 0:,.0f} GB that must be at hand can't be split, and the "
        f"largest server on offer, {largest.name}, has {largest.memory_gb:,.0f} GB",
        where="working_set_gb",
        right="say that the data can be split over machines, or give what must be in memory at "
        "one time",
    )


def _best(options: tuple[JobOption, ...], hardware: str) -> JobOption | None:
    """The cheapest in time; the fastest where none is."""
    return next((o for o in options if o.hardware == hardware), None)


def _option(
    unit: Unit, price: Price, ctx: Context, point: dict[str, Array], drawn: dict[str, Array],
    wanted: float,
) -> JobOption:  # fmt: skip
    """The decision's units at the likely inputs, and over the draws what they do."""
    pool, told = _sized(unit, ctx, point)
    n, owned = float(pool.units[0]), price.owner is not None
    at = float(told.hours(n)[0])
    over = run_parts(unit, ctx.stages, drawn, ctx).hours(n)
    hours = _estimate(at, over, "h", ("data/speedups.csv",))
    fee = ctx.settings.jobs.gpu_fee_usd_per_month if unit.hardware == "gpu" else 0.0
    runs, drawn_runs = float(point["runs_per_month"][0]), np.maximum(drawn["runs_per_month"], 1e-6)
    starting = 0.0 if owned else float(_starting_per_run(unit, at, point)[0])
    usd_hour = usd_per_unit_hour(price, float(pool.usd_per_month[0]), float(pool.paid_units[0]))
    if owned:
        usd = (float(pool.usd_per_month[0]) + fee) / max(runs, 1e-6)
        month = owned_usd(unit, pool.paid_units, drawn_runs * over, drawn, ctx)
        drawn_usd = np.asarray((month + fee) / drawn_runs)
    else:
        usd = (at + starting) * n * price.likely + (fee / runs if runs else 0.0)
        paid = over + _starting_per_run(unit, over, drawn)
        drawn_usd = np.asarray(paid * n * _drawn_hour(unit, price, drawn) + fee / drawn_runs)
    source = OWNED if owned else price.ref.source if price.ref is not None else "catalogue"
    return JobOption(
        unit.hardware, unit.sku, unit.name, int(n), int(np.ceil(n / unit.per_machine)),
        unit.per_machine, hours, _estimate(usd, drawn_usd, "USD", (source,)),
        _estimate(usd * runs, drawn_usd * drawn["runs_per_month"], "USD", (source,)),
        price.ref, usd_hour, _bound(unit, told, n), at > wanted * 1.001, drawn_usd,
        starting * n * price.likely, owned,
    )  # fmt: skip


def _drawn_hour(unit: Unit, price: Price, drawn: dict[str, Array]) -> Array:
    """The price of an hour over its range and the market's."""
    market = "gpu_market_factor" if unit.hardware == "gpu" else "cpu_market_factor"
    asked = Range(price.low, price.likely, price.high, "USD", "", False, "price")
    return np.asarray(sample(asked, standard_normal(1, DRAWS)[:, 0]) * drawn[market])


def _starting_per_run(unit: Unit, hours: Array | float, x: dict[str, Array]) -> Array:
    """Hours for which a rented machine is paid while it starts, a run."""
    runs = x["runs_per_month"]
    starting = starting_hours(runs, runs * hours, x[f"{unit.hardware}_start_h"])
    return np.asarray(starting / np.maximum(runs, 1e-6))


def _sized(unit: Unit, ctx: Context, x: dict[str, Array]) -> tuple[Pool, Parts]:
    """The machines that the decision takes on the job's terms, and what of a run they divide."""
    memo: Memo = {}
    pool = pool_of(unit, ctx.stages, paid_as(ctx.workload), x, ctx, memo)
    return pool, run_parts(unit, ctx.stages, x, ctx, memo)


def _bound(unit: Unit, told: Parts, n: float) -> str:
    """What the run waits for most."""
    hours = float(told.hours(n)[0])
    fed = float(np.ravel(told.feeding(n))[0])
    if fed > 0 and fed >= hours - 1e-12:
        return "storage"
    if float(told.copies[0]) / n > hours / 3:
        return "copies to and from the GPU"
    if float(told.serial[0]) > hours / 2:
        return "the part that is not parallel"
    return "arithmetic" if unit.hardware == "cpu" else "the GPU and its host"


# --- pictures and words


def _curve(
    gpu: JobOption, cpu: JobOption, offered: Setting, point: dict[str, Array]
) -> SpeedupCurve:
    """Cost of a run on the fewest of these GPUs in time, by the speed-up of the parallel part."""
    unit = next(u for u in offered.gpus if (u.sku, u.per_machine) == (gpu.sku, gpu.per_machine))
    ctx, s = offered.context, offered.context.inputs.ranges["gpu_speedup"]
    speed = accelerator_speed(unit, ctx)
    low, likely, high = s.low * speed, s.likely * speed, s.high * speed
    xs = np.geomspace(min(0.5, low), max(100.0, high), 240)
    many = {name: np.broadcast_to(v, xs.shape) for name, v in point.items()}
    pool, work = _sized(unit, ctx, {**many, "gpu_speedup": xs / speed})
    runs = float(point["runs_per_month"][0])
    fee = ctx.settings.jobs.gpu_fee_usd_per_month / runs if runs else 0.0
    hours = work.hours(pool.units)
    paid = (hours + _starting_per_run(unit, hours, many)) * pool.units * gpu.usd_per_unit_hour
    cost = (pool.usd_per_month / runs if gpu.owned and runs else paid) + fee
    level = cpu.usd_per_run.likely
    # From where on it stays the cheaper: whole machines make steps.
    dearer = np.flatnonzero(cost >= level)
    needed: float | None = None
    if not dearer.size:
        needed = float(xs[0])
    elif dearer[-1] + 1 < len(xs):
        needed = float(xs[dearer[-1] + 1])
    said = f"Expected on this card: {_times(low)} to {_times(high)}, likely {_times(likely)}"
    ratio = gpu.usd_per_unit_hour / _server_hour(cpu, offered)
    host = max(unit.vcpu, 1.0) / REFERENCE_VCPU
    p, b = float(point["parallel_fraction"][0]), float(point["io_share"][0])
    alone = float(break_even_speedup(ratio, p, b, host))
    by_price = (
        f"from {_times(alone)} on"
        if np.isfinite(alone)
        else "at no speed-up: what gains nothing, "
        f"run by the {unit.vcpu:g} vCPU that come with it, costs more by itself"
    )
    if needed is None:
        title = "No speed-up makes this GPU the cheaper"
    elif not dearer.size:
        title = f"{gpu.name} is the cheaper at every speed-up shown"
    else:
        title = f"{gpu.name} is the cheaper from a speed-up of {_times(needed)}"
    message = (
        f"{said}, shaded. Drawn are whole machines that finish in time. By the ratio of prices "
        f"alone, {rough(ratio)} to one for a 96-vCPU server, with {p:.0%} parallel and {b:.0%} "
        f"input and output, it would pay {by_price}."
    )
    return SpeedupCurve(
        tuple((float(x), float(y)) for x, y in zip(xs, cost, strict=True)), level,
        needed if dearer.size else None, low, likely, high, title, message,
    )  # fmt: skip


def _server_hour(cpu: JobOption, offered: Setting) -> float:
    """Price of 96 vCPU an hour on the CPU hardware that was chosen."""
    unit = next(u for u in offered.cpus if u.sku == cpu.sku)
    return cpu.usd_per_unit_hour / unit.vcpu * REFERENCE_VCPU


def _times(x: float) -> str:
    return rough(x) if x < 100 else f"{x:,.0f}"


def _headline(
    gpu: JobOption | None, cpu: JobOption, sure: float,
    no_gpu: tuple[str, ...], wish: str,
) -> str:  # fmt: skip
    if gpu is None:
        why = no_gpu[0] if no_gpu else "none is on offer"
        return f"CPU servers: no GPU can run this, {why}."
    first, second = (gpu, cpu) if _wins(gpu, cpu) else (cpu, gpu)
    chance = sure if first is gpu else 1 - sure
    how = (
        f"{money(first.usd_per_run.likely)} a run against {money(second.usd_per_run.likely)}, "
        f"{duration(first.hours.likely)} against {duration(second.hours.likely)}"
    )
    name = "GPUs" if first is gpu else "CPU servers"
    if first.late != second.late:
        only = f", where a run may take {wish} at most" if wish else ": only they finish in time"
        return f"{name}{only}. {how[0].upper()}{how[1:]}."
    if chance < 0.65:
        return f"Close: {name} by a little. {how[0].upper()}{how[1:]}; cheaper in {chance:.0%}."
    return f"{name}: {how}; the cheaper in {chance:.0%} of cases."


def _wish(workload: Workload, wanted: float) -> str:
    """The hours wanted in words where they are no deadline, which more machines might keep."""
    return "" if workload.deadline_days is not None else duration(wanted)


def _wins(gpu: JobOption, cpu: JobOption) -> bool:
    if gpu.late != cpu.late:
        return not gpu.late
    return gpu.usd_per_run.likely < cpu.usd_per_run.likely


def _rewrite(workload: Workload, gpu: JobOption | None, cpu: JobOption, inputs: Inputs) -> str:
    """What moving the code costs and when that is paid back, by today's bill where it was told."""
    if gpu is None or workload.rewrite is Rewrite.ready or workload.current is Current.gpu:
        return ""
    months = inputs.ranges["rewrite_months"]
    cost = months.likely * parameter("engineer_usd_per_month").likely
    bill = workload.current_usd_per_month if workload.current is Current.cpu else None
    before = cpu.usd_per_month.likely if bill is None else bill
    saves = before - gpu.usd_per_month.likely
    against = f"the {cpu.name} above" if bill is None else f"the {money(bill)} a month paid today"
    back = float(payback_months(cost, saves))
    start = (
        f"Where the code must be rewritten, {number(months.likely)} engineer-months "
        f"({number(months.low)} to {number(months.high)}) are {money(cost)}"
    )
    if not np.isfinite(back):
        return f"{start}; against {against} GPUs save nothing in cash, so it is never paid back."
    saved = f"{money(saves)} saved a month against {against}"
    if back > workload.horizon_months:
        return (
            f"{start}; by {saved} that takes {back:,.0f} months, longer than the "
            f"{workload.horizon_months} months planned: stay on CPUs unless time is worth more."
        )
    return (
        f"{start}, paid back {number(back)} months after the move by {saved}. The costs page "
        "counts the months of work and of both systems as well."
    )


def _notes(
    workload: Workload, gpu: JobOption | None, cpu: JobOption, runs: float, offered: Setting
) -> tuple[str, ...]:
    notes: list[str] = []
    for option in (gpu, cpu):
        if option is not None and option.late:
            firm = workload.deadline_days is not None
            notes.append(
                f"{option.name}: no number of them finishes in time; the part that is not parallel "
                "takes longer."
                if firm
                else f"{option.name}: a run takes {duration(option.hours.likely)}, longer than "
                f"wanted. Much of it is not parallel, and more machines would cost more than they "
                "save; give a deadline where it must be quicker."
            )
        if option is not None and option.units >= 10_000:
            notes.append(
                f"{count(option.units, 'unit')} of {option.name} is no plan: give more time, or "
                "check the hours and servers of today."
            )
    notes += _starts(gpu, cpu, runs, offered)
    if not workload.stated_hours_per_month and not workload.hours_per_run:
        notes.append(
            "What a run takes today was not told: the hours are a planning value of the kind of "
            "work. The ratio of GPU to CPU holds; the sums follow your hours."
        )
    return tuple(notes)


def _starts(gpu: JobOption | None, cpu: JobOption, runs: float, offered: Setting) -> list[str]:
    """What the starts of the machines cost that win; of the others where theirs alone count."""
    x = offered.context.inputs.point()
    both = [cpu] if gpu is None else [gpu, cpu] if _wins(gpu, cpu) else [cpu, gpu]
    said = (
        start_note(
            o.name, o.starting_usd_per_run * runs, o.usd_per_month.likely, runs,
            float(x[f"{o.hardware}_start_h"][0]),
        )
        for o in both
    )  # fmt: skip
    return [note for note in said if note][:1]


def _estimate(at: float, over: Array, unit: str, sources: tuple[str, ...]) -> Estimate:
    low, high = np.quantile(np.asarray(over, dtype=float), [0.1, 0.9])
    return Estimate(min(float(low), at), at, max(float(high), at), unit, sources)
