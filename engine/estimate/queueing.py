"""Queues: how long requests wait before several servers, a batching server, or a language model.

Every formula takes floats or NumPy arrays that broadcast, and returns floats for floats. A queue
with more work than its servers do has no steady state: its waits are infinite, which is a result
and not an error. Knows nothing of hardware or prices. Rates per second, times in seconds.

References
----------
[1] A. K. Erlang 1917; L. Kleinrock, "Queueing systems", vol. 1, 1975, ch. 3: M/M/c.
[2] A. O. Allen, "Probability, statistics, and queueing theory", 1990: Allen–Cunneen, G/G/c.
[3] J. D. C. Little 1961: answers under way = rate times time in the system.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, gammaln, ndtri, pdtrik

from engine.errors import InputError

Array = NDArray[np.float64]
Real = float | Array
# Most servers that `servers_for` looks for: more is no longer one pool.
MAX_SERVERS = 1_000_000
# Weight of a token against a step of a busy period of prefill; found by simulation.
SHORT = 0.25
# What busy periods add to a token by the answers that gather in them; found by simulation.
WAVES = 0.08
# Power with which a long prompt and a long wait add up; found by simulation.
TAILS = 1.2
# Part of a latency target kept for what simulation shows beyond the closed form.
RESERVE = 0.04


def check(
    name: str, value: Real, *, least: float = -math.inf, above: float = -math.inf,
    below: float = math.inf, whole: bool = False,
) -> Array:  # fmt: skip
    """The value as an array, if it is finite and within bounds.

    Raises
    ------
    InputError : with the field's name
    """
    if isinstance(value, (float, int)) and least <= value < below and value > above:
        x = np.asarray(float(value))  # most calls, at a tenth of the time
        if math.isfinite(value) and (not whole or value == math.floor(value)):
            return x
    try:
        x = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(
            f"{value!r} is no number", where=name, right="a number or an array of numbers"
        ) from None
    good = x.size > 0 and bool(np.all(np.isfinite(x)))
    if not good or np.any(x < least) or np.any(x <= above) or np.any(x >= below):
        bounds = [f"at least {least:g}"] if least > -math.inf else []
        bounds += [f"more than {above:g}"] if above > -math.inf else []
        bounds += [f"below {below:g}"] if below < math.inf else []
        right = " and ".join(bounds) or "a finite number"
        raise InputError(f"{value} can't be used", where=name, right=right)
    if whole and np.any(x != np.floor(x)):
        raise InputError(f"{value} can't be used", where=name, right="a whole number")
    return x


def _told(x: Array) -> Real:
    """A float for an array without dimensions."""
    return float(x) if np.ndim(x) == 0 else x


# ---- servers that each take one request at a time ------------------------------------------------


def erlang_c(servers: Real, offered: Real) -> Real:
    """Share of requests that must wait before c servers [1]; 1 where the load is c or more.

    offered : rate times service time, in servers

    The sum of the Poisson terms up to c is the regularised gamma function Q(c + 1, a), so large
    pools cost no more than small ones and nothing overflows.

    Raises
    ------
    InputError : when a number is negative, not finite, or c is not whole
    """
    c, a = np.broadcast_arrays(
        check("servers", servers, least=1.0, whole=True), check("offered", offered, least=0.0)
    )
    stable = (a < c) & (a > 0.0)
    safe = np.where(stable, a, 0.5 * c)
    blocked = np.exp(c * np.log(safe) - safe - gammaln(c + 1.0)) / gammaincc(c + 1.0, safe)
    waits = blocked / (1.0 - safe / c * (1.0 - blocked))
    return _told(np.where(stable, waits, np.where(a > 0.0, 1.0, 0.0)))


def mean_wait(
    rate: Real, service_s: Real, servers: Real, *, arrival_cv2: Real = 1.0, service_cv2: Real = 1.0
) -> Real:
    """Mean wait before c servers, seconds, by Allen–Cunneen [2]; exact for M/M/c and M/G/1.

    rate : requests per second; service_s : of one request on one server; arrival_cv2,
    service_cv2 : squared coefficients of variation, 1 of a Poisson stream or an exponential time

    Raises
    ------
    InputError : with the field's name
    """
    lam, c = check("rate", rate, least=0.0), check("servers", servers, least=1.0, whole=True)
    s = check("service_s", service_s, above=0.0)
    ca2 = check("arrival_cv2", arrival_cv2, least=0.0)
    cs2 = check("service_cv2", service_cv2, least=0.0)
    spare = c / s - lam
    waits = np.asarray(erlang_c(c, lam * s))
    with np.errstate(divide="ignore", invalid="ignore"):
        wait = np.where(spare > 0.0, waits / spare * (ca2 + cs2) / 2.0, np.inf)
    return _told(wait)


def wait_percentile(
    rate: Real, service_s: Real, servers: Real, percentile: Real = 0.95, *,
    arrival_cv2: Real = 1.0, service_cv2: Real = 1.0,
) -> Real:  # fmt: skip
    """Wait that a share `percentile` of requests stays within, seconds.

    P(W > t) = C·exp(−(c·µ − λ)·t) in M/M/c [1]; other variabilities stretch t by
    (ca² + cs²)/2, so that the mean is Allen–Cunneen's.

    Raises
    ------
    InputError : with the field's name
    """
    lam, c = check("rate", rate, least=0.0), check("servers", servers, least=1.0, whole=True)
    s = check("service_s", service_s, above=0.0)
    p = check("percentile", percentile, above=0.0, below=1.0)
    ca2 = check("arrival_cv2", arrival_cv2, least=0.0)
    cs2 = check("service_cv2", service_cv2, least=0.0)
    spare = c / s - lam
    waits = np.asarray(erlang_c(c, lam * s))
    with np.errstate(divide="ignore", invalid="ignore"):
        longer = np.log(np.maximum(waits / (1.0 - p), 1.0)) / spare * (ca2 + cs2) / 2.0
        wait = np.where(spare > 0.0, longer, np.inf)
    return _told(wait)


def servers_for(
    rate: float, service_s: float, *, wait_target_s: float, percentile: float | None = 0.95,
    arrival_cv2: float = 1.0, service_cv2: float = 1.0, max_load: float = 1.0,
) -> int:  # fmt: skip
    """Fewest servers whose wait stays within a target, at a percentile (None: in the mean).

    max_load : share of time that a server may be busy at most

    Raises
    ------
    InputError : with the field's name, or when more than a million servers would be needed
    """
    check("wait_target_s", wait_target_s, least=0.0)
    check("max_load", max_load, above=0.0, below=1.0 + 1e-12)
    lam = float(check("rate", rate, least=0.0))
    offered = lam * float(check("service_s", service_s, above=0.0))

    def good(c: int) -> bool:
        if offered > c * max_load or offered >= c:
            return False
        kinds = {"arrival_cv2": arrival_cv2, "service_cv2": service_cv2}
        if percentile is None:
            return float(mean_wait(lam, service_s, c, **kinds)) <= wait_target_s
        return float(wait_percentile(lam, service_s, c, percentile, **kinds)) <= wait_target_s

    low = max(math.ceil(offered / max_load) - 1, 0)
    if low >= MAX_SERVERS:
        raise InputError(
            f"{rate:g} requests/s of {service_s:g} s keep {offered:g} servers busy",
            where="rate", right=f"at most {MAX_SERVERS:,}",
        )  # fmt: skip
    step, high = 1, low + 1
    # A target of zero is never met exactly in the mean: at some point the wait is below a ns.
    while not good(high):
        low, step = high, step * 2
        high += step
        if high > 4 * MAX_SERVERS:
            raise InputError(
                f"{wait_target_s:g} s is not reached", where="wait_target_s", right="a longer wait"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


# ---- a server that takes batches -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Batching:
    """Of a batching server: mean requests a batch, share of time busy, mean wait and response."""

    batch: Real
    load: Real
    wait_s: Real
    response_s: Real


def bulk_service(
    rate: Real, fixed_s: Real, per_item_s: Real, max_batch: Real, *, delay_s: Real = 0.0
) -> Batching:
    """One server that takes what has gathered, up to `max_batch`, in fixed + per_item·b seconds.

    Under load a batch gathers during the service of the one before: b = λ·(s(b) + delay) [3],
    whence b = λ·(fixed + delay)/(1 − λ·per_item), at least 1 and at most the largest. Full
    batches queue like G/G/1 with arrivals of b requests each, regular to 1/b.

    delay_s : time that the first of a batch is held for others to join

    Raises
    ------
    InputError : with the field's name
    """
    lam = check("rate", rate, least=0.0)
    fixed = check("fixed_s", fixed_s, least=0.0)
    each = check("per_item_s", per_item_s, least=0.0)
    most = check("max_batch", max_batch, least=1.0)
    hold = check("delay_s", delay_s, least=0.0)
    if np.any(fixed + each <= 0.0):
        raise InputError("0 can't be used", where="fixed_s", right="a service time above zero")
    free = 1.0 - lam * each
    with np.errstate(divide="ignore", invalid="ignore"):
        gathered = np.where(free > 0.0, lam * (fixed + hold) / np.maximum(free, 1e-12), np.inf)
    batch = np.clip(gathered, 1.0, most)
    service = fixed + each * batch
    load = lam / batch * service
    with np.errstate(divide="ignore", invalid="ignore"):
        # Whoever comes while the server is busy waits for the rest of that service and joins the
        # next batch; more than one batch waits only when batches are full.
        rest = np.minimum(load, 1.0) * service / 2.0
        full = lam * (fixed + each * most) / most
        behind = np.where(full < 1.0, full**2 / (2.0 * most) / (1.0 - full) * service, np.inf)
    held = hold * np.where(batch < most, (batch + 1.0) / (2.0 * batch), 0.0)
    wait = np.where(lam > 0.0, rest + behind + held, hold)
    return Batching(_told(batch), _told(load), _told(wait), _told(wait + service))


# ---- a language model: processor sharing with a speed that depends on the batch ------------------


@dataclass(frozen=True, slots=True)
class Sharing:
    """Of a language model under open load: answers under way, time per token, to the first one
    (mean), share of time in prefill. Infinite where there is no steady state.
    """

    batch: Real
    tpot_s: Real
    ttft_s: Real
    prefill_load: Real


def processor_sharing(
    rate: Real, answer: Real, step_s: Real, step_per_sequence_s: Real, prefill_s: Real, *,
    prompt: Real = 1.0, chunk: Real = 2048.0, cv: Real = 0.0, max_batch: Real = math.inf,
) -> Sharing:  # fmt: skip
    """Open-loop serving whose step takes step + step_per_sequence·B seconds.

    With ρ = λ·prefill, tokens take t(B)/(1 − ρ); by Little's law [3] B = k·a/(1 − k·b) with
    k = λ·(O − 1)/(1 − ρ). More than `max_batch` answers under way have no room: infinite.

    answer, prompt : mean tokens out and in; prefill_s : seconds of a mean prompt; chunk : tokens
    of prompts that one step takes in; cv : of prompt lengths, standard deviation over mean

    Raises
    ------
    InputError : with the field's name
    """
    lam = check("rate", rate, least=0.0)
    a = check("step_s", step_s, above=0.0)
    b = check("step_per_sequence_s", step_per_sequence_s, least=0.0)
    first = check("prefill_s", prefill_s, above=0.0)
    out, length = check("answer", answer, least=1.0), check("prompt", prompt, above=0.0)
    spread, width = check("cv", cv, least=0.0), check("chunk", chunk, above=0.0)
    rho = lam * first
    free = np.maximum(1.0 - rho, 1e-12)
    slower: Array = np.ones_like(rho)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(4):
            k = lam * (out - 1.0) / free * slower
            batch = np.where(k * b < 1.0, k * a / np.maximum(1.0 - k * b, 1e-12), np.inf)
            stable = (rho < 1.0) & (k * b < 1.0) & (batch <= np.asarray(max_batch))
            batch = np.where(stable, batch, np.inf)
            step = np.where(stable, a + b * np.where(stable, batch, 0.0), np.inf)
            inside = np.where(stable, step, a)
            further = np.maximum(out - 1.0, 0.5)
            slower = _slower(inside, first, length, further, lam, width)
        begin, wait, busy = first_token(step, first, first, length, rho, lam, batch, spread, width)
    ttft = np.where(stable & (busy < 1.0), begin + wait, np.inf)
    return Sharing(_told(batch), _told(step / free * slower), _told(ttft), _told(rho))


def first_token(
    step: Array, alone: Array, prefill: Array, prompt: Array, rho: Array, rate: Array,
    batch: Array, cv: Real, chunk: Real,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Seconds to the first token on average: what every request pays, its wait for others, and the
    share of time in which prompts are being taken in.

    A prompt is taken in by chunks beside the decoding of others, one step each, and begins with
    the next step. It waits for prompts before it as in M/G/1 with prefills stretched by those
    steps; where these alone fill the time, the wait is infinite. There are such steps only while
    somebody is answered: 1 − e^(−B) of the time, numbers under way being like Poisson's.
    """
    chunks = np.maximum(prompt / chunk, 1.0)
    beside = step * -np.expm1(-batch)
    begin = alone + chunks * beside + 0.5 * beside * (1.0 + rho)
    stretched = prefill + beside * prompt / chunk
    busy = rate * stretched
    free = 1.0 - busy
    with np.errstate(divide="ignore"):
        wait = rate * stretched**2 * (1.0 + np.asarray(cv) ** 2) / (2.0 * np.maximum(free, 0.0))
    return begin, wait, busy


