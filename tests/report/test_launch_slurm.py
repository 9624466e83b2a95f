"""Launch kits: the batch file as Slurm reads it, and what it does with a played queue."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import re
import shlex
import signal
import subprocess
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from engine.report.launch import Forecast, launch_files
from tests.report.launch_folder import local, play, run
from tests.report.launch_sample import CASES, ask, plan

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "launch"
BIN = Path(sys.executable).parent
yaml: Any = importlib.import_module("yaml")
jsonschema: Any = importlib.import_module("jsonschema")
every_case = pytest.mark.parametrize("name", CASES)


@lru_cache
def sbatch_options() -> dict[str, str]:
    with (FIXTURES / "sbatch_options.csv").open(encoding="utf-8", newline="") as file:
        return {row["option"]: row["value"] for row in csv.DictReader(file)}


def sbatch(text: str) -> dict[str, str]:
    """What `sbatch --test-only` would read: options until the first command, each a known one.

    The first line names an interpreter, lines of options come before any command, an option is
    given once, and its value has the documented form.
    """
    lines = text.splitlines()
    assert lines[0].startswith("#!/")
    found: dict[str, str] = {}
    commands = False
    for line in lines[1:]:
        if not line.startswith("#SBATCH"):
            commands = commands or bool(line.strip() and not line.startswith("#"))
            continue
        assert not commands, f"is not read after a command: {line}"
        words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
        assert len(words) == 1, line
        option, _, value = words[0].removeprefix("--").partition("=")
        assert words[0].startswith("--"), line
        assert option in sbatch_options(), line
        assert re.fullmatch(sbatch_options()[option], value), line
        assert option not in found, line
        found[option] = value
    return found


@every_case
def test_sbatch_would_take_the_batch_file(name: str) -> None:
    plan, ask = CASES[name]
    options = sbatch(launch_files(plan, ask)["slurm.sbatch"])
    assert int(options["nodes"]) * int(options["gpus-per-node"]) == plan.gpus
    assert options["ntasks-per-node"] == "1"  # torchrun starts the processes
    days, hours, minutes, seconds = re.split("[-:]", options["time"])
    limit = (int(days) * 24 + int(hours)) * 60 + int(minutes) + int(seconds) / 60
    assert limit == ask.time_limit_hours * 60


@pytest.mark.parametrize(
    "text",
    ["#SBATCH --nodes=2", "#!/bin/bash\necho\n#SBATCH --nodes=2", "#!/bin/bash\n#SBATCH --node=2",
     "#!/bin/bash\n#SBATCH --nodes=two", "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --nodes=2",
     "#!/bin/bash\n#SBATCH --job-name=a b"],
)  # fmt: skip
def test_the_reader_of_batch_files_refuses_what_sbatch_would(text: str) -> None:
    with pytest.raises(AssertionError):
        sbatch(text)


def batch(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the batch file with a queue that is played."""
    return run(folder, "bash", "slurm.sbatch", SLURM_SUBMIT_DIR=str(folder), SLURM_JOB_ID="4711",
               SLURM_JOB_NODELIST="gpu[07-22]", **env)  # fmt: skip


SCONTROL = """case "$1" in
show) for i in $(seq -w 7 22); do echo "gpu$i"; done ;;
requeue) echo "queued again: $2" ;;
esac"""
SQUEUE = 'echo "${STATE:-RUNNING}"'
SRUN = """echo "srun $*"
echo "id $JOB_ID head $HEAD_ADDRESS left $((STOP_AT - $(date +%s)))"
if [[ -n "${STEPS:-}" ]]; then mkdir -p saved; echo "$STEPS" > saved/latest_step; fi
if [[ -n "${CUT:-}" ]]; then kill -USR1 "$PPID"; exec sleep "$CUT"; fi
exit "${FAILS:-0}" """


def queue(folder: Path) -> str:
    """A kit whose run has saved 100 steps before, and a PATH with a played queue."""
    local("fsdp", folder)
    (folder / "saved").mkdir()
    (folder / "saved" / "latest_step").write_text("100\n")
    return play(folder, scontrol=SCONTROL, squeue=SQUEUE, srun=SRUN)


