"""Catalogue rows as rates and domains: what shares a link, and what paces the rest."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import InputError
from engine.estimate.training_calibration import shipped_calibration
from engine.estimate.training_hardware import HardwareChoice, hardware, nic_bytes_per_s
from tests.estimate.training_models import A100, CATALOGUE, H100, on


def test_cards_bridged_in_pairs_are_paced_by_pcie() -> None:
    # An NVLink bridge joins two of eight cards: the other links are PCIe 5 at 50 GB/s.
    assert hardware(on("h100-pcie-80gb"))[0].fast == 50e9
    assert hardware(on(H100))[0].fast == 450e9


def test_one_100_gigabit_card_serves_the_eight_gpus_of_its_node() -> None:
    # 100 Gb/s = 12.5 GB/s, over eight GPUs 1.5625; it reaches 84% where 75% is usual.
    rate = nic_bytes_per_s(on(H100, "eth-100g"))
    assert rate == pytest.approx(12.5e9 / 8 * 0.84 / 0.75, rel=0.01)
    eight = nic_bytes_per_s(on(H100, "eth-100g", nics_per_node=8))
    assert eight == pytest.approx(8 * rate)


def test_contention_takes_its_share_of_the_links() -> None:
    whole = nic_bytes_per_s(on(H100, "roce-400g"))
    assert nic_bytes_per_s(on(H100, "roce-400g", link_share=0.4)) == pytest.approx(0.4 * whole)


def test_two_nodes_are_a_floor_for_their_network_and_no_measure_of_it() -> None:
    assert nic_bytes_per_s(on(H100, "ib-ndr400")) >= nic_bytes_per_s(on(H100, "roce-400g"))


def test_a_mixed_job_has_the_least_memory_and_the_slowest_links() -> None:
    mixed = on("b200-sxm-180gb", "roce-400g", also=(CATALOGUE.accelerators[A100],))
    kinds = hardware(mixed)
    assert [k.name for k in kinds] == ["B200 SXM 180GB", "A100 SXM4 80GB"]
    assert {k.memory_gib for k in kinds} == {80.0}
    assert {k.fast for k in kinds} == {300e9}


def test_cards_without_published_steps_are_not_calibrated() -> None:
    assert hardware(on(H100))[0].calibrated
    assert not hardware(on("l4"))[0].calibrated
    assert not hardware(on("mi300x"), "fp8")[0].calibrated
    # Blackwell Ultra: 8-bit steps were published, 16-bit ones were not.
    assert hardware(on("b300-sxm"), "fp8")[0].calibrated
    assert not hardware(on("b300-sxm"))[0].calibrated
    assert not hardware(on(H100, "eth-25g"))[0].calibrated_network


@pytest.mark.parametrize(
    ("field", "value"),
    [("link_share", 0.0), ("link_share", 1.5), ("slowest_gpu", -0.1), ("gpus_per_node", 0),
     ("nics_per_node", 0), ("usd_per_gpu_hour", float("nan")), ("domain_gpus", 0)],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(field: str, value: float) -> None:
    given: dict[str, Any] = {field: value}
    with pytest.raises(InputError) as refused:
        HardwareChoice(CATALOGUE.accelerators[H100], **given)
    assert refused.value.where == field


def test_a_card_without_a_known_rate_is_refused() -> None:
    with pytest.raises(InputError):
        hardware(HardwareChoice(
            CATALOGUE.accelerators["v100-sxm2-16gb"].model_copy(
                update={"fp16_tflops_dense": None, "fp32_tflops": None}
            )
        ))  # fmt: skip


def test_products_measured_on_a_card_stand_for_its_published_steps() -> None:
    # MI300X: 668 TFLOP/s of products measured, of 1,307 nominal; steps reach 93% of such a figure
    # on cards that have both, so large products run at 622 TFLOP/s.
    hw = hardware(on("mi300x", "roce-400g"))[0]
    assert hw.nominal == pytest.approx(1307.4e12)
    share = shipped_calibration().parameters["eff_other_16"]
    assert hw.peak * share == pytest.approx(0.93 * 668.4e12)
