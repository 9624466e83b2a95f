"""The parts of the costs page, in the order in which they are read; nothing is computed."""

from __future__ import annotations

import streamlit as st

from engine.cost.idle_budget import USES
from engine.costing import view
from engine.costing.log import LIMIT_BYTES, read_log
from engine.costing.model import CostReport, Way
from engine.costing.runs_axis import runs_axis
from engine.errors import ClusterFitError
from engine.report import words
from engine.report.currency import Currency
from engine.workload.cost_terms import Cooling, CostTerms, DemandBy, Site
from pages.components import answer, cost_charts, labels, shell, term_fields
from pages.components.labels import plain
from pages.components.tiles import tile

COSTS = "costs"
# Rows named after hardware need a wider column, which a phone can't hold in place as it scrolls.
LONG_ITEM, WIDE_PX = 29, 330
SITES = {Site.colocation: "a colocation", Site.own_room: "a room of your own"}
COOLINGS = {
    Cooling.automatic: "whatever the racks need",
    Cooling.air: "air",
    Cooling.liquid: "liquid",
}
DEMANDS = {
    DemandBy.plan: "the plan",
    DemandBy.constant: "a constant number",
    DemandBy.schedule: "a schedule",
    DemandBy.monthly: "a list of months",
    DemandBy.log: "a log",
}


def choose(report: CostReport) -> None:
    """Which hardware and which way the page takes apart."""
    left, right = st.columns(2)
    labels_of = dict(report.choices)
    with left:
        st.selectbox(
            "Hardware",
            list(labels_of),
            format_func=labels_of.__getitem__,
            key=shell.bind("cost_hardware", report.hardware),
            on_change=_choose_hardware,
        )
    priced = [w for w in view.ordered(report.ways) if w.headline is not None]
    names = {w.id: view.named(w) for w in priced}
    with right:
        st.selectbox(
            "Way to pay",
            list(names),
            format_func=names.__getitem__,
            key=shell.bind("cost_way", report.chosen.id),
            on_change=_choose_way,
        )


def _choose_hardware() -> None:
    shell.change_terms(COSTS, hardware=st.session_state["cost_hardware"], way="")


def _choose_way() -> None:
    shell.change_terms(COSTS, way=st.session_state["cost_way"])


def figures(way: Way, currency: Currency) -> None:
    """The sums over the chosen way's table."""
    with st.grid(columns=3, min_column_width=180):
        for label, figure, interval in view.per_unit(way, currency):
            tile(label, figure, interval)
    for refusal in way.refusals:
        st.warning(plain(f"Ruled out: {refusal}."), icon=":material/block:")
    for note in way.notes:
        st.caption(plain(f"{note[0].upper()}{note[1:]}."))
    if way.deadline is not None:
        icon = ":material/check:" if way.deadline.feasible else ":material/warning:"
        st.markdown(f"{icon} {plain(way.deadline.text)}")


def all_ways(report: CostReport, currency: Currency) -> None:
    """Every way side by side, and why some can't be had."""
    cost_charts.ranges(view.ordered(report.ways), currency)
    answer.table(view.ways_table(report, currency), "Every way to pay with its sums")
    st.caption(
        plain(
            f"Over {labels.count(report.months, 'month')}. Today's value discounts later payments "
            f"at {report.discount_rate:.1%} a year. A range holds in 8 of 10 cases."
            + (f" {view.OTHER_PLACE}" if any(w.elsewhere for w in report.ways) else "")
        )
    )
    barred = [w for w in report.ways if w.refusals]
    if barred:
        with st.expander(
            f"Why {labels.count(len(barred), 'way')} can't be used", icon=":material/block:"
        ):
            for way in barred:
                st.markdown(f"**{plain(way.label)}**: {plain('; '.join(way.refusals))}")