@pytest.mark.parametrize(
    ("steps", "fails", "code", "words"),
    [
        ("476838", "0", 0, "steps saved: 476838 of 476838"),
        ("500", "0", 0, "queued again: 4711"),
        ("500", "1", 0, "queued again: 4711"),
        ("", "0", 1, "steps saved: 100 of 476838"),
        ("", "7", 7, "steps saved: 100 of 476838"),
    ],
)
def test_a_job_is_queued_again_only_when_it_got_further(
    steps: str, fails: str, code: int, words: str, tmp_path: Path
) -> None:
    done = batch(tmp_path, PATH=queue(tmp_path), STEPS=steps, FAILS=fails, SLURM_RESTART_COUNT="2")
    assert done.returncode == code, done.stderr
    assert words in done.stdout
    assert ("queued again" in done.stdout) == (steps == "500")
    # One id for all nodes, another one after each restart; the head is the first node.
    assert "id 4711-2 head gpu07" in done.stdout
    # Every task gets all processors of its node, which Slurm would bind it to one of.
    assert "srun --kill-on-bad-exit=1 --cpu-bind=none ./run_node.sh\n" in done.stdout


def left(told: str) -> int:
    """Seconds of training that the nodes were told of."""
    return int(re.search(r"left (-?\d+)", told)[1])  # type: ignore[index]


@pytest.mark.parametrize(
    ("lasts", "trains"),
    # A last save takes 15 minutes at most, and half of a job that is shorter than 30.
    [(48 * 3600, 47.75 * 3600), (86_400, 85_500), (1200, 600)],
)
def test_a_job_stops_before_its_end_wherever_that_is_set(
    lasts: int, trains: float, tmp_path: Path
) -> None:
    ends = {"SLURM_JOB_END_TIME": str(int(time.time()) + lasts)}
    if lasts == 48 * 3600:
        ends = {}  # an older Slurm does not tell: the batch file's own limit counts
    done = batch(tmp_path, PATH=queue(tmp_path), STEPS="500", **ends)
    assert left(done.stdout) == pytest.approx(trains, abs=60)


def test_long_steps_get_a_longer_margin() -> None:
    # A step of up to 20 minutes: two of them and 5 minutes for the save.
    slow = Forecast(1000.0, 800.0, 1200.0, 60.0, 75.2)
    kit = launch_files(plan(), ask(forecast=slow))
    assert "< 2700 ? (ends - now) / 2 : 2700" in kit["slurm.sbatch"]
    assert "one 45 minutes before the limit" in kit["README.md"]


def test_a_job_cut_off_at_its_limit_is_queued_again_when_it_got_further(tmp_path: Path) -> None:
    path = queue(tmp_path)
    done = batch(tmp_path, PATH=path, STEPS="500", CUT="5")
    assert "cut off" in done.stderr
    assert "queued again: 4711" in done.stdout
    stuck = batch(tmp_path, PATH=path, CUT="5")
    assert stuck.returncode == 128 + signal.SIGUSR1
    assert "queued again" not in stuck.stdout
    assert sbatch((tmp_path / "slurm.sbatch").read_text())["signal"] == "B:USR1@60"


def test_a_cancelled_job_does_not_come_back(tmp_path: Path) -> None:
    # Training saves when it is told to end, so it got further: Slurm would queue it again.
    done = batch(tmp_path, PATH=queue(tmp_path), STEPS="500", STATE="COMPLETING")
    assert done.returncode == 1
    assert "queued again" not in done.stdout
    assert "cancelled" in done.stderr


def test_the_network_is_measured_through_the_queue_once(tmp_path: Path) -> None:
    path = queue(tmp_path)
    done = run(
        tmp_path,
        "bash",
        "slurm.sbatch",
        "check_network.py",
        PATH=path,
        FAILS="3",
        SLURM_SUBMIT_DIR=str(tmp_path),
        SLURM_JOB_ID="9",
        SLURM_JOB_NODELIST="gpu[07-22]",
    )
    assert done.returncode == 3
    assert "./run_node.sh check_network.py\n" in done.stdout
    assert "steps saved" not in done.stdout
