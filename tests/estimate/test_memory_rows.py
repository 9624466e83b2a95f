"""Peak memory of published runs, as the file of measurements states them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from engine.calibrate.backtest_memory import MemoryScore, score_memory, wrongly_said_to_fit
from engine.estimate.memory_rows import PeakMemory, TooLittle, predict_peak_memory_gib

MEASURED = Path(__file__).resolve().parents[2] / "data" / "measured_training.csv"
# One row of SimuMax's table: Llama 3 70B cut to 12 layers on eight B200, 60.68 GiB.
ROW = {
    "id": "x", "group": "simumax-b200", "model": "Llama3-70B-L12", "arch": "dense",
    "params_b": "12.369", "layers": "12", "hidden": "8192", "heads": "64", "kv_heads": "8",
    "head_dim": "128", "ffn": "28672", "vocab": "128256", "gated_mlp": "1", "seq_len": "4096",
    "task": "pretrain", "gpu": "B200", "gpus": "8", "tp": "2", "pp": "1", "dp": "4", "cp": "1",
    "zero_stage": "dist-optimizer (ZeRO-1)", "micro_batch": "1", "global_batch_seqs": "16",
    "precision": "bf16", "activation_recompute": "none", "framework": "Megatron-LM 0.14",
    "peak_mem_gib": "60.68", "confidence": "A",
}  # fmt: skip


def rows() -> list[dict[str, str]]:
    with MEASURED.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def scores() -> list[MemoryScore]:
    return score_memory(rows())[0]


def test_megatron_type_runs_are_within_four_percent_at_the_median() -> None:
    errors = [s.error for s in scores() if s.megatron]
    assert len(errors) >= 43
    assert float(np.median(errors)) <= 0.04
    assert max(errors) <= 0.12


def test_other_runs_are_within_ten_percent_at_the_median() -> None:
    errors = [s.error for s in scores() if not s.megatron]
    assert len(errors) >= 30
    assert float(np.median(errors)) <= 0.10


def test_four_of_five_runs_lie_in_their_interval() -> None:
    for megatron in (True, False):
        inside = [s.low <= s.measured <= s.high for s in scores() if s.megatron is megatron]
        assert float(np.mean(inside)) >= 0.75


def test_rows_are_scored_or_counted_under_their_reason() -> None:
    found, skipped = score_memory(rows())
    assert len(found) + sum(skipped.values()) == len(rows())
    assert skipped["confidence C: not to be scored"] == 8


@pytest.mark.parametrize("column", ["layers", "params_b", "micro_batch", "seq_len", "gpus"])
def test_a_row_that_states_too_little_says_what_it_lacks(column: str) -> None:
    told = predict_peak_memory_gib({**ROW, column: ""})
    assert isinstance(told, TooLittle)
    assert column in told.reason


def test_a_row_that_leaves_recomputation_open_is_not_guessed() -> None:
    told = predict_peak_memory_gib({**ROW, "activation_recompute": "not stated"})
    assert told == TooLittle("states no recomputation")


def test_notes_of_a_file_come_before_those_of_the_table() -> None:
    # torchtune's first row is uncompiled; a file that says otherwise is believed.
    row = next(r for r in rows() if r["id"] == "torchtune-readme-001")
    plain = predict_peak_memory_gib(row)
    compiled = predict_peak_memory_gib({**row, "notes": "cumulative technique: +compile"})
    assert isinstance(plain, PeakMemory)
    assert isinstance(compiled, PeakMemory)
    assert compiled.estimate.likely < plain.estimate.likely


@pytest.mark.parametrize("column", sorted(ROW))
@pytest.mark.parametrize("value", ["", "nan", "-1", "inf", "many", "0"])
def test_odd_cells_never_reach_a_traceback(column: str, value: str) -> None:
    told = predict_peak_memory_gib({**ROW, column: value})
    assert isinstance(told, PeakMemory | TooLittle)


def test_a_run_that_did_not_fit_is_not_said_to_fit() -> None:
    # The same model on two 80 GB cards: 6 and 12 halves of 12.369 billion are 138 GiB.
    too_large = {**ROW, "gpu": "H100", "gpus": "2", "tp": "1", "peak_mem_gib": "OOM"}
    assert wrongly_said_to_fit([too_large], {"H100": 79.6}) == []
    # A run that was said not to fit although it does would be found.
    small = {**ROW, "gpu": "B200", "peak_mem_gib": "OOM"}
    assert wrongly_said_to_fit([small], {"B200": 179.1}) == [0]
