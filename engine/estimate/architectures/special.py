"""Architectures whose layers differ by rules that no list of terms holds, and image UNets.

Counts follow the public definitions in the `transformers` and `diffusers` libraries and are
checked against them (tests/estimate/test_model_shape.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.errors import ImportFileError
from engine.estimate.architectures.outline import outline
from engine.estimate.architectures.reading import Config, are_sizes
from engine.estimate.shape import ModelShape


def _counted(config: Config, total: int, routed: int, why: str = "", **changed: Any) -> ModelShape:
    base = outline(config)
    share = min(base.experts_per_token / base.experts, 1.0) if base.experts else 0.0
    active = total - routed + round(routed * share)
    return replace(
        base, total_params=float(total), active_params=float(active), exact=not why,
        why_approximate=why, **changed,
    )  # fmt: skip


def _kinds(config: Config, layers: int, every: int) -> list[str]:
    """Kinds of the layers as listed, else full attention every so many."""
    listed = config.raw.get("layer_types")
    if isinstance(listed, list) and len(listed) >= layers:
        return [str(x) for x in listed[:layers]]
    return ["full_attention" if (i + 1) % every == 0 else "sliding_attention"
            for i in range(layers)]  # fmt: skip


def gemma4_text(config: Config) -> ModelShape:
    """Gemma 4: wide full-attention layers, keys shared as values, embeddings a layer, experts."""
    total, routed = _gemma4_params(config)
    return _counted(config, total, routed)


def _gemma4_params(config: Config) -> tuple[int, int]:
    hidden, layers = config.whole("hidden", 2304), config.whole("layers", 30)
    heads, kv = config.whole("heads", 8), config.whole("kv_heads", 4)
    ffn, vocab = config.whole("ffn", 9216), config.whole("vocab", 262_144)
    same = config.flag("attention_k_eq_v")
    shared_from = layers - config.whole("num_kv_shared_layers", 0, least=0)
    experts = config.whole("num_experts", 0, least=0) if config.flag("enable_moe_block") else 0
    own = config.whole("hidden_size_per_layer_input", 256, least=0)
    bias = config.flag("attention_bias")
    total = routed = 0
    listed = config.raw.get("per_layer_config")
    for i, kind in enumerate(_kinds(config, layers, 6)):
        full = kind == "full_attention"
        width = config.whole("head_dim", 256)
        groups = kv
        if full:
            width = config.whole("global_head_dim", 512)
            groups = config.whole("num_global_key_value_heads", kv) if same else kv
        if isinstance(listed, Mapping):
            stated = Config(_of_layer(listed, i), config.name)
            width = stated.whole("head_dim", config.whole("head_dim", 256))
            groups = stated.whole("num_key_value_heads", groups)
        query = heads * width
        total += 2 * hidden * query + width + (query + hidden if bias else 0)
        if i < shared_from:
            projections = 1 if full and same else 2
            total += projections * groups * width * (hidden + (1 if bias else 0)) + width
        wide = ffn * (2 if config.flag("use_double_wide_mlp") and i >= shared_from else 1)
        total += 3 * hidden * wide + 4 * hidden
        total += 2 * own * hidden + hidden if own else 0
        if experts:
            one = 3 * hidden * config.whole("moe_intermediate_size")
            total += hidden + experts + experts * hidden + 3 * hidden + experts * one
            routed += experts * one
    total += vocab * hidden * (1 if config.tied(True) else 2) + hidden
    if own:
        rows = config.whole("vocab_size_per_layer_input", vocab)
        total += rows * layers * own + layers * own * hidden + own
    return total, routed


def _of_layer(listed: Mapping[str, Any], i: int) -> Mapping[str, Any]:
    found = next((v for k, v in listed.items() if str(k).isdigit() and int(k) == i), None)
    return found if isinstance(found, Mapping) else {}


def gemma4(config: Config) -> ModelShape:
    """Gemma 4 with its image tower; an audio tower is not counted, and it is said."""
    inner = config.raw.get("text_config")
    sizes = dict(inner) if isinstance(inner, Mapping) else {}
    sizes["tie_word_embeddings"] = config.tied(True)  # the whole's word counts, not the part's
    text = Config(sizes, config.name, nested=True)
    total, routed = _gemma4_params(text)
    raw = config.raw.get("vision_config")
    if isinstance(raw, Mapping):
        tower = Config(raw, config.name, nested=True)
        hidden, layers = tower.whole("hidden", 768), tower.whole("layers", 16)
        heads, width = tower.whole("heads", 12), tower.whole("head_dim", 64)
        groups, ffn = tower.whole("kv_heads", heads), tower.whole("ffn", 3072)
        layer = 2 * hidden * width * (heads + groups) + 2 * width + 3 * hidden * ffn + 4 * hidden
        total += layers * layer + 2 * tower.whole("position_embedding_size", 10_240) * hidden
        total += 3 * tower.whole("patch_size", 16) ** 2 * hidden
        total += hidden * text.whole("hidden", 2304)
    why = "the audio tower is not counted" if config.raw.get("audio_config") else ""
    return _counted(config, total, routed, why)


def gemma3n_text(config: Config) -> ModelShape:
    """Gemma 3n: alternating updates, low-rank residuals, embeddings a layer, shared caches."""
    hidden, layers = config.whole("hidden", 2048), config.whole("layers", 35)
    heads, kv = config.whole("heads", 8), config.whole("kv_heads", 2)
    width, vocab = config.whole("head_dim", 256), config.whole("vocab", 262_400)
    listed = config.raw.get("intermediate_size")
    widths = listed if isinstance(listed, list) else [listed or 16_384] * layers
    if len(widths) < layers or not all(isinstance(w, int) and 0 < w < 1e9 for w in widths):
        raise ImportFileError(
            "intermediate_size is not a width for every layer", where=config.name,
            right="a whole number, or a list of them",
        )  # fmt: skip
    updates = config.whole("altup_num_inputs", 4)
    rank, own = config.whole("laurel_rank", 64), config.whole("hidden_size_per_layer_input", 256)
    shared_from = layers - config.whole("num_kv_shared_layers", 15, least=0)
    each = 2 * hidden * heads * width + width + 4 * hidden
    each += hidden + updates**2 + updates**3 + updates * hidden + hidden  # alternating updates
    each += 2 * rank * hidden + hidden + 2 * own * hidden + hidden
    total = layers * each + 3 * hidden * sum(widths[:layers])
    total += min(max(shared_from, 0), layers) * (2 * kv * width * hidden + width)
    total += vocab * hidden * (1 if config.tied(True) else 2) + hidden
    total += config.whole("vocab_size_per_layer_input", 262_144) * layers * own
    total += layers * own * hidden + own + 2 * (updates - 1) * hidden**2
    text = Config({**config.raw, "intermediate_size": widths[0]}, config.name)
    return replace(_counted(text, total, 0), name=str(config.raw.get("model_type", "gemma3n")))


def gemma3n(config: Config) -> ModelShape:
    """Gemma 3n with its towers, which are other networks and are not counted; it is said."""
    inner = config.raw.get("text_config")
    found = gemma3n_text(Config(inner if isinstance(inner, Mapping) else {}, config.name))
    why = "the towers for images and sound are not counted"
    return replace(found, exact=False, why_approximate=why, kind="vision-language")


def deepseek_v4(config: Config) -> ModelShape:
    """DeepSeek V4: compressed attention, hyper-connections, grouped low-rank output."""
    hidden, layers = config.whole("hidden"), config.whole("layers")
    heads, width = config.whole("heads"), config.whole("head_dim", 512)
    q_rank, o_rank = config.whole("q_lora_rank", 1024), config.whole("o_lora_rank", 1024)
    groups, mult = config.whole("o_groups", 8), config.whole("hc_mult", 4)
    count, expert = config.whole("experts"), config.whole("expert_ffn")
    index_heads, index = config.whole("index_n_heads", 64), config.whole("index_head_dim", 128)
    vocab = config.whole("vocab")
    one = 3 * hidden * expert
    ways = (2 + mult) * mult
    each = heads + q_rank * (hidden + 1 + heads * width) + width * (hidden + 1)
    each += o_rank * heads * width + hidden * groups * o_rank
    # The library builds one shared expert, whatever number the file states.
    each += count * hidden + one + count * one
    each += 2 * expert + hidden if config.flag("mlp_bias") else 0
    each += 2 * hidden + 2 * (ways * mult * hidden + ways + 3)
    sparse, heavy = _compression(config, layers)
    total = layers * each
    compressor = (2 * width + 2 * index) * (sparse[0] + 2 * hidden) + width + index
    total += sparse[1] * (compressor + index_heads * (index * q_rank + hidden))
    total += heavy[1] * (width * (heavy[0] + 2 * hidden) + width)
    total += hidden + mult * mult * hidden + mult + 1
    total += vocab * hidden * (1 if config.tied(False) else 2)
    listed = isinstance(config.raw.get("compress_ratios"), list) or config.has("layer_types")
    why = "" if listed else "it does not list its layers' kinds, a usual pattern is taken"
    return _counted(config, total, layers * count * one, why, window_layers=0, window_tokens=0,
                    kv_layers=layers)  # fmt: skip


def _compression(config: Config, layers: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Ratio and number of the sparsely and of the heavily compressed layers."""
    ratios = config.raw.get("compress_ratios")
    if isinstance(ratios, list) and len(ratios) >= layers:
        used = [r for r in ratios[:layers] if isinstance(r, int) and r > 0]
        low = min(used, default=4)
        high = max(used, default=128)
        return (low, used.count(low)), (high, used.count(high) if high != low else 0)
    kinds = _kinds(config, layers, 1)
    rates = config.raw.get("compress_rates")
    rates = rates if isinstance(rates, Mapping) else {}
    names = ("compressed_sparse_attention", "heavily_compressed_attention")
    first, second = (
        (int(rates.get(name) or usual), kinds.count(name))
        for name, usual in zip(names, (4, 128), strict=True)
    )
    return first, second


