"""The kinds of single value that a key can want: each reads a node, says what it wants, and has a JSON Schema.

`read` gives None for a value that it could not use, after reporting it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from yaml.nodes import MappingNode, Node, ScalarNode

from widelane.models.nearest import nearest
from widelane.models.plan import Pointer
from widelane.plan.compose import IMPLICIT
from widelane.plan.reading import NULLS, Reading, label

LARGEST = 1_000_000_000
"""No number of a plan is larger: the arithmetic that follows stays finite."""
SMALLEST = 0.000001
"""The least number that counts as greater than 0."""

_INTEGER = re.compile(r"[-+]?[0-9]+$|0o[0-7]+$|0x[0-9a-fA-F]+$")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$")
_NOT_FINITE = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$")
_GROUPED = re.compile(r"[0-9]+(?:[_,' ][0-9]+)+$")
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_YES = frozenset({"yes", "on", "y"})
_NO = frozenset({"no", "off", "n"})

Schema = dict[str, Any]


class Kind(Protocol):
    """One kind of value."""

    @property
    def wanted(self) -> str:
        """What it wants, in words, with its article."""
        ...

    @property
    def example(self) -> str:
        """A value, as YAML on one line."""
        ...

    def read(self, node: Node, at: Reading, path: Pointer) -> Any:
        """The value, or None after a report."""
        ...

    def schema(self) -> Schema:
        """Its JSON Schema."""
        ...


def untagged(node: Node, at: Reading) -> bool:
    """True for a node without a written tag; reports others."""
    if node.tag == IMPLICIT:
        return True
    at.report(node, "tag", "Tags (`!name`) aren't read here.", "Remove the tag; quote a value that is to be text.")
    return False


@dataclass(frozen=True, slots=True)
class Text:
    """Text, in the plan's own spelling: 007, on and 1e-3 stay as written. Empty only when `blank`."""

    wanted: str = "a text"
    example: str = "text"
    pattern: str = ""
    single_line: bool = False
    blank: bool = False

    def read(self, node: Node, at: Reading, path: Pointer) -> str | None:
        """The text."""
        if not isinstance(node, ScalarNode) or node.tag != IMPLICIT:
            if untagged(node, at):
                at.wrong(node, path, self.wanted, self.example, self._brace_hint(node, path))
            return None
        value = cast("str", node.value)
        if not node.style and value in NULLS:
            at.wrong(node, path, self.wanted, self.example)
            return None
        if self.pattern:
            fits = re.fullmatch(self.pattern, value) is not None
        else:
            fits = bool(self.blank or value.strip()) and "\x00" not in value
            fits = fits and not (self.single_line and "\n" in value)
        if not fits:
            at.wrong(node, path, self.wanted, self.example, self._mended(value, path))
        return value if fits else None

    def _brace_hint(self, node: Node, path: Pointer) -> str:
        if isinstance(node, MappingNode) and node.flow_style:
            return f'Quote a text that begins with a brace: `{label(path)}: "{{axis}}.json"`.'
        return ""

    def _mended(self, value: str, path: Pointer) -> str:
        """The fix when dashes for the other characters make a value that fits."""
        mended = re.sub("[^A-Za-z0-9._-]+", "-", value).strip("-._")[:63]
        if self.pattern and re.fullmatch(self.pattern, mended):
            return f"Write `{label(path)}: {mended}`."
        return ""

    def schema(self) -> Schema:
        """Numbers and booleans are text too: their spelling is kept."""
        schema: Schema = {"type": ["string", "number", "boolean"]}
        if self.pattern:
            return schema | {"pattern": f"^(?:{self.pattern})$"}
        return schema if self.blank else schema | {"minLength": 1}


