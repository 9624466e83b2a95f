"""What it takes to run a database in several shards: people, as for that many databases.

Each shard is set up, tuned, backed up, upgraded and moved on its own, and queries over several of
them are written by hand. One database is anybody's work already; what is counted is every further
shard. Logs, indexes and caches spread over machines by themselves and are not meant. Works on
points and draws alike.
"""

from __future__ import annotations

import numpy as np

from engine.cost.cash_flow import CashLine, every_month
from engine.decide.evaluation import Context, Pool
from engine.decide.guarantees import copies_asked
from engine.decide.numbers import Array
from engine.decide.priors import likely
from engine.wording import money, number
from engine.workload.answers import Kind

ITEM = "People for further shards"
SOURCES = ("decision_parameters.csv, databases_per_fte and engineer_usd_per_month",)


def shards_of(pool: Pool, ctx: Context) -> Array:
    """Parts into which the data of a database is cut on these machines; 1 of anything else."""
    if ctx.workload.kind is not Kind.database or not any(s.holds_data for s in pool.stages):
        return np.ones_like(pool.units)
    copies = copies_asked(ctx.workload, ctx.settings.architecture).copies
    machines = np.ceil(pool.units / pool.unit.per_machine - 1e-9)
    return np.asarray(np.maximum(np.ceil(machines / copies - 1e-9), 1.0))


def people_usd(shards: Array | float) -> Array:
    """US dollars a month for those who look after the shards beyond the first."""
    each = likely("engineer_usd_per_month") / likely("databases_per_fte")
    return np.asarray((np.asarray(shards) - 1.0) * each)


def shard_lines(pools: list[Pool], ctx: Context) -> tuple[CashLine, ...]:
    """The row of it in the cash flow of a candidate; none where the data is in one piece."""
    usd = np.asarray(sum(people_usd(shards_of(p, ctx)) for p in pools))
    if not usd.any():
        return ()
    return (CashLine(ITEM, "fees", usd, every_month(ctx.workload.horizon_months), sources=SOURCES),)


def shard_note(pools: list[Pool], ctx: Context) -> str:
    """What of a candidate's cost that is, in words; empty where there is one shard."""
    shards = max(float(shards_of(p, ctx)[0]) for p in pools)
    if shards <= 1:
        return ""
    usd = float(people_usd(shards))
    return (
        f"{money(usd)} a month of the cost is for people: one engineer looks after about "
        f"{number(likely('databases_per_fte'))} databases, and each of the {number(shards)} shards "
        "is one. Few large machines need fewer shards than many small ones."
    )
