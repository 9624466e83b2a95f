"""The share link: what is written, what is read back, and what bad input leaves behind."""

from __future__ import annotations

from datetime import date
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.report.link import (
    ALIASES,
    FIELDS,
    SURE,
    SYMPTOMS,
    WEIGHTS,
    decode,
    decode_query,
    encode,
    link,
    link_date,
    query_string,
    share_link,
)
from engine.report.link_note import LinkNote, number_text
from engine.workload.answers import Symptom
from engine.workload.workload import DEFAULT, Workload, parse
from tests.report.sample import FULL, workloads

BASE = "https://clusterfit.example.com/recommendation"


def test_the_defaults_need_no_parameters() -> None:
    assert encode(DEFAULT) == {}
    assert link(BASE, DEFAULT) == BASE
    assert decode({}) == (DEFAULT, [])


def test_a_link_reads_like_the_answers() -> None:
    workload = parse(
        {
            "name": "风控 🚀",
            "kind": "lora",
            "parallel_fraction": 0.92,
            "useful_hours_per_month": 40.0,
            "timings": [(8, 14), (32, 19.5)],
            "time_shares": [50, 10, 0, 12.5, 0, 0],
            "symptoms": ["low_ipc", "swapping"],
            "working_set_shardable": False,
            "bottleneck_sure": "exact",
            "useful_hours_sure": "exact",
            "gpu_speedup_sure": "roughly",
            "quotes": ["h100-sxm-80gb:dedicated:2.1"],
        }
    )
    assert query_string(workload) == (
        "v=1&name=%E9%A3%8E%E6%8E%A7+%F0%9F%9A%80&kind=lora&shares=50,10,0,12.5,0,0"
        "&seen=ipc,swap&p=0.92&timings=8x14,32x19.5&hours=40&splits=no"
        "&quotes=h100-sxm-80gb:month:2.1&exact=b,h&roughly=s"
    )


def test_a_plan_with_every_field_changed_stays_below_1000_characters() -> None:
    workload = parse(FULL)
    assert set(FULL) == set(Workload.model_fields)
    assert all(getattr(workload, name) != getattr(DEFAULT, name) for name in FULL)
    address = share_link(workload, BASE, date(2026, 12, 1))
    assert len(address) < 1000
    assert decode_query(address) == (workload, [])


def test_each_field_has_one_short_name_of_its_own() -> None:
    assert set(ALIASES) <= set(Workload.model_fields)
    shorts = [ALIASES.get(name, name) for name in Workload.model_fields]
    assert len(set(shorts)) == len(shorts)
    assert not {"v", "d", "weights", "exact", "roughly", "guess"} & set(FIELDS)
    assert set(SYMPTOMS) == set(Symptom)
    assert len(set(SYMPTOMS.values())) == len(SYMPTOMS)
    assert len(WEIGHTS) == 6
    assert set(SURE.values()) == {n for n in Workload.model_fields if n.endswith("_sure")}
    assert all(FIELDS[name] == name for name in Workload.model_fields)


@given(workloads())
def test_what_is_written_is_read_back_the_same(workload: Workload) -> None:
    assert decode(encode(workload)) == (workload, [])
    assert decode_query(query_string(workload)) == (workload, [])
    address = share_link(workload, BASE, date(2026, 12, 1))
    assert decode(parse_qs(urlsplit(address).query, keep_blank_values=True)) == (workload, [])


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_keeps_its_value(value: float) -> None:
    text = number_text(value)
    assert float(text) == value
    assert "+" not in text


@pytest.mark.parametrize(
    ("value", "text"), [(40.0, "40"), (0.1, "0.1"), (1e20, "1e20"), (1e-7, "1e-07"), (12, "12")]
)
def test_a_number_has_no_needless_characters(value: float, text: str) -> None:
    assert number_text(value) == text


def test_full_and_short_names_are_both_read() -> None:
    assert decode({"parallel_fraction": "0.5"}) == decode({"p": "0.5"})
    workload, notes = decode({"p": "0.5", "parallel_fraction": "0.6"})
    assert workload.parallel_fraction == 0.5
    assert [note.field for note in notes] == ["parallel_fraction"]


