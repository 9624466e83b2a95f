"""The parts of the reliability page beside its pictures; nothing is computed."""

from __future__ import annotations

import streamlit as st

from engine.assessment import Assessment
from engine.explain import reliability, reliability_words
from engine.explain.reliability import Reliability
from engine.explain.reliability_curves import Shown
from engine.explain.reliability_curves import shown as work_out
from engine.explain.run_conditions import RunPlan, known
from engine.wording import number, spent
from engine.workload.reliability_terms import ReliabilityTerms
from pages.components import labels, reliability_charts, shell
from pages.components.labels import plain
from pages.components.term_fields import complain, copy, key_of
from pages.components.tiles import tile

ANY = ""
CENT = 0.01  # USD


def shown(answer: Assessment, terms: ReliabilityTerms) -> Shown:
    """Figures and curves of the run, worked out once for each workload, its terms and the day."""
    key = (answer.workload.model_dump_json(), shell.settings().model_dump_json(),
           answer.today.isoformat())  # fmt: skip
    return _shown(key, answer, terms)


@st.cache_resource(max_entries=128, show_spinner=False)
def _shown(key: tuple[str, ...], _answer: Assessment, _terms: ReliabilityTerms) -> Shown:
    # Frozen through and through, so all sessions may share one object.
    return work_out(_answer, _terms)


def _range(low: str, high: str) -> str:
    """A range in words; one whose ends read alike is said once."""
    return low if low == high else f"{low} to {high}"


def figures(found: Reliability) -> None:
    """The four figures of the run, each with the range that holds in 8 of 10 cases."""
    mtbf, useful, stops = found.mtbf, found.useful, found.stops
    days = [
        reliability_words.takes(d) for d in (found.days.low, found.days.likely, found.days.high)
    ]
    share, said = reliability_words.share_said, reliability_words.stops_said
    with st.grid(columns=4, min_column_width=170):
        tile(
            "A stop every" if found.plan.spot else "A failure every",
            labels.duration(mtbf.likely),
            _range(labels.duration(mtbf.low), labels.duration(mtbf.high)),
            "Mean time of work between two stops, spot interruptions among them",
        )
        tile(
            "Expected restarts",
            said(stops.likely),
            _range(said(stops.low), said(stops.high)),
            f"Failures {said(found.failures.likely)}, spot interruptions "
            f"{said(found.reclaims.likely)}",
        )
        tile(
            "Useful share",
            share(useful.likely),
            _range(share(useful.low), share(useful.high)),
            "Of the time that is paid: the goodput",
        )
        tile(
            "On the calendar",
            days[1],
            _range(days[0], days[2]),
            f"{labels.duration(found.plan.useful_hours)} of useful work",
        )
    if found.ends:
        low, high = (
            reliability_words.paid_said(usd, days)
            for usd, days in ((found.lost_usd.low, found.days.low),
                              (found.lost_usd.high, found.days.high))
        )  # fmt: skip
        st.caption(
            plain(
                f"Lost: {spent(found.lost_usd.likely)}, {low} to {high}, or "
                f"{labels.number(found.lost_hours.likely)} {found.plan.unit}-hours. A range holds "
                "in 8 of 10 cases."
            )
        )


def _up(share: float) -> str:
    """Availability; nines beyond the fifth are the model's, not the world's."""
    return f"{share:.3%}" if share < 0.99999 else "over 99.999%"


def _away(hours: float) -> str:
    return labels.duration(hours) if hours * 3600 >= 1 else "under a second"


def checkpoint(plan: RunPlan, found: Reliability) -> None:
    """How large a checkpoint is, and how fast it must be written to be done in time."""
    size = reliability.checkpoint_size(plan)
    if size is None:
        return
    bytes_, per_minute = size
    st.caption(
        plain(
            f"One checkpoint of {plan.params_b:g} billion parameters is about "
            f"{labels.number(bytes_ / 1e9)} GB; written in a minute that is "
            f"{labels.number(per_minute / 1e9)} GB/s for the whole fleet."
        )
    )


