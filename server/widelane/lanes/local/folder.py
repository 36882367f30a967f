"""The folder of one local machine: what is in it, and what lives because of it.

launch.json   the intent, written before anything is started
lock          held by whatever runs for this machine, from the keeper to the last unit's supervisor
process       /proc/PID/stat of the keeper, written by itself
runner.pyz    the runner file
log           what keeper and runner say
host/         the runner's own root
deleting      the machine is being deleted and must not be started
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from widelane.runner.host import processes

MARK = "WIDELANE_LOCAL_MACHINE"
"""Environment variable of every process of a machine; its value is the folder."""
_KILL_SECONDS = 10.0
_LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Folder:
    """The paths of one machine, and the processes that belong to it."""

    path: Path

    @property
    def launch(self) -> Path:
        """The intent."""
        return self.path / "launch.json"

    @property
    def process(self) -> Path:
        """The keeper's own record of itself."""
        return self.path / "process"

    @property
    def runner(self) -> Path:
        """The runner file."""
        return self.path / "runner.pyz"

    @property
    def log(self) -> Path:
        """What keeper and runner say."""
        return self.path / "log"

    @property
    def host(self) -> Path:
        """The runner's root."""
        return self.path / "host"

    @property
    def deleting(self) -> Path:
        """Forbids a start."""
        return self.path / "deleting"

    @contextmanager
    def claimed(self) -> Generator[int | None]:
        """The descriptor of the lock, or None when something of this machine lives (or is being started)."""
        fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
                return
            yield fd
        finally:
            os.close(fd)

    def lives(self) -> bool:
        """Whether anything of this machine runs."""
        if not (self.path / "lock").exists():
            return False
        with self.claimed() as fd:
            return fd is None

    def keeper(self) -> int | None:
        """The pid of the keeper, if that very process still lives."""
        try:
            recorded = self.process.read_text(errors="replace")
            pid = int(recorded.split(maxsplit=1)[0])
            now = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except (OSError, ValueError, IndexError):
            return None
        state, began = _state_and_start(now)
        return pid if state not in "ZX" and began == _state_and_start(recorded)[1] else None

    def members(self) -> list[int]:
        """Every process of this machine: marked ones, and what they started without passing the mark on."""
        marked = processes.marked(f"{MARK}={self.path}".encode())
        below = {pid for member in marked for pid in processes.descendants(member)}
        return sorted(below.union(marked) - {os.getpid()})

    def end_and_remove(self, grace_seconds: float) -> bool:
        """Ask the keeper to end, kill what is left, take the folder away; False when something can't be killed."""
        keeper = self.keeper()
        if keeper is not None:
            processes.signal_all([keeper], signal.SIGTERM)
            self._wait(grace_seconds)
        deadline = time.monotonic() + _KILL_SECONDS
        while time.monotonic() < deadline:
            processes.signal_all(self.members(), signal.SIGKILL)
            if not self.members():
                # The lock is free only when nobody is just about to start it.
                with self.claimed() as lock:
                    if lock is not None:
                        self._remove()
                        return True
            time.sleep(_LOOK_SECONDS)
        return False

    def _remove(self) -> None:
        """Its name goes first, so that it is never half there."""
        gone = self.path.with_name(f".deleted-{self.path.name}")
        shutil.rmtree(gone, ignore_errors=True)
        self.path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.members():
            time.sleep(_LOOK_SECONDS)


def _state_and_start(stat: str) -> tuple[str, str]:
    """State and start time (ticks since boot) of a line of /proc/PID/stat."""
    fields = stat.rpartition(")")[2].split()
    return (fields[0], fields[19]) if len(fields) > 19 else ("X", "")