def cash_flow(report: CostReport, currency: Currency) -> None:
    """The table behind the figures: every cost a row, sums under each section."""
    flow = report.chosen.flow
    if flow is None:
        st.markdown("This way has no price, so it has no table.")
        return
    long = report.months > 12
    by = st.segmented_control(
        "Columns", ["Years", "Months"], default="Years" if long else "Months",
        persist_state="session", key="cost_columns", required=True,
    )  # fmt: skip
    by_year = by == "Years"
    rows = view.cash_table(flow, currency, by_year)
    heads = view.periods(report.months, by_year)
    named = any(len(row.item) > LONG_ITEM for row in rows)
    money = st.column_config.NumberColumn(format="%,.2f")
    st.dataframe(
        [
            {
                "Section": row.section,
                "Item": row.item,
                **dict(zip(heads, row.amounts, strict=True)),
                "Total": row.total,
            }
            for row in rows
        ],
        hide_index=True,
        column_config={
            "Section": st.column_config.TextColumn(width=125),
            "Item": st.column_config.TextColumn(
                width=WIDE_PX if named else "medium", pinned=not named
            ),
            **dict.fromkeys((*heads, "Total"), money),
        },
        height="content",
    )
    st.caption(f"In {currency.code}. What is paid is positive, what comes in negative.")
    sourced = [row for row in rows if row.sources]
    if sourced:
        with st.expander("Where each row comes from", icon=":material/menu_book:"):
            for row in sourced:
                st.caption(f"**{plain(row.item)}**: {plain('; '.join(row.sources))}")
    if currency.note:
        st.caption(plain(currency.note))


def when_each_wins(report: CostReport, currency: Currency) -> None:
    """Break-evens, drawn and as a table, with the articles' marks beside them."""
    cost_charts.utilization(report, currency)
    for line in view.curves_told(report):
        st.caption(plain(line))
    rows = view.break_even_rows(report, currency)
    if rows:
        answer.table(rows, "Break-evens with their ranges, and the articles' marks")
        st.caption(
            "Ranges run from the ends at which the commitment does best to those at which it does "
            "worst. “Never” means that within the hours of a month, or five years, it does not "
            "happen."
        )
    else:
        st.markdown("There is no commitment here to compare with paying by the hour.")
    if report.wins.by_runs:
        st.subheader("By the number of runs", anchor=False)
        cost_charts.runs(report, currency)
        st.caption(plain(runs_axis(report.wins).told))
    st.subheader("By the months of use", anchor=False)
    st.markdown(plain(report.demand.stable))
    st.subheader("What has been paid by when", anchor=False)
    cost_charts.cumulative(report, [w for w in view.ordered(report.ways) if w.headline], currency)
    for line in view.paid_told(report):
        st.caption(plain(line))


def demand(report: CostReport, currency: Currency) -> None:
    """How much to commit: the user's demand, the best base and what it costs."""
    term_fields.term(COSTS, "demand_by", words=DEMANDS, widget="segments")
    terms: CostTerms = shell.terms(COSTS)
    seen = report.demand
    if terms.demand_by is DemandBy.constant:
        term_fields.term(COSTS, "demand_machines", placeholder="Needed")
    elif terms.demand_by is DemandBy.schedule:
        with st.grid(columns=3, min_column_width=180):
            for name in ("demand_machines", "hours_per_day", "days_per_week"):
                with st.container():
                    term_fields.term(COSTS, name, placeholder="Needed")
    elif terms.demand_by is DemandBy.monthly:
        _monthly(terms)
    elif terms.demand_by is DemandBy.log:
        _log(terms)
    st.caption(plain(f"One machine is {seen.machine}."))
    if seen.problem:
        st.info(plain(seen.problem), icon=":material/edit:")
        return
    cost_charts.demand(seen)
    st.markdown(plain(seen.statement))
    if seen.room:
        st.caption(plain(seen.room))
    rows = view.mix_rows(report, currency)
    if rows:
        answer.table(rows, "The best mix for each base, beside its two pure forms")
    for barred in view.mixes_barred(report):
        st.caption(plain(f"Left out: {barred}."))
    if rows:
        st.caption(plain(view.best_told(report)))


def _monthly(terms: CostTerms) -> None:
    st.text_input(
        "Machine-hours of each month, with commas between them",
        key=shell.bind("cost_months", _as_text(terms.monthly_hours)),
        on_change=_take_months,
        placeholder="1200, 1500, 900, 2200",
    )
    term_fields.complain(COSTS, "monthly_hours")
    term_fields.term(COSTS, "demand_machines", placeholder="Spread over the month")


def _as_text(hours: tuple[float, ...]) -> str:
    refused = shell.shown("monthly_hours", COSTS)
    if refused != hours:
        return str(refused)
    return ", ".join(words.number(h, digits=9).replace(",", "") for h in hours)


def _take_months() -> None:
    text = str(st.session_state["cost_months"])
    parts = [part.strip() for part in text.replace(";", ",").split(",") if part.strip()]
    try:
        shell.change_terms(COSTS, monthly_hours=tuple(float(part) for part in parts))
    except ValueError:
        shell.refuse_term(
            COSTS, "monthly_hours", text, "numbers are needed, with commas: 1200, 1500, 900"
        )


