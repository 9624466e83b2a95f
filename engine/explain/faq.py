"""The articles' questions and answers in our own words, with what ClusterFit does instead."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache

from engine.decide.priors import DATA


@dataclass(frozen=True, slots=True)
class Faq:
    """One question of an article: its position and how it is treated here."""

    id: str
    article: str
    asked_at: str
    question: str
    position: str
    here: str


@lru_cache(maxsize=1)
def all_answers() -> tuple[Faq, ...]:
    """Every question and answer of `data/faq.csv`."""
    with (DATA / "faq.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            Faq(r["id"], r["article"], r["asked_at"], r["question"], r["position"], r["here"])
            for r in csv.DictReader(file)
        )


def answers_for(asked_at: str) -> tuple[Faq, ...]:
    """The questions that belong to one of the four."""
    return tuple(f for f in all_answers() if f.asked_at == asked_at)
