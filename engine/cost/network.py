"""The network of an owned cluster: how many switches of a given radix, and what they cost.

A fat tree with full bisection gives half of a leaf switch's ports to machines and half to the tier
above [1]. A rail-optimised network joins the k-th ports of all machines by switches of their own;
while each rail fits one switch no tier above is needed, and traffic across rails goes through the
machines.

References
----------
[1] M. Al-Fares, A. Loukissas, A. Vahdat, "A scalable, commodity data center network architecture",
    SIGCOMM 2008: r³/4 ports from three tiers of r-port switches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from engine.errors import InputError

Topology = Literal["none", "direct", "one_switch", "rails", "two_tier", "three_tier"]


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """Switches by tier; `full_bisection`: whether any half can reach the other at full rate."""

    topology: Topology
    leaf: int
    spine: int
    core: int
    full_bisection: bool
    text: str

    @property
    def switches(self) -> int:
        """All switches."""
        return self.leaf + self.spine + self.core


def fat_tree(nodes: int, ports_per_node: int, radix: int) -> NetworkPlan:
    """The smallest full-bisection network of `radix`-port switches for the machines."""
    _check(nodes, ports_per_node, radix)
    ports = nodes * ports_per_node
    if nodes == 1:
        return NetworkPlan("none", 0, 0, 0, True, "One machine needs no network between machines.")
    if nodes == 2:
        return NetworkPlan("direct", 0, 0, 0, True, "Two machines are linked directly.")
    if ports <= radix:
        return NetworkPlan("one_switch", 1, 0, 0, True, f"{ports} ports fit one switch.")
    leaf = math.ceil(ports / (radix // 2))
    if ports <= radix**2 // 2:
        spine = math.ceil(leaf / 2)
        text = f"{ports} ports: {leaf} leaf and {spine} spine switches of {radix} ports."
        return NetworkPlan("two_tier", leaf, spine, 0, True, text)
    if ports <= radix**3 // 4:
        core = math.ceil(leaf / 2)
        text = f"{ports} ports: {leaf} leaf, {leaf} spine and {core} core switches."
        return NetworkPlan("three_tier", leaf, leaf, core, True, text)
    raise InputError(
        f"{ports} ports exceed three tiers of {radix}-port switches",
        where="nodes",
        right=f"at most {most_machines(ports_per_node, radix)} machines",
    )


def most_machines(ports_per_node: int, radix: int) -> int:
    """Machines that three tiers of such switches reach at most: r³/4 ports."""
    return radix**3 // 4 // ports_per_node


def rail_optimised(nodes: int, ports_per_node: int, radix: int) -> NetworkPlan:
    """One layer of switches, each for as many whole rails as it has ports for."""
    _check(nodes, ports_per_node, radix)
    if nodes <= 2:
        return fat_tree(nodes, ports_per_node, radix)
    if nodes > radix:
        raise InputError(
            f"a rail of {nodes} machines exceeds a switch of {radix} ports",
            where="nodes",
            right=f"at most {radix} machines without a second tier",
        )
    switches = math.ceil(ports_per_node / (radix // nodes))
    free = switches * radix - nodes * ports_per_node
    of = f"{switches} switch{'' if switches == 1 else 'es'}"
    text = f"{of}, one layer, {free} ports free; traffic across rails is slower."
    return NetworkPlan("rails", switches, 0, 0, switches == 1, text)


def starved(network_usd: float, total_usd: float, least_share: float) -> bool:
    """Whether the network is so small a part of the capital that it will hold the machines back."""
    if total_usd <= 0:
        raise InputError("no capital", where="total_usd", right="more than 0")
    return network_usd / total_usd < least_share


def _check(nodes: int, ports_per_node: int, radix: int) -> None:
    for field, number in (("nodes", nodes), ("ports_per_node", ports_per_node)):
        if number < 1:
            raise InputError(f"{number} can't be used", where=field, right="1 or more")
    if radix < 4 or radix % 2:
        raise InputError(f"{radix} can't be used", where="radix", right="an even number from 4 on")
