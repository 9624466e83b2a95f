"""The decision's machines for a service are those of the services page, copies included."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from engine.assess import assess
from engine.decide import criteria
from engine.decide.candidates import Spec, placements
from engine.decide.context import setting
from engine.decide.evaluate import evaluate
from engine.explain.services import size
from engine.workload.examples import EXAMPLES
from engine.workload.services_terms import ServicesTerms
from engine.workload.settings import Settings

TODAY = date(2026, 12, 1)


def test_a_database_of_payments_stands_whole_on_three_machines() -> None:
    """Data must not be lost and every reader sees the last write: a majority of three copies.

    At a peak that one server of 64 vCPU carries each copy is one machine, on every terms.
    """
    answer = assess(EXAMPLES["fintech-replicas"].workload, today=TODAY, draws=64)
    assert sum(s.machines for s in answer.best.stages) == 3
    assert size(answer).fleet.carrying == 1
    asked = Settings(architecture=ServicesTerms(copies=5))
    more = assess(EXAMPLES["fintech-replicas"].workload, settings=asked, today=TODAY, draws=64)
    assert sum(s.machines for s in more.best.stages) == 5


def test_the_fit_of_a_mixed_fleet_follows_each_row_of_inputs() -> None:
    """A row of many gives the value that it gives alone: the share of GPUs moves with the rate."""
    place = setting(EXAMPLES["fraud-detection"].workload, None, TODAY)
    ctx = place.context
    gpu = next(u for u in place.gpus if u.sku == "l40s")
    cpu = min(place.cpus, key=lambda u: u.memory_gb)
    both, alone = (dict(placements(ctx.stages))[name] for name in ("hybrid", "gpu"))
    specs = [
        Spec("hybrid", both, gpu, cpu, "on_demand"),
        Spec("gpu", alone, gpu, None, "on_demand"),
    ]
    sets = np.array([16.0, 400.0, 2000.0])
    many = {k: np.repeat(v, 3) for k, v in ctx.inputs.point().items()}
    many["working_set_gb"] = sets
    together = criteria.values([evaluate(s, many, ctx) for s in specs], many, ctx)
    ratios = set()
    for i, gb in enumerate(sets):
        one = {**ctx.inputs.point(), "working_set_gb": np.array([gb])}
        found = [evaluate(s, one, ctx) for s in specs]
        ratios.add(float(found[0].pools[0].units[0] / found[0].pools[1].units[0]))
        assert together[:, :, i] == pytest.approx(criteria.values(found, one, ctx)[:, :, 0])
    assert len(ratios) > 1  # else the rows could not be told apart
