"""How numbers, money, times and texts look on screen. The only place that rounds.

Three significant digits at most; a range never shows more digits than its likely value.
"""

from __future__ import annotations

import math
import re
from datetime import date

from engine.assessment import PLACEMENT_LABELS, Option, PriceRef
from engine.estimate.estimate import Estimate

# What Markdown would act on: marks anywhere, directives (`:name:`), addresses, and line openers.
_MARKDOWN = re.compile(
    r"([\\`*_{}\[\]|<>~$&@]|:(?=[A-Za-z/])|(?<=www)\.|^[-+#=](?=.)|(?<=^\d)[.)]|(?<=^\d\d)[.)])"
)


def plain(text: object) -> str:
    """Any text so that Markdown shows it as it is: no links, pictures, formulae or HTML."""
    return _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))


def rounded(value: float, digits: int = 3) -> float:
    """The value with so many significant digits."""
    if not value or not math.isfinite(value):
        return value
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def number(value: float | None, unit: str = "", digits: int = 3) -> str:
    """A number with thousands separators and its unit."""
    if value is None:
        return "not known"
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
    return f"{text} {unit}".strip()


def money(value: float | None, digits: int = 3) -> str:
    """US dollars: $12,300, $1.25, $3.4 million."""
    if value is None:
        return "not known"
    sign = "−" if value < 0 else ""
    value = abs(value)
    if 0 < value < 100 and rounded(value, digits) != int(rounded(value, digits)):
        return f"{sign}${value:,.2f}" if value >= 0.01 else f"{sign}${number(value, digits=2)}"
    return f"{sign}${number(value, digits=digits)}"


def duration(hours: float | None) -> str:
    """Hours in the unit that reads best, from milliseconds to years."""
    if hours is None:
        return "not known"
    for unit, size in (("years", 8766.0), ("days", 48.0), ("h", 1.0), ("min", 1 / 60)):
        if abs(hours) >= size * (2 if unit == "years" else 1):
            return number(hours / (24.0 if unit == "days" else size), unit, 2)
    seconds = hours * 3600
    return number(seconds, "s", 2) if seconds >= 1 else number(seconds * 1000, "ms", 2)


def value(estimate: Estimate, which: str = "likely") -> str:
    """One figure of an estimate (likely, low or high) in the words of its unit."""
    return quantity(getattr(estimate, which), estimate.unit)


def quantity(amount: float | None, unit: str) -> str:
    """A figure in the words of its unit: money with a dollar sign, hours as a duration."""
    if amount is None:
        return "not known"
    if unit.startswith("USD"):
        per = unit.removeprefix("USD").removeprefix("/").strip()
        return f"{money(amount)} per {HOUR.get(per, per)}" if per else money(amount)
    if unit in ("h", "hours"):
        return duration(amount)
    if unit == "%":
        return f"{number(amount)}%"
    return number(amount, unit)


def interval(estimate: Estimate) -> str:
    """The 80% interval of an estimate in words, or that it is exact."""
    if rounded(estimate.low) == rounded(estimate.high):
        return "known exactly"
    low, high = value(estimate, "low"), value(estimate, "high")
    low_number, _, low_unit = low.partition(" ")
    _, _, high_unit = high.partition(" ")
    if low_unit == high_unit:
        low = low_number
    return f"{low} to {high}"


def percent(share: float | None) -> str:
    """A share of 1 as a percentage without decimals, never a false 0% or 100%."""
    if share is None:
        return "not known"
    if 0 < share < 0.01:
        return "below 1%"
    if 0.99 < share < 1:
        return "over 99%"
    return f"{share * 100:.0f}%"


def points(share: float) -> str:
    """What a criterion adds to a score or takes from it, of 100 points in all."""
    return f"{'+' if share >= 0 else '−'}{abs(share) * 100:.1f}"


def score(share: float) -> str:
    """A score of 1 as points of 100."""
    return f"{share * 100:.0f}"


def day(when: date) -> str:
    """A date that reads the same in every country: 3 Nov 2026."""
    return f"{when.day} {when:%b %Y}"


def age(days: int) -> str:
    """How old a price is."""
    return "today" if days <= 0 else "1 day old" if days == 1 else f"{days} days old"


# The articles whose framework the app carries, by the number that claims and examples cite.
ARTICLES = {
    "000": "GPU Cluster vs Distributed Computing",
    "001": "Why I Stopped Pretending GPU Clusters…",
    "003": "GPU Cluster vs CPU Cluster",
}
HOUR = {"h": "hour", "useful_h": "useful hour"}
FRESHNESS = {
    "fresh": ":material/check_circle: {age}",
    "grey": ":gray[:material/schedule: {age}]",
    "warn": ":orange[:material/warning: {age}, ask for a new quote]",
}


def price_age(price: PriceRef) -> str:
    """The age of a price in Markdown: greyed after 60 days, a warning after 120."""
    return FRESHNESS[price.freshness].format(age=age(price.age_days))


def placement(option: Option) -> str:
    """The word, and with it the colour, of an option's placement."""
    if option.placement == "cpu" and option.scale == "one_machine":
        return "One machine"
    return PLACEMENT_LABELS[option.placement]


def hours(amount: float) -> str:
    """Hours of a month, as hours: 1,230 h."""
    return number(amount, "h")


def count(amount: int, noun: str) -> str:
    """So many of something: 1 machine, 3 machines."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def article(number: str) -> str:
    """The title of an article by its number."""
    return ARTICLES.get(number, number)
