"""Launch kits: the same bytes every time, every file in the README, and what it says."""

from __future__ import annotations

import io
import re
import zipfile

import pytest

from engine.report.launch import Forecast, launch_files, launch_kit
from engine.report.launch.readme import FILES
from tests.report.launch_sample import CASES, ask, files, plan

every_case = pytest.mark.parametrize("name", CASES)


@every_case
def test_the_kit_is_the_same_every_time(name: str) -> None:
    assert launch_kit(*CASES[name]) == launch_kit(*CASES[name])


@every_case
def test_the_zip_holds_the_files(name: str) -> None:
    the_plan, the_ask = CASES[name]
    with zipfile.ZipFile(io.BytesIO(launch_kit(the_plan, the_ask))) as kit:
        assert kit.testzip() is None
        held = {i.filename: kit.read(i).decode() for i in kit.infolist()}
        modes = {i.filename: i.external_attr >> 16 for i in kit.infolist()}
    assert held == {f"{the_ask.slug}/{k}": v for k, v in files(name).items()}
    for path, text in held.items():
        assert modes[path] == (0o755 if text.startswith("#!") else 0o644)
        assert text.endswith("\n")
        assert "\r" not in text


@every_case
def test_the_readme_names_every_file_and_no_other(name: str) -> None:
    kit = files(name)
    named = set(re.findall(r"^- `([^`]+)`: ", kit["README.md"].split("## Files")[1], re.M))
    assert named == set(kit) - {"README.md"}


def test_every_file_that_is_described_is_in_some_kit() -> None:
    assert set(FILES) == {f for name in CASES for f in files(name)} - {"README.md"}


def test_the_readme_says_what_to_expect() -> None:
    text = files("megatron")["README.md"]
    for words in (
        "A step: 12 s, 80% interval 9 s to 15 s.",
        # 476,838 steps of 12 s are 1,589 h; of 9 s 1,192 h, of 15 s 1,987 h.
        "All steps: 1,589 h, 1,192 h to 1,987 h",
        "60.0 GiB of 75.2 GiB",
        "weights 3.1, activations 20.0",
        "8 x 4 x 1 x 4",
        "1 x 256 x 4 = 1,024 sequences",
        "These are spot machines",
        "One every 30 minutes of work, which is 150 steps",
        "above 15 s after the first twenty",
    ):
        assert words in text
    assert "No published step" not in text


def test_the_readme_says_how_to_start_shorter_jobs_and_how_to_end_them() -> None:
    text = files("fsdp")["README.md"]
    assert "`sbatch slurm.sbatch check_network.py`" in text
    assert "`sbatch --time=1-00:00:00 slurm.sbatch`" in text
    assert "`scancel` ends it for good" in text


def test_a_forecast_without_calibration_says_so() -> None:
    forecast = Forecast(12.0, 6.0, 24.0, 60.0, 75.2, calibrated=False)
    text = launch_files(plan(), ask(forecast=forecast))["README.md"]
    assert "No published step on this hardware" in text
