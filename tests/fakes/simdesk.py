"""A simulated cloud in its own process, spoken to by the real google-cloud-compute client."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1
from google.protobuf import json_format

from tests.fakes.simworld import ZONE, instance_body
from widelane.simcloud import client
from widelane.simcloud.vminit import start_time

CALL_SECONDS = 20.0
DONE = compute_v1.Operation.Status.DONE


@dataclass
class Clients:
    """The clients of one endpoint, or of a VM's token."""

    url: str
    token: str = ""

    def __post_init__(self) -> None:
        options = {"client_options": {"api_endpoint": self.url}, "credentials": self._credentials()}
        self.instances = compute_v1.InstancesClient(**options)
        self.operations = compute_v1.ZoneOperationsClient(**options)
        self.regions = compute_v1.RegionsClient(**options)
        self.projects = compute_v1.ProjectsClient(**options)
        self.zones = compute_v1.ZonesClient(**options)
        self.machine_types = compute_v1.MachineTypesClient(**options)

    def _credentials(self) -> Any:
        if not self.token:
            return AnonymousCredentials()
        return BearerCredentials(self.token)

    def close(self) -> None:
        for each in (self.instances, self.operations, self.regions, self.projects, self.zones, self.machine_types):
            each.transport.close()


class BearerCredentials(AnonymousCredentials):
    """Puts one token on every request."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._bearer = token

    def apply(self, headers: dict[str, str], token: str | None = None) -> None:
        headers["authorization"] = f"Bearer {self._bearer}"

    def refresh(self, request: Any) -> None:
        """There is no other token to be had."""

    def before_request(self, request: Any, method: str, url: str, headers: dict[str, str]) -> None:
        self.apply(headers)


class Desk:
    """One server and its clients."""

    project = "sim-project"

    def __init__(self, home: Path, scenario: str, **options: Any) -> None:
        self.home = home
        self.file = home / "scenario.yaml"
        self.file.write_text(scenario, encoding="utf-8")
        self.isolation = options.get("isolation")
        self._options = options
        self.start()

    def start(self) -> None:
        self.endpoint = client.ensure_running(self.file, self.home, **self._options)
        self.clients = Clients(self.endpoint.url)

    def kill_server(self) -> None:
        """kill -9, and wait until it is gone."""
        os.kill(self.endpoint.pid, signal.SIGKILL)
        wait_for(lambda: start_time(self.endpoint.pid) is None)
        self.clients.close()

    def stop(self) -> None:
        self.clients.close()
        assert client.stop(self.endpoint)
        log = self.endpoint.folder / "server.log"
        assert not log.exists() or not log.read_text(), log.read_text()

    def sim(self, verb: str, path: str, **body: Any) -> dict[str, Any]:
        """One call of a /sim route."""
        return client.call(self.endpoint.url, verb, f"/sim/{path}", body or None)

    def insert(self, name: str, machine_type: str = "a2-ultragpu-4g", model: str = "SPOT", **more: Any) -> Any:
        """instances.insert; `more`: zone, request_id, wait, limit, action, labels, metadata, scheduling."""
        zone, identity = more.pop("zone", ZONE), more.pop("request_id", "")
        timeout = more.pop("timeout", CALL_SECONDS)
        body = instance_body(name, zone, machine_type, model, **more)
        resource = json_format.ParseDict(body, compute_v1.Instance.pb(compute_v1.Instance()))
        request = compute_v1.InsertInstanceRequest(
            project=self.project, zone=zone, instance_resource=resource, request_id=identity
        )
        return self.clients.instances.insert_unary(request, timeout=timeout)

    def done(self, operation: Any, zone: str = ZONE) -> Any:
        """The operation once it is done."""
        until = time.monotonic() + CALL_SECONDS
        while operation.status != DONE:
            assert time.monotonic() < until, operation
            operation = self.clients.operations.wait(
                project=self.project, zone=zone, operation=operation.name, timeout=CALL_SECONDS
            )
        return operation

    def run(self, name: str, script: str = "", **more: Any) -> Any:
        """A running VM with that start-up script."""
        metadata = {**more.pop("metadata", {}), **({"startup-script": script} if script else {})}
        done = self.done(self.insert(name, metadata=metadata, **more), more.get("zone", ZONE))
        assert not done.error.errors, done.error
        return self.get(name, more.get("zone", ZONE))

    def get(self, name: str, zone: str = ZONE) -> Any:
        return self.clients.instances.get(project=self.project, zone=zone, instance=name, timeout=CALL_SECONDS)

    def delete(self, name: str, zone: str = ZONE) -> Any:
        return self.done(self.ask_delete(name, zone), zone)

    def ask_delete(self, name: str, zone: str = ZONE) -> Any:
        return self.clients.instances.delete_unary(project=self.project, zone=zone, instance=name, timeout=CALL_SECONDS)

    def clear(self) -> None:
        """Delete every instance."""
        for it in self.sim("GET", "state")["instances"]:
            with contextlib.suppress(exceptions.NotFound):
                self.delete(it["name"], it["zone"])

    def serial(self, name: str, zone: str = ZONE) -> str:
        found = self.clients.instances.get_serial_port_output(project=self.project, zone=zone, instance=name)
        return str(found.contents)

    def state_of(self, name: str) -> dict[str, Any]:
        """The simulator's own view of an instance; {} when there is none."""
        return next((it for it in self.sim("GET", "state")["instances"] if it["name"] == name), {})

    def root(self, name: str) -> Path:
        """The VM's root folder."""
        return self.endpoint.folder / "vms" / f"{name}-{self.state_of(name)['id']}"

    def said(self, name: str, word: str) -> str:
        """The serial log once `word` is in it."""
        wait_for(lambda: word in self.serial(name))
        return self.serial(name)


def wait_for(seen: Callable[[], object], within: float = 10.0) -> None:
    """Return as soon as `seen()` is true; fail when it isn't in time."""
    until = time.monotonic() + within
    while not seen():
        assert time.monotonic() < until, "not seen in time"
        time.sleep(0.01)


def codes(operation: Any) -> list[str]:
    """Error codes of an operation."""
    return [error.code for error in operation.error.errors]


def body_of(error: Any) -> dict[str, Any]:
    """The JSON body of a GoogleAPICallError."""
    return json.loads(error.response.content)
