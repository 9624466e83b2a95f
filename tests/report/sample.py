"""What the tests of the report share: an answer made by hand, workloads of every kind."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from enum import StrEnum
from typing import Any

from hypothesis import strategies as st

from engine.assessment import (
    Acquisition,
    Architecture,
    Assessment,
    Assumption,
    Contribution,
    Flip,
    Option,
    Placement,
    PriceRef,
    Question,
    Reason,
    RuleVerdict,
    StagePlan,
    Veto,
)
from engine.errors import InputError
from engine.estimate.estimate import Estimate
from engine.workload.answers import Symptom
from engine.workload.workload import DEFAULT, SMALLEST, Workload, parse

TODAY = date(2026, 12, 1)
NAME = "=风控 خدمة الاحتيال 🚀"
WEIGHTS = {
    "cost": 0.4,
    "time": 0.15,
    "fit": 0.1,
    "resilience": 0.15,
    "effort": 0.12,
    "flexibility": 0.08,
}
TITLES = {
    "cost": "Cost of the work",
    "time": "Time to result",
    "fit": "Fit to the bottleneck",
    "resilience": "Resilience",
    "effort": "Effort and risk",
    "flexibility": "Flexibility",
}


def price(provider: str, sku: str, usd: float, acquisition: str, as_of: date) -> PriceRef:
    """A price read on a day, with its age on TODAY."""
    age = (TODAY - as_of).days
    return PriceRef(
        provider=provider,
        sku=sku,
        usd_per_unit_hour=usd,
        acquisition=acquisition,
        region="EU",
        as_of=as_of,
        age_days=age,
        freshness="fresh" if age < 60 else "grey" if age < 120 else "warn",
        source=f"{provider} price list, read {as_of}",
        confidence="verified" if age < 100 else "unverified",
    )


def option(
    place: Placement,
    acquisition: Acquisition,
    label: str,
    usd: tuple[float, float, float],
    values: tuple[float, ...],
    chance: float,
    *,
    units: int = 2,
    veto: Veto | None = None,
) -> Option:
    """An option with one or two stages and six contributions."""
    contributions = tuple(
        Contribution(
            name, TITLES[name], weight, value, f"{value:.0%} of what is best", "decision parameters"
        )
        for (name, weight), value in zip(WEIGHTS.items(), values, strict=True)
    )
    gpu = StagePlan(
        "Scoring",
        "gpu",
        "L4",
        "L4",
        units,
        1,
        "PCIe",
        acquisition,
        price("Nimbus 云", "l4-1x", 0.71, acquisition, date(2026, 11, 3)),
        Estimate(usd[0] * 0.6, usd[1] * 0.6, usd[2] * 0.6, "USD/month", ("price list",)),
        700,
        0.41,
    )
    cpu = StagePlan(
        "Features",
        "cpu",
        "c-96",
        "96-vCPU server",
        3,
        3,
        "25 GbE",
        acquisition,
        price("@Cirrus", "c-96", 3.95, acquisition, date(2026, 6, 1)),
        Estimate(usd[0] * 0.4, usd[1] * 0.4, usd[2] * 0.4, "USD/month", ("price list",)),
        730,
        0.55,
        note="=features stay on CPUs",
    )
    stages = {"gpu": (gpu,), "cpu": (cpu,), "hybrid": (gpu, cpu)}[place]
    return Option(
        id=f"{place}-{acquisition}",
        placement=place,
        scale="one_machine" if units == 1 else "cluster",
        acquisition=acquisition,
        label=label,
        stages=stages,
        usd_per_month=Estimate(*usd, "USD/month", ("price list", "training fit")),
        usd_per_useful_hour=Estimate(
            usd[0] / 600, usd[1] / 600, usd[2] / 600, "USD/h", ("price list",)
        ),
        time=Estimate(18.0, 24.0, 39.0, "ms", ("serving fit",)),
        time_label="Answer of 95 in 100 requests",
        score=sum(c.points for c in contributions),
        contributions=contributions,
        vetoes=(veto,) if veto else (),
        probability_best=chance,
        regret_usd_per_month=0.0 if chance > 0.5 else 812.5,
    )


LATE = Veto("CPU", "an answer takes 118 ms and may take 50 ms", "serving fit", "latency_ms")


def assessment(name: str = NAME) -> Assessment:
    """A fraud model's answer: hybrid, by the month."""
    workload = parse(
        {
            "name": name,
            "kind": "online_inference",
            "bottleneck": "compute",
            "failure_mode": "late_answers",
            "failure_mode_sure": "exact",
            "parallel_fraction": 0.92,
            "latency_ms": 50,
            "rate_per_s": 1157.5,
            "location": "eu",
            "timings": [(8, 14), (32, 19.5)],
        }
    )
    best = option(
        "hybrid",
        "dedicated",
        "2 L4 and 3 CPU servers, by the month",
        (7200.0, 9450.0, 13_100.0),
        (0.8, 0.9, 0.7, 0.85, 0.6, 0.75),
        0.78,
    )
    others = (
        option(
            "gpu",
            "reserved_1y",
            "4 L4, reserved for 1 year",
            (8800.0, 11_900.0, 15_250.0),
            (0.7, 0.95, 0.6, 0.7, 0.55, 0.3),
            0.13,
            units=4,
        ),
        option(
            "gpu",
            "on_demand",
            "4 L4, on demand",
            (13_300.0, 17_800.0, 24_100.0),
            (0.45, 0.95, 0.6, 0.7, 0.55, 0.95),
            0.06,
            units=4,
        ),
        option(
            "hybrid",
            "buy",
            "2 L4 and 3 CPU servers, bought",
            (6100.0, 12_400.0, 21_000.0),
            (0.65, 0.9, 0.7, 0.6, 0.2, 0.1),
            0.03,
        ),
        option(
            "cpu",
            "dedicated",
            "5 CPU servers, by the month",
            (10_100.0, 12_600.0, 16_800.0),
            (0.55, 0.2, 0.5, 0.9, 0.95, 0.75),
            0.0,
            veto=LATE,
        ),
    )
    return Assessment(
        workload=workload,
        today=TODAY,
        sentence="Rent two L4 by the month; run features on three CPU servers (96 vCPU).",
        sureness="Fairly sure: Hybrid comes out best in 81 of 100 draws",
        best=best,
        options=(best, *others),
        ruled_out=(
            LATE,
            Veto("Renting outside the EU", "-data must stay in the EU", "your answer", "location"),
        ),
        reasons_for=(
            Reason(
                "It is cheaper: $9,450 a month against $11,900 for GPU",
                "price list",
                0.04,
                counted=True,
            ),
            Reason(
                "Features is work for CPUs; only scoring gains from a GPU", "stage estimates", 0.03
            ),
            Reason(
                "Effort and risk: one system; GPU: rewrite of the features",
                "decision parameters",
                0.01,
            ),
        ),
        reason_against=Reason(
            "Flexibility: bound for a month. 4 L4, on demand: free at once", "terms", -0.016
        ),
        rules=(
            RuleVerdict(
                "R4",
                "003",
                "Above 70% parallel work a GPU wins",
                "GPU",
                "Hybrid",
                False,
                "model",
                "the features are 60% of the time and gain nothing on a GPU",
            ),
            RuleVerdict(
                "R9", "003", "Below 50% use rent", "rent", "rent", True, "both", "the same"
            ),
            RuleVerdict(
                "R11",
                "001",
                "Plan for one failure a day per 1,000 GPUs",
                "-",
                "-",
                None,
                "neither",
                "there is no long run to lose",
            ),
        ),
        flips=(
            Flip(
                "rate_per_s",
                "Requests or events, mean",
                "1/s",
                1157.5,
                310.0,
                "rent CPU servers by the month",
                "cpu",
            ),
            Flip(
                "parallel_fraction",
                "Parallelizable fraction",
                "",
                0.92,
                0.55,
                "rent CPU servers by the month",
                "cpu",
            ),
            Flip(
                "latency_ms",
                "Latest useful answer (95 of 100)",
                "ms",
                50.0,
                None,
                "nothing in its whole range",
            ),
        ),
        next_questions=(
            Question("cpu_ms_per_item", "CPU time per item besides the model", 0.31, 1240.0),
            Question("peak_factor", "Peak over mean", 0.12, 310.0),
        ),
        assumptions=(
            Assumption(
                "parallel_fraction",
                "Parallelizable fraction",
                Estimate(0.88, 0.92, 0.95, ""),
                True,
                "roughly",
                "your answer",
            ),
            Assumption(
                "rate_per_s",
                "Requests or events, mean",
                Estimate(1000.0, 1157.5, 1300.0, "1/s"),
                True,
                "roughly",
                "your answer",
            ),
            Assumption(
                "peak_factor",
                "Peak over mean",
                Estimate(1.5, 3.0, 6.0, "times"),
                False,
                "unknown",
                "prior of the kind: online inference",
            ),
            Assumption(
                "gpu_speedup",
                "Speed-up of the parallel part on one GPU",
                Estimate(4.0, 11.0, 30.0, "times one 96-vCPU server"),
                False,
                "parameter",
                "published speed-ups, 14 rows",
            ),
            Assumption(
                "offset",
                "Temperature of the room",
                Estimate(-3.0, -1.5, 2.0, "K"),
                False,
                "parameter",
                "+made up",
            ),
        ),
        architecture=Architecture(
            True,
            "Two replicas behind a queue; no consensus is needed",
            (
                ("Replicas", "two of each stage, in two zones"),
                ("Queue", "between features and scoring"),
                ("Deadline", "answer with the rules when the model is late"),
            ),
            "requests → features ×3 → queue → scoring ×2 → answer",
        ),
        shares=(
            ("compute", 0.55),
            ("memory_bandwidth", 0.2),
            ("network", 0.15),
            ("coordination", 0.1),
        ),
        warnings=(
            "The price of 96-vCPU server (@Cirrus) is 183 days old (2026-06-01): "
            "ask for a quote before you rely on it.",
        ),
        draws=4096,
        price_alternatives=(
            price("Nimbus 云", "l4-1x", 0.71, "dedicated", date(2026, 11, 3)),
            price("@Cirrus", "g-l4", 0.80, "dedicated", date(2026, 9, 14)),
            price("Stratus", "L4", 1.24, "on_demand", date(2026, 6, 1)),
        ),
        placement_probability=(("hybrid", 0.81), ("gpu", 0.19), ("cpu", 0.0)),
    )


