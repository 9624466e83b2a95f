"""Named checks of whole tables: what no single cell can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from engine.catalogue.models import Accelerator, Offer, Parameter
from engine.errors import DataError

# Dense rates that the hardware can have, as multiples of its dense bf16 rate: each halving of the
# width doubles it; the RTX and Blackwell lines add a factor for four bits (B300: 6 times).
MOST_OF_BF16 = {
    "fp16_tflops_dense": 1.05,
    "fp8_tflops_dense": 2.1,
    "int8_tops_dense": 4.1,
    "fp4_tflops_dense": 8.2,
    "tf32_tflops_dense": 0.55,
}
# Other makers' chips, and chips that are only announced, have narrow formats of other widths.
MOST_OF_BF16_ELSEWHERE = {
    "fp16_tflops_dense": 1.05,
    "fp8_tflops_dense": 4.5,
    "int8_tops_dense": 4.5,
    "fp4_tflops_dense": 9.0,
    "tf32_tflops_dense": 1.05,
}
NO_FP8 = ("A100", "V100", "T4")
OUTLIER_FACTOR = 8.0
LEAST_NEIGHBOURS = 3
Numbered = Sequence[tuple[int, Offer]]


def dense_rates(acc: Accelerator, file: Path, line: int) -> list[DataError]:
    """Rates that only sparsity explains, and formats that the chip does not have."""
    faults = []
    bf16 = acc.bf16_tflops_dense
    if bf16 is not None:
        usual = acc.vendor in ("NVIDIA", "AMD") and acc.status != "announced"
        for column, most in (MOST_OF_BF16 if usual else MOST_OF_BF16_ELSEWHERE).items():
            rate = getattr(acc, column)
            if rate is not None and rate > most * bf16:
                faults.append(
                    DataError(
                        f"{rate:g} is more than {most:g} times the dense bf16 rate of {bf16:g}",
                        file=file,
                        line=line,
                        column=column,
                        right="the dense figure: half of the one printed with sparsity",
                    )
                )
    if acc.fp8_tflops_dense is not None and any(n in acc.name for n in NO_FP8):
        faults.append(
            DataError(
                f"{acc.name} has no fp8",
                file=file,
                line=line,
                column="fp8_tflops_dense",
                right="leave it empty",
            )
        )
    return faults


def instance_price(offer: Offer, file: Path, line: int) -> list[DataError]:
    """The price of the instance is that of its GPUs."""
    if offer.accelerator_sku is None:
        return []
    if offer.gpus_per_instance == 0 or offer.usd_per_gpu_hour is None:
        return [
            DataError(
                "is empty",
                file=file,
                line=line,
                column="usd_per_gpu_hour",
                right="an offer with an accelerator has a number of GPUs and a price for each",
            )
        ]
    whole = offer.gpus_per_instance * offer.usd_per_gpu_hour
    if abs(whole / offer.usd_per_instance_hour - 1) > 0.01:
        return [
            DataError(
                f"{offer.gpus_per_instance} × {offer.usd_per_gpu_hour:g} is {whole:g}, "
                f"the instance costs {offer.usd_per_instance_hour:g}",
                file=file,
                line=line,
                column="usd_per_instance_hour",
                right="GPUs × price per GPU",
            )
        ]
    return []


def outliers(offers: Numbered, file: Path) -> list[DataError]:
    """Prices off the median of the others for the same hardware and terms by more than eight."""
    groups: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for line, offer in offers:
        if offer.rankable and offer.accelerator_sku and offer.usd_per_gpu_hour:
            key = (offer.accelerator_sku, offer.acquisition)
            groups.setdefault(key, []).append((line, offer.usd_per_gpu_hour))
    faults = []
    for (sku, terms), prices in groups.items():
        if len(prices) < LEAST_NEIGHBOURS:
            continue
        for line, usd in prices:
            middle = median(p for other, p in prices if other != line)
            if usd > OUTLIER_FACTOR * middle or usd * OUTLIER_FACTOR < middle:
                faults.append(
                    DataError(
                        f"${usd:g} a GPU-hour is {usd / middle:.2g} times the others' "
                        f"${middle:g} ({sku}, {terms})",
                        file=file,
                        line=line,
                        column="usd_per_gpu_hour",
                        right="per GPU and hour in dollars, not cents, not per instance",
                    )
                )
    return faults


def known(
    offer: Offer,
    accelerators: Mapping[str, Accelerator],
    servers: Mapping[str, object],
    file: Path,
    line: int,
) -> list[DataError]:
    """The hardware of an offer is in the catalogue."""
    faults = []
    if offer.accelerator_sku is not None and offer.accelerator_sku not in accelerators:
        faults.append(
            DataError(
                f"{offer.accelerator_sku!r} is not in the catalogue",
                file=file,
                line=line,
                column="accelerator_sku",
                right="a sku of accelerators.csv",
            )
        )
    if offer.cpu_server_id is not None and offer.cpu_server_id not in servers:
        faults.append(
            DataError(
                f"{offer.cpu_server_id!r} is not in the catalogue",
                file=file,
                line=line,
                column="cpu_server_id",
                right="an id of cpu_servers.csv",
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
