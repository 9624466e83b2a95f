"""The articles' rules beside the model: what each says of this job, and which is followed.

A rule never adds to the score; it is evidence. Where a rule and the model disagree, the model is
followed, as it computes what the rule approximates, and the reason is said with its number.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from engine.assessment import Option, RuleVerdict
from engine.decide.evaluation import Context
from engine.decide.priors import DATA
from engine.estimate.scaling import crossover_fraction
from engine.workload.answers import Bottleneck, Consistency, FailureMode, Kind, ModelClass, Rewrite
from engine.workload.workload import INFERENCE, LLM_TRAINING, SERVICES

ARTICLES = {
    "000": "GPU cluster or distributed computing (000)",
    "001": "Cluster and distributed computing (001)",
    "003": "GPU cluster against CPU cluster (003)",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the articles with its mark, where it has one."""

    id: str
    article: str
    claim: str
    text: str
    mark: float | None


@lru_cache(maxsize=1)
def rules() -> dict[str, Rule]:
    """All rules by id, from `data/rules.csv`."""
    with (DATA / "rules.csv").open(encoding="utf-8", newline="") as file:
        return {
            row["id"]: Rule(
                row["id"],
                row["article"],
                row["claim"],
                row["rule"],
                float(row["mark"]) if row["mark"] else None,
            )
            for row in csv.DictReader(file)
        }


@dataclass(frozen=True, slots=True)
class Case:
    """What the rules look at: the job, the recommendation and the computed figures."""

    context: Context
    best: Option
    utilization: float
    price_ratio: float

    @property
    def kind(self) -> Kind:
        """The kind of work."""
        return self.context.workload.kind

    @property
    def top(self) -> str:
        """The resource with the largest share of the time."""
        shares = self.context.inputs.shares
        return max(shares, key=lambda k: shares[k])


# A rule's saying: None where it does not apply; else a placement ("gpu", "cpu", "hybrid"), terms
# ("own", "rent") or a scale ("one machine", "cluster"), and why the model may differ.
Saying = tuple[str, str] | None


def _two_questions_compute(c: Case, mark: float | None) -> Saying:
    if c.context.workload.bottleneck is Bottleneck.unknown and not c.context.workload.time_shares:
        return None
    if c.top != "compute":
        return None
    p = c.context.inputs.ranges["parallel_fraction"].likely
    return "gpu", f"arithmetic helps only its parallel part, {p:.0%} here, at its price"


def _two_questions_failure(c: Case, mark: float | None) -> Saying:
    w = c.context.workload
    if w.failure_mode is not FailureMode.machine_loss:
        return None
    why = (
        "hours of absence are tolerable" if c.best.scale == "one_machine" else "a spare is sized in"
    )
    return "cluster", why


def _io_bound(c: Case, mark: float | None) -> Saying:
    if c.top not in ("disk_io", "network") or c.kind in LLM_TRAINING:
        return None
    share = c.context.inputs.ranges["io_share"].likely
    return "cpu", f"I/O takes {share:.0%} of the time and no GPU shortens it"


def _memory_bound(c: Case, mark: float | None) -> Saying:
    if c.top not in ("memory_bandwidth", "memory_capacity"):
        return None
    return "cpu", (
        "capacity and bandwidth are two questions: a GPU has several times the bandwidth of a "
        "CPU socket, and less room"
    )


def _sub_millisecond(c: Case, mark: float | None) -> Saying:
    target = c.context.workload.latency_ms
    if target is None or mark is None:
        return None
    if target >= mark:
        return None
    return "cpu", "the floor of launches, copies and batch wait is computed instead"


def _legacy_code(c: Case, mark: float | None) -> Saying:
    if c.context.workload.rewrite is not Rewrite.impossible:
        return None
    return "cpu", "taken as a veto on GPU stages that would need the rewrite"


def _fits_gpu_memory(c: Case, mark: float | None) -> Saying:
    w = c.context.workload
    largest = max(
        a.memory_gb for a in c.context.catalogue.accelerators.values() if a.status == "current"
    )
    if (w.working_set_gb or 0) <= largest:
        return None
    return "cpu", "what can be split is split over GPUs and compared by cost; the rest is a veto"


def _low_utilization(c: Case, mark: float | None) -> Saying:
    if mark is None or c.utilization >= mark:
        return None
    return "cpu", "low use is a reason to rent by the hour, not to take slower hardware"


def _high_utilization(c: Case, mark: float | None) -> Saying:
    if mark is None or c.utilization <= mark:
        return None
    return "gpu", "high use pays for owning or reserving whatever hardware the job needs"


def _deep_learning(c: Case, mark: float | None) -> Saying:
    deep = c.kind in LLM_TRAINING | {Kind.dl_training, Kind.recsys}
    if c.kind in INFERENCE and c.context.workload.model_class is not ModelClass.trees:
        deep = True
    if not deep:
        return None
    return "gpu", "at low rates one server answers a small model for less than the smallest GPU"


def _stages_differ(c: Case, mark: float | None) -> Saying:
    if len(c.context.stages) < 2:
        return None
    return "hybrid", "a second system has to save more than it costs to run"


def _many_small_requests(c: Case, mark: float | None) -> Saying:
    if c.kind not in SERVICES:
        return None
    return "cpu", "the kind of request decides: neural ones batch well on GPUs"


