"""The articles' cases as ready workloads, read from `data/examples/`."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from engine.errors import InputError
from engine.workload.workload import Workload, parse

FOLDER = Path(__file__).resolve().parents[2] / "data" / "examples"


@dataclass(frozen=True, slots=True)
class Example:
    """A case with its story and the article that tells it."""

    name: str
    title: str
    article: str
    story: str
    workload: Workload


@lru_cache(maxsize=1)
def examples() -> dict[str, Example]:
    """All examples by name, in the order in which they are shown."""
    names = (FOLDER / "order.txt").read_text(encoding="utf-8").split()
    return {name: _read(name) for name in names}


def _read(name: str) -> Example:
    data = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return Example(name, data["title"], data["article"], data["story"], parse(data["workload"]))


def example(name: str) -> Example:
    """One example by its name.

    Raises
    ------
    InputError : when there is none of that name; names the closest
    """
    found = examples().get(name)
    if found is None:
        close = difflib.get_close_matches(name, examples(), n=1)
        hint = f"did you mean {close[0]}?" if close else "see `example --list`"
        raise InputError(f"there is no example {name[:60]!r}", where="example", right=hint)
    return found


def __getattr__(name: str) -> dict[str, Example]:
    if name == "EXAMPLES":
        return examples()
    raise AttributeError(name)
