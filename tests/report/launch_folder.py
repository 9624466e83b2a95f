"""Kits in folders of their own, and a cluster's tools played by scripts of a few lines."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from engine.report.launch import launch_files
from tests.report.launch_sample import CASES

BIN = Path(sys.executable).parent
TORCHRUN = 'printf "%s\\n" "$@"; echo "DATASET=$DATASET"; echo "NCCL_NET=${NCCL_NET:-}"'


def write(files: dict[str, str], folder: Path) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755 if text.startswith("#!") else 0o644)


def run(folder: Path, *command: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(c) for c in command], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, **env},
    )  # fmt: skip


def tool(name: str) -> Path:
    """A program of this environment."""
    assert (BIN / name).exists(), f"{name} is in the lock, but not installed"
    return BIN / name


def play(folder: Path, **programs: str) -> str:
    """A PATH on which these programs come first."""
    place = folder / "bin"
    place.mkdir()
    for name, text in programs.items():
        (place / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (place / name).chmod(0o755)
    return f"{place}:{os.environ['PATH']}"


def local(name: str, folder: Path, **texts: str) -> None:
    """A kit of this case with its folders inside another."""
    files = launch_files(*CASES[name])
    for variable, value in {"CHECKPOINT_DIR": str(folder / "saved"), **texts}.items():
        files["job.env"] = re.sub(
            rf"^{variable}=.*$", f"{variable}={shlex.quote(value)}", files["job.env"], flags=re.M
        )
    write(files, folder)


def scripts(folder: Path) -> list[str]:
    """Names of all files that a shell reads."""
    return sorted(p.name for p in folder.iterdir() if p.suffix in (".sh", ".env", ".sbatch"))
