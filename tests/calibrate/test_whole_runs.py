"""GPU hours of published runs: within a fifth for most, and no row that can't be."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from engine.calibrate.whole_runs import RUNS, check_runs, figures
from engine.errors import DataError


@pytest.fixture(scope="module")
def checks():
    return check_runs()


def test_most_published_runs_are_within_a_fifth(checks) -> None:
    told = figures(checks)
    assert told["n"] >= 20
    assert told["within_20"] >= 0.6
    assert 0.7 <= told["coverage_80"] <= 0.95


def test_each_factor_is_told(checks) -> None:
    for c in checks:
        r = c.result
        steps = r.step_s.likely * r.steps * r.plan.gpus / 3600
        assert r.ideal_gpu_hours == pytest.approx(steps)
        assert c.predicted.likely == pytest.approx(steps / c.goodput.likely)


def test_published_hours_are_possible() -> None:
    # 6 N T over hours at the dense 16-bit peak: between 10% and 60% for every run but FP8's.
    peaks = {"a100": 312e12, "h100": 989e12}
    with RUNS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            active = float(row["active_params_b"] or row["params_b"]) * 1e9
            work = 6 * active * float(row["tokens_b"]) * 1e9
            rate = work / (float(row["gpu_hours"]) * 3600) / peaks[row["gpu"][:4]]
            assert 0.1 < rate < 0.6, row["model"]
            assert row["source"]
            assert row["as_of"]
            assert row["confidence"]


def test_a_run_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    lines = RUNS.read_text(encoding="utf-8").splitlines()
    file = tmp_path / "runs.csv"
    file.write_text("\n".join([lines[0], lines[1].replace("a100-sxm-80gb", "abacus")]) + "\n")
    with pytest.raises(DataError) as refused:
        check_runs(file)
    assert refused.value.line == 2
