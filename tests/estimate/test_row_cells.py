"""Cells of published rows: what their spellings mean."""

from __future__ import annotations

import pytest

from engine.estimate.row_cells import flag_of, gated_of, number_of, recompute_of, zero_stage_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12.0), (" 1,024 ", 1024.0), ("1_000", 1000.0), ("≈3.5", 3.5), ("1e3", 1000.0),
        ("250 ms", 0.25), ("2 min", 120.0), ("32K", 32_000.0), ("45.1 GiB", 45.1),
        ("44.8 GB", 44.8e9 / 2**30), ("-5", -5.0), ("1,536 tokens/s", 1536.0),
        # Neither a range, nor a product, nor words, nor what is no number is guessed at.
        ("8-16", None), ("8x8", None), ("n/a", None), ("", None), ("inf", None), ("nan", None),
        ("1,02", None), ("OOM", None),
    ],
)  # fmt: skip
def test_numbers(text: str, value: float | None) -> None:
    assert number_of(text) == (None if value is None else pytest.approx(value))


def test_a_k_of_tokens_is_1024_of_a_sequence() -> None:
    assert number_of("128k", 1024.0) == 131_072


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        ("dist-optimizer (ZeRO-1)", 1), ("distributed optimizer", 1), ("ZeRO-1 within node", 1),
        ("FSDP FULL_SHARD", 3), ("FSDP SHARD_GRAD_OP", 2), ("HSDP (ZeRO-3 in node)", 3),
        ("3 (FSDP) + TP", 3), ("0 (plain DP)", 0), ("DDP", 0), ("none", 0), ("2.0", 2),
        ("Zero Stage 3", 3), ("fully-sharded", 3), ("", None), ("not stated", None), ("?", None),
    ],
)  # fmt: skip
def test_what_is_sharded(text: str, stage: int | None) -> None:
    assert zero_stage_of(text) == stage


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("full + offload", "full"), ("block, all layers", "full"), ("TRUE", "full"),
        ("activation checkpointing", "full"), ("selective (op-level SAC)", "selective"),
        ("selective activation checkpointing", "selective"), ("no", "none"), ("none", "none"),
        ("norm, act", "some"), ("partial", "some"), ("not stated", ""), ("", ""), ("N/A", ""),
    ],
)  # fmt: skip
def test_what_is_computed_again(text: str, told: str) -> None:
    assert recompute_of(text) == told


def test_yes_and_no() -> None:
    assert [flag_of(t) for t in ("Yes", "0.0", "off", "maybe")] == [True, False, False, None]
    told = [gated_of(t) for t in ("SwiGLU", "GeGLU", "GELU", "not gated", "1", "")]
    assert told == [True, True, False, False, True, None]
