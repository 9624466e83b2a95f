"""What if the network were better: the same cluster on each, and what a faster one is worth.

Only the network changes; the plan is searched again for each, since a slower one wants another.
Knows the search and the catalogue's networks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import exp, log

from engine.catalogue import Network
from engine.estimate.search import best_plans, plan_result
from engine.estimate.search_results import NETWORK_PARTS, PARTS
from engine.estimate.training_hardware import HardwareChoice, pcie_gb_per_s
from engine.estimate.training_job import Job, NothingFits, PlanResult

FAST_DOMAIN = 72  # GPUs of the largest NVLink domain sold (GB200 NVL72)
SWITCHES = 1.5  # switch ports a network port takes in two tiers: one to the GPU, half a trunk


@dataclass(frozen=True, slots=True)
class NetworkOutcome:
    """The cluster on one network.

    result : best plan there; None where nothing fits
    kept : the present plan there, unchanged
    current : whether this is the network of the choice
    worth_usd_per_gpu_hour : by how much the GPU hour may be dearer than the present one (cheaper,
        if negative) until the run costs the same; None without a price
    worth_usd_per_gpu : the same for all hours of the run, per GPU
    worth_range, worth_range_per_gpu : both where traffic takes as much less or more, on either
        network alike, as the steps' intervals say; computing is the same and cancels
    list_usd_per_gpu : adapters and switch ports of one GPU by the catalogue, low and high
    """

    id: str
    name: str
    result: PlanResult | None
    kept: PlanResult | None
    current: bool
    worth_usd_per_gpu_hour: float | None
    worth_usd_per_gpu: float | None
    list_usd_per_gpu: tuple[float, float] | None
    worth_range: tuple[float, float] | None = None
    worth_range_per_gpu: tuple[float, float] | None = None


def network_outcomes(
    job: Job, chosen: PlanResult, networks: Iterable[Network]
) -> tuple[NetworkOutcome, ...]:
    """The chosen cluster on each network between its nodes, and with its cards otherwise linked."""
    here = chosen.choice
    same = replace(
        job, choices=(here,), gpus=(chosen.plan.gpus, chosen.plan.gpus),
        batch_seqs=chosen.plan.global_batch_seqs,
    )  # fmt: skip
    told = []
    if chosen.plan.gpus > here.node:
        for n in networks:
            if n.layer != "scale-out" or not _suits(n, here):
                continue
            choice = replace(here, network=n, nics_per_node=None, link_share=1.0)
            current = here.network is not None and here.network.id == n.id
            told.append(
                _outcome(same, chosen, here if current else choice, n.id, n.name, current, n)
            )
        rate = here.accelerator.scaleup_gb_per_s_per_direction
        if rate and (here.accelerator.scaleup_domain_gpus or 1) < FAST_DOMAIN:
            wide = replace(here, domain_gpus=FAST_DOMAIN, fast_gb_per_s=rate)
            name = f"{FAST_DOMAIN} GPUs in one NVLink domain"
            told.append(_outcome(same, chosen, wide, "fast-domain", name, False, None))
    if min(chosen.plan.gpus, here.node) > 1 and here.accelerator.scaleup_gb_per_s_per_direction:
        slow = replace(here, fast_gb_per_s=pcie_gb_per_s(here.accelerator))
        name = "PCIe only inside the machines"
        told.append(_outcome(same, chosen, slow, "pcie-only", name, False, None))
    return tuple(sorted(told, key=lambda o: o.result.step_s.likely if o.result else float("inf")))


def _suits(n: Network, here: HardwareChoice) -> bool:
    """Networks of one maker's card, or of another generation, are left out."""
    sku = here.accelerator.sku
    if "gaudi" in n.id:
        return "gaudi" in sku
    for mark in ("b200", "b300"):
        if n.id.endswith(mark):
            return mark in sku
    return True


def _outcome(
    job: Job, chosen: PlanResult, choice: HardwareChoice, key: str, name: str, current: bool,
    network: Network | None,
) -> NetworkOutcome:  # fmt: skip
    alone = replace(job, choices=(choice,))
    told = best_plans(alone, "time", 1)
    best = None if isinstance(told, NothingFits) else told[0]
    kept = plan_result(alone, chosen.plan)
    if kept is not None and (best is None or kept.step_s.likely < best.step_s.likely):
        best = kept
    price = chosen.choice.usd_per_gpu_hour
    if best is None or price is None:
        return NetworkOutcome(key, name, best, kept, current, None, None,
                              _list_price(network, choice))  # fmt: skip
    half = max(log(r.step_s.high / r.step_s.likely) for r in (chosen, best))
    hours = [
        [r.gpu_hours.likely * (1 + _traffic(r) * (exp(off) - 1)) for r in (chosen, best)]
        for off in (0.0, -half, half)
    ]
    worth, *ends = (price * (here / there - 1) for here, there in hours)
    per_gpu, *all_ends = (price * (here - there) / chosen.plan.gpus for here, there in hours)
    return NetworkOutcome(
        key, name, best, kept, current, worth, per_gpu, _list_price(network, choice),
        (min(ends), max(ends)), (min(all_ends), max(all_ends)),
    )  # fmt: skip


def _traffic(r: PlanResult) -> float:
    """Share of a step that traffic takes beside computing."""
    return sum(r.parts.get(PARTS[name], 0.0) for name in NETWORK_PARTS)


def _list_price(n: Network | None, choice: HardwareChoice) -> tuple[float, float] | None:
    """Adapters and switch ports of one GPU [USD], where the catalogue has both."""
    if n is None or not (n.nic_usd_low and n.nic_usd_high and n.switch_usd_low
                         and n.switch_usd_high and n.switch_ports):  # fmt: skip
        return None
    links = (choice.nics_per_node or n.links_per_node or choice.node) / choice.node
    low = links * (n.nic_usd_low + SWITCHES * n.switch_usd_low / n.switch_ports)
    high = links * (n.nic_usd_high + SWITCHES * n.switch_usd_high / n.switch_ports)
    return low, high
