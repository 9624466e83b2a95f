"""What a person takes away: PDF, CSV, XLSX and the link, made from one frozen answer on demand."""

from __future__ import annotations

import streamlit as st

from engine.assessment import Assessment
from engine.report.pdf import pdf
from engine.report.table import to_csv, to_xlsx
from pages.components import shell

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def downloads(answer: Assessment) -> None:
    """The three files and the share link, in one row."""
    # A download runs without a session: it may close over the frozen answer and nothing else.
    link = shell.share_address(answer.workload)
    stem = f"clusterfit-{answer.today:%Y-%m-%d}"
    with st.container(horizontal=True):
        st.download_button(
            "PDF",
            lambda: pdf(answer, link),
            f"{stem}.pdf",
            "application/pdf",
            on_click="ignore",
            icon=":material/picture_as_pdf:",
            help="The report for the meeting",
        )
        st.download_button(
            "CSV",
            lambda: to_csv(answer, link),
            f"{stem}.csv",
            "text/csv",
            on_click="ignore",
            icon=":material/table:",
            help="Every figure in one table",
        )
        st.download_button(
            "XLSX",
            lambda: to_xlsx(answer, link),
            f"{stem}.xlsx",
            XLSX,
            on_click="ignore",
            icon=":material/grid_on:",
            help="The same table for a spreadsheet",
        )
        with st.popover("Share", icon=":material/link:"):
            st.markdown("Opens this very answer on another machine. It names the job if you did.")
            st.code(link, language=None, wrap_lines=True)
