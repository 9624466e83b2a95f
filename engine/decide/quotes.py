"""The user's own quotes: read from a form or a file, and as offers that rank beside the others.

A quote is stored as `hardware:terms:USD` per GPU (or server) and hour. What is typed in another
currency is converted once, at the rate that the user gives with it.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from functools import lru_cache
from statistics import median

from engine.assessment import ACQUISITION_LABELS
from engine.catalogue import Catalogue, Offer, Provenance
from engine.errors import ImportFileError, InputError
from engine.wording import money
from engine.workload.workload import Workload

PROVIDER = "Your quote"
TERMS = ("on_demand", "spot", "dedicated", "reserved_1y", "reserved_3y")
LIMIT_BYTES = 100_000
# The largest price that a quote of the link has room for.
MOST_USD = 999_999.0
NEAR = 4  # names that are offered for one that is not known
NEEDED = ("hardware", "terms", "price")
OPTIONAL = ("currency", "per_usd", "gpus", "per")
EXAMPLE = (
    ",".join((*NEEDED, *OPTIONAL))
    + "\nh100-sxm-80gb,reserved_1y,2.10,USD,,1,hour"
    + "\nh200-sxm-141gb,dedicated,21500,EUR,0.92,8,month"
    + "\ncpu-96-384,on_demand,3.10,GBP,0.78,,hour\n"
)


def with_quotes(
    catalogue: Catalogue, workload: Workload, today: date
) -> tuple[Catalogue, tuple[str, ...]]:
    """The catalogue with the workload's quotes, and what could not be used of them, in words."""
    if not workload.quotes:
        return catalogue, ()
    return _with_quotes(_Same(catalogue), workload.quotes, today)


class _Same:
    """A catalogue as a cache key: the same object, not an equal one."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def __hash__(self) -> int:
        return id(self.catalogue)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.catalogue is self.catalogue


@lru_cache(maxsize=64)
def _with_quotes(
    key: _Same, quotes: tuple[str, ...], today: date
) -> tuple[Catalogue, tuple[str, ...]]:
    found = (_offer(key.catalogue, quote, today) for quote in quotes)
    offers = [offer for of_one in found if of_one is not None for offer in of_one]
    return key.catalogue.with_quotes(offers), left_out(key.catalogue, quotes)


def left_out(catalogue: Catalogue, quotes: tuple[str, ...]) -> tuple[str, ...]:
    """What does not rank of the quotes, in words: why, and the names that come near."""
    found = []
    for quote in quotes:
        name, terms, usd = quote.rsplit(":", 2)
        if name in catalogue.accelerators or _server(name):
            continue
        if name.startswith("cpu-"):
            why = "a server is named cpu-<vCPU>-<GB>, for example cpu-96-384"
        else:
            why = "the catalogue has no hardware of that name. " + _near(catalogue, name)
        asked = f"{name}, {ACQUISITION_LABELS[terms]} at {money(float(usd))} an hour"
        found.append(f"Your quote for {asked}, is left out of the ranking: {why}.")
    return tuple(found)


def _near(catalogue: Catalogue, name: str) -> str:
    """The names most like this one; where there is none, those that have a price."""
    known = list(catalogue.accelerators)
    parts = [part for part in name.split("-") if any(c.isdigit() for c in part)]
    like = [sku for sku in known if name in sku]
    like += [sku for sku in known if any(part in sku.split("-") for part in parts)]
    like = list(dict.fromkeys((*like, *get_close_matches(name, known, NEAR))))
    if like:
        return "Near it: " + ", ".join(like[:NEAR])
    priced = [sku for sku in known if catalogue.offers_for(sku)]
    return f"Known with a price: {', '.join(priced)}; cpu-<vCPU>-<GB> for a server"


def _server(name: str) -> bool:
    """Whether a quote's hardware is a CPU server of a size."""
    parts = name.split("-")
    return (
        parts[0] == "cpu"
        and len(parts) == 3
        and all(p.isascii() and p.isdigit() and int(p) > 0 for p in parts[1:])
    )


