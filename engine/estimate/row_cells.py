"""Cells of published training rows as their sources spell them: numbers, yes or no, sharding.

Sources write "1,024", "~12.3 s", "4K", "ZeRO stage 3" or "True"; what is meant is the same.
"""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(
    r"[~≈]?\s*(-?\d{1,3}(?:[,_ ]\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*"
    r"([a-z%][a-z/ .-]*)?",
    re.IGNORECASE,
)
_THOUSAND = 1000.0
_UNITS = {"ms": 1e-3, "min": 60.0, "gb": 1e9 / 2**30}  # to seconds; to GiB
_YES = ("1", "1.0", "true", "yes", "y", "on")
_NO = ("0", "0.0", "false", "no", "n", "off", "none", "-")
_UNKNOWN = re.compile(r"^(n/?a|unknown|unclear|\?+)$|not (stated|known|given|published)")


def number_of(text: str, kilo: float = _THOUSAND) -> float | None:
    """A cell as a finite number; None when it is empty or is none.

    kilo : what "4k" stands for a thousand times of: 1,024 for tokens of a sequence
    """
    cell = (text or "").strip()
    try:
        value = float(cell)
    except ValueError:
        told = _NUMBER.fullmatch(cell)
        if told is None:
            return None
        unit = (told[2] or "").strip().lower()
        value = float(re.sub(r"[,_ ]", "", told[1]))
        value *= kilo if unit == "k" or unit.startswith("k tok") else _UNITS.get(unit, 1.0)
    return value if math.isfinite(value) else None


def flag_of(text: str) -> bool | None:
    """Yes or no; None where the cell tells neither."""
    cell = (text or "").strip().lower()
    if cell in _YES:
        return True
    return False if cell in _NO else None


def gated_of(text: str) -> bool | None:
    """Whether an MLP is gated: yes or no, or the name of its activation."""
    cell = (text or "").strip().lower()
    if re.search(r"glu|gated", cell):
        return not re.search(r"\b(no|not|un)", cell)
    if re.search(r"gelu|relu|silu", cell):
        return False
    return flag_of(cell)


def unknown(text: str) -> bool:
    """Whether a cell says that its source does not tell."""
    return bool(_UNKNOWN.search((text or "").strip().lower()))


def recompute_of(text: str) -> str:
    """How activations are computed again: full, selective, some, none; empty where not told."""
    cell = (text or "").strip().lower()
    if not cell or unknown(cell):
        return ""
    if cell.startswith("full"):
        return "full"
    if "selective" in cell or "op-level" in cell:
        return "selective"
    told = flag_of(cell)
    if told is False or cell.startswith(("none", "no ", "without")):
        return "none"
    if told or re.search(r"^(uniform|block|all|every)\b|checkpointing$", cell):
        return "full"
    return "some"


def zero_stage_of(text: str) -> int | None:
    """What is sharded over data parallel ranks: 3 weights, 2 gradients, 1 optimizer, 0 nothing.

    None where the cell does not tell. A group that shards inside a machine shards all the same.
    """
    cell = (text or "").strip().lower()
    if not cell or unknown(cell):
        return None
    if re.search(r"grad_op", cell):
        return 2
    stage = re.search(r"(?:zero|stage)(?:[\s_-]*stage)?[\s_-]*([0-3])\b|^([0-3])(?:\.0)?\b", cell)
    if stage:
        return int(stage[1] or stage[2])
    if re.search(r"fsdp|hsdp|full(y)?[\s_-]*shard", cell):
        return 3
    if "dist" in cell and "optim" in cell:
        return 1
    return 0 if flag_of(cell) is False or cell in ("dp", "ddp") else None
