"""The launch kit: right sizes, the same every time, and none of the faults of the listings."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.errors import InputError
from engine.estimate.model_shape import shape_from_config, shape_from_size
from engine.estimate.plan import Task
from engine.estimate.search import best_plans
from engine.estimate.shape import ModelShape
from engine.estimate.training_job import Job, NothingFits
from engine.report.launch import Forecast, LaunchAsk, launch_files, launch_kit, network_kind
from engine.report.launch.job import config_of_shape, plan_job, rounded
from engine.report.launch.quote import slug
from engine.report.launch.readme import FILES
from tests.estimate.training_models import B8, B13, B70, B405, MIXTRAL, on
from tests.report.launch_sample import CASES, DEEPSEEK, TUNE, ask, one_node, plan

ROOT = Path(__file__).resolve().parents[2]
every_case = pytest.mark.parametrize("name", CASES)


def files(name: str) -> dict[str, str]:
    return launch_files(*CASES[name])


def argument(text: str, name: str) -> str | None:
    """The value of a Megatron-LM argument; empty for a flag, None when it is not there."""
    found = re.search(rf"^  --{name}(?: (.*))?$", text, re.M)
    return None if found is None else (found[1] or "").strip("'\"")


# --- sizes


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


# --- which trainer, and what is refused


@pytest.mark.parametrize(
    ("name", "trainer"),
    [("fsdp", "fsdp2"), ("lora", "fsdp2"), ("offload", "deepspeed"), ("experts", "megatron"),
     ("half precision", "deepspeed"), ("long context", "bridge"),
     ("adapters, split", "bridge"), ("sharded 8-bit", "megatron")],
)  # fmt: skip
def test_the_plan_chooses_the_trainer(name: str, trainer: str) -> None:
    assert plan_job(*CASES[name]).trainer == trainer


@pytest.mark.parametrize(
    ("changes", "asked", "words"),
    [
        ({}, {"nodes": 8}, "nodes: 8 nodes of 8 GPUs are not the plan's 128"),
        ({}, {"gpu": "tpu-v5e"}, "gpu: there is no launch kit for 'tpu-v5e'"),
        ({"task": "finetune"}, {}, "model: is missing"),
        ({"task": "qlora", "tp": 8}, {"model": "org/m"}, "task: 4-bit weights are not split"),
        ({"task": "qlora"}, {"model": "org/m"}, "zero_stage: 4-bit weights can't be sharded"),
        ({"tp": 8, "task": "lora"}, {"model": "org/m", "gpu": "mi300x"}, "gpu: Megatron-Bridge"),
        ({"tp": 8, "task": "lora", "optimizer": "sgd"}, {"model": "org/m"}, "optimizer: sgd is"),
        ({"cpu_offload": True, "task": "lora"}, {"model": "org/m"}, "task: adapters need no"),
        ({"tp": 3, "gpus": 192}, {"nodes": 24}, "tp: 3 does not divide 64 heads"),
        ({"pp": 8, "zero_stage": 2, "micro_batch": 32}, {}, "zero_stage: gradients can't be"),
        ({"precision": "fp4"}, {}, "precision: h100-sxm-80gb has no 4-bit"),
        ({"pp": 2, "zero_stage": 3}, {}, "zero_stage: stage 3 is not run with pipeline stages"),
        ({"pp": 4, "vp": 2, "zero_stage": 1, "global_batch_seqs": 32}, {}, "vp: 1 micro-batch"),
        ({"cpu_offload": True, "zero_stage": 0}, {}, "zero_stage: offloading needs"),
        ({"cpu_offload": True, "optimizer": "sgd"}, {}, "optimizer: sgd is not offloaded here"),
        ({"tp": 8, "optimizer": "adam8bit"}, {}, "optimizer: Megatron-LM has no 8-bit Adam"),
        ({"tp": 8}, {"config": '{"model_type": "gpt2"}'}, "config: 'gpt2' can't be written"),
        ({"cp": 8, "seq_len": 4104}, {}, "cp: 16 does not divide 4104 tokens"),
        ({}, {"network": "none"}, "network: several nodes need one"),
        ({}, {"dataset": "data/tokens"}, "dataset: 'data/tokens' can't be used"),
        ({}, {"dataset": "/data\n/tokens"}, "dataset: holds the invisible character U+000A"),
        ({}, {"checkpoint_dir": "/x\u202e"}, "checkpoint_dir: holds the invisible character"),
        ({}, {"model": "$(reboot)"}, "model: '$(reboot)' can't be used"),
        ({}, {"partition": "a b"}, "partition: 'a b' can't be used"),
        ({}, {"subnet_manager_host": "{{ x }}"}, "subnet_manager_host: '{{ x }}' can't be used"),
        ({}, {"region": "us east"}, "region: 'us east' can't be used"),
        ({}, {"shape": replace(shape_from_size(1), kind="encoder")}, "shape: the kit's programs"),
        ({}, {"config": "{"}, "config: is no valid JSON"),
        ({}, {"config": "[]"}, "config: is no object"),
        ({}, {"tokens": float("nan")}, "tokens: nan can't be used"),
        ({}, {"checkpoint_minutes": 0}, "checkpoint_minutes: 0 can't be used"),
        ({}, {"gpus_per_node": 0}, "gpus_per_node: 0 can't be used"),
    ],
)  # fmt: skip
def test_what_can_t_be_run_is_said(
    changes: dict[str, Any], asked: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError) as error:
        launch_files(plan(**changes), ask(**asked))
    assert str(error.value).startswith(words)
    assert error.value.right


def test_a_forecast_is_in_order() -> None:
    with pytest.raises(InputError, match="forecast: is not in order"):
        Forecast(1.0, 2.0, 3.0, 1.0, 1.0)
    with pytest.raises(InputError, match="forecast: is not positive"):
        Forecast(1.0, 0.0, 3.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("shape", "gpu", "network", "task"),
    [
        (B8, "h100-sxm-80gb", "roce-400g", "pretrain"),
        (B70, "h100-sxm-80gb", "roce-400g", "pretrain"),
        (B405, "b200-sxm-180gb", "ib-ndr400-b200", "pretrain"),
        (MIXTRAL, "a100-sxm-80gb", "ib-hdr200", "pretrain"),
        (B70, "mi300x", "roce-400g", "pretrain"), (B13, "l40s", "eth-100g", "pretrain"),
        (B8, "rtx-4090", "eth-10g", "finetune"), (B70, "h100-sxm-80gb", "roce-400g", "lora"),
        (MIXTRAL, "h100-sxm-80gb", "roce-400g", "lora"),
        (B8, "a100-sxm-80gb", "ib-hdr200", "qlora"),
    ],
)  # fmt: skip
def test_the_plan_that_the_search_finds_first_gets_a_kit(
    shape: ModelShape, gpu: str, network: str, task: Task
) -> None:
    tokens = 1e12 if task == "pretrain" else 1e9
    found = best_plans(Job(shape, tokens, (on(gpu, network),), task=task, gpus=(1, 2048)))
    assert not isinstance(found, NothingFits)
    first = found[0]
    each = min(first.choice.node, first.plan.gpus)
    nodes = first.plan.gpus // each
    step = first.step_s
    kit = launch_files(
        first.plan,
        ask(
            shape=shape, gpu=gpu, gpus_per_node=each, nodes=nodes,
            network=network_kind(network) if nodes > 1 else "none", tokens=tokens,
            forecast=Forecast(step.likely, step.low, step.high, first.memory.likely,
                              first.memory.usable),
            model="" if task == "pretrain" else "org/model", tokenizer="org/tokenizer",
        ),
    )  # fmt: skip
    assert f"NODES={nodes}\nGPUS_PER_NODE={each}\n" in kit["job.env"]


def test_a_forecast_of_tuned_code_says_that_plain_code_may_need_longer() -> None:
    words = "The time is that of tuned code"
    assert words in launch_files(plan(stack="megatron"), ask())["README.md"]
    assert words not in files("fsdp")["README.md"]
    assert words not in files("megatron")["README.md"]


# --- the model's configuration


@pytest.mark.parametrize("size", [(7, None), (70, None), (30, 3.3), (235, 22)])
def test_a_shape_from_a_size_becomes_a_configuration_of_that_size(
    size: tuple[float, float | None],
) -> None:
    shape = shape_from_size(*size)
    read = shape_from_config(config_of_shape(rounded(shape), 4096))
    # Rounding a width of 28,393 to blocks of 256 moves it by at most 0.5%, small ones by more.
    assert read.total_params == pytest.approx(shape.total_params, rel=0.06)
    assert read.exact


def test_a_configuration_that_was_brought_is_the_one_that_is_trained() -> None:
    config = {"model_type": "llama", "hidden_size": 64, "note": "ü ${HOME}"}
    kit = launch_files(plan(), ask(config=json.dumps(config)))
    assert json.loads(kit["model/config.json"]) == config
    assert json.loads(kit["train.json"])["model"] == "model"


def test_weights_to_be_tuned_come_from_their_id() -> None:
    settings = json.loads(files("fine-tuning")["train.json"])
    assert (settings["model"], settings["from_pretrained"]) == ("Qwen/Qwen3-8B", True)


def test_latent_attention_needs_the_configuration() -> None:
    asked = ask(nodes=256, shape=shape_from_config(DEEPSEEK), model="org/m")
    with pytest.raises(InputError, match="kv_lora_rank is needed for latent attention"):
        launch_files(plan(gpus=2048, pp=16, ep=64, zero_stage=1), asked)


# --- the zip


@every_case
def test_the_kit_is_the_same_every_time(name: str) -> None:
    assert launch_kit(*CASES[name]) == launch_kit(*CASES[name])


@every_case
def test_the_zip_holds_the_files(name: str) -> None:
    the_plan, the_ask = CASES[name]
    with zipfile.ZipFile(io.BytesIO(launch_kit(the_plan, the_ask))) as kit:
        assert kit.testzip() is None
        held = {i.filename: kit.read(i).decode() for i in kit.infolist()}
        modes = {i.filename: i.external_attr >> 16 for i in kit.infolist()}
    assert held == {f"{the_ask.slug}/{k}": v for k, v in files(name).items()}
    for path, text in held.items():
        assert modes[path] == (0o755 if text.startswith("#!") else 0o644)
        assert text.endswith("\n")
        assert "\r" not in text


@every_case
def test_the_readme_names_every_file_and_no_other(name: str) -> None:
    kit = files(name)
    named = set(re.findall(r"^- `([^`]+)`: ", kit["README.md"].split("## Files")[1], re.M))
    assert named == set(kit) - {"README.md"}


def test_every_file_that_is_described_is_in_some_kit() -> None:
    assert set(FILES) == {f for name in CASES for f in files(name)} - {"README.md"}


def test_the_readme_says_what_to_expect() -> None:
    text = files("megatron")["README.md"]
    for words in (
        "A step: 12 s, 80% interval 9 s to 15 s.",
        # 476,838 steps of 12 s are 1,589 h; of 9 s 1,192 h, of 15 s 1,987 h.
        "All steps: 1,589 h, 1,192 h to 1,987 h",
        "60.0 GiB of 75.2 GiB",
        "weights 3.1, activations 20.0",
        "8 x 4 x 1 x 4",
        "1 x 256 x 4 = 1,024 sequences",
        "These are spot machines",
        "One every 30 minutes, which is 150 steps",
        "above 15 s after the first twenty",
    ):
        assert words in text
    assert "No published step" not in text


def test_a_forecast_without_calibration_says_so() -> None:
    forecast = Forecast(12.0, 6.0, 24.0, 60.0, 75.2, calibrated=False)
    text = launch_files(plan(), ask(forecast=forecast))["README.md"]
    assert "No published step on this hardware" in text


# --- the faults of the articles' listings


@every_case
def test_the_rendezvous_id_is_fixed_once_by_the_submitter(name: str) -> None:
    """The listing built it from each node's clock: nodes seconds apart never met."""
    kit = files(name)
    assert "date" not in "".join(re.findall(r"--rdzv.*", kit["run_node.sh"]))
    assert "JOB_ID=" not in kit["run_node.sh"]
    if CASES[name][1].nodes > 1:
        assert '--rdzv-id="$JOB_ID"' in kit["run_node.sh"]
        ids = re.findall(r"JOB_ID=(.*)", kit["slurm.sbatch"])
        assert ids == ['"$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}"']
    else:
        assert "rendezvous=(--standalone)" in kit["run_node.sh"]


