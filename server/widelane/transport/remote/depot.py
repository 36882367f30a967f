"""A folder on a host that holds keys as a file store does: what is wanted there, and what became new there."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path
from typing import Any

from widelane.transport.remote.frame import Call
from widelane.transport.remote.places import place

_TEMP = ".tmp-"
_SLACK_NS = 2_000_000_000
"""A file that appeared while its folder was read, or under a clock that was set back a little."""
_FIRST = "leases"
"""Read before the others: whoever finds the last word of a lease then also finds everything written before it."""
_LEFT_OUT = ("blobs", "runners", "sources", "specs")


def missing_of(folder: Path, keys: list[str]) -> list[str]:
    """Which of the keys aren't there."""
    return [key for key in keys if not _path(folder, key).is_file()]


def store(call: Call) -> dict[str, Any]:
    """Write the keys whose values came with the call, in order. The folder itself must be there already."""
    folder = place(call.request["folder"])
    if not folder.is_dir():
        raise FileNotFoundError(2, "isn't there any more", str(folder))
    for key in call.request["keys"]:
        path = _path(folder, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        temp = path.with_name(f"{_TEMP}{os.getpid()}-{secrets.token_hex(6)}")
        try:
            with temp.open("xb") as target:
                call.receive(target)
            temp.replace(path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temp.unlink()
    return {}


def fetch(call: Call) -> dict[str, Any]:
    """Send the values of keys, in order; one that isn't there raises FileNotFoundError."""
    folder = place(call.request["folder"])
    for key in call.request["keys"]:
        path = _path(folder, key)
        if not path.is_file():
            raise FileNotFoundError(2, "isn't in the store there", str(path))
        call.send(path)
    return {}


def news(folder: Path, since: int) -> dict[str, Any]:
    """Keys (with sizes) that appeared or changed since a former `now`; blobs and what was brought there left out."""
    now = time.time_ns()
    tops = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and entry.name not in _LEFT_OUT)
    tops.sort(key=lambda name: name != _FIRST)
    found: list[list[Any]] = []
    for top in tops:
        for base, _, names in os.walk(folder / top):
            for name in names:
                path = Path(base, name)
                with contextlib.suppress(FileNotFoundError):
                    status = path.stat()
                    # The change time: a file is written under another name, and its name appears later.
                    if status.st_ctime_ns >= since - _SLACK_NS and not name.startswith(_TEMP):
                        found.append([path.relative_to(folder).as_posix(), status.st_size])
    return {"now": now, "keys": found}


def _path(folder: Path, key: str) -> Path:
    parts = key.split("/")
    if any(part in ("", ".", "..") or part.startswith(_TEMP) for part in parts) or "\0" in key:
        raise ValueError(f"not a store key: {key!r}")
    return folder / key
