"""One row an architecture: biases, norms, positions, ties. Adding an architecture is adding a row.

Facts read from the public definitions in the `transformers` library; counts are checked against
it on the meta device (tests/estimate/test_model_shape.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Norm = Literal["rms", "layer", "layer_no_bias", "none"]


@dataclass(frozen=True, slots=True)
class Spec:
    """How the parts of one architecture's layers are built.

    norms : per layer; qk_norm : none, one weight a head dimension, or over the full width
    tied : whether embedding and head are one when the config does not say
    learned_positions : extra rows beside max_position_embeddings, or None for no table
    """

    norm: Norm = "rms"
    norms: int = 2
    final_norm: bool = True
    embedding_norm: bool = False
    qkv_bias: bool | str = False
    out_bias: bool | str = False
    mlp_bias: bool | str = False
    gated: bool = True
    qk_norm: Literal["none", "head", "full"] = "none"
    tied: bool = False
    head_bias: bool = False
    learned_positions: int | None = None
    attention: Literal["plain", "mla"] = "plain"
    shared_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    always_tied: bool = False


LLAMA = Spec(qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias")
GPT = Spec(norm="layer", qkv_bias=True, out_bias=True, mlp_bias=True, gated=False)

SPECS: dict[str, Spec] = {
    "llama": LLAMA,
    "mistral": Spec(),
    "ministral3": Spec(),
    "ministral": Spec(),
    "mixtral": Spec(),
    "qwen2": Spec(qkv_bias=True),
    "qwen2_moe": Spec(qkv_bias=True, shared_gate=True),
    "qwen3": Spec(qkv_bias="attention_bias", out_bias="attention_bias", qk_norm="head"),
    "qwen3_moe": Spec(qkv_bias="attention_bias", out_bias="attention_bias", qk_norm="head"),
    "qwen2_vl": Spec(qkv_bias=True),
    "qwen2_5_vl": Spec(qkv_bias=True),
    "qwen": Spec(qkv_bias=True),
    "phi3": Spec(),
    "phi3_v": Spec(),
    "phi": replace(GPT, norms=1, head_bias=True),
    "phi-msft": replace(GPT, norms=1, head_bias=True),
    "gemma": Spec(tied=True),
    "gemma2": Spec(tied=True, norms=4),
    "gemma3_text": Spec(tied=True, norms=4, qk_norm="head"),
    "cohere": Spec(norm="layer_no_bias", norms=1, tied=True, qkv_bias="attention_bias",
                   out_bias="attention_bias"),
    "cohere2": Spec(norm="layer_no_bias", norms=1, tied=True, qkv_bias="attention_bias",
                    out_bias="attention_bias"),
    "olmo": Spec(norm="none", final_norm=False, qkv_bias="attention_bias",
                 out_bias="attention_bias"),
    "olmo2": Spec(qk_norm="full", qkv_bias="attention_bias", out_bias="attention_bias"),
    "olmo3": Spec(qk_norm="full", qkv_bias="attention_bias", out_bias="attention_bias"),
    "olmoe": Spec(qk_norm="full", qkv_bias="attention_bias", out_bias="attention_bias"),
    "granite": LLAMA,
    "granitemoe": LLAMA,
    "smollm3": LLAMA,
    "exaone4": Spec(qk_norm="head"),
    "internlm2": Spec(qkv_bias="bias", out_bias="bias"),
    "internlm3": Spec(qkv_bias="qkv_bias", out_bias="bias", mlp_bias="bias"),
    "baichuan": Spec(),
    "orion": Spec(norm="layer"),
    "minicpm": Spec(),
    "mimo": Spec(qkv_bias="attention_bias"),
    "yi": Spec(),
    "stablelm": Spec(norm="layer", qkv_bias="use_qkv_bias"),
    "starcoder2": Spec(norm="layer", qkv_bias="use_bias", out_bias="use_bias",
                       mlp_bias="use_bias", gated=False, tied=True),
    "gpt2": replace(GPT, tied=True, learned_positions=0),
    "gpt_bigcode": replace(GPT, tied=True, learned_positions=0),
    "gpt_neo": Spec(norm="layer", out_bias=True, mlp_bias=True, gated=False, tied=True,
                    learned_positions=0),
    "gptj": Spec(norm="layer", norms=1, mlp_bias=True, gated=False, head_bias=True),
    "codegen": Spec(norm="layer", norms=1, mlp_bias=True, gated=False, head_bias=True),
    "gpt_neox": replace(GPT, qkv_bias="attention_bias", out_bias="attention_bias"),
    "bloom": replace(GPT, tied=True, embedding_norm=True),
    "opt": replace(GPT, tied=True, learned_positions=2),
    "mpt": Spec(norm="layer_no_bias", gated=False, tied=True),
    "falcon": Spec(norm="layer", norms=1, qkv_bias="bias", out_bias="bias", mlp_bias="bias",
                   gated=False, tied=True),
    "dbrx": Spec(norm="layer_no_bias"),
    "deepseek": Spec(),
    "deepseek_v2": Spec(attention="mla"),
    "deepseek_v3": Spec(attention="mla"),
    "kimi_k2": Spec(attention="mla"),
    "kimi_k25": Spec(attention="mla"),
    "glm4": Spec(norms=4, qkv_bias="attention_bias"),
    "glm": Spec(qkv_bias="attention_bias"),
    "glm4_moe": Spec(qkv_bias="attention_bias"),
    "gpt_oss": Spec(qkv_bias="attention_bias", out_bias="attention_bias", router_bias=True,
                    expert_bias=True),
    "minimax_m2": Spec(qk_norm="full"),
    "seed_oss": Spec(qkv_bias="attention_bias", out_bias="attention_out_bias"),
    "hunyuan_v1_dense": Spec(qk_norm="head", qkv_bias="attention_bias", out_bias="attention_bias"),
    "ernie4_5": Spec(qkv_bias="use_bias", out_bias="use_bias", mlp_bias="use_bias", tied=True),
    "helium": Spec(qkv_bias="attention_bias"),
    "nemotron": Spec(norm="layer", gated=False, qkv_bias="attention_bias",
                     out_bias="attention_bias", mlp_bias="mlp_bias"),
}  # fmt: skip
# Encoders with learned positions: BERT and what is built like it.
BERT_LIKE = {"bert": 0, "roberta": 0, "xlm-roberta": 0, "camembert": 0, "electra": 0}