@every_case
def test_no_file_uses_the_rank_that_torchrun_sets(name: str) -> None:
    """The listing gave $RANK, which every process gets from torchrun, as the node's number."""
    for file, text in files(name).items():
        if not file.endswith(".md"):
            assert not re.search(r"\$\{?(RANK|LOCAL_RANK|WORLD_SIZE)\b", text), file
    assert "node_rank" not in files(name)["run_node.sh"]


@every_case
def test_no_address_is_written_down(name: str) -> None:
    """The listing named a host, and gave a master address beside the rendezvous' end point."""
    for file, text in files(name).items():
        assert "master" not in text.lower(), file
        assert not re.search(r"\b\d+\.\d+\.\d+\.\d+\b", text), file
        assert "localhost" not in text, file


@pytest.mark.parametrize("name", [n for n, (_, a) in CASES.items() if a.nodes > 1])
def test_exactly_one_node_opens_the_meeting_point(name: str) -> None:
    """The other listing left out how each node would learn its number."""
    script = files(name)["run_node.sh"]
    assert "${NODE_INDEX:?" in script
    assert '--rdzv-conf="is_host=$is_host"' in script


@every_case
def test_one_trainer_is_named_and_its_sizes_are_its_own(name: str) -> None:
    """The listing gave tensor and pipeline flags to a script that it called FSDP."""
    kit = files(name)
    trainers = {"train.py", "train_deepspeed.py", "train_bridge.py", "megatron_args.sh"}
    trainers &= set(kit)
    assert len(trainers) == 1
    if "train_bridge.py" in kit:
        return
    for file in ("train.json", "deepspeed.json"):
        assert "tensor" not in kit.get(file, "")
        assert "pipeline" not in kit.get(file, "")


