"""Models and hardware that the tests of the training plan share."""

from __future__ import annotations

from engine.catalogue import load_catalogue
from engine.estimate.model_shape import shape_from_config
from engine.estimate.shape import ModelShape
from engine.estimate.training_hardware import HardwareChoice

CATALOGUE = load_catalogue()


def llama(layers: int, hidden: int, heads: int, ffn: int, kv: int = 8, vocab: int = 128256):
    """A dense model of the Llama family."""
    return shape_from_config(
        {
            "model_type": "llama", "hidden_size": hidden, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": kv, "intermediate_size": ffn,
            "vocab_size": vocab, "tie_word_embeddings": False,
        }
    )  # fmt: skip


B8: ModelShape = llama(32, 4096, 32, 14336)
B13: ModelShape = llama(40, 5120, 40, 13824, 40, 32000)
B70: ModelShape = llama(80, 8192, 64, 28672)
B405: ModelShape = llama(126, 16384, 128, 53248)
MIXTRAL: ModelShape = shape_from_config(
    {
        "model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
        "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
    }
)  # fmt: skip


def on(sku: str, network: str | None = None, usd: float | None = 2.0, **rest) -> HardwareChoice:
    """A choice of the catalogue's hardware."""
    net = CATALOGUE.networks[network] if network else None
    return HardwareChoice(CATALOGUE.accelerators[sku], net, usd, **rest)


H100 = "h100-sxm-80gb"
A100 = "a100-sxm-80gb"