def _offer(catalogue: Catalogue, quote: str, today: date) -> list[Offer] | None:
    """The offers that a quote stands for: one GPU and a whole machine of them, or one server."""
    name, terms, usd = quote.rsplit(":", 2)
    price = float(usd)
    seen = Provenance(source="your quote", as_of=today, confidence="medium")
    if name.startswith("cpu-"):
        if not _server(name):
            return None
        parts = name.split("-")[1:]
        return [
            Offer.model_validate(
                {
                    "provider": PROVIDER, "sku": name, "vcpu": int(parts[0]),
                    "memory_gb": int(parts[1]), "acquisition": terms,
                    "usd_per_instance_hour": price, "kind": "quote", "provenance": seen,
                }
            )
        ]  # fmt: skip
    accelerator = catalogue.accelerators.get(name)
    if accelerator is None:
        return None
    return [
        Offer.model_validate(
            {
                "provider": PROVIDER, "sku": f"{n} × {accelerator.name}", "accelerator_sku": name,
                "gpus_per_instance": n, "acquisition": terms, "usd_per_instance_hour": price * n,
                "usd_per_gpu_hour": price, "kind": "quote", "provenance": seen,
            }
        )
        for n in sorted({1, max(accelerator.max_per_node, 1)})
    ]  # fmt: skip


# --- from a form or a file


@dataclass(frozen=True, slots=True)
class QuoteFile:
    """The quotes of a file, and why each of its other rows is none."""

    quotes: tuple[str, ...]
    refused: tuple[str, ...]


def quote_of(
    hardware: str,
    terms: str,
    price: float,
    *,
    currency: str = "USD",
    per_usd: float = 1.0,
    gpus: int = 1,
    hours: float = 1.0,
) -> str:
    """A quote as the workload stores it: US dollars for one GPU (or server) and hour.

    Parameters
    ----------
    price : what is asked for `gpus` GPUs (or one server) over `hours` hours, in `currency`
    per_usd : units of the currency for one US dollar; 1 for the dollar itself

    Raises
    ------
    InputError : a value that is no price, rate, number of GPUs or term, by the name of its field
    """
    if terms not in TERMS:
        raise InputError(f"{terms[:40]!r}", where="terms", right="one of " + ", ".join(TERMS))
    if not math.isfinite(price) or price <= 0:
        raise InputError(f"{price:g} is no offer", where="price", right="a number above 0")
    if not re.fullmatch(r"[A-Z]{3}", currency):
        raise InputError(f"{currency[:10]!r}", where="currency", right="a code like EUR")
    if not math.isfinite(per_usd) or per_usd <= 0:
        raise InputError(
            f"{per_usd:g}", where="per_usd", right=f"{currency} for one US dollar, above 0"
        )
    if currency == "USD" and per_usd != 1:
        raise InputError(
            f"{per_usd:g} for a US dollar", where="per_usd", right="1, or another currency"
        )
    if gpus < 1:
        raise InputError(f"{gpus}", where="gpus", right="the GPUs that the price is for, 1 or more")
    usd = price / per_usd / gpus / hours
    text = f"{usd:.6f}".rstrip("0").rstrip(".")
    if not float(text) or usd > MOST_USD:
        raise InputError(
            f"{usd:g} US dollars for one and an hour",
            where="price",
            right=f"between 0.000001 and {MOST_USD:,.0f}",
        )
    return f"{hardware}:{terms}:{text}"


def read_quotes(raw: bytes, name: str, catalogue: Catalogue) -> QuoteFile:
    """The quotes of a CSV file: hardware, terms, price; currency, per_usd, gpus, per.

    Commas part the columns, or semicolons; with these a price may have a decimal comma. `per` is
    hour or month. A row that can't be used is refused with its line, the others count.

    Raises
    ------
    ImportFileError : not a table, or a column that is needed is missing
    """
    right = "a CSV with the columns " + ", ".join(NEEDED) + "; if you like, " + ", ".join(OPTIONAL)
    if len(raw) > LIMIT_BYTES:
        raise ImportFileError("it is larger than a list of quotes", where=name, right=right)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ImportFileError("it is not UTF-8 text", where=name, right=right) from None
    semicolons = ";" in text.split("\n", 1)[0]
    quotes: list[str] = []
    refused: list[str] = []
    try:
        reader = csv.DictReader(
            io.StringIO(text, newline=""), delimiter=";" if semicolons else ",", strict=True
        )
        header = [str(column).strip().lower() for column in reader.fieldnames or ()]
        missing = [column for column in NEEDED if column not in header]
        if missing:
            raise ImportFileError(f"it has no {', '.join(missing)}", where=name, right=right)
        reader.fieldnames = header
        for cells in reader:
            flat = {k: (v or "").strip() for k, v in cells.items() if isinstance(k, str)}
            try:
                quotes.append(_row(flat, catalogue, semicolons))
            except InputError as error:
                refused.append(f"Line {reader.line_num}: {error}")
    except csv.Error as error:
        raise ImportFileError(f"it is not a table: {error}", where=name, right=right) from None
    if not quotes and not refused:
        raise ImportFileError("it has no rows", where=name, right=right)
    return QuoteFile(tuple(dict.fromkeys(quotes)), tuple(refused))


