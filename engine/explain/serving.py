"""From a workload and the terms of the serving page to its whole answer, in one call.

`serving_report` resolves what was not told (priors of the kind of work, usual targets), takes the
machines and prices of the decision's own catalogue, and joins the plan with what stands beside it:
quantisation, buying tokens from an API, prefill and decoding apart, cold starts and scaling to
zero, the frontier. The page, the CSV and the tests read this one report.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import cast

import numpy as np

from engine.assessment import Acquisition, Option, PriceRef
from engine.catalogue import Catalogue
from engine.cost.api_prices import Buying, api_offers, buying, of_same_size
from engine.decide.candidates import Price, Unit, cpu_units, gpu_units
from engine.decide.paying import spot_goodput
from engine.decide.priors import likely, prior
from engine.decide.quotes import with_quotes
from engine.decide.service_sizing import growth, spare_rule
from engine.decide.serving_rates import ENGINES
from engine.estimate.cold_start import (
    WAYS,
    ColdStart,
    ScaleToZero,
    cold_start,
    on_share,
    scale_to_zero,
    serverless_premium,
    warm_replicas,
)
from engine.estimate.estimate import Estimate
from engine.estimate.named import named
from engine.estimate.queueing import Array
from engine.estimate.serving_disaggregated import Disaggregated, disaggregated
from engine.estimate.serving_frontier import FrontierPoint, frontier, with_option
from engine.estimate.serving_layouts import Machine, Precision, PriceTag, machine_id
from engine.estimate.serving_plan import (
    DAYS_PER_MONTH,
    HOURS_PER_MONTH,
    PARAMETERS,
    ServingAnswer,
    ServingAsk,
    ServingOption,
    best_layout,
    fleet_usd,
    plan_serving,
)
from engine.estimate.serving_points import CpuBox, Load, Targets
from engine.estimate.serving_targets import usual_tpot_s, usual_ttft_s
from engine.estimate.shape import ModelShape
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.traffic import traffic_of
from engine.explain.serving_shapes import shape_of_terms
from engine.wording import number
from engine.workload.answers import LOCATION_LABELS, Kind, Location, ModelClass
from engine.workload.cost_terms import CostTerms
from engine.workload.serving_terms import (
    DayShape,
    Keep,
    Pay,
    ServingTerms,
    Weights,
)
from engine.workload.workload import Workload

# Terms under which a machine is paid whether it runs or not.
COMMITTED = frozenset({Pay.reserved_1y, Pay.reserved_3y, Pay.dedicated, Pay.buy})


@dataclass(frozen=True, slots=True)
class Resolved:
    """What the plan rests on: each number with whether it was told and where it comes from."""

    name: str
    value: float
    unit: str
    told: bool
    source: str


@dataclass(frozen=True, slots=True)
class QuantisationRow:
    """The cheapest plan with weights in so many bits; None where there is none."""

    bits: float
    chosen: bool
    option: ServingOption | None
    message: str


@dataclass(frozen=True, slots=True)
class ZeroRow:
    """Scaling to zero by one way to start: the chain, what users see, dollars a month."""

    start: ColdStart
    result: ScaleToZero
    usd_per_month: float
    meets: bool


@dataclass(frozen=True, slots=True)
class ServingReport:
    """The whole answer of the serving page; `place` says what the job's place means for APIs."""

    answer: ServingAnswer
    chosen: ServingOption | None
    resolved: tuple[Resolved, ...]
    quantisation: tuple[QuantisationRow, ...]
    apart: Disaggregated | None
    frontier: tuple[FrontierPoint, ...]
    apis: tuple[Buying, ...]
    other_apis: tuple[Buying, ...]
    zero: tuple[ZeroRow, ...]
    warm_spare: int
    notes: tuple[str, ...]
    place: str
    today: date
    pay: Pay

    @property
    def ask(self) -> ServingAsk:
        """What was asked."""
        return self.answer.ask


