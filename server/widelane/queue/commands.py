"""Commands of a manifest: words, or a text for a shell when `shell: true` says so."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from yaml.nodes import Node, ScalarNode, SequenceNode

from widelane.models.plan import Pointer
from widelane.models.queue import Late, Word
from widelane.plan.command import bare_text
from widelane.plan.kinds import Schema, untagged
from widelane.plan.reading import NULLS, Reading, label
from widelane.queue.text import Pattern, Slot, pattern

_QUOTES = re.compile(r"[\\'\"]")
_OPERATOR = re.compile(r"&&?|\|[|&]?|\d?>>?(?:&\d)?|\d?<<?<?|;|\$\(|`|\$(?![{$])[A-Za-z_]\w*")
_EXPANSION = re.compile(r"\$\(|`|\$(?![{$])[A-Za-z_]\w*")
_LITERAL = re.compile(r"'[^']*'|\\.", re.DOTALL)
_SLOTS = re.compile(r"\$\$\{?|\$\{[^{}\n]*\}")
_BLANKS = re.compile(r"[ \t\n]+")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_CARDS = frozenset({"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"})
"""Set for every job; a command that sets them to `${GPU}` says the same."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it stands in the text: one text, or words."""

    text: str
    words: tuple[Pattern, ...] | None
    node: Node


@dataclass(frozen=True, slots=True)
class Program:
    """What a command runs: words, with the variables that stood before them. A shell's text is one word."""

    words: tuple[Pattern, ...]
    env: tuple[tuple[str, Pattern], ...] = ()
    shell: bool = False

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """All that has placeholders."""
        return (*self.words, *(value for _, value in self.env))

    def fill(self, scope: Mapping[str, str]) -> tuple[Word, ...]:
        """The words with the values of `scope`; in a shell's text they are quoted."""
        if self.shell:
            return ("bash", "-c", _fill_shell(self.words[0], scope))
        return tuple([word.fill(scope) for word in self.words])


class CommandText:
    """A command: one text that shell words split, or a list of words."""

    wanted = "a command: one text, or a list of words"
    example = "python train.py --lr ${lr}"

    def read(self, node: Node, at: Reading, path: Pointer) -> Command | None:
        """The command, not split yet: that depends on `shell`."""
        if isinstance(node, SequenceNode) and untagged(node, at):
            return self._words(node, at, path)
        if not isinstance(node, ScalarNode) or not untagged(node, at):
            if not isinstance(node, ScalarNode):
                at.wrong(node, path, self.wanted, self.example)
            return None
        text = cast("str", node.value).strip("\n")
        if not text.strip() or "\x00" in text or (not node.style and text in NULLS):
            at.wrong(node, path, self.wanted, self.example)
            return None
        return Command(text, None, node)

    def _words(self, node: SequenceNode, at: Reading, path: Pointer) -> Command | None:
        children = cast("list[Node]", node.value)
        words: list[Pattern] = []
        for number, child in enumerate(children):
            if not isinstance(child, ScalarNode) or "\x00" in str(child.value):
                at.wrong(child, (*path, number), "a word of the command", "python")
            elif untagged(child, at):
                words.append(pattern(str(child.value), child))
        if not children or not str(children[0].value).strip():
            at.wrong(node, path, self.wanted, "[python, train.py]")
            return None
        return Command("", tuple(words), node)

    def schema(self) -> Schema:
        """A JSON string or a list of words."""
        words = {"type": "array", "items": {"type": ["string", "number", "boolean"]}, "minItems": 1}
        return {"anyOf": [{"type": "string", "minLength": 1}, words]}


