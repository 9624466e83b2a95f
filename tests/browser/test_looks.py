"""Every page in light and dark, at the width of a desk and of a phone: readable and accessible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from engine.report.link import encode
from engine.workload.examples import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["", *sorted(path.stem for path in (ROOT / "pages").glob("*.py"))]
LINK = "?" + urlencode(encode(next(iter(EXAMPLES.values())).workload))
LOOKS = {
    "desk_light": {"width": 1280, "dark": False},
    "desk_dark": {"width": 1280, "dark": True},
    "phone_light": {"width": 390, "dark": False},
    "phone_dark": {"width": 390, "dark": True},
}
WCAG = "axe.run(document, {runOnly: ['wcag2a','wcag2aa','wcag21a','wcag21aa','wcag22aa']})"
WIDTHS = """() => [document.scrollingElement, document.querySelector('[data-testid="stMain"]')]
    .map(part => [part.scrollWidth, part.clientWidth])"""


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", NAMES, ids=[name or "start" for name in NAMES])
def test_a_page_is_accessible_and_fits(
    new_page: Callable[..., Page],
    settle: Callable[[Page], None],
    axe_source: str,
    tmp_path: Path,
    name: str,
    look: str,
) -> None:
    options: dict[str, Any] = LOOKS[look]
    page = new_page(**options)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"/{name}{LINK}")
    settle(page)
    page.wait_for_timeout(500)  # the charts draw themselves after the script has run
    page.screenshot(path=tmp_path / f"{name or 'start'}_{look}.png", full_page=True)
    assert not page.get_by_test_id("stException").count()
    assert errors == []
    assert all(content <= frame for content, frame in page.evaluate(WIDTHS)), "scrolls sideways"
    page.evaluate(axe_source)
    tabs = page.get_by_role("tab").all()
    for tab in range(max(len(tabs), 1)):
        if tabs:
            tabs[tab].click()
            page.wait_for_timeout(300)
        for summary in page.locator("details:not([open]) > summary").all():
            if summary.is_visible():
                summary.click()
        found = page.evaluate(WCAG)["violations"]
        assert [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found] == []
        assert all(content <= frame for content, frame in page.evaluate(WIDTHS)), "scrolls sideways"
