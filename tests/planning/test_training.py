"""From a job and its terms to the search's question: what enters, what is refused, what travels."""

from __future__ import annotations

import io
import zipfile
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalogue import load_catalogue
from engine.errors import InputError
from engine.estimate.model_shape import shape_from_config
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.shape_text import read_shape, shape_text
from engine.planning import training, training_view
from engine.planning.training import TrainingReport, train_report
from engine.planning.training_text import training_json, training_text
from engine.report.launch import launch_files, launch_kit
from engine.workload.settings import Settings
from engine.workload.training_terms import TrainingTerms
from engine.workload.workload import Workload, parse

TODAY = date(2026, 12, 2)
LLAMA_8B = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096,
    "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
}  # fmt: skip


def job(**more: Any) -> Workload:
    return parse(
        {"kind": "llm_pretraining", "model_params_b": 8, "train_tokens_b": 100,
         "deadline_days": 20, **more}
    )  # fmt: skip


def report(workload: Workload | None = None, **terms: Any) -> TrainingReport:
    usual = {"gpu": "h100-sxm-80gb", "most_gpus": 256}
    settings = Settings(training=TrainingTerms.model_validate({**usual, **terms}))
    return train_report(workload or job(), settings, today=TODAY)


def test_the_plan_meets_the_deadline_and_its_sizes_multiply() -> None:
    best = report().answer.best
    assert best is not None
    p = best.plan
    assert p.gpus % (p.tp * p.pp * p.cp) == 0
    assert best.chance is not None
    assert best.chance >= 0.8
    assert best.days.likely < 20
    # 6 × 8e9 × 100e9 FLOP at 100% of 989 TFLOP/s are 1,348 GPU-hours: no plan takes fewer.
    assert best.ideal_gpu_hours > 6 * 8e9 * 100e9 / 989e12 / 3600
    assert best.gpu_hours.likely > best.ideal_gpu_hours
    assert best.memory.likely <= best.memory.usable


def test_the_price_is_that_of_the_catalogue_on_the_terms_asked_for() -> None:
    usual, dear = report(), report(hire="spot")
    assert usual.answer.best is not None
    assert dear.answer.best is not None
    for found in (usual, dear):
        best = found.answer.best
        assert best is not None
        price = best.choice.usd_per_gpu_hour
        assert price is not None
        assert best.usd is not None
        assert best.usd.likely == pytest.approx(best.gpu_hours.likely * price, rel=1e-6)
    first, second = usual.answer.best.choice, dear.answer.best.choice
    assert second.usd_per_gpu_hour is not None
    assert first.usd_per_gpu_hour is not None
    assert second.usd_per_gpu_hour < first.usd_per_gpu_hour
    assert usual.prices["h100-sxm-80gb"].source


def test_a_configuration_says_more_than_a_size() -> None:
    shape = shape_from_config(LLAMA_8B)
    found = report(shape=shape_text(shape))
    assert found.answer.job.shape == shape
    assert shape.total_params == 8_030_261_248
    by_size = report()
    assert by_size.answer.job.shape.exact is False


def test_own_steps_pull_the_estimate_to_them() -> None:
    usual = report(least_gpus=8, most_gpus=8).answer.best
    assert usual is not None
    step = usual.step_s.likely
    batch = usual.plan.global_batch_seqs
    told = report(
        least_gpus=8, most_gpus=8, measured_s=15 * step, measured_steps=10, measured_gpus=8,
        measured_batch=batch,
    ).answer.best  # fmt: skip
    assert told is not None
    # Steps took half as long again as estimated: the estimate goes most of the way.
    assert 1.3 * step < told.step_s.likely < 1.6 * step
    width = (usual.step_s.high - usual.step_s.low) / step
    assert (told.step_s.high - told.step_s.low) / told.step_s.likely < width


@pytest.mark.parametrize(
    ("terms", "where"),
    [
        ({"gpu": "abacus"}, "gpu"),
        ({"network": "pigeons"}, "network"),
        ({"mixed_with": "abacus"}, "mixed_with"),
        ({"measured_s": 41.0, "gpu": ""}, "gpu"),
        ({"measured_s": 41.0}, "measured_gpus"),
        ({"shape": "zAAAAAAAAAA"}, "shape"),
        ({"gpu": "l40s", "hire": "reserved_3y"}, "hire"),
    ],
)
def test_what_cannot_be_used_is_named(terms: dict[str, Any], where: str) -> None:
    with pytest.raises(InputError) as caught:
        report(**terms)
    assert caught.value.where == where
    assert caught.value.right


def test_a_quote_that_does_not_rank_is_told_with_the_plan() -> None:
    told = "Your quote for h100-sxm, on demand at $1.20 an hour, is left out of the ranking"
    found = report(job(quotes=["h100-sxm:on_demand:1.2"]))
    assert [w for w in found.answer.warnings if told in w]
    assert told in " ".join(training_text(found).split())
    assert told in training_json(found)["warnings"][0]


def test_other_work_is_sent_to_its_own_page() -> None:
    with pytest.raises(InputError, match="language model"):
        train_report(Workload(), Settings(), today=TODAY)


def test_a_model_that_fits_nowhere_names_the_smallest_that_would() -> None:
    found = report(job(model_params_b=500), most_gpus=8)
    assert found.answer.best is None
    assert found.answer.nothing is not None
    assert found.answer.nothing.reason
    smallest = found.answer.nothing.smallest
    assert smallest is not None
    # 500 billion weights with gradients and Adam in mixed precision take at least 8 TB.
    assert smallest.plan.gpus * 80 * 1.074 > 8_000


