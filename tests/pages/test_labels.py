"""How texts and the marks of prices look on a page; figures are tested with the report's words."""

from __future__ import annotations

import pytest

from engine.catalogue.models import Freshness
from pages.components import labels


@pytest.mark.parametrize(
    ("freshness", "days", "text"),
    [("fresh", 3, "3 days old"), ("grey", 75, ":gray["), ("warn", 130, "ask for a new quote")],
)
def test_an_age_is_greyed_and_then_warned_about(freshness: Freshness, days: int, text: str) -> None:
    assert text in labels.aged(freshness, days)


def test_points_are_of_a_hundred() -> None:
    assert labels.points(0.312) == "+31.2"
    assert labels.points(-0.041) == "−4.1"
    assert labels.score(0.754) == "75"


@pytest.mark.parametrize(
    "text",
    ["[a](http://b.c)", "![i](u)", "$x$ to $y$", "<b>", ":red[x]", "# x", "- x", "1. x", "`c`"],
)
def test_text_of_a_user_is_no_markdown(text: str) -> None:
    assert labels.plain(text) != text
    assert labels.plain(text).replace("\\", "") == text
