"""The parts of the page on compute jobs and small models; nothing is computed."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.assessment import PriceRef
from engine.estimate.estimate import Estimate
from engine.estimate.small_inference import Rate, models
from engine.estimate.speedups import Speedup
from engine.explain.jobs import JobReport
from engine.explain.jobs_model_words import machines_said
from engine.explain.jobs_models import ModelOption, ModelReport
from engine.report.plan_jobs import hours, units
from engine.workload.jobs_terms import FIELD_LABELS
from pages.components import fields, jobs_charts, labels, shell
from pages.components.labels import plain
from pages.components.term_fields import complain, copy, key_of, term
from pages.components.tiles import tile

OF = "jobs"
SHOWN = 8
USUAL = ""


def _span(e: Estimate) -> str:
    return f"{labels.money(e.low)} to {labels.money(e.high)}"


def _price(usd: float, ref: PriceRef | None, unit: str, owned: bool) -> str:
    said = plain(f"{labels.money(usd)} an hour a {unit}")
    if owned:
        return f"{said}, owned, used or not"
    if ref is None:
        return said
    return f"{said}, {plain(ref.provider)}, {labels.price_age(ref)}"


# --- compute jobs


def job_tiles(report: JobReport) -> None:
    """Cost and time of a run on both, and how sure it is."""
    gpu, cpu = report.gpu, report.cpu
    with st.grid(columns=4, min_column_width=170):
        for side, option in (("GPU", gpu), ("CPU", cpu)):
            if option is None:
                tile(f"A run, {side}", "not possible", "see below")
                continue
            tile(f"A run, {side}", labels.money(option.usd_per_run.likely),
                  _span(option.usd_per_run), "The range holds in 8 of 10 cases")  # fmt: skip
        s = report.speedup
        tile("Speed-up", f"{labels.number(s.likely, digits=2)} times",
              f"{labels.number(s.low, digits=2)} to {labels.number(s.high, digits=2)}",
              "Of the parallel part, one H100 against one 96-vCPU server: "
              f"{report.speedup_said}")  # fmt: skip
        if gpu is not None:
            tile("GPU the cheaper", f"{report.gpu_cheaper:.0%}", "of cases drawn",
                  "Over the ranges of speed-up, fraction, input and output, hours and "
                  "prices")  # fmt: skip


def job_cards(report: JobReport) -> None:
    """The cheapest in time of each kind, beside each other."""
    left, right = st.columns(2, gap="large")
    for cell, title, option in ((left, "GPU", report.gpu), (right, "CPU", report.cpu)):
        with cell, st.container(border=True, height="stretch"):
            st.markdown(f"**{title}**")
            if option is None:
                for reason in report.no_gpu:
                    st.markdown(plain(f"Not possible: {reason}."))
                continue
            unit = "GPU" if option.hardware == "gpu" else "server"
            st.markdown(plain(units(option)))
            st.table(
                {
                    "A run takes": plain(hours(option)),
                    "A run costs": plain(
                        f"{labels.money(option.usd_per_run.likely)} ({_span(option.usd_per_run)})"
                    ),
                    "A month": plain(
                        f"{labels.money(option.usd_per_month.likely)} "
                        f"({_span(option.usd_per_month)})"
                    ),
                    "It waits for": plain(option.bound),
                    "Price": _price(option.usd_per_unit_hour, option.price, unit, option.owned),
                },
                border="horizontal",
            )


def job_options(report: JobReport) -> None:
    """All hardware for the job, and what is out of the question."""
    st.subheader("All machines for this job", anchor=False)
    rows = [
        {
            "Machines": plain(units(o))
            + (f"  \n{labels.price_age(o.price)}" if o.price is not None else ""),
            "A run takes": plain(labels.duration(o.hours.likely) + (", late" if o.late else "")),
            "A run costs": plain(labels.money(o.usd_per_run.likely)),
            "Waits for": plain(o.bound),
        }
        for o in report.options
    ]
    st.table(rows[:SHOWN], hide_index=True)
    if len(rows) > SHOWN:
        with st.expander(f"{len(rows) - SHOWN} more"):
            st.table(rows[SHOWN:], hide_index=True)
    if report.ruled_out:
        with st.expander(
            f"{labels.count(len(report.ruled_out), 'machine')} out of the question, why"
        ):
            st.table(
                [{"Machine": plain(n), "Why": plain(c.reason)} for n, c in report.ruled_out],
                hide_index=True,
            )


def published(found: Sequence[Speedup], said: str, drawn: bool = True) -> None:
    """The published figures: a picture of those that say against what, and all of them in rows."""
    st.subheader("Published speed-ups, and what they are worth", anchor=False)
    st.caption(plain(said))
    if drawn and any(r.per_server is not None for r in found):
        jobs_charts.figures(found)
        st.caption(
            "Lines: from the figure as published to the same in proportion to the memory "
            "bandwidth of an H100. Left of the dashed line the server was the faster."
        )
    with st.expander(f"All {labels.count(len(found), 'figure')} with sources",
                     icon=":material/list:"):  # fmt: skip
        st.table(
            [
                {
                    "Software": plain(r.application) + f"  \n:small[{plain(r.case)}]",
                    "Compared": plain(f"{_many(r)} against {r.cpu}"),
                    "Published": plain(jobs_charts.published(r))
                    + f"  \n:small[{plain(SCOPES[r.scope])}, {plain(r.precision)}]",
                    "Worth": plain(_worth(r)),
                    "Source": plain(f"{r.provenance.source} ({labels.day(r.provenance.as_of)})")
                    + (f"  \n:small[{plain(r.notes)}]" if r.notes else ""),
                }
                for r in found
            ],
            hide_index=True,
        )


SCOPES = {"application": "whole run", "kernel": "that part alone"}


def _many(r: Speedup) -> str:
    return r.gpu if not r.gpus or r.gpus == 1 else f"{r.gpu} (× {r.gpus:g})"


def _worth(r: Speedup) -> str:
    if r.per_server is None:
        return "not told"
    low, likely, high = (labels.number(v, digits=2) for v in r.per_server)
    return f"{likely} ({low} to {high})" if low != high else likely


def job_inputs(report: JobReport) -> None:
    """The job's own answers, and the terms of this page."""
    with st.expander("The job, its data, its licence", icon=":material/tune:"):
        st.caption(
            "Answers of the job are the same as on the other pages; the rest is asked here only."
        )
        first, second, third = st.columns(3, gap="large")
        with first:
            fields.field("parallel_fraction", sure=False)
            fields.field("gpu_speedup", sure=False)
            fields.field("precision", widget="select")
        with second:
            field_of_work()
            term(OF, "copied_gb", placeholder="none")
            term(OF, "read_gb", placeholder="none")
            term(OF, "feed_gb_per_s", placeholder="1.5")
        with third:
            fields.field("rewrite", widget="select")
            term(OF, "licence_covers_gpus")
            term(OF, "gpu_fee_usd_per_month")
        st.table(
            [
                {
                    "Taken": plain(fields.title_of(name) if name in TITLED else NAMES[name]),
                    "Low": labels.number(r.low),
                    "Likely": labels.number(r.likely),
                    "High": labels.number(r.high),
                    "From": plain(r.source),
                }
                for name, r in report.inputs
            ],
            hide_index=True,
        )


