"""Which published prices take the place of the present ones, and which are refused, each with why.

A row counts only for an offer that the catalogue has: same provider, machine, place and terms,
with the same GPUs. Nothing is estimated, converted or divided on the way.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from statistics import median
from typing import cast, get_args

from engine.catalogue.models import Accelerator, Confidence, Offer, Provenance
from engine.catalogue.offer_checks import MEMORY_ROUNDING, SAME_PRICE, Key, offer_key
from engine.catalogue.update.formats import PriceRow
from engine.catalogue.update.names import gpu_names, instance_names
from engine.catalogue.update.store import REFRESHED, refreshable
from engine.errors import DataError, ImportFileError
from engine.wording import number

# Faults of a list of offers, each with the line (place in the list) that it is about.
Check = Callable[[Sequence[tuple[int, Offer]]], Iterable[DataError]]
MARKETS = ("spot", "marketplace")
CONFIDENCES = get_args(Confidence)


@dataclass(frozen=True, slots=True)
class Move:
    """A price that moved by more than the limit."""

    old: Offer
    new: Offer

    @property
    def factor(self) -> float:
        """New price over old."""
        return self.new.usd_per_instance_hour / self.old.usd_per_instance_hour

    def __str__(self) -> str:
        up = self.factor >= 1
        times = self.factor if up else 1 / self.factor
        return (
            f"{told(self.old)}: {self.old.usd_per_instance_hour:g} to "
            f"{self.new.usd_per_instance_hour:g} USD an hour, {number(times)} times "
            f"{'dearer' if up else 'cheaper'}; source: {self.new.provenance.source}"
        )


@dataclass(slots=True)
class Plan:
    """What a refresh would do: offers to write, and everything that is left out."""

    accepted: list[Offer] = field(default_factory=list)
    moved: int = 0
    moves: list[Move] = field(default_factory=list)
    accepted_moves: list[Move] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    older: int = 0
    elsewhere: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    unknown_gpus: Counter[str] = field(default_factory=Counter)


def told(offer: Offer) -> str:
    """An offer in words: provider, machine, place, terms."""
    terms = offer.acquisition.replace("_", " ")
    return f"{offer.provider} {offer.sku}, {offer.region}, {terms}"


def exceeds(old_usd: float, new_usd: float, factor: float) -> bool:
    """Whether a price moved, up or down, by more than a factor."""
    return max(new_usd / old_usd, old_usd / new_usd) > factor * (1 + 1e-9)


def plan(
    rows: Sequence[PriceRow],
    present: Sequence[Offer],
    accelerators: dict[str, Accelerator],
    *,
    today: date,
    factor: float,
    accept_moves: bool = False,
    check: Check = lambda offers: (),
) -> Plan:
    """Judge published prices against the present ones.

    Parameters
    ----------
    rows : published prices; of two files for one offer the newer counts, then the first
    present : offers in use
    accelerators : hardware by sku, for the memory that a row states
    factor : a move by more is refused unless `accept_moves`
    check : faults of all offers together, by the lines that it is given
    """
    found = Plan()
    index = _Index(present)
    seen: dict[Key, dict[tuple[date, str], list[tuple[float, PriceRow]]]] = {}
    for row in whose(rows, index):
        offer = index.offer(row, found)
        if offer is None:
            continue
        wrong = _wrong(row, offer, accelerators, today)
        if wrong:
            _refuse(found, f"{row.file} line {row.line}: {told(offer)}: {wrong}")
            continue
        days = seen.setdefault(offer_key(offer), {})
        days.setdefault((row.as_of, row.source), []).append((float(row.price), row))
    fresh: dict[Key, Offer] = {}
    for key, by_source in seen.items():
        old = index.by_key[key]
        # max() keeps the first of equals: the preferred source.
        as_of, source = max(by_source, key=lambda pair: pair[0])
        if as_of < old.provenance.as_of:
            found.older += 1
            continue
        new = _offer(old, by_source[(as_of, source)], found)
        if new is None:
            continue
        if exceeds(old.usd_per_instance_hour, new.usd_per_instance_hour, factor):
            move = Move(old, new)
            if not accept_moves:
                found.moves.append(move)
                continue
            found.accepted_moves.append(move)
        fresh[key] = new
    _drop_faulty(fresh, present, check, found)
    found.accepted = list(fresh.values())
    found.accepted_moves = [m for m in found.accepted_moves if offer_key(m.new) in fresh]
    found.moved = sum(
        exceeds(index.by_key[key].usd_per_instance_hour, o.usd_per_instance_hour, 1 + SAME_PRICE)
        for key, o in fresh.items()
    )
    return found


def whose(rows: Sequence[PriceRow], index: _Index) -> list[PriceRow]:
    """Rows with their provider; where the file names none, its machines must be one provider's.

    Raises
    ------
    ImportFileError : the machines belong to nobody or to several
    """
    nameless = {row.file for row in rows if not row.provider}
    owners: dict[str, str] = {}
    for file in nameless:
        found = {p for row in rows if row.file == file for p in index.owners.get(row.name, ())}
        if len(found) != 1:
            raise ImportFileError(
                "whose prices these are can't be told from its name or its machines",
                where=file,
                right="say it: --provider AWS, or name the file after it, like aws.csv",
            )
        owners[file] = found.pop()
    return [r if r.provider else replace(r, provider=owners[r.file]) for r in rows]


class _Index:
    """The offers that can be refreshed, by what published files say of them."""

    def __init__(self, present: Iterable[Offer]) -> None:
        self.by_key = {offer_key(o): o for o in present if refreshable(o)}
        self.machines: dict[tuple[str, str], list[Offer]] = {}
        self.owners: dict[str, set[str]] = {}
        for offer in self.by_key.values():
            self.machines.setdefault((offer.provider, offer.sku), []).append(offer)
            self.owners.setdefault(offer.sku, set()).add(offer.provider)
        for provider, name in instance_names():
            self.owners.setdefault(name, set()).add(provider)

    def offer(self, row: PriceRow, found: Plan) -> Offer | None:
        """The offer that a row is about; None is counted as unknown or as elsewhere."""
        other_names = instance_names().get((row.provider, row.name), ())
        machines = self.machines.get((row.provider, row.name), [])
        if not other_names and not machines:
            found.unknown[f"{row.provider} {row.name or '(no name)'}"] += 1
            if row.gpu_name and row.form != "table" and row.gpu_name not in gpu_names():
                found.unknown_gpus[row.gpu_name] += 1
            return None
        for name in other_names:
            if name.covers(row.gpus, row.place, row.spot):
                for offer in self.machines.get((name.provider, name.sku), ()):
                    if (offer.region, offer.acquisition) == (name.region, name.acquisition):
                        return offer
        for offer in machines:
            if _same_terms(offer, row) and _within(row.place, offer.region):
                return offer
        found.elsewhere[f"{row.provider} {row.name}"] += 1
        return None


def _same_terms(offer: Offer, row: PriceRow) -> bool:
    if row.acquisition:
        same = (row.acquisition, row.min_commit, row.gpus)
        return same == (offer.acquisition, offer.min_commit, offer.gpus_per_instance)
    return offer.acquisition == ("spot" if row.spot else "on_demand") and (
        offer.min_commit == "none"
    )


def _within(place: str, region: str) -> bool:
    """Whether a place is the region or one of its lettered zones (us-east1 holds us-east1-b)."""
    return place == region or bool(re.fullmatch(rf"{re.escape(region)}-?[a-f]", place))


def _wrong(row: PriceRow, offer: Offer, accelerators: dict[str, Accelerator], today: date) -> str:
    """Why a row can't be the price of the offer; empty if it can."""
    try:
        usd = float(row.price)
    except ValueError:
        return f"the price is {row.price[:20]!r}" if row.price else "the price is missing"
    if not math.isfinite(usd) or usd <= 0:
        return f"the price is {row.price}; a price is a number above 0"
    if row.currency != "USD":
        return f"the price is in {row.currency}; only US dollars are taken over, unconverted"
    if row.form == "table":
        if row.kind not in REFRESHED:
            return f"its kind is {row.kind or 'empty'}; prices that rank are list or observed"
        if row.confidence not in CONFIDENCES:
            return f"its confidence is {row.confidence or 'empty'}, not high, medium or low"
    if row.as_of > today:
        return "its day is missing, no date, or lies in the future"
    of_size = None in (row.vcpu, offer.vcpu) or row.vcpu == offer.vcpu
    if not of_size and not offer.gpus_per_instance:
        return f"the row has {row.vcpu:g} vCPU, the machine {offer.vcpu:g}"
    return _wrong_gpus(row, offer, accelerators)


