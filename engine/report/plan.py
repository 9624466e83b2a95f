"""A plan as a document: verdict, figures, tables, pictures, prices; the same for PDF and text.

One frozen document is made from the page's own report; what becomes of it is told by `plan_pdf`
and `plan_text`. Everything in it is words already; figures that programs read stand in `rows`,
those of the page's CSV.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from engine.assessment import PriceRef
from engine.estimate.estimate import Estimate
from engine.report import words
from engine.report.table import Row, plain

JSON_VERSION = 1
Tone = Literal["", "strong", "quiet", "grey", "warn"]
Kind = Literal["words", "figure", "source"]
Colour = Literal["GPU", "CPU", "Hybrid", "One machine"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A text of a table; `under` stands below it in small; `tone` is that of a price's age too."""

    text: str
    tone: Tone = ""
    under: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its share of the width; the texts of a `source` are listed at the end."""

    title: str
    width: float = 1.0
    kind: Kind = "words"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts or cells under columns; the caption says how to read it."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture as a Vega-Lite chart or ready SVG, with its title and the text for who can't see.

    share : of the width of its place
    """

    title: str
    caption: str
    alt: str
    chart: Mapping[str, Any] | None = None
    svg: str = ""
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Figures:
    """Pictures side by side in columns of these widths; `beside` are words in the last place."""

    figures: tuple[Figure, ...]
    widths: tuple[float, ...] = (1.0, 1.0)
    beside: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Words:
    """Paragraphs, or a list of (what, text)."""

    texts: tuple[str, ...] = ()
    listed: tuple[tuple[str, str], ...] = ()


Part = Table | Figures | Words


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what stands under it; level 2 belongs to the section before."""

    title: str
    parts: tuple[Part, ...]
    level: int = 1


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure of the head with its name and, in small, its range or what it is of."""

    name: str
    value: str
    under: str


@dataclass(frozen=True, slots=True)
class Price:
    """An hour of one unit, with whose price it is, of which day, how old, and its source.

    used : whether the plan that is told first rests on it; as_of None where it is worked out
    """

    of: str
    unit: str
    usd_per_hour: float
    provider: str
    sku: str
    terms: str
    region: str
    as_of: date | None
    age_days: int
    freshness: str
    confidence: str
    source: str
    used: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """The document. `schema` names it for programs, `colour` is that of the placement."""

    schema: str
    kind: str
    name: str
    verdict: str
    lead: tuple[str, ...]
    colour: Colour
    tiles: tuple[Tile, ...]
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]
    prices: tuple[Price, ...]
    today: date
    query: str
    link: str = ""
    rows: tuple[Row, ...] = field(default=(), repr=False)

    @property
    def title(self) -> str:
        """The name of the job, or else what the document is."""
        return self.name or self.kind

    @property
    def sources(self) -> tuple[str, ...]:
        """Every source in the order of its first use."""
        return tuple(dict.fromkeys(text for text in self._sources() if text))

    def _sources(self) -> Iterator[str]:
        for section in self.sections:
            for part in section.parts:
                if isinstance(part, Table):
                    yield from sources_of(part)


def sources_of(table: Table) -> Iterator[str]:
    """The texts of its source columns, row by row."""
    at = [i for i, column in enumerate(table.columns) if column.kind == "source"]
    for row in table.rows:
        yield from (words.one_line(text_of(row[i])) for i in at)


