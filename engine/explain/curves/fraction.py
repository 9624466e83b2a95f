"""Question 3, the parallelizable fraction: speed-ups, timings, prices, where GPUs pay."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from engine.assessment import (
    Assessment,
)
from engine.decide.context import setting
from engine.decide.inputs import resolve, stated_fraction
from engine.decide.priors import likely, prior
from engine.errors import InputError
from engine.estimate.scaling import (
    FractionFromTimings,
    UslFit,
    amdahl_speedup,
    crossover,
    crossover_fraction,
    fit_usl,
    gpu_time_relative,
    parallel_fraction_from_timings,
    usl_peak_n,
    usl_throughput,
)
from engine.explain.curves.common import Points, times
from engine.wording import number, percent, rough
from engine.workload.workload import Workload

# The articles' marks, drawn beside what is computed (data/rules.csv has their claims).
ARTICLE_RATIO, ARTICLE_SPEEDUP, ARTICLE_FRACTION = 3.2, 50.0, 0.70


def speedup_curve(p: float, most: int = 1024) -> list[tuple[float, float]]:
    """Amdahl's speed-up on 1, 2, 4 … machines."""
    counts = [2**i for i in range(int(np.log2(most)) + 1)]
    return [(float(n), float(amdahl_speedup(p, float(n)))) for n in counts]


def speedup_limit(p: float) -> float | None:
    """Speed-up that no number of machines exceeds, 1/(1 − p); None without a serial part."""
    return 1 / (1 - p) if p < 1 else None


SIZES = (2, 4, 8, 16, 64, 256, 1024)
HALF = 0.5
AS_MUCH = 1.005  # times, up to which two costs read alike


def speedups_of(p: float, reading: TimingReading | None, timed: bool) -> list[tuple[int, float]]:
    """Speed-up over one machine at some sizes: by the law of the timings where they are the answer.

    p : parallel fraction, for Amdahl's law
    """
    if reading is not None and reading.fitted and timed:
        n, gain = (np.array(x) for x in zip(*reading.fitted, strict=True))
        return [(size, float(np.interp(size, n, gain))) for size in SIZES]
    return [(size, float(amdahl_speedup(p, float(size)))) for size in SIZES]


def efficiency_rows(p: float, reading: TimingReading | None, timed: bool) -> list[dict[str, str]]:
    """What each machine of so many does against one alone, and what a run costs against one.

    Efficiency is the speed-up over the machines. They are paid while the run lasts, so a run on n
    of them costs n over the speed-up of what it costs on one.
    """
    return [
        {
            "Machines": f"{n:,}",
            "Times as fast": rough(gain),
            "Each does": f"{percent(gain / n)} of one alone",
            "A run costs": _dearer(n / gain),
        }
        for n, gain in speedups_of(p, reading, timed)
    ]


def second_machine(p: float, reading: TimingReading | None, timed: bool) -> str:
    """What a second machine brings, and from how many on each does less than half of one alone."""
    gain = speedups_of(p, reading, timed)[0][1]
    if gain <= 1:
        return "A second machine makes it no faster: scale up instead, to a larger one."
    dear = 2 / gain
    told = (
        f"A second machine makes it {rough(gain)} times as fast, so a run costs {_dearer(dear)} "
        f"{'as' if dear < AS_MUCH else 'than'} on one."
    )
    half = half_efficient(p, reading, timed)
    if half is None:
        return f"{told} Up to 1,024 machines each does more than half of what one does alone."
    return (
        f"{told} From {half:,} machines on a run costs more than twice: a larger machine is the "
        "better buy there, if there is one."
    )


def _dearer(times_as_dear: float) -> str:
    """How much more a run costs than on one machine."""
    if times_as_dear < AS_MUCH:
        return "as much"
    if times_as_dear < 2:
        return f"{times_as_dear - 1:.0%} more"
    return f"{rough(times_as_dear)} times"


def half_efficient(p: float, reading: TimingReading | None, timed: bool) -> int | None:
    """Machines from which each does less than half of one alone; None up to 1,024.

    By Amdahl's law n / speed-up = n·(1 − p) + p, above 2 for n > (2 − p)/(1 − p).
    """
    if reading is not None and reading.fitted and timed:
        found = [n for n, gain in reading.fitted if gain < HALF * n]
        return int(np.ceil(found[0])) if found else None
    if p >= 1:
        return None
    least = int(np.floor((1 / HALF - p) / (1 - p) + 1e-9)) + 1
    return least if least <= 1024 else None


