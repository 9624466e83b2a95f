"""Placements of pipelines against sums by hand, brute force, and published cases."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from engine.errors import InputError
from engine.estimate import pipelines as p

CPU = p.Hardware("server", "A", 4.0, 1.0, 10.0)
GPU = p.Hardware("GPU", "B", 3.0, 1 / 6, 10.0)


def free(provider: str, gb: float) -> float:
    return 0.0


def terms(deadline_h: float = 1e6, runs: float = 1.0) -> p.Terms:
    return p.Terms(deadline_h, runs, 1.0, free)


def test_every_placement_once() -> None:
    found = p.all_placements(3)
    assert found.shape == (8, 3)
    assert len({tuple(row) for row in found.tolist()}) == 8
    assert not found[0].any()
    assert found[-1].all()


@pytest.mark.parametrize("stages", [0, 9])
def test_no_stages_and_too_many_are_refused(stages: int) -> None:
    with pytest.raises(InputError):
        p.all_placements(stages)


def test_one_stage_by_amdahl() -> None:
    # 10 h, 90% parallel, 9 times as fast: 1 + 9/9 = 2 h on a GPU at 3 $, 10 h on a server at 4 $.
    found = p.place([p.Stage("a", 10, 0.9, 9)], CPU, GPU, terms())
    assert found.hours[:, 0].tolist() == pytest.approx([10, 2])
    assert found.usd[:, 0].tolist() == pytest.approx([40, 6])


def test_work_without_a_gpu_program_runs_on_the_processors_beside_it() -> None:
    # 6 h of divisible work on a host with a sixth of a server: 36 h of a GPU that stands idle.
    found = p.place([p.Stage("a", 6, 1.0, 1)], CPU, GPU, terms())
    assert found.hours[:, 0].tolist() == pytest.approx([6, 36])
    assert found.usd[:, 0].tolist() == pytest.approx([24, 108])


def test_a_hand_over_costs_time_and_money() -> None:
    # 450 GB at 10 Gbit/s: 360 s. From A to B 450 GB a run, ten runs a month at 0.1 $: 450 $.
    def egress(provider: str, gb: float) -> float:
        return gb * 0.1 if provider == "A" else 0.0

    stages = [p.Stage("a", 1, 1.0, 1, 450), p.Stage("b", 1, 1.0, 10)]
    asked = p.Terms(1e6, 10, 1.0, egress)
    found = p.place(stages, CPU, GPU, asked)
    row = found.on_gpu.tolist().index([False, True])
    assert found.moved_hours[row, 0].tolist() == pytest.approx([0, 0.1])
    assert found.egress[row] == pytest.approx(450)
    assert found.hours[row, 0] == pytest.approx(1 + 0.1 + 0.1)
    # 10 · (1 h · 4 $ + (0.1 + 0.1) h · 3 $) + 450 $
    assert found.usd[row, 0] == pytest.approx(496)
    same = p.place(stages, CPU, p.Hardware("GPU", "A", 3.0, 1 / 6, 10.0), asked)
    assert same.egress.tolist() == [0, 0, 0, 0]


def test_regions_of_one_provider_are_apart() -> None:
    # 450 GB a run, ten runs a month, at 0.02 $ a GB: 90 $; between the same regions nothing.
    stages = [p.Stage("a", 1, 1.0, 1, 450), p.Stage("b", 1, 1.0, 10)]
    asked = p.Terms(1e6, 10, 1.0, free, 0.02)
    east = p.Hardware("server", "A", 4.0, 1.0, 10.0, region="us-east-1")
    west = p.Hardware("GPU", "A", 3.0, 1 / 6, 10.0, region="us-west-2")
    here = p.Hardware("GPU", "A", 3.0, 1 / 6, 10.0, region="us-east-1")
    row = p.all_placements(2).tolist().index([False, True])
    assert p.place(stages, east, west, asked).egress[row] == pytest.approx(90)
    assert p.place(stages, east, here, asked).egress[row] == 0


def test_the_deadline_takes_more_machines_and_never_fewer() -> None:
    # 10 h, all parallel, on CPU servers within 2.5 h: four of them, at the same cost.
    found = p.place([p.Stage("a", 10, 1.0, 1)], CPU, GPU, terms(2.5))
    assert found.units[0, 0, 0] == 4
    assert found.hours[0, 0] == pytest.approx(2.5)
    assert found.usd[0, 0] == pytest.approx(40)


def test_a_serial_part_beyond_the_deadline_can_not_be_kept() -> None:
    found = p.place([p.Stage("a", 10, 0.5, 1)], CPU, GPU, terms(4))
    assert found.hours[0, 0] == math.inf
    assert found.usd[0, 0] == math.inf


def test_a_month_holds_the_runs() -> None:
    # 100 runs of 10 h in 730 h: 7.3 h a run at most, so two servers.
    found = p.place([p.Stage("a", 10, 1.0, 1)], CPU, GPU, terms(1e6, 100))
    assert found.units[0, 0, 0] == 2


@pytest.mark.parametrize("deadline", [6.0, 9.0, 14.0])
def test_units_are_near_the_best_of_all_whole_numbers(deadline: float) -> None:
    # Brute force over units of two stages; the rounded optimum may cost a machine too many.
    stages = [p.Stage("a", 12, 0.9, 1), p.Stage("b", 20, 0.95, 1)]
    server = dataclasses.replace(CPU, start_h=0.1)
    found = p.place(stages, server, GPU, terms(deadline))
    best = math.inf
    for n, m in itertools.product(range(1, 40), repeat=2):
        hours = 1.2 + 10.8 / n + 1.0 + 19.0 / m
        if hours <= deadline:
            usd = 4 * (n * (1.2 + 0.1) + 10.8 + m * (1.0 + 0.1) + 19.0)
            best = min(best, usd)
    assert best <= found.usd[0, 0] <= best * 1.05


def test_further_machines_lose_time_to_one_another() -> None:
    # 60 h that divide, 1% lost for each further server, within 10 h: 60 · (1 + 0.01(n − 1))/n ≤ 10
    # holds from n = 6.32 on, so 7: 60 · 1.06/7 = 9.09 h.
    found = p.place([p.Stage("a", 60, 1.0, 1, contention=0.01)], CPU, GPU, terms(10))
    assert found.units[0, 0, 0] == 7
    assert found.hours[0, 0] == pytest.approx(60 * 1.06 / 7)
    assert found.usd[0, 0] == pytest.approx(4 * 60 * 1.06)


def test_each_kind_of_machine_starts_in_its_own_time() -> None:
    # 8 runs of 10 h: a server at $4 is paid 10 h and a minute each, a GPU at $3 2 h and 4 minutes.
    server, gpu = dataclasses.replace(CPU, start_h=1 / 60), dataclasses.replace(GPU, start_h=4 / 60)
    found = p.place([p.Stage("a", 10, 0.9, 9)], server, gpu, terms(runs=8))
    assert found.usd[:, 0].tolist() == pytest.approx([8 * 4 * 601 / 60, 8 * 3 * 124 / 60])


def test_starting_costs_no_more_than_leaving_a_machine_on() -> None:
    # 70 runs of 10 h fill 700 of 730 hours: an hour's start before each would be 770.
    server = dataclasses.replace(CPU, start_h=1.0)
    found = p.place([p.Stage("a", 10, 0.0, 1)], server, GPU, terms(runs=70))
    assert found.usd[0, 0] == pytest.approx(730 * 4)


def test_a_service_is_kept_all_month_in_whole_units() -> None:
    kept = p.Stage("serve", 0, 1, 1, standing=(2.2, 0.3))
    found = p.place([kept], CPU, GPU, terms())
    assert found.usd[:, 0].tolist() == pytest.approx([3 * 4 * 730, 3 * 730])


def test_draws_are_what_single_values_are() -> None:
    stages = [p.Stage("a", 10, 0.9, 9, 10), p.Stage("b", 5, 0.8, 1)]
    one = p.place(stages, CPU, GPU, terms(8))
    many = p.place(
        stages, CPU, GPU, terms(8), hours_factor=np.ones((4, 2)), speedup_factor=np.ones((4, 2))
    )
    assert np.allclose(many.usd, one.usd, equal_nan=True)
    double = p.place(stages, CPU, GPU, terms(), hours_factor=np.full((1, 2), 2.0))
    assert np.allclose(double.hours[0], 30)


# --- published cases


def test_structure_prediction_belongs_on_both() -> None:
    # One structure (user case 53): 593 s of search for which there is no GPU program on 8 vCPUs,
    # then 92 s on an A100. 593 s · 8/96 = 49.4 s on a server. Inference is taken for 20 times.
    search = p.Stage("search", 593 * 8 / 96 / 3600, 1.0, 1, 0.1)
    model = p.Stage("inference", 92 * 20 / 3600, 1.0, 20)
    cpu, gpu = p.Hardware("server", "A", 4.8, 1, 25), p.Hardware("A100", "A", 2.0, 8 / 96, 25)
    found = p.place([search, model], cpu, gpu, terms(runs=1000))
    split, whole = found.on_gpu.tolist().index([False, True]), 3
    assert int(found.usd[:, 0].argmin()) == split
    # all-GPU: (593 + 92) s · 2 $/h = 0.381 $; split: 49.4 s · 4.8 + 92 s · 2 = 0.117 $
    assert found.usd[whole, 0] / 1000 == pytest.approx(0.3806, rel=1e-3)
    assert found.usd[split, 0] / 1000 == pytest.approx(0.1170, rel=5e-3)


def test_variant_calling_keeps_its_search_off_the_gpu() -> None:
    # A genome (user case 61): 50 core-hours of examples and one of post-processing without a GPU
    # program, 1.5 h of a net on a GPU. All on a GPU machine with 8 vCPUs at 2 $: 51/8 + 1.5 h.
    # Published: it doubled the cost; here 15.75 $ against 2.55 $ + 3 $.
    stages = [
        p.Stage("examples", 50 / 96, 1.0, 1), p.Stage("calls", 30, 1.0, 20),
        p.Stage("post", 1 / 96, 1.0, 1),
    ]  # fmt: skip
    cpu, gpu = p.Hardware("server", "A", 4.8, 1, 25), p.Hardware("GPU", "A", 2.0, 8 / 96, 25)
    found = p.place(stages, cpu, gpu, terms())
    split = found.on_gpu.tolist().index([False, True, False])
    assert int(found.usd[:, 0].argmin()) == split
    assert found.usd[split, 0] == pytest.approx(51 / 96 * 4.8 + 3)
    assert found.usd[-1, 0] == pytest.approx((51 / 8 + 1.5) * 2)
    assert found.usd[-1, 0] > 2 * found.usd[split, 0]


def test_sixty_percent_saved_needs_an_idle_gpu_fleet() -> None:
    # The article's hybrid saves 60% against all-GPU. Moving a share f that costs q as much on CPUs
    # saves f(1 − q): with q = 0.29 (0.045 $ a vCPU-hour beside 0.156 $ on an H100's host) f is 85%.
    assert float(p.share_for_saving(0.6, 0.29)) == pytest.approx(0.845, rel=1e-3)
    assert float(p.share_for_saving(0.6, 0.5)) > 1  # no split saves so much
    assert float(p.share_for_saving(0.0, 0.5)) == 0


# --- owned machines


def flat(usd: float) -> p.Hardware:
    """So many dollars a month for each unit that is owned, used or not."""

    def bill(units: np.ndarray, used: np.ndarray, both: np.ndarray) -> np.ndarray:
        return units * usd

    return p.Hardware("own", "own rooms", usd / 730.0, 1.0, 10.0, owned=bill)


def test_stages_share_the_machines_that_are_owned() -> None:
    # 60 h and 40 h that divide, a run of 25 h: 4 servers serve both, 15 h and 10 h after one
    # another, for 4 x $1,000. By the hour of work 60:40 of the bill.
    stages = [p.Stage("a", 60, 1.0, 1), p.Stage("b", 40, 1.0, 1)]
    found = p.place(stages, flat(1000.0), flat(900.0), terms(deadline_h=25))
    assert found.units[0, 0].tolist() == [4, 4]
    assert found.usd[0, 0] == pytest.approx(4000)
    assert found.stage_usd[0, 0].tolist() == pytest.approx([2400, 1600])


@pytest.mark.parametrize(
    ("deadline", "prices"), [(30.0, (1.0, 3.0)), (9.0, (5.0, 1.0)), (61.0, (1.0, 1.0))]
)
def test_owned_units_are_the_best_of_all_whole_numbers(
    deadline: float, prices: tuple[float, float]
) -> None:
    # Serial 2 h and 1 h; 98 h on the server divide, and 99/9 = 11 h on GPUs. Every pair is tried.
    stages = [p.Stage("a", 100, 0.98, 1), p.Stage("b", 100, 0.99, 9)]
    found = p.place(stages, flat(prices[0]), flat(prices[1]), terms(deadline_h=deadline))
    least = min(
        n * prices[0] + m * prices[1]
        for n in range(1, 300)
        for m in range(1, 300)
        if 2 + 98 / n + 1 + 11 / m <= deadline
    )
    mixed = next(i for i, g in enumerate(found.on_gpu.tolist()) if g == [False, True])
    assert found.usd[mixed, 0] == pytest.approx(least)


def test_a_service_beside_a_run_is_owned_as_well() -> None:
    # 3 servers of the run and 2 that serve all month: 5 x $100.
    stages = [p.Stage("a", 60, 1.0, 1), p.Stage("s", 0, 1, 1, standing=(1.5, 1.0))]
    found = p.place(stages, flat(100.0), flat(90.0), terms(deadline_h=20))
    assert found.usd[0, 0] == pytest.approx(500)


def test_what_the_room_can_not_take_is_no_placement() -> None:
    def bill(units: np.ndarray, used: np.ndarray, both: np.ndarray) -> np.ndarray:
        return np.where(units > 3, np.inf, units * 100.0)

    small = p.Hardware("own", "own rooms", 1.0, 1.0, 10.0, owned=bill)
    found = p.place([p.Stage("a", 60, 1.0, 1)], small, flat(90.0), terms(deadline_h=15))
    assert np.isinf(found.usd[0, 0])
