"""What the plan pages give to take away: a PDF and a table with the figures of the page."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import streamlit
from streamlit.testing.v1 import AppTest

Open = Callable[..., AppTest]
PAGES = [
    ("pages/serving_plan.py", "serving_plan", {"kind": "online_inference", "params_b": "8"}),
    ("pages/services_plan.py", "services_plan", {"kind": "web", "rate": "500"}),
    ("pages/jobs_plan.py", "jobs_plan", {"kind": "rendering"}),
    ("pages/jobs_plan.py", "jobs_plan", {"kind": "recsys"}),
]


@pytest.mark.parametrize(("page", "address", "job"), PAGES)
def test_the_files_are_made_without_a_session_and_agree_with_the_page(
    app: Open, monkeypatch: pytest.MonkeyPatch, page: str, address: str, job: dict[str, str]
) -> None:
    found: dict[str, tuple[Callable[[], bytes], str, str]] = {}

    def taken(label: str, data: Any, name: str, mime: str, **options: Any) -> bool:
        assert options["on_click"] == "ignore"
        found[label] = (data, name, mime)
        return False

    monkeypatch.setattr(streamlit, "download_button", taken)
    visit = app(page, v="1", name="Plan #1", **job)
    pdf, name, mime = found["PDF"]
    assert (name.startswith("clusterfit-"), name.endswith(".pdf")) == (True, True)
    assert mime == "application/pdf"
    made = pdf()
    assert made.startswith(b"%PDF")
    done = subprocess.run(["pdftotext", "-", "-"], input=made, capture_output=True, check=True)
    text = " ".join(done.stdout.decode("utf-8", "replace").split())
    assert "Plan #1" in text
    shut = text.replace(" ", "")
    assert f"/{address}?v=1" in shut
    table, name, mime = found["CSV of this page"]
    assert (name.endswith(".csv"), mime) == (True, "text/csv")
    assert f"/{address}?v=1" in table().decode("utf-8-sig")
    # The first figure of the page's tiles is among those of the document.
    money = [m.value for m in visit.metric if m.value.lstrip("\\").startswith("$")]
    assert money
    assert all(value.replace("\\", "") in text for value in money)
