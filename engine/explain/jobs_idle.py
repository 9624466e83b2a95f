"""A compute job that nobody runs: no useful hours were told, or no runs. Nothing is spent then.

What one run would take is worked out all the same, by the job's own hours where they were told.
"""

from __future__ import annotations

from engine.estimate.estimate import Estimate
from engine.workload.settings import Settings
from engine.workload.workload import Workload

IDLE = "No hours of use a month: nothing needs to run."
NOTHING = Estimate(0.0, 0.0, 0.0, "USD", ("your answer: no hours of use",))


def nothing_to_do(workload: Workload) -> bool:
    """Whether it was told that there are no useful hours, or no runs and no hours beside."""
    hours = workload.stated_hours_per_month
    return hours == 0 or (hours is None and workload.runs_per_month == 0)


def one_run(workload: Workload) -> Workload:
    """The job as if it had one run a month of its own hours; the usual job where none were told."""
    own = workload.hours_per_run or None
    none = {"useful_hours_per_month": None, "hours_per_day": None, "days_per_week": None}
    return workload.model_copy(
        update={**none, "hours_per_run": own, "runs_per_month": 1.0 if own else None}
    )


def without_fee(settings: Settings) -> Settings:
    """The terms without the licence's fee a month: nobody pays it for nothing."""
    jobs = settings.jobs.model_copy(update={"gpu_fee_usd_per_month": 0.0})
    return settings.model_copy(update={"jobs": jobs})
