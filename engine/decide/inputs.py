"""From answers to ranges: every number that the decision uses, answered or not.

An answered number becomes a range as wide as the person is unsure; an open one takes the prior
of its kind. `draws` turns the ranges into quasi-random samples: two-piece lognormal for sizes,
the same on log-odds for fractions, so that 10% and 90% of the draws lie beyond low and high.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import gammaincinv
from scipy.stats import norm, qmc

from engine.decide import bottleneck
from engine.decide.idle import ONE_RUN, nothing_to_do
from engine.decide.numbers import Array
from engine.decide.priors import likely, parameter, parameters, prior
from engine.estimate.scaling import parallel_fraction_from_timings
from engine.estimate.speedups import pooled_for
from engine.workload.answers import Certainty, Current, Kind, ModelClass, UtilizationBy
from engine.workload.jobs_terms import JobField
from engine.workload.workload import LLM_TRAINING, SERVICES, Workload

SPEEDUPS = "data/speedups.csv, published figures of this kind of work"
ALMOST_ALL = 0.999  # two timings can't tell a smaller serial part than this
Z90 = float(norm.ppf(0.9))


@dataclass(frozen=True, slots=True)
class Range:
    """10th percentile, point and 90th percentile of one input."""

    low: float
    likely: float
    high: float
    unit: str
    source: str
    answered: bool
    certainty: str
    fraction: bool = False


@dataclass(frozen=True, slots=True)
class Inputs:
    """All ranges of a workload, and the shares of time by resource (they sum to 1)."""

    ranges: Mapping[str, Range]
    shares: Mapping[str, float]

    def point(self) -> dict[str, Array]:
        """Every input at its likely value, as arrays of length 1."""
        return {name: np.array([r.likely]) for name, r in self.ranges.items()}

    def draws(self, n: int) -> dict[str, Array]:
        """Scrambled Sobol draws of every input; `n` is a power of two."""
        names = list(self.ranges)
        z = standard_normal(len(names), n)
        return {name: sample(self.ranges[name], z[:, i]) for i, name in enumerate(names)}


@lru_cache(maxsize=8)
def standard_normal(dimensions: int, n: int) -> Array:
    """Scrambled Sobol points as standard normals, shape (n, dimensions); the seed is fixed."""
    sobol = qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng(20261201))
    points = sobol.random(n)
    return np.asarray(norm.ppf(np.clip(points, 1e-6, 1 - 1e-6)), dtype=np.float64)


@lru_cache(maxsize=32)
def dirichlet_weights(weights: tuple[int, ...], moved: bool, n: int) -> Array:
    """Draws of the criteria's weights, shape (n, len(weights)), each row summing to 1.

    Weights that the user moved are taken as they are. Otherwise they are drawn from a Dirichlet
    distribution around the default weights with the concentration of the flat one (the sum of
    its parameters is the number of criteria): stochastic multicriteria acceptability analysis
    (Lahdelma and Salminen 2001), centred on the weights that the recommendation uses.
    """
    w = np.array(weights, dtype=float) / sum(weights)
    if moved:
        return np.broadcast_to(w, (n, len(w)))
    u = qmc.Sobol(len(w), scramble=True, rng=np.random.default_rng(7)).random(n)
    alpha = np.maximum(w * len(w), 1e-3)
    gamma = np.asarray(gammaincinv(alpha[None, :], np.clip(u, 1e-9, 1 - 1e-9)))
    gamma = np.maximum(gamma, 1e-12)
    return np.asarray(gamma / gamma.sum(axis=1, keepdims=True), dtype=np.float64)


def sample(r: Range, z: Array) -> Array:
    """Two-piece (log-odds for fractions, log otherwise) normal through the three quantiles."""
    if r.low == r.high:
        return np.full_like(z, r.likely)
    if r.fraction:
        low, mid, high = (_logit(v) for v in (r.low, r.likely, r.high))
        step = np.where(z < 0, mid - low, high - mid) / Z90
        return np.asarray(1 / (1 + np.exp(-(mid + step * z))))
    floor = 1e-9
    low, mid, high = (float(np.log(max(v, floor))) for v in (r.low, r.likely, r.high))
    step = np.where(z < 0, mid - low, high - mid) / Z90
    return np.asarray(np.exp(mid + step * z))


def _logit(v: float) -> float:
    v = min(max(v, 1e-6), 1 - 1e-6)
    return float(np.log(v / (1 - v)))


def _spread(certainty: Certainty) -> float:
    return likely(f"certainty_{certainty.value}")


def answered(value: float, certainty: Certainty, unit: str, field: str) -> Range:
    """The range of an answered size: a factor either way."""
    f = _spread(certainty)
    return Range(value / f, value, value * f, unit, f"your answer ({field})", True, certainty)


def answered_fraction(value: float, certainty: Certainty, field: str) -> Range:
    """The range of an answered fraction: a factor either way on its odds, as the ends are sharp."""
    f = _spread(certainty) ** 1.5
    odds = value / max(1 - value, 1e-6)
    low, high = odds / f / (1 + odds / f), odds * f / (1 + odds * f)
    return Range(
        min(low, value),
        value,
        max(high, value),
        "share",
        f"your answer ({field})",
        True,
        certainty,
        fraction=True,
    )


def from_prior(kind: Kind, field: str, fraction: bool = False) -> Range:
    """The range of an open question: the prior of its kind."""
    p = prior(kind, field)
    return Range(p.low, p.likely, p.high, p.unit, p.source, False, "unknown", fraction)


def _sized(workload: Workload, field: str, certainty: Certainty, name: str = "") -> Range:
    """A size as answered, else its prior under the field's (or another) name."""
    value = getattr(workload, field)
    unit = prior(workload.kind, name or field).unit
    if value is not None:
        return answered(float(value), certainty, unit, field)
    return from_prior(workload.kind, name or field)


