"""The prices behind every answer: who, where, on which terms, read when, from which source."""

from __future__ import annotations

from datetime import date

import streamlit as st

from engine.catalogue import Offer
from engine.report.currency import Currency
from pages.components import catalogue, labels, quotes, shell


def show(offer: Offer, today: date, currency: Currency) -> None:
    """One offer; the price of a whole machine is shown per GPU where it has GPUs."""
    plain = labels.plain
    price = f"{currency.price(catalogue.usd_per_unit(offer))} an hour"
    terms = catalogue.terms_label(offer.acquisition)
    where = plain(f"{offer.provider}, {offer.sku}, {offer.region}")
    kind = "refreshed, " if catalogue.refreshed(offer) else ""
    kind += f"{catalogue.KINDS[offer.kind]}, {offer.provenance.confidence} confidence"
    aged = labels.aged(offer.freshness(today), offer.age_days(today))
    with st.container(gap="xxsmall"):
        st.markdown(f"**{plain(price)}** {plain(terms)} · {where} · {aged}")
        read = labels.day(offer.provenance.as_of)
        more = f"; {note}" if (note := catalogue.note(offer)) else ""
        st.caption(plain(f"{read}, {kind}: {catalogue.source(offer)}{more}"))


with shell.page("Prices", ":material/sell:"):
    currency = shell.currency()
    unit = "US dollars" if currency.code == "USD" else currency.code
    st.markdown(
        labels.plain(
            f"{unit} an hour for one GPU, or for one CPU server. A price is greyed after 60 days; "
            f"after 120, ask for a new quote. {currency.note}"
        )
    )
    told, fault = catalogue.in_use()
    st.caption(labels.plain(f"In use: {told}"))
    if fault:
        st.warning(labels.plain(fault), icon=":material/warning:")
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
    for offer in catalogue.paged(ranked, "prices_page"):
        show(offer, today, currency)
    if quoted:
        st.subheader("Shown, never ranked", anchor=False)
        st.caption("What articles and analysts quote, prices “from”, and what is outdated.")
        for offer in quoted:
            show(offer, today, currency)
    quotes.editor(sku, choices[sku])
