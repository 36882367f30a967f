"""Where the command line writes: results to stdout, everything else to stderr, nothing anywhere else."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from typing import TextIO, TypeVar

from pydantic import BaseModel

from widelane.errors import PlanError, WidelaneError
from widelane.reports.clean import clean
from widelane.reports.paper import Paper

Result = TypeVar("Result", bound=BaseModel)


def prepare() -> None:
    """Make both streams take any text, whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def paper(stream: TextIO | None = None) -> Paper:
    """Columns and colour of a stream, stdout by default; NO_COLOR and FORCE_COLOR are heeded."""
    written: TextIO = sys.stdout if stream is None else stream
    return Paper(columns=shutil.get_terminal_size((100, 24)).columns, colour=_colour(written))


def _colour(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def out(text: str) -> None:
    """A result, as it is."""
    sys.stdout.write(text)
    sys.stdout.flush()


def note(text: str) -> None:
    """A line for people beside the result."""
    sys.stderr.write(text + "\n")


def show(result: Result, as_json: bool, render: Callable[[Result, Paper], str]) -> None:
    """A result as the tool's structured content, or as text."""
    out(as_structured(result) if as_json else render(result, paper()))


def as_structured(result: BaseModel) -> str:
    """What the tool of the same name returns as structured content."""
    return json.dumps(result.model_dump(mode="json"), indent=2) + "\n"


def error(code: str, message: str, hint: str = "") -> None:
    """`error[code]: message`, and `fix:` with what to do next."""
    note(f"error[{code}]: {clean(message)}")
    if hint:
        note(f"  fix: {clean(hint)}")


def failure(failed: WidelaneError) -> None:
    """A failure that we raised on purpose; of a plan, every problem."""
    if not isinstance(failed, PlanError):
        error(failed.code, failed.message, failed.hint)
        return
    for problem in failed.problems:
        error(problem.code, f"{problem.origin}:{problem.line}:{problem.column}: {problem.message}", problem.fix)
