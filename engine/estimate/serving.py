"""Serving of language models: the calibrated efficiencies, and what a replica carries in a target.

The physics of a step is in `serving_physics`; its efficiencies are fitted to published runs by GPU
generation, engine and precision (`engine/calibrate/serving.py` writes
`data/calibration_serving.csv`). Knows nothing of prices. Times in seconds, sizes in bytes unless a
name ends in `_gib`, rates per second.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from engine.calibrate.serving_classes import (
    cache_of,
    generation_of,
    host_of,
    kind_of,
    precision_of,
)
from engine.catalogue import Accelerator
from engine.errors import DataError
from engine.estimate.estimate import Estimate
from engine.estimate.queueing import Array, Real, check
from engine.estimate.serving_physics import (
    CHUNK_TOKENS,
    GIB,
    MAX_SEQUENCES,
    Efficiencies,
    Hardware,
    Network,
    Plan,
    attention_params,
    cache_bytes,
    cache_divisor,
    decode_seconds,
    engines_of,
    experts_touched,
    hardware_of,
    memory_bytes,
    most_sequences,
    network_of,
    prefill_seconds,
    prompt_seconds_each,
    prompt_seconds_shared,
    slots,
    stored_bits,
    weight_bytes,
)
from engine.estimate.serving_queue import (
    Bound,
    at,
    inside_targets,
    lone_first_token,
    operating_points,
)
from engine.estimate.shape import ModelShape

__all__ = [
    "CALIBRATION",
    "CHUNK_TOKENS",
    "DEFAULT_ENGINE",
    "GIB",
    "KNOBS",
    "LENGTH_CV",
    "LOADS",
    "MAX_SEQUENCES",
    "USABLE_MEMORY",
    "Z80",
    "Calibration",
    "Efficiencies",
    "Floor",
    "Hardware",
    "Network",
    "Plan",
    "Rows",
    "ServingCapacity",
    "attention_params",
    "cache_bytes",
    "cache_divisor",
    "capacity_rows",
    "decode_seconds",
    "efficiencies_of",
    "engines_of",
    "experts_touched",
    "hardware_of",
    "loads_of",
    "lone_request",
    "memory_bytes",
    "most_sequences",
    "network_of",
    "prefill_seconds",
    "prompt_seconds_each",
    "prompt_seconds_shared",
    "replica_of",
    "saturated_tokens_per_s",
    "serving_capacity",
    "shipped_calibration",
    "slots",
    "stored_bits",
    "weight_bytes",
]  # fmt: skip

CALIBRATION = Path(__file__).resolve().parents[2] / "data" / "calibration_serving.csv"
# Half of an 80% interval of a normal variable: 10th to 90th percentile.
Z80 = 1.2815515655446004
# Share of the memory that an engine may fill (vLLM: gpu_memory_utilization).
USABLE_MEMORY = 0.9
# Spread of prompt and answer lengths, standard deviation over mean (chat logs: 0.6 to 1.2).
LENGTH_CV = 0.8
UNCALIBRATED = 3.0  # widening for hardware without rows
FEW_ROWS = 20  # fewer rows than these say little about a generation
SOURCES = ("public serving runs, calibration_serving.csv",)
DEFAULT_ENGINE = "vllm-2025"

Floor = Literal["memory", "batch"] | Bound


KNOBS = tuple(Efficiencies.__slots__)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Fitted values by id."""

    values: Mapping[str, float]

    def half_width(self, quantity: str, generation: str, engine: str = DEFAULT_ENGINE) -> float:
        """Log half width of the 80% interval; three times as wide for hardware without rows."""
        width = self.values[f"width.{quantity}"]
        if not self.is_calibrated(generation):
            return max(UNCALIBRATED * width, math.log(UNCALIBRATED) / 2.0)
        known = self.values.get(f"rows.engine.{engine}", 0.0) > 0
        return width if known else self.values[f"width.new.{quantity}"]

    def is_calibrated(self, generation: str) -> bool:
        """Whether enough rows of this generation were fitted."""
        return self.values.get(f"rows.gpu.{generation}", 0.0) >= FEW_ROWS


@cache
def efficiencies_of(
    generation: str, engine: str, precision: str, kind: str, cached: str
) -> Efficiencies:
    """Shipped efficiencies of a class: base values times the factors of each effect.

    generation, precision, kind, cached : as `serving_classes` names them; engine : family-era
    """
    effects = (
        f"kind.{kind}", f"cache.{engine}.{cached}", f"pair.{generation}.{engine}",
        f"gpu.{generation}", f"engine.{engine}", f"bits.{precision}", f"host.{host_of(engine)}",
    )  # fmt: skip
    values = shipped_calibration().values
    found = {}
    for knob in KNOBS:
        factors = (values.get(f"{knob}.{e}", 1.0) for e in effects)
        found[knob] = math.prod(factors, start=values[knob])
    return Efficiencies(**found)


