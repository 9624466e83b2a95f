"""Refreshing prices: strict names, the guard on moves, refusals with their row, the dated table.

Present prices of the shipped table that the expected values build on (data/offers.csv):
p5.48xlarge us-east-1 on demand 55.04 and spot 17.8424, 8 GPUs; Lambda 8x H100 SXM 31.92; Nebius
HGX H100 4.5; AWS m7i.16xlarge 3.2256; GCP a2-highgpu-1g us-east1 3.673.
"""

from __future__ import annotations

import csv
import io
import logging
import os
import sys
import zipfile
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalogue import Catalogue, Offer, load_catalogue, shipped_catalogue
from engine.catalogue.limits import limit
from engine.catalogue.load import with_update
from engine.catalogue.offer_checks import offer_key
from engine.catalogue.update import store
from engine.catalogue.update.formats import PriceRow, read_file
from engine.catalogue.update.names import gpu_names, instance_names, sources
from engine.catalogue.update.plan import exceeds, plan
from engine.catalogue.update.run import Outcome, update_prices
from engine.errors import ImportFileError

DAY = date(2026, 12, 2)
Refresh = Callable[..., tuple[Outcome, Catalogue]]
SHIPPED = shipped_catalogue()
OFFERS = Path(__file__).resolve().parents[2] / "data" / "offers.csv"
SKYPILOT = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,SpotPrice\n"
GPUHUNT = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,flags\n"


def offer(provider: str, sku: str, region: str, terms: str, of: Catalogue = SHIPPED) -> Offer:
    (found,) = [
        o
        for o in of.offers
        if (o.provider, o.sku, o.region, o.acquisition) == (provider, sku, region, terms)
        and store.refreshable(o)
    ]
    return found


def p5(of: Catalogue = SHIPPED, terms: str = "on_demand") -> Offer:
    return offer("AWS", "p5.48xlarge", "us-east-1", terms, of)


@pytest.fixture
def refresh(tmp_path: Path) -> Refresh:
    """Write a file and refresh from it: what was said, and the prices afterwards."""

    def run(text: str, name: str = "aws.csv", **more: Any) -> tuple[Outcome, Catalogue]:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        place = tmp_path / "updates"
        done = update_prices(
            [file],
            **{"as_of": DAY, "today": DAY, "place": place, **more},
        )
        newest = store.newest(place)
        after = SHIPPED if newest is None else with_update(SHIPPED, newest, DAY)
        return done, after

    return run


def sky(price: str, spot: str = "", machine: str = "p5.48xlarge,H100,8,192,2048", **of: str) -> str:
    return f"{machine},{price},{of.get('region', 'us-east-1')},{spot}\n"


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


# --- the table


def test_the_shipped_table_stays_and_a_run_can_be_repeated(refresh: Refresh) -> None:
    before = OFFERS.read_bytes()
    first, _ = refresh(SKYPILOT + sky("60", "20"))
    assert first.file is not None
    written = first.file.read_bytes()
    again, _ = refresh(SKYPILOT + sky("60", "20"))
    assert again.file == first.file
    assert first.file.read_bytes() == written
    assert again.text == first.text
    assert OFFERS.read_bytes() == before
    assert [f.name for f in first.file.parent.iterdir()] == ["prices-2026-12-02.csv"]


def test_a_second_run_of_the_day_replaces_and_keeps_what_it_has_not(refresh: Refresh) -> None:
    refresh(SKYPILOT + sky("60", "20"))
    _, after = refresh(SKYPILOT + sky("58"))
    assert p5(after).usd_per_instance_hour == 58
    assert p5(after, "spot").usd_per_instance_hour == 20


def test_moves_of_one_day_do_not_add_up(refresh: Refresh) -> None:
    # 17.8424 to 8 is 2.2 times; 8 to 4 would be 2 times, but 4.46 from yesterday's price.
    refresh(SKYPILOT + sky("55.04", "8"))
    done, after = refresh(SKYPILOT + sky("55.04", "4"))
    assert done.waiting == 1
    assert p5(after, "spot").usd_per_instance_hour == 8


def test_another_days_file_keeps_the_earlier_prices_with_their_day(refresh: Refresh) -> None:
    yesterday = date(2026, 12, 1)
    refresh(SKYPILOT + sky("60", "20"), as_of=yesterday, today=yesterday)
    _, after = refresh(SKYPILOT + sky("61"))
    assert after.update.file == "prices-2026-12-02.csv"
    assert p5(after).provenance.as_of == DAY
    assert p5(after, "spot").provenance.as_of == yesterday
    assert after.update.rows == 2


