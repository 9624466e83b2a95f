"""Prices of rent that contradict one another: by the GPU, the machine and the fleet."""

from __future__ import annotations

from engine.cost.cash_flow import HOURS_PER_MONTH, HOURS_PER_YEAR
from engine.cost.parameters import cost_parameters, value
from engine.cost.worked_cases.case import (
    GPUS_PER_NODE,
    CaseRow,
    WorkedCase,
    owned_power_usd_month,
)


def dedicated_prices() -> WorkedCase:
    """Four prices for the same eight machines, in one article."""
    hours = GPUS_PER_NODE * HOURS_PER_MONTH
    rows = tuple(
        CaseRow(f"{label}: {usd:,.0f} a month", None, usd / hours, "USD per GPU-hour")
        for label, usd in (
            ("Client case, 30 days", value("case47_dedicated_usd")),
            ("Option B, three months", value("case47_option_b_usd")),
            ("FAQ, low", value("case47_faq_low_usd")),
            ("FAQ, high", value("case47_faq_high_usd")),
        )
    )
    return WorkedCase(
        "dedicated_prices",
        "Eight dedicated B200 at 9,600, 24,000 and 7,000 to 10,000 a month",
        "000",
        ("C041", "C087", "C103"),
        rows,
        "The longer commitment costs 2.5 times more: backwards. Dated public prices decide.",
    )


def rents() -> WorkedCase:
    """Four rents of a B200, each below the public list."""
    aws, gpus = value("case47_rent_gpu_usd"), GPUS_PER_NODE
    lambda_, market = value("rent_lambda_written_usd"), value("rent_market_written_usd")
    list_aws = value("public_p6_b200_usd_hour") / gpus
    list_lambda = value("public_lambda_b200_usd")
    public = cost_parameters()["public_market_b200_usd"]
    per = "USD per GPU-hour"
    return WorkedCase(
        "rents",
        "A B200 for 3.50, 2.10 or 1.80 an hour",
        "000",
        ("C036", "C037", "C038", "C102"),
        (
            CaseRow("AWS on demand", aws, list_aws, per, "3.50 fits AWS's spot price only."),
            CaseRow("AWS, public over written", None, list_aws / aws, "ratio"),
            CaseRow("Lambda", lambda_, list_lambda, per),
            CaseRow("Lambda, public over written", None, list_lambda / lambda_, "ratio"),
            CaseRow("Marketplace, low end", market, public.low, per, "Vast.ai, a few offers."),
            CaseRow("Marketplace, low, over written", None, public.low / market, "ratio"),
            CaseRow("Marketplace, high end", market, public.high, per, "RunPod Community."),
            CaseRow("Marketplace, high, over written", None, public.high / market, "ratio"),
        ),
        "Prices of the articles are shown and never rank; dated public rows do.",
    )


def price_trend() -> WorkedCase:
    """Rents fell until 2025 and rose through 2026."""

    def change(before: str, after: str) -> float:
        return value(after) / value(before) - 1

    fall = change("public_p5_before_usd_hour", "public_p5_usd_hour")
    index = change("index_h100_2025_usd_hour", "index_h100_2026_usd_hour")
    runpod = change("runpod_h100_before_usd_hour", "runpod_h100_after_usd_hour")
    written = -value("price_fall_written")
    return WorkedCase(
        "price_trend",
        "Rents fall 40% from 2024 to 2026",
        "003",
        ("C312", "C039"),
        (
            CaseRow("AWS p5, June 2025", written, fall, "share", "Fits."),
            CaseRow("H100 contract index, October 2025 to March 2026", None, index, "share"),
            CaseRow("RunPod H100, August to November 2026", None, runpod, "share"),
            CaseRow("Nebius, October 2026", None, value("nebius_rise_2026"), "share", "17 to 21%."),
        ),
        "No trend is assumed: prices have days, and old ones are greyed and warned about.",
    )


