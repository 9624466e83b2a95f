"""A model's shape as a short text, so that a link carries what a `config.json` said."""

from __future__ import annotations

import base64
import json
import math
import zlib
from dataclasses import fields
from typing import Any, get_args

from engine.errors import InputError
from engine.estimate.shape import AttentionKind, ModelShape

MARK = "z"
LARGEST = 20_000  # bytes of the text when unpacked: a shape has a few hundred
_USUAL = {f.name: f.default for f in fields(ModelShape)}


def shape_text(shape: ModelShape) -> str:
    """The shape's values that differ from the usual ones, packed."""
    values = {
        f.name: getattr(shape, f.name)
        for f in fields(ModelShape)
        if getattr(shape, f.name) != _USUAL[f.name]
    }
    raw = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()
    return MARK + base64.urlsafe_b64encode(zlib.compress(raw, 9)).decode().rstrip("=")


def read_shape(text: str) -> ModelShape:
    """The shape of a packed text.

    Raises
    ------
    InputError : when it is damaged or holds what no shape has
    """
    damaged = InputError(
        "the model's shape in the link is damaged", where="shape", right="bring its config.json"
    )
    body = text.removeprefix(MARK)
    try:
        packed = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        raw = zlib.decompressobj().decompress(packed, LARGEST)
        values = json.loads(raw)
    except (ValueError, zlib.error, RecursionError):
        raise damaged from None
    if not isinstance(values, dict) or not _sound(values):
        raise damaged
    try:
        shape = ModelShape(**values)
    except TypeError:
        raise damaged from None
    if not (shape.layers >= 1 and shape.hidden >= 1 and shape.total_params >= 1):
        raise damaged
    return shape


def _sound(values: dict[str, Any]) -> bool:
    """Whether each value is of its field's kind and no number is absurd."""
    for f in fields(ModelShape):
        if f.name not in values:
            continue
        value, kind = values[f.name], str(f.type)
        if kind == "str":
            good = isinstance(value, str) and len(value) < 400
        elif kind == "bool":
            good = isinstance(value, bool)
        elif kind == "AttentionKind":
            good = value in get_args(AttentionKind)
        elif value is None:
            good = "None" in kind
        elif isinstance(value, bool) or not isinstance(value, int | float):
            good = False
        elif "float" in kind:
            good = math.isfinite(value) and 0 <= value < 1e16
        else:
            good = isinstance(value, int) and 0 <= value < 2**31
        if not good:
            return False
    return True
