"""Single values of a manifest: typed as YAML 1.2 says, in the spelling of the text."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import ceil
from typing import Literal, cast

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from widelane.models.plan import Pointer
from widelane.plan.kinds import LARGEST, Schema, any_number, untagged
from widelane.plan.reading import NULLS, Reading, label, shown
from widelane.queue.text import Pattern, pattern

JOBS_LIMIT = 100_000
"""Jobs of one run at most."""

_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}

Type = Literal["null", "true", "false", "number", "text"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value: its spelling, and what kind of value it is."""

    text: str
    type: Type

    @property
    def word(self) -> str:
        """How it stands in ids and commands."""
        return "null" if self.type == "null" else self.text


def scalar_of(node: ScalarNode) -> Scalar:
    """The value of a node without a tag."""
    text = cast("str", node.value)
    if node.style:
        return Scalar(text, "text")
    if text in NULLS:
        return Scalar(text, "null")
    if text in _TRUE:
        return Scalar(text, "true")
    if text in _FALSE:
        return Scalar(text, "false")
    return Scalar(text, "text" if any_number(text) is None else "number")


class GridValues:
    """The values of one key of a grid: a list of single values, or a range."""

    wanted = "a list of values, or a `range`"
    example = "[64, 128]"

    def read(self, node: Node, at: Reading, path: Pointer) -> tuple[Scalar, ...] | None:
        """The values; an empty list is one without any."""
        if isinstance(node, MappingNode):
            return self._range(node, at, path)
        if not isinstance(node, SequenceNode):
            if untagged(node, at):
                hint = ""
                if isinstance(node, ScalarNode) and node.value not in NULLS:
                    hint = f"Write `{label(path)}: [{node.value if not node.style else shown(node.value)}]`."
                at.wrong(node, path, self.wanted, self.example, hint)
            return None
        if not untagged(node, at):
            return None
        values: list[Scalar] = []
        for child in cast("list[Node]", node.value):
            if not isinstance(child, ScalarNode):
                at.wrong(child, path, "single values in its list", "[64, 128]")
            elif untagged(child, at):
                values.append(scalar_of(child))
        return tuple(values)

    def _range(self, node: MappingNode, at: Reading, path: Pointer) -> tuple[Scalar, ...] | None:
        pairs = cast("list[tuple[Node, Node]]", node.value)
        if len(pairs) != 1 or pairs[0][0].value != "range":
            at.wrong(node, path, self.wanted, self.example, f"Write `{label(path)}: {{range: [0, 10]}}`.")
            return None
        return read_range(pairs[0][1], at, path)

    def schema(self) -> Schema:
        """A JSON list of scalars, or a range."""
        bounds = {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 3}
        ranged = {
            "type": "object",
            "properties": {"range": bounds},
            "required": ["range"],
            "additionalProperties": False,
        }
        return {"anyOf": [{"type": "array", "items": _SCALAR}, ranged]}


def read_range(node: Node, at: Reading, path: Pointer) -> tuple[Scalar, ...] | None:
    """`[stop]`, `[start, stop]` or `[start, stop, step]`, as Python's range counts: `stop` isn't reached."""
    wanted, example = "`[start, stop]` or `[start, stop, step]`, numbers", "{range: [0, 10, 2]}"
    children = cast("list[Node]", node.value) if isinstance(node, SequenceNode) else []
    numbers = [_decimal(child) for child in children]
    known = [number for number in numbers if number is not None]
    if not 1 <= len(numbers) <= 3 or len(known) < len(numbers):
        at.wrong(node, (*path, "range"), wanted, example, f"Write `{label(path)}: {example}`.")
        return None
    start, stop, step = _bounds(known)
    if step == 0:
        at.report(children[2], "bad_value", "A range with step 0 has no end.", "Give another step.")
        return None
    count = max(0, ceil((Fraction(stop) - Fraction(start)) / Fraction(step)))
    if count > JOBS_LIMIT:
        at.report(node, "too_many_jobs", f"This range has {count:,} values.", f"A run has at most {JOBS_LIMIT:,} jobs.")
        return None
    return tuple(Scalar(format(start + step * number, "f"), "number") for number in range(count))


def _bounds(numbers: list[Decimal]) -> tuple[Decimal, Decimal, Decimal]:
    if len(numbers) == 1:
        return Decimal(0), numbers[0], Decimal(1)
    return numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else Decimal(1)


def _decimal(node: Node) -> Decimal | None:
    if not isinstance(node, ScalarNode) or node.style or any_number(str(node.value)) is None:
        return None
    try:
        number = Decimal(str(node.value))
    except InvalidOperation:
        return None
    return number if abs(number) <= LARGEST else None


Argument = Scalar | Pattern | tuple[Scalar | Pattern, ...]


class ArgumentValue:
    """What a key of `args` has: one value, or a list."""

    wanted = "a value, or a list of values"
    example = "0.1"

    def read(self, node: Node, at: Reading, path: Pointer) -> Argument | None:
        """A typed value; a text with placeholders; a list of either."""
        if isinstance(node, SequenceNode) and untagged(node, at):
            children = [self._one(child, at, path) for child in cast("list[Node]", node.value)]
            return tuple(child for child in children if child is not None)
        return self._one(node, at, path)

    def _one(self, node: Node, at: Reading, path: Pointer) -> Scalar | Pattern | None:
        if not isinstance(node, ScalarNode):
            if untagged(node, at):
                at.wrong(node, path, self.wanted, self.example)
            return None
        if not untagged(node, at):
            return None
        text = cast("str", node.value)
        if "$" not in text:
            return scalar_of(node)
        one = pattern(text, node)
        return one if any(True for _ in one.slots) else Scalar(str(one.fill({})), "text")

    def schema(self) -> Schema:
        """A JSON scalar or a list of them."""
        return {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]}
