"""The drawing of a training plan tells the plan's own sizes, and is a picture that parses."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from engine.estimate.layout_cases import worked_layouts
from engine.estimate.search import best_plans
from engine.estimate.training_job import Job, NothingFits
from engine.explain.services_svg import svg
from engine.explain.training_drawing import training_drawing
from tests.estimate.training_models import B8, H100, on


def test_the_block_of_article_001() -> None:
    # 128 machines x 8 = 8 x 4 x 32; 80 layers on 4 stages; 512 sequences for 32 copies.
    block = worked_layouts()[0]
    told = training_drawing(block.here, 80)
    boxes = {b.id: b for layer in told.layers for b in layer}
    assert boxes["copy"].machines == 32
    assert boxes["copy"].lines[0] == "32 GPUs a copy"
    assert boxes["stage"].lines[0] == "20 layers each"
    assert boxes["group"].lines[0] == "tensor 8"
    assert boxes["machine"].machines == 128
    assert "8 × H100 SXM5 80GB in each" in boxes["machine"].lines
    assert any("NVLink" in line and "450 GB/s" in line for line in boxes["machine"].lines)
    assert "16 to each" in told.alt
    assert told.message.startswith("1,024 GPUs = 8 tensor × 4 pipeline × 1 context × 32 data")
    for dark in (False, True):
        ElementTree.fromstring(svg(told, dark=dark))


def test_what_does_not_divide_is_told_as_it_falls() -> None:
    # 126 layers on 16 stages: 7 or 8; 2,048 sequences for 96 copies: 21 or 22.
    block = worked_layouts()[0].here
    plan = replace(block.plan, gpus=96 * 8 * 16, pp=16, global_batch_seqs=2048)
    told = training_drawing(replace(block, plan=plan), 126)
    assert "7 or 8 layers each" in told.alt
    assert "21 or 22 to each" in told.alt


def test_one_machine_has_no_network_and_no_stages() -> None:
    found = best_plans(Job(B8, 1e9, (on(H100),), task="lora", gpus=(1, 1)), "time", 1)
    assert not isinstance(found, NothingFits)
    told = training_drawing(found[0], 32)
    boxes = {b.id for layer in told.layers for b in layer}
    assert boxes == {"batch", "copy", "machine", "saves"}
    assert "between" not in told.alt
