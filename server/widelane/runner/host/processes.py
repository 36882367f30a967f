"""Processes as /proc shows them, and the call that keeps a unit's process tree together."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, Optional

try:
    import ctypes
except ImportError:  # a Python built without libffi
    _libc: Any = None
else:
    _libc = ctypes.CDLL(None)

_PR_SET_CHILD_SUBREAPER = 36
_PROC = Path("/proc")


def adopt_orphans() -> bool:
    """Become the parent of every descendant that loses its own; False where the system can't."""
    return hasattr(_libc, "prctl") and int(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0


def table() -> dict[int, int]:
    """Every process that isn't a zombie: pid -> parent."""
    found: dict[int, int] = {}
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in ("Z", "X"):
            found[int(entry.name)] = int(fields[1])
    return found


def descendants(root: int) -> list[int]:
    """The processes below `root`."""
    children: dict[int, list[int]] = {}
    for pid, parent in table().items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        found.extend(below)
        queue.extend(below)
    return found


def marked(mark: bytes) -> list[int]:
    """The processes, other than this one, whose environment has the whole entry `mark` (NAME=value)."""
    found: list[int] = []
    for pid in table():
        with contextlib.suppress(OSError):
            if pid != os.getpid() and mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def signal_all(pids: list[int], signum: int) -> None:
    """Send a signal to each that still exists."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)


def marks(name: bytes) -> dict[int, str]:
    """The value of an environment variable of every process that has it, other than this one."""
    found: dict[int, str] = {}
    start = name + b"="
    for pid in table():
        value = mark(pid, start)
        if value is not None and pid != os.getpid():
            found[pid] = value
    return found


def mark(pid: int, start: bytes) -> Optional[str]:
    """What stands after `start` (NAME=) in a process's environment; None when that isn't there or can't be read."""
    with contextlib.suppress(OSError):
        for entry in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
            if entry.startswith(start):
                return entry[len(start) :].decode(errors="replace")
    return None
