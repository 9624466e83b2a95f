"""The training answer as rows of texts and points, for the page; nothing is estimated here."""

from __future__ import annotations

from dataclasses import dataclass

from engine.estimate.estimate import Estimate
from engine.estimate.layout_cases import SECONDS_A_DAY
from engine.estimate.network_choice import NetworkOutcome
from engine.estimate.search import MOST_DAYS
from engine.estimate.search_results import split_words
from engine.estimate.shape import ModelShape
from engine.estimate.training_job import PlanResult
from engine.planning.training import TrainingReport
from engine.report import words
from engine.wording import count, number

MEMORY_TITLES = {
    "weights": "Weights",
    "gradients": "Gradients",
    "optimizer": "Optimizer",
    "activations": "Activations",
    "logits": "Logits",
    "communication": "Communication buffers",
    "fragmentation": "Fragmentation",
}


@dataclass(frozen=True, slots=True)
class FrontierMark:
    """A fleet on the chart of days against dollars (GPU-hours where there is no price)."""

    days: float
    usd: float
    gpus: int
    name: str
    best: bool
    chosen: bool
    text: str


def title(report: TrainingReport) -> str:
    """What the page says first."""
    a = report.answer
    if a.best is None:
        return "No plan fits"
    n, gpu = a.best.plan.gpus, a.best.choice.accelerator.name
    fleet = f"{n:,} × {gpu}" if n > 1 else f"One {gpu}"
    return f"{fleet} for {words.number(a.best.days.likely)} days"


def figures(plan: PlanResult) -> list[tuple[str, str, str]]:
    """The figures of a plan: label, value, interval."""

    def of(label: str, e: Estimate, unit: str = "") -> tuple[str, str, str]:
        return (label, words.number(e.likely, unit), _range(e))

    rows = [of("Days", plan.days)]
    if plan.usd is not None:
        rows.append(("Cost", words.money(plan.usd.likely), _money_range(plan.usd)))
    rows += [
        of("GPU-hours in all", plan.gpu_hours),
        of("A step", plan.step_s, "s"),
        ("Share of the peak (MFU)", f"{plan.mfu.likely:.0%}",
         f"{plan.mfu.low:.0%} to {plan.mfu.high:.0%}"),
        ("The fullest GPU", words.number(plan.memory.likely, "GiB"),
         f"of {words.number(plan.memory.usable)} that can be used"),
    ]  # fmt: skip
    if plan.chance is not None:
        rows.append(("In time", words.percent(plan.chance), "chance to meet the deadline"))
    return rows


def split_rows(plan: PlanResult) -> list[dict[str, str]]:
    """How the job is split."""
    p = plan.plan
    zero = {0: "nothing", 1: "optimizer", 2: "optimizer and gradients", 3: "all (FSDP)"}
    data = p.gpus // (p.tp * p.pp * p.cp)
    rows = [
        ("GPUs", f"{p.gpus:,}"),
        ("Tensor parallel", str(p.tp)),
        ("Pipeline parallel", str(p.pp) + (f", {p.vp} chunks a rank" if p.vp > 1 else "")),
        ("Context parallel", str(p.cp)),
        ("Expert parallel", str(p.ep)),
        ("Data parallel", f"{data:,}"),
        ("Sharded over data ranks", zero[p.zero_stage]),
        ("Micro-batch", count(p.micro_batch, "sequence")),
        ("Batch of a step", f"{p.global_batch_seqs or data * p.micro_batch:,} sequences"),
        ("Tokens a day, nothing lost", words.number(plan.tokens_per_s.likely * SECONDS_A_DAY)),
        ("Activations computed again", p.recompute),
        ("Precision", p.precision),
        ("Network between machines", plan.choice.network.name if plan.choice.network else "none"),
    ]
    return [{"What": what, "Here": here} for what, here in rows]


def memory_rows(plan: PlanResult) -> list[tuple[str, float]]:
    """GiB of the fullest GPU by item, largest first; what is nothing is left out."""
    named = [
        (MEMORY_TITLES.get(name, name.replace("_", " ").capitalize()), gib)
        for name, gib in plan.memory.items.items()
        if gib > 0.005
    ]
    return sorted(named, key=lambda row: -row[1])


def part_rows(plan: PlanResult) -> list[tuple[str, float]]:
    """Share of the step by where it goes, in percent."""
    return [
        (name.replace("_", " ").capitalize(), 100 * share)
        for name, share in plan.parts.items()
        if share > 0.0005
    ]


def goodput_rows(plan: PlanResult) -> list[dict[str, str]]:
    """From the ideal GPU-hours to those that are paid."""
    ideal = plan.ideal_gpu_hours
    useful = ideal / plan.goodput.likely
    return [
        {"What": "Steps as fast as predicted", "GPU-hours": words.number(ideal), "By": "step time"},
        {
            "What": "With failures, checkpoints and stops",
            "GPU-hours": words.number(useful),
            "By": f"goodput {plan.goodput.likely:.0%} ({plan.goodput.low:.0%} to "
            f"{plan.goodput.high:.0%})",
        },
        {
            "What": "With experiments beside the final run",
            "GPU-hours": words.number(plan.gpu_hours.likely),
            "By": f"{number(plan.experiments.likely)} times ({number(plan.experiments.low)} to "
            f"{number(plan.experiments.high)})",
        },
    ]


def other_rows(report: TrainingReport) -> list[dict[str, str]]:
    """The next plans, each with what keeps it behind the first."""
    return [_row(p, p.behind) for p in report.answer.others]


