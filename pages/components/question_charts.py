"""The pictures of the four questions, as Vega-Lite specifications; the message is the title.

Colours come from the theme: placements have its first four, in the order of `charts.PLACEMENTS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.explain.curves import (
    CrossoverPicture,
    Picture,
    Roof,
    TimeShare,
    WayToPay,
)
from pages.components.charts import PLACEMENTS, show

HEIGHT = 280
GREY = "gray"
PLACE = {"field": "hardware", "type": "nominal", "scale": {"domain": PLACEMENTS}, "legend": None}


def _x(title: str, **more: Any) -> dict[str, Any]:
    return {"field": "x", "type": "quantitative", "title": title, **more}


def _y(title: str, **more: Any) -> dict[str, Any]:
    del title  # stands above the chart
    return {"field": "y", "type": "quantitative", "title": None, **more}


def _titled(spec: dict[str, Any], y_title: str) -> dict[str, Any]:
    """The same with the title of the y axis above the chart, where it can be read."""
    words = {"text": y_title, "anchor": "start", "fontSize": 12, "fontWeight": "normal",
             "color": GREY, "offset": 12}  # fmt: skip
    return {"title": words, "padding": {"right": 24}, **spec}


def _points(points: Sequence[tuple[float, float]]) -> list[dict[str, Any]]:
    return [{"x": x, "y": y} for x, y in points]


def _rules(marks: Sequence[tuple[float, str]], title: str = "", log: bool = False) -> list[Any]:
    """Vertical lines with their words at the top."""
    # Words of a mark near the right edge of a percent axis stand to its left.
    data = [{"x": x, "text": text, "right": not log and 75 < x <= 100} for x, text in marks]
    scale = {"scale": {"type": "log"}} if log else {}
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": data},
            "mark": {"type": "rule", "strokeDash": [4, 4], "color": GREY},
            "encoding": {"x": _x(title, **scale)},
        }
    ]
    for i, row in enumerate(data):
        layers.append(
            {
                "data": {"values": [row]},
                "mark": {
                    "type": "text", "align": "left", "dx": 4, "fontSize": 12, "color": GREY,
                    "y": 8 + 15 * (i % 5),
                },
                "encoding": {"x": _x(title, **scale), "text": {"field": "text"}},
            }
        )  # fmt: skip
    return layers


def time_shares(shares: Sequence[TimeShare]) -> None:
    """One bar of the whole time, a part a resource, the largest first."""
    data = [
        {"title": s.title, "share": s.share * 100, "row": i, "label": f"{s.title} {s.share:.0%}",
         "largest": s.largest}
        for i, s in enumerate(shares)
    ]  # fmt: skip
    spec = {
        "height": {"step": 34},
        "data": {"values": data},
        "encoding": {
            "y": {"field": "title", "type": "nominal", "sort": None, "axis": None},
            "x": {"field": "share", "type": "quantitative", "title": "Share of the time, %",
                  "scale": {"domain": [0, 100]}, "axis": {"grid": False, "tickCount": 5}},
        },
        "layer": [
            {
                "mark": {"type": "bar", "height": 20, "cornerRadius": 3},
                "encoding": {"opacity": {"condition": {"test": "datum.largest", "value": 1},
                                         "value": 0.45}},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 6, "fontSize": 13, "color": GREY},
                "encoding": {"text": {"field": "label"}},
            },
        ],
    }  # fmt: skip
    words = ", ".join(f"{s.title} {s.share:.0%}" for s in shares)
    show(spec, f"Share of the time by resource: {words}.")


def roofline(roofs: Sequence[Roof], band: tuple[float, float, float]) -> None:
    """Attainable rate over arithmetic intensity for each machine, with the job's own band."""
    xs = [10 ** (i / 10) for i in range(-20, 36)]
    lines = []
    for roof in roofs:
        ys = roof.line(xs)
        lines += [
            {"x": x, "y": y, "name": roof.name, "hardware": roof.hardware}
            for x, y in zip(xs, ys, strict=True)
        ]
    log: dict[str, Any] = {"scale": {"type": "log"}, "axis": {"grid": False, "tickCount": 5}}
    x = _x("Arithmetic per byte of memory traffic, FLOP/byte", **log)
    y = _y("Attainable, GFLOP/s", **log)
    low, middle, high = band
    names = [r.name for r in roofs]
    legend = {"orient": "bottom", "title": None, "columns": 1, "labelLimit": 300}
    by_name = {"field": "name", "type": "nominal", "sort": names, "legend": legend}
    spec = {
        "height": HEIGHT + 100,
        "layer": [
            {
                "data": {"values": [{"x": low, "x2": high}]},
                "mark": {"type": "rect", "opacity": 0.15, "color": GREY},
                "encoding": {"x": x, "x2": {"field": "x2"}},
            },
            {
                "data": {"values": [{"x": middle, "text": "this kind of work"}]},
                "mark": {"type": "text", "y": 10, "fontSize": 12, "color": GREY},
                "encoding": {"x": x, "text": {"field": "text"}},
            },
            {
                "data": {"values": lines},
                "mark": {"type": "line", "strokeWidth": 2.5},
                "encoding": {"x": x, "y": y, "strokeDash": by_name, "color": PLACE},
            },
        ],
    }
    words = "; ".join(
        f"{r.name}: {r.peak_gflops:,.0f} GFLOP/s from {r.ridge:,.0f} FLOP/byte on" for r in roofs
    )
    spec = _titled(spec, "Attainable, GFLOP/s")
    show(spec, f"Roofline. {words}. This kind of work does {low:g} to {high:g} FLOP a byte.")