def serving_report(
    workload: Workload, terms: ServingTerms, catalogue: Catalogue, today: date,
    costs: CostTerms | None = None, recommended: Option | None = None,
) -> ServingReport:  # fmt: skip
    """The report for a workload under the page's terms.

    recommended : the decision's best option; its way to pay and its machines come first where the
        terms leave them open

    Raises
    ------
    InputError : with the field's name, when a value can't be used
    """
    wanted, pay = _first(workload, recommended)
    if terms.pay is Pay.recommended:
        terms = terms.model_copy(update={"pay": pay})
    wanted = wanted if terms.pay is pay else ""
    named_shape = shape_of_terms(terms)
    resolved = _resolve(workload, terms, named_shape)
    ask = ask_of(workload, terms, {r.name: r.value for r in resolved})
    quoted, unknown = with_quotes(catalogue, workload, today)
    machines = machines_of(workload, terms, quoted, today, costs or CostTerms())
    answer = plan_serving(ask, machines)
    chosen = best_layout(answer, terms.option, wanted)
    return ServingReport(
        answer,
        chosen,
        resolved,
        _quantisation(ask, machines, answer, terms),
        disaggregated(chosen, ask) if chosen is not None else None,
        frontier(answer.candidates, ask) if answer.options else (),
        *_apis(ask, answer),
        _zero(ask, chosen, terms) if chosen is not None else (),
        _warm(ask, chosen, terms) if chosen is not None else 0,
        (*_term_notes(workload, terms), *_other_size(workload, named_shape), *unknown),
        _place(workload.location),
        today,
        terms.pay,
    )


def corrected_report(
    report: ServingReport, terms: ServingTerms, option: ServingOption
) -> ServingReport:
    """The report with the chosen plan as a simulation corrects it, and what follows from it."""
    answer = with_option(report.answer, option)
    return replace(
        report,
        answer=answer,
        chosen=option,
        quantisation=tuple(
            replace(q, option=answer.best) if q.chosen else q for q in report.quantisation
        ),
        apart=disaggregated(option, report.ask),
        zero=_zero(report.ask, option, terms),
        warm_spare=_warm(report.ask, option, terms),
    )


