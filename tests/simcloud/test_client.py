"""Starting, finding and leaving simulated clouds."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simdesk import Desk, wait_for
from widelane.errors import BusyError, ScenarioError
from widelane.simcloud import client
from widelane.simcloud.server import serve
from widelane.simcloud.vminit import start_time

pytestmark = pytest.mark.slow

SCENARIO = "{clock: {rate: 120}, stock: [{zone: us-central1-a, count: 1}]}"


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("client"), SCENARIO)
    yield made
    made.stop()


def test_the_same_scenario_finds_the_same_cloud(desk, tmp_path):
    again = client.ensure_running(desk.file, desk.home)
    assert again == desk.endpoint
    copy = tmp_path / "elsewhere.yaml"
    copy.write_bytes(desk.file.read_bytes())
    assert client.ensure_running(copy, desk.home) == desk.endpoint
    assert client.ensure_running(desk.endpoint.scenario, desk.home) == desk.endpoint


def test_two_starts_at_once_give_one_server(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO)
    found: list[client.SimEndpoint] = []
    starts = [threading.Thread(target=lambda: found.append(client.ensure_running(file, tmp_path))) for _ in range(3)]
    for start in starts:
        start.start()
    for start in starts:
        start.join()
    assert len({each.pid for each in found}) == 1
    assert client.stop(found[0])


def test_another_scenario_is_another_cloud(desk, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text("{}")
    made = client.ensure_running(other, desk.home)
    assert made.url != desk.endpoint.url
    assert client.stop(made)


def test_a_state_folder_is_kept_for_its_scenario(desk, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text("{}")
    folder = tmp_path / "state"
    command = [sys.executable, "-m", "widelane.simcloud", "--home", str(folder), "--scenario"]
    subprocess.run([*command, str(desk.file)], check=True, cwd=tmp_path)
    found = client.running(folder)
    assert found is not None
    assert client.stop(found)
    refused = subprocess.run([*command, str(other)], check=False, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "holds the state of another scenario" in refused.stderr


def test_a_bad_scenario_starts_nothing(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("stock: [{count: -1}]")
    with pytest.raises(ScenarioError, match=r"bad\.yaml:1:17: count is -1"):
        client.ensure_running(bad, tmp_path)
    with pytest.raises(ScenarioError, match="can't be read"):
        client.ensure_running(tmp_path / "absent.yaml", tmp_path)


def test_a_cloud_that_nobody_calls_leaves(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO)
    made = client.ensure_running(file, tmp_path, idle_seconds=1)
    wait_for(lambda: start_time(made.pid) is None)
    assert client.running(made.folder) is None
    again = client.ensure_running(file, tmp_path)
    assert again.url == made.url
    assert client.stop(again)


def test_a_cloud_with_a_live_vm_does_not_leave(tmp_path):
    desk = Desk(tmp_path, SCENARIO, idle_seconds=1)
    desk.run("vm", limit=240)
    wait_for(lambda: start_time(desk.endpoint.pid) is None)
    desk.clients.close()
    desk.start()
    kinds = [each.operation_type for each in desk.clients.operations.list(project=desk.project, zone="us-central1-a")]
    assert kinds == ["insert", "delete"]
    desk.stop()


def test_serving_in_the_foreground_tells_the_address_and_ends_when_stopped(desk, tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO)
    told: list[client.SimEndpoint] = []
    served = threading.Thread(target=lambda: serve(file, tmp_path, ready=told.append))
    served.start()
    wait_for(lambda: told)
    assert client.ensure_running(file, tmp_path).url == told[0].url
    with pytest.raises(BusyError, match="already served"):
        serve(file, tmp_path)
    assert client.stop(told[0])
    served.join()


def test_a_stop_answers_those_who_wait(tmp_path):
    desk = Desk(tmp_path, "{clock: {rate: 1}, stock: [{count: 0, then: pending}]}")
    operation = desk.insert("vm", model="FLEX_START", wait=600)
    answers: list[str] = []

    def wait() -> None:
        place = {"project": desk.project, "zone": "us-central1-a", "operation": operation.name}
        answers.append(desk.clients.operations.wait(**place).name)

    waiting = threading.Thread(target=wait)
    waiting.start()
    wait_for(lambda: any(entry["method"] == "wait" for entry in desk.sim("GET", "requests")["requests"]))
    assert client.stop(desk.endpoint)
    waiting.join()
    assert answers == [operation.name]
    desk.stop()


def test_the_client_is_light_to_import():
    seen = subprocess.run(
        [sys.executable, "-c", "import sys, widelane.simcloud.client; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert not {"starlette", "uvicorn", "google", "yaml", "pydantic", "asyncio"} & set(seen)


def test_bad_calls_of_the_simulator_are_refused(desk: Desk):
    calls: dict[str, dict[str, Any]] = {
        "advance": {"seconds": -1},
        "preempt": {"instance": "nobody"},
        "stock": {"zone": "us-central1-f", "machine_type": "a2-ultragpu-8g", "model": "SPOT", "count": 1},
        "faults": {"on": "nothing"},
    }
    for path, body in calls.items():
        with pytest.raises(ValueError, match=path):
            desk.sim("POST", path, **body)
    assert isinstance(desk.endpoint.folder, Path)
