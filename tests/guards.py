"""What the suite watches while it runs: calls to the outside, and processes that outlive their test."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

RUN_MARK = "HOUSE_TEST_RUN"
TEST_MARK = "HOUSE_TEST_ID"
GRACE_SECONDS = 10.0

_SERVICE = ("GOOGLE_", "CLOUDSDK_", "GCE_", "GCLOUD_", "GCP_", "CUDA_", "NVIDIA_", "RUNPOD_", "SLURM_", "WIDELANE_")
_NAMES = frozenset({"NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "SSH_AUTH_SOCK", "BOTO_CONFIG"})


def foreign_variables() -> list[str]:
    """Names of the variables that would let this machine's set-up into a test."""
    return [name for name in os.environ if name.startswith(_SERVICE) or name.startswith("XDG_") or name in _NAMES]


class NetworkGuard:
    """Refuses every connection and look-up that leaves this machine, and remembers it.

    `watch` can't be undone: an audit hook stays as long as the process. Child processes are not watched.
    """

    def __init__(self) -> None:
        self.refused: list[str] = []

    def watch(self) -> None:
        """Hear every call of this process from now on."""
        sys.addaudithook(self.hear)

    def hear(self, event: str, args: tuple[object, ...]) -> None:
        """One audit event; raises PermissionError for a call to the outside."""
        if not event.startswith("socket."):
            return
        if event in {"socket.connect", "socket.sendto"}:
            address = args[1]
            host = address[0] if isinstance(address, tuple) else ""
        elif event in {"socket.getaddrinfo", "socket.gethostbyname"}:
            host = args[0]
        else:
            return
        if not _is_here(host):
            self.refused.append(f"{event} {host!r}")
            raise PermissionError(f"a test may only talk to this machine, not to {host!r}")


def _is_here(host: object) -> bool:
    text = host.decode() if isinstance(host, bytes) else str(host or "")
    return text in {"", "localhost", "::1", "::", "0.0.0.0", socket.gethostname()} or text.startswith("127.")


def pids() -> set[int]:
    """Every process on this machine."""
    return {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()}


def _belongs(pid: int, marks: list[bytes]) -> bool:
    """Whether a process was started under one of the marks: by its environment, arguments or working folder."""
    place = Path("/proc", str(pid))
    try:
        if (place / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return False
        cwd = os.fsencode((place / "cwd").readlink())
        traces = (place / "environ").read_bytes() + b"\0" + (place / "cmdline").read_bytes() + b"\0" + cwd
    except OSError:
        return False
    return any(mark in traces for mark in marks)


def left_behind(marks: list[str], before: set[int], grace: float = GRACE_SECONDS) -> list[int]:
    """Processes under the marks that began since `before` and don't end within the grace."""
    wanted = [mark.encode() for mark in marks]
    deadline = time.monotonic() + grace
    while True:
        found = [pid for pid in sorted(pids() - before - {os.getpid()}) if _belongs(pid, wanted)]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def describe(pid: int) -> str:
    """One process in words: its id and command line."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        words = "(gone)"
    return f"{pid}: {words.strip()[:200]}"


def kill(found: list[int]) -> None:
    """Ends processes that a test left behind."""
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
