"""The kinds of value that a grid is made of."""

from __future__ import annotations

import re
from typing import cast

from yaml.nodes import Node, ScalarNode, SequenceNode

from widelane.models.plan import Pointer
from widelane.plan.kinds import Schema, untagged
from widelane.plan.reading import Reading, shown
from widelane.plan.records import ListOf
from widelane.plan.values import MapOf
from widelane.queue.needs import OneOrMore
from widelane.queue.scalars import ArgumentValue, GridValues, Scalar, scalar_of

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}


def _refuse_key(name: str) -> tuple[str, str] | None:
    if _NAME.fullmatch(name):
        return None
    return f"{shown(name)} can't name a key of a grid.", "Begin with a letter; texts then write it as in ${lr}."


def _refuse_argument(name: str) -> tuple[str, str] | None:
    if name and not re.search(r"[\s=\x00]", name):
        return None
    return f"{shown(name)} can't name an argument.", "Write it without spaces and without `=`, as in `lr`."


class SingleValue:
    """One value of a key of the grid."""

    wanted = "a single value"
    example = "64"

    def read(self, node: Node, at: Reading, path: Pointer) -> Scalar | None:
        """The value, typed."""
        if isinstance(node, ScalarNode) and untagged(node, at):
            return scalar_of(node)
        if not isinstance(node, ScalarNode):
            at.wrong(node, path, self.wanted, self.example)
        return None

    def schema(self) -> Schema:
        """A JSON scalar."""
        return _SCALAR


class SomeValues:
    """One value, or a list of those that are meant."""

    wanted = "a value, or a list of values"
    example = "64"

    def read(self, node: Node, at: Reading, path: Pointer) -> tuple[Scalar, ...] | None:
        """The values."""
        if isinstance(node, SequenceNode):
            found = [SingleValue().read(child, at, path) for child in cast("list[Node]", node.value)]
            return tuple(value for value in found if value is not None)
        one = SingleValue().read(node, at, path)
        return None if one is None else (one,)

    def schema(self) -> Schema:
        """A JSON scalar or a list of them."""
        return {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]}


GRID = MapOf(GridValues(), "a mapping from key to values", "{N: [64, 128]}", _refuse_key)
ZIP = OneOrMore(GRID, "a mapping from key to values that go together, or a list of such mappings")
INCLUDE = ListOf(
    MapOf(SingleValue(), "a mapping from key to value", "{N: 512, seed: 1}", _refuse_key), "a list of combinations"
)
EXCLUDE = ListOf(
    MapOf(SomeValues(), "a mapping from key to value", "{N: 64, seed: [1, 2]}", _refuse_key), "a list of combinations"
)
ARGS = MapOf(ArgumentValue(), "a mapping from argument to value", "{lr: 0.1}", _refuse_argument)
