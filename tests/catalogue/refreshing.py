"""What the tests of refreshed prices share: the present prices, and a refresh from a text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from engine.catalogue import Catalogue, Offer, shipped_catalogue
from engine.catalogue.load import with_update
from engine.catalogue.update import store
from engine.catalogue.update.run import Outcome, update_prices

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