def test_a_table_goes_round_unchanged(tmp_path: Path) -> None:
    offers = [o for o in SHIPPED.offers if store.refreshable(o)]
    file = tmp_path / "prices-2026-12-02.csv"
    store.write(file, offers)
    assert [o for _, o in store.read(file, DAY)] == offers
    merged, used = store.overlay(SHIPPED.offers, store.read(file, DAY))
    assert [o for _, o in merged] == list(SHIPPED.offers)
    assert used == len(offers)


def test_a_failed_write_leaves_the_earlier_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "prices-2026-12-02.csv"
    store.write(file, [p5()])
    before = file.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="full"):
        store.write(file, [])
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_without_a_table_the_catalogue_is_the_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(store.ENVIRONMENT, str(tmp_path))
    assert load_catalogue() is SHIPPED
    assert load_catalogue().update.file == ""
    monkeypatch.setenv(store.ENVIRONMENT, str(tmp_path / "nowhere"))
    assert load_catalogue() is SHIPPED


def test_the_newest_table_is_loaded_with_its_day(
    refresh: Refresh,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refresh(SKYPILOT + sky("60"))
    (tmp_path / "updates" / "notes.txt").write_text("no table")
    monkeypatch.setenv(store.ENVIRONMENT, str(tmp_path / "updates"))
    found = load_catalogue()
    assert p5(found).usd_per_instance_hour == 60
    assert (found.update.file, found.update.day, found.update.rows) == (
        "prices-2026-12-02.csv",
        DAY,
        1,
    )
    assert len(found.offers) == len(SHIPPED.offers)


BROKEN: dict[str, Callable[[str], str]] = {
    "half a file": lambda text: text[: len(text) * 2 // 3],
    "empty": lambda text: "",
    "free": lambda text: text.replace("60", "0"),
    "of a day to come": lambda text: text.replace("2026-12-02", "2026-12-09"),
    "no source": lambda text: text.replace("SkyPilot catalogue aws.csv", ""),
    "an article's": lambda text: text.replace(",list,", ",seed,"),
    "twice": lambda text: text + text.split("\n")[1] + "\n",
    "per GPU and per machine at odds": lambda text: text.replace("7.5", "3.5"),
    "absurd": lambda text: text.replace("60", "0.6").replace("7.5", "0.075"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_table_is_refused_whole_and_the_shipped_one_used(
    name: str, refresh: Refresh
) -> None:
    done, _ = refresh(SKYPILOT + sky("60"))
    assert done.file is not None
    text = done.file.read_text()
    done.file.write_text(BROKEN[name](text))
    found = with_update(SHIPPED, done.file, DAY)
    assert found.offers == SHIPPED.offers
    assert "prices-2026-12-02.csv line" in found.update.fault
    assert found.update.rows == 0
    # A new run says so and writes a good one.
    again, after = refresh(SKYPILOT + sky("61"))
    assert "not used" in again.text
    assert p5(after).usd_per_instance_hour == 61


def test_a_table_of_an_earlier_version_gives_way_to_newer_shipped_prices(tmp_path: Path) -> None:
    old = p5().model_copy(
        update={"provenance": p5().provenance.model_copy(update={"as_of": date(2026, 1, 5)})}
    )
    file = tmp_path / "prices-2026-01-05.csv"
    store.write(file, [old])
    found = with_update(SHIPPED, file, DAY)
    assert found.update.rows == 0
    assert p5(found) == p5()


# --- the network


def test_without_a_network_it_says_so_and_how_old_its_prices_are(tmp_path: Path) -> None:
    def none(address: str) -> bytes:
        raise OSError("Network is unreachable")

    done = update_prices(today=DAY, place=tmp_path, download=none)
    assert done.file is None
    assert "works offline" in done.text
    assert "Network is unreachable" in done.text
    # The newest of the shipped table is of 9 November: 21 + 2 days.
    assert "2026-11-09, 23 days old" in done.text
    assert "--from" in done.text


def gpuhunt_zip(name: str, rows: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as out:
        out.writestr(name, GPUHUNT + rows)
    return packed.getvalue()


def test_a_source_that_fails_is_named_and_the_others_count(tmp_path: Path) -> None:
    rows = "p5.48xlarge,us-east-1,60,192,2048,8,H100,80.0,False,\n"

    def some(address: str) -> bytes:
        if address.endswith("/aws/version"):
            return b"20261130-101\n"
        if address.endswith("/aws/20261130-101/catalog.zip"):
            return gpuhunt_zip("aws.csv", rows)
        if address.endswith("path=catalogs/v9/aws/vms.csv"):
            return b'[{"commit": {"committer": {"date": "2026-12-01T04:05:06Z"}}}]'
        if address.endswith("/aws/vms.csv"):
            # Of 1 December, so it is newer than the library's of 30 November.
            return (SKYPILOT + sky("", "20")).encode()
        raise OSError("Name or service not known")

    done = update_prices(today=DAY, place=tmp_path, download=some)
    assert "Read gpuhunt-aws, skypilot-aws." in done.text
    assert "gpuhunt-lambda: Name or service not known" in done.text
    assert done.file is not None
    after = with_update(SHIPPED, done.file, DAY)
    assert p5(after).usd_per_instance_hour == 60
    assert p5(after).provenance.as_of == date(2026, 11, 30)
    assert p5(after, "spot").usd_per_instance_hour == 20
    assert p5(after, "spot").provenance.as_of == date(2026, 12, 1)


@pytest.mark.parametrize("answer", [b"", b"[]", b"{}", b'[{"commit": 1}]', b"<html>"])
def test_a_source_of_no_known_day_is_left_out(tmp_path: Path, answer: bytes) -> None:
    def some(address: str) -> bytes:
        if "commits?" in address:
            return answer
        if address.endswith("vms.csv"):
            return (SKYPILOT + sky("56")).encode()
        raise OSError("Name or service not known")

    done = update_prices(today=DAY, place=tmp_path, download=some)
    assert done.file is None
    assert "its day can't be read" in done.text


def test_a_price_that_was_published_long_ago_is_not_todays(tmp_path: Path) -> None:
    # Fetched today, but its last commit is of January: the shipped price of August stays.
    def some(address: str) -> bytes:
        if "commits?" in address:
            return b'[{"commit": {"committer": {"date": "2026-01-05T00:00:00Z"}}}]'
        if address.endswith("aws/vms.csv"):
            return (SKYPILOT + sky("56")).encode()
        raise OSError("Name or service not known")

    done = update_prices(today=DAY, place=tmp_path, download=some)
    assert done.file is None
    assert "Older" in done.text


def test_a_file_that_says_no_day_has_its_own_and_is_trusted_less(tmp_path: Path) -> None:
    file = tmp_path / "aws.csv"
    file.write_text(SKYPILOT + sky("56"))
    noon = datetime(2026, 11, 20, 12).timestamp()
    os.utime(file, (noon, noon))
    done = update_prices([file], today=DAY, place=tmp_path)
    assert "of 2026-11-20, the file's own date" in done.text
    assert done.file is not None
    after = with_update(SHIPPED, done.file, DAY)
    assert p5(after).provenance.as_of == date(2026, 11, 20)
    assert p5(after).provenance.confidence == "medium"
    assert "says none" in p5(after).notes
    update_prices([file], today=DAY, place=tmp_path, as_of=date(2026, 11, 21))
    after = with_update(SHIPPED, done.file, DAY)
    assert p5(after).provenance.confidence == "high"


def test_one_zone_at_the_full_price_does_not_lift_the_spot_price(refresh: Refresh) -> None:
    # 16, 17 and 55 (no capacity to spare there): the median is 17, the middle would be 35.5.
    rows = sky("55.04", "16") + sky("55.04", "17") + sky("55.04", "55")
    _, after = refresh(SKYPILOT + rows)
    assert p5(after, "spot").usd_per_instance_hour == 17


class Item(SimpleNamespace):
    """A price as the library gives it."""


def test_the_library_is_used_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    item = Item(
        instance_name="p5.48xlarge",
        location="us-east-1",
        price=60.0,
        cpu=192,
        memory=2048.0,
        gpu_count=8,
        gpu_name="H100",
        gpu_memory=80.0,
        spot=False,
        flags=[],
    )

    class Catalog:
        def __init__(self, *, balance_resources: bool, auto_reload: bool) -> None:
            assert not balance_resources  # sizes as they are
            assert not auto_reload
            self.catalog: dict[str, SimpleNamespace] = {}

        def load(self) -> None:
            logging.getLogger("gpuhunt._internal.catalog").error("a traceback")
            self.catalog["aws"] = SimpleNamespace(version="20261201-7", items=[item])

    monkeypatch.setitem(sys.modules, "gpuhunt", SimpleNamespace(Catalog=Catalog))

    def unreachable(address: str) -> bytes:
        raise OSError("Name or service not known")

    monkeypatch.setattr("engine.catalogue.update.fetch._download", unreachable)
    done = update_prices(today=DAY, place=tmp_path)
    assert done.file is not None
    after = with_update(SHIPPED, done.file, DAY)
    assert p5(after).usd_per_instance_hour == 60
    assert p5(after).provenance.as_of == date(2026, 12, 1)
    assert "gpuhunt-azure: gpuhunt could not load it" in done.text
    assert not caplog.records


def test_keys_of_offers_are_of_one_offer_each() -> None:
    keys = [offer_key(o) for o in SHIPPED.offers if store.refreshable(o)]
    assert len(set(keys)) == len(keys)
