"""A project of 47 runs: by the run, by the month or bought, and from how many runs each pays."""

from __future__ import annotations

from engine.cost.break_even import months_to_pay_back, runs_per_month
from engine.cost.cash_flow import HOURS_PER_MONTH
from engine.cost.monthly import units_for
from engine.cost.parameters import value
from engine.cost.worked_cases.case import (
    GPUS_PER_NODE,
    CaseRow,
    WorkedCase,
    bought_with_overhead,
    dedicated_rent,
)


def runs_47() -> WorkedCase:
    """47 training runs in six months: by the run, by the month, or on a machine of one's own."""
    runs, months = value("case47_runs"), int(value("case47_months"))
    per_run, price = value("case47_usd_per_run"), value("case47_purchase_usd")
    by_month_written = value("case47_by_month_written_usd")
    dedicated = dedicated_rent(value("case47_dedicated_usd"), months)
    bought = bought_with_overhead(price, months, resale_share=0.0)
    p5, faster = value("public_p5_usd_hour"), value("b200_over_h100_peak")
    hours_a_run = per_run / p5 / faster
    available = months * HOURS_PER_MONTH
    gpu_hours = per_run / value("case47_rent_gpu_usd")
    node_hours = gpu_hours / GPUS_PER_NODE
    nodes_exact = runs * node_hours / available
    nodes = units_for(runs / months, node_hours)
    return WorkedCase(
        "runs_47",
        "47 runs in six months, three ways to pay",
        "000",
        ("C040", "C041", "C042", "C043", "C044", "C045", "C046", "C047"),
        (
            CaseRow(
                "By the run",
                value("case47_by_run_written_usd"),
                runs * per_run,
                "USD",
                "47 × 12,400: right.",
            ),
            CaseRow(
                "By the month", by_month_written, float(dedicated.total), "USD", "6 × 9,600: right."
            ),
            CaseRow(
                "Bought, with overhead",
                price,
                float(bought.total),
                "USD",
                "The article's own 30% a year adds 42,750 in six months.",
            ),
            CaseRow("Hours a run may take on one node", None, available / runs, "h"),
            CaseRow(
                "Node used, at the public price of a run",
                None,
                runs * hours_a_run / available,
                "share",
                "12,400 buys 225 h of eight H100, or 99 h of eight B200: more than one node gives.",
            ),
            CaseRow(
                "Nodes, at the article's price of a GPU-hour",
                1,
                nodes_exact,
                "nodes",
                f"12,400 at 3.50 is 443 h of a node, so {nodes} whole nodes.",
            ),
            CaseRow(
                "By the month, at that many nodes",
                by_month_written,
                nodes_exact * float(dedicated.total),
                "USD",
                "Capacity decides: the article compares different amounts of work.",
            ),
        ),
        "A monthly price is only comparable when the machines can do the work in the month.",
    )


def break_even_runs() -> WorkedCase:
    """From how many runs a month on a commitment or a purchase pays."""
    per_run, monthly = value("case47_usd_per_run"), value("case47_dedicated_usd")
    price = value("case47_purchase_usd")
    overhead = price * value("article_overhead_per_year") / 12
    rent_or_run = runs_per_month(monthly, per_run).value
    buy_mark = value("mark_runs_buy")
    against_runs = months_to_pay_back(price, buy_mark * per_run - overhead).value
    against_rent = months_to_pay_back(price, monthly - overhead).value
    return WorkedCase(
        "break_even_runs",
        "Below 5 runs on demand, above 20 buy",
        "000",
        ("C048", "C049", "C050"),
        (
            CaseRow(
                "Dedicated beats on demand from",
                value("mark_runs_rent"),
                rent_or_run,
                "runs/month",
                "9,600 / 12,400. Five would need $1,920 a run.",
            ),
            CaseRow(
                "Cost of a run at which five is right",
                None,
                monthly / value("mark_runs_rent"),
                "USD",
            ),
            CaseRow(
                "Dedicated rent at which five is right",
                None,
                value("mark_runs_rent") * per_run,
                "USD/month",
                "Six times the price of the same article.",
            ),
            CaseRow(
                "Purchase paid back in a year from",
                buy_mark,
                (price / 12 + overhead) / per_run,
                "runs/month",
                "(23,750 + 7,125) / 12,400.",
            ),
            CaseRow("The same without overhead", None, price / 12 / per_run, "runs/month"),
            CaseRow(
                "Payback at 20 runs a month, against on demand",
                value("payback_written_months"),
                against_runs,
                "months",
                "285,000 / (20 × 12,400 − 7,125).",
            ),
            CaseRow(
                "The same payback without overhead",
                None,
                months_to_pay_back(price, buy_mark * per_run).value,
                "months",
            ),
            CaseRow(
                "Payback against dedicated rent",
                value("payback_written_months"),
                against_rent,
                "months",
                "285,000 / (9,600 − 7,125): the number of runs plays no part.",
            ),
            CaseRow(
                "The same with Option C's running cost",
                None,
                months_to_pay_back(price, monthly - value("case47_option_c_running_usd")).value,
                "months",
            ),
            CaseRow(
                "The same without running cost",
                None,
                months_to_pay_back(price, monthly).value,
                "months",
            ),
            CaseRow(
                "Hours left for each of 20 runs on one node",
                None,
                HOURS_PER_MONTH / buy_mark,
                "h",
                "A plan above one node's capacity needs a second one.",
            ),
        ),
        "The break-even depends on what buying is compared with; always show each alternative.",
    )
