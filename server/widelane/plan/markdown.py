"""Finds the one fenced block with info string `yaml widelane` in a Markdown text.

Follows CommonMark where a block could be mistaken: longer fences, other languages' blocks that show one, list items,
HTML comments and indented code. It knows no paragraphs: a text that goes on at the margin ends a list item.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from widelane.errors import PlanError, Problem
from widelane.plan.sheet import Sheet

INFO = ("yaml", "widelane")
_FENCE = re.compile(r" *(?P<marks>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)$")
_ITEM = re.compile(r"(?:[-+*]|\d{1,9}[.)])(?: +|$)")
_DEPTH_LIMIT = 32
_FIX = "Put the plan between a line ```yaml widelane and a line ```."


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block: 0-based line of its opening, line after its last content, and the columns before its marks."""

    info: str
    opening: int
    end: int
    indent: int
    closed: bool

    def is_plan(self) -> bool:
        """True for the info string `yaml widelane`."""
        return tuple(self.info.lower().split()) == INFO


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


class _Containers:
    """The content columns of the list items that a line stands in."""

    def __init__(self) -> None:
        self.columns: list[int] = []

    @property
    def column(self) -> int:
        return self.columns[-1] if self.columns else 0

    def enter(self, line: str) -> str:
        """Leaves items that end before this line, enters those that begin in it; the line with markers blanked."""
        while self.columns and _indent(line) < self.columns[-1]:
            self.columns.pop()
        while len(self.columns) < _DEPTH_LIMIT and (start := _indent(line)) - self.column <= 3:
            item = _ITEM.match(line, start)
            if item is None:
                break
            spaces = len(item.group()) - len(item.group().rstrip(" "))
            wide = spaces if 1 <= spaces <= 4 else 1
            self.columns.append(start + len(item.group().rstrip(" ")) + wide)
            line = " " * item.end() + line[item.end() :]
        return line


def _block_end(lines: list[str], opening: int, marks: str, column: int) -> tuple[int, bool]:
    """(line after the last content, whether a closing fence stands there)."""
    closing = re.compile(rf"{re.escape(marks[0])}{{{len(marks)},}}[ \t]*$")
    for number in range(opening + 1, len(lines)):
        line = lines[number]
        indent = _indent(line)
        if indent < column and line.strip():
            return number, False
        if indent - column <= 3 and closing.match(line, indent):
            return number, True
    return len(lines), False


def fences(lines: list[str]) -> Iterator[Fence]:
    """Every fenced block of the text, in order."""
    containers = _Containers()
    number = 0
    while number < len(lines):
        line = lines[number]
        if not line.strip():
            number += 1
            continue
        line = containers.enter(line)
        inside = _indent(line) - containers.column
        if inside <= 3 and line.lstrip(" ").startswith("<!--"):
            while number < len(lines) - 1 and "-->" not in lines[number]:
                number += 1
        elif inside <= 3 and (found := _FENCE.match(line)):
            end, closed = _block_end(lines, number, found["marks"], containers.column)
            yield Fence(found["info"].strip(), number, end, found.start("marks"), closed)
            number = end - (not closed)
        number += 1


def plan_sheet(text: str, origin: str) -> Sheet:
    """The YAML of the one plan block. Raises PlanError when there is none, more than one, or it never ends."""
    lines = text.split("\n")
    found = list(fences(lines))
    blocks = [fence for fence in found if fence.is_plan()]
    if len(blocks) != 1:
        raise PlanError(_wrong_count(lines, origin, found, blocks))
    block = blocks[0]
    if not block.closed:
        message = f"The block that opens in line {block.opening + 1} is never closed."
        fix = "End it with a line of the same marks as its opening."
        raise PlanError((Problem(origin, block.opening + 1, block.indent + 1, "open_block", message, fix),))
    content = lines[block.opening + 1 : block.end]
    cuts = tuple(min(block.indent, _indent(line)) for line in content)
    body = "".join(f"{line[cut:]}\n" for line, cut in zip(content, cuts, strict=True))
    return Sheet(body, origin, block.opening + 1, cuts)


def _wrong_count(lines: list[str], origin: str, found: list[Fence], blocks: list[Fence]) -> tuple[Problem, ...]:
    if blocks:
        where = ", ".join(str(block.opening + 1) for block in blocks)
        message = f"One plan per text, but `yaml widelane` blocks open in lines {where}."
        fix = "Keep one; show others as plain `yaml`."
        return tuple(
            Problem(origin, block.opening + 1, block.indent + 1, "several_blocks", message, fix) for block in blocks[1:]
        )
    for fence in found:
        content = lines[fence.opening + 1 : fence.end]
        if any(line.strip().startswith("widelane:") for line in content):
            message = (
                f"No `yaml widelane` block. The block in line {fence.opening + 1} looks like a plan, "
                f"but its info string is `{fence.info[:40]}`."
            )
            fix = "Write ```yaml widelane in that line."
            return (Problem(origin, fence.opening + 1, fence.indent + 1, "no_block", message, fix),)
    message = f"No `yaml widelane` block in the {len(lines)} lines of this Markdown text."
    return (Problem(origin, 1, 1, "no_block", message, _FIX),)
