"""The shape of a neural network as the estimates need it: counts and widths, no file formats.

`model_shape.py` makes a `ModelShape` from a `config.json` or from a size alone; memory, training
and serving read it. Counts are numbers of parameters, widths numbers of elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AttentionKind = Literal["mha", "gqa", "mqa", "mla", "none"]


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Widths and counts of one network.

    `total_params` counts every parameter, `active_params` those that one token passes through
    (routed experts times top-k), `embedding_params` the input embedding (and the head when it is
    not tied). `exact` tells whether the counts come from the architecture's own formula.
    """

    name: str
    total_params: float
    active_params: float
    embedding_params: float
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    gated_mlp: bool = True
    tied_embeddings: bool = False
    attention: AttentionKind = "gqa"
    # Layers that keep a KV cache that grows with the context (hybrids: fewer than `layers`).
    kv_layers: int | None = None
    # Sliding-window layers among kv_layers and their window in tokens.
    window_layers: int = 0
    window_tokens: int = 0
    # Keys and values of all layers together, elements a token, where layers differ (0: they don't).
    kv_width_total: float = 0.0
    # MLA: compressed KV width (kv_lora_rank + rope head dim) cached per token and layer.
    mla_cache_width: int = 0
    # Mixture of experts.
    experts: int = 0
    experts_per_token: int = 0
    shared_experts: int = 0
    expert_ffn: int = 0
    dense_layers: int = 0
    # State-space layers: fixed bytes of state per sequence and layer.
    state_layers: int = 0
    state_bytes_per_layer: float = 0.0
    # Weights as shipped, bits per weight on average (None: as chosen by the plan).
    quantized_bits: float | None = None
    exact: bool = False
    why_approximate: str = ""
    kind: str = "decoder"
    # A doubt about the file that does not touch the counts, in words for the user.
    note: str = ""

    @property
    def doubts(self) -> tuple[str, ...]:
        """What its user must know: why the counts are approximate, what is odd about the file."""
        why = (
            "" if self.exact or not self.why_approximate else f"approximate, {self.why_approximate}"
        )
        return tuple(filter(None, (why, self.note)))

    @property
    def is_moe(self) -> bool:
        """Whether tokens are routed among experts."""
        return self.experts > 1
