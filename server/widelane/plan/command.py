"""Commands: split by the rules of shell words, never run by a shell."""

from __future__ import annotations

import re
import shlex
from typing import cast

from yaml.nodes import Node, ScalarNode, SequenceNode

from widelane.models.plan import Command, Pointer
from widelane.plan.kinds import Schema, Text
from widelane.plan.reading import Reading, label
from widelane.plan.records import ListOf

_CLOSED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_QUOTING = re.compile(r"[\\'\"]")
_SHELL = re.compile(r"(?<!\S)(?:&&?|\|[|&]?|\d?>>?(?:&\d|\S+)?|\d?<<?<?|;)(?!\S)|(?<=\S);(?!\S)|\$\(|`")
_NEWLINE = re.compile(r"\n(?=.*\S)", re.DOTALL)
_WORDS = ListOf(Text("a word of the command", "python", blank=True), "a list of words", least=1)


class CommandLine:
    """A command: one text that shell words split, or a list of words."""

    wanted = "a command: one text, or a list of words"
    example = "python run.py --draw {draw_set}"

    def read(self, node: Node, at: Reading, path: Pointer) -> Command | None:
        """The text, its continued lines joined; or the words."""
        if isinstance(node, SequenceNode):
            return self._words(node, at, path)
        text = Text(self.wanted, self.example).read(node, at, path)
        if text is None:
            return None
        quoting = _QUOTING.search(text) is not None
        bare = bare_text(text) if quoting else text
        if self._misread(text, bare, node, at, path):
            return None
        text = text.replace("\\\n", "") if quoting else text
        if quoting and not (shlex.split(text) or [""])[0]:
            at.wrong(node, path, self.wanted, self.example)
            return None
        return text

    def _words(self, node: SequenceNode, at: Reading, path: Pointer) -> tuple[str, ...] | None:
        words = _WORDS.read(node, at, path)
        if words and not words[0].strip():
            at.wrong(cast("list[Node]", node.value)[0], (*path, 0), "the program", "python")
            return None
        return words or None

    def _misread(self, text: str, bare: str, node: Node, at: Reading, path: Pointer) -> bool:
        """Reports what a shell would take otherwise than shell words do."""
        if left := _QUOTING.search(bare):
            what = "A backslash ends" if left.group() == "\\" else "A quote is never closed in"
            fix = "Close it, or give the command as a list of words."
            self._report(left.start(), node, at, "open_quote", f"{what} `{label(path)}`.", fix)
        elif found := _SHELL.search(bare):
            message = f"No shell runs `{label(path)}`, so `{found.group()}` would be an argument like any other."
            fix = "Put the steps into a script, or write `bash -c '...'`; a list of words takes everything as it is."
            self._report(found.start(), node, at, "shell_syntax", message, fix)
        elif found := _NEWLINE.search(bare):
            message = f"`{label(path)}` has several lines, which would become one command."
            fix = "End each line but the last with a backslash, fold them with `>-`, or put the steps into a script."
            self._report(found.start(), node, at, "shell_syntax", message, fix)
        else:
            return False
        return True

    def _report(self, offset: int, node: Node, at: Reading, code: str, message: str, fix: str) -> None:
        """Points at the character when the text stands in the file as it is, else at its beginning."""
        start, end = node.start_mark, node.end_mark
        plain = isinstance(node, ScalarNode) and not node.style
        same_line = start.line == end.line and end.column - start.column == len(cast("str", node.value))
        shift = offset if plain and same_line else 0
        at.problems.append(at.sheet.problem(start.line, start.column + shift, code, message, fix))

    def schema(self) -> Schema:
        """A JSON string or a list of words."""
        return {"anyOf": [{"type": "string", "minLength": 1}, _WORDS.schema()]}


def bare_text(text: str) -> str:
    """The text with x for everything that is quoted; a quote or backslash that is left was never closed."""
    return _CLOSED.sub(lambda found: "x" * len(found.group()), text)
