"""One value of the policy: its kind, its bounds, and why it is what it is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from widelane.models.nearest import nearest

Value = bool | int | float | str | tuple[str, ...] | tuple[int, ...]

KINDS = ("whole", "number", "switch", "choice", "names", "wholes")


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of policy.csv. `options` are the legal words of a choice or of names (none: any word)."""

    name: str
    value: Value
    unit: str
    kind: str
    options: tuple[str, ...]
    least: float | None
    most: float | None
    why: str

    def read(self, text: str) -> Value:
        """The value that a cell of the table holds. Raises ValueError with what is wrong."""
        if self.kind == "switch":
            return self.check({"true": True, "false": False}.get(text, text))
        if self.kind in ("names", "wholes"):
            parts = text.split(";") if text else []
            return self.check([_number(part) if self.kind == "wholes" else part for part in parts])
        return self.check(text if self.kind == "choice" else _number(text))

    def check(self, value: Any) -> Value:
        """The value in its own type. Raises ValueError with what is wrong."""
        if self.kind == "switch":
            if not isinstance(value, bool):
                raise ValueError(f"must be true or false, not {value!r}")
            return value
        if self.kind == "choice":
            return self._word(value)
        if self.kind == "names":
            return tuple(self._word(item) for item in self._items(value))
        if self.kind == "wholes":
            return tuple(self._whole(item) for item in self._items(value))
        return self._whole(value) if self.kind == "whole" else self._number(value)

    def _items(self, value: Any) -> list[object]:
        if not isinstance(value, list) or not value:
            raise ValueError(f"must be a list with at least one item, not {value!r}")
        items = cast("list[object]", value)
        if len(set(map(repr, items))) != len(items):
            raise ValueError("names an item twice")
        return items

    def _word(self, value: Any) -> str:
        if not isinstance(value, str) or not value or value != value.strip():
            raise ValueError(f"must be a word, not {value!r}")
        if self.options and value not in self.options:
            raise ValueError(f"must be one of {', '.join(self.options)}, not {value!r}")
        return value

    def _whole(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"must be a whole number, not {value!r}")
        self._bounds(value)
        return value

    def _number(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"must be a number, not {value!r}")
        self._bounds(value)
        return float(value)

    def _bounds(self, value: float) -> None:
        if self.least is not None and value < self.least:
            raise ValueError(f"must be at least {self.least:g}, not {value:g}")
        if self.most is not None and value > self.most:
            raise ValueError(f"must be at most {self.most:g}, not {value:g}")


def _number(text: str) -> int | float | str:
    """The number in a cell; the text itself when it is none, for the check to refuse."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The hint for a mistyped name, "" when no known name is near."""
    guess = nearest(word, known)
    return f'did you mean "{guess}"?' if guess else ""
