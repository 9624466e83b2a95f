"""The articles' money cases: as written, corrected, and why they differ.

The inputs are rows of data/cost_parameters.csv with the claim they come from; the corrections go
through the same functions as any other plan. A row without a written figure is one that the article
leaves out; a row without a correction is as written and right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.cost.break_even import Range, months_to_pay_back, runs_per_month, utilization
from engine.cost.cash_flow import HOURS_PER_MONTH, HOURS_PER_YEAR, CashFlow
from engine.cost.idle_budget import idle_budget
from engine.cost.migration import Migration, assess, runs_where_renting_is_the_cheaper
from engine.cost.monthly import monthly_cost, units_for
from engine.cost.network import fat_tree, rail_optimised
from engine.cost.own import Ownership
from engine.cost.parameters import cost_parameters, value
from engine.cost.rent import Rental
from engine.estimate.reliability import (
    checkpoint_loss,
    fleet_mtbf,
    lost_hours_cost,
    silent_corruption_cost,
    young_interval,
)

GPUS_PER_NODE = 8


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One figure of a case: the article's and the engine's. None is absent."""

    label: str
    written: float | None
    corrected: float | None
    unit: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class WorkedCase:
    """A case of the articles with its figures and what follows from them."""

    id: str
    title: str
    article: str
    claims: tuple[str, ...]
    rows: tuple[CaseRow, ...]
    lesson: str

    def row(self, label: str) -> CaseRow:
        """The row with this label."""
        return next(row for row in self.rows if row.label == label)


# --- article 000: a project of 47 runs, and a machine of 285,000


