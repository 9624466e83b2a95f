"""The terms of the plan pages in the link: one parameter a page, `costs=npv:8,site:own_room`.

Only what differs from the defaults is written, each term under its short name; a list's values
stand between strokes. Reading never fails: what can't be used is dropped with a note.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from types import UnionType
from typing import Any, Union, get_args, get_origin

from engine.errors import InputError
from engine.report.link_note import LONGEST, LinkNote, echo, number_text
from engine.workload.settings import USUAL, Settings
from engine.workload.terms import Terms, parse_terms

PAGES: dict[str, type[Terms]] = {name: type(getattr(USUAL, name)) for name in Settings.model_fields}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,4})?", re.ASCII | re.IGNORECASE)
_YES = {"yes": True, "no": False}


def encode_terms(settings: Settings) -> dict[str, str]:
    """Each page's terms as one parameter; nothing for the defaults."""
    found = {page: _written(getattr(settings, page)) for page in PAGES}
    return {page: text for page, text in found.items() if text}


def decode_terms(parameters: Mapping[str, str]) -> tuple[Settings, list[LinkNote]]:
    """The settings of a link, and a note for each part that could not be used. Never raises."""
    notes: list[LinkNote] = []
    pages: dict[str, Any] = {
        page: _read_page(model, page, parameters[page], notes)
        for page, model in PAGES.items()
        if page in parameters
    }
    return Settings(**pages), notes


def _written(terms: Terms) -> str:
    usual = type(terms)()
    parts = [
        f"{terms.short(name)}:{_text(getattr(terms, name))}"
        for name in type(terms).model_fields
        if getattr(terms, name) != getattr(usual, name)
    ]
    return ",".join(parts)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "/".join(_text(item) for item in value)
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int | float):
        return number_text(value)
    return str(value)


def _read_page(model: type[Terms], page: str, text: str, notes: list[LinkNote]) -> Terms:
    if len(text) > LONGEST:
        notes.append(LinkNote(page, f"it is {len(text):,} characters long and left out"))
        return model()
    names = {model.short(name): name for name in model.model_fields}
    values: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        short, colon, given = part.partition(":")
        name = names.get(short, short if short in model.model_fields else "")
        if not colon or not name or name in values:
            notes.append(LinkNote(page, f"“{echo(part)}” is left out: there is no such term"))
            continue
        try:
            values[name] = _value(model.model_fields[name].annotation, given)
        except ValueError as error:
            notes.append(LinkNote(model.title(name), f"“{echo(given)}” is left out: {error}"))
    return _together(model, values, notes)


def _together(model: type[Terms], values: dict[str, Any], notes: list[LinkNote]) -> Terms:
    """The terms of values that are each right; what contradicts the rest is dropped."""
    while True:
        try:
            return parse_terms(model, values)
        except InputError as error:
            if error.where not in values:
                notes.append(LinkNote(error.where or "link", f"{error.wrong}; it is left out"))
                return model()
            given = echo(_text(values.pop(error.where)))
            why = error.right or error.wrong
            notes.append(LinkNote(model.title(error.where), f"“{given}” is left out: {why}"))


def _value(annotation: Any, text: str) -> Any:
    """The text of a term as its field's type wants it.

    Raises
    ------
    ValueError : when it is of another kind
    """
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(a for a in get_args(annotation) if a is not type(None))
    if get_origin(annotation) is tuple:
        return tuple(_number(part) for part in text.split("/"))
    if annotation is bool:
        if text not in _YES:
            raise ValueError("yes or no is needed")
        return _YES[text]
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        if text not in list(annotation):
            raise ValueError("it must be one of " + ", ".join(annotation))
        return annotation(text)
    if annotation is date:
        return _day(text)
    return text if annotation is str else _number(text)


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError("a number is needed")
    return float(text)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError("a date is needed, like 2026-12-01") from None
