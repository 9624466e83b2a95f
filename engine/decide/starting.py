"""The hours in which rented machines start: paid before each run that finds them switched off."""

from __future__ import annotations

import numpy as np

from engine.cost.cash_flow import HOURS_PER_MONTH
from engine.decide.numbers import Array
from engine.wording import duration, money, number

WORTH_SAYING_SHARE = 0.1
WORTH_SAYING_USD = 1.0


def starting_hours(
    runs_per_month: Array | float, busy_hours: Array | float, start_h: Array | float
) -> Array:
    """Hours a month in which a machine that is rented run by run starts.

    Never more than leaving it on from one run to the next, which is then what one does.

    busy_hours : a month in which it works
    start_h : from the order to the first useful work (decision_parameters.csv, `gpu_start_h` and
        `cpu_start_h`)
    """
    idle = np.maximum(HOURS_PER_MONTH - np.asarray(busy_hours), 0.0)
    return np.asarray(np.minimum(np.asarray(runs_per_month) * start_h, idle))


def start_note(
    name: str, usd: float, usd_per_month: float, runs_per_month: float, start_h: float
) -> str:
    """What of the cost of a month the starts are; empty where it is little.

    usd : for the starts; usd_per_month : of these machines, starts included
    """
    if usd < max(WORTH_SAYING_SHARE * usd_per_month, WORTH_SAYING_USD):
        return ""
    return (
        f"{money(usd)} of the {money(usd_per_month)} a month for {name} are paid while machines "
        f"start, about {duration(start_h)} before each of {number(runs_per_month)} runs; fewer "
        "runs, fewer machines for longer, or machines that stay on avoid it."
    )
