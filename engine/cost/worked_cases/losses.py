"""Hours that are paid and bring nothing: idle, corrupted, lost since the last checkpoint."""

from __future__ import annotations

from engine.cost.cash_flow import HOURS_PER_MONTH
from engine.cost.idle_budget import idle_budget
from engine.cost.parameters import value
from engine.cost.worked_cases.case import (
    GPUS_PER_NODE,
    CaseRow,
    WorkedCase,
)
from engine.estimate.reliability import (
    checkpoint_loss,
    fleet_mtbf,
    lost_hours_cost,
    silent_corruption_cost,
    young_interval,
)


def idle() -> WorkedCase:
    """15% idle on 64 GPUs at $4,800 a month."""
    part, written = value("idle_case_share"), value("idle_case_usd")
    gpus = value("idle_case_gpus")
    nodes = gpus / GPUS_PER_NODE

    def of(bill: float) -> float:
        return float(idle_budget(bill, part).usd_per_month)

    rent = value("case47_rent_gpu_usd") * gpus * HOURS_PER_MONTH
    owned = nodes * value("case47_purchase_usd") / value("resale_spread_months")
    return WorkedCase(
        "idle",
        "15% idle costs $4,800 a month",
        "000",
        ("C080", "C081", "C082"),
        (
            CaseRow("Bill that it implies", None, written / part, "USD/month"),
            CaseRow(
                "Price that it implies",
                None,
                written / part / (gpus * HOURS_PER_MONTH),
                "USD per GPU-hour",
                "Below every price in the same article.",
            ),
            CaseRow(
                "At 9,600 a node", written, of(nodes * value("case47_dedicated_usd")), "USD/month"
            ),
            CaseRow(
                "At 24,000 a node", written, of(nodes * value("case47_option_b_usd")), "USD/month"
            ),
            CaseRow("At 3.50 a GPU-hour", written, of(rent), "USD/month"),
            CaseRow("Owned, over 18 months", written, of(owned), "USD/month"),
        ),
        "Idle time costs its share of the plan's own bill.",
    )


def corruption() -> WorkedCase:
    """Three days of corrupted training that nobody noticed."""
    hours, gpus = value("corruption_days") * 24, value("idle_case_gpus")
    written = value("corruption_usd")
    rate = value("case47_rent_gpu_usd")
    implied = written / (hours * gpus)
    saved, months = value("corruption_saved_written_usd"), value("corruption_saved_months")
    checks = gpus * months * HOURS_PER_MONTH * implied * value("checkpoint_000_share")
    return WorkedCase(
        "corruption",
        "$18,000 for three unnoticed days",
        "000",
        ("C065", "C066", "C067", "C070", "C071"),
        (
            CaseRow("GPU-hours lost", None, hours * gpus, "GPU-h"),
            CaseRow("Price that it implies", None, implied, "USD per GPU-hour"),
            CaseRow(
                "At 3.50 a GPU-hour",
                written,
                float(silent_corruption_cost(1.0, hours, gpus * rate)),
                "USD",
                "Consistent: the price is six times the one that the idle budget implies.",
            ),
            CaseRow("Events that 200,000 are", None, saved / written, "events"),
            CaseRow("Checks at 2% in 18 months", None, checks, "USD", "64 GPUs at 3.91."),
            CaseRow("Saved, net of the checks", saved, saved - checks, "USD"),
        ),
        "Loss = rate of silent errors × time until noticed × price of the fleet.",
    )


def lost_hours() -> WorkedCase:
    """Eight hours without a checkpoint."""
    hours, rate = value("lost_hours"), value("public_p5_usd_hour")
    written = value("lost_hours_usd")
    return WorkedCase(
        "lost_hours",
        "Eight lost hours cost $3,600",
        "003",
        ("C294",),
        tuple(
            CaseRow(
                f"{nodes} nodes" if nodes > 1 else "1 node",
                written if nodes == 1 else None,
                float(lost_hours_cost(nodes, rate, hours)),
                "USD",
                "8 × 450 is one node at the slipped rate." if nodes == 1 else "",
            )
            for nodes in (1, 4, 16)
        ),
        "Nodes × rate × hours since the last checkpoint.",
    )


def checkpoints() -> WorkedCase:
    """Checkpoints every 15 minutes, or every 6 hours."""
    mtbf = value("llama3_mtbf_gpu_hours")
    every_003, share_003 = value("checkpoint_003_minutes") / 60, value("checkpoint_003_share")
    every_000, share_000 = value("checkpoint_000_hours"), value("checkpoint_000_share")
    fleet_003 = float(fleet_mtbf(mtbf, value("checkpoint_003_gpus")))
    fleet_000 = float(fleet_mtbf(mtbf, value("idle_case_gpus")))
    rows = []
    for name, every, part, fleet in (
        ("32 GPUs", every_003, share_003, fleet_003),
        ("64 GPUs", every_000, share_000, fleet_000),
    ):
        save = part * every
        best = float(young_interval(save, fleet))
        rows += [
            CaseRow(f"{name}: interval", every, best, "h", "√(2 × save × MTBF)."),
            CaseRow(
                f"{name}: lost",
                float(checkpoint_loss(save, every, fleet)),
                float(checkpoint_loss(save, best, fleet)),
                "share of time",
            ),
        ]
    return WorkedCase(
        "checkpoints",
        "Checkpoints every 15 minutes, or every 6 hours",
        "000 and 003",
        ("C068", "C070", "C295", "C296"),
        tuple(rows),
        "The best interval follows from the save's stall, the fleet and its failure rate.",
    )
