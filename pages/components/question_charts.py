"""The pictures of the four questions, as Vega-Lite specifications; the message is the page's title.

Colours come from the theme: placements have its first four, in the order of `charts.PLACEMENTS`.
Labels stand at the marks; where lines end close to each other they are spread over the height.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from engine.assessment import PLACEMENT_LABELS, Assessment
from engine.explain.curves.bottleneck import GpuCeiling, Roof, TimeShare
from engine.explain.curves.failure import Picture
from engine.explain.curves.fraction import CrossoverPicture, TimingReading
from engine.explain.curves.own import own_answers, rules_at
from engine.explain.curves.utilization import Commitment, WayToPay
from engine.explain.faq import answers_for
from pages.components import labels
from pages.components import layers as vl
from pages.components.backing import AGREES
from pages.components.layers import Layer, Points, ink, spread

HEIGHT = 280


# --- question 1


def time_shares(shares: Sequence[TimeShare], gpu: GpuCeiling) -> None:
    """The whole time as steps, a resource each, and under it what a GPU leaves of it.

    In the colour of GPUs what they can shorten, in grey what they can't.
    """
    rows, start = [], 0.0
    for s in shares:
        note = " · no GPU shortens it" if s.io else ""
        rows.append(_step(s.title, start, s.share, s.io, f"{s.title} {s.share:.0%}{note}"))
        start += s.share
    computed = gpu.serial + gpu.parallel
    left = f"Left on a GPU {gpu.io + computed:.0%}"
    rows.append(_step(left, 0, gpu.io, True, left))
    rows.append(_step(left, gpu.io, computed, False, ""))
    x = vl.axis("x", "Share of the time, %", scale={"domain": [0, 100]},
              axis={"grid": False, "tickCount": 5})  # fmt: skip
    bar = {"type": "bar", "height": 12, "cornerRadius": 2, "yOffset": 9}
    spec = {
        "height": {"step": 38},
        "data": {"values": rows},
        "encoding": {"y": {"field": "row", "type": "nominal", "axis": None,
                           "sort": [r["row"] for r in rows]}},
        "layer": [
            {
                "transform": [{"filter": "!datum.io"}],
                "mark": bar,
                "encoding": {"x": x, "x2": {"field": "x2"}, **vl.coloured()},
            },
            {
                "transform": [{"filter": "datum.io"}],
                "mark": {**bar, "color": ink()},
                "encoding": {"x": x, "x2": {"field": "x2"}},
            },
            {
                "mark": {"type": "text", "align": "left", "dy": -7, "fontSize": 13,
                         "color": ink()},
                "encoding": {"x": {"value": 0}, "text": {"field": "label"}},
            },
        ],
    }  # fmt: skip
    words = ", ".join(f"{s.title} {s.share:.0%}" for s in shares)
    vl.draw(spec, f"Share of the time by resource: {words}. {left}.")


def _step(row: str, start: float, share: float, io: bool, label: str) -> dict[str, Any]:
    return {"row": row, "x": start * 100, "x2": (start + share) * 100, "io": io, "label": label,
            "hardware": "GPU"}  # fmt: skip


def roofline(roofs: Sequence[Roof], band: tuple[float, float, float]) -> None:
    """Attainable rate over arithmetic intensity for each machine, with the job's own band."""
    edge, bottom = 10_000.0, 1e9
    xs = [10 ** (i / 10) for i in range(-20, 41)]
    x = vl.axis("x", "FLOP per byte of memory traffic",
              scale={"type": "log", "domain": [0.01, edge]},
              axis={"grid": False, "values": [0.01, 1, 100, edge], "format": ",~r"})  # fmt: skip
    top = max(r.peak_gflops for r in roofs) * 2e9
    y = vl.axis("y", None, scale={"type": "log", "domain": [bottom, top], "nice": False},
              axis={"grid": False, "values": [1e9, 1e12, 1e15], "format": "~s"})  # fmt: skip
    low, middle, high = band
    layers: list[Layer] = [
        {
            "data": {"values": [{"x": low, "x2": high}]},
            "mark": {"type": "rect", "opacity": 0.15, "color": ink()},
            "encoding": {"x": x, "x2": {"field": "x2"}},
        },
        vl.at_height(middle, "this kind of work", "height - 8", x),
    ]
    wanted = [1 - math.log(r.peak_gflops * 1e9 / bottom) / math.log(top / bottom) for r in roofs]
    for roof, at_height in zip(roofs, spread(wanted, 0.06), strict=True):
        at = {"x": x, "y": y}
        values = vl.rows(
            [(v, g * 1e9) for v, g in zip(xs, roof.line(xs), strict=True)], hardware=roof.hardware
        )
        ridge = vl.rows([(roof.ridge, roof.peak_gflops * 1e9)], hardware=roof.hardware)
        layers += [
            {"data": {"values": values}, "mark": {"type": "line", "strokeWidth": 2.5},
             "encoding": {**at, **vl.coloured()}},
            {"data": {"values": ridge},
             "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
             "encoding": {**at, **vl.coloured()}},
            vl.at_height(edge, roof.name, f"height * {at_height:.3f}", x, align="left", dx=6),
        ]  # fmt: skip
    words = "; ".join(
        f"{r.name}: {r.peak_gflops:,.0f} GFLOP/s from {r.ridge:,.0f} FLOP/byte on" for r in roofs
    )
    vl.draw(
        {"height": HEIGHT + 80, "layer": layers},
        f"Roofline. {words}. This kind of work does {low:g} to {high:g} FLOP a byte.",
        "Attainable FLOP/s; each dot is a ridge",
    )


