"""Stays with a run: a live view on a terminal, plain lines elsewhere; Ctrl-C only stops the watching."""

from __future__ import annotations

import sys

from widelane.cli import console
from widelane.cli.watch import Followed, Plain, follow
from widelane.models.dispatch import RunStatus


class Detached(Exception):
    """The watching was stopped by Ctrl-C, and the user was told how to look and how to cancel."""


def stay(runs: Followed, run_id: str, *, quiet_stdout: bool, timeout: float | None = None) -> RunStatus:
    """Follow a run to its end; lines go to stderr when stdout is for JSON.

    Raises:
        Detached: Ctrl-C.
    """
    stream = sys.stderr if quiet_stdout else sys.stdout
    paper = console.paper(stream)
    try:
        if stream.isatty() and paper.colour:
            from widelane.cli.live import LiveView  # noqa: PLC0415 - rich is for terminals only

            with LiveView(stream, paper) as view:
                return follow(runs, run_id, view, timeout)
        return follow(runs, run_id, Plain(stream, paper), timeout)
    except KeyboardInterrupt:
        console.note(
            f"detached: run {run_id} goes on\n"
            f"  look:   widelane status {run_id}, or widelane wait {run_id}\n"
            f"  cancel: widelane cancel {run_id}"
        )
        raise Detached from None
