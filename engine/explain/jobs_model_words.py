"""A small model on GPUs and CPU servers in sentences: the words of `jobs_models`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.assessment import ACQUISITION_LABELS, Option
from engine.decide.model_rates import SMALL_MODELS
from engine.estimate.jobs import stages
from engine.estimate.small_inference import MATRIX_FAMILIES, models
from engine.explain.jobs_owning import paid_as
from engine.wording import money, rough
from engine.workload.answers import Kind
from engine.workload.workload import HOURS_PER_MONTH, Workload

if TYPE_CHECKING:
    from engine.explain.jobs_models import ModelOption, ModelReport, Refused

MOST_MACHINES = 10_000
CLOSE = 1.25  # costs within a quarter of each other are told as close


def machines_said(option: ModelOption) -> str:
    """The machines of an option: 2 × L4, 1 of them spare."""
    each = f"{option.per_machine} × {option.name}" if option.per_machine > 1 else option.name
    total = option.machines + option.spare
    if total == 0:
        return f"{each}, none needed"
    many = each if total == 1 else f"{total:,} × {each}"
    return f"{many}, {option.spare} of them spare" if option.spare else many


def headline(
    gpu: ModelOption | None, cpu: ModelOption | None, peak: float, target: float,
    refused: tuple[Refused, ...], service: bool,
) -> str:  # fmt: skip
    """Which of the two, for how much, against what; or why there is none.

    peak, target : requests a second, s
    """
    if gpu is None and cpu is None:
        if not refused:
            return "No rate was published for this model on any hardware on offer."
        best = min(refused, key=lambda r: r.floor_ms)
        return (
            f"Nothing answers within {target * 1000:g} ms: the shortest answer is "
            f"{rough(best.floor_ms)} ms, on {best.name}. A smaller model or a looser target "
            "is needed."
        )
    if peak <= 0:
        only = min((o for o in (gpu, cpu) if o), key=lambda o: o.usd_per_machine_hour)
        if not service:
            return "No items: nothing needs to run."
        return (
            "No requests: nothing needs to run. The smallest machine that would answer in time, "
            f"{only.name}, is {money(only.usd_per_machine_hour * HOURS_PER_MONTH)} a month."
        )
    if gpu is None or cpu is None:
        one = gpu or cpu
        assert one is not None
        other = "CPU server" if one is gpu else "GPU"
        late = any(r.hardware != one.hardware for r in refused)
        why = f"no {other} answers in time" if late else f"no rate of a {other} was published"
        cost = money(one.usd_per_month.likely)
        return f"{_kind(one)}: {machines_said(one)} for {cost} a month; {why}."
    first, second = (
        (gpu, cpu) if gpu.usd_per_month.likely < cpu.usd_per_month.likely else (cpu, gpu)
    )
    start = _kind(first)
    if second.usd_per_month.likely < CLOSE * first.usd_per_month.likely:
        start = f"Close, {start} by a little"
    return (
        f"{start}: {machines_said(first)} for {money(first.usd_per_month.likely)} a month, "
        f"against {money(second.usd_per_month.likely)} for {machines_said(second)}."
    )


def reason(gpu: ModelOption | None, cpu: ModelOption | None, peak: float, service: bool) -> str:
    """Why one of the two is the cheaper."""
    if gpu is None or cpu is None or peak <= 0:
        return ""
    full = gpu if gpu.usd_per_million < cpu.usd_per_million else cpu
    each = (
        f"a million answers cost {money(gpu.usd_per_million)} on the GPU and "
        f"{money(cpu.usd_per_million)} on the CPU"
    )
    if not service:
        return f"Machines are rented for the run only, so what an item costs decides: {each}."
    cheaper = gpu if gpu.usd_per_month.likely < cpu.usd_per_month.likely else cpu
    if cheaper is full:
        return f"Fully loaded, {each}."
    other = cpu if cheaper is gpu else gpu
    load = peak / (other.capacity_per_s.likely * max(other.machines, 1))
    return (
        f"Fully loaded, {each}, but at your peak {other.name} would be {load:.0%} loaded: the "
        f"smallest {'GPU that is' if cheaper is gpu else 'servers that are'} enough cost"
        f"{'s' if cheaper is gpu else ''} less."
    )


def notes_on(
    workload: Workload, gpu: ModelOption | None, cpu: ModelOption | None, id: str,
    hours_per_month: float,
) -> tuple[str, ...]:  # fmt: skip
    """What the figures don't cover, for this model and these machines.

    hours_per_month : for which a service's machines are rented
    """
    notes = []
    if hours_per_month < HOURS_PER_MONTH:
        notes.append(
            f"Machines are rented for the {hours_per_month:,.0f} hours a month that you told; "
            "around the clock they would cost more."
        )
    family = models()[id].family
    if cpu is not None and family in MATRIX_FAMILIES:
        notes.append(
            "CPU rates are of Xeons with matrix units (Sapphire Rapids or later) and 8-bit "
            "integers. Other servers are taken for a quarter of it, within a wide range: measure."
        )
    if cpu is not None and gpu is None and family in ("trees", "embedding"):
        notes.append(
            "No rate of a GPU was published that could be checked. A GPU pays where it carries "
            f"more than {cpu.capacity_per_s.likely:,.0f} a second for each "
            f"{money(cpu.usd_per_machine_hour * HOURS_PER_MONTH)} a month that it costs."
        )
    for option in (gpu, cpu):
        if option is not None and option.machines >= MOST_MACHINES:
            notes.append(
                f"{option.machines:,} machines of {option.name} are no plan: check the rate, or "
                "the size of one item."
            )
        if option is not None and not option.measured and option.hardware == "gpu":
            notes.append(
                f"{option.name} was not measured with this model: its rate follows from other "
                "GPUs, within a third in 9 of 10 cases."
            )
    if workload.kind is Kind.batch_inference:
        if workload.items_per_run is None:
            notes.append("The items of a run were not told: they are a planning value.")
        least = min(
            (o for o in (gpu, cpu) if o), key=lambda o: o.usd_per_month.likely, default=None
        )
        if least is not None and least.usd_per_month.likely < least.usd_per_machine_hour:
            notes.append(
                f"All runs of a month take {least.name} less than an hour: start-up, and the "
                "smallest bill of the provider, may cost more than that."
            )
    elif workload.rate_per_s is None:
        notes.append("The rate was not told: it is a planning value of the kind of work.")
    return tuple(notes)


def crossing_words(
    crossing: float | None, always: bool, ever: bool, peak: float
) -> tuple[str, str]:
    """Title and message of the picture of costs by the peak rate."""
    told = "Steps are whole machines, without spare ones"
    if crossing is not None:
        side = "above" if peak >= crossing else "below"
        return (
            f"GPUs are the cheaper from about {_rate(crossing)} requests a second on",
            f"{told}. Your peak of {_rate(peak)} a second is {side} that.",
        )
    if always:
        return "GPUs are the cheaper at every rate", f"{told}."
    if not ever:
        return "CPU servers are the cheaper at every rate shown", f"{told}."
    return "Neither stays the cheaper: whole machines decide", f"{told}."


def _rate(x: float) -> str:
    return f"{x:,.0f}" if x >= 100 else rough(x)


def _kind(option: ModelOption) -> str:
    return "GPU" if option.hardware == "gpu" else "CPU"


def recommended_words(report: ModelReport, best: Option, workload: Workload) -> str:
    """The recommendation's machines for the model, and what they cost among those here.

    best : the recommendation
    """
    stage = next(s for s in stages(workload) if s.work in SMALL_MODELS)
    plan = next((p for p in best.stages if stage.title.lower() in p.stage.lower()), None)
    if plan is None or not report.options:
        return ""
    beside = [
        s.title.lower()
        for s in stages(workload)
        if s != stage and s.title.lower() in plan.stage.lower()
    ]
    size = f" with {plan.vcpu:.0f} vCPU" if plan.hardware == "cpu" else ""
    said = f"The recommendation has {plan.units:,} × {plan.name}{size} for it, "
    said += ACQUISITION_LABELS[plan.acquisition]
    if beside:
        return f"{said}; they carry {' and '.join(beside)} as well."
    each = plan.units // max(plan.machines, 1)
    mine = next(
        (o for o in report.options if o.sku == plan.sku and o.per_machine in (each, 1)), None
    )
    if mine is None or plan.acquisition != paid_as(workload):
        return f"{said}."
    cost = f"{money(mine.usd_per_month.likely)} a month"
    first = report.options[0]
    if mine is first:
        return f"{said}: {cost}, the cheapest here."
    return (
        f"{said}: {cost}. {first.name} costs less here; the recommendation weighs failures, effort "
        "and what a dollar buys of the scarce resource as well."
    )
