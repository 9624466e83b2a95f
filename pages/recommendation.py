"""The answer: the sentence, its figures, reasons, what would change it, and the backing."""

from __future__ import annotations

import streamlit as st

from engine.errors import ClusterFitError
from pages.components import answer, backing, fields, labels, next_steps, shell, takeaway

with shell.page(
    "Recommendation",
    ":material/verified:",
    path="pages/recommendation.py",
    heading=False,
    bar=False,
) as workload:
    try:
        result = shell.assessment(workload)
    except ClusterFitError as error:
        st.title("No recommendation", anchor=False)
        st.error(labels.plain(error), icon=":material/error:")
        st.stop()
    answer.headline(result)
    takeaway.downloads(result)
    answer.reasons(result)
    answer.stages(result)
    answer.alternatives(result)
    answer.changes(result)
    answer.ruled_out(result)
    next_steps.links(workload)
    st.subheader("What it rests on", anchor=False)
    backing.score(result)
    fields.weights()
    backing.rules(result)
    backing.assumptions(result)
    backing.prices(result)
    backing.architecture(result)
