"""From the catalogue's rows to what owning a cluster takes: prices, network, power, people, resale.

Every number is a row of the catalogue's capital and running costs, or of data/cost_parameters.csv.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.cost import facility
from engine.cost.checks import Real, whole_months
from engine.cost.facility import Cooling, Feasibility
from engine.cost.network import NetworkPlan, fat_tree
from engine.cost.own import Ownership
from engine.cost.parameters import Pick, Span, cost_parameters, likely, source_of
from engine.errors import InputError

Rows = Mapping[str, Span]


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that can be bought, by its rows in the capital table.

    price : rows and how many of each make one machine
    kw : row of its power draw, or kW where there is no row
    resale : prefix of its resale rows
    gpus : accelerators in one machine; 0 for a CPU server
    fabric_ports : ports to the network between machines
    servers : servers of eight GPUs that it counts as, for people, cables and delivery
    """

    price: tuple[tuple[str, int], ...]
    kw: str | float
    resale: str
    gpus: int
    fabric_ports: int = 8
    servers: int = 1


# Machines with a purchase row of their own, by accelerator. Resale series exist for the A100, the
# H100 and the V100 only: newer machines take the H100's, plain servers the V100's, the widest one.
MACHINES: Mapping[str, Machine] = {
    "h100-sxm-80gb": Machine((("sys-hgx-h100-8", 1),), "node-power-h100", "res-h100", 8),
    "h200-sxm-141gb": Machine((("sys-hgx-h200-8", 1),), "node-power-h100", "res-h100", 8),
    "b200-sxm-180gb": Machine((("sys-hgx-b200-8", 1),), "node-power-b200", "res-h100", 8),
    "b300-sxm": Machine((("sys-hgx-b300-8", 1),), "node-power-b200", "res-h100", 8),
    "gb200": Machine(
        (("sys-gb200-nvl72", 1),),
        "node-power-gb200-nvl72",
        "res-h100",
        72,
        fabric_ports=72,
        servers=9,
    ),
    "mi300x": Machine((("sys-mi300x-8", 1),), "node-power-h100", "res-h100", 8),
}

# Accelerators sold as cards, which need a server around them.
CARDS: Mapping[str, str] = {
    "h100-pcie-80gb": "card-h100-pcie",
    "a100-pcie-80gb": "card-a100-80",
    "l40s": "card-l40s",
    "l4": "card-l4",
    "rtx-6000-ada": "card-rtx6000ada",
    "rtx-pro-6000-server": "card-rtxpro6000",
    "rtx-pro-6000-ws": "card-rtxpro6000",
    "rtx-5090": "card-rtx5090",
    "rtx-4090": "card-rtx4090",
}
SERVER = "srv-cpu-2s"


# Rows of which more is cheaper: value at resale, and machines that one engineer looks after.
CHEAPER_WHEN_HIGH = ("res-", "resale_", "staff-fte")


def cheap(span: Span) -> Real:
    """The end of a row at which owning is the cheaper."""
    return span.high if span.id.startswith(CHEAPER_WHEN_HIGH) else span.low


def dear(span: Span) -> Real:
    """The end of a row at which owning is the dearer."""
    return span.low if span.id.startswith(CHEAPER_WHEN_HIGH) else span.high


@dataclass(frozen=True, slots=True)
class Site:
    """Where the machines stand. Each name is a row of the capital table.

    own_room : a room of one's own instead of colocation
    available_kw : IT power that the place can give; None when it isn't known
    delivery_months : None takes the likely time for one machine or for a cluster
    """

    power: str = "pow-us-com"
    pue: str = "pue-air-modern"
    colocation: str = "colo-us"
    own_room: bool = False
    cooling: Cooling = "air"
    available_kw: float | None = None
    delivery_months: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OwnPlan:
    """What owning takes, how it is wired and housed, and whether the place can carry it."""

    terms: Ownership
    network: NetworkPlan
    facility: Feasibility


