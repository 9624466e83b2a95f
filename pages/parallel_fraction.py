"""Question 3: how much of the work can run in parallel."""

from __future__ import annotations

from datetime import date

import streamlit as st

from engine.explain import curves
from pages.components import fields, labels, question_charts, shares_editor, shell
from pages.components.faq import faq

TITLE = "How much of it can run in parallel?"

with shell.page(TITLE, ":material/call_split:", question="parallel_fraction") as workload:
    st.markdown(
        "The share of the single-core time that many processors can do at once. The rest caps the "
        "speed-up, however much hardware is added."
    )
    fields.field("parallel_fraction")
    low, likely, high, told = curves.present_fraction(workload)
    if not told:
        st.caption(
            f"Not answered: {likely:.0%} is usual for this kind of work, between {low:.0%} and "
            f"{high:.0%}."
        )
    with st.expander("Work it out from timings at different sizes", icon=":material/timer:"):
        st.caption("The same work on different numbers of machines. Two sizes give the fraction "
                   "(Amdahl), three or more also show contention.")  # fmt: skip
        shares_editor.timings()
    reading = curves.read_timings(workload)
    if reading is not None:
        st.info(labels.plain(reading.message), icon=":material/timer:")
    fields.field("gpu_speedup")

    left, right = st.columns(2, gap="large")
    with left:
        top = curves.speedup_curve(likely)[-1]
        st.subheader(f"1,024 machines make it {labels.number(top[1])} times as fast", anchor=False)
        question_charts.speedup(
            curves.speedup_curve(likely),
            None if told else (curves.speedup_curve(low), curves.speedup_curve(high)),
            reading.usl_curve(1024) if reading is not None else [],
            reading.points if reading is not None else [],
            f"Speed-up by Amdahl's law at {likely:.0%}: {top[1]:.3g} times on 1,024 machines.",
        )
    with right:
        crossing = curves.crossover_picture(workload, curves.price_ratio(workload, date.today()))
        st.subheader("From which fraction on a GPU is the cheaper", anchor=False)
        question_charts.crossover(crossing, curves.ARTICLE_FRACTION, likely)
        st.caption(labels.plain(crossing.message))
        st.caption(
            f"The article's 70% holds for a GPU at {curves.ARTICLE_RATIO:g} times the price and "
            f"{curves.ARTICLE_SPEEDUP:g} times the speed."
        )
    faq("parallel_fraction")