@every_case
def test_the_subnet_manager_runs_on_one_machine_at_most(name: str) -> None:
    """The playbook of the listing started one on every node."""
    text, (_, the_ask) = files(name)["node_setup.yml"], CASES[name]
    wanted = the_ask.subnet_manager_host and the_ask.network == "infiniband"
    assert ("opensm" in text) == bool(wanted)
    if wanted:
        assert text.count("inventory_hostname == subnet_manager_host") == 2


@pytest.mark.parametrize(
    ("gpu", "packages"),
    [
        ("h100-sxm-80gb", {"nvidia-fabricmanager-{{ driver_branch }}"}),
        ("b200-sxm-180gb", {"nvidia-fabricmanager-{{ driver_branch }}", "nvlsm"}),
        ("l40s", set()),
    ],
)
def test_the_switches_of_a_board_get_their_manager(gpu: str, packages: set[str]) -> None:
    """The listing had none, without which the GPUs of such a board can't speak to each other."""
    text = launch_files(plan(), ask(gpu=gpu))["node_setup.yml"]
    assert {
        p for p in ("nvidia-fabricmanager-{{ driver_branch }}", "nvlsm") if p in text
    } == packages


def test_the_name_that_megatron_s_tool_gives_its_files_is_said() -> None:
    words = "tool adds `_text_document` to the name"
    assert words not in files("megatron")["README.md"]
    assert words in files("sharded 8-bit")["README.md"]