def _wrong_gpus(row: PriceRow, offer: Offer, accelerators: dict[str, Accelerator]) -> str:
    if row.form == "skypilot" and row.provider == "GCP" and offer.gpus_per_instance:
        return "this catalogue splits the price of the machine from that of its GPUs"
    if offer.gpus_per_instance and not row.gpu_name:
        return "the row names no GPU: it may be the price of the host alone"
    if row.gpus != offer.gpus_per_instance:
        return f"the row has {row.gpus:g} GPUs, the machine {offer.gpus_per_instance}"
    sku = offer.accelerator_sku
    if sku is None:
        return f"the row names a GPU, {row.gpu_name}" if row.gpu_name else ""
    meant = {row.gpu_name} if row.form == "table" else gpu_names().get(row.gpu_name, frozenset())
    if sku not in meant:
        return f"the row has {row.gpu_name!r}, the machine {sku}"
    card = accelerators.get(sku)
    stated = row.gpu_memory_gb
    if card and stated and not abs(stated / card.memory_gb - 1) <= MEMORY_ROUNDING:
        return f"the row has GPUs of {stated:g} GB, the machine of {card.memory_gb:g}"
    if row.usd_per_gpu:
        try:
            whole = float(row.usd_per_gpu) * row.gpus
        except ValueError:
            return f"the price per GPU is {row.usd_per_gpu[:20]!r}"
        if not abs(whole / float(row.price) - 1) <= 0.01:
            return f"{row.gpus:g} GPUs at {row.usd_per_gpu} are {whole:g}, not {row.price}"
    return ""