TITLED = ("parallel_fraction", "current_units", "runs_per_month")
NAMES = {
    "io_share": "Share of input and output",
    "useful_hours_per_month": "Hours a month on today's machines",
    "contention": "Contention, a further machine",
}


def field_of_work() -> None:
    """The field of work whose published figures are taken."""
    term(OF, "field", words=FIELD_LABELS, widget="select")


# --- small models


def model_tiles(report: ModelReport) -> None:
    """Cost a month on both, what one machine carries, its shortest answer."""
    with st.grid(columns=4, min_column_width=170):
        for side, option in (("GPU", report.gpu), ("CPU", report.cpu)):
            if option is None:
                late = any(r.hardware == side.lower() for r in report.refused)
                tile(f"A month, {side}", "too slow" if late else "unknown", "see below")
                continue
            usd = option.usd_per_month
            tile(f"A month, {side}", labels.money(usd.likely), _span(usd),
                  "From low to high rates and prices")  # fmt: skip
        for side, option in (("GPU", report.gpu), ("CPU", report.cpu)):
            if option is not None:
                tile(f"A million, {side}", labels.money(option.usd_per_million),
                      f"{labels.number(option.floor_ms)} ms at best",
                      "Items answered by one machine at its planned load")  # fmt: skip


def model_cards(report: ModelReport) -> None:
    """The cheapest of each kind beside each other."""
    left, right = st.columns(2, gap="large")
    for cell, side, option in ((left, "GPU", report.gpu), (right, "CPU", report.cpu)):
        with cell, st.container(border=True, height="stretch"):
            st.markdown(f"**{side}**")
            if option is None:
                st.markdown(plain(_refused_of(report, side.lower())))
                continue
            st.markdown(plain(machines_said(option)))
            c = option.capacity_per_s
            st.table(
                {
                    "One carries": plain(
                        f"{labels.number(c.likely)} a second ({labels.number(c.low)} to "
                        f"{labels.number(c.high)})"
                    ),
                    "Shortest answer": plain(f"{labels.number(option.floor_ms)} ms"),
                    "How": plain(_how(option)),
                    "Price": _price(
                        option.usd_per_machine_hour, option.price, "machine", option.owned
                    ),
                },
                border="horizontal",
            )