# --- question 2


SIDES: dict[str, dict[str, Any]] = {
    "left": {"align": "right", "dx": -6, "dy": -8},
    "right": {"align": "left", "dx": 8, "dy": -6},
    "under": {"align": "right", "dx": -6, "dy": 14},
    "below": {"align": "center", "dy": 16},
}


def picture(p: Picture) -> None:
    """A living figure of question 2: lines with their names, or bars with their words."""
    alt = f"{p.title}. {p.message}"
    if p.bars:
        _bars(p)
        return
    first = p.lines[0].points
    ticks: Layer = {"tickCount": 5, "format": "~r"}
    if len(first) < 6:
        ticks = {"values": [x for x, _ in first], "format": "~r", "labelOverlap": False}
    x = vl.axis("x", p.x_title, axis={"grid": False, **ticks},
              scale={"type": "log"} if p.log_x else {"nice": False})  # fmt: skip
    whole = "datum.value ? format(datum.value, '~s') : '0'"
    y_axis: Layer = {"tickCount": 4, "labelExpr": whole, "grid": False}
    if p.y_ticks:
        cases = " : ".join(f"datum.value == {v!r} ? '{text}'" for v, text in p.y_ticks)
        y_axis = {"values": [v for v, _ in p.y_ticks], "labelExpr": f"{cases} : ''", "grid": True}
    scale: Layer = {"type": "log"} if p.log_y else {"zero": p.zero_y}
    at = {"x": x, "y": vl.axis("y", None, axis=y_axis, scale=scale)}
    layers: list[Layer] = []
    for i, line in enumerate(p.lines):
        dash = {} if i == 0 else {"strokeDash": [6, 3 * i], "color": ink()}
        layers.append(vl.line(line.points, at, point=len(line.points) < 6, **dash))
        if len(p.lines) > 1:
            where = line.points[line.label_at]
            layers.append(vl.word(*where, line.label, at, **SIDES[line.side]))
    far = first[-1][0] * (0.3 if p.log_x else 0.6)
    layers += vl.marks(p.marks, x, far, low=p.low_marks)
    vl.draw({"height": HEIGHT, "layer": layers}, alt, p.y_title)


