"""The numbers behind the pictures of the four questions: plain points with units, no drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from engine.assessment import Assessment
from engine.catalogue import load_catalogue
from engine.decide import bottleneck
from engine.decide.candidates import Price, Unit
from engine.decide.context import setting
from engine.decide.inputs import resolve, stated_fraction
from engine.decide.priors import likely, prior
from engine.errors import InputError
from engine.estimate.reliability import (
    availability_k_of_n,
    false_alarms,
    fleet_mtbf,
    goodput,
    young_interval,
)
from engine.estimate.scaling import (
    FractionFromTimings,
    UslFit,
    amdahl_speedup,
    crossover_fraction,
    fit_usl,
    gpu_time_relative,
    parallel_fraction_from_timings,
    usl_throughput,
)
from engine.workload.answers import BOTTLENECK_LABELS, SYMPTOM_LABELS, Bottleneck, FailureMode
from engine.workload.workload import HOURS_PER_MONTH, Workload

# The articles' marks, drawn beside what is computed (data/rules.csv has their claims).
UTILIZATION_MARKS = ((0.30, "003: CPUs below"), (0.40, "003: rent below"),
                     (0.50, "001: own above"), (0.60, "003: build above"))  # fmt: skip
ARTICLE_RATIO, ARTICLE_SPEEDUP, ARTICLE_FRACTION = 3.2, 50.0, 0.70
CHECKPOINT_MARKS_H = ((0.25, "003: every 15 min"), (6.0, "000: every 6 h"))


# --- question 1


@dataclass(frozen=True, slots=True)
class TimeShare:
    """Share of the time of one resource, and whether it is the largest."""

    resource: str
    title: str
    share: float
    largest: bool


def time_shares(workload: Workload) -> list[TimeShare]:
    """The shares of time that the answers imply, largest first."""
    shares = bottleneck.shares(workload)
    top = max(shares, key=lambda k: shares[k])
    return [
        TimeShare(k, BOTTLENECK_LABELS[Bottleneck(k)].split(" (")[0], v, k == top)
        for k, v in sorted(shares.items(), key=lambda pair: -pair[1])
    ]


def symptom_reading(workload: Workload) -> list[tuple[str, str, float]]:
    """For each symptom ticked: its words, the resource it points to most, and that share."""
    table = bottleneck.symptom_shares()
    found = []
    for symptom in workload.symptoms:
        shares = table[symptom]
        top = max(shares, key=lambda k: shares[k])
        name = BOTTLENECK_LABELS[Bottleneck(top)].split(" (")[0].lower()
        found.append((SYMPTOM_LABELS[symptom], name, shares[top]))
    return found


def most_a_gpu_can_do(workload: Workload) -> float:
    """Largest speed-up of the whole job by a GPU of any speed: 1/((1 − b)(1 − p) + b)."""
    ranges = resolve(workload).ranges
    p, b = ranges["parallel_fraction"].likely, ranges["io_share"].likely
    return 1 / max((1 - b) * (1 - p) + b, 1e-9)


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
        """Attainable GFLOP/s at each intensity."""
        return [min(self.peak_gflops, i * self.bandwidth_gb_per_s) for i in intensities]


def roofs() -> list[Roof]:
    """One CPU server and two GPUs of the catalogue, dense 16-bit peaks."""
    catalogue = load_catalogue()
    server = catalogue.cpu_servers["m7i-24xlarge"]
    found = [
        Roof(
            f"One CPU server ({server.name})", "CPU", server.peak_bf16_gflops or 0.0,
            server.memory_bandwidth_gb_per_s or 1.0,
        )
    ]  # fmt: skip
    for sku in ("l40s", "h100-sxm-80gb"):
        a = catalogue.accelerators[sku]
        peak = (a.bf16_tflops_dense or 0.0) * 1000
        found.append(Roof(f"One {a.name}", "GPU", peak, a.memory_bandwidth_gb_per_s))
    return found


def intensity(workload: Workload) -> tuple[float, float, float]:
    """Arithmetic intensity of this kind of work: low, likely, high [FLOP/byte]."""
    p = prior(workload.kind, "intensity_flop_per_byte")
    return p.low, p.likely, p.high


# --- question 2


@dataclass(frozen=True, slots=True)
class Picture:
    """A small living figure: points (x, y), what they are, marks on x, and the message."""

    title: str
    x_title: str
    y_title: str
    points: tuple[tuple[float, float], ...]
    marks: tuple[tuple[float, str], ...]
    message: str
    log_x: bool = False
    percent_y: bool = False


REMEDIES = ("Replicas", "Checkpoints", "Queue", "Quorum", "Validation", "Headroom", "Short terms")
ASKS: dict[FailureMode, tuple[str, ...]] = {
    FailureMode.machine_loss: ("Replicas", "Queue", "Headroom"),
    FailureMode.data_loss: ("Replicas", "Quorum", "Validation"),
    FailureMode.long_run_loss: ("Checkpoints", "Validation"),
    FailureMode.silent_corruption: ("Validation", "Checkpoints"),
    FailureMode.late_answers: ("Headroom", "Queue", "Replicas"),
    FailureMode.wasted_spend: ("Short terms", "Queue"),
}


def fleet_usd_per_hour(answer: Assessment) -> float:
    """What the recommended machines cost an hour, at the rates of their terms."""
    total = 0.0
    for stage in answer.best.stages:
        if stage.price is not None:
            total += stage.price.usd_per_unit_hour * stage.units
        else:
            total += stage.usd_per_month.likely / HOURS_PER_MONTH
    return total


def failure_picture(workload: Workload, units: int, usd_per_hour: float) -> Picture:
    """The figure that teaches the named failure, for a fleet of this size and price.

    units : GPUs or servers of the recommendation; usd_per_hour : what they cost together
    """
    mode = workload.failure_mode
    if mode is FailureMode.long_run_loss:
        return _checkpoints(units)
    if mode is FailureMode.silent_corruption:
        return _corruption(units, usd_per_hour)
    if mode is FailureMode.late_answers:
        return _waiting()
    if mode is FailureMode.wasted_spend:
        return _idle(usd_per_hour)
    if mode is FailureMode.data_loss:
        return _copies()
    return _redundancy()


def _redundancy() -> Picture:
    one = 0.99
    hours = [(float(n), (1 - float(availability_k_of_n(one, 1, n))) * 8760) for n in range(1, 5)]
    return Picture(
        "Each spare machine cuts the hours away by a hundred",
        "Machines, one of which is needed", "Hours away a year", tuple(hours), (),
        f"At 99% each, one machine is away {hours[0][1]:.0f} hours a year, two together "
        f"{hours[1][1]:.1f}, three {hours[2][1] * 60:.1f} minutes.",
    )  # fmt: skip


def _copies() -> Picture:
    yearly = 0.02
    points = [(float(n), 100 * yearly * (yearly / 365) ** (n - 1)) for n in (1, 2, 3)]
    return Picture(
        "A second copy matters most; a third lets one die while the others agree",
        "Synchronous copies", "Chance of loss a year, %", tuple(points), (),
        "With a disk failing in one of fifty years and replaced within a day. Asynchronous copies "
        "lose what was written since the last one: fourteen minutes in the article's case (000).",
        percent_y=True,
    )  # fmt: skip


def _checkpoints(units: int) -> Picture:
    save, restart = likely("checkpoint_stall_h"), likely("restart_h")
    mtbf = float(fleet_mtbf(likely("mtbf_gpu_hours"), max(units, 1)))
    best = float(young_interval(save, mtbf))
    intervals = np.geomspace(max(best / 30, save), best * 30, 60)
    useful = [(float(t), 100 * float(goodput(save, float(t), mtbf, restart))) for t in intervals]
    return Picture(
        "Save too often and saving costs; too rarely and a failure does",
        "Hours between checkpoints", "Useful share of the time, %", tuple(useful),
        ((best, "best"), *CHECKPOINT_MARKS_H),
        f"On {units:,} units a failure comes every {mtbf:,.0f} hours; saving every "
        f"{best:.1f} hours is best (Young).",
        log_x=True, percent_y=True,
    )  # fmt: skip


def _corruption(units: int, usd_per_hour: float) -> Picture:
    days = (0.25, 0.5, 1, 3, 7, 11, 14)
    points = tuple((d, d * 24 * usd_per_hour) for d in days)
    tests = max(units / 8, 1) * 4 * 30
    return Picture(
        "Every day that an error goes unseen is a day of the fleet thrown away",
        "Days until it is noticed", "Cost of the lost work, USD", points,
        ((3.0, "000: three days unseen"),),
        f"A check at three deviations four times a day raises about "
        f"{float(false_alarms(tests, 3.0)):.1f} false alarms a month on {units:,} units.",
    )  # fmt: skip


def _waiting() -> Picture:
    loads = np.linspace(0.05, 0.95, 40)
    points = tuple((float(r) * 100, 1 / (1 - float(r))) for r in loads)
    target = likely("cpu_pool_target_utilization") * 100
    return Picture(
        "Above about 70% load the waiting explodes",
        "Load at the peak, %", "Time to answer, times the unloaded one", points,
        ((target, "pools are sized here"),),
        "One server with random arrivals (M/M/1); several servers bend later, and no later than "
        "at full load.",
    )  # fmt: skip


def _idle(usd_per_hour: float) -> Picture:
    month = usd_per_hour * HOURS_PER_MONTH
    points = tuple((float(s), month * float(s) / 100) for s in range(0, 101, 10))
    return Picture(
        "Idle machines cost what busy ones do",
        "Idle share of the hours, %", "Wasted, USD a month", points, ((15.0, "000 plans 15%"),),
        f"The recommended machines cost ${month:,.0f} a month when paid for all hours.",
    )  # fmt: skip


# --- question 3


def speedup_curve(p: float, most: int = 1024) -> list[tuple[int, float]]:
    """Amdahl's speed-up on 1, 2, 4 … machines."""
    counts = [2**i for i in range(int(np.log2(most)) + 1)]
    return [(n, float(amdahl_speedup(p, float(n)))) for n in counts]


