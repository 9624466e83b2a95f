"""Workloads as files: what is accepted, and what is said of files that can't be used."""

from __future__ import annotations

import io
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ClusterFitError, ImportFileError, InputError
from engine.workload.files import flat, read_text, read_workload, to_toml, workload_from_text
from engine.workload.workload import DEFAULT, Workload, field_group, parse
from tests.report.sample import FULL, workloads

LORA = parse({"kind": "lora", "model_params_b": 7, "name": "风控 🚀"})


def file(folder: Path, text: str | bytes, name: str = "job.toml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_flat_file_is_read(tmp_path: Path) -> None:
    path = file(tmp_path, 'kind = "lora"\nmodel_params_b = 7\nname = "风控 🚀"\n')
    assert read_workload(path) == LORA


def test_a_file_grouped_in_tables_is_read(tmp_path: Path) -> None:
    text = '[job]\nkind = "lora"\nname = "风控 🚀"\n[size]\nmodel_params_b = 7\n'
    assert read_workload(file(tmp_path, text)) == LORA


def test_an_examples_file_is_read(tmp_path: Path) -> None:
    text = 'title = "t"\nstory = "s"\n[workload]\nkind = "lora"\nmodel_params_b = 7\nname="风控 🚀"'
    assert read_workload(file(tmp_path, text)) == LORA


def test_json_is_read(tmp_path: Path) -> None:
    text = json.dumps({"kind": "lora", "size": {"model_params_b": 7}, "name": "风控 🚀"})
    assert read_workload(file(tmp_path, "\ufeff" + text, "job.json")) == LORA
    assert workload_from_text(text) == LORA


def test_the_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b'kind = "etl"\n'))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert read_workload("-").kind == "etl"


def test_what_is_written_says_what_each_field_means() -> None:
    workload = parse({"kind": "lora", "model_params_b": 7.0, "symptoms": ["low_ipc"]})
    assert to_toml(workload, comment="An example\nof two lines") == (
        "# An example\n"
        "# of two lines\n"
        'kind = "lora"           # Kind of work\n'
        'symptoms = ["low_ipc"]  # Symptoms seen\n'
        "model_params_b = 7      # Model size [billion parameters]\n"
    )


def test_everything_lists_every_field() -> None:
    text = to_toml(LORA, everything=True)
    assert all(
        f"\n{name} =" in text or f"\n# {name} =" in "\n" + text for name in FULL if name != "name"
    )
    assert workload_from_text(text) == LORA


@given(workloads())
def test_what_is_written_is_read_back_the_same(workload: Workload) -> None:
    assert workload_from_text(to_toml(workload)) == workload
    assert workload_from_text(workload.model_dump_json(), "x.json") == workload


def test_every_field_may_stand_in_its_group() -> None:
    grouped: dict[str, dict[str, Any]] = {}
    for name, value in FULL.items():
        grouped.setdefault(field_group(name), {})[name] = value
    assert parse(flat(grouped)) == parse(FULL)


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        (
            'kind = "lora"\nmodel_parms_b = 7',
            "job.toml line 2, model_parms_b",
            "did you mean model_params_b?",
        ),
        ('kind = "lora"\n\nlatency_ms = "soon"', "job.toml line 3, latency_ms", "number"),
        ('kind = "lara"', "job.toml line 1, kind", "'lora'"),
        ("deadline_days = -3", "job.toml line 1, deadline_days", "greater than 0; in days"),
        ("latency_ms = nan", "job.toml line 1, latency_ms", "finite"),
        ("latency_ms = true", "job.toml line 1, latency_ms", "true or false"),
        ("services = 2026-12-01", "job.toml line 1, services", "integer"),
        ("[size]\nmodel_params_b = 7\n[job]\nmodel_params_b = 8", "job.toml line 4", "given twice"),
        ("[sizes]\nmodel_params_b = 7", "job.toml, sizes", "size"),
        ("model_params_b = 7\nactive_params_b = 8", "job.toml line 2, active_params_b", "smaller"),
        ("kind = \nname = 1", "job.toml line 1", "no valid TOML"),
        ("[" * 5000, "job.toml", "TOML"),
        ('{"kind": "lora",}', "job.toml line 1", "no valid JSON"),
        ('{"latency_ms": NaN}', "job.toml", "NaN is no number"),
        ('{"kind": "lora", "kind": "etl"}', "job.toml", "given twice"),
        ('{"services": ' + "9" * 6000 + "}", "job.toml", "JSON"),
        ('{"a":' * 100_000, "job.toml", "JSON"),
    ],
)
def test_what_is_wrong_is_said_with_file_line_and_field(
    tmp_path: Path, text: str, where: str, words: str
) -> None:
    with pytest.raises(ClusterFitError) as caught:
        read_workload(file(tmp_path, text))
    assert str(caught.value).startswith(where)
    assert words in str(caught.value)
    assert str(tmp_path) not in str(caught.value)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "no text file"),
        (b"kind = 'lora'\0", "no text file"),
        ("kind = 'lora'".encode("utf-16"), "no text file"),
        (b"#" * 1_000_001, "too large"),
    ],
)
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(ImportFileError, match=words):
        read_workload(file(tmp_path, content))


def test_a_file_of_10_gb_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.toml"
    with path.open("wb") as huge:
        huge.truncate(10_000_000_000)
    with pytest.raises(ImportFileError, match="too large"):
        read_text(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match="no such file"):
        read_workload(tmp_path / "none.toml")
    with pytest.raises(ImportFileError, match="this is a folder"):
        read_workload(tmp_path)
    with pytest.raises(ImportFileError, match="can't be read"):
        read_workload("a\0b")


def test_a_list_is_no_workload() -> None:
    with pytest.raises(ImportFileError, match="no workload"):
        workload_from_text("[1, 2]", "x.json")


@given(
    st.text(max_size=200) | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(repr)
)
def test_no_text_reaches_a_traceback(text: str) -> None:
    for name in ("x.toml", "x.json"):
        with suppress(InputError, ImportFileError):
            workload_from_text(text, name)


def test_an_empty_file_is_the_default_workload(tmp_path: Path) -> None:
    assert read_workload(file(tmp_path, "")) == DEFAULT
