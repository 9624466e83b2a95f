"""The pictures of the accuracy page: predicted against measured, each row's source on hover."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st

from engine.explain.accuracy import Point, Quantity
from pages.components.charts import show
from pages.components.question_charts import ink

Layer = dict[str, Any]
EVERY = "All rows"
ROOM = 1.4  # of the axes beyond the smallest and the largest value, as a factor


def choices(q: Quantity) -> list[str]:
    """What can be lit: all rows, a kind, or one source's."""
    return [EVERY, *q.kinds, *(name for name, _ in q.groups if name not in q.kinds)]


def scatter(q: Quantity, lit: str) -> None:
    """Predicted against measured on logarithmic axes, with the lines of right and 20% off."""
    show(_scatter(q.id, lit, ink(), q), _words(q))


@st.cache_resource(max_entries=64, show_spinner=False)
def _scatter(id: str, lit: str, words: str, _q: Quantity) -> Layer:
    # The quantity is told by its id: it is computed once in a process and never changes in it.
    return specification(_q, lit, words)


def specification(q: Quantity, lit: str, words: str) -> Layer:
    """The picture as Vega-Lite; long texts of sources stand in it once and are looked up."""
    values = [v for p in q.points for v in (p.measured, p.predicted)]
    domain = [min(values) / ROOM, max(values) * ROOM]
    small = "datum.value < 1 ? format(datum.value, '~r') : format(datum.value, '~s')"
    axis = {"grid": False, "values": ticks(*domain), "labelExpr": small, "labelOverlap": True}
    scale = {"type": "log", "domain": domain, "nice": False}
    x = {"field": "x", "type": "quantitative", "title": f"Measured, {q.unit}", "scale": scale,
         "axis": axis}  # fmt: skip
    y = {**x, "field": "y", "title": None}
    at = {"x": x, "y": y}
    found = [_row(p) for p in q.points]
    chosen = [r for r, p in zip(found, q.points, strict=True) if lit in (EVERY, p.kind, p.group)]
    others = [] if lit == EVERY else [
        {"x": r["x"], "y": r["y"]}
        for r, p in zip(found, q.points, strict=True) if lit not in (p.kind, p.group)
    ]  # fmt: skip
    lines = [_line(1.0, domain, at, words, strokeWidth=1.5)]
    lines += [_line(f, domain, at, words, strokeDash=[3, 4], strokeWidth=1) for f in (0.8, 1.2)]
    faint = {"type": "point", "filled": True, "size": 16, "opacity": 0.2, "color": words}
    many = 0.35 if len(chosen) > 300 else 0.7
    lookup = {
        "lookup": "s",
        "from": {"data": {"values": [{"s": i, "source": text} for i, text in
                                     enumerate(q.sources)]}, "key": "s", "fields": ["source"]},
    }  # fmt: skip
    tips = [
        {"field": "what", "title": "Run"},
        {"field": "on", "title": "On"},
        {"field": "x", "title": f"Measured, {q.unit}", "format": ",.4~r"},
        {"field": "y", "title": f"Predicted, {q.unit}", "format": ",.4~r"},
        {"field": "off", "title": "Off by"},
        {"field": "source", "title": "Source"},
    ]
    return {
        "height": 380,
        "padding": {"right": 16, "left": 0, "top": 4, "bottom": 6},
        "title": {"text": f"Predicted, {q.unit}; dashed lines are 20% off", "anchor": "start",
                  "fontSize": 12, "fontWeight": "normal", "color": words, "offset": 12},
        "layer": [
            *lines,
            # An empty layer would be a picture without words to those who can't see it.
            *([{"data": {"values": others}, "mark": faint, "encoding": at}] if others else []),
            {"data": {"values": chosen}, "transform": [lookup],
             "mark": {"type": "point", "filled": True, "size": 32, "opacity": many},
             "encoding": {**at, "tooltip": tips}},
        ],
    }  # fmt: skip


def ticks(low: float, high: float) -> list[float]:
    """Round values of a logarithmic axis: tens, with 2 and 5 or 3 between them where few fit."""
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades < 1.6 else (1, 3) if decades < 3 else (1,)
    found = [m * 10.0**e for e in range(-9, 13) for m in steps]
    return [float(f"{v:.3g}") for v in found if low <= v <= high]


def _row(p: Point) -> Layer:
    off = p.predicted / p.measured - 1
    return {"x": _short(p.measured), "y": _short(p.predicted), "what": p.what, "on": p.hardware,
            "off": f"{off:+.0%}".replace("-", "−"), "s": p.source}  # fmt: skip


def _short(value: float) -> float:
    """Four significant digits: more would only make the page heavier."""
    return float(f"{value:.4g}")


def _line(factor: float, domain: list[float], at: Layer, words: str, **mark: Any) -> Layer:
    low = max(domain[0], domain[0] / factor)
    high = min(domain[1], domain[1] / factor)
    ends = [{"x": v, "y": v * factor} for v in (low, high)]
    return {"data": {"values": ends}, "mark": {"type": "line", "color": words, **mark},
            "encoding": at}  # fmt: skip


def _words(q: Quantity) -> str:
    f = q.figures
    decades = math.log10(max(p.measured for p in q.points) / min(p.measured for p in q.points))
    return (
        f"{q.title}, predicted against measured: {f.n:,} rows over {decades:.1f} powers of ten. "
        f"Half are within {f.median:.1%}, nine of ten within {f.p90:.1%}, {f.within_20:.0%} within "
        "20%."
    )