@dataclass(frozen=True, slots=True)
class TimingReading:
    """What measured timings say: Amdahl's fraction from two, the USL from three or more.

    points : machines and speed-up over one machine (the smallest size scaled by the law)
    fitted : the law through them over 1 to 1,024 machines, empty when Amdahl says it all
    peak : machines at which that law is fastest (infinity for never), and how fast
    """

    amdahl: FractionFromTimings
    usl: UslFit | None
    points: Points
    fitted: Points
    peak: tuple[float, float]
    message: str


def read_timings(workload: Workload) -> TimingReading | None:
    """The diagnosis of the timings given, None with fewer than two sizes."""
    timings = sorted(workload.timings)
    sizes = [n for n, _ in timings]
    if len(set(sizes)) < 2:
        return None
    (n1, t1), (n2, t2) = timings[0], timings[-1]
    pair = parallel_fraction_from_timings(t1, n1, t2, n2)
    message, fit = pair.text, None
    law: tuple[float, float] | None = None  # σ, κ
    if len(set(sizes)) >= 3:
        try:
            fit = fit_usl(sizes, [1 / t for _, t in timings])
            law = (fit.sigma, fit.kappa)
            message = _usl_words(pair, fit)
        except InputError as error:
            message += f" {error}"
    elif pair.diagnosis == "retrograde":
        law, message = _communication_alone(t1, n1, t2, n2)
    if law is None:
        base = float(amdahl_speedup(pair.fraction if pair.fraction is not None else 1.0, n1))
        points = tuple((n, base * t1 / t) for n, t in timings)
        return TimingReading(pair, fit, points, (), (np.inf, np.inf), message)
    grid = np.geomspace(1, 1024, 61)
    one = float(usl_throughput(1.0, 1.0, *law))
    curve = np.asarray(usl_throughput(grid, 1.0, *law)) / one
    base = float(usl_throughput(n1, 1.0, *law)) / one
    peak = float(usl_peak_n(*law))
    fastest = float(usl_throughput(min(peak, 1e9), 1.0, *law)) / one
    return TimingReading(
        pair, fit, tuple((n, base * t1 / t) for n, t in timings),
        tuple((float(n), float(x)) for n, x in zip(grid, curve, strict=True)),
        (peak, fastest), message,
    )  # fmt: skip


def speedup_title(likely_p: float, reading: TimingReading | None, told: bool) -> str:
    """What the picture of the speed-up says: the timings where they are the answer, else Amdahl."""
    if reading is not None and reading.fitted and told:
        n, best = reading.peak
        if n < 1024:
            return f"Fastest on about {n:.0f} machines: {times(best)} times one"
        return f"1,024 machines make it {times(reading.fitted[-1][1])} times as fast"
    top = speedup_curve(likely_p)[-1][1]
    return f"1,024 machines make it {times(top)} times as fast"


def _communication_alone(
    t1: float, n1: float, t2: float, n2: float
) -> tuple[tuple[float, float] | None, str]:
    """The law (σ = 0, κ) of two timings of which the larger size is slower, and its words."""
    slower = f"{n2:g} machines are slower than {n1:g}. No parallelizable fraction explains that; "
    kappa = coherency_from_two(t1, n1, t2, n2)
    if kappa is None:
        return None, slower + "nor does talking to each other: look at the timings again."
    peak = float(usl_peak_n(0.0, kappa))
    return (0.0, kappa), (
        f"{slower}talking to each other does: beyond about {peak:.0f} machines each further one "
        "slows all. A third timing makes this firm."
    )


def coherency_from_two(t1: float, n1: float, t2: float, n2: float) -> float | None:
    """The κ of the USL without contention through two timings, more machines being slower.

    From t₁/t₂ = (n₂/n₁)·(1 + κn₁(n₁ − 1))/(1 + κn₂(n₂ − 1)). None where no κ is slow enough, or
    a size is below one machine.
    """
    gain, ratio = t1 / t2, n2 / n1
    rest = gain * n2 * (n2 - 1) - ratio * n1 * (n1 - 1)
    return (ratio - gain) / rest if rest > 0 and n1 >= 1 else None


def _usl_words(pair: FractionFromTimings, fit: UslFit) -> str:
    """The fitted law in words: what limits, and where more machines stop helping."""
    if pair.diagnosis == "superlinear":
        return pair.text
    miss = fit.worst_error
    closeness = f"within {miss:.0%} of your timings" if miss >= 0.005 else "through your timings"
    if np.isfinite(fit.peak_n) and fit.peak_n < 1e5:
        return (
            f"Fastest on about {fit.peak_n:,.0f} machines; beyond, each further one slows all. "
            f"Contention {rough(fit.sigma)}, coherency {rough(fit.kappa)} (Universal "
            f"Scalability Law, {closeness})."
        )
    limit = f"never more than {number(1 / fit.sigma)} times" if fit.sigma > 0 else "without a limit"
    return (
        f"Contention {rough(fit.sigma)} and no coherency: faster with every machine, {limit} "
        f"(Universal Scalability Law, {closeness})."
    )


