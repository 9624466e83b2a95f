"""Reading a table of the catalogue: one row at a time, every fault with file, line and column."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from engine.catalogue.models import Row
from engine.errors import DataError

R = TypeVar("R", bound=Row)
ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
PROVENANCE = ("source", "as_of", "confidence")


def rows(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells of each row.

    Raises
    ------
    DataError : not UTF-8, a byte-order mark, no rows, doubled columns, a row of another length
    """
    text = _text(file)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = _next(reader, file)
    if not header:
        raise DataError("is empty", file=file, line=1, column="-", right="a header and rows")
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise DataError("stands twice in the header", file=file, line=1, column=twice, right="once")
    while True:
        line = reader.line_num + 1
        cells = _next(reader, file)
        if cells is None:
            break
        if len(cells) != len(header):
            raise DataError(
                f"has {len(cells)} cells, the header has {len(header)}",
                file=file,
                line=line,
                column="-",
                right="one cell a column",
            )
        yield line, dict(zip(header, cells, strict=True))
    if line <= 2:
        raise DataError("has no rows", file=file, line=1, column="-", right="a header and rows")


def _text(file: Path) -> str:
    """The text of a file in plain UTF-8."""
    try:
        raw = file.read_bytes()
    except OSError:
        raise DataError("can't be read", file=file, line=1, column="-", right="a file") from None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            "is not UTF-8",
            file=file,
            line=raw[: error.start].count(b"\n") + 1,
            column="-",
            right="save it as UTF-8",
        ) from None
    if text.startswith("\ufeff"):
        raise DataError(
            "begins with a byte-order mark", file=file, line=1, column="-", right="plain UTF-8"
        )
    return text


def _next(reader: Any, file: Path) -> list[str] | None:
    """The next row of cells, None at the end."""
    line = reader.line_num + 1
    try:
        return next(reader, None)
    except csv.Error as error:
        raise DataError(
            f"is not a table: {error}", file=file, line=line, column="-", right="CSV"
        ) from None


def parse(model: type[R], cells: dict[str, str], file: Path, line: int, today: date) -> R:
    """One row as a model; empty cells are left to the model's defaults.

    Raises
    ------
    DataError : naming the column that can't be used
    """
    for column in PROVENANCE:
        if not cells.get(column, "").strip():
            raise DataError(
                "is empty", file=file, line=line, column=column, right="every row has it"
            )
    try:
        if not ISO_DAY.fullmatch(cells["as_of"]):
            raise ValueError
        seen = date.fromisoformat(cells["as_of"])
    except ValueError:
        raise DataError(
            f"{cells['as_of'][:20]!r} is not a date",
            file=file,
            line=line,
            column="as_of",
            right="YYYY-MM-DD",
        ) from None
    if seen > today:
        raise DataError(
            f"{seen} lies in the future",
            file=file,
            line=line,
            column="as_of",
            right="the day on which it was read",
        )
    values: dict[str, Any] = {k: v for k, v in cells.items() if v.strip() and k not in PROVENANCE}
    values["provenance"] = {k: cells[k] for k in PROVENANCE}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        column = str(first["loc"][-1])
        given = str(first.get("input", ""))[:40]
        wrong = "is empty" if first["type"] == "missing" else f"{given!r} can't be used"
        raise DataError(
            wrong, file=file, line=line, column=column, right=first["msg"].lower()
        ) from None
