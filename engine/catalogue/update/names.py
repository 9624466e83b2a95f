"""The names that published price files use, and what the catalogue calls the same thing.

A name is known or it is not: nothing here looks for a likely one.
"""

from __future__ import annotations

from datetime import date
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from engine.catalogue.models import OfferTerms, Provenance, Row, Text
from engine.catalogue.read import parse, rows

DATA = Path(__file__).resolve().parents[3] / "data"
Format = Literal["gpuhunt", "skypilot", "table"]


class Source(Row):
    """A published price file: whose prices, in which form, where (empty: from a file only).

    `day_address` lists the commits of a file that says no day itself, the last one first.
    """

    id: Text
    provider: Text
    format: Format
    place: Text
    address: str = ""
    day_address: str = ""
    notes: str = ""
    provenance: Provenance


class InstanceName(Row):
    """A machine's name in published files; `places` is a pattern of the regions that it covers."""

    provider: Text
    name: Text
    gpus_per_instance: int = Field(ge=0)
    sku: Text
    region: Text
    acquisition: OfferTerms
    places: Text
    notes: str = ""
    provenance: Provenance

    def covers(self, gpus: float, place: str, spot: bool) -> bool:
        """Whether a row of this size, place and market is what the catalogue means."""
        return (
            gpus == self.gpus_per_instance
            and fnmatchcase(place, self.places)
            and spot == (self.acquisition == "spot")
        )


class GpuName(Row):
    """A GPU's name in published files and the accelerators (spaces between) that it can mean."""

    name: Text
    accelerator_skus: Text
    notes: str = ""
    provenance: Provenance


@lru_cache(maxsize=1)
def sources() -> tuple[Source, ...]:
    """The published files that are known, the preferred first."""
    file = DATA / "price_sources.csv"
    return tuple(parse(Source, cells, file, line, _never()) for line, cells in rows(file))


@lru_cache(maxsize=1)
def instance_names() -> dict[tuple[str, str], tuple[InstanceName, ...]]:
    """Meanings of a provider's machine name, by provider and name."""
    file = DATA / "price_instance_names.csv"
    found: dict[tuple[str, str], tuple[InstanceName, ...]] = {}
    for line, cells in rows(file):
        row = parse(InstanceName, cells, file, line, _never())
        key = (row.provider, row.name)
        found[key] = (*found.get(key, ()), row)
    return found


@lru_cache(maxsize=1)
def gpu_names() -> dict[str, frozenset[str]]:
    """Accelerators that a GPU's name can mean."""
    file = DATA / "price_gpu_names.csv"
    read = (parse(GpuName, cells, file, line, _never()) for line, cells in rows(file))
    return {row.name: frozenset(row.accelerator_skus.split()) for row in read}


def _never() -> date:
    # Shipped tables carry the day of their making; a clock set back is no fault of theirs.
    return date.max