@dataclass(frozen=True, slots=True)
class Points:
    """Rate and latencies at given numbers of answers under way."""

    rate: Array
    ttft: Array
    tpot: Array


def operating_points(
    batch: Array, step: Array, alone: Array, prefill: Array, prompt: Array, answer: Array, *,
    percentile: float | None, cv: float, chunk: float = 2048.0,
) -> Points:  # fmt: skip
    """Rate, time to first token and per token when `batch` answers are under way on average.

    A share ρ = λ·S of the time goes into prefill (S seconds of it a request), so a token takes
    t/(1 − ρ); by Little's law batch = λ·(O − 1)·t/(1 − ρ), whence λ = B/((O − 1)·t + B·S).

    step : seconds of a decoding step with that batch; alone : of the prefill of a lone prompt;
    prefill : for which one of several prompts keeps the engine busy; percentile : of the time to
    the first token, None for its mean
    """
    further = np.maximum(answer - 1.0, 0.5)
    rate = batch / (further * step + batch * prefill)
    for _ in range(2):
        slower = _slower(step, prefill, prompt, further, rate, chunk)
        rate = batch / (further * step * slower + batch * prefill)
    rho = rate * prefill
    begin, wait, busy = first_token(step, alone, prefill, prompt, rho, rate, batch, cv, chunk)
    ttft = begin + wait
    if percentile is not None:
        ttft = _percentile_ttft(begin, wait, busy, busy / rate, percentile, cv)
    return Points(rate, ttft, step * slower / np.maximum(1.0 - rho, 1e-9))


