"""Training plan: how many of which GPU, how to split the job, and the files that start it."""

from __future__ import annotations

import streamlit as st

from engine.errors import ClusterFitError
from engine.planning import training_view
from engine.planning.training import check_kind
from engine.workload.workload import Workload
from pages.components import (
    labels,
    quotes,
    shell,
    term_fields,
    training_networks,
    training_parts,
)

TITLE = "Training plan"


def page(workload: Workload) -> None:
    """What is asked, then the plan; the title is that of the answer."""
    head = st.container()
    try:
        check_kind(workload)
    except ClusterFitError as error:
        head.title(TITLE, anchor=False)
        st.info(labels.plain(error), icon=":material/info:")
        shell.link(shell.DETAILS[0], shell.DETAILS[1], icon=shell.DETAILS[2])
        return
    with st.container(border=True):
        training_parts.model(workload)
        training_parts.goal_and_hardware(*shell.training_offer(workload))
        with st.expander("More terms", icon=":material/tune:"):
            training_parts.more_terms(shell.training_offer(workload)[0])
        with st.expander("Your own measured steps", icon=":material/timer:"):
            training_parts.own_steps()
    try:
        report = shell.training(workload)
    except ClusterFitError as error:
        head.title(TITLE, anchor=False)
        st.error(term_fields.said(error, training_parts.TRAINING), icon=":material/error:")
        return
    head.title(labels.plain(training_view.title(report)), anchor=False)
    best = report.answer.best
    if best is None:
        training_parts.nothing(report)
        return
    unranked = quotes.not_ranked()
    training_parts.beside(report, workload)
    training_parts.words_of(report, unranked)
    training_parts.figures(best)
    tabs = st.tabs(["The plan", "Days and dollars", "Network", "Rules and sources", "Launch kit"])
    with tabs[0]:
        training_parts.plan_tab(best, report.answer.job.shape.layers)
    with tabs[1]:
        training_parts.frontier(report)
    with tabs[2]:
        training_networks.networks(report)
    with tabs[3]:
        training_parts.rules(report)
    with tabs[4]:
        training_parts.launch(workload, report)


with shell.page(TITLE, ":material/model_training:", heading=False) as job:
    page(job)
