"""A figure in a frame: its name, its value, and under it the range or what belongs to it.

The value is the point; a range stands below it, where it may wrap. Nothing of either is ever cut:
the style of the shell lets all texts of a tile break.
"""

from __future__ import annotations

import streamlit as st

from pages.components.labels import plain


def tile(label: str, figure: str, under: str, helped: str = "") -> None:
    """One figure. Texts are shown as they are; `helped` stands behind the name."""
    st.metric(
        plain(label),
        plain(figure),
        plain(under),
        delta_color="off",
        delta_arrow="off",
        border=True,
        height="stretch",
        help=plain(helped) or None,
    )
