"""A database that no machine holds: few large shards, and people counted."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from engine.assess import assess
from engine.catalogue import load_catalogue
from engine.decide.context import setting
from engine.decide.evaluate import evaluate, pool_of
from engine.decide.sharding import ITEM, people_usd, shards_of
from engine.decide.shortlist import shortlist
from engine.explain.services import size
from engine.workload.answers import FailureMode, Kind
from engine.workload.settings import USUAL
from engine.workload.workload import Workload

BUSY = Workload(kind=Kind.database, rate_per_s=10_000)


def test_people_by_hand() -> None:
    # One engineer, 18,333 a month, looks after 40 databases: 458 for each shard but the first.
    assert float(people_usd(1)) == 0
    assert float(people_usd(2)) == pytest.approx(18_333 / 40)
    assert float(people_usd(13)) == pytest.approx(12 * 458.3, rel=1e-3)


def test_ten_thousand_queries_a_second_take_two_large_servers() -> None:
    # 10,000/s x 3 at the peak x 2 core-ms / 60% planned load = 100 vCPU: 13 servers of 8, or two of
    # 64. The disks' operations, 37,700 against 32,000 of a machine, rule one machine out.
    answer = assess(BUSY)
    (stage,) = answer.best.stages
    assert (stage.machines, stage.vcpu) == (2, 64)
    # In the cost stand the people for one further shard.
    assert any("people" in w and "each of the 2 shards" in w for w in answer.warnings)
    page = size(answer)
    assert page.recommended
    assert page.fleet.total_usd == pytest.approx(answer.best.usd_per_month.likely)
    assert page.fleet.people_usd == pytest.approx(458.3, rel=1e-3)
    # Thirteen small ones are told with what they cost: cheaper machines, dearer in all.
    for fleet in page.alternatives:
        if fleet.vcpu == 8:
            assert fleet.usd < page.fleet.usd
            assert fleet.total_usd > page.fleet.total_usd


def test_no_kept_server_costs_more_in_more_shards() -> None:
    place = setting(BUSY, load_catalogue(), date.today(), USUAL)
    x = place.context.inputs.point()
    specs = shortlist(place.context, place.gpus, place.cpus, x, {})
    found = [evaluate(s, x, place.context) for s in specs if s.acquisition == "on_demand"]
    servers = [e for e in found if e.spec.placement == "cpu"]
    assert servers
    for e in servers:
        assert not [
            o for o in servers
            if o.machines[0] < e.machines[0] and o.usd_per_month[0] < 0.9 * e.usd_per_month[0]
        ]  # fmt: skip


def test_copies_are_no_shards() -> None:
    # Three copies of what one machine holds: three machines, one shard, no further people.
    w = Workload(kind=Kind.database, rate_per_s=50, failure_mode=FailureMode.data_loss)
    place = setting(w, load_catalogue(), date.today(), USUAL)
    x = place.context.inputs.point()
    unit = next(u for u in place.cpus if u.vcpu == 32)
    pool = pool_of(unit, place.context.stages, "on_demand", x, place.context)
    assert pool.units[0] == 3
    assert np.all(shards_of(pool, place.context) == 1)
    best = assess(w, draws=0).best
    assert best.stages[0].machines == 3


@pytest.mark.parametrize("kind", [Kind.web, Kind.streaming, Kind.search, Kind.simulation])
def test_what_spreads_by_itself_pays_nobody(kind: Kind) -> None:
    w = Workload(kind=kind)
    place = setting(w, load_catalogue(), date.today(), USUAL)
    x = place.context.inputs.point()
    for spec in shortlist(place.context, place.gpus, place.cpus, x, {}):
        assert not [line for line in evaluate(spec, x, place.context).fees if line.item == ITEM]
