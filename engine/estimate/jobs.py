"""The stages of a job, and how its work maps to CPU servers and GPUs.

A plain job has one stage; pipelines, services with features, recommenders and reinforcement
learning have several, and `hybrid` means that they run on different hardware. The reference CPU
server has 96 vCPU (an m7i.24xlarge), the reference GPU is an H100 SXM.

Formulae work on floats and arrays alike. This module knows no prices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.workload.answers import Kind, ModelClass
from engine.workload.workload import LLM_TRAINING, Workload

REFERENCE_VCPU = 96.0  # of the reference CPU server
Array = NDArray[np.float64]
Mode = Literal["batch", "service"]
Work = Literal[
    "baseline", "llm_training", "llm_inference", "neural", "recommender", "trees", "core_ms"
]


@dataclass(frozen=True, slots=True)
class Stage:
    """One part of a job.

    `main` stages take the person's own parallelizable fraction and speed-up; others carry the
    priors of `like`. `gpu_native` code runs on GPUs without a rewrite (deep-learning libraries).
    """

    name: str
    title: str
    mode: Mode
    work: Work
    like: Kind
    main: bool = True
    gpu_native: bool = False
    holds_data: bool = False

    @property
    def splits(self) -> bool:
        """Whether all of the stage divides by machines: side stages run as many small tasks."""
        return not self.main

    def key(self, field: str) -> str:
        """Name of this stage's input among the inputs of the job."""
        return field if self.main else f"{self.name}.{field}"


_MODEL_WORK: dict[ModelClass, Work] = {
    ModelClass.llm: "llm_inference",
    ModelClass.neural: "neural",
    ModelClass.recommender: "recommender",
    ModelClass.trees: "trees",
}

_SERVICE_TITLES = {
    Kind.streaming: "Stream processing",
    Kind.database: "Database",
    Kind.web: "Web services",
    Kind.search: "Search and crawling",
}
_BATCH_TITLES = {
    Kind.dl_training: "Training",
    Kind.etl: "Data preparation",
    Kind.simulation: "Simulation",
    Kind.rendering: "Rendering",
    Kind.other: "The job",
}


def stages(workload: Workload) -> tuple[Stage, ...]:
    """The stages of this workload, in the order in which data passes through them."""
    kind = workload.kind
    if kind in LLM_TRAINING:
        return (Stage("train", "Training", "batch", "llm_training", kind, gpu_native=True),)
    if kind is Kind.batch_inference:
        work = _MODEL_WORK[workload.model_class]
        native = workload.model_class is not ModelClass.trees
        return (Stage("infer", "Inference", "batch", work, kind, gpu_native=native),)
    if kind is Kind.online_inference:
        work = _MODEL_WORK[workload.model_class]
        native = workload.model_class is not ModelClass.trees
        return (
            Stage("features", "Requests and features", "service", "core_ms", Kind.web, main=False),
            Stage("model", "Model", "service", work, kind, gpu_native=native),
        )
    if kind is Kind.recsys:
        return (
            Stage(
                "lookups", "Table lookups", "service", "core_ms", Kind.database,
                main=False, gpu_native=True, holds_data=True,
            ),
            Stage("network", "Ranking network", "service", "recommender", kind, gpu_native=True),
        )  # fmt: skip
    if kind is Kind.rl:
        return (
            Stage("simulate", "Simulators", "batch", "baseline", kind, main=False),
            Stage("learn", "Learner", "batch", "baseline", kind, gpu_native=True),
        )
    if kind is Kind.pipeline:
        return (
            Stage("prepare", "Data preparation", "batch", "baseline", Kind.etl, main=False),
            Stage("train", "Training", "batch", "baseline", Kind.dl_training, gpu_native=True),
            Stage("serve", "Serving", "service", "neural", Kind.online_inference, gpu_native=True),
        )
    if kind in _SERVICE_TITLES:
        title = _SERVICE_TITLES[kind]
        return (Stage("serve", title, "service", "core_ms", kind, holds_data=True),)
    native = kind is Kind.dl_training
    return (Stage("compute", _BATCH_TITLES[kind], "batch", "baseline", kind, gpu_native=native),)


def one_server_hours(hours: Array, units: Array, p: Array, io_share: Array) -> Array:
    """Hours on one CPU server for a run that takes `hours` on `units` of them (Amdahl with I/O).

    The parallel part and the I/O divide by the machines, the serial part does not:
    t(n) = h·[(1 − b)(1 − p) + ((1 − b)p + b)/n], solved for h.
    """
    serial = (1 - io_share) * (1 - p)
    return np.asarray(hours / (serial + (1 - serial) / units))


def cpu_parts(hours: Array, p: Array, io_share: Array, splits: bool) -> tuple[Array, Array]:
    """Serial and divisible hours on CPU servers of a run of `hours` on one of them."""
    if splits:
        return np.zeros_like(hours), hours
    serial = (1 - io_share) * (1 - p) * hours
    return np.asarray(serial), np.asarray(hours - serial)


def gpu_parts(
    hours: Array, p: Array, io_share: Array, speedup: Array, host_servers: float, splits: bool
) -> tuple[Array, Array]:
    """Serial and divisible hours on GPUs; only the parallel part is sped up (decision 1.3).

    t_gpu = (1 − b)·((1 − p) + p/s) + b. The rest runs on the host of the GPU, which has
    `host_servers` of a reference server's vCPUs and I/O. Where the job `splits` (many simulators,
    partitions of data), p is the share a GPU can take over and all of it divides by the machines.
    """
    rest, accelerated = (1 - io_share) * (1 - p) * hours, (1 - io_share) * p / speedup * hours
    io = io_share * hours / host_servers
    if splits:
        return np.zeros_like(hours), np.asarray(rest / host_servers + accelerated + io)
    return np.asarray(rest), np.asarray(accelerated + io)


def host_bound_load(p: Array, io_share: Array, speedup: Array, host_servers: float) -> Array:
    """Load on a GPU and its host of work that loads one reference server fully.

    What the GPU's arithmetic can't take runs on the vCPUs that come with it.
    """
    host = ((1 - io_share) * (1 - p) + io_share) / host_servers
    return np.asarray(np.maximum(host, (1 - io_share) * p / speedup))


def with_contention(serial: Array, divisible: Array, sigma: Array) -> tuple[Array, Array]:
    """The same under the contention of the Universal Scalability Law without coherency.

    T(n) = A + B·(1 + σ(n − 1))/n = (A + σB) + (1 − σ)B/n.
    """
    return np.asarray(serial + sigma * divisible), np.asarray((1 - sigma) * divisible)


def relative_speed(compute_share: float, peak_ratio: float, bandwidth_ratio: float) -> float:
    """Speed of an accelerator against the reference, by shares of time (roofline).

    Time is the sum of the compute-bound and the bandwidth-bound parts, each at its own ratio.
    """
    return 1.0 / (compute_share / peak_ratio + (1 - compute_share) / bandwidth_ratio)


def encoder_flops(params_b: Array, tokens: Array) -> Array:
    """FLOP of one forward pass: 2 a parameter and token."""
    return np.asarray(2e9 * params_b * tokens)


def training_flops(params_b: Array, tokens_b: Array, trained_share: float = 1.0) -> Array:
    """FLOP of training: 6 a parameter and token (2 forward, 4 backward); LoRA skips the weight
    gradients of frozen parameters: 4 instead of 6 (`trained_share` 0)."""
    return np.asarray((4 + 2 * trained_share) * 1e18 * params_b * tokens_b)
