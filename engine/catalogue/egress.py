"""Outgoing traffic of a provider: its tiers, its free part, and the price of a month.

The tiers are rows of running_costs.csv; what a provider includes by the server is not among them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from engine.catalogue.models import EgressTier, Parameter
from engine.errors import DataError

CATEGORY = "egress"
PER_GB = "usd per GB"
FREE = "GB per month"


def tiers(running: Mapping[str, Parameter], provider: str) -> tuple[EgressTier, ...]:
    """Tiers of a provider from the first GB up; empty when no price is known."""
    found = [
        EgressTier(
            provider=row.provider,
            up_to_gb=row.tier_up_to_gb or math.inf,
            usd_per_gb=row.likely,
            provenance=row.provenance,
        )
        for row in _rows(running.values(), provider)
        if row.unit == PER_GB
    ]
    return tuple(sorted(found, key=lambda tier: tier.up_to_gb))


def free_gb(running: Mapping[str, Parameter], provider: str) -> float:
    """GB a month before the first tier begins."""
    return sum(row.likely for row in _rows(running.values(), provider) if row.unit == FREE)


def monthly_usd(steps: Sequence[EgressTier], gb: float) -> float:
    """US dollars for the GB of a month that are paid for, each at the price of its own tier."""
    total = below = 0.0
    for step in steps:
        total += max(min(gb, step.up_to_gb) - below, 0.0) * step.usd_per_gb
        below = step.up_to_gb
    return total


def _rows(running: Iterable[Parameter], provider: str) -> list[Parameter]:
    name = provider.strip().lower()
    return [row for row in running if row.category == CATEGORY and row.provider.lower() == name]


def ladder(numbered: Sequence[tuple[int, Parameter]], file: Path) -> Iterator[DataError]:
    """Each provider's tiers end at different amounts, the last without an end, none below zero.

    The end in the description, which other readers of the table go by, is that of the column.
    """
    ends: dict[str, dict[float, int]] = {}
    for line, row in numbered:
        if row.category != CATEGORY or row.unit != PER_GB:
            continue
        if row.likely < 0:
            yield _fault(file, line, "likely", f"{row.likely:g} is below 0", "0 or more")
        said = re.search(r"up to ([\d.]+) ?GB", row.description)
        if (said.group(1) if said else None) != _text(row.tier_up_to_gb):
            yield _fault(
                file,
                line,
                "tier_up_to_gb",
                f"{_text(row.tier_up_to_gb)} is not what the description says",
                "the same amount in both",
            )
        end = row.tier_up_to_gb or math.inf
        other = ends.setdefault(row.provider.lower(), {}).setdefault(end, line)
        if other != line:
            yield _fault(
                file,
                line,
                "tier_up_to_gb",
                f"{row.provider} has a tier of that end on line {other}",
                "another end",
            )
    for provider, own in ends.items():
        if math.inf not in own:
            yield _fault(
                file,
                max(own.values()),
                "tier_up_to_gb",
                f"{provider} has no price above {max(own):g} GB",
                "a last tier without an end",
            )


def _text(amount: float | None) -> str | None:
    return None if amount is None else f"{amount:.15g}"


def _fault(file: Path, line: int, column: str, wrong: str, right: str) -> DataError:
    return DataError(wrong, file=file, line=line, column=column, right=right)