def _log(terms: CostTerms) -> None:
    given = st.file_uploader(
        f"A CSV with machines by the hour, or jobs with start and end (up to "
        f"{LIMIT_BYTES / 1e6:.0f} MB)",
        type=["csv", "txt", "tsv", "log"],
        key="cost_log",
        on_change=_take_log,
        help="As `sacct --parsable2 --format=Start,End,NNodes` writes it, or one number per hour",
    )
    term_fields.complain(COSTS, "log_levels")
    if given is not None:
        st.caption(plain(st.session_state.get("cost_log_said", "")))
    elif terms.log_levels:
        st.caption(
            f"The link carries a log of {labels.count(len(terms.log_levels), 'level')}; "
            "bring another file to replace it."
        )


def _take_log() -> None:
    given = st.session_state["cost_log"]
    if given is None:
        return
    try:
        found = read_log(given.getvalue(), given.name)
    except ClusterFitError as error:
        st.session_state["cost_log_said"] = ""
        shell.refuse_term(COSTS, "log_levels", given.name, str(error))
        return
    st.session_state["cost_log_said"] = f"{found.said[0].upper()}{found.said[1:]}."
    shell.change_terms(COSTS, log_levels=found.levels, log_shares=found.shares)


def owning(report: CostReport, currency: Currency) -> None:
    """The place, the people and what stands behind a purchase."""
    with st.grid(columns=3, min_column_width=200):
        for name, said in (("site", SITES), ("cooling", COOLINGS)):
            with st.container():
                term_fields.term(COSTS, name, words=said, widget="select")
        for name in (
            "usd_per_kwh", "pue", "available_kw", "delivery_months", "staff_fte",
        ):  # fmt: skip
            with st.container():
                term_fields.term(COSTS, name)
        with st.container():
            _machine_quote(report)
    found = [w for w in report.ways if w.owning is not None]
    if not found:
        reason = next((w.refusals[0] for w in report.ways if w.acquisition == "buy"), "")
        st.info(plain(f"There is nothing to own: {reason}."), icon=":material/info:")
        return
    way = next((w for w in found if not w.elsewhere), found[0])
    own = way.owning
    assert own is not None
    rows = [
        (f"{way.label}: machines", labels.count(own.machines, "machine")),
        ("Room", own.room or "enough"),
        ("Power at load", labels.number(own.kw, "kW")),
        ("Network", own.network),
        ("The same by rails", own.rails),
        ("First useful hour", f"after {labels.count(own.delivery_months, 'month')}"),
        ("Useful life", f"{labels.count(own.life_months, 'month')}, then sold"),
        (
            "Failures that stop work, a year",
            f"{words.number(own.failures_per_year.likely)} "
            f"({words.interval(own.failures_per_year)}); spares are a row of the table",
        ),
        ("People", labels.number(own.staff_fte, "FTE")),
        ("Paid before the first hour", currency.money(own.capital_usd)),
        (
            f"Resale after {labels.count(own.resale_months, 'month')}",
            f"{own.resale.likely:.0%} of the price ({own.resale.low:.0%} to {own.resale.high:.0%})",
        ),
        (
            "Running it, a year",
            f"{own.overhead_share:.0%} of the machines' price, itemised; the article says "
            f"{own.article_overhead_share:.0%}",
        ),
    ]
    answer.table(
        [{"What": what, "Comes to": text} for what, text in rows], "What stands behind a purchase"
    )
    if any(r for w in found for r in w.refusals):
        for way in found:
            for refusal in way.refusals:
                st.warning(plain(f"{way.label}: {refusal}."), icon=":material/block:")


def _machine_quote(report: CostReport) -> None:
    sku = report.machine_sku
    terms: CostTerms = shell.terms(COSTS)
    mine = terms.machine_usd if terms.machine_sku == sku else None
    st.number_input(
        f"Your quote for one machine of {report.machine_label} · USD",
        value=None,
        format="%.12g",
        placeholder="the table's price",
        key=shell.bind("cost_quote", mine),
        on_change=_take_quote,
        args=(sku,),
        disabled=not sku,
    )
    term_fields.complain(COSTS, "machine_usd")


def _take_quote(sku: str) -> None:
    usd = st.session_state["cost_quote"]
    shell.change_terms(COSTS, machine_sku=sku if usd else "", machine_usd=usd)


