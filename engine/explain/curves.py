"""The numbers behind the four questions: plain points with units and words, no drawing.

Shares are between 0 and 1, money in US dollars, time in hours unless a name says otherwise. The
formulae are those of `engine.estimate` and `engine.cost`; what stands here is which of them a
question shows, over which range, and what it means in a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

import numpy as np

from engine.assessment import (
    ACQUISITION_LABELS,
    PLACEMENT_LABELS,
    Assessment,
    RuleVerdict,
    StagePlan,
)
from engine.catalogue import load_catalogue
from engine.cost import break_even
from engine.cost.commitment import Mix, best_mix, monthly
from engine.decide import bottleneck
from engine.decide.candidates import Price, Unit
from engine.decide.context import Setting, setting
from engine.decide.findings import count, duration
from engine.decide.inputs import resolve, stated_fraction
from engine.decide.priors import likely, prior
from engine.decide.service_sizing import spare_units
from engine.errors import InputError
from engine.estimate.reliability import (
    alarm_threshold,
    availability_k_of_n,
    false_alarms,
    fleet_mtbf,
    goodput,
    silent_corruption_cost,
    young_interval,
)
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
from engine.explain import evidence
from engine.workload.answers import (
    BOTTLENECK_LABELS,
    Bottleneck,
    FailureMode,
    Kind,
    Symptom,
)
from engine.workload.workload import HOURS_PER_MONTH, LLM_TRAINING, Workload

HOURS_PER_YEAR = 8760.0
Points = tuple[tuple[float, float], ...]

# The articles' marks, drawn beside what is computed (data/rules.csv has their claims).
UTILIZATION_MARKS = ((0.30, "003: CPUs below"), (0.40, "003: rent below"),
                     (0.50, "001: own above"), (0.60, "003: build above"))  # fmt: skip
ARTICLE_RATIO, ARTICLE_SPEEDUP, ARTICLE_FRACTION = 3.2, 50.0, 0.70
ARTICLE_VARIATION = 0.30
CHECKPOINT_MARKS_H = ((0.25, "003: every 15 min"), (6.0, "000: every 6 h"))

# Which rules of the articles belong to which question.
RULES_AT = {
    "bottleneck": ("two_questions_compute", "io_bound", "memory_bound", "fits_gpu_memory"),
    "failure_mode": ("two_questions_failure", "dont_distribute", "strong_consistency"),
    "parallel_fraction": ("seventy_percent", "waste_gpu"),
    "utilization": (
        "utilization_hardware_low", "rent_below_40", "own_above_50", "build_above_60",
        "utilization_hardware_high", "variation_30", "stable_18_months",
    ),
}  # fmt: skip


def rules_at(question: str, answer: Assessment) -> tuple[list[RuleVerdict], list[str]]:
    """The articles' rules at a question: those that apply with their verdict, then the others."""
    wanted = RULES_AT[question]
    applying = [r for r in answer.rules if r.id in wanted]
    told = {r.id for r in applying}
    texts = evidence.rules()
    return applying, [texts[i].text for i in wanted if i not in told]


def own_answers(question: str, answer: Assessment) -> dict[str, str]:
    """The articles' questions answered for this plan, by the id of `data/faq.csv`.

    What has no answer of its own here (a trend, say) is left to the general one.
    """
    found = {
        "bottleneck": _own_hardware,
        "failure_mode": _own_architecture,
        "parallel_fraction": _own_size,
        "utilization": _own_terms,
    }[question](answer)
    return {id: text[0].upper() + text[1:] for id, text in found.items()}


def _own_hardware(answer: Assessment) -> dict[str, str]:
    best = answer.best
    where = "; ".join(f"{s.stage} on {s.units:,} × {s.name}" for s in best.stages)
    shares = dict(answer.shares)
    found = {
        "003-always-faster": gpu_ceiling(answer.workload).title + ".",
        "001-for-ml": where + ".",
        "000-mistake": f"The network takes {shares.get('network', 0):.0%} of the time here.",
    }
    network = next((s.network for s in best.stages if s.network), "")
    if network:
        found["001-networking"] = f"{network}."
    for name, placement in (("000-without-gpus", "cpu"), ("003-mixing", "hybrid")):
        rival = next((o for o in answer.options if o.placement == placement and not o.vetoes), None)
        ruled = next(
            (v for v in answer.ruled_out if v.rules_out.lower().startswith(placement)), None
        )
        if rival is not None:
            cost = _usd(rival.usd_per_month.likely)
            found[name] = f"{rival.label} for {cost} a month, best in {rival.probability_best:.0%}."
        elif ruled is not None:
            found[name] = f"Ruled out: {ruled.reason}."
    return found


