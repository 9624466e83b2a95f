"""A job moved from CPU servers to GPUs, with its bill before and after."""

from __future__ import annotations

from engine.cost.break_even import Range
from engine.cost.cash_flow import HOURS_PER_MONTH, HOURS_PER_YEAR
from engine.cost.migration import Migration, assess, runs_where_renting_is_the_cheaper
from engine.cost.monthly import monthly_cost
from engine.cost.own import Ownership
from engine.cost.parameters import cost_parameters, value
from engine.cost.worked_cases.case import (
    CaseRow,
    WorkedCase,
)


def logistics() -> WorkedCase:
    """Route computation moved from 40 CPU nodes to 32 GPUs."""
    nodes, months = int(value("logistics_nodes")), int(value("logistics_months"))
    minutes = value("logistics_minutes_before"), value("logistics_minutes_after")
    before, after = value("logistics_usd_before"), value("logistics_usd_after")
    own = Ownership(
        value("cluster_node_usd"),
        network_usd=value("cluster_switches") * value("cluster_switch_usd"),
        kw_per_unit=value("cluster_node_kw"),
        usd_per_kwh=value("logistics_power_usd_year") / (value("cluster_node_kw") * HOURS_PER_YEAR),
        racks_usd_per_month=value("cluster_rack_usd_year") / 12,
    )
    owned = float(monthly_cost(own, "buy", nodes, HOURS_PER_MONTH, months).per_month)
    fleet = nodes * value("public_p5_usd_hour")
    per_run, runs = runs_where_renting_is_the_cheaper(after, fleet, minutes[1] / 60)
    overrun = cost_parameters()["migration_overrun"]
    move = assess(
        Migration(
            usd_before=before,
            usd_after=after,
            hours_before=minutes[0] / 60,
            hours_after=minutes[1] / 60,
            runs_per_month=runs,
            engineers=1,
            planned_months=value("logistics_engineer_months") / overrun.high,
            usd_per_engineer_month=value("client_staff_usd_year") / 12,
            overrun=Range(overrun.low, overrun.likely, overrun.high),
        )
    )
    return WorkedCase(
        "logistics",
        "45 minutes to 3.5, for 42,000 instead of 38,000 a month",
        "003",
        ("C298", "C299", "C303", "C304", "C305", "C306", "C307"),
        (
            CaseRow(
                "New cluster a month",
                after,
                owned,
                "USD/month",
                "(4 × 320,000 + 90,000) / 36 + (4 × 10,500 + 12,000) / 12, without staff.",
            ),
            CaseRow("Speed-up", value("speedup_written"), move.speedup, "ratio", "45 / 3.5."),
            CaseRow("Saved in cash", None, move.cash_saved_usd_per_month, "USD/month"),
            CaseRow(
                "Payback in cash",
                None,
                move.payback_month,
                "months",
                "Never: the bill rises. Only speed or freed capacity can pay for it.",
            ),
            CaseRow("Renting four nodes for a run", None, per_run, "USD per run"),
            CaseRow(
                "Renting is the cheaper below",
                None,
                runs,
                "runs/month",
                "The article leaves this out.",
            ),
            CaseRow("Cheaper per computation", None, move.speedup / (after / before), "ratio"),
        ),
        "Ask what an hour saved is worth, and what the same run costs on rented machines.",
    )
