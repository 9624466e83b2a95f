"""The serving report: its parts, terms of rent, API prices, and shapes from files."""

from __future__ import annotations

from dataclasses import fields

import pytest

from engine.errors import InputError
from engine.estimate.model_shape import shape_from_config
from engine.estimate.serving import network_of
from engine.explain.serving import serving_report
from engine.explain.serving_shapes import numbers_of, published_models, shape_of_terms
from engine.workload.answers import Kind, Location
from engine.workload.serving_terms import DayShape, Keep, Pay, ServingTerms
from engine.workload.workload import Workload
from tests.estimate.serving_asks import CATALOGUE, TODAY


def test_a_report_joins_all_parts() -> None:
    workload = Workload(kind=Kind.online_inference, model_params_b=70, rate_per_s=20,
                        tokens_in=1000, tokens_out=300, latency_ms=2000)  # fmt: skip
    report = serving_report(workload, ServingTerms(), CATALOGUE, TODAY)
    assert report.answer.state == "plan"
    assert [q.bits for q in report.quantisation] == [16, 8, 4]
    assert [q.chosen for q in report.quantisation] == [True, False, False]
    assert report.apis
    assert all(b.offer.open_weights for b in report.apis)
    # Groq's row at 1,000 in and 300 out: 827 millionths × 20 × 2,628,000 s.
    groq = next(b for b in report.apis if b.offer.provider == "Groq")
    assert groq.usd_per_month == pytest.approx(43_467, rel=1e-3)
    assert len(report.zero) == 6
    told = {r.name: r.told for r in report.resolved}
    assert told == {
        "model_params_b": True, "tokens_in": True, "tokens_out": True, "rate_per_s": True,
        "peak_factor": False, "ttft_target_s": True, "tpot_target_s": False,
    }  # fmt: skip
    other = report.answer.options[1].id
    again = serving_report(workload, ServingTerms(option=other), CATALOGUE, TODAY)
    assert again.chosen is not None
    assert again.chosen.id == other


def test_machines_rented_for_a_term_are_paid_around_the_clock() -> None:
    workload = Workload(kind=Kind.online_inference, model_params_b=8, rate_per_s=100)
    terms = ServingTerms(day=DayShape.office, keep=Keep.by_hour)
    hourly = serving_report(workload, terms, CATALOGUE, TODAY)
    year = serving_report(workload, terms.model_copy(update={"pay": Pay.reserved_1y}), CATALOGUE,
                          TODAY)  # fmt: skip
    for report, by_hour in ((hourly, True), (year, False)):
        best = report.answer.best
        assert best is not None
        usd = best.usd_by_hour if by_hour else best.usd_always_on
        assert best.usd_per_month.likely == pytest.approx(usd)
    assert any("around the clock" in note for note in year.notes)
    assert not hourly.notes


def test_bought_machines_cost_their_month_around_the_clock() -> None:
    workload = Workload(kind=Kind.online_inference, model_params_b=8, rate_per_s=100,
                        location=Location.in_house)  # fmt: skip
    rent = serving_report(workload, ServingTerms(), CATALOGUE, TODAY)
    assert any("own rooms" in note for note in rent.notes)
    own = serving_report(workload, ServingTerms(pay=Pay.buy, keep=Keep.by_hour), CATALOGUE, TODAY)
    best = own.answer.best
    assert best is not None
    # The H100 of the facts costs 2.38 an hour to own at full use, single cards in small servers
    # somewhat more or less: between 1 and 6 USD an hour a GPU.
    assert 1.0 < best.candidate.machine.usd_per_unit_hour.likely < 6.0
    assert best.usd_per_month.likely == pytest.approx(best.usd_always_on)
    assert best.candidate.machine.price.provider == "bought"
    # SXM cards are sold by the board of eight.
    boards = [o.candidate.machine for o in own.answer.options if "sxm" in o.candidate.machine.sku]
    assert boards
    assert all(machine.per_machine == 8 for machine in boards)
    assert own.place.endswith("rules every API out.")


