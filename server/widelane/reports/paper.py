"""What a report is written on: its width in columns, and whether it takes colour."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Style = Literal["good", "bad", "warn", "dim", "strong"]

_CODES: dict[Style, str] = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "strong": "1"}
_PAINT = re.compile(r"\x1b\[\d*m")
_LEAST_COLUMNS = 40
_LEAST_LAST = 16


def cells(text: str) -> int:
    """Columns that a text takes on a terminal: paint takes none, wide characters take two."""
    return sum(_width(character) for character in _PAINT.sub("", text))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


@dataclass(frozen=True, slots=True)
class Paper:
    """Columns and colour. The text is the same with and without colour."""

    columns: int = 100
    colour: bool = False

    def paint(self, text: str, style: Style) -> str:
        """The text in a style; unchanged without colour."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.colour and text else text

    def wrap(self, text: str, indent: str, hanging: str | None = None) -> list[str]:
        """Lines of at most `columns` columns; the first starts with `indent`, the others with `hanging`."""
        return textwrap.wrap(
            text,
            width=max(self.columns, _LEAST_COLUMNS),
            initial_indent=indent,
            subsequent_indent=indent if hanging is None else hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
        """Aligned columns: to the right under a head that starts with `>`. The last column wraps."""
        titles = [head.removeprefix(">") for head in heads]
        widths = [max(cells(row[index]) for row in (titles, *rows)) for index in range(len(heads))]
        right = [head.startswith(">") for head in heads]
        lines = [self.paint(line, "dim") for line in self._row(titles, widths, right, indent)]
        for row in rows:
            lines += self._row(row, widths, right, indent)
        return lines

    def _row(self, row: Sequence[str], widths: list[int], right: list[bool], indent: str) -> list[str]:
        start = indent + "".join(
            _pad(cell, width, to_right) + "  " for cell, width, to_right in zip(row[:-1], widths, right, strict=False)
        )
        room = max(self.columns - cells(start), _LEAST_LAST)
        last = row[-1]
        if cells(last) <= room:
            return [(start + _pad(last, widths[-1], right[-1])).rstrip()]
        hanging = " " * cells(start)
        parts = textwrap.wrap(_PAINT.sub("", last), room, break_long_words=False, break_on_hyphens=False)
        return [start + parts[0], *(hanging + part for part in parts[1:])]


def _pad(cell: str, width: int, to_right: bool) -> str:
    space = " " * (width - cells(cell))
    return space + cell if to_right else cell + space


def duration(hours: float) -> str:
    """Hours as people say them: `1 h 20 min`, `8 min`, `30 s`."""
    seconds = round(hours * 3600)
    if seconds < 60:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def plural(count: int, noun: str) -> str:
    """`1 unit`, `2 units`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
