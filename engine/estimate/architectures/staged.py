"""Widths of networks that are not made of like layers: convolutions, towers in stages, detectors.

Their parameters are counted by the formula of their class; the estimates read a width and a number
of layers, so the widest stage stands for them, and it is said. Counts nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from engine.estimate.architectures.reading import MOST_OF_STAGE, MOST_STAGES, Config, is_size

USUAL = Path(__file__).resolve().parent / "usual_sizes.csv"
USUAL_WHY = ("its network is not counted by its sizes: the total is that of the usual size which "
             "the transformers library has for it")  # fmt: skip

# Lists of one entry a stage, by what they hold.
WIDTHS = ("hidden_sizes", "embed_dims", "embed_dim", "dims", "widths", "hidden_size",
          "block_out_channels", "stage_out_channels", "out_channels", "upsample_hidden_sizes",
          "embed_dim_per_stage", "embedding_size", "channels")  # fmt: skip
DEPTHS = ("depths", "depth", "num_blocks", "blocks_per_stage", "layers", "stage_num_blocks",
          "num_block_repeats", "num_layers")  # fmt: skip
HEADS = ("num_heads", "num_attention_heads", "num_attention_heads_per_stage")
NOTE = ("its layers are not of one width: times and activations are those of as many layers of "
        "its widest stage")  # fmt: skip
UNSTATED = ("it states no width or depth that is known here: times and activations are those of a "
            "usual network of this size")  # fmt: skip
SCALED_WHY = ("its network is not counted by its sizes: the total is that of the usual size "
              "which the library has for it, larger or smaller as its widths are")  # fmt: skip


def stages(config: Config) -> tuple[int, int, int] | None:
    """Width of the widest stage, layers of all stages, heads; None where no stages are listed.

    Towers that double their width from stage to stage (Swin's) state the first one's.
    """
    depths = _listed(config, DEPTHS)
    widths = _listed(config, WIDTHS)
    if not depths and not widths:
        return None
    layers = sum(depths) or len(widths)
    width = max(widths, default=0)
    first = config.raw.get("embed_dim")
    if not width and depths and is_size(first, MOST_OF_STAGE):
        width = first * 2 ** (min(len(depths), MOST_STAGES) - 1)
    if not is_size(width, MOST_OF_STAGE) or not is_size(layers, MOST_OF_STAGE):
        return None
    heads = max(_listed(config, HEADS), default=1)
    return width, layers, heads if width % heads == 0 else 1


@dataclass(frozen=True, slots=True)
class UsualSize:
    """Parameters of a family's usual size: as the library counts them, and as they are read here.

    read : 0 where a file of the family can't be read like another
    """

    params: float
    read: float


@lru_cache(maxsize=1)
def usual_sizes() -> dict[str, UsualSize]:
    """The library's usual sizes of families that no formula or reader counts, by model type."""
    with USUAL.open(encoding="utf-8", newline="") as file:
        return {
            row["model_type"]: UsualSize(float(row["params"]), float(row["read"] or 0))
            for row in csv.DictReader(file)
        }


def largest_part(config: Config) -> tuple[Config, str] | None:
    """The part that has most of a whole's layers, where the whole states no width of its own."""
    found: list[tuple[float, Config, str]] = []
    for key, inner in config.raw.items():
        if not isinstance(inner, Mapping) or key == "quantization_config":
            continue
        part = Config(inner, config.name, nested=True)
        hidden, layers = part.stated("hidden"), part.stated("layers")
        if (
            hidden
            and layers
            and is_size(hidden[1], MOST_OF_STAGE)
            and is_size(layers[1], MOST_OF_STAGE)
        ):
            if key == "decoder_config":  # what writes a token after the other
                return part, f"{key}."
            found.append((float(hidden[1]) ** 2 * layers[1], part, f"{key}."))
        elif (deeper := largest_part(part)) is not None:
            inside, prefix = deeper
            wide, deep = inside.whole("hidden"), inside.whole("layers")
            found.append((float(wide) ** 2 * deep, inside, f"{key}.{prefix}"))
    if not found:
        return None
    _, part, prefix = max(found, key=lambda one: one[0])
    return part, prefix


def _listed(config: Config, names: tuple[str, ...]) -> list[int]:
    """The first list of sizes under one of these names; entries that are none are left out."""
    for name in names:
        value = config.raw.get(name)
        if isinstance(value, list | tuple) and value:
            flat = [x for x in value if is_size(x, MOST_OF_STAGE)]
            if flat:
                return flat
    return []
