"""The user's own quotes: converted once at the rate given, refused with their field or line."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalogue import shipped_catalogue
from engine.decide.quotes import (
    EXAMPLE,
    QuoteFile,
    doubts,
    hardware_of,
    left_out,
    quote_of,
    read_quotes,
    room,
    with_quotes,
)
from engine.errors import ImportFileError, InputError
from engine.workload.workload import Workload, parse

CATALOGUE = shipped_catalogue()
H100 = "h100-sxm-80gb"
DAY = date(2026, 12, 2)


def read(text: str) -> QuoteFile:
    return read_quotes(text.encode(), "quotes.csv", CATALOGUE)


def test_another_currency_is_converted_at_the_rate_given() -> None:
    # 0.92 EUR are one dollar: 2.30 EUR are 2.50 USD.
    assert quote_of(H100, "spot", 2.30, currency="EUR", per_usd=0.92) == f"{H100}:spot:2.5"
    # 150 JPY are one dollar: 600 JPY are 4 USD.
    assert quote_of(H100, "spot", 600, currency="JPY", per_usd=150) == f"{H100}:spot:4"


def test_a_machine_by_the_month_is_one_gpu_by_the_hour() -> None:
    # 8 GPUs for 17,520 USD over 730 hours: 17520 / 8 / 730 = 3.
    found = read("hardware,terms,price,gpus,per\nh200-sxm-141gb,dedicated,17520,8,month\n")
    assert found.quotes == ("h200-sxm-141gb:dedicated:3",)


def test_the_example_file_is_read_whole() -> None:
    # 21500 EUR / 0.92 / 8 GPUs / 730 h = 4.001638; 3.10 GBP / 0.78 = 3.974359.
    assert read(EXAMPLE) == QuoteFile(
        (
            f"{H100}:reserved_1y:2.1",
            "h200-sxm-141gb:dedicated:4.001638",
            "cpu-96-384:on_demand:3.974359",
        ),
        (),
    )
    assert parse({"quotes": read(EXAMPLE).quotes}).quotes == read(EXAMPLE).quotes


def test_a_file_of_a_european_spreadsheet_is_read() -> None:
    text = (
        "\ufeffHardware;Terms;Price;Currency;per_usd\nH100 SXM5 80GB;by the month;2,30;eur;0,92\n"
    )
    assert read(text).quotes == (f"{H100}:dedicated:2.5",)


BAD = {
    "no price": (f"{H100},spot,", "price: is empty"),
    "zero": (f"{H100},spot,0", "price: 0 is no offer"),
    "negative": (f"{H100},spot,-2", "price: -2 is no offer"),
    "not a number": (f"{H100},spot,nan", "price: 'nan' is no plain number"),
    "with thousands": (f'{H100},spot,"1,000"', "price: '1,000' is no plain number"),
    "with a sign": (f"{H100},spot,$2", "price: '$2' is no plain number"),
    "absurd": (f"{H100},spot,99999999", "price: 1e+08 US dollars"),
    "a name that could be three cards": ("H100,spot,2", "hardware: 'H100'"),
    "terms that don't exist": (f"{H100},forever,2", "terms: 'forever'"),
    "no rate": (f"{H100},spot,2,EUR", "per_usd: is empty"),
    "a rate of zero": (f"{H100},spot,2,EUR,0", "per_usd: 0"),
    "a dollar of another worth": (f"{H100},spot,2,USD,1.1", "per_usd: 1.1"),
    "no currency": (f"{H100},spot,2,euro,0.9", "currency: 'EURO'"),
    "half a GPU": (f"{H100},spot,2,,,0.5", "gpus: 0.5"),
    "no GPU": (f"{H100},spot,2,,,0", "gpus: 0"),
    "a server of eight": ("cpu-96-384,spot,2,,,8", "gpus: 8"),
    "by the minute": (f"{H100},spot,2,,,1,minute", "per: 'minute'"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_row_that_is_no_quote_is_refused_and_the_others_count(name: str) -> None:
    row, words = BAD[name]
    found = read(f"hardware,terms,price,currency,per_usd,gpus,per\nt4,spot,0.2\n{row}\n")
    assert found.quotes == ("t4:spot:0.2",)
    (why,) = found.refused
    assert why.startswith(f"Line 3: {words}")


@pytest.mark.parametrize(
    "raw", [b"", b"hardware,terms,price\n", b"gpu,usd\nh100,2\n", b"\xff\xfe", b"x" * 100_001]
)
def test_a_file_that_is_no_list_of_quotes_is_refused(raw: bytes) -> None:
    with pytest.raises(ImportFileError) as raised:
        read_quotes(raw, "list.csv", CATALOGUE)
    assert raised.value.where == "list.csv"
    assert "hardware" in raised.value.right


@given(st.binary(max_size=300))
def test_any_file_is_read_or_refused_in_words(raw: bytes) -> None:
    try:
        found = read_quotes(b"hardware,terms,price\n" + raw, "any.csv", CATALOGUE)
    except ImportFileError:
        return
    for quote in found.quotes:
        assert parse({"quotes": (quote,)}).quotes == (quote,)


@given(
    price=st.floats(0.01, 10_000),
    per_usd=st.floats(0.1, 1_000),
    gpus=st.integers(1, 16),
)
def test_a_quote_is_worth_what_was_asked(price: float, per_usd: float, gpus: int) -> None:
    try:
        quote = quote_of(H100, "spot", price, currency="EUR", per_usd=per_usd, gpus=gpus)
    except InputError:
        assert not 5e-7 < price / per_usd / gpus < 999_999
        return
    usd = float(quote.rsplit(":", 1)[1])
    assert usd * gpus * per_usd == pytest.approx(price, abs=1e-6 * gpus * per_usd)
    assert parse({"quotes": (quote,)}).quotes == (quote,)


def test_no_more_quotes_than_the_link_carries() -> None:
    many = tuple(f"{H100}:spot:{n}" for n in range(1, 6))
    assert room(many[:2], many[1:4]) == many[:4]
    with pytest.raises(InputError, match="5 quotes"):
        room(many[:4], many[4:])


def test_a_quote_far_from_all_prices_is_asked_about() -> None:
    # 8 H100 for the price of one: 8 × 4 = 32, and the dearest of the table is 12.29.
    assert doubts(CATALOGUE, (f"{H100}:spot:60",))
    assert doubts(CATALOGUE, (f"{H100}:spot:0.02",))
    assert not doubts(CATALOGUE, (f"{H100}:spot:2.1", "cpu-96-384:spot:9"))


def test_hardware_is_an_id_or_a_full_name() -> None:
    assert hardware_of(" H100 SXM5 80GB ", CATALOGUE) == H100
    assert hardware_of("cpu-64-256", CATALOGUE) == "cpu-64-256"
    for wrong in ("", "h100", "cpu-0-1", "cpu-1", "cpu-1-2-3"):
        with pytest.raises(InputError):
            hardware_of(wrong, CATALOGUE)


def test_quotes_rank_beside_the_catalogues_prices() -> None:
    job = Workload(quotes=(f"{H100}:on_demand:0.9", "zz9:spot:1"))
    found, notes = with_quotes(CATALOGUE, job, DAY)
    cheapest = found.offers_for(H100, "on_demand")[0]
    assert (cheapest.kind, cheapest.usd_per_gpu_hour, cheapest.rankable) == ("quote", 0.9, True)
    assert len(notes) == 1
    assert "zz9" in notes[0]


def test_what_does_not_rank_is_told_with_its_reason_and_the_names_near_it() -> None:
    near, none, server = left_out(
        CATALOGUE, ("h100-sxm:on_demand:1.2", "warp-drive:spot:0.5", "cpu-96:on_demand:2")
    )
    assert "h100-sxm, on demand at $1.20 an hour, is left out of the ranking" in near
    assert "Near it: h100-sxm-80gb, " in near
    assert "Known with a price: " in none
    assert "h200-sxm-141gb" in none
    assert "cpu-<vCPU>-<GB>" in server
    assert left_out(CATALOGUE, (f"{H100}:spot:2", "cpu-96-384:spot:2")) == ()


@pytest.mark.parametrize("name", ["cpu-0-384", "cpu-96-384-1", "cpu-", "cpu-a-b"])
def test_a_server_without_a_size_does_not_rank(name: str) -> None:
    job = Workload(quotes=(f"{name}:on_demand:2",))
    found, notes = with_quotes(CATALOGUE, job, DAY)
    assert len(found.offers) == len(CATALOGUE.offers)
    assert len(notes) == 1