def option_a() -> WorkedCase:
    """Training a 70B from scratch: three readings of one price, 20 times apart."""
    total, per_hour = value("option_a_usd"), value("option_a_usd_hour")
    gpus, node = value("idle_case_gpus"), value("case47_option_b_usd")
    nodes = gpus / GPUS_PER_NODE
    fleet, instance = total / per_hour, total / (nodes * per_hour)
    months_b = value("case47_option_b_months")
    requests = value("option_a_requests_day") * HOURS_PER_MONTH / 24
    serving, written_off = value("option_a_serving_usd"), value("option_c_depreciation_usd")
    params, hours_b = value("option_a_model_params"), months_b * HOURS_PER_MONTH * GPUS_PER_NODE
    flop_per_gpu_hour = value("case_mfu") * value("b200_bf16_flops") * 3600

    def tokens(gpu_hours: float) -> float:
        """Trillions of tokens that the GPU-hours train on: FLOP over 6 × parameters."""
        return gpu_hours * flop_per_gpu_hour / (6 * params) / 1e12

    whole = value("case_tokens_per_param") * params / 1e12 / tokens(1)  # GPU-hours from scratch
    return WorkedCase(
        "option_a",
        "Options A, B and C: a 70B from scratch for 320,000 or 108,000",
        "000",
        ("C084", "C085", "C086", "C087", "C088"),
        (
            CaseRow("A, if 38.40 is for the fleet", None, per_hour / gpus, "USD per GPU-hour"),
            CaseRow(
                "A, if 38.40 is for an instance", None, per_hour / GPUS_PER_NODE, "USD per GPU-hour"
            ),
            CaseRow(
                "Eight instances with B200, list",
                per_hour,
                nodes * value("public_p6_b200_usd_hour"),
                "USD per hour",
                "p5.48xlarge holds H100; B200 is p6-b200.",
            ),
            CaseRow("A, GPU-hours for the fleet reading", None, fleet * gpus, "GPU-h"),
            CaseRow("A, GPU-hours for the instance reading", None, instance * gpus, "GPU-h"),
            CaseRow("A, GPU-hours at 3.50", None, total / value("case47_rent_gpu_usd"), "GPU-h"),
            CaseRow(
                "B, cost",
                value("option_b_written_usd"),
                months_b * node,
                "USD",
                "4.5 × 24,000: right.",
            ),
            CaseRow(
                "B, GPU-hours",
                None,
                hours_b,
                "GPU-h",
                "The same model takes 2.5 to 20 times the GPU-hours in A: not the same work.",
            ),
            CaseRow(
                "B, tokens at 40% of peak",
                None,
                tokens(hours_b),
                "trillion tokens",
                "Three a parameter: continued training, not a model from scratch.",
            ),
            CaseRow("A, tokens, fleet reading", None, tokens(fleet * gpus), "trillion tokens"),
            CaseRow(
                "A, tokens, instance reading", None, tokens(instance * gpus), "trillion tokens"
            ),
            CaseRow("From scratch, GPU-hours", None, whole, "GPU-h", "Twenty tokens a parameter."),
            CaseRow("From scratch on 64 GPUs", None, whole / gpus / 24, "days"),
            CaseRow(
                "From scratch on 8 GPUs", None, whole / GPUS_PER_NODE / HOURS_PER_YEAR, "years"
            ),
            CaseRow("Serving", None, serving / requests * 1000, "USD per 1,000 requests"),
            CaseRow(
                "Serving with C: depreciation and power",
                serving,
                written_off + owned_power_usd_month(),
                "USD/month",
                "Dearer, and its machine is already charged to the training.",
            ),
        ),
        "Hold the work constant: GPU-hours come from one training model, times each option's rate.",
    )


def hourly_slip() -> WorkedCase:
    """Hourly prices eight times too high, beside yearly totals that are right."""
    node_hours = value("cluster_nodes") * HOURS_PER_YEAR
    on_demand, reserved = value("cloud_hour_written_usd"), value("cloud_3y_written_usd")
    one_year = value("cloud_1y_written_usd")
    year, reserved_year = value("cloud_year_written_usd"), value("cloud_3y_year_written_usd")
    slip = "As if the price of the node were that of one GPU: eight times too high."
    return WorkedCase(
        "hourly_slip",
        "p5.48xlarge at $450 an hour",
        "003",
        ("C243", "C244", "C245", "C246", "C247"),
        (
            CaseRow("On demand", on_demand, year / node_hours, "USD per node-hour", slip),
            CaseRow("Three years", reserved, reserved_year / node_hours, "USD per node-hour", slip),
            CaseRow("One year", one_year, one_year / GPUS_PER_NODE, "USD per node-hour", slip),
            CaseRow("16 nodes for a year at 450", year, on_demand * node_hours, "USD"),
            CaseRow("16 nodes for a year at 200", reserved_year, reserved * node_hours, "USD"),
            CaseRow("Factor on demand", None, on_demand * node_hours / year, "ratio"),
            CaseRow("Factor three years", None, reserved * node_hours / reserved_year, "ratio"),
            CaseRow("Discount for a year", None, 1 - one_year / on_demand, "share"),
            CaseRow("Discount for three years", None, 1 - reserved / on_demand, "share"),
            CaseRow(
                "Discount on spot",
                None,
                1 - value("cloud_spot_written_usd") / on_demand,
                "share",
                "Article 000 says 20 to 40% for a reservation; rows with dates decide.",
            ),
        ),
        "The totals' rates are the article's position; the hourly rows never rank.",
    )