def test_hosting_wins_from_where_the_cheapest_fleet_meets_the_price() -> None:
    workload = Workload(kind=Kind.online_inference, model_params_b=8, rate_per_s=10)
    report = serving_report(workload, ServingTerms(weights="4"), CATALOGUE, TODAY)  # type: ignore[arg-type]
    won = [b for b in report.apis if b.wins_from_per_s is not None]
    assert won
    for b in won:
        assert b.wins_from_per_s is not None
        rate = b.wins_from_per_s * 1.02
        again = serving_report(
            workload.model_copy(update={"rate_per_s": rate}), ServingTerms(weights="4"),  # type: ignore[arg-type]
            CATALOGUE, TODAY,
        )  # fmt: skip
        assert again.answer.best is not None
        assert again.answer.best.usd_per_month.likely < b.usd_per_request * rate * 2_628_000


CONFIGS = {
    "gpt-oss": {
        "model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "num_hidden_layers": 24,
        "hidden_size": 2880, "intermediate_size": 2880, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088, "num_local_experts": 32,
        "num_experts_per_tok": 4, "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"] * 12,
    },
    "llama": {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32,
        "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 128256,
        "quantization_config": {"quant_method": "awq", "bits": 4},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_a_shape_read_from_a_file_plans_the_same_from_the_link(name: str) -> None:
    shape = shape_from_config(CONFIGS[name], name)
    back = shape_of_terms(ServingTerms(model=name, shape=numbers_of(shape)))
    assert back is not None
    for field in fields(network_of(shape)):
        one, two = (getattr(network_of(s), field.name) for s in (shape, back))
        assert two == pytest.approx(one, rel=1e-6), field.name
    assert back.quantized_bits == pytest.approx(shape.quantized_bits, abs=1e-3)


def test_another_size_in_the_details_is_told() -> None:
    workload = Workload(kind=Kind.online_inference, model_params_b=8)
    report = serving_report(workload, ServingTerms(model="Llama-3.1-70B"), CATALOGUE, TODAY)
    assert any("8 billion" in note and "70.6" in note for note in report.notes)
    assert report.resolved[0].value == pytest.approx(70.554)


def test_an_empty_workload_gets_a_plan_from_priors() -> None:
    report = serving_report(Workload(), ServingTerms(), CATALOGUE, TODAY)
    assert report.answer.options
    assert not any(r.told for r in report.resolved)
    assert all(r.source for r in report.resolved)


def test_a_shape_travels_as_numbers() -> None:
    for shape in published_models().values():
        terms = ServingTerms(shape=numbers_of(shape))
        back = shape_of_terms(terms)
        assert back is not None
        for name in ("total_params", "active_params", "layers", "hidden", "heads", "kv_heads",
                     "mla_cache_width", "experts", "experts_per_token"):  # fmt: skip
            assert getattr(back, name) == pytest.approx(getattr(shape, name)), name
        assert (back.attention == "mla") == (shape.attention == "mla")
        # What serving reads of a model is the same to the last element.
        assert network_of(back) == network_of(shape)
    with pytest.raises(InputError) as told:
        shape_of_terms(ServingTerms(model="no such model"))
    assert told.value.where == "model"


def test_answers_of_one_token_have_no_time_per_further_token() -> None:
    """A classifier: what a further token would take rules nothing out, cached prompts gain."""
    usd = []
    for hit in (0.0, 20.0, 50.0, 90.0):
        workload = Workload(kind=Kind.online_inference, model_params_b=70, rate_per_s=100,
                            tokens_in=8000, tokens_out=1, latency_ms=2000)  # fmt: skip
        terms = ServingTerms(tpot_ms=1.0, prefix_hit_pct=hit)
        report = serving_report(workload, terms, CATALOGUE, TODAY)
        assert report.answer.state == "plan"
        assert report.answer.best is not None
        usd.append(report.answer.best.usd_per_month.likely)
    assert usd == sorted(usd, reverse=True)
    assert usd[-1] < usd[0]
