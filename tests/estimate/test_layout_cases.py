"""The articles' two layouts: sizes that multiply, memory and speed that follow by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.catalogue import load_catalogue
from engine.errors import DataError
from engine.estimate.layout_cases import FILE, layout_cases, worked_layout, worked_layouts
from engine.planning.layout_words import layout_notes, layout_rows


def test_the_layouts_are_the_articles() -> None:
    block, ring = layout_cases()
    # 8 x 4 x 32 = 1,024 GPUs, 2 x 8 x 32 = 512 sequences, (4 − 1)/(8 + 3) = 27%.
    assert block.gpus == 128 * 8
    assert block.batch == 512
    assert block.bubble == pytest.approx(3 / 11)
    # 4 x 8 = 32 GPUs, 4 x 8 x 32 = 1,024 sequences, no stages.
    assert ring.gpus == 32
    assert ring.batch == 1024
    assert ring.bubble == 0


def test_what_they_come_to() -> None:
    block, ring = worked_layouts()
    # Megatron-type: 70e9/32 parameters a GPU x (6 + 12/32) bytes are 13.0 GiB; kept inputs of 20
    # layers for 4 micro-batches, 2 x 4,096 x 8,192 x 2 bytes / 8 each, are 1.3 GiB.
    assert 13.0 + 1.3 < block.here.memory.likely < 22
    # FSDP: 70e9 x 16 bytes / 32 are 32.6 GiB; inputs of 80 layers x 4 x 2,048 x 8,192 x 2 bytes 10.
    assert 32.6 + 10 < ring.here.memory.likely < ring.here.memory.usable
    for w in (block, ring):
        # MFU counts 6 FLOP a parameter and token, and attention's products: a few per cent more.
        peak = w.case.gpus * 989e12 * 86_400
        plain = w.tokens_a_day * 6 * 70e9 / peak
        assert plain == pytest.approx(w.here.mfu.likely, rel=0.1)
        # Steps of so many tokens, over the goodput.
        days = w.case.tokens_b * 1e9 / w.tokens_a_day / w.here.goodput.likely
        assert w.here.days.likely == pytest.approx(days, rel=0.02)
        assert w.best.days.likely <= w.here.days.likely
    # Full recomputation does a fourth pass of three, 27% wait: at most 0.75 x 0.73 of the products'
    # own share is left; without either the search nearly halves the time.
    assert block.here.mfu.likely < 0.75 * 0.73 * 0.65
    assert block.best.days.likely < 0.65 * block.here.days.likely


def test_the_table_says_it_in_words() -> None:
    rows = {r["Layout"]: list(r.values())[1:] for r in layout_rows(worked_layouts())}
    assert rows["Batch"] == ["2 × 8 × 32 = 512 sequences", "4 × 8 × 32 = 1,024 sequences"]
    assert rows["Stages wait"] == ["27% of the time, (4 − 1)/(8 + 3)", "no stages"]
    assert rows["Its run"][0].startswith("1,400 billion tokens in ")
    assert len(layout_notes(worked_layouts())) == 2


def test_a_layout_that_does_not_fit_is_refused() -> None:
    # Four sequences of 8,192 tokens keep 40 GiB of inputs beside 33 of states, and their logits.
    long = layout_cases()[1].model_copy(update={"seq_len": 8192})
    with pytest.raises(DataError, match="does not fit"):
        worked_layout(long, load_catalogue())


def test_an_id_stands_once(tmp_path: Path) -> None:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    (tmp_path / "twice.csv").write_text("\n".join([*lines, lines[1]]), encoding="utf-8")
    with pytest.raises(DataError, match="stands twice"):
        layout_cases(tmp_path / "twice.csv")
