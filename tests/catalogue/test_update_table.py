"""The refreshed table: written whole, laid over the shipped one, fetched from the network."""

from __future__ import annotations

import io
import logging
import os
import sys
import zipfile
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.catalogue import load_catalogue
from engine.catalogue.load import shipped_catalogue, with_update
from engine.catalogue.update import store
from engine.catalogue.update.run import update_prices
from tests.catalogue.refreshing import (
    DAY,
    GPUHUNT,
    OFFERS,
    SHIPPED,
    SKYPILOT,
    Refresh,
    p5,
    refresh,
    sky,
)

__all__ = ["refresh"]

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
    assert load_catalogue() is shipped_catalogue()
    assert load_catalogue().update.file == ""
    monkeypatch.setenv(store.ENVIRONMENT, str(tmp_path / "nowhere"))
    assert load_catalogue() is shipped_catalogue()


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
    assert not done.reached
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
    assert done.reached
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
