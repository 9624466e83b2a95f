"""Hardware of published training rows: names as the sources write them, figures of the catalogue.

Figures of GPUs that nobody can rent any more, and of export variants, are stated here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from engine.catalogue import load_catalogue


@dataclass(frozen=True, slots=True)
class Gpu:
    """Dense peaks [FLOP/s], memory and links of one GPU [B/s], GPUs of the fast domain."""

    peak16: float
    peak8: float
    peak4: float
    hbm: float
    fast: float
    domain: float
    nic: float
    generation: str


# Pattern of the name, catalogue entry, usual network of one GPU [GB/s], class of the efficiency.
_NAMES: tuple[tuple[str, str, float, str], ...] = (
    (r"GB300", "gb300", 100, "b300"),
    (r"GB200", "gb200", 50, "b200"),
    (r"B300", "b300-sxm", 100, "b300"),
    (r"B200", "b200-sxm-180gb", 50, "b200"),
    (r"B100", "b100-sxm", 50, "b200"),
    (r"H200.?NVL", "h200-nvl-141gb", 25, "h100"),
    (r"GH200", "gh200-96gb", 25, "h100"),
    (r"H200", "h200-sxm-141gb", 50, "h100"),
    (r"H100.?NVL", "h100-nvl-94gb", 25, "h100"),
    (r"H100.?PC", "h100-pcie-80gb", 25, "h100"),
    (r"H100|H800", "h100-sxm-80gb", 50, "h100"),
    (r"A100.?PC.*80", "a100-pcie-80gb", 12.5, "a100"),
    (r"A100.?PC", "a100-pcie-40gb", 12.5, "a100"),
    (r"A100.*40", "a100-sxm-40gb", 25, "a100"),
    (r"A100|A800", "a100-sxm-80gb", 25, "a100"),
    (r"V100", "v100-sxm2-32gb", 6.25, "other"),
    (r"MI355", "mi355x", 50, "amd"),
    (r"MI350", "mi350x", 50, "amd"),
    (r"MI325", "mi325x", 50, "amd"),
    (r"MI300", "mi300x", 50, "amd"),
    (r"MI250", "mi250x", 25, "other"),
    (r"TPU.?7|Ironwood", "tpu-v7", 300, "other"),
    (r"TPU.?v6|Trillium", "tpu-v6e", 200, "other"),
    (r"TPU.?v5p", "tpu-v5p", 300, "other"),
    (r"TPU.?v5", "tpu-v5e", 100, "other"),
    (r"L40S", "l40s", 6.25, "other"),
    (r"RTX.?PRO.?6000", "rtx-pro-6000-server", 6.25, "other"),
    (r"5090", "rtx-5090", 3.1, "other"),
    (r"4090", "rtx-4090", 3.1, "other"),
    (r"6000.?Ada", "rtx-6000-ada", 3.1, "other"),
    (r"A10G", "a10g", 3.1, "other"),
    (r"A10\b", "a10", 3.1, "other"),
    (r"L4\b", "l4", 3.1, "other"),
    (r"T4\b", "t4", 1.6, "other"),
    (r"Gaudi.?3", "gaudi3", 37.5, "other"),
    (r"Gaudi.?2", "gaudi2", 37.5, "other"),
    (r"Trainium.?2|Trn2", "trainium2", 25, "other"),
)
# Not in the catalogue: 16- and 8-bit TFLOPS, memory and link GB/s (data sheets).
_OTHERS: tuple[tuple[str, tuple[float, float, float, float]], ...] = (
    (r"TPU.?v4", (275, 275, 1228, 300)),
    (r"TPU.?v3", (123, 123, 900, 100)),
    (r"A6000", (155, 155, 768, 25)),
    (r"A40\b", (150, 150, 696, 25)),
    (r"3090", (71, 71, 936, 12)),
    (r"H20\b", (148, 296, 4000, 450)),
)
_PCIE = {"PCIe3": 12e9, "PCIe4": 25e9, "PCIe5": 50e9}
_USUALLY_REPORTED = 0.93  # GiB of a nominal GB
_CUT_LINKS = 200e9  # export variants A800 and H800: NVLink at 200 GB/s a direction


@cache
def gpu_of(name: str) -> Gpu | None:
    """Hardware of a GPU named as the sources write it; None when it is not known."""
    for pattern, sku, nic, generation in _NAMES:
        if re.search(pattern, name, re.IGNORECASE):
            return _of_catalogue(sku, nic, generation, bool(re.search("[AH]800", name)))
    for pattern, (p16, p8, hbm, link) in _OTHERS:
        if re.search(pattern, name, re.IGNORECASE):
            return Gpu(p16 * 1e12, p8 * 1e12, p8 * 1e12, hbm * 1e9, link * 1e9, 8, 6.25e9, "other")
    return None


def reported_gib_of(name: str) -> float | None:
    """Memory [GiB] that a card named as the sources write it reports; None where not known.

    A size in the name counts before the catalogue's: there are H100 of 96 GB.
    """
    sku = next((k for p, k, _, _ in _NAMES if re.search(p, name, re.IGNORECASE)), "")
    acc = load_catalogue().accelerators.get(sku)
    if acc is None:
        return None
    stated = re.search(r"(\d+)\s?GB\b", name, re.IGNORECASE)
    size = float(stated.group(1)) if stated else acc.memory_gb
    return size * (acc.memory_gib_reported or acc.memory_gb * _USUALLY_REPORTED) / acc.memory_gb


def _of_catalogue(sku: str, nic: float, generation: str, cut: bool) -> Gpu | None:
    acc = load_catalogue().accelerators.get(sku)
    if acc is None:
        return None
    peak16 = (acc.bf16_tflops_dense or acc.fp16_tflops_dense or 0.0) * 1e12
    peak8 = (acc.fp8_tflops_dense or 0.0) * 1e12
    peak4 = (acc.fp4_tflops_dense or 0.0) * 1e12
    fast = (acc.scaleup_gb_per_s_per_direction or 0.0) * 1e9 or _PCIE.get(
        acc.host_link.split(" ")[0], 25e9
    )
    domain = float(max(acc.scaleup_domain_gpus or 1, 1))
    return Gpu(
        peak16, max(peak8, peak16), max(peak4, peak8, peak16),
        acc.memory_bandwidth_gb_per_s * 1e9, _CUT_LINKS if cut else fast,
        max(domain, 8.0) if generation != "other" else domain, nic * 1e9, generation,
    )  # fmt: skip


def nic_of(interconnect: str, gpu: Gpu) -> tuple[float, bool]:
    """Network of one GPU [B/s] as the row states it, and whether it does; else the usual."""
    text = interconnect.lower()
    if "|" in text or "not stated" in text or "dgx reference" in text or "nvlink72" in text:
        return gpu.nic, False
    several = re.search(r"(\d+)\s*x\s*(\d+)\s*gb?/?s?", text)
    whole = re.search(r"(\d+(?:\.\d+)?)\s*gb/s(?: effective)? per node", text) or re.search(
        r"(\d+)\s*gb/s (?:efa|roce|infiniband|ethernet)", text
    )
    if several:
        return float(several.group(1)) * float(several.group(2)) * 1e9 / 8 / 8, True
    if whole:
        return float(whole.group(1)) * 1e9 / 8 / 8, True
    return gpu.nic, False
