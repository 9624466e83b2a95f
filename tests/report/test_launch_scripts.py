"""Launch kits: what bash, shellcheck and a played cluster make of the scripts."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.report.launch import launch_files
from tests.report.launch_folder import TORCHRUN, local, play, run, scripts, tool, write
from tests.report.launch_sample import CASES

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "launch"
BIN = Path(sys.executable).parent
yaml: Any = importlib.import_module("yaml")
jsonschema: Any = importlib.import_module("jsonschema")
every_case = pytest.mark.parametrize("name", CASES)


def test_bash_reads_every_script(kit: Path) -> None:
    assert {"job.env", "run_node.sh", "setup.sh", "slurm.sbatch"} <= set(scripts(kit))
    for name in scripts(kit):
        done = run(kit, "bash", "-n", name)
        assert done.returncode == 0, done.stderr


def test_shellcheck_finds_nothing(kit: Path) -> None:
    for name in scripts(kit):
        done = run(kit, tool("shellcheck"), "--external-sources", name)
        assert done.returncode == 0, done.stdout


# --- what the scripts do


def test_all_nodes_get_the_same_rendezvous_and_one_opens_it(tmp_path: Path) -> None:
    local("fsdp", tmp_path)
    path = play(tmp_path, torchrun=TORCHRUN)
    common = {"PATH": path, "JOB_ID": "77-0", "HEAD_ADDRESS": "node3"}
    outputs = []
    for index in ("0", "1", "15"):
        done = run(tmp_path, "./run_node.sh", **common, NODE_INDEX=index)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines())
    first, second, last = outputs
    assert second == last
    assert "--rdzv-conf=is_host=true" in first
    assert "--rdzv-conf=is_host=false" in second
    assert set(first) - {"--rdzv-conf=is_host=true"} == set(second) - {"--rdzv-conf=is_host=false"}
    for argument in ("--nnodes=16", "--nproc-per-node=8", "--rdzv-id=77-0", "--rdzv-backend=c10d",
                     "--rdzv-endpoint=node3:29500", "train.py", "train.json",
                     "NCCL_NET=IB"):  # fmt: skip
        assert argument in first


@pytest.mark.parametrize("missing", ["JOB_ID", "HEAD_ADDRESS", "NODE_INDEX"])
def test_a_node_that_was_not_told_stops_with_words(missing: str, tmp_path: Path) -> None:
    local("fsdp", tmp_path)
    env = {"JOB_ID": "77-0", "HEAD_ADDRESS": "node3", "NODE_INDEX": "1",
           "PATH": play(tmp_path, torchrun=TORCHRUN)}  # fmt: skip
    env[missing] = ""
    done = run(tmp_path, "./run_node.sh", **env)
    assert done.returncode != 0
    assert f"set {missing} to" in done.stderr


def test_a_bucket_is_not_taken_for_a_folder(tmp_path: Path) -> None:
    write(launch_files(*CASES["megatron"]), tmp_path)
    done = run(tmp_path, "./run_node.sh", PATH=play(tmp_path, torchrun=TORCHRUN))
    assert done.returncode == 1
    assert "s3://our-bucket/corpus/pile_text_document is no folder" in done.stderr


def test_a_mounted_bucket_takes_the_place_of_its_address(tmp_path: Path) -> None:
    write(launch_files(*CASES["megatron"]), tmp_path)
    done = run(tmp_path, "./run_node.sh", PATH=play(tmp_path, torchrun=TORCHRUN), JOB_ID="1",
               HEAD_ADDRESS="a", NODE_INDEX="0", DATASET_MOUNT="/data/pile_text_document",
               CHECKPOINT_MOUNT=str(tmp_path / "ck"), STOP_AT="99999999999")  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "DATASET=/data/pile_text_document" in lines
    assert lines[lines.index("--data-path") + 1] == "/data/pile_text_document"
    assert lines[lines.index("--save") + 1] == str(tmp_path / "ck")
    assert int(lines[lines.index("--exit-duration-in-mins") + 1]) > 0


def test_the_first_node_makes_the_weights_ready_and_the_others_wait(tmp_path: Path) -> None:
    local("tuned experts", tmp_path, DATASET=str(tmp_path / "tune"))
    path = play(tmp_path, torchrun=TORCHRUN, python='printf "%s\\n" "$MODEL" > imported',
                sleep='touch "$CHECKPOINT_DIR/start.ready"; echo waited')  # fmt: skip
    env = {"PATH": path, "JOB_ID": "1", "HEAD_ADDRESS": "a"}
    waiting = run(tmp_path, "./run_node.sh", **env, NODE_INDEX="1")
    assert waiting.returncode == 0, waiting.stderr
    assert waiting.stdout.startswith("waited\n")
    assert not (tmp_path / "imported").exists()
    (tmp_path / "saved" / "start.ready").unlink()
    first = run(tmp_path, "./run_node.sh", **env, NODE_INDEX="0")
    assert first.returncode == 0, first.stderr
    assert (tmp_path / "imported").read_text() == "org/experts\n"
    assert "train_bridge.py" in first.stdout
    assert "waited" not in first.stdout


def test_another_program_runs_in_place_of_the_training(tmp_path: Path) -> None:
    local("fine-tuning", tmp_path)
    done = run(tmp_path, "./run_node.sh", "check_network.py",
               PATH=play(tmp_path, torchrun=TORCHRUN))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "check_network.py" in done.stdout
    assert "train.py" not in done.stdout
    assert "--standalone" in done.stdout
    assert "--max-restarts=0" in done.stdout  # a network that is too slow is measured once


# --- where a run goes on


def functions(*names: str) -> dict[str, Any]:
    """Functions of the kit's common.py, without PyTorch."""
    tree = ast.parse(launch_files(*CASES["fsdp"])["common.py"])
    found = [x for x in tree.body if isinstance(x, ast.FunctionDef) and x.name in names]
    one = SimpleNamespace(is_initialized=lambda: False)
    scope: dict[str, Any] = {
        "LATEST": "latest_step", "sys": sys, "shutil": shutil,
        "torch": SimpleNamespace(distributed=one),
    }  # fmt: skip
    exec(compile(ast.Module([*found], []), "common.py", "exec"), scope)
    return scope


