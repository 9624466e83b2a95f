"""From the catalogue's rows to the terms of a rent: its price, its fees, its interruptions.

Every number is a row of the catalogue's running costs, or of data/cost_parameters.csv.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engine.cost.cash_flow import HOURS_PER_MONTH
from engine.cost.checks import LONGEST_HORIZON_MONTHS, Real, not_negative, positive
from engine.cost.parameters import Pick, Span, cost_parameters, likely
from engine.cost.rent import Fees, Rental, SpotTerms, egress_usd
from engine.estimate.reliability import fleet_mtbf, goodput, young_interval

HOURS_PER_DAY = 24.0


class Row(Span, Protocol):
    """A row of the running costs: a value, and the words that carry the limits of its tier."""

    @property
    def description(self) -> str:
        """What the row prices."""
        ...


Rows = Mapping[str, Row]


class Offer(Protocol):
    """What a rent needs to know of a row of the price table."""

    @property
    def provider(self) -> str:
        """Who rents it out."""
        ...

    @property
    def sku(self) -> str:
        """The provider's name of the machine."""
        ...

    @property
    def usd_per_instance_hour(self) -> float:
        """Price of one machine."""
        ...

    @property
    def min_commit(self) -> str:
        """Shortest commitment, in words."""
        ...


UNIVERSAL_HAZARD = "spotint-gpu-hazard"
# Rows by what is stored, first the cheapest kind that a provider has.
OBJECT_ROWS = {
    "aws": "obj-s3",
    "azure": "obj-blob",
    "gcp": "obj-gcs",
    "oci": "obj-oci",
    "coreweave": "obj-cw-hot",
    "nebius": "obj-nb-std",
    "crusoe": "obj-cr-obj",
}
CONTROL_PLANE_ROWS = {
    "aws": "k8s-eks",
    "gcp": "k8s-gke",
    "azure": "k8s-aks",
    "coreweave": "k8s-cks",
    "nebius": "k8s-nebius-mk8s",
    "crusoe": "k8s-crusoe-k8s",
    "hyperstack": "k8s-hyperstack",
}
SUPPORT_ROWS = {"aws": "support-aws-biz", "gcp": "support-gcp-enh", "azure": "support-azure-ps"}
# What a plan of support costs a month beside its share of the bill: rows of cost_parameters.csv.
SUPPORT_FLAT_ROWS = {"gcp": "support_flat_gcp", "azure": "support_flat_azure"}


@dataclass(frozen=True, slots=True, eq=False)
class CloudFees:
    """The fees, and which of them the table doesn't price for this provider.

    assumed : such as are taken at the middle of what others charge: a price that isn't known is
        not zero, or the provider of whom least is known would be the cheapest
    """

    fees: Fees
    assumed: tuple[str, ...]


def rental_of(
    offer: Offer, after_term: Offer | None = None, spot: SpotTerms | None = None
) -> Rental:
    """The terms of one offer.

    after_term : the on-demand offer on which a reservation goes on when it has ended
    """
    return Rental(
        usd_per_hour=positive(
            f"price of {offer.provider} {offer.sku}", offer.usd_per_instance_hour
        ),
        min_months=min(commit_months(offer.min_commit), LONGEST_HORIZON_MONTHS),
        after_term_usd_per_hour=None if after_term is None else after_term.usd_per_instance_hour,
        spot=spot,
        sources=(f"{offer.provider} {offer.sku}",),
    )


def commit_months(words: str) -> int:
    """Months of a commitment in words, as "3 months" or "1 year"; 1 where none is named."""
    found = re.search(r"(\d+)\s*(day|month|year)", words)
    if not found:
        return 1
    per_unit = {"day": 1 / 30, "month": 1, "year": 12}[found[2]]
    return max(1, math.ceil(int(found[1]) * per_unit))