@dataclass(frozen=True, slots=True)
class TimingReading:
    """What measured timings say: Amdahl's fraction from two, the USL from three or more."""

    amdahl: FractionFromTimings | None
    usl: UslFit | None
    points: tuple[tuple[float, float], ...]
    message: str

    def usl_curve(self, most: float) -> list[tuple[float, float]]:
        """Speed-up of the fitted law over the smallest size."""
        if self.usl is None:
            return []
        first = self.points[0][0]
        base = float(usl_throughput(first, self.usl.lam, self.usl.sigma, self.usl.kappa))
        sizes = np.geomspace(first, max(most, first * 2), 40)
        law = usl_throughput(sizes, self.usl.lam, self.usl.sigma, self.usl.kappa)
        return [(float(n), float(x) / base) for n, x in zip(sizes, np.asarray(law), strict=True)]


def read_timings(workload: Workload) -> TimingReading | None:
    """The diagnosis of the timings given, None with fewer than two sizes."""
    timings = sorted(workload.timings)
    sizes = [n for n, _ in timings]
    if len(set(sizes)) < 2:
        return None
    (n1, t1), (n2, t2) = timings[0], timings[-1]
    pair = parallel_fraction_from_timings(t1, n1, t2, n2)
    points = tuple((n, t1 / t) for n, t in timings)
    fit: UslFit | None = None
    message = pair.text
    if len(set(sizes)) >= 3:
        try:
            fit = fit_usl(sizes, [1 / t for _, t in timings])
            message += (
                f" The Universal Scalability Law fits with contention {fit.sigma:.2g} and "
                f"coherency {fit.kappa:.2g}."
            )
        except InputError as error:
            message += f" {error}"
    return TimingReading(pair, fit, points, message)


