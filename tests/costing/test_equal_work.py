"""Options A, B and C on the same work: worked by hand from the shipped prices, in the comments."""

from __future__ import annotations

from datetime import date

import pytest

from engine.catalogue import shipped_catalogue
from engine.cost.worked_cases import worked_cases
from engine.costing import equal_work_view as view
from engine.costing.equal_work import EqualWork, OptionOnWork, Work, articles_work, equal_work
from engine.errors import InputError

TODAY = date(2026, 12, 2)


def on(work: Work) -> EqualWork:
    return equal_work(work, shipped_catalogue(), TODAY)


@pytest.fixture(scope="module")
def options() -> dict[str, OptionOnWork]:
    return {o.id: o for o in on(articles_work()).options}


def test_the_work_is_twenty_tokens_a_parameter_within_option_bs_time() -> None:
    # 20 x 70e9 = 1.4e12; 6 x 70e9 x 1.4e12 = 5.88e23 FLOP; a B200 at 40% of 2.25e15 does
    # 0.9e15 x 3,600 = 3.24e18 an hour: 5.88e23/3.24e18 = 181,481.48 GPU-hours
    work = articles_work()
    assert (work.params, work.tokens, work.deadline_months) == (70e9, 1.4e12, 4.5)
    assert on(work).gpu_hours == pytest.approx(181_481.4815, rel=1e-9)


def test_time_of_each_option(options: dict[str, OptionOnWork]) -> None:
    # 181,481.48/64/730 = 3.8844; at 45% x 40/45 = 3.4528, at 35% x 40/35 = 4.4394
    assert options["A"].months == pytest.approx((3.88445, 3.45284, 4.43937), rel=1e-5)
    # on 8: x 8 = 31.0756, 27.6228, 35.5150
    assert options["B"].months == pytest.approx((31.07560, 27.62275, 35.51497), rel=1e-5)
    # two months until the machine stands there
    assert options["C"].months == pytest.approx((33.07560, 29.62275, 37.51497), rel=1e-5)


def test_dollars_of_what_is_rented(options: dict[str, OptionOnWork]) -> None:
    # 181,481.48/8 = 22,685.185 machine-hours x 113.9328 (p6-b200.48xlarge, us-east-1)
    a, b = options["A"], options["B"]
    assert a.usd == pytest.approx(2_584_586.67, abs=0.01)
    assert (a.usd_low, a.usd_high) == pytest.approx((2_297_410.37, 2_953_813.33), abs=0.01)
    # x 53.52 (Lambda, 8x B200 SXM6)
    assert b.usd == pytest.approx(1_214_111.11, abs=0.01)
    # over 1,400 billion tokens
    assert a.usd_per_billion_tokens == pytest.approx(1_846.13, abs=0.01)
    assert b.usd_per_billion_tokens == pytest.approx(867.22, abs=0.01)


def test_dollars_of_what_is_bought(options: dict[str, OptionOnWork]) -> None:
    # 32 months of work (31.08 up) after 2 of delivery: 34 months
    # racks 9,000 for one of 12 kW; spares and installation 4% of 515,000 = 20,600
    # power 12 x 730 x 0.135 = 1,182.60 x 32 = 37,843.20; x 0.35 for cooling = 13,245.12
    # colocation 12 x 174.06 x 32 = 66,839.04; staff 0.15 x 220,000/12 x 32 = 88,000
    # maintenance 5% x 515,000/12 x 32 = 68,666.67
    # resale at 32 months: 0.43 + (0.30 - 0.43) x 8/12 = 0.343333 x 515,000 = 176,816.67
    # financing 11%/12: on (544,600 - 176,816.67) falling over 34 months, 17.5 of it: 58,998.58;
    # on the resale, 34 months: 55,107.86
    # 544,600 + 274,594.03 + 114,106.44 - 176,816.67 = 756,483.80
    c = options["C"]
    assert c.flow is not None
    rows = {row.item: row.total for row in c.flow.table()}
    assert rows == pytest.approx(
        {
            "Machines": 515_000, "Racks": 9_000, "Installation": 10_300, "Spares": 10_300,
            "Power": 37_843.20, "Cooling and losses": 13_245.12, "Colocation": 66_839.04,
            "Staff": 88_000, "Maintenance": 68_666.67, "Cost of capital, written off": 58_998.58,
            "Cost of capital, resale": 55_107.86, "Resale": -176_816.67,
        },
        abs=0.01,
    )  # fmt: skip
    assert c.usd == pytest.approx(756_483.80, abs=0.01)
    assert c.usd_per_billion_tokens == pytest.approx(540.35, abs=0.01)


def test_the_same_work_at_the_articles_own_prices(options: dict[str, OptionOnWork]) -> None:
    # 181,481.48 x 38.40/64 = 108,888.89; x 38.40/8 = 871,111.11
    assert [usd for _, usd in options["A"].at_article_usd] == pytest.approx(
        [108_888.89, 871_111.11], abs=0.01
    )
    # 31.08 months are eleven terms of three: 33 x 24,000 = 792,000
    assert [usd for _, usd in options["B"].at_article_usd] == [792_000]
    # 285,000 + 32 x 2,400 = 361,800
    assert [usd for _, usd in options["C"].at_article_usd] == [361_800]


