"""The pictures of the report as Vega-Lite specifications, and their way to SVG.

Each function returns a plain dictionary that a page can draw as well. One message each; a
placement has the same colour everywhere, that of the app's light theme.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.assessment import Option
from engine.report import words
from engine.report.currency import Currency

FONTS = Path(__file__).resolve().parents[2] / "data" / "fonts"

# The first four chart colours of `.streamlit/config.toml`; a test holds them equal.
PLACEMENT_COLOURS: dict[str, str] = {
    "GPU": "#1b3f87",
    "CPU": "#b8480f",
    "Hybrid": "#2a9a87",
    "One machine": "#a443b8",
}
# Criteria are no placements: shades of the theme's scales, in the order of the criteria.
CRITERION_COLOURS = ("#16316b", "#30569f", "#5c82c4", "#97b2de", "#d97540", "#eea67f")
# Ways to pay are none either: the same shades, those side by side far apart.
WAY_COLOURS = ("#16316b", "#d97540", "#5c82c4", "#8f3406", "#30569f", "#97b2de")
LABEL_HEIGHT = 11.0  # points between labels at the ends of lines
INK, QUIET, RULE = "#10161f", "#5c6470", "#d5dbe5"
WIDTH = 505  # points across the text of the page, labels of the axis included
LABELS = 250
MOST_OPTIONS = 8
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
CONFIG: dict[str, Any] = {
    "font": "Noto Sans",
    "background": "transparent",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": QUIET,
        "titleFontWeight": "normal",
        "gridColor": RULE,
        "domain": False,
        "ticks": False,
        "labelFontSize": 10,
        "titleFontSize": 10,
        "labelPadding": 6,
    },
    "axisX": {"labelFlush": False},
    "legend": {
        "labelColor": INK,
        "labelFontSize": 10,
        "title": None,
        "orient": "bottom",
        "offset": 8,
        "symbolType": "square",
        "symbolOpacity": 1,
        "symbolStrokeWidth": 0,
    },
}
USD = Currency()
_USD = "datum.value ? format(datum.value, '$~s') : '$0'"


def cost_chart(options: Sequence[Option]) -> dict[str, Any]:
    """Cost a month of each option: bar for the 80% interval, tick and figure for the likely."""
    data: list[dict[str, Any]] = [
        {
            "option": _name(rank, option),
            "placement": words.placement(option),
            "low": option.usd_per_month.low,
            "likely": option.usd_per_month.likely,
            "high": option.usd_per_month.high,
            "text": words.money(option.usd_per_month.likely) + _barred(option),
        }
        for rank, option in _shown(options)
    ]
    scale = {"domain": list(PLACEMENT_COLOURS), "range": list(PLACEMENT_COLOURS.values())}
    colour = {"field": "placement", "type": "nominal", "scale": scale, "legend": _used(data)}
    # Space at the right for the figure beside the longest bar.
    top = 1.3 * max((o.usd_per_month.high for _, o in _shown(options)), default=1.0)
    x = {"type": "quantitative", "scale": {"domain": [0, top], "nice": False}}
    axis = {"labelExpr": _USD, "tickCount": 5, "grid": True}
    return _spec(
        data,
        [
            {
                "mark": {"type": "bar", "height": 12, "opacity": 0.42, "cornerRadius": 2},
                "encoding": {
                    "x": {"field": "low", **x, "title": "USD a month", "axis": axis},
                    "x2": {"field": "high"},
                    "color": colour,
                },
            },
            {
                "mark": {"type": "tick", "thickness": 3, "size": 16},
                "encoding": {"x": {"field": "likely", **x}, "color": colour},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 6, "fontSize": 10, "color": INK},
                "encoding": {"x": {"field": "high", **x}, "text": {"field": "text"}},
            },
        ],
    )


def score_chart(options: Sequence[Option]) -> dict[str, Any]:
    """What each criterion adds to the score of each option, of 100 points."""
    data = [
        {
            "option": _name(rank, option),
            "criterion": c.title,
            "order": order,
            "points": c.points * 100,
        }
        for rank, option in _shown(options)
        for order, c in enumerate(option.contributions)
    ]
    totals = [
        {
            "option": _name(rank, o),
            "score": o.score * 100,
            "text": f"{o.score * 100:.0f}{_barred(o)}",
        }
        for rank, o in _shown(options)
    ]
    titles = list(dict.fromkeys(str(row["criterion"]) for row in data))
    colours = [CRITERION_COLOURS[i % len(CRITERION_COLOURS)] for i in range(len(titles))]
    x = {"type": "quantitative", "scale": {"domain": [0, 112], "nice": False}}
    axis = {"values": [0, 20, 40, 60, 80, 100], "grid": True}
    return _spec(
        data,
        [
            {
                "mark": {"type": "bar", "height": 14, "stroke": "white", "strokeWidth": 0.8},
                "encoding": {
                    "x": {
                        "field": "points",
                        **x,
                        "stack": "zero",
                        "title": "Points of 100",
                        "axis": axis,
                    },
                    "color": {
                        "field": "criterion",
                        "type": "nominal",
                        "scale": {"domain": titles, "range": colours},
                        "legend": {"columns": 3},
                    },
                    "order": {"field": "order"},
                },
            },
            {
                "data": {"values": totals},
                "mark": {"type": "text", "align": "left", "dx": 5, "fontSize": 10, "color": INK},
                "encoding": {"x": {"field": "score", **x}, "text": {"field": "text"}},
            },
        ],
    )


def shares_chart(shares: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """On which resource the time goes, the largest first."""
    data = [
        {
            "option": name.replace("_", " ").capitalize(),
            "share": share * 100,
            "text": words.percent(share),
        }
        for name, share in sorted(shares, key=lambda pair: -pair[1])
    ]
    x = {"type": "quantitative", "scale": {"domain": [0, 100], "nice": False}}
    return _spec(
        data,
        [
            {
                "mark": {"type": "bar", "height": 11, "color": "#5c82c4", "cornerRadiusEnd": 2},
                "encoding": {"x": {"field": "share", **x, "axis": None}},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 5, "fontSize": 10, "color": INK},
                "encoding": {"x": {"field": "share", **x}, "text": {"field": "text"}},
            },
        ],
        step=17,
    )


def utilization_chart(
    shares_of_hours: Sequence[float],
    usd_per_useful_hour: Mapping[str, Sequence[float]],
    now: float | None = None,
    currency: Currency = USD,
    height: int = 170,
    marks: Sequence[float] = (),
) -> dict[str, Any]:
    """Cost of a useful hour against the share of the hours that are useful, a line for each way.

    shares_of_hours : 0 to 1, ascending
    usd_per_useful_hour : costs by the name of the way to pay, as many as there are shares
    now : the job's own share, marked in the picture
    currency : in which the costs are shown
    marks : shares that the articles name, drawn beside the crossings
    """
    data: list[dict[str, Any]] = [
        {
            "use": float(share) * 100,
            "usd": currency.of(float(usd)),
            "way": way,
            "last": False,
        }
        for way, costs in usd_per_useful_hour.items()
        for share, usd in zip(shares_of_hours, costs, strict=True)
        if usd > 0 and math.isfinite(usd)  # the scale is logarithmic, and no use costs infinity
    ]
    ticks = _log_ticks([float(row["usd"]) for row in data])
    ways = list(usd_per_useful_hour)
    colours = [WAY_COLOURS[i % len(WAY_COLOURS)] for i in range(len(ways))]
    ends = list({row["way"]: row for row in data}.values())  # the last of each that is drawn
    for row in ends:
        row["last"] = True
    for row, place in zip(ends, _apart([row["usd"] for row in ends], ticks, height), strict=True):
        row["place"] = place
    x = {
        "field": "use",
        "type": "quantitative",
        "scale": {"domain": [0, 100]},
        "title": "Useful share of the hours, %",
        "axis": {"grid": False, "tickCount": 5},
    }
    y = {
        "field": "usd",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [ticks[0], ticks[-1]], "nice": False},
        "title": f"{currency.code} for a useful hour",
        "axis": {"values": ticks, "labelExpr": f"'{currency.sign}' + format(datum.value, ',~r')"},
    }
    colour = {"field": "way", "type": "nominal", "scale": {"domain": ways, "range": colours}}
    encoding = {"x": x, "y": y, "color": {**colour, "legend": None}}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "line", "strokeWidth": 2.2}, "encoding": encoding},
        {
            "transform": [{"filter": "datum.last"}],
            "mark": {"type": "text", "align": "left", "dx": 6, "fontSize": 10},
            "encoding": {
                **encoding,
                "y": {"field": "place", "type": "quantitative", "scale": None},
                "text": {"field": "way"},
            },
        },
    ]
    for share in marks:
        at = {"x": {"datum": float(share) * 100}}
        rule = {"type": "rule", "color": QUIET, "strokeWidth": 0.8, "strokeDash": [1, 3]}
        label_at = {"type": "text", "align": "left", "dx": 2, "y": height - 6}
        layers += [
            {"data": {"values": [{}]}, "mark": rule, "encoding": at},
            {
                "data": {"values": [{}]},
                "mark": {**label_at, "fontSize": 8, "color": QUIET},
                "encoding": {**at, "text": {"value": words.percent(share)}},
            },
        ]
    if now is not None:
        mark = {"x": {"datum": float(now) * 100}}
        label = {"value": f"your job: {words.percent(now)}"}
        layers += [
            {
                "data": {"values": [{}]},
                "mark": {"type": "rule", "color": QUIET, "strokeDash": [3, 3]},
                "encoding": mark,
            },
            {
                "data": {"values": [{}]},
                "mark": {
                    "type": "text",
                    "align": "left" if now < 0.7 else "right",
                    "dx": 4 if now < 0.7 else -4,
                    "y": 6,
                    "fontSize": 10,
                },
                "encoding": {**mark, "text": label},
            },
        ]
    return {
        "$schema": SCHEMA,
        "width": WIDTH - 170,
        "height": height,
        "data": {"values": data},
        "layer": layers,
        "config": CONFIG,
    }


def to_svg(spec: dict[str, Any]) -> str:
    """A specification as an SVG of lines and text, never a bitmap.

    Raises
    ------
    ValueError : when the specification can't be drawn
    """
    converter = _converter()
    svg: str = converter.vegalite_to_svg(json.dumps(spec))
    return svg


@lru_cache(maxsize=1)
def _converter() -> Any:
    """The converter, which knows the report's fonts, so that labels keep their place."""
    import vl_convert

    vl_convert.register_font_directory(str(FONTS))
    return vl_convert


