"""How figures read in a report and in a shell: numbers, money, times, shares, dates.

Three significant digits at most. Plain text, without markup of any kind.
"""

from __future__ import annotations

from enum import StrEnum

from engine.assessment import ACQUISITION_LABELS, PLACEMENT_LABELS, SCALE_LABELS, Option
from engine.estimate.estimate import Estimate
from engine.wording import age as age
from engine.wording import day as day
from engine.wording import duration as duration
from engine.wording import money as money
from engine.wording import number as number
from engine.wording import percent as percent
from engine.wording import quantity as quantity
from engine.wording import rounded as rounded
from engine.workload import answers

# The words of every choice, by the type of the choice.
CHOICES: dict[type[StrEnum], dict[StrEnum, str]] = {
    type(next(iter(labels))): dict(labels)
    for name, labels in vars(answers).items()
    if name.endswith("_LABELS")
}


def choice(value: StrEnum) -> str:
    """A choice in the words of the form."""
    return CHOICES.get(type(value), {}).get(value, value.value)


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