def _bars(p: Picture) -> None:
    rows = [{"name": n, "x": v, "label": f"{n}: {words}"} for n, v, words in p.bars]
    spec = {
        "height": {"step": 46},
        "data": {"values": rows},
        "encoding": {"y": {"field": "name", "type": "nominal", "sort": None, "axis": None}},
        "layer": [
            {
                "mark": {"type": "bar", "height": 14, "cornerRadius": 2, "yOffset": 9},
                "encoding": {"x": vl.axis("x", p.x_title, stack=None, scale={"type": "symlog"},
                                        axis={"grid": False, "values": [0, 1, 15, 60, 1440]})},
            },
            {
                "mark": {"type": "text", "align": "left", "dy": -9, "fontSize": 13,
                         "color": ink()},
                "encoding": {"x": {"value": 0}, "text": {"field": "label"}},
            },
        ],
    }  # fmt: skip
    vl.draw(spec, f"{p.title}. {p.message}")


def remedies(asks: Mapping[str, Sequence[str]], columns: Sequence[str], chosen: str) -> None:
    """Which failure asks for what; the chosen one is lit."""
    rows = [
        {"mode": mode, "remedy": remedy, "lit": mode == chosen}
        for mode, wanted in asks.items()
        for remedy in wanted
    ]
    names = [{"mode": mode, "lit": mode == chosen} for mode in asks]
    y = {"field": "mode", "type": "nominal", "sort": list(asks), "axis": None}
    lit = {"condition": {"test": "datum.lit", "value": 1}, "value": 0.35}
    spec = {
        "height": {"step": 44},
        "encoding": {"y": y},
        "layer": [
            {
                "data": {"values": rows},
                "mark": {"type": "circle", "size": 170, "yOffset": 10},
                "encoding": {
                    "x": {"field": "remedy", "type": "nominal", "sort": list(columns),
                          "title": None,
                          "axis": {"orient": "top", "labelAngle": -45, "labelAlign": "left",
                                   "labelLimit": 160, "domain": False, "ticks": False,
                                   "labelOverlap": False, "grid": True, "gridOpacity": 0.5}},
                    "opacity": lit,
                },
            },
            {
                "data": {"values": names},
                "mark": {"type": "text", "align": "left", "dy": -10, "fontSize": 13,
                         "color": ink(),
                         "fontWeight": {"expr": "datum.lit ? 'bold' : 'normal'"}},
                "encoding": {"x": {"value": 0}, "text": {"field": "mode"}},
            },
        ],
    }  # fmt: skip
    words = "; ".join(f"{mode}: {', '.join(wanted)}" for mode, wanted in asks.items())
    vl.draw(spec, f"What each failure asks of the architecture. {words}.")


# --- question 3


def speedup(
    curve: Points,
    band: tuple[Points, Points] | None,
    limit: float | None,
    reading: TimingReading | None,
    timed: bool,
    text: str,
) -> None:
    """Speed-up against machines: Amdahl with its range and limit, the timings and their law.

    timed : the timings are the answer; where a law with communication fits them, it stands alone
    """
    law = reading.fitted if reading is not None else ()
    if timed and law:
        curve, limit = (), None
    axis = {"grid": False, "tickCount": 5, "format": ",~r"}
    ticks = {
        "grid": False,
        "format": ",~r",
        "values": [1, 4, 16, 64, 256, 1024],
        "labelOverlap": False,
    }
    x = vl.axis("x", "Machines", scale={"type": "log", "base": 2, "domain": [1, 1024]}, axis=ticks)
    at = {"x": x, "y": vl.axis("y", None, scale={"type": "log", "base": 2}, axis=axis)}
    layers: list[Layer] = []
    if band is not None:
        area = [{"x": n, "y": a, "y2": b} for (n, a), (_, b) in zip(*band, strict=True)]
        layers.append(
            {
                "data": {"values": area},
                "mark": {"type": "area", "opacity": 0.2},
                "encoding": {**at, "y2": {"field": "y2"}},
            }
        )
    if curve:
        layers.append(vl.line(curve, at))
    if limit is not None and limit < 5000:
        layers += [
            vl.line([(1, limit), (1024, limit)], at, strokeDash=[3, 4], strokeWidth=1, color=ink()),
            vl.word(1024, limit, f"never more than {labels.number(limit)} times", at,
                  align="right", dy=-8),
        ]  # fmt: skip
    if law:
        kept = [p for p in law if p[1] >= 0.5]
        style = {} if timed else {"strokeDash": [6, 4], "color": ink()}
        layers.append(vl.line(kept, at, **style))
        best = max(kept, key=lambda p: p[1])
        layers.append(vl.word(*best, "law of your timings", at, align="left", dy=-10, dx=4))
    if reading is not None:
        layers.append(vl.dot(reading.points, at, color=ink()))
    vl.draw({"height": HEIGHT, "layer": layers}, text, "Times as fast as one machine")


