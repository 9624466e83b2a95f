"""A usual shape for a number of parameters, for who has no `config.json`.

Interpolated between the published models of `data/model_sizes.csv`; always approximate.
"""

from __future__ import annotations

import csv
import math
from functools import lru_cache
from pathlib import Path

import numpy as np

from engine.errors import InputError
from engine.estimate.shape import ModelShape

DATA = Path(__file__).resolve().parents[2] / "data"
FROM_SIZE = "made from the size alone, between published shapes"


@lru_cache(maxsize=1)
def _published() -> list[dict[str, str]]:
    with (DATA / "model_sizes.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def shape_from_size(params_b: float, active_params_b: float | None = None) -> ModelShape:
    """A usual shape for a size: widths between the published models of `model_sizes.csv`.

    Layers are interpolated in the logarithm of the size, beyond the table they grow with its cube
    root; the hidden size follows from 12.5 squares of it a layer, in whole heads of 128; the MLP
    takes what is left in steps of 64, so that the parts add up to the size asked within 0.2%.

    params_b, active_params_b : billions of parameters; active below total means experts

    Raises
    ------
    InputError : for a size that is not positive, or more active than total
    """
    for field, value in (("params_b", params_b), ("active_params_b", active_params_b)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise InputError(f"{value} can't be used", where=field, right="above 0")
    active = active_params_b or params_b
    if active > params_b:
        raise InputError(f"{active:g} is more than the whole", where="active_params_b",
                         right=f"at most {params_b:g}")  # fmt: skip
    if active < params_b:
        return _experts_of_size(params_b, active)
    rows = sorted((r for r in _published() if not float(r["experts"])),
                  key=lambda r: float(r["params_b"]))  # fmt: skip
    size = np.log([float(r["params_b"]) for r in rows])

    def between(column: str) -> float:
        return float(np.exp(np.interp(math.log(active), size,
                                      np.log([float(r[column]) for r in rows]))))  # fmt: skip

    layers = max(round(between("layers")), 1)
    if active < math.exp(size[0]) or active > math.exp(size[-1]):
        edge = rows[0] if active < math.exp(size[0]) else rows[-1]
        scale = (active / float(edge["params_b"])) ** (1 / 3)
        layers = max(round(float(edge["layers"]) * scale), 1)
    vocab = 128_000 if params_b >= 0.4 else 49_152
    head_dim = 128
    per_layer = (active * 1e9) / layers
    width = math.sqrt(per_layer / 12.5)
    # Large models have heads in multiples of eight, so that a server's GPUs can share them.
    step = head_dim * (8 if width >= 3584 else 4 if width >= 1536 else 1)
    hidden = max(round(width / step), 1) * step
    heads = max(hidden // head_dim, 1)
    kv = _groups(heads)
    attention = hidden * head_dim * (2 * heads + 2 * kv)
    tied = 2 * vocab * hidden > 0.25 * params_b * 1e9  # small models share embedding and head
    embedding = _embedding(params_b, vocab, hidden, tied)
    ffn = max(_in_steps((per_layer - attention - embedding / layers) / (3 * hidden)), hidden)
    return ModelShape(
        name=f"{params_b:g}B", total_params=params_b * 1e9, active_params=active * 1e9,
        embedding_params=embedding, layers=layers, hidden=hidden,
        heads=heads, kv_heads=kv, head_dim=head_dim, ffn=ffn, vocab=vocab, tied_embeddings=tied,
        exact=False, why_approximate=FROM_SIZE,
    )  # fmt: skip


def _in_steps(width: float) -> int:
    """A width that tensor-parallel ranks and matrix units can share: wide ones in steps of 64."""
    return round(width / 64) * 64 if width >= 1024 else int(width)


def _groups(heads: int) -> int:
    """Key-value heads: at most eight, and as many as divide the heads."""
    return next(n for n in range(min(heads, 8), 0, -1) if heads % n == 0)


def _embedding(params_b: float, vocab: int, hidden: int, tied: bool) -> float:
    """Parameters of embedding and head; never more than half of a very small model."""
    return min(float(vocab * hidden * (1 if tied else 2)), 0.5 * params_b * 1e9)


def _experts_of_size(params_b: float, active_b: float) -> ModelShape:
    """A mixture of experts like the published one that is nearest in active share and in size.

    Layers and width grow with the cube root of the size, as a network's volume does; the experts'
    width then follows from total and active parameters, what is left is a shared expert's;
    where a token passes less than that, there are more and narrower experts.
    """
    total, active = params_b * 1e9, active_b * 1e9
    near = min(
        (r for r in _published() if float(r["experts"])),
        key=lambda r: math.hypot(
            math.log(params_b / float(r["params_b"])),
            # The share decides how many experts there are; the size only how large.
            2 * math.log(active_b / params_b * float(r["params_b"]) / float(r["active_params_b"])),
        ),
    )  # fmt: skip
    scale = (active_b / float(near["active_params_b"])) ** (1 / 3)
    layers = max(round(float(near["layers"]) * scale), 1)
    head_dim, vocab = 128, int(near["vocab"])
    wide = float(near["hidden"]) * scale
    step = head_dim * (8 if wide >= 3584 else 4 if wide >= 1536 else 1)
    hidden = max(round(wide / step), 1) * step
    heads = max(hidden // head_dim, 1)
    kv = _groups(heads)
    count, top = int(near["experts"]), int(near["experts_per_token"])
    always = layers * hidden * head_dim * (2 * heads + 2 * kv)
    embedding = min(2.0 * vocab * hidden, 0.5 * active)
    unit = 3 * hidden * layers  # parameters of all layers for one element of an expert's width
    width = max(int((total - active) / (unit * (count - top))), 1)
    shared = (active - always - embedding) / unit - top * width
    if shared < 0:  # sparser than the like: more experts, each of what a token can pass
        wanted = max(active - always - embedding, 0.2 * active) / (unit * top)
        # In eights, so that ranks can share them.
        count = max(round(((total - active) / (unit * wanted) + top) / 8), top // 8 + 1) * 8
        width = max(int((total - active) / (unit * (count - top))), 1)
        shared = 0.0
    return ModelShape(
        name=f"{params_b:g}B-A{active_b:g}B", total_params=total, active_params=active,
        embedding_params=embedding, layers=layers, hidden=hidden, heads=heads, kv_heads=kv,
        head_dim=head_dim, ffn=max(int(top * width + max(shared, 0)), 1), vocab=vocab,
        experts=count, experts_per_token=top, expert_ffn=width,
        shared_experts=max(round(shared / width), 0), exact=False,
        why_approximate=f"{FROM_SIZE}, like {near['name']}",
    )  # fmt: skip
