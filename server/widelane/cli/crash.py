"""The last net: no traceback reaches the terminal, and none is lost."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from types import TracebackType
from typing import Literal

import click

from widelane.cli import console, exit_codes
from widelane.errors import WidelaneError


class Net:
    """Catches whatever a verb raises, says it in a line or two, and keeps the exit code for it."""

    def __init__(self) -> None:
        self.code = exit_codes.DONE

    def __enter__(self) -> Net:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> Literal[True]:
        if error is not None:
            self.code = exit_codes.of_error(error)
            _tell(error)
        return True


def _tell(error: BaseException) -> None:
    if isinstance(error, WidelaneError):
        console.failure(error)
    elif isinstance(error, click.exceptions.NoArgsIsHelpError):
        console.note(error.format_message())
    elif isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx is not None else "widelane"
        console.error("usage", error.format_message(), f"`{path} --help` lists what it takes")
    elif isinstance(error, click.ClickException):
        console.error("usage", error.format_message())
    elif isinstance(error, BrokenPipeError):
        # The reader is gone, and the interpreter would complain of it once more when it flushes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    elif exit_codes.is_crash(error):
        console.error(
            "crash",
            f"widelane failed at {type(error).__name__}; the traceback is in {_save(error)}",
            "please report it with that file",
        )


def _save(error: BaseException) -> str:
    with tempfile.NamedTemporaryFile(
        "w", prefix="widelane-crash-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
    ) as file:
        file.writelines(traceback.format_exception(error))
    return file.name
