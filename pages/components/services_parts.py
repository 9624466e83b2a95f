"""The parts of the page on services and pipelines; nothing is computed."""

from __future__ import annotations

import base64
import html
from typing import Any

import pandas as pd
import streamlit as st

from engine.assessment import Assessment
from engine.estimate.services import TITLES as RESOURCE_TITLES
from engine.estimate.services import Resource
from engine.explain.services import TERMS, Fleet, Sizing
from engine.explain.services_drawing import TITLES as PATTERNS
from engine.explain.services_drawing import Drawing, draw_pipeline
from engine.explain.services_pipeline import PipelinePlan, StagePlace
from engine.explain.services_reasons import losses
from engine.explain.services_report import ServicesReport, services_report
from engine.explain.services_svg import svg
from engine.workload.answers import Kind
from engine.workload.services_terms import MOST_STAGES, STAGE_LISTS, Shown
from pages.components import labels, shell
from pages.components.labels import plain
from pages.components.term_fields import complain, term
from pages.components.tiles import tile

OF = "architecture"
COLUMNS = {
    "name": ("stage_names", "Stage"),
    "hours": ("stage_hours", "Hours on one CPU server"),
    "fraction": ("stage_fractions_pct", "Parallelizable, %"),
    "speedup": ("stage_speedups", "Speed-up on a GPU"),
    "gb": ("stage_gb", "GB handed on"),
}
SHORT: dict[Resource, str] = {
    "cores": "CPU", "memory": "Memory", "network": "Network", "disk_rate": "Disk rate",
    "disk_ops": "Disk I/O", "disk_space": "Disk",
}  # fmt: skip
FRESH = {"name": "", "hours": 1.0, "fraction": 95.0, "speedup": 1.0, "gb": 0.0}


def report_of(answer: Assessment) -> ServicesReport:
    """The engine's report, worked out once for each workload, its terms and the day."""
    key = (answer.workload.model_dump_json(), shell.settings().model_dump_json(),
           answer.today.isoformat())  # fmt: skip
    return _report(key, answer)


@st.cache_resource(max_entries=128, show_spinner="Working out machines and placements…")
def _report(key: tuple[str, ...], _answer: Assessment) -> ServicesReport:
    # Frozen through and through, so all sessions may share one object.
    with shell.worked_out("machines and placements", *key):
        return services_report(_answer)


def figures(s: Sizing) -> None:
    """Machines, cost, what runs out first, copies."""
    m, usd = s.machines, s.usd
    with st.grid(columns=4, min_column_width=170):
        tile("CPU servers", f"{m.likely:,.0f}", f"{m.low:,.0f} to {m.high:,.0f}", s.fleet.name)
        tile(
            "Their cost a month", labels.money(usd.likely),
            f"{labels.money(usd.low)} to {labels.money(usd.high)}",
            f"{s.fleet.terms.capitalize()}; storage {labels.money(s.fleet.storage_usd)} of it"
            + (f", people {labels.money(s.fleet.people_usd)}" if s.fleet.people_usd else ""),
        )  # fmt: skip
        tile("Runs out first", SHORT[s.fleet.binds], "at the peak", RESOURCE_TITLES[s.fleet.binds])
        g, spare = s.guarantee, s.fleet.machines - s.fleet.carrying
        if g.copies > 1:
            tile("Copies of the data", str(g.copies), losses(s), g.why)
        else:
            tile("Spare machines", f"{spare:,}", "beyond the load", g.why)
    st.caption("A range holds in 8 of 10 cases.")


def resources(s: Sizing) -> None:
    """Each resource with its demand, its range, how many machines it fills, and its formula."""
    st.table(
        [
            {
                "Resource": (
                    f"**{plain(r.title)}** :material/arrow_back: runs out first"
                    if r.binds
                    else plain(r.title)
                )
                + f"  \n:small[:gray[{plain(r.formula)}]]",
                "At the peak": plain(labels.number(r.amount.likely, r.amount.unit)),
                "8 of 10 cases": plain(
                    f"{labels.number(r.amount.low)} to {labels.number(r.amount.high)}"
                ),
                "Fills": plain(_fills(r.full)),
            }
            for r in s.rows
        ],
        hide_index=True,
    )


def _fills(machines: float) -> str:
    if machines == 0:
        return "no machine"
    if machines >= 0.1:
        return f"{labels.number(machines, digits=2 if machines < 100 else 3)} machines"
    return "almost nothing" if machines < 0.001 else f"{machines:.1%} of one"


def machines(s: Sizing) -> None:
    """The machines taken, and the next cheapest."""
    st.table([_fleet(f, s.people) for f in (s.fleet, *s.alternatives)], hide_index=True)
    st.caption(plain(s.chosen))


