"""SkyPilot's task: rents the machines, mounts the buckets and starts every node the same way."""

from __future__ import annotations

from typing import Any

from engine.report.launch.ask import is_bucket
from engine.report.launch.job import Job
from engine.report.launch.quote import yaml
from engine.report.launch.start import fabric_of
from engine.report.launch.tables import cloud_of, skypilot_gpu, whole

DATA_MOUNT, CHECKPOINT_MOUNT = "/data", "/checkpoints"
ON_DISK = "$HOME/checkpoints"


def no_task(job: Job) -> str:
    """Why SkyPilot can't rent the machines of this kit, in words; empty where it can."""
    ask = job.ask
    lacks = cloud_of(ask.cloud).lacks
    if not skypilot_gpu(job.gpu, ask.cloud):
        return "SkyPilot has no name for this GPU"
    if ask.nodes > 1 and "nodes" in lacks:
        return f"SkyPilot rents single machines alone at {ask.cloud}"
    if ask.spot and "spot" in lacks:
        return f"SkyPilot rents no spot machines at {ask.cloud}"
    if ask.spot and "buckets" in lacks:
        return (
            f"SkyPilot mounts no buckets at {ask.cloud}: a spot machine that is taken away would "
            "take its checkpoints along"
        )
    return ""


def on_disk(job: Job) -> bool:
    """Whether checkpoints stay on the machine's own disk: the cloud mounts no buckets."""
    return "buckets" in cloud_of(job.ask.cloud).lacks


def given_back(job: Job) -> bool:
    """Whether machines without work are given back by themselves, with nothing on them lost."""
    return not job.ask.spot and not on_disk(job) and "down" not in cloud_of(job.ask.cloud).lacks


def task(job: Job) -> str | None:
    """The task; None where SkyPilot can't rent the machines."""
    if no_task(job):
        return None
    ask = job.ask
    mounts, lines = _places(job)
    if ask.nodes > 1:
        lines += [
            "# One id for the whole task, the first node as the meeting point.",
            'export JOB_ID="$SKYPILOT_TASK_ID"',
            "export HEAD_ADDRESS=\"${SKYPILOT_NODE_IPS%%$'\\n'*}\"",
            'export NODE_INDEX="$SKYPILOT_NODE_RANK"',
        ]
    values: dict[str, Any] = {
        "name": ask.slug, "workdir": ".", "num_nodes": ask.nodes, "resources": _resources(job),
        **({"file_mounts": mounts} if mounts else {}), "setup": "bash setup.sh\n",
        "run": "\n".join([*lines, "exec bash run_node.sh"]) + "\n",
    }  # fmt: skip
    about = "sky jobs launch skypilot.yaml" if ask.spot else "sky launch skypilot.yaml"
    return f"# Start it from the kit's folder: {about}\n{yaml(values)}"


def _resources(job: Job) -> dict[str, Any]:
    ask = job.ask
    cloud = cloud_of(ask.cloud)
    name = skypilot_gpu(job.gpu, ask.cloud)
    found: dict[str, Any] = {"accelerators": f"{name}:{ask.gpus_per_node}"}
    if cloud.skypilot:
        # Without it SkyPilot takes the cheapest place that it is set up for, and asks before.
        found["infra"] = "/".join(x for x in (cloud.skypilot, ask.region) if x)
    if ask.spot:
        found["use_spot"] = True
    if cloud.network_tier and fabric_of(job) not in ("none", "ethernet"):
        found["network_tier"] = cloud.network_tier
    if ask.spot:
        found["job_recovery"] = {"max_restarts_on_errors": whole("restarts")}
    elif given_back(job):
        # Machines that have done their work, or failed at it, must not be paid for until morning.
        found["autostop"] = {"idle_minutes": whole("idle_minutes"), "down": True}
    return found


def _places(job: Job) -> tuple[dict[str, Any], list[str]]:
    """Buckets by the folder where they are found, and the lines that tell the scripts of them."""
    ask = job.ask
    mounts: dict[str, Any] = {}
    if on_disk(job):
        lines = [f'export CHECKPOINT_MOUNT="{ON_DISK}"']
    else:
        lines = [f"export CHECKPOINT_MOUNT={CHECKPOINT_MOUNT}"]
        bucket = is_bucket(ask.checkpoint_dir)
        place = {"source": ask.checkpoint_dir} if bucket else {"name": f"{ask.slug}-checkpoints"}
        mounts[CHECKPOINT_MOUNT] = {**place, "mode": "MOUNT_CACHED"}
    if is_bucket(ask.dataset):
        folder, inside = ask.dataset, DATA_MOUNT
        if job.trainer in ("megatron", "bridge"):
            # It is named by a prefix of files, not by a folder.
            folder, _, prefix = ask.dataset.rpartition("/")
            inside = f"{DATA_MOUNT}/{prefix}"
        mounts[DATA_MOUNT] = {"source": folder, "mode": "COPY" if on_disk(job) else "MOUNT"}
        lines.append(f"export DATASET_MOUNT={inside}")
    return mounts, lines