def kind_rows(report: TrainingReport) -> list[dict[str, str]]:
    """The best plan on each kind of GPU, or that nothing fits there."""
    rows = []
    for choice, plan in zip(report.answer.job.choices, report.answer.by_choice, strict=True):
        if plan is None:
            rows.append(
                {"Plan": choice.name, "Days": "–", "Cost": "–", "Behind the first": "does not fit"}
            )
        else:
            rows.append(_row(plan, plan.behind or "the plan above"))
    return rows


def _row(plan: PlanResult, behind: str) -> dict[str, str]:
    fleet = f"{plan.plan.gpus:,} × {plan.choice.accelerator.name}"
    return {
        "Plan": f"{fleet}: {split_words(plan.plan)}",
        "Days": words.number(plan.days.likely),
        "Cost": words.money(plan.usd.likely) if plan.usd else "–",
        "Behind the first": behind,
    }


def frontier_marks(report: TrainingReport) -> list[FrontierMark]:
    """Every fleet's fastest plan as a point; of decades nobody would wait for, none.

    A year, or twice the days of the plan where that is longer, is the end of the chart.
    """
    best = report.answer.best
    longest = max(MOST_DAYS, 2 * best.days.likely if best is not None else 0.0)
    found = []
    for point in report.answer.frontier:
        r = point.result
        if r.days.likely > longest:
            continue
        usd = r.usd.likely if r.usd is not None else r.gpu_hours.likely
        chosen = best is not None and (r.plan.gpus, r.choice) == (best.plan.gpus, best.choice)
        text = f"{r.plan.gpus:,} × {r.choice.accelerator.name}: {split_words(r.plan)}"
        found.append(
            FrontierMark(
                r.days.likely, usd, r.plan.gpus, r.choice.accelerator.name, point.best, chosen, text
            )
        )
    return found


def left_out_words(report: TrainingReport) -> str:
    """How many fleets that chart leaves out, as a sentence; empty for none."""
    out = len(report.answer.frontier) - len(frontier_marks(report))
    if not out:
        return ""
    fleets = "fleet that takes" if out == 1 else "fleets that take"
    return f" {out:,} {fleets} over a year and over twice this plan's days are left out."


LEAST_WORTH_USD = 0.01  # of a GPU-hour: networks nearer than a cent are told as equal


def network_rows(report: TrainingReport) -> list[dict[str, str]]:
    """The cluster on each network, and what the difference is worth."""
    return [_network(o) for o in report.answer.networks]


def _network(o: NetworkOutcome) -> dict[str, str]:
    r = o.result
    if r is None:
        return {"Network": o.name, "A step": "does not fit", "Used": "–", "Cost": "–",
                "Worth": "–"}  # fmt: skip
    worth, whole = o.worth_usd_per_gpu_hour, o.worth_usd_per_gpu
    if o.current:
        told = "the present one"
    elif worth is None or whole is None:
        told = "–"
    elif abs(worth) < LEAST_WORTH_USD:
        told = "the same within a cent a GPU-hour"
    else:
        sign = "up to" if worth >= 0 else "only if cheaper by"
        told = (f"{sign} {_worth(worth, o.worth_range)} a GPU-hour, "
                f"{_worth(whole, o.worth_range_per_gpu)} a GPU over the run")  # fmt: skip
    if o.list_usd_per_gpu is not None:
        low, high = o.list_usd_per_gpu
        told += f"; list price {words.money(low)} to {words.money(high)} a GPU"
    return {
        "Network": o.name,
        "A step": f"{words.number(r.step_s.likely, 's')} ({_range(r.step_s)})",
        "Used": f"{r.utilization:.0%}",
        "Cost": f"{words.money(r.usd.likely)} ({_money_range(r.usd)})" if r.usd else "–",
        "Worth": told,
    }


def _worth(likely: float, ends: tuple[float, float] | None) -> str:
    """An amount with its range, smaller end first, whichever way it counts."""
    if ends is None:
        return words.money(abs(likely))
    low, high = sorted(abs(x) for x in ends)
    return f"{words.money(abs(likely))} ({words.money(low)} to {words.money(high)})"


def rule_rows(report: TrainingReport) -> list[dict[str, str]]:
    """The articles' rules beside what was computed."""
    return [
        {
            "The articles": f"{r.rule.says} ({r.rule.article})",
            "Computed": r.computed,
            "Verdict": "agrees"
            if r.agrees
            else "not touched"
            if r.agrees is None
            else f"misleads: {r.rule.misleads}",
        }
        for r in report.answer.rules
    ]


def shape_words(shape: ModelShape) -> str:
    """The model in a sentence."""
    total = words.number(shape.total_params)
    active = words.number(shape.active_params)
    size = f"{total} parameters"
    if shape.is_moe:
        size += f", {active} of them for each token ({shape.experts} experts)"
    exact = "; ".join((*(("counted exactly",) if shape.exact else ()), *shape.doubts))
    return (
        f"{shape.name or 'The model'}: {size}; {shape.layers} layers, {shape.hidden:,} wide, "
        f"{shape.attention.upper() if shape.attention != 'none' else 'no'} attention; {exact}."
    )


def _range(e: Estimate) -> str:
    return f"{words.number(e.low)} to {words.number(e.high)}"


def _money_range(e: Estimate) -> str:
    return f"{words.money(e.low)} to {words.money(e.high)}"
