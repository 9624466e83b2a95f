"""The widths of any architecture from the names that configurations use; it counts nothing.

Lenient where a count comes from elsewhere: what a family leaves out takes the library's default.
Tells which layers keep a cache that grows, which are limited to a window, which hold a state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from engine.errors import ImportFileError
from engine.estimate.architectures.reading import ALIASES, Config
from engine.estimate.architectures.staged import NOTE, UNSTATED, largest_part, stages
from engine.estimate.architectures.terms import defaults, layer_kinds, tied_by_part
from engine.estimate.shape import AttentionKind, ModelShape
from engine.estimate.shape_from_size import shape_from_size

NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "decoder")
FULL = ("full_attention", "attention", "hybrid", "full", "global", "compressed_sparse_attention",
        "heavily_compressed_attention", "deepseek_sparse_attention")  # fmt: skip
WINDOWED = ("sliding_attention", "chunked_attention", "local", "sliding", "local_attention")
STATE = ("linear_attention", "mamba", "mamba2", "recurrent", "gdn", "kda", "linear")
# Families whose every n-th layer sees everything when the file says nothing, and those of which
# no layer does.
EVERY = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "gemma3n_text": 5, "cohere2": 4, "gpt_oss": 2,
         "olmo3": 4, "exaone4": 4, "llama4": 4, "llama4_text": 4}  # fmt: skip
ALL_WINDOWED = ("mistral", "mixtral", "phi3", "phimoe", "starcoder2")
FP32, BF16 = 4, 2  # bytes: a recurrent state is kept in 32 bits, a convolution's window in 16
MOST_LAYERS = 100_000
# Keys of networks that see or hear; one without words keeps nothing of what it has read.
SENSES = ("image_size", "patch_size", "num_channels", "in_channels", "num_mel_bins", "crop_size",
          "num_frames", "conv_dim", "conv_kernel_size", "sampling_rate", "depth")  # fmt: skip
UNGATED = ("gpt", "bloom", "opt", "mpt", "falcon", "starcoder2", "nemotron", "persimmon",
           "codegen", "ctrl", "xlm", "mbart", "bart")  # fmt: skip
GATED_ENCODERS = ("embedding_gemma", "modernbert", "nomic_bert", "gte", "eurobert", "dinov3")
READING = ("_encoder", "_ctc", "_vision", "_vision_model", "_qformer")  # as their types end
ENCODERS = (
    "bert", "vit", "clip", "siglip", "wav2vec", "hubert", "wavlm", "dino", "deit", "beit",
    "roberta", "xlm-roberta", "electra", "deberta", "distilbert", "albert", "mpnet", "camembert",
    "esm", "modernbert", "swin", "longformer", "nomic_bert", "ernie",
    "xmod", "layoutlm", "roc_bert", "xlnet", "xlm", "mobilebert", "squeezebert", "bros", "canine",
    "clap", "convbert", "data2vec", "dpr", "embedding_gemma", "eurobert", "flaubert", "flava",
    "fnet", "gte", "ibert", "jina_embeddings", "lilt", "luke", "markuplm", "mra", "neomme",
    "nystromformer", "patchtst", "perceiver", "sew", "splinter", "tapas", "tipsv2", "tvp",
    "ultrabert", "unispeech", "vilt", "visual_bert", "yoso",
)  # fmt: skip


def text_part(config: Config) -> tuple[Config, str]:
    """The part that reads and writes text, and the prefix of its keys."""
    for key in NESTED:
        inner = config.raw.get(key)
        if isinstance(inner, Mapping):
            again, prefix = text_part(Config(inner, config.name, nested=True))
            return again, f"{key}.{prefix}"
    return config, ""


class Outline:
    """Reads one configuration by role; the library's default of a key stands in for a gap."""

    def __init__(self, config: Config) -> None:
        self.config, self.prefix = text_part(config)
        self.usual = defaults().get(config.model_type, {})
        own = self.config.stated("hidden") or any(
            self.prefix + key in self.usual for key in ALIASES["hidden"])  # fmt: skip
        part = None if own or self.prefix else largest_part(config)
        if part is not None:
            self.config, self.prefix = part
        self.own = defaults().get(self.config.model_type, {})

    def whole(self, name: str, default: int, least: int = 0) -> int:
        """A size by its role, whatever the family calls it."""
        found = self.config.stated(name)
        if found is not None and isinstance(found[1], list) and found[1]:
            # A value a stage or a layer: the widest stands for them.
            last = {found[0]: max((x for x in found[1] if isinstance(x, int)), default=None)}
            return Config(last, self.config.name).whole(name, default, least=least)
        if found is not None:
            return self.config.whole(name, least=least)
        for key in ALIASES.get(name, (name,)):
            for usual in (self.usual.get(self.prefix + key), self.own.get(key)):
                if usual is not None and usual.isdigit():
                    return max(int(usual), least)
        return default

    def width(self) -> int:
        """Elements of a layer; 0 where neither file nor library has one under a known name."""
        return self._first("hidden", "emb_dim", "embed_dim")

    def depth(self) -> int:
        """Layers; 0 as above."""
        return self._first(
            "layers", "depth", "decoder_num_hidden_layers", "encoder_num_hidden_layers",
            "conf_num_hidden_layers", "num_spatial_layers", "num_self_attends_per_block",
        )  # fmt: skip

    def _first(self, *names: str) -> int:
        return next(filter(None, (self.whole(name, 0) for name in names)), 0)

    def kinds(self, layers: int) -> Counter[str]:
        """How many layers are of each kind; a list that is too short repeats."""
        raw = self.config.raw
        for key in ("layer_types", "layers_block_type", "block_types", "attention_layers"):
            listed = raw.get(key)
            if isinstance(listed, list) and listed and all(isinstance(x, str) for x in listed):
                return Counter(listed[i % len(listed)] for i in range(min(layers, MOST_LAYERS)))
        every = f"{self.prefix}full_attention_interval"
        if "full_attention_interval" in raw or every in self.usual:
            return Counter(layer_kinds(self._stated, self.usual, "", layers))
        return Counter()

    def _stated(self, key: str) -> Any:
        value = self.config.raw.get(key)
        return value if isinstance(value, int) and value > 0 else None