def _how(o: ModelOption) -> str:
    cores = labels.count(o.cores_a_worker, "core")
    return o.how if o.hardware == "gpu" else f"{cores} for each item; {o.how}"


def _refused_of(report: ModelReport, hardware: str) -> str:
    none = [r for r in report.refused if r.hardware == hardware]
    if not none:
        return "No rate of one was published that could be checked."
    best = min(none, key=lambda r: r.floor_ms)
    return (
        f"None answers within {labels.number(report.target_ms)} ms. The shortest answer is "
        f"{labels.number(best.floor_ms)} ms, on {best.name}."
    )


def model_options(report: ModelReport, batch: bool) -> None:
    """All machines that answer in time, and those that do not."""
    st.subheader("All machines" if batch else "All machines that answer in time", anchor=False)
    rows = [
        {
            "Machines": plain(machines_said(o))
            + (f"  \n{labels.price_age(o.price)}" if o.price is not None else ""),
            "A month": plain(labels.money(o.usd_per_month.likely)),
            "One carries": plain(f"{labels.number(o.capacity_per_s.likely)} a second"),
            "A million": plain(labels.money(o.usd_per_million)),
            "Rate": "measured" if o.measured else "follows from others",
        }
        for o in report.options
    ]
    if rows:
        st.table(rows[:SHOWN], hide_index=True)
    if len(rows) > SHOWN:
        with st.expander(f"{len(rows) - SHOWN} more"):
            st.table(rows[SHOWN:], hide_index=True)
    if report.refused:
        with st.expander(f"{labels.count(len(report.refused), 'machine')} too slow, and by what"):
            st.table(
                [
                    {"Machine": plain(r.name),
                     "Shortest answer": plain(f"{labels.number(r.floor_ms)} ms")}
                    for r in report.refused
                ],
                hide_index=True,
            )  # fmt: skip


def model_load(batch: bool) -> None:
    """What moves most, all of it the job's own answers."""
    if batch:
        fields.field("items_per_run", sure=False)
        fields.field("runs_per_month", sure=False)
        return
    fields.field("rate_per_s", sure=False)
    fields.field("peak_factor", sure=False)
    fields.field("latency_ms", sure=False)


def model_asked(report: ModelReport, batch: bool) -> None:
    """What was planned for."""
    if not batch:
        peak, target = labels.number(report.peak_per_s), labels.number(report.target_ms)
        st.caption(plain(f"Planned for {peak} a second at the peak, within {target} ms."))


def model_inputs(report: ModelReport, batch: bool) -> None:
    """Which measured model it is like, how large, how requests come."""
    left, right = st.columns(2, gap="large")
    with left:
        _like(report)
        term(OF, "size", placeholder=labels.number(report.size, digits=2))
    with right:
        if not batch:
            term(OF, "hold_ms")
            term(OF, "burst")
    st.caption(plain(f"Work of one item: {report.size_said}."))


def _like(report: ModelReport) -> None:
    known = models()
    value = shell.shown("like", OF)
    names = [USUAL, *known]
    if value not in names:
        names.append(value)

    def said(id: str) -> str:
        if id == USUAL:
            return f"as the kind of model ({report.model.title})"
        return f"{known[id].title}: {known[id].item}" if id in known else f"{id}: unknown"

    st.selectbox(
        "Your model is most like", names, format_func=said,
        key=shell.bind(key_of(OF, "like"), value), on_change=copy, args=(OF, "like"),
    )  # fmt: skip
    complain(OF, "like")


def measured(found: Sequence[Rate]) -> None:
    """The measured rates behind it."""
    with st.expander(f"{labels.count(len(found), 'measured rate')} with sources",
                     icon=":material/list:"):  # fmt: skip
        st.table(
            [
                {
                    "Hardware": plain(r.name),
                    "Offline": plain(f"{labels.number(r.offline_per_s)} a second"),
                    "Inside the target": plain(_inside(r)),
                    "A core": plain(labels.number(r.offline_per_s / r.cores)) if r.cores else "",
                    "Source": plain(f"{r.provenance.source} ({labels.day(r.provenance.as_of)})"),
                }
                for r in found
            ],
            hide_index=True,
        )


def _inside(r: Rate) -> str:
    if r.server_per_s is None or r.server_target_ms is None:
        return "not taken"
    return (
        f"{labels.number(r.server_per_s)} a second, 99% in {labels.number(r.server_target_ms)} ms"
    )
