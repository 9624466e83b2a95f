"""Launch kits: what SkyPilot is asked for at each provider, and what it can't do there."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from engine.report.launch import launch_files
from tests.report.launch_sample import TUNE, ask, one_node, plan

yaml: Any = importlib.import_module("yaml")


def test_machines_without_work_are_given_back() -> None:
    # 128 H100 that idle from 2 to 9 in the morning cost some 3,000 dollars.
    own = launch_files(plan(), ask(cloud="Lambda"))
    assert "  autostop:\n    idle_minutes: 30\n    down: true\n" in own["skypilot.yaml"]
    assert "given back after 30 minutes without work" in own["README.md"]
    # Managed jobs are given back by SkyPilot itself.
    spot = launch_files(plan(), ask(cloud="Azure", spot=True))
    assert "autostop" not in spot["skypilot.yaml"]
    assert "job_recovery" in spot["skypilot.yaml"]


@pytest.mark.parametrize("cloud", ["RunPod", "Vast.ai", "Verda"])
def test_where_no_bucket_can_be_mounted_checkpoints_stay_and_the_machine_too(cloud: str) -> None:
    asked = one_node(cloud=cloud, dataset="s3://our-bucket/corpus")
    kit = launch_files(plan(**TUNE), asked)
    task = yaml.safe_load(kit["skypilot.yaml"])
    assert task["file_mounts"] == {"/data": {"source": "s3://our-bucket/corpus", "mode": "COPY"}}
    assert 'export CHECKPOINT_MOUNT="$HOME/checkpoints"' in task["run"]
    # Given back by itself, it would take the only checkpoints along.
    assert "autostop" not in task["resources"]
    assert "The machine is paid for until `sky down`" in kit["README.md"]
    assert "Copy them away before you give it back" in kit["README.md"]
    assert "in the background" not in kit["README.md"]


@pytest.mark.parametrize(
    ("cloud", "changes", "words"),
    [
        ("RunPod", {}, "SkyPilot rents single machines alone at RunPod"),
        ("Lambda", {"spot": True}, "SkyPilot rents no spot machines at Lambda"),
        ("Vast.ai", {"spot": True, "nodes": 1, "network": "none"}, "take its checkpoints along"),
        ("AWS", {"gpu": "h200-nvl-141gb"}, "SkyPilot has no name for this GPU"),
    ],
)
def test_what_skypilot_can_t_rent_has_no_task_but_a_reason(
    cloud: str, changes: dict[str, Any], words: str
) -> None:
    gpus = 8 * changes.get("nodes", 16)
    kit = launch_files(plan(gpus=gpus), ask(cloud=cloud, **changes))
    assert "skypilot.yaml" not in kit
    assert (
        f"There is no task for SkyPilot: {words}" in kit["README.md"] or words in kit["README.md"]
    )
    assert "- SkyPilot:" not in kit["README.md"]
