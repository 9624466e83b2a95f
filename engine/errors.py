"""Typed errors: each says what was wrong, where, and what would be right.

This module knows nothing of pages or of the command line; both show the text as it is.
"""

from __future__ import annotations

from pathlib import Path


class ClusterFitError(ValueError):
    """Base of every error that a user may see.

    Parameters
    ----------
    wrong : what was wrong, in plain words
    where : field, file or parameter in which it was found
    right : what would have been right
    """

    def __init__(self, wrong: str, *, where: str = "", right: str = "") -> None:
        self.wrong = wrong
        self.where = where
        self.right = right
        super().__init__(self.__str__())

    def __str__(self) -> str:
        text = f"{self.where}: {self.wrong}" if self.where else self.wrong
        return f"{text} ({self.right})" if self.right else text


class DataError(ClusterFitError):
    """A row of a shipped or user's table can't be used; names file, line and column."""

    def __init__(
        self, wrong: str, *, file: str | Path, line: int, column: str, right: str = ""
    ) -> None:
        self.file = Path(file).name
        self.line = line
        self.column = column
        super().__init__(wrong, where=f"{self.file} line {line}, column {column}", right=right)


class InputError(ClusterFitError):
    """A value that the user gave can't be used; `where` is the field's name."""


class ImportFileError(ClusterFitError):
    """A file that the user brought (config, log, bill, quote) can't be read."""
