"""Owning: what a machine costs, fetches and takes to run, and clusters of them."""

from __future__ import annotations

from engine.cost.break_even import utilization
from engine.cost.cash_flow import HOURS_PER_MONTH, HOURS_PER_YEAR, CashFlow
from engine.cost.monthly import monthly_cost
from engine.cost.network import fat_tree, rail_optimised
from engine.cost.own import Ownership
from engine.cost.parameters import cost_parameters, value
from engine.cost.rent import Rental
from engine.cost.worked_cases.case import (
    GPUS_PER_NODE,
    CaseRow,
    WorkedCase,
    h100_cluster,
    months_to_recover,
    owned_power_usd_month,
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
    price, overhead = value("case47_purchase_usd"), value("article_overhead_per_year")
    nodes, cluster = int(value("cluster_nodes")), value("cluster_written_usd")
    racks = nodes * value("cluster_node_kw") / value("cluster_rack_kw")
    parts = monthly_cost(h100_cluster(nodes, racks), "buy", nodes, 730.0, 12)
    return WorkedCase(
        "running_cost",
        "30% a year, or 2,400 a month",
        "000 and 003",
        ("C050", "C090", "C242"),
        (
            CaseRow("30% of the price a year", None, price * overhead / 12, "USD/month"),
            CaseRow(
                "Power and cooling alone",
                value("case47_option_c_running_usd"),
                owned_power_usd_month(),
                "USD/month",
                "14.3 kW × 730 h × 0.12 × PUE 1.3.",
            ),
            CaseRow(
                "Article 003's parts, over its cluster's price",
                overhead,
                float(parts.section_total("running")) / cluster,
                "share a year",
                "Power and racks, without staff and maintenance.",
            ),
            CaseRow(
                "Article 003's total, over its cluster's price",
                overhead,
                value("cluster_running_written_usd") / cluster,
                "share a year",
            ),
        ),
        "Power, space, maintenance and staff are rows of their own; 30% stands beside as a mark.",
    )


def dgx_b200() -> WorkedCase:
    """A DGX B200 for 285,000."""
    written, public = value("case47_purchase_usd"), cost_parameters()["public_dgx_b200_usd"]
    rent = Rental(value("public_bare_metal_b200_usd") * GPUS_PER_NODE)
    year = float(monthly_cost(rent, "reserved_1y", 1, HOURS_PER_MONTH, 12).total)
    return WorkedCase(
        "dgx_b200",
        "A DGX B200 for 285,000",
        "000",
        ("C042",),
        (
            CaseRow("Public price, low end", written, public.low, "USD"),
            CaseRow("Public price, likely", written, public.likely, "USD", "Ask for a quote."),
            CaseRow("Public price, high end", written, public.high, "USD"),
            CaseRow(
                "A year of eight B200 bare metal",
                None,
                year,
                "USD",
                "One year's rent is more than the price that the article names.",
            ),
        ),
        "A purchase is a range with a source; your own quote takes its place.",
    )


def own_or_rent() -> WorkedCase:
    """At which use owning wins: 40, 50 or 60% of the hours, or 18 months?"""
    owned = value("public_h100_owned_usd_hour")
    build, premises = value("mark_share_build"), value("mark_share_on_premises")
    share = "share of hours"

    def above(rent: str) -> float | None:
        return utilization(owned, value(rent)).value

    return WorkedCase(
        "own_or_rent",
        "Own above 50 or 60% of the hours, rent below 40%",
        "001 and 003",
        ("C202", "C280", "C285", "C325", "C327"),
        (
            CaseRow("Against AWS on demand", premises, above("public_h100_aws_usd_hour"), share),
            CaseRow("Against Lambda", build, above("public_h100_lambda_usd_hour"), share),
            CaseRow(
                "Against the cheapest market",
                build,
                above("public_h100_market_usd_hour"),
                share,
                "Never: it rents for less than owning costs around the clock.",
            ),
        ),
        "The mark is the ratio of two prices: it moves with the alternative, so three are shown.",
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
                "The same GPUs, public all-in price",
                value("capex_high_usd"),
                gpus * value("public_h100_all_in_usd"),
                "USD",
            ),
            CaseRow(
                "A CPU node", None, value("cpu_nodes_usd") / value("cpu_nodes"), "USD per node"
            ),
        ),
        "A purchase is a range from dated rows, and a quote replaces it.",
    )


def cluster_16() -> WorkedCase:
    """Sixteen nodes at 6.2 million, and half a million a year to run them."""
    nodes = int(value("cluster_nodes"))
    switch, radix = value("cluster_switch_usd"), int(cost_parameters()["switch_radix"].likely)
    ports = int(cost_parameters()["nics_per_gpu_machine"].likely)
    rails, tree = rail_optimised(nodes, ports, radix), fat_tree(nodes, ports, radix)
    listed = h100_cluster(nodes, 0)
    capital = float(monthly_cost(listed, "buy", nodes, 730.0, 12).section_total("capital"))

    def running(racks: float, pue: float = 1.0) -> float:
        own = h100_cluster(nodes, racks, pue)
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
                "Cables and optics",
                None,
                nodes * value("public_cable_usd_node"),
                "USD",
                "One of the items that could fill what isn't listed.",
            ),
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
                months_to_recover(written, value("cloud_year_written_usd") - year),
                "months",
                "6.2 / (7.9 − 0.5) years.",
            ),
            CaseRow(
                "Payback against three years reserved",
                value("mark_months_stable"),
                months_to_recover(written, value("cloud_3y_year_written_usd") - year),
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
    parts = float(monthly_cost(h100_cluster(nodes, racks), "buy", nodes, hours, months).total)
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
