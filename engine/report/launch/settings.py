"""The settings files of the training scripts: train.json, checkpoint.json and deepspeed.json."""

from __future__ import annotations

import json
from typing import Any

from engine.report.launch import megatron
from engine.report.launch.job import Job
from engine.report.launch.tables import setting, whole


def to_json(data: dict[str, Any]) -> str:
    """Readable JSON in plain ASCII, the same every time."""
    return json.dumps(data, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def train_settings(job: Job) -> dict[str, Any]:
    """What `train.py` and `train_deepspeed.py` read; each reads every key of its own part."""
    plan = job.plan
    found: dict[str, Any] = {
        "model": job.model,
        "from_pretrained": plan.task != "pretrain",
        "gpus": plan.gpus,
        "data_parallel": plan.dp,
        "micro_batch": plan.micro_batch,
        "accumulation": job.accumulation,
        "global_batch": job.global_batch,
        "seq_len": plan.seq_len,
        "total_steps": job.total_steps,
        "learning_rate": job.learning_rate,
        "min_learning_rate": job.min_learning_rate,
        "warmup_steps": job.warmup_steps,
        "compute_dtype": {"fp32": "float32", "fp16": "float16"}.get(plan.precision, "bfloat16"),
        "attention": "sdpa" if plan.flash_attention else "eager",
        # Fused attention computes its core again by itself, so "selective" asks for nothing more.
        "recompute": plan.recompute == "full"
        or (plan.recompute == "selective" and not plan.flash_attention),
        "log_every_steps": whole("log_every_steps"),
        "seed": whole("seed"),
    }
    if job.trainer == "deepspeed":
        return found
    return found | {
        "timeout_minutes": whole("hang_minutes" if plan.task == "pretrain" else "loading_minutes"),
        "shard_size": job.shard,
        "reshard_after_forward": plan.zero_stage == 3,
        "stored_dtype": _stored(job),
        "optimizer": plan.optimizer,
        "weight_decay": setting("weight_decay"),
        "betas": [setting("beta1"), setting("beta2")],
        "clip_norm": setting("clip_norm"),
        "lora_rank": plan.lora_rank if plan.task in ("lora", "qlora") else 0,
        "quantized": plan.task == "qlora",
    }


# Recipes of Megatron-Bridge by precision and scaling.
BRIDGE = {
    ("bf16", ""): "bf16_mixed",
    ("fp16", ""): "fp16_mixed",
    ("fp8", "tensorwise"): "bf16_with_fp8_current_scaling_mixed",
    ("fp8", "mxfp8"): "bf16_with_mxfp8_mixed",
    ("fp4", ""): "bf16_with_nvfp4_mixed",
}
SHARDS = {2: "optim_grads", 3: "optim_grads_params"}


def bridge_settings(job: Job) -> dict[str, Any]:
    """What `train_bridge.py` reads; `split` holds fields of Megatron-Bridge's model provider."""
    plan = job.plan
    lora = plan.task == "lora"
    split: dict[str, Any] = {
        "tensor_model_parallel_size": plan.tp,
        "pipeline_model_parallel_size": plan.pp,
        "context_parallel_size": plan.cp,
        "sequence_parallel": plan.tp > 1 and (plan.sequence_parallel or job.shape.is_moe),
    }
    if job.shape.is_moe:
        split |= {"expert_model_parallel_size": plan.ep, "expert_tensor_parallel_size": 1}
    if plan.vp > 1:
        split |= {
            "microbatch_group_size_per_vp_stage": megatron.group_size(plan.micro_batches, plan.pp)
        }
    if plan.recompute == "full":
        split |= {"recompute_granularity": "full", "recompute_method": "uniform",
                  "recompute_num_layers": 1}  # fmt: skip
    elif plan.recompute == "selective":
        split |= {"recompute_granularity": "selective", "recompute_modules": ["core_attn"]}
    return {
        "model": job.model,
        "gpus": plan.gpus,
        "split": split,
        "pipeline": plan.pp,
        "chunks": plan.vp,
        "shards": SHARDS.get(plan.zero_stage, "no_shard"),
        "distributed_optimizer": plan.zero_stage > 0 and not lora,
        "cpu_offload": plan.cpu_offload,
        "micro_batch": plan.micro_batch,
        "global_batch": job.global_batch,
        "seq_len": plan.seq_len,
        "total_steps": job.total_steps,
        "warmup_steps": job.warmup_steps,
        "learning_rate": job.learning_rate,
        "min_learning_rate": job.min_learning_rate,
        "weight_decay": setting("weight_decay"),
        "betas": [setting("beta1"), setting("beta2")],
        "clip_norm": setting("clip_norm"),
        "lora_rank": plan.lora_rank if lora else 0,
        "mixed_precision": BRIDGE[
            plan.precision, job.gpu.fp8_recipe if plan.precision == "fp8" else ""
        ],
        "log_every_steps": whole("log_every_steps"),
        "seed": whole("seed"),
    }


def _stored(job: Job) -> str:
    """Precision in which the weights are kept: 32 bits where the optimizer updates such a copy."""
    plan = job.plan
    if plan.task in ("lora", "qlora"):
        return "bfloat16"  # frozen; the adapters are kept in 32 bits
    if plan.precision == "fp32" or plan.master_weights:
        return "float32"
    return "bfloat16"


def checkpoint_settings(job: Job) -> dict[str, Any]:
    """What is saved when, and how much of it is kept."""
    if job.trainer == "bridge":
        return {"save_steps": job.save_steps, "keep_checkpoints": whole("keep_checkpoints")}
    found: dict[str, Any] = {
        "checkpoint_minutes": job.save_minutes,
        "keep_checkpoints": whole("keep_checkpoints"),
    }
    if job.trainer == "fsdp2":
        # The states of 8-bit Adam can't be copied in the background.
        found["background_save"] = job.plan.optimizer != "adam8bit"
    return found


def deepspeed_settings(job: Job) -> dict[str, Any]:
    """DeepSpeed's configuration; the learning rate in it is set anew at every step."""
    plan = job.plan
    zero: dict[str, Any] = {
        "stage": plan.zero_stage,
        "overlap_comm": True,
        "contiguous_gradients": True,
    }
    if plan.cpu_offload:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if plan.zero_stage == 3:
        zero["stage3_gather_16bit_weights_on_model_save"] = False
    found: dict[str, Any] = {
        "train_batch_size": job.global_batch,
        "train_micro_batch_size_per_gpu": plan.micro_batch,
        "gradient_accumulation_steps": job.accumulation,
        "gradient_clipping": setting("clip_norm"),
        "optimizer": {
            "type": "AdamW",
            "params": {
                "lr": job.learning_rate,
                "betas": [setting("beta1"), setting("beta2")],
                "weight_decay": setting("weight_decay"),
            },
        },
        "zero_optimization": zero,
        "steps_per_print": 2**31 - 1,
    }
    if plan.precision == "bf16":
        found["bf16"] = {"enabled": True}
    elif plan.precision == "fp16":
        found["fp16"] = {"enabled": True, "loss_scale": 0, "initial_scale_power": 16}
    return found
