"""What a service asks of machines: demand by resource, machines by resource, queues, failures.

Pure formulae on floats or NumPy arrays alike; they know neither prices nor the catalogue. Rates
per second, sizes in kB and GB (decimal), network in Gbit/s, disks in MB/s.

References
----------
[1] J. D. C. Little 1961: what is under way = rate times time.
[2] E. Brewer 2000; S. Gilbert, N. Lynch 2002 (CAP): during a split a system answers or agrees.
[3] L. Lamport 1998; D. Ongaro, J. Ousterhout 2014: a majority of 2f + 1 survives f losses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.errors import InputError

Array = NDArray[np.float64]
Real = float | Array
Resource = Literal["cores", "memory", "network", "disk_rate", "disk_ops", "disk_space"]

RESOURCES: tuple[Resource, ...] = (
    "cores", "memory", "network", "disk_rate", "disk_ops", "disk_space",
)  # fmt: skip
UNITS: dict[Resource, str] = {
    "cores": "vCPU", "memory": "GB", "network": "Gbit/s", "disk_rate": "MB/s",
    "disk_ops": "operations/s", "disk_space": "GB",
}  # fmt: skip
TITLES: dict[Resource, str] = {
    "cores": "Processors", "memory": "Memory", "network": "Network", "disk_rate": "Disk rate",
    "disk_ops": "Disk operations", "disk_space": "Disk space",
}  # fmt: skip
KB_PER_GBIT = 125_000.0
DAY_S = 86_400.0
HOURS_PER_YEAR = 8760.0


@dataclass(frozen=True, slots=True)
class Machine:
    """What one machine gives, by resource; the disk is attached or local."""

    vcpu: Real
    memory_gb: Real
    network_gbit: Real
    disk_mb_per_s: Real
    disk_ops: Real
    disk_gb: Real

    def capacity(self) -> dict[Resource, Real]:
        """What it gives of each resource."""
        return {
            "cores": self.vcpu, "memory": self.memory_gb, "network": self.network_gbit,
            "disk_rate": self.disk_mb_per_s, "disk_ops": self.disk_ops, "disk_space": self.disk_gb,
        }  # fmt: skip


# --- demand


def cores(rate: Real, core_ms: Real, load: Real) -> Real:
    """vCPUs that a rate keeps busy at the planned load: rate · core-ms / 1000 / load."""
    return _told(_(rate) * _(core_ms) / 1000.0 / _(load))


def gbit_per_s(rate: Real, kb: Real, share: Real = 1.0) -> Real:
    """Network for a rate of items of so many kB, at the planned share of the line [Gbit/s]."""
    return _told(_(rate) * _(kb) / KB_PER_GBIT / _(share))


def mb_per_s(rate: Real, kb: Real, share: Real = 1.0) -> Real:
    """Disk rate for a rate of items of so many kB, at the planned share [MB/s]."""
    return _told(_(rate) * _(kb) / 1000.0 / _(share))


def kept_gb(rate: Real, kb: Real, days: Real) -> Real:
    """Data that gathers at a mean rate until it is thrown away: Little's law [1] [GB]."""
    return _told(_(rate) * _(kb) / 1e6 * _(days) * DAY_S)


def under_way(rate: Real, seconds: Real) -> Real:
    """Requests, connections or entries in a queue at one time: Little's law [1]."""
    return _told(_(rate) * _(seconds))


def pooled_peak(factor: Real, services: Real) -> Real:
    """Peak over mean of equal services together when their peaks are independent.

    The excess over the mean shrinks with the square root of their number, as a deviation does:
    1 + (k − 1)/√n. Services that peak together keep k: the truth lies between.
    """
    return _told(1.0 + (_(factor) - 1.0) / np.sqrt(_(services)))


# --- machines


def machines_by_resource(needs: Mapping[Resource, Real], machine: Machine) -> dict[Resource, Real]:
    """How many machines each resource alone would take (real numbers)."""
    has = machine.capacity()
    found: dict[Resource, Real] = {}
    for resource, need in needs.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            found[resource] = _told(np.where(_(need) > 0, _(need) / _(has[resource]), 0.0))
    return found


def whole_machines(by_resource: Mapping[Resource, Real]) -> Real:
    """Fewest whole machines that hold every resource: the ceiling of the scarcest, at least 1."""
    most = np.maximum.reduce(np.broadcast_arrays(*[_(v) for v in by_resource.values()]))
    return _told(np.maximum(np.ceil(most - 1e-9), 1.0))


def binding(by_resource: Mapping[Resource, Real]) -> Resource:
    """The resource that runs out first, at single values."""
    return max(by_resource, key=lambda r: float(by_resource[r]))


# --- what fails


def failures_per_year(machines: Real, mtbf_h: Real) -> Real:
    """Machines that fail in a year: each further one adds its own."""
    return _told(_(machines) * HOURS_PER_YEAR / _(mtbf_h))


def hours_away_per_year(machine_mtbf_h: Real, back_h: Real) -> Real:
    """Hours a year in which one machine without a standby is away: failures times repair."""
    mtbf, back = _(machine_mtbf_h), _(back_h)
    return _told(HOURS_PER_YEAR * back / (mtbf + back))


def majority(copies: int) -> int:
    """How many of the copies must agree [3].

    Raises
    ------
    InputError : fewer than one copy
    """
    if copies < 1:
        raise InputError(f"{copies} copies", where="copies", right="1 or more")
    return copies // 2 + 1


def losses_survived(holders: int) -> int:
    """Copies that may be lost with no accepted write among them.

    holders : copies that have a write before it is accepted: a majority where copies must agree,
        one where the others follow behind
    """
    return max(holders - 1, 0)


def lost_writes(writes_per_s: Real, lag_s: Real) -> Real:
    """Writes that exist nowhere else when the primary dies: those of the lag."""
    return _told(_(writes_per_s) * _(lag_s))


def restore_hours(gb: Real, mb_per_s: Real) -> Real:
    """Hours to bring a backup back."""
    return _told(_(gb) * 1000.0 / _(mb_per_s) / 3600.0)


# --- queues


def backlog_gb(rate: Real, kb: Real, outage_s: Real) -> Real:
    """What a queue must hold while its readers are away [GB]."""
    return _told(_(rate) * _(kb) * _(outage_s) / 1e6)


def catch_up_s(outage_s: Real, load: Real) -> Real:
    """Seconds until readers who were away are level again: outage · load / (1 − load).

    At a load of 1 or more they never are: infinite.
    """
    rho = _(load)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _told(
            np.where(rho < 1.0, _(outage_s) * rho / np.maximum(1.0 - rho, 1e-12), math.inf)
        )


def partitions(mb_per_s_peak: Real, per_partition: Real, readers: Real) -> Real:
    """Partitions of a log: for its rate, and one for each reader that works beside others."""
    by_rate = np.ceil(_(mb_per_s_peak) / _(per_partition) - 1e-9)
    return _told(np.maximum(np.maximum(by_rate, _(readers)), 1.0))


# --- helpers


def _(x: Real) -> Array:
    return np.asarray(x, dtype=float)


def _told(x: Array) -> Real:
    return float(x) if np.ndim(x) == 0 else x
