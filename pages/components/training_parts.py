"""The parts of the training page, in the order in which they are read; nothing is computed."""

from __future__ import annotations

from typing import Any

import streamlit as st

from engine.errors import ClusterFitError
from engine.estimate.layout_cases import worked_layouts
from engine.estimate.model_shape import shape_from_text
from engine.estimate.shape_text import shape_text
from engine.estimate.training_job import PlanResult
from engine.explain import training_patterns
from engine.explain.training_drawing import training_drawing
from engine.planning import recommended, training, training_view
from engine.planning.layout_words import layout_notes, layout_rows
from engine.planning.training import TrainingReport
from engine.report import words
from engine.report.launch import launch_kit
from engine.workload.training_terms import (
    Goal,
    HirePlan,
    TrainingTerms,
    TrainPrecision,
    TrainSoftware,
    TrainTask,
)
from engine.workload.workload import Workload
from pages.components import answer, fields, labels, shell, term_fields
from pages.components import layers as vl
from pages.components.charts import show
from pages.components.labels import plain
from pages.components.layers import ink
from pages.components.services_parts import picture
from pages.components.tiles import tile

TRAINING = "training"
LARGEST_CONFIG = 1_000_000
GOALS = {
    Goal.deadline: "in time, cheapest",
    Goal.cost: "cheapest",
    Goal.time: "fastest",
}
TASKS = {
    TrainTask.by_job: "as the job says",
    TrainTask.pretrain: "all weights, from scratch",
    TrainTask.finetune: "all weights, fine-tuned",
    TrainTask.lora: "LoRA adapters",
    TrainTask.qlora: "QLoRA, weights in 4 bits",
}
PRECISIONS = {
    TrainPrecision.bf16: "bf16",
    TrainPrecision.fp8: "fp8",
    TrainPrecision.fp32: "fp32",
}
SOFTWARE = {
    TrainSoftware.recipes: "vendor's tuned recipes",
    TrainSoftware.own: "Megatron-type, own set-up",
    TrainSoftware.pytorch: "PyTorch FSDP2",
    TrainSoftware.jax: "JAX",
    TrainSoftware.legacy: "before fused attention (2020–22)",
}
HIRES = {
    HirePlan.on_demand: "on demand",
    HirePlan.spot: "spot",
    HirePlan.dedicated: "by the month",
    HirePlan.reserved_1y: "reserved for a year",
    HirePlan.reserved_3y: "reserved for three years",
}


# --- what is asked


def model(workload: Workload) -> None:
    """The model: its config.json, or its size; and the tokens and the deadline."""
    left, right = st.columns([2, 3], gap="large")
    terms: TrainingTerms = shell.terms(TRAINING)
    with left:
        st.file_uploader(
            "The model's config.json, if there is one",
            type=["json"],
            key="train_config",
            on_change=_take_config,
            help="As Hugging Face has it beside the weights; it stays in this session, and the "
            "link carries the model's shape",
        )
        term_fields.complain(TRAINING, "shape")
        if terms.shape:
            st.button(
                "Forget it and go by the size",
                on_click=_forget_config,
                icon=":material/close:",
                type="tertiary",
            )
    with right, st.grid(columns=2, min_column_width=200):
        for name in ("model_params_b", "active_params_b", "train_tokens_b", "deadline_days"):
            if name in ("model_params_b", "active_params_b") and terms.shape:
                continue
            with st.container():
                fields.field(name)
        with st.container():
            term_fields.term(TRAINING, "seq_len")
    try:
        st.markdown(plain(training_view.shape_words(training.model_of(workload, terms))))
    except ClusterFitError as error:
        st.error(plain(error), icon=":material/error:")


def _take_config() -> None:
    given = st.session_state["train_config"]
    if given is None:
        return
    raw = given.getvalue()
    try:
        if len(raw) > LARGEST_CONFIG:
            shell.refuse_term(
                TRAINING, "shape", "", f"{given.name} is no config.json: it has over 1 MB"
            )
            return
        shape = shape_from_text(raw, given.name)
    except ClusterFitError as error:
        shell.refuse_term(TRAINING, "shape", "", str(error))
        return
    st.session_state["train_config_text"] = raw.decode("utf-8-sig", "replace")
    shell.change_terms(TRAINING, shape=shape_text(shape))


