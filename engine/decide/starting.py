"""What rented machines cost while they start, where that is more than next to nothing."""

from __future__ import annotations

from engine.decide.service_sizing import service_parameters
from engine.wording import duration, money, number
from engine.workload.workload import HOURS_PER_MONTH

WORTH_SAYING_SHARE = 0.1
WORTH_SAYING_USD = 1.0


def start_usd_per_month(
    units: float, usd_per_unit_hour: float, runs_per_month: float, hours_per_run: float
) -> float:
    """US dollars a month for the starts of machines that are rented run by run.

    Never more than leaving them on from one run to the next
    (service_parameters.csv, `start_min`).
    """
    idle = max(HOURS_PER_MONTH - runs_per_month * hours_per_run, 0.0)
    return units * usd_per_unit_hour * min(runs_per_month * _start_h(), idle)


def start_note(
    name: str, units: float, usd_per_unit_hour: float, runs_per_month: float, hours_per_run: float,
    counted_usd_per_month: float,
) -> str:  # fmt: skip
    """The same in words; empty where it is little beside what is counted."""
    usd = start_usd_per_month(units, usd_per_unit_hour, runs_per_month, hours_per_run)
    if usd < max(WORTH_SAYING_SHARE * counted_usd_per_month, WORTH_SAYING_USD):
        return ""
    return (
        "Not counted: machines that are rented for a run are paid while they start, about "
        f"{duration(_start_h())} each time. For {number(runs_per_month)} runs a month that is up "
        f"to {money(usd)} more for {name}; fewer starts, fewer machines for longer, or machines "
        "that stay on avoid it."
    )


def _start_h() -> float:
    return service_parameters()["start_min"].likely / 60.0