def runs_47() -> WorkedCase:
    """47 training runs in six months: by the run, by the month, or on a machine of one's own."""
    runs, months = value("case47_runs"), int(value("case47_months"))
    per_run, price = value("case47_usd_per_run"), value("case47_purchase_usd")
    by_month_written = value("case47_by_month_written_usd")
    dedicated = _dedicated(value("case47_dedicated_usd"), months)
    bought = _bought_with_overhead(price, months, resale_share=0.0)
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
                "Purchase paid back in a year from",
                buy_mark,
                (price / 12 + overhead) / per_run,
                "runs/month",
                "(23,750 + 7,125) / 12,400.",
            ),
            CaseRow(
                "Payback at 20 runs a month, against on demand",
                value("payback_written_months"),
                against_runs,
                "months",
                "285,000 / (20 × 12,400 − 7,125).",
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


def resale() -> WorkedCase:
    """A machine sold at 55% after 12 months: what a month of owning costs."""
    price, kept = value("case47_purchase_usd"), value("resale_share_12")
    written = value("resale_month_written_usd")
    age, spread = int(value("resale_months")), int(value("resale_spread_months"))

    def a_month(months: int, share: float, overhead: bool = True) -> float:
        rate = value("article_overhead_per_year") if overhead else 0.0
        own = Ownership(price, maintenance_share_per_year=rate, resale_share=share)
        return float(monthly_cost(own, "buy", 1, HOURS_PER_MONTH, months).per_month)

    return WorkedCase(
        "resale",
        "$7,125 a month after resale, cheaper than any rental",
        "000",
        ("C091", "C095", "C096", "C097", "C098"),
        (
            CaseRow(
                "Resale after 12 months", value("resale_written_usd"), kept * price, "USD", "Right."
            ),
            CaseRow(
                "Loss a month over 12 months",
                written,
                a_month(age, kept, overhead=False),
                "USD/month",
                "The article spreads a 12-month loss over 18 months.",
            ),
            CaseRow(
                "The same loss over 18 months", written, a_month(spread, kept, False), "USD/month"
            ),
            CaseRow("12 months, with the 30% overhead", None, a_month(age, kept), "USD/month"),
            CaseRow(
                "18 months, 55% still assumed, with overhead",
                None,
                a_month(spread, kept),
                "USD/month",
            ),
            CaseRow("18 months, no resale, with overhead", None, a_month(spread, 0.0), "USD/month"),
            CaseRow(
                "Depreciation over 18 months, no resale",
                value("option_c_depreciation_usd"),
                price / spread,
                "USD/month",
            ),
        ),
        "Resale is taken at the horizon's own age, and the running cost stands beside it.",
    )


def running_cost() -> WorkedCase:
    """What an owned node costs to run: three figures in two articles."""
    price = value("case47_purchase_usd")
    own = Ownership(
        price,
        kw_per_unit=value("dgx_b200_max_kw"),
        idle_power_share=1.0,
        usd_per_kwh=value("cluster_usd_per_kwh"),
        pue=value("case_pue"),
    )
    power = monthly_cost(own, "buy", 1, HOURS_PER_MONTH, 1).section_total("running")
    return WorkedCase(
        "running_cost",
        "30% a year, or 2,400 a month",
        "000",
        ("C050", "C090"),
        (
            CaseRow(
                "30% of the price a year",
                None,
                price * value("article_overhead_per_year") / 12,
                "USD/month",
            ),
            CaseRow(
                "Power and cooling alone",
                value("case47_option_c_running_usd"),
                float(power),
                "USD/month",
                "14.3 kW × 730 h × 0.12 × PUE 1.3.",
            ),
        ),
        "Power, space, maintenance and staff are rows of their own; 30% stands beside as a mark.",
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
    return WorkedCase(
        "corruption",
        "$18,000 for three unnoticed days",
        "000",
        ("C065", "C066", "C067", "C071"),
        (
            CaseRow("GPU-hours lost", None, hours * gpus, "GPU-h"),
            CaseRow("Price that it implies", None, written / (hours * gpus), "USD per GPU-hour"),
            CaseRow(
                "At 3.50 a GPU-hour",
                written,
                float(silent_corruption_cost(1.0, hours, gpus * rate)),
                "USD",
                "Consistent: the price is six times the one that the idle budget implies.",
            ),
        ),
        "Loss = rate of silent errors × time until noticed × price of the fleet.",
    )


# --- article 003: clusters of H100


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


def cluster_16() -> WorkedCase:
    """Sixteen nodes at 6.2 million, and half a million a year to run them."""
    nodes = int(value("cluster_nodes"))
    switch, radix = value("cluster_switch_usd"), int(cost_parameters()["switch_radix"].likely)
    ports = int(cost_parameters()["nics_per_gpu_machine"].likely)
    rails, tree = rail_optimised(nodes, ports, radix), fat_tree(nodes, ports, radix)
    listed = _h100_cluster(nodes, 0)
    capital = float(monthly_cost(listed, "buy", nodes, 730.0, 12).section_total("capital"))

    def running(racks: float, pue: float = 1.0) -> float:
        own = _h100_cluster(nodes, racks, pue)
        return float(monthly_cost(own, "buy", nodes, 730.0, 12).section_total("running"))

    power, racks = running(0), nodes * value("cluster_node_kw") / value("cluster_rack_kw")
    written, year = value("cluster_written_usd"), value("cluster_running_written_usd")
    rack_usd = value("cluster_rack_usd_year")
    return WorkedCase(
        "cluster_16",
        "Sixteen nodes for 6.2 million",
        "003",
        ("C236", "C237", "C238", "C239", "C240", "C241", "C242"),
        (
            CaseRow(
                "Capital, as itemised",
                written,
                capital,
                "USD",
                "16 × 320,000 + 2 × 45,000; the rest is not listed.",
            ),
            CaseRow("Not listed", None, written - capital, "USD"),
            CaseRow("Not listed, over the itemised sum", None, written / capital - 1, "share"),
            CaseRow(
                "Switches, rails only",
                value("cluster_switches"),
                rails.switches,
                "switches",
                "All 128 ports used, none left for storage.",
            ),
            CaseRow("Switches, full bisection", None, tree.switches, "switches"),
            CaseRow("Switches, full bisection, price", None, tree.switches * switch, "USD"),
            CaseRow(
                "Power of a node",
                value("logistics_power_usd_year"),
                power / nodes,
                "USD/year",
                "10 × 8,760 × 0.12.",
            ),
            CaseRow("Power of all nodes", None, power, "USD/year"),
            CaseRow(
                "Power and cooling, four racks",
                year,
                running(racks),
                "USD/year",
                "500,000 needs 27.7 racks for 16 nodes.",
            ),
            CaseRow("Power and cooling, a node a rack", year, running(nodes), "USD/year"),
            CaseRow("The same with PUE 1.3", year, running(nodes, value("case_pue")), "USD/year"),
            CaseRow("Racks that 500,000 needs", None, (year - power) / rack_usd, "racks"),
            CaseRow(
                "Payback against on demand, its own totals",
                value("mark_months_stable"),
                _months(written, value("cloud_year_written_usd") - year),
                "months",
                "6.2 / (7.9 − 0.5) years.",
            ),
            CaseRow(
                "Payback against three years reserved",
                value("mark_months_stable"),
                _months(written, value("cloud_3y_year_written_usd") - year),
                "months",
                "6.2 / (3.5 − 0.5) years.",
            ),
        ),
        "Every item is a row; what isn't listed is shown as a share, not hidden in the sum.",
    )


def client_20() -> WorkedCase:
    """Twenty nodes at 40% utilization for three years: cloud 22% cheaper?"""
    nodes, used = int(value("client_nodes")), value("client_share")
    months = int(value("client_years")) * 12
    hours = used * HOURS_PER_MONTH
    node_hours_year = value("cluster_nodes") * HOURS_PER_YEAR
    on_demand = value("cloud_year_written_usd") / node_hours_year
    reserved = value("cloud_3y_year_written_usd") / node_hours_year

    racks = nodes * value("cluster_node_kw") / value("cluster_rack_kw")
    parts = float(monthly_cost(_h100_cluster(nodes, racks), "buy", nodes, hours, months).total)
    scale = nodes / value("cluster_nodes")
    scaled = scale * (
        value("cluster_written_usd") + value("client_years") * value("cluster_running_written_usd")
    )
    staff = value("client_staff") * value("client_staff_usd_year") * value("client_years")

    def rent(usd: float, acquisition: str) -> CashFlow:
        if acquisition == "reserved_3y":
            return monthly_cost(Rental(usd), "reserved_3y", nodes, hours, months)
        return monthly_cost(Rental(usd), "on_demand", nodes, hours, months)

    all_hours = nodes * HOURS_PER_MONTH * months
    saving = 1 - value("client_saving_written")

    def share(owned: float) -> float | None:
        return utilization(owned / all_hours, on_demand).value

    return WorkedCase(
        "client_20",
        "Twenty nodes at 40%: the cloud is 22% cheaper",
        "003",
        ("C250", "C251", "C252", "C253"),
        (
            CaseRow("Owned, by parts", None, parts, "USD"),
            CaseRow("Owned, scaled from the 16 nodes", None, scaled, "USD"),
            CaseRow(
                "Cloud on demand, used hours",
                None,
                float(rent(on_demand, "on_demand").total),
                "USD",
            ),
            CaseRow(
                "Cloud reserved for three years",
                None,
                float(rent(reserved, "reserved_3y").total),
                "USD",
            ),
            CaseRow(
                "Cloud at 450 an hour",
                None,
                float(rent(value("cloud_hour_written_usd"), "on_demand").total),
                "USD",
            ),
            CaseRow(
                "Rent at which 22% holds, by parts",
                None,
                saving * parts / (all_hours * used),
                "USD per node-hour",
                "A specialist's price, not the article's.",
            ),
            CaseRow(
                "Rent at which 22% holds, scaled",
                None,
                saving * scaled / (all_hours * used),
                "USD per node-hour",
            ),
            CaseRow("Break-even use, by parts", used, share(parts), "share of hours"),
            CaseRow("Break-even use, scaled", used, share(scaled), "share of hours"),
            CaseRow(
                "The same with staff of two, by parts", used, share(parts + staff), "share of hours"
            ),
            CaseRow(
                "The same with staff of two, scaled", used, share(scaled + staff), "share of hours"
            ),
        ),
        "At 40% owning is the cheaper at these prices; compliance decided before the sum anyway.",
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


def purchase_prices() -> WorkedCase:
    """512 GPUs for 8 to 12 million, 100 CPU nodes for 200,000."""
    gpus = value("capex_gpus")
    nodes = gpus / GPUS_PER_NODE
    return WorkedCase(
        "purchase_prices",
        "512 H100 for 8 to 12 million",
        "001",
        ("C178", "C180", "C181"),
        (
            CaseRow("A GPU, low", None, value("capex_low_usd") / gpus, "USD per GPU"),
            CaseRow("A GPU, high", None, value("capex_high_usd") / gpus, "USD per GPU"),
            CaseRow(
                "The same GPUs in article 003's nodes",
                value("capex_high_usd"),
                nodes * value("cluster_node_usd"),
                "USD",
                "Before any network; the low figure is below the bare card.",
            ),
            CaseRow(
                "A CPU node", None, value("cpu_nodes_usd") / value("cpu_nodes"), "USD per node"
            ),
        ),
        "A purchase is a range from dated rows, and a quote replaces it.",
    )


CASES: tuple[Callable[[], WorkedCase], ...] = (
    runs_47,
    break_even_runs,
    dedicated_prices,
    option_a,
    resale,
    running_cost,
    idle,
    corruption,
    hourly_slip,
    lost_hours,
    cluster_16,
    client_20,
    logistics,
    checkpoints,
    purchase_prices,
)


def worked_cases() -> tuple[WorkedCase, ...]:
    """All cases, in the order of the articles."""
    return tuple(case() for case in CASES)


# --- helpers


def _dedicated(usd_per_month: float, months: int) -> CashFlow:
    rental = Rental(usd_per_month / HOURS_PER_MONTH)
    return monthly_cost(rental, "dedicated", 1, HOURS_PER_MONTH, months)


def _bought_with_overhead(usd: float, months: int, resale_share: float) -> CashFlow:
    own = Ownership(
        usd,
        maintenance_share_per_year=value("article_overhead_per_year"),
        resale_share=resale_share,
    )
    return monthly_cost(own, "buy", 1, HOURS_PER_MONTH, months)


def _h100_cluster(nodes: int, racks: float, pue: float = 1.0) -> Ownership:
    """A cluster of article 003: its node, its two switches, its power and its rack fee."""
    return Ownership(
        value("cluster_node_usd"),
        network_usd=value("cluster_switches") * value("cluster_switch_usd"),
        kw_per_unit=value("cluster_node_kw"),
        idle_power_share=1.0,
        usd_per_kwh=value("cluster_usd_per_kwh"),
        pue=pue,
        racks_usd_per_month=racks * value("cluster_rack_usd_year") / 12,
    )


def _months(upfront_usd: float, saved_usd_per_year: float) -> float | None:
    return months_to_pay_back(upfront_usd, saved_usd_per_year / 12).value
