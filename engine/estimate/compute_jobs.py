"""Compute jobs on CPU servers and GPUs: time, machines and what a speed-up must be to pay.

A job is known by its hours on one reference server, the fraction of them that is parallel, the
share that is input and output, and the speed-up of the parallel part on one reference GPU. The
formulae are those of `engine.estimate.jobs` and `engine.estimate.scaling`; what is added here are
the copies between host and GPU, the rate at which storage feeds a machine, whole machines, and
hard constraints. Works on floats and arrays alike. Knows no prices but as ratios and sums told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.catalogue.models import Accelerator, CpuServer
from engine.estimate import jobs
from engine.estimate.jobs import REFERENCE_VCPU
from engine.wording import rough

Array = NDArray[np.float64]
Real = float | Array
SECONDS_PER_HOUR = 3600.0
MOST_UNITS = 1_000_000.0


@dataclass(frozen=True, slots=True)
class Work:
    """One run of a job.

    one_server_hours : on a single reference server of 96 vCPU
    parallel_fraction : p, of the time that is not input and output
    io_share : b, share of the time on one server that is input and output
    speedup : of the parallel part on one reference GPU, against one reference server
    contention : σ of the Universal Scalability Law, a further machine
    copied_gb : copied between host and GPU, both ways together
    read_gb : read from storage or over the network, whatever the hardware
    """

    one_server_hours: Real
    parallel_fraction: Real
    io_share: Real
    speedup: Real
    contention: Real = 0.0
    copied_gb: Real = 0.0
    read_gb: Real = 0.0


@dataclass(frozen=True, slots=True)
class Machine:
    """One unit (a GPU or a CPU server) and the machine that it is bought in.

    vcpu : of the unit; for a GPU its share of the host
    gpu_speed : against the reference GPU on this job's mix of limits; 0 of CPU servers
    host_link_gb_per_s : copies to and from one GPU
    feed_gb_per_s : what storage and network bring to one machine
    """

    hardware: Literal["gpu", "cpu"]
    vcpu: Real
    per_machine: int = 1
    gpu_speed: Real = 0.0
    host_link_gb_per_s: float = 25.0
    feed_gb_per_s: float = 1.5


@dataclass(frozen=True, slots=True)
class Run:
    """A run on some units: hours, and what of them is bound by what."""

    units: Array
    hours: Array
    serial_hours: Array
    copy_hours: Array
    feed_hours: Array

    @property
    def fed(self) -> Array:
        """Whether storage is what the run waits for."""
        return np.asarray(self.feed_hours >= self.hours - 1e-12)


def parts(work: Work, machine: Machine) -> tuple[Array, Array, Array]:
    """Serial and divisible hours on one unit, contention included, and the hours of copies.

    The same as the decision's: on GPUs only the parallel part is sped up and the rest runs on the
    share of the host that comes with the GPU [engine.estimate.jobs].
    """
    hours, p, b, s = (
        np.asarray(v, dtype=float)
        for v in (work.one_server_hours, work.parallel_fraction, work.io_share, work.speedup)
    )
    hours, p, b, s = np.broadcast_arrays(hours, p, b, s)
    copies = np.zeros_like(hours)
    if machine.hardware == "cpu":
        serial, divisible = jobs.cpu_parts(hours, p, b, splits=False)
        divisible = np.asarray(divisible * REFERENCE_VCPU / machine.vcpu)
    else:
        speed = np.maximum(s * machine.gpu_speed, 1e-6)
        host = max(float(machine.vcpu), 1.0) / REFERENCE_VCPU
        serial, divisible = jobs.gpu_parts(hours, p, b, speed, host, splits=False)
        copies = copies + work.copied_gb / machine.host_link_gb_per_s / SECONDS_PER_HOUR
    sigma = np.asarray(work.contention, dtype=float)
    serial, divisible = jobs.with_contention(serial, divisible, sigma)
    return serial, np.asarray(divisible + copies), np.asarray(copies)


def run(work: Work, machine: Machine, units: Real) -> Run:
    """The run on a number of units: T = A + B/n, and never faster than storage feeds it."""
    n = np.asarray(units, dtype=float)
    serial, divisible, copies = parts(work, machine)
    machines = np.ceil(n / machine.per_machine)
    feed = np.asarray(work.read_gb) / (machine.feed_gb_per_s * machines) / SECONDS_PER_HOUR
    hours = np.maximum(serial + divisible / n, feed)
    n, hours, serial, copies, feed = np.broadcast_arrays(n, hours, serial, copies / n, feed)
    return Run(n, hours, serial, copies, feed)


def fewest_units(work: Work, machine: Machine, wanted_hours: Real) -> Array:
    """Fewest units, in whole machines, with which a run takes no longer than wanted.

    Where the serial part takes most of it, as many as bring the rest down to the serial part:
    more cost more than they save. Storage that feeds too slowly asks for machines of its own.
    """
    serial, divisible, _ = parts(work, machine)
    wanted = np.asarray(wanted_hours, dtype=float)
    target = np.maximum(wanted, 2.0 * serial)
    n = divisible / np.maximum(target - serial, 1e-9)
    fed = np.asarray(work.read_gb) / machine.feed_gb_per_s / SECONDS_PER_HOUR
    n = np.maximum(n, fed / target * machine.per_machine)
    n = np.clip(np.ceil(n - 1e-9), 1.0, MOST_UNITS)
    return np.asarray(np.ceil(n / machine.per_machine) * machine.per_machine)


def fastest_hours(work: Work, machine: Machine) -> Array:
    """Hours that no number of units goes below: the serial part with its contention."""
    return parts(work, machine)[0]


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
    """Cost of a run on one GPU over that on the CPU server: r·t_gpu, its host as in `parts`."""
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
    gpu: Accelerator, server: CpuServer, *, needs_fp64: bool, memory_gb: float | None,
    splits: bool, licence_covers_gpus: bool, can_be_rewritten: bool,
) -> tuple[Constraint, ...]:  # fmt: skip
    """What rules a GPU out for a job.

    A card whose double precision is slower than that of the server it would replace has none in
    earnest. Memory counts where the data can't be split over devices.

    server : the reference CPU server
    """
    found = []
    if not can_be_rewritten:
        found.append(Constraint("the code has no version for GPUs and can't be rewritten",
                                "rewrite"))  # fmt: skip
    if not licence_covers_gpus:
        found.append(Constraint("the licence of the software does not cover GPUs",
                                "licence_covers_gpus"))  # fmt: skip
    have, server_has = gpu.fp64_tflops or 0.0, server_fp64_tflops(server)
    if needs_fp64 and have < server_has:
        found.append(Constraint(
            f"{gpu.name} does {have:g} TFLOPS in double precision, less than the "
            f"{rough(server_has)} of the {server.vcpu:g}-vCPU server that it would replace",
            "precision",
        ))  # fmt: skip
    if memory_gb is not None and not splits and memory_gb > gpu.memory_gb:
        found.append(Constraint(
            f"the {memory_gb:,.0f} GB that must be at hand can't be split and {gpu.name} has "
            f"{gpu.memory_gb:,.0f} GB", "working_set_gb",
        ))  # fmt: skip
    return tuple(found)


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
