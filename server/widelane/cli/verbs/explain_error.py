"""explain-error: what a provider's answer is, and what the walk would do about it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from widelane.cli import console, exit_codes
from widelane.dispatcher.explaining import explain_error
from widelane.errors import InputError
from widelane.lanes.pasted.text import LARGEST
from widelane.reports.error_explanation import explanation_report


@click.command("explain-error")
@click.argument("lane", metavar="LANE")
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print class, scope, action and reason as JSON, nothing else.")
def explain_error_verb(lane: str, file: str | None, as_json: bool) -> int:
    """Say what a provider's answer is, and what the walk would do about it.

    LANE is gcp, slurm, runpod, ssh or local, with or without a name behind it. The answer is an error body, an
    operation, a state line, or what a command printed (`rc=255 ...` gives its exit code); it comes from FILE, or from
    stdin for none or `-`. Nothing is asked of any service.
    """
    console.show(explain_error(lane, _read(file)), as_json, explanation_report)
    return exit_codes.DONE


def _read(file: str | None) -> bytes:
    """At most a little more than an answer may have."""
    if file in (None, "-"):
        return sys.stdin.buffer.read(LARGEST + 1)
    path = Path(str(file))
    try:
        with path.open("rb") as source:
            return source.read(LARGEST + 1)
    except OSError as error:
        raise InputError(
            f"{path} can't be read: {error.strerror}", hint="give a file, or the answer on stdin"
        ) from error
