"""Reading published price files into rows: which form a file has is told by its header.

Nothing is judged here but whether a cell is a number; what the rows mean is `plan`'s question.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from engine.catalogue.update.names import Format, Source, sources
from engine.errors import ImportFileError

LIMIT_BYTES = 200_000_000
KNOWN = (
    "a catalogue of gpuhunt (CSV or its zip), a vms.csv of the SkyPilot catalogue, "
    "or a table with the columns of data/offers.csv"
)
# The columns by which a form is known, all of them needed.
HEADERS: dict[Format, frozenset[str]] = {
    "gpuhunt": frozenset(
        {"instance_name", "location", "price", "gpu_count", "gpu_name", "gpu_memory", "spot"}
    ),
    "skypilot": frozenset(
        {"InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region"}
    ),
    "table": frozenset(
        {"provider", "sku", "gpus_per_instance", "region", "acquisition", "usd_per_instance_hour"}
    ),
}
CURRENCIES = ("currency", "Currency", "currencyCode", "BillingCurrency")


@dataclass(frozen=True, slots=True)
class PriceRow:
    """One price as published: of a whole machine and hour, in the words of its file."""

    file: str
    line: int
    provider: str
    name: str
    place: str
    spot: bool
    price: str
    source: str
    as_of: date
    form: Format
    currency: str = "USD"
    gpu_name: str = ""
    gpus: float = 0.0
    gpu_memory_gb: float | None = None
    vcpu: float | None = None
    # Whether the day is that of the prices, or only that of a file which says none.
    dated: bool = True
    # Only a table in our own form says these.
    acquisition: str = ""
    min_commit: str = ""
    usd_per_gpu: str = ""
    kind: str = ""
    confidence: str = ""


def read_file(path: Path, as_of: date, provider: str = "") -> list[PriceRow]:
    """All prices of a downloaded file, dated `as_of` unless its rows say otherwise.

    Raises
    ------
    ImportFileError : no such file, not a form that is known, or whose prices it holds is not said
    """
    try:
        size = path.stat().st_size
        raw = path.read_bytes() if path.is_file() and size <= LIMIT_BYTES else None
    except OSError as error:
        raise ImportFileError(
            error.strerror or "it can't be read", where=path.name, right="a file that is there"
        ) from None
    if raw is None:
        raise ImportFileError("it is no file of usual size", where=path.name, right=KNOWN)
    return list(read_bytes(raw, path.name, as_of, provider, path.resolve().parent.name))


def read_bytes(
    raw: bytes, name: str, as_of: date, provider: str = "", parent: str = ""
) -> Iterator[PriceRow]:
    """The prices of a file's content; a zip is read member by member."""
    if not raw.startswith(b"PK\x03\x04"):
        yield from _read_text(raw, name, as_of, provider, parent)
        return
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as packed:
            members = [m for m in packed.infolist() if m.filename.endswith(".csv")]
            if not members or sum(m.file_size for m in members) > LIMIT_BYTES:
                raise ImportFileError("the zip has no CSV of usual size", where=name, right=KNOWN)
            for member in members:
                inner = Path(member.filename).name
                # Not later than the day on which it was packed; 1980 stands for no day.
                packed_on = date(*member.date_time[:3])
                day = min(as_of, packed_on) if packed_on.year > 1980 else as_of
                yield from _read_text(packed.read(member), inner, day, provider, parent)
    # What zipfile raises: no zip, a compression that it lacks, a password, a broken member.
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError):
        raise ImportFileError("the zip can't be opened", where=name, right=KNOWN) from None


def _read_text(
    raw: bytes, name: str, as_of: date, provider: str, parent: str
) -> Iterator[PriceRow]:
    try:
        reader = csv.DictReader(io.StringIO(raw.decode("utf-8-sig"), newline=""))
        header = frozenset(reader.fieldnames or ())
        form = next((f for f, needed in HEADERS.items() if needed <= header), None)
        if form is None:
            raise ImportFileError("its columns are not known", where=name, right=KNOWN)
        origin = _origin(form, name, provider, parent)
        for cells in reader:
            flat = {k: (v or "").strip() for k, v in cells.items() if k is not None}
            yield from READERS[form](flat, reader.line_num, name, as_of, origin)
    except UnicodeDecodeError:
        raise ImportFileError("it is not UTF-8 text", where=name, right=KNOWN) from None
    except csv.Error as error:
        raise ImportFileError(f"it is not a table: {error}", where=name, right=KNOWN) from None


