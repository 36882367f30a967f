"""An advisory lock on a file that names its holder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from widelane.errors import BusyError


@contextmanager
def hold(path: Path, what: str) -> Generator[None]:
    """Hold the lock for the length of the block; the kernel gives it back when the process dies.

    Raises:
        BusyError: another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise BusyError(f"{what} is held by pid {file.read().strip() or 'unknown'}") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def is_held(path: Path) -> bool:
    """Whether a process holds the lock now."""
    try:
        with path.open("r", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
