"""Demand and machines of services: each figure worked out by hand beside it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import InputError
from engine.estimate import services as s


def test_the_dashboard_of_the_article_is_four_cores() -> None:
    # 500 requests/s of 8 core-ms keep 500 · 0.008 = 4 cores busy; twice that at the peak, and
    # 8 / 0.6 = 13.3 vCPUs at the load that is planned with: one machine of 16.
    assert s.cores(500, 8, 1) == pytest.approx(4)
    assert s.cores(1000, 8, 0.6) == pytest.approx(13.333, rel=1e-4)
    machine = s.Machine(16, 64, 6.25, 1000, 16_000, 64_000)
    by = s.machines_by_resource({"cores": s.cores(1000, 8, 0.6), "memory": 20.0}, machine)
    assert s.whole_machines(by) == 1
    assert s.binding(by) == "cores"


def test_fifty_services_are_a_few_machines_together() -> None:
    # 50 · 100/s · 5 ms = 25 cores on the mean. A peak of 4 takes 100 if all peak together; if they
    # are independent 1 + 3/√50 = 1.424, or 35.6 cores.
    assert s.cores(50 * 100, 5, 1) == pytest.approx(25)
    assert s.pooled_peak(4, 50) == pytest.approx(1.42426, rel=1e-5)
    assert s.pooled_peak(4, 1) == pytest.approx(4)
    assert 25 * float(s.pooled_peak(4, 50)) == pytest.approx(35.607, rel=1e-4)


def test_bytes_on_the_line_and_on_disk() -> None:
    # 200,000 events of 1 kB a second are 200 MB/s or 1.6 Gbit/s, and 17.28 TB a day.
    assert s.gbit_per_s(200_000, 1) == pytest.approx(1.6)
    assert s.mb_per_s(200_000, 1) == pytest.approx(200)
    assert s.mb_per_s(200_000, 1, 0.5) == pytest.approx(400)
    assert s.kept_gb(200_000, 1, 1) == pytest.approx(17_280)


def test_machines_are_whole_and_never_none() -> None:
    assert s.whole_machines({"cores": 0.0}) == 1
    assert s.whole_machines({"cores": 2.0, "memory": 1.0}) == 2
    assert s.whole_machines({"cores": np.array([0.2, 2.1])}).tolist() == [1, 3]  # type: ignore[union-attr]


def test_five_machines_fail_five_times_as_often() -> None:
    # 8,760 h in a year, one failure in 43,800 h: 0.2 a year and machine.
    assert s.failures_per_year(1, 43_800) == pytest.approx(0.2)
    assert s.failures_per_year(5, 43_800) == pytest.approx(1.0)
    assert s.hours_away_per_year(8_759, 1) == pytest.approx(1.0)


@pytest.mark.parametrize(("copies", "most", "lost"), [(1, 1, 0), (2, 2, 1), (3, 2, 1), (5, 3, 2)])
def test_a_write_that_a_majority_has_survives_all_but_one_of_it(
    copies: int, most: int, lost: int
) -> None:
    assert s.majority(copies) == most
    assert s.losses_survived(most) == lost


def test_a_write_that_only_the_first_copy_has_dies_with_it() -> None:
    assert s.losses_survived(1) == 0


def test_no_majority_of_nothing() -> None:
    with pytest.raises(InputError):
        s.majority(0)


def test_fourteen_minutes_of_lag_are_336_000_writes() -> None:
    # 2,000 queries/s, a fifth of them writes, 14 · 60 s behind.
    assert s.lost_writes(2_000 * 0.2, 14 * 60) == pytest.approx(336_000)
    assert s.lost_writes(400, 0) == 0


def test_a_backup_of_500_gb_takes_42_minutes() -> None:
    assert s.restore_hours(500, 200) == pytest.approx(2_500 / 3_600)


def test_queues_by_littles_law() -> None:
    assert s.under_way(5_000, 1) == 5_000
    # half an hour of 200 MB/s
    assert s.backlog_gb(200_000, 1, 1_800) == pytest.approx(360)
    # at half load what gathered in an hour is worked off in an hour; at 90% in nine
    assert s.catch_up_s(3_600, 0.5) == pytest.approx(3_600)
    assert s.catch_up_s(3_600, 0.9) == pytest.approx(32_400)
    assert s.catch_up_s(3_600, 1.0) == math.inf


def test_partitions_for_rate_or_readers() -> None:
    assert s.partitions(400, 20, 6) == 20
    assert s.partitions(10, 20, 6) == 6
    assert s.partitions(0, 20, 0) == 1
