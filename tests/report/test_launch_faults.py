"""Launch kits hold none of the faults of the articles' listings."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from engine.errors import InputError
from engine.estimate.memory import USABLE, plan_memory
from engine.estimate.model_shape import shape_from_config
from engine.estimate.plan import TrainingPlan
from engine.report.launch import launch_files
from engine.report.launch.quote import slug
from tests.report.launch_sample import CASES, LLAMA_70B, argument, ask, files, one_node, plan

every_case = pytest.mark.parametrize("name", CASES)


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


def test_a_kernel_without_the_module_s_interface_stops_no_set_up() -> None:
    # Open modules go through DMA-BUF then; Volta has closed ones, and no other way.
    modern = launch_files(plan(), ask())["node_setup.yml"]
    volta = launch_files(plan(), ask(gpu="v100-sxm2-32gb"))["node_setup.yml"]
    assert modern.count("failed_when: false") == 1
    assert "failed_when" not in volta
    assert "modprobe nvidia_peermem" in volta


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


@pytest.mark.parametrize("gpu", ["b200-sxm-180gb", "b300-sxm", "rtx-5090", "rtx-pro-6000-server"])
def test_blackwell_gets_a_driver_and_a_cuda_that_know_it(gpu: str) -> None:
    """The playbook's driver 550 and CUDA 12.4 are of before it: 570 and 12.8 are the first.

    PyTorch's own builds bring CUDA: from 2.7 on that of 12.8. Only open modules drive Blackwell.
    """
    kit = launch_files(plan(), ask(gpu=gpu))
    branch = re.search(r'driver_branch: "(\d+)"', kit["node_setup.yml"])
    assert branch is not None
    assert int(branch.group(1)) >= 570
    assert "nvidia-headless-{{ driver_branch }}-server-open" in kit["node_setup.yml"]
    least = re.search(r"^torch>=(\d+)\.(\d+)$", kit["requirements.txt"], re.MULTILINE)
    assert least is not None
    assert (int(least.group(1)), int(least.group(2))) >= (2, 7)
    assert "12.4" not in kit["node_setup.yml"] + kit["setup.sh"] + kit["requirements.txt"]


def test_volta_gets_a_pytorch_that_still_knows_it() -> None:
    # PyTorch's table of CUDA builds: 12.8 holds Volta up to 2.10 and begins with Turing in 2.11.
    kit = launch_files(plan(), ask(gpu="v100-sxm2-32gb"))
    assert kit["requirements.txt"].startswith("torch>=2.8,<2.11\n")


@pytest.mark.parametrize(("gpu", "told"), [
    ("v100-sxm2-32gb", True), ("t4", True), ("a100-sxm-80gb", False), ("mi300x", False),
])  # fmt: skip
def test_cards_from_before_bf16_are_told_so(gpu: str, told: bool) -> None:
    # NVIDIA's data sheets list products in bf16 from Ampere on: Volta and Turing have fp16 alone.
    readme = launch_files(plan(), ask(gpu=gpu))["README.md"]
    assert ("does not multiply in bf16" in readme) is told


def test_a_model_of_nobody_is_refused() -> None:
    """The other listing trained `llama-3.5-70b`, which nobody published."""
    with pytest.raises(InputError) as refused:
        one_node(model="llama-3.5-70b")
    assert "an id such as org/name" in str(refused.value)
    assert one_node(model="meta-llama/Llama-3.3-70B-Instruct").model
    assert one_node(model="/shared/models/ours").model


def test_memory_follows_the_micro_batch_not_the_accumulation() -> None:
    """The other listing said that it would run out of memory without accumulation.

    Its 70B on 32 GPUs of 80 GB, 4 x 8 x 32 = 1,024 sequences; of 2,048 tokens, as it names none:
    16 bytes a parameter over 32 are 33 GiB, and 80 layers x 4 x 2,048 tokens x 8,192 x 2 bytes of
    kept inputs 10 GiB. Accumulating keeps the sum of gradients, 4 bytes a parameter over 32 or
    8 GiB, through the next pass, and saves none. A micro-batch of 32 keeps 80 GiB of inputs.
    """
    llama = shape_from_config(LLAMA_70B)
    usual = TrainingPlan(gpus=32, zero_stage=3, recompute="full", micro_batch=4, stack="fsdp",
                         global_batch_seqs=1024, seq_len=2048)  # fmt: skip
    plans = {"once": replace(usual, global_batch_seqs=128), "eight": usual,
             "whole": replace(usual, micro_batch=32)}  # fmt: skip
    assert [p.micro_batches for p in plans.values()] == [1, 8, 1]
    need = {name: float(plan_memory(llama, p).total[0]) for name, p in plans.items()}
    assert need["once"] <= need["eight"] <= need["once"] + 8.5
    assert 33 + 10 < need["eight"] < 79.6 * USABLE
    assert need["whole"] > 33 + 80
    kit = launch_files(usual, ask(shape=llama, nodes=4))
    told = json.loads(kit["train.json"])
    assert (told["micro_batch"], told["accumulation"], told["data_parallel"]) == (4, 8, 32)
    assert "4 x 8 x 32 = 1,024 sequences" in kit["README.md"]


@every_case
def test_nothing_is_called_a_ring(name: str) -> None:
    """The other listing's title promised one, and nothing in it made any."""
    for file, text in files(name).items():
        assert not re.search(r"\bring\b", text, re.IGNORECASE), file
