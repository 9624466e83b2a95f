"""Prefill and decoding apart: published runs are read, and their answers under way counted."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from engine.calibrate.serving_apart import PROTOCOL, main, runs

# The shape of Kimi-K2.5 as its source tells it; 100 users, answers of 101 tokens.
RUN: dict[str, Any] = {
    "id": "a", "model": "Kimi-K2.5", "params_b": 1026, "active_params_b": 32.5, "layers": 61,
    "hidden": 7168, "heads": 64, "kv_heads": 1, "head_dim": 576, "ffn": 2048, "n_experts": 384,
    "experts_per_token": 8, "weight_dtype": "fp4", "kv_dtype": "fp8", "engine": "trtllm 1.1.0",
    "gpu": "GB200", "n_gpus": 24, "tp": "P1xTP1DP4/D5xTP4DP1", "pp": 1, "input_tokens": 1024,
    "output_tokens": 101, "protocol": PROTOCOL, "concurrency_or_batch": 100, "ttft_ms": 1000,
    "itl_ms": 10, "quality": "ok", "scenario": "fixed", "source_group": "x", "url": "y",
}  # fmt: skip


def table(tmp_path: Path, *changes: dict[str, Any]) -> Path:
    """A file of the run with these changes, a row each."""
    path = tmp_path / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(RUN))
        writer.writeheader()
        for change in changes:
            writer.writerow({**RUN, **change})
    return path


def test_answers_under_way_are_those_that_wait_no_longer(tmp_path: Path) -> None:
    # A hundred further tokens take 1 s, as long as the wait for the first: half of 100 users are
    # under way, ten in each of five replicas.
    (found,) = runs(table(tmp_path, {}))
    assert found.batch == pytest.approx(10.0)
    assert found.measured_s == pytest.approx(0.010)
    # The published runs of such replicas took 8.8 ms with 8 answers and 10.7 with 11.
    assert 0.008 < found.predicted_s < 0.016


def test_what_tells_no_replicas_or_no_pools_is_left_out(tmp_path: Path) -> None:
    path = table(
        tmp_path, {"tp": "P0xTP1DP1/D0xTP4DP1"}, {"tp": "8"}, {"protocol": "closed_loop"},
        {"itl_ms": ""},
    )  # fmt: skip
    assert list(runs(path)) == []


def test_errors_are_told_by_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(table(tmp_path, {}, {"concurrency_or_batch": 10}))]) == 0
    assert "Kimi-K2.5: 2 rows, median" in capsys.readouterr().out
