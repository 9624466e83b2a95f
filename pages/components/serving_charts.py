"""The pictures of the serving page; labels stand at the marks, titles are above the charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.explain.serving_pictures import DayPicture, FrontierPicture, LoadCurve
from pages.components import labels
from pages.components import layers as vl

HEIGHT = 260
Layer = dict[str, Any]
Point = tuple[float, float]
# Where the plan's name stands: under the lower of two lines, above the upper one.
_BESIDE: dict[bool, dict[str, Any]] = {
    True: {"align": "center", "dy": 18}, False: {"align": "right", "dx": -10, "dy": -10},
}  # fmt: skip


def load(found: LoadCurve) -> None:
    """A latency against the load of one replica: mean, percentile, target, where the plan runs."""
    ceiling = found.ceiling
    x = vl.axis("x", "Requests a second to one replica", axis={"grid": False, "tickCount": 5},
                scale={"nice": False, "zero": True})  # fmt: skip
    y = vl.axis("y", None, axis={"grid": False, "tickCount": 4, "format": ",~r"},
                scale={"domain": [0, ceiling], "clamp": True})  # fmt: skip
    at = {"x": x, "y": y}
    end = found.mean[-1][0]
    beside = _BESIDE[found.on_mean]
    if found.point[0] < end / 4:  # no room to its left
        beside = {**beside, "align": "left", "dx": 10}
    mean, slow = found.drawn(found.mean), found.drawn(found.slow)
    layers: list[Layer] = [
        vl.line(mean, at),
        vl.line(slow, at, strokeDash=[6, 4], strokeWidth=2),
        vl.word(*_apart(slow, found.point, end), found.slow_name, at, align="center", dy=-10),
        vl.word(*_apart(mean, found.point, end), "mean", at, align="center", dy=14),
    ]
    if found.target is not None and found.target <= ceiling:
        # Its words stand where the lines are far below it.
        low = max(y for x, y in found.slow if x <= 0.35 * end) < 0.9 * found.target
        side = {"align": "left", "dx": 6} if low else {"align": "right", "dx": -6}
        layers += [
            vl.line([(0, found.target), (end, found.target)], at, strokeDash=[2, 3],
                    strokeWidth=1, color=vl.ink()),
            vl.word(0 if low else end, found.target,
                    f"target {labels.number(found.target)} ms", at, dy=-7, **side),
        ]  # fmt: skip
    layers += [
        vl.dot([found.point], at, size=130),
        vl.word(*found.point, "the plan", at, fontWeight="bold", **beside),
    ]
    vl.draw({"height": HEIGHT, "layer": layers}, f"{found.title}. {found.message}", found.y_title)


def _apart(line: Sequence[Point], plan: Point, end: float) -> Point:
    """Where a line's name stands: on it, well away from the plan's."""
    x = end * (0.22 if plan[0] > 0.5 * end else 0.72)
    return min(line, key=lambda p: abs(p[0] - x))


def day(found: DayPicture) -> None:
    """Machines hour by hour as bars, the rate as a line of its own scale."""
    x = {"field": "x", "type": "ordinal", "title": "Hour of the day",
         "axis": {"labelAngle": 0, "grid": False, "values": [0, 4, 8, 12, 16, 20],
                  "labelExpr": "datum.value + ':00'"}}  # fmt: skip
    machines = vl.axis("y", None, axis={"grid": False, "tickCount": 4, "tickMinStep": 1,
                                         "format": "~s"}, scale={"zero": True})  # fmt: skip
    rate = vl.axis("y", "Requests a second (line)", axis={"grid": False, "tickCount": 4},
                   scale={"zero": True})  # fmt: skip
    layers: list[Layer] = [
        {"data": {"values": [{"x": h, "y": m, "usd": usd}
                             for (h, m), usd in zip(found.machines, found.usd, strict=True)]},
         "mark": {"type": "bar", "cornerRadiusEnd": 2, "opacity": 0.75},
         "encoding": {"x": x, "y": machines,
                      "tooltip": [{"field": "x", "title": "Hour"},
                                  {"field": "y", "title": "Machines"},
                                  {"field": "usd", "title": "Cost of the hour"}]}},
        {"data": {"values": vl.rows(found.rates)},
         "mark": {"type": "line", "strokeWidth": 2.5, "color": vl.ink()},
         "encoding": {"x": x, "y": rate}},
    ]  # fmt: skip
    vl.draw(
        {"height": HEIGHT, "layer": layers, "resolve": {"scale": {"y": "independent"}}},
        f"{found.title}. {found.message}", "Machines kept (bars)",
    )  # fmt: skip


def frontier(found: FrontierPicture) -> None:
    """Dollars a month against time per token: each dot the cheapest at its speed."""
    rows = [
        {"x": x, "y": y, "hardware": placement, "name": name}
        for x, y, placement, name in found.points
    ]
    x = vl.axis("x", "Time per further token, ms", axis={"grid": False, "tickCount": 6},
                scale={"type": "log", "nice": False})  # fmt: skip
    y = vl.axis("y", None, axis={"grid": False, "tickCount": 4, "format": "$~s"},
                scale={"type": "log"})  # fmt: skip
    at = {"x": x, "y": y}
    layers: list[Layer] = [
        {"data": {"values": rows}, "mark": {"type": "line", "interpolate": "step-before",
                                            "strokeWidth": 1.5, "color": vl.ink()},
         "encoding": at},
        {"data": {"values": rows},
         "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
         "encoding": {**at, **vl.coloured(),
                      "tooltip": [{"field": "name", "title": "Machines"},
                                  {"field": "x", "title": "ms a token", "format": ".3~r"},
                                  {"field": "y", "title": "USD a month", "format": "$,.0f"}]}},
        {"data": {"values": [{"x": found.own[0], "y": found.own[1]}]},
         "mark": {"type": "point", "size": 220, "strokeWidth": 2, "color": vl.ink()},
         "encoding": at},
        vl.word(*found.own, "the plan", at, align="left", dx=12, dy=-8, fontWeight="bold"),
    ]  # fmt: skip
    if found.target is not None:
        most = max(x for x, *_ in found.points)
        if found.target <= max(most, found.own[0]) * 1.5:
            layers += vl.marks([(found.target, "target")], x, found.target * 0.99)
    vl.draw({"height": HEIGHT + 40, "layer": layers}, f"{found.title}. {found.message}",
            "US dollars a month")  # fmt: skip
