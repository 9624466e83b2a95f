"""The workload: what is refused and in which words, and what its views say."""

from __future__ import annotations

import math
from typing import Any

import pytest

from engine.errors import ImportFileError, InputError
from engine.workload.answers import Kind, UtilizationBy
from engine.workload.examples import examples
from engine.workload.files import to_toml, workload_from_text
from engine.workload.workload import Workload, applies, fields_for, parse

NUMBERS = [
    name
    for name, field in Workload.model_fields.items()
    if any(part in ("float", "int") for part in str(field.annotation).replace("|", " ").split())
    or field.annotation in (float, int)
]


def bounds(name: str) -> tuple[float, float, bool]:
    """Least, most, and whether the least is left out."""
    low, high, strict = -math.inf, math.inf, False
    for part in Workload.model_fields[name].metadata:
        low = getattr(part, "ge", low)
        high = getattr(part, "le", high)
        if getattr(part, "gt", None) is not None:
            low, strict = part.gt, True
    return low, high, strict


def test_there_are_numbers_to_check() -> None:
    assert len(NUMBERS) >= 30


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_has_limits_and_is_refused_beyond_them(name: str) -> None:
    low, high, strict = bounds(name)
    assert math.isfinite(low), name
    assert math.isfinite(high), name
    for wrong in (low - 1, high * 2 + 1, math.nan, math.inf, -math.inf, "many", [1]):
        with pytest.raises(InputError) as refused:
            parse({name: wrong})
        assert name in str(refused.value)
    if strict:
        with pytest.raises(InputError):
            parse({name: low})


@pytest.mark.parametrize("name", [n for n in NUMBERS if bounds(n)[2]])
def test_a_speck_is_no_number(name: str) -> None:
    with pytest.raises(InputError, match=r"too small to be meant; at least 0\.000001"):
        parse({name: 5e-324})


# Answers that can't both hold: the message names a field that is to be changed.
@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"model_params_b": 7, "active_params_b": 70}, "active_params_b", "active is the smaller"),
        (
            {"utilization_by": "runs", "runs_per_month": 100, "hours_per_run": 10},
            "hours_per_run", "1,000 h a month, more than the 744 h",
        ),
        (
            {f"weight_{w}": 0 for w in (
                "cost", "time", "fit", "resilience", "effort", "flexibility"
            )}, "weight_cost", "at least one weight must be above 0",
        ),
        ({"time_shares": [50, 50]}, "time_shares", "give 6 shares"),
        ({"time_shares": [0] * 6}, "time_shares", "at least one share must be above 0"),
        ({"time_shares": [50, 50, 50, 0, 0, 0]}, "time_shares", "150%, more than 100%"),
        ({"quotes": ["h100-sxm-80gb:on_demand:0"]}, "quotes", "a price of 0 is no offer"),
        ({"quotes": ["cheap"]}, "quotes", ""),
        ({"kind": "mining"}, "kind", ""),
        ({"colour": "blue"}, "colour", "no such field"),
    ],
)  # fmt: skip
def test_contradictions_are_named(values: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        parse(values)
    assert field in str(refused.value)
    assert words in str(refused.value)


def test_many_machines_can_be_busy_for_more_hours_than_a_month_has() -> None:
    workload = parse(
        {"utilization_by": "runs", "runs_per_month": 100, "hours_per_run": 10, "current_units": 4}
    )
    assert workload.stated_hours_per_month == 1000


@pytest.mark.parametrize(
    ("values", "hours"),
    [
        ({"useful_hours_per_month": 300}, 300),
        ({"utilization_by": "runs", "runs_per_month": 8, "hours_per_run": 60}, 480),
        # Ten hours on five days of seven, in a month of 730 h: 10·5/168·730.
        ({"utilization_by": "schedule", "hours_per_day": 10, "days_per_week": 5}, 217.2619),
        ({"utilization_by": "runs", "runs_per_month": 8}, None),
        ({"utilization_by": "schedule", "hours_per_day": 8}, None),
        ({}, None),
    ],
)
def test_hours_of_a_month_in_all_three_ways(values: dict[str, Any], hours: float | None) -> None:
    stated = parse(values).stated_hours_per_month
    assert stated == (None if hours is None else pytest.approx(hours, rel=1e-5))


def test_utilization_by_names_every_way() -> None:
    assert {u.value for u in UtilizationBy} == {"hours", "runs", "schedule"}


@pytest.mark.parametrize("kind", list(Kind))
def test_a_form_asks_for_what_matters_to_the_kind(kind: Kind) -> None:
    asked = fields_for(kind)
    assert {"kind", "bottleneck", "failure_mode", "parallel_fraction"} <= set(asked)
    assert applies("train_tokens_b", kind) == ("train_tokens_b" in asked)
    if kind in (Kind.database, Kind.rendering):
        assert "train_tokens_b" not in asked


@pytest.mark.parametrize("name", [e.name for e in examples().values()])
def test_an_example_written_and_read_is_the_same(name: str) -> None:
    workload = examples()[name].workload
    assert workload_from_text(to_toml(workload)) == workload
    assert workload_from_text(to_toml(workload, everything=True)) == workload


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind = ", "the text"),
        ("{\"kind\": ", "the text"),
        ("kidn = 'etl'", "did you mean kind"),
        ("[job]\nkind = 'etl'\n[size]\nkind = 'etl'", "given twice"),
        ("kind = 'etl'\nservices = -4", "line 2"),
        ("[1, 2]", "the text"),
    ],
)  # fmt: skip
def test_a_file_is_refused_with_the_place(text: str, words: str) -> None:
    with pytest.raises((InputError, ImportFileError)) as refused:
        workload_from_text(text)
    assert words in str(refused.value)
