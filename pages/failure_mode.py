"""Question 2: which failure would hurt most, and what it asks of the architecture."""

from __future__ import annotations

import streamlit as st

from engine.explain import curves
from engine.workload.answers import FAILURE_LABELS, FailureMode
from engine.workload.workload import applies
from pages.components import fields, labels, question_charts, shell
from pages.components.faq import faq

TITLE = "Which failure would hurt most?"

with shell.page(TITLE, ":material/report:", question="failure_mode") as workload:
    st.markdown(
        "Distribution is above all a new set of ways to fail. The failure you name decides on "
        "replicas, checkpoints, queues and validation, and on the terms that make sense."
    )
    fields.field("failure_mode", widget="radio", horizontal=False)
    for name in ("downtime", "consistency"):
        if applies(name, workload.kind):
            fields.field(name)

    answer = shell.assessment(workload)
    best = answer.best
    figure = curves.failure_picture(workload, best.units, curves.fleet_usd_per_hour(answer))
    st.subheader(figure.title, anchor=False)
    question_charts.picture(figure)
    st.caption(labels.plain(figure.message))
    st.subheader("What each failure asks for", anchor=False)
    asks = {FAILURE_LABELS[mode]: wanted for mode, wanted in curves.ASKS.items()}
    question_charts.remedies(asks, curves.REMEDIES, FAILURE_LABELS[workload.failure_mode])

    st.subheader("Does it need a distributed system at all?", anchor=False)
    st.markdown(labels.plain(answer.architecture.verdict))
    if workload.failure_mode is not FailureMode.unknown:
        for remedy, why in answer.architecture.remedies:
            st.markdown(f"- **{labels.plain(remedy)}**: {labels.plain(why)}")
    faq("failure_mode")
