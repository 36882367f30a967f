"""Who has which GPU of this host: a lock a card, held by keeper and runner of a machine for as long as they live.

The locks are below the home folder, whatever the configuration says, so that all work of this user sees them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from widelane.lanes.ssh.far.folder import Folder
from widelane.runner.host.devices import count
from widelane.transport.remote.places import place

_FOLDER = "~/.widelane/gpus"


@dataclass(frozen=True)
class Hand:
    """What was taken, or why not enough could be.

    `handles` are the names of the cards taken for CUDA, `locks` the descriptors that hold them. `busy` says who has
    the others; `total` is how many this host has, `trouble` why it has none.
    """

    handles: tuple[str, ...]
    locks: tuple[int, ...]
    total: int
    busy: Mapping[str, str]
    trouble: str = ""


@contextmanager
def taken(wanted: int, owner: Folder, environ: Mapping[str, str]) -> Generator[Hand, None, None]:
    """Take so many free cards for a machine, or none; given back at the end but for processes that inherited them."""
    if wanted == 0:
        yield Hand((), (), 0, {})
        return
    census = count(environ)
    base = place(_FOLDER) / socket.gethostname()
    base.mkdir(parents=True, exist_ok=True, mode=0o700)
    held: dict[str, int] = {}
    try:
        busy: dict[str, str] = {}
        # One at a time: two that each take half of what they need would both go without.
        with (base / "all").open("ab") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            for gpu in census.gpus:
                if len(held) < wanted:
                    lock = os.open(base / gpu.handle.replace("/", "_"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                    held[gpu.handle] = lock
                    holder = _holder(lock, owner)
                    if holder:
                        os.close(held.pop(gpu.handle))
                        busy[gpu.handle] = holder
            if len(held) == wanted:
                for lock in held.values():
                    _write(lock, str(owner.path))
            else:
                _close(held)
        yield Hand(tuple(held), tuple(held.values()), len(census.gpus), busy, census.trouble)
    finally:
        _close(held)


def _holder(lock: int, owner: Folder) -> str:
    """Lock a card; or the machine that has it: one that lives, or one whose work outlived its keeper."""
    known = os.pread(lock, 4096, 0).decode(errors="replace").strip()
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return Path(known).name or "another machine"
    if known and known != str(owner.path) and Folder(Path(known)).members():
        return Path(known).name
    return ""


def _write(lock: int, text: str) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, text.encode(), 0)


def _close(held: dict[str, int]) -> None:
    while held:
        with contextlib.suppress(OSError):
            os.close(held.popitem()[1])
