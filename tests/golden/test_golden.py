"""Every golden case comes out with the right winner, for a reason among the three strongest."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from engine.assess import assess
from engine.workload.examples import example
from engine.workload.workload import parse

CASES: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "cases.toml").read_text(encoding="utf-8")
)["case"]
TODAY = date(2026, 12, 1)


@pytest.mark.parametrize("case", CASES, ids=[c["case"][:40] for c in CASES])
def test_the_golden_case_comes_out_right(case: dict[str, Any]) -> None:
    workload = example(case["example"]).workload if "example" in case else parse(case["workload"])
    answer = assess(workload, today=TODAY)
    best = answer.best
    assert best.placement == case["placement"], answer.sentence
    if "scale" in case:
        assert best.scale == case["scale"], answer.sentence
    if "acquisition" in case:
        assert best.acquisition in case["acquisition"], answer.sentence
    texts = [r.text for r in answer.reasons_for]
    assert len(texts) == 3, texts
    assert any(re.search(case["reason"], text) for text in texts), texts


def test_migration_is_the_strongest_reason_against_route_optimization_on_gpus() -> None:
    answer = assess(example("route-optimization").workload, today=TODAY)
    assert answer.reason_against is not None
    assert "engineer-months" in answer.reason_against.text


def test_all_gpu_fraud_detection_is_far_dearer_than_the_hybrid() -> None:
    answer = assess(example("fraud-detection").workload, today=TODAY)
    all_gpu = min(
        o.usd_per_month.likely for o in answer.options if o.placement == "gpu" and not o.vetoes
    )
    assert all_gpu > 1.3 * answer.best.usd_per_month.likely
