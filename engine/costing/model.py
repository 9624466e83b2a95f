"""What the costs page shows, as typed values: ways to pay with their tables, and what is beside.

Money is in US dollars; shares are fractions; hours are hours of a month unless a name says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from engine.assessment import PriceRef
from engine.cost.break_even import BreakEven
from engine.cost.carbon import Carbon
from engine.cost.cash_flow import CashFlow
from engine.cost.commitment import Demand, Mix
from engine.cost.compare import Mark
from engine.cost.idle_budget import IdleBudget
from engine.cost.migration import MigrationResult
from engine.cost.rent import DeadlineCheck
from engine.estimate.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Headline:
    """Sums over one table, each with its 80% interval; None is never, where nothing is counted.

    npv : cost in US dollars of today at the discount rate
    per_million : per million of what `counted` names
    """

    total: Estimate
    per_month: Estimate
    npv: Estimate
    per_useful_hour: Estimate | None
    per_run: Estimate | None
    per_million: Estimate | None
    counted: str


@dataclass(frozen=True, slots=True, eq=False)
class Owning:
    """What stands behind a purchase, in numbers and words.

    rails : the rail-optimised network for the same machines, in words
    life_months : from the first useful hour to the sale
    failures_per_year : of its devices, such as stop a job
    overhead_share : yearly running cost over the machines' price, itemised
    article_overhead_share : the same as the article writes it
    resale : share of the machines' price when the horizon ends, at the age of `resale_months`
    """

    machines: int
    kw: float
    racks: int
    room: str
    network: str
    switches: int
    rails: str
    life_months: int
    failures_per_year: Estimate
    delivery_months: int
    staff_fte: float
    capital_usd: float
    resale: Estimate
    resale_months: int
    overhead_share: float
    article_overhead_share: float


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """One acquisition of the chosen hardware.

    refusals : why it can't be had or may not be used; empty when it can
    flow, headline : None where there is no price at all
    elsewhere : bought for another place than the one that was chosen
    mix_each : machines as the demand counts them in one of the mix, which counts what is bought
    committed_alone, rented_alone : of a mix, what its pure forms cost for the same demand [USD a
        month]
    """

    id: str
    label: str
    acquisition: str
    flow: CashFlow | None
    headline: Headline | None
    price: PriceRef | None = None
    refusals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    deadline: DeadlineCheck | None = None
    owning: Owning | None = None
    mix: Mix | None = None
    mix_each: float = 1.0
    committed_alone: float = 0.0
    rented_alone: float = 0.0
    elsewhere: bool = False

    @property
    def allowed(self) -> bool:
        """Whether it has a price and nothing rules it out."""
        return self.headline is not None and not self.refusals


@dataclass(frozen=True, slots=True)
class Curve:
    """USD of a useful machine-hour over the share of the hours used; infinity where it can't be."""

    label: str
    shares: tuple[float, ...]
    usd: tuple[float, ...]

    @property
    def end(self) -> tuple[float, float]:
        """The highest share that is reached, and USD there."""
        return max((s, usd) for s, usd in zip(self.shares, self.usd, strict=True) if usd < math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class Wins:
    """When each way wins: break-evens with ranges, curves, the articles' marks beside them.

    by_runs : USD a month over the runs a month, by way; empty for what has no runs
    """

    utilization: tuple[tuple[str, BreakEven], ...]
    runs: tuple[tuple[str, BreakEven], ...]
    months: BreakEven | None
    rent: BreakEven | None
    curves: tuple[Curve, ...]
    used_share: float
    marks: tuple[Mark, ...]
    by_runs: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]
    runs_now: float


@dataclass(frozen=True, slots=True, eq=False)
class DemandView:
    """The demand against what is committed.

    hours : share of the month's hours, ascending; machines : needed in at least that share
    mixes : the best mix for each kind of base on this demand; best : the cheapest of them
    machine : what one machine is
    statement : the articles' rule on variation, about this demand
    stable : their rule on stable schedules, about this horizon
    room : why the plan that is committed to has more machines than the demand; else empty
    committed : machines of the demand that the best mix commits to
    """

    demand: Demand
    source: str
    machine: str
    hours: tuple[float, ...]
    machines: tuple[float, ...]
    month_to_month: float
    mixes: tuple[Way, ...]
    best: Way | None
    statement: str
    stable: str
    problem: str = ""
    room: str = ""
    committed: int = 0


@dataclass(frozen=True, slots=True)
class Leaving:
    """Leaving after `month` months [USD, once]; `resale_usd` comes in, the others go out.

    data_gb : that is carried out of the provider; its price is that of one month's traffic
    owed_months : of a reservation that still runs
    """

    month: int
    data_gb: float
    data_out_usd: float
    owed_months: int
    owed_usd: float
    resale_usd: float

    @property
    def usd(self) -> float:
        """What leaving costs in all; below 0 where the sale brings more."""
        return self.data_out_usd + self.owed_usd - self.resale_usd


@dataclass(frozen=True, slots=True, eq=False)
class CostReport:
    """Everything of the costs page for one hardware.

    left_out : fees that the tables don't price, in words
    quotes_left_out : the user's quotes that don't rank, each with its reason
    machine_sku : what a quote for one machine to buy is for; `machine_label` in words
    """

    hardware: str
    hardware_label: str
    choices: tuple[tuple[str, str], ...]
    months: int
    discount_rate: float
    ways: tuple[Way, ...]
    chosen: Way
    cheapest: Way | None
    wins: Wins
    demand: DemandView
    idle: IdleBudget
    idle_share: float
    move: MigrationResult | None
    move_note: str
    carbon: Carbon
    left_out: tuple[str, ...] = ()
    quotes_left_out: tuple[str, ...] = ()
    prices: tuple[PriceRef, ...] = field(default=())
    machine_sku: str = ""
    machine_label: str = ""
    title: str = ""
    subtitle: str = ""
    leaving: Leaving | None = None

    def way(self, id: str) -> Way:
        """A way by its id, the chosen one when there is none such."""
        return next((w for w in self.ways if w.id == id), self.chosen)
