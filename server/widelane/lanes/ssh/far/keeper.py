"""Keeps the runner of one machine going: again after a crash, TERM passed on, and an end when the fence is reached.

It is a process of its own in a session of its own, and needs nobody: neither a connection nor who started it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from widelane.lanes.ssh.far.folder import Folder, began
from widelane.runner.host import processes
from widelane.runner.host.attempt import write_record

_DONE = 0
_UNUSABLE = 2
"""Exit code of a runner that would end the same way every time."""
_MOST_STARTS = 8
_LASTED_SECONDS = 600.0
_LOOK_SECONDS = 0.5


class Keeper:
    """One runner in one folder. Its locks came in as open files, and go on to the runner."""

    def __init__(self, folder: Folder) -> None:
        intent = folder.intent()
        if intent is None:
            raise ValueError(f"{folder.launch} is missing")
        self._folder = folder
        self._command: list[str] = intent["command"]
        self._grace = float(intent["grace_seconds"])
        self._deadline = time.monotonic() + float(intent["fence_seconds"])
        self._child: subprocess.Popen[bytes] | None = None
        self._ending = ""

    def run(self) -> int:
        """Return when the runner has ended for good, and nothing of the machine is left."""
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, self._stop)
        write_record(self._folder.process, {"pid": os.getpid(), "began": began(os.getpid())})
        code = self._keep()
        self._folder.kill()
        write_record(self._folder.ended, {"code": code, "why": self._ending or "the runner ended"})
        return code

    def _stop(self, signum: int, frame: object) -> None:
        self._ending = self._ending or "asked to stop"
        if self._child is not None:
            processes.signal_all([self._child.pid], signal.SIGTERM)

    def _keep(self) -> int:
        starts = 0
        while True:
            starts += 1
            start = time.monotonic()
            code = self._once()
            _say(f"start {starts} ended with {code}")
            if code in (_DONE, _UNUSABLE) or self._ending:
                return code
            if time.monotonic() - start > _LASTED_SECONDS:
                starts = 0
            if starts >= _MOST_STARTS:
                self._ending = f"the runner failed {starts} times"
                return code
            self._pause(starts)
            if self._ending:
                return code

    def _once(self) -> int:
        """Run it, and end it when the fence is reached."""
        self._child = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, close_fds=False)
        if self._ending:
            self._child.terminate()
        try:
            while True:
                try:
                    return self._child.wait(_LOOK_SECONDS)
                except subprocess.TimeoutExpired:
                    self._look()
        finally:
            self._child = None

    def _look(self) -> None:
        if self._child is None or time.monotonic() < self._deadline:
            return
        if not self._ending.startswith("fence"):
            self._ending = "fence: its time is over"
            self._child.terminate()
        elif time.monotonic() > self._deadline + self._grace:
            self._folder.kill()

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._ending:
            time.sleep(0.1)


def _say(text: str) -> None:
    sys.stderr.write(f"keeper: {text}\n")
    sys.stderr.flush()


def main() -> int:
    """`keep.py FOLDER`."""
    return Keeper(Folder(Path(sys.argv[1]))).run()
