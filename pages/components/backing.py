"""What an answer rests on: score, rules, assumptions, prices, architecture. Closed until asked."""

from __future__ import annotations

import streamlit as st

from engine.assessment import PLACEMENT_LABELS, Assessment
from pages.components import labels
from pages.components.labels import plain

AGREES = {
    True: ":material/check: Agree:",
    False: ":material/close: Differ:",
    None: ":material/remove: Does not apply:",
}


def score(answer: Assessment) -> None:
    """How the points add up for the recommendation."""
    with st.expander("How the score adds up", icon=":material/functions:"):
        for part in answer.best.contributions:
            made_of = f"{labels.percent(part.weight)} × {labels.number(part.value)}"
            item(
                f"**{labels.points(part.points)}** {plain(part.title)} ({made_of})",
                f"{part.because} ({part.source})",
            )
        st.caption(f"The points add up to the score: {labels.score(answer.best.score)} of 100.")


def rules(answer: Assessment) -> None:
    """The articles' rules beside the model."""
    differ = sum(rule.agrees is False for rule in answer.rules)
    title = f"The articles' rules against the model: {differ} of {len(answer.rules)} differ"
    with st.expander(title, icon=":material/rule:"):
        for rule in answer.rules:
            with st.container(gap="xxsmall"):
                st.markdown(f"{AGREES[rule.agrees]} **{plain(rule.rule)}**")
                says, model = _word(rule.says), _word(rule.model_says)
                st.markdown(plain(f"The rule says {says}, the model says {model}."))
                followed = f"Followed: {rule.follows}; {rule.why}".rstrip("; ")
                st.caption(plain(f"{followed} ({labels.article(rule.article)})"))


def _word(outcome: str) -> str:
    """What a rule or the model says, in the words of the page."""
    return PLACEMENT_LABELS.get(outcome, outcome)


def assumptions(answer: Assessment) -> None:
    """Every input as it entered the calculation."""
    open_ones = sum(not assumption.answered for assumption in answer.assumptions)
    title = f"Assumptions: {len(answer.assumptions)} inputs, {open_ones} not answered by you"
    with st.expander(title, icon=":material/fact_check:"):
        for found in answer.assumptions:
            figure = f"{labels.value(found.estimate)} ({labels.interval(found.estimate)})"
            item(f"**{plain(found.title)}** {plain(figure)}", f"{found.source}, {found.certainty}")


def prices(answer: Assessment) -> None:
    """The prices behind the answer and their rivals, each with its age."""
    with st.expander(
        "Prices: who else rents this, and how old each price is", icon=":material/sell:"
    ):
        for price in answer.price_alternatives:
            grey = price.freshness != "fresh"
            line = plain(
                f"{price.provider}, {price.sku}, {price.region}: "
                f"{labels.money(price.usd_per_unit_hour)} per hour, {price.acquisition}"
            )
            st.markdown(
                f":gray[{line}] · {labels.price_age(price)}"
                if grey
                else f"{line} · {labels.price_age(price)}"
            )
            st.caption(plain(f"{price.source}, read {labels.day(price.as_of)}, {price.confidence}"))
        if not answer.price_alternatives:
            st.markdown("No rental price is known for this hardware.")


def architecture(answer: Assessment) -> None:
    """What the worst failure asks for, and whether a distributed system is needed at all."""
    asked = answer.architecture
    need = "needs a" if asked.distributed else "needs no"
    with st.expander(f"Architecture: the job {need} distributed system", icon=":material/hub:"):
        st.markdown(plain(asked.verdict))
        for remedy, why in asked.remedies:
            st.markdown(f"**{plain(remedy)}** {plain(why)}")
        if asked.diagram:
            st.code(asked.diagram, language=None, wrap_lines=True)


def item(line: str, under: str) -> None:
    """A line of Markdown with a text in small under it."""
    with st.container(gap="xxsmall"):
        st.markdown(line)
        st.caption(plain(under))
