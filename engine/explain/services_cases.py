"""The articles' services as worked cases: what they say, what comes out, and why it differs.

Each case takes the article's own figures; prices are today's. The texts name the claim.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.assessment import Assessment
from engine.catalogue import Catalogue
from engine.decide.candidates import Unit
from engine.decide.context import setting
from engine.decide.priors import likely
from engine.estimate import services
from engine.estimate.pipelines import all_gpu_units, share_for_saving, split_saving
from engine.explain.services import Sizing
from engine.explain.services_batching import Batching
from engine.report.words import money, number
from engine.workload.answers import Kind
from engine.workload.workload import HOURS_PER_MONTH

SAID_SAVING = 0.6  # C257


@dataclass(frozen=True, slots=True)
class Saying:
    """What an article says, its claims, and what holds."""

    says: str
    article: str
    claims: str
    here: str


@dataclass(frozen=True, slots=True)
class Split:
    """A service on GPU machines alone, and with its processors' part on CPU servers.

    price_ratio : of a vCPU on a server to one beside the GPU
    needed : share of the all-GPU bill that must be processors' work to save what the article says;
        above 1 nothing saves so much
    """

    gpu: str
    whole_gpus: int
    whole_usd: float
    split_gpus: int
    split_servers: int
    split_usd: float
    saving: float
    price_ratio: float
    needed: float


def split(
    s: Sizing, b: Batching | None, answer: Assessment, catalogue: Catalogue | None = None
) -> Split | None:
    """The hybrid of a model service beside all-GPU, both on the GPU of the recommendation."""
    w = answer.workload
    if w.kind is not Kind.online_inference or b is None:
        return None
    place = setting(w, catalogue, answer.today, answer.settings)
    cores = next(r.amount.likely for r in s.rows if r.resource == "cores")
    reference = next((p for p in answer.best.stages if p.hardware == "gpu"), None)
    named = next((u for u in place.gpus if reference is not None and u.sku == reference.sku), None)
    if named is None:
        return None
    busy = b.rate_per_gpu * b.gpus * b.per_item_ms / 1000 / likely("gpu_pool_target_utilization")
    return _split(named, cores, busy, s)


def _split(unit: Unit, cores: float, gpu_load: float, s: Sizing) -> Split:
    usd = unit.prices["on_demand"].likely * HOURS_PER_MONTH
    server = s.fleet.usd / s.fleet.machines
    host = cores / unit.vcpu
    servers = cores / s.fleet.vcpu
    whole = int(float(all_gpu_units(host, gpu_load)))
    gpus = int(float(all_gpu_units(0.0, gpu_load)))
    n = int(float(services.whole_machines({"cores": servers})))
    ratio = (server / s.fleet.vcpu) / (usd / unit.vcpu)
    saving = float(split_saving(host, gpu_load, servers, usd, server))
    needed = float(share_for_saving(SAID_SAVING, ratio)) if ratio < 1 else float("inf")
    return Split(
        unit.name, whole, whole * usd, gpus, n, gpus * usd + n * server, saving, ratio, needed
    )


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
                f"{factor:.2g} times that instead of {s.point['peak_factor']:.2g}: pool them.",
            )
        )  # fmt: skip
    if w.kind is Kind.streaming:
        written = s.point["rate_per_s"] * s.point["peak_factor"] * s.guarantee.copies
        kb = f.machines * s.point["included_disk_mb_per_s"] * 1000 / max(written, 1e-9)
        found.append(
            Saying(
                "200,000 events a second fill 24 CPU nodes, bound by their disks.",
                "article 003", "C233, C234",
                "About right in number: half a core-ms each, a peak of two and 60% load are 333 "
                "vCPUs, 21 nodes of 16. Disks bind only with large events: your "
                f"{f.machines} machines with {number(s.point['included_disk_mb_per_s'])} MB/s each "
                f"are full at {number(kb)} kB an event. GPUs bring nothing either way.",
            )
        )  # fmt: skip
    if w.kind is Kind.online_inference:
        found += _fraud(split(s, b, answer), b, answer)
    return tuple(found)


def _times(n: int) -> str:
    ratio = float(services.failures_per_year(n, 1.0)) / float(services.failures_per_year(1, 1.0))
    return f"{ratio:.0f} times"


def _fraud(x: Split | None, b: Batching | None, answer: Assessment) -> list[Saying]:
    rate = 100e6 / services.DAY_S
    found = []
    if b is not None:
        inside = "inside" if b.inside else "beyond"
        target = f"{number(b.target_ms)} ms" if b.target_ms else "no target"
        found.append(
            Saying(
                "100 million transactions a day, each answered in less than 50 ms.",
                "article 003", "C254, C255",
                f"That is {rate:,.0f} a second on the mean. Here 95 of 100 answers come within "
                f"{number(b.answer_ms, digits=2)} ms, {inside} {target}; the queue takes "
                f"{number(b.wait_ms, digits=2)} ms of it.",
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
                f"It depends on what the processors beside the GPUs do. All-GPU takes "
                f"{x.whole_gpus} × {x.gpu} ({money(x.whole_usd)} a month), the hybrid "
                f"{x.split_gpus} and {x.split_servers} servers ({money(x.split_usd)}), spares "
                f"not counted: {_signed(x.saving)}. A vCPU on a server costs "
                f"{x.price_ratio:.0%} of one beside a GPU, so for 60% {needed}.",
            )
        )  # fmt: skip
    return found


def _signed(saving: float) -> str:
    return f"{saving:.0%} saved" if saving >= 0 else f"{-saving:.0%} dearer"
