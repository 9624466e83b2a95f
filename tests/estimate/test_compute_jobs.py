"""Compute jobs: Amdahl with copies and storage, whole machines, break-even, hard constraints."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.catalogue import load_catalogue
from engine.estimate.compute_jobs import (
    Machine,
    Work,
    break_even_speedup,
    cost_ratio,
    fastest_hours,
    fewest_units,
    gpu_constraints,
    parts,
    payback_months,
    run,
    server_fp64_tflops,
)
from engine.estimate.jobs import one_server_hours
from engine.estimate.scaling import amdahl_speedup, crossover_fraction, gpu_time_relative

SERVER = Machine("cpu", vcpu=96.0, feed_gb_per_s=1.0)
GPU = Machine("gpu", vcpu=96.0, gpu_speed=1.0, host_link_gb_per_s=25.0, feed_gb_per_s=1.0)
WORK = Work(one_server_hours=100.0, parallel_fraction=0.9, io_share=0.0, speedup=10.0)


def test_servers_follow_amdahl() -> None:
    # 100 h, 90% parallel, on 9 servers: 10 + 90/9 = 20 h.
    found = run(WORK, SERVER, 9.0)
    assert float(found.hours) == pytest.approx(20.0)
    assert 100.0 / float(found.hours) == pytest.approx(amdahl_speedup(0.9, 9.0))


def test_one_gpu_takes_the_relative_time_of_the_decision() -> None:
    # 0.8·(0.1 + 0.9/10) + 0.2 = 0.352 of 100 h; the host is as large as the reference server.
    work = Work(100.0, 0.9, 0.2, 10.0)
    assert float(run(work, GPU, 1.0).hours) == pytest.approx(35.2)
    assert gpu_time_relative(0.9, 10.0, 0.2) == pytest.approx(0.352)


def test_the_baseline_comes_back_on_todays_servers() -> None:
    # 20 h on 9 servers today is 100 h on one; on 9 servers it must take 20 h again.
    back = one_server_hours(np.array([20.0]), np.array([9.0]), np.array([0.9]), np.array([0.0]))
    assert float(run(Work(back, 0.9, 0.0, 10.0), SERVER, 9.0).hours[0]) == pytest.approx(20.0)


def test_copies_take_their_time_on_the_link() -> None:
    # 900,000 GB over 25 GB/s are 36,000 s: 10 h on one GPU, 5 h each on two.
    work = Work(100.0, 0.9, 0.0, 10.0, copied_gb=900_000.0)
    one, two = run(work, GPU, 1.0), run(work, GPU, 2.0)
    assert float(one.copy_hours) == pytest.approx(10.0)
    assert float(one.hours) == pytest.approx(10.0 + 9.0 + 10.0)
    assert float(two.hours) == pytest.approx(10.0 + (9.0 + 10.0) / 2)
    assert float(run(work, SERVER, 1.0).copy_hours) == 0.0


def test_storage_is_a_floor_for_both() -> None:
    # 180,000 GB at 1 GB/s are 50 h for one machine, whatever computes: no GPU goes below.
    work = Work(100.0, 1.0, 0.0, 100.0, read_gb=180_000.0)
    found = run(work, GPU, 1.0)
    assert float(found.hours) == pytest.approx(50.0)
    assert bool(found.fed)
    assert not bool(run(work, SERVER, 1.0).fed)


def test_contention_can_undo_further_machines() -> None:
    # σ = 0.1: serial 10 + 0.1·90 = 19, divisible 81; on 9 servers 28 h instead of 20.
    work = Work(100.0, 0.9, 0.0, 10.0, contention=0.1)
    assert float(run(work, SERVER, 9.0).hours) == pytest.approx(28.0)
    assert float(fastest_hours(work, SERVER)) == pytest.approx(19.0)


def test_fewest_units_in_whole_machines() -> None:
    # 25 h wanted: (25 − 10)/90 → 6 servers, 25.0 h. In machines of 4 that is 8.
    assert float(fewest_units(WORK, SERVER, 25.0)) == 6
    of_four = Machine("cpu", vcpu=96.0, per_machine=4)
    assert float(fewest_units(WORK, of_four, 25.0)) == 8


def test_no_number_of_servers_beats_the_serial_part() -> None:
    # 10 h are serial: 1 h can't be had; 90/(20 − 10) = 9 servers bring the rest to the serial part.
    assert float(fewest_units(WORK, SERVER, 1.0)) == 9


def test_slow_storage_asks_for_machines() -> None:
    # 36,000 GB at 1 GB/s are 10 h a machine; wanted in 2.5 h: four machines.
    work = Work(10.0, 1.0, 0.0, 100.0, read_gb=36_000.0)
    assert float(fewest_units(work, GPU, 2.5)) == 4


def test_floats_and_arrays_agree() -> None:
    p, s = np.array([0.5, 0.9, 0.99]), np.array([5.0, 10.0, 50.0])
    together = run(Work(100.0, p, 0.1, s), GPU, 4.0).hours
    alone = [float(run(Work(100.0, a, 0.1, b), GPU, 4.0).hours) for a, b in zip(p, s, strict=True)]
    assert together == pytest.approx(alone)
    assert parts(Work(100.0, p, 0.1, s), GPU)[0].shape == (3,)


@pytest.mark.parametrize(("r", "p", "b"), [(3.0, 0.95, 0.0), (1.5, 0.8, 0.1), (0.5, 0.3, 0.2)])
def test_at_the_break_even_both_cost_the_same(r: float, p: float, b: float) -> None:
    s = float(break_even_speedup(r, p, b))
    assert cost_ratio(r, p, s, b) == pytest.approx(1.0)
    assert cost_ratio(r, p, s * 1.1, b) < 1.0


def test_break_even_by_hand_and_against_the_crossover() -> None:
    # r = 3, p = 0.9: s = 0.9/(1/3 − 0.1) = 3.857; the crossover fraction at that s is 0.9 again.
    s = float(break_even_speedup(3.0, 0.9))
    assert s == pytest.approx(0.9 / (1 / 3 - 0.1))
    assert crossover_fraction(3.0, s) == pytest.approx(0.9)


def test_no_speedup_pays_where_the_rest_costs_as_much() -> None:
    # At r = 3 and p = 0.6 the serial 40% alone cost 1.2 times the CPU run.
    assert math.isinf(float(break_even_speedup(3.0, 0.6)))


def test_cards_without_double_precision_are_out() -> None:
    catalogue = load_catalogue()
    server = catalogue.cpu_servers["m7i-24xlarge"]
    # 48 cores · 3.2 GHz · 32 double-precision operations = 4.9 TFLOPS.
    assert server_fp64_tflops(server) == pytest.approx(48 * 3.2 * 32 / 1000, rel=0.01)

    def reasons(sku: str, fp64: bool) -> list[str]:
        found = gpu_constraints(
            catalogue.accelerators[sku], server, needs_fp64=fp64, memory_gb=None, splits=True,
            licence_covers_gpus=True, can_be_rewritten=True,
        )  # fmt: skip
        return [c.field for c in found]

    assert reasons("l40s", True) == ["precision"]
    assert reasons("l40s", False) == []
    assert reasons("h100-sxm-80gb", True) == []


def test_licence_code_and_memory_rule_out() -> None:
    catalogue = load_catalogue()
    found = gpu_constraints(
        catalogue.accelerators["h100-sxm-80gb"], catalogue.cpu_servers["m7i-24xlarge"],
        needs_fp64=False, memory_gb=500.0, splits=False, licence_covers_gpus=False,
        can_be_rewritten=False,
    )  # fmt: skip
    assert [c.field for c in found] == ["rewrite", "licence_covers_gpus", "working_set_gb"]
    assert "500 GB" in found[-1].reason


def test_a_rewrite_pays_back_or_never() -> None:
    assert float(payback_months(60_000.0, 5_000.0)) == pytest.approx(12.0)
    assert math.isinf(float(payback_months(60_000.0, -10.0)))
    assert float(payback_months(0.0, -10.0)) == 0.0
