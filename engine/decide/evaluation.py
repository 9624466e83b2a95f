"""The types that evaluation passes on: context, pools of machines, an evaluated candidate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.assessment import Veto
from engine.catalogue import Catalogue
from engine.cost.cash_flow import CashLine
from engine.decide.candidates import Spec, Unit
from engine.decide.inputs import Inputs
from engine.decide.numbers import Array, Mask
from engine.estimate.jobs import Stage
from engine.workload.settings import USUAL, Settings
from engine.workload.workload import Workload

Values = dict[str, Array]
# What the same inputs gave already: pools, which many candidates share, and a service's demand.
Memo = dict[tuple[object, ...], Any]


@dataclass(slots=True)
class Context:
    """What evaluation needs besides the inputs; made once per assessment."""

    workload: Workload
    inputs: Inputs
    stages: tuple[Stage, ...]
    catalogue: Catalogue
    reference: Unit
    cpu_usd_per_vcpu_hour: float
    settings: Settings = USUAL


@dataclass(slots=True)
class Pool:
    """Machines of one kind that work on some stages, sized for the inputs.

    units : working on one run or service; paid_units : with those of runs side by side
    starting_hours : of a month in which each paid unit starts for its runs, where hours are paid
    usd_per_month : sum of `lines`, the rows of the pool's cash flow, over the horizon by the month
    """

    unit: Unit
    stages: tuple[Stage, ...]
    service: bool
    units: Array
    busy_hours: Array
    hours_per_run: Array
    usd_per_month: Array
    utilization: Array
    goodput: Array
    lines: tuple[CashLine, ...]
    paid_units: Array
    starting_hours: Array


@dataclass(slots=True)
class Evaluation:
    """A candidate evaluated: arrays of the inputs' length."""

    spec: Spec
    pools: list[Pool]
    usd_per_month: Array
    hours_per_run: Array
    latency_ms: Array
    vetoed: Mask
    vetoes: list[tuple[Mask, Veto]] = field(default_factory=list)
    fees: tuple[CashLine, ...] = ()

    @property
    def useful_hours(self) -> Array:
        """Hours of useful work a month, of all pools."""
        return np.asarray(sum(p.busy_hours * p.goodput for p in self.pools))

    @property
    def units(self) -> Array:
        """GPUs and servers together."""
        return np.asarray(sum(p.units for p in self.pools))

    @property
    def machines(self) -> Array:
        """Boxes: GPUs share one by `per_machine`."""
        return np.asarray(sum(np.ceil(p.units / p.unit.per_machine) for p in self.pools))

    @property
    def goodput(self) -> Array:
        """Useful over total work of the worst pool."""
        return np.asarray(np.minimum.reduce([p.goodput for p in self.pools]))

    @property
    def utilization(self) -> Array:
        """Share of the paid hours that do useful work, weighted by money."""
        total = sum(p.usd_per_month for p in self.pools)
        useful = sum(p.usd_per_month * p.utilization for p in self.pools)
        return np.asarray(useful / np.maximum(total, 1e-9))
