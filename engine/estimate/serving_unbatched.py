"""The same service without batches: one answer at a time in a replica, one queue before all.

What batching is worth for a job of one's own, beside the articles' eightfold. A replica that works
on one answer is busy for its prompt and each of its tokens alone; how many of them the queue asks
for follows from Erlang's formula with Allen and Cunneen's stretch (`engine.estimate.queueing`).
Times in seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from engine.errors import InputError
from engine.estimate.queueing import servers_for
from engine.estimate.serving_plan import HOURS_PER_MONTH, ServingAsk, ServingOption, with_spare
from engine.estimate.serving_points import curve


@dataclass(frozen=True, slots=True)
class Unbatched:
    """Replicas that answer one request at a time at the peak, on the machines of a plan.

    answer_s : a replica's time for one request; `machines` with the spare ones; `usd_per_month`
    kept around the clock; `times` : their cost over the plan's, kept so too
    """

    answer_s: float
    replicas: int
    machines: int
    usd_per_month: float
    times: float


def unbatched(option: ServingOption, ask: ServingAsk) -> Unbatched | None:
    """What the plan's machine would take without batches inside the target to the first token.

    None where nothing comes, or where no number of them is enough.
    """
    peak = ask.traffic.peak * ask.room
    c, load, targets = option.candidate, ask.load, ask.targets
    points = curve(c.replica, load, targets.percentile)
    if peak <= 0 or option.machines <= 0 or not len(points.rate):
        return None
    prompt, tokens = float(points.ttft_mean[0]), (load.output_tokens - 1.0) * points.tpot_mean[0]
    answer = prompt + float(tokens)
    # Prompts and answers vary alike and each for itself.
    cv2 = load.length_cv**2 * (prompt**2 + float(tokens) ** 2) / answer**2
    try:
        if targets.ttft_s is None:
            replicas = math.ceil(peak * answer / targets.max_load)
        else:
            left = targets.ttft_s - float(points.ttft_target[0])
            replicas = servers_for(
                peak, answer, wait_target_s=left, percentile=targets.percentile,
                service_cv2=cv2, max_load=targets.max_load,
            )  # fmt: skip
    except InputError:
        return None
    machines = int(with_spare(c, np.array(replicas), ask))
    each = c.machine.per_machine * c.machine.usd_per_unit_hour.likely * HOURS_PER_MONTH
    return Unbatched(answer, replicas, machines, machines * each, machines / option.machines)


def usd_per_thousand_requests(option: ServingOption, ask: ServingAsk) -> float:
    """Dollars of a thousand requests, over the month; 0 where nothing comes."""
    requests = ask.traffic.mean * HOURS_PER_MONTH * 3600.0
    return option.usd_per_month.likely / requests * 1000.0 if requests > 0 else 0.0
