"""Plans shared among cards in like machines are those that each card's own search would find."""

from __future__ import annotations

from dataclasses import fields
from datetime import date

import numpy as np
import pytest

from engine.decide.candidates import Unit
from engine.decide.context import setting
from engine.decide.training_time import network_of, training_table
from engine.estimate.memory import MemoryBreakdown
from engine.estimate.parallelism import Plans
from engine.estimate.plan_space import every_plan, kept_plans
from engine.estimate.search import search
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.training_hardware import HardwareChoice, hardware
from engine.estimate.training_job import Job, NothingFits
from engine.workload.workload import Workload, parse
from tests.estimate.training_models import B70, CATALOGUE, MIXTRAL

SIZES = {8: 64, 16: 64, 48: 1024}
# Cards of 24 to 141 GB, with recipes and without, in machines of eight, and one of its own.
CARDS = (("l4", 8), ("h200-sxm-141gb", 8), ("a100-sxm-80gb", 8), ("h100-sxm-80gb", 8),
         ("h100-sxm-80gb", 4), ("l40s", 1))  # fmt: skip
TODAY = date(2026, 12, 1)


@pytest.mark.parametrize("task", ["pretrain", "lora", "qlora"])
@pytest.mark.parametrize("shape", [B70, MIXTRAL], ids=["dense", "mixture"])
def test_a_card_finds_its_own_plans_whoever_asked_before(shape, task) -> None:
    for sku, node in CARDS:
        choice = HardwareChoice(CATALOGUE.accelerators[sku], gpus_per_node=node)
        job = Job(shape, 1e12, (choice,), task=task)
        hw = hardware(choice)[0]
        shared = kept_plans(job, hw, SIZES).fitting(hw.memory_gib)
        alone = every_plan(job, hw, SIZES).fitting(hw.memory_gib)
        for kind, one, other in zip((Plans, MemoryBreakdown), shared, alone, strict=True):
            for f in fields(kind):
                assert np.array_equal(getattr(one, f.name), getattr(other, f.name)), (sku, f.name)


def test_plans_that_fit_recompute_no_more_than_they_must() -> None:
    choice = HardwareChoice(CATALOGUE.accelerators["h100-sxm-80gb"], gpus_per_node=8)
    job = Job(B70, 1e12, (choice,))
    hw = hardware(choice)[0]
    space = every_plan(job, hw, SIZES)
    plans, memory = space.fitting(hw.memory_gib)
    room = 0.95 * hw.memory_gib
    assert np.all(memory.total <= room)
    # As many fit as have any level that does; each level's own are those that no lower one lets.
    least = [(space.total[i] <= room) & ~(space.total[:i] <= room).any(axis=0) for i in range(3)]
    assert [np.count_nonzero(plans.recompute == i) for i in range(3)] == [x.sum() for x in least]
    assert all(x.any() for x in least)


def told(**more: object) -> Workload:
    return parse(
        {"kind": "llm_pretraining", "model_params_b": 7.0, "train_tokens_b": 140.0, **more}
    )


@pytest.mark.parametrize("runs", [0.2, 100.0], ids=["small fleets do", "large ones are tried"])
def test_rounds_of_larger_fleets_are_one_search(runs: float) -> None:
    """The table is each fleet's fastest plan, as one search over all of its fleets finds it."""
    place = setting(told(runs_per_month=runs), None, TODAY)
    unit = next(u for u in place.gpus if (u.sku, u.per_machine) == ("h100-sxm-80gb", 8))
    table = training_table(unit, place.context)
    assert table is not None
    best = fastest_days(unit, place.context.catalogue, int(table.gpus.max()))
    assert list(table.gpus) == list(best)
    assert (table.gpus.max() > 256) == (runs > 1)
    quickest = np.minimum.accumulate([24 * days for days in best.values()])
    assert table.hours == pytest.approx(quickest, rel=1e-12)


def test_hours_are_in_proportion_to_the_tokens() -> None:
    tables = []
    for tokens in (140.0, 280.0):
        place = setting(told(train_tokens_b=tokens), None, TODAY)
        unit = next(u for u in place.gpus if (u.sku, u.per_machine) == ("h100-sxm-80gb", 8))
        tables.append(training_table(unit, place.context))
    once, twice = tables
    assert once is not None
    assert twice is not None
    assert twice.hours == pytest.approx(2 * once.hours, rel=1e-12)


def fastest_days(unit: Unit, catalogue, most: int) -> dict[int, float]:
    """Days of the fastest plan of each fleet of whole machines, by one search."""
    acc, place = unit.accelerator, setting(told(), None, TODAY)
    assert acc is not None
    choice = HardwareChoice(
        acc, network_of(catalogue, acc, place.context.settings.training), gpus_per_node=8
    )
    found = search(Job(shape_from_size(7.0), 140e9, (choice,), gpus=(8, most)))
    assert not isinstance(found, NothingFits)
    best: dict[int, float] = {}
    for gpus, days in zip(found.plans.gpus, found.days, strict=True):
        best[int(gpus)] = min(days, best.get(int(gpus), np.inf))
    return dict(sorted(best.items()))