def machine_for(accelerator_sku: str | None, gpus: int = 8, watts_per_card: float = 0.0) -> Machine:
    """The machine to buy for an accelerator, or a plain server for None.

    gpus : cards in one server, for accelerators sold as cards
    watts_per_card : their power draw
    """
    server_kw = cost_parameters()["cpu_node_kw"].likely
    if accelerator_sku is None:
        return Machine(((SERVER, 1),), server_kw, "res-v100", 0, fabric_ports=1)
    if accelerator_sku in MACHINES:
        return MACHINES[accelerator_sku]
    if accelerator_sku in CARDS:
        kw = server_kw + gpus * watts_per_card / 1000
        price = ((CARDS[accelerator_sku], gpus), (SERVER, 1))
        resale = "res-a100" if accelerator_sku.startswith("a100") else "res-h100"
        return Machine(price, kw, resale, gpus, fabric_ports=1)
    raise InputError(
        f"there is no purchase price for {accelerator_sku}",
        where="accelerator",
        right="enter a quote, or rent",
    )


def plan(
    machine: Machine,
    units: int,
    months: int,
    capital: Rows,
    *,
    site: Site | None = None,
    pick: Pick = likely,
    quote_usd: Real | None = None,
) -> OwnPlan:
    """What owning `units` machines for `months` takes.

    capital : rows of the catalogue by id
    pick : chooses a number from a row: its likely value, an end, or draws
    quote_usd : the user's own quote for one machine, instead of the table's price
    """
    site = site or Site()
    whole_months("horizon_months", months)
    mine = cost_parameters()
    price = quote_usd
    if price is None:
        price = sum((pick(capital[row]) * count for row, count in machine.price), start=0.0)
    kw = pick(capital[machine.kw]) if isinstance(machine.kw, str) else machine.kw
    limit = mine["air_rack_limit_kw" if site.cooling == "air" else "liquid_rack_limit_kw"]
    likely_kw = capital[machine.kw].likely if isinstance(machine.kw, str) else machine.kw
    room = facility.check(units, likely_kw, limit.likely, site.cooling, site.available_kw)
    wires = fat_tree(units, machine.fabric_ports, int(mine["switch_radix"].likely))
    servers = units * machine.servers
    spares = pick(capital["fac-spares"])
    installation = pick(mine["installation_part"])
    delivery = delivery_months(servers, site)
    terms = Ownership(
        usd_per_unit=price,
        network_usd=network_usd(wires, servers, machine, capital, pick),
        racks_usd=pick(capital["fac-rack-pdu"]) * room.racks,
        cooling_usd=(pick(capital["fac-liquid"]) * kw * units if site.cooling == "liquid" else 0.0),
        installation_share=spares * installation,
        spares_share=spares * (1 - installation),
        kw_per_unit=kw,
        idle_power_share=pick(mine["idle_power_share"]),
        usd_per_kwh=pick(capital[site.power]),
        pue=pick(capital[site.pue]),
        housing_usd_per_kw_month=pick(
            mine["room_usd_per_kw_month"] if site.own_room else capital[site.colocation]
        ),
        housing="Machine room" if site.own_room else "Colocation",
        staff_fte=staff_fte(servers, capital, pick),
        usd_per_fte_year=pick(capital["staff-cost"]),
        maintenance_share_per_year=pick(capital["maint"]),
        resale_share=resale_share(machine.resale, max(months - delivery, 0), capital, pick),
        cost_of_capital=pick(capital["wacc"]),
        delivery_months=delivery,
        sources=_sources(machine, site, capital, quoted=quote_usd is not None),
    )
    return OwnPlan(terms, wires, room)


