"""Each plan in one call, from a job and the terms to its document, and the document as a file.

The pages make their documents from reports that they hold already; this is the way of the shell.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date

from engine.assess import assess
from engine.catalogue import load_catalogue
from engine.errors import ClusterFitError, InputError
from engine.explain.jobs import is_compute, job_report
from engine.explain.jobs_models import is_small_model, model_report
from engine.explain.services_report import services_report
from engine.explain.serving import serving_report
from engine.report.plan import Plan, plan_json
from engine.report.plan_jobs import job_document
from engine.report.plan_services import services_document
from engine.report.plan_serving import serving_document
from engine.report.plan_text import plan_text
from engine.report.table import csv_of
from engine.workload.settings import Settings
from engine.workload.workload import Workload


def serving(workload: Workload, settings: Settings, today: date, link: str = "") -> Plan:
    """The serving plan of a job; raises as `serving_report` does."""
    try:
        recommended = assess(workload, settings=settings, today=today).best
    except ClusterFitError:
        recommended = None  # nothing to begin with: the plan's own cheapest comes first
    report = serving_report(
        workload, settings.serving, load_catalogue(), today, settings.costs, recommended
    )
    return serving_document(report, workload, settings, link)


def services(workload: Workload, settings: Settings, today: date, link: str = "") -> Plan:
    """The plan of a service or pipeline.

    Raises
    ------
    InputError : the job is neither, or a set that can't be split fits into no server
    """
    answer = assess(workload, settings=settings, today=today)
    report = services_report(answer)
    if report.sizing is None and report.pipeline is None:
        raise InputError(
            "this job is no service and has no stages",
            where="kind",
            right="a service, a data system or a pipeline; or stages in the table [architecture]",
        )
    return services_document(report, answer, link)


def jobs(workload: Workload, settings: Settings, today: date, link: str = "") -> Plan:
    """The plan of a compute job or small model.

    Raises
    ------
    InputError : the job is neither, or no hardware is on offer where it must run
    """
    if is_compute(workload):
        found = job_report(workload, settings, today=today)
        return job_document(found, workload, settings, today, link)
    if is_small_model(workload):
        small = model_report(workload, settings, today=today)
        return job_document(small, workload, settings, today, link)
    raise InputError(
        "this job is neither a compute job nor a small model",
        where="kind",
        right="a simulation, rendering, data preparation or the like; or inference with a net, a "
        "recommender or trees",
    )


PLANS: dict[str, Callable[[Workload, Settings, date, str], Plan]] = {
    "serve": serving,
    "services": services,
    "jobs": jobs,
}


def _pdf(plan: Plan) -> bytes:
    from engine.report.plan_pdf import plan_pdf

    return plan_pdf(plan)


FORMATS: dict[str, Callable[[Plan], bytes]] = {
    "text": lambda plan: plan_text(plan).encode(),
    "json": lambda plan: f"{json.dumps(plan_json(plan), ensure_ascii=False, indent=2)}\n".encode(),
    "csv": lambda plan: csv_of(plan.rows),
    "pdf": _pdf,
}