def outline(config: Config, total_params: float = 0.0) -> ModelShape:
    """A shape whose counts are still zero.

    total_params : for files that state no width or no layers, the size whose usual widths are taken

    Raises
    ------
    ImportFileError : for sizes that are no sizes, or that contradict each other
    """
    o = Outline(config)
    staged = None if _one_width(o.config) else stages(o.config)
    if staged is not None:
        return _of_stages(config, *staged, NOTE)
    hidden, layers = o.width(), o.depth()
    if total_params and not (hidden and layers):
        usual = shape_from_size(total_params / 1e9)
        return _of_stages(config, usual.hidden, usual.layers, usual.heads, UNSTATED)
    hidden, layers = max(hidden, 1), max(layers, 1)
    heads = o.whole("heads", 1, 1)
    kv = o.whole("kv_heads", heads, 1) if o.config.stated("kv_heads") else heads
    if heads % kv:
        raise ImportFileError(
            f"{heads} heads can't share {kv} key-value heads", where=config.name,
            right="a number of heads that the key-value heads divide",
        )  # fmt: skip
    head_dim = o.whole("head_dim", 0)
    if not o.config.stated("head_dim") and not o.own.get("head_dim", "").isdigit():
        head_dim = hidden // heads
    rank, rope = o.whole("kv_lora_rank", 0), o.whole("qk_rope_head_dim", 0)
    latent = rank + rope if o.config.stated("kv_lora_rank") else 0
    kind: AttentionKind = "mla" if latent else "mha"
    if not latent and kv < heads:
        kind = "mqa" if kv == 1 else "gqa"
    kinds = o.kinds(layers)
    states = sum(kinds[k] for k in STATE)
    windows, window = windowed(o.config, kinds, layers)
    experts = o.whole("experts", 0) if o.config.stated("experts") else 0
    ffn = o.whole("ffn", 4 * hidden)
    kind_of_model = _kind(config, o, states)
    vocab = o.whole("vocab", 0)
    tied = kind_of_model == "encoder" or _tied(config, o)
    return ModelShape(
        name=str(config.raw.get("_name_or_path") or config.model_type or config.name)[:80],
        total_params=0.0, active_params=0.0,
        embedding_params=float(vocab * hidden * (1 if tied else 2)), layers=layers,
        hidden=hidden, heads=heads, kv_heads=kv, head_dim=head_dim, ffn=ffn, vocab=vocab,
        gated_mlp=not _plain_mlp(o.config, kind_of_model), tied_embeddings=tied, attention=kind,
        kv_layers=layers - states - kinds["conv"] if kinds else None,
        window_layers=windows, window_tokens=window, mla_cache_width=latent,
        experts=experts, experts_per_token=o.whole("top_k", 1) if experts else 0,
        shared_experts=int(o.whole("n_shared_experts", 0) > 0),
        expert_ffn=o.whole("expert_ffn", ffn) if experts else 0,
        dense_layers=min(o.whole("first_k_dense_replace", 0), layers) if experts else 0,
        state_layers=states, state_bytes_per_layer=float(state_bytes(o.config, hidden)),
        quantized_bits=config.quantized_bits() or o.config.quantized_bits(),
        kind=kind_of_model,
    )  # fmt: skip


