"""Reads YAML by hand, so that every complaint has its line and column."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator

import yaml

from widelane.errors import Problem

Node = yaml.Node

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")


class Reading:
    """One text under reading. Complaints collect in `problems`; a value that can't be used reads as its default."""

    def __init__(self, text: str, origin: str) -> None:
        self.origin = origin
        self.problems: list[Problem] = []
        self.root: Node | None = None
        try:
            self.root = yaml.compose(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            self._add(place, "bad_yaml", f"this isn't YAML: {error.problem or error.context}")
        except yaml.YAMLError as error:
            self._add((1, 1), "bad_yaml", f"this isn't YAML: {error}")

    def complain(self, node: Node, code: str, message: str, fix: str = "") -> None:
        """Note one thing wrong at the start of `node`."""
        self._add((node.start_mark.line + 1, node.start_mark.column + 1), code, message, fix)

    def fields(self, node: Node, known: Iterable[str], what: str) -> dict[str, Node]:
        """The values of a map by key; unknown and repeated keys are complaints."""
        names = tuple(known)
        found: dict[str, Node] = {}
        for key, value in self.pairs(node, what):
            if key.value not in names:
                self.complain(key, "unknown_key", f"unknown key {key.value!r} in {what}", guess(key.value, names))
            elif key.value in found:
                self.complain(key, "repeated_key", f"key {key.value!r} stands twice in {what}", "remove one")
            else:
                found[key.value] = value
        return found

    def pairs(self, node: Node, what: str) -> Iterator[tuple[yaml.ScalarNode, Node]]:
        """The keys and values of a map, in order."""
        if not isinstance(node, yaml.MappingNode):
            self.complain(node, "wrong_type", f"{what} must be a map, not {kind(node)}")
            return
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                yield key, value
            else:
                self.complain(key, "wrong_type", f"a key of {what} must be a word, not {kind(key)}")

    def items(self, node: Node, what: str) -> list[Node]:
        """The elements of a list."""
        if not isinstance(node, yaml.SequenceNode):
            self.complain(node, "wrong_type", f"{what} must be a list, not {kind(node)}")
            return []
        return list(node.value)

    def text(self, node: Node, what: str, choices: Iterable[str] | None = None, default: str = "") -> str:
        """A word, one of `choices` when given."""
        if not isinstance(node, yaml.ScalarNode):
            self.complain(node, "wrong_type", f"{what} must be a word, not {kind(node)}")
            return default
        word = str(node.value)
        names = None if choices is None else tuple(choices)
        if names is not None and word not in names:
            self.complain(node, "unknown_value", f"unknown {what} {word!r}", guess(word, names))
            return default
        return word

    def number(self, node: Node, what: str, *, least: float = 0.0, default: float = 0.0) -> float:
        """A number of at least `least`."""
        plain = isinstance(node, yaml.ScalarNode) and not node.style and _NUMBER.fullmatch(node.value)
        value = float(node.value) if plain else math.nan
        if not math.isfinite(value):
            self.complain(node, "wrong_type", f"{what} must be a number, not {kind(node)}")
            return default
        if value < least:
            self.complain(node, "out_of_range", f"{what} is {node.value}", f"give {least:g} or more")
            return default
        return value

    def whole(self, node: Node, what: str, *, least: int = 0, default: int = 0) -> int:
        """A whole number of at least `least`."""
        value = self.number(node, what, least=least, default=default)
        if value != int(value):
            self.complain(node, "wrong_type", f"{what} must be a whole number, not {node.value}")
            return default
        return int(value)

    def _add(self, place: tuple[int, int], code: str, message: str, fix: str = "") -> None:
        self.problems.append(Problem(self.origin, *place, code, message, fix))


def kind(node: Node) -> str:
    """What a node is, for complaints."""
    if isinstance(node, yaml.MappingNode):
        return "a map"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return f"{node.value!r}" if node.value != "" else "nothing"


def guess(word: str, known: Iterable[str]) -> str:
    """A fix that names the nearest known word, or all of them when they are few."""
    names = sorted(map(str, known))
    near = difflib.get_close_matches(word, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"use one of {', '.join(names)}" if len(names) <= 20 else ""
