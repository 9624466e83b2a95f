"""A user's text made harmless in each language of the kit: shell, YAML, Markdown, and plain names.

Paths and names come from people, so they may hold quotes, dollar signs, backticks or line ends.
Shell values are single-quoted, YAML is emitted here and never pasted together, JSON is written by
`json`, and where a format can't carry a character the value is refused by `plain_text`.
"""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from engine.errors import InputError

LONGEST = 500
# Plain in YAML 1.1 and 1.2: a letter first, nothing that starts another kind of value.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./+-]*( [A-Za-z0-9_./+-]+)*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def shell(text: str) -> str:
    """One word of POSIX shell that means exactly this text."""
    # Commas are safe but look like a slip between the items of an array.
    return f"'{text}'" if "," in text and shlex.quote(text) == text else shlex.quote(text)


def markdown(text: str) -> str:
    """A code span of Markdown that shows exactly this text."""
    ticks = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (ticks + 1)
    pad = " " if text[:1] in ("`", " ", "") or text[-1:] in ("`", " ") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def slug(text: str) -> str:
    """A name of letters, digits and hyphens that job queues and clouds take; never empty."""
    folded = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    short = re.sub(r"[^a-z0-9]+", "-", folded).strip("-")[:40].strip("-")
    if not short:
        return "training-run"
    return short if short[0].isalpha() else f"run-{short}"


def one_line(text: str) -> str:
    """The text with control and formatting characters as spaces, for titles."""
    return " ".join("".join(" " if _unseen(c) else c for c in text).split())[:LONGEST]


def plain_text(text: str, where: str) -> str:
    """The text itself, when it is one line of visible characters.

    Raises
    ------
    InputError : for line ends, other control or formatting characters, or too long a text
    """
    for character in text:
        if _unseen(character):
            raise InputError(
                f"holds the invisible character U+{ord(character):04X}", where=where,
                right="one line of visible characters",
            )  # fmt: skip
    if len(text) > LONGEST:
        raise InputError(f"has {len(text)} characters", where=where, right=f"at most {LONGEST}")
    return text


def _unseen(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def yaml(value: Any, indent: int = 0) -> str:
    """A value of mappings, sequences, text, numbers and booleans as YAML, in the given order.

    Text of several lines becomes a literal block.
    """
    pad = "  " * indent
    if isinstance(value, Mapping):
        return "".join(f"{pad}{scalar(str(k))}:{_after(v, indent)}" for k, v in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "".join(f"{pad}-{_item(v, indent)}" for v in value)
    return f"{pad}{scalar(value)}\n"


def _after(value: Any, indent: int) -> str:
    """What follows the colon of a key."""
    if isinstance(value, str) and "\n" in value:
        pad = "  " * (indent + 1)
        lines = value.rstrip("\n").split("\n")
        return " |\n" + "".join(f"{pad}{line}\n" if line else "\n" for line in lines)
    if isinstance(value, Mapping | list | tuple):
        return f"\n{yaml(value, indent + 1)}" if value else f" {json.dumps(value)}\n"
    return f" {scalar(value)}\n"


def _item(value: Any, indent: int) -> str:
    """What follows the dash of an item; a mapping begins on the same line."""
    if isinstance(value, Mapping) and value:
        return " " + yaml(value, indent + 1).lstrip(" ")
    return _after(value, indent)


def scalar(value: Any) -> str:
    """One value of YAML: plain where no reader could mistake it, else in double quotes."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return repr(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return str(value)
    # JSON is YAML but for what YAML does not print: those go as escapes of YAML's own.
    return "".join(_escaped(c) for c in json.dumps(value, ensure_ascii=False))


def _escaped(character: str) -> str:
    code = ord(character)
    if character.isprintable() and code != 0xFEFF:
        return character
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