def crossover(c: CrossoverPicture, article_at: float, now: float) -> None:
    """Cost of the work on the GPU over that on the server, against the parallel fraction."""
    x = vl.axis("x", "Parallelizable fraction, %", scale={"domain": [0, 100]},
              axis={"grid": False, "tickCount": 5})  # fmt: skip
    both = [y for _, y in (*c.points, *c.article)]
    domain = [min(both) * 0.8, max(*both, 1.0) * 1.5]
    y = vl.axis("y", None, scale={"type": "log", "domain": domain, "nice": False},
              axis={"tickCount": 4, "format": "~r", "grid": False})  # fmt: skip
    at = {"x": x, "y": y}
    article = [(p * 100, cost) for p, cost in c.article]
    layers = [
        vl.line([(0, 1), (100, 1)], at, strokeWidth=1, color=ink()),
        vl.line(article, at, strokeDash=[6, 4], strokeWidth=2, color=ink()),
        vl.line([(p * 100, cost) for p, cost in c.points], at),
        vl.dot([(article_at * 100, 1)], at, color=ink()),
        vl.word(article_at * 100, 1, f"000: {article_at:.0%}", at, align="left", dx=6, dy=-9),
        *vl.marks([(now * 100, "your answer")], x, 60, low=True),
    ]
    if 0 < c.at < 1:
        layers += [
            vl.dot([(c.at * 100, 1)], at),
            vl.word(c.at * 100, 1, f"{c.at:.0%}", at, align="right", dx=-8, dy=10),
        ]
    vl.draw(
        {"height": HEIGHT, "layer": layers},
        f"Cost of the work on the GPU against the CPU server. {c.title}. {c.message} The article's "
        f"curve crosses at {article_at:.0%}.",
        "Cost of the work on the GPU; on the CPU server it is 1",
    )


# --- question 4

DASHES = {"On demand": [1, 0], "Spot": [2, 3], "By the month": [2, 3], "Reserved 1 year": [5, 4],
          "Reserved 3 years": [10, 4], "Bought": [1, 0]}  # fmt: skip


def ways(
    found: Sequence[WayToPay],
    hardware: str,
    use: float,
    marks: Sequence[tuple[float, str]],
    crossings: Sequence[tuple[str, float | None]],
    whose: str,
    text: str,
) -> None:
    """Cost of a useful hour against utilization: grey is paid when used, colour at all hours."""
    prices = [w.usd_per_hour for w in found]
    low, high = min(prices) * 0.3, max(prices) * 8
    x = vl.axis("x", "Useful share of the hours, %", scale={"domain": [0, 100]},
              axis={"grid": False, "tickCount": 5})  # fmt: skip
    steps = [m * 10**e for e in range(-3, 6) for m in (1, 2, 5)]
    y = vl.axis("y", None, scale={"type": "log", "domain": [low, high], "nice": False},
              axis={"values": [v for v in steps if low <= v <= high], "format": "$~r",
                    "grid": False})  # fmt: skip
    at = {"x": x, "y": y}
    heights = [1 - math.log(p / low) / math.log(high / low) for p in prices]
    layers = vl.marks([(m * 100, t) for m, t in marks], x, 101, low=True)
    for way, height in zip(found, spread(heights, 0.065), strict=True):
        points = [(u * 100, usd) for u, usd in way.points if usd <= high]
        mark = {"type": "line", "strokeWidth": 2.5, "strokeDash": DASHES.get(way.label, [1, 0])}
        layers += [
            {
                "data": {"values": vl.rows(points, hardware=hardware)},
                "mark": mark if way.pays_idle else {**mark, "color": ink()},
                "encoding": {**at, **vl.coloured()} if way.pays_idle else at,
            },
            vl.at_height(100, way.label, f"height * {height:.3f}", x, align="left", dx=6),
        ]
    rent = next((w.usd_per_hour for w in found if w.label == "On demand"), None)
    if rent is not None:
        reached = sorted((u * 100, rent) for _, u in crossings if u is not None)
        layers.append(vl.dot(reached, at, color=ink()))
        layers += [
            vl.word(v, rent, f"{v:.0f}%", at, **SIDES["under" if i % 2 else "right"])
            for i, (v, _) in enumerate(reached)
        ]
    side = {"align": "right", "dx": -5} if use > 0.6 else {"align": "left", "dx": 5}
    layers += [
        {
            "data": {"values": [{"x": use * 100}]},
            "mark": {"type": "rule", "strokeWidth": 2, "color": ink()},
            "encoding": {"x": x},
        },
        vl.at_height(
            use * 100, f"{whose}: {use:.0%}", "8", x, fontSize=13, fontWeight="bold", **side
        ),
    ]
    vl.draw({"height": HEIGHT + 100, "layer": layers}, text, "USD for a useful hour")


