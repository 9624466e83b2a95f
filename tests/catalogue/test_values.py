"""Values of the shipped tables against figures read by hand from their sources."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import date

import pytest
from pydantic import ValidationError

from engine.catalogue import Offer, Provenance, check_data, check_report, load_catalogue
from engine.catalogue.load import _shipped
from engine.cost.cloud import egress_tiers
from engine.cost.rent import egress_usd
from engine.errors import InputError

CATALOGUE = load_catalogue()
TODAY = date(2026, 12, 1)

# sku: memory GB, bandwidth GB/s, dense bf16, dense fp8, scale-up GB/s per direction
HARDWARE = {
    "h100-sxm-80gb": (80, 3350, 989, 1979, 450),
    "h100-pcie-80gb": (80, 2000, 756.5, 1513, None),
    "h100-nvl-94gb": (94, 3900, 835.5, 1671, None),
    "h200-sxm-141gb": (141, 4800, 989, 1979, 450),
    "a100-sxm-80gb": (80, 2039, 312, None, 300),
    "b200-sxm-180gb": (180, 8000, 2250, 4500, 900),
    "l4": (24, 300, 121, 242, None),
    "mi300x": (192, 5300, 1307.4, 2614.9, 448),
}


@pytest.mark.parametrize("sku", HARDWARE)
def test_hardware(sku: str) -> None:
    memory, bandwidth, bf16, fp8, scaleup = HARDWARE[sku]
    acc = CATALOGUE.accelerators[sku]
    assert (acc.memory_gb, acc.memory_bandwidth_gb_per_s) == (memory, bandwidth)
    assert acc.bf16_tflops_dense == bf16
    assert acc.fp8_tflops_dense == (None if fp8 is None else pytest.approx(fp8, rel=1e-3))
    if scaleup is not None:
        assert acc.scaleup_gb_per_s_per_direction == scaleup


def test_servers_and_networks() -> None:
    server = CATALOGUE.cpu_servers["m7i-24xlarge"]
    assert (server.vcpu, server.physical_cores, server.memory_gb) == (96, 48, 384)
    assert server.memory_bandwidth_gb_per_s == 307.2
    # 48 cores × 3.2 GHz × 64 flop a cycle
    assert server.peak_fp32_gflops == pytest.approx(48 * 3.2 * 64, rel=1e-3)
    fabric = CATALOGUE.networks["nvlink4"]
    assert fabric.nominal_gb_per_s_per_direction_per_gpu == 450
    assert (fabric.wire_gb_per_s_per_gpu, fabric.wire_basis) == (367.2, "measured")


def one(provider: str, sku: str, region: str, acquisition: str = "on_demand") -> Offer:
    (found,) = [
        o
        for o in CATALOGUE.offers
        if (o.provider, o.sku, o.region, o.acquisition) == (provider, sku, region, acquisition)
        and o.rankable
    ]
    return found


@pytest.mark.parametrize(
    ("provider", "sku", "region", "acquisition", "instance", "gpu"),
    [
        ("AWS", "p5.48xlarge", "us-east-1", "on_demand", 55.04, 6.88),
        ("AWS", "p6-b200.48xlarge", "us-east-1", "on_demand", 113.9328, 14.2416),
        ("Azure", "Standard_ND96isr_H100_v5", "eastus", "on_demand", 98.32, 12.29),
        ("Nebius", "HGX H100", "any", "on_demand", 4.5, 4.5),
        ("RunPod", "h100-sxm-80gb Secure", "any", "on_demand", 3.99, 3.99),
    ],
)
def test_prices(
    provider: str, sku: str, region: str, acquisition: str, instance: float, gpu: float
) -> None:
    offer = one(provider, sku, region, acquisition)
    assert offer.usd_per_instance_hour == pytest.approx(instance, rel=1e-3)
    assert offer.usd_per_gpu_hour == pytest.approx(gpu, rel=1e-3)


def test_an_articles_price_is_shown_and_never_ranks() -> None:
    (article,) = [o for o in CATALOGUE.offers if o.usd_per_instance_hour == 450 and "p5" in o.sku]
    assert article.kind == "seed"
    assert not article.rankable
    assert article not in CATALOGUE.offers_for("h100-sxm-80gb")
    assert article in CATALOGUE.offers_for("h100-sxm-80gb", rankable_only=False)


@pytest.mark.parametrize(
    ("provider", "words", "kind"),
    [
        ("Nebius", "B200/B300 preemptible", "from"),
        ("Nebius", "H100/H200 preemptible", "from"),
        ("Nebius", "L40S preemptible", "from"),
        ("Together", "on demand, low end", "from"),
        ("Hyperstack", "h100-sxm-80gb reserved", "from"),
        ("DigitalOcean", "FROM", "from"),
        ("Together", "reserved 7-30 days, low end", "from"),
    ],
)
def test_traps_are_marked(provider: str, words: str, kind: str) -> None:
    found = [o for o in CATALOGUE.offers if o.provider == provider and words in o.sku]
    assert [o.kind for o in found] == [kind]


def test_the_younger_price_ranks() -> None:
    for provider, sku, old, new in (
        ("Nebius", "HGX B200", 7.15, 8.5),
        ("RunPod", "h100-sxm-80gb Secure", 3.49, 3.99),
    ):
        prices = {
            o.usd_per_gpu_hour: o.rankable
            for o in CATALOGUE.offers
            if (o.provider, o.sku, o.acquisition) == (provider, sku, "on_demand")
        }
        assert prices == {old: False, new: True}


def test_a_shape_that_is_not_sold_on_demand_is_not_offered() -> None:
    # Google sells fewer than eight H100 as spot or flex-start only.
    assert {o.acquisition for o in CATALOGUE.offers if o.sku == "a3-highgpu-1g"} == {"spot"}


# Accelerators with three or more sellers on demand; an index of offers and a "from" price is none.
SELLERS = {
    "a100-sxm-40gb": "AWS Azure GCP Lambda OCI",
    "a100-sxm-80gb": "AWS CoreWeave Crusoe GCP Hyperbolic Hyperstack Lambda OCI RunPod",
    "a100-pcie-80gb": "Azure Crusoe Hyperstack RunPod",
    "h100-sxm-80gb": (
        "AWS Azure CoreWeave Crusoe GCP Hyperbolic Hyperstack Lambda Nebius OCI RunPod"
    ),
    "h100-pcie-80gb": "Hyperstack Lambda RunPod",
    "h200-sxm-141gb": "AWS Azure CoreWeave Crusoe GCP Hyperstack Nebius RunPod",
    "b200-sxm-180gb": "AWS CoreWeave Hyperstack Lambda Nebius RunPod Together",
    "b300-sxm": "AWS Hyperstack Nebius RunPod",
    "l40s": "AWS CoreWeave Crusoe Nebius RunPod",
    "rtx-pro-6000-server": "AWS CoreWeave Hyperstack Nebius",
    "t4": "AWS Azure GCP",
}


@pytest.mark.parametrize("sku", SELLERS)
def test_sellers(sku: str) -> None:
    offers = CATALOGUE.offers_for(sku, "on_demand")
    assert {o.provider for o in offers if o.kind != "aggregator"} == set(SELLERS[sku].split())
    prices = [o.usd_per_gpu_hour or 0 for o in offers]
    assert prices == sorted(prices)


def sellers(offers: Iterable[Offer]) -> set[str]:
    return {o.provider for o in offers if o.kind != "aggregator"}


@pytest.mark.parametrize("sku", [*SELLERS, "rtx-4090", "v100-sxm2-16gb"])
def test_three_alternatives_to_rent(sku: str) -> None:
    assert len(sellers(CATALOGUE.offers_for(sku))) >= 3


@pytest.mark.parametrize(
    ("vcpu", "names"),
    [
        (4, "Azure Hetzner"),
        (8, "GCP Hetzner OCI"),
        (16, "AWS Azure Crusoe GCP Hetzner Nebius OCI"),
        (32, "AWS Azure Hetzner OCI"),
        (64, "AWS Azure GCP"),
        (96, "AWS Azure CoreWeave GCP"),
        (128, "AWS Azure GCP"),
        (192, "AWS Azure CoreWeave GCP"),
    ],
)
def test_servers_of_each_size_have_sellers(vcpu: int, names: str) -> None:
    assert sellers(o for o in CATALOGUE.cpu_offers() if o.vcpu == vcpu) == set(names.split())


def test_large_memory_is_priced() -> None:
    assert sellers(CATALOGUE.cpu_offers(min_memory_gb=1_500)) == {
        "AWS", "Azure", "CoreWeave", "GCP",
    }  # fmt: skip
    cheapest = CATALOGUE.cpu_offers(min_memory_gb=4_000)[0]
    assert (cheapest.sku, cheapest.usd_per_instance_hour) == ("x2iedn.32xlarge", 26.676)


def test_an_offer_is_tied_to_the_server_of_its_name() -> None:
    ids = {s.name: s.id for s in CATALOGUE.cpu_servers.values()}
    for offer in CATALOGUE.offers:
        if offer.sku in ids:
            assert offer.cpu_server_id == ids[offer.sku]


def test_the_best_discount_published_is_no_price() -> None:
    found = [o for o in CATALOGUE.offers if "published maximum" in o.notes]
    assert {o.provider for o in found} == {"CoreWeave", "Nebius"}
    assert [o.kind for o in found] == ["from", "from"]


def test_replaced_prices_are_shown_and_never_rank() -> None:
    for provider, sku, usd in (
        ("AWS", "p5.48xlarge", 98.32),
        ("Hetzner", "CCX63", 0.6114),
        ("Nebius", "HGX H100", 3.85),
    ):
        (old,) = [
            o
            for o in CATALOGUE.offers
            if (o.provider, o.sku, o.usd_per_instance_hour) == (provider, sku, usd)
        ]
        assert old.kind == "superseded"
        assert not old.rankable


def test_shared_ports_count_once() -> None:
    # One 100G port, 12.5 GB/s, for eight GPUs, at 84% of its rate.
    fabric = CATALOGUE.networks["eth-100g"]
    assert fabric.wire_gb_per_s_per_gpu == pytest.approx(12.5 / 8 * 0.84, rel=0.01)
    for network in CATALOGUE.networks.values():
        nominal = network.nominal_gb_per_s_per_direction_per_gpu
        if network.wire_gb_per_s_per_gpu and network.efficiency_of_nominal and nominal:
            share = network.wire_gb_per_s_per_gpu / nominal
            assert share == pytest.approx(network.efficiency_of_nominal, rel=0.03), network.id


def test_server_offers_are_large_enough_and_sorted() -> None:
    offers = CATALOGUE.cpu_offers(min_vcpu=32, min_memory_gb=128)
    assert offers
    assert all((o.vcpu or 0) >= 32 and (o.memory_gb or 0) >= 128 for o in offers)
    assert all(o.rankable and o.acquisition == "on_demand" for o in offers)
    prices = [o.usd_per_instance_hour for o in offers]
    assert prices == sorted(prices)
    tied = {o.sku: o.cpu_server_id for o in CATALOGUE.offers if o.cpu_server_id}
    assert tied["m7i.24xlarge"] == "m7i-24xlarge"


@pytest.mark.parametrize(
    ("provider", "gb", "usd"),
    [
        ("AWS", 100, 0.0),
        ("AWS", 1_100, 1_000 * 0.09),
        ("AWS", 12_100, 10_000 * 0.09 + 2_000 * 0.085),
        ("aws", 200_100, 10_000 * 0.09 + 40_000 * 0.085 + 100_000 * 0.07 + 50_000 * 0.05),
        ("GCP", 5_000, 1_000 * 0.12 + 4_000 * 0.11),
        ("OCI", 10_000, 0.0),
        ("OCI", 20_000, 10_000 * 0.0085),
        ("Lambda", 50_000, 0.0),
    ],
)
def test_egress_by_tiers(provider: str, gb: float, usd: float) -> None:
    assert CATALOGUE.egress_usd(provider, gb) == pytest.approx(usd)


def test_egress_tiers_are_typed() -> None:
    assert [(t.up_to_gb, t.usd_per_gb) for t in CATALOGUE.egress_tiers("AWS")] == [
        (10_000, 0.09), (50_000, 0.085), (150_000, 0.07), (float("inf"), 0.05),
    ]  # fmt: skip
    (lambda_,) = CATALOGUE.egress_tiers("lambda")
    assert (lambda_.usd_per_gb, lambda_.provenance.as_of) == (0.0, date(2026, 9, 20))
    assert CATALOGUE.egress_tiers("Someone") == ()


def test_egress_agrees_with_the_cost_engine() -> None:
    for provider in ("AWS", "Azure", "GCP", "OCI", "Lambda", "Nebius", "Hetzner"):
        tiers, free = egress_tiers(provider, CATALOGUE.running)
        for gb in (0.0, 50.0, 9_999.0, 77_000.0, 1e6):
            theirs = egress_usd(gb, tiers, free)
            assert CATALOGUE.egress_usd(provider, gb) == pytest.approx(theirs)


def test_unknown_egress_is_not_free() -> None:
    with pytest.raises(InputError, match="no price"):
        CATALOGUE.egress_usd("Someone", 10)
    with pytest.raises(InputError):
        CATALOGUE.egress_usd("AWS", float("nan"))


def test_running_and_capital_rows_keep_their_ids_and_words() -> None:
    assert CATALOGUE.capital["sys-hgx-h100-8"].likely == 310_000
    assert CATALOGUE.capital["sys-hgx-h100-8"].unit == "usd per node"
    assert "up to 10000 GB per month" in CATALOGUE.running["egress-aws-1"].description
    assert "disc-aws-1y" in CATALOGUE.running
    assert CATALOGUE.claims["C001"].article == "000"


@pytest.mark.parametrize(
    ("days", "freshness"),
    [(0, "fresh"), (60, "fresh"), (61, "grey"), (120, "grey"), (121, "warn")],
)
def test_freshness(days: int, freshness: str) -> None:
    offer = quote(4.0)
    today = date.fromordinal(offer.provenance.as_of.toordinal() + days)
    assert (offer.age_days(today), offer.freshness(today)) == (days, freshness)
    limits = CATALOGUE.parameters
    assert limits["price_grey_after_days"].likely == 60
    assert limits["price_warn_after_days"].likely == 120


def quote(usd: float) -> Offer:
    return Offer(
        provider="Ours",
        sku="quote",
        accelerator_sku="h100-sxm-80gb",
        gpus_per_instance=8,
        acquisition="on_demand",
        usd_per_instance_hour=8 * usd,
        usd_per_gpu_hour=usd,
        kind="quote",
        provenance=Provenance(source="a letter", as_of=TODAY, confidence="high"),
    )


def test_quotes_rank_beside_the_offers_and_leave_the_catalogue_alone() -> None:
    before = len(CATALOGUE.offers)
    cheapest = CATALOGUE.with_quotes([quote(0.5)]).offers_for("h100-sxm-80gb", "on_demand")[0]
    assert cheapest.provider == "Ours"
    assert len(CATALOGUE.offers) == before


def test_a_quote_of_a_whole_instance_ranks_by_its_gpus() -> None:
    whole = quote(3.0).model_copy(update={"usd_per_gpu_hour": None})
    ranked = CATALOGUE.with_quotes([whole, quote(2.0)]).offers_for("h100-sxm-80gb", "on_demand")
    place = ranked.index(whole)
    assert all((o.usd_per_gpu_hour or 0) <= 3.0 for o in ranked[:place])
    assert all((o.usd_per_gpu_hour or 0) >= 3.0 for o in ranked[place + 1 :])


def test_rows_are_frozen() -> None:
    with pytest.raises(ValidationError):
        CATALOGUE.offers[0].vcpu = 3
    with pytest.raises(AttributeError):
        CATALOGUE.offers = ()  # type: ignore[misc]
    assert replace(CATALOGUE, offers=()).offers == ()


def test_the_shipped_tables_have_no_fault() -> None:
    assert check_data() == []
    text, faults = check_report()
    assert faults == []
    assert "No fault" in text


def test_loading_is_quick_and_kept() -> None:
    assert load_catalogue() is load_catalogue()
    times = []
    for _ in range(5):
        _shipped.cache_clear()
        start = time.perf_counter()
        load_catalogue()
        times.append(time.perf_counter() - start)
    assert min(times) < 0.080
