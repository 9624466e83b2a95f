"""The costs page in one call: every way to pay for one hardware, and what is beside it.

    report = cost_report(assess(workload))

Its figures for the recommended hardware are those of the recommendation, to the cent: both are
sums over the same rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.assessment import ACQUISITION_LABELS, Acquisition, Assessment, PriceRef
from engine.catalogue import Catalogue
from engine.cost import commitment
from engine.cost.cash_flow import HOURS_PER_MONTH
from engine.cost.commitment import Demand
from engine.cost.parameters import value
from engine.costing import demand as demands
from engine.costing.beside import electricity, idle, move
from engine.costing.case import Case, case_of, hardware_id
from engine.costing.leaving import leaving
from engine.costing.model import CostReport, DemandView, Way, Wins
from engine.costing.ways import discount_rate, mixes, pure_ways
from engine.costing.wins import wins
from engine.decide.candidates import ACQUISITIONS, owned_gpus
from engine.decide.evaluation import Pool
from engine.decide.idle import headed, shown_instead
from engine.decide.owning import SERVER
from engine.decide.paying import terms_of
from engine.decide.quotes import left_out
from engine.errors import InputError
from engine.wording import count, number
from engine.workload.cost_terms import DemandBy

DRAWS = 4096
CENT = 0.01


def cost_report(
    answer: Assessment,
    catalogue: Catalogue | None = None,
    *,
    hardware: str = "",
    draws: int = DRAWS,
) -> CostReport:
    """Every way to pay for one hardware of an assessment.

    hardware : its id, one of the report's `choices`; empty takes that of the terms of the costs,
        and where they name none or one that is no candidate any more, the recommended one
    draws : quasi-random draws for the intervals, a power of two

    Raises
    ------
    InputError : when the assessment has no such hardware
    """
    asked = answer.settings.costs.hardware
    gone = asked not in {hardware_id(o.id) for o in answer.options}
    case = case_of(answer, catalogue, hardware or ("" if gone else asked), draws)
    demand, problem = _demand(case)
    ways = pure_ways(case)
    when = wins(case, ways, demand)
    mixed = [] if demand is None else mixes(case, demand, {w.id: w for w in ways})
    if case.terms.demand_by is DemandBy.plan:
        # Another demand than the plan's is other work: its costs stand apart.
        ways += [w for w in mixed if w.mix is not None and w.mix.is_mix]
    chosen = _chosen(case, ways)
    allowed = [w for w in ways if w.allowed and not w.elsewhere]
    cheapest = min(allowed, key=_usd, default=None)
    if cheapest is not None and chosen in allowed and _usd(chosen) <= _usd(cheapest) + CENT:
        cheapest = chosen  # of two that cost the same the chosen one is named
    terms = _terms(chosen)
    spec = case.specs.get(terms) or next(iter(case.specs.values()))
    e = case.at_point(spec)
    budget, share = idle(case, chosen)
    lead = case.lead(e).unit
    moved, note = move(case, chosen, e)
    return CostReport(
        hardware=case.hardware,
        hardware_label=dict(case.choices)[case.hardware],
        choices=case.choices,
        months=case.months,
        discount_rate=discount_rate(case),
        ways=tuple(ways),
        chosen=chosen,
        cheapest=cheapest,
        wins=when,
        demand=_view(case, demand, mixed, when, problem),
        idle=budget,
        idle_share=share,
        leaving=leaving(case, chosen, lead),
        move=moved,
        move_note=note,
        carbon=electricity(case, e, terms),
        left_out=tuple(dict.fromkeys(n for w in ways for n in w.notes if "no price" in n)),
        quotes_left_out=left_out(case.context.catalogue, answer.workload.quotes),
        prices=_prices(case, ways),
        title=headed(answer.workload, _title(chosen, cheapest)),
        subtitle=_subtitle(case, chosen, cheapest),
        machine_sku=lead.sku if lead.hardware == "gpu" else SERVER,
        machine_label=f"{owned_gpus(lead)} × {lead.name}" if lead.hardware == "gpu" else "a server",
    )


def _title(chosen: Way, cheapest: Way | None) -> str:
    """What the page says first: the way, and whether it is the cheapest that is allowed."""
    way = chosen.label
    if cheapest is None:
        return f"{way}: no way to pay is allowed"
    if cheapest.id == chosen.id:
        return f"{way} is the cheapest way to pay"
    if not chosen.allowed:
        return f"{way} is ruled out; {_lower(cheapest.label)} is the cheapest that is not"
    if chosen.elsewhere and _usd(chosen) < _usd(cheapest):
        return f"{way} costs less than {_lower(cheapest.label)}, but in the place not chosen"
    return f"{way} costs more than {_lower(cheapest.label)}"


def _subtitle(case: Case, chosen: Way, cheapest: Way | None) -> str:
    label = dict(case.choices)[case.hardware]
    head = f"{label}, over {count(case.months, 'month')}."
    idle = shown_instead(case.answer.workload)
    head = f"{head} {idle}" if idle else head
    if cheapest is None or cheapest.id == chosen.id or not chosen.allowed:
        return head
    recommended = case.hardware == hardware_id(case.answer.best.id)
    if recommended and _terms(chosen) == case.answer.best.acquisition:
        return (
            f"{head} It is recommended all the same: time, resilience, effort and how long you are "
            "bound count beside the cost."
        )
    return head


def _lower(label: str) -> str:
    return label[0].lower() + label[1:]


def _usd(way: Way) -> float:
    return way.headline.per_month.likely if way.headline is not None else float("inf")


def _terms(way: Way) -> Acquisition:
    """The decision's word for a way: both places of a purchase are `buy`, blocks are rent."""
    if way.id.startswith("buy"):
        return "buy"
    word = way.acquisition.removeprefix("mix_").partition("+")[0]
    return next((a for a in ACQUISITIONS if a == word), "on_demand")