def _fleet(f: Fleet, people: bool) -> dict[str, str]:
    return {
        "Machine": plain(f"{f.machines:,} × {f.name}"),
        "For the load": f"{f.carrying:,}",
        "Runs out first": RESOURCE_TITLES[f.binds],
        "Machines": plain(labels.money(f.usd)),
        "Storage": plain(labels.money(f.storage_usd)),
        **({"People": plain(labels.money(f.people_usd))} if people else {}),
        "Paid": f.terms,
        "Price": labels.price_age(f.price) if f.price is not None else f.no_price,
    }


def picture(drawing: Drawing) -> None:
    """The drawing in the theme's colours, with its text and as a file."""
    dark = st.context.theme.type == "dark"
    data = base64.b64encode(svg(drawing, dark=dark).encode()).decode()
    st.html(
        f'<img src="data:image/svg+xml;base64,{data}" alt="{html.escape(drawing.alt)}" '
        'style="width:100%;max-width:466px;height:auto">'
    )
    st.caption(plain(drawing.message))
    st.download_button(
        "Drawing (SVG)", lambda: svg(drawing), f"{drawing.title.lower().replace(' ', '_')}.svg",
        "image/svg+xml", icon=":material/download:", on_click="ignore",
        key=f"svg_{drawing.title}",
    )  # fmt: skip


def reasons(report: ServicesReport) -> None:
    """What is asked for and what is not, each with its number and why."""
    for a in report.asked:
        icon = ":material/check_circle:" if a.needed else ":material/remove_circle:"
        with st.container(gap="xxsmall"):
            st.markdown(f"{icon} **{plain(a.title)}: {plain(a.how_many)}**")
            st.caption(plain(a.why) + ".")


def pattern_choice() -> None:
    """Which architecture is drawn."""
    words = {Shown.fitting: "the one that fits", **PATTERNS}
    term(OF, "shown", words=words, widget="select")


def patterns(report: ServicesReport) -> None:
    """Every architecture, whether it fits, and why."""
    st.table(
        [
            {
                "Architecture": plain(p.title),
                "Fits": ":material/check: yes" if p.fits else "no",
                "Why": plain(p.why),
            }
            for p in sorted(report.patterns, key=lambda p: not p.fits)
        ],
        hide_index=True,
    )


def properties(report: ServicesReport) -> None:
    """The five properties of a distributed system for the recommendation."""
    with st.expander("Five properties of a distributed system", icon=":material/fact_check:"):
        if report.waits:
            st.markdown(plain(report.waits))
        st.table(
            [
                {"Property": plain(p.title), "It is": p.status, "Why": plain(p.why)}
                for p in report.properties
            ],
            hide_index=True,
        )


# --- pipelines


def pipeline(p: PipelinePlan) -> None:
    """The stages on their hardware, and the placement beside all-CPU, all-GPU and the next best."""
    if p.best is None:
        return
    st.table(
        [
            {
                "Stage": plain(s.name),
                "Runs on": plain(f"{s.units:,} × {s.hardware}"),
                "Takes": plain(_takes(s)),
                "A month": plain(labels.money(s.usd)),
            }
            for s in p.best.stages
        ],
        hide_index=True,
    )
    drawn, beside = st.columns(2, gap="large")
    with drawn:
        drawing = draw_pipeline(p)
        if drawing is not None:
            picture(drawing)
    with beside:
        _placements(p)


def _placements(p: PipelinePlan) -> None:
    """This placement beside all-CPU, all-GPU and the next cheapest, and how sure it is."""
    assert p.best is not None
    assert p.usd is not None
    rows = [("This one", p.best), ("All CPU", p.all_cpu), ("All GPU", p.all_gpu)]
    rows += [("Next best", o) for o in p.others if o.label not in {w.label for _, w in rows}][:3]
    st.table(
        [
            {
                "Placement": plain(name),
                "Stages": plain(w.label),
                "A run": plain(labels.duration(w.hours)) if w.usd < float("inf") else "too slow",
                "A month": plain(labels.money(w.usd)) if w.usd < float("inf") else "–",
            }
            for name, w in rows
        ],
        hide_index=True,
    )
    leaves = (
        f"Data that leaves a provider costs {labels.money(p.best.egress_usd)} a month of it. "
        if p.best.egress_usd
        else ""
    )
    st.caption(
        plain(
            f"{labels.money(p.usd.low)} to {labels.money(p.usd.high)} a month in 8 of 10 cases; "
            f"the placement stays the cheapest on this hardware in {p.probability:.0%} of them. "
            f"{leaves}{labels.number(p.runs)} runs a month, each within "
            f"{labels.duration(p.limit_h)}. All {p.tried:,} placements on the likely hardware "
            f"were compared, {p.paid}."
        )
    )


