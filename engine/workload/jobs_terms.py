"""The terms of the page on compute jobs and small models: what the job's own answers don't say."""

from __future__ import annotations

from enum import StrEnum

from engine.workload.terms import Terms, term


class JobField(StrEnum):
    """The field of work whose published speed-ups are taken; `auto` follows the kind of work."""

    auto = "auto"
    molecular_dynamics = "molecular_dynamics"
    quantum_chemistry = "quantum_chemistry"
    cfd = "cfd"
    weather = "weather"
    particle_transport = "particle_transport"
    seismic = "seismic"
    genomics = "genomics"
    imaging = "imaging"
    finance = "finance"
    linear_algebra = "linear_algebra"
    trees = "trees"
    data = "data"
    graph = "graph"
    optimization = "optimization"
    rl = "rl"
    rendering = "rendering"
    video = "video"
    search = "search"
    inference = "inference"


FIELD_LABELS = {
    JobField.auto: "As the kind of work",
    JobField.molecular_dynamics: "Molecular dynamics",
    JobField.quantum_chemistry: "Quantum chemistry",
    JobField.cfd: "Fluid dynamics",
    JobField.weather: "Weather and climate",
    JobField.particle_transport: "Particle transport",
    JobField.seismic: "Seismics",
    JobField.genomics: "Genomics",
    JobField.imaging: "Microscopy and imaging",
    JobField.finance: "Monte Carlo in finance",
    JobField.linear_algebra: "FFT and linear algebra",
    JobField.trees: "Training boosted trees",
    JobField.data: "ETL and databases",
    JobField.graph: "Graphs",
    JobField.optimization: "Routes and linear programs",
    JobField.rl: "Simulators for reinforcement learning",
    JobField.rendering: "Rendering",
    JobField.video: "Video encoding",
    JobField.search: "Similarity search",
    JobField.inference: "Inference of nets",
}


class JobsTerms(Terms):
    """What the job's answers don't say. None takes the value of the tables."""

    # --- compute jobs
    field: JobField = term(JobField.auto, "Field of work", "field")
    copied_gb: float | None = term(
        None, "Copied to the GPU and back in a run", "copy", unit="GB", ge=0, le=1e12,
        allow_inf_nan=False, help="Both ways together; left open, nothing",
    )  # fmt: skip
    read_gb: float | None = term(
        None, "Read from storage in a run", "read", unit="GB", ge=0, le=1e12, allow_inf_nan=False,
        help="Whatever computes, the run can't be faster than this is read; left open, nothing",
    )  # fmt: skip
    feed_gb_per_s: float | None = term(
        None, "What storage feeds one machine", "feed", unit="GB/s", gt=0, le=10_000,
        allow_inf_nan=False,
    )  # fmt: skip
    licence_covers_gpus: bool = term(
        True, "The software's licence covers GPUs", "licence",
        help="Some commercial codes have no GPU version, or sell it apart",
    )  # fmt: skip
    gpu_fee_usd_per_month: float = term(
        0.0, "Licence fee for GPUs", "fee", unit="USD/month", ge=0, le=1e9, allow_inf_nan=False,
        help="On top of what the CPU version costs",
    )  # fmt: skip

    # --- small models
    like: str = term(
        "", "Your model is most like", "like", pattern=r"^[a-z0-9-]{0,40}$",
        help="A model that was measured on CPUs and GPUs",
    )  # fmt: skip
    size: float | None = term(
        None, "Work of one item, that model's being 1", "size", unit="times", gt=0, le=1e6,
        allow_inf_nan=False, help="By parameters, pixels or tokens",
    )  # fmt: skip
    hold_ms: float = term(
        0.0, "A batch is held open for", "hold", unit="ms", ge=0, le=60_000, allow_inf_nan=False,
        help="So that others can join it; it is lost to the latency target",
    )  # fmt: skip
    burst: float = term(
        1.0, "Burstiness of requests", "burst", unit="cv²", ge=0, le=100, allow_inf_nan=False,
        help="Squared variation of the gaps: 0 of a metronome, 1 of chance, more in bursts",
    )  # fmt: skip
