"""The costs where something bars a way: another place, a rack too hot for air, no use at all."""

from __future__ import annotations

import math
from datetime import date

import numpy as np
import pytest

from engine.assess import assess
from engine.assessment import Assessment
from engine.costing.model import CostReport
from engine.costing.report import cost_report
from engine.workload.cost_terms import Cooling, CostTerms
from engine.workload.examples import EXAMPLES
from engine.workload.settings import Settings
from engine.workload.workload import Workload

TODAY = date(2026, 12, 1)
DRAWS = 64


def answer(name: str, **terms: object) -> Assessment:
    settings = Settings(costs=CostTerms.model_validate(terms))
    return assess(EXAMPLES[name].workload, settings=settings, today=TODAY, draws=DRAWS)


def test_the_place_that_was_not_chosen_is_never_said_to_be_the_dearer_when_it_is_not() -> None:
    """A room costs 60 USD a kW and month, a colocation 174: the same purchase is cheaper there."""
    given = answer("16-nodes-own-or-cloud")
    found = cost_report(given, hardware="gpu/b200-sxm-180gbx8", draws=DRAWS)
    assert found.chosen.id == "buy_colocation"  # the place that was chosen, though a room is less
    assert found.title == "Bought into colocation is the cheapest way to pay"
    room = cost_report(
        answer("16-nodes-own-or-cloud", way="buy_own_room", hardware="gpu/b200-sxm-180gbx8"),
        draws=DRAWS,
    )
    assert room.title == (
        "Bought for a room of your own costs less than bought into colocation, but in the place "
        "not chosen"
    )


def test_a_rack_that_air_cannot_cool_is_not_bought_where_all_is_cooled_by_air() -> None:
    """An NVL72 rack draws 120 kW, a rack cooled by air carries 20: liquid, or rent."""
    work = Workload.model_validate(
        {
            "kind": "llm_pretraining", "model_params_b": 200, "train_tokens_b": 4000,
            "runs_per_month": 1, "useful_hours_per_month": 700, "parallel_fraction": 0.995,
            "horizon_months": 48, "current": "gpu", "current_units": 512, "team": "own_hardware",
            "failure_mode": "late_answers",
        }
    )  # fmt: skip

    def rack(cooling: Cooling) -> CostReport:
        terms = Settings(costs=CostTerms(cooling=cooling))
        return cost_report(
            assess(work, settings=terms, today=TODAY, draws=64), hardware="gpu/gb200x4", draws=64
        )

    hot = rack(Cooling.air).way("buy_colocation")
    assert "One machine draws 120 kW; a rack cooled by air carries 20 kW." in " ".join(hot.refusals)
    cold = rack(Cooling.liquid).way("buy_colocation")
    assert cold.allowed
    assert cold.flow is not None
    rows = {x.item: float(np.sum(x.total)) for x in cold.flow.lines}
    racks = rows["Machines"] / 3_400_000
    assert racks == round(racks)  # whole racks of 72 GPUs
    assert rows["Liquid cooling"] == pytest.approx(racks * 120 * 1200)
    assert rows["Racks"] == pytest.approx(racks * 9000)  # one of them is one rack
    # Each rack counts as nine servers of eight GPUs: 25 to an engineer at 220,000 a year.
    working = 48 - 5
    assert rows["Staff"] == pytest.approx(racks * 9 / 25 * 220_000 / 12 * working)
    # 72 ports a rack: leaves of 32 ports down, as many in the second tier, half as many on top.
    leaf = math.ceil(racks * 72 / 32)
    switches = 2 * leaf + math.ceil(leaf / 2)
    assert rows["Network"] == pytest.approx(36_000 * switches + racks * 9 * 20_480)


def test_the_costs_of_a_job_that_never_runs_say_so_first() -> None:
    work = EXAMPLES["16-nodes-own-or-cloud"].workload.model_copy(update={"runs_per_month": 0.0})
    found = cost_report(assess(work, today=TODAY, draws=64), draws=64)
    assert found.title.startswith("Nothing runs, so nothing needs renting or buying. ")
    assert found.subtitle.endswith("Shown is one run within the horizon.")
    sums = found.chosen.headline
    assert sums is not None
    assert sums.per_run is not None
    # One run in the 36 months: its cost is that of all of them.
    assert sums.per_run.likely == pytest.approx(sums.total.likely)


def test_a_service_of_no_hours_is_costed_around_the_clock() -> None:
    none = EXAMPLES["50-microservices"].workload.model_copy(update={"useful_hours_per_month": 0.0})
    found = cost_report(assess(none, today=TODAY, draws=64), draws=64)
    all_day = cost_report(answer("50-microservices"), draws=DRAWS)
    assert found.subtitle.endswith("Shown is what the service would take around the clock.")
    assert found.chosen.headline is not None
    assert all_day.chosen.headline is not None
    mine, theirs = found.chosen.headline.per_million, all_day.chosen.headline.per_million
    assert mine is not None
    assert theirs is not None
    assert mine.likely == pytest.approx(theirs.likely)
    assert found.demand.demand is not None
    assert found.demand.demand.levels.tolist() == [24.0]  # all hours


@pytest.mark.parametrize("name", ["16-nodes-own-or-cloud", "zero3-64-b200", "70b-pretraining"])
def test_a_plan_s_machines_are_never_owned_by_one_and_rented_beside_it(name: str) -> None:
    """They train together, over one network: all of them are bought, or none."""
    given = answer(name)
    for hardware, _ in cost_report(given, draws=DRAWS).choices:
        found = cost_report(given, hardware=hardware, draws=DRAWS).demand
        assert found.demand is not None
        least = min(level for level in found.demand.levels.tolist() if level > 0)
        for way in found.mixes:
            assert way.mix is not None
            assert way.mix.base == 0 or way.mix.base * way.mix_each >= least - 1e-9, way.id
