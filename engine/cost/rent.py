"""Renting: on demand, spot, reserved, dedicated months, capacity blocks, and what the bill adds.

Each acquisition is a function that returns rows of the cash-flow table. It knows prices and hours,
not which hardware they belong to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import pdtr

from engine.cost.cash_flow import HOURS_PER_MONTH, CashLine, every_month, once
from engine.cost.checks import Real, not_negative, positive, share, whole_months
from engine.errors import InputError
from engine.estimate.reliability import spot_paid_goodput, spot_wall_goodput, young_interval
from engine.wording import number

TERM_MONTHS = {"reserved_1y": 12, "reserved_3y": 36}


@dataclass(frozen=True, slots=True, eq=False)
class SpotTerms:
    """How often spot machines are taken back and what that costs. All times in hours.

    interruptions_per_hour : of one machine
    save : stall per checkpoint
    restart : paid time from the new machine's start to useful work
    requeue : unpaid wait for a new machine
    notice : warning before the machine is taken
    interval : work between checkpoints; None takes the best one
    together : whether the job stops when any of its machines is taken; replicas of a service don't
    """

    interruptions_per_hour: Real
    save: Real
    restart: Real
    requeue: Real
    notice: Real = 0.0
    interval: Real | None = None
    together: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class SpotRun:
    """Goodput on spot machines: per hour paid, and per hour of the calendar."""

    paid: Real
    wall: Real


@dataclass(frozen=True, slots=True, eq=False)
class Rental:
    """The price of renting one machine, and the terms that come with it.

    usd_per_hour : US dollars per machine and hour under the acquisition in question
    min_months : shortest time that a dedicated machine can be rented for
    after_term_usd_per_hour : on-demand price for months left over when a reservation has ended;
        None renews the reservation and owes its rest
    spot : needed for spot
    """

    usd_per_hour: Real
    min_months: int = 1
    after_term_usd_per_hour: Real | None = None
    spot: SpotTerms | None = None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Fees:
    """What a cloud's bill adds to the rent: US dollars a month, and support as a share of it."""

    egress: Real = 0.0
    storage: Real = 0.0
    managed_service: Real = 0.0
    support_share: Real = 0.0
    support: Real = 0.0
    sources: tuple[str, ...] = ()


NO_FEES = Fees()
# Below it spot is no way to work; as in the decision, so that no cost is without end.
LEAST_GOODPUT = 0.05


# --- acquisitions


def on_demand(
    rental: Rental,
    units: Real,
    paid_hours_per_month: Real,
    months: int,
    item: str = "Rent on demand",
) -> tuple[CashLine, ...]:
    """Pay for the hours used and for no others.

    paid_hours_per_month : hours that each machine runs, useful or not
    """
    price = positive("usd_per_hour", rental.usd_per_hour)
    amount = units * price * paid_hours_per_month
    return (CashLine(item, "rent", amount, every_month(months), sources=rental.sources),)


def spot_run(terms: SpotTerms, units: Real, mtbf: Real = np.inf) -> SpotRun:
    """Goodput of a job on spot machines.

    units : machines of the job; where it needs all of them together, any interruption stops it
    mtbf : hours between ordinary failures of the job
    """
    rate = not_negative("interruptions_per_hour", terms.interruptions_per_hour)
    if terms.together:
        rate = rate * units
    interval = terms.interval
    if interval is None:
        interval = young_interval(terms.save, 1 / np.maximum(rate + 1 / np.asarray(mtbf), 1e-9))
    paid = spot_paid_goodput(rate, interval, terms.save, terms.restart, terms.notice, mtbf)
    paid = np.maximum(paid, LEAST_GOODPUT)
    return SpotRun(paid, spot_wall_goodput(paid, rate, terms.requeue))


def spot(
    rental: Rental, units: Real, useful_hours_per_month: Real, months: int
) -> tuple[CashLine, ...]:
    """Pay for the hours used, of which interruptions, checkpoints and restarts take their share."""
    if rental.spot is None:
        raise InputError("missing", where="spot", right="interruption rate and restart time")
    run = spot_run(rental.spot, units)
    useful = on_demand(rental, units, useful_hours_per_month, months, "Rent on spot")
    lost = on_demand(
        rental, units, useful_hours_per_month * (1 / run.paid - 1), months, "Lost to interruptions"
    )
    return useful + lost


def reserved(
    rental: Rental, units: Real, months: int, term_months: int, used_hours_per_month: Real
) -> tuple[CashLine, ...]:
    """Pay for every hour of the term, used or idle.

    When the horizon ends inside a term, the rest of it is still owed. A horizon longer than the
    term goes on with on-demand rent if that price is known, otherwise with another term.
    """
    monthly = units * positive("usd_per_hour", rental.usd_per_hour) * HOURS_PER_MONTH
    whole_terms = months // term_months
    rest = months - whole_terms * term_months
    if whole_terms and rest and rental.after_term_usd_per_hour is not None:
        after = positive("after_term_usd_per_hour", rental.after_term_usd_per_hour)
        ends = whole_terms * term_months
        return (
            _commitment("Reservation", monthly, months, rental, until=ends),
            CashLine(
                "Rent on demand after the term",
                "rent",
                units * after * used_hours_per_month,
                every_month(months, first=ends),
                sources=rental.sources,
            ),
        )
    owed = (term_months - rest) % term_months
    return (
        _commitment("Reservation", monthly, months, rental),
        *_owed(monthly, owed, months, rental),
    )


