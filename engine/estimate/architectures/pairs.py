"""Models put together from whole networks: an encoder and a decoder of any kind, Blt's four.

Their files hold a configuration for each part. Counts follow the public definitions in the
`transformers` library and are checked against it on the meta device
(tests/estimate/test_model_shape_pairs.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from engine.errors import ImportFileError
from engine.estimate.architectures.other import tower_like_vit
from engine.estimate.architectures.reading import Config
from engine.estimate.architectures.terms import formula_of, formulas
from engine.estimate.shape import ModelShape

Count = Callable[[Config], ModelShape]

KEYS = (("encoder", "decoder"), ("encoder_config", "decoder_config"))
# Wholes that the library makes of any two networks, whatever they are.
ANY_TWO = ("encoder-decoder", "vision-encoder-decoder", "speech-encoder-decoder")
# The class of an encoder without a head, of a decoder with a language model's.
TRUNKS = {
    "bert": "BertModel", "roberta": "RobertaModel", "xlm-roberta": "XLMRobertaModel",
    "camembert": "CamembertModel", "vit": "ViTModel", "deit": "DeiTModel", "beit": "BeitModel",
    "wav2vec2": "Wav2Vec2Model", "hubert": "HubertModel",
}  # fmt: skip
WRITERS = {
    "bert": "BertLMHeadModel", "roberta": "RobertaForCausalLM", "gpt2": "GPT2LMHeadModel",
    "trocr": "TrOCRForCausalLM", "mbart": "MBartForCausalLM", "bart": "BartForCausalLM",
}  # fmt: skip
# Decoders that get their attention to the encoder only where `add_cross_attention` says so.
WITHOUT = ("bert", "roberta", "gpt2")
ROUGHLY = "the attention between its parts is counted like that of the decoder's own layers"


def of_parts(config: Config, count: Count) -> ModelShape | None:
    """A model put together from networks with a configuration each; None for any other file.

    count : of one network, under the class that its configuration names

    Raises
    ------
    ImportFileError : for parts that are missing, and for sizes that are none
    """
    if config.model_type == BLT:
        return blt(config)
    parts = parts_of(config)
    if parts is None or formula_of(config.raw, config.model_type) is not None:
        return None
    return joined(config, parts, count)


def parts_of(config: Config) -> tuple[Config, Config] | None:
    """Encoder and decoder of a file that states no widths of its own; None for any other file."""
    for names in KEYS:
        found = [config.raw.get(name) for name in names]
        if all(isinstance(part, Mapping) for part in found) and not config.stated("hidden"):
            one, two = (Config(p, config.name, nested=True) for p in found if p is not None)
            return one, two
    return None


def joined(config: Config, parts: tuple[Config, Config], count: Count) -> ModelShape:
    """An encoder with a decoder that attends to it; widths and layers are the decoder's.

    Raises
    ------
    ImportFileError : for sizes of the decoder that are missing or none
    """
    encoder, decoder = parts
    writes = _named(decoder, WRITERS)
    # The layers of the part as the file has it; what it attends to is counted below.
    own = {k: v for k, v in writes.raw.items() if k != "add_cross_attention"}
    base = count(Config(own, config.name, nested=True))
    read, wide, doubt = _encoder(encoder, count)
    hidden = base.hidden
    layer = 4 * (hidden**2 + hidden) + 2 * hidden
    exact = config.model_type in ANY_TWO and decoder.model_type in WRITERS and base.exact
    crossed = decoder.flag("add_cross_attention", config.model_type in ANY_TWO)
    between = layer * base.layers if decoder.model_type in WITHOUT and crossed else 0
    if not exact:
        between = 4 * hidden**2 * base.layers
    elif wide and wide != hidden and not decoder.has("cross_attention_hidden_size"):
        between += wide * hidden + hidden  # what brings the encoder's width to the decoder's
    why = doubt or base.why_approximate or ("" if exact else ROUGHLY)
    total = base.total_params + read + between
    return replace(
        base, name=str(config.raw.get("_name_or_path") or config.model_type)[:80],
        total_params=total, active_params=total, kind="encoder-decoder", exact=not why,
        why_approximate=why,
    )  # fmt: skip


def _named(part: Config, classes: Mapping[str, str]) -> Config:
    """The part under the class that the whole makes of it."""
    name = classes.get(part.model_type)
    raw = {k: v for k, v in part.raw.items() if k != "architectures"}
    return Config(
        {**raw, **({"architectures": [name]} if name else {})}, part.name, nested=True
    )  # fmt: skip


def _encoder(part: Config, count: Count) -> tuple[float, int, str]:
    """Parameters of an encoder, its width, and words where they are not exact."""
    known = part.model_type in TRUNKS and TRUNKS[part.model_type] in formulas()
    if known:
        shape = count(_named(part, TRUNKS))
        return shape.total_params, shape.hidden, shape.why_approximate
    kind = part.model_type or "of this file"
    if part.stated("conv_kernel_size"):
        return float(_conformer(part)), 0, f"its encoder {kind!r} is counted like a Conformer"
    found, _ = tower_like_vit(part)
    if found:
        return float(found), 0, f"its encoder {kind!r} is counted like a ViT"
    return 0.0, 0, f"its encoder {kind!r} is not counted"


def _conformer(part: Config) -> int:
    """Layers with two MLPs, attention with positions, and convolutions (arXiv 2005.08100)."""
    hidden = part.whole("hidden")
    ffn = part.whole("ffn", 4 * hidden)
    mlps = 2 * (2 * hidden * ffn + ffn + hidden)
    attention = 5 * hidden**2 + 6 * hidden
    convolution = 3 * hidden**2 + (part.whole("conv_kernel_size") + 6) * hidden
    return part.whole("layers") * (mlps + attention + convolution + 10 * hidden)


# --- Byte Latent Transformer (arXiv 2412.09871)

BLT = "blt"
_PARTS = ("encoder_config", "global_config", "decoder_config", "patcher_config")


def blt(config: Config) -> ModelShape:
    """Bytes gathered to patches by a small encoder, a large network over patches, a decoder.

    The network that finds where patches end is part of the count: it is trained beforehand and
    stands still, so no token counts it as active. Widths and layers are the large network's.

    Raises
    ------
    ImportFileError : for parts that are missing, and for sizes that are none
    """
    parts = {}
    for name in _PARTS:
        raw = config.raw.get(name)
        if name == "patcher_config" and not config.flag("patch_in_forward", True):
            continue
        if not isinstance(raw, Mapping):
            raise ImportFileError(
                f"states no {name}", where=config.name, right="the complete config.json"
            )
        parts[name] = Config(raw, config.name, nested=True)
    encoder, whole, decoder = (parts[name] for name in _PARTS[:3])
    wide, narrow = whole.whole("hidden"), encoder.whole("hidden")
    out, words = decoder.whole("hidden"), config.whole("vocab", 260)
    folds = config.whole("cross_attn_k", 2)
    total = _blocks(encoder) + _crossed(encoder, False) + encoder.whole("vocab", 260) * narrow
    total += narrow**2 * encoder.whole("cross_attn_k", 2)
    total += _blocks(whole) + (narrow * folds * wide if narrow * folds != wide else 0)
    total += _blocks(decoder) + _crossed(decoder, True) + out
    total += decoder.whole("hidden_size_global", 2048) * out * decoder.whole("cross_attn_k", 2)
    sizes = config.raw.get("encoder_hash_byte_group_size")
    groups = len(sizes) if isinstance(sizes, list) and sizes else 6
    table = config.whole("encoder_hash_byte_group_nb_functions", 1) * groups * narrow
    table *= config.whole("encoder_hash_byte_group_vocab", 500_002)
    named = config.raw.get("architectures")
    head = 0 if isinstance(named, list) and named[:1] == ["BltModel"] else out * words
    total += table + head
    still = 0
    if "patcher_config" in parts:
        p = parts["patcher_config"]
        still = _blocks(p) + 2 * p.whole("vocab", 260) * p.whole("hidden") + p.whole("hidden")
    heads = whole.whole("heads")
    kv = whole.whole("kv_heads", heads)
    return ModelShape(
        name=str(config.raw.get("_name_or_path") or BLT)[:80], total_params=float(total + still),
        active_params=float(total), embedding_params=float(table + words * narrow + head),
        layers=whole.whole("layers"), hidden=wide, heads=heads, kv_heads=kv,
        head_dim=wide // heads, ffn=whole.whole("ffn", 8 * wide // 3), vocab=words,
        attention="mha" if kv == heads else "gqa", quantized_bits=config.quantized_bits(),
        exact=True, kind="hybrid",
    )  # fmt: skip


def _attention(part: Config) -> int:
    """Projections of queries, keys, values and output, without biases."""
    hidden, heads = part.whole("hidden"), part.whole("heads")
    return 2 * hidden * (hidden // heads) * (heads + part.whole("kv_heads", heads))


def _blocks(part: Config) -> int:
    """Layers like Llama's."""
    hidden = part.whole("hidden")
    mlp = 3 * hidden * part.whole("ffn", 8 * hidden // 3)
    return part.whole("layers") * (_attention(part) + mlp + 2 * hidden)


def _crossed(part: Config, everywhere: bool) -> int:
    """Attention between bytes and patches: in every layer, or in one."""
    times = part.whole("layers") if part.flag("cross_attn_all_layers", everywhere) else 1
    return times * (_attention(part) + 2 * part.whole("hidden"))
