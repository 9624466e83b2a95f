"""The prices behind every answer: who, where, on which terms, read when, from which source."""

from __future__ import annotations

from datetime import date

import streamlit as st

from engine.assessment import ACQUISITION_LABELS
from engine.catalogue import Offer
from pages.components import catalogue, labels, quotes, shell
from pages.components.answer import table

COLUMNS = ("Provider", "Offer", "An hour", "Read", "Source")


def row(offer: Offer, today: date) -> dict[str, str]:
    """One offer; a price for a whole machine is shown per GPU where it has GPUs."""
    plain = labels.plain
    price = labels.money(catalogue.usd_per_unit(offer))
    terms = ACQUISITION_LABELS.get(offer.acquisition, offer.acquisition.replace("_", " "))
    trust = f"{catalogue.KINDS[offer.kind]}, {offer.provenance.confidence} confidence"
    cells = (
        plain(offer.provider),
        plain(f"{offer.sku}, {offer.region}"),
        plain(f"{price} {terms}"),
        f"{labels.day(offer.provenance.as_of)} "
        + labels.aged(offer.freshness(today), offer.age_days(today)),
        plain(f"{offer.provenance.source} ({trust})"),
    )
    return dict(zip(COLUMNS, cells, strict=True))


with shell.page("Prices", ":material/sell:"):
    st.markdown(
        "US dollars an hour for one GPU, or for one CPU server. A price is greyed after 60 days; "
        "after 120, ask for a new quote."
    )
    choices = catalogue.hardware()
    left, right = st.columns(2)
    with left:
        sku = st.selectbox("Hardware", list(choices), format_func=choices.__getitem__)
    with right:
        terms = st.selectbox(
            "Terms", [catalogue.ALL, *catalogue.terms(sku)], format_func=catalogue.terms_label
        )
    today = date.today()
    ranked, quoted = catalogue.offers(sku, terms)
    st.subheader(f"{labels.count(len(ranked), 'price')}, cheapest first", anchor=False)
    page = catalogue.paged(ranked, "prices_page")
    table([row(offer, today) for offer in page], "Prices with their age and source", marked=True)
    if quoted:
        st.subheader("Shown, never ranked", anchor=False)
        st.caption("What articles and analysts quote, prices “from”, and what is outdated.")
        table([row(offer, today) for offer in quoted], "Prices that never rank", marked=True)
    quotes.editor(sku, choices[sku])