def _strong_consistency(c: Case, mark: float | None) -> Saying:
    if c.context.workload.consistency is not Consistency.strong:
        return None
    return "cpu", "consistency is the software's; it asks for a quorum, not for a processor"


_TABLE = {
    **dict.fromkeys(LLM_TRAINING, "gpu"),
    Kind.batch_inference: "gpu",
    Kind.web: "cpu",
    Kind.etl: "cpu",
    Kind.streaming: "cpu",
    Kind.database: "cpu",
    Kind.search: "cpu",
    Kind.rendering: "gpu",
}


def _workload_table(c: Case, mark: float | None) -> Saying:
    if c.kind not in _TABLE:
        return None
    return _TABLE[c.kind], "the table gives one answer a kind; size, rate and prices decide here"


def _seventy_percent(c: Case, mark: float | None) -> Saying:
    if mark is None:
        return None
    p = c.context.inputs.ranges["parallel_fraction"].likely
    s = c.context.inputs.ranges["gpu_speedup"].likely
    star = float(crossover_fraction(c.price_ratio, s)) if s > 1 else 1.0
    says = "gpu" if p >= mark else "cpu"
    if c.price_ratio <= 1:
        text = (
            f"the reference GPU costs no more than a 96-vCPU server ({c.price_ratio:.1f} times), "
            "so any parallel part pays"
        )
    elif star >= 1:
        text = f"at {c.price_ratio:.1f} times the price and {s:.0f} times the speed no share pays"
    else:
        text = (
            f"at {c.price_ratio:.1f} times the price and {s:.0f} times the speed it is {star:.0%}"
        )
    return says, text


def _own_above(c: Case, mark: float | None) -> Saying:
    if mark is None or c.utilization <= mark:
        return None
    return "own", "the break-even against each offer is computed from the cash flow"


def _rent_below(c: Case, mark: float | None) -> Saying:
    if mark is None or c.utilization >= mark:
        return None
    return "rent", "the break-even against each offer is computed from the cash flow"


def _variation(c: Case, mark: float | None) -> Saying:
    v = c.context.inputs.ranges["monthly_variation"].likely
    if mark is None or v <= mark:
        return None
    return "rent", f"months vary by {v:.0%}; committed machines are sized for the busy ones"


def _stable(c: Case, mark: float | None) -> Saying:
    w = c.context.workload
    if mark is None or w.horizon_months < mark:
        return ("rent", f"the horizon is {w.horizon_months} months") if mark else None
    v = c.context.inputs.ranges["monthly_variation"].likely
    if v > 0.3:
        return None
    return "own", f"stable for {w.horizon_months} months; owning has to win the sum as well"


def _dont_distribute(c: Case, mark: float | None) -> Saying:
    if c.best.scale != "one_machine":
        return None
    return "one machine", "one machine holds it; more would only add ways to fail"


def _waste_gpu(c: Case, mark: float | None) -> Saying:
    p = c.context.inputs.ranges["parallel_fraction"].likely
    if p >= 0.6:
        return None
    return "cpu", f"only {p:.0%} of the work is parallel"


_CHECKS: dict[str, Callable[[Case, float | None], Saying]] = {
    "two_questions_compute": _two_questions_compute,
    "two_questions_failure": _two_questions_failure,
    "io_bound": _io_bound,
    "memory_bound": _memory_bound,
    "sub_millisecond": _sub_millisecond,
    "legacy_code": _legacy_code,
    "fits_gpu_memory": _fits_gpu_memory,
    "utilization_hardware_low": _low_utilization,
    "utilization_hardware_high": _high_utilization,
    "deep_learning": _deep_learning,
    "stages_differ": _stages_differ,
    "many_small_requests": _many_small_requests,
    "strong_consistency": _strong_consistency,
    "workload_table": _workload_table,
    "seventy_percent": _seventy_percent,
    "own_above_50": _own_above,
    "build_above_60": _own_above,
    "rent_below_40": _rent_below,
    "variation_30": _variation,
    "stable_18_months": _stable,
    "dont_distribute": _dont_distribute,
    "waste_gpu": _waste_gpu,
}


def verdicts(case: Case) -> tuple[RuleVerdict, ...]:
    """Every rule that applies to this job, disagreements first."""
    found = []
    for rule in rules().values():
        said = _CHECKS[rule.id](case, rule.mark)
        if said is None:
            continue
        says, why = said
        model = _model_says(case.best, says)
        agrees = _agrees(says, case.best)
        found.append(
            RuleVerdict(
                id=rule.id,
                article=ARTICLES[rule.article],
                rule=f"{rule.text} ({rule.claim})",
                says=says,
                model_says=model,
                agrees=agrees,
                follows="both" if agrees else "the model",
                why=why,
            )
        )
    return tuple(sorted(found, key=lambda v: bool(v.agrees)))


def _model_says(best: Option, says: str) -> str:
    """The model's verdict on the question that the rule answers."""
    if says in ("own", "rent"):
        return "own" if best.acquisition == "buy" else "rent"
    if says in ("one machine", "cluster"):
        return "one machine" if best.scale == "one_machine" else "cluster"
    return best.placement


def _agrees(says: str, best: Option) -> bool:
    return _model_says(best, says) == says
