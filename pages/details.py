"""The job's own facts: only those that can change the answer for this kind of work."""

from __future__ import annotations

import streamlit as st

from engine.workload.workload import fields_for
from pages.components import fields, shell

GROUPS = [
    ("job", "What it is", ""),
    ("size", "Size of the job", "An empty field means “I don't know”: the range widens."),
    ("load", "Load", "What arrives, and how soon the answer must be out."),
    ("today", "What runs today", "A measured run of today beats every estimate."),
    ("constraints", "What must hold", "Each of these can rule hardware out."),
    ("money", "Money and time", ""),
    ("team", "The team", ""),
]

with shell.page("Details of the job", ":material/tune:", path="pages/details.py") as workload:
    st.markdown("Fill in what you know: only what can change the answer is asked.")
    for group, title, hint in GROUPS:
        names = fields_for(workload.kind, group)
        if not names:
            continue
        with st.container(border=True):
            st.subheader(title, anchor=False)
            if hint:
                st.caption(hint)
            cells = st.grid(columns=2, min_column_width=280, gap="medium")
            for name in names:
                with cells.container():
                    if name == "quotes":
                        count = len(workload.quotes) or "none yet"
                        shell.link(
                            shell.PRICES[0], f"Your own quotes: {count}", icon=":material/sell:"
                        )
                    else:
                        fields.field(name)
    fields.weights()
