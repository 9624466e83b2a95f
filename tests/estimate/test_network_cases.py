"""The articles' measurements of networks: what is computed, and what is set aside."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.catalogue import load_catalogue
from engine.errors import DataError
from engine.estimate.network_cases import FILE, network_cases, worked, worked_cases

CASES = {w.case.id: w for w in worked_cases()}


def test_what_was_said_follows_from_the_articles_own_figures() -> None:
    said = {c.id: c.said for c in network_cases()}
    assert said == pytest.approx(
        {
            "two-networks": 21.8 / 12.4, "busy": 1 - 40 / 85, "all-reduce": 0.78,
            "three-weeks": 2 / 3, "retrograde": 19 / 14,
        },
        abs=1e-3,
    )  # fmt: skip


def test_all_but_the_three_weeks_are_reproduced() -> None:
    assert {name for name, w in CASES.items() if not w.reproduced} == {"three-weeks"}
    for w in CASES.values():
        assert w.low < w.likely < w.high


def test_traffic_saved_is_that_of_the_measured_rates() -> None:
    # 100 GbE: 12.5 GB/s at 84% of nominal are 10.5. InfiniBand of 50 GB/s at 62, 72 and 94%: 31, 36
    # and 47. Saved: 1 - 10.5/31 = 66.1%, 70.8% and 77.7%; on average 71.5%.
    w = CASES["all-reduce"]
    assert (w.low, w.likely, w.high) == pytest.approx((0.661, 0.715, 0.777), abs=1e-3)


def test_shares_at_work_fit_the_times() -> None:
    # Work itself takes as long on either network: time = work / share, so the ratio of the times is
    # about that of the shares, turned round.
    for name in ("two-networks", "busy"):
        w = CASES[name]
        assert w.busy is not None
        slow, fast = w.busy
        ratio = w.likely if w.case.measure == "times_as_long" else 1 / (1 - w.likely)
        assert fast / slow == pytest.approx(ratio, rel=0.05)


def test_with_equal_adapters_the_first_case_is_not_reproduced() -> None:
    case = CASES["two-networks"].case.model_copy(update={"slow_links": 8})
    equal = worked(case, load_catalogue())
    assert not equal.reproduced
    assert equal.likely < 1.1  # "a few per cent", as the page says


def test_a_network_that_is_not_in_the_catalogue_is_named(tmp_path: Path) -> None:
    case = CASES["busy"].case.model_copy(update={"slow_network": "carrier-pigeon"})
    with pytest.raises(DataError, match="no network carrier-pigeon"):
        worked(case, load_catalogue())
    lines = FILE.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "twice.csv").write_text("".join([*lines, lines[1]]), encoding="utf-8")
    with pytest.raises(DataError, match="two-networks stands twice"):
        network_cases(tmp_path / "twice.csv")
