"""The gcp lane with the real client library against answers that the test scripts, byte by byte."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from google.auth import credentials, exceptions

from tests.fakes.compute_wire import Said, Wire, compute_wire
from tests.fakes.launches import SetClock, launch, rung
from widelane.config import GcpSettings
from widelane.errors import LaneAuthError, LaneUnknownError
from widelane.lanes.gcp.lane import GcpLane
from widelane.lanes.protocol import Granted, Machine, MachineState, Pending
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.models.plan import ProvisioningModel

ZONE = "/zones/us-central1-a"
INSTANCES = f"{ZONE}/instances"
ONE = f"{INSTANCES}/wl-att-0001"
OPERATION = f"{ZONE}/operations/operation-1"
FLEX = launch(rung=rung(model=ProvisioningModel.FLEX_START), wait_seconds=600)


@pytest.fixture
def wire() -> Iterator[Wire]:
    with compute_wire() as made:
        yield made


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def lane(wire: Wire, clock: SetClock) -> Iterator[GcpLane]:
    made = GcpLane(GcpSettings(project="test-project", endpoint=wire.url), clock, ("us-central1-a",))
    yield made
    made.close()


def operation(status: str = "RUNNING", *errors: dict[str, str], **more: Any) -> Said:
    body: dict[str, Any] = {
        "kind": "compute#operation",
        "id": "1234",
        "name": "operation-1",
        "operationType": "insert",
        "status": status,
        "insertTime": "2026-03-01T04:00:00.000-08:00",
        "targetLink": f"https://www.googleapis.com/compute/v1/projects/test-project{ONE}",
        **more,
    }
    if errors:
        body["error"] = {"errors": list(errors)}
        body["httpErrorStatusCode"] = 503
    return Said(200, body)


def instance(status: str = "RUNNING", *, attempt: str = "att-0001", model: str = "STANDARD", **more: Any) -> Said:
    body = {
        "name": "wl-att-0001",
        "id": "987",
        "status": status,
        "zone": "https://www.googleapis.com/compute/v1/projects/test-project/zones/us-central1-a",
        "machineType": "https://www.googleapis.com/x/zones/us-central1-a/machineTypes/a2-ultragpu-4g",
        "labels": {"widelane": "1", "widelane-attempt": attempt},
        "scheduling": {"provisioningModel": model},
        **more,
    }
    return Said(200, body)


def error(status: int, reason: str, message: str = "no") -> Said:
    return Said(
        status, {"error": {"code": status, "message": message, "errors": [{"reason": reason, "message": message}]}}
    )


STOCKOUT = {"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "does not have enough resources available"}


def test_an_accepted_create_is_pending_and_carries_its_request_id(wire: Wire, lane: GcpLane) -> None:
    wire.say("POST", INSTANCES, operation())
    assert lane.create(launch()) == Pending("operation-1", queued=False)
    assert [entry.query["requestId"] for entry in wire.heard] == [launch().request_id]


@pytest.mark.parametrize(
    "said",
    [
        Said(drop=True),
        Said(502, "<html>Bad Gateway</html>"),
        Said(200, "{broken"),
        error(503, "backendError"),
        Said(500, [1]),
    ],
    ids=["dropped", "html", "broken", "503", "not an object"],
)
def test_a_lost_answer_leaves_the_outcome_unknown_and_is_not_repeated(wire: Wire, lane: GcpLane, said: Said) -> None:
    wire.say("POST", INSTANCES, said)
    failure = lane.create(launch())
    assert isinstance(failure, Failure)
    assert (failure.outcome, failure.outcome_known) == (Outcome.TRANSIENT, False)
    assert wire.count("POST", INSTANCES) == 1


def test_nothing_listening_leaves_the_outcome_unknown(clock: SetClock) -> None:
    with compute_wire() as closed:
        url = closed.url
    failure = GcpLane(GcpSettings(project="p", endpoint=url), clock).create(launch())
    assert isinstance(failure, Failure)
    assert (failure.outcome, failure.code, failure.outcome_known) == (Outcome.TRANSIENT, "ConnectionError", False)


def test_a_refused_create_is_classified_with_its_body(wire: Wire, lane: GcpLane) -> None:
    text = "Quota 'A2_CPUS' exceeded.  Limit: 12.0 in region us-central1."
    wire.say("POST", INSTANCES, error(403, "quotaExceeded", text))
    failure = lane.create(launch())
    assert isinstance(failure, Failure)
    assert (failure.outcome, failure.scope, failure.metric) == (Outcome.QUOTA, Scope.REGION, "A2_CPUS")
    assert text in failure.body


def test_a_stockout_comes_in_the_operation(wire: Wire, lane: GcpLane) -> None:
    wire.say("GET", OPERATION, operation("DONE", STOCKOUT))
    failure = lane.poll(launch(), "operation-1")
    assert isinstance(failure, Failure)
    assert (failure.outcome, failure.scope) == (Outcome.CAPACITY, Scope.ZONE)
    assert wire.count("GET", ONE) == 0


def test_a_done_operation_and_a_running_instance_are_granted(wire: Wire, lane: GcpLane) -> None:
    wire.say("GET", OPERATION, operation("DONE"))
    wire.say("GET", ONE, instance("STAGING"), instance("RUNNING"))
    assert lane.poll(launch(), "operation-1") == Pending("operation-1", queued=False)
    granted = lane.poll(launch(), "operation-1")
    assert isinstance(granted, Granted)
    assert (granted.machine.machine_type, granted.machine.attempt_id) == ("a2-ultragpu-4g", "att-0001")


@pytest.mark.parametrize(
    "odd",
    [
        {"scheduling": {"provisioningModel": "SPOT"}},
        {"machineType": "https://x/zones/us-central1-a/machineTypes/a2-ultragpu-2g"},
    ],
    ids=["model", "type"],
)
def test_another_machine_than_asked_for_is_refused_and_both_are_named(wire: Wire, lane: GcpLane, odd: Any) -> None:
    wire.say("GET", OPERATION, operation("DONE"))
    wire.say("GET", ONE, instance("RUNNING", **odd))
    failure = lane.poll(launch(), "operation-1")
    assert isinstance(failure, Failure)
    assert (failure.outcome, failure.code) == (Outcome.CONFIG, "REALIZED_MISMATCH")
    assert "a2-ultragpu-4g STANDARD" in failure.message


def test_a_flex_start_request_waits_then_runs(wire: Wire, lane: GcpLane) -> None:
    wire.say("GET", OPERATION, operation("RUNNING"))
    wire.say("GET", ONE, instance("PENDING", model="FLEX_START"), instance("RUNNING", model="FLEX_START"))
    assert lane.poll(FLEX, "operation-1") == Pending("operation-1", queued=True)
    assert isinstance(lane.poll(FLEX, "operation-1"), Granted)


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [("2026-03-01T12:10:01Z", Outcome.QUEUE_EXPIRED), ("2026-03-01T12:00:09Z", Outcome.CAPACITY)],
    ids=["after the wait", "at once"],
)
def test_a_flex_start_stockout_is_an_expiry_only_after_the_wait(
    wire: Wire, lane: GcpLane, ended: str, outcome: Outcome
) -> None:
    wire.say("GET", OPERATION, operation("DONE", STOCKOUT, endTime=ended))
    failure = lane.poll(FLEX, "operation-1")
    assert isinstance(failure, Failure)
    assert failure.outcome is outcome


def test_a_queued_request_that_vanishes_is_told_once_it_cannot_still_appear(
    wire: Wire, lane: GcpLane, clock: SetClock
) -> None:
    wire.say("GET", OPERATION, operation("RUNNING"))
    wire.say("GET", f"{ZONE}/operations", Said(200, {"items": []}))
    clock.move(30)
    assert isinstance(lane.poll(FLEX, "operation-1"), Pending)
    clock.move(300)
    failure = lane.poll(FLEX, "operation-1")
    assert isinstance(failure, Failure)
    assert (failure.outcome, failure.scope) == (Outcome.QUEUE_VANISHED, Scope.RUNG)


def test_a_spot_machine_that_was_taken_before_the_first_look_is_preempted(
    wire: Wire, lane: GcpLane, clock: SetClock
) -> None:
    spot = launch(rung=rung(model=ProvisioningModel.SPOT))
    wire.say("GET", OPERATION, operation("DONE"))
    taken = {**operation().body, "operationType": "compute.instances.preempted", "name": "systemevent-1"}
    wire.say("GET", f"{ZONE}/operations", Said(200, {"items": [taken]}))
    clock.move(600)
    failure = lane.poll(spot, "operation-1")
    assert isinstance(failure, Failure)
    assert failure.outcome is Outcome.PREEMPTED


def test_an_operation_that_is_forgotten_is_looked_up_by_name(wire: Wire, lane: GcpLane) -> None:
    lost = lane.poll(launch(), "operation-1")
    assert isinstance(lost, Failure)
    assert (lost.outcome, lost.outcome_known) == (Outcome.TRANSIENT, False)
    wire.say("GET", ONE, instance("RUNNING"))
    assert isinstance(lane.poll(launch(), "operation-1"), Granted)


@pytest.mark.parametrize("where", ["http", "operation"])
def test_a_taken_name_is_adopted_when_the_attempt_is_ours(wire: Wire, lane: GcpLane, where: str) -> None:
    taken = error(409, "alreadyExists", f"The resource 'projects/test-project{ONE}' already exists")
    inside = operation("DONE", {"code": "RESOURCE_ALREADY_EXISTS", "message": "already exists"})
    wire.say("POST", INSTANCES, taken if where == "http" else inside)
    wire.say("GET", ONE, instance("STAGING"), instance("RUNNING"))
    assert lane.create(launch()) == Pending("", queued=False)
    assert isinstance(lane.poll(launch(), ""), Granted)


def test_a_taken_name_of_another_is_a_conflict_and_is_left_alone(wire: Wire, lane: GcpLane) -> None:
    wire.say("POST", INSTANCES, error(409, "alreadyExists"))
    wire.say("GET", ONE, instance("RUNNING", attempt="att-9999"))
    failure = lane.create(launch())
    assert isinstance(failure, Failure)
    assert failure.outcome is Outcome.CONFLICT
    assert "att-9999" in failure.message
    assert {entry.method for entry in wire.heard} == {"POST", "GET"}


def test_a_machine_of_another_is_never_granted(wire: Wire, lane: GcpLane) -> None:
    wire.say("GET", OPERATION, operation("DONE"))
    wire.say("GET", ONE, instance("RUNNING", attempt="att-9999"))
    failure = lane.poll(launch(), "operation-1")
    assert isinstance(failure, Failure)
    assert failure.outcome is Outcome.CONFLICT


def test_a_read_is_repeated_after_a_passing_failure(wire: Wire, lane: GcpLane) -> None:
    wire.say("GET", ONE, error(503, "backendError"), Said(drop=True), instance("TERMINATED"))
    found = lane.find("wl-att-0001", "us-central1-a")
    assert isinstance(found, Machine)
    assert found.state is MachineState.STOPPED


def test_a_state_that_cannot_be_read_is_neither_there_nor_gone(wire: Wire, lane: GcpLane) -> None:
    wire.say("GET", ONE, error(503, "backendError"))
    with pytest.raises(LaneUnknownError):
        lane.find("wl-att-0001", "us-central1-a")


def test_only_the_instance_itself_can_be_absent(wire: Wire, lane: GcpLane) -> None:
    assert lane.find("wl-att-0001", "us-central1-a") is None
    wire.say("GET", ONE, error(404, "notFound", "The resource 'projects/test-project' was not found"))
    with pytest.raises(LaneUnknownError):
        lane.find("wl-att-0001", "us-central1-a")


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_told_with_the_way_out(wire: Wire, lane: GcpLane, status: int) -> None:
    wire.say("GET", ONE, error(status, "authError"))
    with pytest.raises(LaneAuthError) as told:
        lane.find("wl-att-0001", "us-central1-a")
    assert "gcloud auth application-default login" in told.value.hint


class Expired(credentials.Credentials):
    """Credentials whose token can't be renewed, for the given reason."""

    def __init__(self, reason: exceptions.GoogleAuthError) -> None:
        super().__init__()
        self.reason = reason

    def refresh(self, request: object) -> None:
        raise self.reason


