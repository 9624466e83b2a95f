"""The closed form of a language model's queue against the event simulation, and the replicas.

Run it alone with `python -m benchmarks.bench_serving_queue`: two minutes. Twenty replicas at four
loads with chunks of 2,048 tokens; every third of them also with other chunks, none, and lengths
that are all the same or differ more. Then 200 generated cases: are the replicas of the closed form
exact or one over, told by the simulation?
"""

from __future__ import annotations

import numpy as np

from engine.catalogue import load_catalogue
from engine.estimate.queueing import Array, plan_replicas
from engine.estimate.serving import (
    decode_seconds,
    loads_of,
    prefill_seconds,
    prompt_seconds_shared,
    serving_capacity,
)
from engine.estimate.serving_points import Load, Replica, gpu_replica, room
from engine.estimate.serving_queue import operating_points
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.simulate_serving import simulate_replica, simulate_serving

NAME = "queue of a language model against an event simulation"
LOADS = (0.3, 0.5, 0.7, 0.85)
SEEDS, REQUESTS = 3, 20_000
CASES, TTFT_S = 200, 2.0
WHOLE = 10**9  # tokens of a chunk that takes in everything
# Billions of parameters, GPU, how many, prompt, answer.
REPLICAS = (
    (70, "h100-sxm-80gb", 4, 1000, 300), (8, "h100-sxm-80gb", 1, 2000, 200),
    (8, "l40s", 1, 300, 400), (70, "b200-sxm-180gb", 2, 4000, 1000),
    (32, "h200-sxm-141gb", 1, 500, 100), (8, "a10", 1, 700, 250),
    (14, "a100-sxm-80gb", 1, 1000, 200), (32, "h100-sxm-80gb", 2, 8000, 150),
    (8, "h100-sxm-80gb", 1, 200, 800), (3, "l4", 1, 500, 200),
    (70, "h200-sxm-141gb", 4, 3000, 600), (14, "l40s", 1, 2000, 300),
    (8, "b200-sxm-180gb", 1, 6000, 100), (405, "h100-sxm-80gb", 8, 1000, 300),
    (32, "a100-sxm-80gb", 4, 300, 100), (8, "h100-sxm-80gb", 1, 1000, 50),
    (14, "h100-sxm-80gb", 1, 4000, 400), (70, "mi300x", 2, 500, 500),
    (8, "l40s", 1, 4000, 200), (32, "b200-sxm-180gb", 1, 1500, 1500),
)  # fmt: skip
USUAL = (2048, 0.8)
OTHERS = ((2048, 0.0), (WHOLE, 0.8), (512, 0.8), (8192, 1.2))


def errors() -> Array:
    """Closed form over simulation less one, a row a case and load: load, first token in the mean,
    at the 95th and 99th percentile, time per token.
    """
    found = []
    for number, (size, sku, gpus, prompt, answer) in enumerate(REPLICAS):
        for chunk, cv in (USUAL, *(OTHERS if number % 3 == 0 else ())):
            bits = 16.0 if number % 2 and size < 400 else 8.0
            accelerator = load_catalogue().accelerators[sku]
            replica = gpu_replica(
                shape_from_size(size), accelerator, gpus, 1, False, bits, 2.0, "vllm-2025"
            )
            found += _case(replica, Load(prompt, answer, 0.0, cv), chunk, number)
    return np.array(found)


