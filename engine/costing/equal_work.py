"""The article's Options A, B and C on the same work: dollars and time for as many tokens in each.

The work is asked in tokens. One rate of a GPU turns it into GPU-hours, which are multiplied by each
option's dated price; what is owned goes through the same table of cash flow as any other purchase.
So no option is cheaper by doing less, and the time stands beside the cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

import numpy as np

from engine.catalogue import Catalogue, Offer
from engine.catalogue.models import Freshness, freshness_of
from engine.cost.cash_flow import HOURS_PER_MONTH, CashFlow
from engine.cost.checks import LONGEST_HORIZON_MONTHS, positive
from engine.cost.monthly import monthly_cost
from engine.cost.ownership import Machine, Site, delivery_months, plan
from engine.cost.parameters import Pick, cost_parameters, high, likely, low, value
from engine.cost.worked_cases.case import GPUS_PER_NODE
from engine.decide.candidates import GB_PER_GIB
from engine.errors import InputError
from engine.estimate.jobs import training_flops
from engine.wording import number

Verdict = Literal["fits", "too_small", "late"]
GPU = "b200-sxm-180gb"
MOST_PARAMS, MOST_TOKENS = 1e13, 1e15
DGX = Machine((("sys-dgx-b200", 1),), "node-power-b200", "res-h100", GPUS_PER_NODE)
CLUSTER = 2  # machines from which a purchase takes a cluster's time to deliver


@dataclass(frozen=True, slots=True)
class Work:
    """What every option has to do: tokens through a model of so many parameters, by when."""

    params: float
    tokens: float
    deadline_months: float


@dataclass(frozen=True, slots=True)
class Seen:
    """A price with its day: US dollars per machine and hour, or for the machine itself."""

    text: str
    usd: float
    unit: str
    as_of: date
    age_days: int
    freshness: Freshness
    source: str
    confidence: str


@dataclass(frozen=True, slots=True)
class OptionOnWork:
    """One option on the work.

    months : from the order to the last token, at the likely rate and at the rates' two ends
    usd : what it costs, likely, and at the cheap and the dear end; None beyond five years
    at_article_usd : the same work at the article's own price, by reading of that price
    machines_in_time : machines of eight GPUs that meet the deadline; None where none can
    flow : the table behind the dollars of what is owned
    """

    id: str
    title: str
    gpus: int
    months: tuple[float, float, float]
    usd: float | None
    usd_low: float | None
    usd_high: float | None
    usd_per_billion_tokens: float | None
    at_article_usd: tuple[tuple[str, float], ...]
    state_gib: float
    memory_gib: float
    verdict: Verdict
    reason: str
    machines_in_time: int | None
    price: Seen
    flow: CashFlow | None = None


@dataclass(frozen=True, slots=True)
class EqualWork:
    """The three options on one work, and the GPU-hours that it takes."""

    work: Work
    gpu_hours: float
    options: tuple[OptionOnWork, ...]


def articles_work() -> Work:
    """The article's model from scratch, at the least tokens for it, in Option B's own time."""
    params = value("option_a_model_params")
    return Work(params, value("case_tokens_per_param") * params, value("case47_option_b_months"))


def gpu_hours(work: Work, pick: Pick = likely) -> float:
    """GPU-hours of a B200 that the work takes: 6 × parameters × tokens over what a GPU does."""
    mine = cost_parameters()
    flop_per_hour = float(pick(mine["case_mfu"])) * value("b200_bf16_flops") * 3600
    flop = training_flops(np.asarray(work.params / 1e9), np.asarray(work.tokens / 1e9))
    return float(flop) / flop_per_hour


def equal_work(work: Work, catalogue: Catalogue, today: date) -> EqualWork:
    """Options A, B and C on this work.

    Raises
    ------
    InputError : parameters, tokens or months that are none, by the name of the field; or no dated
        price of the machine in the catalogue
    """
    positive("parameters", work.params, below=MOST_PARAMS)
    positive("tokens", work.tokens, below=MOST_TOKENS)
    positive("deadline_months", work.deadline_months, below=LONGEST_HORIZON_MONTHS)
    found = (
        _rented("A", "64 B200 at AWS", int(value("idle_case_gpus")), "AWS", work, catalogue, today),
        _rented("B", "8 B200 at Lambda", GPUS_PER_NODE, "Lambda", work, catalogue, today),
        _owned(work, catalogue, today),
    )
    return EqualWork(work, gpu_hours(work), found)


# --- the options


def _rented(
    id: str, title: str, gpus: int, provider: str, work: Work, catalogue: Catalogue, today: date
) -> OptionOnWork:
    """An option by the hour: machine-hours of the work times the price of a machine."""
    offer = _dated(provider, catalogue)
    usd = tuple(
        gpu_hours(work, pick) / GPUS_PER_NODE * offer.usd_per_instance_hour
        for pick in (likely, high, low)
    )
    hours = gpu_hours(work)
    if id == "A":
        per_hour = value("option_a_usd_hour")
        written: tuple[tuple[str, float], ...] = (
            ("if 38.40 is for the fleet", hours * per_hour / gpus),
            ("if it is for an instance", hours * per_hour / GPUS_PER_NODE),
        )
    else:
        term = value("case47_option_b_term_months")
        terms = math.ceil(_months(work, gpus) / term)
        written = (
            (f"in {terms} terms of three months", terms * term * value("case47_option_b_usd")),
        )
    seen = Seen(
        f"{provider} {offer.sku}, {offer.region}, on demand",
        offer.usd_per_instance_hour,
        "an hour for a machine",
        offer.provenance.as_of,
        offer.age_days(today),
        offer.freshness(today),
        offer.provenance.source,
        offer.provenance.confidence,
    )
    return _judged(id, title, gpus, 0, usd, written, work, catalogue, seen)


def _owned(work: Work, catalogue: Catalogue, today: date) -> OptionOnWork:
    """Option C: one machine bought, housed, run until the last token, and sold."""
    capital, row = catalogue.capital, catalogue.capital["sys-dgx-b200"]
    site = Site()
    wait = delivery_months(1, site)

    def table(pick: Pick, price: float) -> CashFlow | None:
        working = math.ceil(_months(work, GPUS_PER_NODE, pick))
        months = working + wait
        if months > LONGEST_HORIZON_MONTHS:
            return None
        terms = plan(DGX, 1, months, capital, site=site, quote_usd=price).terms
        terms = replace(terms, sources={**terms.sources, "Machines": (row.provenance.source,)})
        return monthly_cost(terms, "buy", 1, HOURS_PER_MONTH, months, label="Option C")

    flow, least, most = table(likely, row.likely), table(high, row.low), table(low, row.high)
    usd = tuple(float(t.total) if t is not None else None for t in (flow, least, most))
    working = math.ceil(_months(work, GPUS_PER_NODE))
    running = value("case47_option_c_running_usd")
    written = (
        (
            f"with 2,400 in each of {working} months",
            value("case47_purchase_usd") + running * working,
        ),
    )
    age = max((today - row.provenance.as_of).days, 0)
    seen = Seen(
        row.description,
        row.likely,
        f"to buy, of {number(row.low)} to {number(row.high)}",
        row.provenance.as_of,
        age,
        freshness_of(age),
        row.provenance.source,
        row.provenance.confidence,
    )  # fmt: skip
    found = _judged(
        "C", "One DGX B200, bought", GPUS_PER_NODE, wait, usd, written, work, catalogue, seen
    )
    return replace(found, flow=flow)


def _judged(
    id: str,
    title: str,
    gpus: int,
    wait: int,
    usd: tuple[float | None, ...],
    written: tuple[tuple[str, float], ...],
    work: Work,
    catalogue: Catalogue,
    seen: Seen,
) -> OptionOnWork:
    mine = cost_parameters()
    state = work.params * value("case_training_bytes_per_param") / 1e9 / GB_PER_GIB
    gpu = catalogue.accelerators[GPU]
    memory = gpus * (gpu.memory_gib_reported or gpu.memory_gb / GB_PER_GIB)
    months = tuple(wait + _months(work, gpus, pick) for pick in (likely, high, low))
    enough = _machines_in_time(work, wait)
    verdict: Verdict = "fits"
    told = f"{number(months[0])} months, and the deadline is {number(work.deadline_months)}"
    if state > mine["case_state_share"].likely * memory:
        verdict = "too_small"
        told = (
            f"the training state of {number(state)} GiB is more than "
            f"{mine['case_state_share'].likely:.0%} of the {number(memory)} GiB of its {gpus} GPUs"
        )
    elif months[0] > work.deadline_months:
        verdict = "late"
        if enough is None:
            told += f": a cluster takes {delivery_months(CLUSTER, Site())} months to deliver alone"
        else:
            told += f": {enough} such machines would make it"
    likely_usd = usd[0]
    return OptionOnWork(
        id,
        title,
        gpus,
        (months[0], months[1], months[2]),
        likely_usd,
        usd[1],
        usd[2],
        None if likely_usd is None else likely_usd / (work.tokens / 1e9),
        written,
        state,
        memory,
        verdict,
        told,
        enough,
        seen,
    )


# --- helpers


def _months(work: Work, gpus: int, pick: Pick = likely) -> float:
    """Months of work for so many GPUs."""
    return gpu_hours(work, pick) / gpus / HOURS_PER_MONTH


def _machines_in_time(work: Work, wait: int) -> int | None:
    """Machines of eight GPUs that finish by the deadline, delivery counted for what is bought."""
    alone = _months(work, GPUS_PER_NODE)
    if alone + wait <= work.deadline_months:
        return 1
    left = work.deadline_months - (delivery_months(CLUSTER, Site()) if wait else 0)
    return max(math.ceil(alone / left), CLUSTER) if left > 0 else None


def _dated(provider: str, catalogue: Catalogue) -> Offer:
    """The provider's price of a machine with eight B200 on demand."""
    found = [
        offer
        for offer in catalogue.offers_for(GPU, "on_demand")
        if offer.provider == provider and offer.gpus_per_instance == GPUS_PER_NODE
    ]
    if not found:
        raise InputError(
            f"no dated price of eight B200 at {provider}", where="offers", right="refresh the table"
        )
    return found[0]
