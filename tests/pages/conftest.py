"""Pages run without a browser: `app(page, **link)` opens one as a visitor with that link would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.report.link import decode
from engine.workload.workload import Workload

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def app() -> Callable[..., AppTest]:
    """Open a page (by default the first screen) with the parameters of a link."""

    def open_page(page: str = "app.py", **link: str) -> AppTest:
        visit = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        for name, value in link.items():
            visit.query_params[name] = value
        visit.run()
        if page != "app.py":
            visit.switch_page(page).run()
        assert not visit.exception, visit.exception
        return visit

    return open_page


@pytest.fixture
def said() -> Callable[[AppTest], Workload]:
    """The workload in the address of a visit, which must be a link without a fault."""

    def read(visit: AppTest) -> Workload:
        workload, notes = decode(dict(visit.query_params))
        assert notes == []
        return workload

    return read