@pytest.mark.parametrize(
    ("parameters", "field", "words"),
    [
        ({"p": "1.2"}, "parallel_fraction", "less than or equal to 1"),
        ({"p": "nan"}, "parallel_fraction", "a number is needed"),
        ({"p": "inf"}, "parallel_fraction", "a number is needed"),
        ({"p": "1e999"}, "parallel_fraction", "“1e999”"),
        ({"p": ""}, "parallel_fraction", "empty"),
        ({"p": "٠.٥"}, "parallel_fraction", "a number is needed"),
        ({"hours": "4_0"}, "useful_hours_per_month", "a number is needed"),
        ({"deadline_days": "-3"}, "deadline_days", "greater than 0"),
        ({"months": "12.5"}, "horizon_months", "integer"),
        ({"services": "9" * 400}, "services", "…"),
        ({"items": "🚀"}, "items_per_run", "“🚀”"),
        ({"precision": "quantum"}, "precision", "fp64"),
        ({"kind": "lor"}, "kind", "must be one of"),
        ({"splits": "maybe"}, "working_set_shardable", "yes or no"),
        ({"timings": "8x14,32"}, "timings", "like 8x14"),
        ({"timings": "8x14,"}, "timings", "like 8x14"),
        ({"timings": ",".join(["1x1"] * 9)}, "timings", "8"),
        ({"shares": "50,50"}, "time_shares", "give 6 shares"),
        ({"shares": "90,90,0,0,0,0"}, "time_shares", "more than 100%"),
        ({"symptoms": "cpu_full,magic"}, "symptoms", "must be one of"),
        ({"weights": "1,2"}, "weights", "6 numbers"),
        ({"weights": "1,2,3,4,500,6"}, "weight_effort", "less than or equal to 100"),
        ({"exact": "p,q"}, "exact", "“q” is left out: it must be one of b, f, p, s, h"),
        ({"exact": "p", "roughly": "p"}, "parallel_fraction_sure", "more than once"),
        ({"quotes": "h100:cheap:2"}, "quotes", "“h100:cheap:2”"),
        ({"name": "x" * 81}, "name", "80 characters"),
        ({"name": "x" * 100_000}, "name", "100,000 characters"),
        ({"junk": "x"}, "junk", "no such field"),
        ({"": "x"}, "“”", "no such field"),
        ({"v": "2"}, "v", "newer"),
        ({"v": "x"}, "v", "no version"),
        ({"d": "yesterday"}, "d", "a date is needed"),
        ({"p": ["0.5", "0.7"]}, "parallel_fraction", "more than once"),
    ],
)
def test_a_bad_value_is_named_and_the_rest_is_kept(
    parameters: dict[str, Any], field: str, words: str
) -> None:
    workload, notes = decode({"kind": "lora", "params_b": "7", **parameters})
    assert [note.field for note in notes] == [field]
    assert words in str(notes[0])
    assert str(notes[0]).startswith(f"{field}: ")
    assert len(str(notes[0])) < 400
    assert workload.model_params_b == 7


def test_a_bad_value_is_repeated_in_at_most_80_characters() -> None:
    _, notes = decode({"rate": "z" * 500})
    assert "z" * 79 + "…" in str(notes[0])
    assert "z" * 80 not in str(notes[0])


def test_a_repeated_value_that_says_the_same_is_no_fault() -> None:
    assert decode({"p": ["0.5", "0.5"]})[1] == []


@pytest.mark.parametrize(
    ("parameters", "dropped", "kept"),
    [
        ({"params_b": "7", "active_b": "8"}, "active_params_b", "model_params_b"),
        (
            {"by": "runs", "runs": "100", "run_h": "10"},
            "hours_per_run",
            "runs_per_month",
        ),
    ],
)
def test_of_answers_that_contradict_each_other_one_is_left_out(
    parameters: dict[str, str], dropped: str, kept: str
) -> None:
    workload, notes = decode(parameters)
    assert [note.field for note in notes] == [dropped]
    assert getattr(workload, dropped) == getattr(DEFAULT, dropped)
    assert getattr(workload, kept) != getattr(DEFAULT, kept)


def test_weights_that_are_all_zero_fall_back_to_the_cost() -> None:
    names = [name for name in Workload.model_fields if name.startswith("weight_")]
    workload, notes = decode(dict.fromkeys(names, "0"))
    assert workload.weights == (40, 0, 0, 0, 0, 0)
    assert [note.field for note in notes] == ["weight_cost"]


def test_the_date_of_a_link_is_read_and_is_no_part_of_the_workload() -> None:
    address = share_link(parse({"kind": "lora"}), BASE, date(2026, 12, 1))
    assert address == f"{BASE}?v=1&kind=lora&d=2026-12-01"
    parameters = parse_qs(urlsplit(address).query)
    assert link_date(parameters) == date(2026, 12, 1)
    assert decode(parameters) == (parse({"kind": "lora"}), [])
    assert link_date({}) is None
    assert link_date({"d": "x" * 1000}) is None


def test_a_flood_of_parameters_gives_a_few_notes() -> None:
    _, notes = decode({f"x{i}": "1" for i in range(5000)})
    assert len(notes) == 20
    assert str(notes[-1]) == "link: 4,981 more parts are left out"
    assert decode_query("&".join(f"x{i}=1" for i in range(5000)))[0] == DEFAULT


def test_every_cut_of_a_full_link_can_still_be_read() -> None:
    address = share_link(parse(FULL), BASE, date(2026, 12, 1))
    for end in range(0, len(address), 7):
        workload, notes = decode_query(address[:end])
        assert isinstance(workload, Workload)
        assert len(notes) <= 2


texts = st.text(max_size=40) | st.sampled_from(["1", "-1", "nan", "1e400", "a,b", "8x", "=1+1"])


@given(
    st.dictionaries(st.sampled_from(sorted(FIELDS)) | st.text(max_size=12), texts | st.lists(texts))
)
def test_nothing_that_a_link_holds_raises(parameters: dict[str, Any]) -> None:
    workload, notes = decode(parameters)
    assert isinstance(workload, Workload)
    assert all(isinstance(note, LinkNote) and note.field for note in notes)
    assert decode(encode(workload)) == (workload, [])


@given(st.binary(max_size=200))
def test_random_bytes_as_a_link_never_raise(junk: bytes) -> None:
    for text in (junk.decode("latin-1"), junk.decode("utf-8", "surrogateescape")):
        workload, _ = decode_query(text)
        assert decode(encode(workload)) == (workload, [])
        decode_query(f"{BASE}?{text}&p={text}&name={text}")
