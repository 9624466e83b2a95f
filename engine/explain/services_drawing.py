"""The architecture as boxes and arrows: which pattern fits, and with how many machines.

A drawing is layers of boxes from top to bottom, the way a request goes. It knows nothing of
pictures; `services_svg` draws it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from engine.assessment import Assessment, StagePlan
from engine.estimate import services
from engine.explain.services import Sizing
from engine.explain.services_batching import Batching
from engine.explain.services_pipeline import PipelinePlan
from engine.wording import count, duration, money, number, rough
from engine.workload.answers import Kind, ModelClass
from engine.workload.services_terms import Shown

Look = Literal["gpu", "cpu", "store", "outside"]


@dataclass(frozen=True, slots=True)
class Box:
    """One part: title, lines under it, what it runs on, and how many machines stand there."""

    id: str
    title: str
    lines: tuple[str, ...] = ()
    look: Look = "cpu"
    machines: int = 1


@dataclass(frozen=True, slots=True)
class Arrow:
    """What goes from one box to another; dashed where it follows later or only in need."""

    start: str
    end: str
    label: str = ""
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """Layers of boxes from top to bottom, arrows, and the same in words."""

    pattern: Shown
    title: str
    message: str
    layers: tuple[tuple[Box, ...], ...]
    arrows: tuple[Arrow, ...]

    @property
    def alt(self) -> str:
        """The drawing in words."""
        boxes = {b.id: b for layer in self.layers for b in layer}
        parts = [" ".join((b.title, *b.lines)) for b in boxes.values()]
        ways = [
            f"{boxes[a.start].title} to {boxes[a.end].title}{f' ({a.label})' if a.label else ''}"
            for a in self.arrows
        ]
        return f"{self.title}. Parts: {'; '.join(parts)}. Arrows: {'; '.join(ways)}."


@dataclass(frozen=True, slots=True)
class Pattern:
    """One architecture: whether it fits, and the reason."""

    shown: Shown
    title: str
    fits: bool
    why: str


TITLES: dict[Shown, str] = {
    Shown.client_server: "Client and server",
    Shown.three_tier: "Three tiers",
    Shown.n_tier: "Many services (N tiers)",
    Shown.peer_to_peer: "Peers",
    Shown.replicated: "Replicated",
    Shown.sharded: "Sharded",
    Shown.log: "Log with partitions",
    Shown.crawler: "Crawler",
    Shown.workers: "Workers on parts of the data",
    Shown.batching: "Queue and batches on GPUs",
    Shown.hybrid: "CPU rules and GPU model",
}


def patterns(s: Sizing, answer: Assessment) -> tuple[Pattern, ...]:
    """Every architecture with the reason why it fits this job or does not."""
    chosen = fitting(s, answer)
    w, f, g = answer.workload, s.fleet, s.guarantee
    parties = answer.settings.architecture.parties
    one = f.machines == 1
    why: dict[Shown, str] = {
        Shown.client_server: "One machine carries it: simple, and away while that machine is"
        if one
        else f"One server at the centre is not enough: {count(f.machines, 'machine')} are needed",
        Shown.three_tier: "Interface, application and data apart: each can grow, and each "
        "boundary adds a hop",
        Shown.n_tier: f"{count(w.services, 'service')} of their own, each with its own release; "
        "every call between them can fail"
        if w.services > 1
        else "There is one service; cutting it up adds hops and partial failures only",
        Shown.peer_to_peer: "Nobody may own the whole, so every party holds its part"
        if parties
        else "One party runs it: a centre is simpler, quicker and consistent",
        Shown.replicated: f"{g.copies} copies of the same data: {g.why}"
        if g.copies > 1
        else "A second copy is not asked for by the failures that you named",
        Shown.sharded: f"No machine holds it alone: {count(f.carrying, 'part')}"
        if f.carrying > 1 and w.kind in (Kind.database, Kind.search)
        else "One machine holds the data; shards would add failure modes only",
        Shown.log: "Events come in faster than they are worked on, and are read more than once"
        if w.kind is Kind.streaming
        else "Nothing here is a stream of events",
        Shown.crawler: "Pages wait in a frontier until their host may be asked again"
        if w.kind is Kind.search
        else "Nothing is fetched from other people's servers",
        Shown.workers: "Runs work through stored data, each machine through its part"
        if w.kind is Kind.etl
        else "Nothing here comes in runs over stored data",
        Shown.batching: "Requests gather to batches, which is what makes a GPU pay"
        if w.kind is Kind.online_inference
        else "There is no model that answers requests",
        Shown.hybrid: "Features and rules on CPU servers, the model on GPUs"
        if w.kind is Kind.online_inference
        else "There is no model beside the rules",
    }
    drawn = [Shown.workers] if w.kind is Kind.etl else list(TITLES)
    return tuple(Pattern(p, TITLES[p], p in chosen, why[p]) for p in drawn)


def fitting(s: Sizing, answer: Assessment) -> tuple[Shown, ...]:
    """The architectures that fit, the one that is drawn first."""
    w, f, g = answer.workload, s.fleet, s.guarantee
    if answer.settings.architecture.parties:
        return (Shown.peer_to_peer,)
    if w.kind is Kind.online_inference:
        gpu = any(p.hardware == "gpu" for p in answer.best.stages)
        mixed = len({p.hardware for p in answer.best.stages}) == 2
        if gpu:
            return (Shown.hybrid, Shown.batching) if mixed else (Shown.batching,)
        return (Shown.three_tier,)
    if w.kind is Kind.etl:
        return (Shown.workers,)
    if w.kind is Kind.streaming:
        return (Shown.log,) if g.copies == 1 else (Shown.log, Shown.replicated)
    if w.kind is Kind.search:
        return (Shown.crawler, Shown.sharded) if f.carrying > 1 else (Shown.crawler,)
    if w.kind is Kind.database:
        found = [Shown.sharded] if f.carrying > 1 else []
        found += [Shown.replicated] if g.copies > 1 else []
        return tuple(found) or (Shown.client_server,)
    if w.services > 1:
        return (Shown.n_tier,)
    if f.machines == 1:
        return (Shown.client_server,)
    return (Shown.three_tier,)


def draw(s: Sizing, answer: Assessment, batching: Batching | None) -> Drawing:
    """The drawing that the terms name, else the first that fits.

    Runs over stored data have no requests, so they have one drawing.
    """
    asked = answer.settings.architecture.shown
    only = asked is Shown.fitting or answer.workload.kind is Kind.etl
    pattern = fitting(s, answer)[0] if only else asked
    layers, arrows, message = _DRAWN[pattern](s, answer, batching)
    return Drawing(pattern, TITLES[pattern], message, layers, arrows)


def draw_pipeline(p: PipelinePlan) -> Drawing | None:
    """The stages of the best placement, one below the other, with what passes between them."""
    if p.best is None:
        return None
    boxes, arrows = [], []
    for i, row in enumerate(p.best.stages):
        took = "all month" if row.standing else duration(row.hours)
        lines = (f"{row.units:,} × {row.hardware}", f"{took}, {money(row.usd)} a month")
        boxes.append(Box(f"s{i}", row.name, lines, "gpu" if row.on_gpu else "cpu", row.units))
        if i:
            gb = p.stages[i - 1].gb_out
            label = f"{number(gb)} GB" if gb else ""
            if row.moved_hours:
                label += f" in {duration(row.moved_hours)}"
            arrows.append(Arrow(f"s{i - 1}", f"s{i}", label))
    return Drawing(
        Shown.fitting, "Pipeline", "Stages on one kind of machine share what is owned."
        if p.owned
        else "Each stage has machines of its own while it runs.",
        tuple((b,) for b in boxes), tuple(arrows),
    )  # fmt: skip


# --- the patterns

Parts = tuple[tuple[tuple[Box, ...], ...], tuple[Arrow, ...], str]


def _users(s: Sizing, answer: Assessment) -> Box:
    rate = s.point.get("rate_per_s", 0.0) * answer.workload.services
    peak = rate * s.point.get("peak_factor", 1.0)
    return Box("in", "Requests", (f"{number(rate)}/s, {number(peak)}/s at the peak",), "outside")


def _servers(s: Sizing, id: str = "app", title: str = "Servers", n: int | None = None) -> Box:
    n = s.fleet.machines if n is None else n
    size = f"{s.fleet.vcpu:g} vCPU, {s.fleet.memory_gb:,.0f} GB"
    return Box(id, title, (f"{count(n, 'machine')}", size), "cpu", n)


def _store(s: Sizing, id: str = "data", title: str = "Data") -> Box:
    gb = next((r.amount.likely for r in s.rows if r.resource == "disk_space"), 0.0)
    return Box(id, title, (_size(gb),), "store")


def _size(gb: float) -> str:
    return f"{number(gb / 1000)} TB of disk" if gb >= 1000 else f"{number(gb)} GB of disk"


def _client_server(s: Sizing, answer: Assessment, b: Batching | None) -> Parts:
    return (
        ((_users(s, answer),), (_servers(s, title="Server", n=1),), (_store(s),)),
        (Arrow("in", "app"), Arrow("app", "data", "same machine")),
        "One machine answers everything: the fewest parts that can fail.",
    )


def _three_tier(s: Sizing, answer: Assessment, b: Batching | None) -> Parts:
    return (
        (
            (_users(s, answer),),
            (Box("lb", "Load balancer", ("takes dead machines out",)),),
            (_servers(s, title="Application"),),
            (_store(s, title="Database or files"),),
        ),
        (Arrow("in", "lb"), Arrow("lb", "app"), Arrow("app", "data")),
        "Any machine answers any request, so one may fail; the data stands behind them.",
    )


def _n_tier(s: Sizing, answer: Assessment, b: Batching | None) -> Parts:
    n = answer.workload.services
    each = s.point["rate_per_s"] * s.point["cpu_ms_per_item"] / 1000
    return (
        (
            (_users(s, answer),),
            (Box("gw", "Gateway", ("routes, checks, limits",)),),
            (
                Box("svc", count(n, "service"), (f"{number(each)} cores each, mean",), "cpu", n),
                Box("bus", "Events", ("between services",), "store"),
            ),
            (_servers(s, "pool", "Shared pool"), _store(s, title="Data of each")),
        ),
        (
            Arrow("in", "gw"), Arrow("gw", "svc"), Arrow("svc", "bus", dashed=True),
            Arrow("svc", "pool", "run on"), Arrow("svc", "data"),
        ),
        "The services share one pool: alone, most of their machines would idle.",
    )  # fmt: skip


def _peers(s: Sizing, answer: Assessment, b: Batching | None) -> Parts:
    boxes = [
        Box(f"p{i}", f"Party {i}", ("its own copy", "its own rules"), "cpu") for i in range(1, 5)
    ]
    return (
        ((boxes[0], boxes[1]), (boxes[2], boxes[3])),
        (
            Arrow("p1", "p2", dashed=True), Arrow("p1", "p3", dashed=True),
            Arrow("p2", "p4", dashed=True), Arrow("p3", "p4", dashed=True),
        ),
        "No centre: any party may leave, and what they hold agrees only after a while.",
    )  # fmt: skip


def _replicated(s: Sizing, answer: Assessment, b: Batching | None) -> Parts:
    g = s.guarantee
    each = max(s.fleet.machines // max(g.copies, 1), 1)
    first = Box("c0", "Leader", (count(each, "machine"), "takes the writes"), "cpu", each)
    others = [
        Box(f"c{i}", f"Copy {i + 1}", (count(each, "machine"), "answers reads"), "cpu", each)
        for i in range(1, min(g.copies, 3))
    ]
    if g.voters > g.copies:
        others.append(Box("w", "Witness", ("votes, holds nothing",), "store"))
    how = "waits for a majority" if g.agree else f"{number(s.point['lag_s'])} s behind"
    message = (
        f"A write counts once {g.quorum} of {g.voters} have it; {g.voters - g.quorum} may be lost."
        if g.agree
        else "Copies follow behind: quick, and the newest writes die with the leader."
    )
    if g.copies == 1:
        message = "One copy: nothing to agree on, and nothing left when it dies but the backup."
    arrows = [Arrow("in", "c0", "writes")]
    arrows += [Arrow("c0", o.id, how if i == 0 else "", not g.agree) for i, o in enumerate(others)]
    layers = [(_users(s, answer),), (first,)]
    return (
        (*layers, tuple(others)) if others else tuple(layers),
        tuple(arrows),
        message,
    )


def _sharded(s: Sizing, answer: Assessment, b: Batching | None) -> Parts:
    n, g = s.fleet.carrying, s.guarantee
    shown = min(n, 3)
    names = [f"Shard {i + 1}" for i in range(shown)]
    if n > 3:
        names[1], names[2] = f"Shards 2 to {n - 1}", f"Shard {n}"
    boxes = tuple(
        Box(f"s{i}", name, (f"{g.copies} cop{'y' if g.copies == 1 else 'ies'} each",), "store",
            n - 2 if n > 3 and i == 1 else 1)
        for i, name in enumerate(names)
    )  # fmt: skip
    return (
        (
            (_users(s, answer),),
            (Box("r", "Router", ("by key",)),),
            boxes,
        ),
        (Arrow("in", "r"), *(Arrow("r", x.id) for x in boxes)),
        "One machine would hold it: shards only add failure modes here."
        if n == 1
        else f"{n} parts by key; a query that needs several of them is slower and may see halves.",
    )


def _log(s: Sizing, answer: Assessment, b: Batching | None) -> Parts:
    x = s.point
    rate = x["rate_per_s"] * x["peak_factor"] * x["request_kb"] / 1000
    parts = int(float(services.partitions(rate, x["partition_mb_per_s"], float(s.fleet.carrying))))
    readers = round(max(x["fan_out"], 1))
    n = s.fleet.machines
    held = (count(parts, "partition"), f"{s.guarantee.copies} copies", count(n, "machine"))
    queue = Box("log", "Log", held, "cpu", n)
    return (
        (
            (Box("in", "Producers", (f"{number(x['rate_per_s'])} events/s",), "outside"),),
            (queue,),
            (
                Box("r", count(readers, "group"), ("of readers",), "cpu", readers),
                _store(s, "kept", "Kept events"),
            ),
        ),
        (
            Arrow("in", "log", f"{number(rate)} MB/s at the peak"),
            Arrow("log", "r", "in order by partition"),
            Arrow("log", "kept", dashed=True),
        ),
        "Every event is written once for each copy and read by each group.",
    )


def _crawler(s: Sizing, answer: Assessment, b: Batching | None) -> Parts:
    x = s.point
    peak = x["rate_per_s"] * x["peak_factor"]
    open_ = float(services.under_way(peak, x["fetch_s"]))
    hosts = float(services.under_way(x["rate_per_s"], x["host_delay_s"]))
    return (
        (
            (Box("q", "Frontier", (f"{number(hosts)} hosts or more",), "store"),),
            (_servers(s, "f", "Fetch and parse"),),
            (
                Box("web", "Their servers", (f"{number(open_)} connections",), "outside"),
                _store(s, "p", "Pages"),
            ),
        ),
        (
            Arrow("q", "f", f"{number(x['rate_per_s'])} pages/s"), Arrow("f", "web"),
            Arrow("f", "p", "compressed"), Arrow("f", "q", "new links", dashed=True),
        ),
        "Most of the time is waiting: connections are cheap, politeness sets the pace.",
    )  # fmt: skip


def _workers(s: Sizing, answer: Assessment, b: Batching | None) -> Parts:
    x = s.point
    hours = x.get("patience_h", 0.0)
    gb = x.get("data_gb", x["working_set_gb"])
    moved = gb * x["shuffle_share"]
    data = f"{number(gb / 1000)} TB" if gb >= 1000 else f"{number(gb)} GB"
    across = f"{number(moved / 1000)} TB" if moved >= 1000 else f"{number(moved)} GB"
    return (
        (
            (Box("in", "Stored data", (f"{data} a run",), "store"),),
            (Box("plan", "Scheduler", (f"a run within {number(hours)} h",)),),
            (_servers(s, "w", "Workers"), Box("x", "Shuffle", (f"{across} on disks",), "store")),
            (Box("out", "Results", (), "store"),),
        ),
        (
            Arrow("in", "plan"), Arrow("plan", "w", "parts"), Arrow("w", "x"),
            Arrow("w", "out"),
        ),
        "Each machine works on its part; only the shuffle crosses the network.",
    )  # fmt: skip


def _stage(answer: Assessment, hardware: str) -> StagePlan | None:
    return next((p for p in answer.best.stages if p.hardware == hardware), None)


def _model(answer: Assessment, b: Batching | None) -> Box:
    found = _stage(answer, "gpu")
    if found is None:
        cpu = _stage(answer, "cpu")
        n = cpu.machines if cpu is not None else 1
        return Box("gpu", "Model", (f"on {count(n, 'server')}",), "cpu", n)
    lines = [f"{found.units} × {found.name}"]
    if b is not None:
        lines.append(f"{b.load:.0%} busy at the peak")
    return Box("gpu", "GPU nodes", tuple(lines), "gpu", found.machines)


def _batching(s: Sizing, answer: Assessment, b: Batching | None) -> Parts:
    queue = ("in memory, limited",) if b is None else (f"{rough(b.queue)} wait on the mean",)
    batch = (
        ("continuous batching",)
        if b is None
        else (
            f"{rough(b.batch)} requests a batch",
            f"held {rough(b.delay_ms)} ms at most",
        )
    )
    return (
        (
            (_users(s, answer),),
            (Box("lb", "Load balancer"),),
            (Box("q", "Queue", queue, "store"), Box("b", "Batch scheduler", batch)),
            (_model(answer, b),),
            (Box("out", "Aggregator", _answer_lines(b)),),
        ),
        (
            Arrow("in", "lb"), Arrow("lb", "q"), Arrow("q", "b"), Arrow("b", "gpu", "batches"),
            Arrow("gpu", "out"),
        ),
        "Requests gather while the batch before them is worked on: the queue fills the GPUs.",
    )  # fmt: skip


def _answer_lines(b: Batching | None) -> tuple[str, ...]:
    return () if b is None else (f"after {rough(b.answer_ms)} ms, 95 of 100",)


def _hybrid(s: Sizing, answer: Assessment, b: Batching | None) -> Parts:
    cpu = _stage(answer, "cpu")
    n = cpu.machines if cpu is not None else s.fleet.machines
    vcpu = cpu.vcpu if cpu is not None and cpu.vcpu else s.fleet.vcpu
    servers = (count(n, "server"), f"{vcpu:g} vCPU each")
    llm = answer.workload.model_class is ModelClass.llm
    return (
        (
            (_users(s, answer),),
            (
                Box("store", "Feature store", ("in memory",), "store"),
                Box("cpu", "Rules and features", servers, "cpu", n),
            ),
            (Box("q", "Queue and batches", _hybrid_queue(b), "store"),),
            (_model(answer, b),),
            (
                Box("dec", "Decision", ("on the same servers", *_answer_lines(b))),
                Box("fb", "Fallback", ("a smaller model" if llm else "rules alone",)),
            ),
        ),
        (
            Arrow("in", "cpu"), Arrow("cpu", "store"), Arrow("cpu", "q"), Arrow("q", "gpu"),
            Arrow("gpu", "dec"), Arrow("cpu", "fb", "if late", dashed=True),
        ),
        "Each part runs where it is cheap; if the GPUs fail, the rules still answer.",
    )  # fmt: skip


def _hybrid_queue(b: Batching | None) -> tuple[str, ...]:
    if b is None:
        return ("continuous batching",)
    return (f"{rough(b.queue)} wait, {rough(b.batch)} a batch",)


_DRAWN: dict[Shown, Callable[[Sizing, Assessment, Batching | None], Parts]] = {
    Shown.client_server: _client_server,
    Shown.three_tier: _three_tier,
    Shown.n_tier: _n_tier,
    Shown.peer_to_peer: _peers,
    Shown.replicated: _replicated,
    Shown.sharded: _sharded,
    Shown.log: _log,
    Shown.crawler: _crawler,
    Shown.workers: _workers,
    Shown.batching: _batching,
    Shown.hybrid: _hybrid,
}