def without_extras() -> Assessment:
    """The thinnest answer that there can be: one option, nothing to say beside it."""
    full = assessment("")
    bare = replace(
        full.best,
        stages=(replace(full.best.stages[0], price=None),),
        usd_per_useful_hour=None,
        contributions=(),
    )
    return replace(
        full,
        workload=DEFAULT,
        best=bare,
        options=(bare,),
        ruled_out=(),
        reasons_for=(),
        reason_against=None,
        rules=(),
        flips=(),
        next_questions=(),
        assumptions=(),
        architecture=Architecture(False, "One machine will do", ()),
        shares=(),
        warnings=(),
        draws=0,
        price_alternatives=(),
        placement_probability=(),
    )


# Every field changed, each with about the longest value that a person would type.
FULL: dict[str, Any] = {
    "name": "Nightly re-training and serving of the fraud model for all European cards",
    "kind": "llm_finetuning",
    "bottleneck": "memory_bandwidth",
    "bottleneck_sure": "exact",
    "time_shares": (32.5, 12.5, 10, 20.5, 14.5, 10),
    "symptoms": tuple(Symptom),
    "failure_mode": "silent_corruption",
    "failure_mode_sure": "exact",
    "downtime": "minutes",
    "parallel_fraction": 0.9725,
    "parallel_fraction_sure": "exact",
    "timings": ((8, 14.25), (16, 9.75), (32, 8.5), (64, 12.25)),
    "gpu_speedup": 37.5,
    "gpu_speedup_sure": "roughly",
    "utilization_by": "schedule",
    "useful_hours_per_month": 347.5,
    "useful_hours_sure": "exact",
    "runs_per_month": 31.5,
    "hours_per_run": 12.25,
    "hours_per_day": 12.5,
    "days_per_week": 5.5,
    "monthly_variation": 0.35,
    "model_params_b": 671.5,
    "active_params_b": 37.25,
    "train_tokens_b": 14800,
    "model_class": "recommender",
    "tokens_in": 128000,
    "tokens_out": 16384,
    "items_per_run": 250000000,
    "working_set_gb": 12500,
    "working_set_shardable": False,
    "data_gb": 250000,
    "precision": "fp64",
    "rate_per_s": 115740,
    "peak_factor": 12.5,
    "services": 1250,
    "cpu_ms_per_item": 12.75,
    "latency_ms": 1250,
    "cpu_latency_ms": 2250,
    "current": "gpu",
    "current_units": 1024,
    "current_usd_per_month": 1250000,
    "location": "in_house",
    "rewrite": "impossible",
    "consistency": "eventual",
    "deadline_days": 182.5,
    "quotes": (
        "h100-sxm-80gb:on_demand:2.49",
        "b200-sxm-180gb:reserved_3y:3.15",
        "gb200-nvl72-186gb:dedicated:11.64",
        "cpu-96-384:reserved_1y:2.105",
    ),
    "horizon_months": 36,
    "budget_usd_per_month": 2500000,
    "team": "own_hardware",
    "weight_cost": 100,
    "weight_time": 100,
    "weight_fit": 100,
    "weight_resilience": 100,
    "weight_effort": 100,
    "weight_flexibility": 100,
}


