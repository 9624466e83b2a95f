"""Event simulation of one replica of a language model: the last word on the closed form.

Requests come at random (Poisson) with log-normal lengths. Every iteration decodes one token of
each answer under way and takes in up to a chunk of the prompts that wait, first come first served.
Iterations between two events are skipped over, so time goes with requests and not with tokens.

`simulate_serving` takes steps and prefill as seconds; `simulate_replica` takes them from the
calibrated model of `engine.estimate.serving`. Times in seconds.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.catalogue import Accelerator
from engine.errors import InputError
from engine.estimate.queueing import Array, check
from engine.estimate.serving import (
    CHUNK_TOKENS,
    DEFAULT_ENGINE,
    LENGTH_CV,
    USABLE_MEMORY,
    decode_seconds,
    most_sequences,
    prefill_seconds,
    prompt_seconds_shared,
    replica_of,
    slots,
)
from engine.estimate.shape import ModelShape

# Requests at the start that are not counted: the replica is still filling.
WARM_UP = 0.1
MOST_REQUESTS = 1_000_000
# Iterations after which a replica that falls ever further behind is given up.
MOST_EVENTS_PER_REQUEST = 400

# Seconds of a step by the number of sequences in the batch: a table from 0 on, or a function.
Steps = NDArray[np.floating[Any]] | Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Simulated:
    """What requests saw: seconds to the first token and per token, answers under way.

    `tpot_mean_s` is the mean over tokens. `growing`: the queue of the last fifth of the requests
    was longer than of the fifth before it, by more than chance; then there is no steady state.
    """

    requests: int
    ttft_mean_s: float
    ttft_p50_s: float
    ttft_p95_s: float
    ttft_p99_s: float
    tpot_mean_s: float
    tpot_p95_s: float
    batch_mean: float
    growing: bool


def simulate_serving(
    rate: float, step_s: Steps, prefill_s_per_token: float, *,
    prompt: float, answer: float, cv: float = 0.8, max_batch: int = 1024,
    prefill_s_per_request: float = 0.0, chunk: int = CHUNK_TOKENS, requests: int = 20_000,
    seed: int = 0, progress: Callable[[float], None] | None = None,
) -> Simulated:  # fmt: skip
    """Serve `requests` requests and report what they saw.

    rate : requests per second; step_s : seconds of a decoding step by number of answers under
    way (an array from 0 on, or a function); prompt, answer : mean tokens; cv : of both, standard
    deviation over mean; progress : called with the share done, about a hundred times

    Raises
    ------
    InputError : with the field's name
    """
    check("rate", rate, above=0.0)
    check("prefill_s_per_token", prefill_s_per_token, least=0.0)
    check("prefill_s_per_request", prefill_s_per_request, least=0.0)
    check("prompt", prompt, least=1.0)
    check("answer", answer, least=1.0)
    check("cv", cv, least=0.0)
    check("chunk", chunk, least=1.0)
    check("max_batch", max_batch, least=1.0)
    if not 10 <= requests <= MOST_REQUESTS:
        raise InputError(
            f"{requests} can't be used", where="requests", right=f"10 to {MOST_REQUESTS:,}"
        )
    random = np.random.default_rng(seed)
    arrivals = np.cumsum(random.exponential(1.0 / rate, requests))
    prompts = _lengths(random, prompt, cv, requests)
    answers = _lengths(random, answer, cv, requests)
    batches = np.arange(int(max_batch) + 1)
    steps = np.asarray(step_s(batches.astype(float)) if callable(step_s) else step_s, dtype=float)
    if len(steps) <= max_batch:
        steps = np.append(steps, np.full(int(max_batch) + 1 - len(steps), steps[-1]))
    if not np.all(np.isfinite(steps[1:])) or np.any(steps[1:] <= 0.0):
        raise InputError("a step is not above zero", where="step_s", right="seconds above zero")
    first, last, area = _run(
        arrivals.tolist(), prompts.tolist(), answers.tolist(), steps.tolist(), int(max_batch),
        prefill_s_per_token, prefill_s_per_request, int(chunk), progress,
    )  # fmt: skip
    skip = int(WARM_UP * requests)
    ttft = (first - arrivals)[skip:]
    spans, further = (last - first)[skip:], answers[skip:] - 1
    told = further > 0
    per_token = spans[told] / further[told]
    fifth = requests // 5
    late, before = ttft[-fifth:], ttft[-2 * fifth : -fifth]
    p50, p95, p99 = np.quantile(ttft, [0.5, 0.95, 0.99]).tolist()
    return Simulated(
        requests,
        float(np.mean(ttft)),
        p50,
        p95,
        p99,
        float(np.sum(spans[told]) / max(np.sum(further[told]), 1)),
        float(np.quantile(per_token, 0.95)) if len(per_token) else math.nan,
        area / float(np.max(last)),
        bool(np.mean(late) > 1.25 * np.mean(before) + 3.0 * float(steps[1])),
    )


def simulate_replica(
    shape: ModelShape, accelerator: Accelerator, n_gpus: int, input_tokens: float,
    output_tokens: float, *, rate: float, weight_bits: float = 16.0, kv_bytes: float = 2.0,
    pp: int = 1, attention_dp: bool = False, engine: str = DEFAULT_ENGINE,
    length_cv: float = LENGTH_CV, requests: int = 20_000, seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Simulated:  # fmt: skip
    """Simulate the replica that `serving_capacity` sizes, at a rate of requests per second.

    Raises
    ------
    InputError : with the field's name; where the model or one request does not fit
    """
    check("input_tokens", input_tokens, least=1.0)
    check("output_tokens", output_tokens, least=1.0)
    net, hw, plan, eff = replica_of(
        shape, accelerator, n_gpus, pp, attention_dp, weight_bits, kv_bytes, engine
    )
    room = float(slots(net, hw, plan, eff, input_tokens + output_tokens, USABLE_MEMORY))
    if room < 1.0:
        raise InputError(
            f"{shape.name or 'the model'} and one request do not fit on {n_gpus} GPUs",
            where="n_gpus", right="more GPUs, fewer bits a weight or a shorter prompt",
        )  # fmt: skip
    most = int(min(room, float(most_sequences(plan))))
    context = input_tokens + output_tokens / 2.0
    steps = decode_seconds(net, hw, plan, eff, np.arange(most + 1.0), context)
    shared = float(prompt_seconds_shared(net, hw, plan, eff, input_tokens))
    alone = float(prefill_seconds(net, hw, plan, eff, 1.0, input_tokens))
    seen = simulate_serving(
        rate, np.asarray(steps), shared / input_tokens, prompt=input_tokens, answer=output_tokens,
        cv=length_cv, max_batch=most, requests=requests, seed=seed, progress=progress,
    )  # fmt: skip
    # What a lone prompt pays beyond its share passes beside the work on others.
    more = max(alone - shared, 0.0)
    return replace(
        seen,
        ttft_mean_s=seen.ttft_mean_s + more,
        ttft_p50_s=seen.ttft_p50_s + more,
        ttft_p95_s=seen.ttft_p95_s + more,
        ttft_p99_s=seen.ttft_p99_s + more,
    )


def _lengths(random: np.random.Generator, mean: float, cv: float, n: int) -> Array:
    """Whole log-normal lengths of a mean and a coefficient of variation, at least 1."""
    sigma = math.sqrt(math.log1p(cv**2))
    drawn = random.lognormal(math.log(mean) - sigma**2 / 2.0, sigma, n) if cv > 0 else mean
    return np.asarray(np.maximum(np.rint(np.broadcast_to(drawn, (n,))), 1.0))


def _run(
    arrivals: list[float], prompts: list[float], answers: list[float], steps: list[float],
    max_batch: int, per_token: float, per_request: float, chunk: int,
    progress: Callable[[float], None] | None,
) -> tuple[Array, Array, float]:  # fmt: skip
    """Times of first and last tokens, and answers under way integrated over time."""
    n = len(arrivals)
    first, last = np.zeros(n), np.zeros(n)
    now, area, counter = 0.0, 0.0, 0  # counter: decoding steps done so far
    decoding: list[tuple[int, int]] = []  # (step at which it ends, request)
    waiting: deque[int] = deque()
    left = list(prompts)  # tokens of prompts not yet taken in
    coming, done, told = 0, 0, 0
    report = max(n // 100, 1)
    for _ in range(MOST_EVENTS_PER_REQUEST * n):
        if done == n:
            break
        if progress is not None and done >= told + report:
            told = done
            progress(done / n)
        while coming < n and arrivals[coming] <= now:
            waiting.append(coming)
            coming += 1
        b = len(decoding)
        if not b and not waiting:
            now = arrivals[coming]
            continue
        if waiting and b < max_batch:
            # One mixed iteration: a token for everyone, and a chunk of the prompts that wait.
            room, extra = float(chunk), 0.0
            started: list[int] = []
            while waiting and room > 0.0 and b + len(started) < max_batch:
                i = waiting[0]
                if left[i] == prompts[i]:
                    extra += per_request
                part = min(left[i], room)
                room -= part
                left[i] -= part
                if left[i] > 0.0:
                    break
                started.append(waiting.popleft())
            elapsed = (steps[b] if b else 0.0) + (chunk - room) * per_token + extra
            # A prompt taken in alone still passes the layers once.
            elapsed = elapsed if elapsed > 0.0 else steps[1]
            now += elapsed
            area += b * elapsed
            counter += 1
            for i in started:
                first[i] = now
                if answers[i] <= 1.0:
                    last[i] = now
                    done += 1
                else:
                    heappush(decoding, (counter + int(answers[i]) - 1, i))
        else:
            # Nothing changes until an answer ends or a request comes that has room.
            step = steps[b]
            count = decoding[0][0] - counter
            if coming < n and b < max_batch:
                count = min(count, max(math.ceil((arrivals[coming] - now) / step), 1))
            now += count * step
            area += b * count * step
            counter += count
        while decoding and decoding[0][0] <= counter:
            last[heappop(decoding)[1]] = now
            done += 1
    else:
        raise InputError(
            "the replica does not come to an end of its work", where="rate", right="a lower rate"
        )
    return first, last, area
