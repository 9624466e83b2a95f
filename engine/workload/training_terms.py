"""The terms of the training plan: the model's shape, the goal, the hardware, own measurements."""

from __future__ import annotations

from enum import StrEnum

from pydantic import model_validator

from engine.workload.terms import Terms, term

ID = r"^[A-Za-z0-9 ._+/-]{0,80}$"
# A shape as text: a format's letter, then base64 of its compressed values.
SHAPE = r"^(|z[A-Za-z0-9_-]{8,1600})$"


class TrainTask(StrEnum):
    """What is trained; by the job takes the kind of work that was answered."""

    by_job = "by_job"
    pretrain = "pretrain"
    finetune = "finetune"
    lora = "lora"
    qlora = "qlora"


class TrainPrecision(StrEnum):
    """The number format of the matrix products."""

    bf16 = "bf16"
    fp8 = "fp8"
    fp32 = "fp32"


class Goal(StrEnum):
    """By what plans are ranked."""

    deadline = "deadline"
    cost = "cost"
    time = "time"


class TrainSoftware(StrEnum):
    """Whose training code runs."""

    recipes = "recipes"
    own = "own"
    pytorch = "pytorch"
    jax = "jax"
    legacy = "legacy"


class HirePlan(StrEnum):
    """The terms of the price of a GPU-hour."""

    on_demand = "on_demand"
    spot = "spot"
    dedicated = "dedicated"
    reserved_1y = "reserved_1y"
    reserved_3y = "reserved_3y"


class TrainingTerms(Terms):
    """The terms of the training plan. None takes the usual value."""

    # --- the model and the run
    shape: str = term("", "Shape of the model", "net", pattern=SHAPE)
    task: TrainTask = term(TrainTask.by_job, "What is trained", "task")
    seq_len: int = term(4096, "Length of a sequence", "seq", unit="tokens", ge=128, le=1_048_576)
    batch_seqs: int | None = term(
        None, "Sequences of a step", "batch", ge=1, le=1_000_000,
        help="The global batch; left open, a usual one for the fleet",
    )  # fmt: skip
    precision: TrainPrecision = term(TrainPrecision.bf16, "Precision", "prec")
    lora_rank: int = term(16, "Rank of the adapters", "rank", ge=1, le=4096)

    # --- the goal
    goal: Goal = term(Goal.deadline, "Rank plans by", "goal")
    budget_usd: float | None = term(
        None, "Budget of the whole run", "spend", unit="USD", gt=0, le=1e12, allow_inf_nan=False
    )
    sure_pct: float = term(
        80.0, "How sure the deadline must be", "sure", unit="%", ge=1, le=99, allow_inf_nan=False
    )

    # --- the hardware
    gpu: str = term("", "GPU", "gpu", pattern=ID)
    mixed_with: str = term("", "Mixed with", "mix", pattern=ID)
    network: str = term("", "Network between machines", "link", pattern=ID)
    hire: HirePlan = term(HirePlan.on_demand, "Price of a GPU-hour", "hire")
    least_gpus: int = term(1, "GPUs at least", "from", ge=1, le=16_384)
    most_gpus: int = term(2048, "GPUs at most", "upto", ge=1, le=16_384)
    slowest_pct: float = term(
        0.0, "Slowest GPU takes longer by", "slow", unit="%", ge=0, le=200, allow_inf_nan=False
    )
    link_pct: float = term(
        100.0, "Slowest link has of its rate", "rate", unit="%", gt=0, le=100, allow_inf_nan=False,
        help="A machine on a slower port, a bad cable, a fabric shared with others: it holds up "
        "every exchange. One machine at 25 Gb/s among 400 Gb/s: 6",
    )  # fmt: skip

    # --- the software and what is lost
    software: TrainSoftware = term(TrainSoftware.recipes, "Training code", "code")
    software_year: float | None = term(
        None, "Release of the code", "year", unit="year", ge=2020, le=2030, allow_inf_nan=False
    )
    goodput_pct: float | None = term(
        None, "Useful share of the hours", "good", unit="%", gt=0, le=100, allow_inf_nan=False
    )
    experiments: float | None = term(
        None, "All GPU-hours over those of the final run", "tries", unit="times", ge=1, le=100,
        allow_inf_nan=False,
    )  # fmt: skip

    # --- the user's own measurement
    measured_s: float | None = term(
        None, "Seconds that the steps took", "took", unit="s", gt=0, le=1e9, allow_inf_nan=False
    )
    measured_steps: int = term(10, "Steps timed", "steps", ge=1, le=1_000_000)
    measured_gpus: int | None = term(None, "GPUs that ran them", "ran", ge=1, le=16_384)
    measured_batch: int | None = term(
        None, "Sequences of each of those steps", "ranb", ge=1, le=1_000_000
    )

    # --- the launch kit
    model_id: str = term("", "Model id or folder", "model", max_length=120)
    dataset: str = term("/shared/data", "Data set", "data", max_length=200)
    checkpoint_dir: str = term("/shared/checkpoints", "Checkpoints", "saves", max_length=200)
    partition: str = term("", "Partition of the queue", "part", max_length=60)

    @model_validator(mode="after")
    def _together(self) -> TrainingTerms:
        if self.least_gpus > self.most_gpus:
            raise ValueError(
                f"least_gpus: {self.least_gpus:,} are more than the {self.most_gpus:,} at most"
            )
        return self