def _row(cells: Mapping[str, str], catalogue: Catalogue, comma: bool) -> str:
    """One row of a file as a quote."""
    per = cells.get("per", "").lower() or "hour"
    if per not in ("hour", "month"):
        raise InputError(f"{per[:20]!r}", where="per", right="hour or month")
    currency = cells.get("currency", "").upper() or "USD"
    rate = cells.get("per_usd", "")
    if currency != "USD" and not rate:
        raise InputError(
            "is empty", where="per_usd", right=f"{currency} for one US dollar, as you know it"
        )
    gpus = _number(cells, "gpus", False) if cells.get("gpus") else 1.0
    if gpus != int(gpus):
        raise InputError(f"{gpus:g}", where="gpus", right="a whole number")
    hardware = hardware_of(cells["hardware"], catalogue)
    if hardware.startswith("cpu-") and gpus != 1:
        raise InputError(f"{gpus:g} for a CPU server", where="gpus", right="empty: one server")
    return quote_of(
        hardware,
        _terms(cells["terms"]),
        _number(cells, "price", comma),
        currency=currency,
        per_usd=_number(cells, "per_usd", comma) if rate else 1.0,
        gpus=int(gpus),
        hours=1.0 if per == "hour" else catalogue.parameters["hours_per_month"].likely,
    )


def hardware_of(text: str, catalogue: Catalogue) -> str:
    """The id of hardware given by its id or its full name; never the likeliest one.

    Raises
    ------
    InputError : no such hardware
    """
    key = text.strip().lower()
    if key in catalogue.accelerators or re.fullmatch(r"cpu-[1-9]\d{0,5}-[1-9]\d{0,6}", key):
        return key
    named = [sku for sku, a in catalogue.accelerators.items() if a.name.lower() == key]
    if len(named) == 1:
        return named[0]
    raise InputError(
        f"{text[:40]!r} is not in the catalogue" if text else "is empty",
        where="hardware",
        right="an id like h100-sxm-80gb, or cpu-<vCPU>-<GB> for a server",
    )


def _terms(text: str) -> str:
    """Terms by their id or by their words on the page."""
    key = text.strip().lower()
    return next((t for t in TERMS if key in (t, ACQUISITION_LABELS[t], t.replace("_", " "))), text)


def _number(cells: Mapping[str, str], column: str, comma: bool) -> float:
    """A number of a file; neither thousands' marks nor signs of a currency are taken for one."""
    text = cells[column]
    if comma and re.fullmatch(r"\d+,\d+", text):
        text = text.replace(",", ".")
    if not re.fullmatch(r"-?\d+(\.\d+)?", text):
        wrong = f"{cells[column][:20]!r} is no plain number" if text else "is empty"
        raise InputError(wrong, where=column, right="a number like 2.10")
    return float(text)


def room(quotes: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    """The quotes with more of them, each once.

    Raises
    ------
    InputError : more than a link carries
    """
    both = tuple(dict.fromkeys((*quotes, *more)))
    most = Workload.model_fields["quotes"].metadata[0].max_length
    if len(both) > most:
        raise InputError(
            f"{len(both)} quotes are too many",
            where="quotes",
            right=f"{most} fit into the link; keep those that you would sign",
        )
    return both


def doubts(catalogue: Catalogue, quotes: tuple[str, ...]) -> tuple[str, ...]:
    """Quotes of GPUs that are far from all prices of the catalogue, in words; they count still."""
    limits = catalogue.parameters
    high, low = (limits[f"price_{x}outlier_factor"].likely for x in ("", "low_"))
    found = []
    for quote in quotes:
        hardware, terms, text = quote.rsplit(":", 2)
        usd = [o.usd_per_gpu_hour for o in catalogue.offers_for(hardware) if o.usd_per_gpu_hour]
        if not usd:
            continue
        middle = median(usd)
        if not middle / low <= float(text) <= middle * high:
            found.append(
                f"{catalogue.accelerators[hardware].name}, {ACQUISITION_LABELS[terms]}, at "
                f"${float(text):g} an hour: half of the catalogue's prices are above "
                f"{money(middle)}. Is it for one GPU and one hour?"
            )
    return tuple(found)
