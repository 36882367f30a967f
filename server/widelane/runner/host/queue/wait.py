"""Waiting for a run: woken by the kernel when its database changes, so nobody has a reason to poll."""

from __future__ import annotations

import select
import time
from pathlib import Path
from typing import Any

from ..inotify import Inotify
from . import base
from .status import settled, status

_CALM = 0.05
"""Seconds between two looks while a run is busy."""
_WITHOUT_INOTIFY = 0.5


def wait(root: Path, run_id: str, since: int = 0, seconds: float = 60.0, until: str = "done") -> dict[str, Any]:
    """The status once it is as wanted (`change` after event `since`, `done`, `stuck`), the run is over, or time is up.

    `changed` says whether anything happened since. Raises `QueueError` for a run that isn't there.
    """
    deadline = time.monotonic() + seconds
    inotify = Inotify()
    try:
        inotify.add(base.path(root).with_name("queue.db-wal"))
        inotify.add(root)
        while True:
            found = status(root, run_id, jobs=False)
            left = deadline - time.monotonic()
            if settled(found, until, since) or left <= 0:
                return {**found, "changed": found["seq"] > since}
            time.sleep(min(_CALM, left))
            if inotify.fd >= 0:
                select.select([inotify.fd], [], [], max(0.0, deadline - time.monotonic()))
                inotify.read()
            else:
                time.sleep(min(_WITHOUT_INOTIFY, left))
    finally:
        inotify.close()
