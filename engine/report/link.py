"""The share link: a workload as readable, versioned query parameters, and back.

Only what differs from the defaults is written, each field under its own name or a shorter
readable one. Reading never fails: what can't be used is dropped with a note that names the field,
and everything else is kept. Nothing here knows of Streamlit, prices or the engine's result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from enum import StrEnum
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from engine.errors import InputError
from engine.report.link_note import ECHO, LONGEST, LinkNote, echo, number_text
from engine.report.link_terms import PAGES, decode_terms, encode_terms
from engine.workload.answers import Certainty, Symptom
from engine.workload.settings import USUAL, Settings
from engine.workload.workload import DEFAULT, Workload, parse

VERSION = 1
VERSION_KEY, DATE_KEY = "v", "d"
MOST_NOTES = 20

# Shorter names, so that a plan with every field changed stays below the 1,000 characters at which
# mail programs cut links. Both names are read, only the short one is written. A name that was ever
# written stays readable: take none away and give none a second meaning.
ALIASES: dict[str, str] = {
    "bottleneck": "bound",
    "time_shares": "shares",
    "symptoms": "seen",
    "failure_mode": "fail",
    "downtime": "away",
    "parallel_fraction": "p",
    "gpu_speedup": "speedup",
    "utilization_by": "by",
    "useful_hours_per_month": "hours",
    "runs_per_month": "runs",
    "hours_per_run": "run_h",
    "hours_per_day": "day_h",
    "days_per_week": "week_d",
    "monthly_variation": "vary",
    "model_params_b": "params_b",
    "active_params_b": "active_b",
    "train_tokens_b": "tokens_b",
    "model_class": "model",
    "tokens_in": "tok_in",
    "tokens_out": "tok_out",
    "items_per_run": "items",
    "working_set_gb": "set_gb",
    "working_set_shardable": "splits",
    "precision": "math",
    "rate_per_s": "rate",
    "peak_factor": "peak",
    "cpu_ms_per_item": "cpu_ms",
    "cpu_latency_ms": "cpu_lat",
    "current": "now",
    "current_units": "units",
    "current_usd_per_month": "usd",
    "location": "where",
    "consistency": "reads",
    "deadline_days": "due",
    "horizon_months": "months",
    "budget_usd_per_month": "budget",
}
# How sure an answer is: each certainty lists the answers that have it, as `exact=p,h`.
SURE: dict[str, str] = {
    "b": "bottleneck_sure",
    "f": "failure_mode_sure",
    "p": "parallel_fraction_sure",
    "s": "gpu_speedup_sure",
    "h": "useful_hours_sure",
}
CERTAINTIES = frozenset(Certainty)
# The six weights travel together: one parameter with six numbers, in the order of the criteria.
WEIGHTS_KEY = "weights"
WEIGHTS = tuple(name for name in Workload.model_fields if name.startswith("weight_"))
SYMPTOMS: dict[Symptom, str] = {
    Symptom.cpu_full: "cpu",
    Symptom.gpu_full: "gpu",
    Symptom.gpu_low_network_full: "gpu_net",
    Symptom.gpu_low_cpu_full: "gpu_cpu",
    Symptom.disk_wait: "disk",
    Symptom.swapping: "swap",
    Symptom.low_ipc: "ipc",
    Symptom.lock_wait: "locks",
    Symptom.nodes_dont_help: "nodes",
    Symptom.network_wait: "net",
}
# The terms of a quote, after its hardware and before its price.
TERMS = {"on_demand": "demand", "dedicated": "month", "reserved_1y": "1y", "reserved_3y": "3y"}
FIELDS: dict[str, str] = {name: name for name in Workload.model_fields} | {
    short: name for name, short in ALIASES.items()
}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,4})?", re.ASCII | re.IGNORECASE)
_SEEN = {short: symptom for symptom, short in SYMPTOMS.items()}
_TERMS = {short: terms for terms, short in TERMS.items()}
_YES = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}

Given = str | Iterable[str]


class _Unusable(ValueError):
    """A text that is not what its field holds; the message says what would be."""


def encode(workload: Workload, settings: Settings = USUAL) -> dict[str, str]:
    """The workload, and the terms of the plan pages, as query parameters; empty for the defaults.

    Nothing is percent-encoded yet.
    """
    moved = [n for n in Workload.model_fields if getattr(workload, n) != getattr(DEFAULT, n)]
    changed = {
        ALIASES.get(name, name): _text(name, getattr(workload, name))
        for name in moved
        if name not in WEIGHTS and name not in SURE.values()
    }
    for certainty in Certainty:
        letters = [
            letter
            for letter, name in SURE.items()
            if name in moved and getattr(workload, name) is certainty
        ]
        if letters:
            changed[certainty.value] = ",".join(letters)
    if workload.weights != DEFAULT.weights:
        changed[WEIGHTS_KEY] = ",".join(map(str, workload.weights))
    changed |= encode_terms(settings)
    return {VERSION_KEY: str(VERSION), **changed} if changed else {}


def decode(parameters: Mapping[str, Given]) -> tuple[Workload, list[LinkNote]]:
    """The workload of a link, and a note for each part of it that could not be used.

    parameters : values by name, percent-encoding undone; a list stands for a repeated parameter

    Never raises. A bad value leaves its field at the default and keeps the rest.
    """
    notes: list[LinkNote] = []
    values: dict[str, Any] = {}
    unknown: list[str] = []
    for key, given in parameters.items():
        text, more = _first(given)
        if key == VERSION_KEY:
            _check_version(text, notes)
        elif key == DATE_KEY:
            _check_date(text, notes)
        elif key == WEIGHTS_KEY:
            _read_weights(text, values, notes)
        elif key in CERTAINTIES:
            _read_sure(key, text, values, notes)
        elif key in PAGES:
            continue
        elif key not in FIELDS:
            unknown.append(str(key))
            continue
        else:
            _read(FIELDS[key], text, values, notes)
        if more:
            notes.append(LinkNote(FIELDS.get(key, key), "given more than once; the first counts"))
    notes += _strangers(unknown)
    return _together(values, notes), _capped(notes)


def decode_settings(parameters: Mapping[str, Given]) -> tuple[Settings, list[LinkNote]]:
    """The terms of the plan pages that a link carries, and notes as `decode` gives them."""
    return decode_terms({page: _first(parameters[page])[0] for page in PAGES if page in parameters})


def decode_query(query: str) -> tuple[Workload, list[LinkNote]]:
    """The same from a whole link or a query string, percent-encoded."""
    try:
        return decode(_parameters(query))
    except _Unusable as error:
        return DEFAULT, [LinkNote("link", f"{error}; nothing is read")]


def decode_query_settings(query: str) -> tuple[Settings, list[LinkNote]]:
    """The terms of the plan pages in a whole link or a query string, percent-encoded."""
    try:
        return decode_settings(_parameters(query))
    except _Unusable:
        return USUAL, []  # `decode_query` says why


def _parameters(query: str) -> dict[str, list[str]]:
    """The parameters of a whole link or of a query string, percent-decoded."""
    text = urlsplit(query).query if "?" in query else query
    try:
        return parse_qs(text, keep_blank_values=True, max_num_fields=1_000)
    except ValueError:
        raise _Unusable("it has more than 1,000 parameters") from None


def link_date(parameters: Mapping[str, Given]) -> date | None:
    """The day on which a share link was made, if it says so."""
    if DATE_KEY not in parameters:
        return None
    return _day(_first(parameters[DATE_KEY])[0])


def query_string(workload: Workload, today: date | None = None, settings: Settings = USUAL) -> str:
    """The percent-encoded query string, with the date when one is given."""
    parameters = encode(workload, settings)
    if today is not None:
        parameters[DATE_KEY] = today.isoformat()
    # A comma and a colon may stand as they are in a query, and are a third as long.
    return urlencode(parameters, safe=",:/")


def link(
    base_url: str, workload: Workload, today: date | None = None, settings: Settings = USUAL
) -> str:
    """The address that opens the workload; the address alone when all is default."""
    query = query_string(workload, today, settings)
    return f"{base_url}?{query}" if query else base_url


def share_link(
    workload: Workload, base_url: str, today: date | None = None, settings: Settings = USUAL
) -> str:
    """The link for another person: it says on which day the prices were read."""
    return link(base_url, workload, today or date.today(), settings)


# --- writing


def _text(name: str, value: Any) -> str:
    """One value as it stands in the link."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Symptom):
        return SYMPTOMS[value]
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, int | float):
        return number_text(value)
    if name == "quotes":
        return ",".join(_with_terms(quote, TERMS) for quote in value)
    if isinstance(value, tuple):
        separator = "x" if name == "timings" else ","
        return ",".join(
            separator.join(number_text(x) for x in item)
            if isinstance(item, tuple)
            else _text(name, item)
            for item in value
        )
    return str(value)


