"""The metadata server of a VM, and what its tokens are good for."""

from __future__ import annotations

import base64
import http.client
import json
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from google.api_core import exceptions
from google.cloud import compute_v1

from tests.fakes.simdesk import CALL_SECONDS, Clients, Desk
from tests.fakes.simworld import ZONE
from widelane.simcloud.metadata import etag

SCENARIO = """
clock: {rate: 300}
stock: [{zone: us-central1-a, count: 9}]
secrets: {KEY: "the value"}
"""
FLAVOR = {"Metadata-Flavor": "Google"}


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Desk]:
    desk = Desk(tmp_path_factory.mktemp("metadata"), SCENARIO)
    yield desk
    desk.stop()


@pytest.fixture
def desk(server) -> Iterator[Desk]:
    yield server
    server.clear()


class Vm:
    """A VM's metadata server, called from outside."""

    def __init__(self, desk: Desk, name: str) -> None:
        self.port = desk.state_of(name)["metadata_port"]

    def ask(self, path: str, verb: str = "GET", body: str | None = None, headers=FLAVOR) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CALL_SECONDS)
        connection.request(verb, f"/computeMetadata/v1/{path}", body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def text(self, path: str) -> str:
        status, text = self.ask(path)
        assert status == 200
        return text


@pytest.fixture
def vm(desk) -> Vm:
    desk.run("vm", metadata={"widelane-spec": "specs/1.json", "enable-guest-attributes": "TRUE"})
    return Vm(desk, "vm")


def test_it_answers_only_with_the_flavor_header(vm):
    assert vm.ask("instance/name", headers={})[0] == 403
    assert vm.ask("instance/name") == (200, "vm")


def test_the_tree_describes_the_vm(desk, vm):
    number = vm.text("project/numeric-project-id")
    assert vm.text("project/project-id") == "sim-project"
    assert vm.text("instance/id") == str(desk.get("vm").id)
    assert vm.text("instance/zone") == f"projects/{number}/zones/{ZONE}"
    assert vm.text("instance/machine-type") == f"projects/{number}/machineTypes/a2-ultragpu-4g"
    assert vm.text("instance/hostname") == f"vm.{ZONE}.c.sim-project.internal"
    assert vm.text("instance/preempted") == "FALSE"
    assert vm.text("instance/scheduling/preemptible") == "TRUE"
    assert vm.text("instance/attributes/widelane-spec") == "specs/1.json"
    assert vm.ask("instance/attributes/absent")[0] == 404
    assert "attributes/\n" in vm.text("instance/")
    assert json.loads(vm.text("instance/?recursive=true"))["attributes"]["widelane-spec"] == "specs/1.json"
    assert json.loads(vm.text("instance/?recursive=true&alt=json"))["machineType"].endswith("a2-ultragpu-4g")


def test_guest_attributes_go_from_the_vm_to_the_api(desk, vm):
    assert vm.ask("instance/guest-attributes/widelane/progress", "PUT", '{"done": 3}')[0] == 200
    assert vm.text("instance/guest-attributes/widelane/progress") == '{"done": 3}'
    found = desk.clients.instances.get_guest_attributes(
        compute_v1.GetGuestAttributesInstanceRequest(
            project=desk.project, zone=ZONE, instance="vm", query_path="widelane/progress"
        )
    )
    assert [(item.namespace, item.key, item.value) for item in found.query_value.items] == [
        ("widelane", "progress", '{"done": 3}')
    ]
    assert vm.ask("instance/guest-attributes/widelane/progress", "DELETE")[0] == 200
    with pytest.raises(exceptions.NotFound):
        desk.clients.instances.get_guest_attributes(project=desk.project, zone=ZONE, instance="vm")


def test_guest_attributes_must_be_enabled(desk):
    desk.run("plain")
    status, text = Vm(desk, "plain").ask("instance/guest-attributes/widelane/progress", "PUT", "x")
    assert (status, "enable-guest-attributes" in text) == (403, True)


def test_a_vm_deletes_itself_with_its_own_token(desk, vm):
    answer = json.loads(vm.text("instance/service-accounts/default/token"))
    assert (answer["token_type"], answer["expires_in"]) == ("Bearer", 3600)
    own = Clients(desk.endpoint.url, token=answer["access_token"])
    own.instances.delete_unary(project=desk.project, zone=ZONE, instance="vm")
    own.close()
    entry = desk.sim("GET", "requests")["requests"][-1]
    assert entry["method"] == "delete"
    assert entry["user"] == vm_account(desk)


def vm_account(desk: Desk) -> str:
    return desk.clients.projects.get(project=desk.project).default_service_account


def test_a_token_expires_on_the_simulated_clock(desk, vm):
    def token() -> str:
        return json.loads(vm.text("instance/service-accounts/default/token"))["access_token"]

    old = token()
    assert token() == old
    desk.sim("POST", "advance", seconds=3601)
    stale = Clients(desk.endpoint.url, token=old)
    with pytest.raises(exceptions.Unauthorized):
        stale.instances.get(project=desk.project, zone=ZONE, instance="vm")
    stale.close()
    assert token() != old


def test_a_token_without_the_scope_is_refused(desk):
    with_scope = {"email": "default", "scopes": ["https://www.googleapis.com/auth/devstorage.read_only"]}
    desk.run("vm", service_accounts=[with_scope])
    token = json.loads(Vm(desk, "vm").text("instance/service-accounts/default/token"))["access_token"]
    own = Clients(desk.endpoint.url, token=token)
    with pytest.raises(exceptions.Forbidden, match="insufficient authentication scopes"):
        own.instances.delete_unary(project=desk.project, zone=ZONE, instance="vm")
    own.close()


def test_a_vm_without_service_account_has_no_token(desk):
    desk.run("vm", service_accounts=[])
    assert Vm(desk, "vm").ask("instance/service-accounts/default/token")[0] == 404


def test_waiting_for_a_change_ends_with_the_change(desk, vm):
    heard: list[str] = []
    path = f"instance/preempted?wait_for_change=true&timeout_sec=20&last_etag={etag('FALSE')}"
    waiting = threading.Thread(target=lambda: heard.append(vm.text(path)))
    waiting.start()
    desk.sim("POST", "preempt", instance="vm")
    waiting.join()
    assert heard == ["TRUE"]


def test_waiting_for_a_change_ends_after_its_time(vm):
    assert vm.text("instance/preempted?wait_for_change=true&timeout_sec=0") == "FALSE"
    assert vm.text("instance/preempted?wait_for_change=true&last_etag=0") == "FALSE"


def test_the_port_closes_with_the_vm(desk, vm):
    desk.delete("vm")
    with pytest.raises(ConnectionRefusedError):
        vm.ask("instance/name")


def access(desk: Desk, path: str, token: str = "") -> tuple[int, dict]:
    connection = http.client.HTTPConnection(urlsplit(desk.endpoint.url).netloc, timeout=CALL_SECONDS)
    connection.request(
        "GET", f"/v1/projects/{path}:access", headers={"Authorization": f"Bearer {token}"} if token else {}
    )
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer.status, body


def test_secret_manager_gives_a_value_to_a_machine_that_may_ask_and_to_nobody_else(desk, vm):
    token = json.loads(vm.text("instance/service-accounts/default/token"))["access_token"]
    status, body = access(desk, "sim-project/secrets/KEY/versions/latest", token)
    assert (status, base64.b64decode(body["payload"]["data"])) == (200, b"the value")
    assert access(desk, "sim-project/secrets/NONE/versions/latest", token)[0] == 404
    assert access(desk, "sim-project/secrets/KEY/versions/7", token)[0] == 404
    assert access(desk, "other/secrets/KEY/versions/latest", token)[0] == 404
    for stranger in ("", "ya29.forged"):
        assert access(desk, "sim-project/secrets/KEY/versions/latest", stranger)[0] == 401
    storage = {"email": "default", "scopes": ["https://www.googleapis.com/auth/devstorage.read_write"]}
    desk.run("narrow", service_accounts=[storage])
    narrow = json.loads(Vm(desk, "narrow").text("instance/service-accounts/default/token"))["access_token"]
    assert access(desk, "sim-project/secrets/KEY/versions/latest", narrow)[0] == 403
    assert "the value" not in json.dumps(desk.sim("GET", "requests"))
