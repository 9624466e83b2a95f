"""Tokens bought from an API: dated public prices, what a load costs there, when hosting wins.

Rows of `data/api_prices.csv` are list prices in US dollars per million tokens, each with source
and date. Where a provider has raised or cut a price there are several rows; the youngest counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np

from engine.catalogue.models import Freshness, freshness_of
from engine.catalogue.read import rows
from engine.errors import DataError, InputError
from engine.estimate.queueing import Array, check

TABLE = Path(__file__).resolve().parents[2] / "data" / "api_prices.csv"
SECONDS_PER_MONTH = 730.0 * 3600.0
# Rates between which the crossing is looked for, requests a second.
SLOWEST, FASTEST = 1e-5, 1e6


@dataclass(frozen=True, slots=True)
class ApiOffer:
    """One model at one provider: US dollars per million tokens read, read from cache, written.

    `params_b`, `active_params_b` in billions, None where the maker does not tell them.
    """

    provider: str
    model: str
    params_b: float | None
    active_params_b: float | None
    open_weights: bool
    usd_per_million_in: float
    usd_per_million_cached: float | None
    usd_per_million_out: float
    source: str
    as_of: date
    confidence: str
    notes: str

    @property
    def id(self) -> str:
        """Provider and model: a stable name."""
        return f"{self.provider} {self.model}"

    def age_days(self, today: date) -> int:
        """Days since the price was read; 0 for a date in the future."""
        return max((today - self.as_of).days, 0)

    def freshness(self, today: date) -> Freshness:
        """fresh, grey or warn: at the ages of hardware prices."""
        return freshness_of(self.age_days(today))

    def usd_per_request(
        self, tokens_in: float, tokens_out: float, prefix_hit: float = 0.0
    ) -> float:
        """Dollars of one request; prompt tokens found in the cache at their own price."""
        cached = self.usd_per_million_cached
        hit = prefix_hit if cached is not None else 0.0
        read = (1.0 - hit) * self.usd_per_million_in + hit * (cached or 0.0)
        return (tokens_in * read + tokens_out * self.usd_per_million_out) / 1e6


@cache
def api_offers() -> tuple[ApiOffer, ...]:
    """The youngest price of each model at each provider.

    Raises
    ------
    DataError : with file, line and column
    """
    found: dict[str, ApiOffer] = {}
    for line, row in rows(TABLE):
        offer = _offer(row, line)
        known = found.get(offer.id)
        if known is None or known.as_of < offer.as_of:
            found[offer.id] = offer
    return tuple(found.values())


def _offer(row: dict[str, str], line: int) -> ApiOffer:
    for column in ("provider", "model", "source", "as_of", "confidence"):
        if not row[column].strip():
            raise DataError("is empty", file=TABLE, line=line, column=column)
    try:
        seen = date.fromisoformat(row["as_of"])
    except ValueError:
        raise DataError(
            "is no date", file=TABLE, line=line, column="as_of", right="YYYY-MM-DD"
        ) from None

    def number(column: str) -> float | None:
        if not row[column].strip():
            return None
        try:
            value = float(row[column])
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value >= 0):
            raise DataError(f"{row[column]!r} is no price", file=TABLE, line=line, column=column)
        return value

    def price(column: str) -> float:
        value = number(column)
        if value is None:
            raise DataError("is empty", file=TABLE, line=line, column=column)
        return value

    return ApiOffer(
        row["provider"], row["model"], number("model_params_b"), number("active_params_b"),
        row["open_weights"] == "yes", price("input_usd_per_mtok"),
        number("cached_input_usd_per_mtok"), price("output_usd_per_mtok"), row["source"], seen,
        row["confidence"], row["notes"],
    )  # fmt: skip


def of_same_size(
    offers: Sequence[ApiOffer], params_b: float, active_params_b: float, tolerance: float
) -> tuple[ApiOffer, ...]:
    """Offers of open models whose total and active parameters are within a factor."""
    low = math.log(tolerance)
    return tuple(
        o
        for o in offers
        if o.params_b and o.active_params_b
        and abs(math.log(o.params_b / params_b)) <= low
        and abs(math.log(o.active_params_b / active_params_b)) <= low
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Buying:
    """A load bought from an API, beside hosting it.

    `wins_from_per_s` : mean rate from which hosting is never dearer again, None where it never is
    """

    offer: ApiOffer
    usd_per_month: float
    usd_per_request: float
    wins_from_per_s: float | None


def buying(
    offer: ApiOffer, tokens_in: float, tokens_out: float, rate: float,
    hosting_usd: Callable[[Array], Array], *, prefix_hit: float = 0.0,
) -> Buying:  # fmt: skip
    """What an API takes for the load a month, and the rate at which hosting wins.

    hosting_usd : dollars a month of the cheapest fleet at mean rates, an array to an array

    Raises
    ------
    InputError : with the field's name
    """
    check("rate", rate, least=0.0)
    check("tokens_in", tokens_in, least=0.0)
    check("tokens_out", tokens_out, least=0.0)
    if not 0.0 <= prefix_hit < 1.0:
        raise InputError(f"{prefix_hit} can't be used", where="prefix_hit", right="0 up to 1")
    each = offer.usd_per_request(tokens_in, tokens_out, prefix_hit)
    month = each * rate * SECONDS_PER_MONTH
    return Buying(offer, month, each, crossing(hosting_usd, each))


def crossing(hosting_usd: Callable[[Array], Array], usd_per_request: float) -> float | None:
    """Mean rate from which hosting stays cheaper than paying by the request; None: never.

    Hosting grows in steps, so the two may cross several times: the last crossing counts.
    """
    if usd_per_request <= 0:
        return None
    rates = np.geomspace(SLOWEST, FASTEST, 400)
    for _ in range(3):
        dearer = hosting_usd(rates) > usd_per_request * rates * SECONDS_PER_MONTH
        if dearer[-1]:
            return None
        last = np.flatnonzero(dearer)
        if not len(last):
            break
        # Steps beyond the crossing found may be dearer for a moment: look on finely.
        low = float(rates[last[-1]])
        high = float(rates[last[-1] + 1]) * (8.0 if len(rates) == 400 else 1.0)
        rates = np.geomspace(low, high, 1200)
    return float(rates[0])