def idle(report: CostReport, currency: Currency) -> None:
    """The planned idle hours: what they cost and what they are for."""
    term_fields.term(COSTS, "idle_pct", placeholder=f"{report.idle_share:.0%}")
    bill = float(report.idle.usd_per_month)
    st.markdown(
        plain(
            f"{report.idle_share:.0%} of the hours, {report.idle.hours_per_month:,.0f} h a month, "
            f"are {currency.money(bill)} of this plan's own bill."
        )
    )
    answer.table(view.idle_rows(report, currency), "What the planned idle hours are used for")
    terms: CostTerms = shell.terms(COSTS)
    with st.expander("Change what they are used for", icon=":material/tune:"):
        st.caption("Shares of the idle hours; they are scaled to 100.")
        shares = [100 * float(report.idle.usd_by_use[use]) / bill if bill else 0 for use in USES]
        with st.grid(columns=4, min_column_width=140):
            for use, share in zip(USES, shares, strict=True):
                st.number_input(
                    view.USE_TITLES[use],
                    min_value=0.0,
                    max_value=100.0,
                    step=5.0,
                    key=shell.bind(f"cost_use_{use}", round(share, 1)),
                    on_change=_take_uses,
                )
        st.button(
            "Back to the article's uses",
            on_click=shell.change_terms,
            args=(COSTS,),
            kwargs={"idle_uses": ()},
            disabled=not terms.idle_uses,
        )


def _take_uses() -> None:
    given = [float(st.session_state[f"cost_use_{use}"]) for use in USES]
    shell.change_terms(COSTS, idle_uses=view.to_hundred(given))


def move(report: CostReport, currency: Currency) -> None:
    """Moving the job to this hardware: engineers, both systems, payback."""
    found = report.move
    if found is None:
        st.markdown(plain(report.move_note))
        leave(report, currency)
        return
    with st.grid(columns=4, min_column_width=170):
        for name in (
            "move_engineers", "move_months", "engineer_usd_per_month", "usd_per_hour_saved",
        ):  # fmt: skip
            with st.container():
                term_fields.term(COSTS, name)
    st.markdown(f"**{plain(found.text)}**")
    answer.table(
        [{"What": a, "Comes to": b} for a, b in view.move_rows(found, currency)],
        "What the move costs and brings",
    )
    st.caption(plain(view.RISKS))
    leave(report, currency)


def leave(report: CostReport, currency: Currency) -> None:
    """What it takes to leave the hardware half-way."""
    found = report.leaving
    if found is None:
        return
    when = labels.count(found.month, "month")
    st.subheader(plain(f"Leaving after {when}"), anchor=False)
    answer.table(
        [{"What": a, "Comes to": b} for a, b in view.leaving_rows(found, currency)],
        "What it takes to leave",
    )
    st.caption(plain(f"{report.chosen.label}, at half of {labels.count(report.months, 'month')}."))


def carbon(report: CostReport) -> None:
    """Electricity and its emissions, as a second line."""
    c = report.carbon
    st.markdown(
        plain(
            f"About {words.number(c.kwh_per_month)} kWh and "
            f"{words.number(c.kg_co2e_per_month.likely)} kg CO2e a month "
            f"({words.number(c.kg_co2e_per_month.low)} to "
            f"{words.number(c.kg_co2e_per_month.high)} kg). Grid: {c.region}."
        )
    )
    st.caption(plain(c.source))


def prices(report: CostReport, currency: Currency) -> None:
    """The prices that enter, each with its age and source."""
    for p in report.prices:
        with st.container(gap="xxsmall"):
            where = f"{p.provider}, {p.sku}, {p.region or 'any region'}"
            st.markdown(
                f"**{plain(currency.price(p.usd_per_unit_hour))} an hour** "
                f"{plain(words.terms(p.acquisition))} · {plain(where)} · {labels.price_age(p)}"
            )
            st.caption(plain(f"{words.day(p.as_of)}, {p.confidence} confidence: {p.source}"))
    shell.link(shell.PRICES[0], "All prices, and your own quotes", icon=":material/sell:")


def money_terms() -> None:
    """Currency, discount rate, and what a cloud's bill adds."""
    with st.grid(columns=4, min_column_width=170):
        for name in (
            "discount_pct", "stored_gb", "egress_gb", "block_days", "currency", "currency_rate",
            "currency_date",
        ):  # fmt: skip
            with st.container():
                term_fields.term(COSTS, name)
    with st.container(horizontal=True):
        term_fields.term(COSTS, "managed")
        term_fields.term(COSTS, "support")
