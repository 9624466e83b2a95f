"""Models that are no plain decoder: encoders, encoder-decoders, state space, hybrids, images.

Each reader counts by the architecture's own definition; where a part is not in the file or not
known here the shape says "approximate" and why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from engine.errors import ImportFileError
from engine.estimate.architectures import decoder
from engine.estimate.architectures.outline import SENSES
from engine.estimate.architectures.reading import Config, are_sizes
from engine.estimate.architectures.specs import SPECS, Spec
from engine.estimate.shape import ModelShape


def _encoder_layer(hidden: int, ffn: int) -> int:
    """A layer with biases everywhere and two LayerNorms."""
    return 4 * (hidden * hidden + hidden) + 2 * hidden * ffn + ffn + hidden + 4 * hidden


def _plain(
    config: Config, total: float, hidden: int, layers: int, heads: int, ffn: int, vocab: int,
    embedding: float, kind: str, why: str = "",
) -> ModelShape:  # fmt: skip
    return ModelShape(
        name=str(config.raw.get("_name_or_path") or config.model_type or kind)[:80],
        total_params=total, active_params=total, embedding_params=embedding, layers=layers,
        hidden=hidden, heads=heads, kv_heads=heads, head_dim=hidden // heads, ffn=ffn,
        vocab=vocab, gated_mlp=False, tied_embeddings=True, attention="mha",
        quantized_bits=config.quantized_bits(), exact=not why, why_approximate=why, kind=kind,
    )  # fmt: skip


def bert(config: Config) -> ModelShape:
    """BERT and RoBERTa: word, position and type embeddings, encoder, pooler."""
    hidden, layers = config.whole("hidden"), config.whole("layers")
    heads, ffn, vocab = (
        config.whole("heads"),
        config.whole("ffn", 4 * hidden),
        config.whole("vocab"),
    )
    rows = vocab + config.whole("positions", 512) + config.whole("type_vocab_size", 2)
    total = rows * hidden + 2 * hidden + layers * _encoder_layer(hidden, ffn)
    total += hidden * hidden + hidden
    why = "" if config.model_type else "the file names no model type: read like RoBERTa"
    return _plain(config, total, hidden, layers, heads, ffn, vocab, vocab * hidden, "encoder", why)


def clip_text(config: Config) -> ModelShape:
    """The text tower of CLIP."""
    hidden, layers = config.whole("hidden"), config.whole("layers")
    heads, ffn, vocab = config.whole("heads"), config.whole("ffn"), config.whole("vocab")
    rows = vocab + config.whole("positions", 77)
    total = rows * hidden + layers * _encoder_layer(hidden, ffn) + 2 * hidden
    return _plain(config, total, hidden, layers, heads, ffn, vocab, vocab * hidden, "encoder")


def vit(config: Config) -> ModelShape:
    """A vision transformer with its classifier."""
    hidden, layers = config.whole("hidden"), config.whole("layers")
    heads, ffn = config.whole("heads"), config.whole("ffn")
    patch, image = config.whole("patch_size", 16), config.whole("image_size", 224)
    labels = config.raw.get("id2label")
    given = config.whole("num_labels", 2)
    count = len(labels) if isinstance(labels, dict) and labels else given
    patches = (image // patch) ** 2
    total = hidden + (patches + 1) * hidden + config.whole("num_channels", 3) * patch**2 * hidden
    total += hidden + layers * _encoder_layer(hidden, ffn) + 2 * hidden + hidden * count + count
    return _plain(config, total, hidden, layers, heads, ffn, 0, 0.0, "encoder")


def wav2vec2(config: Config) -> ModelShape:
    """Wav2Vec2 for CTC: convolutions over the wave, positions by convolution, encoder, head."""
    hidden, layers = config.whole("hidden"), config.whole("layers")
    heads, ffn = config.whole("heads"), config.whole("ffn")
    vocab = config.whole("vocab", 32)
    dims = config.raw.get("conv_dim") or [512] * 7
    kernels = config.raw.get("conv_kernel") or [10, 3, 3, 3, 3, 2, 2]
    for key, listed in (("conv_dim", dims), ("conv_kernel", kernels)):
        if not are_sizes(listed):
            raise ImportFileError(f"{key} is {str(listed)[:40]!r}", where=config.name,
                                  right="a list of whole numbers from 1 on")  # fmt: skip
    bias = config.flag("conv_bias")
    total, before = 0, 1
    for i, (dim, kernel) in enumerate(zip(dims, kernels, strict=False)):
        total += before * dim * kernel + (dim if bias else 0)
        if config.raw.get("feat_extract_norm", "group") == "layer" or i == 0:
            total += 2 * dim
        before = dim
    total += 2 * before + before * hidden + hidden
    groups = config.whole("num_conv_pos_embedding_groups", 16)
    width = config.whole("num_conv_pos_embeddings", 128)
    # Weight normalisation keeps a direction and a length a kernel position.
    total += hidden * (hidden // groups) * width + width + hidden
    total += 2 * hidden + layers * _encoder_layer(hidden, ffn) + hidden * vocab + vocab
    if config.raw.get("mask_time_prob", 0.05) or config.raw.get("mask_feature_prob", 0):
        total += hidden
    return _plain(config, total, hidden, layers, heads, ffn, vocab, 0.0, "encoder")


def t5(config: Config) -> ModelShape:
    """T5: shared embedding, encoder and decoder with relative positions."""
    width, layers = config.whole("d_model"), config.whole("layers")
    deep = config.whole("num_decoder_layers", layers)
    heads, each = config.whole("heads"), config.whole("d_kv")
    ffn, vocab = config.whole("ffn"), config.whole("vocab")
    inner = heads * each
    act = str(config.raw.get("feed_forward_proj") or "relu")
    mlp = (3 if act.startswith("gated") else 2) * width * ffn
    attention = 4 * width * inner
    total = vocab * width + layers * (attention + mlp + 2 * width)
    total += deep * (2 * attention + mlp + 3 * width) + 2 * width
    total += 2 * config.whole("relative_attention_num_buckets", 32) * heads
    if not config.tied(True):
        total += vocab * width
    found = _plain(
        config, total, width, layers, heads, ffn, vocab, vocab * width, "encoder-decoder"
    )
    return replace(found, head_dim=each, gated_mlp=act.startswith("gated"))


def mamba(config: Config) -> ModelShape:
    """Mamba and FalconMamba: selective state space, no attention and no cache."""
    hidden, layers, vocab = config.whole("hidden"), config.whole("layers"), config.whole("vocab")
    state = config.whole("state_size", 16)
    inner = config.whole("intermediate_size", hidden * config.whole("expand", 2))
    layer = _mamba_layer(config, hidden, inner, state, config.whole("conv_kernel", 4)) + hidden
    total = vocab * hidden + layers * layer + hidden
    if not config.tied(True):
        total += vocab * hidden
    return ModelShape(
        name=config.model_type, total_params=float(total), active_params=float(total),
        embedding_params=float(vocab * hidden), layers=layers, hidden=hidden, heads=1, kv_heads=1,
        head_dim=1, ffn=inner, vocab=vocab, attention="none", kv_layers=0, state_layers=layers,
        state_bytes_per_layer=inner * (state * 4 + 2 * config.whole("conv_kernel", 4)),
        quantized_bits=config.quantized_bits(), exact=True, kind="state-space",
    )  # fmt: skip


def _mamba_layer(config: Config, hidden: int, inner: int, state: int, kernel: int) -> int:
    rank_raw = config.raw.get("time_step_rank", config.raw.get("mamba_dt_rank"))
    rank = rank_raw if isinstance(rank_raw, int) else -(-hidden // 16)
    conv_bias = config.flag("use_conv_bias", True) and config.flag("mamba_conv_bias", True)
    conv = inner * kernel + (inner if conv_bias else 0)
    bias = config.flag("use_bias") or config.flag("mamba_proj_bias")
    count = hidden * 2 * inner + inner * (rank + 2 * state) + rank * inner + inner
    count += conv + inner * state + inner + inner * hidden
    return count + (2 * inner + hidden if bias else 0)


def jamba(config: Config) -> ModelShape:
    """Jamba: Mamba layers, attention every few, experts every other."""
    s = decoder.sizes(config)
    inner = s.hidden * config.whole("mamba_expand", 2)
    state = config.whole("mamba_d_state", 16)
    rank_raw = config.raw.get("mamba_dt_rank")
    rank = rank_raw if isinstance(rank_raw, int) else -(-s.hidden // 16)
    mixer = _mamba_layer(config, s.hidden, inner, state, config.whole("mamba_d_conv", 4))
    mixer += rank + 2 * state
    attention = decoder.attention_params(config, Spec(), s)
    every, at = config.whole("attn_layer_period", 8), config.whole("attn_layer_offset", 4, least=0)
    step, off = config.whole("expert_layer_period", 2), config.whole("expert_layer_offset", 1, 0)
    count, top = config.whole("experts", 16), config.whole("top_k", 2)
    mlp = 3 * s.hidden * s.ffn
    total = active = 0
    attentive = 0
    for i in range(s.layers):
        is_attention = i % every == at
        attentive += is_attention
        block = (attention if is_attention else mixer) + 2 * s.hidden
        sparse = i % step == off and count > 1
        total += block + (count * mlp + s.hidden * count if sparse else mlp)
        active += block + (top * mlp + s.hidden * count if sparse else mlp)
    around = s.vocab * s.hidden * (1 if config.tied(False) else 2) + s.hidden
    base = decoder.shape(config, Spec(), exact=True, why="")
    return replace(
        base, total_params=float(total + around), active_params=float(active + around),
        kv_layers=attentive, state_layers=s.layers - attentive,
        state_bytes_per_layer=float(inner * (state * 4 + 8)), kind="hybrid",
    )  # fmt: skip


def openelm(config: Config) -> ModelShape:
    """OpenELM: heads and widths that differ from layer to layer."""
    raw = config.raw
    hidden, each = config.whole("model_dim"), config.whole("head_dim")
    queries, kvs = raw.get("num_query_heads"), raw.get("num_kv_heads")
    factors = raw.get("ffn_multipliers")
    if not all(isinstance(x, list) and x for x in (queries, kvs, factors)):
        raise ImportFileError("states no lists a layer", where=config.name,
                              right="the complete config.json")  # fmt: skip
    assert isinstance(queries, list)
    assert isinstance(kvs, list)
    assert isinstance(factors, list)
    step = config.whole("ffn_dim_divisor", 256)
    total = 0
    for q, kv, factor in zip(queries, kvs, factors, strict=False):
        wide = factor * hidden
        ffn = max(step, int(wide + step / 2) // step * step)
        ffn += step if ffn < 0.9 * wide else 0
        total += hidden * (q + 2 * kv) * each + q * each * hidden + 3 * hidden * ffn
        total += 2 * hidden + (2 * each if config.flag("normalize_qk_projections", True) else 0)
    vocab = config.whole("vocab")
    total += vocab * hidden * (1 if config.flag("share_input_output_layers", True) else 2) + hidden
    layers = len(queries)
    return ModelShape(
        name="openelm", total_params=float(total), active_params=float(total),
        embedding_params=float(vocab * hidden), layers=layers, hidden=hidden,
        heads=max(queries), kv_heads=max(kvs), head_dim=each, ffn=0, vocab=vocab,
        kv_width_total=float(2 * sum(kvs) * each), quantized_bits=config.quantized_bits(),
        exact=True,
    )  # fmt: skip


def sparse_attention(config: Config) -> ModelShape:
    """DeepSeek-V3.2 and GLM-5: latent attention with a lightning indexer a layer."""
    base = decoder.shape(config, SPECS["deepseek_v3"], exact=True, why="")
    heads, each = config.whole("index_n_heads", 64), config.whole("index_head_dim", 128)
    q_rank = config.whole("q_lora_rank")
    indexer = q_rank * heads * each + base.hidden * each + 2 * each + base.hidden * heads
    kinds = config.raw.get("indexer_types")
    own = base.layers  # layers whose indexer is their own and not the one of a layer before
    shares = config.model_type != "deepseek_v32"
    if shares and isinstance(kinds, list) and len(kinds) == base.layers:
        own = sum(1 for kind in kinds if kind != "shared")
    extra = float(indexer * own)
    width = base.mla_cache_width
    return replace(
        base, total_params=base.total_params + extra, active_params=base.active_params + extra,
        mla_cache_width=width,
    )  # fmt: skip


def qwen_vision(config: Config) -> ModelShape:
    """Qwen2.5-VL with its sizes on the top level: text and image tower."""
    base = decoder.shape(config, SPECS["qwen2"], exact=True, why="")
    raw = config.raw.get("vision_config")
    if not isinstance(raw, Mapping) or config.model_type != "qwen2_5_vl":
        return replace(base, exact=False, why_approximate="the image tower is not counted")
    tower = Config(raw, config.name)
    wide, ffn = tower.whole("hidden", 1280), tower.whole("ffn", 3420)
    out = tower.whole("out_hidden_size", base.hidden)
    layer = 4 * (wide * wide + wide) + 3 * wide * ffn + 2 * ffn + wide + 2 * wide
    merged = wide * tower.whole("spatial_merge_size", 2) ** 2
    extra = 3 * tower.whole("temporal_patch_size", 2) * tower.whole("patch_size", 14) ** 2 * wide
    extra += tower.whole("depth", 32) * layer
    extra += wide + merged * merged + merged + merged * out + out
    return replace(
        base, total_params=base.total_params + extra, active_params=base.active_params + extra,
        kind="vision-language",
    )  # fmt: skip


def phi3_vision(config: Config) -> ModelShape:
    """Phi-3 Vision: the text part and CLIP ViT-L/14 at 336 pixels, which its file only names."""
    base = decoder.shape(config, SPECS["phi3"], exact=True, why="")
    width = 1024  # of the tower; a picture's tokens are joined by four
    joined = 4 * width
    extra = _clip_tower(Config({}, config.name)) + joined * base.hidden + base.hidden
    extra += base.hidden**2 + base.hidden + 2 * joined  # separators of rows and pictures
    return replace(
        base, total_params=base.total_params + extra, active_params=base.active_params + extra,
        kind="vision-language",
    )  # fmt: skip


LLAMA_DEFAULTS: Mapping[str, Any] = {
    "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "intermediate_size": 11008, "vocab_size": 32000,
}  # fmt: skip


# Wholes of which all parts are counted here.
WHOLES = ("llava",)


def vision_language(config: Config, inner: Mapping[str, Any], key: str) -> ModelShape:
    """A model with a text part inside: the text is counted, the towers where they are known."""
    kind = str(inner.get("model_type") or "")
    text: dict[str, Any] = dict(inner)
    if kind in ("", "llama") and "hidden_size" not in text and config.model_type == "llava":
        text = {**LLAMA_DEFAULTS, **{k: v for k, v in text.items() if v is not None}}
    for name in ("tie_word_embeddings", "quantization_config", "vocab_size"):
        if name in config.raw and name not in text:
            text[name] = config.raw[name]
    reader = READERS.get(kind)
    part = Config({**text, "model_type": kind or "llama"}, config.name)
    spec = SPECS.get(kind or "llama")
    known = spec is not None
    base = (
        reader(part) if reader else decoder.shape(part, spec or SPECS["llama"], exact=known, why="")
    )
    tower = config.raw.get("vision_config")
    extra, missing = 0, ""
    if isinstance(tower, Mapping):
        if config.model_type == "llava":
            extra = _clip_tower(Config(tower, config.name))
            width = Config(tower, config.name).whole("hidden", 1024)
            extra += width * base.hidden + base.hidden + base.hidden * base.hidden + base.hidden
        else:
            extra, missing = tower_like_vit(Config(tower, config.name, nested=True))
    if config.model_type not in WHOLES:
        missing = missing or "parts beside the text are not counted"
    why = missing or ("" if known else f"the text part {kind!r} is read like Llama")
    return replace(
        base, total_params=base.total_params + extra, active_params=base.active_params + extra,
        exact=base.exact and not why, why_approximate=why or base.why_approximate,
        kind="vision-language" if isinstance(tower, Mapping) else base.kind,
        name=str(config.raw.get("_name_or_path") or config.model_type)[:80],
    )  # fmt: skip


# Keys that only networks of images, video or sound have.


def without_words(config: Config) -> ModelShape | None:
    """A network of images or sound that is not known here; None where it states no layers."""
    count, _ = tower_like_vit(config)
    if not count or not any(config.has(key) for key in SENSES):
        return None
    hidden = config.whole((config.stated("hidden") or ("embed_dim",))[0])
    layers = config.whole((config.stated("layers") or ("depth",))[0])
    why = f"the network {config.model_type or 'of this file'!r} is counted like a ViT"
    return _plain(
        config, count, hidden, layers, config.whole("heads", max(hidden // 64, 1)),
        config.whole("ffn", 4 * hidden), 0, 0.0, "encoder", why,
    )  # fmt: skip


def tower_like_vit(tower: Config) -> tuple[int, str]:
    """An image tower of an unknown kind: its layers as a ViT has them, and words that say so."""
    hidden = tower.stated("hidden") or tower.stated("embed_dim")
    layers = tower.stated("layers") or tower.stated("depth")
    if hidden is None or layers is None:
        return 0, "the image tower is not counted"
    name = hidden[0]
    wide, deep = tower.whole(name), tower.whole(layers[0])
    return deep * _encoder_layer(wide, tower.whole("ffn", 4 * wide)), (
        "the image tower is counted like a ViT, without what joins it to the text"
    )


def _clip_tower(tower: Config) -> int:
    """CLIP's image tower."""
    hidden, layers = tower.whole("hidden", 1024), tower.whole("layers", 24)
    ffn = tower.whole("ffn", 4096)
    patch, image = tower.whole("patch_size", 14), tower.whole("image_size", 336)
    rows = (image // patch) ** 2 + 1
    around = hidden + 3 * patch**2 * hidden + rows * hidden + 4 * hidden
    return around + layers * _encoder_layer(hidden, ffn)


READERS: dict[str, Callable[[Config], ModelShape]] = {
    "clip_text_model": clip_text,
    "vit": vit,
    "wav2vec2": wav2vec2,
    "t5": t5,
    "mt5": t5,
    "mamba": mamba,
    "falcon_mamba": mamba,
    "jamba": jamba,
    "openelm": openelm,
    "deepseek_v32": sparse_attention,
    "glm_moe_dsa": sparse_attention,
    "qwen2_vl": qwen_vision,
    "qwen2_5_vl": qwen_vision,
    "phi3_v": phi3_vision,
}
