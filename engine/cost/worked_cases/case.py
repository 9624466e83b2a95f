"""What a case of the articles is, and the plans that several of them share."""

from __future__ import annotations

from dataclasses import dataclass

from engine.cost.break_even import months_to_pay_back
from engine.cost.cash_flow import HOURS_PER_MONTH, CashFlow
from engine.cost.monthly import monthly_cost
from engine.cost.own import Ownership
from engine.cost.parameters import value
from engine.cost.rent import Rental

GPUS_PER_NODE = 8


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One figure of a case: the article's and the engine's. None is absent."""

    label: str
    written: float | None
    corrected: float | None
    unit: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class WorkedCase:
    """A case of the articles with its figures and what follows from them."""

    id: str
    title: str
    article: str
    claims: tuple[str, ...]
    rows: tuple[CaseRow, ...]
    lesson: str

    def row(self, label: str) -> CaseRow:
        """The row with this label."""
        return next(row for row in self.rows if row.label == label)


def dedicated_rent(usd_per_month: float, months: int) -> CashFlow:
    """One machine by the month."""
    rental = Rental(usd_per_month / HOURS_PER_MONTH)
    return monthly_cost(rental, "dedicated", 1, HOURS_PER_MONTH, months)


def bought_with_overhead(usd: float, months: int, resale_share: float) -> CashFlow:
    """A machine of one's own with the article's overhead."""
    own = Ownership(
        usd,
        maintenance_share_per_year=value("article_overhead_per_year"),
        resale_share=resale_share,
    )
    return monthly_cost(own, "buy", 1, HOURS_PER_MONTH, months)


def h100_cluster(nodes: int, racks: float, pue: float = 1.0) -> Ownership:
    """A cluster of article 003: its node, its two switches, its power and its rack fee."""
    return Ownership(
        value("cluster_node_usd"),
        network_usd=value("cluster_switches") * value("cluster_switch_usd"),
        kw_per_unit=value("cluster_node_kw"),
        idle_power_share=1.0,
        usd_per_kwh=value("cluster_usd_per_kwh"),
        pue=pue,
        racks_usd_per_month=racks * value("cluster_rack_usd_year") / 12,
    )


def owned_power_usd_month() -> float:
    """Power and cooling of a DGX B200 a month: kW × hours × price × PUE."""
    own = Ownership(
        value("case47_purchase_usd"),
        kw_per_unit=value("dgx_b200_max_kw"),
        idle_power_share=1.0,
        usd_per_kwh=value("cluster_usd_per_kwh"),
        pue=value("case_pue"),
    )
    return float(monthly_cost(own, "buy", 1, HOURS_PER_MONTH, 1).section_total("running"))


def months_to_recover(upfront_usd: float, saved_usd_per_year: float) -> float | None:
    """Months in which a saving by the year pays a purchase back."""
    return months_to_pay_back(upfront_usd, saved_usd_per_year / 12).value
