"""What a published run measures, by its protocol, from the physics of the serving model.

Static batch: all prompts are taken in together, then all answers grow together. Closed loop: a
fixed number of users, each of whom sends the next request on the answer to the last one. Offline:
always a request waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.calibrate.serving_rows import Table
from engine.estimate.queueing import Array, Real
from engine.estimate.serving import (
    CHUNK_TOKENS,
    GIB,
    USABLE_MEMORY,
    Efficiencies,
    Hardware,
    Network,
    Plan,
    decode_seconds,
    memory_bytes,
    most_sequences,
    prefill_seconds,
    prompt_seconds_each,
    saturated_tokens_per_s,
    slots,
)

USABLE = 0.93  # of the memory, by an engine tuned for a benchmark


@dataclass(frozen=True, slots=True)
class Loop:
    """What `users` who each send the next request on the answer to the last one see."""

    ttft: Real
    itl: Real
    requests_per_s: Real
    batch: Real


def closed_loop(
    net: Network, hw: Hardware, plan: Plan, eff: Efficiencies,
    users: Real, prompt: Real, answer: Real, usable: float = USABLE_MEMORY,
) -> Loop:  # fmt: skip
    """Time to first token, per token and rate with a fixed number of users.

    At most `slots` answers are under way; others wait for one of them to end. In the time of one
    answer each of the others begins one too: of their prefills some are waited for before the
    first token, and of the rest `interleave` lengthens the tokens after it.
    """
    held = slots(net, hw, plan, eff, prompt + answer, usable)
    room = np.clip(held, 1.0, most_sequences(plan))
    batch = np.minimum(users, room)
    step = decode_seconds(net, hw, plan, eff, batch, prompt + answer / 2.0)
    lone = prefill_seconds(net, hw, plan, eff, 1.0, prompt)
    together = np.clip(2.0 * CHUNK_TOKENS / prompt, 1.0, batch)
    shared = prompt_seconds_each(net, hw, plan, eff, together, prompt)
    further = np.maximum(answer - 1.0, 1.0)
    others = np.maximum(batch - 1.0, 0.0)
    waited = eff.first_wave * others + _gathered(eff, batch, prompt, shared)
    itl = step + eff.interleave * np.maximum(others - waited, 0.0) * shared / further
    # Machine repair with one server: R² + R·(Z − B·S) − S·Z = 0 (Schweitzer's approximation).
    think = further * itl
    excess = batch * shared - think
    served = 0.5 * (excess + np.sqrt(excess**2 + 4.0 * shared * think))
    ahead = waited * shared + eff.contention * np.maximum(served - shared, 0.0)
    begin = lone + 0.5 * np.where(batch > 1, step, 0.0) + ahead
    life = begin + further * itl
    wait = np.maximum(users - batch, 0.0) / batch * life
    return Loop(begin + wait, itl, batch / life, batch)


def _gathered(eff: Efficiencies, batch: Real, prompt: Real, shared: Real) -> Array:
    """Prefills of others that are waited for where all lengths are the same.

    Answers that begin together then end together, and their users' next prompts come together.
    The first is taken in alone and the rest with it: (B − 1)²/B on average. A step takes in no
    more than `step_tokens`: beyond that, answers that began a step apart also end a step apart,
    and a prompt waits for its own step and the one before. The front end passes requests on one
    by one: prompts that take less than `front_ms` never gather.
    """
    apart = np.maximum(1.0 - eff.front_ms * 1e-3 / shared, 0.0)
    free = eff.gathered * apart * np.maximum(batch - 1.0, 0.0) ** 2 / batch
    most = np.maximum(2.0 * eff.step_tokens / prompt - 2.0, 1.0)
    return np.asarray(free / np.sqrt(1.0 + (free / most) ** 2))


@dataclass(frozen=True, slots=True)
class Predicted:
    """Predicted seconds and tokens/s of every row."""

    ttft: Array
    itl: Array
    tokens_per_s: Array


def predict(t: Table, eff: Efficiencies) -> Predicted:
    """Every row by its protocol."""
    net, hw, plan = t.network, t.hardware, t.plan
    closed = t.protocol == "closed_loop"
    offline = np.char.find(t.protocol.astype(str), "off") >= 0
    users = np.where(np.isnan(t.users), 1.0, t.users) / np.where(offline, 1.0, t.replicas)
    ttft = prefill_seconds(net, hw, plan, eff, users, t.prompt)
    itl = decode_seconds(net, hw, plan, eff, users, t.prompt + t.answer / 2.0)
    further = np.maximum(t.answer - 1.0, 0.0)
    rate = users * np.maximum(t.answer, 1.0) / (ttft + further * itl)
    answer = np.maximum(t.answer, 2.0)
    loop = closed_loop(net, hw, plan, eff, users, t.prompt, answer, USABLE)
    ttft, itl = np.where(closed, loop.ttft, ttft), np.where(closed, loop.itl, itl)
    rate = np.where(closed, loop.requests_per_s * t.answer, rate)
    # llama.cpp's microbenchmarks state tokens of the prompt or of the answer, never both.
    rate = np.where(t.protocol == "microbench", np.where(t.answer > 0, 1 / itl, np.nan), rate)
    full = saturated_tokens_per_s(net, hw, plan, eff, t.prompt, answer, USABLE)
    rate = np.where(offline, full, rate)
    return Predicted(np.asarray(ttft), np.asarray(itl), np.asarray(rate * t.replicas))


def log_errors(t: Table, eff: Efficiencies) -> Array:
    """Log of predicted over measured: time to first token, per token, throughput; NaN if none."""
    p = predict(t, eff)
    return np.array(
        [np.log(p.ttft / t.ttft), np.log(p.itl / t.itl), np.log(t.tokens_per_s / p.tokens_per_s)]
    )


def peak_memory_gib(t: Table, memory: Mapping[str, float]) -> Array:
    """Peak memory of the fullest GPU of every row, GiB; whole prompts in one step."""
    each = np.ones(len(t))
    other = {k: each for k in Efficiencies.__slots__ if k not in memory}
    eff = Efficiencies(**other, **memory)
    users, context = t.users / t.replicas, t.prompt + t.answer
    total = memory_bytes(t.network, t.plan, eff, users, context, users * t.prompt)
    return np.asarray(total) / GIB
