"""Question 4: how many hours of useful work a month there are, and how they vary."""

from __future__ import annotations

from datetime import date

import streamlit as st

from engine.explain import curves
from engine.workload.answers import UtilizationBy
from pages.components import fields, labels, question_charts, shell
from pages.components.faq import faq

TITLE = "How much of the time will it work?"
ASKED = {
    UtilizationBy.hours: ("useful_hours_per_month",),
    UtilizationBy.runs: ("runs_per_month", "hours_per_run"),
    UtilizationBy.schedule: ("hours_per_day", "days_per_week"),
}

with shell.page(TITLE, ":material/schedule:", question="utilization") as workload:
    st.markdown(
        "Hardware that is committed is paid for all hours of a month. The more of them do useful "
        "work, the less a useful hour costs."
    )
    fields.field("utilization_by", widget="segments")
    cells = st.grid(columns=2, min_column_width=280, gap="medium")
    for name in (*ASKED[workload.utilization_by], "monthly_variation"):
        with cells.container():
            fields.field(name, sure=False)
    if workload.utilization_by is not UtilizationBy.schedule:
        fields.field("useful_hours_sure", widget="segments", label="How sure of the hours")
    use, told = curves.stated_use(workload)
    if not told:
        st.caption(f"Not answered: {labels.percent(use)} of the month is usual for this work.")

    best = shell.assessment(workload).best
    lead = max(best.stages, key=lambda s: s.usd_per_month.likely)
    unit = curves.unit_of_interest(workload, date.today(), lead.sku)
    if unit is not None:
        found = curves.ways_to_pay(unit)
        crossings = curves.break_evens(found)
        st.subheader(f"What a useful hour of one {labels.plain(unit.name)} costs", anchor=False)
        words = "; ".join(
            f"{way}: never" if at is None else f"{way}: from {at:.0%} on" for way, at in crossings
        )
        question_charts.ways(
            found, use, curves.UTILIZATION_MARKS,
            f"Cost of a useful hour against utilization. Cheaper than on demand: {words}.",
        )  # fmt: skip
        st.caption(
            f"The solid line is your {labels.percent(use)}. Cheaper than on demand, as computed: "
            f"{words}. The dashed lines are the articles' marks."
        )
        rates = [w.usd_per_hour for w in found if w.pays_idle]
        rent = next((w.usd_per_hour for w in found if w.label == "On demand"), 0.0)
        if rates and rent > 0:
            months, variation = curves.demand_by_month(workload)
            level = curves.committed_level(months, min(rates) / rent)
            st.subheader("How much of a varying demand to commit to", anchor=False)
            text = (
                f"Months vary by {labels.percent(variation)}. At these prices commit to "
                f"{level:.0f} of 100 and rent the rest when it comes; the article's 30% rule says "
                f"{'the cloud' if variation > 0.3 else 'commit'}."
            )
            question_charts.demand(months, level, text)
            st.caption(text)
    faq("utilization")
