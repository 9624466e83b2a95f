"""A quote for hardware that the catalogue does not know is told on every page that ranks prices."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from engine.report.link import encode
from engine.workload.examples import EXAMPLES

Open = Callable[..., AppTest]
PAGES = {
    "pages/costs.py": "16-nodes-own-or-cloud",
    "pages/prices.py": "16-nodes-own-or-cloud",
    "pages/training_plan.py": "70b-pretraining",
    "pages/jobs_plan.py": "legacy-fortran",
    "pages/services_plan.py": "50-microservices",
    "pages/serving_plan.py": "70b-two-networks",
    "pages/recommendation.py": "16-nodes-own-or-cloud",
}


def told(visit: AppTest) -> list[str]:
    texts = [e.value for kind in ("warning", "caption", "info") for e in getattr(visit, kind)]
    return [text.replace("\\", "") for text in texts if "left out of the ranking" in text]


@pytest.mark.parametrize(
    ("page", "example"), [*PAGES.items(), ("pages/jobs_plan.py", "fraud-detection")]
)
def test_an_unknown_quote_is_told_once_with_the_names_near_it(
    app: Open, page: str, example: str
) -> None:
    job = EXAMPLES[example].workload.model_copy(update={"quotes": ("h100-sxm:on_demand:1.2",)})
    found = told(app(page, **encode(job)))
    assert len(found) == 1
    assert "h100-sxm, on demand at $1.20 an hour" in found[0]
    assert "h100-sxm-80gb" in found[0]


@pytest.mark.parametrize("page", PAGES)
def test_a_known_quote_needs_no_telling(app: Open, page: str) -> None:
    job = EXAMPLES[PAGES[page]].workload
    known = job.model_copy(update={"quotes": ("h100-sxm-80gb:on_demand:2.5", "cpu-96-384:spot:2")})
    assert not told(app(page, **encode(known)))
