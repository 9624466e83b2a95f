"""The articles' layouts beside what they come to, as a table for the page and the command line."""

from __future__ import annotations

from collections.abc import Sequence

from engine.estimate.layout_cases import WorkedLayout
from engine.estimate.search_results import split_words
from engine.report import words
from engine.wording import number


def layout_rows(layouts: Sequence[WorkedLayout]) -> list[dict[str, str]]:
    """A row a figure, a column a layout."""
    told = [_column(w) for w in layouts]
    heads = [f"{w.case.gpus:,} × {w.here.choice.accelerator.name} ({w.case.article})"
             for w in layouts]  # fmt: skip
    return [
        {"Layout": what} | dict(zip(heads, (column[what] for column in told), strict=True))
        for what in told[0]
    ]


def layout_notes(layouts: Sequence[WorkedLayout]) -> list[str]:
    """What each article says, and what had to be assumed."""
    return [f"{w.case.article}: {w.case.says}. Assumed: {w.case.settings}." for w in layouts]


def _column(w: WorkedLayout) -> dict[str, str]:
    case, here, best = w.case, w.here, w.best
    data = case.gpus // (case.tp * case.pp)
    faster = 1 - best.days.likely / here.days.likely
    return {
        "Split": split_words(here.plan),
        "Batch": f"{case.micro_batch} × {case.accumulation} × {data} = {case.batch:,} sequences",
        "Fullest GPU": f"{words.number(here.memory.likely)} of "
        f"{words.number(here.memory.usable)} usable GiB",
        "Share of the peak (MFU)": f"{here.mfu.likely:.0%} ({here.mfu.low:.0%} to "
        f"{here.mfu.high:.0%})",
        "Stages wait": f"{case.bubble:.0%} of the time, ({case.pp} − 1)/({case.accumulation} + "
        f"{case.pp - 1})" if case.pp > 1 else "no stages",
        "Tokens a day": words.number(w.tokens_a_day),
        "Its run": f"{number(case.tokens_b)} billion tokens in {_days(here.days.likely)} "
        f"({_days(here.days.low)} to {_days(here.days.high)})",
        "Fastest found on these GPUs": f"{split_words(best.plan)}: {_days(best.days.likely)}, "
        + (f"{faster:.0%} less" if faster > 0.005 else "the same"),
    }  # fmt: skip


def _days(days: float) -> str:
    return f"{number(days)} days" if days >= 2 else f"{number(24 * days)} hours"