def _slower(
    step: Array, prefill: Array, prompt: Array, further: Array, rate: Array, chunk: Real
) -> Array:
    """Factor on t/(1 − ρ) for answers that are short against a busy period of prefill.

    A long answer meets prefill for its share of the time, a short one lives wholly within a busy
    period or outside of any: then steps of t and of t + a chunk's prefill count by where answers
    begin, t + busy·chunk on average. Between the two, by tokens against steps of a busy period.
    """
    mixed = prefill * np.minimum(chunk / prompt, 1.0)
    rho = rate * prefill
    steps = prompt / chunk
    busy = np.minimum(rho + rate * step * steps, 0.98)
    apart = (step + busy * mixed) * np.maximum(1.0 - rho, 1e-9) / step
    length = np.maximum(steps, 1.0) / (1.0 - busy)
    short = length / (length + SHORT * further)
    return np.asarray((1.0 + np.maximum(apart - 1.0, 0.0) * short) * (1.0 + WAVES * busy**2))


def _percentile_ttft(
    begin: Array, wait: Array, busy: Array, stretched: Array, percentile: float, cv: float
) -> Array:
    """Percentile of a fixed part, a prompt's log-normal length, and an exponential-tailed wait."""
    z = float(ndtri(percentile))
    sigma = math.sqrt(math.log1p(cv**2))
    longer = stretched * (math.exp(z * sigma - sigma**2 / 2.0) - 1.0)
    share = np.maximum(busy, 1e-9)
    tail = np.where(
        share > 1.0 - percentile,
        wait / share * np.log(np.maximum(share / (1.0 - percentile), 1.0)),
        0.0,
    )
    # The two rarely meet: less than their sum, more than the larger, and either by itself.
    both = np.maximum(longer, 0.0) ** TAILS + np.maximum(tail, 0.0) ** TAILS
    return np.asarray(begin + both ** (1.0 / TAILS))