def resolve(workload: Workload) -> Inputs:
    """Every input of the decision for this workload.

    The point values are the answers; where a question is open, the kind's prior.
    """
    w, kind = workload, workload.kind
    shares = bottleneck.shares(w)
    r: dict[str, Range] = {}

    fraction = stated_fraction(w)
    if fraction is not None:
        sure = w.parallel_fraction_sure
        r["parallel_fraction"] = answered_fraction(fraction, sure, "parallel_fraction")
    else:
        r["parallel_fraction"] = from_prior(kind, "parallel_fraction", fraction=True)
    if w.gpu_speedup is not None:
        r["gpu_speedup"] = answered(
            w.gpu_speedup, w.gpu_speedup_sure, "times one 96-vCPU server", "gpu_speedup"
        )
    else:
        r["gpu_speedup"] = published_speedup(kind) or from_prior(kind, "gpu_speedup")
    io = min(shares["disk_io"] + (0.0 if kind in LLM_TRAINING else shares["network"]), 0.97)
    told = w.answered["bottleneck"]
    r["io_share"] = answered_fraction(
        io, Certainty.roughly if told else Certainty.guess, "bottleneck"
    )
    if not told:
        r["io_share"] = Range(
            r["io_share"].low, io, r["io_share"].high, "share",
            prior(kind, "share_disk_io").source, False, "unknown", fraction=True,
        )  # fmt: skip
    _amount_of_work(w, r)
    _load(w, r)
    _model(w, r)
    r["monthly_variation"] = _sized(w, "monthly_variation", Certainty.roughly)
    if w.monthly_variation is not None:
        v = w.monthly_variation
        r["monthly_variation"] = Range(
            v * 0.7, v, v * 1.4, "share", "your answer (monthly_variation)", True, "roughly"
        )
    r["working_set_gb"] = _sized(w, "working_set_gb", Certainty.roughly)
    r["contention"] = from_prior(kind, "contention")
    r["rewrite_months"] = from_prior(kind, "rewrite_months")
    for name in (
        "gpu_market_factor", "cpu_market_factor", "gpu_efficiency_factor",
        "cpu_efficiency_factor", "spot_capacity_share", "spot_interruptions_per_node_day",
        "restart_h", "mtbf_gpu_hours",
        "owning_place_in_range", "gpu_start_h", "cpu_start_h",
    ):  # fmt: skip
        p = parameter(name)
        r[name] = Range(
            p.low, p.likely, p.high, p.unit, p.source, False, "parameter",
            fraction=name == "spot_capacity_share",
        )  # fmt: skip
    return Inputs(r, shares)