def dedicated(rental: Rental, units: Real, months: int) -> tuple[CashLine, ...]:
    """Pay whole months, at least the minimum term."""
    monthly = units * positive("usd_per_hour", rental.usd_per_hour) * HOURS_PER_MONTH
    owed = max(whole_months("min_months", rental.min_months) - months, 0)
    return (
        _commitment("Dedicated rent", monthly, months, rental),
        *_owed(monthly, owed, months, rental),
    )


def capacity_blocks(
    usd_per_hour: Real,
    units: Real,
    days_per_block: int,
    blocks_per_month: Sequence[int],
    sources: tuple[str, ...] = (),
) -> tuple[CashLine, ...]:
    """Blocks of days, booked for a date and paid in advance, used or not.

    blocks_per_month : blocks that start in each month of the horizon
    """
    if not 1 <= days_per_block <= 182:
        raise InputError(f"{days_per_block} days", where="days_per_block", right="1 to 182")
    amount = units * positive("usd_per_hour", usd_per_hour) * 24 * days_per_block
    blocks = np.asarray(blocks_per_month, float)
    not_negative("blocks_per_month", blocks)
    return (CashLine("Capacity blocks", "rent", amount, blocks, "start", sources),)


def fee_lines(fees: Fees, rent: tuple[CashLine, ...], months: int) -> tuple[CashLine, ...]:
    """The fees that are not zero, as rows; support follows the rent month by month."""
    lines = []
    for item, field, usd in (
        ("Egress", "egress", fees.egress),
        ("Storage", "storage", fees.storage),
        ("Managed service", "managed_service", fees.managed_service),
        ("Support", "support", fees.support),
    ):
        if np.any(not_negative(field, usd)):
            lines.append(CashLine(item, "fees", usd, every_month(months), sources=fees.sources))
    if np.any(share("support_share", fees.support_share)):
        lines += [
            CashLine(
                f"Support on {line.item[0].lower()}{line.item[1:]}",
                "fees",
                fees.support_share * line.amount,
                line.schedule,
                line.at,
                fees.sources,
            )
            for line in rent
        ]
    return tuple(lines)


# --- what else a rent raises


@dataclass(frozen=True, slots=True)
class DeadlineCheck:
    """Whether a job on spot machines ends in time: on average, and how likely."""

    feasible: bool
    expected_hours: float
    chance: float
    text: str


def spot_deadline(
    useful_hours: float, deadline_hours: float, terms: SpotTerms, units: float
) -> DeadlineCheck:
    """Compare the calendar time of one run on spot machines with its deadline.

    Interruptions come at random (Poisson); each costs the wait, the restart and the lost work. The
    chance is that of no more interruptions than the spare time can bear.
    """
    positive("useful_hours", useful_hours)
    positive("deadline_hours", deadline_hours)
    expected = useful_hours / float(spot_run(terms, units).wall)
    rate = float(terms.interruptions_per_hour * (units if terms.together else 1))
    calm = useful_hours / float(spot_run(replace(terms, interruptions_per_hour=0.0), units).wall)
    spare = deadline_hours - calm
    if rate == 0 or spare < 0:
        chance = 1.0 if spare >= 0 else 0.0
    else:
        mean = rate * useful_hours
        each = max((expected - calm) / mean, 1e-9)
        chance = float(pdtr(np.floor(spare / each), mean))
    text = (
        f"On spot machines a run of {number(useful_hours)} h takes about {number(expected)} h with "
        f"its interruptions; the deadline is {number(deadline_hours)} h, met {chance:.0%} of "
        "the time."
    )
    return DeadlineCheck(expected <= deadline_hours, expected, chance, text)


def egress_usd(
    gb_per_month: Real, tiers: Sequence[tuple[float, float]], free_gb: float = 0.0
) -> Real:
    """US dollars a month for data leaving the cloud.

    tiers : (up to GB a month, US dollars per GB), ascending; the last may be infinite
    """
    gb = np.maximum(np.asarray(not_negative("egress_gb", gb_per_month), float) - free_gb, 0.0)
    usd, below = np.zeros_like(gb), 0.0
    for up_to, price in tiers:
        usd = usd + np.clip(gb - below, 0.0, up_to - below) * price
        below = up_to
    return usd if isinstance(gb_per_month, np.ndarray) else float(usd)


# --- helpers


def _commitment(
    item: str, monthly: Real, months: int, rental: Rental, until: int | None = None
) -> CashLine:
    schedule = every_month(months, until=until)
    return CashLine(item, "rent", monthly, schedule, "start", rental.sources)


def _owed(monthly: Real, owed: int, months: int, rental: Rental) -> tuple[CashLine, ...]:
    """The part of a commitment that outlasts the horizon, due in its last month."""
    if owed <= 0:
        return ()
    item = f"Commitment left: {owed} months"
    return (
        CashLine(item, "rent", monthly, once(months, months - 1) * owed, "end", rental.sources),
    )