@dataclass(frozen=True, slots=True)
class Number:
    """A number within bounds, written without quotes; whole numbers only when `integer`."""

    wanted: str
    example: str
    low: float = SMALLEST
    high: float = LARGEST
    integer: bool = False

    def read(self, node: Node, at: Reading, path: Pointer) -> float | int | None:
        """The number, finite and within bounds."""
        if not isinstance(node, ScalarNode) or node.style or node.tag != IMPLICIT:
            if untagged(node, at):
                at.wrong(node, path, self.wanted, self.example, self._hint(node, path))
            return None
        text = cast("str", node.value)
        number = whole_number(text) if self.integer else any_number(text)
        if number is None or not self.low <= number <= self.high:
            at.wrong(node, path, self.wanted, self.example, self._hint(node, path))
            return None
        return number

    def _hint(self, node: Node, path: Pointer) -> str:
        """The fix when the value is a number in the wrong spelling."""
        if not isinstance(node, ScalarNode):
            return ""
        text = str(node.value)
        if node.style in ("'", '"') and any_number(text) is not None:
            return f"Write `{label(path)}: {text}` without quotes."
        if _GROUPED.match(text):
            return f"Write `{label(path)}: {re.sub('[^0-9]', '', text)}`."
        if _NOT_FINITE.match(text):
            return "Give a finite estimate, or remove the key when it is unknown."
        return ""

    def schema(self) -> Schema:
        """A JSON number with its bounds."""
        low: float | int = int(self.low) if self.low == int(self.low) else self.low
        return {"type": "integer" if self.integer else "number", "minimum": low, "maximum": int(self.high)}


def whole_number(text: str) -> int | None:
    """An integer of YAML 1.2's core schema; None for anything else."""
    if not _INTEGER.match(text):
        return None
    if text[:2] in ("0o", "0x"):
        return int(text, 0) if len(text) < 20 else LARGEST + 1
    if len(text.lstrip("+-0")) > 18:
        return -LARGEST - 1 if text[0] == "-" else LARGEST + 1
    return int(text)


def any_number(text: str) -> float | int | None:
    """A number of YAML 1.2's core schema; None for anything else, infinity and NaN included."""
    if _FLOAT.match(text):
        return float(text)
    return whole_number(text)


class Boolean:
    """true or false."""

    wanted = "true or false"
    example = "true"

    def read(self, node: Node, at: Reading, path: Pointer) -> bool | None:
        """The truth value."""
        if isinstance(node, ScalarNode) and not node.style and node.tag == IMPLICIT:
            if node.value in _TRUE:
                return True
            if node.value in _FALSE:
                return False
        if untagged(node, at):
            at.wrong(node, path, self.wanted, self.example, self._hint(node, path))
        return None

    def _hint(self, node: Node, path: Pointer) -> str:
        word = str(node.value).lower() if isinstance(node, ScalarNode) else ""
        if word in _YES or word == "true":
            return f"Write `{label(path)}: true`."
        return f"Write `{label(path)}: false`." if word in _NO or word == "false" else ""

    def schema(self) -> Schema:
        """A JSON boolean."""
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Choice:
    """One word of a few. `words` maps each to its value; its schema lists `names`."""

    wanted: str
    words: Mapping[str, Any]
    names: tuple[str, ...]

    @property
    def example(self) -> str:
        """The first word."""
        return self.names[0]

    def read(self, node: Node, at: Reading, path: Pointer) -> Any:
        """The value of the word; case and dashes don't matter."""
        word = Text(self.wanted, self.example).read(node, at, path)
        if word is None:
            return None
        value = self.words.get(word.lower().replace("-", "_"))
        if value is None:
            guess = nearest(word, self.words)
            hint = f"Did you mean `{guess}`?" if guess else ""
            at.wrong(node, path, f"{self.wanted} ({', '.join(self.names)})", self.example, hint)
        return value

    def schema(self) -> Schema:
        """A JSON enum."""
        return {"enum": list(self.names)}


@dataclass(frozen=True, slots=True)
class Exactly:
    """One single number."""

    number: int
    wanted: str
    hint: str

    @property
    def example(self) -> str:
        """The number."""
        return str(self.number)

    def read(self, node: Node, at: Reading, path: Pointer) -> int | None:
        """The number, or None."""
        bare = isinstance(node, ScalarNode) and not node.style and node.tag == IMPLICIT
        if not bare or whole_number(str(node.value)) != self.number:
            if untagged(node, at):
                at.wrong(node, path, self.wanted, self.example, self.hint)
            return None
        return self.number

    def schema(self) -> Schema:
        """A JSON const."""
        return {"const": self.number}