# --- image UNets


def unet(config: Config) -> ModelShape:
    """The UNet of Stable Diffusion (UNet2DConditionModel of the diffusers library).

    Raises
    ------
    ImportFileError : for blocks that are not known here
    """
    raw = config.raw
    channels = raw.get("block_out_channels")
    down, up = raw.get("down_block_types"), raw.get("up_block_types")
    if (
        not are_sizes(channels) or not isinstance(down, list) or not isinstance(up, list)
        or not len(down) == len(up) == len(channels)
        or not {*map(str, down), *map(str, up)} <= BLOCKS
    ):  # fmt: skip
        raise ImportFileError(
            "describes a diffusion model of blocks that are not known here", where=config.name,
            right="give the number of parameters instead",
        )  # fmt: skip
    first, last = channels[0], channels[-1]
    temb = 4 * first
    cross = config.whole("cross_attention_dim", 1280)
    per_block = config.whole("layers_per_block", 2)
    depth = raw.get("transformer_layers_per_block", 1)
    depths = depth if are_sizes(depth) and len(depth) == len(channels) else [
        depth if isinstance(depth, int) and 0 < depth < 1000 else 1] * len(channels)  # fmt: skip

    def attention(width: int, blocks: int) -> int:
        inner = width * width
        block = 6 * width + 3 * inner + inner + width  # norms, self-attention
        block += inner + 2 * cross * width + inner + width  # attention to the prompt
        block += width * 8 * width + 8 * width + 4 * inner + width  # gated feed-forward
        return 2 * width + 2 * (inner + width) + blocks * block

    total = _conv(config.whole("in_channels", 4), first) + first * temb + temb + temb * temb + temb
    before = first
    for i, width in enumerate(channels):
        for j in range(per_block):
            total += _residual(before if j == 0 else width, width, temb)
            total += attention(width, depths[i]) if "CrossAttn" in str(down[i]) else 0
        total += _conv(width, width) if i < len(channels) - 1 else 0
        before = width
    total += 2 * _residual(last, last, temb) + attention(last, depths[-1])
    back = channels[::-1]
    for i, width in enumerate(back):
        after = back[min(i + 1, len(back) - 1)]
        for j in range(per_block + 1):
            skip = after if j == per_block else width
            start = (back[max(i - 1, 0)] if j == 0 else width) + skip
            total += _residual(start, width, temb)
            total += attention(width, depths[::-1][i]) if "CrossAttn" in str(up[i]) else 0
        total += _conv(width, width) if i < len(back) - 1 else 0
    total += 2 * first + _conv(first, config.whole("out_channels", 4))
    if raw.get("addition_embed_type") == "text_time":
        size = config.whole("projection_class_embeddings_input_dim", 2816)
        total += size * temb + temb + temb * temb + temb
    return ModelShape(
        name="UNet", total_params=float(total), active_params=float(total), embedding_params=0.0,
        layers=2 * len(channels) + 1, hidden=last, heads=1, kv_heads=1, head_dim=last, ffn=4 * last,
        vocab=0, attention="none", kv_layers=0, exact=True, kind="diffusion",
    )  # fmt: skip


BLOCKS = {"CrossAttnDownBlock2D", "DownBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"}


def _conv(before: int, after: int) -> int:
    """A convolution of 3 by 3 with its bias."""
    return 9 * before * after + after


def _residual(before: int, after: int, temb: int) -> int:
    """Two normed convolutions, the time's projection, a shortcut where the width changes."""
    count = 2 * before + _conv(before, after) + temb * after + after + 2 * after
    count += _conv(after, after)
    return count + (before * after + after if before != after else 0)


READERS = {
    "gemma4": gemma4,
    "gemma4_text": gemma4_text,
    "gemma3n": gemma3n,
    "gemma3n_text": gemma3n_text,
    "deepseek_v4": deepseek_v4,
}