def published_speedup(kind: Kind, field: JobField = JobField.auto) -> Range | None:
    """The speed-up of one H100 over one server as published for this field of work, if it is."""
    told = pooled_for(kind, field)
    if told is None:
        return None
    unit = prior(kind, "gpu_speedup").unit
    return Range(told.low, told.likely, told.high, unit, SPEEDUPS, False, "unknown")


def stated_fraction(w: Workload) -> float | None:
    """The parallelizable fraction as stated, or as two timings imply it, within (0, 1).

    Timings use the smallest and the largest size (Amdahl); a superlinear or retrograde pair is
    taken at the end of the range, and the question's page says what it means.
    """
    if w.parallel_fraction is not None:
        return w.parallel_fraction
    if len({n for n, _ in w.timings}) < 2:
        return None
    points = sorted(w.timings)
    (n1, t1), (n2, t2) = points[0], points[-1]
    fit = parallel_fraction_from_timings(t1, n1, t2, n2)
    if fit.diagnosis == "superlinear":
        return ALMOST_ALL
    if fit.fraction is None:
        return 0.0
    return float(min(fit.fraction, ALMOST_ALL))


def _amount_of_work(w: Workload, r: dict[str, Range]) -> None:
    """Runs a month, machines and hours today, and the patience for one run."""
    kind, idle = w.kind, nothing_to_do(w)
    hours = None if idle else w.stated_hours_per_month
    sure = w.useful_hours_sure
    if w.runs_per_month is not None and w.runs_per_month > 0 and not idle:
        r["runs_per_month"] = answered(w.runs_per_month, sure, "runs/month", "runs_per_month")
    elif kind is Kind.llm_pretraining:
        per_month = 1.0 / w.horizon_months
        r["runs_per_month"] = Range(
            per_month, per_month, per_month * 2, "runs/month",
            "one run within the horizon", False, "unknown",
        )  # fmt: skip
    elif idle:
        r["runs_per_month"] = Range(1, 1, 1, "runs/month", ONE_RUN, True, "exact")
    else:
        r["runs_per_month"] = from_prior(kind, "runs_per_month")
    runs = r["runs_per_month"].likely
    if hours is not None:
        r["useful_hours_per_month"] = answered(hours, sure, "h/month", "utilization")
    elif w.hours_per_run is not None and w.hours_per_run > 0:
        r["useful_hours_per_month"] = answered(
            w.hours_per_run * runs, sure, "h/month", "hours_per_run"
        )
    else:
        r["useful_hours_per_month"] = from_prior(kind, "useful_hours_per_month")
        if idle:  # of the usual job one run
            usual, each = r["useful_hours_per_month"], runs / prior(kind, "runs_per_month").likely
            r["useful_hours_per_month"] = replace(
                usual, low=usual.low * each, likely=usual.likely * each, high=usual.high * each
            )
    if w.current_units is not None:
        what = "GPUs" if w.current is Current.gpu else "servers"
        r["current_units"] = answered(w.current_units, Certainty.exact, what, "current_units")
    elif hours is not None or w.hours_per_run:
        r["current_units"] = Range(
            1, 1, 4, "servers", "taken as one machine: the number was not given", False, "unknown"
        )
    else:
        r["current_units"] = from_prior(kind, "current_units")
    patience = from_prior(kind, "patience_h")
    if w.deadline_days is None and w.hours_per_run and w.kind not in LLM_TRAINING:
        patience = answered(w.hours_per_run, Certainty.roughly, "h", "hours_per_run, as today")
    if w.deadline_days is not None:
        patience = answered(w.deadline_days * 24, Certainty.exact, "h", "deadline_days")
    r["patience_h"] = patience