@cache
def shipped_calibration(path: Path = CALIBRATION) -> Calibration:
    """The calibration file, checked.

    Raises
    ------
    DataError : when a value is no number
    """
    values: dict[str, float] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            try:
                values[row["id"]] = float(row["value"])
            except (TypeError, ValueError):
                raise DataError(
                    f"{row.get('value')!r} is no number", file=path, line=line, column="value"
                ) from None
    missing = [k for k in KNOBS if k not in values]
    if missing:
        raise DataError(f"no {missing[0]}", file=path, line=2, column="id", right="one row a knob")
    return Calibration(values)


def replica_of(
    shape: ModelShape, accelerator: Accelerator, n_gpus: int, pp: int, attention_dp: bool,
    weight_bits: float, kv_bytes: float, engine: str,
) -> tuple[Network, Hardware, Plan, Efficiencies]:  # fmt: skip
    """Inputs of the formulae for a replica; weights that come quantised keep their bits."""
    bits = shape.quantized_bits or weight_bits
    kind = kind_of(shape.attention == "mla", float(shape.experts))
    generation = generation_of(accelerator.sku)
    eff = efficiencies_of(generation, engine, precision_of(bits), kind, cache_of(kv_bytes))
    stored = stored_bits(bits) / 8.0
    plan = Plan(float(n_gpus), float(pp), float(attention_dp), stored, kv_bytes)
    return network_of(shape), hardware_of(accelerator, bits), plan, eff


@dataclass(frozen=True, slots=True)
class ServingCapacity:
    """What one replica carries; arrays where draws or token counts were arrays.

    `requests_per_s` is the largest rate inside the targets, 0 where none is; `batch` the mean
    number of answers under way then; `ttft_s` and `tpot_s` at the percentile asked for;
    `memory_gib` of the fullest GPU at that load. `floor` names what keeps the rate from being
    larger: "memory" (the model or one request does not fit), "ttft" or "tpot" (the target, or
    with a rate of 0 a target below `ttft_floor_s` or `tpot_floor_s`, those of a lone request),
    "batch" (memory for no more answers at once), "load" (no replica is run fuller).
    """

    requests_per_s: Real
    batch: Real
    ttft_s: Real
    tpot_s: Real
    memory_gib: Real
    fits: bool
    floor: Floor
    ttft_floor_s: Real
    tpot_floor_s: Real
    max_batch: float
    calibrated: bool
    requests: Estimate
    ttft: Estimate
    tpot: Estimate
    notes: tuple[str, ...] = ()


# Loads at which a replica is worked out, answers under way on average.
LOADS = np.concatenate([[0.02, 0.1, 0.3, 0.6], np.geomspace(1.0, MAX_SEQUENCES, 41)])


# There is room for a further answer but for 0.2% of the time: standard deviations of that.
NO_ROOM_Z = 2.878


def loads_of(room: Real, engines: Real, half: Real = math.inf) -> Array:
    """Answers under way on average at which a replica is worked out, one column a load.

    No more than leave room but for two times in a thousand: numbers under way vary like Poisson's
    or more, and who finds no room waits for the end of an answer, which no formula here counts.

    engines : that schedule their own sequences (`engines_of`)
    half : answers under way where prompts take half of the time. With long prompts and short
        answers even one answer at a time is more than the replica can take in; then the loads
        begin at a tenth of it
    """
    # B at which a Poisson number reaches the room so seldom, by Wilson and Hilferty.
    places = np.maximum(room, 1.0)
    held = places * np.maximum(1.0 - 1.0 / (9.0 * places) - NO_ROOM_Z / (3.0 * places**0.5), 0) ** 3
    fewer = np.minimum(1.0, 5.0 * np.asarray(half))
    return np.asarray(np.minimum(LOADS * fewer * engines, np.maximum(held, 0.001)))


@dataclass(frozen=True, slots=True)
class Rows:
    """Replicas inside their targets, one value a row: the largest rate (0: none), answers under
    way and latencies there, those of a lone request, and for how many requests there is memory.
    """

    rate: Array
    batch: Array
    ttft: Array
    tpot: Array
    ttft_floor: Array
    tpot_floor: Array
    room: Array
    bound: Bound


