"""The figures in tiles stand whole: no name, value or range is cut, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, TimeoutError

from engine.report.link import encode
from engine.workload.examples import EXAMPLES

# Every page with tiles, for jobs whose ranges are long.
PAGES = [
    ("recommendation", "16-nodes-own-or-cloud"),
    ("recommendation", "trading-models"),
    ("costs", "16-nodes-own-or-cloud"),
    ("costs", "50-microservices"),
    ("training_plan", "70b-pretraining"),
    ("serving_plan", "70b-two-networks"),
    ("reliability", "ring-32"),
    ("jobs_plan", "legacy-fortran"),
    ("jobs_plan", "fraud-detection"),
    ("services_plan", "event-logging"),
    ("compare", "16-nodes-own-or-cloud"),
]
# Texts whose letters leave the frame, or a part that hides them: what is drawn, not what is meant.
CUT = """() => [...document.querySelectorAll('[data-testid="stMetric"]')].flatMap(tile => {
    const frame = tile.getBoundingClientRect(), found = [];
    const texts = document.createTreeWalker(tile, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const range = document.createRange();
        range.selectNodeContents(texts.currentNode);
        for (const box of range.getClientRects())
            if (box.right > frame.right + 1 || box.bottom > frame.bottom + 1)
                found.push(texts.currentNode.textContent);
    }
    for (const part of tile.querySelectorAll('*'))
        if (part.clientWidth && part.textContent.trim() && part.scrollWidth > part.clientWidth + 1)
            found.push(part.textContent);
    return found;
})"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(("name", "example"), PAGES)
def test_no_text_of_a_tile_is_cut(
    new_page: Callable[..., Page],
    settle: Callable[[Page], None],
    name: str,
    example: str,
    width: int,
) -> None:
    page = new_page(width=width)
    page.goto(f"/{name}?" + urlencode(encode(EXAMPLES[example].workload)))
    settle(page)
    page.locator('[data-testid="stMetric"]').first.wait_for()
    # Tiles take their width and their letters while the page is drawn: what counts is the end.
    try:
        page.wait_for_function(f"({CUT})().length === 0", timeout=10_000)
    except TimeoutError:
        assert page.evaluate(CUT) == []
    page.wait_for_timeout(500)
    assert page.evaluate(CUT) == []
