"""What a SLURM job runs: one runner in the job's folder, started again after a crash, and nothing left at the end.

Standard library only, Python 3.9 or newer; it is copied to the cluster as one file. The folder is on a file system
that login host and nodes share:

intent      what is to run, as JSON
claim       the one job that may run it, written first; a second job of the same attempt leaves
beat        its time says when the keeper last lived
deleting    the work is not wanted any more
ended       the keeper's exit code, written last
host/       the runner's root
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

BEAT_SECONDS = 2.0
GRACE_SECONDS = 15.0
MOST_RESTARTS = 8
LASTED_SECONDS = 600.0
UNUSABLE = 2
"""Exit code of a runner that would end the same way every time."""
MARK = "WIDELANE_SLURM_MACHINE"
"""Environment variable of every process of a job's work; its value is the folder."""


class Keeper:
    """The runner of one job's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._intent: dict[str, Any] = json.loads((folder / "intent").read_text())
        self._ending = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None

    def run(self, job: str) -> int:
        """Run it to its end, if this is the job that may; returns the exit code."""
        if not claim(self._folder / "claim", job):
            _say("another job of this attempt is at work")
            return 0
        signal.signal(signal.SIGTERM, self._stop)
        threading.Thread(target=self._live, daemon=True).start()
        code = 0
        try:
            code = self._keep()
        finally:
            end_all(f"{MARK}={self._folder}".encode())
            _write(self._folder / "ended", str(code))
        return code

    def _stop(self, *_: object) -> None:
        self._ending.set()
        child = self._child
        if child is not None:
            with contextlib.suppress(ProcessLookupError):
                child.terminate()

    def _live(self) -> None:
        """Give signs of life; end the work when it isn't wanted any more."""
        asked = None
        while True:
            unwanted = (self._folder / "deleting").exists() or not self._folder.exists()
            if unwanted and asked is None:
                asked = time.monotonic()
                self._stop()
            if asked is not None and time.monotonic() - asked > GRACE_SECONDS:
                end_all(f"{MARK}={self._folder}".encode())
            with contextlib.suppress(OSError):
                (self._folder / "beat").touch()
            time.sleep(BEAT_SECONDS)

    def _keep(self) -> int:
        runner = self._folder / "runner.pyz"
        found = hashlib.sha256(runner.read_bytes()).hexdigest()
        if found != self._intent["runner_sha256"]:
            _say(f"runner.pyz has the digest {found}, not {self._intent['runner_sha256']}")
            return UNUSABLE
        restarts = 0
        while not self._ending.is_set() and not (self._folder / "deleting").exists():
            began = time.monotonic()
            code = self._start(runner)
            if code == 0:
                return 0
            restarts = 1 if time.monotonic() - began > LASTED_SECONDS else restarts + 1
            _say(f"runner ended with {code}, {restarts} times")
            if code == UNUSABLE or restarts > MOST_RESTARTS:
                self._tell(runner, f"the runner ended with {code}, {restarts} times in a row")
                return code if code > 0 else 1
            self._ending.wait(min(30.0, 0.5 * 2**restarts))
        return 0 if (self._folder / "deleting").exists() else 1

    def _start(self, runner: Path) -> int:
        intent = self._intent
        command = [sys.executable, str(runner), "host", "--store", intent["store"], "--spec", intent["spec"]]
        self._child = subprocess.Popen(
            [*command, "--root", str(self._folder / "host")],
            stdin=subprocess.DEVNULL,
            env={**os.environ, MARK: str(self._folder)},
        )
        if self._ending.is_set():
            self._stop()
        return self._child.wait()

    def _tell(self, runner: Path, reason: str) -> None:
        """Say in the store why there will be no result, unless the runner did; its own client does the writing."""
        last = dict.fromkeys(("total", "succeeded", "failed", "cached", "realized_width"), 0)
        record = {"state": "env_broken", "reason": reason, **last, "merge": None}
        told = json.dumps({**record, "gpu_seconds_busy": 0.0, "gpu_seconds_held": 0.0})
        write = (
            "import sys\nfrom widelane_host.store import open_store\n"
            "open_store(sys.argv[1]).put_if_absent(sys.argv[2], sys.argv[3].encode())\n"
        )
        key = f"leases/{self._intent['attempt_id']}/finished.json"
        try:
            subprocess.run(
                [sys.executable, "-c", write, self._intent["store"], key, told],
                env={**os.environ, "PYTHONPATH": str(runner)},
                timeout=120,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            _say(f"the store can't be told: {error}")


def claim(path: Path, job: str) -> bool:
    """Whether this job is the one that may work; the first to ask is, on every node."""
    temp = path.with_name(f"claim.{job}")
    _write(temp, job)
    try:
        os.link(temp, path)
    except FileExistsError:
        return path.read_text().strip() == job
    except OSError:
        # No hard links here: creating the file decides, though it is empty for a moment.
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return path.read_text().strip() == job
        with os.fdopen(fd, "w") as file:
            file.write(job)
    finally:
        temp.unlink()
    return True


def end_all(mark: bytes) -> None:
    """Kill every process whose environment has that entry, until there is none."""
    for _ in range(100):
        found = marked(mark)
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return
        time.sleep(0.05)


def marked(mark: bytes) -> list[int]:
    """Processes of this node, other than this one, that have that entry in their environment."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def _write(path: Path, text: str) -> None:
    temp = path.with_name(path.name + ".new")
    temp.write_text(text + "\n")
    temp.replace(path)


def _say(line: str) -> None:
    sys.stderr.write(f"widelane: {line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(Keeper(Path.cwd()).run(os.environ["SLURM_JOB_ID"]))
