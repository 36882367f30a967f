"""Starts a supervisor for a home that has none, detached from the caller."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from widelane.config import make_home
from widelane.dispatcher.locking import is_held
from widelane.dispatcher.places import lock_path, log_path
from widelane.errors import LedgerError

_FORK_SECONDS = 30
_IN_BACKGROUND = 'exec "$@" &'
"""The shell ends at once and leaves its child to init: no caller is left with a zombie. Arguments stay words."""


def ensure_supervisor(home: Path) -> None:
    """Start a supervisor unless one holds the lock. It outlives the caller, and leaves by itself when idle.

    Raises:
        LedgerError: it can't be started.
    """
    if is_held(lock_path(home)):
        return
    command = [sys.executable, "-m", "widelane.dispatcher", "--home", str(home.absolute())]
    make_home(home)
    try:
        with log_path(home).open("ab") as log:
            subprocess.run(
                ["/bin/sh", "-c", _IN_BACKGROUND, "sh", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=True,
                timeout=_FORK_SECONDS,
                start_new_session=True,
                cwd=home,
            )
    except (OSError, subprocess.SubprocessError) as error:
        raise LedgerError(f"no supervisor could be started: {error}", hint=f"see {log_path(home)}") from error
