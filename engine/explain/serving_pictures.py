"""The pictures of the serving page as plain points with their titles; nothing is drawn here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.estimate.queueing import Array
from engine.estimate.serving_plan import ServingAnswer, ServingOption
from engine.estimate.serving_points import at_rate, curve
from engine.explain.serving import ServingReport
from engine.explain.serving_words import at_once, per_second, seconds
from engine.wording import money

Points = tuple[tuple[float, float], ...]
# Share of its largest rate up to which a curve is drawn: beyond it only the queue grows.
DRAWN = 0.985
PLACEMENT = {"gpu": "GPU", "cpu": "CPU"}


@dataclass(frozen=True, slots=True)
class LoadCurve:
    """One latency of a replica against its load, in ms and requests a second.

    `mean`, `slow` : of all requests and at a percentile; `slow_name` names it; `point` : where the
    plan runs at the peak, `on_mean` or else on the slow line; `target` in ms
    """

    title: str
    message: str
    y_title: str
    mean: Points
    slow: Points
    slow_name: str
    point: tuple[float, float]
    on_mean: bool
    target: float | None

    @property
    def ceiling(self) -> float:
        """The latency up to which the lines are drawn, in ms.

        The queue at the end grows without bound: what lies far above target, plan and both lines'
        beginnings is cut.
        """
        plan, begin = self.point[1] * 3.0, max(self.mean[0][1] * 4.0, self.slow[0][1] * 1.3)
        return min(max(y for _, y in self.slow), max(plan, begin, (self.target or 0.0) * 1.3))

    def drawn(self, line: Points) -> list[tuple[float, float]]:
        """What of a line stands below the ceiling."""
        return [p for p in line if p[1] <= self.ceiling]


@dataclass(frozen=True, slots=True)
class DayPicture:
    """Machines kept hour by hour, and the rate of the hour; what following the hours would save."""

    title: str
    message: str
    machines: tuple[tuple[int, float], ...]
    rates: tuple[tuple[int, float], ...]
    usd: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FrontierPicture:
    """Dollars a month against ms per token by placement; the plan's own point."""

    title: str
    message: str
    points: tuple[tuple[float, float, str, str], ...]
    own: tuple[float, float]
    target: float | None


def _points(x: Array, y: Array) -> Points:
    return tuple((float(a), float(b) * 1e3) for a, b in zip(x, y, strict=True))


def load_curves(report: ServingReport, option: ServingOption) -> tuple[LoadCurve, LoadCurve]:
    """Time to the first token and time per token against the load of one replica."""
    ask, replica = report.ask, option.candidate.replica
    found = curve(replica, ask.load, ask.targets.percentile)
    most = float(found.rate[-1])
    # The knee is bent: more points where latencies rise.
    x = most * DRAWN * np.concatenate([np.linspace(0.02, 0.8, 24), np.linspace(0.82, 1.0, 16)])
    at = [at_rate(found, float(r)) for r in x]
    here, limit = option.at_peak, float(option.candidate.capacity.requests_per_s)
    of100 = f"{ask.targets.percentile * 100:g} of 100"
    where = (
        f"One replica, {option.candidate.machine.label} as "
        f"{option.candidate.layout.told(ask.shape.is_moe)}, at {per_second(here.rate)} of at most "
        f"{per_second(limit)}"
    )
    first = LoadCurve(
        f"First token within {seconds(here.ttft_target_s)} for {of100}",
        f"{where}; {seconds(here.ttft_mean_s)} on average, {seconds(here.ttft_p99_s)} for 99 of "
        "100.",
        "Time to the first token, ms",
        _points(x, np.array([a.ttft_mean_s for a in at])),
        _points(x, np.array([a.ttft_target_s for a in at])),
        of100,
        (here.rate, here.ttft_target_s * 1e3),
        False,
        None if ask.targets.ttft_s is None else ask.targets.ttft_s * 1e3,
    )
    each = LoadCurve(
        f"Then a token every {seconds(here.tpot_mean_s)}, {at_once(here.batch)}",
        f"{where}; {seconds(here.tpot_p99_s)} a token for the slowest answer of 100.",
        "Time per further token, ms",
        _points(x, np.array([a.tpot_mean_s for a in at])),
        _points(x, np.array([a.tpot_p99_s for a in at])),
        "99 of 100",
        (here.rate, here.tpot_mean_s * 1e3),
        True,
        None if ask.targets.tpot_s is None else ask.targets.tpot_s * 1e3,
    )
    return first, each


def day_picture(option: ServingOption, committed: bool) -> DayPicture:
    """Machines and rates of the 24 hours.

    committed : the machines are paid around the clock by the terms of their rent
    """
    hours = option.hours
    top = max(hours, key=lambda h: h.rate)
    low = min(hours, key=lambda h: h.machines)
    saved = option.usd_always_on - option.usd_by_hour
    same = low.machines == top.machines
    title = (
        f"{top.machines:,} machine{'' if top.machines == 1 else 's'} around the clock"
        if same
        else f"{top.machines:,} machines at {top.hour}:00, {low.machines:,} at {low.hour}:00"
    )
    message = (
        "No hour needs fewer machines than another, so following the hours saves nothing."
        if same
        else "Machines bought or rented for a term are paid around the clock: quiet hours leave "
        f"{money(saved)} a month idle."
        if committed
        else f"Keeping only what each hour needs, spare machines included, costs "
        f"{money(top.usd)} in the busiest hour and {money(low.usd)} in the quietest, "
        f"{money(option.usd_by_hour)} a month, and saves {money(saved)}. It must be possible to "
        "give machines back by the hour, and to start them in time."
    )
    return DayPicture(
        title, message, tuple((h.hour, float(h.machines)) for h in hours),
        tuple((h.hour, h.rate) for h in hours), tuple(money(h.usd) for h in hours),
    )  # fmt: skip


def frontier_picture(report: ServingReport, option: ServingOption) -> FrontierPicture | None:
    """Dollars against time per token; None where there is no frontier."""
    points = report.frontier
    if len(points) < 2:
        return None
    fast = points[-1]
    ratio = fast.usd_per_month / max(points[0].usd_per_month, 1e-9)
    target = report.ask.targets.tpot_s
    return FrontierPicture(
        f"Faster answers cost more: {seconds(fast.tpot_s)} a token for {ratio:.1f} times the money",
        f"Each dot is the cheapest way to its time per token with the first token in time. From "
        f"{points[0].candidate.machine.label} at {seconds(points[0].tpot_s)} and "
        f"{money(points[0].usd_per_month)} a month to {fast.candidate.machine.label} at "
        f"{seconds(fast.tpot_s)} and {money(fast.usd_per_month)}.",
        tuple(
            (
                p.tpot_s * 1e3,
                p.usd_per_month,
                PLACEMENT[p.candidate.machine.hardware],
                f"{p.machines:,} × {p.candidate.machine.label}, "
                f"{p.candidate.layout.told(report.ask.shape.is_moe)}",
            )
            for p in points
        ),
        (option.at_peak.tpot_mean_s * 1e3, option.usd_per_month.likely),
        None if target is None else target * 1e3,
    )


def side_by_side(answer: ServingAnswer) -> tuple[ServingOption | None, ServingOption | None]:
    """The cheapest on GPUs and the cheapest on CPU servers."""
    return answer.cheapest("gpu"), answer.cheapest("cpu")
