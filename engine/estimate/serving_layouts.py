"""What a model could be served on: machines with their price, layouts of a replica, their capacity.

A machine is what can be rented: one GPU, a server of several, or a CPU server. A layout divides a
replica over GPUs: tensor parallel inside a machine, pipeline stages over machines, and for
compressed caches attention that each GPU does for requests of its own. Experts are spread over the
GPUs of the group. Prices are only carried along here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from engine.catalogue import Accelerator
from engine.estimate.estimate import Estimate
from engine.estimate.serving import ServingCapacity
from engine.estimate.serving_points import (
    CpuBox,
    Load,
    Replica,
    Targets,
    cpu_capacity,
    cpu_replica,
    gpu_capacity,
    gpu_replica,
)
from engine.estimate.shape import ModelShape

# Pipeline stages over whole machines that are tried where one machine is too small.
PIPELINES = (2, 4, 8)
Hardware = Literal["gpu", "cpu"]


@dataclass(frozen=True, slots=True)
class PriceTag:
    """Whose price it is, on which terms, of which day and how old, with its source.

    usd_per_unit_hour : as it was read; None where it is worked out
    """

    provider: str
    terms: str
    as_of: date | None
    age_days: int
    freshness: str
    source: str
    region: str = ""
    confidence: str = ""
    usd_per_unit_hour: float | None = None


def machine_id(sku: str, per_machine: int) -> str:
    """A stable name of a machine: the hardware and how many come together."""
    return f"{sku}x{per_machine}".lower().replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Machine:
    """What can be rented. Prices in US dollars per GPU (or server) and hour.

    per_machine : GPUs that come together; 1 for a CPU server
    """

    sku: str
    name: str
    hardware: Hardware
    per_machine: int
    accelerator: Accelerator | None
    box: CpuBox | None
    usd_per_unit_hour: Estimate
    price: PriceTag
    others: tuple[PriceTag, ...] = ()

    @property
    def id(self) -> str:
        """A stable name: the hardware and how many come together."""
        return machine_id(self.sku, self.per_machine)

    @property
    def label(self) -> str:
        """What is rented: `8× H100 SXM`, `Azure Standard_D96s_v6`."""
        return f"{self.per_machine}× {self.name}" if self.per_machine > 1 else self.name


@dataclass(frozen=True, slots=True)
class Layout:
    """How one replica is divided: tensor parallel × pipeline stages, attention by data."""

    tp: int = 1
    pp: int = 1
    attention_dp: bool = False

    @property
    def gpus(self) -> int:
        """GPUs of a replica."""
        return self.tp * self.pp

    def told(self, experts: bool) -> str:
        """The layout in the field's short words."""
        parts = [f"TP {self.tp}"] if self.tp > 1 else []
        if experts and self.tp > 1:
            parts.append(f"EP {self.tp}")
        if self.pp > 1:
            parts.append(f"PP {self.pp}")
        if self.attention_dp:
            parts.append("attention DP")
        return ", ".join(parts) or "one device"


@dataclass(frozen=True, slots=True)
class Precision:
    """Bits of a weight, bytes of a cached element, and the engine."""

    weight_bits: float
    kv_bytes: float
    engine: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A machine with a layout and a precision, and what one replica of it carries."""

    machine: Machine
    layout: Layout
    precision: Precision
    replica: Replica
    capacity: ServingCapacity

    @property
    def replicas_per_machine(self) -> int:
        """Replicas that share a machine; 1 where a replica takes one machine or more."""
        return max(self.machine.per_machine // self.layout.gpus, 1)

    @property
    def machines_per_replica(self) -> int:
        """Machines that one replica takes."""
        return math.ceil(self.layout.gpus / self.machine.per_machine)

    def machines(self, replicas: int) -> int:
        """Whole machines for so many replicas."""
        return math.ceil(replicas / self.replicas_per_machine) * self.machines_per_replica


def layouts(shape: ModelShape, machine: Machine) -> Iterator[Layout]:
    """Layouts worth trying: powers of two of the machine's GPUs that divide the heads.

    Pipeline stages only over whole machines of GPUs with a fast link: others lack the network.
    """
    if machine.hardware == "cpu":
        yield Layout()
        return
    tp = 1
    while tp <= machine.per_machine:
        if shape.heads % tp == 0 or shape.attention == "none":
            yield Layout(tp)
            if shape.attention == "mla" and tp > 1:
                yield Layout(tp, 1, True)
        tp *= 2
    tp //= 2
    joined = machine.accelerator is not None and (machine.accelerator.scaleup_domain_gpus or 1) > 1
    if machine.per_machine > 1 and joined and (shape.heads % tp == 0 or shape.attention == "none"):
        for pp in PIPELINES:
            if pp <= shape.layers:
                yield Layout(tp, pp)


def candidates(
    shape: ModelShape, machine: Machine, precision: Precision, load: Load, targets: Targets
) -> list[Candidate]:
    """Every layout on a machine; pipelines only where one machine does not hold the model."""
    found: list[Candidate] = []
    for layout in layouts(shape, machine):
        if layout.pp > 1 and any(c.capacity.fits for c in found):
            break
        found.append(_candidate(shape, machine, layout, precision, load, targets))
    return found


def _candidate(
    shape: ModelShape, machine: Machine, layout: Layout, precision: Precision, load: Load,
    targets: Targets,
) -> Candidate:  # fmt: skip
    bits, kv = precision.weight_bits, precision.kv_bytes
    if machine.accelerator is None:
        assert machine.box is not None
        replica = cpu_replica(shape, machine.box, bits, kv)
        capacity = cpu_capacity(replica, load, targets)
    else:
        acc, n = machine.accelerator, layout
        replica = gpu_replica(shape, acc, n.tp, n.pp, n.attention_dp, bits, kv, precision.engine)
        capacity = gpu_capacity(
            shape, acc, n.tp, n.pp, n.attention_dp, bits, kv, precision.engine, load, targets
        )
    return Candidate(machine, layout, precision, replica, capacity)
