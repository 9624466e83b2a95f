"""Money in the currency of the reader: US dollars inside, converted only where it is shown.

The rate is the user's own, with its day. Figures in tables that are added up stay exact; texts are
rounded as `words.money` rounds dollars.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from engine.estimate.estimate import Estimate
from engine.report import words
from engine.workload.cost_terms import CostTerms

# Signs that read without doubt; other currencies stand with their code.
SIGNS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "KRW": "₩", "ILS": "₪"}
WITHOUT_CENTS = frozenset({"JPY", "KRW", "VND", "CLP", "ISK", "HUF"})


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency with its rate: units for one US dollar, as the user knows it on a day."""

    code: str = "USD"
    per_usd: float = 1.0
    day: date | None = None

    @property
    def sign(self) -> str:
        """What stands before an amount."""
        return SIGNS.get(self.code, f"{self.code} ")

    @property
    def number_format(self) -> str:
        """Format of an amount in a spreadsheet."""
        cents = "" if self.code in WITHOUT_CENTS else ".00"
        return f'"{self.sign}"#,##0{cents};[Red]-"{self.sign}"#,##0{cents}'

    @property
    def note(self) -> str:
        """What the reader has to know of the rate; nothing for US dollars."""
        if self.code == "USD":
            return ""
        when = f", your rate of {words.day(self.day)}" if self.day else ", your rate, without a day"
        return f"Shown in {self.code} at {self.per_usd:g} for one US dollar{when}."

    def of(self, usd: float) -> float:
        """The amount in this currency."""
        return usd * self.per_usd

    def money(self, usd: float, digits: int = 3) -> str:
        """An amount as text with few digits: €12,300."""
        return words.money(self.of(usd), digits).replace("$", self.sign)

    def exact(self, usd: float) -> str:
        """An amount as text to the cent: €12,345.67."""
        amount = self.of(usd)
        decimals = 0 if self.code in WITHOUT_CENTS else 2
        text = f"{abs(amount):,.{decimals}f}"
        return f"{'−' if amount < 0 and float(text.replace(',', '')) else ''}{self.sign}{text}"

    def price(self, usd: float) -> str:
        """A price of an hour as text: to the cent, or further where cents would round it."""
        amount = self.of(usd)
        whole, _, rest = f"{amount:,.{4 if amount >= 0.01 else 8}f}".partition(".")
        return f"{self.sign}{whole}.{rest.rstrip('0').ljust(2, '0')}"

    def likely(self, estimate: Estimate) -> str:
        """The likely value of an estimate in money, without what it is per."""
        return self.money(estimate.likely)

    def interval(self, estimate: Estimate) -> str:
        """The 80% interval of an estimate in money."""
        if words.rounded(estimate.low) == words.rounded(estimate.high):
            return "known exactly"
        return f"{self.money(estimate.low)} to {self.money(estimate.high)}"


def currency_of(terms: CostTerms) -> Currency:
    """The currency that the terms ask for."""
    return Currency(terms.currency, terms.currency_rate, terms.currency_date)
