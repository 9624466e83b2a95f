"""What each further machine brings, by hand from Amdahl's law and from timings."""

from __future__ import annotations

import pytest

from engine.explain.curves import fraction
from engine.workload.workload import parse


def test_efficiency_by_hand() -> None:
    # p = 0.95: 2 machines 1/(0.05 + 0.475) = 1.905 times, 1,024 1/(0.05 + 0.95/1024) = 19.64 times.
    rows = {r["Machines"]: r for r in fraction.efficiency_rows(0.95, None, False)}
    assert rows["2"]["Times as fast"] == "1.9"
    assert rows["2"]["Each does"] == "95% of one alone"
    assert rows["2"]["A run costs"] == "5% more"  # 2/1.905 = 1.05
    assert rows["1,024"]["Times as fast"] == "20"
    assert rows["1,024"]["Each does"] == "2% of one alone"
    assert rows["1,024"]["A run costs"] == "52 times"  # 1024/19.64 = 52.1


@pytest.mark.parametrize(
    ("p", "machines"),
    [
        (0.95, 22),  # n·0.05 + 0.95 > 2 from 22 on: 21 make it exactly 2
        (0.5, 4),  # 3 make it 3·0.5 + 0.5 = 2
        (0.0, 3),  # 2 do half each, exactly
        (0.999, 1002),  # 1,001 make it 2
        (0.9995, None),  # 2,001: beyond the picture
        (1.0, None),
    ],
)
def test_from_where_a_run_costs_more_than_twice(p: float, machines: int | None) -> None:
    assert fraction.half_efficient(p, None, False) == machines


def test_a_second_machine_that_slows_is_told_to_be_none() -> None:
    # 10 h on one and 20 on two, 41 on four: each further machine slows all.
    slow = parse({"kind": "dl_training", "timings": ((1, 10), (2, 20), (4, 41))})
    reading = fraction.read_timings(slow)
    assert reading is not None
    assert reading.fitted
    assert "no faster: scale up instead" in fraction.second_machine(0.9, reading, True)
    # Timings that are not the answer do not count.
    assert "1.8 times as fast" in fraction.second_machine(0.9, reading, False)


def test_nearly_all_of_it_in_parallel_costs_as_much() -> None:
    # 2 machines: 1/(0.001 + 0.4995) = 1.998 times, so a run costs 1.001 times.
    told = fraction.second_machine(0.999, None, False)
    assert told.startswith("A second machine makes it 2 times as fast, so a run costs as much as")
    assert fraction.efficiency_rows(0.999, None, False)[0]["Each does"] == "over 99% of one alone"


def test_no_parallel_part_gains_nothing() -> None:
    assert "no faster" in fraction.second_machine(0.0, None, False)