def test_rented_machines_are_only_checked() -> None:
    text = files("megatron")["node_setup.yml"]
    assert "ansible.builtin.apt" not in text
    assert "nvidia-smi --list-gpus" in text


def test_the_playbook_becomes_root_pins_the_driver_and_restarts() -> None:
    text = files("fsdp")["node_setup.yml"]
    for words in ("become: true", "selection: hold", "ansible.builtin.reboot", "rdma-core",
                  "nvidia_peermem"):  # fmt: skip
        assert words in text


def test_what_skypilot_does_not_know_is_said() -> None:
    kit = launch_files(plan(), ask(cloud="Hetzner"))
    assert "infra" not in kit["skypilot.yaml"]
    assert "SkyPilot does not know `Hetzner`" in kit["README.md"]
    kit = launch_files(plan(), ask(gpu="h200-nvl-141gb"))
    assert "skypilot.yaml" not in kit
    assert "SkyPilot has no name for this GPU" in kit["README.md"]


def test_a_gpu_without_8_bits_runs_in_16_and_it_is_said() -> None:
    kit = launch_files(plan(precision="fp8"), ask(gpu="a100-sxm-80gb"))
    assert json.loads(kit["train.json"])["compute_dtype"] == "bfloat16"
    assert "a100-sxm-80gb has no arithmetic for fp8" in kit["README.md"]


