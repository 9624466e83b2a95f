"""Limits by which prices are judged, from the table of named parameters."""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path

from engine.errors import DataError

DATA = Path(__file__).resolve().parents[2] / "data"
FILE = "parameters.csv"
# A catalogue without one of these can't judge its prices.
NEEDED = (
    "price_grey_after_days",
    "price_warn_after_days",
    "price_outlier_factor",
    "price_low_outlier_factor",
    "price_sibling_factor",
)


@lru_cache(maxsize=16)
def limit(name: str) -> float:
    """The likely value of a shipped parameter; a price knows no catalogue to ask."""
    with (DATA / FILE).open(encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            if row["id"] == name:
                return float(row["likely"])
    raise DataError(f"{name} is missing", file=FILE, line=1, column="id", right="a row of that id")
