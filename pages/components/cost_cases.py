"""The articles' money cases on the costs page: as written, corrected, and why they differ."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import streamlit as st

from engine.catalogue import load_catalogue
from engine.cost.worked_cases import WorkedCase, worked_cases
from engine.costing import equal_work_view as options_view
from engine.costing import view
from engine.costing.equal_work import MOST_PARAMS, MOST_TOKENS, Work, articles_work, equal_work
from engine.errors import ClusterFitError
from pages.components import answer, labels
from pages.components.labels import plain


def cases(today: date) -> None:
    """One case at a time, with each of its figures and what follows from them."""
    found = {case.id: case for case in worked_cases()}
    chosen = st.selectbox(
        "A case of the articles",
        list(found),
        format_func=lambda id: labels.plain(found[id].title),
        key="cost_case",
    )
    case = found[chosen]
    if case.id == "option_a":
        _options(case, today)
        st.subheader("Each figure of the article", anchor=False)
    answer.table(view.case_rows(case), f"{case.title}: as written and corrected")
    st.markdown(plain(case.lesson))
    titles = " and ".join(f"“{labels.article(number)}”" for number in case.article.split(" and "))
    st.caption(
        plain(
            f"From {titles}, claims {', '.join(case.claims)}. In US dollars, worked out by the "
            "same functions as any other plan; what an article leaves out is named so."
        )
    )


def _options(case: WorkedCase, today: date) -> None:
    """The three options side by side: on the same tokens first, then as the article has them."""
    usual = articles_work()
    st.subheader("The three options on the same work", anchor=False)
    with st.grid(columns=3, min_column_width=180):
        params = st.number_input(
            "Parameters · billions",
            min_value=0.001,
            max_value=MOST_PARAMS / 1e9,
            value=usual.params / 1e9,
            format="%.12g",
            key="options_params",
        )
        tokens = st.number_input(
            "Tokens · trillions",
            min_value=0.000001,
            max_value=MOST_TOKENS / 1e12,
            value=usual.tokens / 1e12,
            format="%.12g",
            key="options_tokens",
            help="Twenty a parameter are the least for a model from scratch",
        )
        months = st.number_input(
            "Deadline · months",
            min_value=0.1,
            max_value=60.0,
            value=usual.deadline_months,
            format="%.12g",
            key="options_months",
            help="Option B's own time, unless you have another",
        )
    try:
        equal = equal_work(Work(params * 1e9, tokens * 1e12, months), load_catalogue(), today)
    except ClusterFitError as error:
        st.error(plain(error), icon=":material/error:")
        return
    _chips(options_view.chips(equal))
    _table(options_view.equal_rows(equal), "Options A, B and C on the same tokens")
    st.caption(plain(options_view.told(equal)))
    for head, source, price in options_view.priced(equal):
        with st.container(gap="xxsmall"):
            st.markdown(f"{plain(head)} · {labels.aged(price.freshness, price.age_days)}")
            st.caption(plain(source))
    rows = options_view.owned_rows(equal)
    if rows:
        with st.expander("What Option C's dollars are made of", icon=":material/receipt_long:"):
            answer.table(
                [{"Item": item, "Dollars": dollars} for item, dollars, _ in rows],
                "Option C, row by row",
            )
            for item, _, source in rows:
                if source:
                    st.caption(f"**{plain(item)}**: {plain(source)}")
    st.caption(
        "Your own options are compared on the same work in “All ways to pay for it” above: by the "
        "run, the million units or the useful hour."
    )
    st.subheader("As the article writes them", anchor=False)
    _chips(options_view.written_chips(case))
    _table(options_view.written_rows(case, equal), "Options A, B and C as written")


def _chips(found: Sequence[options_view.Chip]) -> None:
    for chip in found:
        st.markdown(
            f"**Option {chip.option}** :{chip.tone}-badge[{plain(chip.text)}] {plain(chip.reason)}"
        )


def _table(rows: list[dict[str, str]], alt: str) -> None:
    heads = list(rows[0])
    marked = [
        {head: f"**{plain(r[head])}**" if head == heads[0] else plain(r[head]) for head in heads}
        for r in rows
    ]
    answer.table(marked, alt, marked=True)