def _apart(values: Sequence[float], ticks: Sequence[float], height: int) -> list[float]:
    """Places of labels at the ends of lines, from the top in points, so that none hides another."""
    top, bottom = math.log(ticks[-1]), math.log(ticks[0])
    order = sorted(range(len(values)), key=lambda i: -values[i])
    places = [height * (top - math.log(values[i])) / (top - bottom) for i in order]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + LABEL_HEIGHT)
    over = max(0.0, places[-1] - height) if places else 0.0
    for i in range(len(places) - 1, -1, -1):  # what was pushed below the picture goes up again
        limit = places[i + 1] - LABEL_HEIGHT if i + 1 < len(places) else height
        places[i] = min(places[i], limit) if over else places[i]
    found = [0.0] * len(values)
    for i, place in zip(order, places, strict=True):
        found[i] = place
    return found


def _log_ticks(values: Sequence[float]) -> list[float]:
    """The steps 1, 2, 5, 10, ... around the values; at least two."""
    low, high = min(values, default=1.0), max(values, default=1.0)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 2)
    steps = [round(m * 10.0**d, 12) for d in decades for m in (1, 2, 5)]
    first = max(i for i, step in enumerate(steps) if step <= low)
    last = next(i for i, step in enumerate(steps) if step >= high and i > first)
    return steps[first : last + 1]


