"""A folder of tables with one cell changed: what every refusal is tested on."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "data"
TABLES = (
    "accelerators.csv",
    "cpu_servers.csv",
    "networks.csv",
    "offers.csv",
    "capital.csv",
    "running_costs.csv",
    "parameters.csv",
    "claims.csv",
)
Change = Callable[..., int]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the shipped tables."""
    for name in TABLES:
        shutil.copy(DATA / name, tmp_path / name)
    return tmp_path


def read(file: Path) -> list[list[str]]:
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.reader(text))


def write(file: Path, table: list[list[str]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as text:
        csv.writer(text, lineterminator="\n").writerows(table)


@pytest.fixture
def change(folder: Path) -> Change:
    """Sets cells of the first row that has the cells `where`; gives the row's line."""

    def set_cells(name: str, where: dict[str, str], to: dict[str, str]) -> int:
        table = read(folder / name)
        header = table[0]
        for line, row in enumerate(table[1:], start=2):
            cells = dict(zip(header, row, strict=True))
            if all(cells[column] == value for column, value in where.items()):
                for column, value in to.items():
                    row[header.index(column)] = value
                write(folder / name, table)
                return line
        raise AssertionError(f"no such row in {name}: {where}")

    return set_cells


@pytest.fixture
def add(folder: Path) -> Callable[[dict[str, str]], int]:
    """Appends an offer with these cells, the rest empty but for its source; gives its line."""

    def append(cells: dict[str, str]) -> int:
        table = read(folder / "offers.csv")
        usual = {
            "region": "us-east-1",
            "acquisition": "on_demand",
            "gpus_per_instance": "0",
            "min_commit": "none",
            "kind": "list",
            "source": "a price list",
            "as_of": "2026-11-01",
            "confidence": "high",
        }
        assert set(cells) <= set(table[0])
        table.append([(usual | cells).get(column, "") for column in table[0]])
        write(folder / "offers.csv", table)
        return len(table)

    return append
