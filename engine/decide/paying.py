"""From a sized pool of machines to the rows of its cash flow: one way for points and for draws.

What the decision compares, what the recommendation shows and what the costs page takes apart are
sums over these rows and over nothing else. Amounts are arrays of the inputs' length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from engine.assessment import Acquisition
from engine.cost.cash_flow import CashFlow, CashLine, every_month
from engine.cost.cloud import CloudFees, fees_for
from engine.cost.rent import (
    LEAST_GOODPUT,
    TERM_MONTHS,
    Rental,
    dedicated,
    fee_lines,
    on_demand,
    reserved,
)
from engine.decide.candidates import Price, Spec, Unit
from engine.decide.evaluation import Context, Evaluation, Pool, Values
from engine.decide.numbers import Array
from engine.decide.priors import likely
from engine.estimate.reliability import spot_paid_goodput
from engine.workload.workload import BATCH_JOBS

COMMITTED: frozenset[Acquisition] = frozenset({"dedicated", "reserved_1y", "reserved_3y", "buy"})
STARTING = "Machines starting"
# Rows of owning that rise and fall with what hardware costs; power, rooms and people do not.
FOLLOW_HARDWARE = frozenset(
    {
        "Machines", "Network", "Installation", "Spares", "Maintenance", "Resale",
        "Cost of capital, written off", "Cost of capital, resale", "Rent until delivery",
    }
)  # fmt: skip


def spot_goodput(
    interruptions_per_node_day: Array | float, machines: Array | float, restart_h: Array | float
) -> Array:
    """Useful over paid time of spot machines that stop together; see `spot_paid_goodput`.

    Work is saved as often as costs least. Never below a twentieth.
    """
    per_hour = np.asarray(interruptions_per_node_day) / 24 * machines
    save = likely("checkpoint_stall_h")
    interval = np.sqrt(2 * save / np.maximum(per_hour, 1e-6))
    value = spot_paid_goodput(per_hour, interval=interval, save=save, restart=restart_h)
    return np.asarray(np.clip(value, LEAST_GOODPUT, 1.0))


def terms_of(spec: Spec, unit: Unit) -> Acquisition:
    """The terms on which a candidate has a unit: on demand where its own are not offered."""
    return spec.acquisition if spec.acquisition in unit.prices else "on_demand"


def pool_lines(
    terms: Acquisition,
    unit: Unit,
    units: Array,
    paid_hours: Array,
    goodput: Array,
    x: Values,
    ctx: Context,
    staff_part: float = 1.0,
    starting: Array | float = 0.0,
) -> tuple[CashLine, ...]:
    """The rows of machines on their terms over the horizon.

    units : GPUs or servers paid for, those that run side by side included
    paid_hours : hours a month in which each works or, where hours are paid, is paid for
    goodput : useful over paid hours on spot
    staff_part : part of a stated staff that falls on these machines
    starting : hours a month in which each starts, paid where hours are
    """
    months = ctx.workload.horizon_months
    price = unit.prices[terms]
    market = x["gpu_market_factor"] if unit.hardware == "gpu" else x["cpu_market_factor"]
    if price.owner is not None:
        return _owned(price, unit, units, paid_hours, market, x, staff_part)
    usual = unit.prices["on_demand"]
    rental = Rental(
        usd_per_hour=price.likely * market,
        min_months=price.min_months,
        after_term_usd_per_hour=usual.likely * market,
        sources=_source(price),
    )
    starts: tuple[CashLine, ...] = ()
    if np.any(np.asarray(starting) > 0):
        starts = on_demand(rental, units, starting, months, STARTING)
    if terms == "on_demand":
        return on_demand(rental, units, paid_hours, months) + starts
    if terms == "spot":
        useful = on_demand(rental, units, paid_hours * goodput, months, "Rent on spot")
        lost = on_demand(rental, units, paid_hours * (1 - goodput), months, "Lost to interruptions")
        return useful + lost + starts
    if terms == "dedicated":
        return dedicated(rental, units, months)
    return reserved(rental, units, months, TERM_MONTHS[terms], paid_hours + np.asarray(starting))


def usd_per_month(lines: tuple[CashLine, ...], months: int, n: int) -> Array:
    """Sum of the rows over the horizon by the month, shape (n,)."""
    total = np.zeros(n)
    for line in lines:
        total = total + np.asarray(line.total)
    return np.asarray(total / months)


def starting_usd_per_month(pool: Pool, months: int) -> Array:
    """What of a pool's cost a month is paid while its machines start."""
    starts = tuple(line for line in pool.lines if line.item == STARTING)
    return usd_per_month(starts, months, len(pool.units))


