"""The terms of the reliability page: how the run is guarded, and what is known of its failures."""

from __future__ import annotations

from enum import StrEnum

from engine.workload.terms import Terms, term


class Spot(StrEnum):
    """Whether the run is planned on machines that may be taken back."""

    plan = "plan"
    on = "on"
    off = "off"


class ReliabilityTerms(Terms):
    """The terms of a run's reliability. None takes the plan's value, or that of the tables."""

    # --- the run
    devices: int | None = term(
        None, "GPUs (or servers) of the run", "n", ge=1, le=1_000_000,
        help="Left open, those of the recommended plan",
    )  # fmt: skip
    run_days: float | None = term(
        None, "Useful work of the run", "days", unit="days", gt=0, le=3650, allow_inf_nan=False,
        help="Days that the run would take if nothing failed; left open, those of the plan",
    )  # fmt: skip

    # --- how often it stops
    like: str = term(
        "", "Machines fail like those of", "like", pattern=r"^[a-z0-9-]{0,40}$",
        help="A published fleet; left open, the range over all of them",
    )  # fmt: skip
    failures_per_1000_node_days: float | None = term(
        None, "Failures that you have seen", "rate", unit="per 1,000 machine-days", gt=0, le=1000,
        allow_inf_nan=False, help="Your own figure counts before that of any published fleet",
    )  # fmt: skip

    # --- checkpoints
    stall_s: float | None = term(
        None, "Stall of a checkpoint", "stall", unit="s", ge=0, le=86_400, allow_inf_nan=False,
        help="How long the GPUs stand still for one checkpoint, not how long writing takes; 0 "
        "where saving never stops them",
    )  # fmt: skip
    restart_min: float | None = term(
        None, "From a failure to useful work", "back", unit="min", ge=0, le=10_080,
        allow_inf_nan=False, help="Detection, a new machine, loading the checkpoint, first step",
    )  # fmt: skip
    interval_min: float | None = term(
        None, "Minutes between checkpoints", "every", unit="min", gt=0, le=43_200,
        allow_inf_nan=False, help="Left open, the interval that loses least",
    )  # fmt: skip

    # --- spare machines
    spares: int | None = term(
        None, "Hot spare machines", "spare", unit="machines", ge=0, le=1000,
        help="Paid, idle, and ready to take over; left open, as many as pay for themselves",
    )  # fmt: skip
    repair_h: float | None = term(
        None, "Until a broken machine is replaced", "repair", unit="h", ge=0, le=8760,
        allow_inf_nan=False,
    )  # fmt: skip

    # --- slow machines
    one_slower_pct: float = term(
        0.0, "One machine is slower by", "slow", unit="%", ge=0, le=10_000, allow_inf_nan=False,
        help="How much longer a step takes on your slowest machine",
    )  # fmt: skip

    # --- silent corruption
    checks: bool = term(
        False, "Regular validation", "watch",
        help="Against silent corruption: the run is validated and its machines compared",
    )  # fmt: skip
    check_every_h: float | None = term(
        None, "Hours between validations", "look", unit="h", gt=0, le=8760, allow_inf_nan=False,
        help="Left open, the article's six hours",
    )  # fmt: skip
    check_pct: float | None = term(
        None, "Time that validation takes", "cost", unit="%", ge=0, le=100, allow_inf_nan=False,
        help="Share of the time; left open, 7.2 minutes a time: the article's 2% at six hours",
    )  # fmt: skip
    sigmas: float = term(
        3.0, "A machine deviates from", "sigma", unit="standard deviations", ge=1, le=10,
        allow_inf_nan=False,
    )  # fmt: skip

    # --- spot
    spot: Spot = term(Spot.plan, "Spot machines", "spot")
    reclaims_per_day: float | None = term(
        None, "Interruptions", "taken", unit="per machine and day", gt=0, le=100,
        allow_inf_nan=False,
    )  # fmt: skip
