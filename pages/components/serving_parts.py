"""The parts of the serving page beside its pictures: figures, tables, sentences."""

from __future__ import annotations

import streamlit as st

from engine.assessment import ACQUISITION_LABELS
from engine.catalogue import load_catalogue
from engine.cost.api_prices import Buying
from engine.estimate.serving_frontier import Check
from engine.estimate.serving_plan import ServingOption
from engine.explain import serving_words as words
from engine.explain.serving import ServingReport
from engine.explain.serving_cases import serving_cases
from engine.explain.serving_pictures import side_by_side
from pages.components import labels, shell
from pages.components.labels import money, plain
from pages.components.serving_inputs import OF
from pages.components.serving_report import simulate
from pages.components.tiles import tile

SHOWN = 8  # options and offers in a table before the rest


def figures(report: ServingReport, option: ServingOption) -> None:
    """The figures of the plan, each with its range or its second value."""
    usd, seen = option.usd_per_month, option.at_peak
    of100 = f"{report.ask.targets.percentile * 100:g} of 100"
    with st.grid(columns=4, min_column_width=160):
        tile("A month", money(usd.likely), f"{money(usd.low)} to {money(usd.high)}",
              "The range holds in 8 of 10 cases: capacity and price together")  # fmt: skip
        tile("First token", words.seconds(seen.ttft_target_s),
              f"99%: {words.seconds(seen.ttft_p99_s)}",
              f"For {of100} requests at the peak of the day; the mean is "
              f"{words.seconds(seen.ttft_mean_s)}")  # fmt: skip
        tile("Further token", words.seconds(seen.tpot_mean_s),
              f"99%: {words.seconds(seen.tpot_p99_s)}",
              "On average at the peak, and for the slowest answer of a hundred")  # fmt: skip
        tile("Million out", money(option.usd_per_million_out),
              f"in: {money(option.usd_per_million_in)}",
              "Dollars for a million tokens written, and read: the month's cost by the time that "
              "answers and prompts take")  # fmt: skip


def simulation(report: ServingReport, check: Check | str | None) -> None:
    """A button that simulates the plan, and what came out of it the last time.

    report : as the closed form has it, for a simulation corrects nothing but that
    """
    pressed = st.button(
        "Simulate this plan", icon=":material/play_arrow:",
        help="Thousands of requests at the peak, one by one, through one replica",
    )  # fmt: skip
    if pressed:
        simulate(report)
        st.rerun()  # what a simulation corrects stands above its button
    if isinstance(check, str):
        st.error(plain(check), icon=":material/error:")
    elif check is not None:
        show = st.success if check.holds else st.warning
        show(plain(words.checked(check, report)))


def compared(report: ServingReport) -> None:
    """The cheapest GPU and the cheapest CPU plan beside each other."""
    gpu, cpu = side_by_side(report.answer)
    st.subheader(plain(words.gpu_or_cpu(gpu, cpu)), anchor=False)
    left, right = st.columns(2, gap="large")
    for cell, title, option in ((left, "GPU", gpu), (right, "CPU", cpu)):
        with cell, st.container(border=True, height="stretch"):
            st.markdown(f"**{title}**")
            if option is None:
                nearest = _nearest(report, title.lower())
                st.markdown(plain(nearest or "None is offered on these terms."))
                continue
            _summary(option, report)


def _summary(option: ServingOption, report: ServingReport) -> None:
    usd, seen, c = option.usd_per_month, option.at_peak, option.candidate
    st.markdown(plain(f"{words.machines(option.machines, c.machine.label)}"))
    st.table(
        {
            "A month": plain(f"{money(usd.likely)} ({money(usd.low)} to {money(usd.high)})"),
            "1,000 requests": plain(words.thousand(option, report)),
            "First token": f"{words.seconds(seen.ttft_target_s)}",
            "Further token": f"{words.seconds(seen.tpot_mean_s)}",
            "Without batches": plain(words.without_batches(option, report)),
            "One carries": plain(words.per_second(float(c.capacity.requests_per_s))),
            "Price": plain(price(option)),
        },
        border="horizontal",
    )
    for note in (*c.capacity.notes, words.doubtful(option)):
        if note:
            st.caption(plain(f"{note[0].upper()}{note[1:].removesuffix('.')}."))