def fees_of(spec: Spec, pools: list[Pool], ctx: Context) -> tuple[CashLine, ...]:
    """What clouds add to the rent: fees of the first rented pool's provider, support of each."""
    terms, months = ctx.settings.costs, ctx.workload.horizon_months
    if not (terms.stored_gb or terms.egress_gb or terms.managed or terms.support):
        return ()
    found: list[CashLine] = []
    first = True
    for pool in pools:
        price = pool.unit.prices[terms_of(spec, pool.unit)]
        if price.owner is not None:
            continue
        rent = pool.lines if terms.support else ()
        found += fee_lines(cloud_fees(price, ctx, whole=first).fees, rent, months)
        first = False
    return tuple(found)


def licence_lines(spec: Spec, ctx: Context) -> tuple[CashLine, ...]:
    """What the software's licence costs more on GPUs, as the terms of the job say."""
    usd = ctx.settings.jobs.gpu_fee_usd_per_month
    if not usd or spec.gpu is None or ctx.workload.kind not in BATCH_JOBS:
        return ()
    months = ctx.workload.horizon_months
    return (CashLine("Licence for GPUs", "fees", usd, every_month(months), sources=("your term",)),)


def cloud_fees(price: Price, ctx: Context, whole: bool = True) -> CloudFees:
    """The fees of the provider whose price is taken, and what it has no row for.

    whole : with storage, egress and the control plane, which a plan pays once; else support alone
    """
    terms = ctx.settings.costs
    return fees_for(
        price.ref.provider if price.ref is not None else "",
        ctx.catalogue.running,
        egress_gb=terms.egress_gb if whole else 0.0,
        stored_gb=(terms.stored_gb or 0.0) if whole else 0.0,
        control_plane=terms.managed and whole,
        support=terms.support,
    )


def flow_of(e: Evaluation, ctx: Context, label: str = "") -> CashFlow:
    """The cash-flow table of an evaluated candidate at its first row of inputs.

    Rows of several pools carry the name of their hardware.
    """
    months = ctx.workload.horizon_months
    lines = tuple(first_row(x) for x in all_lines(e))
    useful = float(e.useful_hours[0]) * months
    return CashFlow(label or e.spec.id, months, tuple(x for x in lines if x.total), useful)


def drawn_flow(e: Evaluation, ctx: Context, label: str = "") -> CashFlow:
    """The same table with the amounts of every row of inputs."""
    months = ctx.workload.horizon_months
    return CashFlow(label or e.spec.id, months, tuple(all_lines(e)), e.useful_hours * months)


def all_lines(e: Evaluation) -> Iterator[CashLine]:
    """The rows of all pools, then the fees."""
    many = len(e.pools) > 1
    for pool in e.pools:
        head = f"{pool.unit.name}: " if many else ""
        yield from (replace(x, item=f"{head}{x.item}") for x in pool.lines)
    yield from e.fees


def first_row(line: CashLine) -> CashLine:
    """A row at the first of its draws."""
    amount = np.asarray(line.amount, float)
    return replace(line, amount=float(amount.flat[0]) if amount.ndim else float(amount))


def owning_factor(price: Price, x: Values) -> Array:
    """What owning costs over its likely value, from where its rows stand within their ranges.

    The input runs from 0.5 at the cheap end (10th percentile) to 2 at the dear one (90th).
    """
    assert price.owner is not None
    low, high = price.owner.spread
    place = np.log2(x["owning_place_in_range"])
    return np.asarray(np.where(place < 0, low ** np.abs(place), high ** np.abs(place)))


def _owned(
    price: Price,
    unit: Unit,
    units: Array,
    hours: Array,
    market: Array,
    x: Values,
    staff_part: float,
) -> tuple[CashLine, ...]:
    assert price.owner is not None
    machines = np.ceil(units / price.owner.units_per_machine - 1e-9)
    spread = owning_factor(price, x)
    return tuple(
        replace(line, amount=line.amount * spread * (market if line.item in FOLLOW_HARDWARE else 1))
        for line in price.owner.lines(machines, hours, staff_part)
    )


def _source(price: Price) -> tuple[str, ...]:
    ref = price.ref
    return () if ref is None else (f"{ref.provider} {ref.sku}, read on {ref.as_of.isoformat()}",)
