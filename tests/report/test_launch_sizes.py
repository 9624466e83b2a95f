"""Launch kits: sizes that multiply to the GPUs, steps, batches, layers and chunks."""

from __future__ import annotations

import json
import re

import pytest

from engine.assess import assess
from engine.catalogue import load_catalogue
from engine.cost.cloud import spot_terms
from engine.explain.reliability import reliability
from engine.report.launch import launch_files
from engine.report.launch.job import best_save_minutes
from engine.workload.answers import Kind
from engine.workload.reliability_terms import ReliabilityTerms, Spot
from engine.workload.workload import Workload
from tests.report.launch_sample import CASES, TUNE, argument, ask, files, one_node, plan

every_case = pytest.mark.parametrize("name", CASES)


@every_case
def test_the_sizes_multiply_to_the_gpus(name: str) -> None:
    the_plan = CASES[name][0]
    kit = files(name)
    batch_file = kit["slurm.sbatch"]
    nodes = int(re.search(r"--nodes=(\d+)", batch_file)[1])  # type: ignore[index]
    each = int(re.search(r"--gpus-per-node=(\d+)", batch_file)[1])  # type: ignore[index]
    assert nodes * each == the_plan.gpus
    assert f"NODES={nodes}\nGPUS_PER_NODE={each}\n" in kit["job.env"]
    if "megatron_args.sh" in kit:
        text = kit["megatron_args.sh"]
        tp, pp, cp = (
            int(argument(text, f"{what}-parallel-size") or 0)
            for what in ("tensor-model", "pipeline-model", "context")
        )
        assert (tp, pp, cp) == (the_plan.tp, the_plan.pp, the_plan.cp)
        ranks = nodes * each // (tp * pp * cp)
        micro = int(argument(text, "micro-batch-size") or 0)
        assert int(argument(text, "global-batch-size") or 0) % (micro * ranks) == 0
    elif "train_bridge.py" in kit:
        settings = json.loads(kit["train.json"])
        split = settings["split"]
        assert settings["gpus"] == nodes * each
        model = settings["pipeline"] * split["tensor_model_parallel_size"]
        ranks = nodes * each // (model * split["context_parallel_size"])
        assert ranks == the_plan.dp
        assert settings["global_batch"] % (settings["micro_batch"] * ranks) == 0
    else:
        settings = json.loads(kit["train.json"])
        assert settings["gpus"] == settings["data_parallel"] == nodes * each
        batch = settings["micro_batch"] * settings["accumulation"] * settings["data_parallel"]
        assert batch == settings["global_batch"]
        if "shard_size" in settings:
            assert settings["gpus"] % settings["shard_size"] == 0
    if "deepspeed.json" in kit:
        zero = json.loads(kit["deepspeed.json"])
        assert zero["train_batch_size"] == nodes * each * (
            zero["train_micro_batch_size_per_gpu"] * zero["gradient_accumulation_steps"]
        )


def test_steps_are_tokens_over_the_batch() -> None:
    # 1,024 sequences of 4,096 tokens are 4,194,304; 2e12 / 4,194,304 = 476,837.2, so 476,838.
    settings = json.loads(files("fsdp")["train.json"])
    assert settings["total_steps"] == 476_838
    # 128 ranks of 1 sequence: 1,024 / 128 = 8 parts.
    assert settings["accumulation"] == 8
    # 3% of the run is more than 2,000 steps.
    assert settings["warmup_steps"] == 2000
    assert (settings["learning_rate"], settings["min_learning_rate"]) == (1.5e-4, 1.5e-5)


def test_a_short_run_warms_up_for_a_share_of_it() -> None:
    # 1e8 tokens / (64 x 4,096) = 381.5, so 382 steps; 3% of them are 11.
    settings = json.loads(files("fine-tuning")["train.json"])
    assert (settings["total_steps"], settings["warmup_steps"]) == (382, 11)


def test_megatron_saves_by_steps() -> None:
    # 30 minutes at 12 s a step are 150 steps; every tenth is kept.
    saves = files("megatron")["checkpoint_args.sh"]
    assert argument(saves, "save-interval") == "150"
    assert argument(saves, "save-retain-interval") == "1500"


@pytest.mark.parametrize(
    ("gpus", "minutes"),
    # A failure in 30,000 GPU-hours, a stall of 0.0083 h. 16,384 GPUs: one in 1.83 h, and
    # sqrt(2 x 0.0083 x 1.83) h are 10.5 minutes, less a third of the stall: 10.3. 1,024: one in
    # 29.3 h, 41.8 minutes. 128: one in 234 h, 118.3 minutes.
    [(16_384, 10), (1024, 42), (128, 118)],
)
def test_a_save_is_as_often_as_loses_least(gpus: int, minutes: float) -> None:
    assert best_save_minutes(gpus, 1e6) == minutes


def test_a_short_run_saves_at_its_end_alone() -> None:
    # 382 steps of 12 s are 76.4 minutes; 8 GPUs would save every 7.9 hours.
    kit = launch_files(plan(**{**TUNE, "zero_stage": 2}), one_node(checkpoint_minutes=None))
    assert json.loads(kit["checkpoint.json"])["checkpoint_minutes"] == 76
    assert "One every 76 minutes of work" in kit["README.md"]