@pytest.mark.parametrize(
    ("named", "whole", "begins"),
    # Steps 10, 20 and 30 are there, and 40, which was never named as complete.
    [("30", {10, 20, 30, 40}, 30), ("30", {10, 20, 40}, 20), ("20", {10, 20, 30, 40}, 20),
     ("", set(), 0)],
)  # fmt: skip
def test_a_run_goes_on_from_the_newest_checkpoint_that_is_whole(
    named: str, whole: set[int], begins: int, tmp_path: Path
) -> None:
    for step in (10, 20, 30, 40):
        (tmp_path / f"step-{step:09d}").mkdir()
    if named:
        (tmp_path / "latest_step").write_text(f"{named}\n")
    scope = functions("resume_step", "latest_step", "mark_latest", "step_folder")

    def is_whole(folder: Path) -> bool:
        return int(folder.name[5:]) in whole

    assert scope["resume_step"](tmp_path, is_whole, 3, 0) == begins
    if named:
        # The batch file counts steps from this mark.
        assert (tmp_path / "latest_step").read_text() == f"{begins}\n"


def test_a_run_without_a_whole_checkpoint_stops_rather_than_begin_anew(tmp_path: Path) -> None:
    (tmp_path / "step-000000030").mkdir()
    (tmp_path / "latest_step").write_text("30\n")
    scope = functions("resume_step", "latest_step", "mark_latest", "step_folder")
    with pytest.raises(SystemExit, match="names step 30 as saved"):
        scope["resume_step"](tmp_path, lambda folder: False, 3, 0)
