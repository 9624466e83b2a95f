"""The user's own quotes: added for the hardware on show, listed, and taken away again."""

from __future__ import annotations

import streamlit as st

from engine.assessment import ACQUISITION_LABELS
from pages.components import catalogue, fields, labels, shell

TERMS = ["on_demand", "spot", "dedicated", "reserved_1y", "reserved_3y"]


def editor(sku: str, name: str) -> None:
    """Add a quote for this hardware, and see those that count already."""
    st.subheader("Your own quotes", anchor=False)
    st.caption(
        "They rank beside the prices above and travel in the link, without a provider's name."
    )
    cells = st.grid(columns=4, min_column_width=150, vertical_alignment="bottom")
    size = ""
    if sku == catalogue.CPU:
        with cells:
            vcpu = st.number_input("vCPU", value=96, step=1, key="quote_vcpu")
            memory = st.number_input("Memory · GB", value=384, step=1, key="quote_gb")
        size = f"-{vcpu}-{memory}"
    with cells:
        terms = st.selectbox(
            "Quoted", TERMS, format_func=ACQUISITION_LABELS.__getitem__, key="quote_terms"
        )
        usd = st.number_input(
            "USD an hour", value=None, format="%.6g", key="quote_usd", placeholder="For one"
        )
        price = f"{usd or 0:.6f}".rstrip("0").rstrip(".")
        st.button(
            "Add the quote",
            on_click=_add,
            args=(f"{sku}{size}:{terms}:{price}",),
            disabled=not usd or usd < 0,
            icon=":material/add:",
            help=f"A price for one {name}",
        )
    fields.complain("quotes")
    for quote in shell.workload().quotes:
        _listed(quote)


def _listed(quote: str) -> None:
    hardware, terms, usd = quote.rsplit(":", 2)
    name = catalogue.hardware().get(hardware, hardware)
    price = f"{labels.money(float(usd))} an hour {ACQUISITION_LABELS[terms]}"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(labels.plain(f"{name}: {price}"))
        st.button(
            f"Remove {name}, {ACQUISITION_LABELS[terms]}",
            on_click=_drop,
            args=(quote,),
            key=f"drop_{quote}",
            icon=":material/delete:",
            type="tertiary",
        )


def _add(quote: str) -> None:
    shell.change(quotes=(*shell.workload().quotes, quote))


def _drop(quote: str) -> None:
    shell.change(quotes=tuple(q for q in shell.workload().quotes if q != quote))
