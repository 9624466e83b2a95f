"""Every money case of the articles, worked by hand in the comment beside it."""

from __future__ import annotations

import pytest

from engine.cost.parameters import cost_parameters
from engine.cost.worked_cases import CASES, WorkedCase, worked_cases

# case, row, as written, corrected: the arithmetic is in the comment above each group
FIGURES: list[tuple[str, str, float | None, float | None]] = [
    # 47 x 12,400 = 582,800; 6 x 9,600 = 57,600; 285,000 + 0.30 x 285,000 x 0.5 = 327,750
    ("runs_47", "By the run", 582_800, 582_800),
    ("runs_47", "By the month", 57_600, 57_600),
    ("runs_47", "Bought, with overhead", 285_000, 327_750),
    # 6 x 730/47 = 93.19; 12,400/55.04/2.27 = 99.25 h, x 47/4,380 = 1.065
    ("runs_47", "Hours a run may take on one node", None, 93.19),
    ("runs_47", "Node used, at the public price of a run", None, 1.065),
    # 12,400/3.50 = 3,543 GPU-h = 442.9 h; x 47 = 20,814 h; /4,380 = 4.752; x 57,600 = 273,722
    ("runs_47", "Nodes, at the article's price of a GPU-hour", 1, 4.752),
    ("runs_47", "By the month, at that many nodes", 57_600, 273_722),
    # 9,600/12,400 = 0.774; 9,600/5 = 1,920
    ("break_even_runs", "Dedicated beats on demand from", 5, 0.774),
    ("break_even_runs", "Cost of a run at which five is right", None, 1_920),
    # 5 x 12,400 = 62,000
    ("break_even_runs", "Dedicated rent at which five is right", None, 62_000),
    # (285,000/12 + 7,125)/12,400 = 30,875/12,400 = 2.490
    ("break_even_runs", "Purchase paid back in a year from", 20, 2.490),
    # 23,750/12,400 = 1.915; 285,000/248,000 = 1.149
    ("break_even_runs", "The same without overhead", None, 1.915),
    ("break_even_runs", "The same payback without overhead", None, 1.149),
    # 285,000/(248,000 - 7,125) = 1.183 (1.15 without overhead); 285,000/2,475 = 115.15
    ("break_even_runs", "Payback at 20 runs a month, against on demand", 12, 1.183),
    ("break_even_runs", "Payback against dedicated rent", 12, 115.15),
    # 285,000/(9,600 - 2,400) = 39.58; 285,000/9,600 = 29.69; 730/20 = 36.5
    ("break_even_runs", "The same with Option C's running cost", None, 39.58),
    ("break_even_runs", "The same without running cost", None, 29.69),
    ("break_even_runs", "Hours left for each of 20 runs on one node", None, 36.5),
    # /(8 x 730 = 5,840): 1.644, 4.110, 1.199, 1.712
    ("dedicated_prices", "Client case, 30 days: 9,600 a month", None, 1.644),
    ("dedicated_prices", "Option B, three months: 24,000 a month", None, 4.110),
    ("dedicated_prices", "FAQ, low: 7,000 a month", None, 1.199),
    ("dedicated_prices", "FAQ, high: 10,000 a month", None, 1.712),
    # 113.93/8 = 14.24, /3.50 = 4.07; 6.69/2.10 = 3.19; 3.63/1.80 = 2.02; 5.98/1.80 = 3.32
    ("rents", "AWS on demand", 3.50, 14.241),
    ("rents", "AWS, public over written", None, 4.069),
    ("rents", "Lambda", 2.10, 6.69),
    ("rents", "Lambda, public over written", None, 3.186),
    ("rents", "Marketplace, low end", 1.80, 3.63),
    ("rents", "Marketplace, low, over written", None, 2.017),
    ("rents", "Marketplace, high end", 1.80, 5.98),
    ("rents", "Marketplace, high, over written", None, 3.322),
    # 4.25 x 8 x 730 x 12 = 297,840, more than 285,000
    ("dgx_b200", "Public price, low end", 285_000, 430_000),
    ("dgx_b200", "Public price, likely", 285_000, 515_000),
    ("dgx_b200", "Public price, high end", 285_000, 600_000),
    ("dgx_b200", "A year of eight B200 bare metal", None, 297_840),
    # 38.40/64 = 0.60; 38.40/8 = 4.80; 8 x 113.93 = 911.44
    ("option_a", "A, if 38.40 is for the fleet", None, 0.60),
    ("option_a", "A, if 38.40 is for an instance", None, 4.80),
    ("option_a", "Eight instances with B200, list", 38.40, 911.44),
    # 320,000/38.40 x 64 = 533,333; /8 = 66,667; 320,000/3.50 = 91,429
    ("option_a", "A, GPU-hours for the fleet reading", None, 533_333),
    ("option_a", "A, GPU-hours for the instance reading", None, 66_667),
    ("option_a", "A, GPU-hours at 3.50", None, 91_429),
    # 4.5 x 24,000 = 108,000; 4.5 x 730 x 8 = 26,280; 14,200/30,417 thousand = 0.467
    ("option_a", "B, cost", 108_000, 108_000),
    ("option_a", "B, GPU-hours", None, 26_280),
    # A GPU-hour at 40% of 2,250 TFLOPS: 0.4 x 2.25e15 x 3,600 = 3.24e18 FLOP; 6 x 70e9 = 4.2e11
    # FLOP a token: 7.714e6 tokens. x 26,280 = 0.2027T; x 533,333 = 4.114T; x 66,667 = 0.5143T
    ("option_a", "B, tokens at 40% of peak", None, 0.2027),
    ("option_a", "A, tokens, fleet reading", None, 4.114),
    ("option_a", "A, tokens, instance reading", None, 0.5143),
    # 20 x 70e9 = 1.4T tokens: 5.88e23/3.24e18 = 181,481 GPU-h; /64/24 = 118.2 days;
    # /8/8,760 = 2.590 years
    ("option_a", "From scratch, GPU-hours", None, 181_481),
    ("option_a", "From scratch on 64 GPUs", None, 118.15),
    ("option_a", "From scratch on 8 GPUs", None, 2.590),
    # 15,800 + 14.3 x 730 x 0.12 x 1.3 = 15,800 + 1,628.5
    ("option_a", "Serving with C: depreciation and power", 14_200, 17_428.5),
    ("option_a", "Serving", None, 0.467),
    # 0.55 x 285,000 = 156,750; 128,250/12 = 10,687.50; /18 = 7,125
    ("resale", "Resale after 12 months", 156_750, 156_750),
    ("resale", "Loss a month over 12 months", 7_125, 10_687.50),
    ("resale", "The same loss over 18 months", 7_125, 7_125),
    # 10,687.50 + 7,125 = 17,812.50; 7,125 + 7,125 = 14,250; 15,833 + 7,125 = 22,958
    ("resale", "12 months, with the 30% overhead", None, 17_812.50),
    ("resale", "18 months, 55% still assumed, with overhead", None, 14_250),
    ("resale", "18 months, no resale, with overhead", None, 22_958),
    ("resale", "Depreciation over 18 months, no resale", 15_800, 15_833),
    # 285,000 x 0.30/12 = 7,125; 14.3 x 730 x 0.12 x 1.3 = 1,628.5
    ("running_cost", "30% of the price a year", None, 7_125),
    ("running_cost", "Power and cooling alone", 2_400, 1_628.5),
    # 216,192/6.2M = 3.49%; 500,000/6.2M = 8.06%
    ("running_cost", "Article 003's parts, over its cluster's price", 0.30, 0.03487),
    ("running_cost", "Article 003's total, over its cluster's price", 0.30, 0.08065),
    # 4,800/0.15 = 32,000; /(64 x 730) = 0.685
    ("idle", "Bill that it implies", None, 32_000),
    ("idle", "Price that it implies", None, 0.685),
    # 8 x 9,600 x 15% = 11,520; 8 x 24,000 x 15% = 28,800; 64 x 3.50 x 730 x 15% = 24,528
    ("idle", "At 9,600 a node", 4_800, 11_520),
    ("idle", "At 24,000 a node", 4_800, 28_800),
    ("idle", "At 3.50 a GPU-hour", 4_800, 24_528),
    # 8 x 285,000/18 x 15% = 19,000
    ("idle", "Owned, over 18 months", 4_800, 19_000),
    # 72 x 64 = 4,608; 18,000/4,608 = 3.906; 4,608 x 3.50 = 16,128
    ("corruption", "GPU-hours lost", None, 4_608),
    ("corruption", "Price that it implies", None, 3.906),
    ("corruption", "At 3.50 a GPU-hour", 18_000, 16_128),
    # 200,000/18,000 = 11.1; 64 x 18 x 730 h x 3.90625 x 2% = 65,700; 200,000 - 65,700 = 134,300
    ("corruption", "Events that 200,000 are", None, 11.11),
    ("corruption", "Checks at 2% in 18 months", None, 65_700),
    ("corruption", "Saved, net of the checks", 200_000, 134_300),
    # 16 x 8,760 = 140,160 node-hours: 7.9M/140,160 = 56.36; 3.5M/140,160 = 24.97; 280/8 = 35
    ("hourly_slip", "On demand", 450, 56.36),
    ("hourly_slip", "Three years", 200, 24.97),
    ("hourly_slip", "One year", 280, 35.0),
    # 140,160 x 450 = 63.07M, 7.98 times 7.9M; x 200 = 28.03M, 8.01 times 3.5M
    ("hourly_slip", "16 nodes for a year at 450", 7_900_000, 63_072_000),
    ("hourly_slip", "16 nodes for a year at 200", 3_500_000, 28_032_000),
    ("hourly_slip", "Factor on demand", None, 7.984),
    ("hourly_slip", "Factor three years", None, 8.009),
    # 1 - 280/450 = 38%; 1 - 200/450 = 56%; 1 - 50/450 = 89%
    ("hourly_slip", "Discount for a year", None, 0.3778),
    ("hourly_slip", "Discount for three years", None, 0.5556),
    ("hourly_slip", "Discount on spot", None, 0.8889),
    # 55.04/98.32 - 1 = -44%; 2.35/1.70 - 1 = +38%; 3.99/3.29 - 1 = +21%
    ("price_trend", "AWS p5, June 2025", -0.40, -0.4402),
    ("price_trend", "H100 contract index, October 2025 to March 2026", None, 0.3824),
    ("price_trend", "RunPod H100, August to November 2026", None, 0.2128),
    ("price_trend", "Nebius, October 2026", None, 0.19),
    # 8 x 55.04 = 440.32 a node
    ("lost_hours", "1 node", 3_600, 440.32),
    ("lost_hours", "4 nodes", None, 1_761.28),
    ("lost_hours", "16 nodes", None, 7_045.12),
    # 16 x 320,000 + 2 x 45,000 = 5.21M; 6.2M - 5.21M = 0.99M, 19%
    ("cluster_16", "Capital, as itemised", 6_200_000, 5_210_000),
    ("cluster_16", "Not listed", None, 990_000),
    ("cluster_16", "Not listed, over the itemised sum", None, 0.190),
    # 128 ports: 2 switches of 64 on rails; 4 leaf + 2 spine = 6 x 45,000 = 270,000
    ("cluster_16", "Switches, rails only", 2, 2),
    ("cluster_16", "Switches, full bisection", None, 6),
    ("cluster_16", "Switches, full bisection, price", None, 270_000),
    # 16 x 10,560 = 168,960
    ("cluster_16", "Cables and optics", None, 168_960),
    # 10 x 8,760 x 0.12 = 10,512; x 16 = 168,192; + 4 x 12,000 = 216,192
    ("cluster_16", "Power of a node", 10_500, 10_512),
    ("cluster_16", "Power of all nodes", None, 168_192),
    ("cluster_16", "Power and cooling, four racks", 500_000, 216_192),
    # 168,192 + 16 x 12,000 = 360,192; 168,192 x 1.3 + 192,000 = 410,650; (500,000 - 168,192)/12,000
    ("cluster_16", "Power and cooling, a node a rack", 500_000, 360_192),
    ("cluster_16", "The same with PUE 1.3", 500_000, 410_650),
    ("cluster_16", "Racks that 500,000 needs", None, 27.65),
    # 6.2/(7.9 - 0.5) x 12 = 10.05; 6.2/(3.5 - 0.5) x 12 = 24.8
    ("cluster_16", "Payback against on demand, its own totals", 18, 10.05),
    ("cluster_16", "Payback against three years reserved", 18, 24.8),
    # 20 x 320,000 + 90,000 + 3 x (20 x 10,512 + 5 x 12,000) = 6.49M + 810,720 = 7,300,720
    ("client_20", "Owned, by parts", None, 7_300_720),
    # (6.2M + 3 x 0.5M) x 20/16 = 9.625M
    ("client_20", "Owned, scaled from the 16 nodes", None, 9_625_000),
    # 56.364 x 20 x 26,280 x 0.4 = 11.85M; 24.971 x 20 x 26,280 = 13.125M; 450: 94.608M
    ("client_20", "Cloud on demand, used hours", None, 11_850_000),
    ("client_20", "Cloud reserved for three years", None, 13_125_000),
    ("client_20", "Cloud at 450 an hour", None, 94_608_000),
    # 0.78 x 7.30M/210,240 h = 27.09; 0.78 x 9.625M/210,240 = 35.71
    ("client_20", "Rent at which 22% holds, by parts", None, 27.09),
    ("client_20", "Rent at which 22% holds, scaled", None, 35.71),
    # of 56.364 x 525,600 = 29.625M: 7.30/29.625 = 24.6%; 9.625/29.625 = 32.5%; + 0.9M: 27.7%, 35.5%
    ("client_20", "Break-even use, by parts", 0.4, 0.2464),
    ("client_20", "Break-even use, scaled", 0.4, 0.3249),
    ("client_20", "The same with staff of two, by parts", 0.4, 0.2768),
    ("client_20", "The same with staff of two, scaled", 0.4, 0.3553),
    # (1,280,000 + 90,000)/36 + (42,000 + 12,000)/12 = 38,055.56 + 4,500 = 42,555.56; 45/3.5 = 12.86
    ("logistics", "New cluster a month", 42_000, 42_555.56),
    ("logistics", "Speed-up", 13, 12.857),
    ("logistics", "Saved in cash", None, -4_000),
    ("logistics", "Payback in cash", None, None),
    # 4 x 55.04 x 3.5/60 = 12.843; 42,000/12.843 = 3,270; 12.857/(42/38) = 11.63
    ("logistics", "Renting four nodes for a run", None, 12.843),
    ("logistics", "Renting is the cheaper below", None, 3_270.3),
    ("logistics", "Cheaper per computation", None, 11.633),
    # save 27 s, MTBF 50,700/32 = 1,584 h: sqrt(2 x 0.0075 x 1,584) = 4.87 h; 3.0% against 0.31%
    ("checkpoints", "32 GPUs: interval", 0.25, 4.875),
    ("checkpoints", "32 GPUs: lost", 0.0301, 0.003077),
    # save 7.2 min, MTBF 792 h: sqrt(2 x 0.12 x 792) = 13.8 h; 2.0% + 0.4% against 1.7%
    ("checkpoints", "64 GPUs: interval", 6, 13.79),
    ("checkpoints", "64 GPUs: lost", 0.0238, 0.0174),
    # 8M/512 = 15,625; 12M/512 = 23,438; 64 x 320,000 = 20.48M; 200,000/100 = 2,000
    ("purchase_prices", "A GPU, low", None, 15_625),
    ("purchase_prices", "A GPU, high", None, 23_437.5),
    ("purchase_prices", "The same GPUs in article 003's nodes", 12_000_000, 20_480_000),
    # 512 x 49,248 = 25.215M
    ("purchase_prices", "The same GPUs, public all-in price", 12_000_000, 25_214_976),
    ("purchase_prices", "A CPU node", None, 2_000),
    # 2.38/6.88 = 34.6%; 2.38/3.99 = 59.6%; 2.38 > 2.11: never
    ("own_or_rent", "Against AWS on demand", 0.5, 0.3459),
    ("own_or_rent", "Against Lambda", 0.6, 0.5965),
    ("own_or_rent", "Against the cheapest market", 0.6, None),
]


@pytest.fixture(scope="module")
def cases() -> dict[str, WorkedCase]:
    return {case.id: case for case in worked_cases()}


@pytest.mark.parametrize(("case", "label", "written", "corrected"), FIGURES)
def test_a_figure_of_the_articles(
    cases: dict[str, WorkedCase],
    case: str,
    label: str,
    written: float | None,
    corrected: float | None,
) -> None:
    row = cases[case].row(label)
    assert row.written == (None if written is None else pytest.approx(written, rel=2e-3))
    assert row.corrected == (None if corrected is None else pytest.approx(corrected, rel=5e-4))


def test_every_row_of_every_case_is_checked() -> None:
    shown = {(case.id, row.label) for case in worked_cases() for row in case.rows}
    assert shown == {(case, label) for case, label, _, _ in FIGURES}
    assert len(CASES) == len({case.id for case in worked_cases()})


def test_figures_of_the_articles_never_pass_for_data() -> None:
    for row in cost_parameters().values():
        if row.source.startswith("article") and row.id != "migration_overrun":
            assert row.confidence in {"seed", "low"}, row.id
