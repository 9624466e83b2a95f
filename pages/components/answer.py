"""The parts of an answer, in the order in which a person asks for them; nothing is computed."""

from __future__ import annotations

import streamlit as st

from engine.assessment import (
    ACQUISITION_LABELS,
    PLACEMENT_LABELS,
    SCALE_LABELS,
    Assessment,
    Option,
    Reason,
)
from engine.estimate.estimate import Estimate
from pages.components import charts, labels, shell
from pages.components.labels import plain
from pages.components.tiles import tile

SHOWN = 6  # options side by side
WORTH_ASKING = 0.01  # chance from which an open question is shown, if it is worth a dollar


def headline(answer: Assessment) -> None:
    """The sentence in plain words, how sure, and the four figures behind it."""
    with st.container(gap="xsmall"):
        named = f" for {plain(answer.workload.name)}" if answer.workload.name else ""
        st.caption(f"Recommendation{named}")
        st.title(plain(answer.sentence), anchor=False)
        st.markdown(plain(answer.sureness))
    figures(answer)
    st.caption(
        f"A range holds in 8 of 10 cases; {answer.draws:,} cases were drawn over all that is "
        f"uncertain. Worked out on {labels.day(answer.today)}. {plain(best_time(answer))}"
    )
    if answer.warnings:
        st.warning("  \n".join(map(plain, answer.warnings)), icon=":material/warning:")


def best_time(answer: Assessment) -> str:
    """What the figure of the time means, where its short name leaves that open."""
    label = answer.best.time_label
    return f"{label} {labels.value(answer.best.time)}. " if "," in label else ""


def figures(answer: Assessment, columns: int = 4) -> None:
    """The four figures: cost, time, chance, cost of a useful hour."""
    best = answer.best
    with st.grid(columns=columns, min_column_width=160):
        _tile("Cost a month", best.usd_per_month)
        _tile(best.time_label.partition(",")[0], best.time)
        for placement, share in answer.placement_probability[:1]:
            tile(
                f"{PLACEMENT_LABELS[placement]} is the best in",
                labels.percent(share),
                f"this very one {labels.percent(best.probability_best)}",
            )
        if best.usd_per_useful_hour is not None:
            _tile("Cost of a useful hour", best.usd_per_useful_hour)


def _tile(label: str, estimate: Estimate) -> None:
    # The label says per what; the figure and its range need not.
    figure = labels.value(estimate).partition(" a ")[0]
    tile(label, figure, labels.interval(estimate).partition(" a ")[0])


