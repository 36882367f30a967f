"""What every machine does around the runner, whatever its lane: the part that bootstraps share.

Standard library only, Python 3.9 or newer. It is shipped in one text between the store's clients and the bootstrap of a
lane (`shipping.compose`), so both may import names from what is before them and nothing else of this program.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import subprocess
import sys
import threading
import time
import urllib.error
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from widelane.runner.host.store import CorruptError, Store, StoreMissingError

DRIVER_SECONDS = 600.0
"""A host that hasn't counted its devices in 15 minutes is given up, so the wait for them ends well before."""
STORE_SECONDS = 240.0
PUBLISH_SECONDS = 1.0
MOST_RESTARTS = 8
LASTED_SECONDS = 600.0
DELETE_SECONDS = 1800.0
UNUSABLE = 2
"""Exit code of a runner that would end the same way every time."""


T = TypeVar("T")


class BootstrapError(Exception):
    """The machine can't do its work; the text says why."""


def patiently(act: Callable[[], T], pause: Callable[[float], None] = time.sleep) -> T:
    """Do it, again while the store can't be reached: networks and permissions come up after the machine.

    Raises OSError at once for a key that isn't there, or isn't what its name says, and in the end for anything.
    """
    seconds, waited = 1.0, 0.0
    while True:
        try:
            return act()
        except (StoreMissingError, CorruptError):
            raise
        except OSError as error:
            if waited >= STORE_SECONDS:
                raise
            say(f"store: {error}")
        pause(seconds)
        waited += seconds
        seconds = min(30.0, seconds * 2)


def fetch_runner(store: Store, sha256: str, root: Path) -> Path:
    """The runner file, which has that digest. Raises BootstrapError."""
    target = root / "runner.pyz"
    if not (target.exists() and digest_of(target) == sha256):
        key = f"runners/{sha256}.pyz"
        try:
            patiently(lambda: store.get_to(key, target, sha256))
        except OSError as error:
            raise BootstrapError(f"the store gives no {key}: {error}") from error
    return target


class Keeper:
    """Runs one command until it ends by itself, and publishes a file while it does.

    `publish` takes the file's text and says whether it was taken; once `leaving` is set, nothing is started again.
    """

    def __init__(
        self,
        publish: Callable[[str], bool],
        progress: Path,
        leaving: threading.Event,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._pause = pause
        self._publish = publish
        self._progress = progress
        self._leaving = leaving
        self._published: str | None = None

    def keep(self, command: list[str], env: Mapping[str, str] | None = None) -> str:
        """Run it, again after a crash; "" when it ended well, else the reason that it didn't."""
        restarts = 0
        while True:
            began = time.monotonic()
            code = self._run(command, env)
            if code == 0:
                return ""
            if self._leaving.is_set():
                return ""
            if code == UNUSABLE:
                return "the runner can't use its arguments or its spec"
            if time.monotonic() - began > LASTED_SECONDS:
                restarts = 0
            restarts += 1
            if restarts > MOST_RESTARTS:
                return f"the runner ended {restarts} times in a row, last with {code}"
            say(f"runner ended with {code}, start {restarts + 1}")
            self._pause(min(30.0, 0.5 * 2**restarts))

    def _run(self, command: list[str], env: Mapping[str, str] | None) -> int:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=env)
        while True:
            try:
                return process.wait(timeout=PUBLISH_SECONDS)
            except subprocess.TimeoutExpired:
                self.publish()
            finally:
                if process.returncode is not None:
                    self.publish()

    def publish(self) -> None:
        """Send the progress file if it changed."""
        try:
            text = self._progress.read_text()
        except OSError:
            return
        if text != self._published and self._publish(text):
            self._published = text


def wait_for_driver(gpus: int, pause: Callable[[float], None] = time.sleep) -> None:
    """On stock images the GPU driver can still be installing; the runner counts devices only once.

    Bounded: with fewer devices than expected in the end, the runner counts what there is, and the walk judges it.
    """
    waited = 0.0
    while gpus and waited < DRIVER_SECONDS:
        listed = 0
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            out = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=True).stdout
            listed = sum(line.startswith("GPU ") for line in out.splitlines())
        if listed >= gpus:
            return
        pause(5.0)
        waited += 5.0


def last_word(reason: str) -> dict[str, Any]:
    """The last word of a lease whose runner never got to say one."""
    return {
        "state": "env_broken",
        "reason": reason,
        "total": 0,
        "succeeded": 0,
        "failed": 0,
        "cached": 0,
        "realized_width": 0,
        "merge": None,
        "gpu_seconds_busy": 0.0,
        "gpu_seconds_held": 0.0,
    }


def insist(ask: Callable[[], None]) -> bool:
    """Ask until it raises nothing or time is up; whether it was accepted."""
    ends = time.monotonic() + DELETE_SECONDS
    pause = 1.0
    while time.monotonic() < ends:
        try:
            ask()
            return True
        except urllib.error.HTTPError as error:
            say(f"delete: HTTP {error.code} {error.read(500).decode(errors='replace')}")
        except (OSError, ValueError, BootstrapError) as error:
            say(f"delete: {error}")
        time.sleep(pause)
        pause = min(60.0, pause * 2)
    return False


def digest_of(path: Path) -> str:
    """sha256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as source:
        for block in iter(lambda: source.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def alone(root: Path) -> Generator[bool]:
    """Whether no other bootstrap works in this folder."""
    with (root / "bootstrap.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def say(line: str) -> None:
    """One line on standard error."""
    sys.stderr.write(f"widelane: {line}\n")
    sys.stderr.flush()
