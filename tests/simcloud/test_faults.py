"""Injected faults, as the real client meets them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
import requests
from google.api_core import exceptions

from tests.fakes.simdesk import Desk, body_of, codes
from tests.fakes.simworld import CASES, ZONE

SCENARIO = """
clock: {rate: 300}
stock: [{zone: us-central1-a, machine_type: [a2-ultragpu-1g, a2-ultragpu-2g], count: 9}]
faults:
  - {on: insert, machine_type: a2-ultragpu-2g, nth: 2, times: 2, do: http_503}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Desk]:
    desk = Desk(tmp_path_factory.mktemp("faults"), SCENARIO)
    yield desk
    desk.stop()


@pytest.fixture
def desk(server) -> Iterator[Desk]:
    yield server
    server.clear()


def insert(desk, identity="", timeout=20.0):
    return desk.insert("vm", machine_type="a2-ultragpu-1g", request_id=identity, timeout=timeout)


def exists(desk) -> bool:
    return bool(desk.state_of("vm"))


def test_a_fault_strikes_the_nth_matching_request_and_those_after_it(desk):
    outcomes = []
    for number in range(4):
        desk.insert(f"other{number}", machine_type="a2-ultragpu-1g")
        try:
            desk.insert(f"vm{number}", machine_type="a2-ultragpu-2g")
            outcomes.append("taken")
        except exceptions.ServiceUnavailable as error:
            outcomes.append(body_of(error)["error"]["errors"][0]["reason"])
    assert outcomes == ["taken", "backendError", "backendError", "taken"]


@pytest.mark.parametrize(
    ("do", "error", "case"),
    [
        ("http_503", exceptions.ServiceUnavailable, "transient_backend_error"),
        ("http_429", exceptions.TooManyRequests, "transient_rate_limit_429_errorinfo"),
    ],
)
def test_an_http_fault_answers_as_recorded_and_does_nothing(desk, do, error, case):
    desk.sim("POST", "faults", on="insert", do=do)
    with pytest.raises(error) as raised:
        insert(desk)
    assert body_of(raised.value) == CASES[case]["body"]
    assert not exists(desk)


def test_a_gateway_error_has_a_body_that_is_not_json(desk):
    desk.sim("POST", "faults", on="insert", do="http_502")
    with pytest.raises(exceptions.BadGateway) as raised:
        insert(desk)
    assert raised.value.response.text == CASES["transient_html_502"]["body"]


def test_a_connection_dropped_before_the_commit_did_nothing(desk):
    desk.sim("POST", "faults", on="insert", do="drop_before_commit")
    with pytest.raises(requests.exceptions.ConnectionError):
        insert(desk)
    assert not exists(desk)
    assert desk.sim("GET", "requests")["requests"][-1]["status"] == 0


def test_a_connection_dropped_after_the_commit_did_everything(desk):
    desk.sim("POST", "faults", on="insert", do="drop_after_commit")
    identity = str(uuid.uuid4())
    with pytest.raises(requests.exceptions.ConnectionError):
        insert(desk, identity)
    assert exists(desk)
    assert not codes(desk.done(insert(desk, identity)))
    assert len(desk.sim("GET", "state")["instances"]) == 1


@pytest.mark.parametrize(
    ("seconds", "timeout", "error"),
    [(30, 0.3, requests.exceptions.ReadTimeout), (0.1, 20, requests.exceptions.ConnectionError)],
)
def test_a_lost_answer_leaves_the_caller_waiting(desk, seconds, timeout, error):
    desk.sim("POST", "faults", on="insert", do="lose_answer", seconds=seconds)
    with pytest.raises(error):
        insert(desk, timeout=timeout)
    assert exists(desk)


def test_reads_deletes_and_waits_can_be_struck_too(desk):
    operation = insert(desk)
    for method in ("get", "delete", "wait", "list", "operation"):
        desk.sim("POST", "faults", on=method, do="http_429")
    place = {"project": desk.project, "zone": ZONE}
    for struck in (
        lambda: desk.get("vm"),
        lambda: desk.ask_delete("vm"),
        lambda: desk.clients.operations.wait(operation=operation.name, **place),
        lambda: desk.clients.operations.get(operation=operation.name, **place),
        lambda: list(desk.clients.instances.list(**place)),
    ):
        with pytest.raises(exceptions.TooManyRequests):
            struck()
        struck()


def test_any_recorded_http_error_can_be_answered(desk):
    desk.sim("POST", "faults", on="insert", do="answer", case="perm_api_disabled")
    with pytest.raises(exceptions.Forbidden) as raised:
        insert(desk)
    assert body_of(raised.value) == CASES["perm_api_disabled"]["body"]


def test_any_recorded_operation_error_can_end_an_insert(desk):
    desk.sim("POST", "faults", on="insert", do="answer", case="transient_internal_error_operation")
    done = desk.done(insert(desk))
    assert codes(done) == ["INTERNAL_ERROR"]
    assert done.http_error_status_code == 503
    assert not exists(desk)


def test_a_fault_that_makes_no_sense_is_refused(desk):
    with pytest.raises(ValueError, match="did you mean 'http_503'"):
        desk.sim("POST", "faults", on="insert", do="http_530")


def test_the_default_retry_of_reads_rides_over_a_503(desk):
    insert(desk)
    desk.sim("POST", "faults", on="get", do="http_503")
    assert desk.get("vm").name == "vm"