def _with_terms(quote: str, names: Mapping[str, str]) -> str:
    """A quote (hardware:terms:price) with its terms under the other name, if they have one."""
    parts = quote.split(":")
    if len(parts) == 3:
        parts[1] = names.get(parts[1], parts[1])
    return ":".join(parts)


# --- reading


def _read(name: str, text: str, values: dict[str, Any], notes: list[LinkNote]) -> None:
    """Read one parameter into `values`, or say why not."""
    if name in values:
        notes.append(LinkNote(name, "given more than once; the first counts"))
        return
    try:
        value = _value(name, text)
        parse({name: value})
    except _Unusable as error:
        notes.append(LinkNote(name, f"“{echo(text)}” is left out: {error}"))
    except InputError as error:
        right = error.right or error.wrong
        notes.append(LinkNote(name, f"“{echo(text)}” is left out: {right}"))
    else:
        values[name] = value


def _read_sure(certainty: str, text: str, values: dict[str, Any], notes: list[LinkNote]) -> None:
    """Read the answers of one certainty."""
    for letter in text[:LONGEST].split(","):
        if letter in SURE:
            _read(SURE[letter], certainty, values, notes)
        else:
            message = f"“{echo(letter)}” is left out: it must be one of {', '.join(SURE)}"
            notes.append(LinkNote(certainty, message))


