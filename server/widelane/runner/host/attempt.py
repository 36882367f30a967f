"""The attempt folder: what is in it, who writes it, and the lock that means "alive".

    request.json  by the scheduler, before the folder is handed to the zygote
    lock          flock held by the supervisor for as long as it lives
    void          by a scheduler that holds the lock: this attempt must never start
    start.json    by the supervisor, once it holds the lock and found no `void`
    log           the process's stdout and stderr
    exit.json     by the supervisor, after the process and its left-overs are gone

`void` and `start.json` are only written under the lock, so an attempt has one or the other.
"""

from __future__ import annotations

import contextlib
import enum
import fcntl
import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any, Optional

Record = dict[str, Any]


class Standing(enum.Enum):
    """What an attempt folder says of its attempt."""

    ALIVE = "alive"
    """The lock is held: a supervisor lives."""
    ENDED = "ended"
    """There is an exit record."""
    LOST = "lost"
    """It started, and its supervisor died without an exit record."""
    VOID = "void"
    """It never started and never will."""


class Folder:
    """The paths of one attempt."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def request(self) -> Path:
        """What to run."""
        return self.path / "request.json"

    @property
    def lock(self) -> Path:
        """Held for life by the supervisor."""
        return self.path / "lock"

    @property
    def void(self) -> Path:
        """The mark that forbids a start."""
        return self.path / "void"

    @property
    def start(self) -> Path:
        """Written by the supervisor before it starts the process."""
        return self.path / "start.json"

    @property
    def exit(self) -> Path:
        """Written by the supervisor last."""
        return self.path / "exit.json"

    @property
    def log(self) -> Path:
        """stdout and stderr of the process."""
        return self.path / "log"


def write_record(path: Path, value: Record) -> None:
    """Write JSON so that a reader finds it whole or not at all, also after a power cut."""
    temp = path.with_name(path.name + ".new")
    with temp.open("wb") as target:
        target.write(json.dumps(value).encode())
        target.flush()
        os.fsync(target.fileno())
    temp.replace(path)


def write_plain(path: Path, value: Record) -> None:
    """Write JSON that nobody reads before this returns."""
    path.write_bytes(json.dumps(value).encode())


def read_record(path: Path) -> Optional[Record]:
    """The record, or None when it isn't there or was cut by a power failure."""
    try:
        record: Record = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return record


@contextlib.contextmanager
def locked(path: Path) -> Generator[Optional[int], None, None]:
    """Hold the lock at `path` for the block and yield its descriptor, or None when someone else has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        yield fd
    finally:
        os.close(fd)


def settle(folder: Folder) -> Standing:
    """How the attempt stands. One that hasn't started by now never will: it is made void."""
    with locked(folder.lock) as fd:
        if fd is None:
            return Standing.ALIVE
        if folder.exit.exists():
            return Standing.ENDED
        if folder.start.exists():
            return Standing.LOST
        folder.void.touch()
        return Standing.VOID
