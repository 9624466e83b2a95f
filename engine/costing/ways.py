"""Every way to have the chosen hardware, each with its own cash-flow table."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from engine.assessment import ACQUISITION_LABELS, Acquisition
from engine.cost import rent as renting
from engine.cost.cash_flow import HOURS_PER_MONTH, HOURS_PER_YEAR, CashFlow, CashLine
from engine.cost.commitment import Demand
from engine.cost.compare import overhead_beside_the_article
from engine.cost.mix import OwnedFor, mixed_cost
from engine.cost.network import rail_optimised
from engine.cost.ownership import cheap, dear
from engine.cost.parameters import cost_parameters, source_of
from engine.cost.rent import Rental, SpotTerms
from engine.costing.case import Case
from engine.costing.model import Headline, Owning, Way
from engine.decide.candidates import allowed_region, price_ref
from engine.decide.evaluation import Context, Evaluation, Pool, Values
from engine.decide.idle import hours_served
from engine.decide.numbers import Array
from engine.decide.owning import SMALLEST_OWNED_VCPU, STORAGE
from engine.decide.paying import cloud_fees, first_row
from engine.decide.priors import likely
from engine.decide.uncertainty import interval
from engine.errors import InputError
from engine.estimate.estimate import Estimate
from engine.wording import count, number
from engine.workload.cost_terms import DemandBy, Site
from engine.workload.workload import LLM_TRAINING

HOURS_PER_DAY = 24.0
SITES = {Site.colocation: "into colocation", Site.own_room: "for a room of your own"}
RENTED: tuple[Acquisition, ...] = (
    "on_demand", "spot", "dedicated", "reserved_1y", "reserved_3y",
)  # fmt: skip
BURSTS: tuple[Acquisition, ...] = ("on_demand", "spot")
MIX_BASES: tuple[Acquisition, ...] = ("dedicated", "reserved_1y", "reserved_3y", "buy")


def pure_ways(case: Case) -> list[Way]:
    """The chosen hardware on each of the terms, those on which it can't be had included."""
    found = [_rented(case, terms) for terms in RENTED]
    found.insert(3, _blocks(case))
    return found + [_bought(case, site) for site in SITES]


def _rented(case: Case, terms: Acquisition) -> Way:
    label = ACQUISITION_LABELS[terms].capitalize()
    spec = case.specs.get(terms)
    if spec is None:
        reason = "no provider in the table offers this hardware on these terms"
        return Way(terms, label, terms, None, None, refusals=(reason,))
    e = case.at_point(spec)
    flow, drawn = case.flows(spec, label)
    pool = case.lead(e)
    price = pool.unit.prices.get(terms, pool.unit.prices["on_demand"])
    notes = tuple(
        f"the table has no price of {item} for {price.ref.provider if price.ref else 'it'}: the "
        "middle of what others charge is taken"
        for item in cloud_fees(price, case.context).assumed
    )
    deadline, wait = _deadline(case, pool) if terms == "spot" else (None, ())
    return Way(
        terms,
        label,
        terms,
        flow,
        headline(case, flow, drawn),
        price.ref,
        _refusals(e),
        (*_term_notes(terms, price.min_months, case.months), *wait, *notes),
        deadline,
    )


def _bought(case: Case, site: Site) -> Way:
    id, label = f"buy_{site.value}", f"Bought {SITES[site]}"
    found = case.standing_in(site)
    if found is None:
        return Way(id, label, "buy", None, None, refusals=(_not_sold(case),))
    ctx, spec = found
    e = case.at_point(spec, ctx)
    flow, drawn = case.flows(spec, label, ctx)
    pool = case.lead(e)
    own = owning(case, pool, flow)
    wait = own.delivery_months
    notes: tuple[str, ...] = ()
    if wait:
        notes = (f"delivered in month {wait + 1}; until then the machines are rented on demand",)
    if case.terms.egress_gb:
        notes += ("the line that carries data out of the place has no price: it is left out",)
    return Way(
        id, label, "buy", _sourced(case, pool, flow), headline(case, flow, drawn), None,
        _refusals(e), notes, None, own, elsewhere=site is not case.terms.site,
    )  # fmt: skip


