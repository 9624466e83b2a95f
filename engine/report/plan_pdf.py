"""A plan as a tagged PDF with vector pictures; the same plan gives the same bytes.

`data/plan.typ` gets words and pictures as JSON, so no text of a user is ever read as markup.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.report import charts as pictures
from engine.report import words
from engine.report.pdf import compiled
from engine.report.plan import Cell, Column, Figure, Figures, Part, Plan, Table

TEMPLATE = Path(__file__).resolve().parents[2] / "data" / "plan.typ"


def plan_pdf(plan: Plan) -> bytes:
    """The document as PDF."""
    return compiled(TEMPLATE, shown(plan))


def shown(plan: Plan) -> dict[str, Any]:
    """What the template shows: words, pictures as SVG, and the numbers of sources."""
    sources = plan.sources
    numbers = {source: n for n, source in enumerate(sources, 1)}
    return {
        "title": words.one_line(plan.title),
        "kind": plan.kind,
        "day": words.day(plan.today),
        "date": [plan.today.year, plan.today.month, plan.today.day],
        "colour": pictures.PLACEMENT_COLOURS[plan.colour],
        "sentence": words.one_line(plan.verdict),
        "lead": [words.one_line(text) for text in plan.lead],
        "figures": [
            [words.one_line(text) for text in (t.name, t.value, t.under)] for t in plan.tiles
        ],
        "warnings": [words.one_line(text) for text in plan.warnings],
        "sections": [
            {
                "title": words.one_line(section.title),
                # A reader who can't see it must find no level left out.
                "level": section.level if i else 1,
                "parts": [_part(part, numbers) for part in section.parts],
            }
            for i, section in enumerate(plan.sections)
        ],
        "sources": list(sources),
        "link": plan.link,
        "link_pieces": re.findall(r"[?&]?[^?&]{1,60}|[?&]", plan.link),
    }


def _part(part: Part, numbers: dict[str, int]) -> dict[str, Any]:
    if isinstance(part, Table):
        return _table(part, numbers)
    if isinstance(part, Figures):
        return {
            "kind": "figures",
            "widths": list(part.widths),
            "figures": [_figure(f) for f in part.figures],
            "beside": _pairs(part.beside),
        }
    return {
        "kind": "words",
        "texts": [words.one_line(text) for text in part.texts],
        "listed": _pairs(part.listed),
    }


def _pairs(listed: Sequence[tuple[str, str]]) -> list[list[str]]:
    return [[words.one_line(what), words.one_line(text)] for what, text in listed]


def _figure(figure: Figure) -> dict[str, Any]:
    svg = figure.svg or pictures.to_svg(dict(figure.chart or {}))
    return {
        "title": words.one_line(figure.title),
        "caption": words.one_line(figure.caption),
        "alt": words.one_line(figure.alt),
        "svg": svg,
        "share": figure.share,
    }


def _table(table: Table, numbers: dict[str, int]) -> dict[str, Any]:
    return {
        "kind": "table",
        "caption": words.one_line(table.caption),
        "columns": [
            {"title": words.one_line(c.title), "width": c.width, "kind": c.kind}
            for c in table.columns
        ],
        "rows": [
            [
                _cell(value, column, numbers)
                for value, column in zip(row, table.columns, strict=True)
            ]
            for row in table.rows
        ],
    }


def _cell(value: str | Cell, column: Column, numbers: dict[str, int]) -> dict[str, Any]:
    cell = value if isinstance(value, Cell) else Cell(value)
    text = words.one_line(cell.text)
    return {
        "text": text,
        "tone": cell.tone,
        "under": words.one_line(cell.under),
        "cite": numbers.get(text, 0) if column.kind == "source" else 0,
    }
