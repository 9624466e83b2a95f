"""Owning: what is bought, what it takes to run it, and what it fetches at the end, as rows.

It knows amounts, not where they come from: `ownership.py` makes them from the catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from engine.cost.cash_flow import HOURS_PER_MONTH, CashLine, Section, every_month, once, sum_of
from engine.cost.checks import Array, Real, not_negative, positive, share
from engine.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Ownership:
    """What owning a cluster takes. Amounts are US dollars, each a float or an array of draws.

    usd_per_unit : price of one machine
    network_usd, storage_usd, racks_usd, cooling_usd, other_capital_usd : for the whole cluster
    installation_share, spares_share : of machines and network, once
    kw_per_unit : draw of one machine at load, without the facility's losses
    idle_power_share : draw of an idle machine over that at load
    pue : facility power over IT power
    housing_usd_per_kw_month : colocation or room, power excluded; `housing` names the row
    racks_usd_per_month : flat fee for the racks, where that is how it is paid
    staff_fte, usd_per_fte_year : people who run it
    maintenance_share_per_year : of machines and network
    software_usd_per_year : licences for the whole cluster
    resale_share : of the machines' price, at their age when the horizon ends
    cost_of_capital : per year, on the money tied up
    delivery_months : from the order to the first useful hour
    sources : where the numbers of each row of the table come from, by the row's item
    """

    usd_per_unit: Real
    network_usd: Real = 0.0
    storage_usd: Real = 0.0
    racks_usd: Real = 0.0
    cooling_usd: Real = 0.0
    other_capital_usd: Real = 0.0
    installation_share: Real = 0.0
    spares_share: Real = 0.0
    kw_per_unit: Real = 0.0
    idle_power_share: Real = 1.0
    usd_per_kwh: Real = 0.0
    pue: Real = 1.0
    housing_usd_per_kw_month: Real = 0.0
    housing: str = "Colocation"
    racks_usd_per_month: Real = 0.0
    staff_fte: Real = 0.0
    usd_per_fte_year: Real = 0.0
    maintenance_share_per_year: Real = 0.0
    software_usd_per_year: Real = 0.0
    resale_share: Real = 0.0
    cost_of_capital: Real = 0.0
    delivery_months: int = 0
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def buy(
    own: Ownership, units: Real, used_hours_per_month: Real, months: int
) -> tuple[CashLine, ...]:
    """The rows of owning `units` machines over the horizon; rows of zero are left out."""
    _check(own, months)
    lines = (
        *_capital(own, units, months),
        *_running(own, units, used_hours_per_month, months),
        *_financing(own, units, months),
        _row(own, "Resale", "resale", -_resale(own, units), once(months, months - 1)),
    )
    return tuple(line for line in lines if np.any(line.amount))


def capital_usd(own: Ownership, units: Real) -> Real:
    """US dollars paid before the first useful hour."""
    return sum_of(line.amount for line in _capital(own, units, 1))


def average_kw(own: Ownership, units: Real, used_hours_per_month: Real) -> Real:
    """Mean IT power in kW: at load while used, at idle draw otherwise."""
    used = np.minimum(np.asarray(used_hours_per_month, float) / HOURS_PER_MONTH, 1.0)
    kw = units * own.kw_per_unit * (used + own.idle_power_share * (1 - used))
    return kw if isinstance(kw, np.ndarray) and kw.ndim else float(kw)


def useful_months(own: Ownership, months: int) -> int:
    """Months of the horizon in which the cluster works."""
    return months - own.delivery_months


# --- the sections of the table


def _hardware(own: Ownership, units: Real) -> Real:
    return units * own.usd_per_unit + own.network_usd


def _capital(own: Ownership, units: Real, months: int) -> tuple[CashLine, ...]:
    hardware = _hardware(own, units)
    amounts: tuple[tuple[str, Real], ...] = (
        ("Machines", units * own.usd_per_unit),
        ("Network", own.network_usd),
        ("Storage", own.storage_usd),
        ("Racks", own.racks_usd),
        ("Liquid cooling", own.cooling_usd),
        ("Installation", hardware * own.installation_share),
        ("Spares", hardware * own.spares_share),
        ("Other capital", own.other_capital_usd),
    )
    return tuple(_row(own, item, "capital", usd, once(months), at="start") for item, usd in amounts)


def _running(
    own: Ownership, units: Real, used_hours_per_month: Real, months: int
) -> tuple[CashLine, ...]:
    energy = average_kw(own, units, used_hours_per_month) * HOURS_PER_MONTH * own.usd_per_kwh
    works = every_month(months, first=own.delivery_months)
    amounts: tuple[tuple[str, Real], ...] = (
        ("Power", energy),
        ("Cooling and losses", energy * (own.pue - 1)),
        (own.housing, units * own.kw_per_unit * own.housing_usd_per_kw_month),
        ("Rack fees", own.racks_usd_per_month),
        ("Staff", own.staff_fte * own.usd_per_fte_year / 12),
        ("Maintenance", _hardware(own, units) * own.maintenance_share_per_year / 12),
        ("Software", own.software_usd_per_year / 12),
    )
    return tuple(_row(own, item, "running", usd, works) for item, usd in amounts)


def _financing(own: Ownership, units: Real, months: int) -> tuple[CashLine, ...]:
    """Cost of capital on what is tied up: it falls from the price paid to the resale value."""
    rate = own.cost_of_capital / 12
    resale = _resale(own, units)
    falling = 1 - np.arange(months) / months
    return (
        _row(
            own,
            "Cost of capital, written off",
            "financing",
            rate * (capital_usd(own, units) - resale),
            falling,
        ),
        _row(own, "Cost of capital, resale", "financing", rate * resale, every_month(months)),
    )


def _resale(own: Ownership, units: Real) -> Real:
    return units * own.usd_per_unit * own.resale_share


# --- helpers


def _row(
    own: Ownership,
    item: str,
    section: Section,
    amount: Real,
    schedule: Array,
    at: Literal["start", "end"] = "end",
) -> CashLine:
    return CashLine(item, section, amount, schedule, at, own.sources.get(item, ()))


def _check(own: Ownership, months: int) -> None:
    positive("usd_per_unit", own.usd_per_unit)
    for name in (
        "network_usd",
        "storage_usd",
        "racks_usd",
        "cooling_usd",
        "other_capital_usd",
        "kw_per_unit",
        "usd_per_kwh",
        "housing_usd_per_kw_month",
        "racks_usd_per_month",
        "staff_fte",
        "usd_per_fte_year",
        "software_usd_per_year",
    ):
        not_negative(name, getattr(own, name))
    for name in (
        "installation_share",
        "spares_share",
        "idle_power_share",
        "maintenance_share_per_year",
        "resale_share",
        "cost_of_capital",
    ):
        share(name, getattr(own, name))
    if np.any(np.asarray(own.pue) < 1) or np.any(np.asarray(own.pue) > 5):
        raise InputError(f"{own.pue} can't be used", where="pue", right="1 to 5")
    if not 0 <= own.delivery_months < months:
        raise InputError(
            f"{own.delivery_months} months are not within the horizon of {months}",
            where="delivery_months",
            right=f"0 to {months - 1}",
        )


def scaled(whole: Ownership, factor: float) -> Ownership:
    """An ownership with everything that is of the whole cluster so many times as large."""
    return replace(
        whole,
        network_usd=whole.network_usd * factor,
        storage_usd=whole.storage_usd * factor,
        racks_usd=whole.racks_usd * factor,
        cooling_usd=whole.cooling_usd * factor,
        other_capital_usd=whole.other_capital_usd * factor,
        racks_usd_per_month=whole.racks_usd_per_month * factor,
        staff_fte=whole.staff_fte * factor,
        software_usd_per_year=whole.software_usd_per_year * factor,
    )
