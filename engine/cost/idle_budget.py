"""The idle budget: the share of a plan's own bill that is planned to stand idle, and what for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.cost.cash_flow import HOURS_PER_MONTH
from engine.cost.checks import Real, not_negative, share
from engine.cost.parameters import cost_parameters, value
from engine.errors import InputError

USES = ("stress_tests", "evaluation", "internal_tools", "nothing")


@dataclass(frozen=True, slots=True, eq=False)
class IdleBudget:
    """Cost and hours of the planned idle time, and how they divide among its uses."""

    usd_per_month: Real
    hours_per_month: float
    usd_by_use: Mapping[str, Real]


def default_uses() -> dict[str, float]:
    """Share of the idle hours by use, as the article lists them."""
    return {use: cost_parameters()[f"idle_use_{use}"].likely for use in USES}


def idle_budget(
    bill_usd_per_month: Real,
    idle_share: float | None = None,
    uses: Mapping[str, float] | None = None,
) -> IdleBudget:
    """Idle share × the plan's own bill, never a figure from elsewhere.

    idle_share : None takes the likely one of the table
    uses : share of the idle hours by use; they must sum to one
    """
    if idle_share is None:
        idle_share = value("idle_share")
    not_negative("bill_usd_per_month", bill_usd_per_month)
    share("idle_share", idle_share)
    split = dict(uses) if uses is not None else default_uses()
    for part in split.values():
        share("idle_uses", part)
    if abs(sum(split.values()) - 1) > 1e-9:
        raise InputError(f"they sum to {sum(split.values()):.0%}", where="idle_uses", right="100%")
    usd = bill_usd_per_month * idle_share
    return IdleBudget(
        usd, HOURS_PER_MONTH * idle_share, {use: usd * part for use, part in split.items()}
    )