def picture(p: Picture) -> None:
    """A living figure of question 2."""
    scale: dict[str, Any] = {"type": "log"} if p.log_x else {}
    axis = {"grid": False, "tickCount": 6, "format": "~r"}
    x = _x(p.x_title, axis=axis, scale=scale)
    y = _y(p.y_title, axis={"tickCount": 5, "format": "~s"})
    spec = {
        "height": HEIGHT,
        "layer": [
            {
                "data": {"values": _points(p.points)},
                "mark": {"type": "line", "strokeWidth": 2.5, "point": len(p.points) < 12},
                "encoding": {"x": x, "y": y},
            },
            *(_rules(p.marks, p.x_title, p.log_x) if p.marks else []),
        ],
    }
    show(_titled(spec, p.y_title), f"{p.title}. {p.message}")


def remedies(asks: Mapping[str, Sequence[str]], columns: Sequence[str], chosen: str) -> None:
    """Which failure asks for what; the chosen one is lit."""
    data = [
        {"mode": mode, "remedy": remedy, "lit": mode == chosen}
        for mode, wanted in asks.items()
        for remedy in wanted
    ]
    spec = {
        "height": {"step": 30},
        "data": {"values": data},
        "mark": {"type": "circle", "size": 220},
        "encoding": {
            "x": {"field": "remedy", "type": "nominal", "sort": list(columns), "title": None,
                  "axis": {"orient": "top", "labelAngle": -90, "labelOverlap": False,
                           "domain": False, "ticks": False}},
            "y": {"field": "mode", "type": "nominal", "sort": list(asks), "title": None,
                  "axis": {"labelLimit": 260, "domain": False, "ticks": False, "grid": True}},
            "opacity": {"condition": {"test": "datum.lit", "value": 1}, "value": 0.3},
        },
    }  # fmt: skip
    words = "; ".join(f"{mode}: {', '.join(wanted)}" for mode, wanted in asks.items())
    show(spec, f"What each failure asks of the architecture. {words}.")


def speedup(
    curve: Sequence[tuple[float, float]],
    band: tuple[Sequence[tuple[float, float]], Sequence[tuple[float, float]]] | None,
    fitted: Sequence[tuple[float, float]],
    measured: Sequence[tuple[float, float]],
    text: str,
) -> None:
    """Speed-up against machines: Amdahl with its range, the fitted law, the measured points."""
    axis = {"grid": False, "tickCount": 6, "format": "~r"}
    x = _x("Machines", scale={"type": "log", "base": 2}, axis=axis)
    y = _y("Times as fast as one", scale={"type": "log", "base": 2}, axis=axis)
    layers: list[dict[str, Any]] = []
    if band is not None:
        low, high = band
        area = [{"x": n, "y": a, "y2": b} for (n, a), (_, b) in zip(low, high, strict=True)]
        layers.append(
            {
                "data": {"values": area},
                "mark": {"type": "area", "opacity": 0.2},
                "encoding": {"x": x, "y": y, "y2": {"field": "y2"}},
            }
        )
    layers.append(
        {
            "data": {"values": _points(curve)},
            "mark": {"type": "line", "strokeWidth": 2.5},
            "encoding": {"x": x, "y": y},
        }
    )
    if fitted:
        layers.append(
            {
                "data": {"values": _points(fitted)},
                "mark": {"type": "line", "strokeWidth": 2, "strokeDash": [6, 4], "color": GREY},
                "encoding": {"x": x, "y": y},
            }
        )
    if measured:
        layers.append(
            {
                "data": {"values": _points(measured)},
                "mark": {"type": "point", "filled": True, "size": 90, "color": GREY},
                "encoding": {"x": x, "y": y},
            }
        )
    show(_titled({"height": HEIGHT, "layer": layers}, "Times as fast as one machine"), text)


