"""The articles' measurements of networks as worked cases: computed again, or set aside.

They leave out most of what decides them (batch, adapters of a machine, tokens). A row of
`data/network_cases.csv` holds what was said and the plausible settings under which it is computed;
it is reproduced where what was said lies in the computed interval. Knows the search's step times
and the catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from engine.catalogue import Catalogue, Network, load_catalogue
from engine.catalogue.models import Provenance, Row
from engine.catalogue.read import parse, rows
from engine.errors import DataError
from engine.estimate.plan import Task, TrainingPlan
from engine.estimate.search import plan_result
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.training_hardware import HardwareChoice
from engine.estimate.training_job import Job, PlanResult

FILE = Path(__file__).resolve().parents[2] / "data" / "network_cases.csv"
ROUNDED = 0.005  # the articles give whole per cents
ANY_TOKENS = 1e9  # a step's time does not depend on the tokens of the run
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Measure = Literal["times_as_long", "time_saved", "traffic_saved"]


class NetworkCase(Row):
    """One measurement of an article and the settings under which it is computed.

    measure : `times_as_long` is slow over fast (or more GPUs over fewer), `time_saved` the share
        of the slow network's time that the fast one saves, `traffic_saved` that of traffic alone
    said : by the article, in that measure
    more_gpus : where the fleet differs and the network does not
    fast_network : one id, or several with ; between, whose spread is the interval
    """

    id: str
    article: str
    claims: str
    measure: Measure
    said: Positive
    says: str
    settings: str
    reason: str
    model_b: Positive | None = None
    sku: str = ""
    gpus: Count = 1
    more_gpus: Count | None = None
    task: Task = "finetune"
    micro_batch: Count = 1
    batch: Count = 1
    seq_len: Count = 4096
    slow_network: str
    slow_links: Count
    fast_network: str
    fast_links: Count
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class WorkedCase:
    """A case beside what is computed under its settings, in the case's measure.

    busy : shares of the step that are not traffic, slow and fast; None where no step is computed
    reproduced : whether what was said lies between low and high
    """

    case: NetworkCase
    low: float
    likely: float
    high: float
    busy: tuple[float, float] | None

    @property
    def reproduced(self) -> bool:
        """Whether what was said lies inside the computed interval."""
        return self.low - ROUNDED <= self.case.said <= self.high + ROUNDED


@lru_cache(maxsize=2)
def network_cases(file: Path = FILE) -> tuple[NetworkCase, ...]:
    """The cases in the order of the table.

    Raises
    ------
    DataError : a cell that can't be used, an id that stands twice
    """
    found: dict[str, NetworkCase] = {}
    for line, cells in rows(file):
        case = parse(NetworkCase, cells, file, line, date.today())
        if case.id in found:
            raise DataError(f"{case.id} stands twice", file=file, line=line, column="id")
        found[case.id] = case
    return tuple(found.values())


@lru_cache(maxsize=1)
def worked_cases() -> tuple[WorkedCase, ...]:
    """Every case, computed with the catalogue's hardware."""
    catalogue = load_catalogue()
    return tuple(worked(case, catalogue) for case in network_cases())


def worked(case: NetworkCase, catalogue: Catalogue) -> WorkedCase:
    """One case: the slow side's interval against the fast side's likely time.

    What both share (the model's own error on computing) moves both alike and cancels; what is
    left is how well the traffic on the slow side is known.

    Raises
    ------
    DataError : when the plan of the settings does not fit, or a network is not in the catalogue
    """
    nets = [_network(catalogue, n) for n in (case.slow_network, *case.fast_network.split(";"))]
    if case.measure == "traffic_saved":
        slow, *fast = (_rate(n, case) for n in nets)
        saved = sorted(1 - slow / f for f in fast)
        return WorkedCase(case, saved[0], sum(saved) / len(saved), saved[-1], None)
    slow_side = _step(case, catalogue, nets[0], case.slow_links, case.more_gpus or case.gpus)
    fast_side = _step(case, catalogue, nets[1], case.fast_links, case.gpus)
    low, likely, high = (
        t / fast_side.step_s.likely
        for t in (slow_side.step_s.low, slow_side.step_s.likely, slow_side.step_s.high)
    )
    if case.measure == "time_saved":
        low, likely, high = (1 - 1 / x for x in (low, likely, high))
    return WorkedCase(case, low, likely, high, (slow_side.utilization, fast_side.utilization))


def _network(catalogue: Catalogue, name: str) -> Network:
    if name not in catalogue.networks:
        raise DataError(f"no network {name}", file=FILE, line=1, column="slow_network",
                        right="an id of networks.csv")  # fmt: skip
    return catalogue.networks[name]


def _rate(n: Network, case: NetworkCase) -> float:
    """Measured rate of as many adapters on either side [GB/s per direction]."""
    nominal = n.nominal_gb_per_s_per_direction_per_link
    if nominal is None or n.efficiency_of_nominal is None:
        raise DataError(f"{n.id} has no measured rate", file=FILE, line=1, column="fast_network",
                        right="a network with one")  # fmt: skip
    return nominal * n.efficiency_of_nominal * case.slow_links


def _step(
    case: NetworkCase, catalogue: Catalogue, network: Network, links: int, gpus: int
) -> PlanResult:
    choice = HardwareChoice(catalogue.accelerators[case.sku], network, nics_per_node=links)
    plan = TrainingPlan(
        gpus=case.gpus, zero_stage=3, micro_batch=case.micro_batch, global_batch_seqs=case.batch,
        seq_len=case.seq_len, recompute="full", task=case.task, stack="fsdp",
    )  # fmt: skip
    job = Job(shape_from_size(case.model_b or 1.0), ANY_TOKENS, (choice,), task=case.task)
    told = plan_result(job, replace(plan, gpus=gpus))
    if told is None:
        raise DataError(f"{case.id} does not fit its GPUs", file=FILE, line=1, column="gpus",
                        right="settings that fit")  # fmt: skip
    return told