def choices(found: Reliability) -> None:
    """The run as set, and each way to guard it with what it changes."""
    rows = []
    for c in found.choices:
        ends = c.days < reliability_words.NEVER_DAYS
        saved = (
            ""
            if c.now or not ends
            else "it ends"
            if not found.ends
            else "within a cent"
            if abs(c.saves_usd) < CENT
            else f"{'+' if c.saves_usd < 0 else '−'}{labels.money(abs(c.saves_usd))}"
        )
        rows.append(
            {
                "Way": plain(c.title) + (f"  \n:gray[{plain(c.note)}]" if c.note else ""),
                "Useful": reliability_words.share_said(c.useful),
                "Takes": plain(reliability_words.takes(c.days)),
                "Paid, and what it changes": plain(reliability_words.paid_said(c.paid_usd, c.days))
                + (f"  \n{plain(saved)}" if saved else ""),
            }
        )
    st.table(rows, hide_index=True)


def spot_price(plan: RunPlan, terms: ReliabilityTerms) -> None:
    """The price below which spot machines make the run cheaper."""
    st.caption(
        plain(
            f"{reliability.spot_words(plan, terms)} Article 003 says that spot is fit for "
            "production if built for preemption (C313): at such a price, yes."
        )
    )


def published(found: Reliability) -> None:
    """What to compare with the diamonds of the picture by size."""
    same = found.comparable
    share = reliability_words.share_said
    st.caption(
        plain(
            "Published shares count as useful also the wait for the slowest machine and work that "
            f"an unseen corruption spoils: so counted, yours is {share(same.likely)} "
            f"({_range(share(same.low), share(same.high))}). OPT-175B's 58% has hours in it in "
            "which nobody restarted it. "
            "Evaluations and planned stops stand in the training plan, not here."
        )
    )


def service(plan: RunPlan, answer: Assessment, terms: ReliabilityTerms) -> None:
    """Spare machines of a service: how long a year fewer than needed are up, at which cost."""
    st.subheader("A service needs spare machines, not checkpoints", anchor=False)
    rows = [
        {
            "Spare machines": str(s.spares),
            "Enough are up": _up(s.up),
            "Away a year": plain(_away(s.hours_away_a_year)),
            "Cost a month": plain(labels.money(s.usd_per_month)),
        }
        for s in reliability.service_spares(plan, known(plan, terms))
    ]
    st.table(rows, hide_index=True)
    st.caption(
        plain(
            f"{labels.count(plan.machines, 'machine')} must be up; each fails and comes back on "
            "its own. What fails together (a site, a release, a region) no spare machine cures."
        )
    )


def fleet_choice(of: str) -> None:
    """Which published fleet the machines fail like."""
    fleets = {f.id: f for f in reliability.published_fleets()}
    value = shell.shown("like", of)
    options = [ANY, *fleets]
    if value not in options:
        options.append(value)

    def said(id: str) -> str:
        if id == ANY:
            return "any of them: the whole range"
        fleet = fleets.get(id)
        if fleet is None or fleet.rate is None:
            return f"{id}: unknown"
        return f"{fleet.name} ({number(fleet.rate)})"

    st.selectbox(
        "Machines fail like those of · per 1,000 machine-days",
        options, format_func=said, key=shell.bind(key_of(of, "like"), value),
        on_change=copy, args=(of, "like"),
    )  # fmt: skip
    complain(of, "like")


def articles(found: Reliability) -> None:
    """What the articles say of failures beside what is computed for this run."""
    if found.plan.service:
        return
    st.subheader("What the articles say, and what holds here", anchor=False)
    for s in found.sayings:
        with st.container(gap="xxsmall"):
            st.markdown(f"**{plain(s.says)}** ({plain(s.article)}, {plain(s.claims)})")
            st.markdown(plain(s.here))


def backing(found: Reliability) -> None:
    """Published fleets, and every condition with its range and source."""
    known = {k.name: k for k in found.known}
    if found.plan.unit == "GPU":
        st.subheader("How often machines of published fleets failed", anchor=False)
        mtbf = known["device_mtbf"]
        reliability_charts.fleets(reliability.published_fleets(), reliability.rates(mtbf))
        st.caption(
            plain(
                "The line and the shade are what is used here. Sources stand behind the dots. "
                "Alibaba's paper on C4 gives no count: it says that more than 30% of a job's life "
                "went to finding and curing faults."
            )
        )
    with st.expander("Every condition with its range and source", icon=":material/list:"):
        st.table(
            [
                {
                    "Condition": plain(k.title),
                    "Likely": plain(labels.number(k.likely, k.unit)),
                    "Range": f"{labels.number(k.low)} to {labels.number(k.high)}",
                }
                for k in found.known
            ],
            hide_index=True,
        )
        for source in dict.fromkeys(k.source for k in found.known):
            st.caption(plain(source))
