"""Tables of named numbers with range, unit, source and date, as the serving plan reads them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

from engine.catalogue.read import rows
from engine.errors import DataError

DATA = Path(__file__).resolve().parents[2] / "data"


@dataclass(frozen=True, slots=True)
class Named:
    """One number of a table: low, likely, high in `unit`, with where it comes from."""

    id: str
    low: float
    likely: float
    high: float
    unit: str
    description: str
    source: str
    as_of: date
    confidence: str


@cache
def named(file: Path) -> Mapping[str, Named]:
    """The rows of a table by id.

    Raises
    ------
    DataError : with file, line and column; a row needs numbers in order, unit, source, date
    """
    found: dict[str, Named] = {}
    for line, row in rows(file):
        numbers = []
        for column in ("low", "likely", "high"):
            try:
                numbers.append(float(row[column]))
            except ValueError:
                raise DataError(
                    f"{row[column]!r} is no number", file=file, line=line, column=column
                ) from None
        low, likely, high = numbers
        if not all(math.isfinite(n) for n in numbers) or not low <= likely <= high:
            raise DataError(
                "is not in order", file=file, line=line, column="likely",
                right="low ≤ likely ≤ high",
            )  # fmt: skip
        for column in ("id", "unit", "source", "as_of", "confidence"):
            if not row[column].strip():
                raise DataError("is empty", file=file, line=line, column=column)
        if row["id"] in found:
            raise DataError("stands twice", file=file, line=line, column="id", right="once")
        try:
            seen = date.fromisoformat(row["as_of"])
        except ValueError:
            raise DataError(
                "is no date", file=file, line=line, column="as_of", right="YYYY-MM-DD"
            ) from None
        text = row.get("description") or row.get("stage") or row["id"]
        found[row["id"]] = Named(
            row["id"], low, likely, high, row["unit"], text, row["source"], seen, row["confidence"]
        )
    return found
