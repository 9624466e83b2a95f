"""Plans and asks that the launch tests share: one for each way of training, and their kits."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from engine.estimate.model_shape import shape_from_config
from engine.estimate.plan import TrainingPlan
from engine.estimate.shape_from_size import shape_from_size
from engine.report.launch import Forecast, LaunchAsk, launch_files

FORECAST = Forecast(12.0, 9.0, 15.0, 60.0, 75.2, {"weights": 3.1, "activations": 20.0})
DEEPSEEK = {
    "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 7168,
    "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
    "num_attention_heads": 128, "num_key_value_heads": 128, "n_shared_experts": 1,
    "n_routed_experts": 256, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
    "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "vocab_size": 129280, "rope_theta": 10000, "rms_norm_eps": 1e-6,
    "scoring_func": "sigmoid", "tie_word_embeddings": False, "n_group": 8, "topk_group": 4,
    "routed_scaling_factor": 2.5, "norm_topk_prob": True, "num_nextn_predict_layers": 1,
    "rope_scaling": {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0},
}  # fmt: skip
LLAMA_405B = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 16384,
    "intermediate_size": 53248, "num_hidden_layers": 126, "num_attention_heads": 128,
    "num_key_value_heads": 8, "vocab_size": 128256, "rope_theta": 500000.0,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0}, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}  # fmt: skip
LLAMA_70B = {
    **LLAMA_405B, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
    "num_attention_heads": 64,
}  # fmt: skip


def ask(**changes: Any) -> LaunchAsk:
    """70B from scratch on 16 nodes of one's own, unless told otherwise."""
    usual = LaunchAsk(
        run_name="Our 70B", shape=shape_from_size(70), gpu="h100-sxm-80gb", gpus_per_node=8,
        nodes=16, network="infiniband", dataset="/shared/data/tokens", tokens=2e12,
        checkpoint_minutes=30, time_limit_hours=48, forecast=FORECAST,
    )  # fmt: skip
    return replace(usual, **changes)


def one_node(**changes: Any) -> LaunchAsk:
    """8B to be tuned on one node, unless told otherwise."""
    usual = {
        "run_name": "Tune 8B", "shape": shape_from_size(8), "nodes": 1, "network": "none",
        "model": "Qwen/Qwen3-8B", "tokens": 1e8,
    }  # fmt: skip
    return ask(**{**usual, **changes})


def plan(**changes: Any) -> TrainingPlan:
    """128 GPUs, everything sharded, batches of 1,024 sequences of 4,096 tokens."""
    usual: dict[str, Any] = {
        "gpus": 128, "zero_stage": 3, "global_batch_seqs": 1024, "recompute": "full",
        "stack": "fsdp",
    }  # fmt: skip
    return TrainingPlan(**{**usual, **changes})


TUNE = {"gpus": 8, "task": "finetune", "global_batch_seqs": 64, "recompute": "none"}
CASES: dict[str, tuple[TrainingPlan, LaunchAsk]] = {
    "fsdp": (plan(), ask()),
    "hybrid sharding": (plan(shard_size=8), ask(network="roce", subnet_manager_host="")),
    "replicas": (plan(**{**TUNE, "zero_stage": 0}), one_node()),
    "fine-tuning": (plan(**{**TUNE, "zero_stage": 2}), one_node(expected_bus_gb_per_s=480.0)),
    "lora": (plan(**{**TUNE, "task": "lora"}), one_node(cloud="Lambda")),
    "qlora": (
        plan(**{**TUNE, "gpus": 1, "task": "qlora", "zero_stage": 0}),
        one_node(gpus_per_node=1, gpu="rtx-4090"),
    ),
    "qlora, sharded": (
        plan(**{**TUNE, "gpus": 4, "task": "qlora", "recompute": "full"}),
        one_node(gpus_per_node=4, gpu="l40s", shape=shape_from_size(70), model="org/base-70b"),
    ),
    "qlora, sharded by machine": (
        plan(**{**TUNE, "gpus": 16, "task": "qlora", "shard_size": 8}),
        one_node(nodes=2, network="ethernet", gpu="rtx-4090", shape=shape_from_size(32)),
    ),
    "8-bit adam": (plan(**{**TUNE, "optimizer": "adam8bit"}), one_node()),
    "amd": (plan(**TUNE), one_node(gpu="mi300x")),
    "offload": (plan(**{**TUNE, "zero_stage": 3, "cpu_offload": True}), one_node()),
    "half precision": (
        plan(**{**TUNE, "zero_stage": 2, "precision": "fp16", "task": "pretrain"}),
        one_node(gpu="v100-sxm2-32gb", model=""),
    ),
    "megatron": (
        plan(tp=8, pp=4, vp=2, zero_stage=1, recompute="selective", stack="megatron"),
        ask(
            cloud="AWS", region="us-east-1", network="efa", spot=True, tokenizer="org/tokenizer",
            dataset="s3://our-bucket/corpus/pile_text_document",
            checkpoint_dir="s3://our-bucket/runs",
        ),
    ),
    "uneven stages": (
        plan(gpus=16_384, tp=8, pp=16, vp=8, zero_stage=1, seq_len=8192, global_batch_seqs=2048,
             stack="megatron"),
        ask(nodes=2048, shape=shape_from_config(LLAMA_405B), config=json.dumps(LLAMA_405B),
            network="roce", tokenizer="/shared/tokenizer", tokens=15.6e12),
    ),
    "experts": (
        plan(gpus=2048, tp=2, pp=16, ep=64, zero_stage=1, precision="fp8", stack="megatron"),
        ask(nodes=256, shape=shape_from_config(DEEPSEEK), config=json.dumps(DEEPSEEK),
            subnet_manager_host="head-1", tokenizer="org/tokenizer"),
    ),
    "adapters, split": (
        plan(gpus=4, tp=4, zero_stage=1, task="lora", recompute="none", global_batch_seqs=64,
             stack="megatron"),
        one_node(gpus_per_node=4, shape=shape_from_size(70), model="org/base-70b"),
    ),
    "tuned experts": (
        plan(gpus=96, tp=2, pp=3, vp=2, ep=8, zero_stage=1, task="finetune", precision="fp8",
             global_batch_seqs=80, stack="megatron"),
        ask(nodes=12, model="org/experts", shape=shape_from_size(235, 22), spot=True, cloud="AWS",
            checkpoint_dir="s3://our-bucket/runs", dataset="s3://our-bucket/corpus/tune"),
    ),
    "long context": (
        plan(cp=4, tp=8, zero_stage=1, seq_len=131_072, global_batch_seqs=32, task="finetune",
             stack="megatron"),
        ask(model="org/base-70b", shape=shape_from_config(LLAMA_70B), gpu="b200-sxm-180gb"),
    ),
    "amd megatron": (
        plan(tp=8, zero_stage=1, precision="fp8", stack="megatron"),
        ask(gpu="mi300x", tokenizer="org/t"),
    ),
    "sharded 8-bit": (
        plan(precision="fp8", stack="megatron"), ask(gpu="b200-sxm-180gb", tokenizer="org/t"),
    ),
}  # fmt: skip


def files(name: str) -> dict[str, str]:
    """The kit of a case."""
    return launch_files(*CASES[name])


def argument(text: str, name: str) -> str | None:
    """The value of a Megatron-LM argument; empty for a flag, None when it is not there."""
    found = re.search(rf"^  --{name}(?: (.*))?$", text, re.M)
    return None if found is None else (found[1] or "").strip("'\"")
