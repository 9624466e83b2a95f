"""What if the network were better: the same cluster on each, and what a faster one is worth.

Only the network changes; the plan is searched again for each, since a slower one wants another.
Knows the search and the catalogue's networks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from engine.catalogue import Network
from engine.estimate.search import best_plans, plan_result
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
    worth = worth_all = None
    if best is not None and price is not None:
        worth = price * (chosen.gpu_hours.likely / best.gpu_hours.likely - 1)
        worth_all = worth * best.gpu_hours.likely / chosen.plan.gpus
    return NetworkOutcome(key, name, best, kept, current, worth, worth_all,
                          _list_price(network, choice))  # fmt: skip


def _list_price(n: Network | None, choice: HardwareChoice) -> tuple[float, float] | None:
    """Adapters and switch ports of one GPU [USD], where the catalogue has both."""
    if n is None or not (n.nic_usd_low and n.nic_usd_high and n.switch_usd_low
                         and n.switch_usd_high and n.switch_ports):  # fmt: skip
        return None
    links = (choice.nics_per_node or n.links_per_node or choice.node) / choice.node
    low = links * (n.nic_usd_low + SWITCHES * n.switch_usd_low / n.switch_ports)
    high = links * (n.nic_usd_high + SWITCHES * n.switch_usd_high / n.switch_ports)
    return low, high
