"""Complaints are words: no pattern of a programmer's is shown."""

from __future__ import annotations

import pytest

from engine.errors import InputError
from engine.workload.cost_terms import CostTerms
from engine.workload.terms import parse_terms
from engine.workload.workload import parse


def test_a_quote_of_another_form_is_told_the_form() -> None:
    with pytest.raises(InputError) as error:
        parse({"kind": "etl", "quotes": ["h100-sxm-80gb:on_demand:-2"]})
    assert "hardware:terms:USD per unit and hour" in str(error.value)
    assert "pattern" not in str(error.value)


def test_a_term_of_another_form_shows_no_pattern() -> None:
    with pytest.raises(InputError) as error:
        parse_terms(CostTerms, {"currency": "euro"})
    assert "pattern" not in str(error.value)
