"""The YAML of a plan, and where it stands in the file it came from."""

from __future__ import annotations

import re
from dataclasses import dataclass

from widelane.errors import PlanError, Problem

BYTE_ORDER_MARK = "\ufeff"

# What libyaml refuses, and three line breaks of YAML 1.1 that YAML 1.2 and editors take for ordinary characters:
# with them inside, its line numbers would not be those of the file.
_ILLEGAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Sheet:
    """YAML text, with what was cut off before it: `skipped` lines, and `cuts[i]` columns of its line i."""

    text: str
    origin: str
    skipped: int = 0
    cuts: tuple[int, ...] = ()

    def place(self, line: int, column: int) -> tuple[int, int]:
        """1-based (line, column) in the file, from 0-based ones in the text."""
        cut = self.cuts[line] if line < len(self.cuts) else 0
        return line + self.skipped + 1, column + cut + 1

    def problem(self, line: int, column: int, code: str, message: str, fix: str = "") -> Problem:
        """A problem at a 0-based place of the text."""
        return Problem(self.origin, *self.place(line, column), code, message, fix)

    def check_characters(self) -> None:
        """Raises PlanError at the first character that YAML can't hold."""
        found = _ILLEGAL.search(self.text)
        if found is None:
            return
        line = self.text.count("\n", 0, found.start())
        column = found.start() - (self.text.rfind("\n", 0, found.start()) + 1)
        message = f"The character U+{ord(found.group()):04X} can't stand here."
        fix = "Remove it, or write it as an escape in double quotes."
        raise PlanError((self.problem(line, column, "bad_character", message, fix),))


def plain_lines(text: str) -> str:
    """The text with `\\n` as its only line break and without a byte order mark."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removeprefix(BYTE_ORDER_MARK)
