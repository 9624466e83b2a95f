"""Prices of rent that contradict one another: by the GPU, the machine and the fleet."""

from __future__ import annotations

from engine.cost.cash_flow import HOURS_PER_MONTH, HOURS_PER_YEAR
from engine.cost.parameters import value
from engine.cost.worked_cases.case import (
    GPUS_PER_NODE,
    CaseRow,
    WorkedCase,
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


def option_a() -> WorkedCase:
    """Training a 70B from scratch: three readings of one price, 20 times apart."""
    total, per_hour = value("option_a_usd"), value("option_a_usd_hour")
    gpus, node = value("idle_case_gpus"), value("case47_option_b_usd")
    nodes = gpus / GPUS_PER_NODE
    fleet, instance = total / per_hour, total / (nodes * per_hour)
    months_b = value("case47_option_b_months")
    requests = value("option_a_requests_day") * HOURS_PER_MONTH / 24
    return WorkedCase(
        "option_a",
        "A 70B from scratch for 320,000 or 108,000",
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
                months_b * HOURS_PER_MONTH * GPUS_PER_NODE,
                "GPU-h",
                "The same model takes 2.5 to 20 times the GPU-hours in A: not the same work.",
            ),
            CaseRow(
                "Serving",
                None,
                value("option_a_serving_usd") / requests * 1000,
                "USD per 1,000 requests",
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
                "Fall of the public price in June 2025",
                value("price_fall_written"),
                1 - value("public_p5_usd_hour") / value("public_p5_before_usd_hour"),
                "share",
                "Fits 2025; prices rose again through 2026.",
            ),
        ),
        "The totals' rates are the article's position; the hourly rows never rank.",
    )