def test_gradients_between_stages_stay_whole_where_they_fit_and_it_is_said() -> None:
    kit = launch_files(plan(tp=8, pp=4, zero_stage=2, stack="megatron"), ask(tokenizer="org/t"))
    assert argument(kit["megatron_args.sh"], "use-megatron-fsdp") is None
    assert argument(kit["megatron_args.sh"], "use-distributed-optimizer") == ""
    assert "only the optimizer's states are (stage 1)" in kit["README.md"]


def test_no_more_chunks_are_interleaved_than_there_are_layers() -> None:
    # 80 layers and both ends on 12 ranks: 82 / 12 = 6.8, so 6 chunks each, not 7.
    the_plan = plan(gpus=96, pp=12, vp=7, zero_stage=1, global_batch_seqs=960)
    kit = launch_files(the_plan, ask(nodes=12, tokenizer="org/t"))
    layout = argument(kit["megatron_args.sh"], "pipeline-model-parallel-layout")
    assert layout is not None
    assert len(layout.split("|")) == 72
    assert "no more than 6 chunks" in kit["README.md"]


@pytest.mark.parametrize(
    ("sequences", "size"),
    # Over 4 data-parallel ranks: 256 and 16 parts are multiples of the 4 stages; of 43 groups of
    # 4, 5 and 8 leave 3, of 6 and 7 one, of 9 seven.
    [(1024, None), (64, None), (172, "9")],
)
def test_interleaving_leaves_no_group_smaller_than_the_stages(
    sequences: int, size: str | None
) -> None:
    the_plan = plan(tp=8, pp=4, vp=2, zero_stage=1, global_batch_seqs=sequences)
    kit = launch_files(the_plan, ask(tokenizer="org/t"))
    name = "microbatch-group-size-per-virtual-pipeline-stage"
    assert argument(kit["megatron_args.sh"], name) == size


def test_amd_trains_with_its_own_megatron() -> None:
    asked = ask(gpu="mi300x", tokenizer="org/t")
    kit = launch_files(plan(tp=8, zero_stage=1, precision="fp8"), asked)
    assert "https://github.com/ROCm/Megatron-LM.git" in kit["setup.sh"]
    assert "transformer_engine[pytorch]" not in kit["setup.sh"]
    assert argument(kit["megatron_args.sh"], "fp8-recipe") == "delayed"
    assert "torch" not in kit["requirements.txt"]


@pytest.mark.parametrize(
    ("text", "short"),
    [("Our 70B: try №2", "our-70b-try-no2"), ("", "training-run"), ("7B", "run-7b"),
     ("$(reboot)", "reboot"), ("日本語", "training-run"), ("a" * 99, "a" * 40)],
)  # fmt: skip
def test_a_name_becomes_one_that_queues_take(text: str, short: str) -> None:
    assert slug(text) == short