def _own_architecture(answer: Assessment) -> dict[str, str]:
    verdict, best = answer.architecture.verdict, answer.best
    machines = sum(s.machines for s in best.stages)
    found = dict.fromkeys(("000-difference", "003-difference"), f"{best.label}. {verdict}")
    found |= dict.fromkeys(("000-without-distribution", "001-is-it"), verdict)
    found["000-kubernetes"] = f"{count(machines, 'machine')} recommended."
    if answer.architecture.remedies:
        remedy, why = answer.architecture.remedies[0]
        found["001-fault"] = f"{remedy}: {why}."
    effort = next((c for c in best.contributions if c.criterion == "effort"), None)
    if effort is not None:
        found["003-hardest"] = f"{effort.because}."
    return found


def _own_size(answer: Assessment) -> dict[str, str]:
    size = f"{answer.best.label}."
    placement = PLACEMENT_LABELS[answer.best.placement]
    chance = dict(answer.placement_probability).get(answer.best.placement, 0.0)
    return {
        "000-gpu-or-cpu": f"{placement}, the best in {chance:.0%} of the cases drawn.",
        **dict.fromkeys(("001-minimum", "003-how-many"), size),
    }


def _own_terms(answer: Assessment) -> dict[str, str]:
    lead, best = lead_stage(answer), answer.best
    terms = f"{ACQUISITION_LABELS[best.acquisition]}, {_usd(best.usd_per_month.likely)} a month."
    found = dict.fromkeys(("000-cloud-or-own", "001-cloud-or-own", "003-build-or-rent"), terms)
    if lead.price is not None:
        price = f"{lead.name}: ${lead.price.usd_per_unit_hour:.2f} an hour ({lead.price.provider})."
        found |= dict.fromkeys(("000-rental", "003-rent"), price)
    return found


# --- question 1: where the time goes


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
            f"On the same network no faster GPU gains more than {_times(most)} times",
            start + "Faster GPUs shorten neither. A better network does: the plan of the "
            "recommendation computes its part of every step.",
        )  # fmt: skip
    return GpuCeiling(
        b, serial, parallel, most, 1 / left, s,
        f"No GPU makes the whole job more than {_times(most)} times as fast",
        start + f"A GPU that is {_times(s)} times as fast on the rest makes the whole job "
        f"{_times(1 / left)} times as fast; an endlessly fast one, {_times(most)} times.",
    )  # fmt: skip


def _times(factor: float) -> str:
    return f"{factor:,.0f}" if factor >= 100 else f"{factor:.3g}"


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


# --- question 2: the worst failure


@dataclass(frozen=True, slots=True)
class Line:
    """A curve with its name; the first line of a picture is the user's own."""

    label: str
    points: Points
    label_at: int = -1
    """Index of the point at which the name stands."""
    side: Literal["left", "right", "under", "below"] = "left"


@dataclass(frozen=True, slots=True)
class Picture:
    """A small living figure: lines or bars, marks on x, and the message in the title."""

    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    marks: tuple[tuple[float, str], ...]
    message: str
    log_x: bool = False
    log_y: bool = False
    zero_y: bool = True
    low_marks: bool = False
    y_ticks: tuple[tuple[float, str], ...] = ()
    bars: tuple[tuple[str, float, str], ...] = ()
    """Instead of lines: name, length, and the words at the bar."""


REMEDIES = ("Replicas", "Quorum", "Checkpoints", "Validation", "Drain slow machines", "Queue",
            "Autoscale", "Short terms")  # fmt: skip