def reasons(answer: Assessment) -> None:
    """The three strongest reasons, and the strongest one against."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.subheader("Why", anchor=False)
        for reason in answer.reasons_for[:3]:
            _reason(reason, ":material/check:")
    with right:
        st.subheader("What speaks against it", anchor=False)
        if answer.reason_against is None:
            st.markdown("Nothing that the engine weighs.")
        else:
            _reason(answer.reason_against, ":material/priority_high:")


def _reason(reason: Reason, icon: str) -> None:
    with st.container(gap="xxsmall"):
        st.markdown(f"{icon} {plain(reason.text)}")
        counted = f"{labels.points(reason.points)} points · " if reason.counted else ""
        st.caption(f"{counted}{plain(reason.source)}")


def stages(answer: Assessment) -> None:
    """Which stage of the job runs where."""
    st.subheader("Which part runs where", anchor=False)
    cards = st.grid(columns=3, min_column_width=240, border=True)
    for plan in answer.best.stages:
        facts = [
            labels.count(plan.machines, "machine"),
            ACQUISITION_LABELS.get(plan.acquisition, plan.acquisition),
            f"busy {labels.hours(plan.busy_hours_per_month)} a month "
            f"({labels.percent(plan.utilization)})",
            f"{labels.number(plan.side_by_side, digits=2)} runs side by side"
            if plan.side_by_side > 1.005
            else "",
            f"network: {plan.network}" if plan.network else "",
            plan.note,
        ]
        with cards.container(gap="xsmall"):
            st.caption(plain(plan.stage))
            st.markdown(f"**{plan.units:,} × {plain(plan.name)}**")
            st.markdown(plain(f"{labels.money(plan.usd_per_month.likely)} a month"))
            st.caption(plain("; ".join(filter(None, facts))))


def alternatives(answer: Assessment) -> None:
    """The options side by side: what each costs, takes, and how often it would be the best."""
    st.subheader("The alternatives side by side", anchor=False)
    shown = rivals(answer)
    charts.cost_ranges(shown)
    rows = [_alternative(option) for option in shown]
    rows[0] = {head: f"**{cell}**" for head, cell in rows[0].items()}
    table(rows, "The alternatives side by side, the recommended one first", marked=True)


def rivals(answer: Assessment) -> tuple[Option, ...]:
    """The recommendation, the best of every other placement and scale, then the next in rank."""
    allowed = [o for o in answer.options if not o.vetoes and o.id != answer.best.id]
    seen = {(answer.best.placement, answer.best.scale)}
    others = []
    for option in allowed:
        if (option.placement, option.scale) not in seen:
            seen.add((option.placement, option.scale))
            others.append(option)
    others += [option for option in allowed if option not in others]
    return (answer.best, *others[: SHOWN - 1])


def _alternative(option: Option) -> dict[str, str]:
    kind = f"{PLACEMENT_LABELS[option.placement]}, {SCALE_LABELS[option.scale]}"
    cost = labels.money(option.usd_per_month.likely)
    interval = labels.interval(option.usd_per_month).removesuffix(" a month")
    return {
        "Option": plain(f"{option.label} ({kind})"),
        "Cost a month": plain(f"{cost} ({interval})"),
        "Time": labels.value(option.time),
        "Best in": labels.percent(option.probability_best),
    }


def changes(answer: Assessment) -> None:
    """What would change the answer, and which open question to answer next."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.subheader("What would change it", anchor=False)
        for flip in answer.flips:
            if flip.at is not None:
                now, at = (labels.quantity(x, flip.unit) for x in (flip.now, flip.at))
                with st.container(gap="xxsmall"):
                    st.markdown(f"**{plain(flip.title)}:** {plain(at)} instead of {plain(now)}")
                    st.caption(plain(f"then {flip.becomes}"))
        firm = [flip.title for flip in answer.flips if flip.at is None]
        if firm:
            st.caption(plain(f"No value within reason changes it: {', '.join(firm)}."))
    with right:
        st.subheader("Answer this next", anchor=False)
        telling = [
            question
            for question in answer.next_questions
            if question.chance_it_changes >= WORTH_ASKING and question.worth_usd_per_month >= 1
        ]
        if not telling:
            st.markdown("No open question would change it.")
        for question in telling[:3]:
            shell.link(shell.page_of(question.field), f"**{plain(question.title)}**")
            st.caption(
                f"Changes the answer in {labels.percent(question.chance_it_changes)} of cases; "
                f"worth {plain(labels.money(question.worth_usd_per_month))} a month"
            )


def ruled_out(answer: Assessment) -> None:
    """What a hard constraint rules out, with its number."""
    if answer.ruled_out:
        st.subheader("Ruled out", anchor=False)
        for veto in answer.ruled_out:
            with st.container(gap="xxsmall"):
                st.markdown(f":material/block: **{plain(veto.rules_out)}:** {plain(veto.reason)}")
                st.caption(plain(veto.source))


def table(rows: list[dict[str, str]], alt: str, *, marked: bool = False) -> None:
    """A table of texts that a board can read and a browser can print.

    Five short columns at most: on a phone a wider one would scroll, out of a keyboard's reach.
    `marked` says that the cells are Markdown already; else they show as they are.
    """
    if not rows:
        st.markdown("Nothing to show.")
        return
    st.table(
        rows if marked else [{head: plain(cell) for head, cell in row.items()} for row in rows],
        border="horizontal",
        hide_index=True,
        alt=alt,
    )
