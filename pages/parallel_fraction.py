"""Question 3: how much of the work can run in parallel."""

from __future__ import annotations

from datetime import date

import streamlit as st

from engine.errors import InputError
from engine.explain.curves import fraction
from engine.wording import rough
from engine.workload.answers import Certainty
from engine.workload.workload import Workload
from pages.components import fields, labels, question_charts, shell
from pages.components.answer import table as answer_table

TITLE = "How much of it can run in parallel?"
WAYS = ["Set it", "Usual for this work", "From timings"]
SIZES = 8  # of timings, as many as the workload holds


def percent(share: float) -> str:
    """A fraction with the decimal that matters near 100%."""
    return f"{share:.1%}".replace(".0%", "%")


def take_slider() -> None:
    """Take the slider's value as the answer."""
    shell.change(parallel_fraction=st.session_state["w_fraction_slider"])


def set_it(likely: float) -> None:
    """A slider and a number for the same answer; the slider stands at the usual value first."""
    shown = shell.shown("parallel_fraction")
    at = min(max(likely if shown is None else shown, 0.0), 1.0)
    st.slider("Serial on the left, parallel on the right", 0.0, 1.0, step=0.005,
              format="percent", key=shell.bind("w_fraction_slider", at),
              on_change=take_slider)  # fmt: skip
    fields.field("parallel_fraction", sure=False)
    fields.field("parallel_fraction_sure", widget="segments", label="How sure of this")


def usual(now: Workload) -> None:
    """The prior of the kind of work, to take or to leave open."""
    low, likely, high, source = fraction.usual_fraction(now)
    st.markdown(f"**{percent(likely)}** is usual for this kind of work.")
    st.caption(
        labels.plain(
            f"Range {percent(low)} to {percent(high)}: {source}. Left open, all of it counts."
        )
    )
    with st.container(horizontal=True):
        take = {"parallel_fraction": likely, "parallel_fraction_sure": Certainty.guess}
        st.button(f"Answer {percent(likely)}, as a guess", on_click=shell.change, kwargs=take)
        st.button("Leave it open", on_click=shell.change,
                  kwargs={"parallel_fraction": None, "timings": ()})  # fmt: skip


def take_timings() -> None:
    """Take the complete rows of machines and hours; half a row waits for its other half."""
    state = st.session_state
    typed = [(state.get(f"w_machines_{i}"), state.get(f"w_hours_{i}")) for i in range(SIZES)]
    state["timing_rows"] = [row for row in typed if row != (None, None)]
    shell.change(timings=tuple(row for row in typed if None not in row))


def timings(now: Workload) -> None:
    """Rows of machines and hours, one more than are filled; what they say of the scaling."""
    st.caption(
        "The same work on different numbers of machines. Two sizes give the fraction (Amdahl), "
        "three or more also what the machines lose to each other."
    )
    rows = st.session_state.get("timing_rows", [])
    given = shell.shown("timings")
    if tuple(row for row in rows if None not in row) != given:  # came by a link
        rows = list(given)
    for i in range(min(max(len(rows) + 1, 3), SIZES)):
        machines, hours = rows[i] if i < len(rows) else (None, None)
        for cell, name, value in zip(st.columns(2), ("machines", "hours"), (machines, hours),
                                     strict=True):  # fmt: skip
            cell.number_input(f"{name.title()}, size {i + 1}", value=None, format="%.12g",
                              key=shell.bind(f"w_{name}_{i}", value),
                              on_change=take_timings)  # fmt: skip
    fields.complain("timings")
    if now.parallel_fraction is not None and now.timings:
        st.caption(
            f"The fraction that you set, {percent(now.parallel_fraction)}, goes before timings."
        )
        st.button("Let the timings answer", on_click=shell.change,
                  kwargs={"parallel_fraction": None})  # fmt: skip


with shell.page(TITLE, ":material/call_split:", question="parallel_fraction") as workload:
    st.markdown(
        "The share of the single-core time that many processors can do at once. The rest caps the "
        "speed-up, however much hardware is added."
    )
    low, likely, high, told = fraction.present_fraction(workload)
    reading = fraction.read_timings(workload)
    question, picture = st.columns(2, gap="large")
    with question:
        used = 2 if workload.timings and workload.parallel_fraction is None else 0
        way = st.segmented_control("How do you want to tell it?", WAYS, default=WAYS[used],
                                   key="fraction_way", required=True)  # fmt: skip
        if way == WAYS[0]:
            set_it(likely)
        elif way == WAYS[1]:
            usual(workload)
        else:
            timings(workload)
        if not told:
            st.caption(
                f"Not answered yet: the usual {percent(likely)} stands in, "
                f"from {percent(low)} to {percent(high)}."
            )
    with picture:
        timed = reading is not None and workload.parallel_fraction is None
        title = fraction.speedup_title(likely, reading, timed)
        st.subheader(title, anchor=False)
        question_charts.speedup(
            fraction.speedup_curve(likely),
            None if told else (fraction.speedup_curve(low), fraction.speedup_curve(high)),
            fraction.speedup_limit(likely), reading, timed,
            f"{title}, parallel part {percent(likely)}.",
        )  # fmt: skip
        if reading is not None:
            st.caption(labels.plain(f"Your timings: {reading.message}"))
    st.subheader("Does a second machine pay?", anchor=False)
    st.markdown(labels.plain(fraction.second_machine(likely, reading, timed)))
    answer_table(fraction.efficiency_rows(likely, reading, timed), "Efficiency by machines")

    st.subheader("From which fraction on is a GPU the cheaper?", anchor=False)
    question, picture = st.columns(2, gap="large")
    price = fraction.price_ratio(workload, date.today())
    with question:
        fields.field("gpu_speedup", sure=False)
        fields.field("gpu_speedup_sure", widget="segments", label="How sure of the speed-up")
        tried = st.number_input(
            "Price of the GPU · times one 96-vCPU server", value=None, format="%.12g",
            key="fraction_ratio", placeholder=f"{price.ratio:.2f}, from today's prices",
        )  # fmt: skip
        st.caption(
            labels.plain(
                f"Today one {price.gpu} costs ${price.gpu_usd_per_hour:.2f} an hour and a 96-vCPU "
                f"server ${price.server_usd_per_hour:.2f}. Another ratio is for trying out; the "
                "recommendation compares every GPU on offer at its own price and speed."
            )
        )
        shell.link(shell.PRICES[0], "Add your own quotes", icon=shell.PRICES[2])
    with picture:
        try:
            ratio = price.ratio if tried is None else tried
            crossing = fraction.crossover_picture(workload, ratio)
        except InputError as error:
            question.error(labels.plain(error), icon=":material/error:")
            crossing = fraction.crossover_picture(workload, price.ratio)
        st.markdown(f"**{labels.plain(crossing.title)}**")
        question_charts.crossover(crossing, fraction.ARTICLE_FRACTION, likely)
        st.caption(
            labels.plain(
                f"{crossing.message} At your fraction the GPU's work costs "
                f"{rough(crossing.cost_now)} of the server's. Dashed: the article's 70% at "
                f"{fraction.ARTICLE_RATIO:g} times the price and "
                f"{fraction.ARTICLE_SPEEDUP:g} times the speed."
            )
        )
    answer = shell.assessment(workload)
    because = {"seventy_percent": fraction.crossover_reason(crossing, answer)}
    question_charts.verdicts("parallel_fraction", answer, because)
    question_charts.faq("parallel_fraction", answer)