def _chosen(case: Case, ways: list[Way]) -> Way:
    """The way that the terms name; else the recommended one, or the best allowed one."""
    named = next((w for w in ways if w.id == case.terms.way and w.headline is not None), None)
    if named is not None:
        return named
    best = case.answer.best
    if case.hardware == hardware_id(best.id):
        terms = best.acquisition
        id = f"buy_{case.terms.site.value}" if terms == "buy" else terms
        found = next((w for w in ways if w.id == id and w.headline is not None), None)
        if found is not None:
            return found
    priced = [w for w in ways if w.headline is not None and w.mix is None]
    here = [w for w in priced if not w.elsewhere]  # of a purchase's two places the chosen one
    return min((w for w in here if w.allowed), key=_usd, default=min(here or priced, key=_usd))


def _prices(case: Case, ways: list[Way]) -> tuple[PriceRef, ...]:
    """Every price that enters: of all hardware of the plan on all its terms, and of blocks."""
    found = [w.price for w in ways if w.price is not None]
    for spec in case.specs.values():
        for unit in (spec.gpu, spec.cpu):
            if unit is not None:
                ref = unit.prices[terms_of(spec, unit)].ref
                found += [ref] if ref is not None else []
    return tuple(dict.fromkeys(found))


# --- demand against what is committed


def _demand(case: Case) -> tuple[Demand | None, str]:
    """The demand for the lead hardware's machines, or why what was stated can't be used."""
    try:
        stated = demands.stated(case.terms)
    except InputError as error:
        return None, str(error)
    if stated is not None:
        return (stated, "") if stated.peak > 0 else (None, "the demand stated is none at all")
    pool = _lead(case)
    machines = float(pool.paid_units[0]) / pool.unit.per_machine
    variation = float(case.point["monthly_variation"][0])
    if pool.service:  # its machines for the peak stay on; what follows the load is the user's own
        return demands.of_service(float(np.ceil(machines - 1e-9)), case.answer.workload), ""
    paid = float(pool.busy_hours[0] + pool.starting_hours[0])
    share = min(paid / HOURS_PER_MONTH, 1.0)
    return demands.of_runs(machines, share, variation), ""


def _lead(case: Case) -> Pool:
    spec = case.specs.get("on_demand") or next(iter(case.specs.values()))
    return case.lead(case.at_point(spec))


def _view(
    case: Case, demand: Demand | None, mixed: list[Way], when: Wins, problem: str
) -> DemandView:
    variation = demands.month_to_month(case.terms, float(case.point["monthly_variation"][0]))
    source, stable = demands.SOURCES[case.terms.demand_by], _stable(case, when)
    unit = _lead(case).unit
    machine = f"{unit.per_machine} × {unit.name}" if unit.hardware == "gpu" else unit.name
    if demand is None:
        none = commitment.constant(0.0)
        return DemandView(none, source, machine, (), (), variation, (), None, "", stable, problem)
    allowed = [w for w in mixed if not w.refusals] or mixed
    best = min(allowed, key=_usd, default=None)
    hours, machines = demands.duration_curve(demand)
    held = 0
    if best is not None and best.mix is not None:
        held = round(best.mix.base * best.mix_each)
        counted = replace(best.mix, base=held)
        said = commitment.statement(demand, counted, variation, value("mark_variation"))
        room = _room(case, demand, best)
    else:
        said = (
            f"Demand varies by {variation:.0%} from month to month. Nothing can be committed to: "
            "this hardware is offered by the hour alone, or commitments are ruled out."
        )
        room = ""
    return DemandView(
        demand, source, machine, tuple(hours.tolist()), tuple(machines.tolist()), variation,
        tuple(mixed), best, said, stable, room=room, committed=held,
    )  # fmt: skip


def _room(case: Case, demand: Demand, best: Way) -> str:
    """Why the plan on those terms has more machines than its work needs; empty if it has not."""
    terms = _terms(best)
    if case.terms.demand_by is not DemandBy.plan or terms not in case.specs:
        return ""
    pool, unit = case.lead(case.at_point(case.specs[terms])), _lead(case).unit
    planned = float(pool.paid_units[0])
    if planned <= np.ceil(demand.peak) * unit.per_machine + 0.5:
        return ""
    machines = planned / unit.per_machine
    label = ACQUISITION_LABELS[terms]
    return (
        f"In the list of all ways the plan {label} has {number(machines)} of them: it keeps room "
        "for busier months and for gaps between runs, and here every hour may be full."
    )


def _stable(case: Case, when: Wins) -> str:
    """The articles' rule on schedules that are stable for 18 months, about this horizon."""
    rule = value("mark_months_stable")
    says = "buying" if case.months >= rule else "renting"
    planned = count(case.months, "month")
    head = f"You plan for {planned}; the rule of {rule:.0f} stable months says {says}. "
    if when.months is None:
        return f"{head}There is no purchase to compare it with here."
    if when.months.value is None:
        return f"{head}{when.months.text}"
    low, high = when.months.low, when.months.high
    ends = f"{low:.0f}" if low is not None else "never"
    far = f"{high:.0f}" if high is not None else "never within five years"
    return (
        f"{head}Computed at {when.used_share:.0%} of the hours: owning pays from month "
        f"{when.months.value:.0f} on (at the favourable ends {ends}, at the others {far})."
    )
