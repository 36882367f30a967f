"""Changes of files, told by the kernel. Where there is no inotify, whoever waits looks from time to time."""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path
from typing import Any, Optional

try:
    import ctypes
except ImportError:  # a Python built without libffi
    _libc: Any = None
else:
    _libc = ctypes.CDLL(None, use_errno=True)

_CHANGED = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
"""Modified, attributes, closed after writing, moved from and to, created, deleted, self deleted or moved."""
_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_HEAD = struct.Struct("iIII")


class Inotify:
    """Watches on folders or files; `fd` is readable when something changed. `fd` is -1 where there is no inotify."""

    def __init__(self) -> None:
        self.fd = -1
        if hasattr(_libc, "inotify_init1"):
            self.fd = int(_libc.inotify_init1(_NONBLOCK_CLOEXEC))

    def add(self, path: Path) -> Optional[int]:
        """Watch a path; None when that can't be done."""
        if self.fd < 0:
            return None
        number = int(_libc.inotify_add_watch(self.fd, os.fsencode(path), _CHANGED))
        return None if number < 0 else number

    def remove(self, number: int) -> None:
        """Stop watching."""
        if self.fd >= 0:
            _libc.inotify_rm_watch(self.fd, number)

    def read(self) -> set[int]:
        """Watches that something happened to."""
        found: set[int] = set()
        with contextlib.suppress(BlockingIOError):
            while True:
                data = os.read(self.fd, 65536)
                place = 0
                while place < len(data):
                    number, _, _, length = _HEAD.unpack_from(data, place)
                    found.add(number)
                    place += _HEAD.size + length
        return found

    def close(self) -> None:
        """Give the descriptor back."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
