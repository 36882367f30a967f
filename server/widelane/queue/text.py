"""Texts with placeholders: `${name}`, in preconditions also `{name}`; `$$` is a dollar."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from yaml.nodes import Node

from widelane.errors import Problem
from widelane.models.nearest import nearest
from widelane.models.queue import Late, Word
from widelane.plan.reading import Reading, named

_SLOT = re.compile(r"\$\$|\$\{([^{}\n]*)\}")
_BRACED = re.compile(r"\$\$(?:\{[^{}\n]*\})?|\$\{([^{}\n]*)\}|\{([A-Za-z_]\w*)\}")
_ENV = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")

LATE = frozenset({"gpu", "GPU", "gpus", "job.attempt", "run.dir", "run.id"})
"""Names that are known when an attempt starts, not before; `env:NAME` is one too."""
EARLY = frozenset({"job.id", "phase"})
"""Names that every job has, beside those of its grid and its args."""


def report_place(at: Reading, place: tuple[int, int], code: str, message: str, fix: str = "") -> None:
    """A problem at a 1-based line and column."""
    at.problems.append(Problem(at.sheet.origin, *place, code, message, fix))


def is_late(name: str) -> bool:
    """Whether the host fills this name in."""
    return name in LATE or _ENV.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Slot:
    """One placeholder: its name, and as which of its node's placeholders it stands there."""

    name: str
    written: str
    node: Node
    number: int

    def place(self, at: Reading) -> tuple[int, int]:
        """1-based line and column of the placeholder in the file."""
        start, end = self.node.start_mark, self.node.end_mark
        seen = 0
        for number, line in enumerate(at.sheet.text.split("\n")[start.line : end.line + 1], start.line):
            offset = start.column if number == start.line else 0
            while (found := line.find(self.written, offset)) >= 0:
                if seen == self.number:
                    return at.sheet.place(number, found)
                seen, offset = seen + 1, found + len(self.written)
        return at.sheet.place(start.line, start.column)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text cut at its placeholders."""

    parts: tuple[str | Slot, ...]
    node: Node

    @property
    def slots(self) -> Iterator[Slot]:
        """The placeholders, in their order."""
        return (part for part in self.parts if isinstance(part, Slot))

    @property
    def only(self) -> str | None:
        """The name, when the whole text is one placeholder."""
        return self.parts[0].name if len(self.parts) == 1 and isinstance(self.parts[0], Slot) else None

    def fill(self, scope: Mapping[str, str]) -> Word:
        """The text with the values of `scope` in it; names that aren't there are left to the host."""
        if len(self.parts) == 1 and isinstance(self.parts[0], str):
            return self.parts[0]
        pieces: list[str] = []
        late = False
        text = ""
        for part in self.parts:
            if isinstance(part, str):
                text += part
            elif (value := scope.get(part.name)) is not None:
                text += value
            else:
                pieces += [text, part.name]
                text, late = "", True
        return Late((*pieces, text)) if late else text


def pattern(text: str, node: Node, *, braced: bool = False) -> Pattern:
    """Cut a text. With `braced`, `{name}` is a placeholder as well."""
    if "$" not in text and not (braced and "{" in text):
        return Pattern((text,), node)
    parts: list[str | Slot] = []
    counts: dict[str, int] = {}
    literal, end = "", 0
    for found in (_BRACED if braced else _SLOT).finditer(text):
        literal += text[end : found.start()]
        end = found.end()
        written = found.group()
        name = next((group for group in found.groups() if group is not None), None)
        if name is None:
            literal += written[1:]
            continue
        if literal:
            parts.append(literal)
            literal = ""
        number = counts.get(written, 0)
        counts[written] = number + 1
        parts.append(Slot(name.strip(), written, node, number))
    literal += text[end:]
    if literal or not parts:
        parts.append(literal)
    return Pattern(tuple(parts), node)


def check_slots(one: Pattern, known: Collection[str], at: Reading, *, late: bool = True) -> bool:
    """Report placeholders that nothing fills in; False when there was one.

    Without `late`, names that the host knows are none.
    """
    fine = True
    for slot in one.slots:
        if slot.name in known or slot.name in EARLY:
            continue
        if is_late(slot.name):
            if late:
                continue
            message = f"`{slot.written}` is known only when an attempt starts, which is too late here."
            fix = "Use the names of the grid and `${job.id}`."
        else:
            message, fix = _unknown(slot, known)
        fine = False
        report_place(at, slot.place(at), "unknown_name", message, fix)
    return fine


def _unknown(slot: Slot, known: Collection[str]) -> tuple[str, str]:
    if not slot.name:
        return f"`{slot.written}` names nothing.", "Write the name of a grid key in it, or `$$` for a dollar."
    guess = nearest(slot.name, [*known, *EARLY, *LATE])
    if guess:
        fix = f"Did you mean `{guess}`?"
    elif re.fullmatch(r"[A-Z_][A-Z0-9_]*", slot.name):
        fix = f"Write `${{env:{slot.name}}}` for a variable of the host, or `$${slot.written[1:]}` for the text itself."
    else:
        names = ", ".join(sorted(known)) or "none: there is no grid"
        fix = f"Names of the grid here: {names}. Write `$$` for a dollar."
    return f"Nothing is named {named(slot.name)} here.", fix
