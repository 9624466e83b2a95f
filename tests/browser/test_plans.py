"""A visitor takes a plan page to what it is for: a launch kit, a workbook that adds up."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

from openpyxl import load_workbook
from playwright.sync_api import Page, expect

from engine.report.link import query_string
from engine.workload.examples import EXAMPLES
from engine.workload.workload import parse

New = Callable[..., Page]
Settle = Callable[[Page], None]
# The configuration that Meta published for Llama 3.1 8B, without its generation settings.
LLAMA_8B = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
    "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "rms_norm_eps": 1e-05,
}  # fmt: skip


def settle_after(page: Page, settle: Settle, action: Callable[[], object]) -> None:
    """Do something and wait until the page has caught up with it."""
    action()
    page.wait_for_timeout(400)
    settle(page)


def test_a_configuration_and_a_deadline_become_a_launch_kit(
    page: Page, new_page: New, settle: Settle, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(LLAMA_8B), encoding="utf-8")
    job = parse({"kind": "llm_pretraining", "name": "Pilot run", "train_tokens_b": 200})
    page.goto(f"/training_plan?{query_string(job)}&training=gpu:h100-sxm-80gb,upto:512")
    settle(page)
    settle_after(
        page, settle, lambda: page.locator('input[type="file"]').first.set_input_files(config)
    )
    expect(page.get_by_text("8.03 billion parameters")).to_be_visible()
    expect(page.get_by_text("counted exactly")).to_be_visible()
    deadline = page.get_by_role("spinbutton", name="A run must be done within")
    expect(deadline).to_have_count(1)  # a slow machine shows the earlier page's for a while, too
    deadline.fill("14")
    settle_after(page, settle, lambda: deadline.press("Enter"))
    title = page.get_by_role("heading", level=1).inner_text()
    assert "H100" in title
    expect(page.get_by_text("to be done within 14 days")).to_be_visible()
    page.get_by_role("tab", name="Launch kit").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Launch kit").click()
    assert download.value.suggested_filename == "pilot-run-launch.zip"
    kit = zipfile.ZipFile(download.value.path())
    names = {Path(name).name for name in kit.namelist()}
    assert {"README.md", "slurm.sbatch", "run_node.sh"} <= names

    # The link carries the model's shape, the deadline and the choice of hardware.
    second = new_page()
    second.goto(page.url)
    settle(second)
    expect(second.get_by_role("heading", level=1)).to_have_text(title)
    expect(second.get_by_text("counted exactly")).to_be_visible()


def test_a_file_that_is_no_configuration_is_told_so(
    page: Page, settle: Settle, tmp_path: Path
) -> None:
    wrong = tmp_path / "notes.json"
    wrong.write_text('{"shopping": ["bread"]}', encoding="utf-8")
    page.goto("/training_plan?kind=llm_pretraining&params_b=8&tokens_b=100")
    settle(page)
    settle_after(
        page, settle, lambda: page.locator('input[type="file"]').first.set_input_files(wrong)
    )
    expect(page.get_by_test_id("stAlert").first).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_the_costs_are_taken_away_and_agree(page: Page, new_page: New, settle: Settle) -> None:
    page.goto(f"/costs?{query_string(EXAMPLES['16-nodes-own-or-cloud'].workload)}")
    settle(page)
    figure = page.locator('[data-testid="stMetricValue"]').nth(1).inner_text()
    assert figure.startswith("$")
    with page.expect_download() as table:
        page.get_by_role("button", name="CSV", exact=True).click()
    text = Path(table.value.path()).read_bytes().decode("utf-8-sig")
    assert list(csv.reader(io.StringIO(text)))
    with page.expect_download() as book:
        page.get_by_role("button", name="XLSX", exact=True).click()
    sheets = load_workbook(io.BytesIO(Path(book.value.path()).read_bytes()))
    assert "Summary" in sheets.sheetnames
    with page.expect_download() as report:
        page.get_by_role("button", name="PDF", exact=True).click()
    assert Path(report.value.path()).read_bytes().startswith(b"%PDF")

    page.get_by_role("button", name="Share").click()
    address = page.get_by_test_id("stCode").get_by_text("costs?").inner_text()
    second = new_page()
    second.goto("".join(address.split()))
    settle(second)
    figures = '[data-testid="stMetricValue"]'
    expect(second.locator(figures)).to_have_text(page.locator(figures).all_inner_texts())