def _sources(
    machine: Machine, site: Site, capital: Rows, *, quoted: bool
) -> dict[str, tuple[str, ...]]:
    """Where each row of the cash-flow table comes from: the rows of the tables behind it."""
    mine = cost_parameters()

    def of(*rows: str | float) -> tuple[str, ...]:
        names = (row for row in rows if isinstance(row, str))
        spans = (mine.get(row) or capital.get(row) for row in names)
        return tuple(source_of(span) for span in spans if span is not None)

    machines = ("your quote",) if quoted else of(*(row for row, _ in machine.price))
    kw = of(machine.kw if isinstance(machine.kw, str) else "cpu_node_kw")
    wires = (
        of("net-eth-100-switch")
        if machine.fabric_ports == 1
        else of("net-ib-ndr-switch", "net-ib-cable")
    )
    ages = tuple(row for row in capital if row.startswith(f"{machine.resale}-y"))
    money = of("wacc")
    return {
        "Machines": machines,
        "Network": wires,
        "Storage": of("sto-nvme"),
        "Racks": of("fac-rack-pdu"),
        "Liquid cooling": (*of("fac-liquid"), *kw) if site.cooling == "liquid" else (),
        "Installation": of("fac-spares", "installation_part"),
        "Spares": of("fac-spares", "installation_part"),
        "Power": (*kw, *of("idle_power_share", site.power)),
        "Cooling and losses": of(site.pue),
        "Colocation": of(site.colocation),
        "Machine room": of("room_usd_per_kw_month"),
        "Staff": of("staff-fte", "staff-cost"),
        "Maintenance": of("maint"),
        "Resale": of(*ages, "resale_market"),
        "Cost of capital, written off": money,
        "Cost of capital, resale": money,
    }


def staff_fte(units: int, capital: Rows, pick: Pick = likely) -> Real:
    """People who run the machines: by their number, and never below a minimum."""
    mine = cost_parameters()
    least = pick(mine["staff_fte_machine" if units == 1 else "staff_fte_cluster"])
    fte = np.asarray(np.maximum(units / np.asarray(pick(capital["staff-fte"])), least), float)
    return fte if fte.ndim else float(fte)


def network_usd(
    wires: NetworkPlan, servers: int, machine: Machine, capital: Rows, pick: Pick = likely
) -> Real:
    """US dollars for switches and cables; machines with one port take the cheaper Ethernet.

    servers : of eight GPUs, which the cables are counted for
    """
    if wires.topology == "none":
        return 0.0
    if machine.fabric_ports == 1:
        return pick(capital["net-eth-100-switch"]) * max(wires.switches, 1)
    mine, cable = cost_parameters(), capital["net-ib-cable"]
    if servers <= mine["cable_nodes_direct"].likely:
        per_node = cable.low
    elif servers <= mine["cable_nodes_one_layer"].likely:
        per_node = cable.likely
    else:
        per_node = cable.high
    return pick(capital["net-ib-ndr-switch"]) * wires.switches + per_node * servers


def delivery_months(units: int, site: Site) -> int:
    """Months from the order to the first useful hour."""
    if site.delivery_months is not None:
        return site.delivery_months
    row = "delivery_months_machine" if units == 1 else "delivery_months_cluster"
    return int(cost_parameters()[row].likely)


def resale_share(prefix: str, age_months: float, capital: Rows, pick: Pick = likely) -> Real:
    """Value at an age over the purchase price: between the rows by year, falling on beyond them.

    The rows are one seller's and narrow; the market's own width comes on top of them.
    """
    new = cost_parameters()["resale_share_new"]
    market = pick(cost_parameters()["resale_market"])
    return np.minimum(_by_age(prefix, age_months, capital, pick) * market, new.high)


def _by_age(prefix: str, age_months: float, capital: Rows, pick: Pick) -> Real:
    new = cost_parameters()["resale_share_new"]
    by_age: list[tuple[float, Span]] = [(0.0, new)]
    by_age += [
        (12.0 * year, capital[f"{prefix}-y{year}"])
        for year in range(1, 11)
        if f"{prefix}-y{year}" in capital
    ]
    if len(by_age) < 2:
        raise InputError(f"no resale rows {prefix}", where="resale", right="a row by year")
    ages = np.array([age for age, _ in by_age])
    if age_months >= ages[-1]:
        # Beyond the table the value goes on falling at the pace of its last years.
        (last_age, last), (before_age, before) = by_age[-1], by_age[-2]
        beyond = (age_months - last_age) / (last_age - before_age)
        return pick(last) * math.pow(last.likely / before.likely, beyond)
    right = int(np.searchsorted(ages, age_months, side="right"))
    (a0, s0), (a1, s1) = by_age[right - 1], by_age[right]
    weight = (age_months - a0) / (a1 - a0)
    return _mixed(pick(s0), pick(s1), weight)


def _mixed(first: Real, second: Real, weight: float) -> Real:
    return first * (1 - weight) + second * weight