def _sourced(case: Case, pool: Pool, flow: CashFlow) -> CashFlow:
    """The table of a purchase with the source of what the tables' rows don't say themselves."""
    ref = pool.unit.prices["on_demand"].ref
    yours = ("your term",)
    stated = {
        "Power": yours if case.terms.usd_per_kwh is not None else (),
        "Cooling and losses": yours if case.terms.pue is not None else (),
        "Staff": yours if case.terms.staff_fte is not None else (),
        "Storage": ("your term", source_of(case.context.catalogue.capital[STORAGE])),
        "Rent until delivery": ()
        if ref is None
        else (f"{ref.provider} {ref.sku}, read on {ref.as_of.isoformat()}",),
    }

    def named(line: CashLine) -> CashLine:
        said = stated.get(line.item.rpartition(": ")[2], ())
        return replace(line, sources=tuple(dict.fromkeys((*said, *line.sources)))) if said else line

    return replace(flow, lines=tuple(named(line) for line in flow.lines))


def _not_sold(case: Case) -> str:
    spec = next(iter(case.specs.values()))
    server = spec.cpu
    if server is not None and server.vcpu < SMALLEST_OWNED_VCPU:
        return (
            f"servers with {server.vcpu:.0f} vCPU are rented parts of a machine; whole ones have "
            f"{SMALLEST_OWNED_VCPU} and more"
        )
    return "the table has no purchase price for this hardware"


def _blocks(case: Case) -> Way:
    """Capacity blocks: booked for a number of days and paid in advance, used or not."""
    id, label = "capacity_block", "Capacity blocks"
    spec = case.specs.get("on_demand") or next(iter(case.specs.values()))
    e = case.at_point(spec)
    pool = case.lead(e)
    unit = pool.unit
    offers = [
        o
        for o in case.context.catalogue.offers
        if o.acquisition == "capacity_block"
        and o.rankable
        and o.accelerator_sku == unit.sku
        and unit.hardware == "gpu"
        and allowed_region(o.region, case.answer.workload.location)
    ]
    if not offers:
        reason = "no provider in the table sells blocks of this hardware"
        return Way(id, label, id, None, None, refusals=(reason,))
    if pool.service:
        reason = "a service runs around the clock, and a block ends"
        return Way(id, label, id, None, None, refusals=(reason,))
    offer = min(offers, key=lambda o: o.usd_per_gpu_hour or math.inf)
    assert offer.usd_per_gpu_hour is not None
    days = case.terms.block_days
    starts = blocks_per_month(float(pool.busy_hours[0]), days, case.months)
    source = (f"{offer.provider} {offer.sku}",)
    units = np.ceil(pool.units / offer.gpus_per_instance) * offer.gpus_per_instance

    def lines(of: Evaluation, units: Array, market: Array) -> tuple[CashLine, ...]:
        usd = offer.usd_per_gpu_hour * market  # type: ignore[operator]
        blocks = renting.capacity_blocks(usd, units, days, starts, source)
        rest = [x for p in of.pools if p is not case.lead(of) for x in p.lines]
        return (*blocks, *rest, *of.fees)

    ones = np.ones(1)
    flow = CashFlow(
        label,
        case.months,
        tuple(first_row(x) for x in lines(e, units, ones)),
        float(e.useful_hours[0]) * case.months,
    )
    drawn_e = case.drawn(spec)
    lead = case.lead(drawn_e)
    many = np.ceil(lead.units / offer.gpus_per_instance) * offer.gpus_per_instance
    market = case.draws["gpu_market_factor"]
    drawn = CashFlow(
        label, case.months, lines(drawn_e, many, market), drawn_e.useful_hours * case.months
    )
    note = (
        f"{sum(starts)} blocks of {days} days for {float(pool.busy_hours[0]):,.0f} h a month of "
        "work; booked for a date and paid in advance"
    )
    price = price_ref(offer, case.answer.today)
    refusals = _refusals(e)
    if price.freshness == "warn":
        note += f"; the price is {price.age_days} days old"
    return Way(id, label, id, flow, headline(case, flow, drawn), price, refusals, (note,))


def blocks_per_month(busy_hours: float, days: int, months: int) -> list[int]:
    """Blocks that start in each month, one after the other, so that each month's work is done.

    What is left of a block when its days are over is lost: the next month needs a block of its own,
    unless one that is longer than a month still runs.
    """
    length = days * HOURS_PER_DAY / HOURS_PER_MONTH  # months
    end, starts = 0.0, []
    for month in range(months):
        started = 0
        while max(min(end, month + 1.0) - month, 0.0) * HOURS_PER_MONTH < busy_hours - 1e-9:
            if end >= month + 1.0:  # the whole month is booked and the work does not fit
                break
            end = max(end, float(month)) + length
            started += 1
        starts.append(started)
    return starts


