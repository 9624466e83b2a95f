"""The training plan for a shell: words, plain values, and the launch kit."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import Any

from engine.errors import InputError
from engine.estimate.estimate import Estimate
from engine.estimate.layout_cases import worked_layouts
from engine.estimate.training_job import PlanResult
from engine.explain import training_patterns
from engine.planning import training_view
from engine.planning.layout_words import layout_rows
from engine.planning.training import TrainingReport, launch_ask
from engine.report.launch import launch_kit
from engine.workload.settings import Settings
from engine.workload.workload import Workload

WIDTH = 96


def training_text(report: TrainingReport) -> str:
    """The plan, its memory, what is behind the next plans, and what to mind."""
    a = report.answer
    if a.best is None:
        return f"{no_plan(report)}\n"
    lines = [training_view.title(report), "", *textwrap.wrap(a.verdict, WIDTH)]
    lines += textwrap.wrap(a.best.why, WIDTH)
    lines += ["", *(f"{x:<34} {y:<18} {z}" for x, y, z in training_view.figures(a.best))]
    lines += ["", "Split"]
    lines += [f"  {row['What']:<32} {row['Here']}" for row in training_view.split_rows(a.best)]
    lines += ["", "Memory of the fullest GPU, GiB"]
    lines += [f"  {item:<32} {gib:8.2f}" for item, gib in training_view.memory_rows(a.best)]
    used = training_patterns.rows(a.best)
    if used:
        lines += ["", training_patterns.TITLE]
    for row in used:
        told = f"{row['Pattern']}; {row['A GPU sends in a step']}"
        told += "" if row["Of the step"] == "–" else f"; {row['Of the step']} of the step"
        lines += textwrap.wrap(told, WIDTH, initial_indent="  ", subsequent_indent="    ")
    if a.others:
        lines += ["", "The next plans"]
        lines += [f"  {row['Plan']}: {row['Behind the first']}"
                  for row in training_view.other_rows(report)]  # fmt: skip
    for head, texts in (("Mind", a.warnings), ("Assumed", a.assumptions)):
        if texts:
            lines += ["", head, *(f"  {line}" for t in texts for line in textwrap.wrap(t, WIDTH))]
    return "\n".join(lines) + "\n"


def training_json(report: TrainingReport) -> dict[str, Any]:
    """The plan and the next ones as plain values."""
    a = report.answer
    return {
        "schema": "clusterfit/training-plan",
        "version": 1,
        "verdict": a.verdict,
        "plan": None if a.best is None else _plan(a.best),
        "others": [_plan(p) for p in a.others],
        "smallest": None if a.smallest is None else _plan(a.smallest),
        "nothing_fits": None if a.nothing is None else a.nothing.reason,
        "frontier": [asdict(m) for m in training_view.frontier_marks(report)],
        "networks": training_view.network_rows(report),
        "rules": training_view.rule_rows(report),
        "patterns": []
        if a.best is None
        else [asdict(p) for p in training_patterns.patterns(a.best)],
        "article_layouts": layout_rows(worked_layouts()),
        "warnings": list(a.warnings),
        "assumptions": list(a.assumptions),
        "sources": list(a.sources),
    }


def training_kit(report: TrainingReport, workload: Workload, settings: Settings) -> bytes:
    """The launch kit of the plan as a zip.

    Raises
    ------
    InputError : where no plan fits, or a term can't stand in a launch file
    """
    best = report.answer.best
    if best is None:
        raise InputError(no_plan(report), right="more GPUs, or a smaller model")
    saves = settings.reliability.interval_min
    ask = launch_ask(workload, settings.training, report, best, checkpoint_minutes=saves)
    return launch_kit(best.plan, ask)


def no_plan(report: TrainingReport) -> str:
    """Why nothing fits, with the smallest that would."""
    found = report.answer.nothing
    if found is None:
        return "no plan fits"
    if found.smallest is None:
        return found.reason
    p = found.smallest
    return f"{found.reason} The smallest that fits: {p.plan.gpus:,} x {p.choice.accelerator.name}."


def _plan(p: PlanResult) -> dict[str, Any]:
    def span(e: Estimate) -> dict[str, float]:
        return {"low": e.low, "likely": e.likely, "high": e.high}

    return {
        "gpu": p.choice.accelerator.sku,
        "network": p.choice.network.id if p.choice.network else None,
        "plan": asdict(p.plan),
        "memory_gib": {"items": p.memory.items, "low": p.memory.low, "likely": p.memory.likely,
                       "high": p.memory.high, "usable": p.memory.usable},
        "step_s": span(p.step_s),
        "mfu": span(p.mfu),
        "days": span(p.days),
        "gpu_hours": span(p.gpu_hours),
        "usd": None if p.usd is None else span(p.usd),
        "goodput": span(p.goodput),
        "experiments": span(p.experiments),
        "chance_in_time": p.chance,
        "calibrated": p.calibrated,
        "why": p.why,
        "behind": p.behind,
    }  # fmt: skip