def _read_weights(text: str, values: dict[str, Any], notes: list[LinkNote]) -> None:
    """Read the six weights; one that is out of bounds leaves the other five."""
    parts = text.split(",") if len(text) <= LONGEST else []
    if len(parts) != len(WEIGHTS):
        message = (
            f"“{echo(text)}” is left out: {len(WEIGHTS)} numbers are needed, like 40,15,10,15,12,8"
        )
        notes.append(LinkNote(WEIGHTS_KEY, message))
        return
    for name, part in zip(WEIGHTS, parts, strict=True):
        _read(name, part, values, notes)


def _value(name: str, text: str) -> Any:
    """The text of one parameter as what its field holds; bounds are checked by the model."""
    if len(text) > LONGEST:
        raise _Unusable(f"it is {len(text):,} characters long")
    if name == "name":
        return _printable(text)
    text = text.strip()
    if not text:
        raise _Unusable("it is empty")
    default = getattr(DEFAULT, name)
    if isinstance(default, bool):
        return _yes(text)
    if isinstance(default, StrEnum):
        return _choice(type(default), text)
    if name == "timings":
        return tuple(_pair(part) for part in text.split(","))
    if name == "quotes":
        return tuple(_with_terms(quote, _TERMS) for quote in text.split(","))
    if name == "symptoms":
        return tuple(_SEEN.get(part) or _choice(Symptom, part) for part in text.split(","))
    if isinstance(default, tuple):
        return tuple(_number(part) for part in text.split(","))
    return _number(text)


def _printable(text: str) -> str:
    """A name as one line that any page can show."""
    clean = "".join(c for c in text if not "\ud800" <= c <= "\udfff")
    if len(clean.strip()) > 80:
        raise _Unusable("a name has at most 80 characters")
    return clean


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise _Unusable("a number is needed, like 0.92 or 1500")
    return float(text)


def _pair(text: str) -> tuple[float, float]:
    machines, _, hours = text.partition("x")
    if not (_NUMBER.fullmatch(machines) and _NUMBER.fullmatch(hours)):
        raise _Unusable("pairs of machines and hours are needed, like 8x14,32x19")
    return float(machines), float(hours)


def _yes(text: str) -> bool:
    if text.lower() not in _YES:
        raise _Unusable("yes or no is needed")
    return _YES[text.lower()]


def _choice(choices: type[StrEnum], text: str) -> StrEnum:
    try:
        return choices(text)
    except ValueError:
        raise _Unusable("it must be one of " + ", ".join(choices)) from None


def _first(given: Given) -> tuple[str, bool]:
    """The first of the values given, and whether others follow that differ from it."""
    if isinstance(given, str):
        return given, False
    try:
        texts = [str(text) for text in given]
    except TypeError:
        return str(given), False
    return (texts[0] if texts else ""), len(set(texts)) > 1


def _check_version(text: str, notes: list[LinkNote]) -> None:
    if not re.fullmatch(r"\d{1,6}", text, re.ASCII) or int(text) < 1:
        notes.append(LinkNote("v", f"“{echo(text)}” is no version of a link; read as {VERSION}"))
    elif int(text) > VERSION:
        notes.append(
            LinkNote(
                "v", f"the link was made by a newer ClusterFit ({int(text)}); what is new is lost"
            )
        )


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text.strip()) if len(text) <= ECHO else None
    except ValueError:
        return None


def _check_date(text: str, notes: list[LinkNote]) -> None:
    if _day(text) is None:
        notes.append(
            LinkNote("d", f"“{echo(text)}” is left out: a date is needed, like 2026-12-01")
        )


def _strangers(unknown: list[str]) -> list[LinkNote]:
    return [
        LinkNote(echo(key) or "“”", "there is no such field; it is left out") for key in unknown
    ]


def _together(values: dict[str, Any], notes: list[LinkNote]) -> Workload:
    """The workload of values that are each right; what contradicts the rest is dropped."""
    while True:
        try:
            return parse(values)
        except InputError as error:
            if error.where not in values:
                notes.append(
                    LinkNote(error.where or "link", f"{error.wrong}; nothing else is read")
                )
                return DEFAULT
            given = echo(_text(error.where, values.pop(error.where)))
            notes.append(LinkNote(error.where, f"“{given}” is left out: {error.wrong}"))


def _capped(notes: list[LinkNote]) -> list[LinkNote]:
    if len(notes) <= MOST_NOTES:
        return notes
    rest = len(notes) - MOST_NOTES + 1
    return [*notes[: MOST_NOTES - 1], LinkNote("link", f"{rest:,} more parts are left out")]
