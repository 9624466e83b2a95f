"""Bytes kept for what a model has read: keys and values, and the state of recurrent layers."""

from __future__ import annotations

from engine.estimate.shape import ModelShape


def kv_cache_bytes_per_token(shape: ModelShape, kv_bytes: float = 2) -> float:
    """Bytes a token adds to the cache while every layer still grows."""
    layers = shape.layers if shape.kv_layers is None else shape.kv_layers
    if shape.attention == "none":
        return 0.0
    if shape.attention == "mla":
        return layers * shape.mla_cache_width * kv_bytes
    if shape.kv_width_total:
        return shape.kv_width_total * kv_bytes
    return 2.0 * layers * shape.kv_heads * shape.head_dim * kv_bytes


def kv_cache_bytes(shape: ModelShape, tokens: float, kv_bytes: float = 2) -> float:
    """Bytes of the cache of one sequence of this length; windowed layers stop at their window."""
    layers = shape.layers if shape.kv_layers is None else shape.kv_layers
    whole = kv_cache_bytes_per_token(shape, kv_bytes)
    state = shape.state_layers * shape.state_bytes_per_layer
    if not layers or not shape.window_layers:
        return whole * tokens + state
    each = whole / layers
    full = (layers - shape.window_layers) * each * tokens
    return full + shape.window_layers * each * min(tokens, shape.window_tokens) + state
