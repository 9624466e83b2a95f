"""The networks of the training page: the cluster on each, and the articles' measurements."""

from __future__ import annotations

import streamlit as st

from engine.estimate.network_cases import worked_cases
from engine.planning.network_words import case_line, network_lines
from engine.planning.training import TrainingReport
from pages.components import answer
from pages.components.labels import plain


def networks(report: TrainingReport) -> None:
    """What a better or a cheaper network would change."""
    lines = network_lines(report.answer.networks)
    if lines:
        answer.table(
            [
                {
                    "Network": _cell(n.name, n.name_more),
                    "A step": _cell(n.takes, n.takes_more),
                    "What it is worth": _cell(n.worth, n.worth_more),
                }
                for n in lines
            ],
            "The same GPUs on each network", marked=True,
        )  # fmt: skip
        st.caption(
            "“Worth” is by how much a GPU-hour may cost more on that network until the run costs "
            "the same; its range is that of the traffic, as computing is the same on both. List "
            "prices are those of adapters and switch ports: bought for this run alone, a network "
            "pays where they are below its worth over the run."
        )
    else:
        st.markdown("One machine needs no network between machines.")
    _articles()


def _cell(first: str, under: str) -> str:
    return f"**{plain(first)}**" + (f"  \n{plain(under)}" if under else "")


def _articles() -> None:
    """What the articles measured, computed again."""
    with st.expander("What the articles measured on networks, computed again",
                     icon=":material/menu_book:"):  # fmt: skip
        for w in worked_cases():
            says, here, verdict = case_line(w)
            with st.container(gap="xxsmall"):
                st.markdown(f"**{plain(says)}**")
                st.markdown(plain(here))
                st.markdown(plain(verdict))
        st.caption(
            "The articles leave out most of what decides these figures. Reproduced means that "
            "theirs lies in the computed interval under the settings told, which are plausible "
            "and not theirs."
        )
