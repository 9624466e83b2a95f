"""What a service's data costs to keep: space, and rate and operations beyond what a volume brings.

Much the same for every hardware that the service could run on; whoever buys machines is charged
the same as whoever rents. What a crawler gathers lies in object storage, everything else on block
storage. The volumes of a run come and go with its machines. Works on points and draws alike.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from engine.catalogue import Catalogue
from engine.cost.cash_flow import CashLine, every_month
from engine.decide.evaluation import Context, Memo, Pool, Values
from engine.decide.guarantees import copies_asked
from engine.decide.numbers import Array
from engine.decide.service_sizing import BY_COPY, HEAD, SYSTEMS, window_h
from engine.decide.service_units import demand, needs_of
from engine.estimate.data_systems import Need
from engine.wording import money, number
from engine.workload.answers import Kind, ModelClass
from engine.workload.workload import HOURS_PER_MONTH

ITEM = "Storage of the service"
SOURCES = ("running_costs.csv, median over the providers", "service_parameters.csv, volumes")
WORTH_SAYING_USD = 100.0


def keeps_data(ctx: Context) -> bool:
    """Whether the service's data is counted: where it is one, and no storage of its own was told.

    What a language model's requests leave is not worth counting.
    """
    w = ctx.workload
    language = w.kind is Kind.online_inference and w.model_class is ModelClass.llm
    return w.kind in SYSTEMS and not language and ctx.settings.costs.stored_gb is None


def storage_usd(asked: tuple[Need, ...], pool: Pool, x: Values, ctx: Context) -> Array:
    """US dollars a month for the data of a service, or of runs, on the machines of a pool.

    asked : demand at the peak, see `service_sizing.needs`
    """
    w, needs = ctx.workload, {n.resource: np.asarray(n.amount) for n in asked}
    copies = copies_asked(w, ctx.settings.architecture).copies if w.kind in BY_COPY else 1
    m = np.ceil(pool.units / pool.unit.per_machine)
    none = np.zeros(1)
    rate = needs.get("disk_rate", none) * copies - x[f"{HEAD}included_disk_mb_per_s"] * m
    ops = needs.get("disk_ops", none) * copies - x[f"{HEAD}included_disk_ops"] * m
    further = np.maximum(rate, 0.0) * x[f"{HEAD}usd_per_mb_per_s"]
    further = further + np.maximum(ops, 0.0) * x[f"{HEAD}usd_per_disk_op"]
    kept = needs["disk_space"] * copies * usd_per_gb(ctx) + further
    if pool.service:
        return np.asarray(kept)
    # A run's volumes move its data in its window; slower ones would be had for as much longer.
    return np.asarray(kept * window_h(x) * x["runs_per_month"] / HOURS_PER_MONTH)


def usd_per_gb(ctx: Context) -> float:
    """Median price over the providers of the storage that the kind of work uses."""
    category = "object_storage" if ctx.workload.kind is Kind.search else "block_storage"
    return storage_usd_per_gb(ctx.catalogue, category)


def storage_usd_per_gb(catalogue: Catalogue, category: str) -> float:
    """Median price of a category of storage over the providers [USD a GB and month]."""
    return _median(_Kept(catalogue), category)


class _Kept:
    """A catalogue as a key: the same object, not an equal one."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def __hash__(self) -> int:
        return id(self.catalogue)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kept) and other.catalogue is self.catalogue


@lru_cache(maxsize=32)
def _median(key: _Kept, category: str) -> float:
    found = [p.likely for p in key.catalogue.running.values() if p.category == category]
    return float(np.median(found))


def storage_lines(pools: list[Pool], x: Values, ctx: Context, memo: Memo) -> tuple[CashLine, ...]:
    """The row of the service's data in the cash flow of a candidate; none where it keeps none."""
    if not keeps_data(ctx):
        return ()
    # The machines that carry the service itself: its first stage.
    first = next(p for p in pools if ctx.stages[0] in p.stages)
    usd = storage_usd(needs_of(x, ctx, memo), first, x, ctx)
    return (CashLine(ITEM, "fees", usd, every_month(ctx.workload.horizon_months), sources=SOURCES),)


def storage_note(fees: tuple[CashLine, ...], x: Values, ctx: Context) -> str:
    """What of a candidate's cost is storage, in words; empty where it is next to nothing.

    fees : of the candidate at the likely inputs `x`
    """
    usd = sum(float(np.ravel(line.amount)[0]) for line in fees if line.item == ITEM)
    if usd < WORTH_SAYING_USD:
        return ""
    copies = copies_asked(ctx.workload, ctx.settings.architecture).copies
    space = next(n.amount for n in demand(x, ctx) if n.resource == "disk_space")
    gb = float(np.ravel(space)[0]) * (copies if ctx.workload.kind in BY_COPY else 1)
    return (
        f"About {money(usd)} a month of the cost is storage: {number(gb)} GB with copies and room, "
        "much the same on other hardware, also where it is bought."
    )
