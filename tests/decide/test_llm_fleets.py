"""A language model's fleet is one fleet: the decision counts the machines of the serving plan."""

from __future__ import annotations

from datetime import date

import pytest

from engine.assess import assess
from engine.assessment import Assessment
from engine.catalogue import load_catalogue
from engine.explain.serving import ServingReport, serving_report
from engine.workload.serving_terms import Pay, ServingTerms
from engine.workload.settings import Settings
from engine.workload.workload import Workload

TODAY = date(2026, 12, 1)
CHAT = {
    "name": "chat", "kind": "online_inference", "model_class": "llm", "model_params_b": 70.0,
    "tokens_in": 1500.0, "tokens_out": 300.0, "rate_per_s": 5.0, "peak_factor": 3.0,
    "latency_ms": 2000.0, "horizon_months": 24,
}  # fmt: skip
# The decision's GPUs take the requests as well: at this rate that fills no further machine.
SMALL = {**CHAT, "model_params_b": 8.0, "rate_per_s": 44.0, "failure_mode": "machine_loss"}
LONG = {k: v for k, v in CHAT.items() if k != "latency_ms"} | {"tokens_in": 60_000.0}
LARGE = {**CHAT, "model_params_b": 235.0, "active_params_b": 22.0, "downtime": "minutes"}


def both(told: dict[str, object], spare: int | None) -> tuple[Assessment, ServingReport]:
    workload, terms = Workload.model_validate(told), ServingTerms(spare=spare)
    answer = assess(workload, settings=Settings(serving=terms), today=TODAY, draws=64)
    page = serving_report(workload, terms, load_catalogue(), TODAY, None, answer.best)
    return answer, page


@pytest.mark.parametrize("told", [CHAT, SMALL, LARGE], ids=["70B", "8B", "235B mixture"])
@pytest.mark.parametrize("spare", [None, 2])
def test_the_decision_and_the_plan_count_the_same_gpus(
    told: dict[str, object], spare: int | None
) -> None:
    answer, _ = both(told, spare)
    compared = 0
    for pay in (Pay.on_demand, Pay.reserved_1y, Pay.dedicated, Pay.spot):
        terms = ServingTerms(spare=spare, pay=pay)
        page = serving_report(answer.workload, terms, load_catalogue(), TODAY)
        fleets = {o.candidate.machine.id: o for o in page.answer.options}
        for option in answer.options:
            stage = option.stages[0]
            if option.acquisition != pay.value or len(option.stages) > 1:
                continue
            fleet = fleets.get(f"{stage.sku}x{stage.units // stage.machines}".lower())
            if stage.hardware == "gpu" and fleet is not None:
                assert fleet.gpus == stage.units, option.label
                assert fleet.usd_per_month.likely == pytest.approx(option.usd_per_month.likely)
                compared += 1
    assert compared >= 5


@pytest.mark.parametrize(
    "told", [CHAT, SMALL, LARGE, LONG], ids=["70B", "8B", "235B mixture", "long prompts"]
)
def test_the_plan_opens_with_the_recommendation(told: dict[str, object]) -> None:
    """The two pages show one number of machines and one bill."""
    answer, page = both(told, None)
    assert page.chosen is not None
    stage = answer.best.stages[0]
    assert page.pay.value == answer.best.acquisition
    assert page.chosen.candidate.machine.sku == stage.sku
    assert page.chosen.gpus == stage.units
    assert page.chosen.usd_per_month.likely == pytest.approx(answer.best.usd_per_month.likely)


def test_whole_machines_stand_spare_where_replicas_share_one() -> None:
    """A lost machine takes every replica in it along: the rest must carry the peak without it.

    Where a lost machine is the worst failure the plan has one machine more than the load fills, of
    eight GPUs as of one; a tenth of all where that is more.
    """
    told = {**CHAT, "failure_mode": "machine_loss"}
    calm, _ = both(CHAT, None)
    feared, _ = both(told, None)
    for label, per_machine in (("h100-sxm-80gb", 8), ("b300-sxm", 1)):
        found = [
            next(o.stages[0] for o in answer.options
                 if o.stages[0].sku == label and len(o.stages) == 1
                 and o.stages[0].units // o.stages[0].machines == per_machine
                 and o.acquisition == "on_demand")
            for answer in (calm, feared)
        ]  # fmt: skip
        assert found[1].machines == found[0].machines + 1, label


def test_machines_told_spare_are_spare_in_both() -> None:
    none, page_none = both(CHAT, 0)
    three, page_three = both(CHAT, 3)
    for answer, page, spare in ((none, page_none, 0), (three, page_three, 3)):
        assert page.chosen is not None
        kept = page.chosen.machines - page.chosen.candidate.machines(page.chosen.replicas)
        assert kept == spare
        assert page.chosen.gpus == answer.best.stages[0].units


def test_a_model_that_nothing_holds_is_said_without_a_count_of_machines() -> None:
    """20 trillion parameters at 16 bits are 40,000 GB; eight times eight B200 hold 11,520."""
    answer, _ = both({**CHAT, "model_params_b": 20_000.0}, None)
    assert answer.sentence.startswith("Nothing on offer can do this job")
    assert "40,000 GB" in answer.sentence
    assert "Serving plan" in answer.sentence
    assert "Rent" not in answer.sentence


def test_hardware_that_is_too_slow_even_alone_is_ruled_out() -> None:
    """As on the plan's page: no fleet of it is sized one request after the other."""
    told = {k: v for k, v in CHAT.items() if k != "latency_ms"}
    answer = assess(Workload.model_validate(told), today=TODAY, draws=64)
    servers = [o for o in answer.options if o.placement == "cpu"]
    assert servers
    # 70 billion weights of 2 bytes at some 300 GB/s of a server: 0.47 s a token at the very best.
    for option in servers:
        assert any("a further token takes" in v.reason for v in option.vetoes)
    assert not any(v.field == "tpot_ms" for v in answer.best.vetoes)


def test_a_time_per_token_that_was_asked_rules_out_what_misses_it() -> None:
    # 16 GB of weights in 5 ms are 3,200 GB/s: an A100 alone reads 2,039 and is not recommended.
    told = {**SMALL, "rate_per_s": 1.0}
    settings = Settings(serving=ServingTerms(tpot_ms=5.0))
    answer = assess(Workload.model_validate(told), settings=settings, today=TODAY, draws=64)
    gpus = load_catalogue().accelerators
    allowed = [o for o in answer.options if not o.vetoes and o.placement == "gpu"]
    assert allowed
    for option in allowed:
        stage = option.stages[0]
        read = (gpus[stage.sku].memory_bandwidth_gb_per_s or 0.0) * stage.units / stage.machines
        assert read > 3_200, option.label
