"""Every claim of the articles: whether it was used, corrected or set aside, and why."""

from __future__ import annotations

import streamlit as st

from engine.catalogue import Claim
from pages.components import catalogue, labels, shell
from pages.components.labels import plain

VERDICTS = {
    "consistent": "Holds",
    "ok_as_heuristic": "A fair rule of thumb",
    "inconsistent_internally": "Contradicts its own article",
    "contradicts_other_seed": "Contradicts another article",
    "contradicts_public_fact": "Contradicts a public fact",
    "unverifiable": "Can't be checked",
}
FAQ = "FAQ: "  # how the articles' own questions and answers begin


def verdict_label(verdict: str) -> str:
    """A verdict in words."""
    return "All verdicts" if verdict == catalogue.ALL else VERDICTS.get(verdict, verdict)


def article_label(article: str) -> str:
    """An article in words."""
    return "All articles" if article == catalogue.ALL else labels.article(article)


def show(claim: Claim) -> None:
    """One claim with its figure, its verdict and what was found."""
    figure = " ".join(filter(None, [claim.value, claim.unit]))
    condition = f" ({claim.condition})" if claim.condition else ""
    with st.container(gap="xxsmall"):
        st.markdown(f"**{plain(verdict_label(claim.verdict))}:** {plain(claim.text)}")
        if figure or condition:
            st.markdown(plain(f"{figure}{condition}"))
        found = "; ".join(filter(None, [claim.check, claim.note]))
        st.caption(plain(" · ".join(filter(None, [claim.id, article_label(claim.article), found]))))


with shell.page("Evidence", ":material/menu_book:"):
    st.markdown(
        "What the three articles say, claim by claim: each was checked against itself, the other "
        "two and public facts before the engine took it in, corrected it or set it aside."
    )
    words = st.text_input("Search", placeholder="For example: utilization, or C100", live=True)
    left, right = st.columns(2)
    with left:
        article = st.selectbox(
            "Article", [catalogue.ALL, *labels.ARTICLES], format_func=article_label
        )
    with right:
        verdict = st.selectbox(
            "Verdict", [catalogue.ALL, *catalogue.verdicts()], format_func=verdict_label
        )
    asked = st.checkbox("Only the answers to the articles' own questions (FAQ)")
    found = catalogue.claims(f"{words or ''} {FAQ if asked else ''}", article, verdict)
    st.subheader(labels.count(len(found), "claim"), anchor=False)
    for claim in catalogue.paged(found, "claims_page"):
        show(claim)