ASKS: dict[FailureMode, tuple[str, ...]] = {
    FailureMode.machine_loss: ("Replicas", "Queue", "Autoscale"),
    FailureMode.data_loss: ("Replicas", "Quorum", "Validation"),
    FailureMode.long_run_loss: ("Checkpoints", "Drain slow machines", "Queue"),
    FailureMode.silent_corruption: ("Validation", "Checkpoints", "Drain slow machines"),
    FailureMode.late_answers: ("Replicas", "Queue", "Autoscale", "Drain slow machines"),
    FailureMode.wasted_spend: ("Queue", "Autoscale", "Short terms"),
}
MEANS = {
    FailureMode.unknown: "The picture shows the loss of a machine, the most common one",
    FailureMode.machine_loss: "Nobody is served until it is back or another takes over",
    FailureMode.data_loss: "Writes are gone, or readers get different answers",
    FailureMode.long_run_loss: "Days of work are paid twice",
    FailureMode.silent_corruption: "The error spreads until somebody looks",
    FailureMode.late_answers: "The answer is right, and of no use any more",
    FailureMode.wasted_spend: "Hardware is paid for hours without work",
}


def lead_stage(answer: Assessment) -> StagePlan:
    """The stage of the recommendation that costs most."""
    return max(answer.best.stages, key=lambda s: s.usd_per_month.likely)


def fleet_usd_per_hour(answer: Assessment) -> float:
    """What the recommended machines cost an hour, at the rates of their terms."""
    total = 0.0
    for stage in answer.best.stages:
        if stage.price is not None:
            total += stage.price.usd_per_unit_hour * stage.units
        else:
            total += stage.usd_per_month.likely / HOURS_PER_MONTH
    return total


def failure_picture(answer: Assessment) -> Picture:
    """The figure that teaches the named failure, for the fleet of the recommendation."""
    mode = answer.workload.failure_mode
    lead = lead_stage(answer)
    if mode is FailureMode.long_run_loss:
        gpu = lead.hardware == "gpu"
        device = likely("mtbf_gpu_hours" if gpu else "cpu_node_mtbf_h")
        return checkpoints(lead.units, device, "GPU" if gpu else "server")
    if mode is FailureMode.silent_corruption:
        return corruption(sum(s.machines for s in answer.best.stages), fleet_usd_per_hour(answer))
    if mode is FailureMode.late_answers:
        return waiting(likely("cpu_pool_target_utilization"))
    if mode is FailureMode.wasted_spend:
        return idle(answer)
    if mode is FailureMode.data_loss:
        return replication(answer.workload)
    return redundancy(min(_needed(answer.workload, lead.machines), MOST_NEEDED))


def _needed(workload: Workload, machines: int) -> int:
    """Machines that carry the load among those recommended: the rest are the spares sized in."""
    for need in range(machines, 1, -1):
        if need + float(spare_units(workload, (), np.asarray(float(need)))) <= machines:
            return need
    return 1


# Beyond so many the binomial sum is one of rounding errors; two spares are none there anyway.
MOST_NEEDED = 10_000


def redundancy(needed: int) -> Picture:
    """Hours a year in which fewer than `needed` machines are up, with 0 to 2 spares (k of n).

    Machines are away 1% or 0.1% of the time, independently: an outage of the whole site is not
    in it, so the far end of the curve is a bound.
    """
    lines = []
    for share in (0.99, 0.999):
        up = [availability_k_of_n(share, needed, needed + extra) for extra in range(3)]
        points = [(float(e), (1 - float(u)) * HOURS_PER_YEAR) for e, u in enumerate(up)]
        name = f"each up {share:.1%}".replace(".0%", "%")
        lines.append(Line(name, tuple(points), 1, "right" if share < 0.995 else "under"))
    none, one = lines[0].points[0][1], lines[0].points[1][1]
    return Picture(
        f"One spare cuts the time away from {duration(none)} to {duration(one)} a year",
        f"Spare machines beside the {needed} needed", "Hours away a year", tuple(lines), (),
        f"{count(needed, 'machine')} must be up, each up 99% or 99.9% of the time, independently. "
        "What fails together (a site, a release, a region) no spare cures.",
        log_y=True,
        y_ticks=((240.0, "10 days"), (24.0, "1 day"), (1.0, "1 h"), (1 / 60, "1 min"),
                 (1 / 3600, "1 s")),
    )  # fmt: skip


