"""How long an answer may take where no one said: the usual targets of language models.

Takes a float or an array alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.estimate.named import named
from engine.estimate.serving_plan import PARAMETERS

Array = NDArray[np.float64]


def usual_ttft_s(prompt_tokens: float | Array) -> Array:
    """Time to the first token that users accept [s]: longer for prompts that take long to read.

    The usual wait, or what was accepted for each token of a long prompt if that is more
    (serving_parameters.csv, `ttft_target_s` and `ttft_target_s_per_prompt_token`).
    """
    of = named(PARAMETERS)
    each = of["ttft_target_s_per_prompt_token"].likely
    return np.maximum(of["ttft_target_s"].likely, each * np.asarray(prompt_tokens, dtype=float))


def usual_tpot_s() -> float:
    """Time per further token that users accept [s] (serving_parameters.csv, `tpot_target_s`)."""
    return named(PARAMETERS)["tpot_target_s"].likely
