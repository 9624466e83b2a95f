"""Which stage of a pipeline runs where: every placement on CPU servers and GPUs, by cost and time.

A run passes through its stages one after the other; each has machines of its own kind while it
runs, and releases them. Work that a GPU has no program for runs on the processors beside it. What
one stage hands to the next costs time where it changes hardware, and money where it leaves a
provider. All 2^n placements are worked out at once, on points and draws alike.

Time of a stage on n units (Amdahl): A + B/n, with A = (1 − p)·h and B = p·h on CPU servers, p·h/s
on GPUs (`jobs.cpu_parts` and `jobs.gpu_parts`, which count disks and network too), and with σ·B
moved from B to A for what further units lose to one another. Paid are n·(A + B/n + hand-over +
start). The cheapest units inside the deadline follow from Lagrange's condition
n = √(λ·B / (price·paid A)), rounded up; λ is found by bisection.

Machines that are owned are paid whether they work or not, so the stages on one kind share them, and
each stage has all of them: the fewest N of CPU servers and M of GPUs with ΣA + B_cpu/N + B_gpu/M
inside the deadline. Lagrange's condition is then N = (B_cpu + √(B_cpu·B_gpu·price_gpu/price_cpu)) /
room, and M follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.errors import InputError
from engine.estimate import jobs
from engine.workload.workload import HOURS_PER_MONTH

Array = NDArray[np.float64]
Real = float | Array
MOST_STAGES = 8
MOST_UNITS = 4096.0
BISECTIONS = 48


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a run.

    hours : on one reference CPU server [h]
    fraction : share of them that divides by machines and that a GPU speeds up
    speedup : of that share on one GPU of the kind looked at; 1 or less: there is no GPU program
    gb_out : handed on to the next stage [GB a run]
    io_share : of the hours spent on disks and network; splits : all of it divides by machines, as
        with many small tasks, and `fraction` is only what a GPU can take over
    standing : units that are kept all month for a service, on (CPU servers, GPUs); its hours are 0
    contention : what each further unit loses to the others, σ of the Universal Scalability Law
    """

    name: str
    hours: float
    fraction: float
    speedup: float
    gb_out: float = 0.0
    standing: tuple[float, float] | None = None
    io_share: float = 0.0
    splits: bool = False
    contention: float = 0.0


