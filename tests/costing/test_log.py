"""A demand read from a log: hours, jobs laid over one another, and files that can't be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.costing.log import LIMIT_BYTES, read_log
from engine.errors import ClusterFitError, ImportFileError


def test_hours_become_levels_with_their_shares() -> None:
    found = read_log("hour,machines\n0,2\n1,2\n2,5\n3,0\n")
    assert (found.levels, found.shares) == ((0, 2, 5), (25, 50, 25))
    assert "4 hours" in found.said


@pytest.mark.parametrize("text", ["2\n2\n5\n0\n", "machines\n2\n2\n5\n0", "a;2\nb;2\nc;5\nd;0"])
def test_a_bare_column_of_numbers_will_do(text: str) -> None:
    assert read_log(text).levels == (0, 2, 5)


def test_jobs_are_laid_over_one_another() -> None:
    # Two machines from 0 to 4, three more from 2 to 6, nothing to 8, one to 10: of ten hours
    # 2 h need 2, 2 h need 5, 2 h need 3, 2 h need 0, 2 h need 1.
    day = "2026-11-03T{:02d}:00:00"
    rows = [(0, 4, 2), (2, 6, 3), (8, 10, 1)]
    text = "Start|End|NNodes|State\n" + "\n".join(
        f"{day.format(a)}|{day.format(b)}|{n}|COMPLETED" for a, b, n in rows
    )
    found = read_log(text + f"\n{day.format(9)}|Unknown|4|RUNNING\n")
    assert found.levels == (0, 1, 2, 3, 5)
    assert found.shares == pytest.approx((20, 20, 20, 20, 20))
    assert found.skipped == 1
    assert "3 jobs" in found.said


def test_many_levels_go_up_to_the_next_one_kept() -> None:
    text = "machines\n" + "\n".join(str(n) for n in range(1, 1001))
    found = read_log(text)
    assert len(found.levels) <= 24
    assert max(found.levels) == 1000
    mean = sum(a * b / 100 for a, b in zip(found.levels, found.shares, strict=True))
    assert 500.5 <= mean <= 500.5 + 1000 / 23  # never less than what was needed
    assert sum(found.shares) == pytest.approx(100, abs=0.01)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "no text file"),
        (b"name,place\na,b\n", "no column holds a number"),
        (b"machines\n-3\n", "no row holds"),
        (b"start,end\nyesterday,today\n", "no job has both"),
        (b"1," * (LIMIT_BYTES // 2 + 1), "too large"),
    ],
)
def test_what_cannot_be_used_is_said(data: bytes, said: str) -> None:
    with pytest.raises(ImportFileError, match=said):
        read_log(data, "demand.csv")


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reading(data: bytes) -> None:
    try:
        found = read_log(data)
    except ClusterFitError:
        return
    assert len(found.levels) == len(found.shares) <= 24


def test_a_table_of_slurm_is_read(tmp_path: Path) -> None:
    head = "JobIDRaw|Start|End|ReqNodes|State"
    row = "1879824|2025-09-12T14:06:12|2025-09-12T16:06:12|2|COMPLETED"
    found = read_log(f"{head}\n{row}\n".encode(), str(tmp_path))
    assert (found.levels, found.shares) == ((2,), (100,))
