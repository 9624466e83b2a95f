"""Question 1: where the time goes."""

from __future__ import annotations

import streamlit as st

from engine.explain import curves
from engine.workload.answers import RESOURCES, SYMPTOM_LABELS, Bottleneck
from pages.components import fields, labels, question_charts, shares_editor, shell
from pages.components.faq import faq

WAYS = ["Name it", "Tick what you see", "Enter measured shares"]

with shell.page("Where does the time go?", ":material/speed:", question="bottleneck") as workload:
    st.markdown(
        "A GPU shortens arithmetic and waiting for memory. It shortens neither disks nor networks: "
        "know the bottleneck first, buy hardware second."
    )
    way = shares_editor.way(WAYS, workload)
    if way == WAYS[0]:
        fields.field("bottleneck", widget="radio", horizontal=False)
    elif way == WAYS[1]:
        shares_editor.symptoms(SYMPTOM_LABELS)
        for symptom, resource, share in curves.symptom_reading(workload):
            st.caption(f"{symptom}: points to {resource} ({share:.0%})")
    else:
        shares_editor.shares([r.value for r in RESOURCES])

    shares = curves.time_shares(workload)
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader(f"{shares[0].title} takes the most time: {shares[0].share:.0%}", anchor=False)
        question_charts.time_shares(shares)
        if workload.bottleneck is Bottleneck.unknown and not workload.answered["bottleneck"]:
            st.caption("Not answered: usual shares of this kind of work. Profile before you buy.")
    with right:
        st.subheader("Work to the right of a ridge is limited by arithmetic", anchor=False)
        question_charts.roofline(curves.roofs(), curves.intensity(workload))
    most = curves.most_a_gpu_can_do(workload)
    st.info(
        f"With these shares and this parallelizable fraction no GPU, however fast, can make the "
        f"whole job more than {labels.number(most)} times as fast.",
        icon=":material/lightbulb:",
    )
    faq("bottleneck")