def test_verdicts_with_their_reasons(options: dict[str, OptionOnWork]) -> None:
    # 16 x 70e9/2^30 = 1,043.08 GiB in 8 x 179.1 = 1,432.8: 73%, within 90%
    assert options["B"].state_gib == pytest.approx(1_043.08, abs=0.01)
    assert options["B"].memory_gib == pytest.approx(1_432.8)
    assert [options[id].verdict for id in "ABC"] == ["fits", "late", "late"]
    # 31.0756/4.5 = 6.9: seven machines. A cluster to own is delivered after 5 months of 4.5.
    assert [options[id].machines_in_time for id in "ABC"] == [7, 7, None]
    assert "7 such machines" in options["B"].reason
    assert "5 months to deliver" in options["C"].reason


def test_what_option_b_really_buys_is_done_in_time_by_every_option() -> None:
    # 26,280 GPU-hours x 3.24e18/(6 x 70e9) = 0.20273e12 tokens: 4.5 months on 8, 0.5625 on 64;
    # C waits two months more
    b = Work(70e9, 26_280 * 3.24e18 / 4.2e11, 4.5)
    found = {o.id: o for o in on(b).options}
    assert found["B"].months[0] == pytest.approx(4.5)
    assert found["A"].months[0] == pytest.approx(0.5625)
    assert found["B"].usd == pytest.approx(26_280 / 8 * 53.52)
    assert [found[id].verdict for id in "AC"] == ["fits", "late"]


def test_a_model_that_eight_gpus_cannot_hold_does_not_fit() -> None:
    # 16 x 405e9/2^30 = 6,035 GiB: more than 1,432.8, less than 0.9 x 64 x 179.1 = 10,316
    found = {o.id: o for o in on(Work(405e9, 1e12, 60)).options}
    assert [found[id].verdict for id in "BC"] == ["too_small", "too_small"]
    assert found["A"].verdict == "fits"
    assert "6,030 GiB is more than 90% of the 1,430 GiB" in found["B"].reason


def test_a_purchase_beyond_five_years_has_no_sum() -> None:
    # 15T tokens: 1,944,444 GPU-hours, 333 months on 8
    found = on(Work(70e9, 15e12, 60)).options[-1]
    assert (found.usd, found.usd_per_billion_tokens, found.flow) == (None, None, None)
    rows = view.equal_rows(on(Work(70e9, 15e12, 60)))
    assert rows[2]["Option C"] == "not within five years"


@pytest.mark.parametrize(
    ("work", "field"),
    [
        (Work(0, 1e12, 4), "parameters"),
        (Work(70e9, -1, 4), "tokens"),
        (Work(70e9, float("nan"), 4), "tokens"),
        (Work(70e9, 1e12, 0), "deadline_months"),
        (Work(70e9, 1e12, 61), "deadline_months"),
    ],
)
def test_senseless_work_is_refused_by_its_field(work: Work, field: str) -> None:
    with pytest.raises(InputError, match=field):
        on(work)


def test_dollars_rise_with_the_tokens_and_never_with_the_deadline() -> None:
    few, many = on(Work(70e9, 1e12, 4)), on(Work(70e9, 2e12, 40))
    for less, more in zip(few.options, many.options, strict=True):
        assert less.usd is not None
        assert more.usd is not None
        assert less.usd < more.usd
    same = on(Work(70e9, 1e12, 40))
    assert [o.usd for o in same.options] == [o.usd for o in few.options]


def test_prices_carry_day_age_and_source(options: dict[str, OptionOnWork]) -> None:
    days = {id: o.price.as_of for id, o in options.items()}
    assert days == {"A": date(2026, 8, 15), "B": date(2026, 9, 20), "C": date(2025, 1, 1)}
    # 15 August to 2 December: 16 + 30 + 31 + 30 + 2 = 109 days; 1 January 2025: 365 + 335 = 700
    assert [options[id].price.age_days for id in "ABC"] == [109, 73, 700]
    assert [options[id].price.freshness for id in "ABC"] == ["grey", "grey", "warn"]
    assert all(o.price.source for o in options.values())


def test_the_view_tells_what_the_article_says_and_what_its_money_trains() -> None:
    case = next(c for c in worked_cases() if c.id == "option_a")
    rows = {r[""]: r for r in view.written_rows(case, on(articles_work()))}
    assert rows["Training a 70B from scratch"]["Option A"] == "$320,000"
    # 18 months of 8 GPUs: 105,120 GPU-hours x 7.714e6 tokens = 0.811e12
    trains = rows["Tokens that this trains"]
    assert trains["Option B"] == "0.2 trillion tokens"
    assert trains["Option C"] == "0.81 trillion tokens in 18 months"
    assert [chip.tone for chip in view.written_chips(case)] == ["red", "orange", "orange"]
    assert [chip.text for chip in view.chips(on(articles_work()))] == [
        "fits", "misses the deadline", "misses the deadline",
    ]  # fmt: skip
    owned = view.owned_rows(on(articles_work()))
    assert owned[-1] == ("In all", "$756,483.80", "")
    assert all(source for _, _, source in owned[:-1])
    (_, _, c) = view.priced(on(articles_work()))
    assert c[0] == "Option C: $515,000 to buy, of 430,000 to 600,000, DGX B200"
    assert c[1].endswith("At the article's own price: $362,000 with 2,400 in each of 32 months.")
