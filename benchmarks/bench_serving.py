"""One evaluation of a replica's capacity inside latency targets: below 1 ms; 10,000 below 1 s.

Run it alone with `python -m benchmarks.bench_serving`; it also tells the time of an event
simulation of 20,000 requests. Public peers take 0.1 to 0.4 ms for a roofline of one operating point
without a request loop (LLM-Viewer, llm-analysis), 60 to 78 ms for one by operators (GenZ), 9 to
900 ms for one with a request loop (aiconfigurator). GenZ is timed beside on the same rows where
`genz-llm` is installed; `bench_serving_peer` compares with llm-analysis.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import time
from collections.abc import Callable
from dataclasses import fields
from datetime import date
from typing import Any

import numpy as np

from engine.assess import assess
from engine.catalogue import load_catalogue
from engine.estimate.serving import capacity_rows, replica_of, serving_capacity
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.simulate_serving import simulate_serving
from engine.workload.workload import parse

NAME = "serving capacity of a replica inside its targets"
LIMIT_MS = 1.0
CONFIGURATIONS = 10_000
SKUS = ("h100-sxm-80gb", "b200-sxm-180gb", "l40s", "mi300x")
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
        for sku in SKUS
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


def _columns(parts: list[Any]) -> Any:
    """Many of a kind as one whose fields are columns."""
    kind = type(parts[0])
    names = [f.name for f in fields(kind)]
    return kind(**{n: np.array([[float(getattr(p, n))] for p in parts]) for n in names})


def search() -> float:
    """Milliseconds to find the best of 10,000 configurations: GPU, layout, bits, lengths."""
    accelerators = load_catalogue().accelerators
    distinct = [
        (sku, tp, pp, bits, size)
        for size in (8.0, 32.0, 70.0)
        for sku in SKUS
        for tp in (1, 2, 4, 8)
        for pp in (1, 2)
        for bits in (16.0, 8.0)
    ]
    random = np.random.default_rng(1)
    chosen = random.integers(len(distinct), size=CONFIGURATIONS)
    prompt = random.uniform(100, 8000, (CONFIGURATIONS, 1))
    answer = random.uniform(20, 800, (CONFIGURATIONS, 1))

    def work() -> None:
        made = [
            replica_of(
                shape_from_size(size), accelerators[sku], tp, pp, False, bits, 2.0, "vllm-2025"
            )
            for sku, tp, pp, bits, size in distinct
        ]
        parts = [[made[i][k] for i in chosen] for k in range(4)]
        net, hw, plan, eff = (_columns(p) for p in parts)
        best = 0.0
        for start in range(0, CONFIGURATIONS, 500):  # as many rows as stay in the cache
            rows = slice(start, start + 500)
            net_, hw_, plan_, eff_ = (
                type(x)(**{f.name: getattr(x, f.name)[rows] for f in fields(x)})
                for x in (net, hw, plan, eff)
            )
            found = capacity_rows(
                net_, hw_, plan_, eff_, prompt[rows], answer[rows], np.ones((1, 1)),
                ttft_target_s=2.0, tpot_target_s=0.1,
            )  # fmt: skip
            each = found.rate / (plan_.tp * plan_.pp)[:, 0]
            best = max(best, float(each.max()))
        assert best > 0

    return _milliseconds(work, 3)


def peer() -> str:
    """Milliseconds of GenZ and of ours for the same rows, where `genz-llm` is installed."""
    try:
        genz = importlib.import_module("GenZ")
    except ImportError:
        return (
            "genz-llm 0.0.16 is not installed; on two shared cores it took 87 ms, without a queue"
        )
    h100 = load_catalogue().accelerators["h100-sxm-80gb"]
    system = {"Flops": 1979, "Memory_size": 80, "Memory_BW": 3350, "ICN": 450, "real_values": True}

    def theirs(model: str, tp: int, prompt: int) -> None:
        same = {
            "model": model, "system_name": system, "bits": "int8", "tensor_parallel": tp,
            "input_tokens": prompt,
        }  # fmt: skip
        with contextlib.redirect_stdout(io.StringIO()):
            genz.prefill_moddeling(batch_size=1, **same)
            genz.decode_moddeling(batch_size=16, output_tokens=200, **same)

    times: list[tuple[float, float]] = []
    for model, size, tp in (
        ("meta-llama/Llama-3.1-8B", 8.0, 1), ("meta-llama/Llama-3.1-70B", 70.0, 4),
    ):  # fmt: skip
        shape = shape_from_size(size)
        for prompt in (200, 2000, 8000):
            ours = _milliseconds(
                lambda s=shape, n=tp, p=prompt: serving_capacity(  # type: ignore[misc]
                    s, h100, n, p, 200, weight_bits=8
                ),
                3,
            )
            slow = _milliseconds(lambda m=model, n=tp, p=prompt: theirs(m, n, p), 3)  # type: ignore[misc]
            times.append((slow, ours))
    slow, ours = np.median(np.array(times), axis=0)
    return f"the same six rows: genz-llm {slow:.0f} ms without a queue, ours {ours:.2f} ms with one"


def decision() -> tuple[float, float]:
    """Milliseconds of the whole assessment of a language model's service, new and asked again.

    Every other answer is told, as in the worked examples: open choices are tried one by one.
    """
    told = {
        "kind": "online_inference", "rate_per_s": 5, "tokens_in": 1000, "tokens_out": 200,
        "latency_ms": 1000, "peak_factor": 3, "parallel_fraction": 0.98, "bottleneck": "compute",
        "failure_mode": "late_answers", "downtime": "minutes", "team": "cloud",
    }  # fmt: skip
    today = date(2026, 12, 1)
    workloads = [parse(told | {"model_params_b": size}) for size in (7.0, 8.0)]
    assess(workloads[0], today=today)
    first = _milliseconds(lambda: assess(workloads[1], today=today), 1)
    return first, _milliseconds(lambda: assess(workloads[1], today=today), 3)


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
    print(f"  {CONFIGURATIONS:,} configurations searched: {search():.0f} ms (limit 1,000)")
    print(f"  {peer()}")
    new, again = decision()
    print(f"  a language model's service decided: {new:.0f} ms new, {again:.0f} ms asked again")
    return once()


if __name__ == "__main__":
    print(f"{NAME}: {run():.2f} ms (limit {LIMIT_MS:g} ms)")
