"""What failures do to the run: how often it stops, what that costs, what guards it."""

from __future__ import annotations

import streamlit as st

from engine.errors import ClusterFitError
from engine.explain import reliability
from engine.wording import number, spent
from engine.workload.reliability_terms import Spot
from pages.components import labels, reliability_charts, reliability_parts, shell
from pages.components.term_fields import term

TITLE = "Reliability"
OF = "reliability"
SPOT = {Spot.plan: "as in the plan", Spot.on: "yes", Spot.off: "no"}

with shell.page(TITLE, ":material/health_and_safety:"):
    try:
        answer = shell.assessment(shell.workload())
        terms = shell.terms(OF)
        everything = reliability_parts.shown(answer, terms)
    except ClusterFitError as error:
        st.error(labels.plain(error), icon=":material/error:")
        reliability_parts.fleet_choice(OF)
        st.stop()
    found, plan = everything.figures, everything.figures.plan
    st.markdown(f"**{labels.plain(found.sentence)}**")
    if not plan.service:
        reliability_parts.figures(found)
    for note in found.notes:
        st.info(labels.plain(note), icon=":material/info:")

    if plan.service:
        reliability_parts.service(plan, answer, terms)
    else:
        by_interval = st.container()
        if plan.in_step:
            by_size, by_interval = st.columns(2, gap="large")
            with by_size:
                curve = everything.sizes
                st.subheader(labels.plain(curve.title), anchor=False)
                reliability_charts.size(curve, plan.unit)
                st.caption(labels.plain(curve.message))
                if plan.unit == "GPU":
                    reliability_parts.published(found)
        with by_interval:
            saving = everything.intervals
            st.subheader(labels.plain(saving.title), anchor=False)
            reliability_charts.interval(saving)
            st.caption(labels.plain(saving.message))
            reliability_parts.checkpoint(plan, found)

        lost, guarded = st.columns([2, 3], gap="large")
        with lost:
            gone = spent(found.lost_usd.likely) if found.ends else "nearly all"
            st.subheader(labels.plain(f"{gone[0].upper()}{gone[1:]} lost, and where"),
                         anchor=False)  # fmt: skip
            reliability_charts.losses(found.losses, found.ends)
        with guarded:
            st.subheader("What would change it", anchor=False)
            reliability_parts.choices(found)
            reliability_parts.spot_price(plan, terms)

    st.subheader("What you know better", anchor=False)
    st.caption("Whatever is left open is taken from the plan or from published figures.")
    run, stops, guards = st.columns(3, gap="large")
    with run:
        term(OF, "devices", placeholder=f"{plan.devices:,}")
        if not plan.service:
            term(OF, "run_days", placeholder=f"{number(plan.useful_hours / 24)}")
        term(OF, "spot", words=SPOT, widget="segments")
        if plan.spot:
            term(OF, "reclaims_per_day")
    with stops:
        if plan.unit == "GPU" or terms.like:
            reliability_parts.fleet_choice(OF)
        term(OF, "failures_per_1000_node_days")
        term(OF, "restart_min")
        term(OF, "repair_h")
    with guards:
        if not plan.service:
            term(OF, "stall_s")
            term(OF, "interval_min", placeholder="the best")
            term(OF, "spares", placeholder="as many as pay")
            term(OF, "one_slower_pct")
            term(OF, "checks")
            if terms.checks:
                term(OF, "check_every_h", placeholder="6")
                term(OF, "check_pct", placeholder=number(reliability.watch_pct(terms)))
                term(OF, "sigmas")

    reliability_parts.articles(found)
    reliability_parts.backing(found)
