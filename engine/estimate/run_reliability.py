"""What failures do to one long run: how often it stops, what that loses, what may be done about it.

Puts the formulae of `engine.estimate.reliability` together for a synchronous job, which stops when
any of its machines does. Everything takes floats or NumPy arrays that broadcast (draws, sizes,
intervals); the count of spare machines is one number. Times are in hours, shares between 0 and 1.
It knows nothing of tables, hardware or prices.

The model. Failures come at random (exponential) and each loses the work since the last checkpoint;
any further stop cuts a restart short (Daly's renewal form). What is counted per useful hour, in
this order:

    useful work            1, at the pace of a typical machine
    slowest machine        the step waits for it: order statistics of the machines' paces
    silent corruption      windows that are thrown away, and the checks that find it
    checkpoints            stall over interval
    work done again        what failures destroy
    restarts               from the failure to useful work
    reclaimed with notice  spot machines that leave time for a last checkpoint
    waiting for a machine  no spare is left and the broken one is still away
    spare machines         paid, idle until needed

References
----------
[1] J. T. Daly, "A higher order estimate of the optimum checkpoint interval", FGCS 22(3), 2006.
[2] Corless et al., "On the Lambert W function", Adv. Comput. Math. 5, 1996: the exact optimum.
[3] A. K. Erlang 1917: blocking probability, here the share of time without a machine to go on with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from scipy.special import lambertw

from engine.errors import InputError
from engine.estimate.reliability import (
    NEVER_PER_HOUR,
    Array,
    Real,
    false_alarms,
    fleet_mtbf,
    goodput,
    hours_with_stops,
)
from engine.estimate.scaling import straggler_slowdown

# Beyond this many hours for one useful hour the run does not end; sums stay finite.
NEVER_ENDS = 1e9
Z90 = 1.2815515655446004  # standard normal at the 90th percentile


# --- intervals


def exact_interval(save: Real, mtbf: Real) -> Real:
    """The interval of useful work that maximises `goodput`: τ = M·(1 + W₀(−exp(−1 − δ/M))) [2].

    The restart does not enter. For rare failures it is Young's √(2δM) less two thirds of δ.

    save : stall of a checkpoint δ, 0 gives 0; mtbf : mean time between failures M, in one unit
    """
    _not_negative("save", save)
    _positive("mtbf", mtbf)
    ratio = np.asarray(save, float) / np.asarray(mtbf, float)
    # Near its branch point W is flat and loses digits: there its series in p = √(2(1 − e^−δ/M)).
    p = np.sqrt(-2 * np.expm1(-ratio))
    series = p * (1 + p * (-1 / 3 + p * (11 / 72 - p * 43 / 540)))
    closed = 1 + np.real(lambertw(-np.exp(-1 - ratio)))
    x = np.where(p < 0.05, series, closed)
    return _like(x * np.asarray(mtbf, float), save, mtbf)


def daly_interval(save: Real, mtbf: Real) -> Real:
    """Daly's estimate: √(2δM)(1 + ⅓√(δ/2M) + ⅑·δ/2M) − δ below δ = 2M, the MTBF beyond [1]."""
    _positive("save", save)
    _positive("mtbf", mtbf)
    d, m = np.asarray(save, float), np.asarray(mtbf, float)
    half = d / (2 * m)
    tau = np.sqrt(2 * d * m) * (1 + np.sqrt(half) / 3 + half / 9) - d
    return _like(np.where(d < 2 * m, tau, m), save, mtbf)


def best_check_interval(check: Real, errors_per_hour: Real) -> Real:
    """Hours of work between two checks that find a silent error, lost least.

    Minimises (I + k)·exp(λI)/I: λI² + λkI − k = 0; for rare errors it is √(k/λ).

    check : hours that one check takes k; errors_per_hour : silent errors of the job λ
    """
    _positive("check", check)
    _positive("errors_per_hour", errors_per_hour)
    product = np.asarray(errors_per_hour, float) * np.asarray(check, float)
    # Written so that a product near 0 does not cancel: k·2/(λk + √(λ²k² + 4λk)).
    interval = 2 * np.asarray(check, float) / (product + np.sqrt(product**2 + 4 * product))
    return _like(interval, check, errors_per_hour)


