"""What a host is like: clock, Python, folder for work, GPUs. Nothing is made, not even to see whether it could be."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
from pathlib import Path
from typing import Any

from widelane.runner.host.devices import count
from widelane.transport.remote.frame import Call
from widelane.transport.remote.places import place


def survey(call: Call) -> dict[str, Any]:
    """Asked: root (the folder for work), gpus (whether to count them)."""
    census = count(os.environ) if call.request["gpus"] else None
    return {
        "now": time.time(),
        "host": socket.gethostname(),
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "proc": Path("/proc/self/stat").exists(),
        "folder": folder(place(call.request["root"])),
        "gpus": None if census is None else len(census.gpus),
        "trouble": "" if census is None else census.trouble,
    }


def folder(path: Path) -> dict[str, Any]:
    """Whether it is there, and whether it, or the nearest folder above it that is there, can be written."""
    above = path
    while not above.exists() and above != above.parent:
        above = above.parent
    usage = shutil.disk_usage(above)
    # Root may write anywhere by its mode; a file system of the kernel's own holds nothing all the same.
    usable = above.is_dir() and os.access(above, os.W_OK | os.X_OK) and usage.total > 0
    return {"path": str(path), "there": path.is_dir(), "usable": usable, "above": str(above), "free": usage.free}