@dataclass(frozen=True, slots=True)
class Hardware:
    """Machines of one kind.

    region : where it is rented, empty where it may be anywhere
    servers : speed of one unit's processors in reference servers
    start_h : paid before a rented machine works, in each run; no more than leaving it on
    step : units that are rented or bought together
    owned : US dollars a month of owning so many units that work so many hours a month each, and
        whether others are owned beside them; None where they are rented by the hour
    """

    name: str
    provider: str
    usd_per_hour: float
    servers: float
    network_gbit: float
    step: int = 1
    region: str = ""
    start_h: float = 0.0
    owned: Callable[[Array, Array, NDArray[np.bool_]], Array] | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which a run is placed.

    deadline_h : for one run; runs_per_month : one after the other
    wire_share : of the network's rate
    egress_usd : price of a month's GB that leave a provider for another
    region_usd_per_gb : price of a GB between two regions of one provider
    """

    deadline_h: float
    runs_per_month: float
    wire_share: float
    egress_usd: Callable[[str, float], float]
    region_usd_per_gb: float = 0.0


@dataclass(frozen=True, slots=True)
class Placed:
    """All placements: `on_gpu` (P, k); hours and USD a month (P, draws); units (P, draws, k).

    Infinite where the deadline can't be kept. `stage_hours` and `moved_hours` are by stage,
    `stage_usd` a month; `egress` (P,) is US dollars a month.
    """

    on_gpu: NDArray[np.bool_]
    hours: Array
    usd: Array
    units: Array
    stage_hours: Array
    moved_hours: Array
    stage_usd: Array
    egress: Array


def all_placements(stages: int) -> NDArray[np.bool_]:
    """Every way to put the stages on CPU (False) or GPU (True): first all CPU, last all GPU.

    Raises
    ------
    InputError : no stage, or more than eight
    """
    if not 1 <= stages <= MOST_STAGES:
        raise InputError(f"{stages} stages", where="stages", right=f"1 to {MOST_STAGES}")
    numbers = np.arange(2**stages)[:, None]
    return np.asarray(numbers >> np.arange(stages)[None, :] & 1, dtype=bool)


def time_parts(
    stage: Stage, hours: Array, speedup: Array, cpu_servers: float, host_servers: float
) -> tuple[Array, Array, Array, Array]:
    """Serial and divisible hours of a stage on one CPU unit, then on one GPU.

    cpu_servers, host_servers : processors of a CPU unit, and of a GPU's machine, in reference
        servers; the latter do what has no GPU program (a speed-up of 1 or less). The serial part
        runs on one core, which is as fast everywhere.
    """
    p, b = np.asarray(stage.fraction), np.asarray(stage.io_share)
    serial, divisible = jobs.cpu_parts(hours, p, b, stage.splits)
    rate = np.where(speedup > 1.0, speedup, host_servers)
    on_gpu = jobs.gpu_parts(hours, p, b, rate, host_servers, stage.splits)
    sigma = np.asarray(stage.contention)
    return (
        *jobs.with_contention(serial, np.asarray(divisible / cpu_servers), sigma),
        *jobs.with_contention(*on_gpu, sigma),
    )


def place(
    stages: Sequence[Stage],
    cpu: Hardware,
    gpu: Hardware,
    terms: Terms,
    *,
    hours_factor: Array | None = None,
    speedup_factor: Array | None = None,
) -> Placed:
    """Every placement of the stages with its cheapest units inside the deadline.

    hours_factor, speedup_factor : draws of what each stage may be off by, (draws, k)

    Raises
    ------
    InputError : no stages, too many, or a deadline that is not above zero
    """
    k = len(stages)
    on_gpu = all_placements(k)
    if not terms.deadline_h > 0:
        raise InputError(f"{terms.deadline_h:g} h", where="deadline_h", right="more than 0")
    at = on_gpu[:, None, :]
    one = np.ones((1, k))
    hours = np.array([s.hours for s in stages]) * (one if hours_factor is None else hours_factor)
    told = np.array([s.speedup for s in stages])
    speedup = np.where(told > 1.0, told * (one if speedup_factor is None else speedup_factor), 1.0)
    price = np.where(at, gpu.usd_per_hour, cpu.usd_per_hour)
    step = np.where(at, gpu.step, cpu.step).astype(float)
    parts = [
        time_parts(s, hours[:, i], speedup[:, i], cpu.servers, gpu.servers)
        for i, s in enumerate(stages)
    ]
    cpu_a, cpu_b, gpu_a, gpu_b = (np.stack(x, axis=-1)[None] for x in zip(*parts, strict=True))
    serial, divisible = np.where(at, gpu_a, cpu_a), np.where(at, gpu_b, cpu_b)
    batch = np.array([s.standing is None for s in stages])
    moved = _moved_hours(stages, on_gpu, cpu, gpu, terms)[:, None, :]
    runs = max(terms.runs_per_month, 1e-9)
    limit = min(terms.deadline_h, HOURS_PER_MONTH / runs)
    start = np.where(at, gpu.start_h, cpu.start_h)
    paid_serial = serial + moved + start
    room = limit - (serial + moved).sum(axis=2, keepdims=True)
    standing = np.array([s.standing or (0.0, 0.0) for s in stages])
    kept = np.ceil(np.where(at, standing[:, 1], standing[:, 0]) / step - 1e-9) * step
    if cpu.owned is None or gpu.owned is None:
        units, fits = _units(divisible, paid_serial, price, room, step)
        took = serial + divisible / units
        busy = runs * (took + moved)
        starting = np.minimum(runs * start, np.maximum(HOURS_PER_MONTH - busy, 0.0))
        stage_usd = price * units * (busy + starting) * batch
        stage_usd = stage_usd + kept * price * HOURS_PER_MONTH
    else:
        units, fits = _shared(divisible, at & batch, ~at & batch, room, cpu, gpu)
        took = serial + divisible / units
        worked = runs * took * units * batch + kept * HOURS_PER_MONTH
        stage_usd = _owned(worked, units * batch, kept, at, (cpu, gpu))
    egress = _egress(stages, on_gpu, cpu, gpu, terms)
    total = (took + moved).sum(axis=2)
    fits = fits & (total <= limit * (1 + 1e-9))
    return Placed(
        on_gpu,
        np.where(fits, total, np.inf),
        np.where(fits, stage_usd.sum(axis=2) + egress[:, None], np.inf),
        np.where(batch, units, kept) * np.ones_like(took),
        took,
        np.broadcast_to(moved, took.shape),
        stage_usd,
        egress,
    )


def _units(
    divisible: Array, paid: Array, price: Array, room: Array, step: Array
) -> tuple[Array, NDArray[np.bool_]]:
    """Units of each stage at the least cost with Σ B/n within the room; whether it can be kept.

    The derivative of cost, price·paid A, is weighed against that of time, B/n².
    """
    weight = np.sqrt(divisible / np.maximum(price * paid, 1e-12))
    low = np.full(room.shape, -12.0)
    high = np.full(room.shape, 18.0)

    def whole(log_weight: Array) -> Array:
        n = np.clip(weight * 10.0**log_weight, 1.0, MOST_UNITS)
        return np.asarray(np.ceil(n / step - 1e-9) * step)

    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        enough = (divisible / whole(middle)).sum(axis=2, keepdims=True) <= room
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle)
    units = whole(high)
    fits = (divisible / units).sum(axis=2) <= room[..., 0] * (1 + 1e-9)
    return units, fits


def _shared(
    divisible: Array, on_gpu: Array, on_cpu: Array, room: Array, cpu: Hardware, gpu: Hardware
) -> tuple[Array, NDArray[np.bool_]]:
    """Owned units of each stage, shared by all on one kind; whether the deadline can be kept.

    room : what a run leaves to the parts that divide, (P, draws, 1)
    """
    left = np.maximum(room[..., 0], 1e-12)
    b_cpu, b_gpu = (divisible * on_cpu).sum(axis=2), (divisible * on_gpu).sum(axis=2)
    ratio = gpu.usd_per_hour / cpu.usd_per_hour
    best = (b_cpu + np.sqrt(b_cpu * b_gpu * ratio)) / left
    # Whole machines of both: the ones around the best, and the fewest that leave the GPUs any time.
    fewest = np.floor(b_cpu / left / cpu.step) * cpu.step + np.where(b_gpu > 0, cpu.step, 0)
    tried = [np.floor(best / cpu.step + k) * cpu.step for k in (-1, 0, 1, 2)]
    tried += [np.ceil(b_cpu / left / cpu.step - 1e-9) * cpu.step, fewest]
    n = np.clip(np.stack(tried), cpu.step, MOST_UNITS)
    rest = left - b_cpu / n
    with np.errstate(divide="ignore", over="ignore"):
        m = np.ceil(b_gpu / np.maximum(rest, 1e-12) / gpu.step - 1e-9) * gpu.step
    m = np.maximum(m, gpu.step)
    kept = (b_cpu / n + b_gpu / np.minimum(m, MOST_UNITS) <= left * (1 + 1e-9)) & (m <= MOST_UNITS)
    usd = n * cpu.usd_per_hour * (b_cpu > 0) + m * gpu.usd_per_hour * (b_gpu > 0)
    least = np.where(kept, usd, np.inf).argmin(axis=0)[None]
    n, m = (np.take_along_axis(x, least, axis=0)[0] for x in (n, np.minimum(m, MOST_UNITS)))
    fits = np.take_along_axis(kept, least, axis=0)[0] & (room[..., 0] > 0)
    return np.asarray(np.where(on_gpu, m[..., None], n[..., None])), fits


def _owned(
    worked: Array, units: Array, kept: Array, on_gpu: NDArray[np.bool_],
    pair: tuple[Hardware, Hardware],
) -> Array:  # fmt: skip
    """US dollars a month by stage of machines that are owned: their bill by the hours they work.

    worked : unit hours a month of each stage; units, kept : of a run's stages, of services
    """
    found = np.zeros(worked.shape)
    both = (on_gpu.any(axis=2) & ~on_gpu.all(axis=2)) * np.ones(worked.shape[:2], dtype=bool)
    for hardware, here in zip(pair, (~on_gpu, on_gpu), strict=True):
        assert hardware.owned is not None
        there = worked * here
        hours = there.sum(axis=2)
        many = (units * here).max(axis=2) + np.broadcast_to(kept * here, worked.shape).sum(axis=2)
        used = np.minimum(hours / np.maximum(many, 1.0), HOURS_PER_MONTH)
        bill = hardware.owned(many.ravel(), used.ravel(), both.ravel()).reshape(many.shape)
        # What never works is paid as well: its stages then share the bill equally.
        idle = here / np.maximum(here.sum(axis=2, keepdims=True), 1)
        share = np.where(hours[..., None] > 0, there / np.maximum(hours, 1e-12)[..., None], idle)
        found = found + np.where(many > 0, bill, 0.0)[..., None] * share
    return found


def _moved_hours(
    stages: Sequence[Stage], on_gpu: NDArray[np.bool_], cpu: Hardware, gpu: Hardware, terms: Terms
) -> Array:
    """Hours that the hand-over to each stage takes, (P, k); none without a change of hardware."""
    rate = min(cpu.network_gbit, gpu.network_gbit) * terms.wire_share
    gb = np.array([0.0, *(s.gb_out for s in stages[:-1])])
    batch = np.array([s.standing is None for s in stages])
    changes = np.zeros(on_gpu.shape, dtype=bool)
    changes[:, 1:] = on_gpu[:, 1:] != on_gpu[:, :-1]
    return np.asarray(changes * batch * transfer_hours(gb, rate))


def transfer_hours(gb: Real, gbit_per_s: Real) -> Real:
    """Hours to send so many GB: 8 bits a byte over the rate that is reached."""
    return np.asarray(np.asarray(gb) * 8.0 / np.asarray(gbit_per_s) / 3600.0)


def _egress(
    stages: Sequence[Stage], on_gpu: NDArray[np.bool_], cpu: Hardware, gpu: Hardware, terms: Terms
) -> Array:
    """US dollars a month for what leaves a provider, or its region; none inside a region."""
    gb = np.array([s.gb_out for s in stages[:-1]]) * terms.runs_per_month
    up = (~on_gpu[:, :-1] & on_gpu[:, 1:]) @ gb
    down = (on_gpu[:, :-1] & ~on_gpu[:, 1:]) @ gb
    if cpu.provider == gpu.provider:
        apart = bool(cpu.region and gpu.region and cpu.region != gpu.region)
        return np.asarray((up + down) * (terms.region_usd_per_gb if apart else 0.0))
    known = {
        (provider, float(g)): terms.egress_usd(provider, float(g))
        for provider, amounts in ((cpu.provider, up), (gpu.provider, down))
        for g in np.unique(amounts)
    }
    return np.array(
        [
            known[cpu.provider, float(a)] + known[gpu.provider, float(b)]
            for a, b in zip(up, down, strict=True)
        ]
    )


def share_for_saving(saving: Real, price_ratio: Real) -> Real:
    """Share of an all-GPU bill that must be processors' work for a split to save so much.

    Moving a share f that costs q times as much on CPUs saves f·(1 − q), so f = saving/(1 − q);
    above 1 no split saves that much.
    """
    return np.asarray(saving, dtype=float) / (1.0 - np.asarray(price_ratio, dtype=float))