def price(option: ServingOption) -> str:
    """The price of one unit with its provider, its terms and its age."""
    machine = option.candidate.machine
    unit = "GPU" if machine.hardware == "gpu" else "server"
    tag = machine.price
    terms = "" if tag.as_of is None else f", {ACQUISITION_LABELS[tag.terms]}"
    return f"{money(machine.usd_per_unit_hour.likely)} an hour a {unit}, {tag.provider}{terms}" + (
        f", {labels.age(tag.age_days)}" if tag.as_of is not None else ""
    )


def _nearest(report: ServingReport, hardware: str) -> str:
    """What the best of a kind would do, where none meets the targets."""
    refused = [r for r in report.answer.refused if r.machine.hardware == hardware]
    fitting = [r for r in refused if r.floor != "memory"]
    if not refused:
        return ""
    best = min(fitting or refused, key=lambda r: (r.ttft_floor_s, r.tpot_floor_s))
    return f"{best.machine.label}: {words.refusal(best, report)}."


def options(report: ServingReport) -> None:
    """Every machine that meets the targets, and the one that is planned with."""
    found = report.answer.options
    names = {o.id: f"{o.candidate.machine.label} ({_told(report, o)})" for o in found}
    chosen = report.chosen.id if report.chosen is not None else ""
    st.selectbox(
        "Plan with", list(names), format_func=lambda i: names[i],
        key=shell.bind("serving_option", chosen), on_change=_take_option,
    )  # fmt: skip
    st.table([_row(report, o) for o in found[:SHOWN]], hide_index=True)
    if len(found) > SHOWN:
        with st.expander(f"{len(found) - SHOWN} more that meet the targets"):
            st.table([_row(report, o) for o in found[SHOWN:]], hide_index=True)


def refused(report: ServingReport) -> None:
    """The machines that don't meet the targets, each with what it would do at best."""
    found = report.answer.refused
    if not found:
        return
    with st.expander(f"{labels.count(len(found), 'machine')} that can't serve this, and why"):
        st.table(
            [
                {"Machine": plain(r.machine.label), "Why": plain(words.refusal(r, report))}
                for r in found
            ],
            hide_index=True,
        )


def _told(report: ServingReport, option: ServingOption) -> str:
    return option.candidate.layout.told(report.ask.shape.is_moe)


def _row(report: ServingReport, option: ServingOption) -> dict[str, str]:
    tag, seen = option.candidate.machine.price, option.at_peak
    return {
        "Machines": plain(
            f"{words.machines(option.machines, option.candidate.machine.label)}, "
            f"{_told(report, option)}"
        )
        + (f"  \n{labels.aged(tag.freshness, tag.age_days)}" if tag.as_of is not None else ""),
        "A month": plain(money(option.usd_per_month.likely)),
        "First token": words.seconds(seen.ttft_target_s),
        "Per token": words.seconds(seen.tpot_mean_s),
    }


def _take_option() -> None:
    shell.change_terms(OF, option=st.session_state["serving_option"])


def quantisation(report: ServingReport) -> None:
    """The cheapest plan at each precision, with what is known of the answers' quality."""
    st.table(
        [
            {
                "Weights": f"{row.bits:g} bits" + (" (yours)" if row.chosen else ""),
                "Cheapest": plain(words.quantised(row)),
                "A month": plain(money(row.option.usd_per_month.likely)) if row.option else "",
                "Answers": plain(words.quality(row.bits)),
            }
            for row in report.quantisation
        ],
        hide_index=True,
    )


def memory(option: ServingOption) -> None:
    """What fills the fullest device at the peak."""
    total = sum(item.gib for item in option.memory)
    rows = [
        {"Part": plain(item.name), "GiB": f"{item.gib:,.1f}"}
        for item in (*option.memory,)
    ]  # fmt: skip
    rows.append({"Part": "Together", "GiB": f"{total:,.1f} of {option.memory_limit_gib:,.1f}"})
    st.table(rows, hide_index=True)
    st.caption(
        plain(
            "A tenth of each device is left free. There is room for "
            f"{option.candidate.capacity.max_batch:,.0f} answers at once in a replica."
        )
    )


