"""A plan as plain text for a shell: verdict, figures, then section by section."""

from __future__ import annotations

from engine.report import words
from engine.report.plan import Cell, Column, Figures, Part, Plan, Table, text_of
from engine.report.table import TEXT_WIDTH, block, wrapped

Row = tuple[str | Cell, ...]


def plan_text(plan: Plan) -> str:
    """The document without its pictures, whose messages stay."""
    named = [f"{plan.kind}: {plan.name}", ""] if plan.name else []
    lines = [*named, *wrapped(plan.verdict, "", "")]
    lines += [line for text in plan.lead for line in wrapped(text, "", "")]
    if plan.tiles:
        lines += ["", *_columns([[t.name, t.value, t.under] for t in plan.tiles])]
    lines += block("Mind", list(plan.warnings))
    numbers = {source: n for n, source in enumerate(plan.sources, 1)}
    for section in plan.sections:
        lines += ["", *wrapped(section.title, "", "")]
        for part in section.parts:
            lines += _part(part, numbers)
    lines += block("Sources", [f"[{n}] {source}" for source, n in numbers.items()])
    end = f"As of {words.day(plan.today)}. Ranges hold in 8 of 10 cases. Prices without tax."
    lines += ["", end]
    return "\n".join([*lines, *([f"Link: {plan.link}"] if plan.link else [])]) + "\n"


def _part(part: Part, numbers: dict[str, int]) -> list[str]:
    if isinstance(part, Table):
        return _table(part, numbers)
    if isinstance(part, Figures):
        told = [f"{f.title}. {f.caption}" if f.title else f.caption for f in part.figures]
        told += [f"{what}: {text}" for what, text in part.beside]
    else:
        told = [*part.texts, *(f"{what}: {text}" for what, text in part.listed)]
    return [line for text in told for line in wrapped(text, "  - ", "    ")]


def _table(table: Table, numbers: dict[str, int]) -> list[str]:
    """In columns where a line holds them, else row by row with the names of the columns."""
    shown = [
        [_cell(value, column, numbers) for value, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    right = [column.kind != "words" for column in table.columns]
    lines = _columns([[c.title for c in table.columns], *shown], right)
    if max((len(line) for line in lines), default=0) > TEXT_WIDTH - 2:
        lines = [line for row in shown for line in wrapped(_said(row, table), "- ", "  ")]
    caption = wrapped(table.caption, "  ", "  ") if table.caption else []
    return [*(f"  {line}" for line in lines), *caption]


def _said(row: list[str], table: Table) -> str:
    told = [f"{c.title}: {text}" if c.title else text
            for text, c in zip(row[1:], table.columns[1:], strict=True) if text]  # fmt: skip
    return ". ".join((row[0].rstrip("."), "; ".join(told)))


def _cell(value: str | Cell, column: Column, numbers: dict[str, int]) -> str:
    text = words.one_line(text_of(value))
    if column.kind == "source":
        return f"[{numbers[text]}]" if text in numbers else ""
    if not isinstance(value, Cell):
        return text
    asked = ", ask for a new quote" if value.tone == "warn" else ""
    return f"{text} ({words.one_line(value.under)}{asked})" if value.under else text


def _columns(rows: list[list[str]], right: list[bool] | None = None) -> list[str]:
    """Rows as wide as they must be, columns of figures at the right."""
    widths = [max(len(words.one_line(row[i])) for row in rows) for i in range(len(rows[0]))]
    at = right or [False] * len(widths)
    return [
        "  ".join(
            f"{words.one_line(text):{'>' if at[i] else '<'}{width}}"
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
