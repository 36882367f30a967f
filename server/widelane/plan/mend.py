"""Puts changes into the text of a plan. Everything else of it stays as it stands: comments, order, layout."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from yaml import Mark
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from widelane.models.mend import Mend
from widelane.models.plan import Pointer
from widelane.plan.compose import compose
from widelane.plan.parse import sheet_of
from widelane.plan.sheet import BYTE_ORDER_MARK, Sheet, plain_lines

_BREAK = re.compile(r"\r\n|\r|\n")
_VALUE = re.compile(r":\s+(?:#[^\r\n]*\s+)*")
_ADORNED = ("&", "*", "!")


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


def mended(text: str, origin: str, mends: Iterable[Mend]) -> str:
    """The text with the changes; a key that stands behind an alias or an anchor is left alone.

    A second call with the mends that are still due makes those that were in each other's way.

    Raises PlanError for a text that isn't one YAML document.
    """
    sheet = sheet_of(plain_lines(text), origin)
    page = _Page(text, sheet)
    root = compose(sheet)
    edits = {edit for mend in mends for edit in _edits(page, root, mend)}
    for edit in _apart(edits):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _apart(edits: Iterable[_Edit]) -> list[_Edit]:
    """The last one first; of two that overlap only the first is kept, the other is for the next time."""
    kept: list[_Edit] = []
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept[::-1]


class _Page:
    """The text of a file as it is, and where the nodes of its YAML stand in it."""

    def __init__(self, text: str, sheet: Sheet) -> None:
        self.text = text
        self._sheet = sheet
        self._starts = [len(text) - len(text.removeprefix(BYTE_ORDER_MARK)), *(b.end() for b in _BREAK.finditer(text))]

    def offset(self, mark: Mark) -> int:
        """The place of a mark in the text."""
        line, column = self._sheet.place(mark.line, mark.column)
        start = self._starts[line - 1] if line <= len(self._starts) else len(self.text)
        return min(start + column - 1, len(self.text))

    def between(self, start: Mark, end: Mark) -> str:
        """The text from one mark to another."""
        return self.text[self.offset(start) : self.offset(end)]

    def line(self, offset: int) -> tuple[int, int]:
        """Where the line of a place starts, and where the next one does."""
        number = bisect_right(self._starts, offset)
        return self._starts[number - 1], self._starts[number] if number < len(self._starts) else len(self.text)


def _edits(page: _Page, root: Node | None, mend: Mend) -> Iterator[_Edit]:
    found = _find(root, mend.path)
    if found is None:
        return
    parent, place = found
    key, value = _pairs(parent)[place]
    if not _stands_here(page, key, value):
        return
    if mend.word:
        yield from _words(page, value, mend.word, mend.value or "")
    elif mend.value is None:
        yield from _removal(page, parent, place)
    elif isinstance(value, ScalarNode):
        yield _Edit(page.offset(value.start_mark), page.offset(value.end_mark), mend.value)


def _pairs(node: MappingNode) -> list[tuple[Node, Node]]:
    return cast("list[tuple[Node, Node]]", node.value)


def _find(root: Node | None, path: Pointer) -> tuple[MappingNode, int] | None:
    """The mapping that holds the last key of a path, and its place in it."""
    node = root
    for depth, part in enumerate(path, start=1):
        if isinstance(part, int):
            items = cast("list[Node]", node.value) if isinstance(node, SequenceNode) else []
            node = items[part] if part < len(items) else None
            continue
        if not isinstance(node, MappingNode):
            return None
        place = next((i for i, (key, _) in enumerate(_pairs(node)) if key.value == part), None)
        if place is None:
            return None
        if depth == len(path):
            return node, place
        node = _pairs(node)[place][1]
    return None


def _stands_here(page: _Page, key: Node, value: Node) -> bool:
    """Whether the value is written behind its key, and not an alias or something that others refer to."""
    between = page.between(key.end_mark, value.start_mark)
    return bool(_VALUE.fullmatch(between)) and not page.text.startswith(_ADORNED, page.offset(value.start_mark))


def _words(page: _Page, node: Node, word: str, instead: str) -> Iterator[_Edit]:
    if isinstance(node, SequenceNode):
        start, end = page.offset(node.start_mark), page.offset(node.end_mark)
        for child in cast("list[Node]", node.value):
            # An alias has the place of what it stands for, which is somewhere else.
            if start <= page.offset(child.start_mark) <= end:
                yield from _words(page, child, word, instead)
        return
    start, end = page.offset(node.start_mark), page.offset(node.end_mark)
    at = page.text.find(word, start, end)
    while at >= 0:
        yield _Edit(at, at + len(word), instead)
        at = page.text.find(word, at + len(word), end)


def _removal(page: _Page, parent: MappingNode, place: int) -> Iterator[_Edit]:
    """Takes a pair out: its line, or only the pair where others stand beside it. A comment behind it stays."""
    pairs = _pairs(parent)
    key, value = pairs[place]
    start, end = page.offset(key.start_mark), page.offset(value.end_mark)
    line, (_, stop) = page.line(start)[0], page.line(end)
    before, behind = page.text[line:start], page.text[end:stop]
    if not parent.flow_style and not before.strip(" "):
        comment = behind.lstrip(" ")
        yield _Edit(line, stop, "") if not comment.strip() else _Edit(start, stop - len(comment), "")
    elif place + 1 < len(pairs):
        following = page.offset(pairs[place + 1][0].start_mark)
        if "#" not in page.text[end:following]:
            yield _Edit(start, following, "")
    elif place:
        last = page.offset(pairs[place - 1][1].end_mark)
        if "#" not in page.text[last:start]:
            yield _Edit(last, end, "")
