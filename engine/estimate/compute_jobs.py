"""Compute jobs on CPU servers and GPUs: time, machines and what a speed-up must be to pay.

A job is known by its hours on one reference server, the fraction of them that is parallel, the
share that is input and output, and the speed-up of the parallel part on one reference GPU. The
formulae are those of `engine.estimate.jobs` and `engine.estimate.scaling`; what is added here are
the copies between host and GPU, the rate at which storage feeds a machine, whole machines, and
hard constraints. Works on floats and arrays alike. Knows no prices but as ratios and sums told.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.catalogue.models import Accelerator, CpuServer
from engine.estimate import jobs
from engine.wording import rough

Array = NDArray[np.float64]
Real = float | Array
SECONDS_PER_HOUR = 3600.0
MOST_UNITS = 16_384.0
# A deadline is kept where it leaves a sixteenth of the serial part to the rest: the last minutes
# would take most of the machines.
CLOSEST = 1.0 / 16.0
REFERENCE_SERVER = "m7i-24xlarge"  # the 96-vCPU server of `jobs.REFERENCE_VCPU`


@dataclass(frozen=True, slots=True)
class Parts:
    """A run on units of one kind: the hours that units do not divide, and those that they do.

    divisible : on one unit, copies included
    copies : between host and GPU, on one unit
    fed_hours : in which storage feeds one machine with all that the run reads
    per_machine : units that are rented together
    """

    serial: Array
    divisible: Array
    copies: Array
    fed_hours: Real = 0.0
    per_machine: int = 1

    def hours(self, units: Real) -> Array:
        """Hours on a number of units: T = A + B/n, and never faster than storage feeds them."""
        n = np.asarray(units, dtype=float)
        return np.asarray(np.maximum(self.serial + self.divisible / n, self.feeding(n)))

    def feeding(self, units: Real) -> Array:
        """Hours in which storage feeds the machines of so many units."""
        machines = np.ceil(np.asarray(units, dtype=float) / self.per_machine)
        return np.asarray(self.fed_hours / machines)

    def fewest_units(
        self, wanted_hours: Real, firm: bool | NDArray[np.bool_] = False, most: float = MOST_UNITS
    ) -> Array:
        """Fewest units, in whole machines, with which a run takes no longer than wanted.

        Where the serial part takes most of it, as many as bring the rest down to the serial part:
        more cost more than they save. A deadline is kept all the same where `most` units or fewer
        do so, to within `CLOSEST`. Storage that feeds too slowly asks for machines of its own.

        firm : whether the hours are a deadline and no wish
        """
        wanted = np.asarray(wanted_hours, dtype=float)
        room = wanted - self.serial
        kept = firm & (room >= CLOSEST * self.serial) & (self.divisible <= room * most)
        target = np.where(kept, wanted, np.maximum(wanted, 2.0 * self.serial))
        n = self.divisible / np.maximum(target - self.serial, 1e-9)
        n = np.maximum(n, self.fed_hours / np.maximum(target, 1e-9) * self.per_machine)
        n = np.clip(np.ceil(n - 1e-9), 1.0, most)
        return np.asarray(np.ceil(n / self.per_machine) * self.per_machine)


def parts_of(
    serial: Array, divisible: Array, contention: Real, *, copied_gb: Real = 0.0,
    host_link_gb_per_s: Real = 1.0, read_gb: Real = 0.0, feed_gb_per_s: Real = 1.0,
    per_machine: int = 1,
) -> Parts:  # fmt: skip
    """A run with what further machines, copies and storage add to it.

    serial, divisible : hours of its work on one unit [engine.estimate.jobs]
    contention : σ of the Universal Scalability Law, a further unit
    copied_gb : between host and GPU, both ways together, over the link of one GPU
    read_gb : from storage or over the network, at what that brings to one machine
    """
    sigma = np.asarray(contention, dtype=float)
    serial, divisible = jobs.with_contention(serial, divisible, sigma)
    copies = np.zeros_like(serial) + copied_gb / host_link_gb_per_s / SECONDS_PER_HOUR
    fed = np.asarray(read_gb / feed_gb_per_s / SECONDS_PER_HOUR)
    return Parts(serial, np.asarray(divisible + copies), copies, fed, per_machine)


def break_even_speedup(
    price_ratio: Real, parallel_fraction: Real, io_share: Real = 0.0, host_servers: Real = 1.0
) -> Array:
    """Speed-up of the parallel part from which on the GPU is the cheaper per run.

    It solves r·((1 − b)((1 − p) + p/s) + b/h) = 1 for s; infinite where no speed-up pays, because
    the rest of the job alone costs as much as the whole on the CPU.

    price_ratio : r, price of the GPU over that of the CPU server an hour
    host_servers : h, what comes with the GPU for input and output, over the CPU server's
    """
    r, p, b, h = np.broadcast_arrays(
        *(
            np.asarray(v, dtype=float)
            for v in (price_ratio, parallel_fraction, io_share, host_servers)
        )
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        left = (1.0 / r - b / h) / (1.0 - b) - (1.0 - p)
        s = np.where(left > 0.0, p / left, np.inf)
    return np.asarray(s)


def cost_ratio(
    price_ratio: Real, parallel_fraction: Real, speedup: Real, io_share: Real = 0.0,
    host_servers: float = 1.0,
) -> Real:  # fmt: skip
    """Cost of a run on one GPU over that on the CPU server: r·t_gpu [engine.estimate.jobs]."""
    p, s, b = (np.asarray(v, dtype=float) for v in (parallel_fraction, speedup, io_share))
    serial, divisible = jobs.gpu_parts(np.ones_like(p), p, b, s, host_servers, splits=False)
    return np.asarray(price_ratio * (serial + divisible))


# ---- hard constraints ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constraint:
    """Why some hardware is out of the question, and the question that decides it."""

    reason: str
    field: str


def gpu_constraints(
    gpu: Accelerator, server: CpuServer, *, needs_fp64: bool, licence_covers_gpus: bool,
    can_be_rewritten: bool,
) -> tuple[Constraint, ...]:  # fmt: skip
    """What rules a GPU out for a job, its memory aside (`too_little_memory`).

    server : the reference CPU server; the others as in the constraints below
    """
    told = (
        None if can_be_rewritten
        else Constraint("the code has no version for GPUs and can't be rewritten", "rewrite"),
        None if licence_covers_gpus else LICENCE,
        double_precision(gpu, server) if needs_fp64 else None,
    )  # fmt: skip
    return tuple(c for c in told if c is not None)


LICENCE = Constraint("the software's licence does not cover GPUs", "licence_covers_gpus")


def double_precision(gpu: Accelerator, server: CpuServer) -> Constraint | None:
    """A card whose double precision is slower than that of the server it would replace has none
    in earnest.
    """
    have, server_has = gpu.fp64_tflops or 0.0, server_fp64_tflops(server)
    if have >= server_has:
        return None
    return Constraint(
        f"{gpu.name} does {have:g} TFLOPS in double precision, less than the "
        f"{rough(server_has)} of the {server.vcpu:g}-vCPU server that it would replace",
        "precision",
    )


def too_little_memory(name: str, have_gb: float, unsplit_gb: float | None) -> Constraint | None:
    """Data that must be at hand and can't be split, on one device or server that can't hold it.

    unsplit_gb : None where none was told or the data can be split
    """
    if unsplit_gb is None or unsplit_gb <= have_gb:
        return None
    return Constraint(
        f"the {unsplit_gb:,.0f} GB that must be at hand can't be split and {name} has "
        f"{have_gb:,.0f} GB", "working_set_gb",
    )  # fmt: skip


def server_fp64_tflops(server: CpuServer) -> float:
    """Double precision of a server: half of its single precision, on all vector units."""
    return (server.peak_fp32_gflops or 0.0) / 2.0 / 1000.0


def payback_months(cost_usd: Real, saves_usd_per_month: Real) -> Array:
    """Months until what it saves has paid for a rewrite; infinite where nothing is saved."""
    cost, saves = np.broadcast_arrays(
        np.asarray(cost_usd, dtype=float), np.asarray(saves_usd_per_month, dtype=float)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        months = np.where(saves > 0.0, cost / saves, np.inf)
    return np.asarray(np.where(cost <= 0.0, 0.0, months))
