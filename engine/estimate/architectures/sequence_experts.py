"""Encoder-decoders with experts in every so many layers: Switch Transformers and NLLB-MoE.

Counts follow the public definitions in the `transformers` library and are checked against it on
the meta device (tests/estimate/test_model_shape_classes.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.errors import ImportFileError
from engine.estimate.architectures.reading import Config
from engine.estimate.shape import ModelShape


@dataclass(frozen=True, slots=True)
class Stack:
    """Encoder or decoder: its layers, those with experts, parameters of one layer's parts."""

    layers: int
    sparse: int
    attention: int  # with its norm, and the attention to the encoder where there is one
    mlp: int  # one MLP or one expert
    router: int


def _shape(
    config: Config, stacks: tuple[Stack, Stack], around: int, *, experts: int, top: int,
    heads: int, head_dim: int, ffn: int, norm: int,
) -> ModelShape:  # fmt: skip
    """The whole of two stacks; `around` is what lies outside of their layers, embedding aside."""
    width, vocab = config.whole("d_model"), config.whole("vocab")
    tied = config.tied(True)
    # Not tied, the library keeps a table of its own for each stack beside the shared one.
    table = vocab * width * (1 if tied else 4)
    total = active = around + table
    for s in stacks:
        always = s.layers * (s.attention + norm) + (s.layers - s.sparse) * s.mlp
        always += s.sparse * s.router
        total += always + s.sparse * experts * s.mlp
        active += always + s.sparse * min(top, experts) * s.mlp
    encoder = stacks[0]
    return ModelShape(
        name=str(config.raw.get("_name_or_path") or config.model_type)[:80],
        total_params=float(total), active_params=float(active), embedding_params=float(table),
        layers=encoder.layers, hidden=width, heads=heads, kv_heads=heads, head_dim=head_dim,
        ffn=ffn, vocab=vocab, gated_mlp=False, tied_embeddings=tied, attention="mha",
        experts=experts, experts_per_token=min(top, experts), expert_ffn=ffn,
        dense_layers=encoder.layers - encoder.sparse, quantized_bits=config.quantized_bits(),
        exact=True, kind="encoder-decoder",
    )  # fmt: skip


def switch(config: Config) -> ModelShape:
    """Switch Transformers (arXiv 2101.03961): T5 with one of several MLPs a token.

    Raises
    ------
    ImportFileError : for sizes that are missing or no whole numbers
    """
    width, inner = config.whole("d_model"), config.whole("num_heads") * config.whole("d_kv")
    ffn, experts = config.whole("d_ff"), config.whole("num_experts", 8)
    router = width * experts + (experts if config.flag("router_bias") else 0)
    layers = config.whole("num_layers")
    depths = (layers, config.whole("num_decoder_layers", layers))
    stacks = []
    for side, depth in zip(("encoder", "decoder"), depths, strict=True):
        wanted = config.whole(f"num_sparse_{side}_layers", 3, least=0)
        step = depth // wanted if wanted else depth
        if step == 0:
            raise ImportFileError(
                f"num_sparse_{side}_layers is {wanted} of {depth} layers", where=config.name,
                right=f"at most {depth}",
            )  # fmt: skip
        sparse = sum(step == 1 or i % step == 1 for i in range(depth))
        blocks = 1 if side == "encoder" else 2
        stacks.append(Stack(depth, sparse, blocks * (4 * width * inner + width), 2 * width * ffn,
                            router))  # fmt: skip
    around = 2 * config.whole("relative_attention_num_buckets", 32) * config.whole("num_heads")
    return _shape(config, (stacks[0], stacks[1]), around + 2 * width, experts=experts, top=1,
                  heads=config.whole("num_heads"), head_dim=config.whole("d_kv"), ffn=ffn,
                  norm=width)  # fmt: skip


def nllb(config: Config) -> ModelShape:
    """NLLB-MoE (arXiv 2207.04672): two of the experts a token in every fourth layer.

    Raises
    ------
    ImportFileError : for sizes that are missing or no whole numbers
    """
    width, experts = config.whole("d_model"), config.whole("num_experts", 128)
    heads = config.whole("encoder_attention_heads")
    router = width * experts + (experts if config.flag("router_bias") else 0)
    norm, attention = 2 * width, 4 * (width * width + width)
    stacks = []
    for side, blocks in (("encoder", 1), ("decoder", 2)):
        depth, ffn = config.whole(f"{side}_layers"), config.whole(f"{side}_ffn_dim")
        step = config.whole(f"{side}_sparse_step", 4, least=0)
        mlp = 2 * width * ffn + ffn + width
        stacks.append(Stack(depth, depth // step if step else 0, blocks * (attention + norm), mlp,
                            router))  # fmt: skip
    return _shape(
        config, (stacks[0], stacks[1]), 2 * norm, experts=experts, top=2, heads=heads,
        head_dim=width // heads, ffn=config.whole("encoder_ffn_dim"), norm=norm,
    )  # fmt: skip


READERS: dict[str, Callable[[Config], ModelShape]] = {
    "nllb-moe": nllb,
    "switch_transformers": switch,
}
