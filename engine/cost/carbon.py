"""Electricity and its emissions, as a second line beside the cost: kWh and kg CO2e by region.

Emission factors are averages of the grid, life cycle included; a provider's contracts for clean
power don't change them. The making of the hardware isn't counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.cost.checks import hours_per_month, not_negative
from engine.cost.parameters import CostParameter, emission_factors
from engine.errors import InputError
from engine.estimate.estimate import Estimate

# Cloud regions, as the price table writes them, by the grid that feeds them. Checked in order.
GRIDS: tuple[tuple[str, str], ...] = (
    ("us-east-1", "us-pjm"),
    ("us-east-2", "us-pjm"),
    ("us-east4", "us-pjm"),
    ("us-ashburn", "us-pjm"),
    ("eastus", "us-pjm"),
    ("us-east1", "us-southeast"),
    ("us-east5", "us-pjm"),
    ("us-central1", "us-miso"),
    ("us-west-2", "us-northwest"),
    ("us-west1", "us-northwest"),
    ("us-south1", "us-texas"),
    ("eu-central", "de"),
    ("europe-west4", "nl"),
    ("europe-west2", "gb"),
    ("europe-west1", "be"),
    ("eu-west-1", "ie"),
    ("eu-west-2", "gb"),
    ("eu-west-3", "fr"),
    ("eu-north", "se"),
    ("europe-north", "fi"),
    ("ca-central-1", "ca-quebec"),
    ("ap-northeast-1", "jp"),
    ("asia-northeast1", "jp"),
    ("ap-south-1", "in"),
    ("asia-south1", "in"),
    ("ap-southeast-1", "sg"),
    ("asia-southeast1", "sg"),
    ("ap-southeast-2", "au"),
    ("ap-southeast-4", "au"),
    ("southcentralus", "us-texas"),
    ("westus", "us"),
    ("centralus", "us"),
    ("northeurope", "ie"),
    ("westeurope", "nl"),
    ("us", "us"),
    ("eu", "eu"),
)


@dataclass(frozen=True, slots=True)
class Carbon:
    """A month's electricity and emissions."""

    kwh_per_month: float
    kg_co2e_per_month: Estimate
    region: str
    source: str


def factor_for(region: str) -> CostParameter:
    """Emission factor of a cloud region, a country or a grid; the world's where it isn't known."""
    factors = emission_factors()
    name = region.strip().lower()
    if name in factors:
        return factors[name]
    for prefix, grid in GRIDS:
        if name.startswith(prefix):
            return factors[grid]
    return factors["world"]


def carbon(
    units: float,
    kw_per_unit: float,
    used_hours_per_month: float,
    pue: float,
    region: str,
    idle_kw_per_unit: float = 0.0,
    powered_hours_per_month: float | None = None,
) -> Carbon:
    """Electricity at the meter and its emissions in a month.

    kw_per_unit, idle_kw_per_unit : IT power of one machine at load and idle
    powered_hours_per_month : hours switched on; None is only while used
    """
    for field, number in (
        ("units", units),
        ("kw_per_unit", kw_per_unit),
        ("idle_kw_per_unit", idle_kw_per_unit),
    ):
        not_negative(field, number)
    used = float(hours_per_month("useful_hours_per_month", used_hours_per_month))
    on = (
        used
        if powered_hours_per_month is None
        else float(hours_per_month("powered_hours_per_month", powered_hours_per_month))
    )
    if not 1 <= pue <= 5:
        raise InputError(f"{pue} can't be used", where="pue", right="1 to 5")
    idle = max(on - used, 0.0)
    kwh = units * (kw_per_unit * used + idle_kw_per_unit * idle) * pue
    factor = factor_for(region)
    emitted = Estimate(
        kwh * factor.low,
        kwh * factor.likely,
        kwh * factor.high,
        "kg CO2e/month",
        (factor.source,),
    )
    return Carbon(kwh, emitted, factor.description, factor.source)