def _offer(old: Offer, prices: list[tuple[float, PriceRow]], found: Plan) -> Offer | None:
    """The present offer at its new price; None when the file has several and none is the price."""
    usd = [price for price, _ in prices]
    low, high, row = min(usd), max(usd), prices[0][1]
    notes = f"the machine was {old.usd_per_instance_hour:g} on {old.provenance.as_of}"
    if high / low > 1 + SAME_PRICE:
        if old.acquisition not in MARKETS:
            _refuse(
                found,
                f"{row.file} line {row.line}: {told(old)}: "
                f"several prices, {low:g} to {high:g}, and no word which holds",
            )
            return None
        notes += f"; now {low:g}-{high:g} over {len(usd)} places, median given"
    if not row.dated:
        notes += "; the day is that of the file, which says none"
    sure = "high" if row.dated and old.acquisition not in MARKETS else "medium"
    price = median(usd)
    gpus = old.gpus_per_instance
    # One figure is the other times the GPUs: rounding each by itself could part them.
    per_gpu = round(price / gpus, 6) if gpus else None
    return old.model_copy(
        update={
            "usd_per_instance_hour": round(price, 6),
            "usd_per_gpu_hour": per_gpu,
            "kind": row.kind or ("observed" if old.acquisition in MARKETS else "list"),
            "notes": notes,
            "provenance": Provenance(
                source=row.source,
                as_of=row.as_of,
                confidence=cast(Confidence, row.confidence or sure),
            ),
        }
    )


def _drop_faulty(
    fresh: dict[Key, Offer], present: Sequence[Offer], check: Check, found: Plan
) -> None:
    """Take back what the checks of the catalogue refuse, until the whole has no fault.

    A fault that shows on a price which stays is laid on the new prices without which it is gone.
    """

    def merged() -> list[Offer]:
        return [fresh.get(offer_key(o), o) if refreshable(o) else o for o in present]

    def faults_of(offers: Sequence[Offer]) -> list[DataError]:
        return list(check(list(enumerate(offers))))

    while fresh:
        offers = merged()
        faults = faults_of(offers)
        if not faults:
            return
        culprits: dict[Key, str] = {}
        for fault in faults:
            at = offers[fault.line]
            if refreshable(at) and offer_key(at) in fresh:
                culprits[offer_key(at)] = f"{fault.wrong} ({fault.right})"
        if not culprits:
            at, fault = offers[faults[0].line], faults[0]
            why = f"beside {told(at)}, which stays: {fault.wrong} ({fault.right})"
            culprits = dict.fromkeys(_to_blame(fresh, at, fault, merged, faults_of), why)
        for key, why in culprits.items():
            offer = fresh.pop(key)
            usd = f"{offer.usd_per_instance_hour:g} USD an hour"
            _refuse(found, f"{offer.provenance.source}: {told(offer)}, {usd}: {why}")


def _to_blame(
    fresh: dict[Key, Offer],
    at: Offer,
    fault: DataError,
    merged: Callable[[], list[Offer]],
    faults_of: Callable[[Sequence[Offer]], list[DataError]],
) -> list[Key]:
    """The new prices without any one of which a fault is gone; the nearest ones if no one does."""
    near = _nearest(fresh, at)
    alone = []
    for key in near:
        offer = fresh.pop(key)
        if all(f.line != fault.line or f.wrong != fault.wrong for f in faults_of(merged())):
            alone.append(key)
        fresh[key] = offer
    return alone or near


def _nearest(fresh: dict[Key, Offer], at: Offer) -> list[Key]:
    """The new prices nearest to one that stays: its machine's, its GPU's there, then anywhere."""
    circles: tuple[Callable[[Offer], bool], ...] = (
        lambda o: (o.provider, o.sku) == (at.provider, at.sku),
        lambda o: (o.provider, o.accelerator_sku) == (at.provider, at.accelerator_sku),
        lambda o: o.accelerator_sku == at.accelerator_sku,
    )
    for inside in circles:
        keys = [key for key, o in fresh.items() if inside(o)]
        if keys:
            return keys
    return list(fresh)


def _refuse(found: Plan, why: str) -> None:
    if why not in found.refused:
        found.refused.append(why)
