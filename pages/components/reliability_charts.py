"""The pictures of the reliability page; labels stand at the marks, sources on hover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.estimate.failure_rates import Fleet
from engine.explain.reliability import Loss
from engine.explain.reliability_curves import IntervalCurve, SizeCurve
from engine.explain.reliability_words import share_said
from engine.wording import number, spent
from pages.components import labels
from pages.components.charts import show
from pages.components.layers import ink
from pages.components.question_charts import HEIGHT

Layer = dict[str, Any]
BAND = {"type": "area", "opacity": 0.18}
BOUND = {"at least": "at least ", "at most": "at most ", "about": "about "}


def _quantity(field: str, title: str | None, **more: Any) -> Layer:
    return {"field": field, "type": "quantitative", "title": title, **more}


def _title(text: str) -> Layer:
    return {"text": text, "anchor": "start", "fontSize": 12, "fontWeight": "normal",
            "color": ink(), "offset": 12}  # fmt: skip


def _draw(spec: Layer, alt: str, y_title: str = "", right: int = 16) -> None:
    title = {"title": _title(y_title)} if y_title else {}
    show({**title, "padding": {"right": right, "left": 0, "top": 4, "bottom": 6}, **spec}, alt)


def _pairs(points: Sequence[tuple[float, float]]) -> list[Layer]:
    return [{"x": x, "y": y} for x, y in points]


def _band(band: Sequence[tuple[float, float, float]], at: Layer) -> Layer:
    values = [{"x": x, "y": low, "y2": high} for x, low, high in band]
    return {
        "data": {"values": values}, "mark": BAND, "encoding": {**at, "y2": {"field": "y2"}},
    }  # fmt: skip


def size(curve: SizeCurve, unit: str) -> None:
    """Useful share of the paid time against the size of the cluster."""
    x = _quantity(
        "x", f"{unit}s of the run", scale={"type": "log", "base": 2, "nice": False},
        axis={"grid": False, "values": [1, 8, 64, 512, 4096, 32768], "format": ",~r",
              "labelOverlap": True},
    )  # fmt: skip
    y = _quantity("y", None, scale={"domain": [0, 100]},
                  axis={"tickCount": 5, "grid": False})  # fmt: skip
    at = {"x": x, "y": y}
    published: list[Layer] = [
        {"x": n, "y": share, "name": name, "said": f"{BOUND.get(bound, '')}{share:g}%",
         "source": source, "label": name.partition(": ")[2] or name}
        for n, share, name, bound, source in curve.published
    ]  # fmt: skip
    tips = [{"field": "name", "title": "Run"}, {"field": "said", "title": "Useful time"},
            {"field": "x", "title": f"{unit}s", "format": ","},
            {"field": "source", "title": "Source"}]  # fmt: skip
    mine = [
        {"x": curve.own[0], "y": curve.own[1], "label": f"yours {share_said(curve.own[1] / 100)}"}
    ]
    side = "left" if curve.own[0] < 64 else "right"
    under = 16 if curve.own[1] > 15 else -12  # near the axis the label stands above its mark
    # Beyond the middle of the axis there is room to the right of a mark, before it to the left.
    sides = (([p for p in published if p["x"] <= 4096], "right", -8),
             ([p for p in published if p["x"] > 4096], "left", 8))  # fmt: skip
    layers: list[Layer] = [
        _band(curve.band, at),
        {"data": {"values": _pairs(curve.best)},
         "mark": {"type": "line", "strokeDash": [6, 4], "strokeWidth": 1.5, "color": ink()},
         "encoding": at},
        {"data": {"values": _pairs(curve.points)},
         "mark": {"type": "line", "strokeWidth": 2.5}, "encoding": at},
        {"data": {"values": published},
         "mark": {"type": "point", "shape": "diamond", "filled": True, "size": 70,
                  "color": ink(), "opacity": 1},
         "encoding": {**at, "tooltip": tips}},
        {"data": {"values": mine},
         "mark": {"type": "point", "filled": True, "size": 120, "opacity": 1}, "encoding": at},
        {"data": {"values": mine},
         "mark": {"type": "text", "fontSize": 13, "fontWeight": "bold", "align": side,
                  "dx": -6 if side == "right" else 4, "dy": under, "color": ink()},
         "encoding": {**at, "text": {"field": "label"}}},
    ]  # fmt: skip
    layers += [
        {"data": {"values": values},
         "mark": {"type": "text", "fontSize": 11, "align": align, "dx": dx, "color": ink()},
         "encoding": {**at, "text": {"field": "label"}}}
        for values, align, dx in sides
    ]  # fmt: skip
    words = "; ".join(f"{p['name']} {p['said']}" for p in published)
    _draw({"height": HEIGHT + 40, "layer": layers},
          f"{curve.title}. {curve.message} Published: {words}.",
          "Useful share, %; diamonds: published runs")  # fmt: skip


INTERVALS = "datum.value >= 1440 ? format(datum.value / 1440, '~r') + ' d' : " \
    "datum.value >= 60 ? format(datum.value / 60, '~r') + ' h' : " \
    "format(datum.value, '~r') + ' min'"  # fmt: skip


def interval(curve: IntervalCurve) -> None:
    """Useful share of the paid time against the interval of checkpoints."""
    x = _quantity(
        "x", "Time between checkpoints", scale={"type": "log", "nice": False},
        axis={"grid": False, "values": [1, 5, 15, 60, 360, 1440, 10080], "labelExpr": INTERVALS,
              "labelOverlap": True},
    )  # fmt: skip
    top = max(high for _, _, high in curve.band)
    floor = max(0.0, min(share for _, share in curve.points) - 5)
    y = _quantity("y", None, scale={"domain": [floor, min(100.0, top + 2)], "clamp": True},
                  axis={"tickCount": 5, "grid": False})  # fmt: skip
    at = {"x": x, "y": y}
    layers: list[Layer] = [
        _band(curve.band, at),
        {"data": {"values": _pairs(curve.points)},
         "mark": {"type": "line", "strokeWidth": 2.5}, "encoding": at},
        {"data": {"values": [{"x": v} for v, _ in curve.marks]},
         "mark": {"type": "rule", "strokeDash": [3, 4], "color": ink()}, "encoding": {"x": x}},
    ]  # fmt: skip
    marks, first = sorted(curve.marks), curve.points[0][0]
    for i, (v, text) in enumerate(marks):
        up = 8 + 16 * (len(marks) - 1 - i)
        # A label stands to the left of its mark where the next one would run through it.
        crowded = i + 1 < len(marks) and marks[i + 1][0] < 6 * v and v > 4 * first
        layers.append(
            {"data": {"values": [{"x": v, "text": text}]},
             "mark": {"type": "text", "fontSize": 12, "color": ink(),
                      "align": "right" if crowded else "left", "dx": -5 if crowded else 5,
                      "fontWeight": "bold" if text in ("best", "yours") else "normal",
                      "y": {"expr": f"height - {up}"}},
             "encoding": {"x": x, "text": {"field": "text"}}}
        )  # fmt: skip
    _draw({"height": HEIGHT + 40, "layer": layers}, f"{curve.title}. {curve.message}",
          "Useful share of the paid time, %")  # fmt: skip


def losses(found: Sequence[Loss], ends: bool = True) -> None:
    """What the lost time goes to, in percent of the paid time and in dollars.

    ends : one that never ends has no bill, so no dollars
    """
    rows = [
        {"cause": loss.cause, "x": loss.share * 100,
         "label": f"{loss.cause[0].upper()}{loss.cause[1:]}: {share_said(loss.share)}"
                  + (f" · {spent(loss.usd)}" if ends else "")}
        for loss in sorted(found, key=lambda loss: -loss.share)
    ]  # fmt: skip
    spec = {
        "height": {"step": 44},
        "data": {"values": rows},
        "encoding": {"y": {"field": "cause", "type": "nominal", "sort": None, "axis": None}},
        "layer": [
            {"mark": {"type": "bar", "height": 12, "cornerRadius": 2, "yOffset": 9},
             "encoding": {"x": _quantity("x", "Share of the paid time, %",
                                         axis={"grid": False, "tickCount": 5})}},
            {"mark": {"type": "text", "align": "left", "dy": -9, "fontSize": 13, "color": ink()},
             "encoding": {"x": {"value": 0}, "text": {"field": "label"}}},
        ],
    }  # fmt: skip
    _draw(spec, "What the lost time goes to. " + "; ".join(str(r["label"]) for r in rows))


def fleets(found: Sequence[Fleet], used: tuple[float, float, float]) -> None:
    """Published failure rates, each with its source on hover; the shaded range is the one used."""
    rows = []
    for f in found:
        if f.rate is None:
            continue
        low, high = f.rate_range or (f.rate, f.rate)
        rows.append(
            {"name": f.name, "x": f.rate, "low": low, "high": high,
             "label": f"{f.name}: {number(f.rate)}", "hardware": f.hardware, "counts": f.counts,
             "source": f.provenance.source, "day": labels.day(f.provenance.as_of),
             "notes": f.notes}
        )  # fmt: skip
    x = _quantity("x", "Failures per 1,000 machine-days", scale={"type": "log", "nice": False,
                  "domain": [1, 40]}, axis={"grid": False, "values": [1, 2, 5, 10, 20, 40],
                                            "format": "~r"})  # fmt: skip
    tips = [{"field": "name", "title": "Fleet"}, {"field": "hardware", "title": "Hardware"},
            {"field": "x", "title": "Failures per 1,000 machine-days", "format": ".3g"},
            {"field": "counts", "title": "Counted"}, {"field": "notes", "title": "Notes"},
            {"field": "source", "title": "Source"}, {"field": "day", "title": "Of"}]  # fmt: skip
    low, likely, high = used
    spec = {
        "height": {"step": 34},
        "data": {"values": rows},
        "encoding": {"y": {"field": "name", "type": "nominal", "sort": None, "axis": None}},
        "layer": [
            {"data": {"values": [{"x": max(low, 1), "x2": min(high, 40)}]},
             "mark": {"type": "rect", "opacity": 0.15},
             "encoding": {"x": x, "x2": {"field": "x2"}, "y": {"value": 0},
                          "y2": {"value": {"expr": "height"}}}},
            {"data": {"values": [{"x": likely}]},
             "mark": {"type": "rule", "strokeWidth": 2, "color": ink()},
             "encoding": {"x": x, "y": {"value": 0}, "y2": {"value": {"expr": "height"}}}},
            {"mark": {"type": "rule", "color": ink(), "yOffset": 7},
             "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}}},
            {"mark": {"type": "point", "filled": True, "size": 80, "color": ink(), "opacity": 1,
                      "yOffset": 7},
             "encoding": {"x": x, "tooltip": tips}},
            {"mark": {"type": "text", "align": "left", "dy": -7, "fontSize": 12, "color": ink()},
             "encoding": {"x": {"value": 0}, "text": {"field": "label"}}},
        ],
    }  # fmt: skip
    words = "; ".join(str(r["label"]) for r in rows)
    _draw(spec, f"Failures per 1,000 machine-days of published fleets: {words}. Used here: "
          f"{number(likely)}, between {number(low)} and {number(high)}.")  # fmt: skip
