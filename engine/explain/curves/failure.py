"""Question 2, the worst failure: what machines, copies, checkpoints and checks do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.assessment import (
    Assessment,
)
from engine.catalogue import load_catalogue
from engine.cost.cash_flow import HOURS_PER_YEAR
from engine.cost.parameters import value
from engine.decide.inputs import resolve
from engine.decide.priors import likely
from engine.decide.service_sizing import spare_units
from engine.estimate.reliability import (
    Real,
    alarm_threshold,
    availability_k_of_n,
    false_alarms,
    fleet_mtbf,
    goodput,
    hours_with_stops,
    silent_corruption_cost,
)
from engine.estimate.run_reliability import exact_interval
from engine.estimate.whole_run import restart_hours
from engine.explain.curves.common import Points, lead_stage, stated_use, usd
from engine.explain.stops import Stops, stops_of
from engine.wording import count, duration, number, rough
from engine.workload.answers import (
    FailureMode,
    Kind,
)
from engine.workload.workload import HOURS_PER_MONTH, Workload

# The articles' marks, drawn beside what is computed (data/rules.csv has their claims).
CHECKPOINT_MARKS_H = ((0.25, "003: every 15 min"), (6.0, "000: every 6 h"))


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
        units = max(round(lead.units / max(lead.side_by_side, 1.0)), 1)
        return checkpoints(units, device, "GPU" if gpu else "server", stops_of(lead))
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
        asked = number(rate.likely)
        lost = f" At {asked} requests a second that is {rate.likely * 840:,.0f} of them."
    return Picture(
        "Only copies that agree before they answer lose nothing",
        "Minutes of writes lost at worst", "", (), (),
        f"A copy sent later lost 14 minutes in the article's case (000).{lost} Agreement costs a "
        f"round trip a write, about {likely('remote_hop_ms'):g} ms inside one zone, and three "
        "machines of which one may die.",
        bars=bars,
    )  # fmt: skip


def checkpoints(
    units: int, device_mtbf_h: float, unit: str = "GPU", stops: Stops | None = None
) -> Picture:
    """Goodput against the checkpoint interval, with the best one and the articles' two marks.

    stops : of the run; None where only its devices fail
    """
    save = likely("checkpoint_stall_h")
    mtbf = float(fleet_mtbf(device_mtbf_h, max(units, 1)))
    if stops is None:
        stops = Stops(mtbf, mtbf, likely("restart_h"))
    best = float(exact_interval(save, stops.abrupt))
    at = np.geomspace(min(0.1, best / 5), max(best * 3, 24), 60)
    restarts = 1 / stops.mtbf - 1 / stops.abrupt  # an hour, of those with notice

    def useful(hours: Real) -> Real:
        told = hours_with_stops(1 / stops.abrupt, restarts, save, stops.restart)
        return goodput(save, hours, stops.abrupt) / told

    lines: list[Line] = []
    for size in [units, *([1024] if units <= 256 and stops.mtbf == mtbf else [])]:
        share = useful(at)
        if size != units:
            restart = float(restart_hours(size)) if unit == "GPU" else stops.restart
            share = goodput(save, at, float(fleet_mtbf(device_mtbf_h, size)), restart)
        pairs = zip(at, np.asarray(share) * 100, strict=True)
        floor = min(85.0, float(useful(best)) * 100 - 10)
        points = tuple((float(t), float(g)) for t, g in pairs if g >= floor)
        peak = max(range(len(points)), key=lambda i: points[i][1]) if points else 0
        lines.append(Line(count(size, unit), points, peak, "below"))
    kept = {h: float(useful(h)) for h in (best, 0.25, 6.0)}
    what = "a failure" if stops.mtbf == mtbf else "a failure or a spot interruption"
    return Picture(
        f"Save every {duration(best)}: {kept[best]:.2%} of the time is then useful",
        "Hours between checkpoints", "Useful share of the time, %", tuple(lines),
        ((best, "best"), *CHECKPOINT_MARKS_H),
        f"On {count(units, unit)} {what} comes every {duration(stops.mtbf)} and a save stalls for "
        f"{duration(save)}. Every 15 minutes keeps {kept[0.25]:.2%}, every 6 hours "
        f"{kept[6.0]:.2%}. The best interval is about √(2 · stall · time between failures) "
        "(Young). Slow machines and more are counted on the reliability page.",
        log_x=True, zero_y=False, low_marks=True,
    )  # fmt: skip


def corruption(machines: int, usd_per_hour: float) -> Picture:
    """Fleet-hours thrown away against the delay of detection, and the alarms of the watch.

    The watch of 000 tests each machine every 6 hours at three standard deviations.
    """
    days = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 11.0, 14.0)
    cost = [float(silent_corruption_cost(1.0, d * 24, usd_per_hour)) for d in days]
    tests = machines * HOURS_PER_MONTH / value("checkpoint_000_hours")
    alarms, wanted = float(false_alarms(tests, 3.0)), float(alarm_threshold(tests, 1.0))
    watched, unseen = cost[1], cost[5]
    return Picture(
        f"Seen after 6 hours an error costs {usd(watched)}, after three days {usd(unseen)}",
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
        f"Paid for all hours, {usd(month * (1 - use))} of {usd(month)} a month would be idle",
        "Idle share of the hours, %", "USD a month without work", (Line("your fleet", points),),
        ((100 * (1 - use), "yours"), (15.0, "000 plans 15%")),
        "The recommended terms are paid for all hours: fill them or shorten them." if paid
        else "The recommended terms are paid by the hour of use: idle hours then cost nothing, as "
        "long as somebody turns the machines off.",
    )  # fmt: skip


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
        here = f"yours is {number(data)} GB; the largest server on offer holds {largest:,.0f} GB"
        found.append(Flag(data < SMALL_DATA_GB, "Below 100 GB nothing needs sharding", here))
    if "rate_per_s" in r and workload.kind not in WITH_MODEL:
        rate = r["rate_per_s"].likely
        cores = rate * r["cpu_ms_per_item"].likely / 1000
        peak = cores * r["peak_factor"].likely / likely("cpu_pool_target_utilization")
        here = (
            f"{number(rate)} a second are work for {rough(cores)} of its cores, {rough(peak)} with "
            "the peak and room to spare"
        )
        found.append(Flag(rate <= SMALL_RATE_PER_S, "One server answers 500 requests/s", here))
    return found
