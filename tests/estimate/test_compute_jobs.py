"""Compute jobs: Amdahl with copies and storage, whole machines, break-even, hard constraints."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.catalogue import load_catalogue
from engine.estimate import jobs
from engine.estimate.compute_jobs import (
    Parts,
    break_even_speedup,
    cost_ratio,
    gpu_constraints,
    parts_of,
    payback_months,
    server_fp64_tflops,
    too_little_memory,
)
from engine.estimate.jobs import one_server_hours
from engine.estimate.scaling import amdahl_speedup, crossover_fraction, gpu_time_relative


def server(
    hours: float | np.ndarray, p: float, b: float = 0.0, sigma: float = 0.0, **more: float
) -> Parts:
    """A run on reference servers, which are fed with 1 GB/s each."""
    serial, divisible = jobs.cpu_parts(np.asarray(hours, dtype=float), np.array(p), np.array(b),
                                       splits=False)  # fmt: skip
    return parts_of(serial, divisible, sigma, **more)  # type: ignore[arg-type]


def gpu(
    hours: float, p: float | np.ndarray, b: float, s: float | np.ndarray, **more: float
) -> Parts:
    """The same on reference GPUs, each with a host as large as a server and 25 GB/s to it."""
    serial, divisible = jobs.gpu_parts(np.asarray(hours), np.asarray(p), np.asarray(b),
                                       np.asarray(s), 1.0, splits=False)  # fmt: skip
    return parts_of(serial, divisible, 0.0, host_link_gb_per_s=25.0, **more)  # type: ignore[arg-type]


def test_servers_follow_amdahl() -> None:
    # 100 h, 90% parallel, on 9 servers: 10 + 90/9 = 20 h.
    found = float(server(100.0, 0.9).hours(9.0))
    assert found == pytest.approx(20.0)
    assert 100.0 / found == pytest.approx(amdahl_speedup(0.9, 9.0))


def test_one_gpu_takes_the_relative_time_of_the_decision() -> None:
    # 0.8·(0.1 + 0.9/10) + 0.2 = 0.352 of 100 h; the host is as large as the reference server.
    assert float(gpu(100.0, 0.9, 0.2, 10.0).hours(1.0)) == pytest.approx(35.2)
    assert gpu_time_relative(0.9, 10.0, 0.2) == pytest.approx(0.352)


def test_the_baseline_comes_back_on_todays_servers() -> None:
    # 20 h on 9 servers today is 100 h on one; on 9 servers it must take 20 h again.
    back = one_server_hours(np.array([20.0]), np.array([9.0]), np.array([0.9]), np.array([0.0]))
    assert float(server(back, 0.9).hours(9.0)[0]) == pytest.approx(20.0)


def test_copies_take_their_time_on_the_link() -> None:
    # 900,000 GB over 25 GB/s are 36,000 s: 10 h on one GPU, 5 h each on two.
    work = gpu(100.0, 0.9, 0.0, 10.0, copied_gb=900_000.0)
    assert float(work.copies) == pytest.approx(10.0)
    assert float(work.hours(1.0)) == pytest.approx(10.0 + 9.0 + 10.0)
    assert float(work.hours(2.0)) == pytest.approx(10.0 + (9.0 + 10.0) / 2)
    assert float(server(100.0, 0.9).copies) == 0.0


def test_storage_is_a_floor_for_both() -> None:
    # 180,000 GB at 1 GB/s are 50 h for one machine, whatever computes: no GPU goes below.
    work = gpu(100.0, 1.0, 0.0, 100.0, read_gb=180_000.0)
    assert float(work.hours(1.0)) == pytest.approx(50.0)
    assert float(server(100.0, 1.0, read_gb=180_000.0).hours(1.0)) == pytest.approx(100.0)
    assert float(work.feeding(2.0)) == pytest.approx(25.0)


def test_contention_can_undo_further_machines() -> None:
    # σ = 0.1: serial 10 + 0.1·90 = 19, divisible 81; on 9 servers 28 h instead of 20.
    work = server(100.0, 0.9, sigma=0.1)
    assert float(work.hours(9.0)) == pytest.approx(28.0)
    assert float(work.serial) == pytest.approx(19.0)


def test_fewest_units_in_whole_machines() -> None:
    # 25 h wanted: (25 − 10)/90 → 6 servers, 25.0 h. In machines of 4 that is 8.
    assert float(server(100.0, 0.9).fewest_units(25.0)) == 6
    assert float(server(100.0, 0.9, per_machine=4).fewest_units(25.0)) == 8


def test_no_number_of_servers_beats_the_serial_part() -> None:
    # 10 h are serial: 1 h can't be had; 90/(20 − 10) = 9 servers bring the rest to the serial part.
    assert float(server(100.0, 0.9).fewest_units(1.0)) == 9


def test_a_deadline_is_kept_while_more_servers_keep_it() -> None:
    # 10 h are serial, 90 h divide: 12 h are had with 90/2 = 45 servers, 11 h with 90. A sixteenth
    # of 10 h is 37.5 min: 10 h 38 min takes 90/0.6333 → 143; 10 h 37 min is left alone, as above.
    work = server(100.0, 0.9)
    assert float(work.fewest_units(12.0, firm=True)) == 45
    assert float(work.fewest_units(11.0, firm=True)) == 90
    assert float(work.fewest_units(10 + 38 / 60, firm=True)) == 143
    assert float(work.fewest_units(10 + 37 / 60, firm=True)) == 9
    # A wish is met where it costs no more than it saves: 20 h or more.
    assert work.fewest_units(np.array([12.0, 20.0, 25.0])).tolist() == [9, 9, 6]
    assert float(work.hours(45.0)) == pytest.approx(12.0)


def test_slow_storage_asks_for_machines() -> None:
    # 36,000 GB at 1 GB/s are 10 h a machine; wanted in 2.5 h: four machines.
    assert float(gpu(10.0, 1.0, 0.0, 100.0, read_gb=36_000.0).fewest_units(2.5)) == 4


def test_floats_and_arrays_agree() -> None:
    p, s = np.array([0.5, 0.9, 0.99]), np.array([5.0, 10.0, 50.0])
    together = gpu(100.0, p, 0.1, s).hours(4.0)
    alone = [float(gpu(100.0, a, 0.1, b).hours(4.0)) for a, b in zip(p, s, strict=True)]
    assert together == pytest.approx(alone)
    assert gpu(100.0, p, 0.1, s).serial.shape == (3,)


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
    of_today = catalogue.cpu_servers["m7i-24xlarge"]
    # 48 cores · 3.2 GHz · 32 double-precision operations = 4.9 TFLOPS.
    assert server_fp64_tflops(of_today) == pytest.approx(48 * 3.2 * 32 / 1000, rel=0.01)

    def reasons(sku: str, fp64: bool) -> list[str]:
        found = gpu_constraints(
            catalogue.accelerators[sku], of_today, needs_fp64=fp64,
            licence_covers_gpus=True, can_be_rewritten=True,
        )  # fmt: skip
        return [c.field for c in found]

    assert reasons("l40s", True) == ["precision"]
    assert reasons("l40s", False) == []
    assert reasons("h100-sxm-80gb", True) == []


def test_licence_and_code_rule_out() -> None:
    catalogue = load_catalogue()
    found = gpu_constraints(
        catalogue.accelerators["h100-sxm-80gb"], catalogue.cpu_servers["m7i-24xlarge"],
        needs_fp64=False, licence_covers_gpus=False, can_be_rewritten=False,
    )  # fmt: skip
    assert [c.field for c in found] == ["rewrite", "licence_covers_gpus"]


def test_what_can_not_be_split_must_fit_into_one_device_or_server() -> None:
    found = too_little_memory("H100", 85.5, 500.0)
    assert found is not None
    assert found.field == "working_set_gb"
    assert "500 GB" in found.reason
    assert too_little_memory("a server", 768.0, 500.0) is None
    assert too_little_memory("H100", 85.5, None) is None


def test_a_rewrite_pays_back_or_never() -> None:
    assert float(payback_months(60_000.0, 5_000.0)) == pytest.approx(12.0)
    assert math.isinf(float(payback_months(60_000.0, -10.0)))
    assert float(payback_months(0.0, -10.0)) == 0.0