def demand(c: Commitment, hardware: str) -> None:
    """Demand by month: what the committed machines do, and what is rented when it comes."""
    base = c.mix.base
    rows = []
    for i, need in enumerate(c.months):
        rows.append({"x": i + 1, "y": 0, "y2": min(need, base), "hardware": hardware, "o": 1})
        rows.append({"x": i + 1, "y": min(need, base), "y2": need, "hardware": hardware, "o": 0.4})
    y = vl.axis("y", None, axis={"tickCount": 4, "grid": False, "format": "~r"})
    x: Layer = {"field": "x", "type": "ordinal", "title": "Month", "axis": {"labelAngle": 0}}
    layers: list[Layer] = [
        {
            "data": {"values": rows},
            "mark": {"type": "bar"},
            "encoding": {
                "x": x, "y": y, "y2": {"field": "y2"},
                **vl.coloured(),
                "opacity": {"field": "o", "type": "quantitative", "scale": None},
            },
        }
    ]  # fmt: skip
    if base:
        layers.append(
            {
                "data": {"values": [{"y": base}]},
                "mark": {
                    "type": "rule",
                    "strokeWidth": 2,
                    "strokeDash": [6, 4],
                    "color": ink(),
                },
                "encoding": {"y": y},
            }
        )
    vl.draw(
        {"height": 200, "layer": layers}, f"{c.title}. {c.message}",
        "Machines' worth of work; pale is rented when it comes",
    )  # fmt: skip


# --- the articles at a question


def faq(question: str, answer: Assessment) -> None:
    """The articles' questions at this place: their answer, the general one, and this plan's."""
    own = own_answers(question, answer)
    title = "The articles' questions, answered for your plan"
    with st.expander(title, icon=":material/menu_book:"):
        for entry in answers_for(question):
            with st.container(gap="xxsmall"):
                st.markdown(f"**{labels.plain(entry.question)}**")
                if entry.id in own:
                    st.markdown(labels.plain(f"Your plan: {own[entry.id]}"))
                st.caption(
                    labels.plain(f"Article {entry.article}: {entry.position} Here: {entry.here}")
                )


def verdicts(question: str, answer: Assessment, because: Mapping[str, str] | None = None) -> None:
    """The articles' rules beside what is computed, each with its verdict for this job.

    because : the reason to print for a rule, where the page computed it in more detail
    """
    st.subheader("The articles' rules, checked on this job", anchor=False)
    applying, others = rules_at(question, answer)
    for rule in applying:
        says, model = (PLACEMENT_LABELS.get(w, w) for w in (rule.says, rule.model_says))
        why = (because or {}).get(rule.id, rule.why).rstrip(".")
        with st.container(gap="xxsmall"):
            st.markdown(f"{AGREES[rule.agrees]} **{labels.plain(rule.rule)}**")
            st.markdown(labels.plain(f"The rule says {says}, the model says {model}: {why}."))
    if others:
        texts = "; ".join(t if t[1].isupper() else f"{t[0].lower()}{t[1:]}" for t in others)
        st.caption(labels.plain(f"Do not apply here: {texts}."))
