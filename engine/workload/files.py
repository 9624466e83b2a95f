"""Workloads as files: TOML or JSON in, commented TOML out.

A file may be flat or grouped in tables by the groups of the form (`[job]`, `[size]`, ...), or hold
the whole in a table `[workload]`. The terms of a plan page stand in a table of its name
(`[costs]`). Whatever is wrong is said with the file, the line and the field.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
import tomllib
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

import tomli_w
from pydantic import BaseModel

from engine.errors import ImportFileError, InputError
from engine.workload.settings import USUAL, Settings
from engine.workload.terms import Terms, parse_terms
from engine.workload.workload import DEFAULT, Group, Workload, field_unit, parse

LIMIT_BYTES = 1_000_000
STDIN = "-"
GROUPS: tuple[str, ...] = get_args(Group)
# What an example's file says of itself beside the workload.
STORY = ("title", "article", "story")


def read_workload(path: str | Path) -> Workload:
    """The workload of a TOML or JSON file, or of the standard input for `-`.

    Raises
    ------
    ImportFileError : when the file is missing, too large, no text, or neither TOML nor JSON
    InputError : when a field is unknown, given twice or out of bounds; names file and line
    """
    return read_plan(path)[0]


def read_plan(path: str | Path) -> tuple[Workload, Settings]:
    """The workload of a file and the terms of the plan pages; raises as `read_workload` does."""
    return plan_from_text(read_text(path), shown_name(path))


def workload_from_text(text: str, name: str = "the text") -> Workload:
    """The workload of a TOML or JSON text; `name` stands for it in messages."""
    return plan_from_text(text, name)[0]


def plan_from_text(text: str, name: str = "the text") -> tuple[Workload, Settings]:
    """The workload of a TOML or JSON text and the terms of the plan pages."""
    is_json = name.lower().endswith(".json") or text.lstrip().startswith("{")
    tables = _json(text, name) if is_json else _toml(text, name)
    pages = {page: tables.pop(page) for page in Settings.model_fields if page in tables}
    try:
        workload = parse(flat(tables))
        found: dict[str, Any] = {page: _terms(page, given) for page, given in pages.items()}
        return workload, Settings(**found)
    except InputError as error:
        raise _located(error, text, name) from None


def read_text(path: str | Path, limit: int = LIMIT_BYTES) -> str:
    """The text of a file of at most `limit` bytes, or of the standard input for `-`.

    Raises
    ------
    ImportFileError : when it can't be read, is larger or is no UTF-8 text
    """
    name = shown_name(path)
    raw = _bytes(path, name, limit)
    if len(raw) > limit:
        raise ImportFileError(
            "the file is too large", where=name, right=f"at most {limit / 1e6:g} MB is read"
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ImportFileError("this is no text file", where=name, right="save it as UTF-8 text")
    return text


def shown_name(path: str | Path) -> str:
    """The name by which messages call a file."""
    return "standard input" if str(path) == STDIN else Path(path).name or str(path)


def flat(tables: dict[str, Any]) -> dict[str, Any]:
    """The fields of a file, whichever tables they stand in.

    Raises
    ------
    InputError : when a field is unknown (names the closest) or given twice
    """
    if isinstance(tables.get("workload"), dict):
        return flat(tables["workload"])
    values: dict[str, Any] = {}
    for key, value in tables.items():
        inner = value if isinstance(value, dict) and key in GROUPS else {key: value}
        for name, given in inner.items():
            if name in STORY and inner is not value:
                continue
            _check(name, given)
            if name in values:
                raise InputError("it is given twice", where=name, right="keep one of the two")
            values[name] = given
    return values


def to_toml(
    workload: Workload,
    settings: Settings = USUAL,
    *,
    comment: str = "",
    everything: bool = False,
) -> str:
    """The workload as flat TOML, each field with its meaning and unit; the terms in tables.

    comment : words that stand above it
    everything : also list what is left at its default, as comments
    """
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    units = {name: field_unit(name) for name in Workload.model_fields}
    lines += _toml_lines(workload, DEFAULT, units, everything)
    for page in Settings.model_fields:
        terms: Terms = getattr(settings, page)
        units = {name: terms.unit(name) for name in type(terms).model_fields}
        found = _toml_lines(terms, type(terms)(), units, everything)
        if any(not line.startswith("#") for line in found):
            lines += ["", f"[{page}]", *found]
    return "\n".join(lines) + "\n"


# --- reading


def _bytes(path: str | Path, name: str, limit: int) -> bytes:
    """At most one byte more than the limit: a huge or endless file is never read."""
    if str(path) == STDIN:
        return sys.stdin.buffer.read(limit + 1)
    try:
        with Path(path).open("rb") as file:
            return file.read(limit + 1)
    except FileNotFoundError:
        raise ImportFileError("there is no such file", where=name) from None
    except IsADirectoryError:
        raise ImportFileError("this is a folder", where=name, right="name a file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ImportFileError(f"it can't be read: {reason}", where=name) from None


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        line = re.search(r"line (\d+)", message)
        where = f"{name} line {line[1]}" if line else name
        wrong = re.sub(r" \(at .*\)$", "", message)
        raise ImportFileError(
            f"this is no valid TOML: {wrong}", where=where, right='write fields as kind = "lora"'
        ) from None
    except (RecursionError, ValueError):
        raise ImportFileError("this is no valid TOML", where=name) from None


def _json(text: str, name: str) -> dict[str, Any]:
    try:
        data = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ImportFileError(
            f"this is no valid JSON: {error.msg}", where=f"{name} line {error.lineno}"
        ) from None
    except InputError as error:
        raise _located(error, text, name) from None
    except (RecursionError, ValueError):
        raise ImportFileError("this is no valid JSON", where=name) from None
    if not isinstance(data, dict):
        raise ImportFileError(
            "this is no workload", where=name, right='an object is needed, like {"kind": "lora"}'
        )
    return data


def _no_constant(text: str) -> float:
    raise InputError(f"{text} is no number", right="write null, or leave the field out")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InputError("it is given twice", where=key, right="keep one of the two")
        found[key] = value
    return found


def _check(name: str, given: Any) -> None:
    """A field must exist, and yes or no is no number."""
    if name not in Workload.model_fields:
        known = [*Workload.model_fields, *GROUPS]
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        right = f"did you mean {close[0]}?" if close else "`schema` lists all fields"
        raise InputError("there is no such field", where=str(name)[:60], right=right)
    if isinstance(given, bool) and not isinstance(getattr(DEFAULT, name), bool):
        title = Workload.model_fields[name].title
        raise InputError(f"true or false can't be used for “{title}”", where=name)


def _terms(page: str, given: Any) -> Terms:
    """The terms of one table of a file."""
    if not isinstance(given, dict):
        raise InputError("its terms are missing", where=page, right=f"a table, as [{page}]")
    model: type[Terms] = type(getattr(USUAL, page))
    for name, value in given.items():
        if isinstance(value, bool) and not isinstance(getattr(model(), name, False), bool):
            raise InputError(f"true or false can't be used for “{model.title(name)}”", where=name)
    return parse_terms(model, given)


def _located(error: InputError, text: str, name: str) -> InputError:
    """The same error with the file and, where it can be found, the line of its field."""
    line = _line_of(error.where, text)
    where = f"{name} line {line}" if line else name
    where += f", {error.where}" if error.where else ""
    return InputError(error.wrong, where=where, right=error.right)


def _line_of(field: str, text: str) -> int | None:
    if not field:
        return None
    pattern = re.compile(rf"""^\s*[{{,]?\s*["']?{re.escape(field)}["']?\s*[=:]""")
    lines = [i for i, line in enumerate(text.splitlines(), 1) if pattern.match(line)]
    return lines[-1] if lines else None


# --- writing


def _toml_lines(
    values: BaseModel, usual: BaseModel, units: dict[str, str], everything: bool
) -> list[str]:
    """What differs from the usual, one field a line; the rest as comments if everything is."""
    found: list[tuple[str, str]] = []
    for name, info in type(values).model_fields.items():
        value = getattr(values, name)
        meaning = f"# {info.title}" + (f" [{units[name]}]" if units[name] else "")
        if value != getattr(usual, name):
            found.append((f"{name} = {_toml_value(value)}", meaning))
        elif everything:
            shown = "" if value is None or value == () else _toml_value(value)
            found.append((f"# {name} = {shown}".rstrip(), meaning))
    width = min(max((len(left) for left, _ in found), default=0), 44)
    return [f"{left:<{width}}  {right}" for left, right in found]


def _toml_value(value: Any) -> str:
    """One value in TOML; whole numbers without decimals."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, StrEnum):
        return f'"{value.value}"'
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        return tomli_w.dumps({"x": value}).removeprefix("x = ").rstrip("\n")
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)
