"""The folder of one machine on its host: what is in it, and what lives because of it.

launch.json   the intent, written before anything is started
lock          held by keeper and runner for as long as they live
process       the keeper's record of itself, written by itself
store/        the store that its runner works with
host/         the runner's own root
kit/          the keeper's own program
runner.pyz    the runner file
log           what keeper and runner say
ended         why the keeper left
deleting      the machine is being deleted and must not be started
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from widelane.runner.host import processes
from widelane.runner.host.attempt import read_record
from widelane.transport.remote.places import place

MARK = "WIDELANE_SSH_MACHINE"
"""Environment variable of every process of a machine; its value is the folder."""
_DELETED = ".deleted-"
_KILL_SECONDS = 10.0
_LOOK_SECONDS = 0.02


class Folder:
    """The paths of one machine, and the processes that belong to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.launch = path / "launch.json"
        self.process = path / "process"
        self.store = path / "store"
        self.host = path / "host"
        self.kit = path / "kit"
        self.log = path / "log"
        self.ended = path / "ended"
        self.deleting = path / "deleting"
        self.runner = path / "runner.pyz"

    def intent(self) -> dict[str, Any] | None:
        """What launch.json says; None when it isn't there."""
        return read_record(self.launch)

    @contextmanager
    def claimed(self) -> Generator[int | None, None, None]:
        """The descriptor of the lock, or None when something of this machine lives, or is being started or removed."""
        fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # It may have been removed, and even made anew, while the lock was taken.
                mine = os.fstat(fd).st_ino == (self.path / "lock").stat().st_ino
            except (BlockingIOError, FileNotFoundError):
                mine = False
            yield fd if mine else None
        finally:
            os.close(fd)

    def lives(self) -> bool:
        """Whether keeper or runner live, or somebody is just about to start them."""
        if not (self.path / "lock").exists():
            return False
        with self.claimed() as fd:
            return fd is None

    def keeper(self) -> int | None:
        """The pid of the keeper, if that very process still lives."""
        known = read_record(self.process)
        if known is None:
            return None
        pid = int(known["pid"])
        return pid if began(pid) == known["began"] else None

    def members(self) -> list[int]:
        """Every process of this machine: marked ones, and what they started without passing the mark on."""
        marked = processes.marked(f"{MARK}={self.path}".encode())
        below = {pid for member in marked for pid in processes.descendants(member)}
        return sorted(below.union(marked) - {os.getpid()})

    def end(self, grace_seconds: float) -> list[int]:
        """Ask the keeper to end, kill what is left after the grace; what can't be killed."""
        keeper = self.keeper()
        if keeper is not None:
            processes.signal_all([keeper], signal.SIGTERM)
            deadline = time.monotonic() + grace_seconds
            while time.monotonic() < deadline and self.members():
                time.sleep(_LOOK_SECONDS)
        return self.kill()

    def kill(self) -> list[int]:
        """Kill every process of the machine and see it gone; what can't be killed."""
        deadline = time.monotonic() + _KILL_SECONDS
        while True:
            left = self.members()
            if not left or time.monotonic() > deadline:
                return left
            processes.signal_all(left, signal.SIGKILL)
            time.sleep(_LOOK_SECONDS)

    def remove(self) -> None:
        """Take the folder away. Its name goes first, so that it is never half there."""
        gone = self.path.with_name(f"{_DELETED}{self.path.name}-{os.getpid()}")
        with contextlib.suppress(FileNotFoundError):
            self.path.rename(gone)
        for left in self.path.parent.glob(f"{_DELETED}*"):
            shutil.rmtree(left, ignore_errors=True)


def yard(root: str) -> Path:
    """The folder of all machines of this host: a home folder may be shared by several hosts."""
    return place(root) / "machines" / socket.gethostname()


def folder_of(root: str, name: str) -> Folder:
    """The folder of a machine. Raises ValueError for what is no name."""
    if not name or name.startswith(".") or name != Path(name).name:
        raise ValueError(f"not the name of a machine: {name!r}")
    return Folder(yard(root) / name)


def names(root: str) -> list[str]:
    """The machines that have a folder."""
    found = yard(root)
    return sorted(entry.name for entry in found.iterdir() if entry.name[0] != ".") if found.is_dir() else []


def began(pid: int) -> str:
    """What tells a process from a later one of the same pid; "" when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    return f"{fields[19]} {boot}" if fields[0] not in "ZX" else ""