def fees_for(
    provider: str,
    running: Rows,
    *,
    egress_gb: Real = 0.0,
    stored_gb: Real = 0.0,
    control_plane: bool = False,
    support: bool = False,
    pick: Pick = likely,
) -> CloudFees:
    """A provider's fees by the month for what is stored, sent out, managed and supported."""
    name, assumed = _plain(provider), []
    not_negative("egress_gb", egress_gb)
    not_negative("stored_gb", stored_gb)

    def price(table: Mapping[str, str], wanted: bool, item: str) -> Real:
        if not wanted:
            return 0.0
        if table.get(name, "") in running:
            return pick(running[table[name]])
        assumed.append(item)
        return _middle(pick(running[row]) for row in table.values() if row in running)

    egress: Real = 0.0
    if _any(egress_gb):
        tiers, free = egress_tiers(provider, running, pick)
        if tiers:
            egress = egress_usd(egress_gb, tiers, free)
        else:
            assumed.append("egress")
            known = (egress_tiers(other, running, pick) for other in _with_egress(running))
            egress = _middle(egress_usd(egress_gb, steps, gb) for steps, gb in known)
    storage = price(OBJECT_ROWS, _any(stored_gb), "storage")
    managed = price(CONTROL_PLANE_ROWS, control_plane, "control plane")
    flat = SUPPORT_FLAT_ROWS.get(name) if support else None
    return CloudFees(
        Fees(
            egress=egress,
            storage=storage * stored_gb,
            managed_service=managed * HOURS_PER_MONTH,
            support_share=price(SUPPORT_ROWS, support, "support"),
            support=pick(cost_parameters()[flat]) if flat else 0.0,
            sources=(f"{provider}'s rows of running_costs.csv",)
            if not assumed
            else (f"{provider}; no price known of {', '.join(assumed)}: what others charge",),
        ),
        tuple(assumed),
    )


def _with_egress(running: Rows) -> list[str]:
    """Providers whose price of data sent out is known."""
    found = (re.fullmatch(r"egress-([a-z]+)(?:-1)?", row) for row in running)
    return [match[1] for match in found if match]


def _middle(prices: Iterable[Real]) -> Real:
    """The median of those that are charged; nothing where nobody charges."""
    charged = [price for price in prices if _any(price)]
    if not charged:
        return 0.0
    middle = np.median(np.stack(np.broadcast_arrays(*charged)), axis=0)
    return middle if middle.ndim else float(middle)


def egress_tiers(
    provider: str, running: Rows, pick: Pick = likely
) -> tuple[list[tuple[float, float]], float]:
    """A provider's prices of data sent out, as (up to GB a month, USD per GB), and the free GB."""
    name = _plain(provider)
    flat = running.get(f"egress-{name}")
    if flat is not None:
        return [(float("inf"), float(flat.likely))], 0.0
    tiers: list[tuple[float, float]] = []
    for step in range(1, 10):
        row = running.get(f"egress-{name}-{step}")
        if row is None:
            break
        found = re.search(r"up to (\d+) GB", row.description)
        tiers.append((float(found[1]) if found else float("inf"), row.likely))
    free = running.get(f"egress-{name}-free")
    return tiers, free.likely if free is not None and tiers else 0.0


def spot_terms(provider: str, running: Rows, pick: Pick = likely) -> SpotTerms:
    """How often a spot machine is taken, what warning is given, and what a restart takes."""
    mine = cost_parameters()
    notice = running.get(f"spotnotice-{_plain(provider)}")
    return SpotTerms(
        interruptions_per_hour=pick(running[UNIVERSAL_HAZARD]) / HOURS_PER_DAY,
        save=pick(mine["spot_save_s"]) / 3600,
        restart=pick(mine["spot_restart_min"]) / 60,
        requeue=pick(mine["spot_requeue_h"]),
        notice=notice.likely / 3600 if notice is not None else 0.0,
    )


def job_goodput(gpus: int, save_hours: Real, restart_hours: Real, pick: Pick = likely) -> Real:
    """Useful share of a job's hours at the best checkpoint interval, from ordinary failures."""
    mtbf = fleet_mtbf(pick(cost_parameters()["device_mtbf_gpu_hours"]), gpus)
    return goodput(save_hours, young_interval(save_hours, mtbf), mtbf, restart_hours)


def _plain(provider: str) -> str:
    return provider.strip().lower().split()[0] if provider.strip() else ""


def _any(amount: Real) -> bool:
    return bool(abs(amount).max() > 0) if not isinstance(amount, (int, float)) else amount > 0
