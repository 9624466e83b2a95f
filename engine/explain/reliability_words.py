"""How figures of a run's reliability are said: counts, times and sums that may be without end."""

from __future__ import annotations

import numpy as np

from engine.wording import duration, number, spent

HOURS_PER_DAY = 24.0
NEVER_DAYS = 36_525.0  # a run that would take a century is told as one that never ends


def stops_said(n: float) -> str:
    """A count of stops: rare ones with their digits, beyond a million as such."""
    if n >= 1e6:
        return "over a million"
    if n < 0.01:
        return "under 0.01"
    return number(n, digits=2) if n < 10 else number(n)


def takes(days: float) -> str:
    """How long a run takes, a century as the end of counting."""
    return duration(days * HOURS_PER_DAY) if days < NEVER_DAYS else "over 100 years"


def paid_said(usd: float, days: float) -> str:
    """What a run costs; one that never ends has no bill."""
    return spent(usd) if days < NEVER_DAYS else "without end"


def share_said(share: float, digits: int = 1) -> str:
    """A share of the paid time in percent, never a false 0%."""
    least = 10.0 ** -(digits + 2)
    return f"{share:.{digits}%}" if share >= least or share <= 0 else f"under {least:.{digits}%}"


def two_digits(n: float) -> int:
    """Two significant digits."""
    digits = 1 - int(np.floor(np.log10(n)))
    return int(round(n, min(digits, 0)))
