"""Reads a CSV table and says exactly which cell can't be used."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from widelane.errors import TableError

DATA = Path(__file__).parent / "data"
"""The tables that ship with the program."""


class Row:
    """One row. `line` is its line in the file, the header being 1. Readers raise `TableError`."""

    __slots__ = ("_cells", "file", "line")

    def __init__(self, file: str, line: int, cells: dict[str, str]) -> None:
        self.file = file
        self.line = line
        self._cells = cells

    def fail(self, column: str, message: str) -> TableError:
        """The error for this cell, to be raised."""
        return TableError(self.file, self.line, column, message)

    def raw(self, column: str) -> str:
        """The cell's text, which may be empty."""
        return self._cells[column]

    def text(self, column: str) -> str:
        """The cell's text; empty is refused."""
        value = self._cells[column]
        if not value:
            raise self.fail(column, "is empty")
        return value

    def optional(self, column: str) -> str | None:
        """The cell's text, None when empty."""
        return self._cells[column] or None

    def words(self, column: str) -> tuple[str, ...]:
        """The parts between semicolons; an empty cell has none."""
        value = self._cells[column]
        if not value:
            return ()
        parts = tuple(value.split(";"))
        if not all(parts) or any(part != part.strip() for part in parts):
            raise self.fail(column, f"must be names with a semicolon between them, not {value!r}")
        return parts

    def whole(self, column: str, least: int, most: int) -> int:
        """A whole number from `least` to `most`."""
        text = self._cells[column]
        try:
            value = int(text)
        except ValueError:
            raise self.fail(column, f"must be a whole number, not {text!r}") from None
        if not least <= value <= most:
            raise self.fail(column, f"must be from {least} to {most}, not {value}")
        return value

    def number(self, column: str, least: float, most: float) -> float:
        """A finite number from `least` to `most`."""
        text = self._cells[column]
        try:
            value = float(text)
        except ValueError:
            raise self.fail(column, f"must be a number, not {text!r}") from None
        if not (math.isfinite(value) and least <= value <= most):
            raise self.fail(column, f"must be from {least:g} to {most:g}, not {text}")
        return value


def read_table(folder: Path, name: str, columns: tuple[str, ...]) -> list[Row]:
    """The rows of `folder/name`, whose header must be exactly `columns`. Raises `TableError`."""
    try:
        text = (folder / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(name, 0, "-", f"can't be read: {error}") from error
    reader = csv.reader(text.splitlines(), strict=True)
    rows: list[Row] = []
    try:
        header = tuple(next(reader, ()))
        if header != columns:
            odd = next((name for name in (*header, *columns) if (name in header) != (name in columns)), "order")
            raise TableError(name, 1, odd, f"the columns must be {', '.join(columns)}")
        for cells in reader:
            if len(cells) != len(columns):
                last = columns[min(len(cells), len(columns) - 1)]
                raise TableError(name, reader.line_num, last, f"has {len(cells)} cells instead of {len(columns)}")
            rows.append(Row(name, reader.line_num, dict(zip(columns, cells, strict=True))))
    except csv.Error as error:
        raise TableError(name, reader.line_num, "-", f"is not CSV: {error}") from error
    return rows
