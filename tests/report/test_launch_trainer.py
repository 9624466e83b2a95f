"""Launch kits: which code trains a plan, and what is refused with words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.errors import InputError
from engine.estimate.plan import Task
from engine.estimate.search import best_plans
from engine.estimate.shape import ModelShape
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.training_job import Job, NothingFits
from engine.report.launch import Forecast, launch_files, network_kind
from engine.report.launch.job import plan_job
from tests.estimate.training_models import B8, B13, B70, B405, MIXTRAL, on
from tests.report.launch_sample import CASES, ask, files, plan


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
        ({"task": "qlora", "precision": "fp8"}, {"model": "org/m"}, "precision: products of 4-bit"),
        ({"task": "qlora", "precision": "fp32"}, {"model": "org/m"}, "precision: products of"),
        ({"task": "qlora"}, {"model": "org/m", "shape": MIXTRAL}, "task: 4-bit weights leave"),
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
        (B8, "a100-sxm-80gb", "ib-hdr200", "qlora"), (B70, "l40s", "eth-100g", "qlora"),
        (B405, "h100-sxm-80gb", "roce-400g", "qlora"),
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
