"""The frame of every page: the link, the menu, the current recommendation, previous and next.

This module and `fields.py` alone touch session state and the URL. One frozen `Workload` lives in
the session, and one frozen `Settings` with the terms of the plan pages; widgets are views of them,
and `change` and `change_terms` are the only ways to alter them. Call both from widget callbacks,
which run before the page does, so that the menu already carries the new state.

    with shell.page("Bottleneck", ":material/speed:", question="bottleneck") as workload:
        fields.field("bottleneck")
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

import streamlit as st

from engine.assess import assess
from engine.assessment import Assessment
from engine.catalogue import load_catalogue
from engine.costing.model import CostReport
from engine.costing.report import cost_report
from engine.errors import ClusterFitError, InputError
from engine.estimate.estimate import Estimate
from engine.planning.training import (
    TrainingReport,
    hardware_on_offer,
    networks_on_offer,
    train_report,
)
from engine.report.currency import Currency, currency_of
from engine.report.link import (
    decode,
    decode_query,
    decode_query_settings,
    decode_settings,
    encode,
    link_date,
    share_link,
)
from engine.workload.settings import USUAL, Settings
from engine.workload.terms import Terms, parse_terms
from engine.workload.workload import DEFAULT, Workload, parse
from pages.components import labels

LOG = logging.getLogger(__name__)

# name of the question, path of its page, title in the menu
QUESTIONS = [
    ("bottleneck", "pages/bottleneck.py", "Bottleneck"),
    ("failure_mode", "pages/failure_mode.py", "Failure mode"),
    ("parallel_fraction", "pages/parallel_fraction.py", "Parallelizable fraction"),
    ("utilization", "pages/utilization.py", "Utilization"),
]
# How the names of the fields begin that each question asks, in the order of QUESTIONS.
ASKED = [
    ("bottleneck", "time_shares", "symptoms", "io_share"),
    ("failure_mode", "downtime"),
    ("parallel_fraction", "timings", "gpu_speedup"),
    ("utilization_by", "useful_hours", "runs_per", "hours_per", "days_per", "monthly_variation"),
]
START = ("app.py", "Start", ":material/home:")
DETAILS = ("pages/details.py", "Details of the job", ":material/tune:")
RECOMMENDATION = ("pages/recommendation.py", "Recommendation", ":material/verified:")
COMPARE = ("pages/compare.py", "Compare", ":material/compare_arrows:")
EVIDENCE = ("pages/evidence.py", "Evidence", ":material/menu_book:")
PRICES = ("pages/prices.py", "Prices", ":material/sell:")
ACCURACY = ("pages/accuracy.py", "Accuracy", ":material/target:")
BACKING = (EVIDENCE, PRICES, ACCURACY)
# Pages that work out one plan in depth, each with terms of its own.
PLANS: list[tuple[str, str, str]] = [
    ("pages/costs.py", "Costs", ":material/payments:"),
    ("pages/training_plan.py", "Training plan", ":material/model_training:"),
    ("pages/serving_plan.py", "Serving plan", ":material/dns:"),
    ("pages/jobs_plan.py", "Compute and small models", ":material/memory:"),
    ("pages/services_plan.py", "Services and pipelines", ":material/account_tree:"),
    ("pages/reliability.py", "Reliability", ":material/health_and_safety:"),
]
# On a phone a table keeps to the width of the page, and its figures stay whole: cells are small, a
# column is as wide as its longest word. Words of the first column, and all of tables with five
# columns or more, may break, but never below the width of a figure. The texts of a tile wrap at any
# width: a range that is cut is a wrong figure.
NARROW = """<style>
[data-testid="stMetric"] * {
    white-space: normal !important; overflow: visible !important;
    text-overflow: clip !important; overflow-wrap: break-word;
}
@media (max-width: 640px) {
    [data-testid="stMetricValue"] * { font-size: 1.5rem; line-height: 1.3; }
    [data-testid="stTable"] :is(td, th) { padding: 0.3rem 0.2rem; min-width: 2.5rem; }
    [data-testid="stTable"] :is(td, th):first-child { min-width: 5rem; }
    [data-testid="stTable"]:has(th:nth-child(5)) :is(td, th) { min-width: 3.9rem; }
    [data-testid="stTable"]:has(th:nth-child(6)) :is(td, th) { min-width: 3.3rem; }
    [data-testid="stTable"] :is(td, th), [data-testid="stTable"] :is(td, th) * {
        font-size: 0.75rem; white-space: normal; hyphens: auto;
        overflow-wrap: normal !important;
    }
    [data-testid="stTable"] :is(td, th):first-child,
    [data-testid="stTable"] :is(td, th):first-child *,
    [data-testid="stTable"]:has(th:nth-child(5)) :is(td, th),
    [data-testid="stTable"]:has(th:nth-child(5)) :is(td, th) * {
        overflow-wrap: anywhere !important;
    }
}</style>"""
# The way through the app, for the links to the previous and the next page.
WAY = [START[0], *(path for _, path, _ in QUESTIONS), DETAILS[0], RECOMMENDATION[0]]
TITLES = {
    path: title
    for path, title, *_ in [START, DETAILS, RECOMMENDATION, COMPARE, *PLANS, *BACKING]
    + [(path, title) for _, path, title in QUESTIONS]
}


@contextmanager
def page(
    title: str,
    icon: str,
    *,
    path: str = "",
    question: str = "",
    heading: bool = True,
    bar: bool = True,
) -> Iterator[Workload]:
    """Frame a page; yields the workload as the callbacks left it.

    Parameters
    ----------
    title : the page's heading, also in the browser's tab
    icon : a `:material/name:` icon
    path : the page's file when it is a step of the way (for previous and next)
    question : name of the question that the page asks; implies `path`
    heading : False when the page writes its own heading (it must have one)
    bar : whether the current recommendation is shown at the bottom
    """
    st.set_page_config(page_title=f"{title} · ClusterFit", page_icon=icon, layout="wide")
    if question:
        path = next(p for name, p, _ in QUESTIONS if name == question)
    if st.session_state.get("page") != title:
        st.session_state["page"], st.session_state["bound"] = title, set()
    st.html(NARROW)
    _load()
    now = workload()
    with st.sidebar:
        _menu(now)
    if question:
        position = [name for name, _, _ in QUESTIONS].index(question) + 1
        st.caption(f"Question {position} of {len(QUESTIONS)}")
    if heading:
        st.title(title, anchor=False)
    for note in st.session_state.get("link_notes", []):
        st.warning(labels.plain(note), icon=":material/link_off:")
    try:
        yield now
        if path in WAY:
            _steps(path, now)
        if bar:
            _bar(now)
    finally:
        _save()


def workload() -> Workload:
    """The workload of this session."""
    current: Workload = st.session_state.get("workload", DEFAULT)
    return current


def change(**fields: Any) -> None:
    """Apply changes if the engine accepts them; otherwise keep what was typed, with the message.

    A change that was refused earlier is tried again together with the new one, so that two
    answers that only make sense together can be typed in any order.
    """
    refused: dict[str, tuple[Any, str]] = dict(st.session_state.get("refused", {}))
    for name in fields:
        refused.pop(name, None)
    waiting = {name: value for name, (value, _) in refused.items()}
    for attempt in ({**waiting, **fields}, fields):
        try:
            accepted = parse({**workload().model_dump(), **attempt})
        except ClusterFitError as error:
            message = _words(error)
            continue
        st.session_state["workload"] = accepted
        left = {} if attempt is not fields else refused
        st.session_state["refused"] = left
        st.session_state["link_notes"] = []
        return
    st.session_state["refused"] = {**refused, **{n: (v, message) for n, v in fields.items()}}


def settings() -> Settings:
    """The terms of the plan pages in this session."""
    current: Settings = st.session_state.get("settings", USUAL)
    return current


def terms(of: str) -> Any:
    """The terms of one plan page, by its name in `Settings`."""
    return getattr(settings(), of)


def change_terms(of: str, **fields: Any) -> None:
    """Apply changes to the terms of a plan page; like `change`, nothing typed is lost."""
    refused: dict[str, tuple[Any, str]] = dict(st.session_state.get("refused", {}))
    for name in fields:
        refused.pop(f"{of}.{name}", None)
    waiting = {
        name.removeprefix(f"{of}."): value
        for name, (value, _) in refused.items()
        if name.startswith(f"{of}.")
    }
    now: Terms = terms(of)
    for attempt in ({**waiting, **fields}, fields):
        try:
            accepted = parse_terms(type(now), {**now.model_dump(), **attempt})
        except ClusterFitError as error:
            message = _words(error)
            continue
        st.session_state["settings"] = settings().model_copy(update={of: accepted})
        if attempt is not fields or not waiting:
            refused = {n: v for n, v in refused.items() if not n.startswith(f"{of}.")}
        st.session_state["refused"] = refused
        st.session_state["link_notes"] = []
        return
    new = {f"{of}.{name}": (value, message) for name, value in fields.items()}
    st.session_state["refused"] = {**refused, **new}


def refuse_term(of: str, name: str, value: Any, message: str) -> None:
    """Keep what was typed for a term that can't even be read, with the reason."""
    refused = dict(st.session_state.get("refused", {}))
    st.session_state["refused"] = {**refused, f"{of}.{name}": (value, message)}