Bound = Literal["ttft", "tpot", "load"]


def inside_targets(
    point: Points, ttft_target_s: Real | None, tpot_target_s: Real | None, load: float
) -> tuple[Array, Array, Bound]:
    """Largest rate of every row of points inside the targets, its place among them, what binds.

    ttft_target_s, tpot_target_s : one for all rows, or of shape (rows, 1)
    load : largest share of the greatest rate of the row
    """
    # Where prompts come faster than they are taken in there is no steady state.
    steady = np.where(np.isfinite(point.ttft), point.rate, 0.0)
    most = np.maximum(steady.max(axis=1, keepdims=True), 1e-12)
    with np.errstate(divide="ignore"):
        margins: dict[Bound, Array] = {
            "ttft": _margin(point.ttft, ttft_target_s),
            "tpot": _margin(point.tpot, tpot_target_s),
            "load": np.log(load * most / point.rate),
        }
    rate, place = _largest_inside(point.rate, np.minimum.reduce(list(margins.values())))
    return rate, place, min(margins, key=lambda k: float(np.median(at(margins[k], place))))


def _margin(value: Array, target: Real | None) -> Array:
    """Log of how far inside the target a value is; without a target, far."""
    if target is None:
        return np.full_like(value, 1e9)
    return np.asarray(np.maximum(np.log(target * (1.0 - RESERVE) / value), -1e9))


