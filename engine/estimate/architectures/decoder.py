"""Counting a decoder: embedding, layers of attention and MLP or experts, norms, head."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from engine.errors import ImportFileError
from engine.estimate.architectures.outline import windowed
from engine.estimate.architectures.reading import Config
from engine.estimate.architectures.specs import Spec
from engine.estimate.architectures.terms import defaults
from engine.estimate.shape import AttentionKind, ModelShape

# Families whose heads are narrower together than the network.
NARROW = ("glm4_moe", "glm4v_moe_text")


@dataclass(frozen=True, slots=True)
class Sizes:
    """Widths of a decoder as its file states them."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int


def sizes(config: Config) -> Sizes:
    """The widths, with the usual defaults where a key is null.

    Raises
    ------
    ImportFileError : for sizes that are missing or contradict each other
    """
    hidden, layers = config.whole("hidden"), config.whole("layers")
    heads = config.whole("heads")
    kind = config.model_type
    kv = config.whole("kv_heads", heads)
    if kind == "falcon" and not config.flag("new_decoder_architecture"):
        kv = 1 if config.flag("multi_query", True) else heads
    if kind == "gpt_bigcode":
        kv = 1 if config.flag("multi_query", True) else heads
    attn = config.raw.get("attn_config")
    if isinstance(attn, dict) and attn.get("kv_n_heads"):
        kv = int(attn["kv_n_heads"])
    if heads % kv:
        raise ImportFileError(
            f"{heads} heads can't share {kv} key-value heads", where=config.name,
            right="a number of heads that the key-value heads divide",
        )  # fmt: skip
    usual = defaults().get(kind, {}).get("head_dim", "")
    # Latent attention has widths of its own for its heads; some files state a zero here.
    if config.has("head_dim") and (config.raw["head_dim"] != 0 or not config.has("kv_lora_rank")):
        head_dim = config.whole("head_dim")
    elif "head_dim" not in config.raw and usual.isdigit():
        head_dim = int(usual)  # the library's own, where it does not follow from the others
    elif hidden > heads and hidden % heads and kind not in NARROW:
        raise ImportFileError(
            f"{heads} heads don't divide the hidden size of {hidden}", where=config.name,
            right="a hidden size that the heads divide, or a head_dim",
        )  # fmt: skip
    else:
        head_dim = hidden // heads
    if head_dim < 1:
        raise ImportFileError(
            f"{heads} heads are more than the hidden size of {hidden}", where=config.name,
            right="a hidden size that the heads divide",
        )  # fmt: skip
    ffn = config.whole("ffn", 4 * hidden)
    if kind == "mpt":
        ffn = hidden * config.whole("expansion_ratio", 4)
    if kind == "qwen":
        ffn //= 2  # this family states the width of both halves
    if kind == "dbrx" and isinstance(config.raw.get("ffn_config"), dict):
        ffn = int(config.raw["ffn_config"].get("ffn_hidden_size") or 4 * hidden)
    return Sizes(hidden, layers, heads, kv, head_dim, ffn, config.whole("vocab"))


def norm_params(spec: Spec, width: int) -> int:
    """Parameters of one norm over this width."""
    return {"rms": width, "layer": 2 * width, "layer_no_bias": width, "none": 0}[spec.norm]


def attention_params(config: Config, spec: Spec, s: Sizes) -> int:
    """Parameters of one attention block, its norms inside included."""
    if spec.attention == "mla":
        return mla_params(config, s)
    q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
    count = s.hidden * (q + 2 * kv) + q * s.hidden
    if config.flag(spec.qkv_bias, spec is not None and config.model_type == "gpt_neox"):
        count += q + 2 * kv
    if config.flag(spec.out_bias, config.model_type == "gpt_neox"):
        count += s.hidden
    if spec.qk_norm == "head" or (spec.qk_norm == "none" and config.flag("use_qk_norm")):
        count += 2 * s.head_dim
    elif spec.qk_norm == "full":
        # One family sizes these norms by hidden / heads whatever width of the heads is stated.
        norm = s.hidden // s.heads if config.model_type == "olmoe" else s.head_dim
        count += norm * (s.heads + s.kv_heads)
    if config.model_type == "gpt_oss":
        count += s.heads  # attention sinks
    return count


def mla_params(config: Config, s: Sizes) -> int:
    """Parameters of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434)."""
    rank = config.whole("kv_lora_rank")
    nope, rope = config.whole("qk_nope_head_dim"), config.whole("qk_rope_head_dim", least=0)
    value = config.whole("v_head_dim")
    q_rank = config.whole("q_lora_rank", 0, least=0)
    wide = s.heads * (nope + rope)
    q = s.hidden * q_rank + q_rank + q_rank * wide if q_rank else s.hidden * wide
    kv = s.hidden * (rank + rope) + rank + rank * s.heads * (nope + value)
    bias = q_rank + rank + rope + s.hidden if config.flag("attention_bias") else 0
    return q + kv + s.heads * value * s.hidden + bias


def mlp_params(config: Config, spec: Spec, hidden: int, ffn: int) -> int:
    """Parameters of one MLP."""
    matrices = 3 if spec.gated else 2
    count = matrices * hidden * ffn
    if config.flag(spec.mlp_bias):
        count += (matrices - 1) * ffn + hidden
    return count