def capacity_rows(
    net: Network, hw: Hardware, plan: Plan, eff: Efficiencies, prompt: Array, answer: Array,
    slow: Array, *, ttft_target_s: Real | None = None, tpot_target_s: Real | None = None,
    load: float = 0.85, percentile: float = 0.95, prefix_hit: float = 0.0,
    length_cv: float = LENGTH_CV, floors: tuple[Array, Array] | None = None,
) -> Rows:  # fmt: skip
    """Largest rates of many replicas at once: lengths, factors on times, layouts, hardware.

    prompt, answer, slow, and whatever of the replica or the targets differs by row : of shape
        (rows, 1); `prompt` and `answer` of all rows or of one. Not checked: see `serving_capacity`
    floors : what `lone_request` gives for these rows, where it is known already
    """
    room = np.minimum(
        slots(net, hw, plan, eff, prompt + answer, USABLE_MEMORY), most_sequences(plan)
    )
    context = prompt + answer / 2.0
    own = np.maximum(prompt * (1.0 - prefix_hit), 1.0)
    cached = np.maximum(prompt - own, 0.0)
    alone = slow * prefill_seconds(net, hw, plan, eff, 1.0, own, cached)
    lightest = slow * decode_seconds(net, hw, plan, eff, LOADS[0], context)
    batch = loads_of(room, engines_of(plan), np.maximum(answer - 1.0, 0.5) * lightest / alone)
    step = slow * decode_seconds(net, hw, plan, eff, batch, context)
    shared = slow * prompt_seconds_shared(net, hw, plan, eff, own, cached)
    point = operating_points(
        batch, step, alone, shared, own, answer, percentile=percentile, cv=length_cv
    )
    # As `lone_request` gives them, from what is worked out already.
    alone_first = lone_first_token(alone, shared, percentile, length_cv)
    ttft_floor, tpot_floor = floors or (alone_first, lightest)
    rate, place, bound = inside_targets(point, ttft_target_s, tpot_target_s, load)
    fits = np.broadcast_to(room[:, 0] >= 1.0, rate.shape)
    lone = [np.broadcast_to(x[:, 0], rate.shape) for x in (ttft_floor, tpot_floor)]
    return Rows(
        np.where(fits, rate, 0.0), at(batch, place), at(point.ttft, place),
        at(point.tpot, place), lone[0], lone[1], np.broadcast_to(room[:, 0], rate.shape), bound,
    )  # fmt: skip


def lone_request(
    net: Network, hw: Hardware, plan: Plan, eff: Efficiencies, prompt: Array, answer: Array,
    slow: Array, *, percentile: float = 0.95, prefix_hit: float = 0.0,
    length_cv: float = LENGTH_CV,
) -> tuple[Array, Array]:  # fmt: skip
    """Seconds to the first token, at a percentile, and per token where nobody else is served.

    No target below these can be met: the physical floor. Shapes as in `capacity_rows`.
    """
    step = slow * decode_seconds(net, hw, plan, eff, LOADS[0], prompt + answer / 2.0)
    own = np.maximum(prompt * (1.0 - prefix_hit), 1.0)
    cached = np.maximum(prompt - own, 0.0)
    alone = slow * prefill_seconds(net, hw, plan, eff, 1.0, own, cached)
    shared = slow * prompt_seconds_shared(net, hw, plan, eff, own, cached)
    return lone_first_token(alone, shared, percentile, length_cv), step


def saturated_tokens_per_s(
    net: Network, hw: Hardware, plan: Plan, eff: Efficiencies, prompt: Real, answer: Real,
    usable: float = USABLE_MEMORY,
) -> Real:  # fmt: skip
    """Output tokens per second of a replica with always a request waiting: λ·O of a full batch.

    Of the work on others' prompts the share `interleave` lengthens a token, as in a closed loop;
    the rest passes beside the reading of weights and caches.
    """
    context = prompt + answer / 2.0
    most = 2.0 * most_sequences(plan) / plan.pp
    room = np.clip(slots(net, hw, plan, eff, context, usable), 1.0, most)
    step = decode_seconds(net, hw, plan, eff, room, context)
    together = np.clip(4.0 * CHUNK_TOKENS / prompt, 1.0, room)
    shared = prompt_seconds_each(net, hw, plan, eff, together, prompt)
    life = np.maximum(answer - 1.0, 1.0) * step + eff.interleave * room * shared
    return np.asarray(room * answer / (life * eff.saturated))


