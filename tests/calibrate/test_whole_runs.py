"""GPU hours of published runs: within a fifth for most, and no row that can't be."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from engine.calibrate.whole_runs import RUNS, check_runs, figures
from engine.errors import DataError


def rows() -> list[dict[str, str]]:
    with RUNS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def checks():
    return check_runs()


def test_most_published_runs_are_within_a_fifth(checks) -> None:
    told = figures(checks)
    assert told["n"] >= 20
    assert told["within_20"] >= 0.6
    assert 0.7 <= told["coverage_80"] <= 0.95


def test_twenty_runs_rest_on_published_figures_alone() -> None:
    assert sum(r["confidence"] == "high" for r in rows()) >= 20
    assert not [r["model"] for r in rows() if r["confidence"] == "low"]


def test_each_factor_is_told(checks) -> None:
    for c in checks:
        r = c.result
        steps = r.step_s.likely * r.steps * r.plan.gpus / 3600
        assert r.ideal_gpu_hours == pytest.approx(steps)
        assert c.predicted.likely == pytest.approx(steps / c.goodput.likely)


def test_hours_of_steps_are_compared_without_stops(checks) -> None:
    # OPT's makers: 33 days on 1,024 GPUs if nothing had failed, 56 days of the calendar.
    of_steps = {r["model"] for r in rows() if r["hours_of"] == "steps"}
    assert "OPT 175B" in of_steps
    for c in checks:
        assert (c.goodput.likely == 1.0) is (c.model in of_steps)
    opt = next(c for c in checks if c.model == "OPT 175B")
    assert opt.published == 33 * 24 * 1024
    assert opt.predicted.low < opt.predicted.likely < opt.predicted.high


@pytest.mark.parametrize(
    ("model", "hours"),
    # Days, hours a day and GPUs, as their makers state them.
    [("BloombergGPT 50B", 53 * 24 * 512), ("SmolLM3 3B", 24 * 24 * 384),
     ("StableLM-3B-4E1T", 30 * 24 * 256), ("MPT-7B", 9.5 * 24 * 440),
     ("GPT-NeoX 20B", 1830 * 96), ("Phi-4 14B", 21 * 24 * 1920),
     # 24,000 tokens a second and GPU; 3 trillion tokens.
     ("TinyLlama 1.1B", 10 * 3456), ("DeepSeek-V2", 8.1 * 172_800),
     # 6 May to 3 July.
     ("GLM 130B", 58 * 24 * 768),
     # Pretraining alone: the hours of Llama 3.1 hold its long contexts too.
     ("Llama 3 8B", 1_300_000), ("Llama 3 70B", 6_400_000)],
)  # fmt: skip
def test_hours_are_those_that_were_published(model: str, hours: float) -> None:
    row = next(r for r in rows() if r["model"] == model)
    assert float(row["gpu_hours"]) == pytest.approx(hours)


def test_machines_are_those_that_it_ran_on(checks) -> None:
    # An H800 is an H100 with 400 GB/s both ways; a machine of Alps has four joined GH200.
    told = {r["model"]: r for r in rows()}
    for model in ("DeepSeek-V2", "DeepSeek-V3", "DeepSeek 67B"):
        assert float(told[model]["fast_gb_per_s"]) == 400 / 2
    choice = {c.model: c.result.choice for c in checks}
    assert choice["Apertus 70B"].node == choice["Apertus 70B"].domain_gpus == 4
    assert choice["Apertus 70B"].accelerator.max_per_node == 1
    assert choice["DeepSeek-V3"].fast_gb_per_s == 200
    assert choice["Llama 2 70B"].fast_gb_per_s is None


def test_published_hours_are_possible() -> None:
    # 6 N T over hours at the dense 16-bit peak: between 10% and 60% for every run but FP8's.
    peaks = {"a100": 312e12, "h100": 989e12, "gh20": 989e12}
    for row in rows():
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


def test_hours_of_anything_else_are_refused(tmp_path: Path) -> None:
    lines = RUNS.read_text(encoding="utf-8").splitlines()
    file = tmp_path / "runs.csv"
    file.write_text("\n".join([lines[0], lines[1].replace(",run,", ",all,")]) + "\n")
    with pytest.raises(DataError, match="hours of 'all'"):
        check_runs(file)