# --- parts


def failures_expected(devices: Real, hours: Real, device_mtbf: Real) -> Real:
    """Failures of a fleet that works for so many hours; their count is Poisson."""
    return cast(Real, np.asarray(hours) / fleet_mtbf(device_mtbf, devices))


def restart_hours_per_failure(restart: Real, mtbf: Real) -> Real:
    """Mean hours of restart after a stop, begun anew at each further one: M(e^{R/M} − 1).

    Cut at e^50, where a restart practically never ends.
    """
    _positive("mtbf", mtbf)
    tries = np.expm1(np.minimum(np.asarray(restart, float) / mtbf, 50.0))
    return cast(Real, np.asarray(mtbf) * tries)


def without_a_machine(broken_at_once: Real, spares: int) -> Real:
    """Share of the time in which a job stands still because no machine can take over [3].

    Machines break while the job works, and are away for a while; with s spares the job stands
    still when s + 1 are away. That is Erlang's loss formula with s + 1 servers, whatever the
    distribution of the repair.

    broken_at_once : breaks per hour of work times mean hours of repair
    """
    if spares < 0 or spares != int(spares):
        raise InputError(f"{spares} can't be used", where="spares", right="a whole number, 0 up")
    offered = np.asarray(broken_at_once, float)
    _not_negative("broken_at_once", offered)
    blocked = np.ones_like(offered)
    for servers in range(1, int(spares) + 2):
        blocked = offered * blocked / (servers + offered * blocked)
    return _like(blocked, broken_at_once)


def slowest_machine(machines: Real, spread: Real, one_slower: Real = 0.0) -> Real:
    """Time of a synchronous step over that of a typical machine.

    The slowest of machines whose paces spread at random, or a single one that is slower by a
    known share, whichever is later. Never a product of both: a step waits for one machine.

    spread : standard deviation of the step time over its mean
    one_slower : 0.3 is a machine that takes 30% longer
    """
    _not_negative("one_slower", one_slower)
    natural = straggler_slowdown(machines, spread)
    return _like(np.maximum(natural, 1 + np.asarray(one_slower, float)), machines, spread)


@dataclass(frozen=True, slots=True, eq=False)
class Checks:
    """A watch for silent corruption: validation every so often, machines compared by statistics.

    every : hours of work between two checks
    share : of the work that a check takes; 0.02 at six hours is 7.2 minutes
    sigmas : standard deviations at which a machine counts as deviating
    pause : hours that a false alarm takes
    """

    every: Real
    share: Real
    sigmas: Real = 3.0
    pause: Real = 0.0


def work_with_checks(errors_per_hour: Real, checks: Checks, restart: Real, machines: Real) -> Real:
    """Hours of work for one that stands, when errors are found at the next check.

    A window of I hours stands with probability exp(−λI), and is done again otherwise; each machine
    is one test a window, and a false alarm costs a pause.
    """
    _not_negative("errors_per_hour", errors_per_hour)
    _positive("every", checks.every)
    _not_negative("share", checks.share)
    tries = np.exp(np.minimum(np.asarray(errors_per_hour, float) * checks.every, 50.0))
    alarms = np.asarray(false_alarms(machines, checks.sigmas)) * checks.pause
    window = checks.every * (1 + np.asarray(checks.share, float)) + alarms
    hours = (window * tries + (tries - 1) * restart) / checks.every
    return _like(hours, errors_per_hour, restart, machines, checks.every, checks.share)


