"""The page on services and pipelines in one call: sizing, reasons, drawing, placement, articles."""

from __future__ import annotations

from dataclasses import dataclass

from engine.assessment import Assessment
from engine.catalogue import Catalogue, load_catalogue
from engine.decide.idle import idle_note
from engine.decide.quotes import left_out
from engine.explain.services import Sizing, applies, size
from engine.explain.services_batching import Batching, batching
from engine.explain.services_cases import Saying, sayings
from engine.explain.services_drawing import Drawing, Pattern, draw, patterns
from engine.explain.services_pipeline import PipelinePlan, has_stages, plan
from engine.explain.services_properties import Property, properties, waits_for_all
from engine.explain.services_reasons import Asked, answers_leaving, asked, one_machine, sentence
from engine.wording import count, duration, money, number
from engine.workload.answers import Bottleneck, Kind

MANY = 1000  # machines beyond which the figures themselves are asked about


@dataclass(frozen=True, slots=True)
class ServicesReport:
    """Everything that the page shows. Parts that the job does not have are None or empty.

    quotes_left_out : the user's quotes that don't rank, each with its reason
    properties : the audit of the recommendation as a distributed system; waits : whether every step
        waits for all
    """

    sentence: str
    sizing: Sizing | None
    one_machine: str
    leaving: str
    asked: tuple[Asked, ...]
    batching: Batching | None
    drawing: Drawing | None
    patterns: tuple[Pattern, ...]
    pipeline: PipelinePlan | None
    pipeline_sentence: str
    sayings: tuple[Saying, ...]
    notes: tuple[str, ...]
    quotes_left_out: tuple[str, ...] = ()
    properties: tuple[Property, ...] = ()
    waits: str = ""


def services_report(answer: Assessment, catalogue: Catalogue | None = None) -> ServicesReport:
    """The report of an assessment under its settings.

    Raises
    ------
    InputError : a working set that can't be split and fits into no server
    """
    catalogue = catalogue or load_catalogue()
    quotes = left_out(catalogue, answer.workload.quotes)
    pipeline = plan(answer, catalogue) if has_stages(answer) else None
    said = pipeline_sentence(pipeline) if pipeline is not None else ""
    if not applies(answer.workload):
        head = said or (
            "This job is no service: it has no requests or data to size. If it runs in several "
            "stages, they can be placed here."
        )
        return ServicesReport(
            head, None, "", "", (), None, None, (), pipeline, said,
            _pipeline_saying(pipeline) if pipeline is not None else (),
            (*_idle(answer), *_beside_recommendation(pipeline, answer)), quotes,
            properties(answer), waits_for_all(answer),
        )  # fmt: skip
    s = size(answer, catalogue)
    b = batching(s, answer)
    return ServicesReport(
        sentence(s, answer),
        s,
        one_machine(s, answer.workload),
        answers_leaving(s),
        asked(s, answer),
        b,
        draw(s, answer, b),
        patterns(s, answer),
        pipeline,
        said,
        sayings(s, answer, b),
        (*_idle(answer), *_notes(s, answer), *_beside_recommendation(pipeline, answer)),
        quotes,
        properties(answer),
        waits_for_all(answer),
    )


def pipeline_sentence(p: PipelinePlan) -> str:
    """Where the stages run and what that saves."""
    if p.best is None:
        return p.why_not
    on_gpu = [s.name for s in p.best.stages if s.on_gpu]
    if not on_gpu:
        head = "All stages belong on CPU servers"
    elif len(on_gpu) == len(p.best.stages):
        head = "All stages belong on GPUs"
    else:
        head = f"{', '.join(on_gpu)} on GPUs, the rest on CPU servers"
    parts = [f"{head}: {money(p.best.usd)} a month"]
    if p.best.hours > 0:
        parts.append(f"{duration(p.best.hours)} a run")
    return f"{', '.join(parts)}. {_saved(p)}"