def complaint(name: str, of: str = "") -> str:
    """The engine's message on what was typed last into a field, or a term `of` a page."""
    key = f"{of}.{name}" if of else name
    return str(st.session_state.get("refused", {}).get(key, (None, ""))[1])


def shown(name: str, of: str = "") -> Any:
    """What a widget shows: the refused value while there is one, else the present one."""
    refused = st.session_state.get("refused", {})
    key = f"{of}.{name}" if of else name
    return refused[key][0] if key in refused else getattr(terms(of) if of else workload(), name)


def bind(key: str, value: Any) -> str:
    """Set a widget's state, only where it differs, or fast input is lost; returns the key.

    On the first run of a page it is set in any case: what the session still holds under the key
    belongs to the page before, and goes when this page's own widget takes its place.
    """
    bound: set[str] = st.session_state["bound"]
    if key not in bound or key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value
        bound.add(key)
    return key


def link(
    path: str,
    label: str,
    *,
    to: Workload | None = None,
    under: Settings | None = None,
    **options: Any,
) -> None:
    """A link to a page that carries the whole state, as every link in the app must.

    to : another workload than this session's; it goes under the usual terms, or those of `under`
    """
    own = encode(workload(), settings()) if to is None else encode(to, under or USUAL)
    st.page_link(path, label=label, query_params=own, **options)