def _load(w: Workload, r: dict[str, Range]) -> None:
    """Rate, peak and CPU time per item of a service."""
    if w.kind not in SERVICES | {Kind.pipeline}:
        return
    r["rate_per_s"] = _sized(w, "rate_per_s", Certainty.roughly)
    if w.rate_per_s == 0:
        r["rate_per_s"] = Range(0, 0, 0, "1/s", "your answer (rate_per_s)", True, "exact")
    r["peak_factor"] = _sized(w, "peak_factor", Certainty.roughly)
    low = max(r["peak_factor"].low, 1.0)
    r["peak_factor"] = Range(
        low, max(r["peak_factor"].likely, low), max(r["peak_factor"].high, low),
        "times", r["peak_factor"].source, r["peak_factor"].answered, r["peak_factor"].certainty,
    )  # fmt: skip
    r["cpu_ms_per_item"] = _sized(w, "cpu_ms_per_item", Certainty.roughly)


def _model(w: Workload, r: dict[str, Range]) -> None:
    """Model size, tokens and items."""
    kind = w.kind
    if kind in LLM_TRAINING:
        r["model_params_b"] = _sized(w, "model_params_b", Certainty.exact)
        if w.train_tokens_b is not None:
            r["train_tokens_b"] = answered(
                w.train_tokens_b, Certainty.roughly, "billion tokens", "train_tokens_b"
            )
        elif w.current is Current.gpu and w.current_units and w.stated_hours_per_month:
            r["train_tokens_b"] = _tokens_of_today(w, r)
        elif kind is Kind.llm_pretraining:
            p = prior(kind, "tokens_per_param")
            size = r["model_params_b"].likely
            r["train_tokens_b"] = Range(
                p.low * size, p.likely * size, p.high * size,
                "billion tokens", p.source, False, "unknown",
            )  # fmt: skip
        else:
            r["train_tokens_b"] = from_prior(kind, "train_tokens_b")
    _inference(w, r)


def _tokens_of_today(w: Workload, r: dict[str, Range]) -> Range:
    """Tokens of a run as today's GPU-hours imply them on H100-class GPUs: 6·N·D = FLOP."""
    runs = r["runs_per_month"].likely
    gpu_hours = (w.stated_hours_per_month or 0.0) / max(runs, 1e-6) * (w.current_units or 1.0)
    flops = gpu_hours * 3600 * likely("reference_gpu_tflops") * 1e12 * likely("llm_mfu")
    tokens = flops / (6e18 * (w.active_params_b or r["model_params_b"].likely))
    source = "your GPU-hours today at the usual share of an H100's peak"
    return Range(tokens / 1.5, tokens, tokens * 1.5, "billion tokens", source, True, "roughly")


def _inference(w: Workload, r: dict[str, Range]) -> None:
    """Model, tokens and items of inference."""
    kind = w.kind
    if kind in (Kind.batch_inference, Kind.online_inference, Kind.pipeline):
        neural = kind is Kind.pipeline or w.model_class is not ModelClass.llm
        name = "neural_params_b" if neural else "model_params_b"
        r["model_params_b"] = _sized(w, "model_params_b", Certainty.exact, name)
        r["tokens_in"] = _sized(w, "tokens_in", Certainty.roughly)
        r["tokens_out"] = _sized(w, "tokens_out", Certainty.roughly)
    if kind is Kind.batch_inference:
        r["items_per_run"] = _sized(w, "items_per_run", Certainty.roughly)


__all__ = [
    "Inputs",
    "Range",
    "UtilizationBy",
    "dirichlet_weights",
    "parameters",
    "resolve",
    "sample",
    "standard_normal",
]
