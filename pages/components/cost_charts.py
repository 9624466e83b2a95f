"""The pictures of the costs page; the message of each is its title on the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from engine.costing.model import CostReport, DemandView, Way
from engine.costing.runs_axis import runs_axis
from engine.costing.wins import BEST_MIX, curve_label
from engine.report.currency import Currency
from engine.wording import number
from pages.components import layers as vl
from pages.components.charts import show
from pages.components.layers import Layer, ink, spread

HEIGHT = 300
# Ways keep their colours, those of the theme's order, on every picture of the page.
WAYS = [
    "on demand",
    "spot",
    "by the month",
    "reserved for 1 year",
    "reserved for 3 years",
    "owning",
    "capacity blocks",
]
DASHES = {
    "on demand": [1, 0],
    "spot": [2, 3],
    "by the month": [6, 3],
    "reserved for 1 year": [1, 0],
    "reserved for 3 years": [8, 3],
    "owning": [1, 0],
    "owning, colocation": [6, 3],
    "owning, own room": [6, 3],
    "capacity blocks": [1, 2],
}
BAND = {"strokeWidth": 9, "opacity": 0.3, "strokeCap": "round"}  # what follows other lines


def ranges(ways: Sequence[Way], currency: Currency) -> None:
    """Cost a month of each way: bar for the 80% interval, tick for the likely value."""
    rows = [
        {
            "way": way.label,
            "low": currency.of(way.headline.per_month.low),
            "likely": currency.of(way.headline.per_month.likely),
            "high": currency.of(way.headline.per_month.high),
            "text": f"{currency.money(way.headline.per_month.likely)} · {way.label}"
            + ("" if way.allowed else " · ruled out")
            + (" · other place" if way.elsewhere else ""),
            "allowed": way.allowed,
        }
        for way in ways
        if way.headline is not None
    ]
    colour = {
        "condition": {"test": "datum.allowed", "value": "#446bb3"},
        "value": "#8a93a1",
    }
    y = {"field": "way", "type": "nominal", "sort": None, "axis": None}
    x = {
        "field": "low",
        "type": "quantitative",
        "title": f"{currency.code} a month",
        "axis": {"labelExpr": _ticks(currency), "tickCount": 5, "grid": False, "domain": False},
        "scale": {"zero": True},
    }
    tips = [
        {"field": "way", "title": "Way"},
        *(
            {"field": f, "type": "quantitative", "title": f.capitalize(), "format": ",.0f"}
            for f in ("low", "likely", "high")
        ),
    ]
    spec: Layer = {
        "data": {"values": rows},
        "height": {"step": 50},
        "encoding": {"y": y, "tooltip": tips},
        "layer": [
            {
                "mark": {"type": "bar", "height": 8, "opacity": 0.45, "cornerRadius": 4,
                         "yOffset": 10},
                "encoding": {"x": x, "x2": {"field": "high"}, "color": colour},
            },
            {
                "mark": {"type": "tick", "thickness": 4, "size": 18, "yOffset": 10},
                "encoding": {"x": {**x, "field": "likely"}, "color": colour},
            },
            {
                "mark": {"type": "text", "align": "left", "dy": -10, "fontSize": 13, "color": ink(),
                         "limit": {"expr": "width"}},
                "encoding": {"x": {"value": 0}, "text": {"field": "text"}},
            },
        ],
    }  # fmt: skip
    told = "; ".join(
        f"{w.label} {currency.interval(w.headline.per_month)}" for w in ways if w.headline
    )
    show(spec, f"Cost a month with the range that holds in 8 of 10 cases: {told}")


def utilization(report: CostReport, currency: Currency) -> None:
    """Cost of a useful hour against utilization, the articles' marks and the plan's own use."""
    wins = report.wins
    last = {c.label: currency.of(c.end[1]) for c in wins.curves}
    if not last:
        return
    low, high = min(last.values()) * 0.6, max(last.values()) * 8
    x = vl.axis("x", "Share of the hours used, %", scale={"domain": [0, 100]},
                axis={"grid": False, "tickCount": 5})  # fmt: skip
    steps = [m * 10**e for e in range(-3, 7) for m in (1, 2, 5)]
    y = vl.axis("y", None, scale={"type": "log", "domain": [low, high], "nice": False},
                axis={"values": [v for v in steps if low <= v <= high], "grid": False,
                      "labelExpr": _ticks(currency)})  # fmt: skip
    at = {"x": x, "y": y}
    shares = [
        (m.value * 100, f"{m.value:.0%}")
        for m in wins.marks
        if m.id in ("mark_share_rent", "mark_share_on_premises", "mark_share_build")
    ]
    # The articles' marks stand low; the words of all three are in the caption.
    layers: list[Layer] = vl.marks(shares, x, 101, low=True)
    heights = [1 - math.log(max(v, low) / low) / math.log(high / low) for v in last.values()]
    placed = list(zip(wins.curves, spread(heights, 0.06), strict=True))
    for curve, height in sorted(placed, key=lambda pair: pair[0].label != BEST_MIX):
        points = [
            (u * 100, currency.of(usd))
            for u, usd in zip(curve.shares, curve.usd, strict=True)
            if 0 < currency.of(usd) <= high
        ]
        if curve.label == BEST_MIX:
            mark, colour = {"type": "line", "color": ink(), **BAND}, {}
        else:
            dash = {"strokeDash": DASHES[curve.label]}
            mark, colour = {"type": "line", "strokeWidth": 2.5, **dash}, _way_colour()
        layers += [
            {
                "data": {"values": vl.rows(points, way=_hue(curve.label))},
                "mark": mark,
                "encoding": {**at, **colour},
            },
            vl.at_height(100, curve.label, f"height * {height:.3f}", x, align="left", dx=6),
        ]
    rent = next((c for c in wins.curves if c.label == "on demand"), None)
    if rent is not None:
        reached = sorted(
            (p.value * 100, _at(rent.shares, rent.usd, p.value, currency))
            for _, p in wins.utilization
            if p.value is not None and p.value > 0
        )
        layers.append(vl.dot(reached, at, color=ink()))
        layers += [
            vl.word(v, usd, f"{v:.0f}%", at, align="center", dy=-12 if i % 2 else 14)
            for i, (v, usd) in enumerate(reached)
        ]
    use = wins.used_share
    side = {"align": "right", "dx": -5} if use > 0.6 else {"align": "left", "dx": 5}
    layers += [
        {
            "data": {"values": [{"x": use * 100}]},
            "mark": {"type": "rule", "strokeWidth": 2, "color": ink()},
            "encoding": {"x": x},
        },
        vl.at_height(use * 100, f"this plan: {use:.0%}", "8", x, fontSize=13, fontWeight="bold",
                     **side),
    ]  # fmt: skip
    text = f"Cost of a useful hour against the share of hours used. This plan uses {use:.0%}. " + (
        "; ".join(point.text for _, point in wins.utilization)
    )
    vl.draw(
        {"height": HEIGHT, "layer": layers}, text, f"{currency.code} for a useful hour of one",
    )  # fmt: skip


def runs(report: CostReport, currency: Currency) -> None:
    """What a month costs against the runs in it, with the articles' marks and the plan's own."""
    wins = report.wins
    if not wins.by_runs:
        return
    axis = runs_axis(wins)
    right, top = axis.right, currency.of(axis.top)
    marks = [(m.value, f"{m.value:g} runs") for m in axis.marks]
    x = vl.axis("x", "Runs a month", scale={"domain": [0, right], "nice": False},
                axis={"grid": False, "tickCount": 6})  # fmt: skip
    y = vl.axis("y", None, scale={"domain": [0, top]},
                axis={"tickCount": 5, "grid": False, "labelExpr": _ticks(currency)})  # fmt: skip
    layers: list[Layer] = vl.marks(marks, x, right * 0.8)
    lines = []
    for label, ((x0, y0), (x1, y1)) in wins.by_runs:
        far = min(x1, right)
        end = y0 + (y1 - y0) * far / x1
        if currency.of(end) > top:  # the line leaves through the top
            far *= top / currency.of(end)
            end = top / currency.per_usd
        lines.append((label, [(x0, currency.of(y0)), (far, currency.of(end))]))
    heights = spread([1 - points[-1][1] / top for _, points in lines], 0.07)
    for (name, points), height in zip(lines, heights, strict=True):
        layers += [
            {
                "data": {"values": vl.rows(points, way=_hue(name))},
                "mark": {"type": "line", "strokeWidth": 2.5, "strokeDash": DASHES[name]},
                "encoding": {"x": x, "y": y, **_way_colour()},
            },
            vl.at_height(points[-1][0], name, f"height * {height:.3f}", x, align="left", dx=6),
        ]  # fmt: skip
    layers += [
        {
            "data": {"values": [{"x": wins.runs_now}]},
            "mark": {"type": "rule", "strokeWidth": 2, "color": ink()},
            "encoding": {"x": x},
        },
        vl.at_height(
            wins.runs_now, f"this plan: {number(wins.runs_now)}", "height - 10", x,
            fontSize=13, fontWeight="bold", align="left", dx=5,
        ),
    ]  # fmt: skip
    told = "; ".join(f"{label}: {point.text}" for label, point in wins.runs)
    vl.draw(
        {"height": 260, "layer": layers}, f"Cost of a month against the runs in it. {told}",
        f"{currency.code} a month",
    )  # fmt: skip


def demand(view: DemandView) -> None:
    """Machines needed by the share of the hours, the busiest first, over those committed."""
    base = view.committed
    rows = [
        {"x": h * 100, "y": m, "base": min(m, base)}
        for h, m in zip(view.hours, view.machines, strict=True)
    ]
    x = vl.axis("x", "Share of the hours, the busiest first, %", scale={"domain": [0, 100]},
                axis={"grid": False, "tickCount": 5})  # fmt: skip
    y = vl.axis("y", None, scale={"zero": True}, axis={"tickCount": 4, "grid": False})
    # Steps share an x: stacked on one another, as areas are unless told, they would add up.
    y["stack"] = None
    layers: list[Layer] = [
        {
            "data": {"values": rows},
            "mark": {"type": "area", "interpolate": "step-after", "opacity": 0.35},
            "encoding": {"x": x, "y": y},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "area", "interpolate": "step-after", "opacity": 0.55},
            "encoding": {"x": x, "y": {**y, "field": "base"}},
        },
    ]
    if base:
        layers += [
            {
                "data": {"values": [{"y": base}]},
                "mark": {"type": "rule", "strokeWidth": 2, "strokeDash": [6, 4], "color": ink()},
                "encoding": {"y": y},
            },
            vl.word(100, base, f"{base} committed", {"x": x, "y": y}, align="right", dy=-8),
        ]
    vl.draw(
        {"height": 220, "layer": layers}, f"Demand against what is committed. {view.statement}",
        "Machines needed; above the line: rented",
    )  # fmt: skip


def cumulative(report: CostReport, ways: Sequence[Way], currency: Currency) -> None:
    """Money paid until the end of each month, by way, with the articles' mark and the computed."""
    shown = [w for w in ways if w.flow is not None and w.mix is None]
    if not shown:
        return
    x = vl.axis("x", "Month", scale={"domain": [0, report.months], "nice": False},
                axis={"grid": False, "tickMinStep": 1, "format": "d"})  # fmt: skip
    y = vl.axis("y", None, axis={"tickCount": 5, "grid": False, "labelExpr": _ticks(currency)})
    ends = [currency.of(float(w.flow.cumulative[-1])) for w in shown if w.flow is not None]
    top = max(max(ends), 1e-9)
    peaks = max(currency.of(float(w.flow.cumulative.max())) for w in shown if w.flow is not None)
    heights = spread([1 - max(e, 0) / max(top, peaks) for e in ends], 0.07)
    layers: list[Layer] = []
    for way, height in zip(shown, heights, strict=True):
        assert way.flow is not None
        points = [(0.0, 0.0)] + [
            (month + 1, currency.of(float(usd))) for month, usd in enumerate(way.flow.cumulative)
        ]
        label = curve_label(way)
        layers += [
            {
                "data": {"values": vl.rows(points, way=_hue(label))},
                "mark": {"type": "line", "strokeWidth": 2.5, "strokeDash": DASHES[label]},
                "encoding": {"x": x, "y": y, **_way_colour()},
            },
            vl.at_height(points[-1][0], label, f"height * {height:.3f}", x, align="left", dx=6),
        ]
    marks = [(m.value, f"{m.value:g} months") for m in report.wins.marks
             if m.id == "mark_months_stable" and m.value <= report.months]  # fmt: skip
    at = report.wins.months
    if at is not None and at.value is not None and at.value <= report.months:
        marks.append((at.value, f"owning pays from {at.value:.0f} on"))
    layers += vl.marks(marks, x, report.months * 0.7, low=True)
    vl.draw(
        {"height": HEIGHT, "layer": layers},
        "Money paid until the end of each month: "
        + "; ".join(f"{w.label} {currency.money(float(w.flow.total))}" for w in shown if w.flow),
        f"{currency.code} paid until then",
    )


def _hue(label: str) -> str:
    """The way whose colour a line has: both places of a purchase share theirs."""
    return label.partition(",")[0]


def _way_colour() -> dict[str, Any]:
    scale = {"domain": WAYS}
    return {"color": {"field": "way", "type": "nominal", "scale": scale, "legend": None}}


def _at(shares: Sequence[float], usd: Sequence[float], share: float, currency: Currency) -> float:
    """The height of a curve at the nearest share that is drawn."""
    nearest = min(range(len(shares)), key=lambda i: abs(shares[i] - share))
    return currency.of(usd[nearest])


def _ticks(currency: Currency) -> str:
    """An expression for the labels of a money axis."""
    sign = currency.sign.replace("'", "")
    # Prefixes below one are no money: $500m would read as millions.
    small = "format(datum.value, '~r')"
    return (
        f"!datum.value ? '{sign}0' : '{sign}' + "
        f"(abs(datum.value) < 1 ? {small} : format(datum.value, '~s'))"
    )
