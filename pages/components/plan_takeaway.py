"""What a person takes away from a plan's page: the document for the meeting, and the table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import streamlit as st

from engine.report.plan import Plan
from pages.components import shell


def downloads(
    of: str,
    document: Callable[[str], Plan],
    table: Callable[[str], bytes],
    page: str,
    today: date,
) -> None:
    """PDF and CSV in one row, made when they are asked for.

    document, table : take the page's link. A download runs without a session, so they may hold
        frozen values and nothing else.
    """
    link = shell.share_address(shell.workload(), page=page)
    with st.container(horizontal=True):
        st.download_button(
            "PDF",
            lambda: _pdf(document(link)),
            f"clusterfit-{of}-{today:%Y-%m-%d}.pdf",
            "application/pdf",
            on_click="ignore",
            icon=":material/picture_as_pdf:",
            help="This plan for the meeting, with its prices and sources",
        )
        shell.csv_button(of, table, page, today)


def _pdf(plan: Plan) -> bytes:
    # Its library takes a while to load, which only those who ask for a PDF should wait for.
    from engine.report.plan_pdf import plan_pdf

    return plan_pdf(plan)
