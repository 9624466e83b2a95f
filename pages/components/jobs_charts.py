"""The pictures of the page on compute jobs and small models; sources on hover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.estimate.speedups import Speedup
from engine.explain.jobs import SpeedupCurve
from engine.explain.jobs_models import CostCurve, ResponseCurve
from pages.components import labels
from pages.components import layers as vl

HEIGHT = 260
Layer = dict[str, Any]
# 0.1 is told as it is, not as 100m.
RATES = "datum.value < 1 ? format(datum.value, '~g') : format(datum.value, '~s')"
SIDE = {"gpu": "GPU", "cpu": "CPU"}


def _line(points: Sequence[tuple[float, float]], side: str, encoding: Layer, **mark: Any) -> Layer:
    """A line in the colour of its placement."""
    return {
        "data": {"values": vl.rows(points, hardware=side)},
        "mark": {"type": "line", "strokeWidth": 2.5, **mark},
        "encoding": {**encoding, **vl.coloured()},
    }


def _name(x: float, y: float, side: str, encoding: Layer, **mark: Any) -> Layer:
    """The name of a line beside it, in its colour."""
    return {
        "data": {"values": [{"x": x, "y": y, "text": side, "hardware": side}]},
        "mark": {"type": "text", "fontSize": 13, "fontWeight": "bold", **mark},
        "encoding": {**encoding, "text": {"field": "text"}, **vl.coloured()},
    }


def speedup(curve: SpeedupCurve) -> None:
    """Cost of a run on CPU servers and on GPUs, by the speed-up."""
    x = vl.axis("x", "Speed-up of the parallel part, times",
                scale={"type": "log", "nice": False},
                axis={"grid": False, "values": [0.5, 1, 2, 5, 10, 20, 50, 100],
                      "format": "~r"})  # fmt: skip
    y = vl.axis("y", None, scale={"zero": True},
                axis={"grid": False, "tickCount": 4, "format": "$.3~r"})  # fmt: skip
    at = {"x": x, "y": y}
    left, right = curve.gpu[0][0], curve.gpu[-1][0]
    # The dearer is named above its line, the other below: they may end close together.
    above = 1 if curve.gpu[-1][1] > curve.cpu_usd else -1
    band = {"x": max(curve.low, left), "x2": min(curve.high, right)}
    marks = [(curve.likely, "likely")]
    if curve.break_even is not None and curve.break_even > left:
        marks.append((curve.break_even, "break-even"))
    layers: list[Layer] = [
        {"data": {"values": [band]}, "mark": {"type": "rect", "opacity": 0.15},
         "encoding": {"x": x, "x2": {"field": "x2"}, "y": {"value": 0},
                      "y2": {"value": {"expr": "height"}}}},
        _line(curve.gpu, "GPU", at, clip=True),
        _line([(left, curve.cpu_usd), (right, curve.cpu_usd)], "CPU", at),
        _name(right, curve.cpu_usd, "CPU", at, align="right", dy=11 * above),
        _name(right, curve.gpu[-1][1], "GPU", at, align="right", dy=-11 * above),
        *vl.marks(sorted(marks), x, flip=10.0),
    ]  # fmt: skip
    vl.draw(
        {"height": HEIGHT, "layer": layers}, f"{curve.title}. {curve.message}",
        "USD a run",
    )  # fmt: skip


def figures(found: Sequence[Speedup]) -> None:
    """Published speed-ups that say what they were compared with, each with its source on hover."""
    rows: list[Layer] = []
    for r in found:
        if r.per_server is None:
            continue
        low, likely, high = r.per_server
        rows.append({
            "name": f"{r.application}: {labels.number(likely, digits=2)}", "id": r.id,
            "low": low, "x": likely, "high": high, "case": r.case,
            "against": f"{r.gpu} against {r.cpu}", "published": published(r),
            "source": r.provenance.source, "day": labels.day(r.provenance.as_of),
            "notes": r.notes,
        })  # fmt: skip
    # A figure far below one would leave no room for the rest: it stands at the edge, named.
    ends = [max(0.1, min(float(r["low"]) for r in rows)), max(float(r["high"]) for r in rows)]
    x = vl.axis("x", "H100 against 48 cores, times",
                scale={"type": "log", "nice": False, "domain": ends, "clamp": True},
                axis={"grid": False, "values": [0.1, 0.3, 1, 3, 10, 30, 100],
                      "format": "~r"})  # fmt: skip
    tips = [{"field": field, "title": title} for field, title in (
        ("name", "Software"), ("case", "Case"), ("against", "Compared"), ("published", "Published"),
        ("notes", "Notes"), ("source", "Source"), ("day", "Of"))]  # fmt: skip
    spec = {
        "height": {"step": 34},
        "data": {"values": rows},
        "encoding": {"y": {"field": "id", "type": "nominal", "sort": None, "axis": None}},
        "layer": [
            {"data": {"values": [{"x": 1}]},
             "mark": {"type": "rule", "strokeDash": [3, 4], "color": vl.ink()},
             "encoding": {"x": x, "y": {"value": 0}, "y2": {"value": {"expr": "height"}}}},
            {"mark": {"type": "rule", "color": vl.ink(), "strokeWidth": 2, "yOffset": 8},
             "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "tooltip": tips}},
            {"mark": {"type": "point", "filled": True, "size": 80, "color": vl.ink(),
                      "opacity": 1, "yOffset": 8},
             "encoding": {"x": x, "tooltip": tips}},
            {"mark": {"type": "text", "align": "left", "dy": -6, "fontSize": 12,
                      "color": vl.ink(), "limit": {"expr": "width"}},
             "encoding": {"x": {"value": 0}, "text": {"field": "name"}}},
        ],
    }  # fmt: skip
    said = "; ".join(str(r["name"]) for r in rows)
    vl.draw(spec, f"Published speed-ups, one H100 against one server of 48 cores: {said}.")


def published(r: Speedup) -> str:
    """The figure as it was published, with its range."""
    mark = {"up_to": "up to ", "at_least": "at least "}.get(r.bound, "")
    if r.low == r.high:
        return f"{mark}{labels.number(r.likely, digits=3)} times"
    low, high = labels.number(r.low, digits=2), labels.number(r.high, digits=2)
    return f"{mark}{low} to {high} times"


def response(curves: Sequence[ResponseCurve], target_ms: float) -> None:
    """Response of one machine of each kind against the requests that it gets."""
    x = vl.axis("x", "Requests a second to one machine", scale={"type": "log", "nice": False},
                axis={"grid": False, "tickCount": 5, "labelExpr": RATES,
                      "labelOverlap": True})  # fmt: skip
    top = target_ms * 1.6
    y = vl.axis("y", None, scale={"domain": [0, top], "clamp": True},
                axis={"grid": False, "tickCount": 4})  # fmt: skip
    at = {"x": x, "y": y}
    layers: list[Layer] = []
    for curve in curves:
        side, points = SIDE[curve.hardware], [p for p in curve.points if p[1] <= top * 1.5]
        if not points:
            continue
        middle = points[min(20, len(points) - 1)]
        layers += [
            _line(points, side, at),
            _name(middle[0], middle[1], side, at, dy=-12),
            {"data": {"values": [{"x": curve.capacity_per_s, "y": target_ms, "hardware": side}]},
             "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
             "encoding": {**at, **vl.coloured()}},
        ]  # fmt: skip
    ends = [p[0] for c in curves for p in c.points]
    layers += [
        {"data": {"values": [{"y": target_ms}]},
         "mark": {"type": "rule", "strokeDash": [6, 4], "color": vl.ink()}, "encoding": {"y": y}},
        vl.word(min(ends), target_ms, f"target {labels.number(target_ms)} ms", at, align="left",
                dy=-8),
    ]  # fmt: skip
    said = "; ".join(
        f"{SIDE[c.hardware]} {c.name} up to {labels.number(c.capacity_per_s)} a second"
        for c in curves
    )
    vl.draw(
        {"height": HEIGHT, "layer": layers},
        f"Response of one machine against its rate, target {target_ms:g} ms. Inside it: {said}.",
        "95 of 100 answers within, ms",
    )  # fmt: skip


def costs(curve: CostCurve) -> None:
    """Cheapest cost a month against the peak rate, on CPUs and on GPUs."""
    x = vl.axis("x", "Requests a second at the peak", scale={"type": "log", "nice": False},
                axis={"grid": False, "tickCount": 6, "labelExpr": RATES,
                      "labelOverlap": True})  # fmt: skip
    y = vl.axis("y", None, scale={"type": "log", "nice": False},
                axis={"grid": False, "tickCount": 4, "format": "$~s"})  # fmt: skip
    at = {"x": x, "y": y}
    marks = [(curve.crossing_per_s, "GPUs the cheaper")] if curve.crossing_per_s else []
    if curve.peak_per_s > 0:
        marks.append((curve.peak_per_s, "your peak"))
    third = len(curve.cpu) // 3
    layers: list[Layer] = [
        _line(curve.cpu, "CPU", at, interpolate="step"),
        _line(curve.gpu, "GPU", at, interpolate="step"),
        _name(*curve.cpu[2 * third], "CPU", at, align="right", dx=-6, dy=-10),
        _name(*curve.gpu[2 * third], "GPU", at, align="left", dx=6, dy=12),
        *vl.marks(sorted(marks), x, flip=curve.cpu[len(curve.cpu) // 2][0]),
    ]  # fmt: skip
    vl.draw({"height": HEIGHT, "layer": layers}, f"{curve.title}. {curve.message}",
            f"USD a month, {curve.paid}")  # fmt: skip
