"""The user's own quotes: typed or from a file, in any currency, listed, and taken away again."""

from __future__ import annotations

import streamlit as st

from engine.assessment import ACQUISITION_LABELS
from engine.catalogue import load_catalogue
from engine.decide.quotes import EXAMPLE, TERMS, doubts, left_out, quote_of, read_quotes, room
from engine.errors import ClusterFitError, InputError
from engine.report.currency import Currency
from pages.components import catalogue, fields, labels, shell


def not_ranked() -> tuple[str, ...]:
    """Tell which of the visitor's quotes don't rank, and why; the page's own notes need not."""
    told = left_out(load_catalogue(), shell.workload().quotes)
    for text in told:
        st.warning(labels.plain(text), icon=":material/sell:")
    return told


def editor(sku: str, name: str) -> None:
    """Add quotes for this hardware or from a file, and see those that count already."""
    st.subheader("Your own quotes", anchor=False)
    st.caption(
        "They rank beside the prices above and travel in the link, in US dollars for one GPU or "
        "server and hour, without a provider's name."
    )
    _form(sku, name)
    with st.expander("Quotes from a CSV file", icon=":material/upload_file:"):
        _file()
    fields.complain("quotes")
    for told in st.session_state.get("quotes_said", ()):
        st.error(labels.plain(told), icon=":material/error:")
    not_ranked()
    for doubt in doubts(load_catalogue(), shell.workload().quotes):
        st.warning(labels.plain(doubt), icon=":material/help:")
    for quote in shell.workload().quotes:
        _listed(quote)


def _form(sku: str, name: str) -> None:
    shown = shell.currency()
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
        code = st.text_input(
            "Currency", value=shown.code, max_chars=3, key="quote_currency", help="A code like EUR"
        )
        code = code.strip().upper()
        price = st.number_input(
            f"{labels.plain(code) or 'USD'} an hour",
            value=None,
            format="%.6g",
            key="quote_usd",
            placeholder="For one",
        )
    rate: float | None = 1.0
    if code != "USD":
        with cells:
            rate = st.number_input(
                f"{labels.plain(code)} for one US dollar",
                value=shown.per_usd if code == shown.code else None,
                format="%.6g",
                key=f"quote_rate_{code}",
                placeholder="Your rate",
            )
    quote = ""
    if price is not None and rate is not None:
        try:
            quote = quote_of(f"{sku}{size}", terms, price, currency=code, per_usd=rate)
        except InputError as error:
            st.error(labels.plain(error), icon=":material/error:")
    if quote and code != "USD":
        usd = float(quote.rsplit(":", 1)[1])
        st.caption(labels.plain(f"{price:g} {code} is {Currency().price(usd)} at your rate."))
    st.button(
        "Add the quote",
        on_click=_add,
        args=((quote,),),
        disabled=not quote,
        icon=":material/add:",
        help=f"A price for one {name}",
    )


def _file() -> None:
    st.markdown(
        "Columns: hardware, terms, price; if you like currency, per_usd (its units for one US "
        "dollar), gpus (how many the price is for) and per (hour or month)."
    )
    st.download_button(
        "An example file",
        EXAMPLE.encode(),
        "quotes.csv",
        "text/csv",
        on_click="ignore",
        icon=":material/download:",
    )
    st.file_uploader("Your file", type=["csv", "txt"], key="quote_file", on_change=_take)


def _take() -> None:
    """Callback: add what a file holds, and keep what to say of the rest."""
    given = st.session_state["quote_file"]
    if given is None:
        st.session_state["quotes_said"] = ()
        return
    try:
        found = read_quotes(given.getvalue(), given.name, load_catalogue())
    except ClusterFitError as error:
        st.session_state["quotes_said"] = (str(error),)
        return
    _add(found.quotes, found.refused)


def _add(quotes: tuple[str, ...], refused: tuple[str, ...] = ()) -> None:
    """Callback: add quotes, and say which are refused."""
    try:
        shell.change(quotes=room(shell.workload().quotes, quotes))
    except InputError as error:
        refused = (*refused, str(error))
    st.session_state["quotes_said"] = refused


def _listed(quote: str) -> None:
    hardware, terms, usd = quote.rsplit(":", 2)
    name = catalogue.hardware().get(hardware, hardware)
    price = f"{Currency().price(float(usd))} an hour {ACQUISITION_LABELS[terms]}"
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


def _drop(quote: str) -> None:
    st.session_state["quotes_said"] = ()
    shell.change(quotes=tuple(q for q in shell.workload().quotes if q != quote))
