"""A workbook with words, inputs and live formulas: what the sheets of any report are written with.

Words are never formulas; beside each formula stands its value, for viewers that don't calculate.
Rows and columns count from 0.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from engine.report import words
from engine.report.table import harmless

AMOUNT = "#,##0.00;[Red]-#,##0.00"
WHOLE, PLAIN = "#,##0", "#,##0.00####"
INPUT_COLOUR = "#0000ff"  # the custom of finance: what is typed in is blue, what follows is black
NAME_LENGTH = 31  # most characters of a sheet's name
_NOT_IN_NAMES = re.compile(r"[\[\]:*?/\\']")
A4 = 9  # the format's number for that paper


class Book:
    """A workbook while it is written, with its formats, each made once."""

    def __init__(self, title: str, day: date) -> None:
        from xlsxwriter import Workbook

        self._target = io.BytesIO()
        self._book: Any = Workbook(self._target, {"in_memory": True})
        self._formats: dict[tuple[tuple[str, Any], ...], Any] = {}
        created = datetime.combine(day, time())
        named = {"title": words.one_line(title), "author": "ClusterFit", "created": created}
        self._book.set_properties(named)

    def sheet(self, name: str, widths: Sequence[float] = ()) -> Sheet:
        """A new sheet with the widths of its columns, under the name as spreadsheets take it."""
        short = _NOT_IN_NAMES.sub(" ", name)[:NAME_LENGTH].strip()
        taken = [sheet.name.casefold() for sheet in self._book.worksheets()]
        if short.casefold() in taken:
            short = f"{short[: NAME_LENGTH - 3]} {len(taken) + 1}"
        page = self._book.add_worksheet(short)
        page.set_landscape()
        page.set_paper(A4)
        page.fit_to_pages(1, 0)
        page.hide_gridlines(2)
        for column, width in enumerate(widths):
            page.set_column(column, column, width)
        return Sheet(self, page, short)

    def style(self, **of: Any) -> Any:
        """A format by its properties."""
        key = tuple(sorted(of.items()))
        if key not in self._formats:
            usual = {"font_name": "Calibri", "font_size": 10, "valign": "top"}
            self._formats[key] = self._book.add_format({**usual, **of})
        return self._formats[key]

    def new_chart(self, kind: str) -> Any:
        """A picture that is not yet on a sheet."""
        return self._book.add_chart({"type": kind})

    def close(self) -> bytes:
        """The finished file."""
        self._book.close()
        return self._target.getvalue()


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a picture over cells: sheet, row, first and last column of places and values.

    name : sheet, row and column of its name; a text that begins as a formula would be taken for one
    """

    name: tuple[str, int, int]
    places: tuple[str, int, int, int]
    values: tuple[str, int, int, int]
    colour: str
    dashed: bool = False


@dataclass(slots=True)
class Sheet:
    """One sheet. Keywords of its methods are properties of the cell's format."""

    book: Book
    page: Any
    name: str

    def text(self, row: int, column: int, value: str, **of: Any) -> None:
        """Words, on one line."""
        line = words.one_line(value)
        if not line:
            return
        if harmless(line) != line:  # the spreadsheet's own mark for words
            of["quote_prefix"] = True
        self.page.write_string(row, column, line, self.book.style(**of))

    def number(self, row: int, column: int, value: float | None, **of: Any) -> None:
        """A number; nothing for None."""
        if value is not None:
            usual = WHOLE if float(value).is_integer() else PLAIN
            style = self.book.style(**{"num_format": usual, **of})
            self.page.write_number(row, column, float(value), style)

    def input(self, row: int, column: int, value: float, **of: Any) -> None:
        """A number that formulas read and a reader may change."""
        self.number(row, column, value, **{"font_color": INPUT_COLOUR, "num_format": AMOUNT, **of})

    def formula(self, row: int, column: int, formula: str, value: float, **of: Any) -> None:
        """A formula, without its equals sign, and its value."""
        style = self.book.style(**{"num_format": AMOUNT, **of})
        self.page.write_formula(row, column, f"={formula}", style, float(value))

    def day(self, row: int, column: int, day: date) -> None:
        """A date."""
        style = self.book.style(num_format="yyyy-mm-dd", align="left")
        self.page.write_datetime(row, column, datetime.combine(day, time()), style)

    def title(self, text: str) -> None:
        """The first line."""
        self.text(0, 0, text, bold=True, font_size=14)

    def head(
        self, row: int, titles: Sequence[str], column: int = 0, figures: Sequence[str] = ()
    ) -> None:
        """Headings of a table; those of figures stand at the right, like these."""
        for at, title in enumerate(titles, column):
            side = "right" if title in figures else "left"
            self.text(row, at, title, bold=True, bottom=1, text_wrap=True, align=side)

    def line_chart(self, row: int, column: int, title: str, lines: Sequence[Line]) -> None:
        """A picture of lines that follow the cells, its corner at a cell."""
        chart = self.book.new_chart("line")
        for line in lines:
            (sheet, at, first, last), (of, value_at, start, end) = line.places, line.values
            chart.add_series(
                {
                    "name": list(line.name),
                    "categories": [sheet, at, first, at, last],
                    "values": [of, value_at, start, value_at, end],
                    "line": {
                        "color": line.colour,
                        "width": 2,
                        "dash_type": "dash" if line.dashed else "solid",
                    },
                }
            )
        chart.set_title({"name": title, "name_font": {"size": 11}, "overlay": False})
        chart.set_legend({"position": "bottom"})
        chart.set_y_axis({"num_format": "#,##0", "major_gridlines": {"visible": True}})
        chart.set_x_axis({"num_format": "0", "label_position": "low"})
        chart.set_size({"width": 900, "height": 340})
        self.page.insert_chart(row, column, chart, {"description": title})

    def cell(self, row: int, column: int) -> str:
        """Address of a cell for a formula on any sheet."""
        from xlsxwriter.utility import xl_rowcol_to_cell

        return f"'{self.name}'!{xl_rowcol_to_cell(row, column, row_abs=True, col_abs=True)}"


def at(row: int, column: int) -> str:
    """Address of a cell for a formula on the same sheet."""
    from xlsxwriter.utility import xl_rowcol_to_cell

    address: str = xl_rowcol_to_cell(row, column)
    return address


def span(first: tuple[int, int], last: tuple[int, int], fixed_rows: bool = False) -> str:
    """A range of cells of the same sheet.

    fixed_rows : the rows stay when the formula is copied to another row
    """
    from xlsxwriter.utility import xl_rowcol_to_cell

    return ":".join(xl_rowcol_to_cell(*end, row_abs=fixed_rows) for end in (first, last))
