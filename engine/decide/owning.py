"""Owner's cost of one GPU or one server by the month, from the cash flow of owning.

The decision needs it as a price with a range; the full table is on the costs page.
"""

from __future__ import annotations

from functools import lru_cache

from engine.catalogue import Catalogue
from engine.cost.monthly import monthly_cost
from engine.cost.own import Ownership
from engine.workload.answers import Location

SERVER_KW = 0.9  # draw of a two-socket server at load; capital.csv has no row for it

# Purchase rows by accelerator: a whole machine where the table has one, else a card in a server.
MACHINE_ROWS = {
    "h100-sxm-80gb": ("sys-hgx-h100-8", 8, "node-power-h100"),
    "h200-sxm-141gb": ("sys-hgx-h200-8", 8, "node-power-h100"),
    "b200-sxm-180gb": ("sys-hgx-b200-8", 8, "node-power-b200"),
    "b300-sxm": ("sys-hgx-b300-8", 8, "node-power-b200"),
    "mi300x": ("sys-mi300x-8", 8, "node-power-h100"),
}
CARD_ROWS = {
    "h100-pcie-80gb": "card-h100-pcie",
    "a100-pcie-80gb": "card-a100-80",
    "l40s": "card-l40s",
    "l4": "card-l4",
    "rtx-6000-ada": "card-rtx6000ada",
    "rtx-pro-6000-server": "card-rtxpro6000",
}


@lru_cache(maxsize=512)
def _cached(
    key: int, kind: str, sku: str, vcpu: float, memory_gb: float, horizon: int, location: Location
) -> tuple[float, float, float] | None:
    catalogue = _CATALOGUES[key]
    parts = (
        _gpu_parts(catalogue, sku) if kind == "gpu" else _server_parts(catalogue, vcpu, memory_gb)
    )
    if parts is None:
        return None
    prices, per_machine, kw, machine_life = parts
    ends = []
    for end in ("low", "likely", "high"):
        ownership = _ownership(catalogue, prices, kw, end, horizon, location, machine_life)
        flow = monthly_cost(ownership, "buy", 1.0, 730.0 * 0.6, horizon)
        ends.append(float(flow.per_month) / per_machine)
    low, likely_, high = sorted(ends)
    return low, likely_, high


_CATALOGUES: dict[int, Catalogue] = {}


def owned_gpu_usd_per_month(
    catalogue: Catalogue, sku: str, horizon_months: int, location: Location
) -> tuple[float, float, float] | None:
    """USD a month for one owned GPU with its share of machine, network, power and staff.

    None where no purchase price is known. The low, likely and high ends move together: price,
    power, housing, staff, resale.
    """
    _CATALOGUES[id(catalogue)] = catalogue
    return _cached(id(catalogue), "gpu", sku, 0.0, 0.0, horizon_months, location)


def owned_server_usd_per_month(
    catalogue: Catalogue, vcpu: float, memory_gb: float, horizon_months: int, location: Location
) -> tuple[float, float, float] | None:
    """USD a month for one owned CPU server of at least 64 vCPU; smaller ones are not bought."""
    _CATALOGUES[id(catalogue)] = catalogue
    return _cached(id(catalogue), "cpu", "", vcpu, memory_gb, horizon_months, location)


def _gpu_parts(
    catalogue: Catalogue, sku: str
) -> tuple[tuple[float, float, float], int, tuple[float, float, float], str] | None:
    """Price of a machine (with its network), its GPUs and its draw [kW], each low/likely/high."""
    capital = catalogue.capital
    accelerator = catalogue.accelerators[sku]
    if sku in MACHINE_ROWS:
        row, gpus, power = MACHINE_ROWS[sku]
        price, kw = capital[row], capital[power]
        network = capital["net-share"]
        prices = tuple(
            p / (1 - s)
            for p, s in zip(
                (price.low, price.likely, price.high),
                (network.low, network.likely, network.high),
                strict=True,
            )
        )
        return prices, gpus, (kw.low, kw.likely, kw.high), "h100"  # type: ignore[return-value]
    if sku in CARD_ROWS:
        card, server = capital[CARD_ROWS[sku]], capital["srv-cpu-2s"]
        cards = 4
        prices = (
            cards * card.low + server.low,
            cards * card.likely + server.likely,
            cards * card.high + server.high,
        )
        draw = (accelerator.tdp_w or 350.0) * cards / 1000 + SERVER_KW
        return prices, cards, (draw * 0.8, draw, draw * 1.1), "a100"
    return None


def _server_parts(
    catalogue: Catalogue, vcpu: float, memory_gb: float
) -> tuple[tuple[float, float, float], int, tuple[float, float, float], str] | None:
    if vcpu < 64:
        return None
    row = catalogue.capital["srv-cpu-4tb" if memory_gb > 2000 else "srv-cpu-2s"]
    share = min(max(vcpu / 192, 0.5), 1.5)
    prices = (row.low * share, row.likely * share, row.high * share)
    return prices, 1, (0.5 * share, SERVER_KW * share, 1.2 * share), "a100"


def _ownership(
    catalogue: Catalogue,
    prices: tuple[float, float, float],
    kw: tuple[float, float, float],
    end: str,
    horizon: int,
    location: Location,
    life: str,
) -> Ownership:
    """What one machine takes, every row at the same end of its range."""
    capital = catalogue.capital
    index = ("low", "likely", "high").index(end)

    def at(row: str) -> float:
        return float(getattr(capital[row], end))

    # Resale moves against cost: the high end of cost has the low end of resale.
    opposite = ("high", "likely", "low")[index]
    age = min(max(round(horizon / 12), 1), 5)
    resale = float(getattr(capital[f"res-h100-y{age}"], opposite))
    if horizon < 12:
        resale = resale + (1 - resale) * (1 - horizon / 12) * 0.5
    europe = location is Location.eu
    staff_nodes = float(getattr(capital["staff-fte"], opposite))
    return Ownership(
        usd_per_unit=prices[index],
        racks_usd=at("fac-rack-pdu") / 4,
        installation_share=0.0,
        spares_share=at("fac-spares"),
        kw_per_unit=kw[index],
        idle_power_share=0.4,
        usd_per_kwh=at("pow-eu" if europe else "pow-us-com"),
        pue=at("pue-air-modern"),
        housing_usd_per_kw_month=at("colo-eu" if europe else "colo-us"),
        staff_fte=1 / staff_nodes,
        usd_per_fte_year=at("staff-cost"),
        maintenance_share_per_year=at("maint"),
        resale_share=resale,
        cost_of_capital=at("wacc"),
        delivery_months=0,
    )
