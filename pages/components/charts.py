"""The pictures of the pages: one message each, said in the title; labels stand at the marks.

Placements have the first four colours of the theme, in this order, everywhere. Specifications are
cached as plain dictionaries: Altair's own validation is slower than drawing.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import streamlit as st

from engine.assessment import Option
from pages.components import labels

PLACEMENTS = ["GPU", "CPU", "Hybrid", "One machine"]
USD_AXIS = alt.Axis(
    labelExpr="datum.value ? format(datum.value, '$~s') : '$0'",
    tickCount=5,
    grid=False,
    domain=False,
)
COLOUR = alt.Scale(domain=PLACEMENTS)


def show(spec: dict[str, Any], alt_text: str) -> None:
    """Draw a specification with the text that stands in for it."""
    st.vega_lite_chart(spec=spec, alt=alt_text, width="stretch")


def cost_ranges(options: tuple[Option, ...]) -> None:
    """Monthly cost of each alternative: bar for the 80% interval, tick for the likely value."""
    rows = tuple(
        (
            option.label,
            labels.placement(option),
            option.usd_per_month.low,
            option.usd_per_month.likely,
            option.usd_per_month.high,
            f"{labels.money(option.usd_per_month.likely)} · {option.label}",
        )
        for option in options
    )
    text = "Cost a month, with the range that holds in 8 of 10 cases: " + "; ".join(
        f"{option.label} {labels.interval(option.usd_per_month)}" for option in options
    )
    show(_cost_ranges(rows), text)


@st.cache_data(max_entries=128, show_spinner=False)
def _cost_ranges(rows: tuple[tuple[Any, ...], ...]) -> dict[str, Any]:
    names = ("option", "placement", "low", "likely", "high", "text")
    data = alt.Data(values=[dict(zip(names, row, strict=True)) for row in rows])
    base = alt.Chart(data).encode(
        y=alt.Y("option:N", sort=None, axis=None),
        color=alt.Color("placement:N", scale=COLOUR, legend=None),
        tooltip=[
            alt.Tooltip("option:N", title="Option"),
            alt.Tooltip("low:Q", title="Low", format="$,.0f"),
            alt.Tooltip("likely:Q", title="Likely", format="$,.0f"),
            alt.Tooltip("high:Q", title="High", format="$,.0f"),
        ],
    )
    x = alt.X("low:Q", title="USD a month", scale=alt.Scale(zero=True), axis=USD_AXIS)
    bars = base.mark_bar(height=8, opacity=0.45, cornerRadius=4, yOffset=10).encode(
        x=x, x2="high:Q"
    )
    ticks = base.mark_tick(thickness=4, size=18, yOffset=10).encode(x="likely:Q")
    words = base.mark_text(align="left", dy=-10, fontSize=13, limit=alt.ExprRef("width")).encode(
        x=alt.value(0), text="text:N", color=alt.value("gray")
    )
    chart = alt.layer(bars, ticks, words).properties(height=alt.Step(52))
    spec: dict[str, Any] = chart.to_dict()
    return spec