@dataclass(frozen=True, slots=True)
class Experts:
    """Routed experts: how many, how many a token, their width; shared ones; layers without."""

    count: int
    per_token: int
    width: int
    shared_width: int
    dense_layers: int


def experts(config: Config, s: Sizes) -> Experts | None:
    """The experts of a mixture, None for dense models."""
    raw = config.raw
    block = raw.get("ffn_config")
    if config.model_type == "dbrx" and isinstance(block, dict):
        return Experts(int(block["moe_num_experts"]), int(block["moe_top_k"]), s.ffn, 0, 0)
    count = config.whole("experts", 0, least=0)
    if count <= 1 or raw.get("is_moe") is False:
        return None
    width = config.whole("expert_ffn", s.ffn)
    if config.model_type in ("mixtral", "minimax_m2", "gpt_oss", "granitemoe", "minicpm", "olmoe"):
        width = s.ffn
    shared = config.whole("shared_expert_intermediate_size", 0, least=0)
    if not shared:
        shared = config.whole("n_shared_experts", 0, least=0) * width
    dense = config.whole("first_k_dense_replace", 0, least=0)
    step = config.whole("decoder_sparse_step", 1)
    only = raw.get("mlp_only_layers")
    if isinstance(only, list):
        sparse = [i for i in range(s.layers) if i not in only and (i + 1) % step == 0]
        dense = s.layers - len(sparse)
    kinds = raw.get("mlp_layer_types")
    if isinstance(kinds, list) and len(kinds) == s.layers:
        dense = sum(1 for kind in kinds if kind == "dense")
    return Experts(count, config.whole("top_k", 2), width, shared, min(dense, s.layers))


def shape(config: Config, spec: Spec, *, exact: bool, why: str) -> ModelShape:
    """Count a decoder and lay out its shape."""
    s = sizes(config)
    attention = attention_params(config, spec, s)
    norms = spec.norms
    if config.model_type == "falcon":
        norms = falcon_norms(config)
    if config.model_type == "stablelm" and config.flag("use_parallel_residual"):
        norms = 1
    layer = attention + norms * norm_params(spec, s.hidden)
    dense_mlp = mlp_params(config, spec, s.hidden, s.ffn)
    mixture = experts(config, s)
    total = s.layers * layer
    active = total
    if mixture is None:
        total += s.layers * dense_mlp
        active = total
    else:
        sparse = s.layers - mixture.dense_layers
        one = mlp_params(config, spec, s.hidden, mixture.width)
        if spec.expert_bias:
            one += 2 * mixture.width + s.hidden
        router = s.hidden * mixture.count + (mixture.count if spec.router_bias else 0)
        kimi = config.model_type.startswith("kimi")
        if config.flag("router_correction", kimi) and sparse:
            router += mixture.count
        always = router
        if mixture.shared_width:
            always += mlp_params(config, spec, s.hidden, mixture.shared_width)
            always += s.hidden if spec.shared_gate else 0
        total += mixture.dense_layers * dense_mlp + sparse * (always + mixture.count * one)
        active += mixture.dense_layers * dense_mlp + sparse * (always + mixture.per_token * one)
    embedding = s.vocab * s.hidden
    around = embedding + (norm_params(spec, s.hidden) if spec.final_norm else 0)
    if spec.embedding_norm:
        around += norm_params(spec, s.hidden)
    if spec.learned_positions is not None:
        around += (config.whole("positions") + spec.learned_positions) * s.hidden
    tied = config.tied(spec.tied)
    head = 0 if tied else embedding
    around += head + (s.vocab if spec.head_bias else 0)
    kind: AttentionKind = "mla" if spec.attention == "mla" else "mha"
    if kind == "mha" and s.kv_heads < s.heads:
        kind = "mqa" if s.kv_heads == 1 else "gqa"
    windows, window = windowed_layers(config, s.layers)
    return ModelShape(
        name=str(config.raw.get("_name_or_path") or config.model_type or config.name)[:80],
        total_params=float(total + around), active_params=float(active + around),
        embedding_params=float(embedding + head), layers=s.layers, hidden=s.hidden, heads=s.heads,
        kv_heads=s.kv_heads, head_dim=s.head_dim, ffn=s.ffn, vocab=s.vocab, gated_mlp=spec.gated,
        tied_embeddings=tied, attention=kind, window_layers=windows, window_tokens=window,
        mla_cache_width=(
            config.whole("kv_lora_rank") + config.whole("qk_rope_head_dim", least=0)
            if kind == "mla" else 0
        ),
        experts=mixture.count if mixture else 0,
        experts_per_token=mixture.per_token if mixture else 0,
        shared_experts=1 if mixture and mixture.shared_width else 0,
        expert_ffn=mixture.width if mixture else 0,
        dense_layers=mixture.dense_layers if mixture else 0,
        quantized_bits=config.quantized_bits(), exact=exact, why_approximate=why,
    )  # fmt: skip


def falcon_norms(config: Config) -> int:
    """Falcon's norms a layer: one, or two where attention and MLP have their own."""
    if config.flag("new_decoder_architecture"):
        return config.whole("num_ln_in_parallel_attn", 2)
    return 1 if config.flag("parallel_attn", True) else 2


def windowed_layers(config: Config, layers: int) -> tuple[int, int]:
    """Layers whose attention is limited to a window, and its tokens."""
    types = config.raw.get("layer_types")
    listed = Counter(map(str, types[:layers])) if isinstance(types, list) else Counter()
    return windowed(config, listed, layers)