@dataclass(frozen=True, slots=True)
class CrossoverPicture:
    """Relative cost of the GPU against the CPU server over p; below 1 the GPU is the cheaper."""

    points: tuple[tuple[float, float], ...]
    price_ratio: float
    speedup: float
    at: float
    message: str


def crossover_picture(workload: Workload, price_ratio: float) -> CrossoverPicture:
    """Where the GPU becomes the cheaper for the user's own price ratio and speed-up.

    price_ratio : price of the GPU over that of a 96-vCPU server
    """
    s = resolve(workload).ranges["gpu_speedup"].likely
    shares = np.linspace(0, 1, 51)
    cost = price_ratio * np.asarray(gpu_time_relative(shares, s))
    at = float(crossover_fraction(price_ratio, s))
    if price_ratio <= 1:
        message = "The GPU costs no more an hour than the server: any parallel part pays."
    elif at >= 1:
        message = f"At {price_ratio:.1f} times the price and {s:.0f} times the speed none pays."
    else:
        message = (
            f"At {price_ratio:.1f} times the price and {s:.0f} times the speed the GPU is the "
            f"cheaper above {at:.0%}."
        )
    points = tuple((float(p), float(c)) for p, c in zip(shares, cost, strict=True))
    return CrossoverPicture(points, price_ratio, s, at, message)


