"""What the tests of the launch kit share as a fixture."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.report.launch import launch_files
from tests.report.launch_folder import write
from tests.report.launch_sample import CASES


@pytest.fixture(params=CASES)
def kit(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A kit in a folder of its own."""
    write(launch_files(*CASES[request.param]), tmp_path)
    return tmp_path
