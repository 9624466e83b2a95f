"""The tidy table: complete, numbers as numbers, and nothing in it that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import date
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.assessment import Assessment
from engine.report.table import COLUMNS, Row, harmless, rows, to_csv, to_json, to_text, to_xlsx
from engine.report.words import interval
from engine.wording import duration, money, number, percent, quantity
from engine.workload.workload import Workload, parse
from tests.report.sample import FULL, NAME, assessment, without_extras

LINK = "https://clusterfit.example.com/recommendation?v=1&kind=lora"
SIGNS = tuple("=+-@\t\r")


def read(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def find(table: list[Row], section: str, start: str) -> Row:
    return next(row for row in table if row.section == section and row.item.startswith(start))


def texts(value: Any) -> list[str]:
    """Every text anywhere in a structure of dictionaries and lists."""
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for part in parts for text in texts(part)]


def test_the_table_holds_the_figures_of_the_answer() -> None:
    table = rows(assessment(), LINK)
    cost = find(table, "Recommendation", "Cost a month")
    assert (cost.low, cost.likely, cost.high, cost.unit) == (7200, 9450, 13100, "USD/month")
    assert cost.source == "price list; training fit"
    second = find(table, "Options", "2 · 4 L4, reserved for 1 year · Cost a month")
    assert second.likely == 11_900
    flip = find(table, "What would change it", "Requests or events, mean, from here on: rent CPU")
    assert (flip.likely, flip.unit) == (310, "1/s")
    assert find(table, "Answers", "Requests or events, mean").likely == 1157.5
    assert find(table, "Answers", "Timings at different sizes: on 32 machines").likely == 19.5
    assert find(table, "Assumptions", "Peak over mean (unknown)").high == 6
    assert find(table, "Price alternatives", "@Cirrus g-l4, by the month, EU:").likely == 78
    assert find(table, "Ruled out", "CPU: an answer takes 118 ms").source == "serving fit"
    assert table[-1] == Row("Link", LINK)


def test_every_text_of_the_answer_is_somewhere_in_the_table() -> None:
    answer = assessment()
    whole = "\n".join(f"{r.section} {r.item} {r.unit} {r.source}" for r in rows(answer))
    told = to_json(answer)
    del told["schema"], told["link"], told["workload"], told["settings"]
    del told["placement_probability"]
    keys = {"id", "field", "sku", "placement", "scale", "acquisition", "criterion", "freshness"}
    spoken = [t for t in texts(without(told, keys)) if not t.startswith("2026-")]
    assert [text for text in spoken if text.replace("_", " ") not in whole.replace("_", " ")] == []


def without(value: Any, keys: set[str]) -> Any:
    if isinstance(value, dict):
        kept = {k: without(v, keys) for k, v in value.items() if k not in keys}
        return {k: v for k, v in kept.items() if k not in ("hardware", "becomes_placement")}
    return [without(v, keys) for v in value] if isinstance(value, list) else value


def test_the_contributions_sum_to_the_score() -> None:
    answer = assessment()
    for rank, option in enumerate(answer.options, 1):
        head = f"{rank} · {option.label} · "
        mine = [r for r in rows(answer) if r.item.startswith(head) and r.unit == "points of 100"]
        score = next(r for r in mine if r.item == head + "Score")
        assert sum(r.likely or 0 for r in mine if r is not score) == pytest.approx(
            score.likely, abs=1e-9
        )


def test_the_csv_opens_clean_in_a_spreadsheet() -> None:
    data = to_csv(assessment(), LINK)
    assert data.startswith(b"\xef\xbb\xbfsection,item,low,likely,high,unit,source\r\n")
    assert data.count(b"\r\n") == data.count(b"\n") == len(rows(assessment(), LINK)) + 1
    for line in read(data):
        assert not any(
            str(line[c]).startswith(SIGNS) for c in ("section", "item", "unit", "source")
        )
        for column in ("low", "likely", "high"):
            assert not line[column] or float(line[column]) == float(line[column])
    minus = next(line for line in read(data) if line["item"].startswith("Temperature"))
    assert (minus["low"], minus["likely"], minus["high"]) == ("-3", "-1.5", "2")
    assert minus["source"] == "'+made up"


def test_names_in_any_script_come_out_right() -> None:
    names = [line["item"] for line in read(to_csv(assessment(), LINK))]
    assert f"Name of the job: {NAME}" in names


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'=1"),
        ("\r=1", "'=1"),
        ("  =1", "'=1"),
        ("＝1+1", "'＝1+1"),
        ("a;=1+1", "a;'=1+1"),
        ("a\r\n=1", "a =1"),
        ("plain - text", "plain - text"),
        ("", ""),
    ],
)
def test_a_formula_becomes_words(text: str, cell: str) -> None:
    assert harmless(text) == cell


@given(st.text(max_size=80))
def test_no_name_becomes_a_formula_or_a_second_line(name: str) -> None:
    workload = parse({"name": name, "kind": "lora"})
    thin = replace(without_extras(), workload=workload, sentence=name, warnings=(name,))
    lines = read(to_csv(thin, LINK))
    assert len(lines) == len(rows(thin, LINK))
    assert not any(
        value.startswith(SIGNS) for line in lines for value in line.values() if not is_number(value)
    )
    book = openpyxl.load_workbook(io.BytesIO(to_xlsx(thin, LINK)))
    assert all(cell.data_type != "f" for row in book["Answer"] for cell in row)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_the_workbook_holds_the_same_rows_as_numbers_and_words() -> None:
    sheet = openpyxl.load_workbook(io.BytesIO(to_xlsx(assessment(), LINK)))["Answer"]
    lines = list(sheet.iter_rows(values_only=True))
    assert lines[0] == COLUMNS
    assert len(lines) == len(rows(assessment(), LINK)) + 1
    assert sheet.freeze_panes == "A2"
    cost = next(line for line in lines if line[:2] == ("Recommendation", "Cost a month"))
    assert cost[2:6] == (7200, 9450, 13100, "USD/month")
    source = next(line for line in lines if str(line[1]).startswith("Temperature"))[6]
    assert source == "+made up"
    assert all(cell.data_type in ("s", "n") for row in sheet for cell in row)


@pytest.mark.parametrize("answer", [assessment(), without_extras()], ids=["full", "bare"])
def test_the_json_is_plain_and_complete(answer: Assessment) -> None:
    told = json.loads(json.dumps(to_json(answer), allow_nan=False))
    assert (told["schema"], told["version"], told["today"]) == (
        "clusterfit/assessment",
        1,
        "2026-12-01",
    )
    assert told["recommendation"]["sentence"] == answer.sentence
    assert parse({k: v for k, v in told["workload"].items() if v is not None}) == answer.workload
    assert len(told["options"]) == len(answer.options)
    for option, line in zip(answer.options, told["options"], strict=True):
        assert sum(c["points"] for c in line["contributions"]) == pytest.approx(
            option.score if option.contributions else 0, abs=1e-9
        )


def test_the_text_says_the_answer_first() -> None:
    lines = to_text(assessment()).splitlines()
    assert lines[0] == "Rent two L4 by the month; run features on three CPU servers (96 vCPU)."
    assert "Cost   $9,450 a month ($7,200 to $13,100 a month)" in lines
    assert "  - nothing in the whole range of: Latest useful answer (95 of 100)" in lines
    assert max(map(len, lines)) <= 100
    assert to_text(without_extras())


def test_points_stand_only_where_the_score_has_them() -> None:
    counted, fact = [row for row in rows(assessment()) if row.section == "Reasons for"][:2]
    assert counted.likely == 4
    assert fact.likely is None


def test_every_answer_of_a_full_workload_has_its_row() -> None:
    full = replace(without_extras(), workload=parse(FULL), today=date(2026, 1, 2))
    answers = [row for row in rows(full) if row.section == "Answers"]
    # Shares, timings, symptoms and quotes take 6, 4, 10 and 4 rows, each other field one.
    assert len(answers) == len(Workload.model_fields) - 4 + 6 + 4 + 10 + 4


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (number(1234567), "1.23 million"),
        (number(-1234), "−1,230"),
        (number(0.0123456), "0.0123"),
        (money(12345), "$12,300"),
        (money(1.2), "$1.20"),
        (duration(0.5), "30 min"),
        (duration(36), "36 h"),
        (duration(72), "3 days"),
        (duration(1e-5), "36 ms"),
        (percent(0.999), "over 99%"),
        (interval(assessment().best.time), "18 to 39 ms"),
    ],
)
def test_figures_read_well(said: str, words: str) -> None:
    assert said == words


@pytest.mark.parametrize(
    ("days", "text"),
    [(0.003, "4.3 min"), (0.5, "12 h"), (1.5, "1.5 days"), (30, "30 days")],
)
def test_a_deadline_of_minutes_reads_in_minutes(days: float, text: str) -> None:
    assert quantity(days, "days") == text  # 0.003 × 24 × 60 = 4.32


def test_trillions_are_words_too() -> None:
    assert money(2.6e12) == "$2.6 trillion"
    assert number(-3e12) == "−3 trillion"
    assert number(9.995e11) == "1 trillion"  # rounded before the word is chosen
