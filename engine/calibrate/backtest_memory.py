"""Predicted against reported peak memory of published training runs.

`backtest_training` prints what `score_memory` finds under `memory`. A row that states too little
is counted under its reason; rows of doubtful figures (confidence C) are not scored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.calibrate.training_hardware import reported_gib_of
from engine.estimate.memory_rows import PeakMemory, TooLittle, predict_peak_memory_gib
from engine.estimate.memory_terms import fits
from engine.estimate.row_cells import number_of

DID_NOT_FIT = re.compile(r"\boom\b|out[ -]of[ -]memory|did not fit", re.I)


@dataclass(frozen=True, slots=True)
class MemoryScore:
    """One predicted row; GiB in the measure of its source."""

    row: int
    group: str
    kind: str
    moe: bool
    megatron: bool
    predicted: float
    measured: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """Absolute percentage error as a fraction."""
        return abs(self.predicted / self.measured - 1)


def score_memory(rows: Sequence[Mapping[str, str]]) -> tuple[list[MemoryScore], Counter[str]]:
    """Rows that report a peak memory and state enough to predict it; the others by reason."""
    found: list[MemoryScore] = []
    skipped: Counter[str] = Counter()
    for i, row in enumerate(rows):
        measured = _positive(row.get("peak_mem_gib"))
        if measured is None:
            skipped["states no peak memory"] += 1
            continue
        if (row.get("confidence") or "").strip().upper() == "C":
            skipped["confidence C: not to be scored"] += 1
            continue
        told = predict_peak_memory_gib(row)
        if isinstance(told, TooLittle):
            skipped[told.reason] += 1
            continue
        found.append(_score(i, row, told, measured))
    return found, skipped


def wrongly_said_to_fit(
    rows: Sequence[Mapping[str, str]], reported_gib: Mapping[str, float]
) -> list[int]:
    """Numbers of the rows that did not fit where they were run, and that would be said to.

    reported_gib : of the card, by the name in the column `gpu`
    """
    return [i for i, said in _failed(rows, reported_gib.get) if said]


def did_not_fit(rows: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """How many rows did not fit, on cards that are known, and how many would be said to."""
    failed = _failed(rows, reported_gib_of)
    return {"n": len(failed), "said_to_fit": sum(said for _, said in failed)}


def _failed(
    rows: Sequence[Mapping[str, str]], card_gib: Callable[[str], float | None]
) -> list[tuple[int, bool]]:
    """Predictable rows that did not fit, and whether they would be said to."""
    found = []
    for i, row in enumerate(rows):
        words = " ".join(row.get(key) or "" for key in ("peak_mem_gib", "notes"))
        if not DID_NOT_FIT.search(words):
            continue
        card, told = card_gib(row.get("gpu") or ""), predict_peak_memory_gib(row)
        if card is not None and isinstance(told, PeakMemory):
            found.append((i, bool(fits(told.total_gib, card))))
    return found


def _score(i: int, row: Mapping[str, str], told: PeakMemory, measured: float) -> MemoryScore:
    expected = told.estimate
    return MemoryScore(
        row=i, group=row.get("group") or "not stated", kind=told.kind,
        moe=(row.get("arch") or "") == "moe", megatron=told.megatron,
        predicted=expected.likely, measured=measured, low=expected.low, high=expected.high,
    )  # fmt: skip


def _positive(cell: str | None) -> float | None:
    value = number_of(cell or "")
    return value if value is not None and value > 0 else None
