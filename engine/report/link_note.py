"""What the two halves of the link share: notes on what could not be used, and how values look."""

from __future__ import annotations

from dataclasses import dataclass

ECHO = 80  # characters of a bad value that a note repeats
LONGEST = 2_000  # characters of one value; longer is no answer of ours


@dataclass(frozen=True, slots=True)
class LinkNote:
    """What of a link could not be used, in words for a founder; `field` names it."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def number_text(value: float) -> str:
    """A number without loss and without needless characters: 40.0 is `40`, 1e+20 is `1e20`."""
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return str(int(value))
    return repr(value).replace("e+", "e")


def echo(text: str) -> str:
    """A text as it may be repeated to a person: printable, at most 80 characters."""
    shown = "".join(c if c.isprintable() else " " for c in str(text)[: 4 * ECHO])
    shown = " ".join(shown.split())
    return shown if len(shown) <= ECHO else shown[: ECHO - 1] + "…"
