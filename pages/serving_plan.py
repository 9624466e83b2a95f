"""The serving plan: from a request rate and latency targets to machines and dollars."""

from __future__ import annotations

from functools import partial

import streamlit as st

from engine.errors import ClusterFitError
from engine.estimate.serving_frontier import Check
from engine.explain import serving_pictures as pictures
from engine.explain import serving_words as words
from engine.explain.serving import COMMITTED
from engine.explain.serving_table import serving_csv
from engine.report.plan_serving import serving_document
from engine.workload.answers import Kind, ModelClass
from pages.components import (
    labels,
    plan_takeaway,
    quotes,
    serving_charts,
    serving_inputs,
    serving_parts,
    shell,
)
from pages.components.serving_report import checked, report_of

TITLE = "Serving plan"


def asked(told: bool) -> None:
    """All inputs beyond the sliders."""
    with st.expander("The model, the load, the targets, the terms", icon=":material/tune:",
                     expanded=not told):  # fmt: skip
        cells = st.grid(columns=4, min_column_width=240, gap="large")
        for title, part in (
            ("The model", serving_inputs.model), ("The load", serving_inputs.load),
            ("The targets", serving_inputs.targets), ("How it is run", serving_inputs.precision),
        ):  # fmt: skip
            with cells.container():
                st.markdown(f"**{title}**")
                part()
                if title == "How it is run":
                    serving_inputs.money()


with shell.page(TITLE, ":material/dns:") as workload:
    st.markdown(
        "A language model that answers requests: how many machines, how fast, what it costs, on "
        "GPUs and on CPU servers, and whether buying the tokens is cheaper."
    )
    if workload.kind is not Kind.online_inference or workload.model_class is not ModelClass.llm:
        st.info(
            "Your job is of another kind. What stands here is a plan for serving a language "
            "model beside it; sizes and rates that you told count.",
            icon=":material/info:",
        )
    unranked = quotes.not_ranked()
    try:
        planned = report_of(workload)
    except ClusterFitError as error:
        st.error(labels.plain(error), icon=":material/error:")
        asked(told=False)
        st.stop()
    report, check = checked(planned)
    left, right = st.columns([2, 3], gap="large")
    option = report.chosen
    with left:
        serving_inputs.sliders(report)
    with right:
        st.subheader(labels.plain(words.headline(report)), anchor=False)
        if option is not None and report.answer.state == "plan":
            st.markdown(labels.plain(words.what_runs(report, option)))
            st.caption(labels.plain(serving_parts.price(option)))
            if isinstance(check, Check) and (told := words.corrected(check, planned)):
                st.warning(labels.plain(told), icon=":material/warning:")
            if doubt := words.doubtful(option):
                st.warning(labels.plain(doubt), icon=":material/warning:")
        for note in (*report.answer.notes, *report.notes):
            if note not in unranked:
                st.caption(labels.plain(f"{note[0].upper()}{note[1:]}."))
        plan_takeaway.downloads(
            "serving", partial(serving_document, report, workload, shell.settings()),
            partial(serving_csv, report), "serving_plan", report.today,
        )  # fmt: skip
    asked(told=workload.rate_per_s is not None or shell.terms("serving").model != "")

    if option is not None and report.answer.state == "plan":
        serving_parts.figures(report, option)
        first, each = st.columns(2, gap="large")
        for cell, curve in zip((first, each), pictures.load_curves(report, option), strict=True):
            with cell:
                st.subheader(labels.plain(curve.title), anchor=False)
                serving_charts.load(curve)
                st.caption(labels.plain(curve.message))
        serving_parts.simulation(planned, check)
        hours, front = st.columns(2, gap="large")
        with hours:
            day = pictures.day_picture(option, report.pay in COMMITTED)
            st.subheader(labels.plain(day.title), anchor=False)
            serving_charts.day(day)
            st.caption(labels.plain(day.message))
        with front:
            frontier = pictures.frontier_picture(report, option)
            if frontier is not None:
                st.subheader(labels.plain(frontier.title), anchor=False)
                serving_charts.frontier(frontier)
                st.caption(labels.plain(frontier.message))

    if option is not None and report.answer.state == "plan":
        serving_parts.compared(report)
        st.subheader("All machines that meet the targets", anchor=False)
        serving_parts.options(report)
    serving_parts.refused(report)
    serving_parts.apis(report)
    if option is not None and report.answer.state == "plan":
        st.subheader("Fewer bits, fewer machines", anchor=False)
        serving_parts.quantisation(report)
        fill, apart = st.columns(2, gap="large")
        with fill:
            st.subheader("What fills the memory", anchor=False)
            serving_parts.memory(option)
        with apart:
            st.subheader("Prompts and answers on machines of their own", anchor=False)
            st.markdown(labels.plain(words.apart(report.apart, option, report.ask.shape.is_moe)))
        st.subheader(labels.plain(words.zero_title(report)), anchor=False)
        serving_inputs.cold()
        serving_parts.zero(report)
    serving_parts.cases()
    serving_parts.assumptions(report)
