"""What a person takes away from the costs page: the tables as CSV and as a live workbook."""

from __future__ import annotations

import streamlit as st

from engine.assessment import Assessment
from engine.costing.model import CostReport
from engine.report.costs_csv import costs_csv
from engine.report.pdf import pdf
from pages.components import shell
from pages.components.takeaway import XLSX


def downloads(report: CostReport, answer: Assessment) -> None:
    """The files and the link, in one row."""
    # A download runs without a session: it may close over frozen values and nothing else.
    link = shell.share_address(answer.workload, page="costs")
    stem = f"clusterfit-costs-{answer.today:%Y-%m-%d}"
    with st.container(horizontal=True):
        st.download_button(
            "PDF",
            lambda: pdf(answer, link, costs=report),
            f"{stem}.pdf",
            "application/pdf",
            on_click="ignore",
            icon=":material/picture_as_pdf:",
            help="The report for the meeting, with these costs",
        )
        st.download_button(
            "CSV",
            lambda: costs_csv(report, answer, link),
            f"{stem}.csv",
            "text/csv",
            on_click="ignore",
            icon=":material/table:",
            help="Every row of every way, by month",
        )
        st.download_button(
            "XLSX",
            lambda: _workbook(report, answer, link),
            f"{stem}.xlsx",
            XLSX,
            on_click="ignore",
            icon=":material/grid_on:",
            help="The same with live totals: change a cell and the sums follow",
        )
        with st.popover("Share", icon=":material/link:"):
            st.markdown("Opens these very costs on another machine, with all terms.")
            st.code(link, language=None, wrap_lines=True)


def _workbook(report: CostReport, answer: Assessment, link: str) -> bytes:
    # Its library takes a while to load, which only those who ask for a workbook should wait for.
    from engine.report.costs_xlsx import costs_xlsx

    return costs_xlsx(report, answer, link)
