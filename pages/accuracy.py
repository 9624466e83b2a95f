"""Predicted against measured, for all to see: how far off the estimates are, and where."""

from __future__ import annotations

import streamlit as st

from engine.explain.accuracy import Aim, Figures, LeftOut, Quantity, accuracy
from engine.wording import rough
from pages.components import accuracy_charts, shell
from pages.components.labels import plain

TITLE = "Accuracy"


def off_by(figure: LeftOut) -> str:
    """One figure of rows that the fit had not seen, or the range around the prediction."""
    if not figure.is_range:
        return f"{figure.low:.1%}"
    if figure.high > 1:
        return f"{rough(1 + figure.low)} to {rough(1 + figure.high)} times"
    return f"{share(figure.low)} to {share(figure.high)}"


def share(value: float) -> str:
    """An error with its sign."""
    return f"{value:+.0%}".replace("-", "−")


def groups(q: Quantity) -> None:
    """Every source of the rows with its own figures."""
    with st.expander(f"By source, {len(q.groups)} of them", icon=":material/table_rows:"):
        st.table(
            [{"Source": plain(name), **figures(f)} for name, f in q.groups],
            hide_index=True,
        )


def figures(f: Figures) -> dict[str, str]:
    """A row of the table by source."""
    return {
        "Rows": f"{f.n:,}",
        "Half, nine of ten within": f"{f.median:.1%}, {f.p90:.1%}",
        "Within 20%, in the range": f"{f.within_20:.0%}, {f.coverage:.0%}",
    }


def aims(told: tuple[Aim, ...]) -> None:
    """Serving's figures on sources that the fit had not seen, beside their goals."""
    st.subheader("Serving a language model", anchor=False)
    met = [a for a in told if a.meets and a.covers]
    rest = "; ".join(a.title.lower() for a in told if a not in met)
    st.markdown(
        plain(
            "Each family of sources was predicted by a fit to all the others. Goals were set "
            "before, beside what the best public tools reach. "
            + ("All are met." if not rest else f"Met but for: {rest}.")
        )
    )
    st.table(
        [
            {
                "On sources that the fit had not seen": plain(a.title),
                "Rows": f"{a.n:,}",
                "Goal: half, nine of ten": f"{a.goal_median:.0%}, {a.goal_p90:.0%}",
                "Off by": f"{a.median:.1%}, {a.p90:.1%}",
                "In the 80% range": f"{a.coverage:.0%}",
            }
            for a in told
        ],
        hide_index=True,
    )


def quantity(q: Quantity) -> None:
    """One quantity: what it means, what was left out, the picture, and its sources."""
    st.subheader(plain(q.title), anchor=False)
    st.markdown(plain(q.meaning))
    picture, words = st.columns([3, 2], gap="large")
    with words:
        if q.left_out:
            st.table(
                [
                    {
                        "On sources that the fit had not seen": plain(f"{x.of}: {x.says}"),
                        "Off by": plain(off_by(x)),
                    }
                    for x in q.left_out
                ],
                hide_index=True,
            )
        lit = st.selectbox(
            "Light up a kind of run, or a source", accuracy_charts.choices(q), key=f"lit_{q.id}"
        )
        f = q.figures
        st.markdown(
            plain(
                f"The {f.n:,} points: half within {f.median:.1%}, nine of ten within {f.p90:.1%}, "
                f"{f.within_20:.0%} within 20%; the stated 80% range holds {f.coverage:.0%} of "
                f"them. {q.seen}"
            )
        )
        if q.weakest:
            worst = "; ".join(f"{name} {f.median:.0%} ({f.n} rows)" for name, f in q.weakest)
            st.markdown(plain(f"Weakest, by the median of a source: {worst}."))
    with picture:
        accuracy_charts.scatter(q, lit)
    groups(q)


with shell.page(TITLE, ":material/target:"):
    st.markdown(
        "Each point is a published measurement, with its source behind it, against what the app "
        "would have said. On the line it is right; above it the app says too much, below too "
        "little. Both axes count in powers of ten."
    )
    with st.spinner("Predicting every published measurement"):
        told = accuracy()
    for one in told.training:
        quantity(one)
    aims(told.aims)
    titles = {q.id: q for q in told.serving}
    chosen = st.segmented_control(
        "Every measurement of serving",
        list(titles),
        format_func=lambda id: titles[id].title,
        default=next(iter(titles)),
        required=True,
        key="accuracy_serving",
    )
    quantity(titles[chosen])
    st.subheader("Where the model is weak", anchor=False)
    for text in told.weak:
        st.markdown(f"- {plain(text)}")
    st.caption(
        plain(
            "Rows: data/measured_training.csv and data/measured_serving.csv; left-out figures: "
            "the calibration files beside them. Measurements whose owner states no licence took "
            "part in the fit and are not shown."
        )
    )