def _forget_config() -> None:
    st.session_state.pop("train_config_text", None)
    shell.change_terms(TRAINING, shape="")


def goal_and_hardware(on_offer: dict[str, str], networks: dict[str, str]) -> None:
    """The goal, the GPUs and the network."""
    with st.grid(columns=4, min_column_width=190):
        with st.container():
            term_fields.term(TRAINING, "goal", words=GOALS, widget="select")
        with st.container():
            _pick("gpu", "GPU", {"": "the best for a dollar", **on_offer})
        with st.container():
            _pick("network", "Network between machines", {"": "the usual one", **networks})
        with st.container():
            term_fields.term(TRAINING, "hire", words=HIRES, widget="select")


def more_terms(on_offer: dict[str, str]) -> None:
    """What is seldom changed."""
    with st.grid(columns=4, min_column_width=190):
        for name, said in (
            ("task", TASKS), ("precision", PRECISIONS), ("software", SOFTWARE),
        ):  # fmt: skip
            with st.container():
                term_fields.term(TRAINING, name, words=said, widget="select")
        for name in (
            "software_year", "least_gpus", "most_gpus", "batch_seqs", "lora_rank", "budget_usd",
            "sure_pct", "goodput_pct", "experiments", "slowest_pct", "link_pct",
        ):  # fmt: skip
            with st.container():
                term_fields.term(TRAINING, name)
        with st.container():
            _pick("mixed_with", "Mixed with another GPU", {"": "one kind only", **on_offer})


def _pick(name: str, label: str, choices: dict[str, str]) -> None:
    """A term that is one of the catalogue's ids."""
    value = shell.shown(name, TRAINING)
    known = choices if value in choices else {**choices, value: f"{value} (not on offer)"}
    st.selectbox(
        label,
        list(known),
        format_func=known.__getitem__,
        key=shell.bind(term_fields.key_of(TRAINING, name), value),
        on_change=term_fields.copy,
        args=(TRAINING, name),
    )
    term_fields.complain(TRAINING, name)


def own_steps() -> None:
    """The user's own measurement, which pulls the estimate to it."""
    st.caption(
        "“Ten steps on one node took 41 s”: one measured point of the same code and hardware "
        "narrows the range more than anything else. Choose the GPU above first."
    )
    with st.grid(columns=4, min_column_width=170):
        for name in ("measured_s", "measured_steps", "measured_gpus", "measured_batch"):
            with st.container():
                term_fields.term(TRAINING, name)


# --- what is answered


def figures(plan: PlanResult) -> None:
    """The figures of the plan."""
    with st.grid(columns=3, min_column_width=210):
        for label, value, under in training_view.figures(plan):
            tile(label, value, under)


def beside(report: TrainingReport, workload: Workload) -> None:
    """What the recommendation has for this job, and a button that plans its fleet."""
    try:
        answer = shell.assessment(workload)
    except ClusterFitError:  # the bar at the bottom says why
        return
    found = recommended.beside(report, shell.terms(TRAINING), answer)
    if found is None:
        return
    st.caption(plain(found.sentence))
    if found.terms:
        st.button(
            "Plan the recommended fleet", icon=":material/recommend:", key="training_recommended",
            on_click=shell.change_terms, args=(TRAINING,), kwargs=found.terms,
        )  # fmt: skip


def words_of(report: TrainingReport, told: tuple[str, ...] = ()) -> None:
    """The verdict, why this plan, and what a reader has to know.

    told : notes that stand on the page already
    """
    a = report.answer
    st.markdown(plain(a.verdict))
    if a.best is not None and a.best.why:
        st.markdown(f":material/check: {plain(a.best.why)}")
    if notes := [text for text in a.warnings if text not in told]:
        st.warning("  \n".join(map(plain, notes)), icon=":material/warning:")
    if a.mix is not None:
        st.info(plain(a.mix.words), icon=":material/info:")


