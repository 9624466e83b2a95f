"""The articles' money cases on the costs page: as written, corrected, and why they differ."""

from __future__ import annotations

import streamlit as st

from engine.cost.worked_cases import worked_cases
from engine.costing import view
from pages.components import answer, labels
from pages.components.labels import plain


def cases() -> None:
    """One case at a time, with each of its figures and what follows from them."""
    found = {case.id: case for case in worked_cases()}
    chosen = st.selectbox(
        "A case of the articles",
        list(found),
        format_func=lambda id: labels.plain(found[id].title),
        key="cost_case",
    )
    case = found[chosen]
    answer.table(view.case_rows(case), f"{case.title}: as written and corrected")
    st.markdown(plain(case.lesson))
    titles = " and ".join(f"“{labels.article(number)}”" for number in case.article.split(" and "))
    st.caption(
        plain(
            f"From {titles}, claims {', '.join(case.claims)}. In US dollars, worked out by the "
            "same functions as any other plan; what an article leaves out is named so."
        )
    )