def apis(report: ServingReport) -> None:
    """Buying the same tokens, and what other models cost."""
    st.subheader(plain(words.api_title(report)), anchor=False)
    st.markdown(plain(words.api_message(report)))
    if report.apis:
        hosted = bool(report.answer.candidates)  # else there is nothing that could win
        st.table([_offer(b, report, wins=hosted) for b in report.apis], hide_index=True)
    with st.expander("Models of other sizes and of other makers"):
        st.caption("Another model gives other answers; these stand for the order of magnitude.")
        st.table([_offer(b, report, wins=False) for b in report.other_apis], hide_index=True)


def _offer(b: Buying, report: ServingReport, wins: bool = True) -> dict[str, str]:
    o, today = b.offer, report.today
    row = {
        "Offer": plain(f"{o.provider}, {o.model}"),
        "Million in, out": plain(f"{money(o.usd_per_million_in)}, {money(o.usd_per_million_out)}"),
        "A month": plain(money(b.usd_per_month)),
    }
    if wins:
        row["Hosting wins from"] = plain(words.wins_from(b))
    row["Price of"] = (
        f"{plain(labels.day(o.as_of))}  \n"
        f"{labels.aged(o.freshness(today), o.age_days(today))}"
    )  # fmt: skip
    return row


def zero(report: ServingReport) -> None:
    """Scaling to zero by each way to start, beside the always-on plan."""
    st.table(
        [
            {
                "A replica starts from": plain(row.start.title),
                "Takes": labels.duration(row.start.seconds.likely / 3600),
                "Requests that wait for it": labels.percent(row.result.cold_share),
                "A month": plain(money(row.usd_per_month)),
                "": plain(words.zero_verdict(row)),
            }
            for row in report.zero
        ],
        hide_index=True,
    )
    chosen = next(r for r in report.zero if r.start.way == shell.terms(OF).start.value)
    st.caption(plain(f"{chosen.start.title}: {words.chain(chosen)}."))
    st.caption(
        plain(
            f"{words.zero_beside(report)} Rent by the second is taken 1.5 times dearer "
            "than by the hour, on machines of your own not at all. To carry a rise of traffic "
            f"while a replica starts, keep {labels.count(report.warm_spare, 'replica')} warm "
            "beyond the need. Article 003 gives 15 to 45 s for a cold start and allows GPU "
            "endpoints only above 500 ms: see its case below."
        )
    )


def cases() -> None:
    """The articles' serving figures worked out again."""
    with st.expander(
        "The articles' serving figures, worked out again", icon=":material/menu_book:"
    ):
        st.table(
            [
                {
                    "Said": plain(f"{c.said} ({c.article})"),
                    "Comes out": plain(c.computed),
                    "": f"**{c.verdict}**  \n{plain(c.why)}",
                }
                for c in serving_cases(load_catalogue())
            ],
            hide_index=True,
        )


def assumptions(report: ServingReport) -> None:
    """Every number that the plan rests on, told or usual, with its source."""
    with st.expander("What this plan rests on", icon=":material/fact_check:"):
        st.table(
            [
                {
                    "Figure": words.RESOLVED[r.name],
                    "Value": plain(labels.quantity(r.value, r.unit)),
                    "Where from": plain(r.source) if not r.told else "your answer",
                }
                for r in report.resolved
            ],
            hide_index=True,
        )
        st.caption(
            plain(
                "GPU capacity: formulae fitted to public serving runs (the Accuracy page shows "
                "them), checked against event simulation. CPU capacity: shares of bandwidth and "
                "peak from MLPerf and llama.cpp runs, within a factor of three. Prices are list "
                "prices of the second cheapest provider, with the first and third as their range; "
                "egress and storage are small for text and left out."
            )
        )
