"""Buying tokens: the table, what a load costs there, and the rate at which hosting wins."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from engine.cost.api_prices import (
    SECONDS_PER_MONTH,
    ApiOffer,
    api_offers,
    buying,
    crossing,
    of_same_size,
)
from engine.errors import InputError

TODAY = date(2026, 12, 2)


def offer(cached: float | None = None) -> ApiOffer:
    """0.59 USD a million tokens in, 0.79 out."""
    return ApiOffer(
        "A", "M", 70.6, 70.6, True, 0.59, cached, 0.79, "a page", date(2026, 6, 1), "high", ""
    )


def test_every_row_has_source_and_date_and_a_price_that_can_be() -> None:
    assert len(api_offers()) >= 40
    for o in api_offers():
        assert o.source
        assert date(2025, 1, 1) < o.as_of <= TODAY
        # Between a tenth of a cent and 100 USD a million; answers are never cheaper than prompts.
        assert 0.001 < o.usd_per_million_in <= o.usd_per_million_out < 100
        if o.usd_per_million_cached is not None:
            assert o.usd_per_million_cached < o.usd_per_million_in


def test_a_superseded_price_gives_way_to_the_younger() -> None:
    together = [o for o in api_offers() if o.id == "Together AI Llama 3.3 70B"]
    assert [(o.usd_per_million_in, o.as_of) for o in together] == [(1.04, date(2026, 8, 27))]


def test_the_age_of_a_price_is_told() -> None:
    o = offer()
    assert o.age_days(TODAY) == 184
    assert o.freshness(TODAY) == "warn"
    assert o.freshness(date(2026, 6, 20)) == "fresh"
    assert o.age_days(date(2026, 1, 1)) == 0


def test_a_request_costs_its_tokens() -> None:
    # 1,000 × 0.59 + 300 × 0.79 = 827 millionths.
    assert offer().usd_per_request(1000, 300) == pytest.approx(827e-6)
    # Half of the prompt from the cache at 0.10: 500 × 0.59 + 500 × 0.10 + 300 × 0.79 = 582.
    assert offer(0.10).usd_per_request(1000, 300, 0.5) == pytest.approx(582e-6)
    assert offer().usd_per_request(1000, 300, 0.5) == pytest.approx(827e-6)


def test_a_month_of_the_article_at_an_api() -> None:
    # 000: one million requests a day, 30.4 million a month: 25,167 USD at 827 millionths each.
    rate = 1e6 / 86_400
    found = buying(offer(), 1000, 300, rate, lambda r: np.full(len(r), np.inf))
    assert found.usd_per_month == pytest.approx(25_155, rel=0.001)
    assert found.wins_from_per_s is None


def test_hosting_at_a_flat_price_wins_from_where_the_lines_cross() -> None:
    # 1,000 USD a month against 1e-4 a request: 1e7 requests, 3.805 a second.
    assert crossing(lambda r: np.full(len(r), 1000.0), 1e-4) == pytest.approx(3.805, rel=1e-3)


def test_the_last_crossing_counts_where_hosting_grows_in_steps() -> None:
    # 1,000 USD carry 5 requests/s and pay for 3.805 of them at the API. The third machine (from 10
    # on) is dearer up to 11.4, the fourth (from 15 on) up to 15.22, the fifth (20) costs 5,000 and
    # the API 5,256: 15.22 is the last crossing.
    def steps(r: np.ndarray) -> np.ndarray:
        return np.ceil(np.maximum(r, 1e-12) / 5.0) * 1000.0

    assert crossing(steps, 1e-4) == pytest.approx(4000 / (1e-4 * SECONDS_PER_MONTH), rel=1e-3)


def test_hosting_that_is_dearer_per_token_never_wins() -> None:
    assert crossing(lambda r: r * SECONDS_PER_MONTH * 2e-4, 1e-4) is None
    assert crossing(lambda r: r * 0.0, 0.0) is None


def test_models_of_the_same_size_are_found_by_both_counts() -> None:
    found = {o.model for o in of_same_size(api_offers(), 70.0, 70.0, 1.25)}
    assert "Llama 3.3 70B" in found
    assert not {"gpt-oss 120B", "Llama 3.1 8B", "GPT-5 mini"} & found
    experts = {o.model for o in of_same_size(api_offers(), 671, 37, 1.25)}
    assert "DeepSeek V3 0324" in experts
    assert "Kimi K2.6" not in experts


@pytest.mark.parametrize(
    ("values", "where"),
    [((-1, 1, 1, 0), "tokens_in"), ((1, 1, -1, 0), "rate"), ((1, 1, 1, 1.0), "prefix_hit")],
)
def test_bad_input_is_told(values: tuple[float, float, float, float], where: str) -> None:
    tokens_in, tokens_out, rate, hit = values
    with pytest.raises(InputError) as told:
        buying(offer(), tokens_in, tokens_out, rate, lambda r: r, prefix_hit=hit)
    assert told.value.where == where
