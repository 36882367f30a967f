"""Starts a supervisor for a home that has none, detached from the caller."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from widelane.dispatcher.locking import is_held
from widelane.dispatcher.places import lock_path, log_path
from widelane.errors import LedgerError

_START_SECONDS = 30


def ensure_supervisor(home: Path) -> None:
    """Start a supervisor unless one holds the lock. It outlives the caller, and leaves by itself when idle.

    The child started here only forks and ends, so that no caller is left with a zombie.

    Raises:
        LedgerError: it can't be started.
    """
    if is_held(lock_path(home)):
        return
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    command = [sys.executable, "-m", "widelane.dispatcher", "--home", str(home), "--detach"]
    try:
        with log_path(home).open("ab") as log:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True, timeout=_START_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise LedgerError(f"no supervisor could be started: {error}", hint=f"see {log_path(home)}") from error
