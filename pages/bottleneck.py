"""Question 1: where the time goes."""

from __future__ import annotations

import streamlit as st

from engine.explain.curves import bottleneck
from engine.workload.answers import RESOURCES
from pages.components import fields, labels, question_charts, shares_editor, shell

WAYS = ["Name it", "Symptoms", "Measured"]

with shell.page("Where does the time go?", ":material/speed:", question="bottleneck") as workload:
    st.markdown(
        "A GPU shortens arithmetic and waiting for memory. It shortens neither disks nor networks: "
        "know the bottleneck first, buy hardware second."
    )
    way = shares_editor.way(WAYS, workload)
    # Six numbers stand side by side, above the picture.
    question, picture = st.columns(2, gap="large") if way != WAYS[2] else (st.container(),) * 2
    with question:
        if way == WAYS[0]:
            fields.field("bottleneck", widget="radio", horizontal=False, sure=False)
            fields.field("bottleneck_sure", widget="segments", label="How sure of this")
            if workload.time_shares or workload.symptoms:
                st.caption("What you ticked or measured goes before what is named here.")
        elif way == WAYS[1]:
            shares_editor.symptoms(bottleneck.SYMPTOMS)
        else:
            shares_editor.shares([r.value for r in RESOURCES])

    shares, gpu = bottleneck.time_shares(workload), bottleneck.gpu_ceiling(workload)
    with picture:
        st.subheader(gpu.title, anchor=False)
        question_charts.time_shares(shares, gpu)
        if not workload.answered["bottleneck"]:
            st.caption("Not answered yet: these are the usual shares of this kind of work.")
        for symptom, resource, share in bottleneck.symptom_reading(workload):
            st.caption(labels.plain(f"{symptom}: {share:.0%} {resource}"))

    roofline, follows = st.columns(2, gap="large")
    with roofline:
        title, text = bottleneck.roofline_message(workload)
        st.subheader(title, anchor=False)
        question_charts.roofline(bottleneck.roofs(), bottleneck.intensity(workload))
        ridges = ", ".join(f"{roof.name} {roof.ridge:,.0f}" for roof in bottleneck.roofs())
        st.caption(labels.plain(f"{text} Ridges, in FLOP per byte: {ridges}."))
    with follows:
        st.subheader("What follows for this job", anchor=False)
        st.markdown(labels.plain(bottleneck.fix_first(workload)))
        st.markdown(gpu.message)
    answer = shell.assessment(workload)
    question_charts.verdicts("bottleneck", answer)
    question_charts.faq("bottleneck", answer)
