"""The accuracy that is shown: rows with their sources, figures worked out anew, nothing hidden."""

from __future__ import annotations

import csv
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from engine.explain.accuracy import SERVING_ROWS, TRAINING_ROWS, Point, Quantity, accuracy

DATA = Path(__file__).resolve().parents[2] / "data"


def cells(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


QUANTITIES = [*accuracy().training, *accuracy().serving]


@pytest.fixture(params=QUANTITIES, ids=lambda q: q.id)
def quantity(request: pytest.FixtureRequest) -> Quantity:
    found: Quantity = request.param
    return found


def test_training_and_serving_are_shown() -> None:
    assert [q.id for q in accuracy().training] == ["steps", "memory", "runs"]
    assert {q.id for q in accuracy().serving} == {
        "itl_closed", "ttft_closed", "rate_static", "offline",
    }  # fmt: skip


def test_it_is_computed_once_in_a_process() -> None:
    assert accuracy() is accuracy()


def test_every_point_names_its_source(quantity: Quantity) -> None:
    for p in quantity.points:
        assert 0 <= p.source < len(quantity.sources)
        assert quantity.sources[p.source].strip(" ·")
        assert p.what
        assert p.hardware
        assert p.low < p.predicted < p.high


def test_the_figures_are_those_of_the_points(quantity: Quantity) -> None:
    # Worked out anew with the statistics module of the standard library.
    errors = [abs(p.predicted - p.measured) / p.measured for p in quantity.points]
    f = quantity.figures
    assert f.n == len(errors)
    assert f.median == pytest.approx(statistics.median(errors))
    assert f.p90 == pytest.approx(statistics.quantiles(errors, n=10, method="inclusive")[8])
    assert f.within_20 == pytest.approx(sum(e <= 0.2 for e in errors) / len(errors))
    assert sum(g.n for _, g in quantity.groups) == f.n


def test_measured_values_are_those_of_the_table() -> None:
    # A time of 16.2701 s for MPT-70B on 512 H100 is the first row of the table.
    first = cells(TRAINING_ROWS)[0]
    steps = accuracy().training[0]
    point = next(p for p in steps.points if p.group == first["group"])
    assert point.measured == pytest.approx(float(first["step_time_s"]), rel=1e-3)
    assert "MPT-70B" in point.what
    assert point.hardware == "512 × H100-SXM-80GB"


def test_measured_times_for_a_token_are_those_of_the_table() -> None:
    by_source = {q.id: q for q in accuracy().serving}
    seen = sorted(p.measured for p in by_source["itl_closed"].points)
    told = [float(r["itl_ms"]) for r in cells(SERVING_ROWS) if r["protocol"] == "closed_loop"]
    # The longest and the shortest of the points stand in the table.
    for value in (seen[0], seen[-1]):
        assert min(abs(value - t) / t for t in told) < 0.12


def test_rows_without_a_stated_licence_are_not_shipped() -> None:
    groups = {r["source_group"] for r in cells(SERVING_ROWS)}
    assert not [g for g in groups if g.startswith("NVIDIA-DLI")]
    open_licence = ("InferenceX/", "NVIDIA-AIC/", "Argonne/", "MLPerf", "TRTLLM-docs")
    assert all(g.startswith(open_licence) for g in groups)


def test_left_out_figures_stand_in_the_calibration_files() -> None:
    # exp(±0.1643) and the like are worked out here from the files' own cells.
    serving = {r["id"]: float(r["value"]) for r in cells(DATA / "calibration_serving.csv")}
    for q in accuracy().serving:
        known, new, unmeasured = q.left_out
        assert 1 + known.high == pytest.approx(2.718281828 ** serving[f"width.{q.id}"])
        assert 1 + new.low == pytest.approx(2.718281828 ** -serving[f"width.new.{q.id}"])
        assert (1 + unmeasured.high) / (1 + unmeasured.low) >= 3
        assert unmeasured.high > new.high >= known.high
    training = {r["id"]: float(r["value"]) for r in cells(DATA / "calibration_training.csv")}
    told = {(x.of, x.says): x.low for x in accuracy().training[0].left_out}
    assert told["Dense models", "half of the runs within"] == training["figure.dense_median"]
    assert told["All runs", "nine of ten within"] == training["figure.row_p90"]


def test_serving_stands_beside_its_goals() -> None:
    serving = {r["id"]: float(r["value"]) for r in cells(DATA / "calibration_serving.csv")}
    aims = {a.title: a for a in accuracy().aims}
    token = aims["Time for each token"]
    assert (token.goal_median, token.goal_p90) == (0.11, 0.35)
    assert token.median == serving["figure.itl_median"]
    assert token.n == serving["figure.itl_n"] > 4000
    assert token.meets
    assert token.covers
    assert all(a.source and a.n > 500 for a in aims.values())
    # Eight of ten rows lie in a range that says so: between 75 and 88%.
    assert all(a.covers == (0.75 <= a.coverage <= 0.88) for a in aims.values())
    assert not replace(token, p90=0.36).meets
    assert not replace(token, coverage=0.92).covers


def test_what_it_has_seen_is_better_than_what_was_left_out() -> None:
    # If not, one of the two figures is not what it says it is.
    steps = accuracy().training[0]
    left = next(x.low for x in steps.left_out if x.of == "All sources")
    assert steps.figures.median < left


def test_whole_runs_are_those_of_their_table() -> None:
    published = {r["model"]: float(r["gpu_hours"]) for r in cells(DATA / "published_runs.csv")}
    runs = accuracy().training[2]
    assert {p.what.partition(", assumed")[0]: p.measured for p in runs.points} == published
    # A budget needs three runs out of five within 20%.
    assert runs.figures.within_20 >= 0.6


def test_the_weak_spots_are_said() -> None:
    words = " ".join(accuracy().weak)
    for topic in ("Ethernet", "QLoRA", "first token", "without measurements"):
        assert topic in words
    for q in QUANTITIES:
        medians = [f.median for _, f in q.weakest]
        assert medians == sorted(medians, reverse=True)


def test_an_error_is_a_share_of_what_was_measured() -> None:
    p = Point(10.0, 12.0, 9.0, 16.0, "a run", "1 × GPU", "somewhere", "Dense", 0)
    assert p.error == pytest.approx(0.2)
    assert p.inside
