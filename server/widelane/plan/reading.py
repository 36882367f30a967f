"""One reading of one text: where its keys stand, and everything that is wrong with it."""

from __future__ import annotations

import json
import re

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from widelane.errors import Problem
from widelane.models.plan import Pointer
from widelane.plan.sheet import Sheet

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_SHOWN = 40
_WORD = re.compile(r"[\w.<>@/+-]{1,60}")
_BARE = re.compile(r"[-+]?\.?[0-9][0-9.eE+-]*|true|false|[-+]?\.inf|\.nan", re.IGNORECASE)


def shown(text: str) -> str:
    """The text in quotes on one line, shortened."""
    return json.dumps(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…", ensure_ascii=False)


def named(name: str) -> str:
    """A key or code that was found: in backticks, or in quotes when it isn't one word on a line."""
    return f"`{name}`" if _WORD.fullmatch(name) else shown(name)


def found(node: Node) -> str:
    """What a node is, in words: `the text "8"`."""
    if isinstance(node, MappingNode):
        return "a mapping"
    if isinstance(node, SequenceNode):
        return "a list"
    value = str(node.value)
    if isinstance(node, ScalarNode) and not node.style:
        if value in NULLS:
            return "nothing"
        if len(value) <= _SHOWN and _BARE.fullmatch(value):
            return value
    return f"the text {shown(value)}"


def label(path: Pointer) -> str:
    """The last key of a path with the list index that follows it: `after[0]`."""
    keys = [number for number, part in enumerate(path) if isinstance(part, str)]
    if not keys:
        return "plan"
    tail = "".join(f"[{part}]" for part in path[keys[-1] + 1 :])
    return f"{path[keys[-1]]}{tail}"


class Reading:
    """Collects places of keys and problems while a text is read."""

    __slots__ = ("places", "problems", "sheet")

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.places: dict[Pointer, tuple[int, int]] = {}
        self.problems: list[Problem] = []

    def mark(self, path: Pointer, node: Node) -> None:
        """Remembers that the key of `path` stands where the node starts."""
        start = node.start_mark
        self.places[path] = self.sheet.place(start.line, start.column)

    def report(self, node: Node, code: str, message: str, fix: str = "") -> None:
        """A problem where the node starts."""
        start = node.start_mark
        self.problems.append(self.sheet.problem(start.line, start.column, code, message, fix))

    def report_at(self, path: Pointer, code: str, message: str, fix: str = "") -> None:
        """A problem at a key that was marked, or at its nearest marked parent."""
        while path and path not in self.places:
            path = path[:-1]
        self.problems.append(Problem(self.sheet.origin, *self.places.get(path, (1, 1)), code, message, fix))

    def has(self, path: Pointer, *keys: str) -> bool:
        """True when every key stands in the text, readable or not."""
        return all((*path, key) in self.places for key in keys)

    def wrong(self, node: Node, path: Pointer, wanted: str, example: str, hint: str = "") -> None:
        """A value of the wrong type or out of range."""
        name = label(path)
        missing = isinstance(node, ScalarNode) and not node.style and node.value in NULLS
        if missing:
            message = f"`{name}` has no value; it wants {wanted}."
        else:
            message = f"`{name}` wants {wanted}; found {found(node)}."
        write = f"{name}: {example}" if path and isinstance(path[-1], str) else example
        fix = hint or f"Write `{write}`" + (", or remove the key." if missing else ".")
        self.report(node, "wrong_type" if not missing else "no_value", message, fix)