def replication(workload: Workload) -> Picture:
    """Minutes of writes that a loss may take away (RPO), by the way of copying.

    Backups lose at most their period; the asynchronous copy is the article's case (000).
    """
    ways = (
        ("Backup every night", 24 * 60.0),
        ("Snapshot every hour", 60.0),
        ("Copy sent later (asynchronous)", 14.0),
        ("Copies that agree first (quorum)", 0.0),
    )
    bars = tuple((name, m, duration(m / 60) if m else "nothing") for name, m in ways)
    rate = resolve(workload).ranges.get("rate_per_s")
    lost = ""
    if rate is not None and rate.likely > 0:
        lost = f" At {rate.likely:,.3g} requests a second that is {rate.likely * 840:,.0f} of them."
    return Picture(
        "Only copies that agree before they answer lose nothing",
        "Minutes of writes lost at worst", "", (), (),
        f"A copy sent later lost 14 minutes in the article's case (000).{lost} Agreement costs a "
        f"round trip a write, about {likely('remote_hop_ms'):g} ms inside one zone, and three "
        "machines of which one may die.",
        bars=bars,
    )  # fmt: skip


def checkpoints(units: int, device_mtbf_h: float, unit: str = "GPU") -> Picture:
    """Goodput against the checkpoint interval, with Young's best and the articles' two marks."""
    save, restart = likely("checkpoint_stall_h"), likely("restart_h")
    mtbf = float(fleet_mtbf(device_mtbf_h, max(units, 1)))
    best = float(young_interval(save, mtbf))
    at = np.geomspace(0.1, max(best * 3, 24), 60)
    lines: list[Line] = []
    for size in [units, *([1024] if units <= 256 else [])]:
        share = goodput(save, at, float(fleet_mtbf(device_mtbf_h, max(size, 1))), restart)
        pairs = zip(at, np.asarray(share) * 100, strict=True)
        points = tuple((float(t), float(g)) for t, g in pairs if g >= 85)
        peak = max(range(len(points)), key=lambda i: points[i][1]) if points else 0
        lines.append(Line(count(size, unit), points, peak, "below"))
    kept = {h: float(goodput(save, h, mtbf, restart)) for h in (best, 0.25, 6.0)}
    return Picture(
        f"Save every {duration(best)}: {kept[best]:.2%} of the time is then useful",
        "Hours between checkpoints", "Useful share of the time, %", tuple(lines),
        ((best, "best"), *CHECKPOINT_MARKS_H),
        f"On {count(units, unit)} a failure comes every {duration(mtbf)} and a save stalls for "
        f"{duration(save)}. Every 15 minutes keeps {kept[0.25]:.2%}, every 6 hours "
        f"{kept[6.0]:.2%}. The best interval is √(2 · stall · time between failures) (Young).",
        log_x=True, zero_y=False, low_marks=True,
    )  # fmt: skip


def corruption(machines: int, usd_per_hour: float) -> Picture:
    """Fleet-hours thrown away against the delay of detection, and the alarms of the watch.

    The watch of 000 tests each machine every 6 hours at three standard deviations.
    """
    days = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 11.0, 14.0)
    cost = [float(silent_corruption_cost(1.0, d * 24, usd_per_hour)) for d in days]
    tests = machines * 4 * 30.0
    alarms, wanted = float(false_alarms(tests, 3.0)), float(alarm_threshold(tests, 1.0))
    watched, unseen = cost[1], cost[5]
    return Picture(
        f"Seen after 6 hours an error costs {_usd(watched)}, after three days {_usd(unseen)}",
        "Days until it is noticed", "USD of work thrown away",
        (Line("your fleet", tuple(zip(days, cost, strict=True))),),
        ((0.25, "000: watch every 6 h"), (3.0, "000: three days unseen"),
         (11.0, "000: eleven days")),
        f"A check of {count(machines, 'machine')} every 6 hours at three deviations raises "
        f"{alarms:.1f} false alarms a month; at {wanted:.1f} deviations it would be one.",
    )  # fmt: skip


def mean_wait(servers: int, load: float) -> float:
    """Mean time to answer over that of the work alone, with random arrivals: 1 + C/(c(1 − ρ)).

    C is Erlang's probability of waiting (M/M/c). The recursion over Erlang B is stable at any c.

    servers : c; load : ρ, share of the servers that work, below 1
    """
    offered = servers * load
    blocked = 1.0
    for n in range(1, servers + 1):
        blocked = offered * blocked / (n + offered * blocked)
    waits = blocked / (1 - load * (1 - blocked))
    return 1 + waits / (servers * (1 - load))


