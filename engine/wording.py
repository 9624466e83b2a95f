"""How figures read in a sentence: numbers, money, times, shares, dates.

Three significant digits at most, and no powers of ten below a thousand trillion. Plain text,
without markup of any kind.
"""

from __future__ import annotations

import math
from datetime import date

_PER = {"h": "hour", "useful_h": "useful hour", "unit_h": "hour a unit"}


def rounded(value: float, digits: int = 3) -> float:
    """The value with so many significant digits."""
    if not value or not math.isfinite(value):
        return value
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


LONG_MS = 10_000.0  # from here on milliseconds read as seconds


def number(value: float, unit: str = "", digits: int = 3) -> str:
    """A number with thousands separators and its unit."""
    shown = rounded(float(value), digits)
    if abs(shown) >= 1e15:
        text = f"{shown:.{digits - 1}e}"
    elif abs(shown) >= 1e6:
        words = (("trillion", 1e12), ("billion", 1e9), ("million", 1e6))
        word, scale = next(w for w in words if abs(shown) >= w[1])
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


def rough(value: float) -> str:
    """A number with two digits, for what is known no better."""
    return number(value, digits=2)


def money(value: float, digits: int = 3) -> str:
    """US dollars: $12,300, $1.25, $3.4 million."""
    sign, value = ("−" if value < 0 else ""), abs(value)
    shown = rounded(value, digits)
    if 0.01 <= value < 100 and shown != int(shown):
        return f"{sign}${value:,.2f}"
    return f"{sign}${number(value, digits=digits)}"


def spent(value: float) -> str:
    """A sum that is paid or lost: what is below a cent is told in words, not in its digits."""
    if 0 < abs(value) < 0.01:
        return "less than a cent"
    return money(value)


def duration(hours: float) -> str:
    """Hours in the unit that reads best, from milliseconds to years."""
    for unit, size, from_ in (("years", 8766, 2), ("days", 24, 2), ("h", 1, 1), ("min", 1 / 60, 1)):
        if abs(hours) >= size * from_:
            return number(hours / size, unit, 2)
    seconds = hours * 3600
    return number(seconds, "s", 2) if seconds >= 1 else number(seconds * 1000, "ms", 2)


def count(n: float, word: str) -> str:
    """A count with its word in the plural where it is one."""
    whole = round(n)
    return f"{whole:,} {word}{'' if whole == 1 else 's'}"


def quantity(amount: float, unit: str) -> str:
    """A figure in the words of its unit: money with a dollar sign, hours as a duration."""
    if unit.startswith("USD"):
        per = unit.removeprefix("USD").removeprefix("/").strip()
        return f"{money(amount)} a {_PER.get(per, per)}" if per else money(amount)
    if unit in ("h", "hours"):
        return duration(amount)
    if unit == "days" and 0 < abs(amount) < 1:  # a deadline of minutes reads in minutes
        return duration(amount * 24)
    if unit == "ms" and amount >= LONG_MS:
        return duration(amount / 3.6e6)
    return number(amount * 100, "%") if unit == "share" else number(amount, unit)


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
