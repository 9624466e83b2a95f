"""Refreshing prices: strict names, the guard on moves, refusals with their row, the dated table.

Present prices of the shipped table that the expected values build on (data/offers.csv):
p5.48xlarge us-east-1 on demand 55.04 and spot 17.8424, 8 GPUs; Lambda 8x H100 SXM 31.92; Nebius
HGX H100 4.5; AWS m7i.16xlarge 3.2256; GCP a2-highgpu-1g us-east1 3.673.
"""

from __future__ import annotations

import csv
import io
import zipfile
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalogue.limits import limit
from engine.catalogue.offer_checks import offer_key
from engine.catalogue.update import store
from engine.catalogue.update.formats import PriceRow, read_file
from engine.catalogue.update.names import gpu_names, instance_names, sources
from engine.catalogue.update.plan import exceeds, plan
from engine.errors import ImportFileError
from tests.catalogue.refreshing import (
    DAY,
    GPUHUNT,
    OFFERS,
    SHIPPED,
    SKYPILOT,
    Refresh,
    offer,
    p5,
    refresh,
    sky,
)

__all__ = ["refresh"]

# --- names and forms


def test_every_name_points_at_an_offer_or_a_card_of_the_catalogue() -> None:
    offers = {
        (o.provider, o.sku, o.region, o.acquisition, o.gpus_per_instance)
        for o in SHIPPED.offers
        if store.refreshable(o)
    }
    for names in instance_names().values():
        for n in names:
            assert (n.provider, n.sku, n.region, n.acquisition, n.gpus_per_instance) in offers
    for skus in gpu_names().values():
        assert skus <= set(SHIPPED.accelerators)
    assert {s.provider for s in sources()} <= {o.provider for o in SHIPPED.offers}
    assert all(s.address.startswith("https://") for s in sources() if s.address)


def test_a_skypilot_file_refreshes_on_demand_and_spot_apart(refresh: Refresh) -> None:
    done, after = refresh(SKYPILOT + sky("60.0", "20.0") + sky("60.0", "22.0"))
    assert p5(after).usd_per_instance_hour == 60
    assert p5(after).usd_per_gpu_hour == 7.5  # 60 / 8
    # Two zones: the middle of 20 and 22.
    assert p5(after, "spot").usd_per_instance_hour == 21
    assert p5(after, "spot").kind == "observed"
    assert "20-22" in p5(after, "spot").notes
    assert p5(after).provenance.as_of == DAY
    assert "SkyPilot" in p5(after).provenance.source
    assert "the machine was 55.04 on 2026-08-15" in p5(after).notes
    assert done.file is not None
    assert done.waiting == 0
    # What the file doesn't cover stays, with its own day.
    assert offer("AWS", "p4d.24xlarge", "us-east-1", "on_demand", after) == offer(
        "AWS", "p4d.24xlarge", "us-east-1", "on_demand"
    )


def test_a_gpuhunt_file_and_its_zip_say_the_same(refresh: Refresh, tmp_path: Path) -> None:
    text = GPUHUNT + (
        "gpu_8x_h100_sxm5,us-east-1,30.0,208,1933.2,8,H100,80.0,False,\n"
        "gpu_8x_h100_sxm5,europe-central-1,39.0,208,1933.2,8,H100,80.0,False,\n"
    )
    _, after = refresh(text, "lambdalabs.csv")
    new = offer("Lambda", "8x H100 SXM", "us", "on_demand", after)
    assert (new.usd_per_instance_hour, new.usd_per_gpu_hour) == (30, 3.75)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as out:
        out.writestr("lambdalabs.csv", text)
    (tmp_path / "catalog.zip").write_bytes(packed.getvalue())
    assert read_file(tmp_path / "catalog.zip", DAY) == read_file(tmp_path / "lambdalabs.csv", DAY)


def test_a_zone_belongs_to_its_region_and_to_no_other(refresh: Refresh) -> None:
    line = "a2-highgpu-1g,{},3.9,12,85,1,A100,40.0,False,\n"
    _, after = refresh(GPUHUNT + line.format("us-east1-b"), "gcp.csv")
    assert offer("GCP", "a2-highgpu-1g", "us-east1", "on_demand", after).usd_per_gpu_hour == 3.9
    done, _ = refresh(GPUHUNT + line.format("us-east11-b"), "gcp.csv")
    assert done.file is None
    assert "GCP a2-highgpu-1g" in done.text


def test_runpod_secure_and_community_are_told_by_their_places(refresh: Refresh) -> None:
    line = "NVIDIA H100 80GB HBM3,{},{},16,125,{},H100,80,False,{}\n"
    rows = (
        line.format("EU-RO-1", "3.5", 1, "")
        + line.format("US", "2.5", 1, "")
        + line.format("EU-RO-1", "28", 8, "")  # another size than the table's
        + line.format("EU-RO-1", "9", 1, "runpod-cluster")
    )
    _, after = refresh(GPUHUNT + rows, "runpod.csv")
    secure = offer("RunPod", "h100-sxm-80gb Secure", "any", "on_demand", after)
    community = offer("RunPod", "h100-sxm-80gb Community", "any", "marketplace", after)
    assert (secure.usd_per_gpu_hour, community.usd_per_gpu_hour) == (3.5, 2.5)