def go(path: str, label: str) -> None:
    """A button, for the one main way on from a page, that carries the whole state."""
    if st.button(label, icon=":material/arrow_forward:", icon_position="right"):
        st.switch_page(path, query_params=encode(workload(), settings()))


def other_plan(pasted: str) -> tuple[Workload, Settings]:
    """The plan of a pasted link; what of it can't be used is said on the page."""
    found, notes = decode_query(pasted)
    under, more = decode_query_settings(pasted)
    for note in [*notes, *more]:
        st.warning(labels.plain(note), icon=":material/link_off:")
    return found, under


def page_of(name: str) -> str:
    """Path of the page on which a field is asked."""
    for prefixes, (_, path, _) in zip(ASKED, QUESTIONS, strict=True):
        if name.startswith(prefixes):
            return path
    return PRICES[0] if name == "quotes" else DETAILS[0]


def share_address(of: Workload, page: str = "recommendation") -> str:
    """The address that opens this very page on another machine."""
    base = str(st.context.url or "").rsplit("/", 1)[0]
    return share_link(of, f"{base}/{page}", settings=settings())


def csv_button(of: str, make: Callable[[str], bytes], page: str, today: date) -> None:
    """Every figure of a page as CSV.

    make : takes the page's link. A download runs without a session, so it may hold frozen values
        and nothing else.
    """
    link = share_address(workload(), page=page)
    st.download_button(
        "CSV of this page", lambda: make(link), f"clusterfit-{of}-{today:%Y-%m-%d}.csv", "text/csv",
        on_click="ignore", icon=":material/table:", help="Every figure of this page in one table",
    )  # fmt: skip


@contextmanager
def worked_out(what: str, *inputs: str) -> Iterator[None]:
    """A fault of ours, never the visitor's, goes to the log, and the page stays whole.

    what : what could not be worked out, for the visitor; inputs : what stands in the log
    """
    try:
        yield
    except ClusterFitError:
        raise
    except (ValueError, ArithmeticError):
        LOG.exception("not worked out: %s, for %s", what, " under ".join(inputs))
        raise InputError(
            f"{what} could not be worked out",
            right="look for a figure that is far too small or too large",
        ) from None


def currency() -> Currency:
    """The currency in which money is shown."""
    return currency_of(settings().costs)


def costs(of: Workload) -> CostReport:
    """The engine's costs of a workload under this session's terms."""
    return _costs(of.model_dump_json(), settings().model_dump_json(), date.today().isoformat())


@st.cache_resource(max_entries=64, show_spinner="Working out every way to pay…")
def _costs(body: str, under: str, today: str) -> CostReport:
    answer = _assess(body, under, today)
    with worked_out("the costs of this plan", body, under):
        return cost_report(answer)


def assessment(of: Workload, under: Settings | None = None) -> Assessment:
    """The engine's answer to a workload, computed once a day for each workload and its terms.

    under : the terms, those of this session unless given
    """
    body = (under or settings()).model_dump_json()
    return _assess(of.model_dump_json(), body, date.today().isoformat())


@st.cache_resource(max_entries=256, show_spinner=False)
def _assess(body: str, under: str, today: str) -> Assessment:
    # The answer is frozen through and through, so all sessions may share one object.
    with worked_out("these answers together", body):
        return assess(
            Workload.model_validate_json(body),
            settings=Settings.model_validate_json(under),
            today=date.fromisoformat(today),
        )


