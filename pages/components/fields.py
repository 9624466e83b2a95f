"""One widget per field of the workload, driven by the field's own title, unit, help and bounds.

The engine alone judges a value: widgets set no limits that would clamp it silently, and what it
refuses stays in the widget with the reason under it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, get_args

import streamlit as st

from engine.workload import answers
from engine.workload.workload import Workload, field_unit, fields_for
from pages.components import labels, shell

UNKNOWN = "I don't know"
# Choices with so few letters in all are shown side by side, others as a list to pick from.
FEW_LETTERS = 50

LABELS: dict[type[StrEnum], dict[Any, str]] = {
    answers.Kind: answers.KIND_LABELS,
    answers.Certainty: answers.CERTAINTY_LABELS,
    answers.Bottleneck: answers.BOTTLENECK_LABELS,
    answers.Symptom: answers.SYMPTOM_LABELS,
    answers.FailureMode: answers.FAILURE_LABELS,
    answers.Downtime: answers.DOWNTIME_LABELS,
    answers.ModelClass: answers.MODEL_CLASS_LABELS,
    answers.Rewrite: answers.REWRITE_LABELS,
    answers.Location: answers.LOCATION_LABELS,
    answers.Consistency: answers.CONSISTENCY_LABELS,
    answers.Team: answers.TEAM_LABELS,
    answers.Precision: answers.PRECISION_LABELS,
    answers.Current: answers.CURRENT_LABELS,
    answers.UtilizationBy: answers.UTILIZATION_BY_LABELS,
}

# Numeric answers whose certainty is asked beside them.
CERTAINTY_OF = {
    "bottleneck": "bottleneck_sure",
    "failure_mode": "failure_mode_sure",
    "parallel_fraction": "parallel_fraction_sure",
    "gpu_speedup": "gpu_speedup_sure",
    "useful_hours_per_month": "useful_hours_sure",
}


def key_of(name: str) -> str:
    """Key of the widget of a field in the session."""
    return f"w_{name}"


def title_of(name: str) -> str:
    """Title of a field with its unit, where the title does not name it already."""
    unit = field_unit(name)
    title = str(Workload.model_fields[name].title)
    return f"{title} · {unit}" if unit and unit.lower() not in title.lower() else title


def choices_of(name: str) -> type[StrEnum] | None:
    """The enumeration behind a categorical field (also behind a list of choices), else None."""
    annotation = Workload.model_fields[name].annotation
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, StrEnum):
            return part
    return None


def choice_label(choice: StrEnum) -> str:
    """The words of a choice."""
    return LABELS[type(choice)][choice]


def field(name: str, *, sure: bool = True, **options: Any) -> None:
    """Show and edit one field; `sure` adds the certainty beside an answer that has one.

    `options` go to the Streamlit widget (label, help, label_visibility, captions...); `widget`
    picks "radio", "select" or "segments" for a choice, "slider" for a weight.
    """
    certainty = CERTAINTY_OF.get(name) if sure else None
    if certainty is None:
        _one(name, **options)
        return
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        _one(name, **options)
    with right:
        _one(certainty, widget="segments", label="How sure of this")


def answer_text(name: str, value: Any) -> str:
    """An answer in words, for a table."""
    if value is None or value == () or value == "":
        return UNKNOWN if name != "name" else "no name"
    if isinstance(value, StrEnum):
        return choice_label(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return labels.quantity(value, field_unit(name))
    if isinstance(value, tuple):
        return "; ".join(" × ".join(_parts(item)) for item in value)
    return str(value)


def _parts(item: Any) -> list[str]:
    """A part of an answer that is a list: a choice, a number or a pair of numbers."""
    if isinstance(item, StrEnum):
        return [choice_label(item)]
    return [labels.number(part) for part in (item if isinstance(item, tuple) else (item,))]


def weights() -> None:
    """The weights of the criteria, as sliders that move the score."""
    names = fields_for(shell.workload().kind, "weights")
    with st.expander("What matters to you: the weights of the criteria", icon=":material/tune:"):
        st.caption("Relative to each other; a criterion at 0 does not count.")
        cells = st.grid(columns=3, min_column_width=240, gap="medium")
        for name in names:
            with cells.container():
                _one(name, widget="slider")
        defaults = {name: Workload.model_fields[name].default for name in names}
        st.button("Back to the usual weights", on_click=shell.change, kwargs=defaults)


def complain(name: str) -> None:
    """The engine's message on a refused value, under its widget."""
    message = shell.complaint(name)
    if message:
        st.error(labels.plain(message), icon=":material/error:")


def copy(name: str) -> None:
    """Callback: take the widget's value into the workload."""
    value = st.session_state[key_of(name)]
    shell.change(**{name: tuple(value) if isinstance(value, list) else value})


def _one(name: str, *, widget: str = "", **options: Any) -> None:
    info = Workload.model_fields[name]
    value = shell.shown(name)
    helped = info.description if info.description != info.title else None
    label = options.pop("label", title_of(name))
    common: dict[str, Any] = {"on_change": copy, "args": (name,), "help": helped, **options}
    choices = choices_of(name)
    key = shell.bind(key_of(name), list(value) if isinstance(value, tuple) else value)
    if choices is not None and isinstance(value, tuple):
        st.multiselect(label, list(choices), format_func=choice_label, key=key, **common)
    elif choices is not None:
        _choice(label, list(choices), key, widget, common)
    elif isinstance(info.default, bool):
        st.checkbox(label, key=key, **common)
    elif isinstance(info.default, str):
        st.text_input(label, key=key, **common)
    elif widget == "slider":
        st.slider(label, 0, 100, key=key, **common)
    elif isinstance(info.default, int):
        st.number_input(label, value=None, step=1, key=key, format="%d", **common)
    elif isinstance(info.default, tuple):
        raise TypeError(f"{name} is a list of numbers: its page edits it by `shell.change`")
    else:
        common.setdefault("placeholder", UNKNOWN)
        st.number_input(label, value=None, format="%.12g", key=key, **common)
    complain(name)


def _choice(
    label: str, choices: list[StrEnum], key: str, widget: str, common: dict[str, Any]
) -> None:
    if not widget:
        letters = sum(len(choice_label(choice)) for choice in choices)
        widget = "radio" if letters <= FEW_LETTERS else "select"
    if widget == "segments":
        st.segmented_control(
            label, choices, format_func=choice_label, key=key, required=True, **common
        )
    elif widget == "radio":
        common.setdefault("horizontal", "captions" not in common)
        st.radio(label, choices, format_func=choice_label, key=key, **common)
    else:
        st.selectbox(label, choices, format_func=choice_label, key=key, **common)
