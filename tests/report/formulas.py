"""A small evaluator of spreadsheet formulas, so that a workbook's sums can be checked and changed.

It knows what the workbooks of the product use: cells and ranges of any sheet, numbers, texts,
+ − × ÷ ^ = and the functions below. It reads formulas as the file holds them, never their values.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import openpyxl
from openpyxl.utils import range_boundaries

TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?)|(?P<text>"(?:[^"]|"")*")
    |(?P<cell>(?:'[^']+'!|[A-Za-z]+!)?\$?[A-Z]{1,3}\$?\d+(?::\$?[A-Z]{1,3}\$?\d+)?)
    |(?P<name>[A-Z]+)(?=\()|(?P<sign>[-+*/^=(),]))""",
    re.VERBOSE,
)


class Workbook:
    """The cells of a file; `set` changes one, and whatever depends on it moves."""

    def __init__(self, data: bytes) -> None:
        book = openpyxl.load_workbook(io.BytesIO(data))
        stored = openpyxl.load_workbook(io.BytesIO(data), data_only=True)
        self.cells: dict[tuple[str, str], Any] = {}
        self.stored: dict[tuple[str, str], Any] = {}
        for sheet in book:
            for row in sheet.iter_rows():
                for cell in row:
                    if cell.value is not None:
                        key = (sheet.title, cell.coordinate)
                        self.cells[key] = cell.value
                        self.stored[key] = stored[sheet.title][cell.coordinate].value
                        assert not (cell.data_type == "s" and cell.value is None)
        self.formulas = [
            (sheet.title, cell.coordinate)
            for sheet in book
            for row in sheet.iter_rows()
            for cell in row
            if cell.data_type == "f"
        ]
        self._formula = set(self.formulas)
        self._known: dict[tuple[str, str], Any] = {}

    def set(self, sheet: str, cell: str, value: float | str) -> None:
        """Type a value into a cell."""
        self.cells[sheet, cell] = value
        self._formula.discard((sheet, cell))
        self._known.clear()

    def value(self, sheet: str, cell: str) -> Any:
        """What a cell shows."""
        key = (sheet, cell)
        if key not in self._formula:
            return self.cells.get(key, 0.0)
        if key not in self._known:
            found = _Formula(self, sheet, self.cells[key]).result()
            assert not is_number(found) or np.isfinite(found), (key, self.cells[key])
            self._known[key] = found
        return self._known[key]

    def find(self, sheet: str, column: str, text: str) -> int:
        """The first row whose cell of a column says so."""
        rows = [int(re.sub(r"\D", "", c)) for (s, c), v in self.cells.items()
                if s == sheet and re.fullmatch(rf"{column}\d+", c) and v == text]  # fmt: skip
        assert rows, f"{text!r} is not in column {column} of {sheet}"
        return min(rows)

    def sheets(self) -> list[str]:
        return list(dict.fromkeys(sheet for sheet, _ in self.cells))


class _Formula:
    """Recursive descent: comparison, sum, product, power, sign, and what stands in brackets."""

    def __init__(self, book: Workbook, sheet: str, text: str) -> None:
        assert text.startswith("=")
        self.book, self.sheet, self.text, self.at = book, sheet, text[1:], 0
        self.tokens: list[tuple[str, str]] = []
        while self.at < len(self.text):
            found = TOKEN.match(self.text, self.at)
            assert found is not None, f"{text}: {self.text[self.at :]}"
            assert found.lastgroup is not None
            self.tokens.append((found.lastgroup, found.group(found.lastgroup)))
            self.at = found.end()
        self.tokens.append(("end", ""))

    def result(self) -> Any:
        value = self._equal()
        assert self.tokens[0][0] == "end", self.text
        return value

    def _take(self, *signs: str) -> str:
        kind, text = self.tokens[0]
        if kind == "sign" and text in signs:
            self.tokens.pop(0)
            return text
        return ""

    def _chain(self, part: Callable[[], Any], signs: dict[str, Callable[[Any, Any], Any]]) -> Any:
        value = part()
        while sign := self._take(*signs):
            value = signs[sign](value, part())
        return value

    def _equal(self) -> Any:
        return self._chain(self._sum, {"=": lambda a, b: a == b})

    def _sum(self) -> Any:
        return self._chain(self._product, {"+": lambda a, b: a + b, "-": lambda a, b: a - b})

    def _product(self) -> Any:
        return self._chain(self._power, {"*": lambda a, b: a * b, "/": _over})

    def _power(self) -> Any:
        return self._chain(self._sign, {"^": lambda a, b: a**b})

    def _sign(self) -> Any:
        if self._take("-"):
            return -self._sign()
        return self._atom()

    def _atom(self) -> Any:
        kind, text = self.tokens.pop(0)
        if kind == "number":
            return float(text)
        if kind == "text":
            return text[1:-1]
        if kind == "cell":
            return self._cells(text)
        if kind == "name":
            return self._call(text)
        assert (kind, text) == ("sign", "("), (self.text, text)
        value = self._equal()
        assert self._take(")"), self.text
        return value

    def _call(self, name: str) -> Any:
        assert self._take("(")
        arguments = [self._equal()]
        while self._take(","):
            arguments.append(self._equal())
        assert self._take(")"), self.text
        return FUNCTIONS[name](*arguments)

    def _cells(self, text: str) -> Any:
        sheet, _, cells = text.rpartition("!")
        of = sheet.strip("'") or self.sheet
        cells = cells.replace("$", "")
        if ":" not in cells:
            return self.book.value(of, cells)
        left, top, right, bottom = range_boundaries(cells)
        assert None not in (left, top, right, bottom)
        letters = [openpyxl.utils.get_column_letter(c) for c in range(left or 0, (right or 0) + 1)]
        rows = range(top or 0, (bottom or 0) + 1)
        return np.array([[self.book.value(of, f"{c}{r}") for c in letters] for r in rows])


def _over(a: Any, b: Any) -> Any:
    """Division; nothing by nothing is no number, which no cell may show."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(a, b) if np.ndim(a) or np.ndim(b) else float(np.divide(a, b))


def _if(condition: Any, then: Any, other: Any) -> Any:
    return then if condition else other


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "SUM": lambda *parts: float(sum(np.sum(p) for p in parts)),
    "SUMPRODUCT": lambda *parts: float(np.sum(np.prod(parts, axis=0))),
    "COUNT": lambda part: float(np.size(part)),
    "IF": _if,
}


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool | datetime)
