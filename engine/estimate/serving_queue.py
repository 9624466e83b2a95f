"""The queue of a language model: how long users wait for a first token and for each further one.

An engine works in steps. A step writes one token of every answer under way and takes in up to a
chunk of the prompts that wait, first come first served; a prompt is charged its own seconds and
the steps that it takes. Requests come at random (Poisson) with log-normal lengths. From that alone
follow the steps that a prompt meets, the wait for prompts before it, and what an answer loses to
the prompts that came while it waited. `simulate_serving` plays the same rules event by event.

Every formula takes floats or NumPy arrays that broadcast. Where there is no steady state the waits
are infinite. Knows nothing of hardware or prices. Rates per second, times in seconds.

References
----------
[1] J. D. C. Little 1961: answers under way = rate times time in the system.
[2] F. Pollaczek 1930: mean wait λ·E[S²]/(2·(1 − ρ)) before one server.
[3] W. Feller, "An introduction to probability theory", vol. 2, ch. XI: who comes at random comes in
    an interval of length E[D²]/E[D], half of which is left.
[4] N. T. J. Bailey 1954: queues whose server takes up to so many at a time.
[5] R. Bhatia and C. Davis 2000: a quantity in [0, C] of mean m varies by at most m·(C − m).
[6] F. Kelly, "Reversibility and stochastic networks", 1979, ch. 3: numbers in a server shared by
    all depend on mean lengths only.
[7] L. Takács 1962: E[Wᵏ] = λ/(1 − ρ)·Σ C(k, i)·E[Sⁱ⁺¹]/(i + 1)·E[Wᵏ⁻ⁱ] before one server.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from engine.estimate.queueing import Array, Real, check, told

# Power of the load in the share of the wait of [2] that is left where a step has room for several
# prompts, for each prompt that it has room for beyond the first; found by simulation.
ROOM = 2.0
# Variance of a step's part of the first token against that of independent steps, and how far it
# goes with the wait for prompts before (0: not, 1: wholly); found by simulation.
STEPS_VARY, STEPS_AND_WAIT = 2.0, 0.25
MOST_SKEW = 8.0  # beyond it the cube of Wilson and Hilferty no longer follows a gamma variable
# Largest share of a step's time that grows with the answers under way: beyond it numbers run away.
MOST_SHARED = 0.9
# Part of a latency target kept for what simulation shows beyond the closed form.
RESERVE = 0.04
TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Intake:
    """How prompts are taken in beside decoding; seconds unless said otherwise.

    `begin` : to the first token of a prompt that a step has room for: the rest of the step under
    way, its own seconds and steps, and prompts taken in with it
    `wait` : for prompts before it that fill steps; `busy` : share of time in steps with prompts
    `load` : share of time that prompts alone take; `token` : of a prompt's token
    `step`, `usual`, `met` : one without prompts (nobody under way: none), a mean one, the one that
    a request comes in; `turns` : steps that a prompt takes, a number
    `with_it` : of prompts taken in by the same step; `stretched` : of a prompt with its steps
    `full` : wait where every prompt waits for the one before; `crowded` : the share that is left
    """

    begin: Array
    wait: Array
    busy: Array
    load: Array
    token: Array
    step: Array
    usual: Array
    met: Array
    turns: Array
    with_it: Array
    stretched: Array
    full: Array
    crowded: Array


def turns_of(prompt: Real, chunk: Real, cv: Real) -> Array:
    """Steps that take in a prompt on average, log-normal lengths of mean `prompt` rounded up.

    Beyond one chunk the last step is half full on average; prompts of one length are rounded.
    """
    sigma = np.sqrt(np.log1p(np.square(cv)))
    wide = np.maximum(sigma, 1e-6)
    d = (np.log(np.divide(prompt, chunk)) - sigma**2 / 2.0) / wide
    longer = ndtr(d)
    spare = chunk * (1.0 - longer) - prompt * ndtr(-d - wide)  # E[max(chunk − prompt, 0)]
    varied = (prompt + spare) / chunk + 0.5 * longer
    return np.asarray(np.where(sigma > 0.0, varied, np.ceil(np.divide(prompt, chunk))))


def beside(step: Array, batch: Array) -> Array:
    """Seconds that a step takes for answers while prompts are taken in: none where nobody is under
    way, which is so for e^(−B) of the time, numbers under way being like Poisson's.
    """
    return np.asarray(step * -np.expm1(-batch))


def intake(
    step: Array, prefill: Array, prompt: Array, rate: Array, cv: Real, chunk: Real, turns: Array
) -> Intake:  # fmt: skip
    """Prompts of a stream taken in, `chunk` tokens a step at most, in `turns` steps each.

    step : seconds of a step `beside` answers

    Steps: with a share ρ of the time for prompts a step takes t/(1 − ρ) on average; it takes in
    what came during the one before, so lengths vary by λ·E[S²]·t/(1 − ρ)/(1 − ρ²), or by no more
    than a full and an empty one [5]. A request comes in one of length E[D²]/E[D] and waits for
    half of it [3]; what came before and after it in that step is taken in with it, where there is
    room.

    Wait: with r prompts to a chunk (of the length that counts, E[P²]/E[P]) and a load u, [2] holds
    but for the step under way: 1 − (1 − u)·r of it is left up to r = 1, and u^(2r − 1) beyond,
    where one step's room clears what gathered [4].
    """
    token, spread = prefill / prompt, 1.0 + np.square(cv)
    load = np.minimum(rate * prefill, 1.0 - 1e-9)
    usual = step / (1.0 - load)
    free = prompt * spread / (1.0 - load * load)
    held = np.maximum(chunk - rate * prompt * usual, TINY)
    varies = free * held / np.sqrt(free * free + held * held)  # the smaller, smoothly
    met = usual + load * token * varies
    with_it = np.minimum(load * met, token * (turns * chunk - prompt))
    begin = prefill + turns * step + 0.5 * met + with_it
    stretched = prefill + step * (prompt / chunk)
    busy = rate * stretched
    left = np.maximum(1.0 - busy, TINY)
    full = busy * stretched * (0.5 * spread) / left
    prompts = chunk / (prompt * spread)
    beyond = ROOM * np.maximum(prompts - 1.0, 0.0) + 1.0
    crowded = np.where(prompts < 1.0, 1.0 - left * prompts, np.minimum(busy, 1.0) ** beyond)
    return Intake(
        begin, np.where(busy < 1.0, full * crowded, np.inf), busy, load, token, step, usual, met,
        turns, with_it, stretched, full, crowded,
    )  # fmt: skip


def lost_seconds(taken: Intake, step: Array, further: Array, chunk: Real) -> Array:
    """Seconds that an answer loses beyond its tokens' share of the time.

    While a request waits for its first token others come, and their prompts stretch its first
    steps. In N of n steps prompts are taken in; as many tokens come as are taken in or wait at the
    end: N = (λ·P·t·n + Q₀ − Q)/(C·(1 − ρ)), with Q₀ tokens waiting as the answer begins and Q at
    any step. A short answer ends before that evens out.
    """
    usual = step / (1.0 - taken.load)
    wait = np.where(taken.busy < 1.0, taken.wait, 0.0)
    behind = taken.load * (taken.begin + wait) - 0.5 * taken.with_it
    each = taken.token + taken.step / chunk
    mixed = step + taken.token * chunk
    steady = taken.load * usual + wait * taken.token / each * usual / mixed
    lost = np.maximum(behind - steady, 0.0) / (1.0 - taken.load)
    at_once = np.minimum(behind, np.minimum(taken.busy, 1.0) * taken.token * chunk) + step - usual
    evens_out = np.maximum(lost / np.maximum(at_once, TINY), 1.0)
    return np.asarray(lost * further / (further + evens_out))


def step_of_an_answer(step: Array, per_sequence: Array, batch: Array) -> Array:
    """Seconds of a step as an answer under way meets it: with itself among more others than usual.

    Numbers under way vary by B/(1 − e) [6], e the share of a step that grows with them; a token is
    written in steps of E[B²]/E[B] = B + 1/(1 − e) answers. A step is never of fewer than one: below
    B = 1 it is `step` already that of one.
    """
    grows = np.minimum(per_sequence * batch / step, MOST_SHARED)
    return np.asarray(step + per_sequence * np.minimum(batch, 1.0) / (1.0 - grows))


def per_sequence(step: Array, batch: Array) -> Array:
    """Seconds that a further answer adds to a step, from a table of steps by answers under way."""
    others = batch > 1.0
    rise = np.where(others, (step - step[:, :1]) / np.maximum(batch - 1.0, TINY), 0.0)
    first = np.take_along_axis(rise, np.argmax(others, axis=1, keepdims=True), axis=1)
    return np.where(others, rise, first)


# ---- at a rate ----------------------------------------------------------------------------------


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
    """Open-loop serving at a rate, whose step takes step + step_per_sequence·B seconds.

    By Little's law [1] B = λ·(O − 1)·(time per token), solved by iteration. More than `max_batch`
    answers under way have no room: infinite.

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
    further = np.maximum(out - 1.0, 0.5)
    k = lam * (out - 1.0) / np.maximum(1.0 - rho, TINY)
    stable = (rho < 1.0) & (k * b < 1.0)
    free = np.maximum(1.0 - k * b, TINY)
    turns = turns_of(length, width, spread)
    batch = np.where(stable, k * a / free, 0.0)
    for _ in range(8):
        step = a + b * np.maximum(batch, 1.0)
        found = intake(beside(step, batch), first, length, lam, spread, width, turns)
        lost = lost_seconds(found, step, further, width)
        more = step_of_an_answer(step, b, batch) - (a + b * batch)
        batch = np.where(stable, (k * (a + more) + lam * lost * (out > 1.0)) / free, 0.0)
    step = a + b * np.maximum(batch, 1.0)
    found = intake(beside(step, batch), first, length, lam, spread, width, turns)
    tpot = step_of_an_answer(step, b, batch) / np.maximum(1.0 - rho, TINY)
    tpot = tpot + lost_seconds(found, step, further, width) / further
    stable = stable & (batch <= np.asarray(max_batch))
    per_token = np.where(stable, tpot, np.inf)
    ttft = np.where(stable & (found.busy < 1.0), found.begin + found.wait, np.inf)
    under_way = np.where(stable, lam * (out - 1.0) * tpot, np.inf)
    return Sharing(told(under_way), told(per_token), told(ttft), told(rho))


