"""Parts of which the pictures are made, as Vega-Lite layers: lines, words, marks, axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.components.charts import PLACEMENTS, show

LINE_PX = 15  # between two labels above each other
Layer = dict[str, Any]
Points = Sequence[tuple[float, float]]


def ink() -> str:
    """The colour of words and helper lines: 4.5:1 or more on the page's background."""
    return "#aeb6c2" if st.context.theme.type == "dark" else "#5c6470"


def rows(points: Points, **more: Any) -> list[dict[str, Any]]:
    """Points as rows of data, with the same further fields in each."""
    return [{"x": x, "y": y, **more} for x, y in points]


def axis(channel: str, title: str | None, **more: Any) -> Layer:
    """A quantitative channel."""
    return {"field": channel, "type": "quantitative", "title": title, **more}


def coloured() -> Layer:
    """The colour of the placement named in the field `hardware`."""
    scale = {"domain": PLACEMENTS}
    return {"color": {"field": "hardware", "type": "nominal", "scale": scale, "legend": None}}


def line(points: Points, encoding: Layer, **mark: Any) -> Layer:
    """A line through points."""
    return {
        "data": {"values": rows(points)},
        "mark": {"type": "line", "strokeWidth": 2.5, **mark},
        "encoding": encoding,
    }


def word(x: float, y: float, text: str, encoding: Layer, **mark: Any) -> Layer:
    """A label at a point of the plane."""
    return {
        "data": {"values": [{"x": x, "y": y, "text": text}]},
        "mark": {"type": "text", "fontSize": 12, "color": ink(), **mark},
        "encoding": {**encoding, "text": {"field": "text"}},
    }


def dot(points: Points, encoding: Layer, **mark: Any) -> Layer:
    """Filled dots."""
    return {
        "data": {"values": rows(points)},
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1, **mark},
        "encoding": encoding,
    }


def marks(
    marks: Sequence[tuple[float, str]], x: Layer, flip: float, low: bool = False
) -> list[Layer]:
    """Dashed vertical lines, their words one under the other at the top, or `low` at the bottom.

    flip : x from which on the words stand to the left of their line
    """
    lines: Layer = {
        "data": {"values": [{"x": v} for v, _ in marks]},
        "mark": {"type": "rule", "strokeDash": [3, 4], "color": ink()},
        "encoding": {"x": x},
    }
    words = []
    for i, (v, text) in enumerate(marks):
        at = f"height - {8 + LINE_PX * (len(marks) - 1 - i)}" if low else f"{8 + LINE_PX * i}"
        left = {"align": "right", "dx": -4} if v >= flip else {"align": "left", "dx": 4}
        words.append(at_height(v, text, at, x, **left))
    return [lines, *words] if marks else []


def at_height(x_value: float, text: str, pixels: str, x: Layer, **mark: Any) -> Layer:
    """A label at a value of x and a height in pixels, as an expression of the plot's `height`."""
    return {
        "data": {"values": [{"x": x_value, "text": text}]},
        "mark": {"type": "text", "fontSize": 12, "color": ink(), "y": {"expr": pixels}, **mark},
        "encoding": {"x": x, "text": {"field": "text"}},
    }


def draw(spec: Layer, alt: str, y_title: str = "", right: int = 16) -> None:
    """Draw it with the title of the y axis above the chart, where it can be read."""
    words = {"text": y_title, "anchor": "start", "fontSize": 12, "fontWeight": "normal",
             "color": ink(), "offset": 12}  # fmt: skip
    title = {"title": words} if y_title else {}
    show({**title, "padding": {"right": right, "left": 0, "top": 4, "bottom": 6}, **spec}, alt)


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Heights (0 at the top, 1 at the bottom) near the wanted ones, at least `gap` apart."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = [0.0] * len(wanted)
    above = -math.inf
    for i in order:
        above = placed[i] = max(wanted[i], above + gap)
    below = 1 + gap
    for i in reversed(order):
        below = placed[i] = min(placed[i], below - gap)
    return placed