# --- mixes


def mixes(case: Case, demand: Demand, pure: dict[str, Way]) -> list[Way]:
    """A committed base and a rented burst, for each pair: the best number of machines each."""
    found = []
    for terms in MIX_BASES:
        base = pure.get(terms if terms != "buy" else f"buy_{case.terms.site.value}")
        if terms not in case.specs or base is None or base.headline is None:
            continue
        for burst in BURSTS:
            rented = pure[burst]
            if rented.headline is not None and _in_time(case, terms, burst):
                found.append(_mix(case, demand, terms, base, burst, rented))
    return found


def _in_time(case: Case, terms: Acquisition, burst: Acquisition) -> bool:
    """Whether base and burst are had, and a base on these terms works within the horizon."""
    if burst not in case.specs:
        return False
    prices = case.lead(case.at_point(case.specs[terms])).unit.prices
    price = prices.get(terms)
    if price is None or burst not in prices:  # only what runs beside it is had on these terms
        return False
    owner = price.owner
    if owner is None:
        return True
    return all(owner.plan(n).terms.delivery_months < case.months for n in (1, 2))


def _mix(
    case: Case, demand: Demand, terms: Acquisition, base: Way, burst: Acquisition, rented: Way
) -> Way:
    e = case.at_point(case.specs[burst])
    pool, lead = case.lead(e), case.lead(case.at_point(case.specs[terms]))
    owner = lead.unit.prices[terms].owner
    # A GPU is rented alone and bought by the machine: then the demand counts what is bought.
    size = pool.unit.per_machine if owner is None else owner.units_per_machine
    asked = replace(demand, levels=demand.levels * pool.unit.per_machine / size)
    committed: Rental | OwnedFor = (
        _rental(case, lead, terms, size)
        if owner is None
        else partial(owner.ownership, months=case.months)
    )
    # A demand of the user's own is other work, which counts its own hours.
    own_work = case.terms.demand_by is not DemandBy.plan
    planned = mixed_cost(
        committed, terms, _rental(case, pool, burst, size), burst, asked, case.months,
        by_level=not own_work or asked.all_or_nothing,
    )  # fmt: skip
    mix = planned.mix
    useful = demand.mean / demand.peak * HOURS_PER_MONTH if own_work else float(e.useful_hours[0])
    others = [x for p in e.pools if p is not pool for x in p.lines]
    flow = replace(
        planned.flow,
        lines=(*planned.flow.lines, *(first_row(x) for x in (*others, *e.fees))),
        useful_hours=useful * case.months,
    )
    rest = sum(float(np.asarray(first_row(x).total)) for x in (*others, *e.fees))

    def alone(pure: CashFlow) -> float:
        return (float(np.asarray(pure.total)) + rest) / case.months

    parts = [*([base] if mix.base else []), *([rented] if mix.bursts or not mix.base else [])]
    # What is bought by the machine is named in GPUs where the demand counts GPUs.
    each = size / pool.unit.per_machine
    base_units, of = round(mix.base * each), "" if each == 1 else " GPUs"
    held, more = f"{base_units}{of} {ACQUISITION_LABELS[terms]}", ACQUISITION_LABELS[burst]
    label = f"{held}, {'the rest' if mix.bursts else 'none'} {more}"
    if not mix.base:
        label = f"None {ACQUISITION_LABELS[terms]}, all {more}"
    note = (
        f"{base_units} of {math.ceil(demand.peak)}{of or ' machines'} committed, used in "
        f"{mix.base_utilization:.0%} of the hours; more are rented in {mix.bursts:.0%} of them"
    )
    return Way(
        f"mix_{terms}_{burst}",
        label,
        f"mix_{terms}+{burst}",
        flow,
        _widened(case, flow, parts),
        base.price,
        tuple(dict.fromkeys(r for part in parts for r in part.refusals)),
        (note,),
        mix=mix,
        mix_each=each,
        committed_alone=alone(planned.all_committed),
        rented_alone=alone(planned.all_burst),
    )