# --- tables


@pytest.mark.parametrize(
    "name",
    ["launch_gpus.csv", "launch_settings.csv", "launch_clouds.csv", "launch_networks.csv"],
)
def test_every_row_of_a_table_has_source_date_and_confidence(name: str) -> None:
    with (ROOT / "data" / name).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            assert row["source"]
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["as_of"])
            assert row["confidence"] in ("high", "medium", "low")
            if "value" in row:
                assert float(row["low"]) <= float(row["value"]) <= float(row["high"])


def test_every_gpu_of_the_catalogue_has_a_row_or_a_reason() -> None:
    with (ROOT / "data" / "accelerators.csv").open(encoding="utf-8", newline="") as file:
        rows = [(r["sku"], r["vendor"]) for r in csv.DictReader(file)]
    for sku, vendor in rows:
        asked = one_node(gpu=sku)
        if vendor in ("NVIDIA", "AMD"):
            assert launch_files(plan(**TUNE), asked)
        else:
            with pytest.raises(InputError, match="there is no launch kit"):
                launch_files(plan(**TUNE), asked)


def test_every_network_between_nodes_of_gpus_has_a_kind() -> None:
    with (ROOT / "data" / "networks.csv").open(encoding="utf-8", newline="") as file:
        between = [r["id"] for r in csv.DictReader(file) if r["layer"] == "scale-out"]
    for network in between:
        if network == "roce-gaudi3":
            continue
        asked = ask(network=network_kind(network))
        assert "## What to watch" in launch_files(plan(), asked)["README.md"]
    with pytest.raises(InputError, match="'nvlink4' joins no nodes"):
        network_kind("nvlink4")


def test_nccl_is_told_the_way_so_that_it_never_crawls_over_tcp_unseen() -> None:
    told = {
        kind: re.findall(r"^NCCL_NET=(\S+)$", launch_files(plan(), ask(network=kind))["job.env"],
                         re.M)
        for kind in ("infiniband", "roce", "ethernet", "efa", "provider")
    }  # fmt: skip
    google = launch_files(plan(), ask(cloud="GCP", network="roce"))
    assert "NCCL_NET=" not in google["job.env"]
    assert "The provider's image brings NCCL's plug-in" in google["README.md"]
    assert told == {"infiniband": ["IB"], "roce": ["IB"], "ethernet": ["Socket"], "efa": [],
                    "provider": []}  # fmt: skip


def test_the_ask_is_what_the_kit_says() -> None:
    asked: LaunchAsk = ask(learning_rate=1e-3)
    kit = launch_files(plan(), asked)
    assert json.loads(kit["train.json"])["learning_rate"] == 1e-3
    assert "The learning rate is yours" in kit["README.md"]


def test_sharded_gradients_are_never_added_up_whole() -> None:
    # FSDP2 that skips its reduction keeps the whole gradient in 32 bits on every GPU: 262 GiB of a
    # model of 70 billion parameters, whatever the number of GPUs.
    tree = ast.parse(launch_files(*CASES["fsdp"])["train.py"])
    function = next(
        x for x in tree.body if isinstance(x, ast.FunctionDef) and x.name == "exchange_gradients"
    )
    scope: dict[str, Any] = {"DistributedDataParallel": type("Copies", (), {})}
    exec(compile(ast.Module([function], []), "train.py", "exec"), scope)
    called: list[tuple[str, bool]] = []
    sharded = SimpleNamespace(
        set_requires_all_reduce=lambda now: called.append(("copies", now)),
        set_requires_gradient_sync=lambda now: called.append(("shards", now)),
    )
    scope["exchange_gradients"](sharded, False)
    assert called == [("copies", False)]
    whole = scope["DistributedDataParallel"]()
    scope["exchange_gradients"](whole, False)
    assert whole.require_backward_grad_sync is False
