"""The terms of the serving plan: the model's shape, precision, targets, traffic, ways to run it.

Size, lengths, rate, peak and the time to the first token are the workload's own fields.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import model_validator

from engine.workload.terms import Number, Terms, term


class Weights(StrEnum):
    """Bits in which the weights are kept."""

    bits16 = "16"
    bits8 = "8"
    bits4 = "4"


class CacheBits(StrEnum):
    """Bits of a cached element."""

    bits16 = "16"
    bits8 = "8"


class EngineKind(StrEnum):
    """The serving engine, of 2025."""

    vllm = "vllm"
    sglang = "sglang"
    trtllm = "trtllm"


class DayShape(StrEnum):
    """How the requests spread over the day."""

    even = "even"
    office = "office"
    evening = "evening"
    world = "world"
    night = "night"
    own = "own"


class Percentile(StrEnum):
    """How many of a hundred requests the time to the first token must hold for."""

    p95 = "95"
    p99 = "99"


class Keep(StrEnum):
    """How many machines are kept."""

    always_on = "always_on"
    by_hour = "by_hour"


class Pay(StrEnum):
    """The terms on which machines are rented, or that they are bought."""

    recommended = "recommended"
    on_demand = "on_demand"
    reserved_1y = "reserved_1y"
    reserved_3y = "reserved_3y"
    dedicated = "dedicated"
    spot = "spot"
    buy = "buy"


class Start(StrEnum):
    """How a replica starts from nothing."""

    new_machine = "new_machine"
    warm_machine = "warm_machine"
    modal_snapshot = "modal_snapshot"
    modal = "modal"
    runpod = "runpod"
    replicate = "replicate"


# Numbers by which a shape read from a file travels in the link, in this order. Counts of
# parameters are in billions; attention is 0 for groups, 1 for the compressed cache, 2 for none.
SHAPE_PARTS = (
    "total_params_b", "active_params_b", "layers", "hidden", "heads", "kv_heads", "head_dim",
    "ffn", "vocab", "experts", "experts_per_token", "tied", "attention", "kv_layers",
    "window_layers", "window_tokens", "kv_width_total", "mla_cache_width", "state_layers",
    "state_bytes_per_layer", "quantized_bits",
)  # fmt: skip
LARGEST_B = 20_000


class ServingTerms(Terms):
    """The terms of the serving plan. None takes the usual value of the data tables."""

    model: str = term(
        "", "Model", "model", pattern=r"^[A-Za-z0-9 ._+-]{0,60}$",
        help="A published model by name; left open, a usual shape of the size that you told",
    )  # fmt: skip
    shape: tuple[Number, ...] = term(
        (), "Shape of your own model", "shape",
        help="Read from the config.json that lies beside the weights",
    )  # fmt: skip
    weights: Weights = term(Weights.bits16, "Weights kept in", "w", unit="bits")
    cache: CacheBits = term(CacheBits.bits16, "Cache kept in", "kv", unit="bits")
    engine: EngineKind = term(EngineKind.vllm, "Engine", "engine")
    prefix_hit_pct: float = term(
        0.0, "Prompt tokens found in the prefix cache", "hit", unit="%", ge=0, le=99,
        allow_inf_nan=False,
        help="Long prompts that begin alike (instructions, documents) are worked through once",
    )  # fmt: skip
    length_cv: float = term(
        0.8, "How unlike the lengths are", "cv", ge=0, le=4, allow_inf_nan=False,
        help="Standard deviation of prompt and answer lengths over their mean; chats have 0.6–1.2",
    )  # fmt: skip

    percentile: Percentile = term(
        Percentile.p95, "First token in time for", "of", unit="of 100 requests"
    )
    tpot_ms: float | None = term(
        None, "Time per further token, at most", "tpot", unit="ms", gt=0, le=60_000,
        allow_inf_nan=False,
        help="100 ms is ten tokens a second, faster than most people read",
    )  # fmt: skip

    day: DayShape = term(DayShape.even, "Requests over the day", "day")
    hourly: tuple[Number, ...] = term(
        (), "Rate of each hour", "hours", max_length=24,
        help="24 numbers of any unit, midnight first",
    )  # fmt: skip
    spare: int | None = term(
        None,
        "Machines that may fail at the peak",
        "spare",
        unit="machines",
        ge=0,
        le=100,
        help="Left open, what the worst failure asks for: one and a tenth of all where a lost "
        "machine or late answers are the worst, or where minutes without answers are too long",
    )
    max_load_pct: float = term(
        85.0, "Fullest that a replica is run", "full", unit="% of its most", ge=10, le=98,
        allow_inf_nan=False,
    )  # fmt: skip

    pay: Pay = term(
        Pay.recommended, "Machines are had", "pay",
        help="As the recommendation has them; on demand where it has no machines for this model",
    )  # fmt: skip
    keep: Keep = term(Keep.always_on, "Machines kept", "keep")
    option: str = term("", "Plan chosen", "plan", pattern=r"^[a-z0-9._+-]{0,80}$")
    start: Start = term(Start.new_machine, "A replica starts from", "start")
    idle_min: float = term(
        5.0, "Switched off after being idle for", "idle", unit="min", ge=0.1, le=1440,
        allow_inf_nan=False,
    )  # fmt: skip

    @model_validator(mode="after")
    def _together(self) -> ServingTerms:
        if self.hourly and len(self.hourly) != 24:
            raise ValueError(f"hourly: {len(self.hourly)} hours are no day, give 24")
        if self.hourly and sum(self.hourly) <= 0:
            raise ValueError("hourly: at least one hour must be above 0")
        if self.shape and len(self.shape) != len(SHAPE_PARTS):
            raise ValueError(f"shape: {len(SHAPE_PARTS)} numbers make a shape")
        if self.shape:
            part = dict(zip(SHAPE_PARTS, self.shape, strict=True))
            if not 0 < part["active_params_b"] <= part["total_params_b"] <= LARGEST_B:
                raise ValueError("shape: parameters must be above 0 and active at most the total")
            counts = ("layers", "hidden", "heads", "vocab")
            if any(part[name] < 1 or part[name] > 1e7 for name in counts):
                raise ValueError("shape: layers, width, heads and vocabulary are counts above 0")
        return self