def _rental(case: Case, pool: Pool, terms: Acquisition, size: int) -> Rental:
    """The rent of `size` GPUs or servers together."""
    price = pool.unit.prices[terms]
    return Rental(
        usd_per_hour=price.likely * size,
        min_months=price.min_months,
        after_term_usd_per_hour=pool.unit.prices["on_demand"].likely * size,
        spot=spot_terms_of(case.point),
        sources=() if price.ref is None else (f"{price.ref.provider} {price.ref.sku}",),
    )


# --- headline numbers: sums over the table and nothing else


def headline(case: Case, flow: CashFlow, drawn: CashFlow) -> Headline:
    """The sums over a table, with their intervals over the draws."""
    rate = discount_rate(case)
    counted, per_month = units_counted(case.context, case.point)
    _, drawn_count = units_counted(case.context, case.draws)
    runs, drawn_runs = _runs(case, case.point), _runs(case, case.draws)
    return Headline(
        total=_estimate(flow.total, drawn.total, "USD"),
        per_month=_estimate(flow.per_month, drawn.per_month, "USD/month"),
        npv=_estimate(flow.npv(rate), drawn.npv(rate), "USD"),
        per_useful_hour=_maybe(
            flow.cost_per_useful_hour, drawn.cost_per_useful_hour, "USD/useful hour"
        ),
        per_run=_maybe(flow.per_run(runs), drawn.per_run(drawn_runs), "USD/run"),
        per_million=_maybe(
            flow.per_million(per_month), drawn.per_million(drawn_count), f"USD/million {counted}"
        ),
        counted=counted,
    )


def discount_rate(case: Case) -> float:
    """The user's rate a year, or the likely cost of capital."""
    stated = case.terms.discount_pct
    return stated / 100 if stated is not None else case.context.catalogue.capital["wacc"].likely


def units_counted(ctx: Context, x: Values) -> tuple[str, Array]:
    """What is counted by the million, and how many of it a month; nothing for other work."""
    w = ctx.workload
    none = np.zeros_like(x["parallel_fraction"])
    if any(s.mode == "service" for s in ctx.stages):
        requests = x["rate_per_s"] * w.services * 3600 * hours_served(w)
        if any(s.work == "llm_inference" for s in ctx.stages):
            return "tokens", np.asarray(requests * (x["tokens_in"] + x["tokens_out"]))
        return "requests", np.asarray(requests)
    if w.kind in LLM_TRAINING:
        return "tokens", np.asarray(x["train_tokens_b"] * 1e9 * x["runs_per_month"])
    if "items_per_run" in x:
        return "items", np.asarray(x["items_per_run"] * x["runs_per_month"])
    return "", none


def _runs(case: Case, x: Values) -> Array:
    batch = any(s.mode == "batch" for s in case.context.stages)
    return x["runs_per_month"] if batch else np.zeros_like(x["runs_per_month"])


def _widened(case: Case, flow: CashFlow, parts: list[Way]) -> Headline:
    """The sums over a mix, as wide as the wider of the pure ways that it is made of."""
    ratios = [
        (total.low / total.likely, total.high / total.likely)
        for total in (w.headline.total for w in parts if w.headline is not None)
        if total.likely > 0
    ]
    low = min((r[0] for r in ratios), default=1.0)
    high = max((r[1] for r in ratios), default=1.0)

    def wide(at: Estimate | None) -> Estimate | None:
        if at is None:
            return None
        ends = sorted((at.likely * low, at.likely * high))
        return Estimate(min(ends[0], at.likely), at.likely, max(ends[1], at.likely), at.unit)

    exact = headline(case, flow, flow)
    of: dict[str, Any] = {f.name: getattr(exact, f.name) for f in fields(Headline)}
    widened: dict[str, Any] = {k: wide(v) for k, v in of.items() if isinstance(v, Estimate)}
    return replace(exact, **widened)


def _estimate(point: Array | float, draws: Array | float, unit: str) -> Estimate:
    at = float(np.asarray(point).flat[0])
    many = np.asarray(draws, float)
    many = many[np.isfinite(many)] if many.ndim else np.atleast_1d(many)
    low, high = interval(many) if many.size else (at, at)
    return Estimate(min(low, at), at, max(high, at), unit)


def _maybe(point: Array | float, draws: Array | float, unit: str) -> Estimate | None:
    """None where nothing is counted, so that there is no cost of one."""
    return _estimate(point, draws, unit) if np.isfinite(np.asarray(point).flat[0]) else None