def _largest_inside(rate: Array, margin: Array) -> tuple[Array, Array]:
    """Largest rate whose margin is not negative, between columns by interpolation; its place."""
    inside = np.logical_and.accumulate(margin >= 0.0, axis=1)
    count = inside.sum(axis=1)
    last = np.maximum(count - 1, 0)
    after = np.minimum(last + 1, rate.shape[1] - 1)
    rows = np.arange(rate.shape[0])
    m0, m1 = margin[rows, last], margin[rows, after]
    with np.errstate(invalid="ignore"):
        step = np.where((after > last) & np.isfinite(m0), m0 / np.maximum(m0 - m1, 1e-12), 0.0)
    place = last + np.where(count > 0, np.clip(step, 0.0, 1.0), 0.0)
    return np.where(count > 0, at(rate, place), 0.0), place


def at(values: Array, place: Array) -> Array:
    """Values at fractional columns."""
    rows = np.arange(values.shape[0])
    low = np.floor(place).astype(int)
    high = np.minimum(low + 1, values.shape[1] - 1)
    part = place - low
    first, second = values[rows, low], values[rows, high]
    # On a column itself the next one does not count, be it infinite.
    between = first * (1.0 - part) + np.where(part > 0.0, second, 0.0) * part
    return np.asarray(np.where(part > 0.0, between, first))


# ---- replicas -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Replicas:
    """Replicas at the peak, those that are spare, all together, and the load of one at the peak."""

    needed: int
    spare: int
    total: int
    load: float


def plan_replicas(
    rate: float, requests_per_s: float, *, peak_to_mean: float = 1.0, interval_s: float = 0.0,
    spare: int = 1,
) -> Replicas:  # fmt: skip
    """Fewest replicas for a mean rate, each of which carries `requests_per_s` inside its targets.

    peak_to_mean : rate of the busiest hour over the mean; interval_s : seconds over which the
    rate is also taken at the 95th percentile of a Poisson count (0: not), which matters at low
    rates; spare : replicas that may fail or restart at the peak

    Raises
    ------
    InputError : with the field's name; when no rate is inside the targets; when more than a
        million replicas would be needed
    """
    mean = float(check("rate", rate, least=0.0))
    check("peak_to_mean", peak_to_mean, least=1.0)
    check("interval_s", interval_s, least=0.0)
    check("requests_per_s", requests_per_s, least=0.0)
    if spare < 0 or spare != int(spare):
        raise InputError(f"{spare} can't be used", where="spare", right="0 or more, whole")
    if requests_per_s <= 0.0:
        raise InputError(
            "one replica carries no request inside its targets", where="requests_per_s",
            right="a looser target, more memory or a smaller model",
        )  # fmt: skip
    peak = mean * peak_to_mean
    if interval_s > 0.0:
        peak = max(peak, math.ceil(float(pdtrik(0.95, peak * interval_s))) / interval_s)
    if peak / requests_per_s > MAX_SERVERS:
        raise InputError(
            f"{peak:g} requests/s need more than {MAX_SERVERS:,} replicas", where="rate",
            right=f"at most {MAX_SERVERS * requests_per_s:g}",
        )  # fmt: skip
    needed = max(math.ceil(peak / requests_per_s - 1e-9), 1 if mean > 0 else 0)
    total = needed + int(spare) if needed else 0
    return Replicas(needed, total - needed, total, peak / requests_per_s / max(needed, 1))
