"""Faults that users reported in other price and hardware tables: none passes for a price here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.catalogue import check_data, load_catalogue
from tests.catalogue.conftest import Change

Add = Callable[[dict[str, str]], int]
CATALOGUE = load_catalogue()


def offer(provider: str, gpu: str, gpus: int, usd: float | str, **cells: str) -> dict[str, str]:
    per_gpu = f"{usd / gpus:.6g}" if isinstance(usd, float) else usd
    return {
        "provider": provider,
        "sku": f"{gpus}x {gpu}",
        "accelerator_sku": gpu,
        "gpus_per_instance": str(gpus),
        "usd_per_instance_hour": str(usd),
        "usd_per_gpu_hour": per_gpu,
        **cells,
    }


# Cents for dollars, the host without its GPU, free machines, a previous price.
PRICES: dict[str, tuple[dict[str, str], str]] = {
    "B200 at 0.01": (offer("Mithril", "b200-sxm-180gb", 1, 0.01), "usd_per_gpu_hour"),
    "8 H100 at 8.00": (offer("Mithril", "h100-sxm-80gb", 8, 8.00), "usd_per_gpu_hour"),
    "8 A100 at 0.08": (offer("Mithril", "a100-sxm-80gb", 8, 0.08), "usd_per_gpu_hour"),
    "a host without its A100": (
        offer("GCP", "a100-sxm-40gb", 1, 0.94, region="us-central1"),
        "usd_per_gpu_hour",
    ),
    "NaN": (offer("Mithril", "h100-sxm-80gb", 8, "nan"), "usd_per_instance_hour"),
    "nothing for a GPU": (offer("Mithril", "t4", 1, "0.00"), "usd_per_instance_hour"),
    "nothing stated": (offer("Mithril", "t4", 1, ""), "usd_per_instance_hour"),
    "nothing for a server": (
        {
            "provider": "GCP",
            "sku": "n2-standard-2",
            "vcpu": "2",
            "memory_gb": "8",
            "usd_per_instance_hour": "0.00",
        },
        "usd_per_instance_hour",
    ),
    "spot above on demand": (
        {
            "provider": "Lambda",
            "sku": "1x GH200",
            "accelerator_sku": "gh200-96gb",
            "gpus_per_instance": "1",
            "region": "us",
            "usd_per_instance_hour": "2.55",
            "usd_per_gpu_hour": "2.55",
            "acquisition": "spot",
        },
        "usd_per_instance_hour",
    ),
    "memory of zero": (
        offer("AWS", "h100-sxm-80gb", 8, 55.2, memory_gb="0"),
        "memory_gb",
    ),
    "GPUs without a model": (
        offer("AWS", "h100-sxm-80gb", 8, 55.2, accelerator_sku=""),
        "accelerator_sku",
    ),
    "GPUs priced as one": (
        offer("Mithril", "h100-sxm-80gb", 8, 28.66, usd_per_gpu_hour="28.66"),
        "usd_per_instance_hour",
    ),
}


@pytest.mark.parametrize("name", PRICES)
def test_price(name: str, folder: Path, add: Add) -> None:
    cells, column = PRICES[name]
    line = add(cells)
    assert {(f.file, f.line, f.column) for f in check_data(folder)} == {
        ("offers.csv", line, column)
    }


@pytest.mark.parametrize(
    ("gpu", "gpus", "usd"),
    [("b200-sxm-180gb", 1, 3.45), ("h100-sxm-80gb", 8, 28.66), ("a100-sxm-80gb", 8, 13.99)],
)
def test_the_true_price_is_taken(gpu: str, gpus: int, usd: float, folder: Path, add: Add) -> None:
    add(offer("Mithril", gpu, gpus, usd))
    assert check_data(folder) == []


@pytest.mark.parametrize("sku", ["l4", "l40s", "h100-sxm-80gb", "h200-sxm-141gb"])
@pytest.mark.parametrize("cell", ["0", "nan", "-80"])
def test_a_card_has_memory(sku: str, cell: str, folder: Path, change: Change) -> None:
    line = change("accelerators.csv", {"sku": sku}, {"memory_gb": cell})
    faults = {(f.file, f.line, f.column) for f in check_data(folder)}
    assert ("accelerators.csv", line, "memory_gb") in faults


@pytest.mark.parametrize(
    ("sku", "dense"),
    [
        ("h100-pcie-80gb", 756.5),
        ("h100-nvl-94gb", 835.5),
        ("h200-nvl-141gb", 835.5),
        ("h100-sxm-80gb", 989),
        ("h200-sxm-141gb", 989),
    ],
)
def test_sparse_rates_are_refused(sku: str, dense: float, folder: Path, change: Change) -> None:
    acc = CATALOGUE.accelerators[sku]
    assert acc.bf16_tflops_dense == dense
    doubled = {
        column: f"{2 * getattr(acc, column):g}"
        for column in (
            "bf16_tflops_dense",
            "fp16_tflops_dense",
            "fp8_tflops_dense",
            "tf32_tflops_dense",
            "int8_tops_dense",
        )
    }
    line = change("accelerators.csv", {"sku": sku}, doubled)
    faults = {(f.file, f.line, f.column) for f in check_data(folder)}
    assert ("accelerators.csv", line, "bf16_tflops_dense") in faults


def test_the_memory_that_the_card_reports_is_below_what_is_printed() -> None:
    # The L4 reports 22,888 MiB of its 24 GB: 22.35 GiB.
    l4 = CATALOGUE.accelerators["l4"]
    assert l4.memory_gb == 24
    assert l4.memory_gib_reported == pytest.approx(22_888 / 1024, rel=0.01)
