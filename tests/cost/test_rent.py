"""Spot deadlines, capacity blocks, and a cloud's fees from rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from engine.cost.cloud import (
    commit_months,
    egress_tiers,
    fees_for,
    job_goodput,
    rental_of,
    spot_terms,
)
from engine.cost.monthly import capacity_blocks_cost
from engine.cost.parameters import cost_parameters, high, low
from engine.cost.rent import Fees, Rental, SpotTerms, egress_usd, spot, spot_deadline, spot_run
from engine.errors import InputError


class Row(NamedTuple):
    id: str
    low: float
    likely: float
    high: float
    description: str = ""


# A few rows of the running costs as a stand-in: these tests need no catalogue.
RUNNING = {
    row.id: row
    for row in (
        Row("egress-aws-free", 100, 100, 100, "free internet egress"),
        Row("egress-aws-1", 0.09, 0.09, 0.09, "internet egress tier up to 10000 GB per month"),
        Row("egress-aws-2", 0.085, 0.085, 0.085, "internet egress tier up to 50000 GB per month"),
        Row("egress-aws-3", 0.05, 0.05, 0.05, "internet egress tier up to unlimited GB per month"),
        Row("egress-lambda", 0, 0, 0, "internet egress"),
        Row("obj-s3", 0.023, 0.023, 0.023),
        Row("k8s-eks", 0.1, 0.1, 0.6),
        Row("support-aws-biz", 0.03, 0.07, 0.1),
        Row("spotint-gpu-hazard", 0.02, 0.15, 1.0),
        Row("spotnotice-aws", 120, 120, 120),
    )
}
SPOT = SpotTerms(interruptions_per_hour=0.01, save=0.02, restart=0.3, requeue=0.5)


def test_egress_by_tiers() -> None:
    tiers, free = egress_tiers("AWS", RUNNING)
    assert tiers == [(10_000, 0.09), (50_000, 0.085), (float("inf"), 0.05)]
    # 100 free; 10,000 x 0.09 + 40,000 x 0.085 + 9,900 x 0.05 = 900 + 3,400 + 495
    assert egress_usd(60_000, tiers, free) == pytest.approx(4_795)
    assert egress_usd(50, tiers, free) == 0
    assert np.allclose(egress_usd(np.array([50.0, 60_000.0]), tiers, free), [0, 4_795])
    assert egress_tiers("Lambda", RUNNING) == ([(float("inf"), 0.0)], 0.0)


def test_fees_of_a_provider() -> None:
    found = fees_for(
        "AWS", RUNNING, egress_gb=1_100, stored_gb=2_000, control_plane=True, support=True
    )
    # 1,000 x 0.09 = 90; 2,000 x 0.023 = 46; 730 x 0.1 = 73; 7% of the rent
    assert found.fees.egress == pytest.approx(90)
    assert found.fees.storage == pytest.approx(46)
    assert found.fees.managed_service == pytest.approx(73)
    assert found.fees.support_share == 0.07
    assert found.assumed == ()


def test_fees_without_a_row_are_named_and_cost_what_others_charge() -> None:
    more = (Row("obj-gcs", 0.02, 0.02, 0.02), Row("obj-blob", 0.018, 0.018, 0.018))
    rows = RUNNING | {row.id: row for row in more}
    found = fees_for("Somewhere", rows, egress_gb=1_100, stored_gb=100, control_plane=True)
    assert set(found.assumed) == {"egress", "storage", "control plane"}
    # Egress: AWS charges 90, Lambda nothing, which is no price: 90. Storage: the middle of 0.023,
    # 0.020 and 0.018 is 0.020, x 100 = 2. Control plane: 0.1 x 730 = 73.
    assert found.fees.egress == pytest.approx(90)
    assert found.fees.storage == pytest.approx(2)
    assert found.fees.managed_service == pytest.approx(73)
    # A provider that charges nothing still charges nothing.
    free = fees_for("Lambda", rows, egress_gb=1_100)
    assert (free.fees.egress, free.assumed) == (0, ())


def test_a_plan_of_support_has_its_fixed_part() -> None:
    rows = RUNNING | {"support-azure-ps": Row("support-azure-ps", 0, 0, 0)}
    azure = fees_for("Azure", rows, support=True)
    assert (azure.fees.support, azure.fees.support_share) == (100, 0)
    assert fees_for("AWS", rows, support=True).fees.support == 0
    # Of whom no plan is known the middle of the shares that others take: 7%.
    other = fees_for("Somewhere", rows, support=True)
    assert (other.fees.support_share, other.assumed) == (0.07, ("support",))


class Offer(NamedTuple):
    provider: str
    sku: str
    usd_per_instance_hour: float
    min_commit: str


def test_a_rental_from_an_offer() -> None:
    on_demand = Offer("AWS", "p5.48xlarge", 55.04, "none")
    rental = rental_of(Offer("AWS", "p5.48xlarge", 30.0, "1 year"), after_term=on_demand)
    assert (rental.usd_per_hour, rental.after_term_usd_per_hour) == (30.0, 55.04)
    assert rental.sources == ("AWS p5.48xlarge",)
    with pytest.raises(InputError, match=r"price of AWS p5\.48xlarge"):
        rental_of(Offer("AWS", "p5.48xlarge", 0.0, "none"))


@pytest.mark.parametrize(
    ("words", "months"),
    [
        ("none", 1),
        ("3 months, $24,000 per month", 3),
        ("1 year", 12),
        ("3 years", 36),
        ("7 to 30 days", 1),
        ("month, $7,000", 1),
    ],
)
def test_commitments_in_words(words: str, months: int) -> None:
    assert commit_months(words) == months


def test_spot_terms_of_a_provider() -> None:
    terms = spot_terms("AWS", RUNNING)
    assert terms.interruptions_per_hour == pytest.approx(0.15 / 24)
    assert terms.notice == pytest.approx(120 / 3600)
    assert spot_terms("Vast", RUNNING).notice == 0
    calm, rough = (spot_run(spot_terms("AWS", RUNNING, p), 4).wall for p in (low, high))
    assert float(calm) > float(rough)


def test_a_spot_deadline_has_a_chance() -> None:
    easy = spot_deadline(100, 200, SPOT, 1)
    assert easy.feasible
    assert easy.chance > 0.99
    hopeless = spot_deadline(100, 90, SPOT, 1)
    assert (hopeless.feasible, hopeless.chance) == (False, 0.0)
    tight = spot_deadline(100, 106, SPOT, 1)
    assert 0 < tight.chance < 1
    assert "deadline is 106 h" in tight.text
    # 64 machines are interrupted 64 times as often
    assert spot_deadline(100, 200, SPOT, 64).chance < easy.chance
    assert spot_deadline(100, 200, SpotTerms(0.0, 0.02, 0.3, 0.5), 1).chance == 1


def test_capacity_blocks_are_paid_in_advance_used_or_not() -> None:
    # two blocks of 14 days, 4 machines at 39.33: 2 x 14 x 24 x 4 x 39.33 = 105,719
    flow = capacity_blocks_cost(39.33, 4, 14, [1, 0, 1], useful_share=0.5)
    assert flow.total == pytest.approx(105_719.04)
    assert flow.monthly.tolist() == pytest.approx([52_859.52, 0, 52_859.52])
    assert flow.useful_hours == pytest.approx(336)
    with_support = capacity_blocks_cost(39.33, 4, 14, [1], fees=Fees(support_share=0.1))
    assert with_support.section_total("fees") == pytest.approx(5_285.952)
    with pytest.raises(InputError, match="days_per_block"):
        capacity_blocks_cost(39.33, 4, 200, [1])


def test_goodput_of_a_job_from_rows() -> None:
    # 512 GPUs at 30,000 GPU-hours: 97.0% with saves of 60 s and restarts of 20 min
    assert job_goodput(512, 60 / 3600, 20 / 60) == pytest.approx(0.970, abs=0.002)


def test_every_parameter_is_used(root: object) -> None:
    from pathlib import Path

    engine = Path(str(root)) / "engine"
    files = [path for name in ("cost", "costing") for path in (engine / name).rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    built = ("idle_use_", "mark_", "staff_fte_", "delivery_months_", "air_rack", "liquid_rack")
    unused = [id for id in cost_parameters() if f'"{id}"' not in code and not id.startswith(built)]
    assert unused == []


def test_spot_that_never_gets_anything_done_has_a_cost_with_an_end() -> None:
    # 1,000 machines that stop together 100 times an hour each: a twentieth is counted, so that a
    # useful hour of one is paid 20 times over.
    terms = SpotTerms(interruptions_per_hour=100.0, save=0.01, restart=1.0, requeue=0.1)
    assert float(spot_run(terms, 1_000).paid) == pytest.approx(0.05)
    rows = spot(Rental(usd_per_hour=1.0, spot=terms), 1_000, 10.0, 1)
    assert float(sum(row.total for row in rows)) == pytest.approx(1_000 * 10.0 * 20)
