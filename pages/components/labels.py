"""How figures and texts look on a page. Figures read as in the report: `engine.report.words`.

What is added here is Markdown: text that must show as it is, and the marks of a price's age.
"""

from __future__ import annotations

import re

from engine.assessment import PriceRef
from engine.estimate.estimate import Estimate
from engine.report.words import interval, one_line, placement
from engine.wording import age, day, duration, money, number, percent, quantity

__all__ = [
    "age",
    "aged",
    "article",
    "count",
    "day",
    "duration",
    "hours",
    "interval",
    "money",
    "number",
    "percent",
    "placement",
    "plain",
    "points",
    "price_age",
    "quantity",
    "score",
    "value",
]

# What Markdown would act on: marks anywhere, directives (`:name:`), addresses, and line openers.
_MARKDOWN = re.compile(
    r"([\\`*_{}\[\]|<>~$&@]|:(?=[A-Za-z/])|(?<=www)\.|^[-+#=](?=.)|(?<=^\d)[.)]|(?<=^\d\d)[.)])"
)


def plain(text: object) -> str:
    """Any text so that Markdown shows it as it is: no links, pictures, formulae or HTML."""
    return _MARKDOWN.sub(r"\\\1", one_line(text))


def value(estimate: Estimate, which: str = "likely") -> str:
    """One figure of an estimate (likely, low or high) in the words of its unit."""
    return quantity(getattr(estimate, which), estimate.unit)


def points(share: float) -> str:
    """What a criterion adds to a score or takes from it, of 100 points in all."""
    return f"{'+' if share >= 0 else '−'}{abs(share) * 100:.1f}"


def score(share: float) -> str:
    """A score of 1 as points of 100."""
    return f"{share * 100:.0f}"


# The articles whose framework the app carries, by the number that claims and examples cite.
ARTICLES = {
    "000": "GPU Cluster vs Distributed Computing",
    "001": "Why I Stopped Pretending GPU Clusters…",
    "003": "GPU Cluster vs CPU Cluster",
}
FRESHNESS = {
    "fresh": ":material/check_circle: {age}",
    "grey": ":gray[:material/schedule: {age}]",
    "warn": ":orange[:material/warning: {age}, ask for a new quote]",
}


def price_age(price: PriceRef) -> str:
    """The age of a price in Markdown: greyed after 60 days, a warning after 120."""
    return aged(price.freshness, price.age_days)


def aged(freshness: str, days: int) -> str:
    """An age in Markdown by its freshness."""
    return FRESHNESS[freshness].format(age=age(days))


def hours(amount: float) -> str:
    """Hours of a month, as hours: 1,230 h."""
    return number(amount, "h")


def count(amount: int, noun: str) -> str:
    """So many of something: 1 machine, 3 machines."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def article(number: str) -> str:
    """The title of an article by its number."""
    return ARTICLES.get(number, number)