def _shown(options: Sequence[Option]) -> list[tuple[int, Option]]:
    """The options that a chart shows, with their ranks: allowed ones before those ruled out."""
    ranked = list(enumerate(options, 1))
    return sorted(ranked, key=lambda pair: bool(pair[1].vetoes))[:MOST_OPTIONS]


def _name(rank: int, option: Option) -> str:
    return f"{rank}. {words.one_line(option.label)}"


def _barred(option: Option) -> str:
    return " (ruled out)" if option.vetoes else ""


def _used(data: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A legend with the placements that occur."""
    return {"values": [p for p in PLACEMENT_COLOURS if any(row["placement"] == p for row in data)]}


def _spec(
    data: list[dict[str, Any]], layers: list[dict[str, Any]], step: int = 24
) -> dict[str, Any]:
    """Layers over the options from top to bottom, named at the left."""
    y = {
        "field": "option",
        "type": "nominal",
        "sort": list(dict.fromkeys(row["option"] for row in data)),
        "title": None,
        "axis": {
            "labelLimit": LABELS - 6,
            "labelFontSize": 9.5,
            "grid": False,
            "minExtent": LABELS,
            "maxExtent": LABELS,
        },
    }
    for layer in layers:
        layer["encoding"]["y"] = y
    return {
        "$schema": SCHEMA,
        "width": WIDTH - LABELS,
        "height": {"step": step},
        "data": {"values": data},
        "layer": layers,
        "config": CONFIG,
    }
