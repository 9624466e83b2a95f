"""The workload: everything that is asked, in one frozen, flat model with units and bounds.

A field that nobody answered holds its default (`None` or `unknown`): the engine then takes the
prior of the kind and widens the result. The model knows nothing of hardware or prices.

Each field says in its metadata for which kinds it can change the answer, so that a form asks
nothing else; `fields_for(kind)` lists them in the order in which they are asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)

from engine.errors import InputError
from engine.workload.answers import (
    RESOURCES,
    Bottleneck,
    Certainty,
    Consistency,
    Current,
    Downtime,
    FailureMode,
    Kind,
    Location,
    ModelClass,
    Precision,
    Rewrite,
    Symptom,
    Team,
    UtilizationBy,
)

HOURS_PER_MONTH = 730.0

K = Kind
LLM_TRAINING = frozenset({K.llm_pretraining, K.llm_finetuning, K.lora})
INFERENCE = frozenset({K.batch_inference, K.online_inference})
SERVICES = frozenset({K.online_inference, K.streaming, K.database, K.web, K.search, K.recsys})
BATCH_JOBS = frozenset({K.dl_training, K.etl, K.simulation, K.rendering, K.rl, K.other})
EVERY = frozenset(Kind)
MODEL_KINDS = LLM_TRAINING | INFERENCE | {K.pipeline}
RATED = SERVICES | {K.pipeline}

Group = Literal["job", "size", "load", "today", "constraints", "money", "team", "answer", "weights"]


def fact(
    default: Any,
    label: str,
    *,
    unit: str = "",
    kinds: frozenset[Kind] = EVERY,
    group: Group = "job",
    help: str = "",
    **bounds: Any,
) -> Any:
    """A field with what a form and a table need to know of it."""
    kinds_json: list[JsonValue] = [*sorted(k.value for k in kinds)]
    return Field(
        default,
        title=label,
        description=help or label,
        json_schema_extra={
            "unit": unit,
            "group": group,
            "kinds": kinds_json,
        },
        **bounds,
    )


SMALLEST = 1e-6  # of a number above 0, in its field's unit

Share = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Quote = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9-]{2,40}:(on_demand|spot|dedicated|reserved_1y|reserved_3y)"
        r":\d{1,6}(\.\d{1,6})?$"
    ),
]
Timing = tuple[
    Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)],
    Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)],
]


class Workload(BaseModel):
    """One job and its constraints; frozen, comparable and hashable."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    # --- what it is
    name: str = fact("", "Name of the job", max_length=80)
    kind: Kind = fact(Kind.other, "Kind of work")

    # --- question 1: the largest bottleneck
    bottleneck: Bottleneck = fact(Bottleneck.unknown, "Largest bottleneck", group="answer")
    bottleneck_sure: Certainty = fact(
        Certainty.roughly, "How sure of the bottleneck", group="answer"
    )
    time_shares: tuple[Share, ...] = fact(
        (),
        "Measured shares of time",
        unit="%",
        group="answer",
        help="Percent of the time spent on each resource, in the order "
        + ", ".join(r.value for r in RESOURCES),
    )
    symptoms: tuple[Symptom, ...] = fact((), "Symptoms seen", group="answer", max_length=10)

    # --- question 2: the worst failure
    failure_mode: FailureMode = fact(FailureMode.unknown, "Worst failure", group="answer")
    failure_mode_sure: Certainty = fact(
        Certainty.roughly, "How sure of the failure", group="answer"
    )
    downtime: Downtime = fact(
        Downtime.unknown, "How long may it be away", kinds=RATED | {K.other}, group="answer"
    )

    # --- question 3: the parallelizable fraction
    parallel_fraction: float | None = fact(
        None,
        "Parallelizable fraction",
        group="answer",
        help="Share of the single-core time that can run in parallel, 0 to 1",
        ge=0,
        le=1,
        allow_inf_nan=False,
    )
    parallel_fraction_sure: Certainty = fact(
        Certainty.roughly, "How sure of the fraction", group="answer"
    )
    timings: tuple[Timing, ...] = fact(
        (),
        "Timings at different sizes",
        unit="machines, hours",
        group="answer",
        help="Pairs of machines (or cores) and hours taken for the same work",
        max_length=8,
    )
    gpu_speedup: float | None = fact(
        None,
        "Speed-up of the parallel part on one GPU",
        unit="times one 96-vCPU server",
        group="answer",
        gt=0,
        le=100_000,
        allow_inf_nan=False,
    )
    gpu_speedup_sure: Certainty = fact(Certainty.guess, "How sure of the speed-up", group="answer")

    # --- question 4: utilization
    utilization_by: UtilizationBy = fact(UtilizationBy.hours, "Hours given as", group="answer")
    useful_hours_per_month: float | None = fact(
        None, "Useful hours", unit="h/month", group="answer", ge=0, le=744, allow_inf_nan=False
    )
    useful_hours_sure: Certainty = fact(Certainty.roughly, "How sure of the hours", group="answer")
    runs_per_month: float | None = fact(
        None, "Runs", unit="runs/month", group="answer", ge=0, le=1_000_000, allow_inf_nan=False
    )
    hours_per_run: float | None = fact(
        None,
        "Hours a run takes today",
        unit="h",
        group="answer",
        ge=0,
        le=20_000,
        allow_inf_nan=False,
    )
    hours_per_day: float | None = fact(
        None, "Hours a day", unit="h/day", group="answer", ge=0, le=24, allow_inf_nan=False
    )
    days_per_week: float | None = fact(
        None, "Days a week", unit="days/week", group="answer", ge=0, le=7, allow_inf_nan=False
    )
    monthly_variation: float | None = fact(
        None,
        "Variation from month to month",
        group="answer",
        help="Typical deviation of a month from the mean, as a share (0.3 is 30%)",
        ge=0,
        le=3,
        allow_inf_nan=False,
    )

    # --- size of the job
    model_params_b: float | None = fact(
        None,
        "Model size",
        unit="billion parameters",
        kinds=MODEL_KINDS,
        group="size",
        gt=0,
        le=20_000,
        allow_inf_nan=False,
    )
    active_params_b: float | None = fact(
        None,
        "Active parameters (mixture of experts)",
        unit="billion parameters",
        kinds=MODEL_KINDS,
        group="size",
        gt=0,
        le=20_000,
        allow_inf_nan=False,
    )
    train_tokens_b: float | None = fact(
        None,
        "Tokens a run trains on",
        unit="billion tokens",
        kinds=LLM_TRAINING | {K.pipeline},
        group="size",
        gt=0,
        le=1_000_000,
        allow_inf_nan=False,
    )
    model_class: ModelClass = fact(
        ModelClass.llm, "Kind of model", kinds=INFERENCE | {K.pipeline}, group="size"
    )
    tokens_in: float | None = fact(
        None,
        "Tokens read per item",
        unit="tokens",
        kinds=INFERENCE | {K.pipeline},
        group="size",
        gt=0,
        le=10_000_000,
        allow_inf_nan=False,
    )
    tokens_out: float | None = fact(
        None,
        "Tokens written per item",
        unit="tokens",
        kinds=INFERENCE | {K.pipeline},
        group="size",
        gt=0,
        le=1_000_000,
        allow_inf_nan=False,
    )
    items_per_run: float | None = fact(
        None,
        "Items a run works through",
        unit="items",
        kinds=frozenset({K.batch_inference}),
        group="size",
        gt=0,
        le=1e15,
        allow_inf_nan=False,
    )
    working_set_gb: float | None = fact(
        None,
        "Memory that must be at hand",
        unit="GB",
        kinds=SERVICES | BATCH_JOBS | {K.pipeline},
        group="size",
        ge=0,
        le=1e9,
        allow_inf_nan=False,
    )
    working_set_shardable: bool = fact(
        True,
        "The working set can be split over devices",
        kinds=SERVICES | BATCH_JOBS | {K.pipeline},
        group="size",
    )
    data_gb: float | None = fact(
        None,
        "Data to store",
        unit="GB",
        kinds=SERVICES | {K.etl, K.pipeline},
        group="size",
        ge=0,
        le=1e9,
        allow_inf_nan=False,
    )
    precision: Precision = fact(
        Precision.unknown,
        "Arithmetic needed",
        kinds=frozenset({K.simulation, K.rendering, K.rl, K.other}),
        group="size",
    )

    # --- load of a service
    rate_per_s: float | None = fact(
        None,
        "Requests or events, mean",
        unit="1/s",
        kinds=RATED,
        group="load",
        ge=0,
        le=1e9,
        allow_inf_nan=False,
    )
    peak_factor: float | None = fact(
        None,
        "Peak over mean",
        unit="times",
        kinds=RATED,
        group="load",
        ge=1,
        le=1000,
        allow_inf_nan=False,
    )
    services: int = fact(
        1,
        "Separate services",
        kinds=frozenset({K.web}),
        group="load",
        ge=1,
        le=10_000,
    )
    cpu_ms_per_item: float | None = fact(
        None,
        "CPU time per item besides the model",
        unit="core-ms",
        kinds=RATED,
        group="load",
        help="Core-milliseconds for parsing, features, rules, queries: all that is no model",
        ge=0,
        le=1e7,
        allow_inf_nan=False,
    )
    latency_ms: float | None = fact(
        None,
        "Latest useful answer (95 of 100)",
        unit="ms",
        kinds=RATED,
        group="load",
        gt=0,
        le=3.6e6,
        allow_inf_nan=False,
    )
    cpu_latency_ms: float | None = fact(
        None,
        "Latency measured on CPUs today",
        unit="ms",
        kinds=frozenset({K.online_inference, K.recsys}),
        group="load",
        gt=0,
        le=3.6e6,
        allow_inf_nan=False,
    )

    # --- what runs today
    current: Current = fact(Current.none, "Runs today on", group="today")
    current_units: float | None = fact(
        None,
        "Machines (or GPUs) today",
        unit="servers or GPUs",
        group="today",
        gt=0,
        le=1_000_000,
        allow_inf_nan=False,
    )
    current_usd_per_month: float | None = fact(
        None,
        "Cost today",
        unit="USD/month",
        group="today",
        ge=0,
        le=1e9,
        allow_inf_nan=False,
    )

    # --- constraints
    location: Location = fact(
        Location.anywhere, "Where data and machines may be", group="constraints"
    )
    rewrite: Rewrite = fact(
        Rewrite.unknown,
        "Can the code move to GPUs",
        kinds=EVERY - LLM_TRAINING - {K.batch_inference},
        group="constraints",
    )
    consistency: Consistency = fact(
        Consistency.unknown,
        "What readers must see",
        kinds=frozenset({K.database, K.web, K.streaming, K.search, K.recsys, K.other}),
        group="constraints",
    )
    deadline_days: float | None = fact(
        None,
        "A run must be done within",
        unit="days",
        kinds=EVERY - SERVICES,
        group="constraints",
        gt=0,
        le=3650,
        allow_inf_nan=False,
    )

    # --- money and team
    quotes: tuple[Quote, ...] = fact(
        (),
        "Your own quotes",
        unit="hardware:terms:USD per unit and hour",
        group="money",
        help="A price you were offered, as hardware:terms:USD per GPU (or server) and hour, for "
        "example b200-sxm-180gb:dedicated:1.64 or cpu-96-384:reserved_1y:2.10",
        max_length=4,
    )
    horizon_months: int = fact(
        12, "How long will this go on", unit="months", group="money", ge=1, le=60
    )
    budget_usd_per_month: float | None = fact(
        None, "Budget", unit="USD/month", group="money", gt=0, le=1e9, allow_inf_nan=False
    )
    team: Team = fact(Team.unknown, "The team has run before", group="team")

    # --- weights of the criteria, relative; the user's to move
    weight_cost: int = fact(40, "Cost of the work", group="weights", ge=0, le=100)
    weight_time: int = fact(15, "Time to result", group="weights", ge=0, le=100)
    weight_fit: int = fact(10, "Fit to the bottleneck", group="weights", ge=0, le=100)
    weight_resilience: int = fact(
        15, "Resilience to the worst failure", group="weights", ge=0, le=100
    )
    weight_effort: int = fact(12, "Effort and risk", group="weights", ge=0, le=100)
    weight_flexibility: int = fact(8, "Flexibility", group="weights", ge=0, le=100)

    # --- rules on single fields and across fields
    @field_validator("time_shares")
    @classmethod
    def _six_shares(cls, shares: tuple[float, ...]) -> tuple[float, ...]:
        if shares and len(shares) != len(RESOURCES):
            raise ValueError(
                f"give {len(RESOURCES)} shares, one for each of "
                + ", ".join(r.value for r in RESOURCES)
            )
        if shares and sum(shares) <= 0:
            raise ValueError("at least one share must be above 0")
        if sum(shares) > 100.5:
            raise ValueError(f"the shares add up to {sum(shares):g}%, more than 100%")
        return shares

    @field_validator("*")
    @classmethod
    def _no_speck(cls, value: Any) -> Any:
        # Floats reach down to 5e-324, where a rate or its inverse is no number any more.
        flat = value if isinstance(value, tuple) else (value,)
        for number in (v for item in flat for v in (item if isinstance(item, tuple) else (item,))):
            if isinstance(number, float) and 0 < number < SMALLEST:
                raise ValueError(f"{number:g} is too small to be meant; at least {SMALLEST:f}")
        return value

    @field_validator("symptoms")
    @classmethod
    def _each_once(cls, symptoms: tuple[Symptom, ...]) -> tuple[Symptom, ...]:
        return tuple(dict.fromkeys(symptoms))

    @field_validator("quotes")
    @classmethod
    def _no_gift(cls, quotes: tuple[str, ...]) -> tuple[str, ...]:
        for quote in quotes:
            if float(quote.rsplit(":", 1)[1]) <= 0:
                raise ValueError(f"{quote}: a price of 0 is no offer")
        return quotes

    @model_validator(mode="after")
    def _together(self) -> Workload:
        total, active = self.model_params_b, self.active_params_b
        if total is not None and active is not None and active > total:
            raise ValueError(
                f"active_params_b: {active:g} billion active parameters are more than the "
                f"{total:g} billion of the whole model; active is the smaller one"
            )
        hours = self.stated_hours_per_month
        if hours is not None and hours > 744 and self.current_units is None:
            raise ValueError(
                f"hours_per_run: {self.runs_per_month:g} runs of {self.hours_per_run:g} h are "
                f"{hours:,.0f} h a month, more than the 744 h of the longest month; say on how "
                "many machines they run today (current_units), or give fewer runs"
            )
        if not any(self.weights):
            raise ValueError("weight_cost: at least one weight must be above 0")
        return self

    # --- views
    @property
    def weights(self) -> tuple[int, int, int, int, int, int]:
        """The six weights in the order cost, time, fit, resilience, effort, flexibility."""
        return (
            self.weight_cost,
            self.weight_time,
            self.weight_fit,
            self.weight_resilience,
            self.weight_effort,
            self.weight_flexibility,
        )

    @property
    def stated_hours_per_month(self) -> float | None:
        """Useful hours a month as stated in whichever form, or None when it is not known [h]."""
        if self.utilization_by is UtilizationBy.runs:
            if self.runs_per_month is None or self.hours_per_run is None:
                return None
            return self.runs_per_month * self.hours_per_run
        if self.utilization_by is UtilizationBy.schedule:
            if self.hours_per_day is None or self.days_per_week is None:
                return None
            return self.hours_per_day * self.days_per_week * HOURS_PER_MONTH / (24 * 7)
        return self.useful_hours_per_month

    @property
    def answered(self) -> dict[str, bool]:
        """Which of the four questions have an answer."""
        return {
            "bottleneck": bool(
                self.time_shares or self.symptoms or self.bottleneck is not Bottleneck.unknown
            ),
            "failure_mode": self.failure_mode is not FailureMode.unknown,
            "parallel_fraction": self.parallel_fraction is not None or len(self.timings) >= 2,
            "utilization": self.stated_hours_per_month is not None,
        }


