"""Every file of a kit is read by its own tool, or by a schema of the tool's documented options."""

from __future__ import annotations

import argparse
import ast
import csv
import importlib
import importlib.util
import inspect
import json
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from transformers import BitsAndBytesConfig

from engine.report.launch import launch_files
from engine.report.launch.job import plan_job
from tests.report.launch_folder import TORCHRUN, local, play, run, tool, write
from tests.report.launch_sample import CASES

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "launch"
BIN = Path(sys.executable).parent
yaml: Any = importlib.import_module("yaml")
jsonschema: Any = importlib.import_module("jsonschema")
every_case = pytest.mark.parametrize("name", CASES)


# --- SkyPilot


def schema(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((FIXTURES / name).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(data)
    return data


@every_case
def test_skypilot_s_task_follows_its_documentation(name: str) -> None:
    plan, ask = CASES[name]
    text = launch_files(plan, ask).get("skypilot.yaml")
    if text is None:
        pytest.fail("every case rents somewhere that SkyPilot knows")
    task = yaml.safe_load(text)
    jsonschema.validate(task, schema("skypilot_task.schema.json"))
    gpus = int(task["resources"]["accelerators"].partition(":")[2])
    assert task["num_nodes"] * gpus == plan.gpus
    for part in ("setup", "run"):
        done = subprocess.run(["bash", "-n"], input=task[part], text=True, check=False)
        assert done.returncode == 0


def test_the_first_of_skypilot_s_nodes_is_the_head(tmp_path: Path) -> None:
    task = yaml.safe_load(launch_files(*CASES["fsdp"])["skypilot.yaml"])
    local("fsdp", tmp_path)
    script = task["run"].replace("CHECKPOINT_MOUNT=/checkpoints", f"CHECKPOINT_MOUNT={tmp_path}")
    done = run(tmp_path, "bash", "-c", script, PATH=play(tmp_path, torchrun=TORCHRUN),
               SKYPILOT_TASK_ID="sky-1", SKYPILOT_NODE_IPS="10.0.0.7\n10.0.0.8",
               SKYPILOT_NODE_RANK="1")  # fmt: skip
    assert done.returncode == 0, done.stderr
    for argument in ("--rdzv-endpoint=10.0.0.7:29500", "--rdzv-id=sky-1",
                     "--rdzv-conf=is_host=false"):  # fmt: skip
        assert argument in done.stdout.splitlines()


# --- Ansible


def test_ansible_reads_the_playbook(kit: Path) -> None:
    done = run(kit, tool("ansible-playbook"), "--syntax-check", "--inventory", "n1,n2,",
               "node_setup.yml", ANSIBLE_HOME=str(kit / "ansible"),
               ANSIBLE_LOCALHOST_WARNING="False", LC_ALL="C.UTF-8")  # fmt: skip
    assert done.returncode == 0, done.stderr


@lru_cache
def module_options(name: str) -> dict[str, Any]:
    """What Ansible's own documentation of a module lists."""
    module = importlib.util.find_spec(f"ansible.modules.{name}")
    assert module is not None, f"Ansible has no module {name}"
    assert module.origin is not None
    tree = ast.parse(Path(module.origin).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DOCUMENTATION":
            options: dict[str, Any] = yaml.safe_load(ast.literal_eval(node.value))["options"]
            return options
    raise AssertionError(f"{name} is not documented")


TASK_WORDS = {"name", "register", "when", "loop", "changed_when", "failed_when"}


@every_case
def test_every_task_uses_options_that_its_module_has(name: str) -> None:
    (play_,) = yaml.safe_load(launch_files(*CASES[name])["node_setup.yml"])
    assert set(play_) == {"name", "hosts", "become", "gather_facts", "vars", "tasks"}
    for task in play_["tasks"]:
        (module,) = set(task) - TASK_WORDS
        options = module_options(module.removeprefix("ansible.builtin."))
        known = set(options) | {alias for o in options.values() for alias in o.get("aliases", ())}
        assert set(task[module]) <= known, task
        for option, value in task[module].items():
            choices = options.get(option, {}).get("choices")
            assert choices is None or value in choices, task


# --- training settings


@every_case
def test_deepspeed_s_configuration_follows_its_documentation(name: str) -> None:
    files = launch_files(*CASES[name])
    if "deepspeed.json" not in files:
        return
    data = json.loads(files["deepspeed.json"])
    jsonschema.validate(data, schema("deepspeed.schema.json"))
    offloads = CASES[name][0].cpu_offload
    assert ("offload_optimizer" in data["zero_optimization"]) == offloads


def test_some_case_uses_deepspeed() -> None:
    assert [n for n in CASES if "deepspeed.json" in launch_files(*CASES[n])]


@lru_cache
def megatron_parser() -> argparse.ArgumentParser:
    """A parser of Megatron-LM's arguments, which like it takes no shortened names."""
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    kinds: dict[str, Any] = {"int": int, "float": float, "text": str, "choice": str}
    with (FIXTURES / "megatron_arguments.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["kind"] == "flag":
                parser.add_argument(f"--{row['argument']}", action="store_true")
            else:
                parser.add_argument(
                    f"--{row['argument']}", type=kinds[row["kind"]],
                    choices=row["choices"].split() or None,
                )  # fmt: skip
    return parser


def megatron_cases() -> list[str]:
    return [n for n in CASES if "megatron_args.sh" in launch_files(*CASES[n])]


@pytest.mark.parametrize("name", megatron_cases())
def test_megatron_takes_the_arguments(name: str, tmp_path: Path) -> None:
    plan, ask = CASES[name]
    write(launch_files(plan, ask), tmp_path)
    done = run(tmp_path, "bash", "-c", "set -eu; . ./job.env; . ./megatron_args.sh; "
               ". ./checkpoint_args.sh; "
               'printf "%s\\0" "${MEGATRON_ARGS[@]}" "${CHECKPOINT_ARGS[@]}"')  # fmt: skip
    assert done.returncode == 0, done.stderr
    words = done.stdout.split("\0")[:-1]
    names = [word for word in words if word.startswith("--")]
    assert len(names) == len(set(names))
    args = megatron_parser().parse_args(words)
    assert (args.data_path, args.save) == (ask.dataset, ask.checkpoint_dir)
    _obeys_megatron(args, plan.gpus)


def _obeys_megatron(args: argparse.Namespace, world: int) -> None:
    """Rules that Megatron-LM checks when it starts."""
    tp, pp = args.tensor_model_parallel_size, args.pipeline_model_parallel_size
    model = tp * pp * args.context_parallel_size
    assert world % model == 0
    ranks = world // model
    assert args.global_batch_size % (args.micro_batch_size * ranks) == 0
    assert args.num_attention_heads % tp == 0
    assert args.ffn_hidden_size % tp == 0
    if args.sequence_parallel:
        assert tp > 1
        assert args.seq_length % tp == 0
    assert not (args.overlap_param_gather and not args.overlap_grad_reduce)
    assert not (args.overlap_param_gather and not args.use_distributed_optimizer)
    chunks = pp * (args.num_virtual_stages_per_pipeline_rank or 1)
    if args.pipeline_model_parallel_layout:
        assert args.num_virtual_stages_per_pipeline_rank is None
        layout = args.pipeline_model_parallel_layout
        assert layout.count("t") == args.num_layers
        assert len(layout.split("|")) % pp == 0
    else:
        assert args.num_layers % chunks == 0
    assert not (args.fp8_format and args.fp4_format)
    if args.num_experts:
        assert args.num_experts % args.expert_model_parallel_size == 0
        assert (world // pp) % args.expert_model_parallel_size == 0
        assert tp == 1 or args.sequence_parallel
    if args.recompute_granularity == "full":
        assert args.recompute_method
        assert args.recompute_num_layers
    if args.async_save:
        assert args.ckpt_format == "torch_dist"
    if args.optimizer_cpu_offload:
        assert args.use_precision_aware_optimizer


# --- Megatron-Bridge


@lru_cache
def bridge_fields() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    with (FIXTURES / "bridge_fields.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["callable"], set()).add(row["field"])
    return found


def bridge_cases() -> list[str]:
    return [n for n in CASES if "train_bridge.py" in launch_files(*CASES[n])]


@pytest.mark.parametrize("name", bridge_cases())
def test_megatron_bridge_has_every_field_that_is_set(name: str) -> None:
    files = launch_files(*CASES[name])
    settings = json.loads(files["train.json"])
    assert set(settings["split"]) <= bridge_fields()["model provider"]
    assert settings["mixed_precision"] in bridge_fields()["mixed precision"]
    for node in ast.walk(ast.parse(files["train_bridge.py"])):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            given = {k.arg for k in node.keywords}
            if given and node.func.id in bridge_fields():
                assert given <= bridge_fields()[node.func.id], node.func.id
            elif given:
                pytest.fail(f"{node.func.id} is not in the list of Megatron-Bridge's callables")
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            assert isinstance(node.value, ast.Name)
            kind = {"model": "model provider", "optimizer": "optimizer"}[node.value.id]
            assert node.attr in bridge_fields()[kind]


def test_the_bridge_lays_uneven_layers_out_like_the_arguments() -> None:
    text = launch_files(*CASES["long context"])["train_bridge.py"]
    (function,) = (n for n in ast.parse(text).body
                   if isinstance(n, ast.FunctionDef) and n.name == "layout")  # fmt: skip
    names: dict[str, Any] = {}
    exec(compile(ast.Module([function], []), "layout", "exec"), names)
    args = launch_files(*CASES["uneven stages"])["megatron_args.sh"]
    assert f"--pipeline-model-parallel-layout '{names['layout'](126, 16, 8)}'" in args


# --- programs


def test_python_and_ruff_read_the_programs(kit: Path) -> None:
    programs = sorted(p.name for p in kit.glob("*.py"))
    for name in programs:
        compile((kit / name).read_text(encoding="utf-8"), name, "exec")
    for command in ("check", "--select=E,F,W,I,B,UP,SIM,C4"), ("format", "--check"):
        done = run(kit, tool("ruff"), command[0], "--isolated", "--line-length=100", *command[1:],
                   *programs)  # fmt: skip
        assert done.returncode == 0, done.stdout


def test_4_bit_weights_are_packed_into_the_numbers_that_are_computed_with() -> None:
    """The condition on which bitsandbytes' weights can be sharded (its FSDP-QLoRA guide)."""
    options = set(inspect.signature(BitsAndBytesConfig.__init__).parameters)
    tree = ast.parse(launch_files(*CASES["qlora, sharded"])["train.py"])
    (call,) = (n for n in ast.walk(tree) if isinstance(n, ast.Call)
               and isinstance(n.func, ast.Name) and n.func.id == "BitsAndBytesConfig")  # fmt: skip
    given = {k.arg: ast.unparse(k.value) for k in call.keywords}
    assert set(given) <= options
    assert given["load_in_4bit"] == "True"
    assert given["bnb_4bit_quant_storage"] == given["bnb_4bit_compute_dtype"] == "torch.bfloat16"


@pytest.mark.parametrize(
    ("name", "gpus", "shard"),
    # Whole on the only GPU; over all four; over each machine's eight, with two copies.
    [("qlora", 1, 1), ("qlora, sharded", 4, 4), ("qlora, sharded by machine", 16, 8)],
)
def test_4_bit_weights_are_sharded_over_as_many_gpus_as_planned(
    name: str, gpus: int, shard: int
) -> None:
    kit = launch_files(*CASES[name])
    settings = json.loads(kit["train.json"])
    assert (settings["gpus"], settings["shard_size"]) == (gpus, shard)
    assert settings["quantized"]
    assert settings["lora_rank"] == 16
    assert {"peft", "bitsandbytes", "accelerate"} <= {
        line.partition(">")[0] for line in kit["requirements.txt"].splitlines()
    }
    assert ("packs the weights into 4 bits" in kit["README.md"]) == (shard > 1)


@every_case
def test_every_setting_is_read_and_every_one_that_is_read_is_set(name: str) -> None:
    files = launch_files(*CASES[name])
    if "train.json" not in files:
        return
    given = set(json.loads(files["train.json"])) | set(json.loads(files["checkpoint.json"]))
    programs = ("train.py", "train_deepspeed.py", "train_bridge.py", "common.py")
    program = "".join(files.get(name, "") for name in programs)
    read = set(re.findall(r"(?:settings|saves)\[\"(\w+)\"\]", program))
    assert read - {"dataset", "checkpoint_dir"} == given


@every_case
def test_every_package_that_is_imported_is_installed_by_the_kit(name: str) -> None:
    files = launch_files(*CASES[name])
    wanted = {re.split("[>=]", line)[0] for line in files["requirements.txt"].splitlines()}
    if not plan_job(*CASES[name]).gpu.nvidia:
        wanted.add("torch")  # AMD's image brings it
    at_the_top = {
        alias.split(".")[0]
        for file, text in files.items() if file.endswith(".py")
        for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in ([node.module or ""] if isinstance(node, ast.ImportFrom)
                      else [a.name for a in node.names])
    }  # fmt: skip
    own = {file.removesuffix(".py") for file in files}
    if "megatron-bridge" in {w.split("<")[0] for w in wanted}:
        own.add("megatron")
    assert at_the_top - own - set(sys.stdlib_module_names) <= wanted