def training(of: Workload) -> TrainingReport:
    """The engine's training plan of a workload under this session's terms."""
    return _training(of.model_dump_json(), settings().model_dump_json(), date.today().isoformat())


@st.cache_resource(max_entries=64, show_spinner="Searching every way to split the job…")
def _training(body: str, under: str, today: str) -> TrainingReport:
    with worked_out("the training plan", body, under):
        return train_report(
            Workload.model_validate_json(body),
            Settings.model_validate_json(under),
            today=date.fromisoformat(today),
        )


def training_offer(of: Workload) -> tuple[dict[str, str], dict[str, str]]:
    """GPUs with a price and networks, by id, for lists to pick from."""
    catalogue = load_catalogue()
    gpus = hardware_on_offer(of, settings(), catalogue, date.today())
    return gpus, networks_on_offer(catalogue)


def _words(error: ClusterFitError) -> str:
    """An error beside its own field: what was wrong and what would be right."""
    wrong = str(getattr(error, "wrong", error))
    return f"{wrong}: {error.right}" if error.right else wrong


def _load() -> None:
    """The URL wins when it changed outside this session: first visit, Back, an edited link."""
    url = st.query_params.to_dict()
    if url == st.session_state.get("url"):
        return
    st.session_state["workload"], notes = decode(url)
    st.session_state["settings"], more = decode_settings(url)
    st.session_state["link_notes"] = [str(note) for note in [*notes, *more]]
    made = link_date(url)
    if made is not None and made < date.today():
        st.session_state["link_notes"].append(
            f"This link was made on {labels.day(made)}. The answers are the same; the prices are "
            "today's, so figures may have moved since."
        )
    st.session_state["refused"] = {}
    st.session_state["url"] = url


def _save() -> None:
    """Write the state into the URL, only when it differs: each write is an entry of Back."""
    want = encode(workload(), settings())
    if st.query_params.to_dict() != want:
        st.query_params.from_dict(want)
    st.session_state["url"] = want


def _menu(now: Workload) -> None:
    answered = now.answered
    st.markdown("**ClusterFit**")
    if now.name:
        st.text(now.name)
    link(START[0], START[1], icon=START[2], width="stretch")
    st.caption(f"The four questions · {sum(answered.values())} of {len(QUESTIONS)} answered")
    for name, path, title in QUESTIONS:
        icon = ":material/check_circle:" if answered[name] else ":material/radio_button_unchecked:"
        state = "answered" if answered[name] else "open"
        link(path, title, icon=icon, width="stretch", help=f"{title}: {state}")
    st.caption("The job and its answer")
    for path, title, icon in (DETAILS, RECOMMENDATION, COMPARE):
        link(path, title, icon=icon, width="stretch")
    if PLANS:
        st.caption("In depth")
    for path, title, icon in PLANS:
        link(path, title, icon=icon, width="stretch")
    st.caption("What it rests on")
    for path, title, icon in BACKING:
        link(path, title, icon=icon, width="stretch")


def _steps(path: str, now: Workload) -> None:
    """Links to the previous and the next page of the way."""
    position = WAY.index(path)
    st.space("small")
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        if position > 0:
            before = WAY[position - 1]
            link(before, f"Back: {TITLES[before]}", icon=":material/arrow_back:")
        if position + 1 < len(WAY):
            after = WAY[position + 1]
            link(
                after,
                f"**Next: {TITLES[after]}**",
                icon=":material/arrow_forward:",
                icon_position="right",
            )


def _in_money_shown(usd: Estimate) -> str:
    """A cost in dollars, behind the currency of display where that is another."""
    shown = currency()
    text = labels.value(usd)
    return text if shown.code == "USD" else f"{shown.money(usd.likely)} a month ({text})"


def _bar(now: Workload) -> None:
    """The current recommendation, in view from the first answer on."""
    if now == DEFAULT:
        return
    with st.bottom, st.container(horizontal=True, wrap=False, vertical_alignment="center"):
        try:
            answer = assessment(now)
        except ClusterFitError as error:
            st.text(f"No recommendation yet: {error}")
            return
        best = answer.best
        label = "nothing meets every constraint; nearest: " if best.vetoes else ""
        st.markdown(
            f":small[**So far: {label}{labels.plain(best.label)}** · "
            f"{labels.plain(_in_money_shown(best.usd_per_month))} · "
            f"{labels.plain(answer.sureness)}]",
            width="stretch",
        )
        link(RECOMMENDATION[0], "Why", icon=":material/arrow_forward:", icon_position="right")
