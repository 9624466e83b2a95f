"""A job that nobody runs: no hours of use were told, no runs, or runs that take no time.

Nothing needs hardware then. What one run a month would take (a service: what it takes around the
clock) is worked out all the same, and every answer opens with the words that say so.
"""

from __future__ import annotations

from engine.workload.answers import Kind
from engine.workload.workload import HOURS_PER_MONTH, LLM_TRAINING, SERVICES, Workload

ONCE, SERVED = "For one run a month", "Around the clock"
ASKED = {Kind.llm_pretraining: "For one run"}
ONE_RUN = "one run a month, as none was told"


def nothing_to_do(w: Workload) -> bool:
    """Whether it was told that the job does not run.

    No useful hours; or no runs, or runs of no time, and no hours told beside them. A service has no
    runs. What training a language model takes follows from its runs, whatever hours are told.
    """
    hours = w.stated_hours_per_month
    if w.kind in SERVICES:
        return hours == 0
    if w.kind in LLM_TRAINING and w.runs_per_month == 0:
        return True
    return hours == 0 or (hours is None and 0 in (w.runs_per_month, w.hours_per_run))


def idle_head(w: Workload) -> str:
    """That nothing needs machines, in words; empty where the job runs."""
    if not nothing_to_do(w):
        return ""
    if w.kind is Kind.pipeline:
        return "No runs, so no stage needs machines but what serves"
    return "Nothing runs, so nothing needs renting or buying"


def idle_note(w: Workload) -> str:
    """The same with what is shown in place of nothing; empty where the job runs."""
    head = idle_head(w)
    return f"{head}; shown is {_shown(w.kind)}." if head else ""


def shown_instead(w: Workload) -> str:
    """What is shown in place of nothing, as a sentence; empty where the job runs."""
    return f"Shown is {_shown(w.kind)}." if nothing_to_do(w) else ""


def hours_served(w: Workload) -> float:
    """Hours of a month in which a service runs: those told, else all.

    None at all is no service, which is shown around the clock. The hours of a pipeline are those of
    its runs; what serves at its end does so around the clock.
    """
    told = None if w.kind is Kind.pipeline else w.stated_hours_per_month
    return min(told, HOURS_PER_MONTH) if told else HOURS_PER_MONTH


def headed(w: Workload, sentence: str) -> str:
    """A verdict, behind the words that nothing runs, and for what it is, where that is so."""
    head = idle_head(w)
    if not head:
        return sentence
    return f"{head}. {ASKED.get(w.kind, SERVED if w.kind in SERVICES else ONCE)}: {sentence}"


def _shown(kind: Kind) -> str:
    if kind in SERVICES:
        return "what the service would take around the clock"
    if kind is Kind.llm_pretraining:
        return "one run within the horizon"
    return "one run a month"
