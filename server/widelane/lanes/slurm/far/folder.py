"""The folder of one job, on a file system that login host and nodes share. SLURM knows the job, the folder whose it is.

lock        held while somebody submits or removes
attempt     whose it is, written before anything is submitted
job         the id that sbatch gave
intent, runner.pyz, keeper.py   what the job runs
claim, beat, ended              written by the keeper, see there
cancelled   when it was first cancelled
deleting    the work is not wanted any more
store/      the store that the job works with, where ours is out of reach
log         what keeper and runner say
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_LOCK_SECONDS = 20.0
_TAIL_BYTES = 1500
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)
_FOREVER = 1e9


class HeldError(Exception):
    """Another call works on this folder, or took it away just now."""


class Folder:
    """One folder, which may not be there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = path / "store"
        self.deleting = path / "deleting"

    @property
    def there(self) -> bool:
        """Whether it is."""
        return self.path.is_dir()

    def read(self, name: str) -> str:
        """One of its files; "" when it isn't there."""
        try:
            return (self.path / name).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""

    def write(self, name: str, text: str) -> None:
        """One of its files, whole or not at all."""
        temp = self.path / f"{name}.new"
        with temp.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temp.replace(self.path / name)

    @contextmanager
    def locked(self) -> Generator[None, None, None]:
        """Hold its lock; nothing is held where there is no folder. Raises `HeldError`."""
        if not self.there:
            yield
            return
        fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            until = time.monotonic() + _LOCK_SECONDS
            while not _try_lock(fd):
                if time.monotonic() > until:
                    raise HeldError
                time.sleep(0.05)
            if not self._is_mine(fd):
                raise HeldError
            yield
        finally:
            os.close(fd)

    def sight(self) -> dict[str, Any] | None:
        """What it says; None when it isn't there. `silent`: seconds since the keeper's last sign of life."""
        if not self.there:
            return None
        files = {name: self.read(name) for name in ("job", "attempt", "claim", "ended", "cancelled")}
        return {
            **files,
            "name": self.path.name,
            "intent": _json(self.read("intent")),
            "deleting": self.deleting.exists(),
            "silent": self.silent_for(),
            "now": time.time(),
            "progress": _json(self.read("host/progress.json")),
            "log": self._tail(),
        }

    def silent_for(self) -> float:
        """By the clock of the file system, which stamps both files."""
        try:
            beat = (self.path / "beat").stat().st_mtime
            now = self.path / f".now-{os.getpid()}"
            now.touch()
            seconds = now.stat().st_mtime - beat
            now.unlink()
        except OSError:
            return _FOREVER
        return seconds

    def remove(self) -> None:
        """Take it away; the tree may be large, so nobody waits for it."""
        gone = self.path.with_name(f".gone-{self.path.name}-{os.getpid()}")
        self.path.rename(gone)
        subprocess.run(
            ["/bin/sh", "-c", 'exec rm -rf "$1" &', "sh", str(gone)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=False,
        )

    def _is_mine(self, fd: int) -> bool:
        """Whether the lock is still that of this folder: whoever held it may have taken the folder away."""
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(fd), (self.path / "lock").stat())
        return False

    def _tail(self) -> str:
        try:
            with (self.path / "log").open("rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - _TAIL_BYTES))
                return file.read().decode(errors="replace")
        except OSError:
            return ""


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # A file system without locks is no reason to stop: of two jobs, only one gets the claim to work.
        if error.errno not in _NO_LOCKS:
            raise
    return True


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
