"""What a phase or a job waits for, as it is written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from widelane.models.plan import Pointer
from widelane.models.queue import When
from widelane.plan.kinds import Choice, Schema, Text, untagged
from widelane.plan.reading import NULLS, Reading
from widelane.plan.records import Key, ListOf, Record
from widelane.queue.text import Pattern, pattern

_PHASE = re.compile(r"phase:\s*(.+)")
WHEN = Choice("when it counts", {when.value: when for when in When}, tuple(when.value for when in When))


@dataclass(frozen=True, slots=True)
class WrittenNeed:
    """One item of `needs`: a phase (of which `match` picks the jobs), or a job."""

    name: Pattern
    is_phase: bool
    when: When
    match: tuple[str, ...] | None
    node: Node
    path: Pointer


class NeedItem:
    """A job's id, `phase:NAME`, or a mapping."""

    wanted = "a job's id, `phase:NAME`, or `{phase: NAME, match: [KEY]}`"
    example = "phase:train"

    def read(self, node: Node, at: Reading, path: Pointer) -> WrittenNeed | None:
        """The item."""
        if isinstance(node, MappingNode):
            return _read_mapping(node, at, path)
        text = Text(self.wanted, self.example, single_line=True).read(node, at, path)
        if text is None:
            return None
        found = _PHASE.fullmatch(text.strip())
        name = pattern(found[1] if found else text.strip(), node)
        return WrittenNeed(name, found is not None, When.SUCCESS, None, node, path)

    def schema(self) -> Schema:
        """A JSON string or an object."""
        return {"anyOf": [{"type": "string", "minLength": 1}, NEED.schema()]}


class PhaseItem:
    """The name of a phase: an item of `depends_on`."""

    wanted = "the name of a phase"
    example = "train"

    def read(self, node: Node, at: Reading, path: Pointer) -> WrittenNeed | None:
        """The item."""
        text = Text(self.wanted, self.example, single_line=True).read(node, at, path)
        if text is None:
            return None
        return WrittenNeed(pattern(text.strip(), node), True, When.SUCCESS, None, node, path)

    def schema(self) -> Schema:
        """A JSON string."""
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class OneOrMore:
    """A list, or its only item without the brackets."""

    item: Any
    wanted: str

    @property
    def example(self) -> str:
        """A list of one item."""
        return f"[{self.item.example}]"

    def read(self, node: Node, at: Reading, path: Pointer) -> tuple[Any, ...] | None:
        """The items that could be read."""
        if isinstance(node, SequenceNode):
            return ListOf(self.item, self.wanted).read(node, at, path)
        if isinstance(node, ScalarNode) and not node.style and node.value in NULLS and untagged(node, at):
            at.wrong(node, path, self.wanted, self.example)
            return None
        value = self.item.read(node, at, path)
        return None if value is None else (value,)

    def schema(self) -> Schema:
        """One, or a JSON array."""
        one: Schema = self.item.schema()
        return {"anyOf": [one, {"type": "array", "items": one}]}


def _one_target(fields: dict[str, Any], at: Reading, path: Pointer) -> None:
    if at.has(path, "phase") == at.has(path, "job"):
        message = "A need names a `phase` or a `job`."
        at.report_at(path, "missing_key", message, "Write `{phase: NAME}` or `{job: ID}`.")
    elif "match" in fields and not at.has(path, "phase"):
        at.report_at((*path, "match"), "contradiction", "`match` picks jobs of a `phase`.", "Remove it.")


NEED = Record(
    "an item of `needs`",
    "a mapping of a `phase` or a `job`",
    "{phase: train, match: [N]}",
    {
        "phase": Key(Text("the name of a phase", "train", single_line=True), "The phase that is waited for."),
        "job": Key(Text("a job's id", "train-s1", single_line=True), "Or the one job that is."),
        "match": Key(
            OneOrMore(Text("a key of the grid", "N"), "a list of keys of the grid"),
            "With `phase`: only its jobs with the same values of these keys.",
        ),
        "when": Key(WHEN, "success (default), finished (whatever the end) or failure."),
    },
    lambda fields, path: (fields, path),
    (_one_target,),
)


def _read_mapping(node: MappingNode, at: Reading, path: Pointer) -> WrittenNeed | None:
    read: tuple[dict[str, Any], Pointer] | None = NEED.read(node, at, path)
    if read is None:
        return None
    fields = read[0]
    name = fields.get("phase", fields.get("job"))
    if name is None:
        return None
    when: When = fields.get("when", When.SUCCESS)
    return WrittenNeed(pattern(name, node), "phase" in fields, when, fields.get("match"), node, path)
