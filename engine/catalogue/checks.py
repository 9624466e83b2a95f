"""Named checks of hardware and of named parameters: what no single cell can tell."""

from __future__ import annotations

from pathlib import Path

from engine.catalogue.models import Accelerator, Parameter
from engine.errors import DataError

# Dense rates that the hardware can have, as multiples of its dense bf16 rate: each halving of the
# width doubles it, and B300 gave its fp64 up for half as much fp4 again.
MOST_OF_BF16 = {
    "fp16_tflops_dense": 1.05,
    "fp8_tflops_dense": 2.1,
    "int8_tops_dense": 2.1,
    "fp4_tflops_dense": 6.1,
    "tf32_tflops_dense": 0.55,
}
# GeForce cards sum bf16 in fp32 at half rate, which leaves their integers another factor of two.
MOST_OF_BF16_GEFORCE = MOST_OF_BF16 | {"int8_tops_dense": 4.1, "fp4_tflops_dense": 8.2}
# Other makers' chips, and chips that are only announced, have narrow formats of other widths.
MOST_OF_BF16_ELSEWHERE = {
    "fp16_tflops_dense": 1.05,
    "fp8_tflops_dense": 4.5,
    "int8_tops_dense": 4.5,
    "fp4_tflops_dense": 9.0,
    "tf32_tflops_dense": 1.05,
}
# A bf16 rate printed with sparsity gives itself away: these are too small beside it.
LEAST_OF_BF16 = {
    "fp16_tflops_dense": 0.95,
    "fp8_tflops_dense": 1.9,
    "tf32_tflops_dense": 0.45,
    "measured_bf16_tflops": 0.45,
}
NO_FP8 = ("A100", "A10", "V100", "T4", "MI250")
NO_FP4 = (*NO_FP8, "H100", "H200", "L4", "Ada", "4090", "MI300", "MI325")
# "GB" on a data sheet is GiB, or GiB with some of it reserved; never a tenth more.
REPORTED_OF_PRINTED = (0.9, 1.03)


def accelerator(acc: Accelerator, file: Path, line: int) -> list[DataError]:
    """Rates that only sparsity explains, formats that a chip lacks, memory of the wrong unit."""

    def fault(column: str, wrong: str, right: str) -> DataError:
        return DataError(wrong, file=file, line=line, column=column, right=right)

    faults = []
    bf16 = acc.bf16_tflops_dense
    usual = acc.vendor in ("NVIDIA", "AMD") and acc.status != "announced"
    most = MOST_OF_BF16_GEFORCE if "GeForce" in acc.name else MOST_OF_BF16
    for column, times in (most if usual else MOST_OF_BF16_ELSEWHERE).items():
        rate = getattr(acc, column)
        if bf16 is not None and rate is not None and rate > times * bf16:
            faults.append(
                fault(
                    column,
                    f"{rate:g} is more than {times:g} times the dense bf16 rate of {bf16:g}",
                    "the dense figure: half of the one printed with sparsity",
                )
            )
    for column, times in LEAST_OF_BF16.items() if usual else ():
        rate = getattr(acc, column)
        if bf16 is not None and rate is not None and rate < times * bf16:
            faults.append(
                fault(
                    "bf16_tflops_dense",
                    f"{bf16:g} is too much beside {column} of {rate:g}",
                    "the dense figure: half of the one printed with sparsity",
                )
            )
    for column, without in (("fp8_tflops_dense", NO_FP8), ("fp4_tflops_dense", NO_FP4)):
        if getattr(acc, column) is not None and any(name in acc.name for name in without):
            faults.append(fault(column, f"{acc.name} has no {column[:3]}", "leave it empty"))
    if acc.memory_gib_reported is not None:
        low, high = REPORTED_OF_PRINTED
        if not low <= acc.memory_gib_reported / acc.memory_gb <= high:
            faults.append(
                fault(
                    "memory_gib_reported",
                    f"{acc.memory_gib_reported:g} GiB of {acc.memory_gb:g} GB",
                    "the memory of one GPU, not of the instance",
                )
            )
    return faults


def ordered(parameter: Parameter, file: Path, line: int) -> list[DataError]:
    """The range of a parameter is in order."""
    if parameter.low <= parameter.likely <= parameter.high:
        return []
    return [
        DataError(
            f"{parameter.low:g}, {parameter.likely:g}, {parameter.high:g} is not in order",
            file=file,
            line=line,
            column="likely",
            right="low ≤ likely ≤ high",
        )
    ]
