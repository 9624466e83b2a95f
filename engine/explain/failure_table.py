"""Every way to fail with its remedy, and what both cost for the fleet of the recommendation."""

from __future__ import annotations

from dataclasses import dataclass

from engine.assessment import Assessment
from engine.cost.parameters import value
from engine.decide.priors import likely
from engine.estimate.failure_rates import reliability_parameters
from engine.estimate.reliability import goodput, lost_hours_cost, silent_corruption_cost
from engine.estimate.run_reliability import exact_interval, slowest_machine
from engine.explain.curves.common import lead_stage
from engine.explain.curves.failure import fleet_usd_per_hour
from engine.explain.run_conditions import IN_STEP
from engine.explain.stops import stops_of
from engine.wording import duration, percent, spent
from engine.workload.workload import HOURS_PER_MONTH, SERVICES

SLOW = 0.1  # of the example: one machine takes a tenth longer
QUORUM_COPIES = 3  # one of three may die or be cut off


@dataclass(frozen=True, slots=True)
class Remedied:
    """One way to fail: what cures it, what that costs here, and what it costs to go without."""

    fails: str
    remedy: str
    costs: str
    without: str


def remedied(answer: Assessment) -> tuple[Remedied, ...]:
    """The ways to fail that the articles name, for the costliest stage of the recommendation."""
    stage = lead_stage(answer)
    machines = max(stage.machines, 1)
    fleet = fleet_usd_per_hour(answer)
    month = stage.usd_per_month.likely / machines
    if stage.price is not None:
        month = stage.price.usd_per_unit_hour * stage.units / machines * HOURS_PER_MONTH
    one_more = f"{spent(month)} a month for one more machine"
    rows = [_machine(answer, machines, one_more)]
    if answer.workload.kind not in SERVICES:
        rows.append(_run(answer, fleet))
    rows += [_corruption(fleet), _slow(answer, machines, fleet)]
    if stage.hardware == "cpu":
        two = spent(month * (QUORUM_COPIES - 1))
        rows += [
            Remedied("The network splits", "A quorum: three copies, of which two must agree",
                     f"{two} a month for two more machines, and {likely('remote_hop_ms'):g} ms a "
                     "write", "Both sides go on alone and disagree"),
            Remedied("Data is lost", "A copy that agrees before it answers", one_more,
                     "14 minutes of writes in the article's case (000)"),
        ]  # fmt: skip
    else:
        rows += [
            Remedied("The network splits", "The run stops and goes on from its last checkpoint",
                     "nothing beside the checkpoints", "No copy to disagree: GPUs keep no data"),
            Remedied("Data is lost", "Checkpoints on storage that keeps copies of its own",
                     "the storage's price", "The run begins again"),
        ]  # fmt: skip
    return tuple(rows)


def _machine(answer: Assessment, machines: int, one_more: str) -> Remedied:
    if answer.workload.kind in SERVICES:
        away = reliability_parameters()["repair_rented_h"].likely
        return Remedied("A machine dies", "A spare machine, and a queue in front", one_more,
                        f"Away until another is there: {duration(away)}")  # fmt: skip
    remedy = "Checkpoints, and a spare machine" if machines > 1 else "Checkpoints"
    return Remedied("A machine dies", remedy, one_more if machines > 1 else "see the next row",
                    "The run waits until another machine is there")  # fmt: skip


def _run(answer: Assessment, fleet: float) -> Remedied:
    stops = stops_of(lead_stage(answer))
    save = likely("checkpoint_stall_h")
    every = float(exact_interval(save, stops.abrupt))
    lost = 1 - float(goodput(save, every, stops.abrupt, stops.restart))
    eight = float(lost_hours_cost(1, fleet, value("lost_hours")))
    return Remedied(
        "A long run dies", f"A checkpoint every {duration(every)}",
        f"{lost:.1%} of the time, restarts counted" if lost >= 0.001 else "under 0.1% of the time",
        f"{spent(fleet)} for each hour since the last one: {spent(eight)} for eight (003)",
    )  # fmt: skip


def _corruption(fleet: float) -> Remedied:
    every, days = value("checkpoint_000_hours"), value("corruption_days")
    seen = float(silent_corruption_cost(1.0, every, fleet))
    unseen = float(silent_corruption_cost(1.0, days * 24, fleet))
    return Remedied(
        "Results are silently wrong", f"Validation every {duration(every)} (000)",
        f"{percent(value('checkpoint_000_share'))} of the time; an error then costs {spent(seen)}",
        f"{spent(unseen)} an error that shows after {duration(days * 24)}",
    )  # fmt: skip


def _slow(answer: Assessment, machines: int, fleet: float) -> Remedied:
    if answer.workload.kind not in IN_STEP or machines < 2:
        return Remedied("A machine is slow", "Drain and replace it", "nothing but the swap",
                        f"One {SLOW:.0%} slower loses a tenth of its own work")  # fmt: skip
    waits = 1 - 1 / float(slowest_machine(float(machines), 0.0, SLOW))
    return Remedied(
        "A machine is slow", "Drain it, go on with the others or a spare one",
        f"{1 / machines:.1%} of the pace until another is there",
        f"All wait: one {SLOW:.0%} slower loses {waits:.1%}, {spent(waits * fleet)} an hour",
    )  # fmt: skip
