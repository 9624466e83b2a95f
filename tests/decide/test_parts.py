"""Parts of the decision against values worked out by hand or by another library."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from scipy.optimize import brentq

from engine.assess import _point, _ranked, assess
from engine.decide import bottleneck, score
from engine.decide.candidates import market_price
from engine.decide.context import setting
from engine.decide.evaluate import evaluate
from engine.decide.inputs import Range, dirichlet_weights, resolve, sample, standard_normal
from engine.decide.sensitivity import levers
from engine.decide.uncertainty import worth_of_knowing
from engine.estimate import jobs
from engine.estimate.speedups import pooled_for
from engine.workload.answers import Bottleneck, Certainty, Kind, Symptom
from engine.workload.examples import example, examples
from engine.workload.jobs_terms import JobField, JobsTerms
from engine.workload.settings import Settings
from engine.workload.workload import Workload, parse

TODAY = date(2026, 12, 1)


def arr(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)


def test_measured_shares_are_taken_as_they_are() -> None:
    shares = bottleneck.shares(Workload(time_shares=(10, 5, 5, 8, 70, 2)))
    assert shares["disk_io"] == pytest.approx(0.70)
    assert sum(shares.values()) == pytest.approx(1)


def test_a_named_bottleneck_is_the_largest_share_and_grows_with_certainty() -> None:
    def share(sure: Certainty) -> float:
        w = Workload(kind=Kind.web, bottleneck=Bottleneck.disk_io, bottleneck_sure=sure)
        assert bottleneck.largest(w) is Bottleneck.disk_io
        return bottleneck.shares(w)["disk_io"]

    assert share(Certainty.guess) < share(Certainty.roughly) < share(Certainty.exact)


def test_a_starved_gpu_points_to_the_network() -> None:
    w = Workload(kind=Kind.dl_training, symptoms=(Symptom.gpu_low_network_full,))
    assert bottleneck.largest(w) is Bottleneck.network


def test_ten_percent_of_the_draws_lie_beyond_either_end() -> None:
    z = standard_normal(1, 4096)[:, 0]
    for r in (
        Range(1, 3, 20, "h", "test", True, "guess"),
        Range(0.5, 0.8, 0.95, "share", "test", True, "guess", fraction=True),
    ):
        draws = sample(r, z)
        assert np.mean(draws < r.low) == pytest.approx(0.1, abs=0.002)
        assert np.mean(draws > r.high) == pytest.approx(0.1, abs=0.002)
        assert np.median(draws) == pytest.approx(r.likely, rel=0.01)


def test_drawn_weights_sum_to_one_around_the_defaults() -> None:
    w = dirichlet_weights((40, 15, 10, 15, 12, 8), False, 4096)
    assert w.sum(axis=1) == pytest.approx(np.ones(4096))
    assert w.mean(axis=0) == pytest.approx(np.array([0.4, 0.15, 0.1, 0.15, 0.12, 0.08]), abs=0.01)


def test_one_server_hours_by_hand() -> None:
    # p = 0.9, b = 0: serial 0.1 of the whole; on 10 machines t = T(0.1 + 0.09) = 0.19 T.
    hours = jobs.one_server_hours(arr(1.9), arr(10), arr(0.9), arr(0.0))
    assert hours == pytest.approx(arr(10.0))


def test_gpu_time_by_hand() -> None:
    # b = 0.2, p = 0.5, s = 10 on a host as large as the server, work of 10 h:
    # serial 0.8·0.5·10 = 4; accelerated 0.8·0.5·10/10 = 0.4; I/O 0.2·10 = 2.
    serial, divisible = jobs.gpu_parts(arr(10.0), arr(0.5), arr(0.2), arr(10.0), 1.0, False)
    assert serial == pytest.approx(arr(4.0))
    assert divisible == pytest.approx(arr(2.4))


def test_contention_by_hand() -> None:
    # A = 1, B = 10, σ = 0.1 on n = 5: 1 + 10·(1 + 0.1·4)/5 = 3.8.
    a, b = jobs.with_contention(arr(1.0), arr(10.0), arr(0.1))
    assert a + b / 5 == pytest.approx(arr(3.8))


def test_relative_speed_is_the_sum_of_times() -> None:
    # Half the time compute at twice the rate, half bandwidth at the same: 0.25 + 0.5 = 0.75.
    assert jobs.relative_speed(0.5, 2.0, 1.0) == pytest.approx(1 / 0.75)


def test_training_flops_of_a_7b_model_on_a_trillion_tokens() -> None:
    # 6 · 7e9 · 1e12 = 4.2e22.
    assert jobs.training_flops(arr(7.0), arr(1000.0)) == pytest.approx(arr(4.2e22))


def test_the_price_is_the_second_cheapest_of_distinct_providers() -> None:
    place = setting(Workload(kind=Kind.llm_pretraining), None, TODAY)
    offers = [
        o
        for o in place.context.catalogue.offers
        if o.accelerator_sku == "h100-sxm-80gb"
        and o.acquisition == "on_demand"
        and o.rankable
        and o.kind != "aggregator"
        and o.freshness(TODAY) != "warn"
    ]
    cheapest: dict[str, float] = {}
    for o in offers:
        usd = float(o.usd_per_gpu_hour or 0)
        cheapest[o.provider] = min(usd, cheapest.get(o.provider, usd))
    price = market_price(offers, TODAY)
    assert price is not None
    assert price.likely == sorted(cheapest.values())[1]
    assert price.low == sorted(cheapest.values())[0]


def test_knowing_a_coin_that_decides_is_worth_half_the_stake() -> None:
    # Option A pays 1 when x > 0, B pays 1 when x < 0: knowing x gains 1 − ½.
    x = np.linspace(-1, 1, 1024)
    ranked = np.array([(x > 0).astype(float), (x < 0).astype(float)])
    worth = worth_of_knowing("x", x, ranked, 0, [("a",), ("b",)])
    assert worth.points == pytest.approx(0.5, abs=0.01)
    assert worth.chance_it_changes == pytest.approx(0.5, abs=0.07)


@pytest.mark.parametrize("name", ["fraud-detection", "route-optimization", "13b-47-runs"])
def test_flips_are_where_brentq_finds_the_scores_equal(name: str) -> None:
    workload = example(name).workload
    answer = assess(workload, today=TODAY, draws=256)
    place = setting(workload, None, TODAY)
    evaluations, ranked = _point(place, {})
    kinds = [(e.spec.placement, e.spec.acquisition) for e in evaluations]
    best = kinds[int(ranked[:, 0].argmax())]
    weight = score.weights(workload)
    by_field = {lever.field: lever for lever in levers(workload, place.context.inputs)}

    def lead(field: str, value: float) -> float:
        """Score of the best of the recommended kind over the best of the others."""
        lever = by_field[field]
        x = place.context.inputs.point()
        x[lever.input] = arr(value * lever.factor)
        moved = [evaluate(e.spec, x, place.context) for e in evaluations]
        r = _ranked(moved, x, place.context, weight)[:, 0]
        mine = max(v for v, kind in zip(r, kinds, strict=True) if kind == best)
        rest = max(v for v, kind in zip(r, kinds, strict=True) if kind != best)
        return float(mine - rest)

    found = [flip for flip in answer.flips if flip.at is not None]
    assert found
    for flip in found:
        assert flip.at is not None
        # The reported value lies just beyond the turn: another kind wins there, ours a hair before.
        assert lead(flip.field, flip.at) <= 1e-9
        step = (flip.at - flip.now) * 0.005
        before = flip.at - step
        assert lead(flip.field, before) >= -1e-9
        if lead(flip.field, before) * lead(flip.field, flip.at) < 0:
            root = brentq(lambda v, f=flip.field: lead(f, v), before, flip.at)
            assert flip.at == pytest.approx(root, rel=5e-3)


def test_a_licence_without_gpus_and_a_field_of_work_reach_the_decision() -> None:
    workload = parse({"kind": "simulation", "useful_hours_per_month": 400, "current_units": 4})
    barred = Settings(jobs=JobsTerms(licence_covers_gpus=False))
    answer = assess(workload, settings=barred, today=TODAY, draws=0)
    assert answer.best.placement == "cpu"
    assert any("licence" in v.reason for v in answer.ruled_out)
    # The published range of the field that is named replaces that of all simulations.
    usual = setting(workload, None, TODAY).context.inputs.ranges["gpu_speedup"]
    field = Settings(jobs=JobsTerms(field=JobField.molecular_dynamics))
    named = setting(workload, None, TODAY, field).context.inputs.ranges["gpu_speedup"]
    told = pooled_for(Kind.simulation, JobField.molecular_dynamics)
    assert told is not None
    assert (named.low, named.likely, named.high) == (told.low, told.likely, told.high)
    assert named.likely != usual.likely
    # What was measured by the user stands whatever is published.
    own = parse({**workload.model_dump(), "gpu_speedup": 7})
    kept = setting(own, None, TODAY, field).context.inputs.ranges["gpu_speedup"]
    assert kept.likely == 7


def test_every_example_gives_an_answer_with_three_reasons() -> None:
    for e in examples().values():
        answer = assess(e.workload, today=TODAY, draws=256)
        assert answer.sentence, e.name
        assert len(answer.reasons_for) == 3, e.name
        assert answer.reason_against is not None, e.name


def test_ranges_are_ordered_for_every_kind() -> None:
    for kind in Kind:
        for name, r in resolve(Workload(kind=kind)).ranges.items():
            assert r.low <= r.likely <= r.high, (kind, name)


def test_a_budget_that_nothing_meets_is_said_and_nothing_is_hidden() -> None:
    answer = assess(parse({"kind": "llm_pretraining", "budget_usd_per_month": 1}), today=TODAY)
    assert answer.best.vetoes
    assert answer.sentence.startswith("Nothing on offer meets every constraint")
    assert "budget" in answer.sentence
