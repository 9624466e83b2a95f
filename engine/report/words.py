"""How figures read in a report and in a shell: numbers, money, times, shares, dates.

Three significant digits at most. Plain text, without markup of any kind.
"""

from __future__ import annotations

import math
from datetime import date
from enum import StrEnum

from engine.assessment import ACQUISITION_LABELS, PLACEMENT_LABELS, SCALE_LABELS, Option
from engine.estimate.estimate import Estimate
from engine.workload import answers

# The words of every choice, by the type of the choice.
CHOICES: dict[type[StrEnum], dict[StrEnum, str]] = {
    type(next(iter(labels))): dict(labels)
    for name, labels in vars(answers).items()
    if name.endswith("_LABELS")
}
_PER = {"h": "hour", "useful_h": "useful hour", "unit_h": "hour a unit"}


def choice(value: StrEnum) -> str:
    """A choice in the words of the form."""
    return CHOICES.get(type(value), {}).get(value, value.value)


def rounded(value: float, digits: int = 3) -> float:
    """The value with so many significant digits."""
    if not value or not math.isfinite(value):
        return value
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def number(value: float, unit: str = "", digits: int = 3) -> str:
    """A number with thousands separators and its unit."""
    shown = rounded(float(value), digits)
    if abs(shown) >= 1e12:
        text = f"{shown:.{digits - 1}e}"
    elif abs(shown) >= 1e6:
        word, scale = ("billion", 1e9) if abs(shown) >= 1e9 else ("million", 1e6)
        text = f"{shown / scale:,.{digits}g} {word}"
    elif shown == int(shown):
        text = f"{int(shown):,}"
    else:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(shown))))
        text = f"{shown:,.{decimals}f}".rstrip("0").rstrip(".")
    if shown < 0:
        text = text.replace("-", "−", 1)
    if unit == "%" or unit.startswith("1/"):
        return text + unit.removeprefix("1")
    return f"{text} {unit}".strip()


def money(value: float, digits: int = 3) -> str:
    """US dollars: $12,300, $1.25, $3.4 million."""
    sign, value = ("−" if value < 0 else ""), abs(value)
    shown = rounded(value, digits)
    if 0.01 <= value < 100 and shown != int(shown):
        return f"{sign}${value:,.2f}"
    return f"{sign}${number(value, digits=digits)}"


def duration(hours: float) -> str:
    """Hours in the unit that reads best, from milliseconds to years."""
    for unit, size, from_ in (("years", 8766, 2), ("days", 24, 2), ("h", 1, 1), ("min", 1 / 60, 1)):
        if abs(hours) >= size * from_:
            return number(hours / size, unit, 2)
    seconds = hours * 3600
    return number(seconds, "s", 2) if seconds >= 1 else number(seconds * 1000, "ms", 2)


def quantity(amount: float, unit: str) -> str:
    """A figure in the words of its unit: money with a dollar sign, hours as a duration."""
    if unit.startswith("USD"):
        per = unit.removeprefix("USD").removeprefix("/").strip()
        return f"{money(amount)} a {_PER.get(per, per)}" if per else money(amount)
    if unit in ("h", "hours"):
        return duration(amount)
    return number(amount * 100, "%") if unit == "share" else number(amount, unit)


def likely(estimate: Estimate) -> str:
    """The likely value of an estimate with its unit."""
    return quantity(estimate.likely, estimate.unit)


def interval(estimate: Estimate) -> str:
    """The 80% interval of an estimate in words, or that it is exact."""
    if rounded(estimate.low) == rounded(estimate.high):
        return "known exactly"
    low, high = quantity(estimate.low, estimate.unit), quantity(estimate.high, estimate.unit)
    first, _, low_unit = low.partition(" ")
    return f"{first if low_unit == high.partition(' ')[2] else low} to {high}"


def percent(share: float) -> str:
    """A share of 1 as a percentage without decimals, never a false 0% or 100%."""
    if 0 < share < 0.01:
        return "under 1%"
    if 0.99 < share < 1:
        return "over 99%"
    return f"{share * 100:.0f}%"


def day(when: date) -> str:
    """A date that reads the same in every country: 3 Nov 2026."""
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    return f"{when.day} {months[when.month - 1]} {when.year}"


def age(days: int) -> str:
    """How old a price is."""
    return "today" if days <= 0 else "1 day old" if days == 1 else f"{days} days old"


def placement(option: Option) -> str:
    """The word, and with it the colour, of an option's placement."""
    if option.placement == "cpu" and option.scale == "one_machine":
        return "One machine"
    return PLACEMENT_LABELS[option.placement]


def scale(option: Option) -> str:
    """Whether an option is one machine or a cluster."""
    return SCALE_LABELS[option.scale]


def terms(acquisition: str) -> str:
    """The terms on which hardware is had."""
    return ACQUISITION_LABELS.get(acquisition, acquisition.replace("_", " "))


def one_line(text: object) -> str:
    """A text on one line, without control characters."""
    kept = "".join(c if c.isprintable() or c in "\u200c\u200d" else " " for c in str(text))
    return " ".join(kept.split())
