"""What a Google Cloud machine runs: keep the runner going, tell how it gets on, and delete the machine at the end.

Standard library only, Python 3.9 or newer; it travels as text in the instance's metadata. It knows nothing of the
work: the runner file comes from the store and is checked by its digest, and the unit list is the runner's affair.
However this program ends, it asks for the deletion of its own instance; the run limit of the instance is behind it.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

DRIVER_SECONDS = 900.0
PUBLISH_SECONDS = 1.0
MOST_RESTARTS = 8
LASTED_SECONDS = 600.0
DELETE_SECONDS = 1800.0
PREEMPTED_SECONDS = 120.0
UNUSABLE = 2
"""Exit code of a runner that would end the same way every time."""


class BootstrapError(Exception):
    """The machine can't do its work; the text says why."""


class Metadata:
    """The metadata server of this instance."""

    def __init__(self, host: str) -> None:
        self._base = f"http://{host}/computeMetadata/v1/"
        self._open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

    def get(self, path: str, seconds: float = 10.0) -> str:
        """One value. Raises OSError (an HTTPError when the server refused)."""
        request = urllib.request.Request(self._base + path, headers={"Metadata-Flavor": "Google"})
        with self._open(request, timeout=seconds) as answer:
            text: str = answer.read().decode()
        return text

    def attribute(self, key: str, default: str | None = None) -> str:
        """An attribute of this instance. Raises BootstrapError when it isn't there and has no default."""
        for pause in (1, 2, 4, 8, 0):
            try:
                return self.get("instance/attributes/" + key)
            except urllib.error.HTTPError as error:
                if error.code == 404 and default is not None:
                    return default
                if error.code == 404 or not pause:
                    raise BootstrapError(f"metadata has no {key}: {error}") from error
            except OSError as error:
                if not pause:
                    raise BootstrapError(f"metadata server: {error}") from error
            time.sleep(pause)
        raise BootstrapError(f"metadata server: {key} could not be read")

    def publish(self, text: str) -> bool:
        """Set the guest attribute widelane/progress; whether it was taken."""
        request = urllib.request.Request(
            self._base + "instance/guest-attributes/widelane/progress",
            data=text.encode(),
            headers={"Metadata-Flavor": "Google"},
            method="PUT",
        )
        try:
            with self._open(request, timeout=5.0):
                return True
        except OSError:
            return False


class Store:
    """As much of the store as is needed before there is a runner."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "file":
            raise BootstrapError(f"this bootstrap can't read a {parts.scheme}:// store")
        self._root = Path(urllib.parse.unquote(parts.path))

    def fetch(self, key: str, sha256: str, target: Path) -> None:
        """Copy one key to a file that has that digest. Raises BootstrapError."""
        if target.exists() and _digest(target) == sha256:
            return
        temp = target.with_name(target.name + ".new")
        try:
            shutil.copyfile(self._root / key, temp)
        except OSError as error:
            raise BootstrapError(f"the store has no {key}: {error}") from error
        found = _digest(temp)
        if found != sha256:
            raise BootstrapError(f"{key} has the digest {found}, expected {sha256}")
        temp.replace(target)

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return (self._root / key).is_file()

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Write one key whole, unless it is there already. Raises OSError."""
        target = self._root / key
        target.parent.mkdir(parents=True, exist_ok=True)
        temp = target.parent / f".tmp-bootstrap-{os.getpid()}"
        try:
            with temp.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(temp, target)
        finally:
            temp.unlink(missing_ok=True)


class Preemption(threading.Thread):
    """Waits for the service's notice. The path answers FALSE until then: the value counts, not the status."""

    def __init__(self, metadata: Metadata) -> None:
        super().__init__(daemon=True)
        self._metadata = metadata
        self.noticed = threading.Event()

    def run(self) -> None:
        """Long-poll until the value is TRUE."""
        path = "instance/preempted"
        while not self.noticed.is_set():
            began = time.monotonic()
            with contextlib.suppress(OSError):
                if self._metadata.get(path, seconds=90.0).strip() == "TRUE":
                    self.noticed.set()
                path = "instance/preempted?wait_for_change=true&timeout_sec=60"
            time.sleep(max(0.0, 1.0 - (time.monotonic() - began)))