def _takes(s: StagePlace) -> str:
    if s.standing:
        return "all month"
    after = f", after {labels.duration(s.moved_hours)} of hand-over" if s.moved_hours else ""
    return f"{labels.duration(s.hours)}{after}"


def stages_editor(p: PipelinePlan | None) -> None:
    """The stages as a table that can be edited; whole rows are taken together.

    It stands above what follows from it, or it would move away while one types.
    """
    before = _rows()
    table = pd.DataFrame(before, columns=list(COLUMNS))
    table["name"] = table["name"].astype(str)
    key = f"t_{OF}_stages_{abs(hash(tuple(tuple(r.values()) for r in before)))}"
    st.data_editor(
        table,
        key=key,
        num_rows="dynamic",
        hide_index=True,
        column_config={
            name: st.column_config.TextColumn(title)
            if name == "name"
            else st.column_config.NumberColumn(title, format="%.12g")
            for name, (_, title) in COLUMNS.items()
        },
        on_change=_take,
        args=(key, before),
    )
    for name in ("stage_names", *STAGE_LISTS):
        if shell.complaint(name, OF):
            complain(OF, name)
            break
    usual = "" if p is None or p.own else "While it is empty, the usual stages are taken. "
    st.caption(
        f"{usual}Up to {MOST_STAGES} stages in order. A CPU server has 96 vCPUs. A speed-up of 1 "
        "says that there is no GPU program: on a GPU machine the stage then runs on the processors "
        "beside the GPU. Runs a month are asked under utilization, the deadline under details."
    )


def _rows() -> list[dict[str, Any]]:
    lists = {name: list(shell.shown(of, OF)) for name, (of, _) in COLUMNS.items() if name != "name"}
    n = max((len(v) for v in lists.values()), default=0)
    names = str(shell.shown("stage_names", OF)).split(";")
    return [
        {
            "name": names[i] if i < len(names) else "",
            **{name: v[i] if i < len(v) else FRESH[name] for name, v in lists.items()},
        }
        for i in range(n)
    ]


def _take(key: str, before: list[dict[str, Any]]) -> None:
    edit = st.session_state[key]
    rows = [{**row} for row in before]
    for index, change in edit["edited_rows"].items():
        rows[int(index)].update(change)
    rows = [row for i, row in enumerate(rows) if i not in set(edit["deleted_rows"])]
    rows += [{**FRESH, **row} for row in edit["added_rows"] if row]
    filled = [{k: FRESH[k] if v is None else v for k, v in row.items()} for row in rows]
    values: dict[str, Any] = {
        of: tuple(row[name] for row in filled)
        for name, (of, _) in COLUMNS.items()
        if name != "name"
    }
    names = ";".join(str(row["name"]).replace(";", " ").replace(",", " ") for row in filled)
    shell.change_terms(OF, stage_names=names.rstrip(";"), **values)


# --- what is known better, what it rests on


def known_better(kind: Kind, s: Sizing) -> None:
    """The terms that can change the answer, each with what is taken while it is open."""
    st.caption(
        "Whatever is left open is taken from the job or from the tables. Rate, peak, CPU time, "
        "working set and data stand on the page of details."
    )
    x = s.point
    usual = {
        "item_kb": labels.number(x["request_kb"]),
        "answer_kb": labels.number(x["answer_kb"]),
        "write_pct": f"{x['write_share']:.0%}".removesuffix("%"),
        "retention_days": labels.number(x["retention_days"]),
        "copies": str(s.guarantee.copies),
        "lag_s": labels.number(x["lag_s"]),
        "disk_mb_per_s": labels.number(x["machine_disk_mb_per_s"]),
    }
    cells = st.grid(columns=3, min_column_width=220, gap="medium")
    for name in TERMS[kind]:
        with cells.container():
            if name in usual:
                term(OF, name, placeholder=usual[name])
            else:
                term(OF, name)


def articles(report: ServicesReport) -> None:
    """What the articles say of such services beside what comes out of the same figures."""
    for a in report.sayings:
        with st.container(gap="xxsmall"):
            st.markdown(f"**{plain(a.says)}** ({plain(a.article)}, {plain(a.claims)})")
            st.markdown(plain(a.here))


def inputs(s: Sizing) -> None:
    """Every input of the sizing with its range and source."""
    with st.expander("Every input with its range and source", icon=":material/list:"):
        st.table(
            [
                {
                    "Input": plain(name.replace("_", " ")),
                    "Low": labels.number(r.low),
                    "Likely": labels.number(r.likely),
                    "High": labels.number(r.high),
                    "Unit": plain(r.unit),
                    "Source": plain(r.source),
                }
                for name, r in s.inputs.items()
            ],
            hide_index=True,
        )
