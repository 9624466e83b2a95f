"""Backtest of the training model: what it reports, what it skips, how far off it is."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from engine.calibrate.backtest_training import backtest_training, rows_of
from engine.calibrate.training_rows import read
from engine.errors import ImportFileError
from engine.estimate.training_calibration import shipped_calibration

SHIPPED = Path(__file__).resolve().parents[2] / "data" / "measured_training.csv"


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def shipped() -> list[dict[str, str]]:
    return rows_of(SHIPPED)


def test_the_figures_on_the_rows_that_ship() -> None:
    told = backtest_training(SHIPPED)
    for name, median, p90 in (("dense", 0.075, 0.25), ("moe", 0.15, 0.35)):
        assert told[name]["median_ape"] <= median
        assert told[name]["p90_ape"] <= p90
    assert told["all"]["within_20"] >= 0.85
    assert 0.75 <= told["all"]["coverage_80"] <= 0.88
    assert told["all"]["n"] == told["dense"]["n"] + told["moe"]["n"]
    rows = told["all"]["n"] + sum(told["all"]["skipped"].values())
    assert rows == len(rows_of(SHIPPED))
    assert told["all"]["n"] >= rows * 2 / 3
    memory = told["memory"]
    assert memory["by_group"]["simumax-b200"]["median_ape"] <= 0.04
    kinds = memory["by_kind"]
    assert kinds["Megatron"]["median_ape"] <= 0.04
    assert kinds["FSDP"]["median_ape"] <= 0.10
    assert sum(kind["n"] for kind in kinds.values()) == memory["n"]
    # The notes' eighteenth run is on a card that the catalogue has no row of.
    assert memory["did_not_fit"]["n"] >= 17
    assert memory["did_not_fit"]["said_to_fit"] == 0


@pytest.mark.parametrize(
    ("column", "spelled", "plain"),
    [
        ("gpus", "1,024", "1024"), ("gpus", "128 GPUs", "128"), ("seq_len", "4K", "4096"),
        ("step_time_s", "~1.8 s", "1.8"), ("step_time_s", "1800 ms", "1.8"),
        ("zero_stage", "Fully Sharded", "FSDP FULL_SHARD"), ("zero_stage", "stage 3", "ZeRO-3"),
        ("activation_recompute", "True", "full"), ("activation_recompute", "0", "none"),
        ("gated_mlp", "SwiGLU", "1"), ("gated_mlp", "no", "0"), ("precision", "E4M3", "fp8"),
        ("superseded", "TRUE", "yes, by 26.02"), ("confidence", " c ", "C"),
        ("gpu", "NVIDIA A100 80GB SXM4", "A100-SXM-80GB"),
    ],
)  # fmt: skip
def test_odd_spellings_are_read_as_what_they_mean(
    shipped: list[dict[str, str]], column: str, spelled: str, plain: str
) -> None:
    row = next(r for r in shipped if r["group"] == "fms-fsdp" and r["step_time_s"])
    assert read(row | {column: spelled}) == read(row | {column: plain})


def test_activations_on_the_host_are_no_reason_to_skip(shipped: list[dict[str, str]]) -> None:
    # torchtune's table switches techniques on one after another: its step with activations on the
    # host took 1.122 s, the one before it without 1.1208 s. The copies hide behind the computation.
    told = {r["id"]: r for r in shipped if r["group"] == "torchtune-readme"}
    before, with_host = told["torchtune-readme-005"], told["torchtune-readme-006"]
    assert (before["step_time_s"], with_host["step_time_s"]) == ("1.1208", "1.122")
    assert with_host["activation_recompute"] == "full + offload"
    assert read(with_host).values == read(before).values
    assert "activations travel to the host behind the computation" in read(with_host).assumed


def test_a_mlp_that_is_not_told_is_what_the_parameters_leave() -> None:
    # 32 layers of 4,096: attention 4·h² is 2.15e9, two tables of 32,000 are 0.26e9. Llama 2 7B
    # has 6.74e9, which leaves 4.33e9 = 3 x 32 x 4096 x 11,008.
    row = {
        "gpu": "A100-SXM-80GB", "gpus": "8", "layers": "32", "hidden": "4096", "heads": "32",
        "ffn": "11008", "vocab": "32000", "params_b": "6.74", "seq_len": "4096",
        "global_batch_seqs": "64", "micro_batch": "1", "zero_stage": "FSDP", "step_time_s": "9",
    }  # fmt: skip
    told = read(row).values
    assert told is not None
    assert told["dense_weights"] == 3 * 4096 * 11008
    # The same widths with 5.29e9 leave 2.88e9: two matrices.
    fewer = read(row | {"params_b": "5.29"}).values
    assert fewer is not None
    assert fewer["dense_weights"] == 2 * 4096 * 11008


def test_families_that_the_fit_had_not_seen() -> None:
    # Written by the calibration itself, every family predicted by a fit to the others.
    told = shipped_calibration().figures
    assert told["family_median"] <= 0.11
    assert told["dense_median"] <= 0.075
    assert told["dense_p90"] <= 0.25
    assert told["moe_median"] <= 0.15
    assert told["moe_p90"] <= 0.35
    assert told["megatron_median"] <= 0.09
    assert told["within_20"] >= 0.85
    assert 0.75 <= told["coverage_80"] <= 0.88
    assert told["after_one_median"] <= 0.06


def test_the_error_is_that_of_the_measured_time(
    tmp_path: Path, shipped: list[dict[str, str]]
) -> None:
    row = next(r for r in shipped if r["group"] == "fms-fsdp" and r["step_time_s"])
    slower = row | {"step_time_s": str(10 * float(row["step_time_s"]))}
    one = backtest_training(write(tmp_path / "one.csv", [row]))["all"]["median_ape"]
    ten = backtest_training(write(tmp_path / "ten.csv", [slower]))["all"]["median_ape"]
    # |p/m − 1| against |p/(10·m) − 1|: the same prediction stands behind both.
    assert 1 - ten == pytest.approx((1 + one) / 10) or 1 - ten == pytest.approx((1 - one) / 10)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"superseded": "yes, by 25.11"}, "superseded by a later release of the same table"),
        ({"confidence": "C"}, "confidence C: not to be scored"),
        ({"gpu": "abacus"}, "hardware not known"),
        ({"layers": ""}, "states no layers"),
        ({"seq_len": "-5"}, "states no seq_len"),
        ({"arch": "hybrid"}, "hybrid model: which layers attend is not stated"),
        ({"zero_stage": "ZeRO-2 + optimizer offload"}, "an optimizer on the host is not modelled"),
        ({"step_time_s": "", "tokens_per_s_per_gpu": "n/a"}, "states no step time or throughput"),
    ],
)
def test_a_row_that_states_too_little_is_counted(
    tmp_path: Path, shipped: list[dict[str, str]], changed: dict[str, str], reason: str
) -> None:
    row = next(r for r in shipped if r["group"] == "fms-fsdp")
    told = backtest_training(write(tmp_path / "rows.csv", [row | changed]))
    assert told["all"] == {
        "n": 0, "skipped": {reason: 1}, "median_ape": None, "p90_ape": None, "within_20": None,
        "coverage_80": None, "by_group": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n", "rows.csv: has no column gpu"),
        (b"", "rows.csv: has no column gpu"),
        (b"\xff\xfe\x00gpu", "is no readable CSV"),
    ],
)
def test_a_file_that_is_no_such_table_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(ImportFileError) as refused:
        backtest_training(path)
    assert message in str(refused.value)