def _one_width(config: Config) -> bool:
    """Whether a file states a width as one number and not as one for each stage."""
    found = config.stated("hidden")
    return found is not None and isinstance(found[1], int | float) and not config.has("depths")


def _of_stages(config: Config, hidden: int, layers: int, heads: int, note: str) -> ModelShape:
    """A network that is not made of like layers, and keeps nothing of what it has read."""
    return ModelShape(
        name=str(config.raw.get("_name_or_path") or config.model_type or config.name)[:80],
        total_params=0.0, active_params=0.0, embedding_params=0.0, layers=layers, hidden=hidden,
        heads=heads, kv_heads=heads, head_dim=hidden // heads, ffn=4 * hidden, vocab=0,
        gated_mlp=False, tied_embeddings=True, attention="none", kv_layers=0,
        quantized_bits=config.quantized_bits(), kind="encoder", note=note,
    )  # fmt: skip


def _tied(config: Config, o: Outline) -> bool:
    """Whether head and embedding are one: as stated, else as the library has it."""
    told = tied_by_part(config.raw, config.model_type)
    if told is not None:
        return told
    for raw in (config.raw, o.config.raw):
        if isinstance(raw.get("tie_word_embeddings"), bool):
            return bool(raw["tie_word_embeddings"])
    usual = o.own.get("tie_word_embeddings", o.usual.get("tie_word_embeddings", "1"))
    return usual != "0"


def windowed(config: Config, kinds: Counter[str], layers: int) -> tuple[int, int]:
    """Layers that attend to a window only, and its tokens.

    As listed, else by the period that the file or the family's definition gives. A family that is
    not known here is taken to look at everything: that asks for more memory, never for less.
    """
    raw = config.raw
    window = raw.get("sliding_window") or raw.get("attention_chunk_size")
    if isinstance(window, bool) or not isinstance(window, int) or window <= 0:
        return 0, 0
    if raw.get("use_sliding_window") is False:
        return 0, 0
    if kinds:
        return sum(kinds[k] for k in WINDOWED), window
    every = raw.get("sliding_window_pattern")
    if isinstance(every, str):
        every = len(every)
    if not isinstance(every, int) or isinstance(every, bool) or every < 2:
        every = EVERY.get(config.model_type, 0)
    if every:
        return layers - layers // every, window
    first = raw.get("max_window_layers")
    if raw.get("use_sliding_window") is True and isinstance(first, int):
        return min(max(layers - first, 0), layers), window
    return (layers, window) if config.model_type in ALL_WINDOWED else (0, 0)


def state_bytes(config: Config, hidden: int) -> int:
    """Bytes that a linear-attention or Mamba-2 layer keeps for a sequence, whatever its length."""

    def read(key: str, default: int = 0) -> int:
        value = config.raw.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    if read("linear_num_value_heads"):
        keys = read("linear_num_key_heads") * read("linear_key_head_dim")
        values = read("linear_num_value_heads") * read("linear_value_head_dim")
        window = (2 * keys + values) * read("linear_conv_kernel_dim", 4)
        return values * read("linear_key_head_dim") * FP32 + window * BF16
    heads, width = read("mamba_n_heads") or read("mamba_num_heads"), read("mamba_d_head")
    inner = heads * (width or read("mamba_head_dim")) or hidden * read("mamba_expand")
    size = read("mamba_d_state") or read("ssm_state_size")
    groups = read("mamba_n_groups") or read("n_groups", 1)
    window = (inner + 2 * groups * size) * (read("mamba_d_conv") or read("conv_kernel", 4))
    return inner * size * FP32 + window * BF16 if inner and size else 0


def _plain_mlp(config: Config, kind: str) -> bool:
    """Whether the MLP has two matrices: by family, or by the names of families without a gate."""
    own = config.model_type
    if own in ("gpt_oss", "modernbert-decoder", "ernie4_5", "ernie4_5_moe"):
        return False
    if own == "phi":
        return True
    if kind == "encoder":
        return not own.startswith(GATED_ENCODERS)
    named = config.has("activation_function") or config.has("encoder_ffn_dim")
    return named or own.startswith(UNGATED)


def _kind(config: Config, o: Outline, states: int) -> str:
    if isinstance(config.raw.get("vision_config"), Mapping):
        return "vision-language"
    if (
        config.raw.get("is_encoder_decoder") is True
        or config.has("decoder_layers")
        or isinstance(config.raw.get("decoder_config"), Mapping)
    ):
        return "encoder-decoder"
    if states:
        return "hybrid"
    if not o.whole("vocab", 0) and any(o.config.has(key) for key in SENSES):
        return "encoder"
    decoders = ("modernbert-decoder", "ernie4_5")
    own = config.model_type
    reads = own.startswith(ENCODERS) or own.endswith(READING)
    return "encoder" if reads and not own.startswith(decoders) else "decoder"
