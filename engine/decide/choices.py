"""Open questions whose answer is a choice, and the answers that could be given."""

from __future__ import annotations

from enum import StrEnum

from engine.workload.answers import Bottleneck, FailureMode, Rewrite
from engine.workload.workload import Workload, applies

CHOICES: dict[str, type[StrEnum]] = {
    "bottleneck": Bottleneck,
    "failure_mode": FailureMode,
    "rewrite": Rewrite,
}


def open_choices(workload: Workload) -> list[str]:
    """Choices that matter for this kind of work and were not made."""
    return [
        field
        for field in CHOICES
        if applies(field, workload.kind)
        and getattr(workload, field).value == "unknown"
        and not (field == "bottleneck" and workload.answered["bottleneck"])
    ]


def answers_of(field: str) -> list[StrEnum]:
    """The answers a person could give, other than not knowing."""
    return [answer for answer in CHOICES[field] if answer.value != "unknown"]
