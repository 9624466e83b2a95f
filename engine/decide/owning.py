"""Owner's cost of a machine by the month, from the cash flow of owning, for fleets of any size.

The decision needs owning as a price with a range; the full table is on the costs page. Cost per
machine falls with the fleet (staff, switches), so it is a curve over the number of machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from engine.catalogue import Catalogue, Parameter
from engine.cost.monthly import monthly_cost
from engine.cost.ownership import Machine, Site, cheap, dear, machine_for, plan
from engine.cost.parameters import likely
from engine.cost.rent import Rental
from engine.errors import InputError
from engine.workload.answers import Location

FLEETS = (1, 4, 16, 64, 512)
CARDS_PER_SERVER = 4
# Power depends on use only a little; owned machines are planned for this share of the hours.
PLANNED_USE = 0.6
SMALLEST_OWNED_VCPU = 64
SERVER_VCPU = 192


@dataclass(frozen=True, slots=True)
class OwnCurve:
    """USD a month per machine for fleets of each size; the ends of all rows as ratios to it."""

    machines: tuple[int, ...]
    likely: tuple[float, ...]
    low_ratio: float
    high_ratio: float
    units_per_machine: int


def gpu_curve(
    catalogue: Catalogue, sku: str, horizon_months: int, location: Location, usd_per_hour: float
) -> OwnCurve | None:
    """Owning machines with this accelerator; None where no purchase price is known.

    usd_per_hour : on-demand rent of one GPU, paid until the machines are delivered
    """
    watts = catalogue.accelerators[sku].tdp_w or 350.0
    try:
        machine = machine_for(sku, CARDS_PER_SERVER, watts)
    except InputError:
        return None
    return _curve(catalogue, machine, horizon_months, location, usd_per_hour * machine.gpus)


def server_curve(
    catalogue: Catalogue,
    vcpu: float,
    memory_gb: float,
    horizon_months: int,
    location: Location,
    usd_per_hour: float,
) -> OwnCurve | None:
    """Owning CPU servers; small ones are not bought. Price by size within a two-socket server."""
    if vcpu < SMALLEST_OWNED_VCPU:
        return None
    machine = machine_for(None)
    if memory_gb > 2000:
        machine = Machine((("srv-cpu-4tb", 1),), machine.kw, machine.resale, 0, fabric_ports=1)
    return _curve(catalogue, machine, horizon_months, location, usd_per_hour)


def _curve(
    catalogue: Catalogue, machine: Machine, months: int, location: Location, rent: float
) -> OwnCurve | None:
    likely_: list[float] = []
    for n in FLEETS:
        usd = _usd_per_machine(catalogue, machine, n, months, location, rent, "likely")
        if usd is None:
            return None
        likely_.append(usd)
    low = _usd_per_machine(catalogue, machine, FLEETS[1], months, location, rent, "cheap")
    high = _usd_per_machine(catalogue, machine, FLEETS[1], months, location, rent, "dear")
    if low is None or high is None:
        return None
    at = likely_[1]
    return OwnCurve(FLEETS, tuple(likely_), low / at, high / at, max(machine.gpus, 1))


@lru_cache(maxsize=4096)
def _usd_per_machine_cached(
    key: int, machine: Machine, n: int, months: int, europe: bool, rent: float, end: str
) -> float | None:
    pick = {"cheap": cheap, "likely": likely, "dear": dear}[end]
    capital = _CAPITAL[key]
    site = Site(
        power="pow-eu" if europe else "pow-us-com", colocation="colo-eu" if europe else "colo-us"
    )
    owned = plan(machine, n, months, capital, site=site, pick=pick)
    if not owned.facility.feasible:
        site = Site(power=site.power, colocation="colo-hd", pue="pue-liquid", cooling="liquid")
        owned = plan(machine, n, months, capital, site=site, pick=pick)
        if not owned.facility.feasible:
            return None
    if owned.terms.delivery_months >= months:
        return None
    bridge = Rental(usd_per_hour=rent) if owned.terms.delivery_months and rent > 0 else None
    flow = monthly_cost(owned.terms, "buy", float(n), 730.0 * PLANNED_USE, months, bridge=bridge)
    return float(flow.per_month) / n


# Tables by identity, kept so that an identity is never given to another table.
_CAPITAL: dict[int, dict[str, Parameter]] = {}


def _usd_per_machine(
    catalogue: Catalogue,
    machine: Machine,
    n: int,
    months: int,
    location: Location,
    rent: float,
    end: str,
) -> float | None:
    """USD a month for one of `n` machines; None when the horizon ends before delivery."""
    capital = catalogue.capital
    _CAPITAL[id(capital)] = capital
    europe = location is Location.eu
    return _usd_per_machine_cached(id(capital), machine, n, months, europe, round(rent, 4), end)
