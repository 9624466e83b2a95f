"""Costs: every way to pay for the recommended hardware, taken apart to the row."""

from __future__ import annotations

import streamlit as st

from engine.errors import ClusterFitError
from pages.components import cost_cases, cost_parts, cost_takeaway, labels, quotes, shell

with shell.page("Costs", ":material/payments:", heading=False) as workload:
    try:
        result = shell.assessment(workload)
        report = shell.costs(workload)
    except ClusterFitError as error:
        st.title("No costs", anchor=False)
        st.error(labels.plain(error), icon=":material/error:")
        st.stop()
    currency = shell.currency()
    st.title(labels.plain(report.title), anchor=False)
    st.caption(labels.plain(report.subtitle))
    quotes.not_ranked()
    cost_parts.choose(report)
    cost_parts.figures(report.chosen, currency)
    cost_takeaway.downloads(report, result)
    with st.expander("Money, and what the cloud's bill adds", icon=":material/tune:"):
        cost_parts.money_terms()
    st.subheader("All ways to pay for it", anchor=False)
    cost_parts.all_ways(report, currency)
    tabs = st.tabs(
        ["Cash flow", "When each wins", "How much to commit", "Owning", "Idle hours",
         "The move", "Electricity", "Prices", "The articles' cases"]
    )  # fmt: skip
    with tabs[0]:
        cost_parts.cash_flow(report, currency)
    with tabs[1]:
        cost_parts.when_each_wins(report, currency)
    with tabs[2]:
        cost_parts.demand(report, currency)
    with tabs[3]:
        cost_parts.owning(report, currency)
    with tabs[4]:
        cost_parts.idle(report, currency)
    with tabs[5]:
        cost_parts.move(report, currency)
    with tabs[6]:
        cost_parts.carbon(report)
    with tabs[7]:
        cost_parts.prices(report, currency)
    with tabs[8]:
        cost_cases.cases(result.today)
