"""Megatron-LM's arguments for a plan, as (name, value) pairs; a value of None is a bare flag.

Names and meanings are those of `megatron/training/arguments.py` of Megatron-LM. Where a value is a
folder or an id of the user's, the pair holds the name of a variable of job.env, as "$NAME".
"""

from __future__ import annotations

from typing import Any

from engine.errors import InputError
from engine.report.launch.job import Job
from engine.report.launch.quote import shell
from engine.report.launch.tables import setting, whole

RELEASE = "core_v0.16.1"  # of Megatron-LM, whose arguments these are
SOURCE = "https://github.com/NVIDIA/Megatron-LM.git"
SOURCE_AMD = "https://github.com/ROCm/Megatron-LM.git"  # AMD's, of the same arguments
Pairs = list[tuple[str, str | None]]
_SHARDED = {2: "optim_grads", 3: "optim_grads_params"}


def megatron_fsdp(job: Job) -> bool:
    """Whether gradients or weights are sharded too, which Megatron-LM does in a mode of its own."""
    return job.plan.zero_stage >= 2


def arguments(job: Job) -> Pairs:
    """All arguments of `pretrain_gpt.py` but those of checkpoints."""
    return [*_sizes(job), *_network(job), *_experts(job), *_numbers(job), *_training(job)]


def script(pairs: Pairs, name: str, about: str) -> str:
    """A file for bash that sets an array of these arguments."""
    lines = []
    for argument, value in pairs:
        if value is None:
            lines.append(f"  --{argument}")
        elif value.startswith("$"):
            lines.append(f'  --{argument} "{value}"')
        else:
            lines.append(f"  --{argument} {shell(value)}")
    return (
        f"# {about}\n# shellcheck shell=bash disable=SC2034\n{name}=(\n"
        + "\n".join(lines)
        + "\n)\n"
    )


def _sizes(job: Job) -> Pairs:
    plan = job.plan
    found: Pairs = [
        ("tensor-model-parallel-size", str(plan.tp)),
        ("pipeline-model-parallel-size", str(plan.pp)),
        ("context-parallel-size", str(plan.cp)),
        ("micro-batch-size", str(plan.micro_batch)),
        ("global-batch-size", str(job.global_batch)),
        ("seq-length", str(plan.seq_len)),
        ("max-position-embeddings", str(plan.seq_len)),
    ]
    if plan.tp > 1 and (plan.sequence_parallel or job.shape.is_moe):
        found.append(("sequence-parallel", None))  # experts under tensor parallelism require it
    found += _stages(job)
    if megatron_fsdp(job):
        found += [
            ("use-megatron-fsdp", None),
            ("data-parallel-sharding-strategy", _SHARDED[plan.zero_stage]),
            ("init-model-with-meta-device", None),
            ("use-distributed-optimizer", None),
            ("no-gradient-accumulation-fusion", None),
            ("overlap-grad-reduce", None),
            ("overlap-param-gather", None),
        ]
    elif plan.zero_stage:
        found += [
            ("use-distributed-optimizer", None),
            ("overlap-grad-reduce", None),
            ("overlap-param-gather", None),
        ]
    else:
        found.append(("overlap-grad-reduce", None))
    copies = plan.dp * plan.cp // job.shard if plan.zero_stage else 1
    if copies > 1:
        found.append(("num-distributed-optimizer-instances", str(copies)))
    return found