def present_fraction(workload: Workload) -> tuple[float, float, float, bool]:
    """The fraction with its range, and whether it was answered."""
    r = resolve(workload).ranges["parallel_fraction"]
    return r.low, r.likely, r.high, stated_fraction(workload) is not None


def usual_fraction(workload: Workload) -> tuple[float, float, float, str]:
    """The fraction usual for this kind of work, with its range and source."""
    p = prior(workload.kind, "parallel_fraction")
    return p.low, p.likely, p.high, p.source


@dataclass(frozen=True, slots=True)
class PriceRatio:
    """Price of one GPU over that of a 96-vCPU server, both on demand [USD/h]."""

    ratio: float
    gpu: str
    gpu_usd_per_hour: float
    server_usd_per_hour: float


def price_ratio(workload: Workload, today: date) -> PriceRatio:
    """The ratio at today's prices: the GPU and the server to which the speed-up s refers.

    The GPU is the reference H100 (or the first on offer where the data may be), the server the
    median of what is on offer, by the vCPU.
    """
    context = setting(workload, None, today).context
    gpu = context.reference.on_demand_usd_per_hour()
    server = context.cpu_usd_per_vcpu_hour * likely("reference_cpu_vcpu")
    return PriceRatio(gpu / server, context.reference.name, gpu, server)


@dataclass(frozen=True, slots=True)
class CrossoverPicture:
    """Relative cost of the GPU against the CPU server over p; below 1 the GPU is the cheaper.

    at : p from which on it is the cheaper; infinity for never, 0 for always
    article : the same curve for the article's price ratio and speed-up
    at_with_io : `at` once the share of I/O is counted, which no GPU shortens
    """

    points: Points
    article: Points
    price_ratio: float
    speedup: float
    at: float
    at_with_io: float
    io_share: float
    cost_now: float
    title: str
    message: str


def crossover_picture(workload: Workload, ratio: float) -> CrossoverPicture:
    """Where the GPU becomes the cheaper for a price ratio and the user's own speed-up.

    ratio : price per hour of the GPU over that of a 96-vCPU server

    Raises
    ------
    InputError : when the ratio is no positive number
    """
    r = resolve(workload).ranges
    s, b, p = (r[n].likely for n in ("gpu_speedup", "io_share", "parallel_fraction"))
    words = crossover(ratio, s)
    at = float(crossover_fraction(ratio, s))
    with_io = at / (1 - b)  # r·((1 − b)((1 − p) + p/s) + b) = 1
    title = {
        "above": f"The GPU is the cheaper above {at:.0%} parallel work",
        "always": "At this price the GPU is the cheaper at any fraction",
        "never": "At this price and speed the GPU is never the cheaper",
        "below": words.text.rstrip("."),
    }[words.verdict]
    message = f"{rough(ratio)} times the price, {number(s)} times the speed on the parallel part."
    if words.verdict == "above":
        counted = f"{with_io:.0%}" if with_io <= 1 else "beyond any fraction"
        message += f" I/O takes {b:.0%} of the time here; counting it, the crossover is {counted}."
    return CrossoverPicture(
        _cost_curve(ratio, s), _cost_curve(ARTICLE_RATIO, ARTICLE_SPEEDUP), ratio, s, at, with_io,
        b, ratio * float(gpu_time_relative(p, s)), title, message,
    )  # fmt: skip


def crossover_reason(picture: CrossoverPicture, answer: Assessment) -> str:
    """The sum of this page for the 70% rule, and that the whole answer weighs more than it."""
    gpu = picture.cost_now < 1
    verb = "costs" if gpu else "would cost"
    reason = f"on the GPU the work {verb} {rough(picture.cost_now)} of the server's"
    if gpu == (answer.best.placement != "cpu"):
        return reason
    return f"{reason}, yet I/O, the size of the machines and the terms weigh more in the whole sum"


def _cost_curve(ratio: float, s: float) -> Points:
    shares = np.linspace(0, 1, 51)
    cost = ratio * np.asarray(gpu_time_relative(shares, s))
    return tuple((float(p), float(c)) for p, c in zip(shares, cost, strict=True))
