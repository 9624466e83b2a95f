"""Networks in words: short lines, like ones together, worths that follow from the costs."""

from __future__ import annotations

import re

import pytest

from engine.catalogue import load_catalogue
from engine.estimate.network_cases import worked_cases
from engine.estimate.network_choice import network_outcomes
from engine.estimate.search import best_plans
from engine.estimate.shape_from_size import shape_from_size
from engine.estimate.training_hardware import HardwareChoice
from engine.estimate.training_job import Job, NothingFits
from engine.planning.network_words import NO_DIFFERENCE, case_line, network_lines

CATALOGUE = load_catalogue()


@pytest.fixture(scope="module")
def outcomes():
    choice = HardwareChoice(
        CATALOGUE.accelerators["h100-sxm-80gb"], CATALOGUE.networks["ib-ndr400"], 2.0
    )
    job = Job(shape_from_size(70), 2e12, (choice,), gpus=(80, 80))
    found = best_plans(job, "time", 1)
    assert not isinstance(found, NothingFits)
    return network_outcomes(job, found[0], CATALOGUE.networks.values())


def test_the_present_network_comes_first_and_every_one_is_named(outcomes) -> None:
    lines = network_lines(outcomes)
    assert lines[0].current
    assert lines[0].worth == "the present one"
    names = ", ".join(line.name for line in lines)
    assert all(o.name in names for o in outcomes)


def test_like_networks_share_one_line(outcomes) -> None:
    lines = [line for line in network_lines(outcomes) if line.worth == NO_DIFFERENCE]
    like = [
        o for o in outcomes
        if not o.current and o.worth_usd_per_gpu_hour is not None
        and abs(o.worth_usd_per_gpu_hour) < 0.01
    ]  # fmt: skip
    assert len(like) > 1
    assert len(lines) == 1
    assert len(network_lines(outcomes)) == len(outcomes) - len(like) + 1


def test_the_worth_in_words_is_what_makes_the_costs_equal(outcomes) -> None:
    (ten,) = (o for o in outcomes if o.id == "eth-10g")
    (present,) = (o for o in outcomes if o.current)
    (line,) = (line for line in network_lines(outcomes) if line.name == ten.name)
    # $2 an hour on the present network; so many more hours there leave 2 x here / there.
    dearer = ten.result.gpu_hours.likely / present.result.gpu_hours.likely
    told = float(re.search(r"cheaper by \$([\d.]+)", line.worth)[1])  # type: ignore[index]
    assert told == pytest.approx(2 - 2 / dearer, abs=0.006)
    assert "a GPU over the run" in line.worth_more
    assert "list price" in line.worth_more


def test_the_articles_cases_say_what_was_said_what_is_computed_and_the_verdict() -> None:
    lines = {w.case.id: case_line(w) for w in worked_cases()}
    assert lines["two-networks"][0].endswith("1.76 times as long (000, C011 to C014)")
    assert lines["three-weeks"][2].startswith("Set aside. ")
    assert lines["retrograde"][2].startswith("Reproduced. ")
    for _, here, verdict in lines.values():
        assert re.search(r"\d to \d|% to \d+%", here)
        assert not verdict.endswith("..")
