"""Named checks of servers and networks, and of accelerators beside others of their generation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from engine.catalogue.models import Accelerator, CpuServer, Network
from engine.errors import DataError
from engine.wording import number

# Generations whose members have tensor and vector units in one proportion, by words of their name.
GENERATIONS = (
    ("A100",),
    ("H100", "H200", "GH200"),
    ("B100", "B200", "B300", "GB200", "GB300"),
    ("L4", "L40S", "Ada"),
    ("PRO",),
    ("MI300X", "MI325X"),
    ("MI350X", "MI355X"),
)
# Clocks under load differ by card; a rate with sparsity is twice the dense one.
PROPORTION_SPREAD = 1.5
# Peaks and bandwidths are rounded in their sources.
ROUNDING = 0.02


def generation(numbered: Sequence[tuple[int, Accelerator]], file: Path) -> Iterator[DataError]:
    """A card whose tensor rates were all printed with sparsity differs from those of its kind."""
    for names in GENERATIONS:
        proportions = [
            (line, acc, acc.bf16_tflops_dense / acc.fp32_tflops)
            for line, acc in numbered
            if acc.bf16_tflops_dense
            and acc.fp32_tflops
            and not set(names).isdisjoint(acc.name.split())
        ]
        for line, acc, own in proportions:
            others = [p for other, _, p in proportions if other != line]
            if others and own > PROPORTION_SPREAD * median(others):
                yield _fault(
                    file,
                    line,
                    "bf16_tflops_dense",
                    f"{acc.bf16_tflops_dense:g} is {number(own)} times the fp32 rate, "
                    f"{number(median(others))} times on others of the generation",
                    "the dense figure: half of the one printed with sparsity",
                )


def server(row: CpuServer, file: Path, line: int) -> list[DataError]:
    """Threads fit the cores; peaks and bandwidth follow from the clock and the memory channels."""
    faults = []
    if not row.physical_cores <= row.vcpu <= 2 * row.physical_cores:
        faults.append(
            _fault(
                file,
                line,
                "physical_cores",
                f"{row.physical_cores:g} cores beside {row.vcpu:g} vCPU",
                "one or two vCPU a core",
            )
        )
    cycles = row.physical_cores * (row.clock_ghz or 0)
    products = {
        "peak_fp32_gflops": cycles * (row.fp32_flop_per_cycle_core or 0),
        "peak_bf16_gflops": cycles * (row.bf16_flop_per_cycle_core or 0),
        "memory_bandwidth_gb_per_s": row.sockets
        * (row.memory_channels_per_socket or 0)
        * (row.memory_mt_s or 0)
        * 8
        / 1000,
    }
    for column, follows in products.items():
        stated = getattr(row, column)
        if follows and stated and not abs(stated / follows - 1) <= ROUNDING:
            faults.append(
                _fault(
                    file,
                    line,
                    column,
                    f"{stated:g}, and {follows:g} follows from the row's other cells",
                    f"{follows:g}",
                )
            )
    return faults


def network(row: Network, file: Path, line: int) -> list[DataError]:
    """Ranges are in order; a link is no faster than its bits, a wire than its links.

    `wire_gb_per_s_per_gpu` counts per GPU: a port that eight GPUs share is an eighth for each.
    """
    faults = []
    for low, high in (
        ("latency_us_low", "latency_us_high"),
        ("nic_usd_low", "nic_usd_high"),
        ("switch_usd_low", "switch_usd_high"),
    ):
        below, above = getattr(row, low), getattr(row, high)
        if below is not None and above is not None and below > above:
            wrong = f"{below:g} is more than {high} of {above:g}"
            faults.append(_fault(file, line, low, wrong, "the lower end"))
    link = row.nominal_gb_per_s_per_direction_per_link
    if link and row.link_gbit_per_s and not abs(link * 8 / row.link_gbit_per_s - 1) <= ROUNDING:
        wrong = f"{link:g} GB/s of {row.link_gbit_per_s:g} Gbit/s"
        column = "nominal_gb_per_s_per_direction_per_link"
        faults.append(_fault(file, line, column, wrong, "8 bits a byte"))
    nominal = row.nominal_gb_per_s_per_direction_per_gpu
    if nominal and row.wire_gb_per_s_per_gpu and row.wire_gb_per_s_per_gpu > nominal:
        wrong = f"{row.wire_gb_per_s_per_gpu:g} is more than the nominal {nominal:g}"
        faults.append(
            _fault(file, line, "wire_gb_per_s_per_gpu", wrong, "GB/s per GPU and direction")
        )
    return faults


def _fault(file: Path, line: int, column: str, wrong: str, right: str) -> DataError:
    return DataError(wrong, file=file, line=line, column=column, right=right)
