"""The articles' services as worked cases: what they say, what comes out, and why it differs.

Each case takes the article's own figures; prices are today's. The texts name the claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.assessment import Assessment, Option
from engine.estimate import services
from engine.estimate.pipelines import share_for_saving
from engine.explain.services import Sizing
from engine.explain.services_batching import Batching
from engine.wording import count, money, number, rough
from engine.workload.answers import Kind

SAID_SAVING = 0.6  # C257
LARGEST_EVENT_KB = 1e6  # a larger event is none


@dataclass(frozen=True, slots=True)
class Saying:
    """What an article says, its claims, and what holds."""

    says: str
    article: str
    claims: str
    here: str


@dataclass(frozen=True, slots=True)
class Split:
    """The cheapest hybrid beside the cheapest all-GPU, both on demand, as the decision has them.

    price_ratio : of a vCPU on a server to one beside the GPU
    needed : share of the all-GPU bill that must be processors' work to save what the article says;
        above 1 nothing saves so much
    """

    whole: Option
    hybrid: Option
    saving: float
    price_ratio: float
    needed: float


def split(answer: Assessment) -> Split | None:
    """The hybrid of a model service beside all-GPU; None where one of them is ruled out."""

    def cheapest(placement: str) -> Option | None:
        found = [
            o
            for o in answer.options
            if o.placement == placement and o.acquisition == "on_demand" and not o.vetoes
        ]
        return min(found, key=lambda o: o.usd_per_month.likely, default=None)

    whole, hybrid = cheapest("gpu"), cheapest("hybrid")
    if answer.workload.kind is not Kind.online_inference or whole is None or hybrid is None:
        return None
    beside = _usd_per_vcpu(whole, "gpu")
    on_server = _usd_per_vcpu(hybrid, "cpu")
    if not beside or not on_server:
        return None
    ratio = on_server / beside
    return Split(
        whole,
        hybrid,
        1 - hybrid.usd_per_month.likely / whole.usd_per_month.likely,
        ratio,
        float(share_for_saving(SAID_SAVING, ratio)) if ratio < 1 else math.inf,
    )


def _usd_per_vcpu(option: Option, hardware: str) -> float:
    """What a vCPU costs a month on this hardware of an option, the GPU beside it included."""
    found = [s for s in option.stages if s.hardware == hardware]
    vcpus = sum(s.units * s.vcpu for s in found)
    return sum(s.usd_per_month.likely for s in found) / vcpus if vcpus else 0.0


def sayings(s: Sizing, answer: Assessment, b: Batching | None) -> tuple[Saying, ...]:
    """What the articles say of this kind of service, with what comes out of the same figures."""
    w, f = answer.workload, s.fleet
    found: list[Saying] = []
    if w.kind is Kind.web:
        found.append(
            Saying(
                "One simple server answers 500 dashboard requests a second; spread out it would "
                "take five, a balancer and two tools.",
                "article 000", "C063, C064",
                f"Holds. At 8 core-ms each that is {services.cores(500, 8, 1):.0f} busy cores; "
                f"five machines fail {_times(5)} as often as one. Here "
                + ("one machine is enough too." if s.one.enough else "one machine is not enough."),
            )
        )  # fmt: skip
    if w.kind is Kind.database:
        found.append(
            Saying(
                "Do not shard a database below 100 GB.", "article 000", "C062",
                "Cautious: one machine holds "
                f"{number(s.point['machine_disk_tb'])} TB on disk. The working set in memory and "
                "the writes decide, not the size.",
            )
        )  # fmt: skip
        lost = float(services.lost_writes(s.point["rate_per_s"] * s.point["write_share"], 840))
        found.append(
            Saying(
                "A primary with read replicas lost 14 minutes of transactions.",
                "article 000", "C018",
                f"At your rate 14 minutes are {number(lost)} writes. A majority that agrees "
                "loses none, at "
                f"{number(s.point['quorum_write_ms'])} ms a write.",
            )
        )  # fmt: skip
    if w.kind is Kind.web and w.services > 1:
        factor = float(services.pooled_peak(s.point["peak_factor"], w.services))
        mean = s.point["rate_per_s"] * w.services
        busy = float(services.cores(mean, s.point["cpu_ms_per_item"], 1))
        found.append(
            Saying(
                "50 services at 100 requests a second each belong on CPUs: GPUs would idle 80% of "
                "the time.",
                "article 003", "C223, C224",
                "Holds, and for a plainer reason: nothing in them runs on a GPU. Together they "
                f"need {number(busy)} cores on the mean; if their peaks do not coincide, "
                f"{rough(factor)} times that instead of {rough(s.point['peak_factor'])}: pool "
                "them.",
            )
        )  # fmt: skip
    if w.kind is Kind.streaming:
        written = s.point["rate_per_s"] * s.point["peak_factor"] * s.guarantee.copies
        kb = f.machines * s.point["included_disk_mb_per_s"] * 1000 / max(written, 1e-9)
        disks = (
            f" Disks bind only with large events: your {count(f.machines, 'machine')} with "
            f"{number(s.point['included_disk_mb_per_s'])} MB/s each are full at {number(kb)} kB an "
            "event."
        )
        found.append(
            Saying(
                "200,000 events a second fill 24 CPU nodes, bound by their disks.",
                "article 003", "C233, C234",
                "About right in number: half a core-ms each, a peak of two and 60% load are 333 "
                f"vCPUs, 21 nodes of 16.{disks if kb < LARGEST_EVENT_KB else ''} GPUs bring "
                "nothing either way.",
            )
        )  # fmt: skip
    if w.kind is Kind.online_inference:
        found += _fraud(split(answer), b)
    return tuple(found)


def _times(n: int) -> str:
    ratio = float(services.failures_per_year(n, 1.0)) / float(services.failures_per_year(1, 1.0))
    return f"{ratio:.0f} times"


def _fraud(x: Split | None, b: Batching | None) -> list[Saying]:
    rate = 100e6 / services.DAY_S
    found = []
    if b is not None:
        inside = "inside" if b.inside else "beyond"
        target = f"{number(b.target_ms)} ms" if b.target_ms else "no target"
        found.append(
            Saying(
                "100 million transactions a day, each answered in less than 50 ms.",
                "article 003", "C254, C255",
                f"That is {rate:,.0f} a second on the mean. At your peak, with the queue before "
                f"the GPUs, 95 of 100 answers come within {rough(b.answer_ms)} ms, {inside} "
                f"{target}; the queue takes {rough(b.wait_ms)} ms of it.",
            )
        )  # fmt: skip
    if x is not None:
        needed = (
            f"{x.needed:.0%} of the all-GPU bill would have to be processors' work"
            if x.needed <= 1
            else "not even a service that is all processors' work would save so much"
        )
        found.append(
            Saying(
                "A hybrid stack cut the cost by 60% against all-GPU.",
                "article 003", "C257",
                f"It depends on what the processors beside the GPUs do. All-GPU: {x.whole.label}, "
                f"{money(x.whole.usd_per_month.likely)} a month; hybrid: {x.hybrid.label}, "
                f"{money(x.hybrid.usd_per_month.likely)}: {_signed(x.saving)}. A vCPU on a server "
                f"costs {x.price_ratio:.0%} of one beside a GPU, so for 60% {needed}.",
            )
        )  # fmt: skip
    return found


def _signed(saving: float) -> str:
    return f"{saving:.0%} saved" if saving >= 0 else f"{-saving:.0%} dearer"
