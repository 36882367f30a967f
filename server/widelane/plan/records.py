"""Kinds made of others: lists, and mappings with a table of keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from widelane.models.nearest import nearest
from widelane.models.plan import Pointer
from widelane.plan.compose import IMPLICIT
from widelane.plan.kinds import Kind, Schema, untagged
from widelane.plan.reading import NULLS, Reading, found, label, named, shown


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of one kind, as a tuple; items that can't be used are reported and left out."""

    item: Kind
    wanted: str
    least: int = 0

    @property
    def example(self) -> str:
        """A list of one item."""
        return f"[{self.item.example}]"

    def read(self, node: Node, at: Reading, path: Pointer) -> tuple[Any, ...] | None:
        """The items that could be read."""
        if not isinstance(node, SequenceNode) or node.tag != IMPLICIT:
            if untagged(node, at):
                at.wrong(node, path, self.wanted, self.example, self._hint(node, path))
            return None
        nodes = cast("list[Node]", node.value)
        if len(nodes) < self.least:
            at.report(node, "bad_value", f"`{label(path)}` is empty.", f"Write `{label(path)}: {self.example}`.")
            return None
        items: list[Any] = []
        for number, child in enumerate(nodes):
            here = (*path, number)
            at.mark(here, child)
            value = self.item.read(child, at, here)
            if value is not None:
                items.append(value)
        return tuple(items)

    def _hint(self, node: Node, path: Pointer) -> str:
        if isinstance(node, ScalarNode) and node.value not in NULLS and "\n" not in str(node.value):
            text = str(node.value)
            plain = re.fullmatch(r"[A-Za-z0-9_./ -]+", text)
            return f"Write `{label(path)}: [{text if plain else shown(text)}]`."
        return ""

    def schema(self) -> Schema:
        """A JSON array."""
        schema: Schema = {"type": "array", "items": self.item.schema()}
        return schema | {"minItems": self.least} if self.least else schema


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a mapping. `field` is the model's name for it, `words` are what people write instead."""

    kind: Kind
    doc: str
    required: bool = False
    field: str = ""
    words: tuple[str, ...] = ()


Keys = Mapping[str, Key]
Check = Callable[[dict[str, Any], Reading, Pointer], None]


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping with known keys. `checks` see the fields that could be read; `build` makes the value of them."""

    title: str
    wanted: str
    example: str
    keys: Keys
    build: Callable[[dict[str, Any], Pointer], Any]
    checks: tuple[Check, ...] = ()

    def read(self, node: Node, at: Reading, path: Pointer) -> Any:
        """The built value, or None when a required key is missing or unreadable."""
        if not isinstance(node, MappingNode) or node.tag != IMPLICIT:
            if untagged(node, at):
                at.wrong(node, path, self.wanted, self.example)
            return None
        fields = self._fields(node, at, path)
        whole = True
        for name, key in self.keys.items():
            if key.required and (key.field or name) not in fields:
                whole = False
                if not at.has(path, name):
                    at.report(node, "missing_key", f"`{name}` is missing.", f"Write `{name}: {key.kind.example}`.")
        for check in self.checks:
            check(fields, at, path)
        return self.build(fields, path) if whole else None

    def _fields(self, node: MappingNode, at: Reading, path: Pointer) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        places, known = at.places, self.keys
        for key_node, child in cast("list[tuple[Node, Node]]", node.value):
            name = key_node.value
            key = known.get(name) if isinstance(key_node, ScalarNode) else None
            if key is None:
                self._unknown(key_node, at)
                continue
            here = (*path, name)
            if here in places:
                at.report(key_node, "duplicate_key", f"`{name}` is here and in line {places[here][0]}.", "Keep one.")
                continue
            at.mark(here, key_node)
            value = key.kind.read(child, at, here)
            if value is not None:
                fields[key.field or name] = value
        return fields

    def _unknown(self, node: Node, at: Reading) -> None:
        if not isinstance(node, ScalarNode):
            at.report(node, "unknown_key", f"A key must be a text; found {found(node)}.", "Quote it.")
            return
        name = str(node.value)
        if name == "<<":
            fix = "Repeat the keys; `source`, `store` and `env` can be set once for the whole plan."
            at.report(node, "unknown_key", "Merge keys (`<<`) are of YAML 1.1 and aren't read.", fix)
            return
        guess = next((key for key, row in self.keys.items() if name.lower() in row.words), None)
        guess = guess or nearest(name, self.keys)
        fix = f"Did you mean `{guess}`?" if guess else f"Known keys: {', '.join(self.keys)}."
        at.report(node, "unknown_key", f"{named(name)} is no key of {self.title}.", fix)

    def schema(self) -> Schema:
        """A JSON object that takes no other keys."""
        rows = {name: key.kind.schema() | {"description": key.doc} for name, key in self.keys.items()}
        schema: Schema = {"type": "object", "properties": rows, "additionalProperties": False}
        required = [name for name, key in self.keys.items() if key.required]
        return schema | {"required": required} if required else schema