# ---- at numbers of answers under way ------------------------------------------------------------


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
    t/(1 − ρ) and an answer some seconds more; by Little's law [1] batch = λ·(time of an answer),
    whence λ = B/((O − 1)·t + lost·(1 − ρ) + B·S).

    batch, step : of shape (rows, loads), loads rising from one where nobody else is answered;
    step : seconds of a decoding step with that batch; alone : of the prefill of a lone prompt;
    prefill : for which one of several prompts keeps the engine busy; percentile : of the time to
    the first token, None for its mean
    """
    further = np.maximum(answer - 1.0, 0.5)
    turns = turns_of(prompt, chunk, cv)
    tokens = further * step_of_an_answer(step, per_sequence(step, batch), batch)
    rate = batch / (tokens + batch * prefill)
    taking = beside(step, batch)
    found = intake(taking, prefill, prompt, rate, cv, chunk, turns)
    lost = lost_seconds(found, step, further, chunk) * (1.0 - found.load)
    rate = batch / (tokens + lost + batch * prefill)
    found = intake(taking, prefill, prompt, rate, cv, chunk, turns)
    more = alone - prefill
    ttft = found.begin + more + found.wait
    if percentile is not None:
        ttft = _percentile(found, ttft, more, prefill, rate, percentile, cv)
    return Points(rate, ttft, batch / (further * rate))


def lone_first_token(alone: Array, prefill: Array, percentile: float | None, cv: float) -> Array:
    """Seconds to the first token where nobody else is served: that of its own length only.

    What `operating_points` tends to as the load goes to none.
    """
    if percentile is None:
        return alone
    sigma = math.sqrt(math.log1p(cv**2))
    longest = math.exp(float(ndtri(percentile)) * sigma - sigma**2 / 2.0)
    return np.asarray(alone + prefill * (longest - 1.0))


def _percentile(
    found: Intake, mean: Array, more: Array, prefill: Array, rate: Array, percentile: float,
    cv: float,
) -> Array:  # fmt: skip
    """Percentile of the time to the first token: a gamma variable of its mean, variance and
    skewness, moved (Wilson–Hilferty), as far as the queue makes the skewness.

    Three things vary: the prompt's own length, the steps that it meets (of a length like a gamma
    variable's, a random part of it, and what is taken in with it: a Poisson number of prompts) and
    the wait for prompts before it, whose moments are Takács' [7]. Third moments matter: waits have
    the tail of an exponential, which a log-normal's exceeds by a fifth at the 99th percentile.
    """
    spread = 1.0 + cv**2
    own = ((prefill + found.step * (found.turns - 1.0)) * cv) ** 2
    own3 = own**1.5 * (cv**3 + 3.0 * cv)
    steps, steps3 = _steps_vary(found, prefill, spread)
    wait, wait3 = _wait_varies(found, rate, spread)
    apart = np.maximum(steps + wait, TINY * TINY)
    queued = steps + wait + 2.0 * STEPS_AND_WAIT * np.sqrt(steps * wait)
    # What the two have in common leaves the skewness of their sum.
    queued3 = np.maximum(steps3 + wait3, 0.0) * (queued / apart) ** 1.5
    deviation = np.sqrt(np.maximum(own + queued, TINY * TINY))
    skew = np.clip((own3 + queued3) / deviation**3, 1e-3, MOST_SKEW)
    z = float(ndtri(percentile))
    far = (2.0 / skew) * ((1.0 + skew * z / 6.0 - skew**2 / 36.0) ** 3 - 1.0)
    # Where nobody is waited for, only lengths vary, and those are log-normal.
    alone = own3 / np.maximum(own3 + queued3, TINY * TINY)
    far = far + alone * (_lengths_reach(z, cv) - far)
    finite = np.isfinite(mean)
    told = np.where(finite, mean, 0.0) + deviation * far
    return np.asarray(np.where(finite, np.maximum(told, more + found.step), np.inf))


def _lengths_reach(z: float, cv: float) -> float:
    """Standard deviations of log-normal lengths from their mean to a percentile."""
    sigma = math.sqrt(math.log1p(cv**2))
    return math.expm1(z * sigma - sigma**2 / 2.0) / cv if cv > 0 else z


def _steps_vary(found: Intake, prefill: Array, spread: float) -> tuple[Array, Array]:
    """Variance and third central moment of the steps that a prompt meets."""
    met = np.maximum(found.met, TINY)
    uneven = np.maximum(met - found.usual, 0.0) * met
    half = 0.5 + found.with_it / met
    gathered = found.with_it * prefill
    second = half**2 * uneven + (met**2 + uneven) / 12.0 + gathered * spread
    third = half**3 * 2.0 * uneven**2 / met + gathered * prefill * spread**3
    return STEPS_VARY * second, STEPS_VARY**1.5 * third


def _wait_varies(found: Intake, rate: Array, spread: float) -> tuple[Array, Array]:
    """Variance and third central moment of the wait for prompts before [7]: none of it but for a
    share `crowded` of the time, log-normal lengths.
    """
    left = np.maximum(1.0 - found.busy, TINY)
    full = np.minimum(found.full, 1e6)  # finite where there is no steady state
    second = rate * found.stretched**3 * spread**3 / left
    third = rate * found.stretched**4 * spread**6 / left
    squares = 2.0 * full**2 + second / 3.0
    cubes = 3.0 * full * squares + second * full + third / 4.0
    kept, mean = found.crowded, found.crowded * full
    varies = np.maximum(kept * squares - mean**2, 0.0)
    return varies, kept * cubes - 3.0 * kept * squares * mean + 2.0 * mean**3


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
