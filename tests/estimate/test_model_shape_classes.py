"""Counts of random small configurations, class by class, against those of the transformers library.

The numbers were taken from the library itself on the meta device (the files say which version),
not from this engine: they are independent of the formulas that they check.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.estimate.model_shape import shape_from_config, shape_from_text

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "configs"
CASES: list[dict[str, Any]] = [
    case
    for path in sorted(FIXTURES.glob("counts_of_classes_*.json"))
    for case in json.loads(path.read_text(encoding="utf-8"))["cases"]
]


def _name(case: dict[str, Any]) -> str:
    config = case["config"]
    return f"{config['model_type']}-{config['architectures'][0]}"


@pytest.mark.parametrize("case", CASES, ids=map(_name, CASES))
def test_the_count_of_the_class_is_the_librarys(case: dict[str, Any]) -> None:
    shape = shape_from_config(case["config"])
    assert (round(shape.total_params), shape.exact) == (case["total"], True)
    assert 0 < shape.active_params <= shape.total_params


def test_there_are_many_types() -> None:
    assert len({case["config"]["model_type"] for case in CASES}) >= 200


def test_a_file_of_a_class_is_read_as_text_like_as_data() -> None:
    for case in CASES[::25]:
        text = json.dumps(case["config"])
        assert shape_from_text(text, "c") == shape_from_config(case["config"], "c")
