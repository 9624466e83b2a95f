"""Question 1: from what was answered to the share of time that each resource takes."""

from __future__ import annotations

import csv
from functools import lru_cache

from engine.decide.priors import DATA, likely, prior
from engine.workload.answers import RESOURCES, Bottleneck, Symptom
from engine.workload.workload import Workload


@lru_cache(maxsize=1)
def symptom_shares() -> dict[Symptom, dict[str, float]]:
    """Shares of time that each symptom points to; each sums to 1."""
    table: dict[Symptom, dict[str, float]] = {}
    with (DATA / "symptoms.csv").open(encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            shares = table.setdefault(Symptom(row["symptom"]), {})
            shares[row["resource"]] = float(row["likely"]) / 100
    return table


def prior_shares(workload: Workload) -> dict[str, float]:
    """Shares of the kind of work when nothing is known; they sum to 1."""
    raw = {r.value: prior(workload.kind, f"share_{r.value}").likely for r in RESOURCES}
    return _normal(raw)


def shares(workload: Workload) -> dict[str, float]:
    """Share of the time by resource, from measurements, symptoms or the one named; sums to 1.

    Measured shares are taken as they are (the rest of 100% is spread as the kind's prior).
    Symptoms are averaged, then mixed with the prior; a single named bottleneck is given a share
    that grows with how sure the person is (`named_share_*`).
    """
    base = prior_shares(workload)
    if workload.time_shares:
        measured = {r.value: s / 100 for r, s in zip(RESOURCES, workload.time_shares, strict=True)}
        rest = max(0.0, 1 - sum(measured.values()))
        return _normal({k: measured[k] + rest * base[k] for k in base})
    if workload.symptoms:
        table = symptom_shares()
        seen = [table[s] for s in workload.symptoms]
        mean = {k: sum(s[k] for s in seen) / len(seen) for k in base}
        weight = likely("symptom_weight")
        return _normal({k: weight * mean[k] + (1 - weight) * base[k] for k in base})
    if workload.bottleneck is Bottleneck.unknown:
        return base
    named = workload.bottleneck.value
    share = max(likely(f"named_share_{workload.bottleneck_sure.value}"), base[named])
    others = sum(v for k, v in base.items() if k != named)
    return _normal({k: share if k == named else (1 - share) * v / others for k, v in base.items()})


def largest(workload: Workload) -> Bottleneck:
    """The resource with the largest share of the time."""
    table = shares(workload)
    return Bottleneck(max(table, key=lambda k: table[k]))


def _normal(raw: dict[str, float]) -> dict[str, float]:
    total = sum(raw.values())
    return {k: v / total for k, v in raw.items()}
