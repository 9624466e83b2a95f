"""One widget per term of a plan page, driven by the term's own title, unit and help.

As with the answers, the engine alone judges a value, and what it refuses stays in the widget with
the reason under it.

    term_fields.term("costs", "discount_pct")
    term_fields.term("costs", "site", words={Site.colocation: "a colocation", ...})
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from types import UnionType
from typing import Any, Union, get_args, get_origin

import streamlit as st

from engine.errors import ClusterFitError
from engine.workload.terms import Terms
from pages.components import labels, shell


def key_of(of: str, name: str) -> str:
    """Key of the widget of a term in the session."""
    return f"t_{of}_{name}"


def label_of(terms: Terms, name: str) -> str:
    """Title of a term with its unit."""
    unit = terms.unit(name)
    title = terms.title(name)
    return f"{title} · {unit}" if unit and unit.lower() not in title.lower() else title


def said(error: ClusterFitError, of: str) -> str:
    """An error's text, with the title of the term in place of its name in the code."""
    terms = shell.terms(of)
    if error.where not in type(terms).model_fields:
        return labels.plain(error)
    return labels.plain(f"{terms.title(error.where)}: {error.wrong} ({error.right})")


def term(
    of: str, name: str, *, words: Mapping[Any, str] | None = None, widget: str = "", **options: Any
) -> None:
    """Show and edit one term of the page `of`.

    words : what each choice is called
    widget : "select" or "segments" for a choice in place of "radio"; "slider" for a number
    options : go to the Streamlit widget (label, help, placeholder, min_value and max_value of a
        slider, ...)
    """
    model = type(shell.terms(of))
    info = model.model_fields[name]
    kind = _kind(info.annotation)
    value = shell.shown(name, of)
    label = options.pop("label", label_of(shell.terms(of), name))
    helped = info.description if info.description != info.title else None
    common: dict[str, Any] = {"on_change": copy, "args": (of, name), "help": helped, **options}
    key = shell.bind(key_of(of, name), value)
    if issubclass(kind, StrEnum):
        _choice(label, list(kind), words or {}, key, widget, common)
    elif kind is bool:
        st.checkbox(label, key=key, **common)
    elif kind is str:
        st.text_input(label, key=key, **common)
    elif kind is date:
        st.date_input(label, value=None, key=key, **common)
    elif widget == "slider":
        st.slider(label, key=key, **common)
    elif kind is int:
        common.setdefault("placeholder", "usual")
        st.number_input(label, value=None, step=1, key=key, format="%d", **common)
    elif kind is float:
        common.setdefault("placeholder", "usual")
        st.number_input(label, value=None, format="%.12g", key=key, **common)
    else:
        raise TypeError(f"{name} is a list: its page edits it by `shell.change_terms`")
    complain(of, name)


def complain(of: str, name: str) -> None:
    """The engine's message on a refused term, under its widget."""
    message = shell.complaint(name, of)
    if message:
        st.error(labels.plain(message), icon=":material/error:")


def copy(of: str, name: str) -> None:
    """Callback: take the widget's value into the terms."""
    shell.change_terms(of, **{name: st.session_state[key_of(of, name)]})


def _kind(annotation: Any) -> type:
    """The type of a term without its None."""
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(a for a in get_args(annotation) if a is not type(None))
    return annotation if isinstance(annotation, type) else tuple


def _choice(
    label: str,
    choices: list[StrEnum],
    words: Mapping[Any, str],
    key: str,
    widget: str,
    common: dict[str, Any],
) -> None:
    def said(choice: StrEnum) -> str:
        return words.get(choice, choice.value.replace("_", " "))

    if widget == "segments":
        st.segmented_control(label, choices, format_func=said, key=key, required=True, **common)
    elif widget == "select":
        st.selectbox(label, choices, format_func=said, key=key, **common)
    else:
        st.radio(label, choices, format_func=said, key=key, horizontal=True, **common)
