"""Checks of what a user may type: each refuses a senseless number with the name of its field.

Numbers may be floats or arrays of draws; an array is refused if any draw is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.errors import InputError

Array = npt.NDArray[np.float64]
Real = float | Array

ABSURD_USD = 1e12  # above this a price or a cost is a slip of the keyboard, not a number
LONGEST_HORIZON_MONTHS = 60
LONGEST_MONTH_HOURS = 744.0
MOST_MACHINES = 1e6


def positive(field: str, value: Real | None, *, below: float = ABSURD_USD) -> Real:
    """The value, if it is above zero and not absurd. A price of zero is missing, never cheap."""
    if value is None:
        raise InputError("missing", where=field, right="more than 0")
    array = np.asarray(value, float)
    if not np.all(np.isfinite(array)) or np.any(array <= 0) or np.any(array > below):
        raise InputError(
            f"{_shown(value)} can't be used", where=field, right=f"more than 0, at most {below:g}"
        )
    return value


def not_negative(field: str, value: Real | None, *, below: float = ABSURD_USD) -> Real:
    """The value, if it is zero or more and not absurd."""
    if value is None:
        raise InputError("missing", where=field, right="0 or more")
    array = np.asarray(value, float)
    if not np.all(np.isfinite(array)) or np.any(array < 0) or np.any(array > below):
        raise InputError(
            f"{_shown(value)} can't be used", where=field, right=f"0 or more, at most {below:g}"
        )
    return value


def share(field: str, value: Real | None, *, most: float = 1.0) -> Real:
    """The value, if it lies between 0 and `most`."""
    return not_negative(field, value, below=most)


def whole_months(field: str, value: float | None, *, least: int = 1) -> int:
    """A whole number of months within the horizon that the app plans for."""
    if value is None or not least <= value <= LONGEST_HORIZON_MONTHS or value != int(value):
        raise InputError(
            f"{value} can't be used",
            where=field,
            right=f"a whole number from {least} to {LONGEST_HORIZON_MONTHS}",
        )
    return int(value)


def hours_per_month(field: str, value: Real | None) -> Real:
    """Hours a month, if the longest month has so many."""
    return not_negative(field, value, below=LONGEST_MONTH_HOURS)


def units(field: str, value: Real | None) -> Real:
    """A number of machines, if it is above zero and not absurd."""
    return positive(field, value, below=MOST_MACHINES)


def _shown(value: Real) -> str:
    if isinstance(value, np.ndarray):
        return f"a draw of {float(np.min(value)):g}" if value.size else "no draw"
    return f"{value:g}"
