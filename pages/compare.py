"""Two plans side by side: this one, and another from its link or from a worked case."""

from __future__ import annotations

import streamlit as st

from engine.errors import ClusterFitError
from engine.workload.examples import EXAMPLES
from engine.workload.settings import USUAL, Settings
from engine.workload.workload import Workload
from pages.components import answer, fields, labels, shell


def show(plan: Workload, under: Settings, heading: str) -> None:
    """One plan: its sentence and its figures."""
    st.subheader(labels.plain(plan.name or heading.capitalize()), anchor=False)
    try:
        found = shell.assessment(plan, under)
    except ClusterFitError as error:
        st.error(labels.plain(error), icon=":material/error:")
        return
    st.markdown(labels.plain(found.sentence))
    st.caption(labels.plain(found.sureness))
    answer.figures(found, columns=2)
    shell.link(
        shell.RECOMMENDATION[0],
        f"Open {heading}",
        to=plan,
        under=under,
        icon=":material/open_in_new:",
    )


with shell.page("Compare", ":material/compare_arrows:", bar=False) as workload:
    st.markdown("Put another plan beside this one: paste its link, or pick a worked case.")
    left, right = st.columns(2)
    with left:
        pasted = st.text_input("Link of another plan", persist_state="session", key="other_link")
    with right:
        case = st.selectbox(
            "Or a worked case",
            list(EXAMPLES),
            format_func=lambda name: EXAMPLES[name].title,
            persist_state="session",
            key="other_case",
        )
    usual = (EXAMPLES[case].workload, USUAL)
    other, under = shell.other_plan(pasted) if pasted else usual
    mine, theirs = st.columns(2, gap="large")
    with mine:
        show(workload, shell.settings(), "this plan")
    with theirs:
        show(other, under, "the other plan")
    st.subheader("Answers that differ", anchor=False)
    answer.table(
        [
            {
                "Answer": fields.title_of(name).partition(" · ")[0],
                "This plan": fields.answer_text(name, getattr(workload, name)),
                "The other": fields.answer_text(name, getattr(other, name)),
            }
            for name in Workload.model_fields
            if getattr(workload, name) != getattr(other, name)
        ],
        "The answers in which the two plans differ",
    )
