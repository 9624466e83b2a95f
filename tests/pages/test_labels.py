"""How numbers and texts look on screen."""

from __future__ import annotations

import pytest

from engine.estimate.estimate import Estimate
from pages.components import labels


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0"),
        (1.5, "$1.50"),
        (0.00234, "$0.00234"),
        (12345, "$12,300"),
        (1.2e6, "$1.2 million"),
        (-5, "−$5"),
    ],
)
def test_money_has_three_digits_at_most(amount: float, text: str) -> None:
    assert labels.money(amount) == text


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (0.001, "3.6 s"),
        (1e-6, "3.6 ms"),
        (0.5, "30 min"),
        (14, "14 h"),
        (60, "2.5 days"),
        (20_000, "2.3 years"),
    ],
)
def test_a_duration_has_the_unit_that_reads_best(hours: float, text: str) -> None:
    assert labels.duration(hours) == text


def test_a_range_names_its_unit_once() -> None:
    assert labels.interval(Estimate(10_240, 12_000, 14_800, "USD/month")) == (
        "$10,200 to $14,800 a month"
    )
    assert labels.interval(Estimate(10, 20, 35, "ms")) == "10 to 35 ms"
    assert labels.interval(Estimate(5, 5, 5, "ms")) == "known exactly"


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0%"), (0.004, "below 1%"), (0.78, "78%"), (0.999, "over 99%")]
)
def test_a_chance_never_claims_certainty(share: float, text: str) -> None:
    assert labels.percent(share) == text


@pytest.mark.parametrize(
    "text",
    ["[a](http://b.c)", "![i](u)", "$x$ to $y$", "<b>", ":red[x]", "# x", "- x", "1. x", "`c`"],
)
def test_text_of_a_user_is_no_markdown(text: str) -> None:
    assert labels.plain(text) != text
    assert labels.plain(text).replace("\\", "") == text
