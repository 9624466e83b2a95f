"""The pictures of the plans as Vega-Lite for paper: the points of the pages, one message each.

Colours are those of placements everywhere; titles and messages come with the points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.explain.jobs import SpeedupCurve
from engine.explain.jobs_models import CostCurve, ResponseCurve
from engine.explain.serving_pictures import DayPicture, FrontierPicture, LoadCurve
from engine.report import words
from engine.report.charts import CONFIG, INK, PLACEMENT_COLOURS, QUIET, SCHEMA

Layer = dict[str, Any]
Points = Sequence[tuple[float, float]]
WIDTH, HEIGHT = 238, 168  # of a picture on half the page, its axes included, in points
WIDE = 440
ROOM = 0.7  # of a scale of logarithms, for a word below the lowest point
SIDE = {"gpu": "GPU", "cpu": "CPU"}
LINE = "#30569f"  # what is no placement
_SHORT = "datum.value < 1 ? format(datum.value, '~g') : format(datum.value, '~s')"
_USD = "datum.value ? format(datum.value, '$~s') : '$0'"
# Cents where a run costs little, no decimals where it costs much.
_USD_RUN = "datum.value < 10 ? format(datum.value, '$.2~f') : format(datum.value, '$,.3~r')"


def load(found: LoadCurve) -> Layer:
    """A latency against the load of one replica: mean, percentile, target, where the plan runs."""
    ceiling = found.ceiling
    end = found.mean[-1][0]
    at = {
        "x": _axis("x", "Requests a second to one replica", {"tickCount": 5}, {"zero": True}),
        "y": _axis("y", found.y_title, {"tickCount": 4, "format": ",~r"},
                   {"domain": [0, ceiling], "clamp": True}),
    }  # fmt: skip
    mean, slow = found.drawn(found.mean), found.drawn(found.slow)
    layers = [
        _line(mean, at), _line(slow, at, strokeDash=[5, 3], strokeWidth=1.6),
        _word(*_clear(slow, found.point[0], end), found.slow_name, at, align="right", dx=-4, dy=-7),
        _word(*_clear(mean, found.point[0], end), "mean", at, align="left", dy=9),
    ]  # fmt: skip
    if found.target is not None and found.target <= ceiling:
        low = found.slow[len(found.slow) // 4][1] < 0.7 * found.target
        side = {"align": "left", "dx": 4} if low else {"align": "right", "dx": -4}
        target = [(0.0, found.target), (end, found.target)]
        layers += [
            _line(target, at, strokeDash=[2, 3], strokeWidth=1, color=QUIET),
            _word(target[0 if low else 1][0], found.target,
                  f"target {words.number(found.target)} ms", at, dy=-6, **side),
        ]  # fmt: skip
    beside: Layer = (
        {"align": "center", "dy": 13} if found.on_mean else {"align": "right", "dx": -8, "dy": -8}
    )
    if found.point[0] < end / 4:
        beside = {**beside, "align": "left", "dx": 8}
    layers += [
        _dot([found.point], at),
        _word(*found.point, "the plan", at, fontWeight="bold", color=INK, **beside),
    ]
    return _spec(layers)


def day(found: DayPicture) -> Layer:
    """Machines hour by hour as bars, the rate as a line of its own scale."""
    x = {"field": "x", "type": "ordinal", "title": "Hour of the day",
         "axis": {"labelAngle": 0, "grid": False, "titleFontSize": 9, "labelFontSize": 9,
                  "values": [0, 4, 8, 12, 16, 20], "labelExpr": "datum.value + ':00'"}}  # fmt: skip
    most = max(m for _, m in found.machines)
    whole = {"tickCount": int(min(max(most, 1), 4)), "tickMinStep": 1, "format": "~s"}
    machines = _axis("y", "Machines kept (bars)", whole, {"zero": True})
    rate = _axis("y", "Requests a second (line)", {"tickCount": 4, "labelExpr": _SHORT},
                 {"zero": True})  # fmt: skip
    layers = [
        {"data": {"values": _rows([(float(h), m) for h, m in found.machines])},
         "mark": {"type": "bar", "opacity": 0.55, "color": LINE},
         "encoding": {"x": x, "y": machines}},
        {"data": {"values": _rows([(float(h), r) for h, r in found.rates])},
         "mark": {"type": "line", "strokeWidth": 2, "color": INK}, "encoding": {"x": x, "y": rate}},
    ]  # fmt: skip
    return {**_spec(layers), "resolve": {"scale": {"y": "independent"}}}


def frontier(found: FrontierPicture) -> Layer:
    """Dollars a month against time per token: each dot the cheapest at its speed."""
    usd = [y for _, y, *_ in found.points] + [found.own[1]]
    at = {
        "x": _axis("x", "Time per further token, ms", {"tickCount": 5, "format": "~r"},
                   {"type": "log", "nice": False}),
        "y": _axis("y", "USD a month", {"tickCount": 4, "format": "$~s"},
                   {"type": "log", "domain": [min(usd) * ROOM, max(usd) / ROOM]}),
    }  # fmt: skip
    rows = [{"x": x, "y": y, "hardware": side} for x, y, side, _ in found.points]
    layers: list[Layer] = [
        {"data": {"values": rows}, "encoding": at,
         "mark": {"type": "line", "interpolate": "step-before", "strokeWidth": 1, "color": QUIET}},
        {"data": {"values": rows}, "encoding": {**at, **_coloured()},
         "mark": {"type": "point", "filled": True, "size": 42, "opacity": 1}},
        {"data": {"values": _rows([found.own])}, "encoding": at,
         "mark": {"type": "point", "size": 130, "strokeWidth": 1.6, "color": INK}},
    ]  # fmt: skip
    most, least = (f(x for x, *_ in found.points) for f in (max, min))
    # Beside the plan where there is room: on a scale of logarithms, the middle is the root.
    left = found.own[0] ** 2 < most * least
    beside: Layer = {"align": "left", "dx": 9} if left else {"align": "right", "dx": -9, "dy": 9}
    layers.append(_word(*found.own, "the plan", at, fontWeight="bold", color=INK, **beside))
    if found.target is not None and found.target <= max(most, found.own[0]) * 1.5:
        layers += _mark(found.target, "target", at["x"], right=True)
    return _spec(layers)


def speedup(curve: SpeedupCurve) -> Layer:
    """Cost of a run on CPU servers and on GPUs, by the speed-up; the range expected is shaded."""
    x = _axis("x", "Speed-up of the parallel part, times",
              {"values": [0.5, 1, 2, 5, 10, 20, 50, 100], "format": "~r"},
              {"type": "log", "nice": False})  # fmt: skip
    y = _axis("y", "USD a run", {"tickCount": 5, "labelExpr": _USD_RUN}, {"zero": True})
    at = {"x": x, "y": y}
    left, right = curve.gpu[0][0], curve.gpu[-1][0]
    band = {"x": max(curve.low, left), "x2": min(curve.high, right)}
    marks = [(curve.likely, "likely")]
    if curve.break_even is not None and curve.break_even > left:
        marks.append((curve.break_even, "break-even"))
    # The dearer is named above its line, the other below: they may end close together.
    above = 1 if curve.gpu[-1][1] > curve.cpu_usd else -1
    layers: list[Layer] = [
        {"data": {"values": [band]}, "mark": {"type": "rect", "opacity": 0.15, "color": LINE},
         "encoding": {"x": x, "x2": {"field": "x2"}, "y": {"value": 0},
                      "y2": {"value": {"expr": "height"}}}},
        _side_line(curve.gpu, "GPU", at, clip=True),
        _side_line([(left, curve.cpu_usd), (right, curve.cpu_usd)], "CPU", at),
        _side_name(right, curve.cpu_usd, "CPU", at, dy=9 * above),
        _side_name(*curve.gpu[-1], "GPU", at, dy=-9 * above),
    ]  # fmt: skip
    for i, (value, text) in enumerate(sorted(marks)):
        layers += _mark(value, text, x, line=i, right=value > 10)
    return _spec(layers, WIDE)


def response(curves: Sequence[ResponseCurve], target_ms: float) -> Layer:
    """Response of one machine of each kind against the requests that it gets."""
    top = target_ms * 1.6
    at = {
        "x": _axis("x", "Requests a second to one machine",
                   {"tickCount": 5, "labelExpr": _SHORT, "labelOverlap": True},
                   {"type": "log", "nice": False}),
        "y": _axis("y", "95 of 100 answers within, ms", {"tickCount": 4},
                   {"domain": [0, top], "clamp": True}),
    }  # fmt: skip
    layers: list[Layer] = []
    for curve in curves:
        side, points = SIDE[curve.hardware], [p for p in curve.points if p[1] <= top * 1.5]
        if not points:
            continue
        layers += [
            _side_line(points, side, at),
            _side_name(*points[min(20, len(points) - 1)], side, at, align="left", dy=-8),
            {"data": {"values": [{"x": curve.capacity_per_s, "y": target_ms, "hardware": side}]},
             "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
             "encoding": {**at, **_coloured()}},
        ]  # fmt: skip
    least = min(p[0] for c in curves for p in c.points)
    layers += [
        {"data": {"values": [{"y": target_ms}]}, "encoding": {"y": at["y"]},
         "mark": {"type": "rule", "strokeDash": [5, 3], "color": QUIET}},
        _word(least, target_ms, f"target {words.number(target_ms)} ms", at, align="left", dy=-6),
    ]  # fmt: skip
    return _spec(layers)


def costs(curve: CostCurve) -> Layer:
    """Cheapest cost a month against the peak rate, on CPUs and on GPUs."""
    x = _axis("x", "Requests a second at the peak",
              {"tickCount": 5, "labelExpr": _SHORT, "labelOverlap": True},
              {"type": "log", "nice": False})  # fmt: skip
    y = _axis("y", f"USD a month, {curve.paid}", {"tickCount": 4, "labelExpr": _USD},
              {"type": "log", "nice": False})  # fmt: skip
    at = {"x": x, "y": y}
    marks = [(curve.crossing_per_s, "GPUs the cheaper")] if curve.crossing_per_s else []
    if curve.peak_per_s > 0:
        marks.append((curve.peak_per_s, "your peak"))
    third = len(curve.cpu) // 3
    layers: list[Layer] = [
        _side_line(curve.cpu, "CPU", at, interpolate="step"),
        _side_line(curve.gpu, "GPU", at, interpolate="step"),
        _side_name(*curve.cpu[2 * third], "CPU", at, dx=-5),
        _side_name(*curve.gpu[2 * third], "GPU", at, align="left", dx=5, dy=10),
    ]
    middle = curve.cpu[len(curve.cpu) // 2][0]
    for i, (value, text) in enumerate(sorted(marks)):
        layers += _mark(value, text, x, line=i, right=value >= middle)
    return _spec(layers)


# --- parts


def _spec(layers: list[Layer], width: int = WIDTH) -> Layer:
    return {"$schema": SCHEMA, "width": width, "height": HEIGHT, "layer": layers,
            "autosize": {"type": "fit", "contains": "padding"}, "padding": 2,
            "config": CONFIG}  # fmt: skip


def _axis(channel: str, title: str, axis: Layer, scale: Layer) -> Layer:
    grid = {"grid": channel == "y", "titleFontSize": 9, "labelFontSize": 9}
    return {"field": channel, "type": "quantitative", "title": title,
            "axis": {**grid, **axis}, "scale": {"nice": False, **scale}}  # fmt: skip


def _rows(points: Points, **more: Any) -> list[Layer]:
    return [{"x": x, "y": y, **more} for x, y in points]


def _clear(points: Points, taken: float, end: float) -> tuple[float, float]:
    """A point of a line for its name, away from the x that is taken already."""
    wanted = next(x * end for x in (0.5, 0.25, 0.75) if abs(x * end - taken) > 0.2 * end)
    return min(points, key=lambda p: abs(p[0] - wanted))


def _line(points: Points, at: Layer, **mark: Any) -> Layer:
    return {"data": {"values": _rows(points)}, "encoding": at,
            "mark": {"type": "line", "strokeWidth": 2, "color": LINE, **mark}}  # fmt: skip


def _dot(points: Points, at: Layer) -> Layer:
    return {"data": {"values": _rows(points)}, "encoding": at,
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1,
                     "color": INK}}  # fmt: skip


def _word(x: float, y: float, text: str, at: Layer, **mark: Any) -> Layer:
    return {"data": {"values": [{"x": x, "y": y, "text": text}]},
            "mark": {"type": "text", "fontSize": 9, "color": QUIET, **mark},
            "encoding": {**at, "text": {"field": "text"}}}  # fmt: skip


def _mark(value: float, text: str, x: Layer, *, line: int = 0, right: bool = False) -> list[Layer]:
    """A dashed vertical line with its word at the top, to its left where `right` has no room."""
    side = {"align": "right", "dx": -3} if right else {"align": "left", "dx": 3}
    data = {"values": [{"x": value, "text": text}]}
    return [
        {"data": data, "encoding": {"x": x},
         "mark": {"type": "rule", "strokeDash": [3, 3], "color": QUIET}},
        {"data": data, "encoding": {"x": x, "text": {"field": "text"}},
         "mark": {"type": "text", "fontSize": 9, "color": QUIET, "y": 5 + 11 * line, **side}},
    ]  # fmt: skip


def _coloured() -> Layer:
    scale = {"domain": list(PLACEMENT_COLOURS), "range": list(PLACEMENT_COLOURS.values())}
    return {"color": {"field": "hardware", "type": "nominal", "scale": scale, "legend": None}}


def _side_line(points: Points, side: str, at: Layer, **mark: Any) -> Layer:
    return {"data": {"values": _rows(points, hardware=side)},
            "mark": {"type": "line", "strokeWidth": 2, **mark},
            "encoding": {**at, **_coloured()}}  # fmt: skip


def _side_name(x: float, y: float, side: str, at: Layer, **mark: Any) -> Layer:
    place = {"align": "right", "dy": -7, **mark}
    return {"data": {"values": [{"x": x, "y": y, "text": side, "hardware": side}]},
            "mark": {"type": "text", "fontSize": 10, "fontWeight": "bold", **place},
            "encoding": {**at, "text": {"field": "text"}, **_coloured()}}  # fmt: skip