def present_fraction(workload: Workload) -> tuple[float, float, float, bool]:
    """The fraction with its range, and whether it was answered."""
    r = resolve(workload).ranges["parallel_fraction"]
    return r.low, r.likely, r.high, stated_fraction(workload) is not None


# --- question 4


@dataclass(frozen=True, slots=True)
class WayToPay:
    """Cost of a useful hour of one unit over the share of the hours that are useful."""

    label: str
    points: tuple[tuple[float, float], ...]
    usd_per_hour: float
    pays_idle: bool


TERMS = {
    "on_demand": "On demand", "spot": "Spot", "dedicated": "By the month",
    "reserved_1y": "Reserved 1 year", "reserved_3y": "Reserved 3 years", "buy": "Bought",
}  # fmt: skip


def ways_to_pay(unit: Unit) -> list[WayToPay]:
    """Every term the unit can be had on: flat where hours are paid, falling as 1/u where not."""
    shares = np.linspace(0.05, 1.0, 39)
    found = []
    for terms, label in TERMS.items():
        price = unit.prices.get(terms)  # type: ignore[call-overload]
        if price is None:
            continue
        hourly = _hourly(price)
        idle = terms not in ("on_demand", "spot")
        points = tuple((float(u), hourly / float(u) if idle else hourly) for u in shares)
        found.append(WayToPay(label, points, hourly, idle))
    return found


def _hourly(price: Price) -> float:
    return price.likely if price.basis == "hour" else price.likely / HOURS_PER_MONTH


def break_evens(ways: Sequence[WayToPay]) -> list[tuple[str, float | None]]:
    """Utilization above which each committed way beats on demand: c/d; None for never."""
    rent = next((w for w in ways if w.label == "On demand"), None)
    if rent is None:
        return []
    found: list[tuple[str, float | None]] = []
    for way in ways:
        if way.pays_idle:
            share = way.usd_per_hour / rent.usd_per_hour
            found.append((way.label, share if share <= 1 else None))
    return found


def unit_of_interest(workload: Workload, today: date, sku: str) -> Unit | None:
    """The hardware of the recommendation among what is on offer; the reference GPU otherwise."""
    place = setting(workload, None, today)
    units = [u for u in [*place.gpus, *place.cpus] if u.sku == sku]
    return units[-1] if units else place.context.reference


def price_ratio(workload: Workload, today: date) -> float:
    """Price of the cheapest proposed GPU like the reference over a 96-vCPU server's."""
    place = setting(workload, None, today)
    server = place.context.cpu_usd_per_vcpu_hour * 96
    return place.context.reference.on_demand_usd_per_hour() / server


def stated_use(workload: Workload) -> tuple[float, bool]:
    """Useful share of the hours of the month and whether it was answered."""
    r = resolve(workload).ranges["useful_hours_per_month"]
    hours = workload.stated_hours_per_month
    return min((hours if hours is not None else r.likely) / HOURS_PER_MONTH, 1.0), hours is not None


def demand_by_month(workload: Workload) -> tuple[list[float], float]:
    """Twelve months of demand around a mean of 100, and the variation that made them.

    A seasonal wave whose typical deviation from the mean is the variation answered.
    """
    v = resolve(workload).ranges["monthly_variation"].likely
    wave = np.sqrt(2) * v * np.sin(2 * np.pi * (np.arange(12) - 2) / 12)
    return [max(float(100 * (1 + w)), 0.0) for w in wave], v


def committed_level(demand: Sequence[float], ratio: float) -> float:
    """Capacity to commit to: the level exceeded in the share c/d of the months (newsvendor)."""
    return float(np.quantile(np.asarray(demand), min(max(1 - ratio, 0.0), 1.0)))
