"""The answers that are lists: measured shares of time, symptoms, timings at different sizes.

Nothing typed is lost: what the engine refuses stays in the widgets, with its message below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from engine.workload.answers import BOTTLENECK_LABELS, Bottleneck, Symptom
from engine.workload.workload import Workload
from pages.components import fields, shell


def way(ways: Sequence[str], workload: Workload) -> str:
    """Which way the bottleneck is told; begins with the one that is in use."""
    used = 2 if workload.time_shares else 1 if workload.symptoms else 0
    chosen = st.segmented_control(
        "How do you want to tell it?", ways, default=ways[used], key="bottleneck_way", required=True
    )
    return str(chosen)


def symptoms(words: Mapping[Symptom, str]) -> None:
    """A checklist of what can be seen on a dashboard."""
    seen = set(shell.workload().symptoms)
    for symptom, text in words.items():
        key = shell.bind(f"w_symptom_{symptom.value}", symptom in seen)
        st.checkbox(text, key=key, on_change=_take_symptoms)
    fields.complain("symptoms")


def _take_symptoms() -> None:
    ticked = tuple(s for s in Symptom if st.session_state.get(f"w_symptom_{s.value}"))
    shell.change(symptoms=ticked, time_shares=())


def shares(names: Sequence[str]) -> None:
    """Six shares of time in percent."""
    given = shell.shown("time_shares") or (None,) * len(names)
    cells = st.grid(columns=3, min_column_width=220, gap="medium")
    for name, value in zip(names, given, strict=True):
        title = BOTTLENECK_LABELS[Bottleneck(name)].split(" (")[0]
        with cells.container():
            key = shell.bind(f"w_share_{name}", value)
            st.number_input(
                f"{title} · %", value=None, key=key, format="%.12g", placeholder="0",
                on_change=_take_shares, args=(tuple(names),),
            )  # fmt: skip
    fields.complain("time_shares")


def _take_shares(names: tuple[str, ...]) -> None:
    typed = [st.session_state.get(f"w_share_{name}") for name in names]
    if all(v is None for v in typed):
        shell.change(time_shares=())
    else:
        shell.change(time_shares=tuple(float(v or 0.0) for v in typed))


def timings() -> None:
    """A table of machines and hours."""
    rows: list[tuple[Any, Any]] = list(shell.shown("timings"))
    table = pd.DataFrame(rows, columns=["machines", "hours"], dtype=float)
    st.data_editor(
        table,
        key="w_timings",
        num_rows="dynamic",
        hide_index=True,
        column_config={
            "machines": st.column_config.NumberColumn("Machines"),
            "hours": st.column_config.NumberColumn("Hours"),
        },
        on_change=_take_timings,
        args=(tuple(rows),),
    )
    fields.complain("timings")


def _take_timings(before: tuple[tuple[float, float], ...]) -> None:
    edit = st.session_state["w_timings"]
    rows: list[list[Any]] = [list(row) for row in before]
    for index, change in edit["edited_rows"].items():
        for column, value in change.items():
            rows[int(index)][0 if column == "machines" else 1] = value
    rows = [row for i, row in enumerate(rows) if i not in set(edit["deleted_rows"])]
    rows += [[row.get("machines"), row.get("hours")] for row in edit["added_rows"]]
    complete = tuple((m, h) for m, h in rows if m is not None and h is not None)
    if complete != before:
        shell.change(timings=complete)
