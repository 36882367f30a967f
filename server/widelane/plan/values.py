"""The kinds of value that only a plan has: axes, paths, estimates, sources, environments."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from widelane.models.plan import Axis, Pointer, Source
from widelane.plan.compose import IMPLICIT
from widelane.plan.kinds import LARGEST, Kind, Number, Schema, Text, untagged
from widelane.plan.reading import NULLS, Reading, label, shown
from widelane.plan.records import ListOf

AXES_LIMIT = 16
RESERVED_AXES = frozenset({"shard", "shards", "gpus"})
"""Placeholders that a command has anyway."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED_ENV = re.compile(r"WIDELANE_.*|CUDA_VISIBLE_DEVICES|CUDA_DEVICE_ORDER")
_SIZE = Number("a whole number from 1 to 1,000,000,000", "10", 1, LARGEST, integer=True)


class AxisValues:
    """An axis: its size, or the list of its values in their own spelling."""

    wanted = "a size from 1 to 1,000,000,000, or a list of values"
    example = "10"

    def read(self, node: Node, at: Reading, path: Pointer) -> Axis | None:
        """The axis; a size is never enumerated."""
        name = str(path[-1])
        if isinstance(node, SequenceNode):
            values = self._values(node, at, path)
            return None if values is None else Axis(name=name, size=len(values), values=values)
        size = Number(self.wanted, self.example, 1, LARGEST, integer=True).read(node, at, path)
        return None if size is None else Axis(name=name, size=int(size))

    def _values(self, node: SequenceNode, at: Reading, path: Pointer) -> tuple[str, ...] | None:
        if not untagged(node, at):
            return None
        if not node.value:
            at.report(node, "bad_value", f"The axis `{label(path)}` has no values.", "List them, or give their number.")
            return None
        seen: dict[str, int] = {}
        for child in cast("list[Node]", node.value):
            if not isinstance(child, ScalarNode) or child.tag != IMPLICIT or (not child.style and child.value in NULLS):
                at.wrong(child, path, "single values in its list", "[a, b]")
            elif child.value in seen:
                message = f"The axis `{label(path)}` has {shown(child.value)} here and in line {seen[child.value]}."
                at.report(child, "duplicate_value", message, "Keep one: equal values would be one unit.")
            elif "\x00" in child.value:
                at.wrong(child, path, "values without NUL characters", "[a, b]")
            else:
                seen[child.value] = at.sheet.place(child.start_mark.line, 0)[0]
        return tuple(seen)

    def schema(self) -> Schema:
        """A JSON integer or a list of scalars."""
        values = {"type": ["string", "number", "boolean"]}
        return {"anyOf": [_SIZE.schema(), {"type": "array", "items": values, "minItems": 1, "uniqueItems": True}]}


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping from free names to one kind. `refuse` gives (message, fix) for a name that can't be used, or None."""

    value: Kind
    wanted: str
    example: str
    refuse: Callable[[str], tuple[str, str] | None]

    def read(self, node: Node, at: Reading, path: Pointer) -> tuple[tuple[str, Any], ...] | None:
        """(name, value) pairs in the order of the text."""
        if not isinstance(node, MappingNode) or node.tag != IMPLICIT:
            if untagged(node, at):
                at.wrong(node, path, self.wanted, self.example)
            return None
        pairs: list[tuple[str, Any]] = []
        for key_node, child in cast("list[tuple[Node, Node]]", node.value):
            name = str(key_node.value) if isinstance(key_node, ScalarNode) else ""
            here = (*path, name)
            refused = self.refuse(name)
            if refused is not None:
                at.report(key_node, "bad_name", *refused)
            elif here in at.places:
                at.report(key_node, "duplicate_key", f"`{name}` is here and in line {at.places[here][0]}.", "Keep one.")
            else:
                at.mark(here, key_node)
                value = self.value.read(child, at, here)
                if value is not None:
                    pairs.append((name, value))
        return tuple(pairs)

    def schema(self) -> Schema:
        """A JSON object with names by pattern."""
        return {
            "type": "object",
            "propertyNames": {"pattern": f"^{_NAME.pattern}$"},
            "additionalProperties": self.value.schema(),
        }


def _refuse_axis(name: str) -> tuple[str, str] | None:
    if not _NAME.fullmatch(name):
        return (
            f"{shown(name)} can't name an axis.",
            "Use letters, digits and _, as in `draw_set`: commands write {draw_set}.",
        )
    if name in RESERVED_AXES:
        return f"`{name}` is a placeholder that every command has; it can't name an axis.", f"Rename it: `{name}_axis`."
    return None


