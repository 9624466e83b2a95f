"""The articles' serving figures, worked out again: reproduced, or corrected with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.catalogue import Accelerator, Catalogue
from engine.cost.api_prices import SECONDS_PER_MONTH
from engine.decide.model_rates import PERCENTILE, Found, lone_s
from engine.errors import InputError
from engine.estimate.cold_start import article_budget_s, article_range, cold_start
from engine.estimate.queueing import mean_wait
from engine.estimate.serving import DEFAULT_ENGINE
from engine.estimate.serving_points import (
    Load,
    Replica,
    curve,
    gpu_replica,
)
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.small_inference import core_rate, gpu_rate
from engine.estimate.small_inference_tables import cpu_floor
from engine.wording import number
from engine.workload.jobs_terms import JobsTerms

Verdict = Literal["reproduced", "corrected"]
REFERENCE_GPU = "h100-sxm-80gb"
CORES = 16.0  # physical cores of the server that the article leaves open
# What the articles say.
GAIN, BUSY_BEFORE, BUSY_AFTER = 8.0, 0.65, 0.92
BEFORE_MS, AFTER_MS = 200.0, 18.0
REQUESTS_PER_DAY, USD_PER_MONTH = 1e6, 14_200.0


@dataclass(frozen=True, slots=True)
class ServingCase:
    """A figure of an article, what comes out here, and why they agree or don't."""

    id: str
    article: str
    said: str
    computed: str
    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True)
class Batching:
    """What of an eightfold gain is a busier GPU and what is larger batches.

    `busy_gain` : of utilisation alone; `batch_gain` : the rest; `batch` : answers at once that
    give it, at `tpot_s` per token against `lone_tpot_s`; `waits` : mean wait of a single server at
    65% and at 92%, in service times
    """

    busy_gain: float
    batch_gain: float
    batch: float
    lone_tpot_s: float
    tpot_s: float
    waits: tuple[float, float]


def batching(replica: Replica, load: Load) -> Batching:
    """Split the article's gain: answers at once whose throughput is the rest of it."""
    found = curve(replica, load, 0.95)
    busy = BUSY_AFTER / BUSY_BEFORE
    rest = GAIN / busy
    alone = float(np.interp(1.0, found.batch, found.rate))
    batch = float(np.interp(rest * alone, found.rate, found.batch))
    waits = tuple(float(mean_wait(b, 1.0, 1)) for b in (BUSY_BEFORE, BUSY_AFTER))
    return Batching(
        busy, rest, batch, float(np.interp(1.0, found.batch, found.tpot_mean)),
        float(np.interp(batch, found.batch, found.tpot_mean)), (waits[0], waits[1]),
    )  # fmt: skip


def gpu_ms_of_cpu_ms(
    cpu_ms: float, accelerator: Accelerator, model: str = "dlrm", cores: float = CORES
) -> float:
    """Milliseconds on a GPU of one answer that takes `cpu_ms` on CPU cores, 95 of 100.

    By the measured rates of a model on both and the decision's own reckoning of a lone request.

    Raises
    ------
    InputError : no rate of the model was published for one of the two
    """
    core, gpu = core_rate(model), gpu_rate(model, accelerator)
    if core is None or gpu is None:
        raise InputError(f"no rate of {model} on cores and on {accelerator.name} was published",
                         where="model", right="a model that was measured on both")  # fmt: skip
    size = cpu_ms / 1e3 * core.likely / cpu_floor(cores, PERCENTILE)
    found = Found(gpu, gpu, 0.0)
    rate = np.asarray(gpu.likely / size)
    return float(lone_s(found, rate, JobsTerms(hold_ms=0.0))) * 1e3


def serving_cases(catalogue: Catalogue) -> tuple[ServingCase, ...]:
    """All cases, worked out on the shipped catalogue."""
    return (
        _batching_case(catalogue),
        _queue_case(catalogue),
        _latency_case(catalogue),
        _month_case(),
        _cold_case(),
    )


