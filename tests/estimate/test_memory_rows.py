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
    assert len(errors) >= 75
    assert float(np.median(errors)) <= 0.10


def test_weights_shared_by_fsdp_are_within_ten_percent_at_the_median() -> None:
    table = rows()
    shared = [
        s.error for s in scores()
        if "fsdp" in (table[s.row]["zero_stage"] + table[s.row]["framework"]).lower()
    ]  # fmt: skip
    assert len(shared) >= 45
    assert float(np.median(shared)) <= 0.10


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


# What the cards report [GiB]; the catalogue has no row of some.
REPORTED = {
    "A100-SXM-40GB": 40.0, "A100-SXM-80GB": 80.0, "H100-NVL-94GB": 94.0, "H100-SXM-80GB": 79.6,
    "L4": 22.5, "L40S": 45.0, "RTX3060-12GB": 12.0, "RTX6000Ada-48GB": 47.5, "T4": 15.0,
    "V100-SXM2-32GB": 32.0,
}  # fmt: skip


def test_no_published_run_that_did_not_fit_is_said_to() -> None:
    failed = [r for r in rows() if r["peak_mem_gib"] == "OOM"]
    assert len(failed) >= 18
    assert {r["gpu"] for r in failed} <= set(REPORTED)
    assert [rows()[i]["id"] for i in wrongly_said_to_fit(rows(), REPORTED)] == []


@pytest.mark.parametrize(
    ("row", "states_gib"),
    [
        # torchtitan issue 620: 16 bytes of 8.03 billion parameters on two cards of 48 GB.
        ("did-not-fit-001", 8.03e9 * 16 / 2 / 2**30),
        # OpenRLHF issue 698: all of them on one card of 80 GB.
        ("did-not-fit-003", 8.03e9 * 16 / 2**30),
        # Korthikanti et al. 2022, 22 billion parameters: 18 bytes on each of eight tensor ranks
        # alone leave 34 GB, and activations of 48 layers s·b·h·(10 + 24/8 + 5·64·2048/(6144·8)):
        # 4 · 2048 · 6144 · 48 · 26.3 bytes are 59 GiB more.
        ("did-not-fit-015", 22e9 * 18 / 8 / 2**30 + 59),
    ],
)
def test_what_a_failed_run_needs_is_at_least_what_can_be_counted(
    row: str, states_gib: float
) -> None:
    told = predict_peak_memory_gib(next(r for r in rows() if r["id"] == row))
    assert isinstance(told, PeakMemory)
    assert told.total_gib > states_gib
    assert told.total_gib < 1.7 * states_gib


@pytest.mark.parametrize(
    ("column", "spelled", "plain"),
    [
        ("gpus", "8 GPUs", "8"), ("params_b", "12.369 ", "12.369"), ("seq_len", "4k", "4096"),
        ("activation_recompute", "False", "none"), ("activation_recompute", "yes", "full"),
        ("zero_stage", "Distributed Optimizer", "1"), ("zero_stage", "ZeRO stage 2", "2"),
        ("gated_mlp", "true", "1"), ("gated_mlp", "False", "0"), ("precision", "Float8", "fp8"),
    ],
)  # fmt: skip
def test_odd_spellings_are_read_as_what_they_mean(column: str, spelled: str, plain: str) -> None:
    told = predict_peak_memory_gib({**ROW, column: spelled})
    same = predict_peak_memory_gib({**ROW, column: plain})
    assert isinstance(told, PeakMemory)
    assert isinstance(same, PeakMemory)
    assert told.estimate == same.estimate


def test_torchtunes_table_of_recipes_is_of_compiled_ones() -> None:
    # README: "torch compile enabled". 80 layers' inputs of 2 x 2,048 tokens of 8,192 in 16 bits are
    # 5.0 GiB. A compiled layer adds 8h + 4q + 4k + 6f + 4a bytes a token (gate, up and what they
    # make; 1.05 GiB), and the gradients of its MLP and residual 6f + 8h (0.91 GiB).
    table = rows()
    full = next(r for r in table if r["id"] == "torchtune-readme-015")
    told = predict_peak_memory_gib(full)
    assert isinstance(told, PeakMemory)
    kept = 80 * 2 * 2048 * 8192 * 2 / 2**30
    working = float(np.ravel(told.memory.activations)[0]) - kept
    tokens, hidden, ffn = 2 * 2048, 8192, 28672
    layer = tokens * (8 * hidden + 4 * hidden + 4 * 1024 + 6 * ffn + 4 * 64) / 2**30
    gradients = tokens * (6 * ffn + 8 * hidden) / 2**30
    assert working == pytest.approx(layer + gradients, rel=0.02)


def test_code_of_hugging_face_up_to_2024_keeps_shifted_logits() -> None:
    # Llama 2 7B, ten sequences of 2,048: four copies of 32,000 logits in 32 bits are 9.8 GiB.
    told = predict_peak_memory_gib(next(r for r in rows() if r["id"] == "fsdp-qlora-004"))
    assert isinstance(told, PeakMemory)
    logits = float(np.ravel(told.memory.logits)[0])
    assert logits == pytest.approx(10 * 2048 * 32_000 * 16 / 2**30)
