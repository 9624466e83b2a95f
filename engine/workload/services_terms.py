"""The terms of the page on services and pipelines: sizes, copies, and the stages of a pipeline.

Rate, peak, working set, data, consistency and the tolerated absence are the workload's own fields.
The stages are parallel lists, so that they travel in the link: number i of each is stage i.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import model_validator

from engine.workload.terms import Number, Terms, term

MOST_STAGES = 8
STAGE_LISTS = ("stage_hours", "stage_speedups", "stage_fractions_pct", "stage_gb")


class Shown(StrEnum):
    """Which architecture is drawn."""

    fitting = "fitting"
    client_server = "client_server"
    three_tier = "three_tier"
    n_tier = "n_tier"
    peer_to_peer = "peer_to_peer"
    replicated = "replicated"
    sharded = "sharded"
    log = "log"
    crawler = "crawler"
    workers = "workers"
    batching = "batching"
    hybrid = "hybrid"


class ServicesTerms(Terms):
    """What sizes a service beyond the workload. None takes the range of the tables."""

    item_kb: float | None = term(
        None, "Size of a request, event or page", "in", unit="kB", gt=0, le=1e6,
        allow_inf_nan=False, help="As it comes in over the network",
    )  # fmt: skip
    answer_kb: float | None = term(
        None, "Size of an answer", "out", unit="kB", ge=0, le=1e6, allow_inf_nan=False,
    )  # fmt: skip
    write_pct: float | None = term(
        None, "Share that writes", "writes", unit="%", ge=0, le=100, allow_inf_nan=False,
    )  # fmt: skip
    retention_days: float | None = term(
        None, "Kept for", "keep", unit="days", gt=0, le=36_500, allow_inf_nan=False,
        help="Counts where the job does not say how much data there is to store",
    )  # fmt: skip
    copies: int | None = term(
        None, "Copies of the data", "copies", ge=1, le=7,
        help="Left open, what the worst failure and the tolerated absence ask for",
    )  # fmt: skip
    disk_mb_per_s: float | None = term(
        None, "Rate of one machine's disk", "disk", unit="MB/s", gt=0, le=1e5,
        allow_inf_nan=False,
    )  # fmt: skip
    lag_s: float | None = term(
        None, "An asynchronous copy is behind by", "lag", unit="seconds", ge=0, le=1e6,
        allow_inf_nan=False,
    )  # fmt: skip
    parties: bool = term(
        False, "Run by parties without trust", "parties",
        help="No one party owns the whole, as in Bitcoin or IPFS",
    )  # fmt: skip
    shown: Shown = term(Shown.fitting, "Architecture drawn", "draw")

    stage_names: str = term(
        "", "Names of the stages", "names", max_length=200,
        pattern=r"^[\w .()&+\-]*(;[\w .()&+\-]*){0,7}$",
        help="Up to eight, with a semicolon between them",
    )  # fmt: skip
    stage_hours: tuple[Number, ...] = term(
        (), "Hours on one CPU server", "hours", unit="h a run", max_length=MOST_STAGES
    )
    stage_speedups: tuple[Number, ...] = term(
        (), "Speed-up of the parallel part on one GPU", "speed", unit="times",
        max_length=MOST_STAGES,
    )  # fmt: skip
    stage_fractions_pct: tuple[Number, ...] = term(
        (), "Parallelizable fraction", "par", unit="%", max_length=MOST_STAGES
    )
    stage_gb: tuple[Number, ...] = term(
        (), "Handed on to the next stage", "gb", unit="GB a run", max_length=MOST_STAGES
    )

    @model_validator(mode="after")
    def _stages_fit(self) -> ServicesTerms:
        lengths = {len(getattr(self, name)) for name in STAGE_LISTS}
        if len(lengths) > 1:
            raise ValueError(
                "stage_hours: the lists of the stages are of different lengths; each stage has "
                "hours, a speed-up, a fraction and the GB that it hands on"
            )
        for i, (speedup, fraction) in enumerate(
            zip(self.stage_speedups, self.stage_fractions_pct, strict=True), 1
        ):
            if speedup <= 0:
                raise ValueError(f"stage_speedups: stage {i} has a speed-up of 0; 1 is no gain")
            if fraction > 100:
                raise ValueError(f"stage_fractions_pct: stage {i} has {fraction:g}%; at most 100%")
        if any(h > 20_000 for h in self.stage_hours):
            raise ValueError("stage_hours: a stage takes more than 20,000 h; give hours of one run")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each stage, numbered where none was given."""
        given = [n.strip()[:40] for n in self.stage_names.split(";")] if self.stage_names else []
        return tuple(
            given[i] if i < len(given) and given[i] else f"Stage {i + 1}"
            for i in range(len(self.stage_hours))
        )
