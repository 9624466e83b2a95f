"""The engine's reports of compute jobs and small models, kept for each workload, terms and day."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import TypeVar

import streamlit as st

from engine.explain.jobs import JobReport, job_report
from engine.explain.jobs_models import ModelReport, model_report
from engine.workload.settings import Settings
from engine.workload.workload import Workload
from pages.components import shell

R = TypeVar("R")


def compute(of: Workload) -> JobReport:
    """The report of a compute job under this session's terms."""
    return _compute(of.model_dump_json(), shell.settings().model_dump_json(),
                    date.today().isoformat())  # fmt: skip


def model(of: Workload) -> ModelReport:
    """The report of a small model under this session's terms."""
    return _model(of.model_dump_json(), shell.settings().model_dump_json(),
                  date.today().isoformat())  # fmt: skip


@st.cache_resource(max_entries=128, show_spinner=False)
def _compute(body: str, under: str, today: str) -> JobReport:
    return _kept(job_report, body, under, today)


@st.cache_resource(max_entries=128, show_spinner=False)
def _model(body: str, under: str, today: str) -> ModelReport:
    return _kept(model_report, body, under, today)


def _kept(work: Callable[..., R], body: str, under: str, today: str) -> R:
    with shell.worked_out("these figures together", body, under):
        return work(
            Workload.model_validate_json(body),
            Settings.model_validate_json(under),
            today=date.fromisoformat(today),
        )
