"""A visitor walks the four questions to the report, and a second one opens the link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect
from pypdf import PdfReader

from engine.report.link import query_string
from engine.workload.examples import EXAMPLES
from pages.components.shell import QUESTIONS

New = Callable[..., Page]
Settle = Callable[[Page], None]
# One answer a page, as it stands in the link: the widgets themselves are tested page by page.
PROGRESS = "of 4 answered"


def settle_after(page: Page, settle: Settle, action: Callable[[], object]) -> None:
    """Do something and wait until the page has caught up with it."""
    action()
    page.wait_for_timeout(250)
    settle(page)


def test_four_questions_to_the_report_and_the_link(
    page: Page, new_page: New, settle: Settle, tmp_path: Path
) -> None:
    page.goto("/")
    settle(page)
    settle_after(
        page, settle, lambda: page.get_by_label("What do you call it?").fill("Scoring 评分")
    )
    settle_after(page, settle, lambda: page.keyboard.press("Tab"))
    settle_after(
        page, settle, lambda: page.get_by_role("button", name="Begin with question 1").click()
    )
    for position, (_, _, title) in enumerate(QUESTIONS, start=1):
        expect(page.get_by_text(f"Question {position} of 4")).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        answer(page, settle, position)
        page.screenshot(path=tmp_path / f"question_{position}.png")
        expect(page.get_by_text("So far").first).to_be_visible()
        assert title
        settle_after(page, settle, lambda: page.get_by_role("link", name="Next:").click())
    expect(page.get_by_role("heading", level=1)).to_have_text("Details of the job")
    expect(page.get_by_text(f"4 {PROGRESS}")).to_be_visible()
    settle_after(page, settle, lambda: page.get_by_role("link", name="Next:").click())

    expect(page.get_by_text("Recommendation for Scoring 评分")).to_be_visible()
    take_away(page, new_page(), settle, "评分")


def test_a_worked_case_is_taken_away(page: Page, new_page: New, settle: Settle) -> None:
    page.goto(f"/recommendation?{query_string(EXAMPLES['fraud-detection'].workload)}")
    settle(page)
    take_away(page, new_page(), settle, "Fraud")


def take_away(page: Page, second: Page, settle: Settle, name: str) -> None:
    """The files of an answer hold it, and its link shows it to a second visitor."""
    sentence = page.get_by_role("heading", level=1).inner_text()
    with page.expect_download() as pdf:
        page.get_by_role("button", name="PDF").click()
    report = PdfReader(pdf.value.path())
    text = " ".join(" ".join(sheet.extract_text() for sheet in report.pages).split())
    assert len(report.pages) >= 2
    assert name in text
    assert " ".join(sentence.split())[:24] in text
    with page.expect_download() as csv:
        page.get_by_role("button", name="CSV").click()
    table = Path(csv.value.path()).read_bytes()
    assert table.startswith(b"\xef\xbb\xbf")
    assert name in table.decode("utf-8-sig")
    with page.expect_download() as xlsx:
        page.get_by_role("button", name="XLSX").click()
    assert Path(xlsx.value.path()).read_bytes().startswith(b"PK")

    page.get_by_role("button", name="Share").click()
    address = page.get_by_test_id("stCode").get_by_text("recommendation?").inner_text()
    second.goto("".join(address.split()))
    settle(second)
    expect(second.get_by_role("heading", level=1)).to_have_text(sentence)
    figures = '[data-testid="stMetricValue"]'
    expect(second.locator(figures)).to_have_text(page.locator(figures).all_inner_texts())


def answer(page: Page, settle: Settle, position: int) -> None:
    """Give the answer to a question with the widgets of its page."""
    if position == 1:
        choose(page, settle, "Largest bottleneck", "Arithmetic (the processors are busy)")
    elif position == 2:
        choose(page, settle, "Worst failure", "Answers come too late")
    else:
        label = {3: "Parallelizable fraction", 4: "Useful hours"}[position]
        box = page.get_by_role("spinbutton", name=label).first
        box.fill({3: "0.93", 4: "300"}[position])
        settle_after(page, settle, lambda: box.press("Enter"))


def choose(page: Page, settle: Settle, label: str, choice: str) -> None:
    """Pick a choice of a radio group or of a list."""
    radio = page.get_by_role("radio", name=choice)
    box = page.get_by_role("combobox", name=label)
    # Widgets are drawn one after the other: which of the two it is shows when one is there.
    radio.or_(box).first.wait_for(state="attached")
    if radio.count():
        settle_after(page, settle, lambda: radio.first.check(force=True))
        return
    box.first.click()
    settle_after(page, settle, lambda: page.get_by_role("option", name=choice).click())


def test_answers_survive_reload_back_and_forward(page: Page, settle: Settle) -> None:
    page.goto("/details?kind=online_inference")
    settle(page)
    latency = page.get_by_role("spinbutton", name="Latest useful answer")
    for typed in ("50", "20"):
        latency.fill(typed)
        settle_after(page, settle, lambda: latency.press("Enter"))
    page.reload()
    settle(page)
    expect(latency).to_have_value("20")
    settle_after(page, settle, page.go_back)
    expect(latency).to_have_value("50")
    settle_after(page, settle, page.go_forward)
    expect(latency).to_have_value("20")


def test_fast_typing_loses_nothing(page: Page, settle: Settle) -> None:
    page.goto("/details?kind=etl")
    settle(page)
    months = page.get_by_role("spinbutton", name="How long will this go on")
    months.focus()
    for _ in range(15):
        months.press("ArrowUp", delay=15)
    page.wait_for_timeout(1000)
    settle(page)
    expect(months).to_have_value("27")
    assert "months=27" in page.url


def test_an_example_opens_with_one_click(page: Page, settle: Settle) -> None:
    page.goto("/")
    settle(page)
    page.get_by_role("link", name="See the answer").first.click()
    expect(page.get_by_role("button", name="PDF")).to_be_visible()
    settle(page)
    assert "/recommendation?" in page.url
    page.go_back()
    expect(page.get_by_role("button", name="Begin with question 1")).to_be_visible()


def test_a_broken_link_says_which_field_and_keeps_the_rest(page: Page, settle: Settle) -> None:
    page.goto("/details?kind=online_inference&latency_ms=fast&rate_per_s=120&%00=%ff")
    settle(page)
    expect(page.get_by_test_id("stAlert").first).to_contain_text("latency_ms")
    expect(page.get_by_role("spinbutton", name="Requests or events")).to_have_value("120")