def own_table(**cells: str) -> str:
    """The row of the p5.48xlarge on demand in us-east-1 with some cells changed."""
    with OFFERS.open(encoding="utf-8", newline="") as text:
        rows = [r for r in csv.DictReader(text) if r["sku"] == "p5.48xlarge"]
    row = next(r for r in rows if r["region"] == "us-east-1" and r["acquisition"] == "on_demand")
    out = io.StringIO()
    table = csv.DictWriter(out, list(row), lineterminator="\n")
    table.writeheader()
    table.writerow(row | cells)
    return out.getvalue()


def test_a_table_in_our_own_form_brings_its_own_days(refresh: Refresh) -> None:
    text = own_table(
        usd_per_instance_hour="64", usd_per_gpu_hour="8", as_of="2026-11-20", confidence="low"
    )
    done, after = refresh(text, "mine.csv")
    assert p5(after).usd_per_gpu_hour == 8
    assert p5(after).provenance.as_of == date(2026, 11, 20)
    assert p5(after).provenance.confidence == "low"
    assert "each row of its own day" in done.text


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"kind": "seed"}, "kind is seed"),
        ({"kind": ""}, "kind is empty"),
        ({"confidence": ""}, "confidence is empty"),
        ({"as_of": "2026-12-03"}, "lies in the future"),
        ({"as_of": "soon"}, "no date"),
        # 8 GPUs at 55.04 each are 440.32: the price of the machine stands where one GPU's belongs.
        ({"usd_per_gpu_hour": "55.04"}, "440.32"),
        ({"accelerator_sku": "h200-sxm-141gb"}, "h200-sxm-141gb"),
    ],
)
def test_a_row_of_our_own_form_is_judged_like_any_other(
    cells: dict[str, str], words: str, refresh: Refresh
) -> None:
    done, _ = refresh(own_table(**{"as_of": "2026-12-01"} | cells), "mine.csv")
    assert words in done.text
    assert done.file is None


def test_whose_prices_they_are_is_said_or_plain_and_never_guessed(refresh: Refresh) -> None:
    # Only AWS has a p5.48xlarge: a file of any name is its.
    _, after = refresh(SKYPILOT + sky("56"), "vms.csv")
    assert p5(after).usd_per_instance_hour == 56
    with pytest.raises(ImportFileError, match="--provider"):
        refresh(SKYPILOT + sky("1", machine="mystery,H100,1,1,1"), "vms.csv")
    with pytest.raises(ImportFileError, match="--provider"):
        refresh(SKYPILOT + sky("1"), "vms.csv", provider="Nobody")
    with pytest.raises(ImportFileError, match="columns are not known"):
        refresh("gpu,price\nH100,2\n", "list.csv")
    with pytest.raises(ImportFileError):
        refresh("PK\x03\x04 no zip", "catalog.zip")


def test_unknown_machines_and_cards_are_counted_and_named(refresh: Refresh) -> None:
    rows = sky("9", machine="x9.huge,Z900,8,1,1") + sky("9", machine="x9.huge,Z900,8,1,1")
    done, _ = refresh(SKYPILOT + sky("56") + rows)
    assert "2 rows of 1: AWS x9.huge" in done.text
    assert "2 rows of 1: Z900" in done.text


# --- refusals


