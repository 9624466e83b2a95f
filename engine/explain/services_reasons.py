"""What the sizing says in words: one machine or more, replicas, queue, partitions, consensus."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.assessment import Assessment
from engine.decide.guarantees import AWAY_H
from engine.decide.priors import likely
from engine.decide.service_sizing import BY_COPY
from engine.estimate import services
from engine.estimate.failure_rates import reliability_parameters
from engine.estimate.services import Resource
from engine.explain.services import Sizing
from engine.wording import count, duration, money, number, rough
from engine.workload.answers import Consistency, FailureMode, Kind
from engine.workload.workload import Workload

WORDS: dict[Resource, str] = {
    "cores": "the processors", "memory": "the memory", "network": "the network",
    "disk_rate": "the rate of the disks", "disk_ops": "the operations of the disks",
    "disk_space": "the space on the disks",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """One means of distribution: whether it is asked for, how much of it, and why."""

    title: str
    needed: bool
    how_many: str
    why: str


def sentence(s: Sizing, answer: Assessment) -> str:
    """What the page says first: the machines, and the GPUs of the recommendation beside them."""
    head = _machines(s)
    gpus = [p for p in answer.best.stages if p.hardware == "gpu"]
    if answer.workload.kind not in (Kind.online_inference, Kind.recsys) or not gpus:
        return head
    named = ", ".join(f"{p.units} × {p.name}" for p in gpus)
    return f"{s.title}: {head[0].lower() if head.startswith('One') else head[0]}{head[1:]} " + (
        f"The model runs on {named}."
    )


def _machines(s: Sizing) -> str:
    f = s.fleet
    binds = WORDS[f.binds]
    if f.machines == 1:
        return f"One machine is enough ({f.name}); {binds} would run out first."
    head = f"{count(f.machines, 'machine')} of {f.name}"
    copies = s.guarantee.copies
    if s.title == "Database" and copies > 1:
        each = "one machine" if f.carrying == 1 else count(f.carrying, "machine")
        return f"{head}: {copies_of(copies)}, each on {each}; {binds} would run out first."
    return f"{head}; {binds} would run out first."


def copies_of(n: int) -> str:
    """So many copies, in words."""
    return f"{n} {'copy' if n == 1 else 'copies'}"


def one_machine(s: Sizing, w: Workload) -> str:
    """Whether one machine carries the load, and what more machines would add."""
    one = s.one
    if one.enough:
        sure = "" if one.surely else " At the high end of your figures it would not."
        head = (
            f"One {one.name} carries the peak; {WORDS[one.binds]} would be filled to "
            f"{one.share:.0%} of the load planned with.{sure} "
        )
        if s.fleet.machines == 1:
            return head + (
                f"More machines would only add failure modes: {failures(5)} with five machines "
                f"beside {failures(1)} with one, a balancer and two tools that watch them."
            )
        if s.fleet.carrying == 1:
            return head + (
                f"Of {count(s.fleet.machines, 'machine')} {s.fleet.machines - 1} stand by for a "
                "failure; none of these is needed for the load."
            )
        return head + (
            f"{count(s.fleet.carrying, 'smaller machine')} cost less, and a spare is smaller too."
        )
    return (
        f"No single machine carries the peak: it would fill {number(one.share)} of "
        f"{one.largest}, which suits it best, by {WORDS[one.binds]}."
    )


def failures(machines: int) -> str:
    """Failures of so many machines, in words."""
    per_year = float(services.failures_per_year(machines, likely("cpu_node_mtbf_h")))
    if per_year < 1:
        return f"one failure in {rough(1 / per_year)} years"
    return f"{rough(per_year)} failures a year"


def losses(s: Sizing) -> str:
    """What may be lost with a copy of the data, in few words."""
    g = s.guarantee
    if g.survives:
        return f"{g.survives} may be lost, no write with it"
    return f"{number(s.point.get('lag_s', 0.0))} s of writes may be lost"


def asked(s: Sizing, answer: Assessment) -> tuple[Asked, ...]:
    """Replicas, queue, partitions and consensus for this job, each with its number and reason."""
    w = answer.workload
    if w.kind is Kind.etl:
        return (_shards(s, w),)
    return (_replicas(s, w), _queue(s, w), _shards(s, w), _consensus(s, w))


def _replicas(s: Sizing, w: Workload) -> Asked:
    g, f, x = s.guarantee, s.fleet, s.point
    mtbf = likely("cpu_node_mtbf_h")
    back = reliability_parameters()["repair_rented_h"].likely
    away = float(services.hours_away_per_year(mtbf, back))
    base = f"A machine fails about once in {mtbf / 8760:.1f} years"
    if g.copies == 1:
        spare = f.machines - f.carrying
        if spare > 0:
            return Asked(
                "Spare machines", True, count(spare, "machine"),
                f"{base}; it may not be away long, and a balancer takes a dead one out in seconds",
            )  # fmt: skip
        tolerated = AWAY_H.get(w.downtime)
        restore = _restore(s)
        if tolerated is None:
            tail = "say how long it may be away, and this can be judged"
        elif restore <= tolerated:
            tail = f"a backup is back within {duration(restore)}; you tolerate {w.downtime.value}"
        else:
            tail = (
                f"but a backup takes {duration(restore)} to restore, longer than the "
                f"{duration(tolerated)} that you tolerate: a standby would be quicker"
            )
        return Asked(
            "Replicas", False, "none",
            f"{base} and is away {duration(back)}, or {duration(away)} a year; {tail}",
        )  # fmt: skip
    if g.agree:
        rpo = (
            f"no accepted write is lost, and each waits about "
            f"{number(x['quorum_write_ms'])} ms more"
        )
    elif w.kind is Kind.streaming:
        rpo = "a producer waits until two copies have an event"
    else:
        lost = float(services.lost_writes(x["rate_per_s"] * x["write_share"], x["lag_s"]))
        rpo = (
            f"copies follow {number(x['lag_s'])} s behind, so about {number(lost)} writes are "
            "gone when the first one dies"
        )
    return Asked(
        "Replicas", True, copies_of(g.copies),
        f"{g.why[0].upper()}{g.why[1:]}; {rpo}. A standby takes over in about "
        f"{number(x['failover_s'])} s; a backup alone would take {duration(_restore(s))}",
    )  # fmt: skip


def _restore(s: Sizing) -> float:
    space = next((r.amount.likely for r in s.rows if r.resource == "disk_space"), 0.0)
    gb = s.point.get("data_gb", space)
    return float(services.restore_hours(gb, s.point["restore_mb_per_s"]))


def _queue(s: Sizing, w: Workload) -> Asked:
    x = s.point
    mean = x["rate_per_s"] * w.services
    peak = mean * x["peak_factor"]
    outage = x["catch_up_min"] * 60
    gb = float(services.backlog_gb(mean, x["request_kb"], outage))
    load = min(1 / x["peak_factor"] * x["load"], 0.99)
    catch = float(services.catch_up_s(outage, load)) / 3600
    held = (
        f"{number(float(services.under_way(mean, outage)))} entries ({number(gb)} GB) after "
        f"{number(x['catch_up_min'])} min without readers, worked off in {duration(catch)}"
    )
    if w.kind is Kind.streaming:
        return Asked("Queue", True, "the log itself", f"It holds {held}")
    if w.kind is Kind.search:
        return Asked("Queue", True, "the frontier", f"Pages to fetch wait in it: {held}")
    if w.kind is Kind.online_inference:
        return Asked(
            "Queue", True, "in memory, with a limit",
            "Requests wait for a batch in it; what can't be answered in time is refused at once. "
            "A durable log in the path would add milliseconds that answers wait for",
        )  # fmt: skip
    if w.failure_mode is FailureMode.data_loss and w.kind is Kind.web:
        return Asked("Queue", True, "durable", f"Writes that may wait survive a failure: {held}")
    seconds = (w.latency_ms or 0.0) / 1000
    wait = f"; {number(float(services.under_way(peak, seconds)))} are under way at the peak"
    wait = wait if seconds else ""
    why = f"Someone waits for each answer{wait}: refuse early, do not hoard"
    return Asked("Queue", False, "none", why)


def _shards(s: Sizing, w: Workload) -> Asked:
    f, x = s.fleet, s.point
    if w.kind is Kind.streaming:
        rate = x["rate_per_s"] * x["peak_factor"] * x["request_kb"] / 1000
        n = int(float(services.partitions(rate, x["partition_mb_per_s"], float(f.carrying))))
        return Asked(
            "Partitions", n > 1, f"{n:,}",
            f"{number(rate)} MB/s at the peak at {number(x['partition_mb_per_s'])} MB/s each, and "
            f"at least one for each of {count(f.carrying, 'machine')} that read; order holds "
            "within a partition only",
        )  # fmt: skip
    if w.kind in BY_COPY or w.kind is Kind.etl:
        gb = x.get("data_gb", x["working_set_gb"])
        if f.carrying == 1:
            article = (
                " The article draws the line at 100 GB (C062); a machine of today holds "
                f"{number(x['machine_disk_tb'])} TB"
                if w.kind is Kind.database
                else ""
            )
            return Asked(
                "Shards", False, "none",
                f"One machine holds {number(gb)} GB on disk and {number(x['working_set_gb'])} GB "
                f"in memory.{article}",
            )  # fmt: skip
        if w.kind is Kind.etl:
            return Asked(
                "Partitions of the data", True, f"{f.carrying:,} or more",
                f"{WORDS[f.binds][0].upper()}{WORDS[f.binds][1:]} of one machine do not do it "
                "inside the window; each works on its part, and only the shuffle crosses the "
                "network",
            )  # fmt: skip
        lost = (
            "each takes its own hosts"
            if w.kind is Kind.search
            else "queries over several shards lose joins and transactions"
        )
        row = next(r for r in s.rows if r.resource == f.binds)
        asks = f"{number(row.amount.likely, row.amount.unit)}, {rough(row.full)} times what it has"
        return Asked(
            "Shards", True, f"{f.carrying:,}",
            f"One {f.name} would lack {WORDS[f.binds]} ({asks}){_fewest(s)}; {lost}",
        )  # fmt: skip
    return Asked("Shards", False, "none", "It keeps no state: any machine answers any request")


def _fewest(s: Sizing) -> str:
    """How few of the machines that suit it best would do, where that is fewer."""
    fewest = math.ceil(s.one.share - 1e-9)
    if s.one.enough or fewest >= s.fleet.carrying:
        return ""
    return f". {fewest:,} × {s.one.largest} would do, with fewer shards to run"


def _consensus(s: Sizing, w: Workload) -> Asked:
    g = s.guarantee
    if g.agree:
        witness = " (one is a witness without data)" if g.voters > g.copies else ""
        return Asked(
            "Consensus", True, f"{g.voters} voters{witness}",
            f"{g.quorum} of {g.voters} must agree, so {g.voters - g.quorum} may be lost. When the "
            "network splits, the smaller side stops answering: consistent, not available",
        )  # fmt: skip
    if g.copies > 1:
        return Asked(
            "Consensus", False, "none for data",
            "Stale answers will do: when the network splits both sides go on, and differences "
            "are merged afterwards. Who leads is still voted on",
        )  # fmt: skip
    if w.consistency is Consistency.strong:
        return Asked(
            "Consensus", False, "none",
            "One copy is consistent by itself; it is away while its machine is",
        )  # fmt: skip
    return Asked("Consensus", False, "none", "There is one copy, so nothing has to agree")


def answers_leaving(s: Sizing) -> str:
    """What the answers cost where they leave the provider, or nothing where there are few."""
    if s.answers_gb < 100:
        return ""
    large = s.answers_gb >= 1000
    gb = f"{number(s.answers_gb / 1000)} TB" if large else f"{number(s.answers_gb)} GB"
    if s.answers_usd is None:
        return f"Answers are {gb} a month; what they cost leaving the provider is not known here."
    if s.answers_usd == 0:
        return f"Answers are {gb} a month; this provider does not charge for them."
    cost = money(s.answers_usd)
    return f"If all {gb} of answers a month left the provider, that would cost {cost} more."
