"""A model's shape in the terms of the serving page: from a name, or from a file that was read.

A shape travels in the link as the numbers of `serving_terms.SHAPE_PARTS`.
"""

from __future__ import annotations

import csv
from functools import cache

from engine.errors import InputError
from engine.estimate.shape import AttentionKind, ModelShape
from engine.estimate.shape_from_size import DATA
from engine.wording import number
from engine.workload.serving_terms import SHAPE_PARTS, ServingTerms


@cache
def published_models() -> dict[str, ModelShape]:
    """Shapes of the published models of `data/model_sizes.csv` by name."""
    found = {}
    with (DATA / "model_sizes.csv").open(encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            name, heads, kv = row["name"], int(row["heads"]), int(row["kv_heads"])
            latent = name.startswith("DeepSeek-V3")
            attention: AttentionKind = "mla" if latent else "mha" if kv == heads else "gqa"
            experts = int(row["experts"] or 0)
            found[name] = ModelShape(
                name=name,
                total_params=float(row["params_b"]) * 1e9,
                active_params=float(row["active_params_b"]) * 1e9,
                embedding_params=float(row["vocab"]) * float(row["hidden"]),
                layers=int(row["layers"]),
                hidden=int(row["hidden"]),
                heads=heads,
                kv_heads=1 if latent else kv,
                head_dim=int(row["head_dim"]),
                ffn=int(row["ffn"]),
                vocab=int(row["vocab"]),
                attention=attention,
                mla_cache_width=_LATENT_WIDTH if latent else 0,
                experts=experts,
                experts_per_token=int(row["experts_per_token"] or 0),
                tied_embeddings=float(row["params_b"]) < _TIED_BELOW_B,
                exact=True,
            )
    return found


# DeepSeek-V3's config.json: kv_lora_rank 512 and a rotary part of 64 are cached a token and layer.
_LATENT_WIDTH = 576
# Published small models share the input and the output embedding.
_TIED_BELOW_B = 4.0


def shape_of_terms(terms: ServingTerms) -> ModelShape | None:
    """The shape that the terms tell: of a file first, then of a name; None for neither.

    Raises
    ------
    InputError : for a name that is not published here
    """
    if terms.shape:
        return _from_numbers(terms.shape, terms.model)
    if not terms.model:
        return None
    found = published_models().get(terms.model)
    if found is None:
        raise InputError(
            f"no shape of {terms.model!r} is known here", where="model",
            right="a name of the list, its size, or its config.json",
        )  # fmt: skip
    return found


def shape_told(shape: ModelShape) -> str:
    """What must be known of a file that was brought to be served; empty for nothing."""
    told = [f"The model: {doubt}." for doubt in shape.doubts]
    if shape.kind == "encoder":
        told.append(
            "It writes no text of its own: plan it under Compute and small models, as one "
            "with a latency target."
        )
    return " ".join(told)


def numbers_of(shape: ModelShape) -> tuple[float, ...]:
    """The numbers by which a shape travels in the link."""
    kinds = {"mla": 1.0, "none": 2.0}
    parts = {
        "total_params_b": round(shape.total_params / 1e9, 6),
        "active_params_b": round(shape.active_params / 1e9, 6),
        "tied": float(shape.tied_embeddings),
        "attention": kinds.get(shape.attention, 0.0),
        "kv_layers": float(shape.layers if shape.kv_layers is None else shape.kv_layers),
        "quantized_bits": round(shape.quantized_bits or 0.0, 3),
    }
    return tuple(
        parts[name] if name in parts else float(getattr(shape, name)) for name in SHAPE_PARTS
    )


def _from_numbers(numbers: tuple[float, ...], name: str) -> ModelShape:
    part = dict(zip(SHAPE_PARTS, numbers, strict=True))
    count = {k: int(v) for k, v in part.items()}
    kind: AttentionKind = {1: "mla", 2: "none"}.get(count["attention"], "gqa")  # type: ignore[assignment]
    return ModelShape(
        name=name or f"your {number(part['total_params_b'])}B model",
        total_params=part["total_params_b"] * 1e9,
        active_params=part["active_params_b"] * 1e9,
        embedding_params=part["vocab"] * part["hidden"],
        layers=count["layers"], hidden=count["hidden"], heads=count["heads"],
        kv_heads=count["kv_heads"], head_dim=count["head_dim"], ffn=count["ffn"],
        vocab=count["vocab"], tied_embeddings=bool(part["tied"]), attention=kind,
        kv_layers=count["kv_layers"], window_layers=count["window_layers"],
        window_tokens=count["window_tokens"], kv_width_total=part["kv_width_total"],
        mla_cache_width=count["mla_cache_width"], experts=count["experts"],
        experts_per_token=count["experts_per_token"], state_layers=count["state_layers"],
        state_bytes_per_layer=part["state_bytes_per_layer"],
        quantized_bits=part["quantized_bits"] or None, exact=True,
    )  # fmt: skip