DEFAULT = Workload()


def field_unit(name: str) -> str:
    """Unit of a field of `Workload`, empty for counts and choices."""
    extra = Workload.model_fields[name].json_schema_extra
    return str(extra["unit"]) if isinstance(extra, dict) else ""


def field_group(name: str) -> str:
    """Group of a field of `Workload`: where a form shows it."""
    extra = Workload.model_fields[name].json_schema_extra
    return str(extra["group"]) if isinstance(extra, dict) else ""


def applies(name: str, kind: Kind) -> bool:
    """Whether a field can change the answer for this kind of work."""
    extra = Workload.model_fields[name].json_schema_extra
    kinds = extra["kinds"] if isinstance(extra, dict) else []
    return isinstance(kinds, list) and kind.value in kinds


def fields_for(kind: Kind, group: str | None = None) -> list[str]:
    """Names of the fields that matter for a kind, in the order in which they are asked."""
    return [
        name
        for name in Workload.model_fields
        if applies(name, kind) and (group is None or field_group(name) == group)
    ]


def parse(values: dict[str, Any]) -> Workload:
    """A workload from plain values; the first fault is raised as an `InputError` that names it.

    Raises
    ------
    InputError : with the field's name, what was wrong and what would be right
    """
    try:
        return Workload.model_validate(values)
    except ValidationError as error:
        raise explain(error) from None


def said(first: Mapping[str, Any]) -> str:
    """One of pydantic's complaints without what only programmers read."""
    if first["type"] == "string_pattern_mismatch":
        return "it has not the form that is asked"
    return str(first["msg"]).removeprefix("Value error, ")


def explain(error: ValidationError) -> InputError:
    """Turn pydantic's first complaint into words that a founder understands."""
    first = error.errors()[0]
    where = str(first["loc"][0]) if first["loc"] else ""
    message = said(first)
    if not where and ": " in message:
        where, message = message.split(": ", 1)
    given = first.get("input")
    shown = "" if isinstance(given, Workload | dict) else f"{str(given)[:60]!r} "
    if first["type"] == "extra_forbidden":
        return InputError(
            "there is no such field", where=where, right="see `schema` for all fields"
        )
    title = Workload.model_fields[where].title if where in Workload.model_fields else where
    unit = field_unit(where) if where in Workload.model_fields else ""
    right = message if shown else ""
    return InputError(
        f"{shown}can't be used for “{title}”" if shown else message,
        where=where,
        right=right + (f"; in {unit}" if unit and right else ""),
    )
