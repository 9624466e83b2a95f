"""What the serving page asks: the model, the load, the targets, how it is run.

Sizes, lengths, rate and the first target are the workload's own fields and are changed there;
everything else is a term of the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import streamlit as st

from engine.errors import ClusterFitError
from engine.estimate.model_shape import shape_from_text
from engine.estimate.traffic import shapes
from engine.estimate.traffic_log import LARGEST_BYTES, read_log
from engine.explain.serving import ServingReport
from engine.explain.serving_shapes import numbers_of, published_models, shape_told
from engine.wording import rough
from engine.workload.serving_terms import (
    CacheBits,
    DayShape,
    EngineKind,
    Keep,
    Pay,
    Percentile,
    Start,
    Weights,
)
from pages.components import fields, labels, shell
from pages.components.term_fields import term

OF = "serving"
# Steps of the sliders, a third of a decade apart; the value of the moment stands among them.
RATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0,
         500.0, 1000.0, 2000.0, 5000.0)  # fmt: skip
FIRST_MS = (50.0, 100.0, 200.0, 300.0, 500.0, 750.0, 1000.0, 1500.0, 2000.0, 3000.0, 5000.0,
            10_000.0, 30_000.0, 60_000.0)  # fmt: skip
EACH_MS = (2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 75.0, 100.0, 150.0, 200.0,
           300.0, 500.0, 1000.0)  # fmt: skip
BITS = {Weights.bits16: "16 bits", Weights.bits8: "8 bits", Weights.bits4: "4 bits"}
CACHE = {CacheBits.bits16: "16 bits", CacheBits.bits8: "8 bits"}
ENGINES = {EngineKind.vllm: "vLLM", EngineKind.sglang: "SGLang", EngineKind.trtllm: "TensorRT-LLM"}
OF_100 = {Percentile.p95: "95 of 100", Percentile.p99: "99 of 100"}
KEEP = {Keep.always_on: "around the clock", Keep.by_hour: "by the hour"}
PAY = {
    Pay.recommended: "as recommended",
    Pay.on_demand: "on demand", Pay.reserved_1y: "reserved for a year",
    Pay.reserved_3y: "reserved for three years", Pay.dedicated: "by the month",
    Pay.spot: "spot", Pay.buy: "bought",
}  # fmt: skip
STARTS = {
    Start.new_machine: "a new machine", Start.warm_machine: "a running machine",
    Start.modal_snapshot: "a snapshot (Modal)", Start.modal: "Modal",
    Start.runpod: "RunPod serverless", Start.replicate: "Replicate",
}  # fmt: skip
BY_SIZE = ""


def sliders(report: ServingReport) -> None:
    """The three that move most: rate, time to the first token, time per further token."""
    told = {r.name: r.value for r in report.resolved}
    _slider("Requests a second, mean", "serving_rate", told["rate_per_s"], RATES,
            lambda v: shell.change(rate_per_s=v))  # fmt: skip
    _slider("First token within, ms", "serving_first", told["ttft_target_s"] * 1e3, FIRST_MS,
            lambda v: shell.change(latency_ms=v))  # fmt: skip
    _slider("Each further token within, ms", "serving_each", told["tpot_target_s"] * 1e3, EACH_MS,
            lambda v: shell.change_terms(OF, tpot_ms=v))  # fmt: skip
    for name in ("rate_per_s", "latency_ms"):
        fields.complain(name)


def _slider(
    label: str, key: str, value: float, steps: Sequence[float], take: Callable[[float], None]
) -> None:
    """A slider over uneven steps, with the present value among them."""
    now = round(value, 6)
    st.select_slider(
        label, sorted({*steps, now}), key=shell.bind(key, now), format_func=labels.number,
        on_change=lambda: take(st.session_state[key]),
    )  # fmt: skip


def model() -> None:
    """Which model: by name, by size, or by its own file."""
    terms = shell.terms(OF)
    if terms.shape:
        st.markdown(f"**{labels.plain(terms.model or 'Your model')}**, from your file")
        st.button("Forget this file", on_click=_by_size, icon=":material/close:")
    else:
        names = [BY_SIZE, *published_models()]
        st.selectbox(
            "Model", names, format_func=lambda n: n or "by its size",
            key=shell.bind("serving_model", terms.model), on_change=_take_model,
        )  # fmt: skip
        if not terms.model:
            fields.field("model_params_b")
            fields.field("active_params_b")
    st.file_uploader(
        "Your own model: its config.json", type=["json"], key="serving_config",
        on_change=_take_config,
    )  # fmt: skip
    _file_message("serving_config_message")


def precision() -> None:
    """Weights, cache, engine, prefix cache."""
    term(OF, "weights", words=BITS, widget="segments", label="Weights kept in")
    term(OF, "cache", words=CACHE, widget="segments", label="Cache kept in")
    term(OF, "engine", words=ENGINES, widget="segments")
    term(OF, "prefix_hit_pct")


def load() -> None:
    """Lengths, rate, peak and the shape of the day, or a log that tells them."""
    fields.field("tokens_in")
    fields.field("tokens_out")
    fields.field("rate_per_s")
    fields.field("peak_factor")
    titles = {DayShape(name): title for name, (title, _) in shapes().items()}
    term(OF, "day", words={**titles, DayShape.own: "My own 24 hours"}, widget="select")
    if shell.terms(OF).day is DayShape.own:
        _own_hours()
    st.file_uploader(
        "Or a log: one request a line, with its time", type=["csv", "log", "txt", "json", "jsonl"],
        key="serving_log", on_change=_take_log, max_upload_size=int(LARGEST_BYTES / 1e6),
    )  # fmt: skip
    _file_message("serving_log_message")
    term(OF, "length_cv")


def targets() -> None:
    """The targets as exact numbers, and the promise they are."""
    fields.field("latency_ms", label="First token within · ms",
                 help="The time in which an answer is still useful; for a language model the time "
                 "to its first token")  # fmt: skip
    term(OF, "percentile", words=OF_100, widget="segments", label="That holds for")
    term(OF, "tpot_ms")
    term(OF, "spare", placeholder="as the worst failure asks")
    term(OF, "max_load_pct")


def money() -> None:
    """How machines are rented and kept."""
    term(OF, "pay", words=PAY, widget="select", label="Machines are had")
    term(OF, "keep", words=KEEP, widget="segments", label="Machines are kept")
    shell.link(shell.PRICES[0], "Add your own quotes", icon=shell.PRICES[2])


def cold() -> None:
    """How a replica starts and when it is switched off."""
    start, idle = st.columns(2, gap="large")
    with start:
        term(OF, "start", words=STARTS, widget="select", label="A replica starts from")
    with idle:
        term(OF, "idle_min")


def _own_hours() -> None:
    """24 numbers in one line, midnight first."""
    shown = " ".join(f"{v:g}" for v in shell.shown("hourly", OF))
    st.text_input(
        "Rate of each hour, midnight first", key=shell.bind("serving_hours", shown),
        on_change=_take_hours, help="24 numbers of any unit, with spaces between them",
    )  # fmt: skip
    message = shell.complaint("hourly", OF)
    if message:
        st.error(labels.plain(message), icon=":material/error:")


def _take_hours() -> None:
    parts = re.split(r"[\s,;]+", st.session_state["serving_hours"].strip())
    try:
        numbers = tuple(float(p) for p in parts if p)
    except ValueError:
        shell.refuse_term(OF, "hourly", (), "that is no list of numbers: give 24 of them")
        return
    shell.change_terms(OF, hourly=numbers)


def _take_model() -> None:
    """A published name: its size goes into the workload, where the other pages read it."""
    name = st.session_state["serving_model"]
    shell.change_terms(OF, model=name, shape=())
    if name:
        _take_size(*_sizes(name))


def _sizes(name: str) -> tuple[float, float]:
    shape = published_models()[name]
    return shape.total_params / 1e9, shape.active_params / 1e9


def _take_size(total_b: float, active_b: float) -> None:
    active = None if active_b >= total_b * 0.999 else round(active_b, 4)
    shell.change(model_params_b=round(total_b, 4), active_params_b=active)


def _by_size() -> None:
    shell.change_terms(OF, model="", shape=())


def _take_config() -> None:
    """Read a config.json into the terms, and its size into the workload."""
    file = st.session_state["serving_config"]
    if file is None:
        return
    try:
        shape = shape_from_text(file.getvalue(), file.name)
    except ClusterFitError as error:
        st.session_state["serving_config_message"] = ("error", str(error))
        return
    name = re.sub(r"[^A-Za-z0-9 ._+-]", " ", shape.name or file.name)[:60]
    shell.change_terms(OF, shape=numbers_of(shape), model=name)
    _take_size(shape.total_params / 1e9, shape.active_params / 1e9)
    st.session_state["serving_config_message"] = ("info", shape_told(shape))


def _take_log() -> None:
    """Read a log: its mean rate and peak go into the workload, its day into the terms."""
    file = st.session_state["serving_log"]
    if file is None:
        return
    try:
        log = read_log(file.getvalue(), file.name)
    except ClusterFitError as error:
        st.session_state["serving_log_message"] = ("error", str(error))
        return
    shell.change(rate_per_s=round(log.mean_per_s, 6), peak_factor=round(log.peak_to_mean, 3))
    shell.change_terms(
        OF, day=DayShape.own, hourly=tuple(round(v, 6) for v in log.hourly)
    )  # fmt: skip
    told = [f"{log.requests:,} requests over {rough(log.days)} days", *log.notes]
    if log.arrival_cv2 > 2:
        told.append(
            f"requests come in bunches (squared variation {rough(log.arrival_cv2)}, random is 1): "
            "the first token is later than planned here, keep the replicas less full"
        )
    st.session_state["serving_log_message"] = ("info", "; ".join(told))


def _file_message(key: str) -> None:
    kind, text = st.session_state.get(key, ("", ""))
    if text:
        show = st.error if kind == "error" else st.info
        show(labels.plain(text))