def serving_capacity(
    shape: ModelShape, accelerator: Accelerator, n_gpus: int, input_tokens: Real,
    output_tokens: Real, *, weight_bits: float = 16.0, kv_bytes: float = 2.0,
    ttft_target_s: float | None = None, tpot_target_s: float | None = None, load: float = 0.85,
    percentile: float = 0.95, draws: Array | None = None, pp: int = 1,
    attention_dp: bool = False, engine: str = DEFAULT_ENGINE, prefix_hit: float = 0.0,
    length_cv: float = LENGTH_CV,
) -> ServingCapacity:  # fmt: skip
    """Largest rate of requests that one replica answers inside the targets, open loop.

    n_gpus : of a tensor-parallel group; pp : such groups in a pipeline; weight_bits : of a
        weight; kv_bytes : of a cached element
    ttft_target_s, tpot_target_s : seconds to the first token and per further token, the former at
        `percentile`; None: no target
    load : largest share of the rate at which the replica saturates
    draws : standard normal draws of the model's own error; a time is multiplied by e^(σ·draw).
        None: the likely value, with intervals
    prefix_hit : share of prompt tokens found in the prefix cache

    Raises
    ------
    InputError : with the field's name, when a number can't be used
    """
    for name, tokens in (("input_tokens", input_tokens), ("output_tokens", output_tokens)):
        check(name, tokens, least=1.0)
    for name, target in (("ttft_target_s", ttft_target_s), ("tpot_target_s", tpot_target_s)):
        if target is not None:
            check(name, target, above=0.0)
    for name, count in (("n_gpus", n_gpus), ("pp", pp)):
        check(name, count, least=1.0, below=1025.0, whole=True)
    check("weight_bits", weight_bits, above=0.0)
    check("kv_bytes", kv_bytes, above=0.0)
    check("load", load, above=0.0, below=1.0)
    check("prefix_hit", prefix_hit, least=0.0, below=1.0)
    check("percentile", percentile, above=0.0, below=1.0)
    check("length_cv", length_cv, least=0.0)

    cal, generation = shipped_calibration(), generation_of(accelerator.sku)
    net, hw, plan, eff = replica_of(
        shape, accelerator, n_gpus, pp, attention_dp, weight_bits, kv_bytes, engine
    )
    width = cal.half_width("itl_closed", generation, engine)
    z = np.array([0.0, Z80, -Z80]) if draws is None else np.atleast_1d(check("draws", draws))

    # One row of the grid a draw, one column a load; without draws likely, slow and fast.
    prompt = np.atleast_1d(np.asarray(input_tokens, dtype=float))[:, None]
    answer = np.atleast_1d(np.asarray(output_tokens, dtype=float))[:, None]
    slow = np.exp(z * width / Z80)[:, None]
    if draws is None and prompt.size * answer.size > 1:
        slow = np.ones((1, 1))
    found = capacity_rows(
        net, hw, plan, eff, prompt, answer, slow, ttft_target_s=ttft_target_s,
        tpot_target_s=tpot_target_s, load=load, percentile=percentile, prefix_hit=prefix_hit,
        length_cv=length_cv,
    )  # fmt: skip
    rate, ttft, tpot, batch_at = found.rate, found.ttft, found.tpot, found.batch
    most = float(np.min(found.room))
    fits = most >= 1.0
    memory = memory_bytes(net, plan, eff, batch_at, (prompt + answer)[:, 0], CHUNK_TOKENS) / GIB
    floor: Floor = "memory"
    if float(np.max(found.room)) >= 1.0:
        full = found.bound == "load" and most < float(most_sequences(plan))
        floor = "batch" if full else found.bound
    calibrated = cal.is_calibrated(generation)
    note = f"no published run of {accelerator.name} was fitted: the range is at least threefold"

    single = draws is None and prompt.size * answer.size == 1

    def told(x: Real) -> Real:
        return float(np.broadcast_to(x, rate.shape)[0]) if single else np.asarray(x)

    def spread(x: Array, unit: str) -> Estimate:
        low, likely, high = np.quantile(x, [0.1, 0.5, 0.9]) if not single else np.sort(x)
        return Estimate(float(low), float(likely), float(high), unit, SOURCES)

    # Latencies are told at one rate: that of the likely hardware.
    at_once = (np.exp(z * width / Z80) if single else 1.0) * np.ones_like(rate)
    first, each = (x[0] * at_once if single else x for x in (ttft, tpot))
    return ServingCapacity(
        told(rate), told(batch_at), told(ttft), told(tpot), told(memory), fits, floor,
        told(found.ttft_floor), told(found.tpot_floor), most, calibrated,
        spread(rate, "requests/s"), spread(first, "s"), spread(each, "s"),
        () if calibrated else (note,),
    )  # fmt: skip