def program(command: Command, shell: bool, at: Reading, path: Pointer) -> Program | None:
    """What a command runs; what only a shell would understand is reported."""
    if command.words is not None:
        return Program(command.words)
    if shell:
        return Program((pattern(command.text, command.node),), shell=True)
    text = command.text.replace("\\\n", " ")
    if _misread(text, command.node, at, path):
        return None
    words = shlex.split(text) if _QUOTES.search(text) else _BLANKS.split(text.strip(" \t\n"))
    env: list[tuple[str, Pattern]] = []
    while words and (set_here := _ASSIGNMENT.fullmatch(words[0])) is not None:
        if set_here[1] not in _CARDS:
            env.append((set_here[1], pattern(set_here[2], command.node)))
        del words[0]
    if not words or not words[0]:
        at.wrong(command.node, path, CommandText.wanted, CommandText.example)
        return None
    return Program(_numbered([_at_home(word) for word in words], command.node), tuple(env))


def _numbered(words: list[str], node: Node) -> tuple[Pattern, ...]:
    """Patterns of words of one text, whose placeholders are counted through all of them."""
    counts: dict[str, int] = {}
    found: list[Pattern] = []
    for word in words:
        one = pattern(word, node)
        if any(True for _ in one.slots):
            parts: list[str | Slot] = []
            for part in one.parts:
                if isinstance(part, Slot):
                    number = counts.get(part.written, 0)
                    counts[part.written] = number + 1
                    parts.append(Slot(part.name, part.written, node, number))
                else:
                    parts.append(part)
            one = Pattern(tuple(parts), node)
        found.append(one)
    return tuple(found)


def _at_home(word: str) -> str:
    """`~/x` as a shell has it."""
    return "${env:HOME}" + word[1:] if word == "~" or word.startswith("~/") else word


def _misread(text: str, node: Node, at: Reading, path: Pointer) -> bool:
    """Reports what a shell would take otherwise than shell words do."""
    bare = _SLOTS.sub(lambda found: "x" * len(found.group()), text)
    # Between double quotes a shell still expands.
    expanded = _EXPANSION.search(_LITERAL.sub(lambda found: "x" * len(found.group()), bare))
    bare = bare_text(bare) if _QUOTES.search(bare) else bare
    if _QUOTES.search(bare):
        fix = "Close it, or give the command as a list of words."
        at.report(node, "open_quote", f"A quote or backslash is never closed in `{label(path)}`.", fix)
    elif found := _OPERATOR.search(bare) or expanded:
        message = f"No shell runs `{label(path)}`, so `{found.group()}` would not do what it does in one."
        fix = "Add `shell: true` beside it; or put the steps into a script. `${env:NAME}` is a variable of the host."
        at.report(node, "shell_syntax", message, fix)
    elif "\n" in bare.strip():
        message = f"`{label(path)}` has several lines, which would become one command."
        fix = "Fold them with `>-`, end each but the last with a backslash, or add `shell: true`."
        at.report(node, "shell_syntax", message, fix)
    else:
        return False
    return True


def _fill_shell(text: Pattern, scope: Mapping[str, str]) -> Word:
    """A shell's text: each value is quoted as the place needs it where it stands."""
    quoted = _Quoting()
    parts: list[str] = []
    current = ""
    for part in text.parts:
        if isinstance(part, str):
            quoted.pass_over(part)
            current += part
        elif (value := scope.get(part.name)) is not None:
            current += quoted.quote(value)
        else:
            parts += [current, part.name]
            current = ""
    return Late((*parts, current)) if parts else current


class _Quoting:
    """Where in a shell's text we are: outside quotes, or in which."""

    def __init__(self) -> None:
        self._open = ""

    def pass_over(self, text: str) -> None:
        """Go on to the end of a piece."""
        skip = False
        for character in text:
            if skip:
                skip = False
            elif character == "\\" and self._open != "'":
                skip = True
            elif character == self._open:
                self._open = ""
            elif not self._open and character in "'\"":
                self._open = character

    def quote(self, value: str) -> str:
        """The value as one word, or as a part of the quoted word that it stands in."""
        return _QUOTERS[self._open](value)


def _in_double(value: str) -> str:
    return re.sub(r'(["\\$`])', r"\\\1", value)


def _in_single(value: str) -> str:
    return value.replace("'", "'\\''")


_QUOTERS: Mapping[str, Callable[[str], str]] = {"": shlex.quote, '"': _in_double, "'": _in_single}
