"""Question 1, where the time goes: shares, symptoms, the ceiling of a GPU, the roofline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.catalogue import load_catalogue
from engine.decide import bottleneck
from engine.decide.inputs import resolve
from engine.decide.priors import prior
from engine.estimate.scaling import (
    gpu_time_relative,
)
from engine.explain.curves.common import times
from engine.workload.answers import (
    BOTTLENECK_LABELS,
    Bottleneck,
    Symptom,
)
from engine.workload.workload import LLM_TRAINING, Workload


@dataclass(frozen=True, slots=True)
class TimeShare:
    """Share of the time of one resource, largest first; `io` says that no GPU shortens it."""

    resource: str
    title: str
    share: float
    largest: bool
    io: bool


def time_shares(workload: Workload) -> list[TimeShare]:
    """The shares of time that the answers imply, largest first; they sum to 1."""
    shares = bottleneck.shares(workload)
    top = max(shares, key=lambda k: shares[k])
    return [
        TimeShare(k, _title(k), v, k == top, k in ("disk_io", "network"))
        for k, v in sorted(shares.items(), key=lambda pair: -pair[1])
    ]


# The symptoms in few words, so that a line of a phone holds one.
SYMPTOMS = {
    Symptom.cpu_full: "CPU cores above 90%, disks quiet",
    Symptom.gpu_full: "GPU arithmetic (SM) above 80%",
    Symptom.gpu_low_network_full: "GPU below 50%, network full",
    Symptom.gpu_low_cpu_full: "GPU below 50%, CPUs or disks full",
    Symptom.disk_wait: "CPU time goes into I/O wait",
    Symptom.swapping: "Out of memory, swapping, spilling",
    Symptom.low_ipc: "Cores busy, waiting for memory",
    Symptom.lock_wait: "Threads or transactions wait for locks",
    Symptom.nodes_dont_help: "More machines bring little or harm",
    Symptom.network_wait: "Waiting for remote answers",
}


def symptom_reading(workload: Workload) -> list[tuple[str, str, float]]:
    """For each symptom ticked: its words, the resource it points to most, and that share."""
    table = bottleneck.symptom_shares()
    found = []
    for symptom in workload.symptoms:
        shares = table[symptom]
        top = max(shares, key=lambda k: shares[k])
        found.append((SYMPTOMS[symptom], _title(top).lower(), shares[top]))
    return found


def _title(resource: str) -> str:
    return BOTTLENECK_LABELS[Bottleneck(resource)].split(" (")[0]


@dataclass(frozen=True, slots=True)
class GpuCeiling:
    """What a GPU leaves of the time: I/O (b), serial work, and the rest at the usual speed-up.

    io, serial, parallel : shares of today's time that are left
    most : speed-up of the whole job by a GPU of any speed, 1/((1 − b)(1 − p) + b)
    likely : the same with the speed-up s of the parallel part, 1/((1 − b)((1 − p) + p/s) + b)
    title, message : the same in words
    """

    io: float
    serial: float
    parallel: float
    most: float
    likely: float
    speedup: float
    title: str
    message: str


def gpu_ceiling(workload: Workload) -> GpuCeiling:
    """How much of the job a GPU can shorten, from the shares of time and the parallel fraction.

    Language models are trained on GPUs today: their ceiling is that of faster GPUs on the same
    network and disks, and no speed-up over a CPU server is taken off.
    """
    r = resolve(workload).ranges
    p, s = r["parallel_fraction"].likely, r["gpu_speedup"].likely
    b = min(sum(x.share for x in time_shares(workload) if x.io), 0.97)
    trained = workload.kind in LLM_TRAINING
    serial = (1 - b) * (1 - p)
    parallel = 0.0 if trained else float(gpu_time_relative(p, s, b)) - b - serial
    most, left = 1 / max(b + serial, 1e-9), max(b + serial + parallel, 1e-9)
    start = f"Disks and networks take {b:.0%} of the time and {serial:.1%} is serial. "
    if trained:
        return GpuCeiling(
            b, serial, parallel, most, 1 / left, s,
            f"On the same network no faster GPU gains more than {times(most)} times",
            start + "Faster GPUs shorten neither. A better network does: the plan of the "
            "recommendation computes its part of every step.",
        )  # fmt: skip
    return GpuCeiling(
        b, serial, parallel, most, 1 / left, s,
        f"No GPU makes the whole job more than {times(most)} times as fast",
        start + f"A GPU that is {times(s)} times as fast on the rest makes the whole job "
        f"{times(1 / left)} times as fast; an endlessly fast one, {times(most)} times.",
    )  # fmt: skip


# The articles' own advice for each bottleneck, in our words (000 lesson 3; 001 and 003 frameworks).
FIX_FIRST = {
    Bottleneck.compute: "Arithmetic is what GPUs sell: compare the price of the work, not speed.",
    Bottleneck.memory_bandwidth: (
        "A GPU has several times the bandwidth of a server, as long as the data fits its memory."
    ),
    Bottleneck.memory_capacity: (
        "Look for room before speed: one server with more memory, or data split over several."
    ),
    Bottleneck.network: (
        "Mend the network first, or keep the work on fewer machines: faster processors would wait."
    ),
    Bottleneck.disk_io: "Faster storage or more servers help; a GPU would wait for the same disks.",
    Bottleneck.coordination: (
        "Take locks and hand-overs out of the path first: more machines only queue longer."
    ),
}


def fix_first(workload: Workload) -> str:
    """What the largest bottleneck asks for before any hardware is bought."""
    top = FIX_FIRST[bottleneck.largest(workload)]
    if workload.answered["bottleneck"]:
        return top
    return f"Profile before you buy. If the usual shares hold: {top[0].lower()}{top[1:]}"


@dataclass(frozen=True, slots=True)
class Roof:
    """A machine in the roofline: peak [GFLOP/s], bandwidth [GB/s], ridge [FLOP/byte]."""

    name: str
    hardware: str
    peak_gflops: float
    bandwidth_gb_per_s: float

    @property
    def ridge(self) -> float:
        """Intensity from which on arithmetic is the limit."""
        return self.peak_gflops / self.bandwidth_gb_per_s

    def line(self, intensities: Sequence[float]) -> list[float]:
        """Attainable GFLOP/s at each intensity [FLOP/byte]."""
        return [min(self.peak_gflops, i * self.bandwidth_gb_per_s) for i in intensities]


def roofs() -> list[Roof]:
    """One CPU server and two GPUs of the catalogue, dense 16-bit peaks."""
    catalogue = load_catalogue()
    server = catalogue.cpu_servers["m7i-24xlarge"]
    found = [
        Roof(
            "96-vCPU server", "CPU", server.peak_bf16_gflops or 0.0,
            server.memory_bandwidth_gb_per_s or 1.0,
        )
    ]  # fmt: skip
    for sku in ("l40s", "h100-sxm-80gb"):
        a = catalogue.accelerators[sku]
        peak = (a.bf16_tflops_dense or 0.0) * 1000
        found.append(Roof(a.name.split(" SXM")[0], "GPU", peak, a.memory_bandwidth_gb_per_s))
    return found


def intensity(workload: Workload) -> tuple[float, float, float]:
    """Arithmetic intensity of this kind of work: low, likely, high [FLOP/byte]."""
    p = prior(workload.kind, "intensity_flop_per_byte")
    return p.low, p.likely, p.high


def roofline_message(workload: Workload) -> tuple[str, str]:
    """Title and sentence: which side of the ridges the job is on, and the most a GPU gains there.

    The gain compares attainable rates at the likely intensity, before I/O and serial work.
    """
    server, *gpus = roofs()
    best = gpus[-1]
    at = intensity(workload)[1]
    gain = best.line([at])[0] / server.line([at])[0]
    if at < best.ridge:
        title = "Here memory bandwidth counts, not arithmetic"
        why = "left of the ridge memory sets the pace"
    else:
        title = "Here arithmetic counts"
        why = "right of the ridge the arithmetic units set the pace"
    return title, (
        f"About {at:g} operations per byte of memory traffic: {why}. There one {best.name} "
        f"attains {gain:.0f} times what the server does."
    )
