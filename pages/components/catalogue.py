"""What the pages of prices and evidence select from the catalogue. No page reads it otherwise."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

import streamlit as st

from engine.assessment import ACQUISITION_LABELS
from engine.catalogue import Claim, Offer, load_catalogue, shipped_catalogue
from pages.components.labels import article, count, day

ALL = "all"
CPU = "cpu"
PER_PAGE = 25
KINDS = {
    "list": "list price",
    "observed": "observed",
    "aggregator": "index of offers",
    "analyst": "an analyst's figure",
    "derived": "derived from a list price",
    "seed": "quoted by an article",
    "from": "advertised “from”",
    "superseded": "outdated",
    "quote": "your quote",
}
T = TypeVar("T")


def in_use() -> tuple[str, str]:
    """Which table of prices counts, in words; and why a refreshed one does not, if it is broken."""
    found = load_catalogue()
    newest = max(offer.provenance.as_of for offer in found.offers if offer.rankable)
    update = found.update
    if update.fault:
        return f"The shipped table, offers.csv; its newest price is of {day(newest)}.", (
            f"The refreshed table is not in use. {update.fault}"
        )
    if update.file and update.day:
        refreshed = count(update.rows, "price")
        return (
            f"{update.file} of {day(update.day)}: {refreshed} refreshed, the others from the "
            "shipped table, each with its own date below."
        ), ""
    return (
        f"The shipped table, offers.csv; its newest price is of {day(newest)}. "
        "To refresh: python -m engine update-prices."
    ), ""


def hardware() -> dict[str, str]:
    """Names of the hardware that has a price, by its key; the most offered first."""
    found = load_catalogue()
    offered = Counter(offer.accelerator_sku for offer in found.offers)
    names = {sku: a.name for sku, a in found.accelerators.items() if sku in offered}
    return dict(sorted(names.items(), key=lambda pair: -offered[pair[0]])) | {CPU: "CPU servers"}


def _of(sku: str) -> list[Offer]:
    wanted = None if sku == CPU else sku
    return [offer for offer in load_catalogue().offers if offer.accelerator_sku == wanted]


def terms(sku: str) -> list[str]:
    """The terms on which the hardware is offered."""
    return list(dict.fromkeys(offer.acquisition for offer in _of(sku)))


def terms_label(name: str) -> str:
    """Terms in words."""
    return "All terms" if name == ALL else ACQUISITION_LABELS.get(name, name.replace("_", " "))


def usd_per_unit(offer: Offer) -> float:
    """Price of one GPU and hour where the offer has GPUs, else of the server and hour."""
    return offer.usd_per_gpu_hour or offer.usd_per_instance_hour


def source(offer: Offer) -> str:
    """Where a price was read; an article by its title."""
    found = re.match(r"seed (\d{3})", offer.provenance.source)
    return f"“{article(found.group(1))}”" if found else offer.provenance.source


def refreshed(offer: Offer) -> bool:
    """Whether the price is from the refreshed table."""
    # A shipped row that stays is the very same object: comparing cells takes 50 ms a page.
    return bool(load_catalogue().update.rows) and id(offer) not in _shipped_ids()


@cache
def _shipped_ids() -> frozenset[int]:
    return frozenset(id(offer) for offer in shipped_catalogue().offers)


def note(offer: Offer) -> str:
    """What a row has to say beyond its price: what it was before, or why it does not rank."""
    return offer.notes if refreshed(offer) or not offer.rankable else ""


def offers(sku: str, terms: str) -> tuple[list[Offer], list[Offer]]:
    """Offers of the hardware, cheapest first: those that rank, and those only shown."""
    found = [offer for offer in _of(sku) if terms in (ALL, offer.acquisition)]
    found.sort(key=usd_per_unit)
    return [o for o in found if o.rankable], [o for o in found if not o.rankable]


def claims(words: str, article: str, verdict: str) -> list[Claim]:
    """Claims of the articles that hold all the words and match the filters."""
    wanted = _folded(words).split()
    return [
        claim
        for claim in load_catalogue().claims.values()
        if article in (ALL, claim.article)
        and verdict in (ALL, claim.verdict)
        and all(word in _text_of(claim) for word in wanted)
    ]


def _text_of(claim: Claim) -> str:
    parts = (claim.id, claim.topic, claim.text, claim.value, claim.condition, claim.note)
    return _folded(" ".join(parts))


def _folded(text: str) -> str:
    """A text for searching: case and the two spellings of -ization make no difference."""
    return text.lower().replace("isation", "ization")


def verdicts() -> list[str]:
    """All verdicts that occur, the most frequent first."""
    found = [claim.verdict for claim in load_catalogue().claims.values()]
    return sorted(set(found), key=lambda verdict: -found.count(verdict))


def paged(found: Sequence[T], key: str) -> Sequence[T]:
    """One page of a long list, with the control to turn it when there are more."""
    pages = -(-len(found) // PER_PAGE)
    if pages <= 1:
        return found
    number = min(st.pagination(pages, key=key), pages)
    return found[(number - 1) * PER_PAGE : number * PER_PAGE]