def _case(replica: Replica, load: Load, chunk: int, number: int) -> list[tuple[float, ...]]:
    parts = replica.net, replica.hw, replica.plan, replica.eff
    most = room(replica, load)
    context = load.input_tokens + load.output_tokens / 2.0
    alone = np.full((1, 1), float(prefill_seconds(*parts, 1.0, load.input_tokens)))
    shared = np.full((1, 1), float(prompt_seconds_shared(*parts, load.input_tokens)))
    lightest = float(decode_seconds(*parts, 0.02, context))
    batch = loads_of(most, 1.0, (load.output_tokens - 1.0) * lightest / alone)
    step = np.asarray(decode_seconds(*parts, batch, context))
    lengths = np.full((1, 1), load.input_tokens), np.full((1, 1), load.output_tokens)
    mean, p95, p99 = (
        operating_points(
            batch, step, alone, shared, *lengths, percentile=p, cv=load.length_cv, chunk=chunk
        )
        for p in (None, 0.95, 0.99)
    )
    steady = np.isfinite(mean.ttft[0])
    full = float(mean.rate[0][steady].max())
    steps = np.asarray(decode_seconds(*parts, np.arange(int(most) + 1.0), context))
    more = float(alone[0, 0] - shared[0, 0])
    found = []
    for level in LOADS:
        told = [
            float(np.interp(level * full, mean.rate[0][steady], x[0][steady]))
            for x in (mean.ttft, p95.ttft, p99.ttft, mean.tpot)
        ]
        runs = [
            simulate_serving(
                level * full, steps, float(shared[0, 0]) / load.input_tokens,
                prompt=load.input_tokens, answer=load.output_tokens, cv=load.length_cv,
                max_batch=int(most), chunk=chunk, requests=REQUESTS, seed=100 * number + seed,
            )
            for seed in range(SEEDS)
        ]  # fmt: skip
        seen = np.mean(
            [
                (r.ttft_mean_s + more, r.ttft_p95_s + more, r.ttft_p99_s + more, r.tpot_mean_s)
                for r in runs
            ],
            axis=0,
        )
        found.append((level, *(np.array(told) / seen - 1.0)))
    return found


def replicas(most: int = CASES, requests: int = REQUESTS) -> tuple[int, int]:
    """Of so many generated cases those whose replicas are exact or one over, and those too few."""
    random = np.random.default_rng(20)
    right = few = cases = 0
    accelerators = load_catalogue().accelerators
    while cases < most:
        shape = shape_from_size(float(random.choice([3, 8, 14, 32])))
        prompt, answer = int(random.choice([200, 1000, 4000])), int(random.choice([50, 200, 600]))
        gpu = accelerators[str(random.choice(["h100-sxm-80gb", "l40s", "b200-sxm-180gb"]))]
        tpot = float(random.choice([0.02, 0.05]))
        found = serving_capacity(
            shape, gpu, 1, prompt, answer, weight_bits=8, ttft_target_s=TTFT_S, tpot_target_s=tpot
        )
        if not found.requests_per_s:
            continue
        cases += 1
        rate = float(found.requests_per_s) * random.uniform(1.2, 6.0)
        count = plan_replicas(rate, float(found.requests_per_s), spare=0).total

        inside = []
        for n in (count, count - 2):
            if n <= 0:
                inside.append(False)
                continue
            seen = simulate_replica(
                shape, gpu, 1, prompt, answer, rate=rate / n, weight_bits=8, requests=requests
            )
            good = seen.ttft_p95_s <= TTFT_S and seen.tpot_mean_s <= tpot and not seen.growing
            inside.append(bool(good))
        right += inside[0] and not inside[1]
        few += not inside[0]
    return right, few


def run() -> None:
    """Print the errors by load, and the replicas."""
    found = errors()
    names = ("first token", "95th percentile", "99th percentile", "time per token")
    for level in LOADS:
        here = found[found[:, 0] == level][:, 1:]
        told = ", ".join(
            f"{name} {np.median(abs(e)):.1%} ({np.quantile(abs(e), 0.9):.1%})"
            for name, e in zip(names, here.T, strict=True)
        )
        print(f"  load {level:g}, {len(here)} cases, median (90th percentile): {told}")
        first, each = (np.mean(abs(here[:, i]) > most) for i, most in ((0, 0.12), (3, 0.05)))
        print(f"    beyond 12% to the first token {first:.0%}, beyond 5% per token {each:.0%}")
    right, few = replicas()
    print(f"  replicas exact or one over in {right} of {CASES} cases; too few in {few}")


if __name__ == "__main__":
    print(NAME)
    run()