def test_expired_credentials_are_told_before_anything_is_sent(wire: Wire, clock: SetClock) -> None:
    settings = GcpSettings(project="test-project", endpoint=wire.url)
    expired = Expired(exceptions.RefreshError("Reauthentication is needed."))
    with pytest.raises(LaneAuthError) as told:
        GcpLane(settings, clock, credentials=expired).create(launch())
    assert "gcloud auth application-default login" in told.value.hint
    assert not wire.heard


def test_a_token_server_out_of_reach_is_no_matter_of_credentials(wire: Wire, clock: SetClock) -> None:
    settings = GcpSettings(project="test-project", endpoint=wire.url)
    failure = GcpLane(settings, clock, credentials=Expired(exceptions.TransportError("no route"))).create(launch())
    assert isinstance(failure, Failure)
    assert failure.outcome is Outcome.TRANSIENT


def test_deleting_what_is_not_there_succeeds(wire: Wire, lane: GcpLane) -> None:
    lane.delete("wl-att-0001", "us-central1-a")
    wire.say("DELETE", ONE, error(503, "backendError"), operation("RUNNING", operationType="delete"))
    lane.delete("wl-att-0001", "us-central1-a")
    assert wire.count("DELETE", ONE) == 3


def test_progress_is_read_from_the_guest_attributes_of_a_running_machine(wire: Wire, lane: GcpLane) -> None:
    wire.say("GET", ONE, instance("RUNNING"))
    bare = lane.find("wl-att-0001", "us-central1-a")
    items = {"queryValue": {"items": [{"namespace": "widelane", "key": "progress", "value": '{"total":3}'}]}}
    wire.say("GET", f"{ONE}/getGuestAttributes", Said(200, items))
    told = lane.find("wl-att-0001", "us-central1-a")
    assert bare is not None
    assert told is not None
    assert (bare.progress, told.progress) == ("", '{"total":3}')