def _saved(p: PipelinePlan) -> str:
    less, slow = [], []
    for name, other, share in (
        ("all-CPU", p.all_cpu, p.saves_cpu), ("all-GPU", p.all_gpu, p.saves_gpu)
    ):  # fmt: skip
        if share is None:
            slow.append(name)
        elif share > 0.005:
            less.append(f"{share:.0%} less than {name} ({money(other.usd)})")
    found = [f"That is {' and '.join(less)}."] if less else []
    found += [f"{name[0].upper()}{name[1:]} can't keep the deadline." for name in slow]
    return " ".join(found)


def _pipeline_saying(p: PipelinePlan) -> tuple[Saying, ...]:
    """The article's 60% beside what this pipeline saves, and where that comes from."""
    if p.best is None or p.saves_gpu is None:
        return ()
    moved = {s.name for s in p.best.stages if not s.on_gpu}
    total = sum(s.usd for s in p.all_gpu.stages)
    share = sum(s.usd for s in p.all_gpu.stages if s.name in moved) / total if total else 0.0
    if not moved:
        why = "no stage is cheaper on CPU servers, so there is nothing to save"
    else:
        why = (
            f"on GPUs alone, the stages that belong on CPU servers would take {share:.0%} of the "
            f"bill, and no more than that can be saved"
        )
    return (
        Saying(
            "A hybrid stack cut the cost by 60% against all-GPU.", "article 003", "C257",
            f"Here it is {p.saves_gpu:.0%}: {why}. The 60% is one case, not a rule.",
        ),
    )  # fmt: skip


def _idle(answer: Assessment) -> tuple[str, ...]:
    """What is shown where nothing runs."""
    note = idle_note(answer.workload)
    return (note,) if note else ()


def _beside_recommendation(p: PipelinePlan | None, answer: Assessment) -> tuple[str, ...]:
    """Why the recommendation has another total than the stages here."""
    if p is None or p.best is None:
        return ()
    best = answer.best
    usual = f"The recommendation is {best.label} at {money(best.usd_per_month.likely)} a month"
    if p.own:
        return (
            f"{usual}: it answers for the job as one, from its own answers. The stages that you "
            f"listed have their own placement here, at {money(p.best.usd)} a month.",
        )
    has = (
        "each kind of machine is owned for all stages on it,"
        if p.owned
        else "each stage has machines of its own, on demand,"
    )
    return (
        f"{usual}: it has one size of machine for stages of one kind, and weighs time, effort, "
        "risk and terms beside the cost. Here "
        f"{has} at the least cost: {money(p.best.usd)} a month.",
    )


def _notes(s: Sizing, answer: Assessment) -> list[str]:
    found = []
    best = answer.best
    if best.vetoes:
        found.append(answer.sentence)
    if s.point.get("rate_per_s") == 0:
        found.append(
            "No requests come in. What is shown is the least that can be rented; until there are "
            "some, nothing has to be on."
        )
    if s.fleet.machines > MANY:
        found.append(
            f"{count(s.fleet.machines, 'machine')} is more than most companies run. Check the rate "
            "and the CPU time of an item first; then measure one machine before planning so many."
        )
    found += _disk_note(s, answer)
    if not s.recommended:
        found.append(
            f"The recommendation is {best.label} at {money(best.usd_per_month.likely)} a month: "
            "GPU machines do this as well. Shown are the servers that would do it in their place."
        )
    return found


def _disk_note(s: Sizing, answer: Assessment) -> list[str]:
    """Beside a bottleneck that the person sees in the disks: what these machines' disks can do."""
    w, f = answer.workload, s.fleet
    shares = dict(answer.shares)
    told = w.bottleneck is Bottleneck.disk_io or bool(w.time_shares)
    largest = max(shares, key=lambda k: shares[k]) if shares else ""
    if not told or largest != "disk_io" or f.binds == "disk_rate":
        return []
    if w.kind not in (Kind.etl, Kind.streaming):
        return []
    rate = next(r.amount.likely for r in s.rows if r.resource == "disk_rate")
    return [
        f"You name the disks as the bottleneck. They are asked for {number(rate)} MB/s, which is "
        f"{number(rate / f.of_run)} on each of {count(f.of_run, 'machine')}; one can be given "
        f"{number(s.point['machine_disk_mb_per_s'])}. Faster disks cure that; more machines or "
        "GPUs would wait as well."
    ]
