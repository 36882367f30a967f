"""Text to plan: finds the YAML, reads it by the tables of keys, and raises every problem at once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

from yaml.nodes import MappingNode

from widelane.errors import PlanError, Problem
from widelane.models.nearest import nearest
from widelane.models.plan import Marks, ParsedPlan, Plan
from widelane.plan.compose import compose
from widelane.plan.keys import PLAN
from widelane.plan.markdown import plan_sheet
from widelane.plan.reading import Reading, found
from widelane.plan.sheet import Sheet, plain_lines

ARGUMENT = "<argument>"
"""Origin of a plan that came as an argument."""
SIZE_LIMIT = 32 * 1024 * 1024
"""Bytes of the largest file that is read."""

_MARKDOWN = (".md", ".markdown")
_YAML = (".yaml", ".yml", ".json")
_FENCE = re.compile(r"^ *(?:`{3,}|~{3,}) *yaml +widelane *$", re.MULTILINE | re.IGNORECASE)
_PLAN_KEY = re.compile(r"""^(?:\{|["']?(?:widelane|phases|task)["']?\s*:)""", re.MULTILINE)
_MARKDOWN_LINE = re.compile(r"^ {0,3}(?:#{1,6} |```|~~~)", re.MULTILINE)


def parse(text: str, origin: str = ARGUMENT, folder: str | None = None) -> ParsedPlan:
    """Reads a plan from YAML, or from the `yaml widelane` block of a Markdown text.

    A suffix of `origin` (.md, .markdown; .yaml, .yml, .json) says which it is. Without one, a text is Markdown when
    a `yaml widelane` fence comes before any key of a plan, or when it has Markdown lines and no key of a plan.
    `folder` is what relative paths of the plan start from. Raises PlanError with every problem.
    """
    sheet = sheet_of(plain_lines(text), origin)
    reading = Reading(sheet)
    plan = _read_root(sheet, reading)
    if plan is None or reading.problems:
        raise PlanError(tuple(sorted(reading.problems, key=lambda problem: (problem.line, problem.column))))
    return ParsedPlan(plan, Marks(reading.places), origin, folder)


def read(path: str | Path) -> ParsedPlan:
    """Reads a plan from a UTF-8 file. Raises PlanError, also for a file that is missing, too large or no text."""
    file = Path(path)
    origin = str(path)
    return parse(text_of(file, origin), origin, str(file.parent.absolute()))


def sheet_of(text: str, origin: str) -> Sheet:
    """The YAML of a text with plain lines. Raises PlanError for Markdown without exactly one block."""
    return plan_sheet(text, origin) if _is_markdown(text, origin) else Sheet(text, origin)


def _is_markdown(text: str, origin: str) -> bool:
    suffix = Path(origin).suffix.lower()
    if suffix in _MARKDOWN or suffix in _YAML:
        return suffix in _MARKDOWN
    fence, key = _FENCE.search(text), _PLAN_KEY.search(text)
    if fence is not None:
        return key is None or fence.start() < key.start()
    return key is None and _MARKDOWN_LINE.search(text) is not None


def _read_root(sheet: Sheet, reading: Reading) -> Plan | None:
    root = compose(sheet)
    if not isinstance(root, MappingNode):
        what = "the text is empty" if root is None else f"found {found(root)}"
        fix = "Write YAML that begins with `widelane: 1`, or Markdown with such YAML in a ```yaml widelane block."
        raise PlanError((sheet.problem(0, 0, "no_plan", f"There is no plan here: {what}.", fix),))
    reading.mark((), root)
    return cast("Plan | None", PLAN.read(root, reading, ()))


def text_of(file: Path, origin: str) -> str:
    """A file as UTF-8 text. Raises PlanError for one that is missing, too large or no text."""

    def refuse(code: str, message: str, fix: str, place: tuple[int, int] = (1, 1)) -> PlanError:
        return PlanError((Problem(origin, *place, code, message, fix),))

    try:
        with file.open("rb") as stream:
            data = stream.read(SIZE_LIMIT + 1)
    except FileNotFoundError:
        raise refuse("no_file", "There is no such file.", _similar(file)) from None
    except IsADirectoryError:
        raise refuse("no_file", "This is a folder.", "Name a file in it.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise refuse("no_file", f"It can't be read: {reason}.", "Name a file that can be read.") from None
    if len(data) > SIZE_LIMIT:
        message = f"It has more than {SIZE_LIMIT // 2**20} MiB, which no such file has."
        raise refuse("too_large", message, "Name the file that is meant.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].replace(b"\r\n", b"\n")
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        message = f"It isn't UTF-8 text: byte 0x{data[error.start]:02x}."
        raise refuse("not_text", message, "Save it as UTF-8 text.", (line, column)) from None


def _similar(file: Path) -> str:
    try:
        names = [entry.name for entry in file.parent.iterdir()]
    except OSError:
        return "Check the path; its folder doesn't exist."
    guess = nearest(file.name, names)
    return f"Did you mean `{file.parent / guess}`?" if guess else "Check the path."
