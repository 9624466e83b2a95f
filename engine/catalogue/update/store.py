"""The refreshed table of prices: where it lies, reading it, laying it over the shipped one.

One file a day, `prices-YYYY-MM-DD.csv`, with the columns of offers.csv; the newest counts. This
module judges no price: the checks of the catalogue do.
"""

from __future__ import annotations

import csv
import io
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from engine.catalogue.models import Offer
from engine.catalogue.offer_checks import Key, offer_key
from engine.catalogue.read import parse, rows
from engine.errors import DataError

ENVIRONMENT = "CLUSTERFIT_PRICES"
FOLDER = Path(__file__).resolve().parents[3] / "data" / "updates"
NAME = re.compile(r"prices-(\d{4}-\d{2}-\d{2})\.csv")
COLUMNS = (
    "provider",
    "sku",
    "accelerator_sku",
    "cpu_server_id",
    "gpus_per_instance",
    "vcpu",
    "memory_gb",
    "region",
    "acquisition",
    "usd_per_instance_hour",
    "usd_per_gpu_hour",
    "min_commit",
    "kind",
    "source",
    "as_of",
    "confidence",
    "notes",
)
# Kinds of price that a provider's own list or market can replace; an article's never is.
REFRESHED = frozenset({"list", "observed", "derived"})


@dataclass(frozen=True, slots=True)
class PriceUpdate:
    """Which refreshed table is in use: its name, day and rows that count; or why it is not."""

    file: str = ""
    day: date | None = None
    rows: int = 0
    fault: str = ""


def folder() -> Path:
    """The folder of the refreshed tables: that of CLUSTERFIT_PRICES, else data/updates."""
    named = os.environ.get(ENVIRONMENT, "").strip()
    return Path(named).expanduser() if named else FOLDER


def day_of(file: Path) -> date | None:
    """The day in a table's name; None for any other name."""
    found = NAME.fullmatch(file.name)
    try:
        return date.fromisoformat(found.group(1)) if found else None
    except ValueError:
        return None


def newest(place: Path, before: date | None = None) -> Path | None:
    """The table with the latest day in its name (before a day, if given); None without one."""
    try:
        found = [(day, file) for file in place.iterdir() if (day := day_of(file)) is not None]
    except OSError:
        return None
    found = [(day, file) for day, file in found if before is None or day < before]
    return max(found)[1] if found else None


def read(file: Path, today: date) -> list[tuple[int, Offer]]:
    """Line number and offer of each row.

    Raises
    ------
    DataError : a row can't be used, stands twice, ranks not, or the file is of a day to come
    """
    day = day_of(file)
    if day is not None and day > today:
        raise DataError(
            f"is of {day}, and today is {today}", file=file, line=1, column="-", right="a past day"
        )
    found: list[tuple[int, Offer]] = []
    seen: set[Key] = set()
    for line, cells in rows(file):
        offer = parse(Offer, cells, file, line, today)
        if offer.kind not in REFRESHED:
            raise DataError(
                f"{offer.kind!r} is no price that a refresh brings",
                file=file,
                line=line,
                column="kind",
                right=", ".join(sorted(REFRESHED)),
            )
        if offer_key(offer) in seen:
            raise DataError(
                f"the price of {offer.provider} {offer.sku} stands twice",
                file=file,
                line=line,
                column="sku",
                right="once",
            )
        seen.add(offer_key(offer))
        found.append((line, offer))
    return found


def refreshable(offer: Offer) -> bool:
    """Whether a refreshed price may take this one's place."""
    return offer.kind in REFRESHED


def overlay(
    offers: Iterable[Offer], updates: Sequence[tuple[int, Offer]]
) -> tuple[list[tuple[int, Offer]], int]:
    """Offers with the refreshed price where there is one, and how many there are.

    A refreshed row replaces one of the same key and hardware unless the present one is newer.
    Each offer comes with its line in the update, 1 where it is not from there.
    """
    by_key = {offer_key(offer): (line, offer) for line, offer in updates}
    merged: list[tuple[int, Offer]] = []
    used = 0
    for offer in offers:
        line, new = by_key.get(offer_key(offer), (1, None)) if refreshable(offer) else (1, None)
        if (
            new is None
            or new.provenance.as_of < offer.provenance.as_of
            or new.accelerator_sku != offer.accelerator_sku
            or new.cpu_server_id != offer.cpu_server_id
        ):
            merged.append((1, offer))
        else:
            merged.append((line, new))
            used += 1
    return merged, used


def write(file: Path, offers: Iterable[Offer]) -> None:
    """Write a table in one step: a reader sees the old one or the new one, never half of it."""
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for offer in offers:
        table.writerow([_cell(offer, column) for column in COLUMNS])
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".prices-", suffix=".part", dir=file.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
            out.write(text.getvalue())
            out.flush()
            os.fsync(out.fileno())
        part.chmod(0o644)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _cell(offer: Offer, column: str) -> str:
    found = getattr(offer, column) if hasattr(offer, column) else getattr(offer.provenance, column)
    if found is None:
        return ""
    if isinstance(found, float):
        return str(int(found)) if found == int(found) else repr(found)
    return str(found)
