"""Question 4: how many hours of useful work a month there are, and how they vary."""

from __future__ import annotations

from datetime import date

import streamlit as st

from engine.assessment import PLACEMENT_LABELS
from engine.explain.curves import common, utilization
from engine.workload.answers import UtilizationBy
from pages.components import fields, labels, question_charts, shell

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
    cells = st.grid(columns=3, min_column_width=220, gap="medium")
    for name in (*ASKED[workload.utilization_by], "monthly_variation"):
        with cells.container():
            fields.field(name, sure=False)
    fields.field("useful_hours_sure", widget="segments", label="How sure of the hours")
    use, told = common.stated_use(workload)
    if not told:
        st.caption(f"Not answered yet: {use:.0%} of the month is usual for this kind of work.")

    answer = shell.assessment(workload)
    lead = common.lead_stage(answer)
    hardware = PLACEMENT_LABELS[lead.hardware]
    unit = utilization.unit_of_interest(answer, date.today())
    found = utilization.ways_to_pay(unit)
    title, text = utilization.cheapest_at(found, use)
    st.subheader(labels.plain(title), anchor=False)
    question_charts.ways(
        found, hardware, use, utilization.UTILIZATION_MARKS, utilization.break_evens(found),
        "you" if told else "usual",
        f"Cost of a useful hour of one {unit.name} against utilization. {title}. {text}",
    )  # fmt: skip
    st.caption(
        labels.plain(
            f"One {unit.name}. {text} Dots: break-evens at today's prices. Dashed: the articles' "
            "marks. The recommended machines would be busy "
            f"{labels.percent(utilization.use_on(lead))} of the hours."
        )
    )
    plan = utilization.commitment(answer, found, lead)
    if plan is not None:
        picture, follows = st.columns([3, 2], gap="large")
        with picture:
            st.subheader(labels.plain(plan.title), anchor=False)
            question_charts.demand(plan, hardware)
        with follows:
            st.subheader("What follows for this job", anchor=False)
            st.markdown(labels.plain(plan.message))
    question_charts.verdicts("utilization", answer)
    question_charts.faq("utilization", answer)
