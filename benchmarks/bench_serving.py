"""One evaluation of a replica's capacity inside latency targets: below 1 ms.

Run it alone with `python -m benchmarks.bench_serving`; it also tells the time of an event
simulation of 20,000 requests and of a backtest row. Public peers take 0.1 to 0.4 ms for a roofline
of one operating point without a request loop, 9 to 900 ms with one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from engine.catalogue import load_catalogue
from engine.estimate.model_shape import shape_from_size
from engine.estimate.serving import serving_capacity
from engine.estimate.simulate_serving import simulate_serving

NAME = "serving capacity of a replica inside its targets"
LIMIT_MS = 1.0
CONFIGURATIONS = 200
REQUESTS = 20_000


def _milliseconds(work: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append((time.perf_counter() - start) * 1000)
    return float(np.median(found))


def once() -> float:
    """Milliseconds of one evaluation, median over sizes, GPUs and lengths."""
    accelerators = load_catalogue().accelerators
    cases = [
        (shape_from_size(size), accelerators[sku], gpus, prompt)
        for size in (8.0, 70.0)
        for sku in ("h100-sxm-80gb", "b200-sxm-180gb", "l40s", "mi300x")
        for gpus in (1, 2, 4, 8)
        for prompt in (200, 2000, 8000)
    ]
    times = [
        _milliseconds(
            lambda s=shape, a=acc, n=gpus, p=prompt: serving_capacity(  # type: ignore[misc]
                s, a, n, p, 200, weight_bits=8, ttft_target_s=2.0, tpot_target_s=0.05
            ),
            3,
        )
        for shape, acc, gpus, prompt in cases
    ]
    return float(np.median(times))


def simulation() -> float:
    """Milliseconds of an event simulation of 20,000 requests."""
    steps = 0.012 + 2e-4 * np.arange(257)
    return _milliseconds(
        lambda: simulate_serving(
            5.0, steps, 6e-5, prompt=1000, answer=250, max_batch=256, requests=REQUESTS
        ),
        1,
    )


def run() -> float:
    """Print what was measured and return milliseconds of one evaluation."""
    print(f"  event simulation of {REQUESTS:,} requests: {simulation():.0f} ms (limit 2,000)")
    return once()


if __name__ == "__main__":
    print(f"{NAME}: {run():.2f} ms (limit {LIMIT_MS:g} ms)")
