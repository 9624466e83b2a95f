"""Fetching published prices: through gpuhunt where it is installed, else the same files directly.

gpuhunt is an optional library: it publishes one catalogue for each provider, so that a broken one
does not spoil the rest. Nothing else of ClusterFit asks another host, and this only on command.
"""

from __future__ import annotations

import importlib
import json
import logging
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from engine.catalogue.update.formats import LIMIT_BYTES, PriceRow, read_bytes
from engine.catalogue.update.names import Source, sources
from engine.errors import ImportFileError

TIMEOUT_S = 20
AGENT = "ClusterFit-update-prices"
Download = Callable[[str], bytes]


@dataclass(slots=True)
class Fetched:
    """Rows of all sources that answered, and what the others said, by source."""

    rows: list[PriceRow] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def fetch(today: date, download: Download | None = None) -> Fetched:
    """Prices of every known source; one that fails is named and the others are kept.

    Parameters
    ----------
    today : day of a source that says none itself
    download : gives the bytes at an address, or raises OSError; the network's when omitted
    """
    found = Fetched()
    wanted = [s for s in sources() if s.address]
    library = None if download is not None else _library()
    if library is not None:
        through = [s for s in wanted if s.format == "gpuhunt"]
        wanted = [s for s in wanted if s.format != "gpuhunt"]
        _through_library(library, through, today, found)
    get = download or _download
    with ThreadPoolExecutor(max_workers=8) as pool:
        answers = list(pool.map(lambda source: _one(source, today, get), wanted))
    for source, answer in zip(wanted, answers, strict=True):
        if isinstance(answer, str):
            found.failed[source.id] = answer
        else:
            found.read.append(source.id)
            found.rows += answer
    return found


def _one(source: Source, today: date, get: Download) -> list[PriceRow] | str:
    """The rows of one source, or why there are none."""
    try:
        if source.format == "gpuhunt":
            version = get(f"{source.address}/version").decode("ascii", "replace").strip()
            if not re.fullmatch(r"[\w.-]{1,40}", version):
                return "its version is not readable"
            raw = get(f"{source.address}/{version}/catalog.zip")
            name, day = f"{source.place}.csv, version {version}", day_of(version, today)
        else:
            committed = _last_commit(get(source.day_address))
            if committed is None:
                return "its day can't be read, and a price without one is not taken for today's"
            raw = get(source.address)
            name, day = "/".join(source.address.split("/")[-3:]), min(committed, today)
        return list(read_bytes(raw, name, day, source.provider))
    except (ImportFileError, HTTPError, HTTPException) as error:
        return str(error) or type(error).__name__
    except OSError as error:
        return _why(error)


def _why(error: BaseException) -> str:
    """What went wrong, in words where there is no network at all."""
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, socket.gaierror):
        return "there is no network, or its names can't be looked up"
    return str(reason) or type(error).__name__


def _last_commit(raw: bytes) -> date | None:
    """The day of the newest of a list of commits; None if there is none to read."""
    try:
        return date.fromisoformat(json.loads(raw)[0]["commit"]["committer"]["date"][:10])
    except (ValueError, LookupError, TypeError):
        return None


def day_of(version: str, today: date) -> date:
    """The day that a version begins with (20261201-4711), today when it begins with none."""
    found = re.match(r"(\d{4})(\d{2})(\d{2})", version)
    try:
        return min(date(*(int(x) for x in found.groups())), today) if found else today
    except ValueError:
        return today


def _download(address: str) -> bytes:
    if not address.startswith("https://"):
        raise OSError(f"{address} is not an https address")
    request = Request(address, headers={"User-Agent": AGENT})
    with urlopen(request, timeout=TIMEOUT_S) as answer:
        raw: bytes = answer.read(LIMIT_BYTES + 1)
    if len(raw) > LIMIT_BYTES:
        raise OSError("larger than any price file")
    return raw


# --- gpuhunt


def _library() -> Any | None:
    try:
        return importlib.import_module("gpuhunt")
    except ImportError:
        return None


@contextmanager
def _quiet() -> Iterator[None]:
    """The library waits without end and logs tracebacks; neither is for a founder."""
    log = logging.getLogger("gpuhunt")
    level, waits = log.level, socket.getdefaulttimeout()
    log.setLevel(logging.CRITICAL + 1)
    socket.setdefaulttimeout(TIMEOUT_S)
    try:
        yield
    finally:
        log.setLevel(level)
        socket.setdefaulttimeout(waits)


def _through_library(library: Any, wanted: list[Source], today: date, found: Fetched) -> None:
    catalogue = library.Catalog(balance_resources=False, auto_reload=False)
    with _quiet():
        try:
            catalogue.load()
        except Exception as error:  # a library's errors are its own
            told = _why(error.__cause__ or error)
            found.failed |= {source.id: told for source in wanted}
            return
        for source in wanted:
            loaded = catalogue.catalog.get(source.place)
            if loaded is None:
                found.failed[source.id] = "gpuhunt could not load it"
                continue
            day = day_of(str(loaded.version), today)
            found.read.append(source.id)
            found.rows += [
                _row(item, place, source, str(loaded.version), day)
                for place, item in enumerate(loaded.items, start=2)
                if "runpod-cluster" not in item.flags
            ]


def _row(item: Any, line: int, source: Source, version: str, day: date) -> PriceRow:
    name = f"{source.place}.csv, version {version}"
    return PriceRow(
        file=name,
        line=line,
        provider=source.provider,
        name=item.instance_name,
        place=item.location,
        spot=bool(item.spot),
        price=str(item.price),
        source=f"gpuhunt catalogue {name}",
        as_of=day,
        form="gpuhunt",
        gpu_name=item.gpu_name or "",
        gpus=float(item.gpu_count),
        gpu_memory_gb=item.gpu_memory,
        vcpu=float(item.cpu),
    )
