"""The answer: typed results of an assessment, read by the page, the PDF, the CSV and the shell.

Nothing is computed here. Money is in US dollars, time in hours, latency in milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from engine.estimate.estimate import Estimate
from engine.workload.settings import USUAL, Settings
from engine.workload.workload import Workload

Placement = Literal["gpu", "cpu", "hybrid"]
Scale = Literal["one_machine", "cluster"]
Acquisition = Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "dedicated", "buy"]

PLACEMENT_LABELS: dict[str, str] = {"gpu": "GPU", "cpu": "CPU", "hybrid": "Hybrid"}
SCALE_LABELS: dict[str, str] = {"one_machine": "one machine", "cluster": "cluster"}
ACQUISITION_LABELS: dict[str, str] = {
    "on_demand": "on demand",
    "spot": "spot",
    "reserved_1y": "reserved for 1 year",
    "reserved_3y": "reserved for 3 years",
    "dedicated": "by the month",
    "buy": "bought",
}


@dataclass(frozen=True, slots=True)
class PriceRef:
    """Where a price comes from and how old it is."""

    provider: str
    sku: str
    usd_per_unit_hour: float
    acquisition: str
    region: str
    as_of: date
    age_days: int
    freshness: Literal["fresh", "grey", "warn"]
    source: str
    confidence: str


@dataclass(frozen=True, slots=True)
class StagePlan:
    """One stage of the job on its hardware. A unit is one GPU or one CPU server.

    units : all that are paid for; side_by_side : runs that they work on at a time
    """

    stage: str
    hardware: Literal["gpu", "cpu"]
    sku: str
    name: str
    units: int
    machines: int
    network: str
    acquisition: str
    price: PriceRef | None
    usd_per_month: Estimate
    busy_hours_per_month: float
    utilization: float
    vcpu: float = 0.0
    note: str = ""
    side_by_side: float = 1.0


@dataclass(frozen=True, slots=True)
class Contribution:
    """Weight × value of one criterion; the contributions of an option sum to its score."""

    criterion: str
    title: str
    weight: float
    value: float
    because: str
    source: str

    @property
    def points(self) -> float:
        """What the criterion adds to the score."""
        return self.weight * self.value


@dataclass(frozen=True, slots=True)
class Veto:
    """A hard constraint that rules hardware or an acquisition out, with its number."""

    rules_out: str
    reason: str
    source: str
    field: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """A candidate with its estimates, costs and score."""

    id: str
    placement: Placement
    scale: Scale
    acquisition: Acquisition
    label: str
    stages: tuple[StagePlan, ...]
    usd_per_month: Estimate
    usd_per_useful_hour: Estimate | None
    time: Estimate
    time_label: str
    score: float
    contributions: tuple[Contribution, ...]
    vetoes: tuple[Veto, ...] = ()
    probability_best: float = 0.0
    regret_usd_per_month: float = 0.0

    @property
    def units(self) -> int:
        """GPUs and servers together."""
        return sum(s.units for s in self.stages)


@dataclass(frozen=True, slots=True)
class Reason:
    """One argument for or against, with where it comes from.

    `points` orders the arguments; where `counted`, it is the difference that a criterion makes to
    the score against the alternative named (vetoes and facts carry no points of the score).
    """

    text: str
    source: str
    points: float
    counted: bool = False


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """What a rule of the articles says of this workload, beside what the model says."""

    id: str
    article: str
    rule: str
    says: str
    model_says: str
    agrees: bool | None
    follows: str
    why: str


@dataclass(frozen=True, slots=True)
class Flip:
    """The nearest value of one answer that changes the recommendation."""

    field: str
    title: str
    unit: str
    now: float
    at: float | None
    becomes: str
    becomes_placement: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """An open answer and what knowing it would be worth."""

    field: str
    title: str
    chance_it_changes: float
    worth_usd_per_month: float


@dataclass(frozen=True, slots=True)
class Assumption:
    """One input as it entered the calculation."""

    field: str
    title: str
    estimate: Estimate
    answered: bool
    certainty: str
    source: str


@dataclass(frozen=True, slots=True)
class Architecture:
    """What the worst failure asks of the architecture."""

    distributed: bool
    verdict: str
    remedies: tuple[tuple[str, str], ...]
    diagram: str = ""


@dataclass(frozen=True, slots=True)
class Assessment:
    """The whole answer for one workload."""

    workload: Workload
    today: date
    sentence: str
    sureness: str
    best: Option
    options: tuple[Option, ...]
    ruled_out: tuple[Veto, ...]
    reasons_for: tuple[Reason, ...]
    reason_against: Reason | None
    rules: tuple[RuleVerdict, ...]
    flips: tuple[Flip, ...]
    next_questions: tuple[Question, ...]
    assumptions: tuple[Assumption, ...]
    architecture: Architecture
    shares: tuple[tuple[str, float], ...]
    warnings: tuple[str, ...]
    draws: int
    price_alternatives: tuple[PriceRef, ...] = field(default=())
    placement_probability: tuple[tuple[str, float], ...] = field(default=())
    settings: Settings = USUAL
