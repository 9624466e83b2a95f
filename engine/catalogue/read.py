"""Reading a table of the catalogue: one row at a time, every fault with file, line and column."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from engine.catalogue.models import Row
from engine.errors import DataError

R = TypeVar("R", bound=Row)
PROVENANCE = ("source", "as_of", "confidence")


def rows(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells of each row.

    Raises
    ------
    DataError : not UTF-8, a byte-order mark, no rows, doubled columns, a row of another length
    """
    try:
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        raise DataError(
            "is not UTF-8", file=file, line=line, column="-", right="save it as UTF-8"
        ) from None
    except OSError:
        raise DataError("can't be read", file=file, line=1, column="-", right="a file") from None
    if text.startswith("\ufeff"):
        raise DataError(
            "begins with a byte-order mark", file=file, line=1, column="-", right="plain UTF-8"
        )
    reader = csv.reader(text.splitlines(keepends=True))
    header = next(reader, None)
    if not header:
        raise DataError("is empty", file=file, line=1, column="-", right="a header and rows")
    if len(set(header)) != len(header):
        raise DataError("names a column twice", file=file, line=1, column="-")
    for cells in reader:
        line = reader.line_num
        if len(cells) != len(header):
            raise DataError(
                f"has {len(cells)} cells, the header has {len(header)}",
                file=file,
                line=line,
                column="-",
                right="one cell a column",
            )
        yield line, dict(zip(header, cells, strict=True))


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
    values: dict[str, Any] = {k: v for k, v in cells.items() if v != "" and k not in PROVENANCE}
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