def nothing(report: TrainingReport) -> None:
    """Why nothing fits, and the smallest thing that would."""
    found = report.answer.nothing
    assert found is not None
    st.error(plain(found.reason), icon=":material/error:")
    if found.smallest is not None:
        p = found.smallest
        st.markdown(
            plain(
                f"The smallest that fits: {p.plan.gpus:,} × {p.choice.accelerator.name}, "
                f"{words.number(p.memory.likely)} GiB on the fullest."
            )
        )


def plan_tab(plan: PlanResult, model_layers: int) -> None:
    """How the job is split, where memory and time go, and what the whole run takes."""
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("How it is split", anchor=False)
        answer.table(training_view.split_rows(plan), "The sizes of the plan")
    with right:
        st.subheader("Memory of the fullest GPU", anchor=False)
        _bars(
            training_view.memory_rows(plan), "GiB",
            f"Memory by item; {plan.memory.usable:.0f} GiB can be used", plan.memory.usable,
        )  # fmt: skip
        st.subheader("Where a step goes", anchor=False)
        _bars(training_view.part_rows(plan), "% of the step", "Share of the step by what it does")
    st.subheader("From steps to the bill", anchor=False)
    answer.table(training_view.goodput_rows(plan), "GPU-hours of the whole run")
    drawing = training_drawing(plan, model_layers)
    st.subheader(drawing.title, anchor=False)
    picture(drawing)
    used = training_patterns.rows(plan)
    if used:
        st.subheader(training_patterns.TITLE, anchor=False)
        answer.table(used, training_patterns.TITLE)
        st.caption(training_patterns.NOTE)


def _bars(rows: list[tuple[str, float]], unit: str, alt: str, limit: float = 0.0) -> None:
    data = [
        {"item": item, "value": value, "text": f"{words.number(value)}"} for item, value in rows
    ]
    y = {"field": "item", "type": "nominal", "sort": None, "title": None,
         "axis": {"labelLimit": 220, "domain": False, "ticks": False}}  # fmt: skip
    x = {"field": "value", "type": "quantitative", "title": unit,
         "axis": {"grid": False, "tickCount": 4, "domain": False}}  # fmt: skip
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "bar", "height": 14, "cornerRadius": 2}, "encoding": {"x": x}},
        {"mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 12, "color": ink()},
         "encoding": {"x": x, "text": {"field": "text"}}},
    ]  # fmt: skip
    if limit:
        layers.append(
            {
                "data": {"values": [{"x": limit}]},
                "mark": {"type": "rule", "strokeDash": [4, 4], "color": ink()},
                "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"value": 0},
                             "y2": {"value": {"expr": "height"}}},
            }
        )  # fmt: skip
    told = "; ".join(f"{item} {words.number(value)}" for item, value in rows)
    show(
        {"data": {"values": data}, "height": {"step": 26}, "encoding": {"y": y}, "layer": layers},
        f"{alt}: {told}",
    )


