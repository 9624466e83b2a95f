"""The report as PDF: complete, tagged, vector, the same every time, and right in any script."""

from __future__ import annotations

import io
import shutil
import subprocess
import tomllib
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

from engine.assessment import Assessment
from engine.report import charts
from engine.report.currency import Currency
from engine.report.link import share_link
from engine.report.pdf import BEST_STANDARD, _compile, pdf, report
from engine.workload.workload import parse
from tests.report.sample import FULL, NAME, TODAY, assessment, without_extras

LINK = share_link(parse(FULL), "https://clusterfit.example.com/recommendation", TODAY)


@lru_cache
def full() -> bytes:
    return pdf(assessment(), LINK)


def text_of(data: bytes) -> str:
    pages = (page.extract_text() for page in PdfReader(io.BytesIO(data)).pages)
    return " ".join("\n".join(pages).split())


def run(tool: str, data: bytes, folder: Path, *options: str) -> str:
    """What one of poppler's tools says of the report."""
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    path = folder / "report.pdf"
    path.write_bytes(data)
    done = subprocess.run([tool, *options, str(path)], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize(
    "words",
    [
        "Rent two L4 by the month; run features on three CPU servers",
        "Fairly sure: Hybrid comes out best in 81 of 100 draws",
        "$9,450",
        "$7,200 to $13,100",
        "It is cheaper: $9,450 a month against $11,900 for GPU",
        "Flexibility: bound for a month",
        "4 L4, reserved for 1 year",
        "an answer takes 118 ms and may take 50 ms",
        "rent CPU servers by the month",
        "CPU time per item besides the model",
        "Above 70% parallel work a GPU wins",
        "between features and scoring",
        "1 Jun 2026, 183 days old",
        "prior of the kind: online inference",
        "19.5 h",
        "1,157.5/s",
        "1 Dec 2026",
    ],
)
def test_the_report_says(words: str) -> None:
    assert words in text_of(full())


def test_every_page_has_its_number() -> None:
    pages = PdfReader(io.BytesIO(full())).pages
    assert len(pages) >= 2
    for i, page in enumerate(pages, 1):
        assert f"Page {i} of {len(pages)}" in page.extract_text()


def test_the_thinnest_answer_has_two_pages_too() -> None:
    assert len(PdfReader(io.BytesIO(pdf(without_extras(), LINK))).pages) == 2


def test_the_link_can_be_clicked_and_stays_on_the_page() -> None:
    reader = PdfReader(io.BytesIO(full()))
    found = [
        (page, note.get_object())
        for page in reader.pages
        for note in page.get("/Annots", [])
        if note.get_object().get("/A", {}).get("/URI")
    ]
    assert {note["/A"]["/URI"] for _, note in found} == {LINK}
    for page, note in found:
        assert float(note["/Rect"][0]) >= 0
        assert float(note["/Rect"][2]) <= float(page.mediabox.width)


@pytest.mark.parametrize("name", ["风" * 80, "x" * 80, "a b " * 20])
def test_a_long_link_wraps_within_the_page(name: str) -> None:
    link = share_link(parse({"name": name, "kind": "lora"}), "http://127.0.0.1:8501/a", TODAY)
    last = PdfReader(io.BytesIO(pdf(assessment(name), link))).pages[-1]
    notes: Any = last["/Annots"]
    rights = [float(note.get_object()["/Rect"][2]) for note in notes]
    assert rights
    assert max(rights) <= float(last.mediabox.width) - 40
    assert link in "".join(last.extract_text().split())


def test_the_document_has_title_language_date_and_tags() -> None:
    reader = PdfReader(io.BytesIO(full()))
    assert reader.metadata is not None
    assert reader.metadata.title == f"ClusterFit: {NAME}"
    assert str(reader.metadata.creation_date).startswith("2026-12-01")
    catalog: Any = reader.trailer["/Root"]
    assert catalog["/Lang"] == "en"
    assert catalog["/MarkInfo"]["/Marked"]


def test_the_same_answer_gives_the_same_bytes() -> None:
    assert pdf(assessment(), LINK) == full()
    assert pdf(assessment("Another"), LINK) != full()


def test_all_fonts_are_embedded_and_readable(tmp_path: Path) -> None:
    lines = run("pdffonts", full(), tmp_path).splitlines()[2:]
    assert lines
    assert all(line.split()[-5:-2] in (["yes", "yes", "yes"],) for line in lines), lines


def test_the_charts_are_no_bitmaps(tmp_path: Path) -> None:
    assert len(run("pdfimages", full(), tmp_path, "-list").splitlines()) == 2


@pytest.mark.parametrize("name", ["风控模型", "🚀", "Größe ½", "#panic() *x* $y$ @a <b>", "x" * 80])
def test_a_name_comes_out_as_it_was_typed(name: str) -> None:
    data = pdf(assessment(name))
    assert "".join(name.split()) in "".join(text_of(data).split())
    assert PdfReader(io.BytesIO(data)).metadata.title == f"ClusterFit: {name}"  # type: ignore[union-attr]


def test_arabic_is_set_in_an_arabic_font(tmp_path: Path) -> None:
    assert "NotoSansArabic" in run("pdffonts", pdf(assessment("خدمة الاحتيال")), tmp_path)


def test_a_script_without_a_font_still_gives_a_report() -> None:
    answer = assessment("ภาษาไทย")
    with pytest.raises(RuntimeError, match="PDF/UA"):
        _compile(report(answer, "", {}), BEST_STANDARD)
    told = text_of(pdf(answer))
    assert "Rent two L4" in told
    assert "in none of the fonts" in told


@pytest.mark.parametrize("answer", [assessment(), without_extras()], ids=["full", "bare"])
def test_the_report_passes_the_check_of_accessibility(answer: Assessment) -> None:
    assert _compile(report(answer, LINK, {}), BEST_STANDARD).startswith(b"%PDF-1.7")


def test_many_options_and_a_further_chart_fit() -> None:
    answer = assessment()
    many = replace(answer, options=answer.options * 9)
    use = charts.utilization_chart([0.1, 1], {"on demand": [2, 2], "bought": [9, 0.9]}, 0.41)
    data = pdf(many, LINK, charts={"Cost of a useful hour": use})
    assert "33 more are in the table" in text_of(data)
    assert "Cost of a useful hour" in text_of(data)


def test_placements_have_the_colours_of_the_app(root: Path) -> None:
    config = tomllib.loads((root / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    theme = config["theme"]["light"]["chartCategoricalColors"]
    assert theme[:4] == list(charts.PLACEMENT_COLOURS.values())


def test_a_chart_is_text_and_lines() -> None:
    for spec in (
        charts.cost_chart(assessment().options),
        charts.score_chart(assessment().options),
        charts.shares_chart(assessment().shares),
        charts.cost_chart(()),
        charts.utilization_chart(
            [0.1, 0.5, 1], {"on demand": [2, 2, 2], "bought": [9, 1.8, 0.9]}, 0.4
        ),
    ):
        svg = charts.to_svg(spec)
        assert svg.startswith("<svg")
        assert "<image" not in svg
        assert "NaN" not in svg


def test_labels_at_the_ends_of_lines_keep_apart_and_inside_the_picture() -> None:
    costs = {"a": [9, 5.0], "b": [5, 5.0], "c": [9, 5.01], "d": [20, 4.99], "e": [9, 1.0]}
    spec = charts.utilization_chart([0.1, 1.0], costs, height=100)
    rows: Any = spec["data"]["values"]
    places = {row["way"]: row["place"] for row in rows if row["last"]}
    ordered = sorted(places.values())
    assert all(b - a >= 11 - 1e-9 for a, b in pairwise(ordered))
    assert ordered[0] >= 0
    assert ordered[-1] <= 100
    assert min(places, key=lambda way: places[way]) == "c"
    assert max(places, key=lambda way: places[way]) == "e"


def test_a_picture_of_costs_is_in_the_readers_currency() -> None:
    euros = Currency("EUR", 0.5)
    spec = charts.utilization_chart([0.1, 1.0], {"a": [9, 5.0]}, currency=euros, marks=(0.4,))
    rows: Any = spec["data"]["values"]
    assert [row["usd"] for row in rows] == [4.5, 2.5]
    svg = charts.to_svg(spec)
    assert "€5" in svg
    assert "40%" in svg