def test_the_launch_kit_is_for_this_very_plan() -> None:
    found = report()
    best = found.answer.best
    assert best is not None
    terms = TrainingTerms(model_id="org/model", dataset="/data/tokens")
    ask = training.launch_ask(job(name="Run $(rm -rf) 1"), terms, found, best)
    assert ask.nodes * ask.gpus_per_node == best.plan.gpus
    # Saves as often as loses least until the reliability page is told otherwise.
    assert ask.checkpoint_minutes is None
    told = training.launch_ask(job(), terms, found, best, checkpoint_minutes=45.0)
    assert told.checkpoint_minutes == 45.0
    kit = launch_kit(best.plan, ask)
    names = zipfile.ZipFile(io.BytesIO(kit)).namelist()
    assert {name.rpartition("/")[2] for name in names} >= {"README.md", "slurm.sbatch"}
    assert "$(rm" not in launch_files(best.plan, ask)["slurm.sbatch"]


@pytest.mark.parametrize(
    ("network", "nodes", "fabric"),
    [
        ("ib-ndr400", 4, "infiniband"), ("efa-v2", 4, "efa"), ("roce-400g", 2, "roce"),
        ("eth-100g", 2, "ethernet"), ("ib-ndr400", 1, "none"), ("gcp-rdma-a4", 2, "provider"),
    ],
)  # fmt: skip
def test_networks_are_told_as_the_launch_files_need_them(
    network: str, nodes: int, fabric: str
) -> None:
    assert training.fabric_of(load_catalogue().networks[network], nodes) == fabric


def test_the_page_shows_every_network_and_rule_in_words() -> None:
    found = report(job(model_params_b=70, train_tokens_b=300))  # more than one machine
    rows = training_view.network_rows(found)
    assert any(row["Worth"].startswith("the present one") for row in rows)
    assert all(" to " in row["A step"] and " to " in row["Cost"] for row in rows)
    assert all(" to " in row["Worth"] for row in rows if "a GPU-hour, " in row["Worth"])
    assert len(training_view.rule_rows(found)) == len(found.answer.rules)
    marks = training_view.frontier_marks(found)
    assert sum(m.chosen for m in marks) == 1
    # On the frontier no other point is both faster and cheaper.
    for m in (m for m in marks if m.best):
        assert not any(o.days < m.days and o.usd < m.usd for o in marks)
    assert "for" in training_view.title(found)


def test_fleets_that_take_years_are_told_and_not_drawn() -> None:
    # 6 x 70e9 x 1.4e12 FLOP are 5.9e23: one machine of eight H100 at half of 989 TFLOP/s takes
    # 1.5e8 s or 4.7 years.
    found = report(job(model_params_b=70, train_tokens_b=1400, deadline_days=45))
    marks = training_view.frontier_marks(found)
    all_days = [p.result.days.likely for p in found.answer.frontier]
    assert max(all_days) > 4 * 365
    assert max(m.days for m in marks) <= 365
    out = len(all_days) - len(marks)
    assert f"{out} fleets that take over a year" in training_view.left_out_words(found)
    assert sum(m.chosen for m in marks) == 1


def test_shapes_come_back_whole_from_their_text() -> None:
    for shape in (
        shape_from_config(LLAMA_8B), shape_from_size(70), shape_from_size(671, 37),
    ):  # fmt: skip
        text = shape_text(shape)
        assert read_shape(text) == shape
        assert len(text) < 700
        assert TrainingTerms(shape=text).shape == text


@given(st.text("abcdefgXYZ0123456789_-", min_size=8, max_size=80))
def test_no_text_breaks_the_reading_of_a_shape(text: str) -> None:
    with pytest.raises(InputError):
        read_shape("z" + text)


@pytest.mark.parametrize(
    ("gpu", "network", "per_node", "nodes", "bus"),
    [
        # Two nodes of eight, as Nebius measured them with nccl-tests: 31.2 × 15/1 = 468 GB/s.
        ("h100-sxm-80gb", "ib-ndr400", 8, 2, 467.5),
        # Sixteen: 31.2 × 127/15 = 264.
        ("h100-sxm-80gb", "ib-ndr400", 8, 16, 264.2),
        # Two of A3 Mega, as measured: 12.6 × 15 = 189.
        ("h100-sxm-80gb", "gcp-tcpxo", 8, 2, 188.5),
        # 75 × 15 = 1,125 over XDR are more than NVLink 5 carries inside a board.
        ("b300-sxm", "ib-xdr800", 8, 2, 838.0),
        ("h200-sxm-141gb", None, 8, 1, 480.0),
        ("h200-sxm-141gb", None, 4, 1, None),
    ],
)
def test_the_kit_knows_what_its_network_should_show(
    gpu: str, network: str | None, per_node: int, nodes: int, bus: float | None
) -> None:
    catalogue = load_catalogue()
    link = catalogue.networks[network] if network else None
    found = training.expected_bus(catalogue, catalogue.accelerators[gpu], link, per_node, nodes)
    assert found == (None if bus is None else pytest.approx(bus, rel=0.003))


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ("efa-v2", "AWS EFA v2 (P5/P5e) is AWS's alone"), ("ib-ndr400", ""),
        ("gcp-tcpxo", "GCP GPUDirect-TCPXO (A3 Mega) is GCP's alone"),
    ],
)  # fmt: skip
def test_a_price_without_the_plans_network_is_told(network: str, said: str) -> None:
    """The middle of the H100 offers by the machine is CoreWeave's, which has InfiniBand."""
    found = report(gpu="h100-sxm-80gb", network=network, least_gpus=64, most_gpus=64)
    told = [w for w in found.answer.warnings if "price is" in w]
    assert len(told) == (1 if said else 0)
    assert not said or said in told[0]
    assert found.prices["h100-sxm-80gb"].provider == "CoreWeave"
