"""Question 2: which failure would hurt most, and what it asks of the architecture."""

from __future__ import annotations

import streamlit as st

from engine.explain.curves import failure
from engine.explain.failure_table import remedied
from engine.workload.answers import FAILURE_LABELS, FailureMode
from engine.workload.workload import applies
from pages.components import fields, labels, question_charts, shell

TITLE = "Which failure would hurt most?"

with shell.page(TITLE, ":material/report:", question="failure_mode") as workload:
    st.markdown(
        "Distribution is above all a new set of ways to fail. The failure you name decides on "
        "replicas, checkpoints, queues and validation, and on the terms that make sense."
    )
    question, picture = st.columns(2, gap="large")
    with question:
        captions = [failure.MEANS[mode] for mode in FailureMode]
        fields.field("failure_mode", widget="radio", sure=False, captions=captions)
        fields.field("failure_mode_sure", widget="segments", label="How sure of this")
        for name in ("downtime", "consistency"):
            if applies(name, workload.kind):
                fields.field(name, widget="select")

    answer = shell.assessment(workload)
    with picture:
        figure = failure.failure_picture(answer)
        st.subheader(labels.plain(figure.title), anchor=False)
        question_charts.picture(figure)
        st.caption(labels.plain(figure.message))

    st.subheader("What each failure asks for", anchor=False)
    asks = {FAILURE_LABELS[mode]: wanted for mode, wanted in failure.ASKS.items()}
    question_charts.remedies(asks, failure.REMEDIES, FAILURE_LABELS[workload.failure_mode])

    st.subheader("What each remedy costs here, and what it costs to go without", anchor=False)
    st.table(
        [
            {
                "What fails": labels.plain(row.fails),
                "Remedy": labels.plain(row.remedy),
                "Costs": labels.plain(row.costs),
                "Without it": labels.plain(row.without),
            }
            for row in remedied(answer)
        ],
        hide_index=True,
    )

    here, distributed = st.columns(2, gap="large")
    with here:
        st.subheader("What follows for this job", anchor=False)
        for remedy, why in answer.architecture.remedies:
            st.markdown(f"- **{labels.plain(remedy)}**: {labels.plain(why)}")
    with distributed:
        st.subheader("Does it need a distributed system at all?", anchor=False)
        st.markdown(labels.plain(answer.architecture.verdict))
        for flag in failure.distribution_flags(answer):
            icon = ":material/flag:" if flag.holds else ":material/remove:"
            met = "" if flag.holds else " (not so here)"
            st.markdown(f"{icon} **{labels.plain(flag.rule)}**{met}: {labels.plain(flag.here)}")
    question_charts.verdicts("failure_mode", answer)
    question_charts.faq("failure_mode", answer)
