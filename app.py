"""The first screen: what this is, where to begin, and worked examples to start from."""

from __future__ import annotations

import streamlit as st

from engine.workload.examples import EXAMPLES
from pages.components import fields, labels, shell

PROMISE = (
    "GPUs, CPUs, both, or one plain machine: how many, rented or bought, at what cost, how sure "
    "that is, and what would change the answer."
)
STEPS = [
    (
        ":material/quiz:",
        "Answer four questions",
        "“I don't know” is an answer: it widens the range.",
    ),
    (
        ":material/balance:",
        "See what it comes to",
        "Every figure has a range, a source and a date.",
    ),
    (":material/ios_share:", "Take it to the meeting", "A PDF, a table, and a link with it all."),
]

with shell.page("Start", ":material/home:", path="app.py", heading=False):
    st.title("Which hardware does your job belong on?", anchor=False)
    st.markdown(PROMISE)

    with st.container(border=True):
        left, right = st.columns(2)
        with left:
            fields.field("kind", label="What kind of work is it?", help=None)
        with right:
            fields.field("name", label="What do you call it?", help=None, placeholder="Optional")
        shell.go(shell.QUESTIONS[0][1], "Begin with question 1")

    steps = st.grid(columns=3, min_column_width=240)
    for icon, title, text in STEPS:
        with steps.container():
            st.markdown(f"{icon} **{title}**  \n{text}")

    st.subheader(f"Or start from one of {len(EXAMPLES)} worked cases", anchor=False)
    st.caption("Each opens with its recommendation; change any answer from there.")
    cards = st.grid(columns=3, min_column_width=260, border=True)
    for example in EXAMPLES.values():
        with cards.container(gap="xsmall"):
            st.markdown(f"**{labels.plain(example.title)}**")
            st.markdown(labels.plain(example.story))
            st.caption(labels.plain(labels.article(example.article)))
            shell.link(
                shell.RECOMMENDATION[0],
                "See the answer",
                to=example.workload,
                icon=":material/arrow_forward:",
                icon_position="right",
            )
