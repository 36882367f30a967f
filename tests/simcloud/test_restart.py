"""A server killed with -9 and started again on the same state loses nothing; VMs live on meanwhile."""

from __future__ import annotations

import http.client
import os
import random
import shutil
import signal
import uuid
from collections.abc import Iterator

import pytest
import requests

from tests.fakes.simdesk import Desk, codes, wait_for
from widelane.simcloud import client
from widelane.simcloud.vminit import start_time

pytestmark = pytest.mark.slow

SCENARIO = """
clock: {rate: 60}
stock:
  - {zone: us-central1-a, machine_type: [a2-ultragpu-1g, a2-ultragpu-4g], count: 1, then: pending}
faults: [{on: insert, nth: 4, do: drop_after_commit}]
quotas: {us-central1: {PREEMPTIBLE_NVIDIA_A100_80GB_GPUS: 16}}
"""
TICKING = "n=0; while :; do n=$((n + 1)); echo tick $n; sleep 0.05; done"


@pytest.fixture
def desk(tmp_path) -> Iterator[Desk]:
    made = Desk(tmp_path, SCENARIO)
    yield made
    made.stop()


def test_nothing_is_lost_when_the_server_is_killed(desk):
    identity = str(uuid.uuid4())
    desk.run("vm", TICKING, request_id=identity, metadata={"key": "value"})
    desk.run("holds", model="FLEX_START", machine_type="a2-ultragpu-1g")
    waits = desk.insert("waits", model="FLEX_START", wait=7200, machine_type="a2-ultragpu-1g")
    ticks = desk.said("vm", "tick 3").count("tick")
    before, url = desk.state_of("vm"), desk.endpoint.url
    log, elapsed = desk.sim("GET", "requests")["requests"], desk.sim("GET", "clock")["elapsed"]

    desk.kill_server()
    assert start_time(before["pid"]) is not None
    desk.start()

    assert desk.endpoint.url == url
    assert desk.sim("GET", "requests")["requests"][: len(log)] == log
    assert desk.sim("GET", "clock")["elapsed"] > elapsed
    assert desk.state_of("vm") == before
    assert desk.state_of("waits")["status"] == "PENDING"
    assert desk.said("vm", f"tick {ticks + 3}\n").count("tick 1\n") == 1
    assert desk.clients.regions.get(project=desk.project, region="us-central1").quotas[0].usage == 5.0
    connection = http.client.HTTPConnection("127.0.0.1", before["metadata_port"], timeout=5)
    connection.request("GET", "/computeMetadata/v1/instance/attributes/key", headers={"Metadata-Flavor": "Google"})
    assert connection.getresponse().read() == b"value"
    connection.close()
    with pytest.raises(requests.exceptions.ConnectionError):
        desk.insert("vm", request_id=identity)
    assert desk.insert("vm", request_id=identity).client_operation_id == identity
    desk.delete("holds")
    assert codes(desk.done(waits)) == []
    desk.delete("vm")
    assert start_time(before["pid"]) is None


def test_a_server_killed_at_any_moment_of_a_vms_life_neither_doubles_nor_loses_it(desk):
    moments = random.Random(7)
    for number in range(3):
        name, identity = f"vm{number}", str(uuid.uuid4())
        _insert_whatever_happens(desk, name, identity)
        wait_for_a_moment(desk, moments)
        desk.kill_server()
        desk.start()
        operation = _insert_whatever_happens(desk, name, identity)
        assert codes(desk.done(operation)) == []
        wait_for(lambda name=name: "once" in desk.serial(name))
        assert desk.serial(name).count("once") == 1
        pid = desk.state_of(name)["pid"]
        desk.ask_delete(name)
        desk.kill_server()
        desk.start()
        wait_for(lambda name=name: not desk.state_of(name))
        assert start_time(pid) is None
        assert not list((desk.endpoint.folder / "vms").glob(f"{name}-*/vm.pid"))


def wait_for_a_moment(desk, moments) -> None:
    """Let a random part of the boot go by, told by the cloud's own clock."""
    until = desk.sim("GET", "clock")["elapsed"] + moments.uniform(0, 8)
    wait_for(lambda: desk.sim("GET", "clock")["elapsed"] >= until)


def _insert_whatever_happens(desk, name, identity):
    try:
        return desk.insert(name, metadata={"startup-script": "echo once; sleep 1000"}, request_id=identity)
    except requests.exceptions.ConnectionError:
        return desk.insert(name, metadata={"startup-script": "echo once; sleep 1000"}, request_id=identity)


def test_a_vm_that_died_while_the_server_was_away_is_terminated(desk):
    desk.run("vm", "sleep 1000")
    wait_for(lambda: desk.state_of("vm")["pid"])
    pid = desk.state_of("vm")["pid"]
    desk.kill_server()
    os.kill(pid, signal.SIGKILL)
    desk.start()
    wait_for(lambda: desk.get("vm").status == "TERMINATED")


def test_a_run_limit_that_passed_while_the_server_was_away_is_made_up_for(desk):
    desk.run("vm", "sleep 1000", limit=30)
    wait_for(lambda: desk.state_of("vm")["pid"])
    pid = desk.state_of("vm")["pid"]
    desk.kill_server()
    desk.start()
    wait_for(lambda: not desk.state_of("vm"))
    assert start_time(pid) is None


def test_stopping_the_cloud_ends_its_vms_and_keeps_its_memory(desk):
    desk.run("vm", "setsid sleep 1000 & sleep 1000")
    wait_for(lambda: desk.state_of("vm")["pid"])
    pid = desk.state_of("vm")["pid"]
    os.kill(desk.endpoint.pid, signal.SIGTERM)
    wait_for(lambda: start_time(desk.endpoint.pid) is None)
    assert start_time(pid) is None
    desk.clients.close()
    desk.start()
    assert desk.get("vm").status == "TERMINATED"


def test_a_cloud_whose_folder_was_removed_ends_with_its_vms(desk):
    desk.run("vm", "setsid sleep 1000 & sleep 1000")
    wait_for(lambda: desk.state_of("vm")["pid"])
    pid, server = desk.state_of("vm")["pid"], desk.endpoint.pid
    removed = desk.endpoint.folder.rename(desk.endpoint.folder.parent / "removed")
    shutil.rmtree(removed, ignore_errors=True)
    wait_for(lambda: start_time(server) is None)
    assert start_time(pid) is None
    assert client.running(desk.endpoint.folder) is None