def _batching_case(catalogue: Catalogue) -> ServingCase:
    gpu = catalogue.accelerators[REFERENCE_GPU]
    replica = gpu_replica(shape_from_size(8.0), gpu, 1, 1, False, 16.0, 2.0, DEFAULT_ENGINE)
    b = batching(replica, Load(700.0, 250.0))
    return ServingCase(
        "batching", "000",
        "A queue with batching carries 8 times as much; the GPU is busy 92% of the time, not 65%",
        f"Being busier gives {b.busy_gain:.2f} times; the other {b.batch_gain:.2f} come from "
        f"batches of {b.batch:.0f} answers (8B on an H100), at {b.tpot_s * 1e3:.1f} ms a token "
        f"in place of {b.lone_tpot_s * 1e3:.1f}",
        "corrected",
        "92/65 is 1.42: utilisation counts busy time and not work. The eightfold gain is real, and "
        "batches give several times more before answers get slow.",
    )  # fmt: skip


def _queue_case(catalogue: Catalogue) -> ServingCase:
    gpu = catalogue.accelerators[REFERENCE_GPU]
    replica = gpu_replica(shape_from_size(8.0), gpu, 1, 1, False, 16.0, 2.0, DEFAULT_ENGINE)
    before, after = batching(replica, Load(700.0, 250.0)).waits
    return ServingCase(
        "queue", "000", "Running the GPUs at 92%",
        f"Before a single server a request waits {before:.1f} service times at 65% and "
        f"{after:.1f} at 92%",
        "corrected",
        "Nearly full servers queue: this plan fills a replica to 85% of what it carries, and less "
        "where the time to the first token says so.",
    )  # fmt: skip


def _latency_case(catalogue: Catalogue) -> ServingCase:
    def spans(cpu_ms: float) -> str:
        told = []
        for sku, name in (("h100-sxm-80gb", "an H100"), ("a100-sxm-80gb", "an A100")):
            gpu = catalogue.accelerators[sku]
            each = [gpu_ms_of_cpu_ms(cpu_ms, gpu, model) for model in ("dlrm-v2", "dlrm")]
            told.append(f"{number(min(each))} to {number(max(each))} ms on {name}")
        return " and ".join(told)

    return ServingCase(
        "latency", "003", "Recommendations take 18 ms on GPUs and took 200 ms on CPUs",
        f"A recommender that takes {BEFORE_MS:.0f} ms on {CORES:.0f} cores takes "
        f"{spans(BEFORE_MS)}; one that takes 1 ms there takes {spans(1.0)}",
        "reproduced",
        f"200/18 is {BEFORE_MS / AFTER_MS:.0f} times, which lies between the two by the measured "
        "rates of DLRM. "
        "Article 001 sends small real-time inference to CPUs: right where the pass takes a "
        "millisecond or two, for there the GPU's fixed launches and copies weigh as much as the "
        "arithmetic.",
    )  # fmt: skip


def _month_case() -> ServingCase:
    rate = REQUESTS_PER_DAY / 86_400.0
    each = USD_PER_MONTH / (rate * SECONDS_PER_MONTH) * 1000.0
    return ServingCase(
        "month", "000", "One million requests a day are served for 14,200 USD a month",
        f"{rate:.1f} requests a second on average, {each:.2f} USD a thousand",
        "corrected",
        "The article tells neither the model nor the tokens of a request, and these move the cost "
        "twentyfold: an 8B model with short answers needs a few GPUs, a 70B model with long "
        "prompts dozens.",
    )  # fmt: skip


def _cold_case() -> ServingCase:
    said, budget = article_range(), article_budget_s()
    small = cold_start(16.0, 8.0, "warm_machine").seconds.likely
    large = cold_start(141.0, 70.0, "warm_machine").seconds.likely
    fresh = cold_start(16.0, 8.0, "new_machine").seconds.likely
    quick = cold_start(4.2, 8.0, "runpod").seconds.likely
    return ServingCase(
        "cold_start", "003",
        f"A cold start on a GPU takes {said.low:.0f} to {said.high:.0f} s, so endpoints that "
        f"start from nothing suit budgets above {budget * 1e3:.0f} ms",
        f"{small:.0f} s for 8B in 16 bits where the machine runs, {large:.0f} s for 70B, "
        f"{fresh / 60:.0f} minutes on a new machine, {quick:.1f} s for a small container that is "
        "cached",
        "corrected",
        "The range is that of mid-sized models on a machine that runs. But every cold start breaks "
        "a budget of 500 ms, and of seconds too: what counts is the share of requests that meet "
        "one, and whether the percentile that was promised is among them.",
    )  # fmt: skip