def test_a_kit_saves_as_often_as_the_reliability_page_says() -> None:
    job = Workload(kind=Kind.llm_pretraining, model_params_b=70, train_tokens_b=2000)
    terms = ReliabilityTerms(devices=512, spot=Spot.off, run_days=100)
    page = reliability(assess(job, draws=0), terms).interval * 60
    assert best_save_minutes(512, 2400) == pytest.approx(page, abs=0.5)


@pytest.mark.parametrize("provider", ["AWS", "RunPod", "Vast.ai"])
def test_spot_machines_without_warning_are_saved_more_often(provider: str) -> None:
    # 64 GPUs fail once in 469 hours; their 8 machines are taken more often than that.
    usual = best_save_minutes(64, 1e6)
    spot = best_save_minutes(64, 1e6, spot_nodes=8, provider=provider)
    notice = float(spot_terms(provider, load_catalogue().running).notice) * 3600
    if provider == "AWS":
        assert notice == 120  # two minutes: time for a save of half a minute
        assert spot == usual
    else:
        assert notice < 30
        assert spot < usual / 2


def test_a_kit_for_spot_machines_saves_as_often_as_the_page_says() -> None:
    job = Workload(kind=Kind.llm_pretraining, model_params_b=70, train_tokens_b=2000)
    for devices in (64, 1024):
        terms = ReliabilityTerms(devices=devices, spot=Spot.on, run_days=100)
        page = reliability(assess(job, draws=0), terms)
        ours = best_save_minutes(
            devices, 2400, spot_nodes=page.plan.machines, provider=page.plan.provider
        )
        assert ours == pytest.approx(page.interval * 60, abs=0.51), page.plan.provider


def test_a_batch_that_can_t_be_split_evenly_is_rounded_and_said() -> None:
    # 1,000 sequences over 128 ranks: 7.8, so 8 each, 1,024 in all.
    readme = launch_files(plan(global_batch_seqs=1000), ask())["README.md"]
    assert "A batch of 1,000 sequences can't be split evenly over 128 ranks" in readme
    assert "it is 1,024 here" in readme


def test_the_layers_of_uneven_stages_add_up() -> None:
    # Llama 3 405B: 126 layers on 16 x 8 = 128 chunks; first and last chunk go without, as in the
    # paper, where they hold the embedding and the head.
    layout = argument(files("uneven stages")["megatron_args.sh"], "pipeline-model-parallel-layout")
    assert layout is not None
    chunks = layout.split("|")
    assert len(chunks) == 128
    assert sum(chunk.count("t") for chunk in chunks) == 126
    assert (chunks[0], chunks[-1]) == ("E", "L")


def test_experts_are_written_as_the_paper_has_them() -> None:
    text = files("experts")["megatron_args.sh"]
    expected = {
        "num-experts": "256", "moe-router-topk": "8", "moe-ffn-hidden-size": "2048",
        "moe-shared-expert-intermediate-size": "2048", "moe-layer-freq": "([0]*3+[1]*58)",
        "kv-lora-rank": "512", "q-lora-rank": "1536", "qk-head-dim": "128",
        "qk-pos-emb-head-dim": "64", "v-head-dim": "128", "multi-latent-attention": "",
        "moe-router-score-function": "sigmoid", "expert-model-parallel-size": "64",
        "moe-router-num-groups": "8", "moe-router-group-topk": "4", "rope-type": "yarn",
        "moe-router-topk-scaling-factor": "2.5", "rotary-scaling-factor": "40", "mscale": "1",
        "expert-tensor-parallel-size": "1", "sequence-parallel": "", "fp8-format": "hybrid",
    }  # fmt: skip
    assert {name: argument(text, name) for name in expected} == expected
    assert argument(text, "moe-aux-loss-coeff") is None
    assert argument(text, "group-query-attention") is None
    assert argument(text, "moe-router-pre-softmax") is None
    assert "Layers that predict further tokens are left out" in files("experts")["README.md"]


def test_positions_are_scaled_as_the_configuration_says() -> None:
    text = files("uneven stages")["megatron_args.sh"]
    expected = {"rotary-base": "500000", "use-rope-scaling": "", "rope-scaling-factor": "8"}
    assert {name: argument(text, name) for name in expected} == expected
    assert argument(files("megatron")["megatron_args.sh"], "use-rope-scaling") is None


def test_a_pipeline_s_idle_share_is_said() -> None:
    # The article's launch: (4 - 1) / (8 + 4 - 1) = 27%, which it does not mention.
    the_plan = plan(gpus=1024, tp=8, pp=4, zero_stage=1, micro_batch=2, global_batch_seqs=512)
    readme = launch_files(the_plan, ask(nodes=128, tokenizer="org/t"))["README.md"]
    assert "Pipeline stages wait for 27% of a step (4 stages, 8 micro-batches" in readme
