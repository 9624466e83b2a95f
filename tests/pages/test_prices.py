"""The page of prices: which table is in use, and quotes in another currency or from a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.catalogue import Offer, load_catalogue, shipped_catalogue
from engine.catalogue.update import store
from engine.report.currency import Currency
from engine.report.link import encode
from engine.workload.cost_terms import CostTerms
from engine.workload.settings import Settings
from engine.workload.workload import Workload
from pages.components import catalogue

Open = Callable[..., AppTest]
Said = Callable[[AppTest], Workload]


def captions(visit: AppTest) -> str:
    return " ".join(str(caption.value) for caption in visit.main.caption)


def p5() -> Offer:
    return next(
        o
        for o in shipped_catalogue().offers
        if (o.sku, o.region, o.acquisition) == ("p5.48xlarge", "us-east-1", "on_demand")
        and store.refreshable(o)
    )


def test_the_table_in_use_is_named(
    app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(store.ENVIRONMENT, str(tmp_path))
    visit = app("pages/prices.py")
    assert "The shipped table, offers.csv" in captions(visit)
    assert "update-prices" in captions(visit)


def test_prices_are_exact_and_in_the_currency_asked_for(app: Open) -> None:
    def shown(**link: str) -> str:
        visit = app("pages/prices.py", **link)
        return " ".join(str(x.value) for x in visit.main.markdown).replace("\\", "")

    usual = shown()
    assert "US dollars an hour for one GPU" in usual
    # The cheapest ranked price of the page's first hardware, an H100: to the cent and beyond.
    first = next(iter(catalogue.hardware()))
    cheapest = catalogue.usd_per_unit(catalogue.offers(first, catalogue.ALL)[0][0])
    assert f"**{Currency().price(cheapest)} an hour**" in usual
    rate = CostTerms(currency="EUR", currency_rate=0.9)
    euros = shown(**encode(Workload(), Settings(costs=rate)))
    assert "EUR an hour for one GPU" in euros
    assert "Shown in EUR at 0.9 for one US dollar" in euros
    assert f"**{Currency('EUR', 0.9).price(cheapest)} an hour**" in euros


def test_a_refreshed_table_is_named_with_its_day(
    app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(tmp_path / "prices-2026-11-30.csv", [p5()])
    monkeypatch.setenv(store.ENVIRONMENT, str(tmp_path))
    assert load_catalogue().update.rows == 1
    visit = app("pages/prices.py")
    assert "prices-2026-11-30.csv of 30 Nov 2026: 1 price refreshed" in captions(visit)
    assert not visit.main.warning


def test_a_broken_table_is_told_and_the_shipped_one_shown(
    app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prices-2026-11-30.csv").write_text("provider,sku\nAWS,x\n")
    monkeypatch.setenv(store.ENVIRONMENT, str(tmp_path))
    visit = app("pages/prices.py")
    (warning,) = visit.main.warning
    assert "prices-2026-11-30.csv line 2" in warning.value.replace("\\", "")
    assert "The shipped table" in captions(visit)


def test_a_quote_in_euros_needs_its_rate(app: Open, said: Said) -> None:
    visit = app("pages/prices.py", kind="lora")
    visit.text_input(key="quote_currency").set_value("eur").run()
    visit.number_input(key="quote_usd").set_value(2.3).run()
    add = next(button for button in visit.button if "Add" in button.label)
    assert add.disabled
    visit.number_input(key="quote_rate_EUR").set_value(0.92).run()
    # 2.30 / 0.92 = 2.50
    assert "2.3 EUR is $2.50" in captions(visit).replace("\\", "")
    next(button for button in visit.button if "Add" in button.label).click().run()
    assert not visit.exception
    (quote,) = said(visit).quotes
    assert quote.endswith(":on_demand:2.5")


def test_quotes_of_a_file_are_added_and_the_others_named(app: Open, said: Said) -> None:
    visit = app("pages/prices.py", kind="lora")
    rows = b"hardware,terms,price\nh100-sxm-80gb,reserved_1y,2.1\nh100,spot,1\n"
    visit.file_uploader(key="quote_file").upload("quotes.csv", rows, "text/csv").run()
    assert not visit.exception
    assert said(visit).quotes == ("h100-sxm-80gb:reserved_1y:2.1",)
    (error,) = visit.main.error
    assert "Line 3" in error.value


def test_a_fifth_quote_is_refused_in_words(app: Open, said: Said) -> None:
    visit = app("pages/prices.py", kind="lora")
    rows = "hardware,terms,price\n" + "".join(f"t4,spot,0.2{n}\n" for n in range(1, 6))
    visit.file_uploader(key="quote_file").upload("quotes.csv", rows.encode(), "text/csv").run()
    assert said(visit).quotes == ()
    (error,) = visit.main.error
    assert "4 fit into the link" in error.value
