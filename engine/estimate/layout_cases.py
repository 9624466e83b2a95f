"""The articles' two layouts of a 70B as worked cases: memory, use, bubble, speed, beside the best.

A row of `data/layout_cases.csv` holds the layout as the article gives it and what it leaves out as
the makers chose it. Knows the search's step times and the catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from engine.catalogue import Catalogue, load_catalogue
from engine.catalogue.models import Provenance, Row
from engine.catalogue.read import parse, rows
from engine.errors import DataError
from engine.estimate.plan import Task, TrainingPlan
from engine.estimate.search import best_plans, plan_result
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.training_hardware import HardwareChoice
from engine.estimate.training_job import Job, NothingFits, PlanResult

FILE = Path(__file__).resolve().parents[2] / "data" / "layout_cases.csv"
SECONDS_A_DAY = 86_400.0
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class LayoutCase(Row):
    """A layout of an article; what is split multiplies to `gpus`."""

    id: str
    article: str
    claims: str
    says: str
    settings: str
    model_b: Positive
    sku: str
    network: str
    links: Count
    gpus: Count
    task: Task
    tp: Count
    pp: Count
    zero_stage: Annotated[int, Field(ge=0, le=3)]
    micro_batch: Count
    accumulation: Count
    recompute: Literal["none", "selective", "full"]
    seq_len: Count
    tokens_b: Positive
    provenance: Provenance

    @property
    def batch(self) -> int:
        """Sequences of a step."""
        return self.micro_batch * self.accumulation * (self.gpus // (self.tp * self.pp))

    @property
    def bubble(self) -> float:
        """Share of a step in which a stage waits: (p − 1)/(m + p − 1), Narayanan et al. 2021."""
        return (self.pp - 1) / (self.accumulation + self.pp - 1)


@dataclass(frozen=True, slots=True)
class WorkedLayout:
    """A layout beside the fastest plan of the same job on the same GPUs."""

    case: LayoutCase
    here: PlanResult
    best: PlanResult

    @property
    def tokens_a_day(self) -> float:
        """At the likely step time, nothing lost."""
        return self.here.tokens_per_s.likely * SECONDS_A_DAY


@lru_cache(maxsize=2)
def layout_cases(file: Path = FILE) -> tuple[LayoutCase, ...]:
    """The layouts in the order of the table.

    Raises
    ------
    DataError : a cell that can't be used, an id that stands twice
    """
    found: dict[str, LayoutCase] = {}
    for line, cells in rows(file):
        case = parse(LayoutCase, cells, file, line, date.today())
        if case.id in found:
            raise DataError(f"{case.id} stands twice", file=file, line=line, column="id")
        found[case.id] = case
    return tuple(found.values())


@lru_cache(maxsize=1)
def worked_layouts() -> tuple[WorkedLayout, ...]:
    """Every layout, computed with the catalogue's hardware."""
    catalogue = load_catalogue()
    return tuple(worked_layout(case, catalogue) for case in layout_cases())


def worked_layout(case: LayoutCase, catalogue: Catalogue) -> WorkedLayout:
    """One layout, and what the search finds on the same GPUs for the same batch.

    Raises
    ------
    DataError : when the layout does not fit its GPUs
    """
    choice = HardwareChoice(
        catalogue.accelerators[case.sku], catalogue.networks[case.network],
        nics_per_node=case.links,
    )  # fmt: skip
    plan = TrainingPlan(
        gpus=case.gpus, tp=case.tp, pp=case.pp, zero_stage=case.zero_stage,
        micro_batch=case.micro_batch, global_batch_seqs=case.batch, seq_len=case.seq_len,
        recompute=case.recompute, task=case.task,
        stack="fsdp" if case.zero_stage == 3 else "megatron",
    )  # fmt: skip
    job = Job(
        shape_from_size(case.model_b), case.tokens_b * 1e9, (choice,), seq_len=case.seq_len,
        task=case.task, gpus=(case.gpus, case.gpus), batch_seqs=case.batch,
    )  # fmt: skip
    here, found = plan_result(job, plan), best_plans(job, "time", 1)
    if here is None or isinstance(found, NothingFits):
        raise DataError(f"{case.id} does not fit its GPUs", file=FILE, line=1, column="gpus",
                        right="settings that fit")  # fmt: skip
    return WorkedLayout(case, here, found[0])
