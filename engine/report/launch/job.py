"""From a plan and an ask to the numbers of a run: which code trains it, batch, steps, rates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from engine.catalogue import load_catalogue
from engine.cost.cloud import spot_terms
from engine.decide.priors import likely
from engine.errors import InputError
from engine.estimate.plan import TrainingPlan
from engine.estimate.reliability import fleet_mtbf
from engine.estimate.run_reliability import exact_interval
from engine.estimate.shape import ModelShape
from engine.estimate.whole_run import run_parameters
from engine.report.launch.adapt import ENDS, runnable
from engine.report.launch.ask import LaunchAsk
from engine.report.launch.tables import Gpu, cloud_of, gpu_of, owner_of, setting, whole

Trainer = Literal["fsdp2", "deepspeed", "megatron", "bridge"]
MODEL_FOLDER = "model"
TEXT = {"decoder", "hybrid", "state-space"}
# Models of text and images that transformers also loads as models of text.
TEXT_WITH_IMAGES = {"gemma3", "gemma3n", "llama4"}
# Architectures whose every layer Megatron-LM's arguments can state.
IN_MEGATRON = {"llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "deepseek_v2",
               "deepseek_v3"}  # fmt: skip
BLOCK = 256  # elements; tensor ranks and matrix units get equal whole parts of a width


@dataclass(frozen=True, slots=True)
class Job:
    """Everything that the kit's files are written from; sequences, steps, minutes and rates.

    trainer : whose code runs the plan, and why in `because`
    accumulation : micro-batches of a step on each data-parallel rank
    global_batch : sequences of a step as they come out, micro-batch x accumulation x ranks
    plan, notes : as the trainer runs it, and what differs from the plan that was asked for
    shape : the ask's, its widths rounded where they came from a size alone
    shard : ranks that share one copy of the sharded states
    model : what the training script loads: an id, a folder, or the kit's own configuration
    """

    plan: TrainingPlan
    ask: LaunchAsk
    shape: ModelShape
    notes: tuple[str, ...]
    gpu: Gpu
    trainer: Trainer
    because: str
    accumulation: int
    global_batch: int
    shard: int
    total_steps: int
    warmup_steps: int
    learning_rate: float
    model: str
    model_config: dict[str, Any]

    @property
    def tokenizer(self) -> str:
        """Where the tokenizer comes from; the kit's own configuration brings none."""
        return self.ask.tokenizer or self.ask.model

    @property
    def min_learning_rate(self) -> float:
        """At the end of the cosine."""
        return float(f"{self.learning_rate * setting('learning_rate_floor'):.6g}")

    @property
    def limit_minutes(self) -> int:
        """Of one job of the queue."""
        return max(math.ceil(self.ask.time_limit_hours * 60), 1)

    @property
    def stop_minutes(self) -> int:
        """Before a job's limit at which training stops, so that a step and a save still fit."""
        step = math.ceil(self.ask.forecast.step_high_s / 60)
        return max(whole("stop_margin_minutes"), 2 * step + whole("stop_margin_minutes") // 3)

    @property
    def save_minutes(self) -> float:
        """Minutes of work between two checkpoints, as asked for or as loses least."""
        if self.ask.checkpoint_minutes is not None:
            return self.ask.checkpoint_minutes
        run_hours = self.total_steps * self.ask.forecast.step_s / 3600
        nodes = self.ask.nodes if self.ask.spot else 0
        return best_save_minutes(
            self.plan.gpus, run_hours, spot_nodes=nodes, provider=self.ask.cloud
        )

    @property
    def save_steps(self) -> int:
        """Steps between two checkpoints at the likely speed."""
        return max(round(self.save_minutes * 60 / self.ask.forecast.step_s), 1)


def best_save_minutes(
    gpus: int, run_hours: float, *, spot_nodes: int = 0, provider: str = ""
) -> float:
    """Minutes of work between checkpoints that lose least on so many GPUs: the reliability page's.

    No longer than the run, which ends in a save; in whole minutes.

    spot_nodes : machines that the provider may take back; each stops the run without a last save
        where its warning is shorter than one
    """
    save = likely("checkpoint_stall_h")
    stops = 1 / float(fleet_mtbf(run_parameters()["device_mtbf_gpu_hours"][1], float(gpus)))
    if spot_nodes and float(spot_terms(provider, load_catalogue().running).notice) < save:
        stops += spot_nodes * likely("spot_interruptions_per_node_day") / 24
    best = float(exact_interval(save, 1 / stops))
    return float(max(round(min(best, run_hours) * 60), 1))


def plan_job(plan: TrainingPlan, ask: LaunchAsk) -> Job:
    """Resolve a plan.

    Raises
    ------
    InputError : when plan and machines don't agree, or no trainer of the kit can run the plan
    """
    if ask.gpus != plan.gpus:
        raise InputError(
            f"{ask.nodes} nodes of {ask.gpus_per_node} GPUs are not the plan's {plan.gpus}",
            where="nodes", right="nodes x GPUs a node = the plan's GPUs",
        )  # fmt: skip
    gpu = gpu_of(ask.gpu)
    ask, places = _where_the_network_is(ask)
    plan, notes = runnable(plan, ask, gpu)
    notes = (*places, *notes)
    trainer, because = choose_trainer(plan)
    known = ask.shape.exact or bool(ask.config.strip())
    shape = ask.shape if known else rounded(ask.shape)
    _refuse(plan, ask, shape, gpu, trainer)
    batch = plan.micro_batch * plan.micro_batches * plan.dp
    params_b = ask.shape.total_params / 1e9
    rate = ask.learning_rate or setting(_rate_name(plan), params_b)
    steps = max(math.ceil(ask.tokens / (batch * plan.seq_len)), 1)
    shard = 1 if plan.zero_stage == 0 else plan.shard_ranks
    model, config = _model(plan, ask, shape, trainer)
    return Job(
        plan=plan, ask=ask, shape=shape, notes=notes, gpu=gpu, trainer=trainer, because=because,
        accumulation=plan.micro_batches, global_batch=batch, shard=shard, total_steps=steps,
        warmup_steps=max(min(whole("warmup_steps"), round(setting("warmup_share") * steps)), 1),
        learning_rate=rate, model=model, model_config=config,
    )  # fmt: skip


NETWORKS = {
    "infiniband": "InfiniBand", "roce": "RoCE", "efa": "EFA", "ethernet": "Ethernet",
    "provider": "the provider's own network",
}  # fmt: skip


def _where_the_network_is(ask: LaunchAsk) -> tuple[LaunchAsk, tuple[str, ...]]:
    """The ask at the provider whose network was planned with, and what of it differs, in words."""
    if ask.nodes == 1:
        return ask, ()
    owner = owner_of(ask.network)
    if owner and ask.cloud != owner:
        note = f"Only {owner} has the network of this plan, so its machines are taken"
        note += f"; the price in the forecast is {ask.cloud}'s." if ask.cloud else "."
        return replace(ask, cloud=owner, region=""), (note,)
    there = cloud_of(ask.cloud).joins_by(ask.network)
    if there == ask.network:
        return ask, ()
    return ask, (
        f"{ask.cloud} joins its machines by {NETWORKS[there]}; the forecast counts with "
        f"{NETWORKS[ask.network]}: measure the network first.",
    )


def choose_trainer(plan: TrainingPlan) -> tuple[Trainer, str]:
    """Whose code runs the plan, and the words for why."""
    split = {"tensor": plan.tp, "pipeline": plan.pp, "context": plan.cp, "expert": plan.ep}
    used = [name for name, size in split.items() if size > 1]
    megatron: Trainer = "megatron" if plan.task == "pretrain" else "bridge"
    if used:
        return megatron, f"the plan splits the model by {', '.join(used)} parallelism"
    if plan.precision in ("fp8", "fp4"):
        return megatron, f"the plan computes in {plan.precision}"
    if plan.optimizer == "muon":
        return megatron, "the plan's optimizer is Muon"
    if plan.cpu_offload:
        return "deepspeed", "the plan keeps the optimizer's states in the host's memory"
    if plan.precision == "fp16":
        return "deepspeed", "16-bit floats need loss scaling"
    return "fsdp2", "the plan is data parallel alone"


def _rate_name(plan: TrainingPlan) -> str:
    kind = "lora" if plan.task in ("lora", "qlora") else plan.task
    return f"learning_rate_{kind}"


def rounded(shape: ModelShape) -> ModelShape:
    """A shape made from a size alone with its MLP's widths as whole blocks, which GPUs need."""

    def whole_blocks(width: int) -> int:
        return max(round(width / BLOCK), 1) * BLOCK if width else 0

    return replace(shape, ffn=whole_blocks(shape.ffn), expert_ffn=whole_blocks(shape.expert_ffn))


def _refuse(
    plan: TrainingPlan, ask: LaunchAsk, shape: ModelShape, gpu: Gpu, trainer: Trainer
) -> None:
    """Say what no trainer of the kit can do, and what would be right."""
    if plan.task == "qlora" and plan.precision != "bf16":
        raise InputError("products of 4-bit weights are computed in bf16", where="precision",
                         right="bf16")  # fmt: skip
    if plan.task == "qlora" and trainer != "fsdp2":
        raise InputError("4-bit weights are not split by any trainer", where="task",
                         right="a plan that is data parallel alone, or LoRA in bf16")  # fmt: skip
    if plan.task == "qlora" and shape.is_moe:
        # Since its release 5 the library that loads them keeps all experts of a layer in one
        # tensor, which it leaves in 16 bits: the model would need far more than was planned.
        raise InputError("4-bit weights leave a mixture's experts in 16 bits", where="task",
                         right="LoRA in bf16, or a model without experts")  # fmt: skip
    if plan.task == "lora" and trainer == "deepspeed":
        raise InputError("adapters need no offloading", where="task", right="a plan in bf16")
    if plan.task == "qlora" and plan.optimizer == "adam8bit":
        raise InputError("is not combined with 4-bit weights", where="optimizer", right="adam")
    if trainer == "deepspeed" and plan.optimizer not in ("adam",):
        raise InputError(f"{plan.optimizer} is not offloaded here", where="optimizer", right="adam")
    if trainer == "deepspeed" and plan.shard_ranks != plan.dp:
        raise InputError("DeepSpeed shards over all ranks", where="shard_size", right="none")
    if trainer == "deepspeed" and plan.cpu_offload and not plan.zero_stage:
        raise InputError("offloading needs sharded states", where="zero_stage", right="1 to 3")
    if trainer in ("fsdp2", "deepspeed"):
        _refuse_no_text(ask)
    if trainer == "megatron":
        _refuse_arguments(ask, shape)
    if trainer == "bridge":
        _refuse_bridge(plan, gpu)
    if trainer in ("megatron", "bridge"):
        _refuse_megatron(plan, shape, gpu)
    if plan.task != "pretrain" and not ask.model:
        raise InputError("is missing", where="model", right="whose weights are to be tuned")


def _refuse_no_text(ask: LaunchAsk) -> None:
    """The kit's own programs predict the next token of a text."""
    kind = ask.shape.kind
    if kind in TEXT or str(ask.config_data().get("model_type")) in TEXT_WITH_IMAGES:
        return
    raise InputError(
        f"the kit's programs train language models, this is a model of the kind {kind}",
        where="shape", right="a decoder of text",
    )  # fmt: skip


def _refuse_arguments(ask: LaunchAsk, shape: ModelShape) -> None:
    """What the arguments of Megatron-LM's script can't state."""
    kind = ask.config_data().get("model_type")
    if kind is not None and str(kind) not in IN_MEGATRON:
        raise InputError(
            f"{str(kind)[:60]!r} can't be written as arguments of Megatron-LM", where="config",
            right=f"a plan that is data parallel alone, or one of {', '.join(sorted(IN_MEGATRON))}",
        )  # fmt: skip
    if shape.window_layers:
        raise InputError("layers with a sliding window are not written for Megatron-LM",
                         where="shape", right="a plan that is data parallel alone")  # fmt: skip


def _refuse_bridge(plan: TrainingPlan, gpu: Gpu) -> None:
    """Megatron-Bridge is NVIDIA's, and trains with Adam."""
    if not gpu.nvidia:
        raise InputError("Megatron-Bridge runs on NVIDIA alone", where="gpu",
                         right="a plan that is data parallel alone, in bf16")  # fmt: skip
    if plan.optimizer != "adam":
        raise InputError(f"{plan.optimizer} is not set up for tuning", where="optimizer",
                         right="adam")  # fmt: skip
    if plan.precision == "fp32":
        raise InputError("tuning is set up in mixed precision", where="precision", right="bf16")


def _refuse_megatron(plan: TrainingPlan, shape: ModelShape, gpu: Gpu) -> None:
    if plan.cp > 1 and plan.seq_len % (2 * plan.cp):
        raise InputError(f"{2 * plan.cp} does not divide {plan.seq_len} tokens", where="cp",
                         right="twice it divides the sequence")  # fmt: skip
    if plan.optimizer == "adam8bit":
        raise InputError("Megatron-LM has no 8-bit Adam", where="optimizer", right="adam")
    if plan.precision == "fp4" and gpu.fp8_recipe != "mxfp8":
        raise InputError(f"{gpu.sku} has no 4-bit arithmetic", where="precision", right="bf16")
    if shape.kind != "decoder" or shape.state_layers or shape.attention == "none":
        raise InputError(
            "only decoders with attention in every layer run in Megatron-LM", where="shape",
            right="a plan that is data parallel alone",
        )  # fmt: skip
    widths = [("heads", shape.heads)]
    if plan.task == "pretrain" or shape.exact:
        widths.append(("of the MLP's width", shape.ffn))
    for what, width in widths:
        if width % plan.tp:
            raise InputError(f"{plan.tp} does not divide {width} {what}", where="tp",
                             right="a divisor")  # fmt: skip
    if shape.kv_heads % plan.tp and plan.tp % shape.kv_heads:
        raise InputError(f"{plan.tp} and {shape.kv_heads} heads of keys don't divide", where="tp",
                         right="a divisor or a multiple")  # fmt: skip
    if shape.experts % plan.ep:
        raise InputError(f"{plan.ep} does not divide {shape.experts} experts", where="ep",
                         right="a divisor")  # fmt: skip
    if plan.pp > shape.layers + ENDS:
        raise InputError(f"{shape.layers} layers don't fill {plan.pp} stages", where="pp",
                         right="no more stages than layers")  # fmt: skip
    if plan.vp > 1 and plan.micro_batches < plan.pp:
        raise InputError(
            f"{plan.micro_batches} micro-batches can't be interleaved over {plan.pp} stages",
            where="vp", right="as many as stages, or no interleaving",
        )  # fmt: skip
    if plan.zero_stage == 3 and plan.pp > 1:
        raise InputError("stage 3 is not run with pipeline stages", where="zero_stage",
                         right="0 to 2, or no pipeline")  # fmt: skip


# --- the model's configuration


def _model(
    plan: TrainingPlan, ask: LaunchAsk, shape: ModelShape, trainer: Trainer
) -> tuple[str, dict[str, Any]]:
    """What the script loads, and the configuration that the kit brings for it."""
    data = ask.config_data()
    if plan.task != "pretrain" or (ask.model and not data):
        return ask.model, data if trainer == "megatron" else {}
    if data:
        return MODEL_FOLDER, data
    return MODEL_FOLDER, config_of_shape(shape, plan.seq_len)


def config_of_shape(shape: ModelShape, seq_len: int) -> dict[str, Any]:
    """A `config.json` for a shape that was made from a size alone: Llama's, or Qwen's experts.

    Raises
    ------
    InputError : for shapes that neither describes
    """
    plain = (
        shape.kind == "decoder" and shape.gated_mlp and not shape.state_layers
        and shape.attention in ("mha", "gqa", "mqa") and not shape.window_layers
    )  # fmt: skip
    if not plain:
        raise InputError("can't be written from its widths alone", where="config",
                         right="the model's config.json or its id")  # fmt: skip
    common: dict[str, Any] = {
        "hidden_size": shape.hidden, "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim, "intermediate_size": shape.ffn, "vocab_size": shape.vocab,
        "tie_word_embeddings": shape.tied_embeddings, "max_position_embeddings": seq_len,
        "rms_norm_eps": 1e-5, "hidden_act": "silu",
    }  # fmt: skip
    if not shape.is_moe:
        return {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **common}
    width = shape.expert_ffn or shape.ffn
    kind, name = "qwen3_moe", "Qwen3MoeForCausalLM"
    if shape.shared_experts:
        kind, name = "qwen2_moe", "Qwen2MoeForCausalLM"
        common["shared_expert_intermediate_size"] = shape.shared_experts * width
    return {
        "model_type": kind, "architectures": [name], **common,
        "num_experts": shape.experts, "num_experts_per_tok": shape.experts_per_token,
        "moe_intermediate_size": width, "decoder_sparse_step": 1,
        "mlp_only_layers": list(range(shape.dense_layers)), "norm_topk_prob": True,
    }  # fmt: skip
