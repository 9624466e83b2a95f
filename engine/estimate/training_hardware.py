"""Hardware as the step model sees it: catalogue rows turned into rates, links and domains.

A choice is one kind of node on one network at one price, possibly with further generations in the
same job; the slowest of them and the slowest link pace the rest. Knows no models and no plans.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from engine.catalogue import Accelerator, Network
from engine.errors import InputError
from engine.estimate.training import PEAK_CLASSES
from engine.estimate.training_calibration import shipped_calibration

_PCIE_BYTES_PER_S = {"PCIe3": 12e9, "PCIe4": 25e9, "PCIe5": 50e9, "PCIe6": 100e9}
_USUAL_PCIE = 25e9
_USUAL_EFFICIENCY = 0.75  # of a network's nominal rate, in the rows of the calibration
_MOST_EFFICIENCY = 1.25  # above the usual, no published step shows more
_NO_NETWORK = 1e6  # B/s: machines without a network between them
# Slowest network of the published steps, one GPU of eight [B/s]: 4 x 100 Gb/s a node.
CALIBRATED_NIC = 6.25e9
# Generations with calibration rows: pattern of the catalogue's sku, class of the efficiency.
_GENERATIONS = (
    (r"^a100-sxm", "a100"), (r"^(h100-sxm|h200-sxm)", "h100"), (r"^g?b300", "b300"),
    (r"^g?b[12]00", "b200"), (r"^mi3", "amd"),
)  # fmt: skip
# Rate of large products in published steps over the best that was measured of products alone:
# 1.01 on A100, 0.98 on H100, 0.80 on B200.
STEP_OF_MEASURED = 0.93
_WITH_RECIPES = ("h100", "b200", "b300")  # that NVIDIA publishes tuned recipes and steps for
_FEW_ROWS = ("amd_8", "b300_16", "other_16", "other_8")  # classes with next to no published steps


@dataclass(frozen=True, slots=True)
class HardwareChoice:
    """One way to hire or own the GPUs of a job.

    network : between the nodes; None for one machine
    usd_per_gpu_hour : None where no price is wanted
    gpus_per_node, nics_per_node : None for the catalogue's own
    most_gpus : what can be had; None for no limit
    also : further generations in the same job; each rank gets the same work
    slowest_gpu : by how much the slowest GPU takes longer (0.02: 2%)
    link_share : of the network's rate that is left under contention or on a bad link
    fast_gb_per_s, domain_gpus : rate and size of the fast domain, where they differ from the
        catalogue's (GB/s a direction and GPU)
    """

    accelerator: Accelerator
    network: Network | None = None
    usd_per_gpu_hour: float | None = None
    gpus_per_node: int | None = None
    nics_per_node: int | None = None
    most_gpus: int | None = None
    also: tuple[Accelerator, ...] = ()
    slowest_gpu: float = 0.0
    link_share: float = 1.0
    fast_gb_per_s: float | None = None
    domain_gpus: int | None = None
    label: str = ""

    def __post_init__(self) -> None:
        price = self.usd_per_gpu_hour
        good = {
            "usd_per_gpu_hour": price is None or 0 <= price < float("inf"),
            "gpus_per_node": self.gpus_per_node is None or self.gpus_per_node >= 1,
            "nics_per_node": self.nics_per_node is None or self.nics_per_node >= 1,
            "most_gpus": self.most_gpus is None or self.most_gpus >= 1,
            "slowest_gpu": 0 <= self.slowest_gpu < float("inf"),
            "link_share": 0 < self.link_share <= 1,
            "fast_gb_per_s": self.fast_gb_per_s is None or self.fast_gb_per_s > 0,
            "domain_gpus": self.domain_gpus is None or self.domain_gpus >= 1,
        }
        for where, fine in good.items():
            if not fine:
                right = "above 0 up to 1" if where == "link_share" else "a positive number"
                raise InputError(f"{getattr(self, where)} can't be used", where=where, right=right)

    @property
    def node(self) -> int:
        """GPUs of one machine."""
        return self.gpus_per_node or self.accelerator.max_per_node

    @property
    def reach(self) -> float:
        """Most GPUs that can work together: a fast domain's where nothing joins the machines."""
        if self.network is not None:
            return float("inf")
        kinds = (self.accelerator, *self.also)
        return max(self.domain_gpus or min(a.scaleup_domain_gpus or 1 for a in kinds), self.node)

    @property
    def name(self) -> str:
        """GPU and network in words."""
        if self.label:
            return self.label
        mixed = " with ".join(a.name for a in (self.accelerator, *self.also))
        return f"{mixed}, {self.network.name}" if self.network else mixed


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the step model needs of a GPU and its network: FLOP/s, B/s, GPUs, GiB.

    nominal : dense peak of the precision; peak, peak16 : as the step model takes them, scaled
        where products were measured on a card without published steps
    recipes : whether vendors' recipes with published steps are for this generation
    """

    name: str
    nominal: float
    peak: float
    peak16: float
    width: float
    peak_class: int
    hbm: float
    fast: float
    domain: float
    node: int
    nic: float
    memory_gib: float
    slower: float
    calibrated: bool
    recipes: bool

    @property
    def calibrated_network(self) -> bool:
        """Whether steps on a network as slow as this have been published."""
        return self.nic >= CALIBRATED_NIC


def hardware(choice: HardwareChoice, precision: str = "bf16") -> tuple[Hardware, ...]:
    """The step model's view of each generation of a choice, the main one first.

    Raises
    ------
    InputError : for an accelerator whose peak rate is not known
    """
    kinds = (choice.accelerator, *choice.also)
    # One slow kind of card or link inside the machines holds up every collective.
    fast = min(_fast(a, choice) for a in kinds)
    domain = min(_domain(a, choice) for a in kinds)
    memory = min(a.memory_gib_reported or a.memory_gb * 0.93 for a in kinds)
    nic = nic_bytes_per_s(choice)
    told = [_one(a, choice, precision, fast, domain, memory, nic) for a in kinds]
    # One job runs one code: recipes where they are for every generation in it.
    return tuple(replace(h, recipes=all(k.recipes for k in told)) for h in told)


def _one(
    acc: Accelerator, choice: HardwareChoice, precision: str,
    fast: float, domain: float, memory: float, nic: float,
) -> Hardware:  # fmt: skip
    peak16 = (acc.bf16_tflops_dense or acc.fp16_tflops_dense or acc.fp32_tflops or 0.0) * 1e12
    if peak16 <= 0:
        raise InputError("no peak rate is known", where=acc.sku, right="an accelerator with one")
    bits, peak = 16, peak16
    if precision in ("fp8", "fp4") and acc.fp8_tflops_dense:
        bits, peak = 8, acc.fp8_tflops_dense * 1e12
    if precision == "fp32":
        peak = (acc.tf32_tflops_dense or acc.fp32_tflops or peak16 / 2e12) * 1e12
    generation = next((g for pattern, g in _GENERATIONS if re.search(pattern, acc.sku)), "other")
    name = f"{generation}_{bits}"
    measured = name in PEAK_CLASSES and name not in _FEW_ROWS
    nominal = peak
    if name not in PEAK_CLASSES:
        name = "other_16" if bits == 16 else "other_8"
        if bits == 16 and acc.measured_bf16_tflops:
            share = STEP_OF_MEASURED * acc.measured_bf16_tflops * 1e12 / peak16
            peak16 = peak = peak16 * share / shipped_calibration().parameters["eff_other_16"]
    return Hardware(
        name=acc.name, nominal=nominal, peak=peak, peak16=peak16,
        width=4.0 if precision == "fp32" else bits / 8,
        peak_class=PEAK_CLASSES.index(name), hbm=acc.memory_bandwidth_gb_per_s * 1e9, fast=fast,
        domain=domain, node=choice.node, nic=nic, memory_gib=memory, slower=choice.slowest_gpu,
        calibrated=measured and precision != "fp32", recipes=generation in _WITH_RECIPES,
    )  # fmt: skip


def _fast(acc: Accelerator, choice: HardwareChoice) -> float:
    """Rate inside a machine [B/s]: all of its GPUs must share the links, or PCIe paces them."""
    if choice.fast_gb_per_s:
        return choice.fast_gb_per_s * 1e9
    together = acc.scaleup_domain_gpus or 1
    if acc.scaleup_gb_per_s_per_direction and together > 1 and together >= choice.node:
        return acc.scaleup_gb_per_s_per_direction * 1e9
    return pcie_gb_per_s(acc) * 1e9


def pcie_gb_per_s(acc: Accelerator) -> float:
    """What reaches one card over PCIe [GB/s a direction], of its nominal rate."""
    return _PCIE_BYTES_PER_S.get((acc.host_link or "").split(" ")[0], _USUAL_PCIE) / 1e9


def _domain(acc: Accelerator, choice: HardwareChoice) -> float:
    if choice.domain_gpus:
        return float(choice.domain_gpus)
    return float(max(acc.scaleup_domain_gpus or 1, choice.node))


def nic_bytes_per_s(choice: HardwareChoice) -> float:
    """Rate of one GPU out of its node [B/s], nominal where the network is as good as usual."""
    net = choice.network
    if net is None:
        return _NO_NETWORK
    link = net.nominal_gb_per_s_per_direction_per_link
    links = choice.nics_per_node or net.links_per_node
    rate = net.nominal_gb_per_s_per_direction_per_gpu
    if link and links and (choice.nics_per_node or links < choice.node or not rate):
        rate = link * links / choice.node
    if not rate:
        return _NO_NETWORK
    share = (net.efficiency_of_nominal or _USUAL_EFFICIENCY) / _USUAL_EFFICIENCY
    if net.wire_basis.startswith("derived") and net.rdma == "yes":
        # Two nodes are as fast as their own links allow: a floor for the network.
        share = max(share, 1.0)
    return rate * 1e9 * min(share, _MOST_EFFICIENCY) * choice.link_share