def _first(w: Workload, recommended: Option | None) -> tuple[str, Pay]:
    """The recommendation's machine, by its id here, and its way to pay; none for other models."""
    is_llm = w.kind is Kind.online_inference and w.model_class is ModelClass.llm
    if recommended is None or not is_llm:
        return "", Pay.on_demand
    # Beside GPUs a CPU server takes the requests and no model.
    stage = min(recommended.stages, key=lambda s: s.hardware == "cpu")
    if not stage.machines:
        return "", Pay.on_demand
    per_machine = max(stage.units // stage.machines, 1)
    return machine_id(stage.sku, per_machine), Pay(stage.acquisition)


# ---- what is asked -------------------------------------------------------------------------------


def _resolve(w: Workload, terms: ServingTerms, shape: ModelShape | None) -> tuple[Resolved, ...]:
    """Every number of the ask: told, the prior of online inference, or the usual target."""
    rows = []
    for name, unit in (
        ("model_params_b", "billion parameters"), ("tokens_in", "tokens"),
        ("tokens_out", "tokens"), ("rate_per_s", "1/s"), ("peak_factor", "times"),
    ):  # fmt: skip
        told = getattr(w, name)
        if name == "model_params_b" and shape is not None:
            rows.append(Resolved(name, shape.total_params / 1e9, unit, True, shape.name))
        elif told is None:
            usual = prior(Kind.online_inference, name)
            rows.append(Resolved(name, usual.likely, unit, False, usual.source))
        else:
            rows.append(Resolved(name, float(told), unit, True, "your answer"))
    prompt = next(r.value for r in rows if r.name == "tokens_in")
    for name, value, scale in (
        ("ttft_target_s", w.latency_ms, 1e-3), ("tpot_target_s", terms.tpot_ms, 1e-3),
    ):  # fmt: skip
        usual_s = usual_tpot_s() if name == "tpot_target_s" else float(usual_ttft_s(prompt))
        rows.append(
            Resolved(name, usual_s, "s", False, named(PARAMETERS)[name].source)
            if value is None
            else Resolved(name, float(value) * scale, "s", True, "your answer")
        )
    return tuple(rows)


def ask_of(w: Workload, terms: ServingTerms, values: dict[str, float]) -> ServingAsk:
    """The ask of resolved values and the terms."""
    shape = model_of(w, terms, values["model_params_b"])
    load = Load(
        max(values["tokens_in"], 1.0), max(values["tokens_out"], 1.0),
        terms.prefix_hit_pct / 100.0, terms.length_cv,
    )  # fmt: skip
    day: str | tuple[float, ...] = terms.day.value
    if terms.day is DayShape.own:
        day = terms.hourly or "even"
    # A shape tells its own peak; only a factor that was told moves it.
    flat = terms.day is DayShape.even or day == "even"
    factor = values["peak_factor"] if w.peak_factor is not None or flat else None
    traffic = traffic_of(values["rate_per_s"], day, peak_factor=factor)
    # An answer of one token has no further one.
    each = values["tpot_target_s"] if load.output_tokens > 1.0 else None
    targets = Targets(
        values["ttft_target_s"], each, float(terms.percentile.value) / 100.0,
        terms.max_load_pct / 100.0,
    )  # fmt: skip
    precision = Precision(
        float(terms.weights.value), float(terms.cache.value) / 8.0, ENGINES[terms.engine]
    )
    keep = Keep.always_on if terms.pay in COMMITTED else terms.keep
    least, share = spare_rule(w) if terms.spare is None else (terms.spare, 0.0)
    room = 1.0
    if terms.pay in COMMITTED:
        varies = w.monthly_variation
        usual = prior(w.kind, "monthly_variation").likely
        room = float(growth(usual if varies is None else varies))
    return ServingAsk(shape, load, traffic, targets, precision, least, keep.value, share, room)


def _place(location: Location) -> str:
    """What it means for buying tokens that the job may not run anywhere."""
    if location is Location.anywhere:
        return ""
    if location is Location.in_house:
        return "The job must stay in your own rooms, which rules every API out."
    label = LOCATION_LABELS[location]
    return f"The job must run {label[0].lower()}{label[1:]}: ask each API where it does."


def _other_size(w: Workload, shape: ModelShape | None) -> tuple[str, ...]:
    """Words where the job's size and the model that is planned for are not the same."""
    if shape is None or w.model_params_b is None:
        return ()
    size = shape.total_params / 1e9
    if abs(w.model_params_b / size - 1.0) < 0.02:
        return ()
    return (
        f"the job's details say {number(w.model_params_b)} billion parameters; this plan is for "
        f"{shape.name} with {number(size)} billion",
    )


def _term_notes(w: Workload, terms: ServingTerms) -> tuple[str, ...]:
    """What the terms of renting mean for this plan."""
    notes = []
    if w.location is Location.in_house and terms.pay is not Pay.buy:
        notes.append(
            "the job must stay in your own rooms, and these are prices of rent: take bought "
            "machines among the terms"
        )
    if terms.pay is Pay.buy:
        notes.append(
            "bought machines cost what capital, power, space, staff and resale come to a month; "
            "the Costs page has every row of it"
        )
    if terms.pay is Pay.spot:
        notes.append(
            "spot machines are taken back at short notice: that is not in these latencies, so "
            "keep enough spare ones, and others for when there are none"
        )
    if terms.pay in COMMITTED and terms.keep is Keep.by_hour:
        notes.append(
            "machines bought or rented for a term are paid around the clock, whatever the hour"
        )
    return tuple(notes)


def model_of(w: Workload, terms: ServingTerms, params_b: float) -> ModelShape:
    """The model's shape: from a file, a published name, or the size alone."""
    found = shape_of_terms(terms)
    if found is not None:
        return found
    active = w.active_params_b if w.model_params_b is not None else None
    return shape_from_size(params_b, active)


def machines_of(
    w: Workload, terms: ServingTerms, catalogue: Catalogue, today: date, costs: CostTerms
) -> tuple[Machine, ...]:
    """GPUs and servers that are offered on the terms asked for, with their prices."""
    units = [*gpu_units(catalogue, w, today, costs), *cpu_units(catalogue, w, today, costs)]
    found = (m for unit in units if (m := _machine(unit, terms)) is not None)
    return tuple({m.id: m for m in found}.values())


def _machine(unit: Unit, terms: ServingTerms) -> Machine | None:
    price = unit.prices.get(cast(Acquisition, terms.pay.value))
    if price is None:
        return None
    # What is bought comes as a whole machine: no single GPU of a board of eight.
    count = unit.per_machine if price.owner is None else price.owner.units_per_machine
    # Owning is a price by the month, of a machine that stands there every hour of it.
    each = 1.0 if price.basis == "hour" else 1.0 / HOURS_PER_MONTH
    if terms.pay is Pay.spot:
        # While one is replaced another is paid for beside it.
        rate, restart = likely("spot_interruptions_per_node_day"), likely("restart_h")
        each /= float(spot_goodput(rate, 1, restart))
    box = None
    if unit.accelerator is None:
        server = unit.server
        box = CpuBox(
            unit.vcpu,
            unit.memory_gb,
            server.memory_bandwidth_gb_per_s if server is not None else None,
            server.peak_bf16_gflops if server is not None else None,
        )
    return Machine(
        unit.sku, unit.name, unit.hardware, count, unit.accelerator, box,
        Estimate(price.low * each, price.likely * each, price.high * each, "USD/h",
                 _sources(price)),
        _tag(price.ref, terms.pay.value), tuple(_tag(r, r.acquisition) for r in price.alternatives),
    )  # fmt: skip


def _sources(price: Price) -> tuple[str, ...]:
    return (price.ref.source,) if price.ref is not None else ()


def _tag(ref: PriceRef | None, terms: str) -> PriceTag:
    if ref is None:
        return PriceTag(
            "bought", terms, None, 0, "fresh", "data/capital.csv and data/cost_parameters.csv"
        )
    return PriceTag(
        ref.provider, terms, ref.as_of, ref.age_days, ref.freshness, ref.source, ref.region,
        ref.confidence, ref.usd_per_unit_hour,
    )  # fmt: skip


# ---- what stands beside the plan -----------------------------------------------------------------


def _quantisation(
    ask: ServingAsk, machines: tuple[Machine, ...], answer: ServingAnswer, terms: ServingTerms
) -> tuple[QuantisationRow, ...]:
    """The cheapest plan at 16, 8 and 4 bits; one row where the weights come quantised."""
    found = []
    if ask.shape.quantized_bits is not None:
        bits = ask.shape.quantized_bits
        return (QuantisationRow(bits, True, answer.best, answer.message),)
    for choice in Weights:
        bits = float(choice.value)
        same = choice is terms.weights
        at = replace(ask, precision=replace(ask.precision, weight_bits=bits))
        plan = answer if same else plan_serving(at, machines)
        found.append(QuantisationRow(bits, same, plan.best, plan.message))
    return tuple(found)


def hosting_usd(answer: ServingAnswer, rates: Array) -> Array:
    """Dollars a month of the cheapest fleet at mean rates, over every candidate of the plan."""
    usd = np.full(np.shape(rates), np.inf)
    for c in answer.candidates:
        carried = np.array(float(c.capacity.requests_per_s))
        usd = np.minimum(usd, fleet_usd(c, answer.ask, carried, rates))
    return usd


def _apis(ask: ServingAsk, answer: ServingAnswer) -> tuple[tuple[Buying, ...], tuple[Buying, ...]]:
    """Offers of open models of the same size, and all others; each by cost, cheapest first."""
    params, active = ask.shape.total_params / 1e9, ask.shape.active_params / 1e9
    tolerance = named(PARAMETERS)["same_model_tolerance"].likely
    offers = api_offers()
    alike = {o.id for o in of_same_size(offers, params, active, tolerance)}
    cache: dict[tuple[float, float], Array] = {}

    def usd(rates: Array) -> Array:
        key = (float(rates[0]), float(rates[-1]))
        if key not in cache:
            cache[key] = hosting_usd(answer, rates)
        return cache[key]

    load = ask.load
    bought = sorted(
        (
            buying(
                o, load.input_tokens, load.output_tokens, ask.traffic.mean,
                usd if answer.candidates and o.id in alike else _never,
                prefix_hit=load.prefix_hit,
            )
            for o in offers
        ),
        key=lambda b: b.usd_per_request,
    )  # fmt: skip
    return (
        tuple(b for b in bought if b.offer.id in alike),
        tuple(b for b in bought if b.offer.id not in alike),
    )


def _never(rates: Array) -> Array:
    """Another model is no substitute: no crossing is told."""
    return np.full(np.shape(rates), np.inf)


def _zero(ask: ServingAsk, chosen: ServingOption, terms: ServingTerms) -> tuple[ZeroRow, ...]:
    """Scaling the chosen plan to zero, for each way to start."""
    shape, found = ask.shape, []
    gb = shape.total_params * chosen.candidate.replica.plan.weight_bytes / 1e9
    machine = chosen.candidate.machine
    each = machine.per_machine * machine.usd_per_unit_hour.likely
    warm = chosen.at_peak.ttft_target_s
    idle = terms.idle_min * 60.0
    for way in WAYS:
        start = cold_start(float(gb), shape.total_params / 1e9, way)
        seconds = start.seconds.likely
        result = scale_to_zero(
            ask.traffic, seconds, idle_timeout_s=idle, warm_s=warm,
            percentile=ask.targets.percentile,
        )  # fmt: skip
        # Rent by the second costs more; one's own machines cost what they cost.
        premium = 1.0 if way in ("new_machine", "warm_machine") else serverless_premium().likely
        daily = sum(
            chosen.candidate.machines(h.replicas) * each * premium * on_share(h.rate, seconds, idle)
            for h in chosen.hours
        )
        target = ask.targets.ttft_s
        meets = target is None or result.latency_s <= target
        found.append(ZeroRow(start, result, daily * DAYS_PER_MONTH, meets))
    return tuple(found)


def _warm(ask: ServingAsk, chosen: ServingOption, terms: ServingTerms) -> int:
    gb = ask.shape.total_params * chosen.candidate.replica.plan.weight_bytes / 1e9
    start = cold_start(float(gb), ask.shape.total_params / 1e9, terms.start.value)
    carried = float(chosen.candidate.capacity.requests_per_s)
    return warm_replicas(ask.traffic, start.seconds.likely, carried)