def _refuse_variable(name: str) -> tuple[str, str] | None:
    if not _NAME.fullmatch(name):
        return f"{shown(name)} can't name an environment variable.", "Use letters, digits and _, as in `HF_HOME`."
    if _RESERVED_ENV.fullmatch(name):
        return f"`{name}` is set by widelane for every unit.", "Remove it; read it in the command instead."
    return None


AXIS_MAP = MapOf(AxisValues(), "a mapping from axis to size", "{draw_set: 10}", _refuse_axis)


class Axes:
    """`none` (read as no axes), or a mapping from axis to size or values."""

    wanted = "the axes with their sizes, or `none`"
    example = "{model: 2, draw_set: 10}"

    def read(self, node: Node, at: Reading, path: Pointer) -> tuple[Axis, ...] | None:
        """The axes; the empty tuple for `none`."""
        if isinstance(node, ScalarNode) and node.tag == IMPLICIT and str(node.value).lower() == "none":
            return ()
        if not isinstance(node, MappingNode):
            if untagged(node, at):
                at.wrong(node, path, self.wanted, self.example)
            return None
        pairs = AXIS_MAP.read(node, at, path)
        if pairs is None:
            return None
        if not node.value:
            at.report(node, "bad_value", "`axes` is empty.", "When nothing shards, write `axes: none` and say `why:`.")
            return None
        if len(pairs) > AXES_LIMIT:
            at.report(node, "bad_value", f"More than {AXES_LIMIT} axes.", "Join axes that only vary together.")
            return None
        # With an axis missing, what follows would judge other work; with all missing, it would look like `none`.
        return tuple(axis for _, axis in pairs) if len(pairs) == len(node.value) else None

    def schema(self) -> Schema:
        """The word none, or a JSON object."""
        return {"anyOf": [{"const": "none"}, AXIS_MAP.schema() | {"minProperties": 1, "maxProperties": AXES_LIMIT}]}


ENVIRONMENT = MapOf(
    Text("a text", "value", blank=True), "a mapping from variable to text", "{HF_HOME: /tmp/hf}", _refuse_variable
)


RELOADS = MapOf(Number("minutes greater than 0", "8"), "a mapping from axis to minutes", "{model: 8}", _refuse_axis)


@dataclass(frozen=True, slots=True)
class RelativePath:
    """A path under the unit's folder."""

    wanted: str = "a path under the work folder"
    example: str = '"out/{draw_set}.json"'

    def read(self, node: Node, at: Reading, path: Pointer) -> str | None:
        """The path; absolute ones and those that climb are reported."""
        text = Text(self.wanted, self.example, single_line=True).read(node, at, path)
        if text is None:
            return None
        if text.startswith(("/", "~")) or ".." in text.split("/"):
            at.wrong(node, path, self.wanted, self.example, "Name it relative to the work folder, without `..`.")
            return None
        return text

    def schema(self) -> Schema:
        """A JSON string that neither begins with / or ~ nor climbs."""
        return {"type": "string", "pattern": r"^(?![/~])(?!(?:.*/)?\.\.(?:/|$)).+$"}


class UnitMinutes:
    """Minutes a unit takes: one number, or a list when units differ."""

    wanted = "minutes greater than 0, or a list of them"
    example = "24"

    def read(self, node: Node, at: Reading, path: Pointer) -> float | tuple[float, ...] | None:
        """The number, or all of them when each could be read."""
        one = Number(self.wanted, self.example)
        if not isinstance(node, SequenceNode):
            return one.read(node, at, path)
        values = ListOf(one, self.wanted, least=1).read(node, at, path)
        return None if values is None or len(values) < len(node.value) else values

    def schema(self) -> Schema:
        """A JSON number or a list."""
        one = Number(self.wanted, self.example).schema()
        return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}


@dataclass(frozen=True, slots=True)
class SourceForm:
    """`none` (read as an empty Source), or one of the two forms."""

    record: Kind
    wanted: str = "`{path: .}`, `{git: URL, rev: SHA}` or `none`"
    example: str = "{path: .}"

    def read(self, node: Node, at: Reading, path: Pointer) -> Source | None:
        """The source; empty for none."""
        if isinstance(node, ScalarNode):
            if node.value == "none" and node.tag == IMPLICIT:
                return Source()
            at.wrong(node, path, self.wanted, self.example)
            return None
        return cast("Source | None", self.record.read(node, at, path))

    def schema(self) -> Schema:
        """The word none, or an object."""
        return {"anyOf": [{"const": "none"}, self.record.schema()]}
