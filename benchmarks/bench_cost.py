"""Cost tables of 40 candidate-acquisition pairs over 60 months for 4,096 draws: below 150 ms.

Run it alone with `python -m benchmarks.bench_cost`.
"""

from __future__ import annotations

import time

import numpy as np

from engine.cost.monthly import Acquisition, monthly_cost
from engine.cost.own import Ownership
from engine.cost.rent import Fees, Rental, SpotTerms

NAME = "cost tables: 40 pairs × 60 months × 4,096 draws"
LIMIT_MS = 150.0
PAIRS, MONTHS, DRAWS = 40, 60, 4096
ACQUISITIONS: tuple[Acquisition, ...] = (
    "on_demand",
    "spot",
    "reserved_1y",
    "reserved_3y",
    "dedicated",
    "buy",
    "buy",
    "buy",
)


def once() -> float:
    """Milliseconds for all pairs: table, total, present value and cost of a useful hour."""
    rng = np.random.default_rng(1)
    draw = rng.lognormal(0, 0.2, (12, DRAWS))
    fees = Fees(egress=100 * draw[0], storage=200.0, support_share=0.05)
    spot = SpotTerms(0.15 / 24 * draw[1], 0.01 * draw[2], 0.3 * draw[3], 0.5)
    rental = Rental(50 * draw[4], after_term_usd_per_hour=60 * draw[5], spot=spot)
    own = Ownership(
        310_000 * draw[4],
        network_usd=300_000 * draw[5],
        racks_usd=36_000,
        installation_share=0.02,
        spares_share=0.02 * draw[6],
        kw_per_unit=8 * draw[7],
        idle_power_share=0.3,
        usd_per_kwh=0.12 * draw[8],
        pue=1.35,
        housing_usd_per_kw_month=174 * draw[9],
        staff_fte=1,
        usd_per_fte_year=220_000 * draw[10],
        maintenance_share_per_year=0.05 * draw[11],
        resale_share=np.minimum(0.15 * draw[1], 1),
        cost_of_capital=0.11,
        delivery_months=4,
    )
    hours = np.minimum(300 * draw[2], 730)

    start = time.perf_counter()
    for pair in range(PAIRS):
        acquisition = ACQUISITIONS[pair % len(ACQUISITIONS)]
        hardware = own if acquisition == "buy" else rental
        flow = monthly_cost(hardware, acquisition, 1 + pair, hours, MONTHS, fees=fees)
        flow.npv(0.11)
        assert np.shape(flow.cost_per_useful_hour) == (DRAWS,)
    return (time.perf_counter() - start) * 1000


def run(repeats: int = 7) -> float:
    """Median milliseconds of some runs."""
    return float(np.median([once() for _ in range(repeats)]))


if __name__ == "__main__":
    took = run()
    print(f"{NAME}: {took:.1f} ms (limit {LIMIT_MS:.0f} ms)")
    raise SystemExit(took > LIMIT_MS)