def work_without_checks(errors_per_hour: Real, unseen: Real, restart: Real) -> Real:
    """Hours of work for one that stands, when an error shows only after `unseen` hours.

    All work since the error is thrown away: λ⁻¹ hours stand of each λ⁻¹ + unseen + restart.
    """
    _not_negative("errors_per_hour", errors_per_hour)
    _not_negative("unseen", unseen)
    hours = 1 + np.asarray(errors_per_hour, float) * (np.asarray(unseen, float) + restart)
    return _like(hours, errors_per_hour, unseen, restart)


# --- the run


@dataclass(frozen=True, slots=True, eq=False)
class RunConditions:
    """Under which conditions a run goes on. Hours, shares, and devices (GPUs, or CPU servers).

    devices : of the job; device_mtbf : device-hours per failure that stops it
    per_machine : devices of one machine
    save : stall of a checkpoint; restart : from a failure to useful work
    interval : work between checkpoints, None for the best
    soonest : no best interval is shorter; of a save that stalls nothing it is this
    longest : of a run that is short: its own work; no interval is longer, as it ends in a save
    swap_share : failures after which the job needs another machine
    repair : hours until a broken machine is back; spares : idle machines that stand by
    spread, one_slower : see `slowest_machine`
    silent : corruptions per machine and hour; unseen : hours until one shows by itself
    checks : the watch for them, None without
    reclaims : spot interruptions per machine and hour; notice : warning before one
    requeue : unpaid wait for the next spot machine
    had : share of the time in which such machines can be had at all; nothing is paid in the rest
    """

    devices: Real
    device_mtbf: Real
    save: Real
    restart: Real
    per_machine: Real = 1.0
    interval: Real | None = None
    soonest: Real = 0.0
    longest: Real | None = None
    swap_share: Real = 0.0
    repair: Real = 0.0
    spares: int = 0
    spread: Real = 0.0
    one_slower: Real = 0.0
    silent: Real = 0.0
    unseen: Real = 0.0
    checks: Checks | None = None
    reclaims: Real = 0.0
    notice: Real = 0.0
    requeue: Real = 0.0
    had: Real = 1.0

    @property
    def machines(self) -> Real:
        """Machines that work; a part of one is one."""
        whole = np.maximum(np.asarray(self.devices, float) / self.per_machine, 1.0)
        return _like(whole, self.devices, self.per_machine)