def text_of(value: str | Cell) -> str:
    """The words of a cell without what stands under it."""
    return value.text if isinstance(value, Cell) else value


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain values: its sentences, every figure unrounded, its prices."""
    found = {
        "schema": f"clusterfit/{plan.schema}",
        "version": JSON_VERSION,
        "today": plan.today.isoformat(),
        "link": plan.query,
        "name": plan.name,
        "verdict": plan.verdict,
        "lead": list(plan.lead),
        "warnings": list(plan.warnings),
        "figures": [plain(row) for row in plan.rows],
        "prices": [plain(price) for price in plan.prices],
    }
    return {**found, "address": plan.link} if plan.link else found


# --- what all plans say alike


def span(estimate: Estimate) -> str:
    """The range of a sum of money."""
    return f"{words.money(estimate.low)} to {words.money(estimate.high)}"


def sentence(text: str) -> str:
    """A text that begins large and ends with a stop."""
    line = words.one_line(text)
    return f"{line[:1].upper()}{line[1:]}{'' if line.endswith(('.', '!', '?')) else '.'}"


def age_cell(as_of: date | None, age_days: int, freshness: str) -> Cell:
    """The day of a price with its age: greyed after 60 days, a warning after 120."""
    if as_of is None:
        return Cell("worked out", "quiet")
    tone: Tone = "warn" if freshness == "warn" else "grey" if freshness == "grey" else ""
    return Cell(words.day(as_of), tone, words.age(age_days))


def price_of(
    of: str, unit: str, usd_per_hour: float, ref: PriceRef | None, today: date, *,
    used: bool = True, owned: bool = False,
) -> Price:  # fmt: skip
    """A price of the catalogue; without a reference it is a quote of the user's own.

    owned : the hour is a part of what owning costs, whether it is used or not
    """
    if owned:
        return Price(of, unit, usd_per_hour, "own rooms", "", "owned", "", today, 0, "fresh",
                     "medium", "cost_parameters.csv: purchase, place, staff", used)  # fmt: skip
    if ref is None:
        return Price(of, unit, usd_per_hour, "your quote", "", "on demand", "", today, 0, "fresh",
                     "", "your quote", used)  # fmt: skip
    return Price(of, unit, usd_per_hour, ref.provider, ref.sku, words.terms(ref.acquisition),
                 ref.region, ref.as_of, ref.age_days, ref.freshness, ref.confidence, ref.source,
                 used)  # fmt: skip


def each_once(prices: Iterable[Price]) -> tuple[Price, ...]:
    """Prices without those that stand there already; one that is used counts as used."""
    found: dict[tuple[Any, ...], Price] = {}
    for p in prices:
        found.setdefault((p.of, p.provider, p.sku, p.terms, p.region, p.usd_per_hour), p)
    return tuple(sorted(found.values(), key=lambda p: not p.used))


def price_section(prices: tuple[Price, ...], today: date) -> tuple[Section, ...]:
    """The prices with provider, region, day, age and source; those that the plan rests on first."""
    if not prices:
        return ()
    rows = tuple(
        (
            Cell(p.of, "strong" if p.used else "", "in this plan" if p.used else ""),
            Cell(" ".join(x for x in (p.provider, p.sku) if x), "", _terms(p)),
            f"{words.money(p.usd_per_hour)} a {p.unit}",
            age_cell(p.as_of, p.age_days, p.freshness),
            p.confidence,
            p.source,
        )
        for p in prices
    )
    columns = (
        Column("Machine", 1.9), Column("Offer", 2.4), Column("An hour", 1.5, "figure"),
        Column("Read on", 1.35), Column("Confidence", 1.05), Column("Source", 0.7, "source"),
    )  # fmt: skip
    caption = (
        f"US dollars, without tax. Ages count from {words.day(today)}; ask for a quote where the "
        "price is over 120 days old."
    )
    return (Section("Prices", (Table(columns, rows, caption),), 2),)


def _terms(p: Price) -> str:
    if p.as_of is None:
        return "capital, power, space and staff by the hour"
    return f"{p.terms}, {'any region' if p.region in ('', 'any') else p.region}"


def input_table(rows: Iterable[tuple[str, str, str, str, str]]) -> Table:
    """Inputs with their likely value, range, unit and source."""
    columns = (
        Column("Input", 2.6), Column("Likely", 1.0, "figure"), Column("8 of 10 cases", 1.7,
        "figure"), Column("Unit", 1.3), Column("Source", 0.7, "source"),
    )  # fmt: skip
    return Table(columns, tuple(rows), "Every input with the range in which it was varied.")


def more(count: int, what: str) -> str:
    """What a table leaves out, in a sentence; nothing where it leaves nothing out."""
    return f"{count:,} more {what} stand in the CSV." if count > 0 else ""