def _origin(form: Format, name: str, provider: str, parent: str) -> Source | None:
    """Whose prices a file holds: as said, or by the name of the file or of its folder.

    None leaves it to the machines' names, see `plan.whose`.
    """
    ours = [source for source in sources() if source.format == form]
    if provider:
        found = next((s for s in ours if provider.lower() in (s.provider.lower(), s.place)), None)
        if found is None and form != "table":
            raise ImportFileError(
                f"no {form} file of {provider!r} is known",
                where="--provider",
                right=", ".join(dict.fromkeys(s.provider for s in ours)),
            )
        return found
    stem = re.split(r"[^a-z]", name.lower())[0]
    return next((s for s in ours if s.place in (stem, parent.lower())), None)


def _gpuhunt(
    cells: Mapping[str, str], line: int, file: str, as_of: date, origin: Source | None
) -> Iterator[PriceRow]:
    if "runpod-cluster" in cells.get("flags", ""):
        return  # a price that holds only for several machines at once
    yield PriceRow(
        file=file,
        line=line,
        provider=origin.provider if origin else "",
        name=cells["instance_name"],
        place=cells["location"],
        spot=cells["spot"].lower() == "true",
        price=cells["price"],
        source=f"gpuhunt catalogue {file}",
        as_of=as_of,
        form="gpuhunt",
        currency=_currency(cells),
        gpu_name=cells["gpu_name"],
        gpus=_number(cells["gpu_count"]) or 0.0,
        gpu_memory_gb=_number(cells["gpu_memory"]),
        vcpu=_number(cells.get("cpu", "")),
    )


def _skypilot(
    cells: Mapping[str, str], line: int, file: str, as_of: date, origin: Source | None
) -> Iterator[PriceRow]:
    for column, spot in (("Price", False), ("SpotPrice", True)):
        # No spot price is no offer; no price on demand is one that is missing.
        if spot and not cells.get(column):
            continue
        yield PriceRow(
            file=file,
            line=line,
            provider=origin.provider if origin else "",
            name=cells["InstanceType"],
            place=cells["Region"],
            spot=spot,
            price=cells[column],
            source=f"SkyPilot catalogue {file}",
            as_of=as_of,
            form="skypilot",
            currency=_currency(cells),
            gpu_name=cells["AcceleratorName"],
            gpus=_number(cells["AcceleratorCount"]) or 0.0,
            vcpu=_number(cells.get("vCPUs", "")),
        )


def _table(
    cells: Mapping[str, str], line: int, file: str, as_of: date, origin: Source | None
) -> Iterator[PriceRow]:
    try:
        day = date.fromisoformat(cells["as_of"]) if cells.get("as_of") else as_of
    except ValueError:
        day = date.max  # refused as a day to come, with its row
    yield PriceRow(
        file=file,
        line=line,
        provider=cells["provider"],
        name=cells["sku"],
        place=cells["region"],
        spot=cells["acquisition"] == "spot",
        price=cells["usd_per_instance_hour"],
        source=cells.get("source") or file,
        as_of=day,
        form="table",
        currency=_currency(cells),
        gpu_name=cells.get("accelerator_sku", ""),
        gpus=_number(cells["gpus_per_instance"]) or 0.0,
        vcpu=_number(cells.get("vcpu", "")),
        acquisition=cells["acquisition"],
        min_commit=cells.get("min_commit") or "none",
        usd_per_gpu=cells.get("usd_per_gpu_hour", ""),
        kind=cells.get("kind", ""),
        confidence=cells.get("confidence", ""),
    )


READERS: dict[
    Format, Callable[[Mapping[str, str], int, str, date, Source | None], Iterator[PriceRow]]
] = {"gpuhunt": _gpuhunt, "skypilot": _skypilot, "table": _table}


def _currency(cells: Mapping[str, str]) -> str:
    return next((cells[c] for c in CURRENCIES if cells.get(c)), "USD").upper()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