def waiting(target: float) -> Picture:
    """Time to answer against load for one server and for pools, and where pools are sized."""
    loads = np.linspace(0.05, 0.98, 63)
    lines = []
    for c, named_at in ((1, 5.0), (16, 2.0)):
        points = [(float(r) * 100, mean_wait(c, float(r))) for r in loads]
        named = min(range(len(points)), key=lambda i: abs(points[i][1] - named_at))
        lines.append(Line(count(c, "server"), tuple(p for p in points if p[1] <= 8), named))
    return Picture(
        f"At {target:.0%} load one server takes {mean_wait(1, target):.1f} times the work, "
        f"sixteen take {mean_wait(16, target):.2f}",
        "Load at the peak, %", "Time to answer, work alone = 1", tuple(lines),
        ((target * 100, "pools are sized here"),),
        "Mean over random arrivals (M/M/c); the slowest of a hundred wait several times longer. "
        "A shared pool waits less than the same servers apart, and every pool breaks near 100%.",
        zero_y=False,
    )  # fmt: skip


def idle(answer: Assessment) -> Picture:
    """What idle hours cost when all hours are paid, and whether the recommendation pays them."""
    month = fleet_usd_per_hour(answer) * HOURS_PER_MONTH
    use, _ = stated_use(answer.workload)
    points = tuple((float(s), month * float(s) / 100) for s in range(0, 101, 10))
    paid = answer.best.acquisition not in ("on_demand", "spot")
    return Picture(
        f"Paid for all hours, {_usd(month * (1 - use))} of {_usd(month)} a month would be idle",
        "Idle share of the hours, %", "USD a month without work", (Line("your fleet", points),),
        ((100 * (1 - use), "yours"), (15.0, "000 plans 15%")),
        "The recommended terms are paid for all hours: fill them or shorten them." if paid
        else "The recommended terms are paid by the hour of use: idle hours then cost nothing, as "
        "long as somebody turns the machines off.",
    )  # fmt: skip


def _usd(amount: float) -> str:
    return f"${amount:,.0f}" if amount >= 100 else f"${amount:,.2f}"


@dataclass(frozen=True, slots=True)
class Flag:
    """A reason of the articles against distributing (000 lesson 1), and whether it holds here."""

    holds: bool
    rule: str
    here: str


# Their requests cost what the model costs, which no rule of thumb knows.
WITH_MODEL = {Kind.online_inference, Kind.recsys, Kind.pipeline}
SMALL_DATA_GB, SMALL_RATE_PER_S, SMALL_NODES = 100.0, 500.0, 2


def distribution_flags(answer: Assessment) -> list[Flag]:
    """Too few nodes for Kubernetes, too little data to shard, a rate that one server answers."""
    workload, r = answer.workload, resolve(answer.workload).ranges
    machines = sum(s.machines for s in answer.best.stages)
    found = [
        Flag(
            machines <= SMALL_NODES, "Kubernetes for two nodes is one tool too many",
            f"{count(machines, 'machine')} recommended",
        )
    ]  # fmt: skip
    data = workload.data_gb or workload.working_set_gb
    if data:
        largest = max(s.memory_gb or 0 for s in load_catalogue().cpu_servers.values())
        here = f"yours is {data:,.3g} GB; the largest server on offer holds {largest:,.0f} GB"
        found.append(Flag(data < SMALL_DATA_GB, "Below 100 GB nothing needs sharding", here))
    if "rate_per_s" in r and workload.kind not in WITH_MODEL:
        rate = r["rate_per_s"].likely
        cores = rate * r["cpu_ms_per_item"].likely / 1000
        peak = cores * r["peak_factor"].likely / likely("cpu_pool_target_utilization")
        here = (
            f"{rate:,.3g} a second are work for {cores:,.2g} of its cores, {peak:,.2g} with the "
            "peak and room to spare"
        )
        found.append(Flag(rate <= SMALL_RATE_PER_S, "One server answers 500 requests/s", here))
    return found


# --- question 3: the parallelizable fraction


def speedup_curve(p: float, most: int = 1024) -> list[tuple[float, float]]:
    """Amdahl's speed-up on 1, 2, 4 … machines."""
    counts = [2**i for i in range(int(np.log2(most)) + 1)]
    return [(float(n), float(amdahl_speedup(p, float(n)))) for n in counts]


