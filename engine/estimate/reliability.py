"""What failures cost: checkpoint intervals, goodput, spot interruptions, alarms, redundancy.

Pure formulae on floats or NumPy arrays alike; rates come from the caller's tables. All times of one
call are in one unit (hours by convention); goodput and availability are shares between 0 and 1.

References
----------
[1] J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974.
[2] J. T. Daly, "A higher order estimate of the optimum checkpoint interval", FGCS 22(3), 2006.
[3] Saxena et al., arXiv 2410.18124: the interval of best availability.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
from scipy.special import bdtrc, ndtr, ndtri

from engine.errors import InputError

Array = npt.NDArray[np.float64]
Real = float | Array

NEVER_PER_HOUR = 1e-12  # a rate this low stands for "never" where a division needs a number


# --- failures and checkpoints


def fleet_mtbf(device_mtbf: Real, devices: Real) -> Real:
    """Mean time between failures of a job that stops when any of its devices fails.

    device_mtbf : device-hours per failure; published fleets range from 13,600 to 82,000
    """
    _positive("device_mtbf", device_mtbf)
    _positive("devices", devices)
    return device_mtbf / devices


def young_interval(save: Real, mtbf: Real) -> Real:
    """Work between two checkpoints that loses least: √(2·save·MTBF) [1].

    save : time for which a checkpoint stalls the job, not the time that writing takes
    """
    _positive("save", save)
    _positive("mtbf", mtbf)
    return cast(Real, np.sqrt(2 * save * mtbf))


def availability_interval(save: Real, mtbf: Real, restart: Real) -> Real:
    """Interval of best availability, save included: δ + √(2(M + R)δ + δ²) [3]."""
    _positive("save", save)
    _positive("mtbf", mtbf)
    _not_negative("restart", restart)
    return cast(Real, save + np.sqrt(2 * (mtbf + restart) * save + save**2))


def checkpoint_loss(save: Real, interval: Real, mtbf: Real, restart: Real = 0.0) -> Real:
    """Share of the time lost, to first order: δ/τ + τ/(2M) + R/M; for small terms."""
    _positive("interval", interval)
    _positive("mtbf", mtbf)
    _not_negative("save", save)
    _not_negative("restart", restart)
    return save / interval + interval / (2 * mtbf) + restart / mtbf


def goodput(save: Real, interval: Real, mtbf: Real, restart: Real = 0.0) -> Real:
    """Share of the time that is useful work, for failures of any frequency [2].

    Exponential failures, each of which loses the work since the last checkpoint; the restart can
    fail too. A segment of τ useful hours takes M·exp(R/M)·(exp((τ + δ)/M) − 1) hours on average.
    For rare failures this is 1 − checkpoint_loss.

    save : stall per checkpoint δ; interval : useful work between checkpoints τ;
    restart : time from a failure to useful work R
    """
    _positive("interval", interval)
    _positive("mtbf", mtbf)
    _not_negative("save", save)
    _not_negative("restart", restart)
    with np.errstate(over="ignore"):
        taken = mtbf * np.exp(restart / mtbf) * np.expm1((interval + save) / mtbf)
    return cast(Real, interval / taken)


def lost_hours_cost(
    machines: Real, usd_per_machine_hour: Real, hours_since_checkpoint: Real
) -> Real:
    """US dollars paid for work that one failure destroys."""
    return machines * usd_per_machine_hour * hours_since_checkpoint


# --- spot machines


def spot_paid_goodput(
    interruptions_per_hour: Real,
    interval: Real,
    save: Real,
    restart: Real,
    notice: Real = 0.0,
    mtbf: Real = np.inf,
) -> Real:
    """Useful hours per hour paid on machines that the provider may take back.

    When the notice is long enough for a last checkpoint, an interruption costs the restart only;
    a restart that is interrupted starts again, whatever the notice.

    interruptions_per_hour : of the whole job: rate per machine × machines
    restart : paid time from the new machine's start to useful work
    mtbf : hours between ordinary failures, which give no notice
    """
    _not_negative("interruptions_per_hour", interruptions_per_hour)
    rate = np.asarray(interruptions_per_hour, float)
    warned = np.asarray(notice) >= np.asarray(save)
    abrupt = np.where(warned, 0.0, rate) + 1 / np.asarray(mtbf, float)
    kept = goodput(save, interval, 1 / np.maximum(abrupt, NEVER_PER_HOUR))
    stops = hours_with_stops(abrupt, np.where(warned, rate, 0.0), save, restart)
    return _like(kept / stops, interruptions_per_hour, interval, save, restart, notice, mtbf)


def hours_with_stops(abrupt: Real, warned: Real, save: Real, restart: Real) -> Real:
    """Hours of the clock for one at work or at a checkpoint: e^{(a + w)R} + w·δ.

    Each stop is followed by a restart that any further stop cuts short, so it takes
    (e^{(a + w)R} − 1)/(a + w) hours on average; one with a warning pays a last checkpoint too.

    abrupt, warned : stops an hour, a and w; save : δ; restart : R, cut at e^50 where it never ends
    """
    every = np.asarray(abrupt, float) + np.asarray(warned, float)
    restarted = np.exp(np.minimum(every * np.asarray(restart, float), 50.0))
    return cast(Real, restarted + np.asarray(warned, float) * np.asarray(save, float))


def spot_wall_goodput(paid_goodput: Real, interruptions_per_hour: Real, requeue: Real) -> Real:
    """Useful hours per hour of the calendar: waiting for a new machine is free but takes time.

    requeue : hours without machines after each interruption
    """
    _not_negative("requeue", requeue)
    return paid_goodput / (1 + interruptions_per_hour * requeue)


# --- silent corruption and its watch


def false_alarms(tests: Real, sigmas: Real) -> Real:
    """False alarms among `tests` two-sided tests at a threshold of `sigmas` standard deviations."""
    _not_negative("tests", tests)
    return cast(Real, tests * 2 * ndtr(-np.abs(sigmas)))


def alarm_threshold(tests: Real, wanted_alarms: Real) -> Real:
    """Threshold, in standard deviations, at which `tests` tests give `wanted_alarms` false ones."""
    _positive("tests", tests)
    _positive("wanted_alarms", wanted_alarms)
    return cast(Real, -ndtri(np.minimum(wanted_alarms / tests, 1.0) / 2))


def silent_corruption_cost(
    errors_per_hour: Real, detection_delay: Real, usd_per_fleet_hour: Real
) -> Real:
    """US dollars an hour lost to work that has to be thrown away once the error is found."""
    return errors_per_hour * detection_delay * usd_per_fleet_hour


# --- redundancy


def availability_k_of_n(machine_availability: Real, needed: int, machines: int) -> Real:
    """Share of the time in which at least `needed` of `machines` independent machines are up."""
    _share("machine_availability", machine_availability)
    if not 1 <= needed <= machines:
        raise InputError(
            f"{needed} needed of {machines}", where="needed", right="between 1 and the machines"
        )
    return cast(Real, bdtrc(needed - 1, machines, machine_availability))


def machines_for_availability(
    machine_availability: float, needed: int, target: float, most: int = 1000
) -> int | None:
    """Fewest machines with which `needed` are up for the target share; None beyond `most`."""
    _share("target", target)
    for machines in range(needed, min(needed + 50, most) + 1):
        if float(availability_k_of_n(machine_availability, needed, machines)) >= target:
            return machines
    return None


# --- helpers


def _like(answer: npt.ArrayLike, *inputs: Real) -> Real:
    array = np.asarray(answer, float)
    return array if any(isinstance(x, np.ndarray) for x in inputs) else float(array)


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
