"""Published speed-ups of GPUs over CPUs: what was compared with what, and what that is worth here.

A published figure compares one piece of software on one GPU with anything from a single core to a
rack. "Times one core" is the commonest false evidence for GPUs, so every figure that says how many
cores it was taken against is brought to one reference GPU against one reference server of 48
cores. Figures that don't say it are shown and don't count. Knows no prices.

Cores count in proportion: memory bandwidth a core has stayed within 3 to 7 GB/s from 2014 to 2024
(cpu_servers.csv). A figure of another GPU is taken to grow with memory bandwidth between not at
all and in proportion; the lattice-Boltzmann rows, taken on six pairs of GPU and server, fall
within 20 to 36 in proportion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from engine.catalogue.models import Provenance, Row
from engine.catalogue.read import parse, rows
from engine.errors import DataError
from engine.workload.answers import Kind
from engine.workload.jobs_terms import JobField

DATA = Path(__file__).resolve().parents[2] / "data"
# Physical cores of the reference CPU server (96 vCPU), to which speed-ups refer.
REFERENCE_CORES = 48
# Memory bandwidth of the reference GPU, an H100 SXM (accelerators.csv, h100-sxm-80gb).
REFERENCE_GPU_GB_PER_S = 3350.0
# A group with fewer measured figures that count than this does not speak for itself.
ENOUGH = 2

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Group = Literal[
    "molecular_dynamics", "quantum_chemistry", "cfd", "weather", "particle_transport", "seismic",
    "genomics", "imaging", "finance", "linear_algebra", "trees", "data", "graph", "optimization",
    "rl", "rendering", "video", "search", "inference",
]  # fmt: skip


class Speedup(Row):
    """One published figure.

    low, likely, high : times as fast, the GPUs named against the CPUs named
    cpu_cores : physical cores on the CPU side, where the source says so
    gpu_gb_per_s : memory bandwidth of one of the GPUs, where it is known which
    bound : "up_to" where the source gives its best case, "at_least" where it gives a lower bound
    scope : "application" for a whole run, "kernel" for the accelerated part alone
    """

    id: str
    group: Group
    application: str
    case: str
    cpu: str
    cpu_cores: Positive | None = None
    gpu: str
    gpus: Positive | None = None
    gpu_gb_per_s: Positive | None = None
    low: Positive
    likely: Positive
    high: Positive
    bound: Literal["measured", "up_to", "at_least"]
    scope: Literal["application", "kernel"]
    precision: Literal["low", "integer", "fp32", "mixed", "fp64"]
    licence: str
    notes: str = ""
    provenance: Provenance

    @property
    def one_core(self) -> bool:
        """Whether the CPU side was a single core."""
        return self.cpu_cores == 1

    @property
    def counts(self) -> bool:
        """Whether the source says against how many cores, and on how many GPUs."""
        return self.cpu_cores is not None and self.gpus is not None

    @property
    def per_server(self) -> tuple[float, float, float] | None:
        """One reference GPU against one reference server; None where it can't be told.

        The GPUs share the speed-up, and a CPU side of fewer cores than the reference server makes
        it smaller in proportion: a figure of 20 against 12 cores is one of 5 against 48.
        """
        if self.cpu_cores is None or self.gpus is None:
            return None
        cores = self.cpu_cores / REFERENCE_CORES / self.gpus
        grows = REFERENCE_GPU_GB_PER_S / (self.gpu_gb_per_s or REFERENCE_GPU_GB_PER_S)
        low, high = min(1.0, grows), max(1.0, grows)
        return self.low * cores * low, self.likely * cores * grows**0.5, self.high * cores * high


@dataclass(frozen=True, slots=True)
class Pooled:
    """The range over figures: one reference GPU against one server; `n` of `of` counted."""

    low: float
    likely: float
    high: float
    n: int
    of: int


@cache
def speedups(file: Path = DATA / "speedups.csv") -> Mapping[str, Speedup]:
    """Published speed-ups by id, in the order of the table.

    Raises
    ------
    DataError : a row without source, or whose range is not in order
    """
    found: dict[str, Speedup] = {}
    for line, cells in rows(file):
        row = parse(Speedup, cells, file, line, date.today())
        if not row.low <= row.likely <= row.high:
            raise DataError(
                f"{row.low:g}, {row.likely:g}, {row.high:g} is not in order", file=file, line=line,
                column="likely", right="low ≤ likely ≤ high",
            )  # fmt: skip
        if row.id in found:
            raise DataError(f"{row.id} stands twice", file=file, line=line, column="id")
        found[row.id] = row
    return found


def of_groups(groups: Iterable[str]) -> tuple[Speedup, ...]:
    """The figures of some groups, those that count first, then by what they are worth."""
    wanted = set(groups)
    chosen = [row for row in speedups().values() if row.group in wanted]
    return tuple(
        sorted(chosen, key=lambda r: (r.per_server is None, -(r.per_server or (0, r.likely))[1]))
    )


def pooled(found: Iterable[Speedup]) -> Pooled | None:
    """The range that figures leave; None where too few say what they were compared with.

    Whole applications count where there are enough of them, else kernels too. Likely is the
    geometric mean of the likely values; low and high are the 10th and 90th percentile of the
    lower and upper ends. A source's best case ("up to") can only raise the upper end.
    """
    all_rows = tuple(found)
    usable = [r for r in all_rows if r.counts]
    whole = [r for r in usable if r.scope == "application"]
    counted = whole if len(_measured(whole)) >= ENOUGH else usable
    central = _measured(counted)
    if len(central) < ENOUGH:
        return None
    lows, likely, _ = zip(*(r.per_server for r in central if r.per_server), strict=True)
    highs = [r.per_server[2] for r in counted if r.per_server]
    middle = float(np.exp(np.mean(np.log(likely))))
    low, high = float(np.quantile(lows, 0.1)), float(np.quantile(highs, 0.9))
    return Pooled(min(low, middle), middle, max(high, middle), len(counted), len(all_rows))


def _measured(found: Iterable[Speedup]) -> list[Speedup]:
    """Without best cases."""
    return [r for r in found if r.bound != "up_to"]


# Fields of work that a kind stands for, where none was named.
FIELDS_OF_KIND: dict[Kind, tuple[JobField, ...]] = {
    Kind.simulation: (
        JobField.molecular_dynamics, JobField.quantum_chemistry, JobField.cfd, JobField.weather,
        JobField.particle_transport, JobField.seismic,
    ),
    Kind.rendering: (JobField.rendering, JobField.video),
    Kind.etl: (JobField.data,),
    Kind.rl: (JobField.rl,),
}  # fmt: skip


@cache
def pooled_for(kind: Kind, field: JobField = JobField.auto) -> Pooled | None:
    """The published range of a field of work, or of those that a kind stands for.

    None where the kind stands for no field, or too few figures say what they were compared with.
    """
    fields = (field,) if field is not JobField.auto else FIELDS_OF_KIND.get(kind, ())
    return pooled(of_groups([f.value for f in fields])) if fields else None