def speedup_limit(p: float) -> float | None:
    """Speed-up that no number of machines exceeds, 1/(1 − p); None without a serial part."""
    return 1 / (1 - p) if p < 1 else None


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
            return f"Fastest on about {n:.0f} machines: {_times(best)} times one"
        return f"1,024 machines make it {_times(reading.fitted[-1][1])} times as fast"
    top = speedup_curve(likely_p)[-1][1]
    return f"1,024 machines make it {_times(top)} times as fast"


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
            f"Contention {fit.sigma:.2g}, coherency {fit.kappa:.2g} (Universal Scalability Law, "
            f"{closeness})."
        )
    limit = f"never more than {1 / fit.sigma:,.3g} times" if fit.sigma > 0 else "without a limit"
    return (
        f"Contention {fit.sigma:.2g} and no coherency: faster with every machine, {limit} "
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


def _unit(place: Setting, stage: StagePlan) -> Unit:
    """The hardware of a stage among what is on offer, in machines of its size."""
    size = stage.units / max(stage.machines, 1)
    units = [u for u in (*place.gpus, *place.cpus) if u.sku == stage.sku]
    return min(units, key=lambda u: abs(u.per_machine - size), default=place.context.reference)


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
    message = f"{ratio:.2g} times the price, {s:.3g} times the speed on the parallel part."
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
    reason = f"on the GPU the work {verb} {picture.cost_now:.2g} of the server's"
    if gpu == (answer.best.placement != "cpu"):
        return reason
    return f"{reason}, yet I/O, the size of the machines and the terms weigh more in the whole sum"


def _cost_curve(ratio: float, s: float) -> Points:
    shares = np.linspace(0, 1, 51)
    cost = ratio * np.asarray(gpu_time_relative(shares, s))
    return tuple((float(p), float(c)) for p, c in zip(shares, cost, strict=True))


# --- question 4: utilization


@dataclass(frozen=True, slots=True)
class WayToPay:
    """Cost of a useful hour of one unit over the share of the hours that are useful [USD]."""

    label: str
    points: Points
    usd_per_hour: float
    pays_idle: bool

    def usd_per_useful_hour(self, use: float) -> float:
        """At one share of useful hours."""
        shares = np.asarray([max(use, 1e-6)])
        return float(break_even.usd_per_useful_hour(self.usd_per_hour, shares, self.pays_idle)[0])


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
        hourly, idle_too = _hourly(price), terms not in ("on_demand", "spot")
        cost = break_even.usd_per_useful_hour(hourly, shares, idle_too)
        points = tuple((float(u), float(c)) for u, c in zip(shares, cost, strict=True))
        found.append(WayToPay(label, points, hourly, idle_too))
    return found


def _hourly(price: Price) -> float:
    return price.likely if price.basis == "hour" else price.likely / HOURS_PER_MONTH


def break_evens(ways: Sequence[WayToPay]) -> list[tuple[str, float | None]]:
    """Utilization above which each committed way beats on demand: c/d; None for never."""
    rent = next((w for w in ways if w.label == TERMS["on_demand"]), None)
    if rent is None:
        return []
    return [
        (w.label, break_even.utilization(w.usd_per_hour, rent.usd_per_hour).value)
        for w in ways
        if w.pays_idle
    ]


PAYING = {
    "On demand": "renting on demand",
    "Spot": "spot",
    "By the month": "renting by the month",
    "Reserved 1 year": "reserving for a year",
    "Reserved 3 years": "reserving for three years",
    "Bought": "buying",
}


def cheapest_at(ways: Sequence[WayToPay], use: float) -> tuple[str, str]:
    """Title and sentence: the cheapest way at this use, and how many break-evens lie below it.

    Spot is named apart: it is the cheapest where it can be had and where being stopped is fine.
    """
    firm = [w for w in ways if w.label != TERMS["spot"]] or list(ways)
    best = min(firm, key=lambda w: w.usd_per_useful_hour(use))
    title = f"At {use:.0%} of the hours {PAYING[best.label]} is the cheapest"
    said = [
        f"{label} from {at:.0%} on" if at is not None else f"{label} never"
        for label, at in break_evens(ways)
    ]
    text = f"A useful hour then costs {_usd(best.usd_per_useful_hour(use))}."
    if said:
        text += f" Cheaper than on demand: {'; '.join(said)}."
    spot = next((w for w in ways if w.label == TERMS["spot"]), None)
    if spot is not None and spot.usd_per_hour < best.usd_per_useful_hour(use):
        title += ", spot aside"
        text += f" Spot, which may be taken away at any time, costs {_usd(spot.usd_per_hour)}."
    return title, text


def unit_of_interest(answer: Assessment, today: date) -> Unit:
    """The hardware of the costliest stage as it is on offer; the reference GPU otherwise."""
    return _unit(setting(answer.workload, None, today, answer.settings), lead_stage(answer))


def stated_use(workload: Workload) -> tuple[float, bool]:
    """Useful share of the hours of the month and whether it was answered."""
    r = resolve(workload).ranges["useful_hours_per_month"]
    hours = workload.stated_hours_per_month
    return min((hours if hours is not None else r.likely) / HOURS_PER_MONTH, 1.0), hours is not None


def use_on(stage: StagePlan) -> float:
    """Share of the month's hours in which the recommended hardware works for the job."""
    return min(stage.busy_hours_per_month / HOURS_PER_MONTH, 1.0)


def demand_by_month(machine_hours: float, variation: float) -> list[float]:
    """Twelve months of demand as machines' worth of work, around a mean.

    A seasonal wave whose standard deviation over the mean is the variation (cut off at zero).

    machine_hours : hours of the mean month, over all machines
    """
    wave = np.sqrt(2) * variation * np.sin(2 * np.pi * (np.arange(12) - 2) / 12)
    mean = machine_hours / HOURS_PER_MONTH
    return [max(float(mean * (1 + w)), 0.0) for w in wave]


@dataclass(frozen=True, slots=True)
class Commitment:
    """Demand by month, the whole machines worth committing to, and what it means."""

    months: tuple[float, ...]
    mix: Mix
    title: str
    message: str


COMMITTED = {
    "By the month": "A {} by the month",
    "Reserved 1 year": "A {} reserved for a year",
    "Reserved 3 years": "A {} reserved for three years",
    "Bought": "A bought {}",
}


def _how_many(mean: float, noun: str) -> str:
    return f"less than a tenth of one {noun}" if mean < 0.1 else f"{mean:.2g} {noun}s"


def commitment(answer: Assessment, ways: Sequence[WayToPay], stage: StagePlan) -> Commitment | None:
    """How many of the stage's units to commit to: the newsvendor's answer (engine.cost.commitment).

    The committed price is the cheapest way that is paid for all hours; None without one, or where
    the demand is beyond anything that could be rented.
    """
    rent = next((w for w in ways if w.label == TERMS["on_demand"]), None)
    committed = [w for w in ways if w.pays_idle]
    if rent is None or not committed:
        return None
    v = resolve(answer.workload).ranges["monthly_variation"].likely
    months = demand_by_month(stage.busy_hours_per_month * stage.units, v)
    cheapest = min(committed, key=lambda w: w.usd_per_hour)
    try:
        demand = monthly([m * HOURS_PER_MONTH for m in months])
    except InputError:  # a demand beyond all machines of the world
        return None
    mix = best_mix(demand, cheapest.usd_per_hour, rent.usd_per_hour)
    noun = "GPU" if stage.hardware == "gpu" else "server"
    mean = sum(months) / len(months)
    if mix.base == 0:
        title = "Commit to none: pay for the hours that are used"
    elif mix.bursts == 0:
        title = f"Commit to {count(mix.base, noun)}: demand stays below"
    else:
        title = f"Commit to {count(mix.base, noun)}, rent the rest when it comes"
    rule = "take the cloud" if v > ARTICLE_VARIATION else "commitment is fine"
    burst, full = (_usd(x * HOURS_PER_MONTH) for x in (mix.all_burst, mix.all_committed))
    money = (
        f"Renting what is used costs {burst} a month, committing {full}."
        if mix.base == 0
        else f"That costs {_usd(mix.usd_per_month)} a month, against {burst} with everything on "
        f"demand and {full} with everything committed."
    )
    message = (
        f"The work would keep {_how_many(mean, noun)} busy around the clock; months vary by "
        f"{v:.0%}. {COMMITTED[cheapest.label].format(noun)} pays when it is needed in more than "
        f"{min(mix.break_even_share, 1):.0%} of all hours, the ratio of the two prices. "
        f"{money} The article's 30% rule says: {rule}."
    )
    return Commitment(tuple(months), mix, title, message)
