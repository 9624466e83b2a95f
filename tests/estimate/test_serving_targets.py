"""The usual targets of language models."""

from __future__ import annotations

import numpy as np
import pytest

from engine.estimate.serving_targets import usual_tpot_s, usual_ttft_s


def test_short_prompts_wait_two_seconds_and_long_ones_by_their_tokens() -> None:
    # MLPerf: 2 s; 6 s for prompts of 9,428 tokens on average, so 0.64 ms a token and 38 s at 60k.
    assert usual_ttft_s(np.array([300.0, 3_000.0, 9_428.0, 60_000.0])) == pytest.approx(
        [2.0, 2.0, 6.0, 38.2], rel=0.01
    )


def test_a_token_takes_at_most_a_tenth_of_a_second() -> None:
    assert usual_tpot_s() == 0.1
