"""Priors by kind of work and the decision's named parameters, read from their tables.

A prior is what the engine takes when a question was not answered; it is always a range.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from engine.errors import DataError
from engine.workload.answers import Kind

DATA = Path(__file__).resolve().parents[2] / "data"


@dataclass(frozen=True, slots=True)
class Prior:
    """A range (10th, 50th, 90th percentile) with its unit and source."""

    low: float
    likely: float
    high: float
    unit: str
    source: str
    confidence: str


def _prior(row: dict[str, str], file: Path, line: int) -> Prior:
    """One row as a `Prior`; raises `DataError` with file, line and column."""
    values = []
    for column in ("low", "likely", "high"):
        try:
            values.append(float(row[column]))
        except (TypeError, ValueError):
            raise DataError(
                f"{row.get(column)!r} is not a number", file=file, line=line, column=column
            ) from None
    low, likely, high = values
    if not low <= likely <= high:
        raise DataError(
            f"the range {low:g}, {likely:g}, {high:g} is not in order",
            file=file,
            line=line,
            column="likely",
            right="low ≤ likely ≤ high",
        )
    for column in ("unit", "source", "as_of", "confidence"):
        if not row.get(column):
            raise DataError(
                "is empty", file=file, line=line, column=column, right="every row has it"
            )
    return Prior(low, likely, high, row["unit"], row["source"], row["confidence"])


@lru_cache(maxsize=4)
def kind_priors(file: Path = DATA / "kinds.csv") -> dict[tuple[Kind, str], Prior]:
    """Priors by (kind, field)."""
    with file.open(encoding="utf-8", newline="") as text:
        return {
            (Kind(row["kind"]), row["field"]): _prior(row, file, line)
            for line, row in enumerate(csv.DictReader(text), start=2)
        }


@lru_cache(maxsize=4)
def parameters(file: Path = DATA / "decision_parameters.csv") -> dict[str, Prior]:
    """Named parameters of the decision by id."""
    with file.open(encoding="utf-8", newline="") as text:
        return {
            row["id"]: _prior(row, file, line)
            for line, row in enumerate(csv.DictReader(text), start=2)
        }


def prior(kind: Kind, field: str) -> Prior:
    """The prior of a field for a kind; falls back on the kind `other`."""
    table = kind_priors()
    return table.get((kind, field)) or table[(Kind.other, field)]


def parameter(name: str) -> Prior:
    """A named parameter with its range."""
    return parameters()[name]


def likely(name: str) -> float:
    """The likely value of a named parameter."""
    return parameters()[name].likely
