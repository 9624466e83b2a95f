"""Compute jobs and small models: time, machines and dollars on GPUs and on CPU servers."""

from __future__ import annotations

from datetime import date
from functools import partial

import streamlit as st

from engine.errors import ClusterFitError
from engine.explain.jobs import JobReport, figures_for, is_compute
from engine.explain.jobs_model_words import recommended_words
from engine.explain.jobs_models import ModelReport, is_small_model
from engine.explain.jobs_owning import elsewhere
from engine.explain.plan_tables import job_csv
from engine.report.plan_jobs import job_document
from engine.workload.answers import Kind
from engine.workload.jobs_terms import JobField
from engine.workload.workload import Workload
from pages.components import (
    jobs_charts,
    jobs_parts,
    jobs_report,
    labels,
    plan_takeaway,
    quotes,
    shell,
)

TITLE = "Compute and small models"


def _notes(report: JobReport | ModelReport) -> None:
    for note in report.about:
        st.info(labels.plain(note), icon=":material/info:")
    for note in report.notes:
        st.caption(labels.plain(note))


def _downloads(report: JobReport | ModelReport, workload: Workload) -> None:
    today = date.today()
    plan_takeaway.downloads(
        "compute", partial(job_document, report, workload, shell.settings(), today),
        partial(job_csv, report), "jobs_plan", today,
    )  # fmt: skip


def compute_job(workload: Workload) -> None:
    """A job that is known by its hours today."""
    try:
        report = jobs_report.compute(workload)
    except ClusterFitError as error:
        st.error(labels.plain(error), icon=":material/error:")
        jobs_parts.field_of_work()
        return
    st.subheader(labels.plain(report.headline), anchor=False)
    _notes(report)
    _downloads(report, workload)
    jobs_parts.job_tiles(report)
    jobs_parts.job_cards(report)
    if report.rewrite:
        st.markdown(labels.plain(report.rewrite))
    jobs_parts.job_inputs(report)
    if report.curve is not None:
        st.subheader(labels.plain(report.curve.title), anchor=False)
        jobs_charts.speedup(report.curve)
        st.caption(labels.plain(report.curve.message))
    jobs_parts.published(report.found, f"The speed-up above is {report.speedup_said}.")
    jobs_parts.job_options(report)
    st.caption(elsewhere(workload))


def small_model(workload: Workload) -> None:
    """A model that answers requests, or works through items."""
    batch = workload.kind is Kind.batch_inference
    try:
        report = jobs_report.model(workload)
    except ClusterFitError as error:
        st.error(labels.plain(error), icon=":material/error:")
        jobs_parts.model_load(batch)
        return
    left, right = st.columns([1, 3], gap="large")
    with left:
        jobs_parts.model_load(batch)
        jobs_parts.model_asked(report, batch)
    with right:
        st.subheader(labels.plain(report.headline), anchor=False)
        if report.reason:
            st.markdown(labels.plain(report.reason))
        recommended = _recommended(report, workload)
        if recommended:
            st.markdown(labels.plain(recommended))
        _notes(report)
        jobs_parts.model_inputs(report, batch)
    _downloads(report, workload)
    jobs_parts.model_tiles(report)
    jobs_parts.model_cards(report)
    first, second = st.columns(2, gap="large")
    if report.responses:
        with first:
            st.subheader("How long an answer takes under load", anchor=False)
            jobs_charts.response(report.responses, report.target_ms)
            told = f"One machine of each kind that is the cheapest. Target: {report.target_said}."
            st.caption(labels.plain(told))
    if report.costs is not None:
        with second:
            st.subheader(labels.plain(report.costs.title), anchor=False)
            jobs_charts.costs(report.costs)
            st.caption(labels.plain(report.costs.message))
    jobs_parts.model_options(report, batch)
    jobs_parts.measured(report.rates)
    st.caption(elsewhere(workload))


def _recommended(report: ModelReport, workload: Workload) -> str:
    """What the recommendation has for the model; nothing where there is no recommendation."""
    try:
        best = shell.assessment(workload).best
    except ClusterFitError:
        return ""
    return recommended_words(report, best, workload)


def other_work(workload: Workload) -> None:
    """Work that has a page of its own: the published figures, to look things up."""
    st.info(
        "This job has a page of its own in the menu. Published speed-ups of any field stand here "
        "to look up.",
        icon=":material/info:",
    )
    jobs_parts.field_of_work()
    terms = shell.terms(jobs_parts.OF)
    said = "Each brought to one H100 against one server of 48 cores."
    jobs_parts.published(figures_for(workload, terms), said, terms.field is not JobField.auto)


with shell.page(TITLE, ":material/memory:") as workload:
    st.markdown(
        "Simulations, rendering, data preparation and other computing by what they take today; "
        "nets, recommenders and trees by measured rates inside a latency target."
    )
    quotes.not_ranked()
    if is_compute(workload):
        compute_job(workload)
    elif is_small_model(workload):
        small_model(workload)
    else:
        other_work(workload)
