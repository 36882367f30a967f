"""What a Google Cloud machine runs: keep the runner going, tell how it gets on, and delete the machine at the end.

Standard library only, Python 3.9 or newer; it travels as text in the instance's metadata. It knows nothing of the
work: the runner file comes from the store and is checked by its digest, and the unit list is the runner's affair.
However this program ends, it asks for the deletion of its own instance; the run limit of the instance is behind it.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

from widelane.lanes.hostside import (
    BootstrapError,
    Keeper,
    alone,
    fetch_runner,
    insist,
    last_word,
    patiently,
    say,
    wait_for_driver,
)
from widelane.runner.host.store import open_store

PREEMPTED_SECONDS = 120.0
MOST_BOOTS = 6
"""An image may boot anew to install its driver, and a machine may crash; one that does so for ever holds no work."""


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

    def as_itself(self, method: str, url: str) -> bytes:
        """Call an API of Google Cloud as this machine's service account. Raises OSError."""
        token: dict[str, Any] = json.loads(self.get("instance/service-accounts/default/token"))
        headers = {"Authorization": f"Bearer {token['access_token']}"}
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers, method=method), timeout=30.0) as got:
            body: bytes = got.read()
        return body


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


def count_boots(root: Path, boot_id: str = "") -> int:
    """How often this machine has booted, this time included; starts of this program in one boot count once."""
    this = boot_id or Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    notes = root / "boots"
    known = notes.read_text().split() if notes.exists() else []
    if this not in known:
        known.append(this)
        notes.write_text("\n".join(known) + "\n")
    return len(known)


def work(metadata: Metadata, root: Path) -> str:
    """Do what the attributes say. "" when the host wrote its last word, else why it didn't."""
    store_url = metadata.attribute("widelane-store")
    sha256 = metadata.attribute("widelane-runner-sha256")
    spec = metadata.attribute("widelane-spec")
    lease = metadata.attribute("widelane-lease")
    store = open_store(store_url)
    if patiently(lambda: store.exists(f"leases/{lease}/finished.json")):
        return ""
    boots = count_boots(root)
    if boots > MOST_BOOTS:
        return f"the machine has booted {boots} times, and its work isn't done: it boots in a loop"
    preemption = Preemption(metadata)
    preemption.start()
    runner = fetch_runner(store, sha256, root)
    env = {**os.environ, **secrets_of(metadata)}
    wait_for_driver(int(metadata.attribute("widelane-gpus", "0")))
    host = root / "host"
    command = [sys.executable, str(runner), "host", "--store", store_url, "--spec", spec, "--root", str(host)]
    reason = Keeper(metadata.publish, host / "progress.json", preemption.noticed).keep(command, env)
    if preemption.noticed.is_set():
        # The service takes the machine; deleting it first would look like our own release.
        time.sleep(PREEMPTED_SECONDS)
        return ""
    return reason


def secrets_of(metadata: Metadata) -> dict[str, str]:
    """The values of the secrets that this work names, from Secret Manager: in this process, and nowhere on disk.

    Raises BootstrapError with the name and what the service said, never with a value.
    """
    values: dict[str, str] = {}
    for entry in metadata.attribute("widelane-secrets", "").split():
        name, _, resource = entry.partition("=")
        try:
            values[name] = patiently(partial(_secret, metadata, resource))
        except (OSError, ValueError, KeyError) as error:
            raise BootstrapError(f"secret {name} ({resource}): {type(error).__name__}") from error
        except BootstrapError as error:
            raise BootstrapError(f"secret {name} ({resource}): {error}") from error
    return values


def _secret(metadata: Metadata, resource: str) -> str:
    """One value. Raises BootstrapError when the service refuses, OSError when it doesn't answer."""
    api = metadata.attribute("widelane-api-endpoint", "https://secretmanager.googleapis.com").rstrip("/")
    try:
        told = json.loads(metadata.as_itself("GET", f"{api}/v1/{resource}:access"))
    except urllib.error.HTTPError as error:
        if error.code in (401, 429) or error.code >= 500:
            raise
        said = error.read(500).decode(errors="replace")
        with contextlib.suppress(ValueError, KeyError, TypeError):
            said = json.loads(said)["error"]["message"]
        raise BootstrapError(f"HTTP {error.code} {said.strip()}") from error
    return base64.b64decode(told["payload"]["data"]).decode()


def tell(metadata: Metadata, reason: str) -> None:
    """Say why there will be no result: as guest attribute, and as the lease's last word if there is none."""
    last = last_word(reason)
    metadata.publish(json.dumps(last))
    try:
        store = open_store(metadata.attribute("widelane-store"))
        lease = metadata.attribute("widelane-lease")
        store.put_if_absent(f"leases/{lease}/finished.json", json.dumps(last).encode())
    except (BootstrapError, OSError, ValueError) as error:
        say(f"the store can't be told: {error}")


def delete_self(metadata: Metadata) -> bool:
    """Ask the API to delete this instance until it is accepted or time is up."""
    return insist(lambda: _delete(metadata))


def _delete(metadata: Metadata) -> None:
    api = metadata.attribute("widelane-api-endpoint", "https://compute.googleapis.com").rstrip("/")
    project = metadata.get("project/project-id")
    zone = metadata.get("instance/zone").rpartition("/")[2]
    name = metadata.get("instance/name")
    try:
        metadata.as_itself("DELETE", f"{api}/compute/v1/projects/{project}/zones/{zone}/instances/{name}")
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise


def main() -> int:
    """Work, tell, delete."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    root: Path = parser.parse_args().root
    metadata = Metadata(os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal")
    with alone(root) as first:
        if not first:
            return 0
        try:
            reason = work(metadata, root)
        except (BootstrapError, OSError, ValueError) as error:
            reason = str(error)
        if reason:
            say(reason)
            tell(metadata, reason)
        return 0 if delete_self(metadata) else 1


if __name__ == "__main__":
    sys.exit(main())
