"""Pages run without a browser: `app(page, **link)` opens one as a visitor with that link would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

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
def link_of() -> Callable[[AppTest], dict[str, str]]:
    """The parameters in the address of a visit."""

    def read(visit: AppTest) -> dict[str, str]:
        return {
            name: value if isinstance(value, str) else value[-1]
            for name, value in dict(visit.query_params).items()
        }

    return read