def numbers(name: str) -> st.SearchStrategy[Any]:
    """Values of a numeric field between its bounds."""
    low, high, open_low = 0.0, 1e15, False
    for rule in Workload.model_fields[name].metadata:
        low = float(getattr(rule, "ge", low))
        high = float(getattr(rule, "le", high))
        if hasattr(rule, "gt"):
            low, open_low = float(rule.gt), True
    if isinstance(getattr(DEFAULT, name), int):
        return st.integers(int(low), int(high))
    if low == 0:  # what is above 0 is at least SMALLEST
        above = st.floats(SMALLEST, high, allow_nan=False)
        return above if open_low else st.one_of(st.just(0.0), above)
    return st.floats(low, high, exclude_min=open_low, allow_nan=False)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Any valid workload."""
    values: dict[str, Any] = {}
    for name in Workload.model_fields:
        default = getattr(DEFAULT, name)
        if name in ("time_shares", "symptoms", "timings", "name", "quotes") or draw(st.booleans()):
            continue
        if isinstance(default, bool):
            values[name] = draw(st.booleans())
        elif isinstance(default, StrEnum):
            values[name] = draw(st.sampled_from(list(type(default))))
        else:
            values[name] = draw(numbers(name))
    values["name"] = draw(st.text(max_size=80))
    values["symptoms"] = tuple(draw(st.lists(st.sampled_from(list(Symptom)), max_size=10)))
    terms = ["on_demand", "spot", "dedicated", "reserved_1y", "reserved_3y"]
    quote = st.builds(
        "{}:{}:{}".format,
        st.text("abyz0189-", min_size=2, max_size=40),
        st.sampled_from(terms),
        st.sampled_from(["1", "999999", "0.000001", "2.50"]),
    )
    values["quotes"] = tuple(draw(st.lists(quote, max_size=4)))
    pair = st.tuples(*[st.floats(SMALLEST, 1e6)] * 2)
    values["timings"] = tuple(draw(st.lists(pair, max_size=8)))
    shares = draw(st.lists(st.floats(0.001, 16.5), min_size=6, max_size=6))
    values["time_shares"] = tuple(shares) if draw(st.booleans()) else ()
    try:
        return parse(values)
    except InputError as error:
        return parse(
            {k: v for k, v in values.items() if k in ("name", "timings", "kind")}
            | {error.where: getattr(DEFAULT, error.where)}
        )