BAD = {
    "zero": (sky("0"), "above 0"),
    "zero with decimals": (sky("0.00"), "above 0"),
    "negative": (sky("-55"), "above 0"),
    "nothing": (sky(""), "missing"),
    "NaN": (sky("nan"), "above 0"),
    "infinite": (sky("inf"), "above 0"),
    "a word": (sky("call us"), "call us"),
    "fewer GPUs": (sky("55", machine="p5.48xlarge,H100,4,192,2048"), "4 GPUs"),
    "another card": (sky("55", machine="p5.48xlarge,H200,8,192,2048"), "'H200'"),
    "a card of no known name": (sky("55", machine="p5.48xlarge,H100X,8,192,2048"), "'H100X'"),
    "a host without its GPUs": (sky("55", machine="p5.48xlarge,,8,192,2048"), "host alone"),
    "another server": (sky("3", machine="m7i.16xlarge,,,32,128"), "32 vCPU"),
    "two prices at once": (sky("55") + sky("60"), "55 to 60"),
    # 98.32 is AWS' price of before June 2025, marked as superseded in the table.
    "a price since replaced": (sky("98.32"), "since replaced"),
    # 40 / 17.8424 is a move of 2.2, allowed, but 60 for spot is dearer than 55.04 on demand.
    "spot above on demand": (sky("55.04", "53") + sky("55.04", "60"), "no less than"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_can_be_no_price_is_refused_with_its_row(name: str, refresh: Refresh) -> None:
    rows, words = BAD[name]
    done, after = refresh(SKYPILOT + rows, accept_moves=True)
    assert words in done.text
    assert "Refused" in done.text
    if name != "spot above on demand":
        assert done.file is None
        assert "aws.csv line" in done.text or name == "a price since replaced"
    assert p5(after, "spot") == p5(terms="spot")


def test_euros_are_never_taken_for_dollars(refresh: Refresh) -> None:
    text = SKYPILOT.replace("\n", ",Currency\n") + sky("50").replace("\n", ",EUR\n")
    done, _ = refresh(text)
    assert done.file is None
    assert "EUR" in done.text


def test_the_split_prices_of_gcp_are_refused(refresh: Refresh) -> None:
    # The known fault: 0.94 for an a2-highgpu-1g is the host without its A100.
    row = sky("0.94", machine="a2-highgpu-1g,A100,1,12,85", region="us-east1")
    done, _ = refresh(SKYPILOT + row, "gcp.csv", accept_moves=True)
    assert done.file is None
    assert "splits the price" in done.text


def test_memory_tells_two_cards_of_one_name_apart(refresh: Refresh) -> None:
    # a2-highgpu-1g has the A100 of 40 GB.
    row = "a2-highgpu-1g,us-east1-b,3.9,12,85,1,A100,80.0,False,\n"
    done, _ = refresh(GPUHUNT + row, "gcp.csv")
    assert "80 GB" in done.text


def test_an_absurd_price_is_refused_even_when_moves_are_accepted(refresh: Refresh) -> None:
    for price in ("0.55", "5504"):  # cents, and a month's
        done, after = refresh(SKYPILOT + sky(price), accept_moves=True)
        assert done.file is None
        assert p5(after) == p5()


def test_a_price_that_fits_no_other_takes_no_innocent_one_with_it(refresh: Refresh) -> None:
    # 200 an hour are 25 a GPU-hour, more than three times the 7.3616 of the same machine in
    # eu-north-1, which stays. The spot price of 20 is in its place and is taken.
    done, after = refresh(SKYPILOT + sky("200", "20"), accept_moves=True)
    assert p5(after) == p5()
    assert p5(after, "spot").usd_per_instance_hour == 20
    (refused,) = [line for line in done.text.splitlines() if "$7.3616" in line]
    assert "us-east-1, on demand, 200 USD an hour: beside AWS p5.48xlarge, eu-north-1" in refused


def test_an_older_price_takes_no_newer_ones_place(refresh: Refresh) -> None:
    done, after = refresh(SKYPILOT + sky("56"), as_of=date(2026, 8, 1))  # the table's: 15 August
    assert "Older" in done.text
    assert done.file is None
    assert p5(after) == p5()


def test_articles_and_analysts_prices_are_never_refreshed() -> None:
    kinds = {o.kind for o in SHIPPED.offers if store.refreshable(o)}
    assert kinds == {"list", "observed", "derived"}


# --- the guard on moves


def test_a_large_move_is_refused_until_confirmed(refresh: Refresh) -> None:
    # 17.8424 to 5.0 is 3.57 times cheaper.
    text = SKYPILOT + sky("55.04", "5.0")
    done, after = refresh(text)
    assert done.waiting == 1
    assert "17.8424 to 5 USD" in done.text
    assert "3.57 times cheaper" in done.text
    assert "--accept-moves" in done.text
    assert "SkyPilot" in done.text
    assert p5(after, "spot") == p5(terms="spot")
    # The others of the file are written all the same.
    assert p5(after).provenance.as_of == DAY


@given(
    old=st.floats(0.01, 500),
    ratio=st.floats(1.0, 50),
    up=st.booleans(),
    factor=st.floats(1.1, 20),
)
def test_the_guard_looks_the_same_up_and_down(
    old: float, ratio: float, up: bool, factor: float
) -> None:
    new = old * ratio if up else old / ratio
    if abs(ratio / factor - 1) > 1e-6:
        assert exceeds(old, new, factor) == (ratio > factor)
    assert exceeds(old, new, factor) == exceeds(new, old, factor)


@given(price=st.floats(0.05, 5000), accept=st.booleans())
def test_no_price_passes_the_guard_unconfirmed(price: float, accept: bool) -> None:
    row = PriceRow(
        file="aws.csv",
        line=2,
        provider="AWS",
        name="p5.48xlarge",
        place="us-east-1",
        spot=False,
        price=repr(price),
        source="a test",
        as_of=DAY,
        form="skypilot",
        gpu_name="H100",
        gpus=8.0,
        vcpu=192.0,
    )
    factor = limit("price_move_factor")
    done = plan(
        [row],
        SHIPPED.offers,
        SHIPPED.accelerators,
        today=DAY,
        factor=factor,
        accept_moves=accept,
    )
    large = not 55.04 / 3 * (1 - 1e-9) <= price <= 55.04 * 3 * (1 + 1e-9)
    assert factor == 3
    assert len(done.moves) == (large and not accept)
    assert len(done.accepted) == (accept or not large)
    assert len(done.moves) + len(done.accepted) == 1
    assert len(done.accepted_moves) == (large and accept)


def test_keys_of_offers_are_of_one_offer_each() -> None:
    keys = [offer_key(o) for o in SHIPPED.offers if store.refreshable(o)]
    assert len(set(keys)) == len(keys)
