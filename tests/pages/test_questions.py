"""The four question pages: answers reach the link, bad ones are said, nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.workload.answers import Bottleneck

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["bottleneck", "failure_mode", "parallel_fraction", "utilization"]


def open_page(name: str, **query: str) -> AppTest:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for key, value in query.items():
        test.query_params[key] = value
    test.run()
    test.switch_page(f"pages/{name}.py").run()
    assert not test.exception
    return test


@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_with_nothing_answered(name: str) -> None:
    test = open_page(name)
    assert test.title[0].value


def test_naming_a_bottleneck_reaches_the_link() -> None:
    test = open_page("bottleneck")
    test.radio(key="w_bottleneck").set_value(Bottleneck.disk_io).run()
    assert not test.exception
    assert "disk_io" in str(test.query_params)


def test_shares_over_one_hundred_are_said_and_kept() -> None:
    test = open_page("bottleneck")
    test.session_state["bottleneck_way"] = "Enter measured shares"
    test.run()
    test.number_input(key="w_share_compute").set_value(80.0).run()
    test.number_input(key="w_share_network").set_value(70.0).run()
    assert not test.exception
    assert any("100" in e.value for e in test.error)
    assert test.number_input(key="w_share_network").value == 70.0


def test_ticking_a_symptom_reaches_the_link() -> None:
    test = open_page("bottleneck")
    test.session_state["bottleneck_way"] = "Tick what you see"
    test.run()
    test.checkbox(key="w_symptom_disk_wait").set_value(True).run()
    assert not test.exception
    assert "seen" in str(test.query_params)


def test_a_fraction_beyond_one_is_said_and_kept() -> None:
    test = open_page("parallel_fraction")
    test.number_input(key="w_parallel_fraction").set_value(1.7).run()
    assert not test.exception
    assert test.error
    assert test.number_input(key="w_parallel_fraction").value == 1.7


def test_hours_beyond_a_month_are_said() -> None:
    test = open_page("utilization")
    test.number_input(key="w_useful_hours_per_month").set_value(900.0).run()
    assert not test.exception
    assert test.error


def test_a_link_restores_the_answer_on_its_page() -> None:
    test = open_page("parallel_fraction", v="1", p="0.93")
    assert test.number_input(key="w_parallel_fraction").value == 0.93
