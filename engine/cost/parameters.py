"""The cost engine's own parameters: rows of data/cost_parameters.csv and data/emission_factors.csv.

A row has a low, a likely and a high value with its unit, source, date and confidence. A function
that needs a number takes it through `pick`, so that the likely value, either end and draws all go
one way.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from engine.cost.checks import Array, Real
from engine.errors import DataError

DATA = Path(__file__).resolve().parents[2] / "data"


class Span(Protocol):
    """What has a low, a likely and a high value: a parameter here, or one of the catalogue."""

    @property
    def id(self) -> str:
        """Name of the row."""
        ...

    @property
    def low(self) -> float:
        """10th percentile or lower end."""
        ...

    @property
    def likely(self) -> float:
        """Most likely value."""
        ...

    @property
    def high(self) -> float:
        """90th percentile or upper end."""
        ...


Pick = Callable[[Span], Real]


def likely(span: Span) -> Real:
    """The likely value."""
    return span.likely


def low(span: Span) -> Real:
    """The low end."""
    return span.low


def high(span: Span) -> Real:
    """The high end."""
    return span.high


def source_of(span: Span) -> str:
    """Where a row's number comes from, of which day and how sure; its name where it says none."""
    said: Any = getattr(span, "provenance", span)
    source = getattr(said, "source", "")
    if not source:
        return span.id
    return f"{source}, {said.as_of}, {said.confidence} confidence ({span.id})"


def drawn(uniform: Callable[[Span], Array]) -> Pick:
    """Draws from the triangle between low, likely and high.

    uniform : numbers in [0, 1] by row; the same numbers for rows that move together
    """

    def pick(span: Span) -> Real:
        a, b, c = span.low, span.high, span.likely
        if a == b:
            return a
        u = uniform(span)
        rising = a + np.sqrt(u * (b - a) * (c - a))
        falling = b - np.sqrt((1 - u) * (b - a) * (b - c))
        return np.where(u < (c - a) / (b - a), rising, falling)

    return pick


@dataclass(frozen=True, slots=True)
class CostParameter:
    """One row: a value with its range, and where it comes from."""

    id: str
    low: float
    likely: float
    high: float
    unit: str
    description: str
    source: str
    as_of: date
    confidence: str


@lru_cache(maxsize=1)
def cost_parameters() -> Mapping[str, CostParameter]:
    """All rows of data/cost_parameters.csv by id."""
    return read_parameters(DATA / "cost_parameters.csv", key="id", describe="description")


@lru_cache(maxsize=1)
def emission_factors() -> Mapping[str, CostParameter]:
    """All rows of data/emission_factors.csv by region, in kg CO2e per kWh."""
    return read_parameters(DATA / "emission_factors.csv", key="region", describe="name")


def value(id: str) -> float:
    """The likely value of one cost parameter."""
    return cost_parameters()[id].likely


def read_parameters(path: Path, *, key: str, describe: str) -> dict[str, CostParameter]:
    """Read a table of parameters; a row without order, source, date or confidence is refused."""
    rows: dict[str, CostParameter] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            for column in (key, "unit", describe, "source", "as_of", "confidence"):
                if not row.get(column):
                    raise DataError("empty", file=path, line=line, column=column)
            try:
                ends = [float(row[column]) for column in ("low", "likely", "high")]
                as_of = date.fromisoformat(row["as_of"])
            except ValueError as error:
                raise DataError(str(error), file=path, line=line, column="low to as_of") from error
            if ends != sorted(ends):
                raise DataError(
                    f"{ends} are not in order", file=path, line=line, column="low to high"
                )
            if row[key] in rows:
                raise DataError(f"{row[key]} stands twice", file=path, line=line, column=key)
            rows[row[key]] = CostParameter(
                id=row[key],
                low=ends[0],
                likely=ends[1],
                high=ends[2],
                unit=row["unit"],
                description=row[describe],
                source=row["source"],
                as_of=as_of,
                confidence=row["confidence"],
            )
    return rows
