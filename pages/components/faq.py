"""The articles' questions and answers, at the place where they matter."""

from __future__ import annotations

import streamlit as st

from engine.explain.faq import answers_for
from pages.components import labels


def faq(question: str) -> None:
    """What the articles answer here, with the verdict and what ClusterFit computes."""
    with st.expander("What the articles say here", icon=":material/menu_book:"):
        for entry in answers_for(question):
            st.markdown(f"**{labels.plain(entry.question)}** ({entry.article})")
            st.markdown(labels.plain(entry.position))
            st.caption(labels.plain(f"Here: {entry.here}"))
