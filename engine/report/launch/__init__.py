"""The launch kit: every file that starts the chosen training plan, as texts or as one zip.

`launch_files` and `launch_kit` are the whole face; a kit is the same, byte for byte, for the same
plan and ask.
"""

from __future__ import annotations

import io
import zipfile
from importlib import resources

from engine.estimate.plan import TrainingPlan
from engine.report.launch import megatron, nodes, rent, settings, start
from engine.report.launch.ask import Forecast, LaunchAsk
from engine.report.launch.job import MODEL_FOLDER, Job, plan_job
from engine.report.launch.readme import readme
from engine.report.launch.tables import Network, network_kind

__all__ = ["Forecast", "LaunchAsk", "Network", "launch_files", "launch_kit", "network_kind"]

_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can hold: kits don't differ by the hour
_TRAINERS = {
    "fsdp2": ("train.py", "common.py", "prepare_data.py", "export_model.py"),
    "deepspeed": ("train_deepspeed.py", "common.py", "prepare_data.py"),
    "megatron": (),
    "bridge": ("train_bridge.py", "prepare_data.py", "prepare_indexed.py"),
}


def launch_files(plan: TrainingPlan, ask: LaunchAsk) -> dict[str, str]:
    """The kit's files by name.

    Raises
    ------
    InputError : when the machines are not the plan's, or nothing in the kit can run the plan
    """
    job = plan_job(plan, ask)
    files = {
        "job.env": start.job_env(job),
        "setup.sh": start.setup(job),
        "requirements.txt": start.requirements(job),
        "run_node.sh": start.run_node(job),
        "slurm.sbatch": start.slurm(job),
    }
    task = rent.task(job)
    if task is not None:
        files["skypilot.yaml"] = task
    files["node_setup.yml"] = nodes.playbook(job)
    files["check_network.py"] = _template("check_network.py")
    files |= {name: _template(name) for name in _TRAINERS[job.trainer]}
    if job.trainer in ("fsdp2", "bridge"):
        files["export_model.sh"] = start.export_model(job)
    if job.trainer == "bridge":
        files["import_weights.sh"] = start.import_weights()
    files |= _settings(job)
    files["README.md"] = readme(job, list(files))
    return files


def _settings(job: Job) -> dict[str, str]:
    if job.trainer == "megatron":
        args, saves = megatron.arguments(job), megatron.checkpoint_arguments(job)
        return {
            "megatron_args.sh": megatron.script(args, "MEGATRON_ARGS", "Model, plan and schedule."),
            "checkpoint_args.sh": megatron.script(saves, "CHECKPOINT_ARGS", "Checkpoints."),
        }
    made = settings.bridge_settings if job.trainer == "bridge" else settings.train_settings
    files = {
        "train.json": settings.to_json(made(job)),
        "checkpoint.json": settings.to_json(settings.checkpoint_settings(job)),
    }
    if job.trainer == "deepspeed":
        files["deepspeed.json"] = settings.to_json(settings.deepspeed_settings(job))
    if job.model_config:
        files[f"{MODEL_FOLDER}/config.json"] = settings.to_json(job.model_config)
    return files


def _template(name: str) -> str:
    """A program of the kit, which takes all its values from settings files."""
    folder = resources.files("engine.report.launch") / "templates"
    return (folder / f"{name}.txt").read_text(encoding="utf-8")


def launch_kit(plan: TrainingPlan, ask: LaunchAsk) -> bytes:
    """The files as a zip in a folder named after the run; scripts can be run as they are.

    Raises
    ------
    InputError : as `launch_files`
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as kit:
        for name, text in sorted(launch_files(plan, ask).items()):
            entry = zipfile.ZipInfo(f"{ask.slug}/{name}", _DATE)
            entry.create_system = 3
            runs = text.startswith("#!")
            entry.external_attr = (0o755 if runs else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            kit.writestr(entry, text.encode())
    return out.getvalue()