def _stages(job: Job) -> Pairs:
    """How the layers fall on the stages; uneven ones are written out, the ends getting fewer."""
    plan, layers = job.plan, job.shape.layers
    if plan.pp == 1:
        return []
    chunks = plan.pp * plan.vp
    groups = _groups(plan.micro_batches, plan.pp) if plan.vp > 1 else []
    if layers % chunks == 0:
        if plan.vp == 1:
            return []
        return [("num-virtual-stages-per-pipeline-rank", str(plan.vp)), *groups]
    most = -(-layers // chunks)
    fewer = most * chunks - layers
    # The ends also hold the embedding and the loss, so they are the first to get a layer less.
    order = [0, chunks - 1, *range(1, chunks - 1)]
    short = set(order[:fewer])
    parts = ["t" * (most - (i in short)) for i in range(chunks)]
    parts[0] = "E" + parts[0]
    parts[-1] += "L"
    return [("pipeline-model-parallel-layout", "|".join(parts)), *groups]


def group_size(micro_batches: int, stages: int) -> int:
    """Micro-batches that a chunk runs at a time: the fewest that leave no last group too small."""
    return next(
        g for g in range(stages, micro_batches + 1)
        if micro_batches % g == 0 or micro_batches % g >= stages
    )  # fmt: skip


def _groups(micro_batches: int, stages: int) -> Pairs:
    size = group_size(micro_batches, stages)
    if size == stages:
        return []
    return [("microbatch-group-size-per-virtual-pipeline-stage", str(size))]


def _network(job: Job) -> Pairs:
    shape, data = job.shape, job.model_config
    found: Pairs = [
        ("num-layers", str(shape.layers)),
        ("hidden-size", str(shape.hidden)),
        ("ffn-hidden-size", str(shape.ffn)),
        ("num-attention-heads", str(shape.heads)),
        ("tokenizer-type", "HuggingFaceTokenizer"),
        ("tokenizer-model", "$TOKENIZER"),
        ("normalization", "RMSNorm"),
        ("norm-epsilon", repr(_number(data.get("rms_norm_eps"), 1e-5))),
        ("position-embedding-type", "rope"),
        *_positions(job),
        ("attention-dropout", "0.0"),
        ("hidden-dropout", "0.0"),
        ("disable-bias-linear", None),
    ]
    if shape.attention == "mla":
        found += _latent_attention(data)
    else:
        found.append(("kv-channels", str(shape.head_dim)))
        if shape.kv_heads != shape.heads:
            found += [("group-query-attention", None), ("num-query-groups", str(shape.kv_heads))]
    if data.get("attention_bias") or data.get("model_type") in ("qwen2", "qwen2_moe"):
        found.append(("add-qkv-bias", None))
    if str(data.get("model_type", "")).startswith("qwen3"):
        found.append(("qk-layernorm", None))
    if shape.gated_mlp:
        found.append(("swiglu", None))
    if not shape.tied_embeddings:
        found.append(("untie-embeddings-and-output-weights", None))
    if not job.plan.flash_attention:
        found.append(("attention-backend", "unfused"))
    return found


def rope(data: dict[str, Any]) -> dict[str, Any]:
    """The rotary positions of a configuration, from any of the places where they are kept."""
    found: dict[str, Any] = {}
    for key in ("rope_parameters", "rope_scaling"):
        nested = data.get(key)
        if isinstance(nested, dict):
            found |= nested
    kind = found.get("rope_type") or found.get("type") or "default"
    base = data.get("rope_theta") or found.get("rope_theta") or 10_000
    return {**found, "kind": str(kind), "base": _number(base, 10_000.0)}


def _number(value: Any, otherwise: float) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e12
    return float(value) if good else otherwise


def _positions(job: Job) -> Pairs:
    """Base and scaling of the rotary positions."""
    found = rope(job.model_config)
    pairs: Pairs = [("rotary-base", str(int(found["base"])))]
    factor = f"{_number(found.get('factor'), 1.0):g}"
    if job.shape.attention == "mla":
        if found["kind"] != "yarn":
            return [*pairs, ("rope-type", "rope")]
        return [
            *pairs,
            ("rope-type", "yarn"),
            ("rotary-scaling-factor", factor),
            ("mscale", f"{_number(found.get('mscale'), 1.0):g}"),
            ("mscale-all-dim", f"{_number(found.get('mscale_all_dim'), 0.0):g}"),
        ]
    if found["kind"] == "llama3":
        pairs += [("use-rope-scaling", None), ("rope-scaling-factor", factor)]
    return pairs


def notes(job: Job) -> list[str]:
    """What of the model's configuration the arguments leave out, in words for the README."""
    data, found = job.model_config, []
    if not data:
        found.append(
            "Only widths were known, no config.json: base of the rotary positions, biases and "
            "norms are Llama's first. Compare megatron_args.sh with the model's own."
        )
    if data.get("num_nextn_predict_layers"):
        found.append("Layers that predict further tokens are left out: the main model is trained.")
    return found


def _latent_attention(data: dict[str, Any]) -> Pairs:
    names = {"kv-lora-rank": "kv_lora_rank", "qk-head-dim": "qk_nope_head_dim",
             "qk-pos-emb-head-dim": "qk_rope_head_dim", "v-head-dim": "v_head_dim"}  # fmt: skip
    found: Pairs = [("multi-latent-attention", None), ("qk-layernorm", None)]
    for argument, key in names.items():
        value = data.get(key)
        if not isinstance(value, int) or value < 1:
            raise InputError(f"{key} is needed for latent attention", where="config",
                             right="the model's config.json")  # fmt: skip
        found.append((argument, str(value)))
    rank = data.get("q_lora_rank")
    if isinstance(rank, int) and rank > 0:
        found.append(("q-lora-rank", str(rank)))
    return found


def _experts(job: Job) -> Pairs:
    shape, plan, data = job.shape, job.plan, job.model_config
    if not shape.is_moe:
        return []
    width = shape.expert_ffn or shape.ffn
    found: Pairs = [
        ("expert-model-parallel-size", str(plan.ep)),
        ("num-experts", str(shape.experts)),
        ("moe-router-topk", str(shape.experts_per_token)),
        ("moe-ffn-hidden-size", str(width)),
        ("moe-token-dispatcher-type", "alltoall"),
        ("moe-grouped-gemm", None),
        ("moe-permute-fusion", None),
        ("moe-router-dtype", "fp32"),
    ]
    if plan.tp > 1:
        # Experts are split over ranks, not within them.
        found.append(("expert-tensor-parallel-size", "1"))
    if shape.shared_experts:
        found.append(("moe-shared-expert-intermediate-size", str(shape.shared_experts * width)))
    if shape.dense_layers:
        pattern = f"([0]*{shape.dense_layers}+[1]*{shape.layers - shape.dense_layers})"
        found.append(("moe-layer-freq", pattern))
    groups, chosen = data.get("n_group"), data.get("topk_group")
    if isinstance(groups, int) and isinstance(chosen, int) and groups > 1:
        found += [("moe-router-num-groups", str(groups)), ("moe-router-group-topk", str(chosen))]
    scale = _number(data.get("routed_scaling_factor"), 1.0)
    if scale != 1:
        found.append(("moe-router-topk-scaling-factor", f"{scale:g}"))
    if data.get("norm_topk_prob") is False:
        found.append(("moe-router-pre-softmax", None))
    if data.get("scoring_func") == "sigmoid":
        # Balanced by a bias that follows the load, as such routers are.
        found += [
            ("moe-router-score-function", "sigmoid"),
            ("moe-router-enable-expert-bias", None),
            ("moe-router-load-balancing-type", "none"),
        ]
    else:
        found += [
            ("moe-router-load-balancing-type", "aux_loss"),
            ("moe-aux-loss-coeff", repr(setting("expert_balance"))),
        ]
    return found


def _numbers(job: Job) -> Pairs:
    """Precision and recomputation."""
    plan = job.plan
    found: Pairs = []
    if plan.precision == "fp16":
        found.append(("fp16", None))
    elif plan.precision != "fp32":
        found.append(("bf16", None))
    if plan.precision == "fp8":
        form = "e4m3" if job.gpu.fp8_recipe == "mxfp8" else "hybrid"
        found += [("fp8-format", form), ("fp8-recipe", job.gpu.fp8_recipe)]
    if plan.precision == "fp4":
        found += [("fp4-format", "e2m1"), ("fp4-recipe", "nvfp4")]
    if plan.recompute == "full":
        found += [
            ("recompute-granularity", "full"),
            ("recompute-method", "uniform"),
            ("recompute-num-layers", "1"),
        ]
    elif plan.recompute == "selective":
        found += [("recompute-granularity", "selective"), ("recompute-modules", "core_attn")]
    return found


def _training(job: Job) -> Pairs:
    plan = job.plan
    found: Pairs = [
        ("data-path", "$DATASET"),
        ("split", "100,0,0"),
        ("train-iters", str(job.total_steps)),
        ("eval-iters", "0"),
        ("log-interval", str(whole("log_every_steps"))),
        ("log-throughput", None),
        ("optimizer", {"muon": "dist_muon"}.get(plan.optimizer, plan.optimizer)),
        ("lr", f"{job.learning_rate:.6g}"),
        ("min-lr", f"{job.min_learning_rate:.6g}"),
        ("lr-decay-style", "cosine"),
        ("lr-warmup-iters", str(job.warmup_steps)),
        ("weight-decay", repr(setting("weight_decay"))),
        ("clip-grad", repr(setting("clip_norm"))),
        ("seed", str(whole("seed"))),
        ("exit-signal-handler", None),
    ]
    if plan.optimizer != "sgd":
        found += [("adam-beta1", repr(setting("beta1"))), ("adam-beta2", repr(setting("beta2")))]
    if plan.cpu_offload:
        found += [("optimizer-cpu-offload", None), ("overlap-cpu-optimizer-d2h-h2d", None),
                  ("use-precision-aware-optimizer", None)]  # fmt: skip
    return found


def checkpoint_arguments(job: Job) -> Pairs:
    """Where to save and to resume from, how often, and what is kept."""
    found: Pairs = [
        ("save", "$CHECKPOINT_DIR"),
        ("load", "$CHECKPOINT_DIR"),
        ("save-interval", str(job.save_steps)),
        ("save-retain-interval", str(job.save_steps * whole("retain_every"))),
    ]
    if megatron_fsdp(job):
        found.append(("ckpt-format", "fsdp_dtensor"))
    else:
        found += [("ckpt-format", "torch_dist"), ("ckpt-fully-parallel-load", None),
                  ("async-save", None)]  # fmt: skip
    return found