class Keeper:
    """Runs one command until it ends by itself, and publishes a file while it does."""

    def __init__(
        self,
        metadata: Metadata,
        progress: Path,
        preemption: Preemption,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._pause = pause
        self._metadata = metadata
        self._progress = progress
        self._preemption = preemption
        self._published: str | None = None

    def keep(self, command: list[str]) -> str:
        """Run it, again after a crash; "" when it ended well, else the reason that it didn't."""
        restarts = 0
        while True:
            began = time.monotonic()
            code = self._run(command)
            if code == 0:
                return ""
            if self._preemption.noticed.is_set():
                return ""
            if code == UNUSABLE:
                return "the runner can't use its arguments or its spec"
            if time.monotonic() - began > LASTED_SECONDS:
                restarts = 0
            restarts += 1
            if restarts > MOST_RESTARTS:
                return f"the runner ended {restarts} times in a row, last with {code}"
            _say(f"runner ended with {code}, start {restarts + 1}")
            self._pause(min(30.0, 0.5 * 2**restarts))

    def _run(self, command: list[str]) -> int:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
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
        if text != self._published and self._metadata.publish(text):
            self._published = text


def work(metadata: Metadata, root: Path) -> str:
    """Do what the attributes say. "" when the host wrote its last word, else why it didn't."""
    store_url = metadata.attribute("widelane-store")
    sha256 = metadata.attribute("widelane-runner-sha256")
    spec = metadata.attribute("widelane-spec")
    lease = metadata.attribute("widelane-lease")
    store = Store(store_url)
    if store.has(f"leases/{lease}/finished.json"):
        return ""
    runner = root / "runner.pyz"
    store.fetch(f"runners/{sha256}.pyz", sha256, runner)
    wait_for_driver(int(metadata.attribute("widelane-gpus", "0")))
    preemption = Preemption(metadata)
    preemption.start()
    host = root / "host"
    command = [sys.executable, str(runner), "host", "--store", store_url, "--spec", spec, "--root", str(host)]
    reason = Keeper(metadata, host / "progress.json", preemption).keep(command)
    if preemption.noticed.is_set():
        # The service takes the machine; deleting it first would look like our own release.
        time.sleep(PREEMPTED_SECONDS)
        return ""
    return reason


def wait_for_driver(gpus: int) -> None:
    """On stock images the GPU driver can still be installing; the runner counts devices only once."""
    ends = time.monotonic() + DRIVER_SECONDS
    while gpus and time.monotonic() < ends:
        listed = 0
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            out = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=True).stdout
            listed = sum(line.startswith("GPU ") for line in out.splitlines())
        if listed >= gpus:
            return
        time.sleep(5.0)


def tell(metadata: Metadata, reason: str) -> None:
    """Say why there will be no result: as guest attribute, and as the lease's last word if there is none."""
    last = {
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
    metadata.publish(json.dumps(last))
    try:
        store = Store(metadata.attribute("widelane-store"))
        lease = metadata.attribute("widelane-lease")
        store.put_if_absent(f"leases/{lease}/finished.json", json.dumps(last).encode())
    except (BootstrapError, OSError) as error:
        _say(f"the store can't be told: {error}")


def delete_self(metadata: Metadata) -> bool:
    """Ask the API to delete this instance until it is accepted or time is up."""
    ends = time.monotonic() + DELETE_SECONDS
    pause = 1.0
    while time.monotonic() < ends:
        try:
            _delete(metadata)
            return True
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return True
            _say(f"delete: HTTP {error.code} {error.read(500).decode(errors='replace')}")
        except (OSError, ValueError, BootstrapError) as error:
            _say(f"delete: {error}")
        time.sleep(pause)
        pause = min(60.0, pause * 2)
    return False


def _delete(metadata: Metadata) -> None:
    api = metadata.attribute("widelane-api-endpoint", "https://compute.googleapis.com").rstrip("/")
    project = metadata.get("project/project-id")
    zone = metadata.get("instance/zone").rpartition("/")[2]
    name = metadata.get("instance/name")
    token: dict[str, Any] = json.loads(metadata.get("instance/service-accounts/default/token"))
    request = urllib.request.Request(
        f"{api}/compute/v1/projects/{project}/zones/{zone}/instances/{name}",
        headers={"Authorization": f"Bearer {token['access_token']}"},
        method="DELETE",
    )
    with urllib.request.urlopen(request, timeout=30.0) as answer:
        answer.read()


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as source:
        for block in iter(lambda: source.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def _alone(root: Path) -> Generator[bool]:
    """Whether no other bootstrap works in this folder."""
    with (root / "bootstrap.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _say(line: str) -> None:
    sys.stderr.write(f"widelane: {line}\n")
    sys.stderr.flush()


def main() -> int:
    """Work, tell, delete."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    root: Path = parser.parse_args().root
    metadata = Metadata(os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal")
    with _alone(root) as alone:
        if not alone:
            return 0
        try:
            reason = work(metadata, root)
        except (BootstrapError, OSError, ValueError) as error:
            reason = str(error)
        if reason:
            _say(reason)
            tell(metadata, reason)
        return 0 if delete_self(metadata) else 1


if __name__ == "__main__":
    sys.exit(main())