def test_machines_are_listed_by_label_over_all_pages_and_with_creates_under_way(wire: Wire, lane: GcpLane) -> None:
    first, second = instance().body, {**instance().body, "name": "wl-att-0002"}
    pages = [{"zones/us-central1-a": {"instances": [first]}}, {"zones/us-central1-b": {"instances": [second]}}]
    wire.say(
        "GET",
        "/aggregated/instances",
        Said(200, {"items": pages[0], "nextPageToken": "more"}),
        Said(200, {"items": pages[1]}),
    )
    coming = {**operation().body, "targetLink": f"https://x{INSTANCES}/wl-att-0003"}
    wire.say("GET", f"{ZONE}/operations", Said(200, {"items": [coming]}))
    wire.say("GET", f"{INSTANCES}/wl-att-0003", Said(200, {**instance("STAGING").body, "name": "wl-att-0003"}))
    assert [found.name for found in lane.machines()] == ["wl-att-0001", "wl-att-0002", "wl-att-0003"]
    assert {entry.query.get("filter") for entry in wire.heard if "aggregated" in entry.path} == {"labels.widelane=1"}


def test_quotas_that_are_not_told_are_unknown(wire: Wire, lane: GcpLane) -> None:
    metric = {"metric": "A2_CPUS", "limit": 12.0, "usage": 0.0}
    wire.say("GET", "/regions/us-central1", Said(200, {"name": "us-central1", "quotas": [metric]}))
    wire.say("GET", "/regions/us-east1", Said(200, {"name": "us-east1", "quotaStatusWarning": {"code": "X"}}))
    wire.say("GET", "/regions/us-west1", error(403, "forbidden"))
    wire.say("GET", "", Said(200, {"name": "test-project", "quotas": [{"metric": "GPUS_ALL_REGIONS", "limit": 8}]}))
    taken = lane.quotas(("us-central1", "us-east1", "us-west1", "us-nowhere1"))
    assert [region.metrics is None for region in taken.regions] == [False, True, True, True]
    assert taken.global_metrics is not None
    assert (taken.global_metrics[0].limit, taken.global_metrics[0].usage) == (8.0, 0.0)


def test_one_client_serves_many_threads(wire: Wire, lane: GcpLane) -> None:
    wire.say("GET", ONE, instance("RUNNING"))
    found: list[Machine | None] = []
    threads = [
        threading.Thread(target=lambda: found.append(lane.find("wl-att-0001", "us-central1-a"))) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry.name for entry in found if entry] == ["wl-att-0001"] * 16