def crossover(c: CrossoverPicture, article_at: float, now: float) -> None:
    """Cost of the work on the GPU over that on the server, against the parallel fraction."""
    axis = {"grid": False, "tickCount": 5, "format": "~r"}
    x = _x("Parallelizable fraction, %", scale={"domain": [0, 100]}, axis=axis)
    y = _y("Cost on the GPU, CPU server = 1", scale={"type": "log"},
           axis={"tickCount": 4, "format": "~r", "grid": False})  # fmt: skip
    points = [{"x": p * 100, "y": cost} for p, cost in c.points]
    marks = [(article_at * 100, "000: 70%"), (now * 100, "your answer")]
    if 0 < c.at < 1:
        marks.insert(0, (c.at * 100, f"cheaper from {c.at:.0%} on"))
    spec = {
        "height": HEIGHT,
        "layer": [
            {
                "data": {"values": [{"y": 1}]},
                "mark": {"type": "rule", "color": GREY},
                "encoding": {"y": y},
            },
            {
                "data": {"values": points},
                "mark": {"type": "line", "strokeWidth": 2.5},
                "encoding": {"x": x, "y": y},
            },
            *_rules(marks),
        ],
    }
    spec = _titled(spec, "Cost of the work on the GPU; on the CPU server it is 1")
    show(spec, f"Cost of the work on the GPU against the CPU server. {c.message}")


def ways(
    found: Sequence[WayToPay], use: float, marks: Sequence[tuple[float, str]], text: str
) -> None:
    """Cost of a useful hour against utilization, a line for each way to pay."""
    lines = [{"x": u * 100, "y": usd, "way": way.label} for way in found for u, usd in way.points]
    ends = [{"x": 100, "y": way.points[-1][1], "way": way.label} for way in found if way.points]
    axis = {"grid": False, "tickCount": 5}
    x = _x("Useful share of the hours, %", scale={"domain": [0, 100]}, axis=axis)
    y = _y(
        "USD for a useful hour",
        scale={"type": "log"},
        axis={"tickCount": 5, "format": "$~r", "grid": False},
    )
    colour = {"field": "way", "type": "nominal", "sort": [w.label for w in found],
              "legend": {"orient": "bottom", "title": None, "columns": 3}}  # fmt: skip
    spec = {
        "height": HEIGHT + 60,
        "layer": [
            {
                "data": {"values": lines},
                "mark": {"type": "line", "strokeWidth": 2.5},
                "encoding": {"x": x, "y": y, "color": colour},
            },
            {
                "data": {"values": ends},
                "mark": {"type": "point", "filled": True, "size": 50},
                "encoding": {"x": x, "y": y, "color": colour},
            },
            {
                "data": {"values": [{"x": use * 100}]},
                "mark": {"type": "rule", "strokeWidth": 2, "color": GREY},
                "encoding": {"x": x},
            },
            *_rules([(m * 100, t) for m, t in marks]),
        ],
    }
    show(_titled(spec, "USD for a useful hour"), text)


def demand(months: Sequence[float], level: float, text: str) -> None:
    """Demand by month against the capacity that is worth committing to."""
    data = [{"x": i + 1, "y": v} for i, v in enumerate(months)]
    x = {"field": "x", "type": "ordinal", "title": "Month", "axis": {"labelAngle": 0}}
    y = _y("Demand, mean month = 100", axis={"tickCount": 4})
    spec = {
        "height": 200,
        "layer": [
            {
                "data": {"values": data},
                "mark": {"type": "bar", "opacity": 0.6, "cornerRadiusEnd": 3},
                "encoding": {"x": x, "y": y},
            },
            {
                "data": {"values": [{"y": level}]},
                "mark": {"type": "rule", "strokeWidth": 2, "strokeDash": [6, 4], "color": GREY},
                "encoding": {"y": y},
            },
        ],
    }
    show(_titled(spec, "Demand, the mean month is 100"), text)