# --- what a reader has to know


def owning(case: Case, pool: Pool, flow: CashFlow) -> Owning:
    """What stands behind the purchase of the lead machines."""
    owner = pool.unit.prices["buy"].owner
    assert owner is not None
    machines = int(np.ceil(pool.paid_units[0] / owner.units_per_machine - 1e-9))
    plan = owner.plan(machines)
    own = plan.terms
    left = max(case.months - own.delivery_months, 0)
    ends = [
        float(np.asarray(owner.ownership(machines, case.months, pick).resale_share))
        for pick in (dear, cheap)
    ]
    at = float(np.asarray(own.resale_share))
    overhead, article = overhead_beside_the_article(_merged(flow))
    return Owning(
        machines=machines,
        kw=plan.facility.kw,
        racks=plan.facility.racks,
        room=plan.facility.reason,
        network=plan.network.text,
        switches=plan.network.switches,
        rails=_rails(machines, owner.machine.fabric_ports),
        life_months=left,
        failures_per_year=_failures(machines * owner.units_per_machine),
        delivery_months=own.delivery_months,
        staff_fte=float(np.asarray(own.staff_fte)),
        capital_usd=float(np.asarray(flow.section_total("capital"))),
        resale=Estimate(min(*ends, at), at, max(*ends, at), "share"),
        resale_months=left,
        overhead_share=overhead,
        article_overhead_share=article,
    )


def _rails(machines: int, ports: int) -> str:
    """The rail-optimised network in words, or why there is none."""
    radix = int(cost_parameters()["switch_radix"].likely)
    if machines <= 2:
        return "not needed for so few machines"
    try:
        return rail_optimised(machines, ports, radix).text
    except InputError as error:
        return f"not in one layer: {error.wrong}"


def _failures(devices: int) -> Estimate:
    """Failures that stop a job, a year, of so many devices that are always on."""
    mtbf = cost_parameters()["device_mtbf_gpu_hours"]
    hours = devices * HOURS_PER_YEAR
    return Estimate(hours / mtbf.high, hours / mtbf.likely, hours / mtbf.low, "a year")


def _merged(flow: CashFlow) -> CashFlow:
    """The table with the names of hardware taken off its rows."""
    return replace(
        flow, lines=tuple(replace(x, item=x.item.rpartition(": ")[2]) for x in flow.lines)
    )


def _refusals(e: Evaluation) -> tuple[str, ...]:
    return tuple(dict.fromkeys(v.reason for mask, v in e.vetoes if mask[0]))


def _term_notes(terms: Acquisition, min_months: int, months: int) -> tuple[str, ...]:
    term = renting.TERM_MONTHS.get(terms, min_months if terms == "dedicated" else 0)
    if term > months:
        owed = count(term, "month")
        return (f"the commitment of {owed} outlasts the horizon: its rest is owed",)
    rest = months % term if term else 0
    if terms in renting.TERM_MONTHS and rest:
        return (f"after {months - rest} months it goes on for {count(rest, 'month')} on demand",)
    return ()


def _deadline(case: Case, pool: Pool) -> tuple[renting.DeadlineCheck | None, tuple[str, ...]]:
    """Whether a run on spot ends by the deadline; without one, how long it takes, as a note."""
    hours = float(pool.hours_per_run[0] * case.point["spot_capacity_share"][0] * pool.goodput[0])
    asked = case.answer.workload.deadline_days
    if pool.service or hours <= 0:
        return None, ()
    terms = spot_terms_of(case.point)
    machines = float(np.ceil(pool.units[0] / pool.unit.per_machine))
    limit = asked * HOURS_PER_DAY if asked else float(case.point["patience_h"][0])
    check = renting.spot_deadline(hours, limit, terms, machines)
    if asked:
        return check, ()
    return None, (
        f"a run of {number(hours)} h takes about {number(check.expected_hours)} h with its "
        "interruptions",
    )


def spot_terms_of(x: Values) -> SpotTerms:
    """Interruptions, checkpoints and restarts as the decision counts them."""
    return SpotTerms(
        interruptions_per_hour=float(x["spot_interruptions_per_node_day"][0]) / 24,
        save=likely("checkpoint_stall_h"),
        restart=float(x["restart_h"][0]),
        requeue=cost_parameters()["spot_requeue_h"].likely,
    )
