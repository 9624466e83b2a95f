"""The backtest of serving: what it reports and skips; nothing that a file holds breaks it."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.calibrate.backtest_serving import backtest_serving
from engine.calibrate.serving import (
    FIGURES,
    QUANTITIES,
    LeftOut,
    all_half_widths,
    half_width,
    half_widths,
    shipped_fit,
)
from engine.calibrate.serving_classes import engine_of, host_of
from engine.calibrate.serving_fit import fit
from engine.calibrate.serving_protocols import closed_loop, predict
from engine.calibrate.serving_rows import NEEDED, hardware_of_name, read, table_of
from engine.cli import main
from engine.errors import ImportFileError
from engine.estimate.queueing import Real
from engine.estimate.serving import (
    prefill_seconds,
    prompt_seconds_each,
    shipped_calibration,
)

# Runs as their publishers state them: TensorRT-LLM static batch, and NIM with 100 users.
STATIC = {
    "id": "a", "model": "Llama-2-7B", "params_b": 6.74, "active_params_b": 6.74, "layers": 32,
    "hidden": 4096, "heads": 32, "kv_heads": 32, "head_dim": 128, "ffn": 11008,
    "weight_dtype": "fp8", "kv_dtype": "fp8", "engine": "TRT-LLM 0.9.0", "gpu": "H100",
    "n_gpus": 1, "tp": 1, "input_tokens": 128, "output_tokens": 128, "protocol": "static_batch",
    "concurrency_or_batch": 64, "itl_ms": 5.7, "output_tokens_per_s": 9812, "source_group": "own",
}  # fmt: skip
CLOSED = STATIC | {
    "id": "b", "model": "Llama-3-70B", "params_b": 70.6, "active_params_b": 70.6, "layers": 80,
    "hidden": 8192, "heads": 64, "kv_heads": 8, "engine": "nim 1.0.0", "n_gpus": 4, "tp": 4,
    "input_tokens": 2000, "output_tokens": 200, "protocol": "closed_loop",
    "concurrency_or_batch": 100, "itl_ms": 59, "ttft_ms": 2800, "output_tokens_per_s": 1357,
    "source_group": "other",
}  # fmt: skip


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    names = sorted({name for row in rows for name in row} | set(NEEDED))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_figures_of_a_file_with_groups_never_seen(tmp_path: Path) -> None:
    result = backtest_serving(write(tmp_path / "rows.csv", [STATIC, CLOSED]))
    assert list(result) == [name for name, _ in FIGURES]
    itl = result["itl"]
    assert itl["n"] == 2
    assert set(itl["by_group"]) == {"own", "other"}
    assert itl["median_ape"] < 0.35
    assert set(itl) == {"n", "skipped", "median_ape", "p90_ape", "coverage_80", "by_group"}
    assert result["ttft_closed_loop"]["n"] == 1
    assert result["ttft_static"] == {
        "n": 0, "median_ape": None, "p90_ape": None, "coverage_80": None, "by_group": {},
        "skipped": {
            "does not state this figure": 1,
            "protocol closed_loop measures another figure": 1,
        },
    }  # fmt: skip
    json.dumps(result, allow_nan=False)


def test_rows_that_can_not_be_used_are_counted(tmp_path: Path) -> None:
    bad = [
        STATIC | {"gpu": "Abacus 9000"},
        STATIC | {"params_b": "many"},
        STATIC | {"layers": -3},
        STATIC | {"protocol": "by feel"},
        STATIC | {"n_gpus": ""},
        STATIC | {"concurrency_or_batch": "inf"},
        CLOSED | {"concurrency_or_batch": 1e7},
    ]
    result = backtest_serving(write(tmp_path / "rows.csv", [*bad, STATIC]))
    assert result["itl"]["n"] == 1
    skipped = result["itl"]["skipped"]
    assert sum(skipped.values()) == len(bad)
    assert "hardware not known: Abacus 9000" in skipped
    assert "states more work than the hardware's peak" in skipped


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    for content in (b"", b"a,b\n1,2\n", b"\xff\xfe\x00", b"\x00" * 100):
        path.write_bytes(content)
        with pytest.raises(ImportFileError):
            backtest_serving(path)
    with pytest.raises(ImportFileError):
        backtest_serving(tmp_path / "none.csv")
    path.write_text(",".join(NEEDED) + "\n")
    assert backtest_serving(path)["itl"]["n"] == 0


def test_the_shell_prints_one_object(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = write(tmp_path / "rows.csv", [STATIC, CLOSED])
    assert main(["backtest", "serving", str(path), "--format", "json"]) == 0
    told = json.loads(capsysbinary.readouterr().out)
    assert list(told) == [
        "itl", "ttft_static", "ttft_closed_loop", "throughput", "offline_max", "peak_memory",
    ]  # fmt: skip
    for figures in told.values():
        assert set(figures) == {
            "n", "skipped", "median_ape", "p90_ape", "coverage_80", "by_group",
        }  # fmt: skip
    assert told["throughput"]["by_group"]["own"]["n"] == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"a,b\n1,2\n", "no column"), (b"\xff\xfe\x00", "no text file"), (b"", "no column")],
)
def test_the_shell_says_what_is_wrong_with_a_file(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], content: bytes, words: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    assert main(["backtest", "serving", str(path)]) == 2
    assert words in capsysbinary.readouterr().err.decode()


CELL = st.one_of(st.none(), st.text(max_size=8), st.floats(), st.integers(-(10**6), 10**6))


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(CLOSED)), CELL, max_size=6))
def test_no_cell_breaks_a_row(cells: dict[str, object]) -> None:
    reading = read(CLOSED | cells)
    if not reading.skipped:
        found = predict(table_of([reading]), shipped_fit().efficiencies(table_of([reading])))
        assert found.itl.shape == (1,)


def test_a_shape_that_no_model_has_is_not_stated() -> None:
    assert read(CLOSED | {"layers": 7e155}).skipped == "the model's shape is not stated"


def one(x: Real) -> float:
    return float(np.ravel(x)[0])


def closed(users: float, prompt: float, answer: float, **told: float) -> tuple[float, float]:
    """Prefills of others before the first token, and in all tokens after it, in a closed loop."""
    t = table_of([read(CLOSED | {"engine": "vllm 0.12", "weight_dtype": "fp8"})])
    plain = {"first_wave": 1e-9, "gathered": 1e-9, "front_ms": 1e-9, "contention": 1e-9,
             "interleave": 1.0, "step_tokens": 8192.0, "prefill_ms": 1e-9}  # fmt: skip
    eff = shipped_fit().efficiencies(t)
    eff = replace(eff, **{k: np.array([v]) for k, v in (plain | told).items()})
    net, hw, plan = t.network, t.hardware, t.plan
    found = closed_loop(net, hw, plan, eff, users, prompt, answer)
    alone = closed_loop(net, hw, plan, replace(eff, interleave=np.array([1e-9])), users, prompt,
                        answer)  # fmt: skip
    together = np.clip(4096.0 / prompt, 1.0, users)
    shared = one(prompt_seconds_each(net, hw, plan, eff, together, prompt))
    begin = one(prefill_seconds(net, hw, plan, eff, 1.0, prompt))
    begin += 0.5 * one(alone.itl) * (users > 1)
    after = (one(found.itl) - one(alone.itl)) * (answer - 1.0)
    return (one(found.ttft) - begin) / shared, after / shared


def test_users_of_equal_requests_wait_for_one_another() -> None:
    # Ten prompts at once: the first is done after one prefill, the other nine after ten. Beside
    # their own that is (0 + 9 · 9)/10 = 8.1 of others on average.
    before, _ = closed(10, 2000, 200, gathered=1.0, step_tokens=1e9)
    assert before == pytest.approx(8.1, rel=0.01)
    # 16 prompts a step: a prompt that just missed one waits for all 16 of it and for the 15 that
    # are taken in with it, a little less than 31; and never for fewer than one.
    many, after = closed(250, 2000, 200, gathered=1.0, step_tokens=32_000.0)
    assert 28 < many < 31
    few, _ = closed(50, 7000, 200, gathered=1.0, step_tokens=8192.0)
    assert few == pytest.approx(1.0, rel=0.01)
    # What was not waited for before the first token is met after it: 249 of others in all.
    assert many + after == pytest.approx(249, rel=0.01)


def test_a_run_that_begins_at_once_is_remembered_in_its_mean() -> None:
    # 65 users send ten requests each. First, the user at place k waits for k - 1 prefills, 32 on
    # average; of the ten that makes 3.2, 0.05 for each other user.
    before, after = closed(65, 1000, 500, first_wave=0.05)
    assert before == pytest.approx(3.2, rel=0.01)
    assert before + after == pytest.approx(64, rel=0.01)


def test_a_slow_front_end_keeps_prompts_apart() -> None:
    loose, _ = closed(50, 200, 200, gathered=1.0, front_ms=1e6, step_tokens=1e9)
    assert loose == pytest.approx(0.0, abs=0.01)


def test_requests_are_of_one_length_only_where_a_source_says_so() -> None:
    told = {
        "GenAI-Perf fixed lengths, ignore EOS": "fixed", "GenAI-Perf": "fixed", "": "",
        "random lengths 80-100% of nominal (InferenceX); agg": "random",
        "NVIDIA in-house sweep; agg": "sweep", "ShareGPT": "",
    }  # fmt: skip
    assert {s: read(CLOSED | {"scenario": s}).lengths for s in told} == told


def test_sources_state_peak_memory_in_gb() -> None:
    # The fullest run on an H100 states 84.84 GB; the card reports 79.6 GiB, which is 85.5 GB.
    assert read(STATIC | {"peak_mem_gb": 84.84}).memory_gib == pytest.approx(79.01, abs=0.01)


def test_hosts_of_engines() -> None:
    names = ("trtllm-nim", "trtllm-2025", "vllm-2025", "llamacpp-any")
    assert [host_of(n) for n in names] == ["compiled", "python", "python", ""]


def test_names_of_engines_and_gpus() -> None:
    names = {"nim 1.0.0": "trtllm-nim", "trtllm 1.2.0rc6": "trtllm-2025", "TRT-LLM 0.9.0":
             "other-any", "vLLM": "vllm-2024", "vllm 0.12.0": "vllm-2025", "sglang 0.5.8":
             "sglang-2025", "ollama 0.3": "llamacpp-any"}  # fmt: skip
    assert {n: engine_of(n) for n in names} == names
    hopper, twin = hardware_of_name("H100-SXM", 16.0), hardware_of_name("H200 SXM", 16.0)
    assert hopper is not None
    assert twin is not None
    assert float(twin.bandwidth) == 4.8e12
    assert hopper.peak == twin.peak
    assert hardware_of_name("none such", 16.0) is None


def test_fit_recovers_what_made_the_rows() -> None:
    """Rows made by the model itself with known efficiencies are fitted to within a few percent."""
    rows = [
        STATIC | {"concurrency_or_batch": b, "input_tokens": i, "output_tokens": 64}
        for b in (1, 8, 64, 256) for i in (128, 1024)
    ]  # fmt: skip
    t = table_of([read(r) for r in rows])
    made = predict(t, shipped_fit().efficiencies(t))
    told = [
        read(r | {"itl_ms": x * 1e3, "ttft_ms": y * 1e3, "output_tokens_per_s": z})
        for r, x, y, z in zip(rows, made.itl, made.ttft, made.tokens_per_s, strict=True)
    ]
    again = table_of(told)
    found = predict(again, fit(again).efficiencies(again))
    assert np.median(np.abs(found.itl / made.itl - 1)) < 0.05
    assert np.median(np.abs(found.ttft / made.ttft - 1)) < 0.08


def test_half_width_is_a_weighted_quantile() -> None:
    errors = np.array([0.1, -0.2, 0.3, -0.4, 0.5, np.nan])
    assert half_width(errors, np.ones(6)) == 0.4
    assert half_width(errors, np.array([1, 1, 1, 1, 100, 1.0])) == 0.5


def families(*counts: int) -> np.ndarray:
    return np.concatenate([[f"source {i}"] * n for i, n in enumerate(counts)])


def test_widths_are_quantiles_of_what_was_left_out() -> None:
    # Four sources of five rows that the fit knew the hardware of: of the 20 errors 0.01 to 0.20
    # sixteen are within 0.16. One new source, five rows, four of them within 0.5.
    errors = np.concatenate([np.arange(1, 21) / 100, [0.1, 0.2, 0.3, -0.5, 0.9]])
    known = np.arange(25) < 20
    width, new = half_widths(errors, known, families(5, 5, 5, 5, 5), np.ones(25))
    assert width == pytest.approx(0.16)
    assert new == pytest.approx(0.5)
    # What is new is never told more surely than what is known.
    errors[20:] = 0.01
    assert half_widths(errors, known, families(5, 5, 5, 5, 5), np.ones(25))[1] == width
    assert half_widths(errors[:20], known[:20], families(5, 5, 5, 5), np.ones(20))[1] is None


def test_few_sources_say_nothing_by_themselves() -> None:
    """With three known sources 80% is no rank among them: all rows of the quantity count."""
    errors = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    known = np.arange(10) < 3
    width, new = half_widths(errors, known, families(1, 1, 1, 7), np.ones(10))
    assert width == 0.4
    assert new == 0.5  # six of its own seven rows


def test_what_was_never_new_is_widened_as_the_others_are() -> None:
    seen = np.arange(8) < 4
    left = LeftOut(
        {"a": np.where(seen, 0.1, 0.3), "b": np.where(seen, 0.2, np.nan)}, seen, seen, {}
    )  # fmt: skip
    t = table_of([replace(read(STATIC), family=f"source {i}") for i in range(8)])
    found = all_half_widths(left, t, np.ones(8))
    assert found["a"] == pytest.approx((0.1, 0.3))
    assert found["b"] == pytest.approx((0.2, 0.6))


def test_shipped_intervals_hold_what_they_say_on_sources_left_out() -> None:
    """Each of the figures' intervals holds 75 to 88% of the rows of sources that were left out;
    hardware without a row is given a range at least threefold wide.
    """
    values = shipped_calibration().values
    for name, _ in FIGURES:
        assert 0.75 <= values[f"figure.{name}_coverage"] <= 0.88, name
        assert values[f"figure.{name}_n"] > 500
    for name in QUANTITIES:
        assert values[f"width.new.{name}"] >= values[f"width.{name}"]
        assert 2 * shipped_calibration().half_width(name, "no such") >= np.log(3) - 1e-12
