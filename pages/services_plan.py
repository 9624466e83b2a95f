"""Services, data systems and pipelines: machines by resource, the architecture, the placement."""

from __future__ import annotations

from functools import partial

import streamlit as st

from engine.errors import ClusterFitError
from engine.explain.plan_tables import services_csv
from engine.report.plan_services import services_document
from pages.components import labels, plan_takeaway, quotes, services_parts, shell

TITLE = "Services and pipelines"

with shell.page(TITLE, ":material/account_tree:"):
    quotes.not_ranked()
    try:
        answer = shell.assessment(shell.workload())
        report = services_parts.report_of(answer)
    except ClusterFitError as error:
        st.error(labels.plain(error), icon=":material/error:")
        st.subheader("The stages of a pipeline", anchor=False)
        services_parts.stages_editor(None)
        st.stop()
    sizing, plan = report.sizing, report.pipeline
    st.markdown(f"**{labels.plain(report.sentence)}**")
    if sizing is not None or plan is not None:
        plan_takeaway.downloads(
            "services", partial(services_document, report, answer), partial(services_csv, report),
            "services_plan", answer.today,
        )  # fmt: skip
    for note in report.notes:
        st.info(labels.plain(note), icon=":material/info:")

    if sizing is not None and report.drawing is not None:
        services_parts.figures(sizing)
        st.markdown(labels.plain(report.one_machine))
        if report.leaving:
            st.caption(labels.plain(report.leaving))

        st.subheader("What it asks of machines", anchor=False)
        services_parts.resources(sizing)

        drawn, asked = st.columns(2, gap="large")
        with drawn:
            st.subheader(labels.plain(f"Architecture: {report.drawing.title}"), anchor=False)
            services_parts.picture(report.drawing)
            if len(report.patterns) > 1:
                services_parts.pattern_choice()
        with asked:
            st.subheader("What failures ask for", anchor=False)
            services_parts.reasons(report)
        with st.expander("Which architecture fits, and why not the others",
                         icon=":material/schema:"):  # fmt: skip
            services_parts.patterns(report)
        with st.expander("The machines taken, and the next cheapest", icon=":material/dns:"):
            services_parts.machines(sizing)
    services_parts.properties(report)

    st.subheader("The stages, each where it belongs", anchor=False)
    if plan is None:
        st.markdown("The job counts as one stage. List several to see on what each should run.")
    elif sizing is not None:
        st.markdown(f"**{labels.plain(report.pipeline_sentence)}**")
    services_parts.stages_editor(plan)
    if plan is not None:
        services_parts.pipeline(plan)

    if sizing is not None:
        st.subheader("What you know better", anchor=False)
        services_parts.known_better(answer.workload.kind, sizing)
    if report.sayings:
        st.subheader("What the articles say, and what holds here", anchor=False)
        services_parts.articles(report)
    if sizing is not None:
        services_parts.inputs(sizing)
