"""The engine's serving report of this session, kept; and the simulation that was asked for last."""

from __future__ import annotations

import logging
from datetime import date

import streamlit as st

from engine.assessment import Option
from engine.catalogue import load_catalogue
from engine.errors import ClusterFitError
from engine.estimate.serving_frontier import Check, check_plan
from engine.explain.serving import ServingReport, corrected_report, serving_report
from engine.workload.cost_terms import CostTerms
from engine.workload.serving_terms import ServingTerms
from engine.workload.workload import Workload
from pages.components import shell

LOG = logging.getLogger(__name__)
REQUESTS = 40_000  # of a simulation: under a second, its 99th percentile within some 3%


def report_of(workload: Workload) -> ServingReport:
    """The report of a workload under this session's terms."""
    try:
        recommended = shell.assessment(workload).best
    except ClusterFitError:
        recommended = None
    return _report(
        workload.model_dump_json(),
        shell.terms("serving").model_dump_json(),
        shell.terms("costs").model_dump_json(),
        date.today().isoformat(),
        recommended,
    )


@st.cache_resource(
    max_entries=128, show_spinner=False,
    hash_funcs={Option: lambda o: (o.id, o.acquisition, [(s.sku, s.units) for s in o.stages])},
)  # fmt: skip
def _report(
    body: str, terms: str, costs: str, today: str, recommended: Option | None
) -> ServingReport:
    with shell.worked_out("these figures together", body, terms):
        return serving_report(
            Workload.model_validate_json(body),
            ServingTerms.model_validate_json(terms),
            load_catalogue(),
            date.fromisoformat(today),
            CostTerms.model_validate_json(costs),
            recommended,
        )


def simulate(report: ServingReport) -> None:
    """Simulate the chosen plan under a progress bar, and keep what came out."""
    option = report.chosen
    assert option is not None
    bar = st.progress(0.0, text="Simulating one replica at the peak…")

    def told(share: float) -> None:
        bar.progress(min(share, 1.0), text=f"Simulating one replica at the peak: {share:.0%}")

    try:
        found = check_plan(option, report.ask, requests=REQUESTS, progress=told)
    except ClusterFitError as error:
        bar.empty()
        st.session_state["serving_check"] = (report.ask, option.id, str(error))
        return
    bar.empty()
    st.session_state["serving_check"] = (report.ask, option.id, found)


def checked(report: ServingReport) -> tuple[ServingReport, Check | str | None]:
    """The report as the last simulation of this very plan corrects it, and that simulation."""
    found = last_check(report)
    if isinstance(found, Check) and found.corrected is not None:
        return corrected_report(report, shell.terms("serving"), found.corrected), found
    return report, found


def last_check(report: ServingReport) -> Check | str | None:
    """The simulation of this very plan: what came out, or why it could not be; None before one."""
    kept = st.session_state.get("serving_check")
    if kept is None or report.chosen is None or kept[:2] != (report.ask, report.chosen.id):
        return None
    found: Check | str = kept[2]
    return found