# What time is lost to, in the order in which it is counted.
LOSSES = (
    "slowest machine", "silent corruption", "checkpoints", "work done again", "restarts",
    "reclaimed with notice", "waiting for a machine", "spare machines",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class RunOutcome:
    """What a useful hour takes, and where the rest goes.

    mtbf : hours of work between two stops without notice
    interval, best_interval : hours of work between checkpoints, as set and as best
    paid_hours : paid machine-hours for a useful one, spares among them; calendar_hours : on the
    calendar, waiting for spot machines among them; active_hours : of them at work or restarting
    extra : hours beyond the useful one, by the names of LOSSES; they sum to paid_hours − 1
    failures, reclaims : stops per useful hour
    """

    mtbf: Real
    interval: Real
    best_interval: Real
    paid_hours: Real
    calendar_hours: Real
    active_hours: Real
    extra: dict[str, Real]
    failures: Real
    reclaims: Real

    @property
    def useful(self) -> Real:
        """Share of the paid time that is useful work: the goodput."""
        return 1 / self.paid_hours

    def lost(self, name: str) -> Real:
        """Share of the paid time that goes to one of LOSSES."""
        return self.extra[name] / self.paid_hours


def outcome(run: RunConditions) -> RunOutcome:
    """Where the time of a run goes.

    Raises
    ------
    InputError : for a condition that makes no sense, by its name
    """
    for name in ("notice", "repair", "requeue", "reclaims", "restart", "save", "soonest"):
        _not_negative(name, getattr(run, name))
    _share("swap_share", run.swap_share)
    machines = np.asarray(run.machines, float)
    hardware = 1 / np.asarray(fleet_mtbf(run.device_mtbf, run.devices), float)
    taken = np.asarray(run.reclaims, float) * machines
    warned = np.asarray(run.notice, float) >= np.asarray(run.save, float)
    abrupt = np.maximum(hardware + np.where(warned, 0.0, taken), NEVER_PER_HOUR)
    with_notice = np.where(warned, taken, 0.0)
    mtbf = 1 / abrupt
    save, restart = np.asarray(run.save, float), np.asarray(run.restart, float)
    best = np.maximum(exact_interval(save, mtbf), run.soonest)
    interval = best if run.interval is None else np.asarray(run.interval, float)
    _positive("interval", interval)
    if run.longest is not None:
        _positive("longest", run.longest)
        best, interval = np.minimum(best, run.longest), np.minimum(interval, run.longest)

    slow = np.asarray(slowest_machine(machines, run.spread, run.one_slower), float)
    again = _work_again(run, machines)
    kept = np.asarray(goodput(save, interval, mtbf), float)
    at_work = 1 / np.maximum(kept, 1 / NEVER_ENDS)
    saving = save / interval
    lost_work = np.maximum(at_work - 1 - saving, 0.0)
    running = at_work * np.minimum(hours_with_stops(abrupt, with_notice, save, restart), NEVER_ENDS)
    # Restarts belong to the kind of stop that they follow; those with notice also save.
    restarts = running - at_work
    restarting = restarts * _restart_share(abrupt, with_notice, save, restart)
    reclaimed = restarts - restarting
    swaps = hardware * np.asarray(run.swap_share, float)
    away = np.asarray(without_a_machine(swaps * np.asarray(run.repair, float), run.spares), float)
    waiting = running * away / (1 - away)

    work = slow * again
    paid = work * (running + waiting)
    spare = paid * run.spares / machines
    stops = work * running * abrupt
    reclaims = work * running * taken
    calendar = (paid + reclaims * np.asarray(run.requeue, float)) / np.asarray(run.had, float)
    extra = {
        "slowest machine": slow - 1,
        "silent corruption": slow * (again - 1),
        "checkpoints": work * saving,
        "work done again": work * lost_work,
        "restarts": work * restarting,
        "reclaimed with notice": work * reclaimed,
        "waiting for a machine": work * waiting,
        "spare machines": spare,
    }
    inputs = [v for v in _values(run) if v is not None]
    told = {name: _like(np.broadcast_to(v, paid.shape), *inputs) for name, v in extra.items()}
    return RunOutcome(
        mtbf=_like(mtbf, *inputs),
        interval=_like(interval, *inputs),
        best_interval=_like(best, *inputs),
        paid_hours=_like(paid + spare, *inputs),
        calendar_hours=_like(calendar, *inputs),
        active_hours=_like(work * running, *inputs),
        extra=told,
        failures=_like(stops - np.where(warned, 0.0, reclaims), *inputs),
        reclaims=_like(reclaims, *inputs),
    )


@dataclass(frozen=True, slots=True, eq=False)
class RunBill:
    """What a run of so many useful hours takes and loses. Hours, device-hours, US dollars.

    failures, reclaims : expected stops; days : on the calendar
    lost_usd : paid beyond the useful hours, all causes; lost_device_hours the same in device-hours
    """

    days: Real
    failures: Real
    reclaims: Real
    paid_device_hours: Real
    lost_device_hours: Real
    paid_usd: Real
    lost_usd: Real


def bill(
    result: RunOutcome, devices: Real, useful_hours: Real, usd_per_device_hour: Real
) -> RunBill:
    """The run in days, stops and dollars.

    useful_hours : of work at the pace of a typical machine; usd_per_device_hour : paid while the
    job works, restarts or waits for a repair, and for spares
    """
    _positive("useful_hours", useful_hours)
    _not_negative("usd_per_device_hour", usd_per_device_hour)
    useful = useful_hours * np.asarray(devices, float)
    paid = useful * result.paid_hours
    lost = paid - useful
    given = (useful_hours, devices, usd_per_device_hour, result.paid_hours)
    return RunBill(
        days=_like(useful_hours * np.asarray(result.calendar_hours) / 24, *given),
        failures=_like(useful_hours * np.asarray(result.failures), *given),
        reclaims=_like(useful_hours * np.asarray(result.reclaims), *given),
        paid_device_hours=_like(paid, *given),
        lost_device_hours=_like(lost, *given),
        paid_usd=_like(paid * usd_per_device_hour, *given),
        lost_usd=_like(lost * usd_per_device_hour, *given),
    )


def best_spares(run: RunConditions, most: int = 1000) -> int:
    """Spare machines with which a useful hour costs least; one value of each condition.

    A spare costs its rent all the time and saves the waiting of the whole job. Each further one
    saves less, so the search ends with the first that does not pay.
    """
    found, cost = 0, float(outcome(replace(run, spares=0)).paid_hours)
    while found < most:
        more = float(outcome(replace(run, spares=found + 1)).paid_hours)
        if more >= cost:
            break
        found, cost = found + 1, more
    return found


# --- ranges


def through(low: float, likely: float, high: float, z: Array) -> Array:
    """Draws of a positive quantity from standard normal ones, through its three percentiles.

    Two-piece log-normal: z = ∓1.28 gives the low and the high value (10th and 90th percentile).
    """
    if not 0 < low <= likely <= high:
        raise InputError(
            f"{low:g}, {likely:g}, {high:g}", where="range", right="above 0 and in order"
        )
    down, up = math.log(likely / low) / Z90, math.log(high / likely) / Z90
    return np.asarray(likely * np.exp(np.minimum(z, 0.0) * down + np.maximum(z, 0.0) * up))


# --- helpers


def _restart_share(abrupt: Array, warned: Array, save: Array, restart: Array) -> Array:
    """Of the hours in restarts and last checkpoints, the share that follows stops without notice.

    With r hours of restart after a stop and a save δ before one with notice: a·r of
    a·r + w·(r + δ).
    """
    mean = np.asarray(restart_hours_per_failure(restart, 1 / (abrupt + warned)), float)
    without = abrupt * mean
    both = without + warned * (mean + save)
    return np.asarray(without / np.where(both > 0, both, 1.0))


def _work_again(run: RunConditions, machines: Array) -> Array:
    """Hours of work for one that stands, silent corruption and its watch counted."""
    errors = np.asarray(run.silent, float) * machines
    if run.checks is not None:
        return np.asarray(work_with_checks(errors, run.checks, run.restart, machines), float)
    return np.asarray(work_without_checks(errors, run.unseen, run.restart), float)


def _values(run: RunConditions) -> list[Real | None]:
    plain = (
        run.devices, run.device_mtbf, run.save, run.restart, run.per_machine, run.interval,
        run.longest, run.swap_share, run.repair, run.spread, run.one_slower, run.silent, run.unseen,
        run.reclaims, run.notice, run.requeue, run.soonest,
    )  # fmt: skip
    checks = run.checks
    extra = (checks.every, checks.share, checks.sigmas, checks.pause) if checks else ()
    return [*plain, *extra]


def _like(answer: object, *inputs: Real | None) -> Real:
    """A float when all inputs are floats, an array otherwise."""
    array = np.asarray(answer, float)
    if any(isinstance(x, np.ndarray) and x.ndim for x in inputs) or array.ndim:
        return array
    return float(array)


def _positive(name: str, value: Real) -> None:
    if not np.all(np.asarray(value, float) > 0):
        raise InputError(f"{value} can't be used", where=name, right="more than 0")


def _not_negative(name: str, value: Real) -> None:
    if not np.all(np.asarray(value, float) >= 0):
        raise InputError(f"{value} can't be used", where=name, right="0 or more")


def _share(name: str, value: Real) -> None:
    array = np.asarray(value, float)
    if not (np.all(array >= 0) and np.all(array <= 1)):
        raise InputError(f"{value} can't be used", where=name, right="between 0 and 1")
