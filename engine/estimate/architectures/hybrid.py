"""Decoders in which most layers keep a state in place of a cache: Mamba-2 and short convolutions.

Counts follow the public definitions in the `transformers` library and are checked against it on
the meta device (tests/estimate/test_model_shape.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.errors import ImportFileError
from engine.estimate.architectures.outline import outline
from engine.estimate.architectures.reading import Config
from engine.estimate.shape import ModelShape

FP32, BF16 = 4, 2  # bytes: the state is kept in 32 bits, the convolution's window in 16
# Names of a layer's kind in lists of layers, as letters of Nemotron-H's pattern.
LETTERS = {
    "mamba": "M", "mamba2": "M", "linear_attention": "M", "conv": "M", "attention": "*",
    "full_attention": "*", "mlp": "-", "moe": "E",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mixer:
    """A Mamba-2 layer: its parameters, and the bytes of state that a sequence keeps in it."""

    params: int
    state_bytes: float


def mamba2_mixer(config: Config, *, inner: int, heads: int, state: int, groups: int, kernel: int,
                 bias: bool, conv_bias: bool) -> Mixer:  # fmt: skip
    """One Mamba-2 mixer (arXiv 2405.21060): projections, convolution, norm, a step size a head."""
    hidden = config.whole("hidden")
    channels = inner + 2 * groups * state
    wide = inner + channels + heads
    params = hidden * wide + channels * kernel + 3 * heads + inner + inner * hidden
    params += (wide + hidden if bias else 0) + (channels if conv_bias else 0)
    return Mixer(params, float(inner * state * FP32 + channels * kernel * BF16))


def _named_mixer(config: Config) -> Mixer:
    """The mixer in the names of Bamba and Granite: `mamba_…`."""
    return mamba2_mixer(
        config, inner=config.whole("hidden") * config.whole("mamba_expand", 2),
        heads=config.whole("mamba_n_heads", 128), state=config.whole("mamba_d_state", 256),
        groups=config.whole("mamba_n_groups", 1), kernel=config.whole("mamba_d_conv", 4),
        bias=config.flag("mamba_proj_bias"), conv_bias=config.flag("mamba_conv_bias", True),
    )  # fmt: skip


def letters(config: Config, layers: int, usual: str) -> str:
    """A letter a layer: M keeps a state, * attends, - is an MLP, E holds experts.

    Raises
    ------
    ImportFileError : for a kind of layer that is not known here
    """
    pattern = config.raw.get("hybrid_override_pattern")
    if isinstance(pattern, str) and pattern:
        if not set(pattern) <= set("M*-E"):
            raise ImportFileError(f"hybrid_override_pattern is {pattern[:40]!r}", where=config.name,
                                  right="letters M, *, - and E")  # fmt: skip
        return pattern
    for key in ("layers_block_type", "layer_types"):
        listed = config.raw.get(key)
        if isinstance(listed, list) and listed:
            unknown = next((k for k in listed if str(k) not in LETTERS), None)
            if unknown is not None:
                raise ImportFileError(f"{key} names {str(unknown)[:40]!r}", where=config.name,
                                      right=f"one of {', '.join(LETTERS)}")  # fmt: skip
            return "".join(LETTERS[str(k)] for k in listed)
    for key in ("attn_layer_indices", "full_attn_idxs"):
        listed = config.raw.get(key)
        if isinstance(listed, list):
            return "".join("*" if i in listed else "M" for i in range(layers))
    return usual * layers


def _attention(config: Config, base: ModelShape, bias: bool) -> int:
    q, kv = base.heads * base.head_dim, base.kv_heads * base.head_dim
    count = base.hidden * (2 * q + 2 * kv)
    return count + (q + 2 * kv + base.hidden if bias else 0)


def _finished(config: Config, total: int, routed: int, pattern: str, state: float,
              tied: bool, **changed: object) -> ModelShape:  # fmt: skip
    """Embedding, head and final norm added; layers that attend and that keep a state counted."""
    base = outline(config)
    tied = config.tied(tied)
    vocab, hidden = config.whole("vocab"), base.hidden
    total += vocab * hidden * (1 if tied else 2) + hidden
    share = min(base.experts_per_token / base.experts, 1.0) if base.experts else 0.0
    shape = replace(
        base, total_params=float(total),
        active_params=float(total - routed + round(routed * share)),
        embedding_params=float(vocab * hidden * (1 if tied else 2)), tied_embeddings=tied,
        layers=len(pattern), kv_layers=pattern.count("*"), state_layers=pattern.count("M"),
        window_layers=0, window_tokens=0, state_bytes_per_layer=state, exact=True, kind="hybrid",
    )  # fmt: skip
    return replace(shape, **changed)  # type: ignore[arg-type]


def mamba2(config: Config) -> ModelShape:
    """Mamba-2: no attention at all, so no cache that grows."""
    hidden, layers = config.whole("hidden"), config.whole("layers")
    mixer = mamba2_mixer(
        config, inner=hidden * config.whole("expand", 2), heads=config.whole("heads", 128),
        state=config.whole("state_size", 128), groups=config.whole("n_groups", 8),
        kernel=config.whole("conv_kernel", 4), bias=config.flag("use_bias"),
        conv_bias=config.flag("use_conv_bias", True),
    )  # fmt: skip
    return _finished(config, layers * (mixer.params + hidden), 0, "M" * layers, mixer.state_bytes,
                     tied=False, attention="none", kind="state-space")  # fmt: skip


def granite_hybrid(config: Config) -> ModelShape:
    """Granite 4: Mamba-2 or attention, then experts beside a shared MLP in every layer."""
    base, mixer = outline(config), _named_mixer(config)
    hidden, layers = base.hidden, base.layers
    pattern = letters(config, layers, "M")
    count = config.whole("num_local_experts", 8, least=0)
    routed = 3 * hidden * config.whole("ffn", 11_008) * count if count else 0
    each = 2 * hidden + 3 * hidden * config.whole("shared_intermediate_size", 1024)
    each += routed + hidden * count
    total = pattern.count("M") * mixer.params + layers * each
    total += pattern.count("*") * _attention(config, base, config.flag("attention_bias"))
    return _finished(config, total, layers * routed, pattern, mixer.state_bytes, tied=False,
                     shared_experts=1 if count else 0)  # fmt: skip


def bamba(config: Config) -> ModelShape:
    """Bamba: Mamba-2 or attention, then a gated MLP in every layer."""
    base, mixer = outline(config), _named_mixer(config)
    hidden, ffn = base.hidden, config.whole("ffn", 14_336)
    pattern = letters(config, base.layers, "M")
    each = 2 * hidden + 3 * hidden * ffn + (2 * ffn + hidden if config.flag("mlp_bias") else 0)
    total = pattern.count("M") * mixer.params + base.layers * each
    total += pattern.count("*") * _attention(config, base, config.flag("attention_bias"))
    return _finished(config, total, 0, pattern, mixer.state_bytes, tied=False)


def falcon_h1(config: Config) -> ModelShape:
    """Falcon-H1: attention and Mamba-2 side by side in every layer, then a gated MLP."""
    base = outline(config)
    hidden, layers, ffn = base.hidden, base.layers, config.whole("ffn", 14_336)
    inner = config.whole("mamba_d_ssm", hidden * config.whole("mamba_expand", 2))
    mixer = mamba2_mixer(
        config, inner=inner, heads=config.whole("mamba_n_heads", 128),
        state=config.whole("mamba_d_state", 256), groups=config.whole("mamba_n_groups", 1),
        kernel=config.whole("mamba_d_conv", 4), bias=False,
        conv_bias=config.flag("mamba_conv_bias", True),
    )  # fmt: skip
    state, groups = config.whole("mamba_d_state", 256), config.whole("mamba_n_groups", 1)
    each = mixer.params + 2 * hidden + 3 * hidden * ffn
    each -= 0 if config.flag("mamba_rms_norm") else inner  # its norm is a choice here
    if config.flag("mamba_proj_bias"):
        each += 2 * inner + 2 * groups * state + config.whole("mamba_n_heads", 128)
    each += hidden if config.flag("projectors_bias") else 0
    each += 2 * ffn + hidden if config.flag("mlp_bias") else 0
    each += _attention(config, base, config.flag("attention_bias"))
    found = _finished(config, layers * each, 0, "M" * layers, mixer.state_bytes, tied=False)
    return replace(found, kv_layers=layers)


def lfm2(config: Config) -> ModelShape:
    """LFM2: short convolutions, attention in some layers, an MLP whose width is rounded."""
    ffn = config.whole("block_ff_dim", config.whole("ffn", 12_288))
    if config.flag("block_auto_adjust_ff_dim", True):
        ffn = int(2 * ffn / 3)
        factor = config.raw.get("block_ffn_dim_multiplier", 1.0)
        step = config.whole("block_multiple_of", 256)
        if isinstance(factor, int | float) and 0 < factor < 1000:
            ffn = step * -(-int(factor * ffn) // step)
    return _convolutional(config, ffn, 0)


def lfm2_moe(config: Config) -> ModelShape:
    """LFM2 with experts in all layers but the first few."""
    return _convolutional(config, config.whole("ffn", 7168), config.whole("experts", 32))


def _convolutional(config: Config, ffn: int, experts: int) -> ModelShape:
    base = outline(config)
    hidden, layers = base.hidden, base.layers
    pattern = letters(config, layers, "*")
    kernel = config.whole("conv_L_cache", 3)
    conv = hidden * kernel + 4 * hidden * hidden + (5 * hidden if config.flag("conv_bias") else 0)
    attention = _attention(config, base, bias=False) + 2 * base.head_dim
    total = pattern.count("M") * conv + pattern.count("*") * attention + 2 * layers * hidden
    dense = min(config.whole("num_dense_layers", 2, least=0), layers) if experts else layers
    routed = (layers - dense) * 3 * hidden * config.whole("expert_ffn", ffn) * experts
    total += dense * 3 * hidden * ffn + (layers - dense) * hidden * experts + routed
    stated = config.raw.get("tie_embedding", config.raw.get("tie_word_embeddings"))
    tied = Config({**config.raw, "tie_word_embeddings": stated}, config.name)
    return _finished(tied, total, routed, pattern, float(hidden * kernel * BF16), tied=True,
                     ffn=ffn, dense_layers=dense if experts else 0)  # fmt: skip


def nemotron_h(config: Config) -> ModelShape:
    """Nemotron-H: one thing a layer: Mamba-2 (M), attention (*), MLP (-) or experts (E).

    Raises
    ------
    ImportFileError : when the file tells no kinds of layers
    """
    pattern = letters(config, 0, "")
    if not pattern:
        raise ImportFileError("states no hybrid_override_pattern", where=config.name,
                              right="the complete config.json")  # fmt: skip
    base = outline(Config({"num_hidden_layers": len(pattern), **config.raw}, config.name))
    hidden, bias = base.hidden, config.flag("mlp_bias")
    mixer = mamba2_mixer(
        config, inner=config.whole("mamba_num_heads", 128) * config.whole("mamba_head_dim", 64),
        heads=config.whole("mamba_num_heads", 128), state=config.whole("ssm_state_size", 128),
        groups=config.whole("mamba_n_groups", config.whole("n_groups", 8)),
        kernel=config.whole("mamba_d_conv", config.whole("conv_kernel", 4)),
        bias=config.flag("use_bias"),
        conv_bias=config.flag("mamba_conv_bias", config.flag("use_conv_bias", True)),
    )  # fmt: skip
    ffn = config.whole("ffn", 4 * hidden)
    mlp = 2 * hidden * ffn + (ffn + hidden if bias else 0)
    count = config.whole("experts", 8, least=0) if "E" in pattern else 0
    latent = config.whole("moe_latent_size", hidden)
    routed = 2 * latent * config.whole("expert_ffn", ffn) * count
    shared = config.whole("moe_shared_expert_intermediate_size", ffn, least=0)
    always = hidden * count + 2 * hidden * shared + (shared + hidden if bias else 0)
    if config.has("moe_latent_size"):
        always += 2 * hidden * latent + (hidden + latent if bias else 0)
    kinds = {"M": mixer.params, "*": _attention(config, base, bias=False), "-": mlp,
             "E": always + routed}  # fmt: skip
    total = sum(kinds[letter] + hidden for letter in pattern)
    # The library never ties this family's head, whatever the file says.
    known = Config({"num_hidden_layers": len(pattern), **config.raw, "tie_word_embeddings": False},
                   config.name)  # fmt: skip
    return _finished(
        known, total, pattern.count("E") * routed, pattern, mixer.state_bytes, tied=False,
        gated_mlp=False, expert_ffn=config.whole("expert_ffn", ffn) if count else 0,
        experts=count, experts_per_token=base.experts_per_token if count else 0,
        shared_experts=1 if count and shared else 0,
    )  # fmt: skip


def recurrent_gemma(config: Config) -> ModelShape:
    """RecurrentGemma (Griffin, arXiv 2402.19427): gated linear recurrences, local attention."""
    hidden, layers = config.whole("hidden"), config.whole("layers")
    heads, ffn = config.whole("heads"), config.whole("ffn") // 2  # the width of both halves
    width = config.whole("head_dim", hidden // max(heads, 1))
    kv, inner = config.whole("kv_heads", heads), config.whole("lru_width", hidden)
    listed = config.raw.get("block_types")
    pattern = [str(x) for x in listed] if isinstance(listed, list) and listed else [
        "recurrent", "recurrent", "attention"]  # fmt: skip
    kinds = [pattern[i % len(pattern)] for i in range(layers)]
    query, keys = heads * width, kv * width
    bias = query + 2 * keys if config.flag("attention_bias") else 0
    attention = 2 * hidden * query + 2 * hidden * keys + hidden + bias
    kernel = config.whole("conv1d_width", 4)
    recurrent = 3 * hidden * inner + 2 * inner + hidden + inner * (kernel + 1)
    recurrent += 3 * inner + 2 * inner * inner // max(heads, 1)  # two gates in blocks a head
    each = 2 * hidden + 3 * hidden * ffn + 2 * ffn + hidden
    attends = kinds.count("attention")
    table = config.whole("vocab") * hidden
    tied = config.tied(True)
    total = layers * each + attends * attention + (layers - attends) * recurrent + hidden
    total += table * (1 if tied else 2)
    base = outline(Config({**config.raw, "head_dim": width}, config.name))
    window = config.whole("attention_window_size", 2048)
    return replace(
        base, total_params=float(total), active_params=float(total), exact=True,
        why_approximate="", ffn=ffn, gated_mlp=True, tied_embeddings=tied, kv_layers=attends,
        embedding_params=float(table * (1 if tied else 2)), kind="hybrid",
        window_layers=attends, window_tokens=window, state_layers=layers - attends,
        state_bytes_per_layer=float(inner * FP32 + inner * (kernel - 1) * BF16),
    )  # fmt: skip


READERS: dict[str, Callable[[Config], ModelShape]] = {
    "mamba2": mamba2,
    "granitemoehybrid": granite_hybrid,
    "bamba": bamba,
    "falcon_h1": falcon_h1,
    "lfm2": lfm2,
    "lfm2_moe": lfm2_moe,
    "nemotron_h": nemotron_h,
    "recurrent_gemma": recurrent_gemma,
}
