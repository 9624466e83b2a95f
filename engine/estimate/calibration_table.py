"""The rows of a calibration file as they stand: value, range, unit, what it was fitted to.

The estimates read what they need themselves; this reader is for those who show a calibration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from engine.catalogue.read import rows
from engine.errors import DataError

DATA = Path(__file__).resolve().parents[2] / "data"


@dataclass(frozen=True, slots=True)
class Fitted:
    """One row: a value with its range (10th and 90th percentile), and the rows it rests on."""

    id: str
    value: float
    low: float
    high: float
    unit: str
    description: str
    source: str
    as_of: str


@lru_cache(maxsize=4)
def calibration_table(file: Path) -> Mapping[str, Fitted]:
    """All rows of a calibration file by id.

    Raises
    ------
    DataError : a value that is no number
    """
    found: dict[str, Fitted] = {}
    for line, cells in rows(file):
        try:
            value, low, high = (float(cells[column]) for column in ("value", "low", "high"))
        except (KeyError, ValueError):
            raise DataError(
                "is not a number", file=file, line=line, column="value", right="value, low, high"
            ) from None
        id = cells.get("id") or cells.get("name", "")
        found[id] = Fitted(
            id, value, low, high, cells.get("unit", ""),
            cells.get("description") or cells.get("meaning", ""),
            cells.get("source") or cells.get("source_groups", ""), cells.get("as_of", ""),
        )  # fmt: skip
    return found


def training_calibration() -> Mapping[str, Fitted]:
    """The calibration of training steps: parameters, levels, widths, figures."""
    return calibration_table(DATA / "calibration_training.csv")


def serving_calibration() -> Mapping[str, Fitted]:
    """The calibration of serving: parameters, effects, widths, counts of rows."""
    return calibration_table(DATA / "calibration_serving.csv")