def frontier(report: TrainingReport) -> None:
    """Days against dollars over every fleet."""
    marks = training_view.frontier_marks(report)
    if not marks:
        return
    priced = report.answer.best is not None and report.answer.best.usd is not None
    rows = [
        {"x": m.days, "y": m.usd, "gpu": m.name, "text": m.text, "best": m.best, "gpus": m.gpus}
        for m in marks
    ]
    x = vl.axis("x", "Days", scale={"type": "log"}, axis={"grid": False, "tickCount": 6,
                "format": "~r"})  # fmt: skip
    y = vl.axis("y", None, scale={"type": "log"}, axis={"grid": False, "tickCount": 5,
                "labelExpr": "'$' + format(datum.value, '~s')" if priced
                else "format(datum.value, '~s')"})  # fmt: skip
    colour = {"field": "gpu", "type": "nominal", "legend": {"title": None, "orient": "bottom",
              "columns": 1, "labelLimit": 260}}  # fmt: skip
    tips = [
        {"field": "text", "title": "Plan"},
        {"field": "x", "title": "Days", "format": ".3~r"},
        {"field": "y", "title": "USD" if priced else "GPU-hours", "format": ",.0f"},
    ]
    best = [r for r in rows if r["best"]]
    chosen = [m for m in marks if m.chosen][:1]
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 45, "opacity": 0.7},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips},
        },
        {
            "data": {"values": sorted(best, key=lambda r: float(str(r["x"])))},
            "mark": {"type": "line", "strokeDash": [5, 4], "color": ink()},
            "encoding": {"x": x, "y": y},
        },
    ]
    if chosen:
        m = chosen[0]
        layers += [
            {
                "data": {"values": [{"x": m.days, "y": m.usd}]},
                "mark": {"type": "point", "size": 220, "strokeWidth": 2.5, "color": ink()},
                "encoding": {"x": x, "y": y},
            },
            # Nothing lies below the dashed line.
            vl.word(m.days, m.usd, "this plan", {"x": x, "y": y}, dy=20),
        ]
    vl.draw(
        {"height": 490, "layer": layers},
        "Days against dollars of every fleet: " + "; ".join(m.text for m in marks if m.best),
        "USD of the whole run" if priced else "GPU-hours of the whole run",
    )
    st.caption(
        "Each point is the fastest plan of one fleet. On the dashed line no other is both faster "
        f"and cheaper.{training_view.left_out_words(report)}"
    )
    st.subheader("The best plan on each GPU", anchor=False)
    answer.table(training_view.kind_rows(report), "The best plan on each kind of GPU")
    st.subheader("The next plans", anchor=False)
    answer.table(training_view.other_rows(report), "The next plans and what keeps them behind")
    for text in report.skipped:
        st.caption(plain(f"Left out, {text}."))


def rules(report: TrainingReport) -> None:
    """The articles' rules beside what was computed, and what is assumed."""
    answer.table(training_view.rule_rows(report), "The articles' rules beside what was computed")
    st.subheader("The articles' own layouts, computed", anchor=False)
    layouts = worked_layouts()
    answer.table(layout_rows(layouts), "The articles' layouts and what they come to")
    for text in layout_notes(layouts):
        st.caption(plain(text))
    st.subheader("What is assumed", anchor=False)
    for text in report.answer.assumptions:
        st.markdown(f"- {plain(text)}")
    st.caption(plain("Measured steps from: " + "; ".join(report.answer.sources)))
    shell.link("pages/accuracy.py", "How far off these estimates are", icon=":material/target:")


def launch(workload: Workload, report: TrainingReport) -> None:
    """The files that start the plan."""
    terms: TrainingTerms = shell.terms(TRAINING)
    st.markdown(
        "A zip with the start script, the training code's settings, a Slurm batch file, a SkyPilot "
        "task, the node set-up, checkpoint settings and a README, for this very plan."
    )
    with st.grid(columns=2, min_column_width=240):
        for name in ("model_id", "dataset", "checkpoint_dir", "partition"):
            with st.container():
                term_fields.term(TRAINING, name)
    best = report.answer.best
    assert best is not None
    config = str(st.session_state.get("train_config_text", "")) if terms.shape else ""
    try:
        saves = shell.terms("reliability").interval_min
        ask = training.launch_ask(
            workload, terms, report, best, config=config, checkpoint_minutes=saves
        )
        kit = launch_kit(best.plan, ask)
    except ClusterFitError as error:
        st.info(plain(f"No kit yet: {error}"), icon=":material/edit:")
        return
    st.download_button(
        "Launch kit",
        kit,
        f"{ask.slug}-launch.zip",
        "application/zip",
        on_click="ignore",
        icon=":material/rocket_launch:",
    )
    st.caption(
        plain(
            f"{labels.count(ask.nodes, 'node')} of {labels.count(ask.gpus_per_node, 'GPU')}; "
            "checkpoints as often as loses least, unless the reliability page says otherwise, and "
            "before a spot machine is taken."
        )
    )
