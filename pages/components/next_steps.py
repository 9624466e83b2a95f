"""Where an answer can be taken apart further: the plan pages that fit the job."""

from __future__ import annotations

import streamlit as st

from engine.workload.answers import Kind
from engine.workload.workload import LLM_TRAINING, Workload
from pages.components import shell

WHY = {
    "pages/costs.py": "every way to pay, month by month",
    "pages/training_plan.py": "how to split the job, its memory and days, and its launch files",
    "pages/serving_plan.py": "replicas, latency and tokens against the rate",
    "pages/services_plan.py": "machines, queues and copies, and where each stage runs",
    "pages/jobs_plan.py": "published speed-ups, and small models inside a latency target",
    "pages/reliability.py": "failures, checkpoints and what is lost",
}


def links(workload: Workload) -> None:
    """Links to the plan pages that have something to say of this kind of job."""
    fits = _fitting(workload.kind)
    st.subheader("Take it further", anchor=False)
    for path, title, icon in shell.PLANS:
        if path in fits and path in WHY:
            with st.container(gap="xxsmall"):
                shell.link(path, f"**{title}**: {WHY[path]}", icon=icon)


def _fitting(kind: Kind) -> set[str]:
    found = {"pages/costs.py", "pages/reliability.py"}
    if kind in LLM_TRAINING:
        return found | {"pages/training_plan.py"}
    if kind in (Kind.online_inference, Kind.batch_inference):
        return found | {"pages/serving_plan.py", "pages/jobs_plan.py"}
    if kind in (Kind.web, Kind.database, Kind.streaming, Kind.search, Kind.etl, Kind.pipeline):
        return found | {"pages/services_plan.py", "pages/jobs_plan.py"}
    return found | {"pages/jobs_plan.py", "pages/services_plan.py"}
