"""Finds and starts simulated clouds, and keeps their time; light to import."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import http.client
import json
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast
from urllib.parse import urlsplit

from widelane.errors import BusyError, ScenarioError, WidelaneError

ENDPOINT_FILE = "endpoint.json"
SCENARIO_FILE = "scenario.yaml"
LOCK_FILE = "lock"
_START_SECONDS = 20.0
_SIZE_LIMIT = 4 * 1024 * 1024
_CALL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class SimEndpoint:
    """A running simulated cloud. `folder` holds its state; `scenario` is the copy kept there."""

    url: str
    project: str
    clock_rate: float
    pid: int
    folder: Path

    @property
    def scenario(self) -> Path:
        """The scenario as it was when the state was made; starting it again finds the same state."""
        return self.folder / SCENARIO_FILE


def ensure_running(
    scenario: Path, home: Path, *, idle_seconds: float | None = None, isolation: str | None = None
) -> SimEndpoint:
    """The cloud of this scenario under `home`: the one that runs, else a new detached server on the same state.

    Raises ScenarioError for a scenario that can't be used.
    """
    folder = state_folder(scenario, home)
    found = running(folder)
    if found is not None:
        return found
    command = [sys.executable, "-m", "widelane.simcloud", "--home", str(folder), "--scenario", str(scenario)]
    command += [] if idle_seconds is None else ["--idle-seconds", str(idle_seconds)]
    command += [] if isolation is None else ["--isolation", isolation]
    done = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3 * _START_SECONDS
    )
    if done.returncode == 2:
        raise ScenarioError(done.stderr.strip())
    found = awaited(folder) if done.returncode == 0 else None
    if found is None:
        raise WidelaneError(f"the simulated cloud did not start: {done.stderr.strip()}", code="sim_not_started")
    return found


def revive(url: str, home: Path) -> bool:
    """Start the cloud of `home` that served this URL again, on its state; False when there is none.

    Its machines live on without it, and it takes its old port.
    """
    for noted in home.glob(f"simcloud/*/{ENDPOINT_FILE}"):
        scenario = noted.with_name(SCENARIO_FILE)
        with contextlib.suppress(OSError, ValueError, KeyError, WidelaneError):
            if json.loads(noted.read_text(encoding="utf-8"))["url"] == url:
                return ensure_running(scenario, home).url == url
    return False


def state_folder(scenario: Path, home: Path) -> Path:
    """Where the state of a scenario is kept: by its content, so that an edited scenario is a new cloud."""
    return home / "simcloud" / scenario_digest(scenario)[:16]


def scenario_digest(scenario: Path) -> str:
    """SHA-256 of the scenario's bytes. Raises ScenarioError when it can't be read."""
    return hashlib.sha256(scenario_bytes(scenario)).hexdigest()


def scenario_bytes(scenario: Path) -> bytes:
    """What a scenario's file holds. Raises ScenarioError when it can't be read, or has no end near."""
    try:
        with scenario.open("rb") as stream:
            data = stream.read(_SIZE_LIMIT + 1)
    except (OSError, ValueError) as error:
        raise ScenarioError(f"{scenario}: can't be read: {error}") from error
    if len(data) > _SIZE_LIMIT:
        raise ScenarioError(f"{scenario}: has more than {_SIZE_LIMIT // 1024} KiB, which no scenario has")
    return data


def running(folder: Path) -> SimEndpoint | None:
    """The server that owns a state folder and answers now."""
    with contextlib.suppress(OSError, ValueError, KeyError, http.client.HTTPException):
        noted = json.loads((folder / ENDPOINT_FILE).read_text(encoding="utf-8"))
        answer = call(noted["url"], "GET", "/sim/clock")
        if answer["cloud"] == noted["cloud"]:
            return SimEndpoint(noted["url"], noted["project"], float(noted["clock_rate"]), int(noted["pid"]), folder)
    return None


def awaited(folder: Path, seconds: float = _START_SECONDS) -> SimEndpoint | None:
    """The server of a state folder once it answers; None when it doesn't within `seconds`."""
    until = time.monotonic() + seconds
    while (found := running(folder)) is None and time.monotonic() < until:
        time.sleep(0.02)
    return found


def call(url: str, verb: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """One call of a /sim route. Raises OSError or HTTPException when there is no answer, ValueError for a refusal."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_CALL_SECONDS)
    with contextlib.closing(connection):
        text = None if body is None else json.dumps(body)
        connection.request(verb, path, text, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
    if response.status != 200:
        raise ValueError(f"{verb} {path}: {answer}")
    return cast("dict[str, Any]", answer)


def stop(endpoint: SimEndpoint, seconds: float = _START_SECONDS) -> bool:
    """End a cloud and every VM in it; whether the server is gone within `seconds`."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        call(endpoint.url, "POST", "/sim/stop", {})
    until = time.monotonic() + seconds
    while _owned(endpoint.folder) and time.monotonic() < until:
        time.sleep(0.02)
    return not _owned(endpoint.folder)


@contextlib.contextmanager
def owning(folder: Path, seconds: float = _START_SECONDS) -> Generator[None]:
    """Be the only server of a state folder; waits for one that is leaving.

    Raises BusyError when another one serves it.
    """
    until = time.monotonic() + seconds
    with (folder / LOCK_FILE).open("a") as lock:
        while not _take(lock):
            found = running(folder)
            if found is not None or time.monotonic() > until:
                where = f" at {found.url}" if found else ""
                raise BusyError(f"{folder} is already served{where}", code="sim_running")
            time.sleep(0.02)
        yield


def _owned(folder: Path) -> bool:
    """Whether a server has the folder, be it starting, serving or leaving."""
    try:
        with (folder / LOCK_FILE).open("r+") as lock:
            return not _take(lock)
    except OSError:
        return False


def _take(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
