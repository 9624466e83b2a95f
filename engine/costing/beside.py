"""What stands beside the bill: planned idle hours, the move to other hardware, electricity."""

from __future__ import annotations

import numpy as np

from engine.assessment import Acquisition
from engine.cost.break_even import Range
from engine.cost.carbon import Carbon, carbon
from engine.cost.cash_flow import HOURS_PER_MONTH
from engine.cost.idle_budget import USES, IdleBudget, idle_budget
from engine.cost.migration import Migration, MigrationResult, assess
from engine.cost.ownership import Machine, machine_for
from engine.cost.parameters import cost_parameters, value
from engine.costing.case import Case
from engine.costing.model import Way
from engine.decide.candidates import Unit
from engine.decide.evaluation import Evaluation, Pool
from engine.decide.owning import CARDS_PER_SERVER
from engine.decide.paying import COMMITTED
from engine.errors import InputError
from engine.estimate.estimate import Estimate
from engine.workload.answers import Current, Location

MONTHS_PER_YEAR = 12


def idle(case: Case, way: Way) -> tuple[IdleBudget, float]:
    """The planned idle hours of the chosen way, and their share."""
    stated = case.terms.idle_pct
    share = value("idle_share") if stated is None else stated / 100
    uses = case.terms.idle_uses
    total = sum(uses)
    split = dict(zip(USES, (u / total for u in uses), strict=True)) if uses else None
    bill = way.headline.per_month.likely if way.headline is not None else 0.0
    return idle_budget(max(bill, 0.0), share, split), share


def move(case: Case, way: Way, e: Evaluation) -> tuple[MigrationResult | None, str]:
    """The move from today's hardware, or why there is none to be worked out."""
    w = case.answer.workload
    if w.current not in (Current.cpu, Current.gpu):
        return None, "Nothing runs today, so nothing has to be moved."
    placed = case.specs[next(iter(case.specs))].placement
    if placed == w.current.value:
        return None, f"It stays on {'GPUs' if placed == 'gpu' else 'CPU servers'}; no code moves."
    if not w.current_usd_per_month:
        return None, "Enter what today's machines cost a month, on the page of the job's details."
    if way.headline is None or way.headline.per_month.likely <= 0:
        return None, "The chosen way has no price, so there is no bill to compare."
    runs = float(case.point["runs_per_month"][0])
    after = float(e.hours_per_run[0])
    before = float(case.point["useful_hours_per_month"][0]) / max(runs, 1e-9)
    if after <= 0 or before <= 0:  # a service: it answers as before, only the bill changes
        before, after, runs = 1.0, 1.0, 0.0
    months, engineers = plan_of_move(case)
    return (
        assess(
            Migration(
                usd_before=w.current_usd_per_month,
                usd_after=way.headline.per_month.likely,
                hours_before=before,
                hours_after=after,
                runs_per_month=runs,
                engineers=engineers,
                planned_months=months,
                usd_per_engineer_month=usd_per_engineer_month(case),
                overrun=_overrun(case),
                usd_per_hour_saved=case.terms.usd_per_hour_saved,
            )
        ),
        "",
    )


def plan_of_move(case: Case) -> tuple[float, float]:
    """Months planned for the move and the engineers on it; from the kind of work if not stated."""
    engineers = case.terms.move_engineers
    people = 1.0 if engineers is None else engineers
    stated = case.terms.move_months
    work = float(case.point["rewrite_months"][0])  # engineer-months
    return (stated if stated is not None else max(work, 0.1) / max(people, 1.0)), people


def _overrun(case: Case) -> Range:
    """Time taken over time planned.

    A stated plan overruns as moves do. Where none was, the months of the kind of work are what
    such moves took, from the quick ones to those that overran: nothing is added to them.
    """
    if case.terms.move_months is not None:
        told = cost_parameters()["migration_overrun"]
        return Range(told.low, told.likely, told.high)
    took = case.context.inputs.ranges["rewrite_months"]
    if took.likely <= 0:
        return Range(1.0, 1.0, 1.0)
    return Range(took.low / took.likely, 1.0, took.high / took.likely)


def usd_per_engineer_month(case: Case) -> float:
    """What an engineer costs a month, fully loaded."""
    stated = case.terms.engineer_usd_per_month
    if stated is not None:
        return stated
    return case.context.catalogue.capital["staff-cost"].likely / MONTHS_PER_YEAR


def electricity(case: Case, e: Evaluation, terms: Acquisition) -> Carbon:
    """kWh and kg CO2e of a month, over all pools of the plan, on the terms that are looked at."""
    found = [_pool_power(case, pool, terms) for pool in e.pools]
    kwh = sum(c.kwh_per_month for c in found)
    parts = [c.kg_co2e_per_month for c in found]
    emitted = Estimate(
        sum(p.low for p in parts),
        sum(p.likely for p in parts),
        sum(p.high for p in parts),
        parts[0].unit,
        parts[0].sources,
    )
    return Carbon(kwh, emitted, found[0].region, found[0].source)


def _pool_power(case: Case, pool: Pool, terms: Acquisition) -> Carbon:
    used = min(float(pool.busy_hours[0]), HOURS_PER_MONTH)
    # What is committed to stays switched on all month, used or not.
    started = used + float(pool.starting_hours[0])
    on = HOURS_PER_MONTH if terms in COMMITTED or pool.service else started
    place = region_of(case, pool, terms)
    owner = pool.unit.prices["buy"].owner if terms == "buy" and "buy" in pool.unit.prices else None
    if owner is not None:  # the power that the rows of the purchase pay for
        bought = float(np.ceil(pool.paid_units[0] / owner.units_per_machine - 1e-9))
        own = owner.plan(int(bought)).terms
        load = float(np.asarray(own.kw_per_unit))
        rest = load * float(np.asarray(own.idle_power_share))
        return carbon(bought, load, used, float(np.asarray(own.pue)), place, rest, on)
    machines = float(np.ceil(pool.paid_units[0] / pool.unit.per_machine - 1e-9))
    kw = kw_per_machine(case, pool.unit)
    idle_share = cost_parameters()["idle_power_share"].likely
    stated = case.terms.pue
    pue = stated if stated is not None else case.context.catalogue.capital["pue-industry"].likely
    return carbon(machines, kw, used, pue, place, kw * idle_share, on)


def region_of(case: Case, pool: Pool, terms: Acquisition) -> str:
    """The grid: of the price's region, else of where the data may be; owned, that of its power."""
    location = case.answer.workload.location
    if terms == "buy" and "buy" in pool.unit.prices:
        return "eu" if location is Location.eu else "us"  # as the rows of the price of power
    price = pool.unit.prices.get(terms, pool.unit.prices["on_demand"]).ref
    if price is not None and price.region not in ("", "any", "unknown"):
        return price.region
    return {Location.eu: "eu", Location.us: "us"}.get(location, "world")


def kw_per_machine(case: Case, unit: Unit) -> float:
    """Draw of one machine at load: the purchase table's, or its accelerators' and a server's."""
    server = cost_parameters()["cpu_node_kw"].likely
    if unit.accelerator is None:
        # A virtual server draws its part of a two-socket one.
        return server * min(unit.vcpu / 192.0, 1.0)
    watts = unit.accelerator.tdp_w or 350.0
    try:
        machine: Machine = machine_for(unit.sku, CARDS_PER_SERVER, watts)
    except InputError:
        return unit.per_machine * watts / 1000 + server * unit.per_machine / 8
    whole = (
        case.context.catalogue.capital[machine.kw].likely
        if isinstance(machine.kw, str)
        else machine.kw
    )
    return whole * unit.per_machine / max(machine.gpus, 1)
